// Whatever bytes come: frames of the protocol between broker and hook hosts decode or are refused,
// and what decodes keeps to the rules and encodes to the same bytes again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "fuzz/fuzz.h"
#include "hooks/protocol.h"

namespace reprise::hooks {
namespace {

void check_text(std::string_view text, std::size_t most) {
  REPRISE_CHECK(text.size() <= most && is_valid_utf8(text));
}

void check(const FailureVerdict& verdict) {
  REPRISE_CHECK(verdict.delay >= Duration{} && verdict.delay <= kMaxHookDelay);
  check_text(verdict.reason, kMaxReasonBytes);
}

void check(const EnqueueVerdict& verdict) {
  if (verdict.fairness_key) check_text(*verdict.fairness_key, kMaxSchedulingKeyBytes);
  if (verdict.weight) REPRISE_CHECK(*verdict.weight >= 1 && *verdict.weight <= kMaxWeight);
  if (verdict.reject) check_text(*verdict.reject, kMaxRejectBytes);
  if (!verdict.throttle_keys) return;
  REPRISE_CHECK(verdict.throttle_keys->size() <= kMaxThrottleKeys);
  for (const std::string& key : *verdict.throttle_keys) {
    REPRISE_CHECK(!key.empty());
    check_text(key, kMaxSchedulingKeyBytes);
  }
}

void check(const HookFailure& failure) {
  REPRISE_CHECK(failure.fault <= HookFault::invalid_result);
  check_text(failure.message, kMaxHookMessageBytes);
}

void check(const NeedsPayload&) {}

void check(const Results& results) {
  REPRISE_CHECK(results.results.size() <= kMaxBatchMessages);
  for (const CallResult& result : results.results) {
    std::visit([](const auto& outcome) { check(outcome); }, result.outcome);
    REPRISE_CHECK(result.log.size() <= kMaxLogLines);
    for (const std::string& line : result.log) check_text(line, kMaxLogLineBytes);
  }
}

void check(const SetUpDone& done) {
  for (const std::string& problem : done.problems) check_text(problem, kMaxHookMessageBytes);
}

void walk(const PackedStrings& strings) {
  ByteReader reader(strings.bytes);
  for (std::uint32_t i = 0; i < strings.count; ++i) reader.bytes();
  REPRISE_CHECK(reader.done());
}

// Numbers can be written in more than one way, so only what was encoded once is compared.
template <class Message, class Decode>
void check_again(const Message& message, Decode decode) {
  std::string once;
  append_frame(once, message);
  std::string_view in = once;
  const auto frame = take_frame(in);
  REPRISE_CHECK(frame && *frame && in.empty());
  const auto decoded = decode(**frame);
  REPRISE_CHECK(static_cast<bool>(decoded));
  std::string twice;
  append_frame(twice, std::get<Message>(*decoded));
  REPRISE_CHECK(once == twice);
}

void check_host_side(std::string_view frame) {
  const auto decoded = decode_to_host(frame);
  if (!decoded) return;
  if (const auto* set_up = std::get_if<SetUp>(&*decoded)) check_again(*set_up, decode_to_host);
  if (const auto* change = std::get_if<ConfigChange>(&*decoded)) {
    check_again(*change, decode_to_host);
  }
  if (const auto* batch = std::get_if<BatchView>(&*decoded)) {
    REPRISE_CHECK(batch->messages.size() <= kMaxBatchMessages);
    for (const MessageView& message : batch->messages) {
      walk(message.headers);
      walk(message.throttle_keys);
    }
  }
}

void check_broker_side(std::string_view frame) {
  const auto decoded = decode_from_host(frame);
  if (!decoded) return;
  std::visit(
      [](const auto& message) {
        check(message);
        check_again(message, decode_from_host);
      },
      *decoded);
}

template <class Message>
std::string framed(const Message& message) {
  std::string bytes;
  append_frame(bytes, message);
  return bytes;
}

RunBatch batch_of(HookKind hook, bool with_payloads) {
  JobRecord job;
  job.headers = {{"tenant", "acme"}, {"plan", "gold"}};
  job.scheduling = {.fairness_key = "acme", .weight = 3, .throttle_keys = {"api", "mail"}};
  job.payload = "{\"order\":7}";
  const HookMessage message{.job = std::make_shared<JobRecord>(std::move(job)),
                            .id = "01J9",
                            .attempts = 4,
                            .failures = 3,
                            .error = "card declined",
                            .error_type = "CardError"};
  return {
      .batch = 77, .hook = hook, .with_payloads = with_payloads, .messages = {message, message}};
}

}  // namespace
}  // namespace reprise::hooks

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::hooks;
  std::string_view in(reinterpret_cast<const char*>(data), size);
  // Most damage should reach the decoders, whatever length stands in front.
  if (in.size() >= sizeof(std::uint32_t)) {
    check_host_side(in.substr(sizeof(std::uint32_t)));
    check_broker_side(in.substr(sizeof(std::uint32_t)));
  }
  while (true) {
    const auto frame = take_frame(in);
    if (!frame || !*frame) break;
    check_host_side(**frame);
    check_broker_side(**frame);
  }
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() {
  using namespace reprise::hooks;
  Results results{.batch = 9, .first = 2};
  results.results = {
      {.outcome = FailureVerdict{.delay = std::chrono::seconds(5)}, .log = {"line", ""}},
      {.outcome = FailureVerdict{.retry = false, .reason = "permanent"}},
      {.outcome = EnqueueVerdict{.fairness_key = "acme",
                                 .weight = 10,
                                 .throttle_keys = std::vector<std::string>{"api", "mail"},
                                 .reject = "no"}},
      {.outcome = HookFailure{HookFault::memory, "line 3: too much"}},
      {.outcome = NeedsPayload{}}};
  return {framed(SetUp{.queue = "orders", .sources = {"a", "b"}, .random_seed = 7}),
          framed(ConfigChange{.ns = "default", .key = "rate", .value = "5"}),
          framed(batch_of(HookKind::on_failure, true)),
          framed(batch_of(HookKind::on_failure, false)),
          framed(batch_of(HookKind::on_enqueue, true)),
          framed(batch_of(HookKind::on_enqueue, false)),
          framed(SetUpDone{{"", "line 2: unexpected symbol"}}),
          framed(results),
          framed(SetUpDone{}) + framed(results)};
}
