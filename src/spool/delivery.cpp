#include "spool/delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace reprise::spool {
namespace {

constexpr std::array<Duration, 3> kWaits{std::chrono::seconds(1), std::chrono::seconds(2),
                                         std::chrono::seconds(4)};

std::string body_of(const std::vector<const QueuedEvent*>& group) {
  std::size_t bytes = kBatchHead.size() + kBatchTail.size() + group.size();
  for (const QueuedEvent* queued : group) bytes += queued->event.json.size();
  std::string body;
  body.reserve(bytes);
  body += kBatchHead;
  for (const QueuedEvent* queued : group) {
    if (queued != group.front()) body += ',';
    body += queued->event.json;
  }
  body += kBatchTail;
  return body;
}

// 75 % to 125 % of it, so that many drains do not come back together.
Duration with_jitter(Duration wait, Random& random) {
  constexpr std::uint64_t kSteps = 1 << 16;
  const auto half_a_wait = wait.count() / 2;
  const auto step = static_cast<Duration::rep>(random.next_u64() % (kSteps + 1));
  return wait - Duration(half_a_wait / 2) +
         Duration(half_a_wait * step / static_cast<Duration::rep>(kSteps));
}

}  // namespace

Delivered Delivery::deliver(const std::vector<QueuedEvent>& batch) {
  Group all;
  for (const QueuedEvent& queued : batch) all.push_back(&queued);
  to_send_.assign(1, std::move(all));
  settled_ = 0;
  std::optional<Duration> patience;
  while (!to_send_.empty()) {
    const Group group = std::move(to_send_.back());
    to_send_.pop_back();
    const Exchange got = exchange(group);
    const Judgement& judgement = got.judgement;
    const bool some_settled = settled_ > 0;
    if (got.interrupted) return {.end = Delivered::End::interrupted, .some_settled = some_settled};
    if (judgement.meaning == Meaning::refused) {
      return {Delivered::End::refused, some_settled, judgement.reason, {}};
    }
    if (judgement.meaning == Meaning::trouble) {
      const bool too_long = judgement.patience > kMaxPatience;
      return {too_long ? Delivered::End::too_long_wait : Delivered::End::failed, some_settled,
              judgement.reason, judgement.patience};
    }
    patience = judgement.patience;
    const bool settled = judgement.meaning == Meaning::bad_request
                             ? isolate(group, got)
                             : settle(group, judgement.verdicts, got.sent_at);
    if (!settled) return {.end = Delivered::End::interrupted, .some_settled = settled_ > 0};
  }
  if (settled_ > 0) return {.some_settled = true};
  return {patience > kMaxPatience ? Delivered::End::too_long_wait : Delivered::End::failed, false,
          fmt::format("the reply of {} settles no event", parts_.endpoint.url()), patience};
}

Delivery::Exchange Delivery::exchange(const Group& group) {
  const std::string body = body_of(group);
  Exchange exchange;
  for (std::size_t tries = 0;; ++tries) {
    if (parts_.pauses.interrupted()) break;
    exchange.sent_at = parts_.clock.now();
    exchange.answer = parts_.endpoint.send(body);
    parts_.files.reached("answered");
    if (exchange.answer.status == 0 && parts_.pauses.interrupted()) break;
    exchange.judgement = judge(exchange.answer, parts_.endpoint.url(), group.size());
    if (exchange.judgement.meaning != Meaning::trouble) return exchange;
    const auto& patience = exchange.judgement.patience;
    if (tries == kWaits.size() || patience > kMaxPatience) return exchange;
    if (!wait_to_try_again(tries, patience)) break;
  }
  exchange.interrupted = true;
  return exchange;
}

bool Delivery::wait_to_try_again(std::size_t tries, std::optional<Duration> patience) {
  const Duration wait = std::min(with_jitter(kWaits[tries], parts_.random), kMaxPatience);
  return parts_.pauses.wait(std::max(wait, patience.value_or(Duration::zero())));
}

bool Delivery::settle(const Group& group, const std::vector<EventVerdict>& verdicts,
                      Timestamp sent_at) {
  settled_ += static_cast<std::size_t>(std::ranges::count_if(
      verdicts, [](const EventVerdict& verdict) { return verdict.verdict != Verdict::none; }));
  return settler_.settle(group, verdicts, sent_at);
}

bool Delivery::isolate(const Group& group, const Exchange& refusal) {
  auto offenders = named_offenders(refusal.answer.body, group.size());
  if (offenders.empty() && group.size() == 1) {
    offenders.push_back({.index = 0, .error = refusal_text(refusal.answer.body)});
  }
  if (!offenders.empty()) {
    for (Offender& offender : offenders) {
      if (offender.error.empty()) offender.error = fmt::format("HTTP {}", refusal.answer.status);
    }
    return reject_offenders(group, offenders, refusal.sent_at);
  }
  const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
  to_send_.emplace_back(middle, group.end());
  to_send_.emplace_back(group.begin(), middle);
  return true;
}

bool Delivery::reject_offenders(const Group& group, const std::vector<Offender>& offenders,
                                Timestamp sent_at) {
  std::vector<EventVerdict> verdicts(group.size());
  for (const Offender& offender : offenders) {
    verdicts[offender.index] = {.verdict = Verdict::rejected, .error = offender.error};
  }
  if (!settle(group, verdicts, sent_at)) return false;
  Group others;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (verdicts[i].verdict == Verdict::none) others.push_back(group[i]);
  }
  if (!others.empty()) to_send_.push_back(std::move(others));
  return true;
}

}  // namespace reprise::spool
