#include "storage/durable/overlay.h"

#include <algorithm>
#include <utility>

#include "storage/keys.h"

namespace reprise::storage {
namespace {

// What an entry takes in memory beside its key and value.
constexpr std::uint64_t kEntryOverhead = 96;

bool is_by_job(Keyspace keyspace) {
  return keyspace == Keyspace::jobs || keyspace == Keyspace::states || keyspace == Keyspace::dead ||
         keyspace == Keyspace::completed;
}

}  // namespace

class Overlay::Applier final : public Batch::Visitor {
 public:
  Applier(Overlay& overlay, const AppliedBatch& batch, std::string_view body)
      : overlay_(overlay), batch_(batch), body_(body) {}

  void put(Keyspace keyspace, std::string_view key, std::string_view value) override {
    const auto in_body = static_cast<std::uint64_t>(value.data() - body_.data());
    overlay_.put(keyspace, key,
                 {.segment = batch_.segment.get(),
                  .offset = batch_.body_offset + in_body,
                  .length = static_cast<std::uint32_t>(value.size())},
                 batch_.number);
  }
  void erase(Keyspace keyspace, std::string_view key) override {
    overlay_.erase(keyspace, key, batch_.number);
  }
  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) override {
    overlay_.erase_range(keyspace, begin, end, batch_.number);
  }

 private:
  Overlay& overlay_;
  const AppliedBatch& batch_;
  const std::string_view body_;
};

bool Overlay::apply(const AppliedBatch& batch, std::string_view body, std::size_t mutations) {
  if (segments_.empty() || segments_.back() != batch.segment) segments_.push_back(batch.segment);
  last_batch_ = batch.number;
  Applier applier(*this, batch, body);
  return Batch::visit(body, mutations, applier);
}

std::uint64_t Overlay::bytes_of(std::size_t key_bytes, const ValuePlace& place) {
  return kEntryOverhead + key_bytes + place.length;
}

const Overlay::Version* Overlay::visible(const Version& latest, std::uint64_t view) {
  const Version* version = &latest;
  while (version != nullptr && version->batch > view) version = version->older;
  return version;
}

Overlay::Found Overlay::found(const Version& version) {
  return {.erased = version.erased, .is_new = version.is_new, .place = version.place};
}

std::optional<Overlay::Found> Overlay::find(Keyspace keyspace, std::string_view key,
                                            std::uint64_t view) const {
  const VersionMap& map = of(keyspace);
  if (const auto at = map.find(key); at != map.end()) {
    if (const Version* version = visible(at.version(), view)) return found(*version);
  }
  if (hidden_by(keyspace, key, view) != nullptr) return Found{.erased = true};
  return std::nullopt;
}

std::optional<Overlay::Entry> Overlay::next(Keyspace keyspace, std::string_view from,
                                            std::uint64_t view) const {
  const VersionMap& map = of(keyspace);
  for (auto at = map.lower_bound(from); at != map.end(); ++at) {
    if (const Version* version = visible(at.version(), view)) {
      return Entry{at.key(), found(*version)};
    }
  }
  return std::nullopt;
}

std::vector<Overlay::Entry> Overlay::entries(Keyspace keyspace, std::string_view begin,
                                             std::string_view end, std::uint64_t view) const {
  std::vector<Entry> entries;
  const VersionMap& map = of(keyspace);
  for (auto at = map.lower_bound(begin); at != map.end() && at.is_before(end); ++at) {
    if (const Version* version = visible(at.version(), view)) {
      entries.push_back({at.key(), found(*version)});
    }
  }
  return entries;
}

void Overlay::for_each(
    Keyspace keyspace,
    const std::function<bool(const std::string& key, const Found&)>& visit) const {
  const VersionMap& map = of(keyspace);
  for (auto at = map.begin(); at != map.end(); ++at) {
    if (!visit(at.key(), found(at.version()))) return;
  }
}

