// CallLine: the calls of one queue that wait for its host, and how batches are cut from them.
//
// A call carries the scripts that were the queue's when it was submitted and runs with no others.
// Calls of one hook stay in order; between the hooks the older call goes first, so all calls of
// older scripts go before any of newer ones.
//
// Threads: one owner, no locks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/hook.h"

namespace reprise::hooks {

// The hooks of a queue as they were defined together: what one host is set up with.
struct Scripts {
  QueueName queue;
  std::array<std::string, kHookKindCount> sources;
  HookLimits limits;
  std::array<bool, kHookKindCount> read_payloads{};  // as far as their text tells

  bool has(HookKind hook) const { return !sources[static_cast<std::size_t>(hook)].empty(); }
};
using ScriptsPtr = std::shared_ptr<const Scripts>;

ScriptsPtr make_scripts(QueueName queue, std::array<std::string, kHookKindCount> sources,
                        HookLimits limits);
// Whether a script's text speaks of `payload`, other than in `payload_size`. What it builds from
// pieces is found out when it runs.
bool mentions_payload(std::string_view source);

struct PendingCall {
  HookCallId id{};
  HookKind hook{};
  HookMessage message;
  ScriptsPtr scripts;
  bool with_payload = false;
  std::uint64_t turn = 0;  // its place in the line; the line's own
  // How it ended the host that ran it. It is not asked again; it stands in the line so that those
  // before it, whose answers were lost with the host, are answered first.
  std::optional<HookFailure> fault;
};

class CallLine {
 public:
  static constexpr std::size_t kBatchCalls = 128;
  static constexpr std::size_t kBatchBytes = 1U << 20;

  bool empty() const;
  void add(PendingCall call);
  // A call that was taken: into its old place.
  void put_back(PendingCall call);

  // The scripts of the call that is next; the line is not empty.
  const ScriptsPtr& next_scripts() const { return queue_of_next().front().scripts; }
  // Whether the next call has its answer; the line is not empty.
  bool next_has_fault() const { return queue_of_next().front().fault.has_value(); }
  PendingCall take_next();
  // The next calls that can go together: one hook, the same scripts, with or without payloads, none
  // that has its answer, and no more than the two bounds (but one in any case). The line is not
  // empty.
  std::vector<PendingCall> take_batch();

  void drop(HookKind hook);
  std::vector<PendingCall> take_all_of(const Scripts& scripts);
  std::vector<PendingCall> take_all_of(const Scripts& scripts, HookKind hook);

 private:
  using Waiting = std::deque<PendingCall>;
  const Waiting& queue_of_next() const;

  std::array<Waiting, kHookKindCount> waiting_;  // each by turn
  std::uint64_t next_turn_ = 1;
};

}  // namespace reprise::hooks
