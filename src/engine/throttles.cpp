#include "engine/throttles.h"

#include <absl/hash/hash.h>

#include <algorithm>

#include "base/check.h"
#include "engine/pending_jobs.h"
#include "engine/sparse_table.h"

namespace reprise {
namespace {

// Of one line in one wake. More than that come at the next, at once.
constexpr std::size_t kWokenMax = 1000;

ThrottledStrand::Wait& wait_of(Strand& strand, Lane lane) {
  return strand.throttled->waits[static_cast<std::size_t>(lane)];
}
const ThrottledStrand::Wait& wait_of(const Strand& strand, Lane lane) {
  return strand.throttled->waits[static_cast<std::size_t>(lane)];
}

}  // namespace

struct Throttles::Line {
  struct Waiter {
    FairTag finish{};
    std::uint64_t serial{};
    Strand* strand{};
    friend bool operator<(const Waiter& a, const Waiter& b) {
      if (a.finish != b.finish) return is_before(a.finish, b.finish);
      return a.serial < b.serial;
    }
  };
  absl::btree_set<Waiter> waiting;
  std::uint64_t woken = 0;  // strands that have neither taken a token nor left since
  FairTag now = 0;
};

struct Throttles::Bucket {
  Name name;
  std::uint64_t serial{};
  std::optional<Throttle> limit;         // nothing: it holds nobody back
  std::optional<TokenBucket> tokens;     // with limit
  absl::btree_map<LineKey, Line> lines;  // no empty ones
  QueueNumber last_served{};             // queues take turns
  std::uint64_t waiting = 0;             // in all lines
  std::uint32_t sets = 0;                // that have it
  Timestamp wake_at = kNever;
  For wake_for = For::look;
};

std::size_t Throttles::NameHash::operator()(const NameView& name) const {
  return absl::HashOf(name.ns, name.key);
}

Throttles::Throttles() = default;
Throttles::~Throttles() = default;

// --- What operators say -------------------------------------------------------------------------

Throttles::Bucket& Throttles::bucket_of(const std::string& ns, const std::string& key) {
  const auto found = buckets_.find(NameView{ns, key});
  if (found != buckets_.end()) return *found->second;
  auto bucket = std::make_unique<Bucket>();
  bucket->name = {ns, key};
  bucket->serial = next_serial_++;
  return *buckets_.emplace(Name{ns, key}, std::move(bucket)).first->second;
}

void Throttles::forget_if_unused(Bucket& bucket) {
  if (bucket.limit || bucket.sets > 0) return;
  disarm(bucket);
  changed_.erase(&bucket);
  std::erase(late_, &bucket);
  buckets_.erase(NameView{bucket.name.ns, bucket.name.key});
  shrink_if_sparse(buckets_);
}

void Throttles::restore(const ThrottleRecord& record) {
  const Throttle& throttle = record.throttle;
  Bucket& bucket = bucket_of(throttle.ns, throttle.key);
  bucket.limit = throttle;
  bucket.tokens.emplace(throttle.rate, throttle.burst, record.level);
  limited_[throttle.ns][throttle.key] = &bucket;
}

void Throttles::set(const Throttle& throttle, Timestamp now) {
  Bucket& bucket = bucket_of(throttle.ns, throttle.key);
  if (bucket.limit) {
    bucket.tokens->change(throttle.rate, throttle.burst, now);
  } else {
    bucket.tokens.emplace(throttle.rate, throttle.burst, now);
  }
  bucket.limit = throttle;
  limited_[throttle.ns][throttle.key] = &bucket;
  changed_.insert(&bucket);
  if (bucket.waiting > 0) arm(bucket, now, For::look);
}

void Throttles::unset(const std::string& ns, const std::string& key, Timestamp now) {
  Bucket& bucket = bucket_of(ns, key);
  bucket.limit.reset();
  bucket.tokens.reset();
  limited_[ns].erase(key);
  if (limited_[ns].empty()) limited_.erase(ns);
  changed_.erase(&bucket);
  if (bucket.waiting > 0) arm(bucket, now, For::look);
  forget_if_unused(bucket);
}

ThrottleStats Throttles::stats_of(const Bucket& bucket, Timestamp now) {
  return {
      .throttle = *bucket.limit, .tokens = bucket.tokens->tokens(now), .waiting = bucket.waiting};
}

std::optional<ThrottleStats> Throttles::find(const std::string& ns, const std::string& key,
                                             Timestamp now) const {
  const auto found = buckets_.find(NameView{ns, key});
  if (found == buckets_.end() || !found->second->limit) return std::nullopt;
  return stats_of(*found->second, now);
}

std::vector<ThrottleStats> Throttles::list(const std::string& ns, Timestamp now) const {
  std::vector<ThrottleStats> list;
  for (const auto& [name, buckets] : limited_) {
    if (!ns.empty() && name != ns) continue;
    for (const auto& [key, bucket] : buckets) list.push_back(stats_of(*bucket, now));
  }
  return list;
}

std::size_t Throttles::count(const std::string& ns) const {
  const auto found = limited_.find(ns);
  return found == limited_.end() ? 0 : found->second.size();
}

std::vector<ThrottleRecord> Throttles::take_changed() {
  std::vector<ThrottleRecord> records;
  for (const Bucket* bucket : changed_)
    records.push_back({*bucket->limit, bucket->tokens->level()});
  changed_.clear();
  // The order of addresses would make batches a matter of chance.
  std::ranges::sort(records, {}, [](const ThrottleRecord& record) {
    return std::pair(std::string_view(record.throttle.ns), std::string_view(record.throttle.key));
  });
  return records;
}

// --- Strands ------------------------------------------------------------------------------------

ThrottleSet* Throttles::acquire(const std::string& ns, const std::vector<std::string>& keys) {
  std::vector<Bucket*> buckets;
  buckets.reserve(keys.size());
  for (const std::string& key : keys) buckets.push_back(&bucket_of(ns, key));
  std::ranges::sort(buckets, {}, [](const Bucket* bucket) { return bucket->serial; });
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  auto& set = sets_[buckets];
  if (!set) {
    set = std::make_unique<ThrottleSet>();
    for (Bucket* bucket : buckets) ++bucket->sets;
    set->buckets = std::move(buckets);
  }
  ++set->uses;
  return set.get();
}

ThrottleSet* Throttles::find_set(const std::string& ns,
                                 const std::vector<std::string>& keys) const {
  std::vector<Bucket*> buckets;
  buckets.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto found = buckets_.find(NameView{ns, key});
    if (found == buckets_.end()) return nullptr;
    buckets.push_back(found->second.get());
  }
  std::ranges::sort(buckets, {}, [](const Bucket* bucket) { return bucket->serial; });
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  const auto found = sets_.find(buckets);
  return found == sets_.end() ? nullptr : found->second.get();
}

