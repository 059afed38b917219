#include "server/ingest_body.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/json_problem.h"
#include "base/random.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Events = std::vector<Result<IngestEvent>>;

const Timestamp kNow = std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + 8h;

Result<Events> parse(std::string_view body, const Limits& limits = {}) {
  return parse_ingest_body(body, limits, kNow);
}

std::string body_of(std::string_view events) { return fmt::format(R"({{"events":[{}]}})", events); }

// The single event of a body that is taken.
IngestEvent event_of(std::string_view event, const Limits& limits = {}) {
  auto events = parse(body_of(event), limits);
  if (!events || !events->front()) {
    ADD_FAILURE() << event << ": "
                  << (events ? events->front().error().detail : events.error().detail);
    return {};
  }
  EXPECT_EQ(events->size(), 1U);
  return *events->front();
}

// Why this event alone is refused; the event after it is not.
Error refusal_of(std::string_view event, const Limits& limits = {}) {
  const auto events = parse(body_of(fmt::format(R"({},{{"id":"b","type":"t"}})", event)), limits);
  if (!events || events->front() || !events->at(1)) {
    ADD_FAILURE() << "not refused alone: " << event.substr(0, 200);
    return {};
  }
  return events->front().error();
}
Errc refusal_code(std::string_view event) { return refusal_of(event).code; }

// Why the whole body is.
Error whole_refusal_of(std::string_view body, const Limits& limits = {}) {
  const auto events = parse(body, limits);
  EXPECT_FALSE(events) << body.substr(0, 200);
  return events ? Error{} : events.error();
}
Errc whole_code(std::string_view body) { return whole_refusal_of(body).code; }

TEST(IngestBody, AnEventIsThePayloadByteForByte) {
  for (const std::string_view event :
       {R"({"id":"a","type":"t"})",
        R"({ "type" : "t" ,"data": {"n": 1.0, "big": 123456789012345678901234567890},  "id":"a" })",
        R"({"id":"a","type":"t","extra":[1e400],"data":"\u00e9\/","data2":null,"x":1,"x":2})",
        "{\"id\":\"a\",\n\t\"type\":\"t\"}", R"({"\u0069d":"a","type":"t"})"}) {
    const IngestEvent parsed = event_of(fmt::format(" \n{} ", event));
    EXPECT_EQ(parsed.job.payload, event);
    EXPECT_EQ(parsed.job.payload_kind, PayloadKind::json);
    EXPECT_EQ(parsed.job.key, "a");
    EXPECT_EQ(parsed.type, "t");
    EXPECT_THAT(parsed.job.headers, ElementsAre(Headers::value_type{"event-type", "t"}));
    EXPECT_EQ(parsed.job.least_key_window, 24h);
    EXPECT_EQ(parsed.queue, std::nullopt);
    EXPECT_TRUE(parsed.create);
  }
}

TEST(IngestBody, IdAndTypeAreUnescaped) {
  const IngestEvent parsed = event_of(R"({"id":"\u0041\"","type":"caf\u00e9"})");
  EXPECT_EQ(parsed.job.key, "A\"");
  EXPECT_EQ(parsed.type, "caf\xC3\xA9");
}

