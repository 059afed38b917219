#include "hooks/protocol.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/bytes.h"

namespace reprise::hooks {
namespace {

using std::chrono::milliseconds;

HookMessage sample(std::string payload) {
  JobRecord record;
  record.priority = 7;
  record.headers = {{"tenant", "acme"}, {"plan", "gold"}};
  record.scheduling = {.fairness_key = "acme", .weight = 3, .throttle_keys = {"api", "mail"}};
  record.payload = std::move(payload);
  return {.job = std::make_shared<JobRecord>(std::move(record)),
          .id = "01J9",
          .attempts = 4,
          .failures = 3,
          .error = "card declined",
          .error_type = "CardError",
          .first_attempt_at = Timestamp(milliseconds(1'700'000'000'123))};
}

std::vector<std::string> unpacked(const PackedStrings& strings) {
  std::vector<std::string> all;
  ByteReader reader(strings.bytes);
  for (std::uint32_t i = 0; i < strings.count; ++i) all.emplace_back(reader.bytes());
  EXPECT_TRUE(reader.done());
  return all;
}

template <class Message>
std::string framed(const Message& message) {
  std::string bytes;
  append_frame(bytes, message);
  return bytes;
}

// The one frame in `bytes`.
std::string_view only_frame(std::string_view bytes) {
  auto frame = take_frame(bytes);
  EXPECT_TRUE(frame && frame->has_value());
  EXPECT_TRUE(bytes.empty());
  return frame && *frame ? **frame : std::string_view();
}

template <class Wanted>
Wanted to_host(std::string_view bytes) {
  auto decoded = decode_to_host(only_frame(bytes));
  EXPECT_TRUE(decoded) << decoded.error().detail;
  return std::get<Wanted>(std::move(*decoded));
}

Result<FromHost> from_host(const Results& results) {
  return decode_from_host(only_frame(framed(results)));
}

Results one(CallResult result) {
  Results results{.batch = 9, .first = 2};
  results.results.push_back(std::move(result));
  return results;
}

CallResult round_trip(const CallResult& result) {
  auto decoded = from_host(one(result));
  EXPECT_TRUE(decoded) << decoded.error().detail;
  auto& results = std::get<Results>(*decoded);
  EXPECT_EQ(results.batch, 9U);
  EXPECT_EQ(results.first, 2U);
  EXPECT_EQ(results.results.size(), 1U);
  return results.results.at(0);
}

void expect_refused(const CallResult& result) {
  auto decoded = from_host(one(result));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Errc::corrupt);
}

TEST(HookProtocol, SetUpComesAsItWent) {
  const hooks::SetUp sent{.queue = "orders",
                          .sources = {"", std::string("a\0b", 3)},
                          .limits = {.timeout = milliseconds(25), .memory_bytes = 1U << 20},
                          .random_seed = 0xDEADBEEFCAFEBABE};
  const std::string bytes = framed(sent);
  const auto came = to_host<hooks::SetUp>(bytes);
  EXPECT_EQ(came.queue, "orders");
  EXPECT_EQ(came.sources, sent.sources);
  EXPECT_EQ(came.limits, sent.limits);
  EXPECT_EQ(came.random_seed, sent.random_seed);
}

TEST(HookProtocol, ConfigComesWithAndWithoutAValue) {
  for (const std::optional<std::string>& value :
       {std::optional<std::string>("5000"), std::optional<std::string>(""),
        std::optional<std::string>()}) {
    const std::string bytes =
        framed(ConfigChange{.ns = "default", .key = "card.retry_ms", .value = value});
    const auto came = to_host<ConfigChange>(bytes);
    EXPECT_EQ(came.ns, "default");
    EXPECT_EQ(came.key, "card.retry_ms");
    EXPECT_EQ(came.value, value);
  }
}

TEST(HookProtocol, FailuresComeWithTheirFields) {
  const std::string bytes = framed(RunBatch{.batch = 77,
                                            .hook = HookKind::on_failure,
                                            .with_payloads = true,
                                            .messages = {sample("{}")}});
  const auto batch = to_host<BatchView>(bytes);
  EXPECT_EQ(batch.batch, 77U);
  EXPECT_EQ(batch.hook, HookKind::on_failure);
  EXPECT_TRUE(batch.with_payloads);
  ASSERT_EQ(batch.messages.size(), 1U);
  const MessageView& message = batch.messages[0];
  EXPECT_EQ(unpacked(message.headers),
            (std::vector<std::string>{"tenant", "acme", "plan", "gold"}));
  EXPECT_EQ(message.payload, "{}");
  EXPECT_EQ(message.payload_size, 2U);
  EXPECT_EQ(message.id, "01J9");
  EXPECT_EQ(message.attempts, 4U);
  EXPECT_EQ(message.failures, 3U);
  EXPECT_EQ(message.error, "card declined");
  EXPECT_EQ(message.error_type, "CardError");
  EXPECT_EQ(message.first_attempt_at, Timestamp(milliseconds(1'700'000'000'123)));
}

TEST(HookProtocol, PushesComeWithTheirAttributesAndTheSizeOfThePayloadAlone) {
  RunBatch sent{.batch = 1, .hook = HookKind::on_enqueue};
  for (int i = 0; i < 64; ++i) sent.messages.push_back(sample(std::string(1000 + i, 'x')));
  const std::string bytes = framed(sent);
  EXPECT_LT(bytes.size(), 64U * 100);
  const auto batch = to_host<BatchView>(bytes);
  EXPECT_FALSE(batch.with_payloads);
  ASSERT_EQ(batch.messages.size(), 64U);
  const MessageView& message = batch.messages[63];
  EXPECT_EQ(message.payload, "");
  EXPECT_EQ(message.payload_size, 1063U);
  EXPECT_EQ(message.priority, 7U);
  EXPECT_EQ(message.fairness_key, "acme");
  EXPECT_EQ(message.weight, 3U);
  EXPECT_EQ(unpacked(message.throttle_keys), (std::vector<std::string>{"api", "mail"}));
}

TEST(HookProtocol, AnswersComeAsTheyWent) {
  const std::vector<CallResult> all = {
      {.outcome = FailureVerdict{}},
      {.outcome = FailureVerdict{.delay = kMaxHookDelay}, .log = {"one", ""}},
      {.outcome = FailureVerdict{.retry = false, .reason = "permanent"}},
      {.outcome = EnqueueVerdict{}},
      {.outcome = EnqueueVerdict{.fairness_key = std::string(200, 'k'), .weight = 1000}},
      {.outcome = EnqueueVerdict{.throttle_keys = std::vector<std::string>{}, .reject = ""}},
      {.outcome = EnqueueVerdict{.throttle_keys = std::vector<std::string>(16, "t"),
                                 .reject = std::string(1000, 'r')}},
      {.outcome = HookFailure{HookFault::invalid_result, "on_failure returned nil"},
       .log = std::vector<std::string>(8, std::string(1000, 'l'))},
      {.outcome = NeedsPayload{}},
      {.outcome = EnqueueVerdict{.weight = 5}, .repeatable = true},
  };
  for (const CallResult& sent : all) {
    const CallResult came = round_trip(sent);
    EXPECT_EQ(came.outcome, sent.outcome);
    EXPECT_EQ(came.log, sent.log);
    EXPECT_EQ(came.repeatable, sent.repeatable);
  }
  const std::string bytes = framed(SetUpDone{{"", "line 2: unexpected symbol"}});
  auto done = decode_from_host(only_frame(bytes));
  ASSERT_TRUE(done);
  EXPECT_EQ(std::get<SetUpDone>(*done).problems[1], "line 2: unexpected symbol");
}

TEST(HookProtocol, OnlyWhatCountsIsSent) {
  EXPECT_EQ(round_trip({.outcome = FailureVerdict{.retry = true, .reason = "unused"}}).outcome,
            (decltype(CallResult::outcome)(FailureVerdict{})));
}

TEST(HookProtocol, AHostIsNotBelievedMoreThanItMaySay) {
  const std::string bad_utf8 = "\xC3\x28";
  const std::vector<std::string> nine_lines(9);
  expect_refused({.outcome = FailureVerdict{.delay = kMaxHookDelay + Duration(1)}});
  expect_refused({.outcome = FailureVerdict{.delay = Duration(-1)}});
  expect_refused({.outcome = FailureVerdict{.retry = false, .reason = std::string(201, 'r')}});
  expect_refused({.outcome = FailureVerdict{.retry = false, .reason = bad_utf8}});
  expect_refused({.outcome = EnqueueVerdict{.fairness_key = ""}});
  expect_refused({.outcome = EnqueueVerdict{.fairness_key = std::string(201, 'k')}});
  expect_refused({.outcome = EnqueueVerdict{.fairness_key = bad_utf8}});
  expect_refused({.outcome = EnqueueVerdict{.weight = 0}});
  expect_refused({.outcome = EnqueueVerdict{.weight = 1001}});
  expect_refused({.outcome = EnqueueVerdict{.throttle_keys = std::vector<std::string>(17, "t")}});
  expect_refused({.outcome = EnqueueVerdict{.throttle_keys = std::vector<std::string>{""}}});
  expect_refused({.outcome = EnqueueVerdict{.reject = std::string(1001, 'r')}});
  expect_refused({.outcome = EnqueueVerdict{.reject = bad_utf8}});
  expect_refused({.outcome = HookFailure{HookFault::host_lost, ""}});
  expect_refused({.outcome = HookFailure{HookFault::breaker_open, ""}});
  expect_refused({.outcome = HookFailure{HookFault::error, std::string(1001, 'm')}});
  expect_refused({.outcome = HookFailure{HookFault::error, bad_utf8}});
  expect_refused({.outcome = FailureVerdict{}, .repeatable = true});
  expect_refused({.outcome = HookFailure{HookFault::error, ""}, .repeatable = true});
  expect_refused({.outcome = NeedsPayload{}, .repeatable = true});
  expect_refused({.outcome = NeedsPayload{}, .log = nine_lines});
  expect_refused({.outcome = NeedsPayload{}, .log = {std::string(1001, 'l')}});
  expect_refused({.outcome = NeedsPayload{}, .log = {bad_utf8}});
  for (const char* forged : {"a\nb", "\x1b[2J", "\x7f", "\r"}) {
    expect_refused({.outcome = NeedsPayload{}, .log = {forged}});
    expect_refused({.outcome = HookFailure{HookFault::error, forged}});
  }
  const std::string problem = framed(SetUpDone{{std::string(1001, 'p'), ""}});
  EXPECT_FALSE(decode_from_host(only_frame(problem)));
}

TEST(HookProtocol, LimitsThatMakeNoSenseAreRefused) {
  EXPECT_FALSE(
      decode_to_host(only_frame(framed(hooks::SetUp{.limits = {.timeout = Duration(0)}}))));
  EXPECT_FALSE(
      decode_to_host(only_frame(framed(hooks::SetUp{.limits = {.timeout = Duration(-1)}}))));
  EXPECT_FALSE(decode_to_host(only_frame(framed(hooks::SetUp{.limits = {.memory_bytes = 0}}))));
}

TEST(HookProtocol, FramesAreTakenOneByOne) {
  std::string bytes = framed(SetUpDone{});
  const std::size_t first = bytes.size();
  append_frame(bytes, Results{.batch = 5});
  for (std::size_t size = 0; size < first; ++size) {
    std::string_view part(bytes.data(), size);
    auto frame = take_frame(part);
    ASSERT_TRUE(frame);
    EXPECT_FALSE(frame->has_value());
    EXPECT_EQ(part.size(), size);
  }
  std::string_view rest = bytes;
  auto frame = take_frame(rest);
  ASSERT_TRUE(frame && *frame);
  EXPECT_TRUE(std::holds_alternative<SetUpDone>(*decode_from_host(**frame)));
  frame = take_frame(rest);
  ASSERT_TRUE(frame && *frame);
  EXPECT_EQ(std::get<Results>(*decode_from_host(**frame)).batch, 5U);
  EXPECT_TRUE(rest.empty());
}

TEST(HookProtocol, ALengthBeyondTheBoundIsAnError) {
  std::string bytes;
  append_frame(bytes, Results{.batch = 5});
  std::string_view in = bytes;
  EXPECT_FALSE(take_frame(in, 3));
  bytes.clear();
  ByteWriter(bytes).fixed(kMaxFrameBytes + 1);
  in = bytes;
  auto frame = take_frame(in);
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code, Errc::corrupt);
}

