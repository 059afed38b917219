#include "engine/pending_jobs.h"

#include <absl/hash/hash.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/sparse_table.h"

namespace reprise {
namespace {

constexpr std::array kLanes = {Lane::fresh, Lane::retry};

const void* set_of(const Strand& strand) {
  return strand.throttled ? strand.throttled->set : nullptr;
}

bool is_woken(const Strand& strand, Lane lane) {
  return strand.throttled && strand.throttled->waits[static_cast<std::size_t>(lane)].woken;
}

}  // namespace

Strand::Strand(FairKey& its_key) : key(its_key) {}
Strand::~Strand() = default;

StrandRef::~StrandRef() {
  if (strand_ != nullptr && --strand_->uses == 0) strand_->key.jobs.forget(*strand_);
}

Strand* FairKey::find_strand(const void* throttle_set) {
  if (first.uses > 0 && set_of(first) == throttle_set) return &first;
  if (!more) return nullptr;
  const auto found = more->others.find(throttle_set);
  return found == more->others.end() ? nullptr : found->second.get();
}

std::size_t PendingJobs::KeyHash::operator()(std::string_view name) const {
  return absl::HashOf(name);
}
std::size_t PendingJobs::KeyHash::operator()(const std::unique_ptr<FairKey>& key) const {
  return absl::HashOf(std::string_view(key->name));
}

PendingJobs::PendingJobs(QueueNumber queue, std::string ns, Throttles& throttles)
    : queue_(queue), ns_(std::move(ns)), throttles_(throttles) {}

// The queue goes with its jobs. Those who refer to strands have gone before.
PendingJobs::~PendingJobs() {
  closing_ = true;
  for (const auto& key : keys_) {
    key->visit_strands([&](Strand& strand) {
      if (!strand.throttled) return;
      for (const Lane lane : kLanes) throttles_.leave(strand, lane);
      throttles_.give_back(*strand.throttled->set);
    });
  }
}

// --- Strands ------------------------------------------------------------------------------------

FairKey* PendingJobs::find_key(std::string_view name) {
  if (name == kDefaultFairnessKey) return default_key_;
  const auto found = keys_.find(name);
  return found == keys_.end() ? nullptr : found->get();
}

FairKey& PendingJobs::key_of(const std::string& name) {
  if (FairKey* known = find_key(name)) return *known;
  FairKey& made = **keys_.insert(std::make_unique<FairKey>(*this, name, next_serial_++)).first;
  if (name == kDefaultFairnessKey) default_key_ = &made;
  if (const auto place = places_.find(name); place != places_.end()) {
    made.starts = place->second;
    places_.erase(place);
  }
  return made;
}

StrandRef PendingJobs::strand(const Scheduling& scheduling) {
  const std::size_t known_keys = keys_.size();
  FairKey& key = key_of(scheduling.fairness_key);
  // Also of a job that comes back from among the dead, or from another queue.
  if (keys_.size() > known_keys) key.weight = scheduling.weight;
  ThrottleSet* set = scheduling.throttle_keys.empty()
                         ? nullptr
                         : throttles_.acquire(ns_, scheduling.throttle_keys);
  if (Strand* known = key.find_strand(set)) {
    if (set != nullptr) throttles_.give_back(*set);
    return StrandRef(*known);
  }
  return StrandRef(make_strand(key, set));
}

Strand* PendingJobs::find(const Scheduling& scheduling) {
  FairKey* key = find_key(scheduling.fairness_key);
  if (key == nullptr) return nullptr;
  if (scheduling.throttle_keys.empty()) return key->find_strand(nullptr);
  const ThrottleSet* set = throttles_.find_set(ns_, scheduling.throttle_keys);
  return set == nullptr ? nullptr : key->find_strand(set);
}

Strand& PendingJobs::make_strand(FairKey& key, ThrottleSet* set) {
  Strand* strand = &key.first;
  if (key.first.uses > 0) {
    if (!key.more) {
      key.more = std::make_unique<Strands>();
      for (const Lane lane : kLanes) {
        relist(key.first, lane);
        if (is_woken(key.first, lane)) {
          key.more->woken[static_cast<std::size_t>(lane)].insert(&key.first);
        }
      }
    }
    auto& other = key.more->others[set];
    other = std::make_unique<Strand>(key);
    strand = other.get();
  }
  if (set != nullptr) {
    strand->throttled = std::make_unique<ThrottledStrand>();
    strand->throttled->set = set;
  }
  return *strand;
}

void PendingJobs::forget(Strand& strand) {
  if (closing_) return;
  FairKey& key = strand.key;
  if (key.more) {
    for (auto& woken : key.more->woken) woken.erase(&strand);
  }
  if (strand.throttled) {
    ThrottleSet* set = strand.throttled->set;
    if (&strand != &key.first) {
      key.more->others.erase(set);
    } else {
      strand.throttled.reset();
    }
    throttles_.give_back(*set);
  } else if (&strand != &key.first) {
    key.more->others.erase(nullptr);
  }
  if (key.more && key.more->others.empty()) key.more.reset();
  if (key.first.uses > 0 || key.more) return;
  REPRISE_CHECK(!fresh_order_.contains(key) && !retry_order_.contains(key));
  if (key.at_limit) at_limit_.erase(&key);
  if (restored_weights_) restored_weights_->erase(&key);
  if (&key == default_key_) default_key_ = nullptr;
  remember_place(key);
  keys_.erase(std::string_view(key.name));
  if (keys_.empty()) {
    places_ = {};
    next_serial_ = 0;
  }
  shrink_if_sparse(keys_);
}

void PendingJobs::remember_place(const FairKey& key) {
  const auto is_over = [&](const std::array<FairTag, 2>& starts) {
    return !fresh_order_.is_ahead(starts[0]) && !retry_order_.is_ahead(starts[1]);
  };
  if (is_over(key.starts)) return;
  if (places_.size() >= kPlacesMax) {
    absl::erase_if(places_, [&](const auto& place) { return is_over(place.second); });
    // Rather than look through all of them again and again.
    if (places_.size() > kPlacesMax / 2) places_.clear();
  }
  places_.emplace(key.name, key.starts);
}

void PendingJobs::set_weight(FairKey& key, std::uint32_t weight) {
  if (key.weight == weight) return;
  const bool in_fresh = fresh_order_.suspend(key, weight);
  const bool in_retry = retry_order_.suspend(key, weight);
  key.weight = weight;
  fresh_order_.resume(key, in_fresh);
  retry_order_.resume(key, in_retry);
}

void PendingJobs::restore_weight(FairKey& key, std::uint32_t weight, Seq seq) {
  if (!restored_weights_) {
    restored_weights_ = std::make_unique<absl::flat_hash_map<const FairKey*, Seq>>();
  }
  Seq& latest = (*restored_weights_)[&key];
  if (seq < latest) return;
  latest = seq;
  set_weight(key, weight);
}

// --- Jobs that come and go ----------------------------------------------------------------------

bool PendingJobs::is_plain(const Strand& strand) const {
  return &strand.key == default_key_ && !strand.throttled;
}

void PendingJobs::insert_fresh(Strand& strand, Priority priority, Seq seq) {
  unlist(strand, Lane::fresh);
  const bool inserted = strand.fresh.insert(priority, seq);
  if (!is_plain(strand)) keyed_fresh_.insert(seq);
  gained_fresh(strand, inserted ? 1 : 0);
}

void PendingJobs::insert_fresh(Strand& strand, Priority priority, std::span<const Seq> seqs) {
  unlist(strand, Lane::fresh);
  const std::uint64_t inserted = strand.fresh.insert_all(priority, seqs);
  if (!is_plain(strand)) keyed_fresh_.insert_all(seqs);
  gained_fresh(strand, inserted);
}

void PendingJobs::gained_fresh(Strand& strand, std::uint64_t jobs) {
  strand.uses += static_cast<std::uint32_t>(jobs);
  fresh_size_ += jobs;
  count_pending(strand.key, static_cast<std::int64_t>(jobs));
  relist(strand, Lane::fresh);
  refresh(strand.key, Lane::fresh);
}

template <class Erase>
bool PendingJobs::erase_fresh_if(Strand& strand, Seq seq, const Erase& erase) {
  const StrandRef kept(strand);
  unlist(strand, Lane::fresh);
  const bool erased = erase(strand.fresh);
  if (erased) {
    --strand.uses;
    --fresh_size_;
    if (!is_plain(strand)) keyed_fresh_.erase(seq);
    count_pending(strand.key, -1);
  }
  relist(strand, Lane::fresh);
  lost_job(strand, Lane::fresh);
  return erased;
}

bool PendingJobs::erase_fresh(Strand& strand, Priority priority, Seq seq) {
  return erase_fresh_if(strand, seq, [&](JobLine& line) { return line.erase(priority, seq); });
}

void PendingJobs::insert_retry(const StrandRef& strand, TimedSeq job, std::uint32_t failures) {
  if (!retries_.insert(job, failures, strand)) return;
  unlist(*strand, Lane::retry);
  if (!strand->retry) strand->retry = std::make_unique<TimedSeqs>();
  strand->retry->insert(job);
  count_pending(strand->key, 1);
  relist(*strand, Lane::retry);
  refresh(strand->key, Lane::retry);
}

bool PendingJobs::erase_retry(TimedSeq job) {
  const StrandRef strand = retries_.erase(job);
  if (!strand) return false;
  unlist(*strand, Lane::retry);
  strand->retry->erase(job);
  if (strand->retry->empty()) strand->retry.reset();
  count_pending(strand->key, -1);
  relist(*strand, Lane::retry);
  lost_job(*strand, Lane::retry);
  return true;
}

bool PendingJobs::erase(Seq seq) {
  if (const auto at = retries_.time_of(seq)) return erase_retry({*at, seq});
  std::vector<Strand*> strands;
  for (const auto& key : keys_) {
    key->visit_strands([&](Strand& strand) { strands.push_back(&strand); });
  }
  const auto holds = [&](Strand* strand) {
    return strand->uses > 0 &&
           erase_fresh_if(*strand, seq, [&](JobLine& line) { return line.erase(seq); });
  };
  return std::ranges::any_of(strands, holds);
}

void PendingJobs::lost_job(Strand& strand, Lane lane) {
  if (!strand.has_jobs(lane)) leave_throttle(strand, lane);
  refresh(strand.key, lane);
}

void PendingJobs::leave_throttle(Strand& strand, Lane lane) {
  if (!strand.throttled) return;
  if (strand.key.more) strand.key.more->woken[static_cast<std::size_t>(lane)].erase(&strand);
  throttles_.leave(strand, lane);
}

void PendingJobs::count_pending(FairKey& key, std::int64_t more) {
  key.pending = static_cast<std::uint32_t>(key.pending + more);
  ranking_.update(key);
}

// --- Who is next --------------------------------------------------------------------------------

std::optional<Strands::Head> PendingJobs::head_of(Strand& strand, Lane lane) {
  if (!strand.has_jobs(lane) || Throttles::is_parked(strand, lane)) return std::nullopt;
  if (lane == Lane::fresh) {
    const auto [priority, seq] = strand.fresh.front();
    return Strands::Head{priority, seq, &strand};
  }
  const TimedSeq first = *strand.retry->begin();
  return Strands::Head{first.at.time_since_epoch().count(), first.seq, &strand};
}

void PendingJobs::unlist(Strand& strand, Lane lane) {
  if (!strand.key.more) return;
  if (const auto head = head_of(strand, lane)) {
    strand.key.more->heads[static_cast<std::size_t>(lane)].erase(*head);
  }
}

void PendingJobs::relist(Strand& strand, Lane lane) {
  if (!strand.key.more) return;
  if (const auto head = head_of(strand, lane)) {
    strand.key.more->heads[static_cast<std::size_t>(lane)].insert(*head);
  }
}

Strand* PendingJobs::ready_strand(FairKey& key, Lane lane) const {
  if (key.more) {
    const auto& heads = key.more->heads[static_cast<std::size_t>(lane)];
    return heads.empty() ? nullptr : heads.begin()->strand;
  }
  return head_of(key.first, lane) ? &key.first : nullptr;
}

void PendingJobs::refresh(FairKey& key, Lane lane) {
  const bool ready = !key.at_limit && ready_strand(key, lane) != nullptr;
  if (ready == order(lane).contains(key)) return;
  if (ready) {
    order(lane).add(key);
  } else {
    order(lane).remove(key);
  }
}

std::optional<PendingJobs::Next> PendingJobs::next(Lane lane, std::optional<std::uint64_t> per_key,
                                                   StepBudget& budget, Timestamp now) {
  for (; !budget.looked_enough(); budget.look()) {
    FairKey* key = order(lane).next();
    if (key == nullptr) return std::nullopt;
    Strand& strand = *ready_strand(*key, lane);
    if (per_key && key->active >= *per_key) {
      set_aside(*key);
      continue;
    }
    if (waits_for_token(strand, lane, now)) continue;
    if (lane == Lane::fresh) {
      const auto [priority, seq] = strand.fresh.front();
      return Next{&strand, lane, priority, {Timestamp{}, seq}};
    }
    return Next{&strand, lane, Priority{}, *strand.retry->begin()};
  }
  return std::nullopt;
}

bool PendingJobs::waits_for_token(Strand& strand, Lane lane, Timestamp now) {
  Throttles::Bucket* bucket = throttles_.lacking(strand, lane, now);
  if (bucket == nullptr) return false;
  unlist(strand, lane);
  leave_throttle(strand, lane);
  throttles_.park(strand, lane, *bucket, now);
  refresh(strand.key, lane);
  return true;
}

// The key has as many leases as it may have. Whoever waits for the same token as one of its strands
// need not wait for those leases too.
void PendingJobs::set_aside(FairKey& key) {
  key.at_limit = true;
  at_limit_.insert(&key);
  for (const Lane lane : kLanes) {
    if (key.more) {
      auto& woken = key.more->woken[static_cast<std::size_t>(lane)];
      for (Strand* strand : std::exchange(woken, {})) {
        if (!Throttles::is_parked(*strand, lane)) throttles_.leave(*strand, lane);
      }
    } else if (!Throttles::is_parked(key.first, lane)) {
      throttles_.leave(key.first, lane);
    }
    refresh(key, lane);
  }
}

// The key stays in its order, to be charged there, until it is known what became of the job.
StrandRef PendingJobs::take(const Next& next) {
  Strand& strand = *next.strand;
  StrandRef kept(strand);
  unlist(strand, next.lane);
  if (next.lane == Lane::fresh) {
    strand.fresh.erase(next.priority, next.job.seq);
    --strand.uses;
    --fresh_size_;
    if (!is_plain(strand)) keyed_fresh_.erase(next.job.seq);
  } else {
    retries_.erase(next.job);
    strand.retry->erase(next.job);
    if (strand.retry->empty()) strand.retry.reset();
  }
  count_pending(strand.key, -1);
  relist(strand, next.lane);
  return kept;
}

void PendingJobs::delivered(const Next& next, Timestamp now) {
  FairKey& key = next.strand->key;
  order(next.lane).charge(key);
  throttles_.take(*next.strand, next.lane, now);
  if (key.more) {
    // The turn was this strand's. Another that was woken must not keep its token from other keys
    // until its own turn comes, which may be behind a long backlog.
    for (Strand* strand : std::exchange(key.more->woken[static_cast<std::size_t>(next.lane)], {})) {
      if (strand != next.strand) throttles_.leave(*strand, next.lane);
    }
  }
  deliveries_.add(key.name, now);
  lost_job(*next.strand, next.lane);
  // It is in line for the next token from now on, not only when somebody claims: those in line
  // would be given that without it.
  if (next.strand->has_jobs(next.lane)) waits_for_token(*next.strand, next.lane, now);
  throttles_.pass_on(*next.strand, next.lane, now,
                     [this](Strand& strand, Lane lane) { look_again(strand, lane); });
}

void PendingJobs::passed_over(const Next& next) { lost_job(*next.strand, next.lane); }

// --- Leases -------------------------------------------------------------------------------------

void PendingJobs::lease_began(Strand& strand) {
  ++strand.key.active;
  ++active_;
}

bool PendingJobs::lease_ended(Strand& strand, std::optional<std::uint64_t> per_key) {
  FairKey& key = strand.key;
  --key.active;
  --active_;
  if (!key.at_limit || (per_key && key.active >= *per_key)) return false;
  key.at_limit = false;
  at_limit_.erase(&key);
  for (const Lane lane : kLanes) refresh(key, lane);
  return true;
}

void PendingJobs::look_at_limits_again() {
  for (FairKey* key : std::exchange(at_limit_, {})) {
    key->at_limit = false;
    for (const Lane lane : kLanes) refresh(*key, lane);
  }
}

void PendingJobs::look_again(Strand& strand, Lane lane) {
  if (strand.key.at_limit) {
    throttles_.leave(strand, lane);  // as set_aside() does
  } else if (strand.key.more) {
    strand.key.more->woken[static_cast<std::size_t>(lane)].insert(&strand);
  }
  relist(strand, lane);
  refresh(strand.key, lane);
}

// --- What can be seen ---------------------------------------------------------------------------

std::optional<Seq> PendingJobs::oldest_fresh() const {
  std::optional<Seq> oldest;
  if (!keyed_fresh_.empty()) oldest = keyed_fresh_.first();
  if (default_key_ != nullptr) {
    const Strand* plain = default_key_->find_strand(nullptr);
    if (plain != nullptr && !plain->fresh.empty()) {
      oldest = std::min(oldest.value_or(plain->fresh.oldest()), plain->fresh.oldest());
    }
  }
  return oldest;
}

std::optional<TimedSeq> PendingJobs::oldest_retry() const {
  if (retries_.empty()) return std::nullopt;
  return retries_.front();
}

// Those with the most jobs waiting, and all that were served lately; keys with one job fill up what
// is left. Nothing of them is copied before the top ones are known.
std::vector<PendingJobs::Candidate> PendingJobs::top_keys(const DeliveryWindow::Sum& window) {
  std::vector<Candidate> found;
  const auto add = [&](std::string_view name, const FairKey* key, std::uint64_t delivered) {
    found.push_back({name, key, delivered, delivered + (key == nullptr ? 0 : key->pending)});
  };
  for (const FairKey* key : ranking_.top(kTopKeys)) {
    if (!window.by_key.contains(key->name)) add(key->name, key, 0);
  }
  for (const auto& [name, count] : window.by_key) add(name, find_key(name), count);
  for (auto key = keys_.begin(); key != keys_.end() && found.size() < kTopKeys; ++key) {
    const bool ranked = (*key)->rank_size > 1;
    if (!ranked && !window.by_key.contains((*key)->name)) add((*key)->name, key->get(), 0);
  }
  const auto top = found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), kTopKeys));
  std::ranges::partial_sort(found, top, [](const Candidate& a, const Candidate& b) {
    return a.jobs != b.jobs ? a.jobs > b.jobs : a.name < b.name;
  });
  found.erase(top, found.end());
  return found;
}