TEST(IngestBody, WhatIsWrongWithOneEventRefusesThatOneOnly) {
  const auto id = [](std::size_t length) {
    return fmt::format(R"({{"id":"{}","type":"t"}})", std::string(length, 'x'));
  };
  const auto type = [](std::string_view text) {
    return fmt::format(R"({{"id":"a","type":"{}"}})", text);
  };
  EXPECT_EQ(refusal_code("1"), Errc::invalid_request);
  EXPECT_EQ(refusal_code("[]"), Errc::invalid_request);
  EXPECT_EQ(refusal_code("null"), Errc::invalid_request);
  EXPECT_EQ(refusal_code("{}"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(R"({"id":"a"})"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(R"({"type":"t"})"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(R"({"id":7,"type":"t"})"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(R"({"id":null,"type":"t"})"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(R"({"id":"a","type":["t"]})"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(R"({"id":"a","id":"b","type":"t"})"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(R"({"id":"a","type":"t","data":1,"data":2})"), Errc::invalid_request);
  EXPECT_EQ(refusal_code(id(0)), Errc::invalid_field);
  EXPECT_EQ(event_of(id(512)).job.key.size(), 512U);
  EXPECT_EQ(refusal_code(id(513)), Errc::key_too_long);
  EXPECT_EQ(refusal_code(type("")), Errc::invalid_field);
  EXPECT_EQ(event_of(type(std::string(200, 't'))).type.size(), 200U);
  EXPECT_EQ(refusal_code(type(std::string(201, 't'))), Errc::invalid_field);
  EXPECT_EQ(refusal_code(type("\\u0000")), Errc::invalid_field);
  EXPECT_EQ(refusal_code(type("a\\u007fb")), Errc::invalid_field);
  EXPECT_EQ(refusal_code(R"({"id":"a","type":"t","timestamp":"soon"})"), Errc::invalid_field);
  EXPECT_EQ(refusal_code(R"({"id":"a","type":"t","timestamp":1769847300})"), Errc::invalid_request);
}

TEST(IngestBody, ARefusalNamesTheEventAndTheField) {
  EXPECT_EQ(refusal_of("{}").detail, "events[0]: the field 'id' is missing");
  EXPECT_EQ(refusal_of(R"({"id":"a","type":""})").detail, "events[0].type must not be empty");
  EXPECT_EQ(refusal_of(R"({"id":"a","type":"t","timestamp":"soon"})").detail,
            "events[0].timestamp is not a time like 2026-01-31T08:00:00.000Z");
  const auto events = parse(body_of(R"({"id":"a","type":"t"},{"id":"b","type":1})"));
  ASSERT_TRUE(events);
  EXPECT_EQ(events->at(1).error().detail, "events[1].type: expected a string");
}

TEST(IngestBody, ATimestampMayBeThereOrNot) {
  event_of(R"({"id":"a","type":"t","timestamp":"2026-01-31T08:15:00.250Z"})");
  event_of(R"({"id":"a","type":"t","timestamp":"2026-01-31 08:15+02:00"})");
  event_of(R"({"id":"a","type":"t","timestamp":null})");
}

TEST(IngestBody, LimitsOfJobsHoldForEvents) {
  const std::string event = R"({"id":"a","type":"t"})";
  EXPECT_EQ(event_of(event, {.max_payload_bytes = event.size()}).job.payload, event);
  Limits small{.max_payload_bytes = event.size()};
  const Error large = refusal_of(R"({"id":"a","type":"t" })", small);
  EXPECT_EQ(large.code, Errc::payload_too_large);
  EXPECT_THAT(large.detail, StartsWith("events[0] is 22 bytes"));
  EXPECT_EQ(parse(body_of(event), {.max_header_bytes = 10})->front().error().code,
            Errc::header_too_large);
  EXPECT_EQ(
      parse(body_of(R"({"id":"abc","type":"t"})"), {.max_key_bytes = 2})->front().error().code,
      Errc::key_too_long);
}

TEST(IngestBody, ADoubtfulBodyRefusesAll) {
  const std::string good = R"({"id":"a","type":"t"})";
  EXPECT_EQ(whole_code(""), Errc::invalid_request);
  EXPECT_EQ(whole_code("[]"), Errc::invalid_request);
  EXPECT_EQ(whole_code("{}"), Errc::invalid_request);
  EXPECT_EQ(whole_code(R"({"events":{}})"), Errc::invalid_request);
  EXPECT_EQ(whole_code(R"({"events":[]})"), Errc::invalid_request);
  EXPECT_EQ(whole_code(body_of(good) + "x"), Errc::invalid_request);
  EXPECT_EQ(whole_code(body_of(good + ",")), Errc::invalid_request);
  EXPECT_EQ(whole_code(body_of(good + ",{")), Errc::invalid_request);
  EXPECT_EQ(whole_code(body_of(good + ",nul")), Errc::invalid_request);
  EXPECT_EQ(whole_code(body_of("{\"id\":\"\xFF\",\"type\":\"t\"}")), Errc::invalid_request);
  EXPECT_EQ(whole_code(body_of(R"({"id":"\ud800","type":"t"})")), Errc::invalid_request);
  EXPECT_EQ(whole_code(fmt::format(R"({{"events":[{0}],"events":[{0}]}})", good)),
            Errc::invalid_request);
  EXPECT_EQ(whole_code(fmt::format(R"({{"events":[{}],"event":1}})", good)), Errc::unknown_field);
}

TEST(IngestBody, AProblemInsideAnEventNamesIt) {
  const std::string deep(63, '[');
  const Error error = whole_refusal_of(
      body_of(fmt::format(R"({{"id":"a","type":"t"}},{{"id":"b","type":"t","data":{}{}}})", deep,
                          std::string(63, ']'))));
  EXPECT_EQ(error.code, Errc::invalid_request);
  EXPECT_THAT(error.detail, StartsWith("events[1]: not valid JSON: "));
}

TEST(IngestBody, AHundredEventsAreTakenAndNoMore) {
  const auto many = [](std::size_t count) {
    std::string events;
    for (std::size_t i = 0; i < count; ++i) {
      events += fmt::format(R"({}{{"id":"{}","type":"t"}})", i == 0 ? "" : ",", i);
    }
    return body_of(events);
  };
  const auto events = parse(many(100));
  ASSERT_TRUE(events);
  EXPECT_EQ(events->size(), 100U);
  EXPECT_EQ(events->back()->job.key, "99");
  EXPECT_EQ(whole_code(many(101)), Errc::too_many_events);
}

TEST(IngestBody, EventsCountTogether) {
  const std::string event = R"({"id":"a","type":"t"})";
  const Limits limits{.max_payload_bytes = event.size(), .max_batch_bytes = 2 * event.size()};
  EXPECT_TRUE(parse(body_of(event + "," + event), limits));
  EXPECT_EQ(whole_refusal_of(body_of(event + "," + event + "," + event), limits).code,
            Errc::batch_too_large);
}

// Whatever came: no byte of a payload is ours, and nothing is taken from a body that is not JSON.
TEST(IngestBody, ADamagedBodyIsRefusedOrStoredAsItCame) {
  const std::string good = body_of(
      R"({"id":"a","type":"t","timestamp":"2026-01-31T08:15:00Z","data":{"x":[1,2.5,"\u00e9"]}},)"
      R"({"id":"b","type":"reprise.push","data":{"queue":"q","job":{"payload":{"y":1},"key":"k"}}})");
  constexpr std::string_view kBytes = "{}[]\",:\\ \n019.eE+-tfnu\x01\x80\xC3";
  SeededRandom random{20260131};
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string body = good;
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(body.size());
      body.replace(at, random.below(3), random.below(2), kBytes[random.below(kBytes.size())]);
    }
    const auto events = parse(body);
    if (!events) continue;
    // Numbers are kept as text, whatever their size.
    const auto problem = find_json_problem(body);
    ASSERT_TRUE(!problem || problem->problem == "number too large") << body;
    for (const Result<IngestEvent>& event : *events) {
      if (!event) continue;
      ++taken;
      ASSERT_NE(body.find(event->job.payload), std::string::npos) << body;
    }
  }
  EXPECT_GT(taken, 1000);
}

// --- reprise.push

std::string push_event(std::string_view data, std::string_view timestamp = "") {
  return fmt::format(R"({{"id":"01A","type":"reprise.push","data":{}{}}})", data,
                     timestamp.empty() ? "" : fmt::format(R"(,"timestamp":"{}")", timestamp));
}

TEST(PushEvent, CarriesAJobAsAPushDoes) {
  const IngestEvent event = event_of(push_event(
      R"({"namespace":"shop","queue":"orders","create":true,"job":{"payload":{"id": 1.0},"headers":{"h":"v"},)"
      R"("delay":"5s","priority":7,"ttl":"1h","fairness_key":"acme","weight":3,"throttle_keys":["x"]}})"));
  EXPECT_EQ(event.queue, (QueueName{"shop", "orders"}));
  EXPECT_TRUE(event.create);
  EXPECT_EQ(event.job.payload, R"({"id": 1.0})");
  EXPECT_THAT(event.job.headers, ElementsAre(Headers::value_type{"h", "v"}));
  EXPECT_EQ(event.job.delay, 5s);
  EXPECT_EQ(event.job.priority, 7U);
  EXPECT_EQ(event.job.ttl, 1h);
  EXPECT_EQ(event.job.scheduling,
            (Scheduling{.fairness_key = "acme", .weight = 3, .throttle_keys = {"x"}}));
  EXPECT_EQ(event.job.key, "01A");
  EXPECT_EQ(event.job.least_key_window, 24h);
}

TEST(PushEvent, HasDefaultsOfItsOwn) {
  const IngestEvent event = event_of(push_event(R"({"queue":"orders","job":{}})"));
  EXPECT_EQ(event.queue, (QueueName{"default", "orders"}));
  EXPECT_FALSE(event.create);
  EXPECT_EQ(event.job.payload, "null");
  EXPECT_TRUE(event.job.headers.empty());
}

TEST(PushEvent, AKeyOfItsOwnIsKeptAsLongAsItsQueueSays) {
  const IngestEvent event = event_of(push_event(R"({"queue":"q","job":{"key":"mine"}})"));
  EXPECT_EQ(event.job.key, "mine");
  EXPECT_EQ(event.job.least_key_window, 0s);
  EXPECT_EQ(event_of(push_event(R"({"queue":"q","job":{"key":null}})")).job.key, "01A");
}

TEST(PushEvent, BytesAreTakenToo) {
  const IngestEvent event =
      event_of(push_event(R"({"queue":"q","job":{"payload_base64":"AAH/"}})"));
  EXPECT_EQ(event.job.payload_kind, PayloadKind::bytes);
  EXPECT_EQ(event.job.payload, std::string("\x00\x01\xFF", 3));
}

TEST(PushEvent, OnlyItsJobMustFitThePayloadLimit) {
  const Limits limits{.max_payload_bytes = 30};
  const auto with_payload = [&](std::size_t bytes) {
    return push_event(
        fmt::format(R"({{"queue":"q","job":{{"payload":"{}"}}}})", std::string(bytes - 2, 'x')));
  };
  EXPECT_EQ(event_of(with_payload(30), limits).job.payload.size(), 30U);
  const Error error = refusal_of(with_payload(31), limits);
  EXPECT_EQ(error.code, Errc::payload_too_large);
  EXPECT_THAT(error.detail, StartsWith("events[0].data.job.payload is 31 bytes"));
}

TEST(PushEvent, DelayAndTtlCountFromItsTimestamp) {
  const auto job = [](std::string_view timestamp) {
    return event_of(push_event(R"({"queue":"q","job":{"delay":"1h","ttl":"2h"}})", timestamp)).job;
  };
  EXPECT_EQ(job("").delay, 1h);
  EXPECT_EQ(job("").ttl, 2h);
  EXPECT_EQ(job("2026-01-31T07:45:00Z").delay, 45min);
  EXPECT_EQ(job("2026-01-31T07:45:00Z").ttl, 1h + 45min);
  EXPECT_EQ(job("2026-01-31T06:30:00Z").delay, 0s);
  EXPECT_EQ(job("2026-01-31T06:30:00Z").ttl, 30min);
  EXPECT_EQ(job("1999-01-01T00:00:00Z").delay, 0s);
  EXPECT_EQ(job("1999-01-01T00:00:00Z").ttl, 1ms);
  EXPECT_EQ(job("2026-01-31T09:00:00Z").delay, 1h) << "a clock that is ahead adds nothing";
  EXPECT_EQ(job("2026-01-31T09:00:00Z").ttl, 2h);
}

TEST(PushEvent, WithoutATtlItHasNone) {
  EXPECT_EQ(event_of(push_event(R"({"queue":"q","job":{}})", "2026-01-31T07:00:00Z")).job.ttl,
            std::nullopt);
}

TEST(PushEvent, WhateverIsWrongRefusesThatEventOnly) {
  EXPECT_EQ(refusal_of(R"({"id":"a","type":"reprise.push"})").detail,
            "events[0]: the field 'data' is missing");
  EXPECT_EQ(refusal_code(push_event("1")), Errc::invalid_request);
  EXPECT_EQ(refusal_of(push_event(R"({"job":{}})")).detail,
            "events[0].data: the field 'queue' is missing");
  EXPECT_EQ(refusal_of(push_event(R"({"queue":"q"})")).detail,
            "events[0].data: the field 'job' is missing");
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","job":null})")), Errc::invalid_request);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","job":{},"x":1})")), Errc::unknown_field);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","job":{"x":1}})")), Errc::unknown_field);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","queue":"r","job":{}})")),
            Errc::invalid_request);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":".q","job":{}})")), Errc::invalid_name);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","namespace":"*","job":{}})")),
            Errc::invalid_name);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","create":1,"job":{}})")),
            Errc::invalid_request);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","job":{"ttl":0}})")), Errc::invalid_field);
  EXPECT_EQ(refusal_code(push_event(R"({"queue":"q","job":{"payload":1,"payload_base64":""}})")),
            Errc::invalid_request);
  EXPECT_EQ(refusal_of(push_event(R"({"queue":"q","job":{"key":""}})")).detail,
            "events[0].data.job.key must not be empty");
}

}  // namespace
}  // namespace reprise::server
