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
          R"("headers":{"tenant":"a"},"priority":1000,"key":"k1",)"
          R"("pushed_at":"2026-01-31T12:00:00.000Z"},"meta":{"attempts":1,)"
          R"("generation":2,"lastError":"timeout","lastErrorType":"Timeout",)"
          R"("firstAttemptAt":"2026-01-31T12:00:01.000Z",)"
          R"("deadLetteredAt":"2026-01-31T12:00:03.000Z","reason":"max_attempts",)"
          R"("decidedBy":"policy","history":[{"at":"2026-01-31T12:00:01.000Z",)"
          R"("worker":"host-1","error":"timeout","errorType":"Timeout","outcome":"failed"}]}})");
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

}  // namespace
}  // namespace reprise
