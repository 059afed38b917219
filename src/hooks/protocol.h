// The messages between the broker and a hook host, and their bytes.
//
// A frame is a u32 length (little-endian, of what follows), a u8 type, and the body. One host
// serves the hooks of one queue, or tries one script. The two sides are the same build of the same
// binary, so there are no versions; but neither trusts the other's bytes: whatever does not decode
// is an error, never a crash, and never much more memory than the frame has bytes.
//
//   broker → host: SetUp (once), ConfigChange (any time, also before SetUp), RunBatch (after it,
//                  answered by its Results)
//   host → broker: SetUpDone (answers SetUp), Results (of a part of a batch, in order)
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/hook.h"

namespace reprise::hooks {

inline constexpr std::size_t kFrameHeaderBytes = 4;
// A message with the largest payload that a server can be set to take (64 MiB) fits; a length
// beyond it is nonsense. Who makes a batch ends it before it comes near.
inline constexpr std::uint32_t kMaxFrameBytes = 72U << 20;

// Of what a host sends: many times what 64 results can take.
inline constexpr std::uint32_t kMaxFrameFromHostBytes = 4U << 20;
// Of a batch, and of one Results.
inline constexpr std::size_t kMaxBatchMessages = 1024;

// What a host may answer. The host keeps to it, and the broker does not believe one that does not.
inline constexpr Duration kMaxHookDelay = std::chrono::days(365);
inline constexpr std::size_t kMaxReasonBytes = 200;
inline constexpr std::size_t kMaxSchedulingKeyBytes = 200;  // 1 at least
inline constexpr std::uint32_t kMaxWeight = 1000;           // 1 at least
inline constexpr std::size_t kMaxThrottleKeys = 16;
inline constexpr std::size_t kMaxRejectBytes = 1000;
inline constexpr std::size_t kMaxLogLines = 8;
inline constexpr std::size_t kMaxLogLineBytes = 1000;
inline constexpr std::size_t kMaxHookMessageBytes = 1000;  // of failures and of problems

struct SetUp {
  std::string queue;                                // its name, for msg.queue
  std::array<std::string, kHookKindCount> sources;  // empty: none
  HookLimits limits;
  std::uint64_t random_seed{};
};
struct SetUpDone {
  // For each hook, why its script cannot be used; empty: it can, or there is none.
  std::array<std::string, kHookKindCount> problems;
};
// As the broker makes it. What the hook's kind has no use for is not sent.
struct RunBatch {
  std::uint32_t batch{};
  HookKind hook{};
  bool with_payloads = false;  // otherwise a script that asks for msg.payload makes NeedsPayload
  std::vector<HookMessage> messages;
};
// As the host reads it: all text lies in the frame, which must outlive it.
struct PackedStrings {
  std::uint32_t count{};
  std::string_view bytes;  // a ByteReader's bytes(), `count` times
};
struct MessageView {
  PackedStrings headers;  // names and values in turn
  std::uint64_t payload_size{};
  std::string_view payload;  // empty unless the batch is with payloads
  // on_failure only.
  std::string_view id;
  std::uint32_t attempts{};
  std::uint32_t failures{};
  std::string_view error;
  std::string_view error_type;
  Timestamp first_attempt_at{};
  // on_enqueue only.
  Priority priority{};
  std::string_view fairness_key;
  std::uint32_t weight{};
  PackedStrings throttle_keys;
};
struct BatchView {
  std::uint32_t batch{};
  HookKind hook{};
  bool with_payloads = false;
  std::vector<MessageView> messages;
};
// The script asked for the payload of a message that came without.
struct NeedsPayload {
  friend bool operator==(const NeedsPayload&, const NeedsPayload&) = default;
};
struct CallResult {
  std::variant<FailureVerdict, EnqueueVerdict, HookFailure, NeedsPayload> outcome;
  std::vector<std::string> log;  // what the script wrote, bounded
  bool repeatable = false;       // HookResult has what that means
};
struct Results {
  std::uint32_t batch{};
  std::uint32_t first{};  // the place in the batch of the first of these
  std::vector<CallResult> results;
};

using ToHost = std::variant<SetUp, ConfigChange, BatchView>;
using FromHost = std::variant<SetUpDone, Results>;

// Append one whole frame. Every message has a job. Of a verdict only what counts is sent: the delay
// of a retry, the reason of a death.
void append_frame(std::string& out, const SetUp& message);
void append_frame(std::string& out, const ConfigChange& message);
void append_frame(std::string& out, const RunBatch& message);
void append_frame(std::string& out, const SetUpDone& message);
void append_frame(std::string& out, const Results& message);

// The first whole frame in `in`, without its length; `in` moves behind it. Nothing: not all of it
// is there yet. Errc::corrupt: its length is beyond `max_bytes`.
Result<std::optional<std::string_view>> take_frame(std::string_view& in,
                                                   std::uint32_t max_bytes = kMaxFrameBytes);
// `frame` is what take_frame() gave. Errc::corrupt: not such a message, or beyond what the other
// side may say.
Result<ToHost> decode_to_host(std::string_view frame);
Result<FromHost> decode_from_host(std::string_view frame);

// --- What a broker can see without asking: one page that both sides have mapped.
//
// The host writes it around each call; the broker only reads it, and does not believe more than it
// must: `call_started` is only ever used to make a deadline earlier than the batch's own.
struct HostProgress {
  // The place in the batch of the call that runs, in the lower half; the batch in the upper.
  std::atomic<std::uint64_t> position{0};
  // CLOCK_MONOTONIC in nanoseconds when that call began; 0: none runs.
  std::atomic<std::int64_t> call_started{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace reprise::hooks
