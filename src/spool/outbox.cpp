#include "spool/outbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/json_writer.h"
#include "base/text.h"

namespace reprise::spool {
namespace {

constexpr const char* kQuotaName = "quota.json";
constexpr std::size_t kMaxQuotaBytes = 64 << 10;

std::optional<WhenFull> when_full_from(std::string_view name) {
  for (const WhenFull value : {WhenFull::refuse, WhenFull::drop_oldest}) {
    if (when_full_name(value) == name) return value;
  }
  return std::nullopt;
}

Error bad_quota(const SpoolFiles& files, const std::string& problem) {
  return Error{Errc::corrupt, fmt::format("{} cannot be understood ({}); delete it, and set the "
                                          "quota again with --max-events or --max-bytes",
                                          (files.directory() / kQuotaName).string(), problem)};
}

Result<Quota> parse_quota(std::string_view text) {
  const auto json = Json::parse(text);
  if (!json) return json.error();
  Quota quota;
  std::string when_full(when_full_name(quota.when_full));
  JsonFields fields(*json);
  fields.read("maxEvents", quota.max_events);
  fields.read("maxBytes", quota.max_bytes);
  fields.read("whenFull", when_full);
  fields.read("dropped", quota.dropped);
  const auto known = when_full_from(when_full);
  if (!known) fields.fail("whenFull", "must be refuse or drop-oldest");
  REPRISE_TRY(fields.finish());
  quota.when_full = *known;
  return quota;
}

std::string quota_text(const Quota& quota) {
  JsonWriter out;
  const auto limit = [&out](std::string_view name, const std::optional<std::uint64_t>& value) {
    out.key(name);
    value ? out.value(*value) : out.null();
  };
  out.begin_object();
  limit("maxEvents", quota.max_events);
  limit("maxBytes", quota.max_bytes);
  out.key("whenFull").value(when_full_name(quota.when_full));
  out.key("dropped").value(quota.dropped);
  out.end_object();
  return out.take() + "\n";
}

// How much is in the queue, or is to come.
struct Load {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;

