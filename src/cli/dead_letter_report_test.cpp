#include "cli/dead_letter_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json_view.h"
#include "cli/exit_code.h"

namespace reprise::cli {
namespace {

using spool::DeadLetter;

DeadLetter rejected() {
  DeadLetter letter;
  letter.name = "01KA.json";
  letter.id = "01KA";
  letter.type = "order.created";
  letter.attempts = 10;
  letter.last_error = "unknown\ncustomer";
  letter.dead_lettered_at = "2026-01-31T08:15:00.250Z";
  letter.reason = "max_attempts";
  return letter;
}

DeadLetter corrupt() {
  DeadLetter letter;
  letter.name = "bad.json";
  letter.id = "bad";
  letter.last_error = "Corrupt event file: no object";
  letter.reason = "corrupt";
  letter.cannot_retry = "corrupt: no object";
  return letter;
}

const Terminal kPipe{};
const Terminal kTty{.in_is_tty = true, .out_is_tty = true, .err_is_tty = true};

TEST(DeadLetters, AreATableWhenPiped) {
  const std::vector<DeadLetter> letters{rejected(), corrupt()};
  EXPECT_EQ(dead_letters_table(letters, kPipe, true),
            "ID\tEVENT TYPE\tATTEMPTS\tLAST ERROR\tDEAD-LETTERED AT\n"
            "01KA\torder.created\t10\tunknown\\ncustomer\t2026-01-31T08:15:00.250Z\n"
            "bad\t-\t0\tCorrupt event file: no object\t-\n");
  EXPECT_EQ(dead_letters_table({}, kPipe, true),
            "ID\tEVENT TYPE\tATTEMPTS\tLAST ERROR\tDEAD-LETTERED AT\n");
}

TEST(DeadLetters, AreJson) {
  const std::vector<DeadLetter> letters{rejected(), corrupt()};
  const std::string text = dead_letters_json(letters);
  const auto listed = JsonView(text)["deadLetters"].elements();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].raw(),
            R"({"id":"01KA","type":"order.created","attempts":10,)"
            R"("lastError":"unknown\ncustomer","deadLetteredAt":"2026-01-31T08:15:00.250Z",)"
            R"("reason":"max_attempts","file":"01KA.json","retryable":true})");
  EXPECT_TRUE(listed[1]["type"].is_null());
  EXPECT_EQ(listed[1]["retryable"].raw(), "false");
}

constexpr char kEnvelope[] =
    R"({"event": {"id": "01KA", "data": 1.0}, "meta": {"attempts": 10, "history": []}})";

TEST(DeadLetter, AsJsonIsWhatIsStored) {
  const std::string text = dead_letter_json(rejected(), kEnvelope, "");
  EXPECT_EQ(text, fmt::format("{}\n", kEnvelope));
}

TEST(DeadLetter, BytesThatAreNoJsonAreAFieldOfIt) {
  const std::string text = dead_letter_json(corrupt(), "not json", "not json");
  EXPECT_EQ(JsonView(text)["raw"].string_or(""), "not json");
  EXPECT_TRUE(JsonView(text)["event"].is_null());
}

TEST(DeadLetter, PipedIsItsFields) {
  const std::string text = dead_letter_record(rejected(), kEnvelope, "", kPipe);
  EXPECT_TRUE(
      text.starts_with("FIELD\tVALUE\nevent.id\t01KA\nevent.data\t1.0\nmeta.attempts\t10\n"))
      << text;
}

TEST(DeadLetter, OnATerminalTheEventIsLaidOut) {
  const std::string text = dead_letter_record(rejected(), kEnvelope, "", kTty);
  EXPECT_NE(text.find("unknown\\ncustomer"), std::string::npos) << text;
  EXPECT_NE(text.find("\nEvent\n{\n  \"id\": \"01KA\",\n  \"data\": 1.0\n}\n"), std::string::npos)
      << text;
}

TEST(DeadLetter, RawBytesAreShownEscaped) {
  const std::string text = dead_letter_record(corrupt(), R"({"event":null,"meta":{}})",
                                              std::string_view("\x1b[2J\xff{", 6), kTty);
  EXPECT_NE(text.find("\\u001b[2J\\xff{"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nEvent\n"), std::string::npos) << text;
}

TEST(DeadLettersDone, SaysWhatBecameOfEach) {
  const DeadLettersDone done{
      .done = 3, .skipped = {{"bad", "corrupt: no object"}}, .not_found = {"01KZ"}};
  EXPECT_EQ(done_text(kRetryVerb, done), "retried 3, skipped 1, not found 1\n");
  EXPECT_EQ(done_json(kRetryVerb, done),
            "{\"retried\":3,\"skipped\":[{\"id\":\"bad\",\"reason\":\"corrupt: no object\"}],"
            "\"notFound\":[\"01KZ\"]}\n");
  EXPECT_EQ(done_exit_code(done), kExitRefused);
  const auto problems = done_problems(done);
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].code, "wrong_status");
  EXPECT_EQ(problems[0].message, "bad: corrupt: no object");
  EXPECT_EQ(problems[1].message, "no dead letter '01KZ'");
}

TEST(DeadLettersDone, TroubleWithTheDiskIsNoStatus) {
  const auto problems = done_problems({.skipped = {{"a", "Input/output error", Errc::io}}});
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].code, errc_info(Errc::io).wire_name);
}

TEST(DeadLettersDone, OneThatWasSkippedOrNotFoundIsEnoughForOne) {
  EXPECT_EQ(done_exit_code({.done = 3, .skipped = {{"bad", "corrupt"}}, .not_found = {}}),
            kExitRefused);
  EXPECT_EQ(done_exit_code({.done = 3, .skipped = {}, .not_found = {"01KZ"}}), kExitRefused);
  EXPECT_EQ(done_exit_code({.done = 3, .skipped = {}, .not_found = {}}), kExitOk);
}

TEST(DeadLettersDone, ADryRunSaysSo) {
  const DeadLettersDone done{.done = 2, .skipped = {}, .not_found = {}, .dry_run = true};
  EXPECT_EQ(done_text(kPurgeVerb, done), "would purge 2, skip 0, not found 0\n");
  EXPECT_EQ(done_json(kPurgeVerb, done),
            "{\"purged\":2,\"skipped\":[],\"notFound\":[],\"dryRun\":true}\n");
  EXPECT_EQ(done_exit_code(done), kExitOk);
}

}  // namespace
}  // namespace reprise::cli
