#include "hooks/protocol.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"

namespace reprise::hooks {
namespace {

enum class FrameType : std::uint8_t {
  set_up = 1,
  config_change = 2,
  run_batch = 3,
  set_up_done = 4,
  results = 5,
};

enum class OutcomeType : std::uint8_t {
  retry = 0,
  dead = 1,
  enqueue = 2,
  failure = 3,
  needs_payload = 4
};

// Which fields of an EnqueueVerdict follow.
constexpr std::uint8_t kHasFairnessKey = 1;
constexpr std::uint8_t kHasWeight = 2;
constexpr std::uint8_t kHasThrottleKeys = 4;
constexpr std::uint8_t kHasReject = 8;
constexpr std::uint8_t kVerdictFields = 15;

// Far beyond any setting; only so that sums of them stay small.
constexpr Duration kMaxTimeout = std::chrono::hours(1);
constexpr std::uint64_t kMaxMemoryBytes = 1ULL << 40;

// Writes the header, and the length once it is known.
class FrameWriter : public ByteWriter {
 public:
  FrameWriter(std::string& out, FrameType type) : ByteWriter(out), frame_(out), start_(out.size()) {
    fixed(std::uint32_t{0});
    fixed(static_cast<std::uint8_t>(type));
  }
  ~FrameWriter() {
    const auto size = static_cast<std::uint32_t>(frame_.size() - start_ - kFrameHeaderBytes);
    std::memcpy(frame_.data() + start_, &size, sizeof size);
  }
  FrameWriter(const FrameWriter&) = delete;
  FrameWriter& operator=(const FrameWriter&) = delete;

 private:
  std::string& frame_;
  const std::size_t start_;
};

// ByteReader, and a way to fail for a value that may not be.
class FrameReader : public ByteReader {
 public:
  using ByteReader::ByteReader;

  void require(bool condition) { refused_ = refused_ || !condition; }
  bool good() const { return !refused_ && !failed(); }
  bool complete() const { return !refused_ && done(); }

  bool boolean() {
    const auto value = fixed<std::uint8_t>();
    require(value <= 1);
    return value == 1;
  }
  template <class Enum>
  Enum enumerator(std::size_t count) {
    const auto value = fixed<std::uint8_t>();
    require(value < count);
    return static_cast<Enum>(value);
  }
  std::uint64_t number(std::uint64_t least, std::uint64_t most) {
    const std::uint64_t value = varint();
    require(value >= least && value <= most);
    return value;
  }
  std::uint32_t u32() {
    return static_cast<std::uint32_t>(number(0, std::numeric_limits<std::uint32_t>::max()));
  }
  // Each of what is counted takes a byte at least, so a count beyond the rest is a lie and nothing
  // is reserved for it.
  std::size_t count(std::size_t most) {
    const std::uint64_t value = varint();
    require(value <= most && value <= rest().size());
    return good() ? static_cast<std::size_t>(value) : 0;
  }
  // Text that goes to a log as it is: no line breaks, nothing that a terminal would obey.
  std::string line(std::size_t most) {
    std::string result = text(0, most);
    require(std::ranges::none_of(
        result, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }));
    return result;
  }
  std::string text(std::size_t least, std::size_t most) {
    const std::string_view value = bytes();
    require(value.size() >= least && value.size() <= most && is_valid_utf8(value));
    return good() ? std::string(value) : std::string();
  }