  void add(std::uint64_t size) {
    ++events;
    bytes += size;
  }
  void take(std::uint64_t size) {
    --events;
    bytes -= size;
  }
};

bool within(const Load& load, const Quota& quota) {
  return load.events <= quota.max_events.value_or(load.events) &&
         load.bytes <= quota.max_bytes.value_or(load.bytes);
}

std::string limits_text(const Quota& quota) {
  std::string text;
  if (quota.max_events) text = fmt::format("{} events", *quota.max_events);
  if (!quota.max_bytes) return text;
  return text + (text.empty() ? "" : " and ") + format_bytes(*quota.max_bytes);
}

// Bytes are known, and of interest, only where they are limited.
std::string load_text(const Quota& quota, const Load& load) {
  std::string text = fmt::format("{} {}", load.events, load.events == 1 ? "event" : "events");
  return quota.max_bytes ? fmt::format("{} of {}", text, format_bytes(load.bytes)) : text;
}

Error full(const Quota& quota, const Load& queued, const Load& wanted) {
  return Error{
      Errc::spool_full,
      fmt::format("the spool is full: the quota is {}, {} queued, and there is no room for {}",
                  limits_text(quota),
                  load_text(quota, queued) + (queued.events == 1 ? " is" : " are"),
                  load_text(quota, wanted))};
}

// No dropping makes room for an event that is beyond the quota alone.
Status check_each(const Quota& quota, const std::vector<const NewFile*>& events) {
  for (const NewFile* event : events) {
    Load alone;
    alone.add(event->content.size());
    if (within(alone, quota)) continue;
    return Error{Errc::spool_full,
                 fmt::format("an event of {} is beyond the spool's quota of {}",
                             format_bytes(event->content.size()), limits_text(quota))};
  }
  return ok();
}

bool is_queued(const Listing& queue, const std::string& name) {
  return std::ranges::binary_search(queue.files, name, {}, &FileEntry::name);
}

// Those that are not in the queue yet, by name, each name once; the names of the others.
struct Sorted {
  std::vector<const NewFile*> fresh;
  std::vector<std::string> already_there;
};
Sorted sort_out(const Listing& queue, const std::vector<NewFile>& events) {
  Sorted sorted;
  std::set<std::string_view> seen;
  for (const NewFile& event : events) {
    if (is_queued(queue, event.name) || !seen.insert(event.name).second) {
      sorted.already_there.push_back(event.name);
    } else {
      sorted.fresh.push_back(&event);
    }
  }
  std::ranges::sort(sorted.fresh, {},
                    [](const NewFile* event) -> const std::string& { return event->name; });
  return sorted;
}

// What has to go so that the rest is within the quota: the oldest first, as many as needed.
// `unborn` of the new ones are so old that they need not be stored.
struct Victims {
  std::vector<std::string> queued;
  std::size_t unborn = 0;
};
Victims choose_victims(const Quota& quota, const Listing& queue,
                       const std::vector<const NewFile*>& fresh, Load together) {
  Victims victims;
  for (const FileEntry& oldest : queue.files) {
    if (within(together, quota)) return victims;
    together.take(oldest.bytes);
    victims.queued.push_back(oldest.name);
  }
  for (; !within(together, quota); ++victims.unborn) {
    together.take(fresh[victims.unborn]->content.size());
  }
  return victims;
}

}  // namespace

std::string_view when_full_name(WhenFull when_full) {
  return when_full == WhenFull::refuse ? "refuse" : "drop-oldest";
}

Result<std::optional<Quota>> read_quota(const SpoolFiles& files) {
  const FileContent content = files.read(Folder::root, kQuotaName, kMaxQuotaBytes);
  switch (content.state) {
    case FileContent::State::vanished:
      return std::optional<Quota>();
    case FileContent::State::too_large:
      return bad_quota(files, "it is too large");
    case FileContent::State::unreadable:
      return bad_quota(files, content.problem);
    case FileContent::State::whole:
      break;
  }
  auto quota = parse_quota(content.bytes);
  if (!quota) return bad_quota(files, quota.error().detail);
  return std::optional<Quota>(std::move(*quota));
}

Status Outbox::change_quota(const QuotaChange& change) {
  const auto alone = files_.write_alone();
  if (!alone) return alone.error();
  const auto before = read_quota(files_);
  if (!before) return before.error();
  Quota quota = before->value_or(Quota{});
  if (!*before && !change.max_events && !change.max_bytes) {
    return Error{Errc::invalid_field,
                 "--when-full needs a quota: give --max-events or --max-bytes with it"};
  }
  if (change.max_events) quota.max_events = *change.max_events;
  if (change.max_bytes) quota.max_bytes = *change.max_bytes;
  if (change.when_full) quota.when_full = *change.when_full;
  if (quota.max_events || quota.max_bytes) {
    return files_.put(*alone, Folder::root, {kQuotaName, quota_text(quota)});
  }
  const auto removed = files_.remove(Folder::root, kQuotaName);
  if (!removed) return removed.error();
  return files_.sync_removals(Folder::root);
}

Result<Added> Outbox::add(const std::vector<NewFile>& events) {
  {
    const auto shared = files_.write_shared();
    if (!shared) return shared.error();
    // Nobody can set one while we write.
    const auto quota = read_quota(files_);
    if (!quota) return quota.error();
    if (!*quota) {
      auto taken = files_.add(*shared, Folder::queue, events);
      if (!taken) return taken.error();
      return Added{std::move(*taken), 0};
    }
  }
  const auto alone = files_.write_alone();
  if (!alone) return alone.error();
  const auto quota = read_quota(files_);
  if (!quota) return quota.error();
  return add_within(*alone, quota->value_or(Quota{}), events);
}

Result<Added> Outbox::add_within(const SpoolFiles::Writing& alone, Quota quota,
                                 const std::vector<NewFile>& events) {
  const auto queue = files_.list(Folder::queue, quota.max_bytes ? Sizes::yes : Sizes::no);
  if (!queue) return queue.error();
  auto [fresh, already_there] = sort_out(*queue, events);
  Added added{std::move(already_there), 0};
  if (fresh.empty()) return added;
  REPRISE_TRY(check_each(quota, fresh));
  Load queued;
  for (const FileEntry& file : queue->files) queued.add(file.bytes);
  Load wanted;
  for (const NewFile* event : fresh) wanted.add(event->content.size());
  const Load together{queued.events + wanted.events, queued.bytes + wanted.bytes};
  if (!within(together, quota)) {
    if (quota.when_full == WhenFull::refuse) return full(quota, queued, wanted);
    const Victims victims = choose_victims(quota, *queue, fresh, together);
    REPRISE_TRY(drop(alone, quota, victims.queued, victims.unborn, added));
    fresh.erase(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(victims.unborn));
  }
  std::vector<NewFile> stored;
  stored.reserve(fresh.size());
  for (const NewFile* event : fresh) stored.push_back(*event);
  const auto taken = files_.add(alone, Folder::queue, stored);
  if (!taken) return taken.error();
  added.already_there.insert(added.already_there.end(), taken->begin(), taken->end());
  return added;
}

// One that a drainer has sent meanwhile was not dropped.
Status Outbox::drop(const SpoolFiles::Writing& alone, Quota& quota,
                    const std::vector<std::string>& queued, std::uint64_t unborn, Added& added) {
  added.dropped = unborn;
  for (const std::string& name : queued) {
    const auto removed = files_.remove(Folder::queue, name);
    if (!removed) return removed.error();
    added.dropped += *removed ? 1 : 0;
  }
  if (added.dropped == 0) return ok();
  quota.dropped += added.dropped;
  return files_.put(alone, Folder::root, {kQuotaName, quota_text(quota)});
}

}  // namespace reprise::spool
