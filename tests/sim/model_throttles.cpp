// Throttles: how many tokens there are. Counted as they are stored (model/throttle.h).
#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/model.h"
#include "sim/violation.h"

namespace reprise::sim {
namespace {

using namespace std::chrono_literals;

// What a server was late itself it may make up for.
constexpr Duration kLatenessMax = 20ms;

std::uint64_t token_of(const Throttle& throttle) {
  return static_cast<std::uint64_t>(throttle.rate.per.count());
}

std::uint64_t full(const Throttle& throttle) { return token_of(throttle) * throttle.burst; }

std::uint64_t parts_in(const Throttle& throttle, Duration time) {
  return throttle.rate.count * static_cast<std::uint64_t>(std::max(time, Duration::zero()).count());
}

}  // namespace

Model::Level Model::level_of(const Bucket& bucket, Timestamp now) {
  const std::uint64_t most = full(bucket.throttle);
  const std::uint64_t more = parts_in(bucket.throttle, now - bucket.at);
  return {std::min(bucket.least + more, most), std::min(bucket.most + more, most + bucket.late)};
}

void Model::set_throttle(Throttle throttle, Timestamp now) {
  throttle.updated_at = now;
  const auto found = throttles_.find({throttle.ns, throttle.key});
  Bucket changed{.throttle = throttle, .least = full(throttle), .most = full(throttle), .at = now};
  if (found != throttles_.end()) {
    // The tokens there are, rounded one way or the other, as far as they fit.
    const auto converted = [&](std::uint64_t parts) {
      return static_cast<double>(parts) / static_cast<double>(token_of(found->second.throttle)) *
             static_cast<double>(token_of(throttle));
    };
    const auto [least, most] = level_of(found->second, now);
    if (converted(least) < static_cast<double>(full(throttle))) {
      changed.least = static_cast<std::uint64_t>(std::max(converted(least) - 1, 0.0));
      changed.most = std::min(static_cast<std::uint64_t>(converted(most) + 1), full(throttle));
    }
  }
  throttles_[{throttle.ns, throttle.key}] = changed;
}

bool Model::unset_throttle(const std::string& ns, const std::string& key) {
  return throttles_.erase({ns, key}) > 0;
}

// Those that are set.
std::vector<const Model::Bucket*> Model::buckets_of(const Queue& queue,
                                                    const std::set<std::string>& keys) const {
  std::vector<const Bucket*> buckets;
  for (const std::string& key : keys) {
    const auto found = throttles_.find({queue.record.name.ns, key});
    if (found != throttles_.end()) buckets.push_back(&found->second);
  }
  return buckets;
}

void Model::take_tokens(const Queue& queue, const Job& job, Timestamp now) {
  const auto& named = job.record.scheduling.throttle_keys;
  for (const std::string& key : std::set<std::string>(named.begin(), named.end())) {
    const auto found = throttles_.find({queue.record.name.ns, key});
    if (found == throttles_.end()) continue;
    Bucket& bucket = found->second;
    const std::uint64_t token = token_of(bucket.throttle);
    const auto [least, most] = level_of(bucket, now);
    // It has been given out, so there was one.
    bucket.least = std::max(least, token) - token;
    bucket.most = std::max(most, token) - token;
    bucket.at = std::max(bucket.at, now);
    if (believes_ == Sabotage::take_one_token) return;
  }
}

void Model::allow_lateness(Timestamp now) {
  for (auto& [name, bucket] : throttles_) {
    // And by less than the microsecond in which the token came.
    bucket.late = parts_in(bucket.throttle, std::min(now - bucket.at, kLatenessMax)) +
                  bucket.throttle.rate.count - 1;
  }
}

void Model::settle_lateness(Timestamp /*now*/) {
  for (auto& [name, bucket] : throttles_) {
    bucket.late = 0;
    bucket.most = std::min(bucket.most, full(bucket.throttle));
  }
}

// When there is a token of each.
Timestamp Model::ready_at(const Queue& queue, const std::set<std::string>& keys,
                          Timestamp now) const {
  Timestamp ready = now;
  for (const Bucket* bucket : buckets_of(queue, keys)) {
    const std::uint64_t token = token_of(bucket->throttle);
    const std::uint64_t least = level_of(*bucket, now).first;
    if (least >= token) continue;
    const std::uint64_t speed = bucket->throttle.rate.count;
    const std::uint64_t wait = (token - least + speed - 1) / speed;
    ready = std::max(ready, now + Duration(static_cast<std::int64_t>(wait)));
  }
  return ready;
}

Timestamp Model::next_token_that_is_awaited(Timestamp now) const {
  Timestamp next = kNever;
  for (const auto& [name, queue] : queues_) {
    if (room(queue) == 0) continue;
    for (const WaitingClaim& claim : waiting_) {
      if (claim.queue != queue.record.number) continue;
      for (const Lane lane : {Lane::fresh, Lane::retry}) {
        const LaneChoice unwanted = lane == Lane::fresh ? LaneChoice::retry : LaneChoice::fresh;
        if (claim.command.lane == unwanted) continue;
        if (lane == Lane::retry && !has_room_for_retry(queue)) continue;
        for (const auto& [strand, seq] : heads(queue, lane)) {
          if (strand.second.empty() || !key_has_room(queue, strand.first)) continue;
          next = std::min(next, ready_at(queue, strand.second, now));
        }
      }
    }
  }
  return next;
}

void Model::see_throttles(const std::vector<ThrottleStats>& throttles, Timestamp now) {
  require(throttles.size() == throttles_.size(), "there are other throttles than there should be");
  for (const ThrottleStats& seen : throttles) {
    const auto found = throttles_.find({seen.throttle.ns, seen.throttle.key});
    require(found != throttles_.end() && found->second.throttle == seen.throttle,
            "throttle '" + seen.throttle.key + "' is not as it was set");
    Bucket& bucket = found->second;
    const auto parts = static_cast<std::uint64_t>(
        std::llround(seen.tokens * static_cast<double>(token_of(bucket.throttle))));
    const auto [least, most] = level_of(bucket, now);
    require(least <= parts && parts <= most,
            "throttle '" + seen.throttle.key + "' has " + std::to_string(parts) +
                " parts of a token and should have " + std::to_string(least) + " to " +
                std::to_string(most));
    if (least == most) continue;
    bucket.least = bucket.most = parts;
    bucket.at = std::max(bucket.at, now);
  }
}

}  // namespace reprise::sim