 private:
  bool refused_ = false;
};

std::uint64_t microseconds(Duration time) { return static_cast<std::uint64_t>(time.count()); }

Error not_a_frame(const char* what) {
  return Error{Errc::corrupt, std::string("the other end of a hook host's pipe sent ") + what};
}

void write_headers(ByteWriter& out, const Headers& headers) {
  out.varint(headers.size() * 2);
  for (const auto& [name, value] : headers) {
    out.bytes(name);
    out.bytes(value);
  }
}

void write_strings(ByteWriter& out, const std::vector<std::string>& strings) {
  out.varint(strings.size());
  for (const std::string& string : strings) out.bytes(string);
}

void write_message(ByteWriter& out, const RunBatch& batch, const HookMessage& message) {
  const JobRecord& job = *message.job;
  write_headers(out, job.headers);
  if (batch.with_payloads) {
    out.bytes(job.payload);
  } else {
    out.varint(job.payload.size());
  }
  if (batch.hook == HookKind::on_failure) {
    out.bytes(message.id);
    out.varint(message.attempts);
    out.varint(message.failures);
    out.bytes(message.error);
    out.bytes(message.error_type);
    out.fixed(std::int64_t{message.first_attempt_at.time_since_epoch().count()});
  } else {
    out.varint(job.priority);
    out.bytes(job.scheduling.fairness_key);
    out.varint(job.scheduling.weight);
    write_strings(out, job.scheduling.throttle_keys);
  }
}

PackedStrings read_strings(FrameReader& in) {
  const std::size_t count = in.count(std::numeric_limits<std::uint32_t>::max());
  const std::string_view all = in.rest();
  for (std::size_t i = 0; i < count && in.good(); ++i) in.bytes();
  if (!in.good()) return {};
  return {static_cast<std::uint32_t>(count), all.substr(0, all.size() - in.rest().size())};
}

MessageView read_message(FrameReader& in, const BatchView& batch) {
  MessageView message;
  message.headers = read_strings(in);
  in.require(message.headers.count % 2 == 0);
  if (batch.with_payloads) {
    message.payload = in.bytes();
    message.payload_size = message.payload.size();
  } else {
    message.payload_size = in.number(0, std::numeric_limits<std::int64_t>::max());
  }
  if (batch.hook == HookKind::on_failure) {
    message.id = in.bytes();
    message.attempts = in.u32();
    message.failures = in.u32();
    message.error = in.bytes();
    message.error_type = in.bytes();
    message.first_attempt_at = Timestamp(Duration(in.fixed<std::int64_t>()));
  } else {
    message.priority = in.u32();
    message.fairness_key = in.bytes();
    message.weight = in.u32();
    message.throttle_keys = read_strings(in);
  }
  return message;
}

SetUp read_set_up(FrameReader& in) {
  SetUp message;
  message.queue = in.bytes();
  for (std::string& source : message.sources) source = in.bytes();
  message.limits.timeout = Duration(in.number(1, microseconds(kMaxTimeout)));
  message.limits.memory_bytes = in.number(1, kMaxMemoryBytes);
  message.random_seed = in.fixed<std::uint64_t>();
  return message;
}

ConfigChange read_config_change(FrameReader& in) {
  ConfigChange message;
  message.ns = in.bytes();
  message.key = in.bytes();
  if (in.boolean()) message.value = in.bytes();
  return message;
}

BatchView read_batch(FrameReader& in) {
  BatchView batch;
  batch.batch = in.fixed<std::uint32_t>();
  batch.hook = in.enumerator<HookKind>(kHookKindCount);
  batch.with_payloads = in.boolean();
  const std::size_t count = in.count(kMaxBatchMessages);
  batch.messages.reserve(count);
  for (std::size_t i = 0; i < count && in.good(); ++i) {
    batch.messages.push_back(read_message(in, batch));
  }
  return batch;
}

void write_outcome(ByteWriter& out, const FailureVerdict& verdict) {
  if (verdict.retry) {
    out.fixed(static_cast<std::uint8_t>(OutcomeType::retry));
    out.varint(microseconds(verdict.delay));
  } else {
    out.fixed(static_cast<std::uint8_t>(OutcomeType::dead));
    out.bytes(verdict.reason);
  }
}

void write_outcome(ByteWriter& out, const EnqueueVerdict& verdict) {
  out.fixed(static_cast<std::uint8_t>(OutcomeType::enqueue));
  out.fixed(static_cast<std::uint8_t>(
      (verdict.fairness_key ? kHasFairnessKey : 0) | (verdict.weight ? kHasWeight : 0) |
      (verdict.throttle_keys ? kHasThrottleKeys : 0) | (verdict.reject ? kHasReject : 0)));
  if (verdict.fairness_key) out.bytes(*verdict.fairness_key);
  if (verdict.weight) out.varint(*verdict.weight);
  if (verdict.throttle_keys) write_strings(out, *verdict.throttle_keys);
  if (verdict.reject) out.bytes(*verdict.reject);
}

void write_outcome(ByteWriter& out, const HookFailure& failure) {
  out.fixed(static_cast<std::uint8_t>(OutcomeType::failure));
  out.fixed(static_cast<std::uint8_t>(failure.fault));
  out.bytes(failure.message);
}

void write_outcome(ByteWriter& out, const NeedsPayload&) {
  out.fixed(static_cast<std::uint8_t>(OutcomeType::needs_payload));
}

EnqueueVerdict read_enqueue_verdict(FrameReader& in) {
  EnqueueVerdict verdict;
  const auto fields = in.fixed<std::uint8_t>();
  in.require(fields <= kVerdictFields);
  if (fields & kHasFairnessKey) verdict.fairness_key = in.text(1, kMaxSchedulingKeyBytes);
  if (fields & kHasWeight) verdict.weight = static_cast<std::uint32_t>(in.number(1, kMaxWeight));
  if (fields & kHasThrottleKeys) {
    const std::size_t count = in.count(kMaxThrottleKeys);
    auto& keys = verdict.throttle_keys.emplace();
    for (std::size_t i = 0; i < count && in.good(); ++i) {
      keys.push_back(in.text(1, kMaxSchedulingKeyBytes));
    }
  }
  if (fields & kHasReject) verdict.reject = in.text(0, kMaxRejectBytes);
  return verdict;
}

// The faults that a host can tell of; of the others it has no part.
constexpr std::size_t kFaultsOfHosts = static_cast<std::size_t>(HookFault::invalid_result) + 1;

CallResult read_result(FrameReader& in) {
  CallResult result;
  switch (static_cast<OutcomeType>(in.fixed<std::uint8_t>())) {
    case OutcomeType::retry:
      result.outcome = FailureVerdict{.delay = Duration(in.number(0, microseconds(kMaxHookDelay)))};
      break;
    case OutcomeType::dead:
      result.outcome = FailureVerdict{.retry = false, .reason = in.text(0, kMaxReasonBytes)};
      break;
    case OutcomeType::enqueue:
      result.outcome = read_enqueue_verdict(in);
      break;
    case OutcomeType::failure: {
      const auto fault = in.enumerator<HookFault>(kFaultsOfHosts);
      result.outcome = HookFailure{fault, in.line(kMaxHookMessageBytes)};
      break;
    }
    case OutcomeType::needs_payload:
      result.outcome = NeedsPayload{};
      break;
    default:
      in.require(false);
  }
  const std::size_t lines = in.count(kMaxLogLines);
  for (std::size_t i = 0; i < lines && in.good(); ++i) {
    result.log.push_back(in.line(kMaxLogLineBytes));
  }
  result.repeatable = in.boolean();
  in.require(!result.repeatable || std::holds_alternative<EnqueueVerdict>(result.outcome));
  return result;
}

Results read_results(FrameReader& in) {
  Results message;
  message.batch = in.fixed<std::uint32_t>();
  message.first = in.fixed<std::uint32_t>();
  const std::size_t count = in.count(kMaxBatchMessages);
  message.results.reserve(count);
  for (std::size_t i = 0; i < count && in.good(); ++i) message.results.push_back(read_result(in));
  return message;
}

SetUpDone read_set_up_done(FrameReader& in) {
  SetUpDone message;
  for (std::string& problem : message.problems) problem = in.line(kMaxHookMessageBytes);
  return message;
}

template <class Message>
Message finished(const FrameReader& in, Message message) {
  if (!in.complete()) return not_a_frame("a message that cannot be understood");
  return message;
}

}  // namespace