void Throttles::give_back(ThrottleSet& set) {
  if (--set.uses > 0) return;
  const std::vector<Bucket*> buckets = set.buckets;
  sets_.erase(buckets);
  shrink_if_sparse(sets_);
  for (Bucket* bucket : buckets) {
    --bucket->sets;
    forget_if_unused(*bucket);
  }
}

Throttles::LineKey Throttles::line_key(const Strand& strand, Lane lane) {
  return {strand.key.jobs.queue(), lane};
}

Throttles::Line* Throttles::line_of(Bucket& bucket, const Strand& strand, Lane lane) const {
  const auto found = bucket.lines.find(line_key(strand, lane));
  return found == bucket.lines.end() ? nullptr : &found->second;
}

void Throttles::forget_if_empty(Bucket& bucket, const LineKey& key) {
  const auto found = bucket.lines.find(key);
  if (found == bucket.lines.end()) return;
  if (found->second.waiting.empty() && found->second.woken == 0) bucket.lines.erase(found);
}

Throttles::Bucket* Throttles::lacking(const Strand& strand, Lane lane, Timestamp now) const {
  if (!strand.throttled) return nullptr;
  const ThrottledStrand::Wait& wait = wait_of(strand, lane);
  Bucket* worst = nullptr;
  Timestamp worst_at = Timestamp::min();
  for (Bucket* bucket : strand.throttled->set->buckets) {
    if (!bucket->limit) continue;
    // Those that were woken before it have the first claim. One that was not woken takes its place
    // in a line if there is one: two orders would not add up to fair shares. One that was must not,
    // as strands with several buckets would wait for each other.
    const Line* line = line_of(*bucket, strand, lane);
    std::uint64_t before = line == nullptr ? 0 : line->woken;
    if (wait.woken && wait.bucket == bucket) --before;
    const bool joins_line = !wait.woken && line != nullptr && !line->waiting.empty();
    if (!joins_line && bucket->tokens->whole_tokens(now) > before) continue;
    // It waits where it has to wait longest, so that it is woken as seldom as possible.
    const Timestamp at = bucket->tokens->next_token(now);
    if (worst == nullptr || at > worst_at) {
      worst = bucket;
      worst_at = at;
    }
  }
  return worst;
}