const Overlay::ErasedRange* Overlay::hidden_by(Keyspace keyspace, std::string_view key,
                                               std::uint64_t view) const {
  const auto found = std::ranges::find_if(erased_ranges_, [&](const ErasedRange& range) {
    return range.keyspace == keyspace && range.batch <= view && range.begin <= key &&
           key < range.end;
  });
  return found == erased_ranges_.end() ? nullptr : &*found;
}

bool Overlay::is_new_key(Keyspace keyspace, std::string_view key) const {
  if (keyspace == Keyspace::endings) {
    const auto ending = parse_ending_key(key);
    return ending && ending->seq > seq_floor_;
  }
  if (!is_by_job(keyspace)) return false;
  const auto job = parse_job_key(key);
  return job && job->seq > seq_floor_;
}

// Whether somebody may still ask for this version.
bool Overlay::viewed(const Version& version) const {
  return !views_.empty() && *views_.rbegin() >= version.batch;
}

// Whether nobody may ask for this version or one before it.
bool Overlay::unviewed(const Version& version) const {
  return views_.empty() || (!viewed(version) && version.older == nullptr);
}

void Overlay::replace(Version& version, Version by) {
  by.is_new = version.is_new;
  if (viewed(version)) {
    by.older = new Version(version);
  } else if (!views_.empty()) {
    by.older = version.older;
  } else {
    VersionMap::free_older(version);
  }
  version = by;
}

void Overlay::put(Keyspace keyspace, std::string_view key, ValuePlace place, std::uint64_t batch) {
  if (is_by_job(keyspace)) {
    if (const auto job = parse_job_key(key)) seq_highest_ = std::max(seq_highest_, job->seq);
  }
  VersionMap& map = of(keyspace);
  const OrderedKey ordered(key);
  Version version{.batch = batch, .place = place};
  bytes_ += bytes_of(key.size(), place);
  // Pushes come in rising order, so most new keys go to the end.
  if (map.is_behind_all(ordered)) {
    version.is_new = is_new_key(keyspace, key);
    map.append(ordered, version);
    return;
  }
  const auto at = map.seek(ordered);
  if (!at.is_at(ordered)) {
    version.is_new = is_new_key(keyspace, key);
    map.insert(at, ordered, version);
    return;
  }
  bytes_ -= bytes_of(key.size(), at.version().place);
  replace(at.version(), version);
}

void Overlay::erase(Keyspace keyspace, std::string_view key, std::uint64_t batch) {
  VersionMap& map = of(keyspace);
  const OrderedKey ordered(key);
  const auto at = map.is_behind_all(ordered) ? map.end() : map.seek(ordered);
  if (at == map.end() || !at.is_at(ordered)) {
    if (is_new_key(keyspace, key)) return;  // it is nowhere
    bytes_ += bytes_of(key.size(), {});
    map.insert(at, ordered, Version{.batch = batch, .erased = true});
    return;
  }
  Version& version = at.version();
  bytes_ -= bytes_of(key.size(), version.place);
  if (version.is_new && unviewed(version)) {
    map.erase(at);
    return;
  }
  bytes_ += bytes_of(key.size(), {});
  replace(version, {.batch = batch, .erased = true});
}

void Overlay::erase_range(Keyspace keyspace, std::string_view begin, std::string_view end,
                          std::uint64_t batch) {
  VersionMap& map = of(keyspace);
  for (auto at = map.lower_bound(begin); at != map.end() && at.is_before(end);) {
    const std::size_t key_bytes = at.key().size();
    bytes_ -= bytes_of(key_bytes, at.version().place);
    if (unviewed(at.version())) {
      at = map.erase(at);  // the range itself hides what is below
      continue;
    }
    bytes_ += bytes_of(key_bytes, {});
    replace(at.version(), {.batch = batch, .erased = true});
    ++at;
  }
  erased_ranges_.push_back({keyspace, std::string(begin), std::string(end), batch});
  bytes_ += bytes_of(begin.size() + end.size(), {});
}

}  // namespace reprise::storage
