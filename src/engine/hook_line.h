// HookLine: one hook of one queue: what it is asked, what waits to be asked, its breaker, its
// counts.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "engine/commands.h"
#include "engine/hook_breaker.h"
#include "engine/remembered_verdicts.h"
#include "model/hook.h"

namespace reprise {

// A job in a push that waits for its hook.
struct PushPlace {
  RequestId push{};
  std::size_t index{};
};
// What a call is about: for on_failure the job that failed, for on_enqueue one that is pushed.
using HookTicket = std::variant<JobKey, PushPlace>;

// The id of a call tells whose it is, so that its answer finds the line without a table. `number`
// is never the same for two calls that are out.
inline HookCallId hook_call_id(QueueNumber queue, HookKind hook, std::uint64_t number) {
  constexpr std::uint64_t kNumberBits = 31;
  return HookCallId{queue} << 32 | static_cast<HookCallId>(hook) << kNumberBits |
         (number & ((HookCallId{1} << kNumberBits) - 1));
}
inline QueueNumber queue_of_call(HookCallId id) { return static_cast<QueueNumber>(id >> 32); }
inline HookKind hook_of_call(HookCallId id) { return static_cast<HookKind>(id >> 31 & 1); }

struct HookLine {
  struct Out {
    HookTicket ticket;
    std::uint64_t bytes{};
  };

  std::string version;
  HookBreaker breaker;
  std::deque<HookTicket> waiting;
  absl::flat_hash_map<HookCallId, Out> out;
  std::uint64_t out_bytes = 0;
  RememberedVerdicts verdicts;  // of on_enqueue

  // Since the server started.
  std::uint64_t opened = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t remembered = 0;  // of those
  std::array<std::uint64_t, kHookFaultCount> failed{};
  std::string last_error;
  Timestamp last_error_at{};

  // One line a second is told about failures.
  Timestamp next_notice{};
  std::uint64_t untold = 0;

  // Whether another call of this size may be out.
  bool has_room(std::uint64_t bytes) const {
    return out.empty() || (out.size() < kCallsOut && out_bytes + bytes <= kBytesOut);
  }
  void hand_out(HookCallId id, HookTicket ticket, std::uint64_t bytes) {
    out.emplace(id, Out{std::move(ticket), bytes});
    out_bytes += bytes;
  }
  std::optional<HookTicket> take_out(HookCallId id) {
    const auto found = out.find(id);
    if (found == out.end()) return std::nullopt;
    HookTicket ticket = std::move(found->second.ticket);
    out_bytes -= found->second.bytes;
    out.erase(found);
    return ticket;
  }
  // All that is out or waits, in order; the line is empty then.
  std::deque<HookTicket> take_all() {
    std::vector<std::pair<HookCallId, Out>> asked(out.begin(), out.end());
    std::ranges::sort(asked, {}, [](const auto& call) { return call.first; });
    std::deque<HookTicket> all;
    for (auto& [id, call] : asked) all.push_back(std::move(call.ticket));
    for (HookTicket& ticket : waiting) all.push_back(std::move(ticket));
    out.clear();
    out_bytes = 0;
    waiting.clear();
    return all;
  }
  HookStats stats(Timestamp now) const {
    return {.version = version,
            .breaker = breaker.state(now),
            .open_until = breaker.open_until(),
            .failures_in_a_row = breaker.failures_in_a_row(),
            .opened = opened,
            .succeeded = succeeded,
            .remembered = remembered,
            .failed = failed,
            .in_flight = out.size() + waiting.size(),
            .last_error = last_error,
            .last_error_at = last_error_at};
  }

 private:
  // Enough to keep a host busy while answers travel.
  static constexpr std::size_t kCallsOut = 512;
  static constexpr std::uint64_t kBytesOut = 8ULL << 20;
};

}  // namespace reprise