TEST(HookProtocol, EveryTruncationAndEveryAdditionIsAnError) {
  RunBatch batch{.hook = HookKind::on_failure, .with_payloads = true};
  batch.messages = {sample("{}"), sample("")};
  Results results = one({.outcome = EnqueueVerdict{.fairness_key = "k",
                                                   .weight = 1,
                                                   .throttle_keys = std::vector<std::string>{"t"},
                                                   .reject = "no"},
                         .log = {"line"}});
  for (const std::string& bytes : {framed(hooks::SetUp{.queue = "q"}),
                                   framed(ConfigChange{.ns = "n", .key = "k", .value = "v"}),
                                   framed(batch), framed(SetUpDone{{"p", "q"}}), framed(results)}) {
    const std::string frame(only_frame(bytes));
    ASSERT_TRUE(decode_to_host(frame) || decode_from_host(frame));
    for (std::size_t size = 0; size < frame.size(); ++size) {
      const std::string part = frame.substr(0, size);
      EXPECT_FALSE(decode_to_host(part)) << size << " of " << frame.size();
      EXPECT_FALSE(decode_from_host(part)) << size << " of " << frame.size();
    }
    EXPECT_FALSE(decode_to_host(frame + '\0'));
    EXPECT_FALSE(decode_from_host(frame + '\0'));
  }
}

