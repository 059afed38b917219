#include "webhook/delivery_plan.h"

#include <algorithm>

#include "base/check.h"

namespace reprise::webhook {

Duration RetrySchedule::wait_after(std::uint32_t failures) const {
  Duration wait = first;
  for (std::uint32_t i = 1; i < failures && wait < longest; ++i) wait *= 2;
  return std::min(wait, longest);
}

// With many addresses each has less room, so that all of them together stay bounded.
std::size_t DeliveryPlan::room_per_lane() const {
  const std::size_t share = kHeldTotal / std::max<std::size_t>(lanes_.size(), 1);
  return std::clamp<std::size_t>(share, 1, kHeldPerAddress);
}

bool DeliveryPlan::is_patient(const Entry& entry) const {
  return entry.failures > 0 && schedule_.wait_after(entry.failures) == schedule_.longest;
}

bool DeliveryPlan::offer(const WebhookKey& key, const std::string& url, Found found,
                         Timestamp now) {
  if (holds(key)) return true;
  const auto lane = lanes_.try_emplace(url).first;
  if (lane->second.held() >= room_per_lane()) {
    if (lane->second.patient == 0) {
      note_left_out(lane->second, found == Found::on_a_pass);
      return false;
    }
    give_up_a_place(lane->second);
  }
  const auto at = entries_.emplace(key, Entry{.lane = lane}).first;
  wait_until(now, at);
  if (found == Found::on_a_pass && left_out_ > 0) --left_out_;
  return true;
}

void DeliveryPlan::note_left_out(Lane& lane, bool seen_by_pass) {
  lane.left_some_out = true;
  lane.left_out_in = pass_;
  // A pass comes to all that was left out at the end, and to what was left out before once more.
  seen_by_pass ? ++left_out_by_pass_ : ++left_out_;
}

// To the outbox with the one that would wait longest: a later pass finds it again.
void DeliveryPlan::give_up_a_place(Lane& lane) {
  for (auto at = lane.waiting.rbegin(); at != lane.waiting.rend(); ++at) {
    const auto entry = entries_.find(at->second);
    if (!is_patient(entry->second)) continue;
    stop_waiting(entry);
    entries_.erase(entry);
    note_left_out(lane, false);
    ++left_out_by_pass_;
    return;
  }
}

void DeliveryPlan::wait_until(Timestamp due, Entries::iterator at) {
  Lane& lane = at->second.lane->second;
  at->second.due = due;
  lane.waiting.emplace(due, at->first);
  if (is_patient(at->second)) ++lane.patient;
}

void DeliveryPlan::stop_waiting(Entries::iterator at) {
  Lane& lane = at->second.lane->second;
  lane.waiting.erase({at->second.due, at->first});
  if (is_patient(at->second)) --lane.patient;
}

bool DeliveryPlan::is_too_old(const WebhookKey& key, Timestamp now) const {
  return now - key.died_at >= schedule_.give_up_after;
}

bool DeliveryPlan::is_down(const Lane& lane, Timestamp now) const {
  return lane.failing && now - lane.failing_since >= schedule_.longest;
}

bool DeliveryPlan::may_send(const Lane& lane) const {
  if (lane.waiting.empty() || in_flight_ >= kInFlight) return false;
  return lane.failing ? lane.in_flight == 0 && failing_in_flight_ < kFailingInFlight
                      : lane.in_flight < kPerAddress;
}

std::optional<DeliveryPlan::Delivery> DeliveryPlan::take_due(Timestamp now) {
  // Those that work come first: they are done in no time.
  const auto goes_before = [](const Lane& a, const Lane& b) {
    return std::pair(a.failing, a.turn) < std::pair(b.failing, b.turn);
  };
  auto best = lanes_.end();
  for (auto lane = lanes_.begin(); lane != lanes_.end(); ++lane) {
    if (!may_send(lane->second) || lane->second.waiting.begin()->first > now) continue;
    if (best == lanes_.end() || goes_before(lane->second, best->second)) best = lane;
  }
  if (best == lanes_.end()) return std::nullopt;

  const auto first = entries_.find(best->second.waiting.begin()->second);
  if (!is_too_old(first->first, now) || !is_down(best->second, now)) return begin_request(best);
  Delivery given_up{.key = first->first, .url = best->first, .given_up = true};
  stop_waiting(first);
  erase(first);
  return given_up;
}

DeliveryPlan::Delivery DeliveryPlan::begin_request(Lanes::iterator to) {
  Lane& lane = to->second;
  const auto at = entries_.find(lane.waiting.begin()->second);
  stop_waiting(at);
  at->second.in_flight = true;
  ++lane.in_flight;
  ++in_flight_;
  if (lane.failing) ++failing_in_flight_;
  lane.turn = ++turn_;
  return {.key = at->first, .url = to->first};
}

Timestamp DeliveryPlan::next_due() const {
  Timestamp next = kNever;
  for (const auto& [url, lane] : lanes_) {
    if (may_send(lane)) next = std::min(next, lane.waiting.begin()->first);
  }
  return next;
}

DeliveryPlan::Entries::iterator DeliveryPlan::end_request(const WebhookKey& key) {
  const auto at = entries_.find(key);
  REPRISE_CHECK(at != entries_.end() && at->second.in_flight);
  Lane& lane = at->second.lane->second;
  at->second.in_flight = false;
  --lane.in_flight;
  --in_flight_;
  if (lane.failing) --failing_in_flight_;
  return at;
}

void DeliveryPlan::set_failing(Lane& lane, bool failing) {
  if (lane.failing == failing) return;
  lane.failing = failing;
  failing ? failing_in_flight_ += lane.in_flight : failing_in_flight_ -= lane.in_flight;
}

DeliveryPlan::News DeliveryPlan::delivered(const WebhookKey& key) {
  const auto at = end_request(key);
  Lane& lane = at->second.lane->second;
  const News news = lane.failing ? News::works_again : News::none;
  set_failing(lane, false);
  erase(at);
  return news;
}

DeliveryPlan::Failed DeliveryPlan::failed(const WebhookKey& key, Timestamp now) {
  const auto at = end_request(key);
  Lane& lane = at->second.lane->second;
  Failed result{.news = lane.failing ? News::none : News::began_to_fail};
  if (!lane.failing) lane.failing_since = now;
  set_failing(lane, true);
  if (is_too_old(key, now)) {
    result.given_up = true;
    erase(at);
    return result;
  }
  result.wait = schedule_.wait_after(++at->second.failures);
  wait_until(add_saturating(now, result.wait), at);
  return result;
}

void DeliveryPlan::postpone(const WebhookKey& key, Timestamp until) {
  wait_until(until, end_request(key));
}

void DeliveryPlan::forget(const WebhookKey& key) { erase(end_request(key)); }

// Of an entry that is neither waiting nor in flight.
void DeliveryPlan::erase(Entries::iterator at) {
  const auto lane = at->second.lane;
  entries_.erase(at);
  drop_if_unused(lane);
}

void DeliveryPlan::drop_if_unused(Lanes::iterator at) {
  if (at->second.held() == 0 && !at->second.left_some_out) lanes_.erase(at);
}

bool DeliveryPlan::hungry() const {
  const std::size_t enough = room_per_lane() / 2;
  return std::ranges::any_of(lanes_, [enough](const auto& named) {
    const Lane& lane = named.second;
    return lane.left_some_out && lane.held() - lane.patient <= enough;
  });
}

void DeliveryPlan::begin_pass() {
  ++pass_;
  left_out_by_pass_ = 0;
}

void DeliveryPlan::end_pass() {
  left_out_ = left_out_by_pass_;
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    const auto next = std::next(lane);
    if (lane->second.left_out_in != pass_) lane->second.left_some_out = false;
    drop_if_unused(lane);
    lane = next;
  }
}

}  // namespace reprise::webhook