void Throttles::take(Strand& strand, Lane lane, Timestamp now) {
  if (!strand.throttled) return;
  ThrottledStrand::Wait& wait = wait_of(strand, lane);
  const LineKey key = line_key(strand, lane);
  now_ = now;
  for (Bucket* bucket : strand.throttled->set->buckets) {
    if (wait.bucket == bucket && wait.woken) {
      --bucket->lines.at(key).woken;
      forget_if_empty(*bucket, key);
    }
    if (!bucket->limit) continue;
    bucket->tokens->take(now);
    bucket->last_served = key.first;
    changed_.insert(bucket);
    arm_for_next_token(*bucket, now);
  }
  wait.bucket = nullptr;
  wait.woken = false;
  wait.start += fair_cost(strand.key.weight);
}

void Throttles::refund(const Strand& strand, Timestamp now) {
  if (!strand.throttled) return;
  for (Bucket* bucket : strand.throttled->set->buckets) {
    if (!bucket->limit) continue;
    bucket->tokens->put_back(now);
    changed_.insert(bucket);
    if (bucket->waiting > 0) arm(*bucket, now, For::look);
  }
}

void Throttles::park(Strand& strand, Lane lane, Bucket& bucket, Timestamp now) {
  now_ = now;
  leave(strand, lane);
  ThrottledStrand::Wait& wait = wait_of(strand, lane);
  Line& line = bucket.lines[line_key(strand, lane)];
  const FairTag cost = fair_cost(strand.key.weight);
  wait.bucket = &bucket;
  wait.start = fair_start(wait.start, line.now, cost);
  wait.finish = wait.start + cost;
  wait.serial = next_serial_++;
  line.waiting.insert({wait.finish, wait.serial, &strand});
  ++bucket.waiting;
  if (may_wake(bucket, line, now)) {
    arm(bucket, now, For::look);
  } else {
    arm_for_next_token(bucket, now);
  }
}

bool Throttles::is_parked(const Strand& strand, Lane lane) {
  if (!strand.throttled) return false;
  const ThrottledStrand::Wait& wait = wait_of(strand, lane);
  return wait.bucket != nullptr && !wait.woken;
}

void Throttles::leave(Strand& strand, Lane lane) {
  if (!strand.throttled) return;
  ThrottledStrand::Wait& wait = wait_of(strand, lane);
  if (wait.bucket == nullptr) return;
  Bucket& bucket = *std::exchange(wait.bucket, nullptr);
  const LineKey key = line_key(strand, lane);
  Line& line = bucket.lines.at(key);
  if (std::exchange(wait.woken, false)) {
    --line.woken;
    // The token that it did not take may be another's.
    if (!line.waiting.empty()) arm(bucket, now_, For::look);
  } else {
    const std::size_t erased = line.waiting.erase({wait.finish, wait.serial, &strand});
    REPRISE_CHECK(erased == 1);
    --bucket.waiting;
  }
  forget_if_empty(bucket, key);
  if (bucket.waiting == 0) disarm(bucket);
}

// --- Time ---------------------------------------------------------------------------------------

void Throttles::arm(Bucket& bucket, Timestamp at, For what) {
  if (bucket.wake_at <= at) return;
  disarm(bucket);
  bucket.wake_at = at;
  bucket.wake_for = what;
  wakes_.emplace(at, bucket.serial);
  by_serial_.emplace(bucket.serial, &bucket);
}

