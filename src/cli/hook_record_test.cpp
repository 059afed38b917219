#include "cli/hook_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

constexpr Terminal kPipe{};
constexpr Terminal kScreen{.out_is_tty = true};

constexpr char kQueue[] =
    R"({"config":{"on_enqueue":null,"on_failure":"function on_failure()\nend\n"},)"
    R"("hooks":{"on_failure":{"version":"3f9a1c0b22d4","breaker":"open",)"
    R"("open_until":"2026-01-31T08:15:08.000Z","failures_in_a_row":3,"opened":2,"in_flight":1,)"
    R"("succeeded":12,"remembered":9,"failed":{"error":2,"timeout":0,"memory":1},)"
    R"("last_error":"line 3: \u001b[31mred","last_error_at":"2026-01-31T08:14:58.000Z"}}})";

Timestamp now() { return *parse_timestamp("2026-01-31T08:15:00.000Z"); }

TEST(HookRecord, AHookIsToldByItsVersion) {
  const JsonView queue(kQueue);
  EXPECT_EQ(version_of_hook(queue, HookKind::on_failure), "3f9a1c0b22d4");
  EXPECT_EQ(version_of_hook(queue, HookKind::on_enqueue), "");
  EXPECT_EQ(hook_source_cell(queue, HookKind::on_failure, kScreen).text(),
            "3f9a1c0b22d4 (2 lines)");
  EXPECT_EQ(hook_source_cell(queue, HookKind::on_failure, kPipe).text(), "3f9a1c0b22d4");
  EXPECT_EQ(hook_source_cell(queue, HookKind::on_enqueue, kScreen).text(), "-");
}

TEST(HookRecord, ALastLineWithoutItsEndCounts) {
  const JsonView queue(R"({"config":{"on_failure":"x"},"hooks":{"on_failure":{"version":"v"}}})");
  EXPECT_EQ(hook_source_cell(queue, HookKind::on_failure, kScreen).text(), "v (1 line)");
}

TEST(HookRecord, PeopleReadStateAndCounts) {
  Record record(kScreen);
  add_hooks(record, JsonView(kQueue), kScreen, now());
  const auto text = record.text();
  EXPECT_THAT(text, HasSubstr("Hook on_failure"));
  EXPECT_THAT(text, HasSubstr("open for another 8s (has opened 2 times)\n"));
  EXPECT_THAT(text, HasSubstr("12 (9 remembered)\n"));
  EXPECT_THAT(text, HasSubstr("error 2, memory 1\n"));
  EXPECT_THAT(text, HasSubstr("line 3: \\u001b[31mred  (2s ago)\n"));
}

TEST(HookRecord, PipedItIsAsDeepAsTheReply) {
  Record record(kPipe);
  add_hooks(record, JsonView(kQueue), kPipe, now());
  EXPECT_THAT(record.text(), HasSubstr("hooks.on_failure.failed.memory\t1\n"));
  EXPECT_THAT(record.text(), HasSubstr("hooks.on_failure.open_until\t2026-01-31T08:15:08.000Z\n"));
}

TEST(HookRecord, AQueueWithoutHooksHasNothingToTell) {
  for (const char* queue : {R"({"config":{"on_failure":null},"hooks":{}})", "{}"}) {
    Record record(kPipe);
    add_hooks(record, JsonView(queue), kPipe, now());
    EXPECT_EQ(record.text(), "FIELD\tVALUE\n");
    EXPECT_EQ(version_of_hook(JsonView(queue), HookKind::on_failure), "");
  }
}

}  // namespace
}  // namespace reprise::cli