void append_frame(std::string& out, const SetUp& message) {
  FrameWriter frame(out, FrameType::set_up);
  frame.bytes(message.queue);
  for (const std::string& source : message.sources) frame.bytes(source);
  frame.varint(microseconds(message.limits.timeout));
  frame.varint(message.limits.memory_bytes);
  frame.fixed(message.random_seed);
}

void append_frame(std::string& out, const ConfigChange& message) {
  FrameWriter frame(out, FrameType::config_change);
  frame.bytes(message.ns);
  frame.bytes(message.key);
  frame.fixed(static_cast<std::uint8_t>(message.value.has_value()));
  if (message.value) frame.bytes(*message.value);
}

void append_frame(std::string& out, const RunBatch& message) {
  FrameWriter frame(out, FrameType::run_batch);
  frame.fixed(message.batch);
  frame.fixed(static_cast<std::uint8_t>(message.hook));
  frame.fixed(static_cast<std::uint8_t>(message.with_payloads));
  frame.varint(message.messages.size());
  for (const HookMessage& each : message.messages) write_message(frame, message, each);
}

void append_frame(std::string& out, const SetUpDone& message) {
  FrameWriter frame(out, FrameType::set_up_done);
  for (const std::string& problem : message.problems) frame.bytes(problem);
}

void append_frame(std::string& out, const Results& message) {
  FrameWriter frame(out, FrameType::results);
  frame.fixed(message.batch);
  frame.fixed(message.first);
  frame.varint(message.results.size());
  for (const CallResult& result : message.results) {
    std::visit([&](const auto& outcome) { write_outcome(frame, outcome); }, result.outcome);
    write_strings(frame, result.log);
    frame.fixed(static_cast<std::uint8_t>(result.repeatable));
  }
}

Result<std::optional<std::string_view>> take_frame(std::string_view& in, std::uint32_t max_bytes) {
  if (in.size() < kFrameHeaderBytes) return std::optional<std::string_view>();
  std::uint32_t size = 0;
  std::memcpy(&size, in.data(), sizeof size);
  if (size > max_bytes) return not_a_frame("a frame beyond the largest size");
  if (in.size() - kFrameHeaderBytes < size) return std::optional<std::string_view>();
  const std::string_view frame = in.substr(kFrameHeaderBytes, size);
  in.remove_prefix(kFrameHeaderBytes + size);
  return std::optional(frame);
}

Result<ToHost> decode_to_host(std::string_view frame) {
  FrameReader in(frame);
  switch (static_cast<FrameType>(in.fixed<std::uint8_t>())) {
    case FrameType::set_up:
      return finished<Result<ToHost>>(in, ToHost(read_set_up(in)));
    case FrameType::config_change:
      return finished<Result<ToHost>>(in, ToHost(read_config_change(in)));
    case FrameType::run_batch:
      return finished<Result<ToHost>>(in, ToHost(read_batch(in)));
    default:
      return not_a_frame("a message that is not for hosts");
  }
}

Result<FromHost> decode_from_host(std::string_view frame) {
  FrameReader in(frame);
  switch (static_cast<FrameType>(in.fixed<std::uint8_t>())) {
    case FrameType::set_up_done:
      return finished<Result<FromHost>>(in, FromHost(read_set_up_done(in)));
    case FrameType::results:
      return finished<Result<FromHost>>(in, FromHost(read_results(in)));
    default:
      return not_a_frame("a message that is not from hosts");
  }
}

}  // namespace reprise::hooks