std::uint64_t PendingJobs::count_below(Priority priority) const {
  std::uint64_t count = 0;
  for (const auto& key : keys_) {
    key->visit_strands([&](const Strand& strand) { count += strand.fresh.count_below(priority); });
  }
  return count;
}

KeysStats PendingJobs::stats(Timestamp now) {
  const DeliveryWindow::Sum window = deliveries_.sum(now);
  KeysStats stats;
  stats.active = keys_.size();
  for (const Candidate& candidate : top_keys(window)) {
    KeyStats& entry = stats.top.emplace_back();
    entry.key = candidate.name;
    entry.delivered = candidate.delivered;
    if (candidate.key == nullptr) continue;
    entry.pending = candidate.key->pending;
    entry.active = candidate.key->active;
    entry.weight = candidate.key->weight;
  }
  stats.other.pending = fresh_size() + retry_size();
  stats.other.delivered = window.delivered;
  stats.other.active = active_;
  const auto share = [&](KeyStats& entry) {
    if (window.delivered == 0) return;
    entry.share = static_cast<double>(entry.delivered) / static_cast<double>(window.delivered);
  };
  for (KeyStats& entry : stats.top) {
    share(entry);
    stats.other.pending -= entry.pending;
    stats.other.active -= entry.active;
    stats.other.delivered -= std::min(stats.other.delivered, entry.delivered);
  }
  share(stats.other);
  return stats;
}

}  // namespace reprise
