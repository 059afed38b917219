#include "hooks/call_line.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace reprise::hooks {
namespace {

std::size_t index(HookKind hook) { return static_cast<std::size_t>(hook); }

// About what it takes on its way to the host.
std::size_t bytes_to_send(const PendingCall& call) {
  const HookMessage& message = call.message;
  std::size_t bytes = message.id.size() + message.error.size() + message.error_type.size();
  if (!message.job) return bytes;
  for (const auto& [name, value] : message.job->headers) bytes += name.size() + value.size();
  if (call.with_payload) bytes += message.job->payload.size();
  return bytes;
}

}  // namespace

bool mentions_payload(std::string_view source) {
  constexpr std::string_view kWord = "payload";
  constexpr std::string_view kSizeSuffix = "_size";
  for (std::size_t at = source.find(kWord); at != source.npos; at = source.find(kWord, at)) {
    at += kWord.size();
    if (!source.substr(at).starts_with(kSizeSuffix)) return true;
  }
  return false;
}

ScriptsPtr make_scripts(QueueName queue, std::array<std::string, kHookKindCount> sources,
                        HookLimits limits) {
  auto scripts = std::make_shared<Scripts>();
  scripts->queue = std::move(queue);
  scripts->limits = limits;
  for (std::size_t i = 0; i < kHookKindCount; ++i) {
    scripts->read_payloads[i] = mentions_payload(sources[i]);
  }
  scripts->sources = std::move(sources);
  return scripts;
}

bool CallLine::empty() const {
  return std::ranges::all_of(waiting_, [](const Waiting& calls) { return calls.empty(); });
}

void CallLine::add(PendingCall call) {
  call.turn = next_turn_++;
  waiting_[index(call.hook)].push_back(std::move(call));
}

void CallLine::put_back(PendingCall call) {
  Waiting& calls = waiting_[index(call.hook)];
  const auto place = std::ranges::lower_bound(calls, call.turn, {}, &PendingCall::turn);
  calls.insert(place, std::move(call));
}

const CallLine::Waiting& CallLine::queue_of_next() const {
  const Waiting* next = nullptr;
  for (const Waiting& calls : waiting_) {
    if (calls.empty()) continue;
    if (next == nullptr || calls.front().turn < next->front().turn) next = &calls;
  }
  REPRISE_CHECK(next != nullptr);
  return *next;
}

PendingCall CallLine::take_next() {
  Waiting& calls = waiting_[index(queue_of_next().front().hook)];
  PendingCall call = std::move(calls.front());
  calls.pop_front();
  return call;
}

std::vector<PendingCall> CallLine::take_batch() {
  Waiting& calls = waiting_[index(queue_of_next().front().hook)];
  const ScriptsPtr scripts = calls.front().scripts;
  const bool with_payload = calls.front().with_payload;
  std::vector<PendingCall> batch;
  std::size_t bytes = 0;
  while (!calls.empty() && batch.size() < kBatchCalls) {
    PendingCall& call = calls.front();
    if (call.scripts != scripts || call.with_payload != with_payload || call.fault) break;
    bytes += bytes_to_send(call);
    if (!batch.empty() && bytes > kBatchBytes) break;
    batch.push_back(std::move(call));
    calls.pop_front();
  }
  return batch;
}

void CallLine::drop(HookKind hook) { waiting_[index(hook)].clear(); }

std::vector<PendingCall> CallLine::take_all_of(const Scripts& scripts) {
  std::vector<PendingCall> all;
  for (std::size_t i = 0; i < kHookKindCount; ++i) {
    std::ranges::move(take_all_of(scripts, static_cast<HookKind>(i)), std::back_inserter(all));
  }
  return all;
}

std::vector<PendingCall> CallLine::take_all_of(const Scripts& scripts, HookKind hook) {
  Waiting& calls = waiting_[index(hook)];
  const auto others = std::stable_partition(
      calls.begin(), calls.end(),
      [&](const PendingCall& call) { return call.scripts.get() == &scripts; });
  std::vector<PendingCall> taken(std::move_iterator(calls.begin()), std::move_iterator(others));
  calls.erase(calls.begin(), others);
  return taken;
}

}  // namespace reprise::hooks