TEST(HookProtocol, CountsThatLieReserveNothing) {
  for (const int type : {3, 5}) {
    std::string frame(1, static_cast<char>(type));
    ByteWriter writer(frame);
    writer.fixed(std::uint32_t{1});
    if (type == 3) {
      writer.fixed(std::uint16_t{0});  // hook, with_payloads
    } else {
      writer.fixed(std::uint32_t{0});  // first
    }
    writer.varint(~0ULL);
    EXPECT_FALSE(decode_to_host(frame));
    EXPECT_FALSE(decode_from_host(frame));
  }
  std::string many(1, '\x05');
  ByteWriter writer(many);
  writer.fixed(std::uint64_t{0});
  writer.varint(1 << 20);
  many.append(4 << 20, '\x04');
  EXPECT_FALSE(decode_from_host(many));
}

TEST(HookProtocol, UnknownTypesAreErrors) {
  EXPECT_FALSE(decode_to_host(""));
  EXPECT_FALSE(decode_from_host(""));
  for (int type = 0; type < 256; ++type) {
    const std::string frame(1, static_cast<char>(type));
    EXPECT_FALSE(decode_to_host(frame));
    EXPECT_FALSE(decode_from_host(frame));
  }
}

}  // namespace
}  // namespace reprise::hooks
