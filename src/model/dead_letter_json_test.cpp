#include "model/dead_letter_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/json.h"

namespace reprise {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const Timestamp kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12);
const QueueName kOrders{"default", "orders"};

JobRecord order() {
  JobRecord record;
  record.pushed_at = kNoon;
  record.key = "k1";
  record.headers = {{"tenant", "a"}};
  record.payload = R"({"id": 1.0})";
  return record;
}

JobState death() {
  JobState state;
  state.status = JobStatus::dead;
  state.attempts = 1;
  state.failures = 1;
  state.first_attempt_at = kNoon + seconds(1);
  state.generation = 2;
  state.last_error = "timeout";
  state.last_error_type = "Timeout";
  state.history = {{.number = 1,
                    .started_at = kNoon + seconds(1),
                    .ended_at = kNoon + seconds(2),
                    .outcome = AttemptOutcome::failed,
                    .worker = "host-1",
                    .error = "timeout",
                    .error_type = "Timeout"}};
  state.death_reason = DeathReason::max_attempts;
  state.ended_at = kNoon + seconds(3);
  return state;
}

std::string letter(const JobRecord& record, const JobState& state) {
  JsonWriter out;
  write_dead_letter(out, kOrders, 1, record, state);
  return out.take();
}

TEST(DeadLetter, HasTheDocumentedFields) {
  EXPECT_EQ(
      letter(order(), death()),
      R"({"event":{"id":")" + encode_job_id(1) +
          R"(","queue":"orders","namespace":"default","payload":{"id": 1.0},)"
          R"("headers":{"tenant":"a"},"priority":1000,"fairness_key":"default","weight":1,)"
          R"("throttle_keys":[],"key":"k1",)"
          R"("pushed_at":"2026-01-31T12:00:00.000Z"},"meta":{"attempts":1,)"
          R"("generation":2,"lastError":"timeout","lastErrorType":"Timeout",)"
          R"("firstAttemptAt":"2026-01-31T12:00:01.000Z",)"
          R"("deadLetteredAt":"2026-01-31T12:00:03.000Z","reason":"max_attempts",)"
          R"("decidedBy":"policy","history":[{"at":"2026-01-31T12:00:01.000Z",)"
          R"("worker":"host-1","error":"timeout","errorType":"Timeout","outcome":"failed"}]}})");
}

TEST(DeadLetter, ADeathByAHookHasItsWordsAndItsVersion) {
  JobState state = death();
  state.death_reason = DeathReason::hook;
  state.decided_by = DecidedBy::hook;
  state.hook_version = "3f9a1c0b22d4";
  EXPECT_THAT(letter(order(), state),
              HasSubstr(R"("reason":"hook","decidedBy":"hook:3f9a1c0b22d4")"));
  state.death_note = "too late";
  EXPECT_THAT(letter(order(), state),
              HasSubstr(R"("reason":"too late","decidedBy":"hook:3f9a1c0b22d4")"));
}

TEST(DeadLetter, HasTheAttributesOfItsPush) {
  JobRecord record = order();
  record.scheduling = {.fairness_key = "acme", .weight = 7, .throttle_keys = {"api", "eu"}};
  EXPECT_THAT(letter(record, death()),
              HasSubstr(R"("fairness_key":"acme","weight":7,"throttle_keys":["api","eu"],"key")"));
}

TEST(DeadLetter, AJobThatWasNeverTriedHasNulls) {
  JobState state;
  state.status = JobStatus::dead;
  state.death_reason = DeathReason::expired;
  JobRecord record = order();
  record.key.clear();
  const std::string text = letter(record, state);
  EXPECT_THAT(text, HasSubstr(R"("key":null)"));
  EXPECT_THAT(text, HasSubstr(R"("generation":1,"lastError":null,"lastErrorType":null)"));
  EXPECT_THAT(text, HasSubstr(R"("firstAttemptAt":null)"));
  EXPECT_THAT(text, HasSubstr(R"("reason":"expired","decidedBy":"policy","history":[])"));
}

TEST(DeadLetter, AnyBytesMakeValidJson) {
  JobRecord record = order();
  record.payload_kind = PayloadKind::bytes;
  record.payload = "\xff\0\"";
  record.headers = {{"x", "\xff\n"}};
  JobState state = death();
  state.last_error = "\xff\"\x01";
  const std::string text = letter(record, state);
  EXPECT_TRUE(Json::parse(text)) << text;
  EXPECT_THAT(text, HasSubstr(R"("payload_base64":"/w==")"));
}

TEST(DeadEvent, HasTheDocumentedFields) {
  JsonWriter out;
  write_dead_event(out, {.event = R"({"id": "01", "n": 1.0})",
                         .attempts = 10,
                         .last_error = "unknown customer",
                         .first_attempt_at = "2026-01-31T11:00:00.000Z",
                         .dead_lettered_at = kNoon,
                         .queue_file = "01.json",
                         .reason = "max_attempts"});
  EXPECT_EQ(out.text(),
            R"({"event":{"id": "01", "n": 1.0},"meta":{"attempts":10,)"
            R"("lastError":"unknown customer","firstAttemptAt":"2026-01-31T11:00:00.000Z",)"
            R"("deadLetteredAt":"2026-01-31T12:00:00.000Z","queueFile":"01.json",)"
            R"("reason":"max_attempts","decidedBy":"policy","history":[]}})");
}

TEST(DeadEvent, OfWhatWasNoneThereAreTheBytes) {
  JsonWriter out;
  write_dead_event(out, {.last_error = "Corrupt event file: \xFF",
                         .dead_lettered_at = kNoon,
                         .queue_file = "\xFF.json",
                         .reason = "corrupt",
                         .raw_file = "01.raw"});
  const std::string text = out.take();
  EXPECT_TRUE(Json::parse(text)) << text;
  EXPECT_THAT(text, HasSubstr(R"({"event":null,"meta":{"attempts":0,)"));
  EXPECT_THAT(text, HasSubstr(R"("firstAttemptAt":null)"));
  EXPECT_THAT(text, HasSubstr(R"("history":[],"rawFile":"01.raw"}})"));
}

}  // namespace
}  // namespace reprise