void Throttles::disarm(Bucket& bucket) {
  if (bucket.wake_at == kNever) return;
  wakes_.erase({bucket.wake_at, bucket.serial});
  by_serial_.erase(bucket.serial);
  bucket.wake_at = kNever;
}

void Throttles::arm_for_next_token(Bucket& bucket, Timestamp now) {
  if (bucket.waiting == 0 || !bucket.limit) return;
  // A full one waits for those who were woken; see leave().
  if (const Timestamp next = bucket.tokens->next_token(now); next != kNever) {
    arm(bucket, next, For::token);
  }
}

// Each bucket once, even if something comes up for it meanwhile.
std::vector<Throttles::Bucket*> Throttles::due_buckets(Timestamp now) const {
  std::vector<Bucket*> due;
  for (const auto& [at, serial] : wakes_) {
    if (at > now) break;
    due.push_back(by_serial_.at(serial));
  }
  return due;
}

void Throttles::wake(Timestamp now, const std::function<void(Strand&, Lane)>& woken) {
  now_ = now;
  for (Bucket* bucket : due_buckets(now)) {
    if (bucket->limit && bucket->wake_for == For::token) {
      bucket->tokens->allow_lateness(bucket->wake_at, now);
    }
    disarm(*bucket);
    late_.push_back(bucket);
    // From the queue behind the one that was served last, once round.
    std::vector<LineKey> turns;
    for (const auto& [key, line] : bucket->lines) turns.push_back(key);
    const LineKey last_of_queue{bucket->last_served, Lane::retry};
    std::rotate(turns.begin(), std::ranges::upper_bound(turns, last_of_queue), turns.end());
    for (const LineKey& key : turns) wake_line(*bucket, key, now, woken);
  }
}

void Throttles::wake_lines_of(QueueNumber queue, Timestamp now,
                              const std::function<void(Strand&, Lane)>& woken) {
  now_ = now;
  for (Bucket* bucket : due_buckets(now)) {
    for (const Lane lane : {Lane::fresh, Lane::retry})
      wake_line(*bucket, {queue, lane}, now, woken);
  }
}

void Throttles::pass_on(const Strand& strand, Lane lane, Timestamp now,
                        const std::function<void(Strand&, Lane)>& woken) {
  if (!strand.throttled) return;
  now_ = now;
  const LineKey key = line_key(strand, lane);
  for (Bucket* bucket : strand.throttled->set->buckets) wake_line(*bucket, key, now, woken);
}

bool Throttles::may_wake(const Bucket& bucket, const Line& line, Timestamp now) {
  if (line.waiting.empty()) return false;
  return !bucket.limit || (line.woken == 0 && bucket.tokens->whole_tokens(now) > 0);
}

void Throttles::wake_line(Bucket& bucket, const LineKey& key, Timestamp now,
                          const std::function<void(Strand&, Lane)>& woken) {
  for (std::size_t i = 0; i < kWokenMax; ++i) {
    // Looked up each time: one that has no use for the token leaves, and the line may go with it.
    const auto found = bucket.lines.find(key);
    if (found == bucket.lines.end()) return;
    Line& line = found->second;
    if (!may_wake(bucket, line, now)) return;
    Strand& strand = *line.waiting.begin()->strand;
    line.waiting.erase(line.waiting.begin());
    --bucket.waiting;
    ThrottledStrand::Wait& wait = wait_of(strand, key.second);
    wait.woken = true;
    ++line.woken;
    // Whoever comes from now on is behind it, so that all who wait come up.
    if (is_before(line.now, wait.finish)) line.now = wait.finish;
    woken(strand, key.second);
  }
}

void Throttles::settle(Timestamp now) {
  for (Bucket* bucket : std::exchange(late_, {})) {
    if (bucket->limit) bucket->tokens->settle(now);
    if (bucket->waiting == 0) continue;
    const bool more = std::ranges::any_of(
        bucket->lines, [&](const auto& entry) { return may_wake(*bucket, entry.second, now); });
    if (more) {
      arm(*bucket, now, For::look);
    } else {
      arm_for_next_token(*bucket, now);
    }
  }
}

}  // namespace reprise
