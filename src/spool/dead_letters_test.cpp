#include "spool/dead_letters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "support/crashing.h"
#include "support/files.h"
#include "support/spool_crash.h"
#include "support/temp_directory.h"

namespace reprise::spool {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;
using test::names_in;
using test::read_file;
using test::write_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const Timestamp kNow{std::chrono::milliseconds(1'700'000'000'250)};
const std::string kId = "01KA5QH3M5T6W0V8Z2Y4X6C8B1";
const std::string kName = kId + ".json";
const std::string kEvent = R"({"id":")" + kId + R"(", "type":"order.created","data":1.0})";

SpooledEvent tried() {
  auto event = *parse_event(kEvent);
  event.attempts = 10;
  event.first_attempt_at = "2023-11-14T22:00:00.000Z";
  return event;
}

class DeadLettersTest : public testing::Test {
 protected:
  DeadLettersTest() : files_(std::move(*SpoolFiles::create(directory_.path()))), letters_(files_) {}

  fs::path queue() const { return directory_ / "queue"; }
  fs::path dead() const { return directory_ / "dead-letter"; }
  void bury_event() {
    write_file(queue() / kName, event_file_text(tried()));
    const auto buried =
        letters_.bury(kName, tried(), DeathReason::max_attempts, "unknown customer", kNow);
    ASSERT_TRUE(buried) << buried.error().detail;
  }
  void bury_bytes(const std::string& bytes, const std::string& name = kName) {
    write_file(queue() / name, bytes);
    const auto buried =
        letters_.bury_raw(name, DeathReason::corrupt, "Corrupt event file: it is bad", kNow);
    ASSERT_TRUE(buried) << buried.error().detail;
  }
  std::vector<DeadLetter> listed() {
    warnings_.clear();
    return *letters_.list(warnings_);
  }
  DeadLetter only() {
    const auto all = listed();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? DeadLetter{} : all.front();
  }

  test::TempDirectory directory_;
  SpoolFiles files_;
  DeadLetters letters_;
  std::vector<std::string> warnings_;
};

TEST_F(DeadLettersTest, AnEventIsBuriedInItsEnvelope) {
  bury_event();
  EXPECT_THAT(names_in(queue()), IsEmpty());
  EXPECT_THAT(names_in(dead()), ElementsAre(kName));
  EXPECT_EQ(read_file(dead() / kName),
            R"({"event":)" + kEvent +
                R"(,"meta":{"attempts":10,"lastError":"unknown customer",)"
                R"("firstAttemptAt":"2023-11-14T22:00:00.000Z",)"
                R"("deadLetteredAt":"2023-11-14T22:13:20.250Z","queueFile":")" +
                kName + R"(","reason":"max_attempts","decidedBy":"policy","history":[]}})" + "\n");
  struct stat info {};
  ASSERT_EQ(::stat((dead() / kName).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(DeadLettersTest, ALongErrorIsCut) {
  write_file(queue() / kName, kEvent);
  ASSERT_TRUE(
      letters_.bury(kName, tried(), DeathReason::max_attempts, std::string(100'000, 'x'), kNow));
  EXPECT_EQ(only().last_error.size(), kMaxLastErrorBytes);
}

TEST_F(DeadLettersTest, ABurialThatWasCutOffIsFinished) {
  bury_event();
  const std::string envelope = read_file(dead() / kName);
  bury_event();
  EXPECT_THAT(names_in(dead()), ElementsAre(kName));
  EXPECT_THAT(names_in(queue()), IsEmpty());
  EXPECT_EQ(read_file(dead() / kName), envelope);
}

TEST_F(DeadLettersTest, AnotherEventOfThatNameIsNeverOverwritten) {
  write_file(dead() / kName, "somebody else's");
  fs::create_directory(dead() / (kId + "~1.json"));
  bury_event();
  EXPECT_THAT(names_in(dead()), ElementsAre(kName, kId + "~1.json", kId + "~2.json"));
  EXPECT_EQ(read_file(dead() / kName), "somebody else's");
  EXPECT_THAT(read_file(dead() / (kId + "~2.json")), HasSubstr(kEvent));
  EXPECT_THAT(names_in(queue()), IsEmpty());
}

TEST_F(DeadLettersTest, BytesAreKeptBesideTheirEnvelope) {
  bury_bytes(std::string("\0\xFF{", 3));
  EXPECT_THAT(names_in(dead()), ElementsAre(kName, kId + ".raw"));
  EXPECT_EQ(read_file(dead() / (kId + ".raw")), std::string("\0\xFF{", 3));
  const auto json = Json::parse(read_file(dead() / kName));
  ASSERT_TRUE(json);
  EXPECT_TRUE((*json)["event"].is_null());
  const Json& meta = (*json)["meta"];
  EXPECT_EQ(meta["attempts"].integer(), 0);
  EXPECT_EQ(meta["reason"].string_or(""), "corrupt");
  EXPECT_EQ(meta["lastError"].string_or(""), "Corrupt event file: it is bad");
  EXPECT_EQ(meta["rawFile"].string_or(""), kId + ".raw");
  EXPECT_TRUE(meta["firstAttemptAt"].is_null());
  EXPECT_THAT(names_in(queue()), IsEmpty());
}

TEST_F(DeadLettersTest, BytesOfAnotherFileAreNeverOverwritten) {
  bury_bytes("one");
  bury_bytes("two");
  bury_bytes("two");
  const std::string stem = kId + "~1";
  EXPECT_THAT(names_in(dead()), ElementsAre(kName, kId + ".raw", stem + ".json", stem + ".raw"));
  EXPECT_EQ(read_file(dead() / (kId + ".raw")), "one");
  EXPECT_EQ(read_file(dead() / (stem + ".raw")), "two");
  EXPECT_EQ(listed().size(), 2U);
  // Bytes alone are in the way too.
  write_file(dead() / "x.raw", "old");
  bury_bytes("new", "x.json");
  EXPECT_EQ(read_file(dead() / "x.raw"), "old");
  EXPECT_EQ(read_file(dead() / "x~1.raw"), "new");
}

TEST_F(DeadLettersTest, AnEventsEnvelopeIsNotThatOfBytes) {
  bury_event();
  bury_bytes("bytes");
  EXPECT_THAT(names_in(dead()), ElementsAre(kName, kId + "~1.json", kId + "~1.raw"));
}

TEST_F(DeadLettersTest, TheLongestNameCanBeBuriedTwice) {
  const std::string name = std::string(250, 'n') + ".json";
  bury_bytes("one", name);
  bury_bytes("two", name);
  EXPECT_EQ(listed().size(), 2U);
  EXPECT_EQ(names_in(dead()).size(), 4U);
}

TEST_F(DeadLettersTest, AHugeFileIsBuriedAtOnce) {
  write_file(queue() / kName, "x");
  ASSERT_EQ(::truncate((queue() / kName).c_str(), off_t{1} << 30), 0);
  ASSERT_TRUE(letters_.bury_raw(kName, DeathReason::too_large, "1 GiB", kNow));
  EXPECT_EQ(fs::file_size(dead() / (kId + ".raw")), std::uintmax_t{1} << 30);
  EXPECT_EQ(letters_.raw_head(only(), 1), "x");
  EXPECT_EQ(only().cannot_retry, "too large: 1 GiB");
}

TEST_F(DeadLettersTest, AFullDiskLeavesTheEventWhereItWas) {
  for (const bool raw : {false, true}) {
    write_file(queue() / kName, kEvent);
    const auto end = test::run_in_child([&] {
      test::limit_file_size(16);
      return (raw ? letters_.bury_raw(kName, DeathReason::corrupt, "bad", kNow)
                  : letters_.bury(kName, tried(), DeathReason::max_attempts, "bad", kNow))
          .has_value();
    });
    EXPECT_EQ(end, test::ChildEnd::failed);
    EXPECT_THAT(names_in(dead()), IsEmpty());
    EXPECT_EQ(read_file(queue() / kName), kEvent);
  }
}

TEST_F(DeadLettersTest, AFileThatCannotLeaveTheQueueIsNotBuried) {
  // Nobody, not even root, can unlink a directory this way.
  const auto replace_by_directory = [&](std::string_view step) {
    if (step != "directory synced") return;
    fs::remove(queue() / kName);
    fs::create_directory(queue() / kName);
  };
  for (const bool raw : {false, true}) {
    fs::remove(queue() / kName);
    write_file(queue() / kName, kEvent);
    files_.set_step_observer(replace_by_directory);
    const auto buried = raw ? letters_.bury_raw(kName, DeathReason::corrupt, "bad", kNow)
                            : letters_.bury(kName, tried(), DeathReason::max_attempts, "", kNow);
    files_.set_step_observer({});
    ASSERT_FALSE(buried);
    EXPECT_THAT(buried.error().detail, HasSubstr("queue/" + kName));
    EXPECT_THAT(names_in(dead()), IsEmpty());
  }
}

TEST_F(DeadLettersTest, AListTellsWhatPeopleWantToKnow) {
  bury_event();
  const DeadLetter letter = only();
  EXPECT_EQ(letter.name, kName);
  EXPECT_EQ(letter.id, kId);
  EXPECT_EQ(letter.type, "order.created");
  EXPECT_EQ(letter.attempts, 10U);
  EXPECT_EQ(letter.last_error, "unknown customer");
  EXPECT_EQ(letter.dead_lettered_at, format_timestamp(kNow));
  EXPECT_EQ(letter.reason, "max_attempts");
  EXPECT_TRUE(letter.has_envelope);
  EXPECT_EQ(letter.cannot_retry, "");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(DeadLettersTest, TheNewestIsListedFirst) {
  for (const int age : {2, 1, 3}) {
    const std::string name = std::to_string(age) + ".json";
    write_file(queue() / name, kEvent);
    ASSERT_TRUE(letters_.bury(name, tried(), DeathReason::max_attempts, "", kNow - hours(age)));
  }
  std::vector<std::string> names;
  for (const auto& letter : listed()) names.push_back(letter.name);
  EXPECT_THAT(names, ElementsAre("1.json", "2.json", "3.json"));
}

TEST_F(DeadLettersTest, FilesWithoutAnEnvelopeAreListedToo) {
  write_file(dead() / "event.json",
             R"({"_attempts":2,"_lastError":"no","event":"x",)" + kEvent.substr(1));
  const DeadLetter event = only();
  EXPECT_EQ(event.id, kId);
  EXPECT_EQ(event.type, "order.created");
  EXPECT_EQ(event.attempts, 2U);
  EXPECT_EQ(event.last_error, "no");
  EXPECT_FALSE(event.has_envelope);
  EXPECT_EQ(event.cannot_retry, "");
  EXPECT_EQ(event.dead_lettered_at.size(), format_timestamp(kNow).size());
  fs::remove(dead() / "event.json");

  write_file(dead() / "other.json", R"({"event":)" + kEvent + "}");
  EXPECT_TRUE(only().has_envelope);
  EXPECT_EQ(only().id, kId);
  EXPECT_EQ(only().cannot_retry, "");
  fs::remove(dead() / "other.json");

  write_file(dead() / "bytes.raw", "");
  EXPECT_EQ(only().id, "bytes");
  EXPECT_EQ(only().name, "bytes.raw");
  EXPECT_THAT(only().cannot_retry, StartsWith("corrupt: "));
}

TEST_F(DeadLettersTest, WhatIsNoEventIsListedWithWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", "corrupt: not valid JSON: expected a field name in double quotes at line 1, column 2"},
      {"", "corrupt: it is empty"},
      {"{}", "corrupt: `id` is missing"},
      {"[1]", "corrupt: an event is a JSON object; this is an array"},
      {R"({"event":{"id":"x"}})", "corrupt: `id` is no ULID: \"x\""},
      {R"({"event":null})", "corrupt: there is no event in it"},
      {R"({"event":7,"meta":[]})", "corrupt: an event is a JSON object; this is a number"},
  };
  for (const auto& [text, problem] : cases) {
    write_file(dead() / "x.json", text);
    EXPECT_EQ(only().id, "x") << text;
    EXPECT_EQ(only().cannot_retry, problem) << text;
    EXPECT_EQ(letters_.retry(only()).error().detail, problem) << text;
  }
  EXPECT_TRUE(*letters_.purge(only()));
  bury_bytes("x");
  EXPECT_EQ(only().cannot_retry, "corrupt: it is bad");
}

TEST_F(DeadLettersTest, AbsurdFilesAreListedWithoutReadingThem) {
  write_file(dead() / "x.json", "{");
  ASSERT_EQ(::truncate((dead() / "x.json").c_str(), off_t{1} << 30), 0);
  EXPECT_THAT(only().cannot_retry, StartsWith("too large: 1073741824 bytes"));
  EXPECT_FALSE(letters_.show(only()));
  fs::create_symlink("x.json", dead() / "link.json");
  EXPECT_EQ(only().name, "x.json");
  EXPECT_THAT(warnings_, ElementsAre("dead-letter/link.json: a symbolic link"));
  EXPECT_TRUE(*letters_.purge(only()));
}

TEST_F(DeadLettersTest, AnEventThatIsTooLargeStaysDead) {
  write_file(dead() / kName, R"({"event":{"id":")" + kId + R"(","x":")" +
                                 std::string(kMaxEventBytes, 'x') + "\"}}");
  EXPECT_THAT(only().cannot_retry, StartsWith("too large: "));
  EXPECT_FALSE(letters_.retry(only()));
}

TEST_F(DeadLettersTest, IsShownAsItIsStored) {
  bury_event();
  EXPECT_EQ(*letters_.show(only()), read_file(dead() / kName));
  EXPECT_EQ(letters_.raw_head(only(), 100), "");
  ASSERT_TRUE(*letters_.purge(only()));
  bury_bytes("some bytes");
  EXPECT_EQ(letters_.raw_head(only(), 4), "some");
  const auto letter = only();
  ASSERT_TRUE(*letters_.purge(letter));
  EXPECT_FALSE(letters_.show(letter));
  write_file(dead() / "x.raw", "a\xFF");
  EXPECT_EQ(*letters_.show(only()), "a\uFFFD");
  EXPECT_EQ(letters_.raw_head(only(), 100), "a\xFF");
  fs::remove(dead() / "x.raw");
  write_file(dead() / "x.json", "{no");
  EXPECT_EQ(letters_.raw_head(only(), 2), "{n");
}

TEST_F(DeadLettersTest, ARetryPutsTheEventBackWithoutBookkeeping) {
  bury_event();
  const auto letter = only();
  EXPECT_TRUE(*letters_.retry(letter));
  EXPECT_THAT(names_in(dead()), IsEmpty());
  EXPECT_THAT(names_in(queue()), ElementsAre(kName));
  EXPECT_EQ(read_file(queue() / kName), kEvent);
  EXPECT_FALSE(*letters_.retry(letter));
}

TEST_F(DeadLettersTest, ARetryTakesFilesWithoutAnEnvelopeToo) {
  write_file(dead() / "event.json", R"({"_attempts":2,)" + kEvent.substr(1));
  EXPECT_TRUE(*letters_.retry(only()));
  EXPECT_EQ(read_file(queue() / kName), kEvent);
  fs::remove(queue() / kName);
  write_file(dead() / "x.json", R"({"event":)" + kEvent + R"(,"meta":{"queueFile":"../x.json"}})");
  EXPECT_TRUE(*letters_.retry(only()));
  EXPECT_EQ(read_file(queue() / kName), kEvent);
  EXPECT_THAT(names_in(dead()), IsEmpty());
  EXPECT_THAT(names_in(directory_.path()), ElementsAre("dead-letter", "queue"));
}

TEST_F(DeadLettersTest, AnEventThatIsQueuedAlreadyStaysAsItIsThere) {
  bury_event();
  const std::string counted = event_file_text(tried());
  write_file(queue() / kName, counted);
  EXPECT_TRUE(*letters_.retry(only()));
  EXPECT_EQ(read_file(queue() / kName), counted);
  EXPECT_THAT(names_in(dead()), IsEmpty());
}

TEST_F(DeadLettersTest, ARetryNeverOverwritesAnotherEvent) {
  bury_event();
  write_file(queue() / kName, "another");
  EXPECT_TRUE(*letters_.retry(only()));
  EXPECT_EQ(read_file(queue() / kName), "another");
  EXPECT_EQ(read_file(queue() / (kId + "~1.json")), kEvent);
}

TEST_F(DeadLettersTest, ARetryThatFailsLeavesTheDeadLetter) {
  bury_event();
  const auto letter = only();
  const auto end = test::run_in_child([&] {
    test::limit_file_size(16);
    return letters_.retry(letter).has_value();
  });
  EXPECT_EQ(end, test::ChildEnd::failed);
  EXPECT_THAT(names_in(dead()), ElementsAre(kName));
  EXPECT_THAT(names_in(queue()), IsEmpty());
}

TEST_F(DeadLettersTest, PurgingTakesTheBytesToo) {
  bury_bytes("one");
  EXPECT_TRUE(*letters_.purge(only()));
  EXPECT_THAT(names_in(dead()), IsEmpty());
  bury_event();
  const auto letter = only();
  EXPECT_TRUE(*letters_.purge(letter));
  EXPECT_FALSE(*letters_.purge(letter));
}

TEST_F(DeadLettersTest, AnEnvelopeCannotNameOtherFiles) {
  write_file(dead() / "other.raw", "bytes");
  write_file(queue() / "a.raw", "bytes");
  for (const std::string raw : {"other.raw", "../queue/a.raw"}) {
    write_file(dead() / "x.json", R"({"event":null,"meta":{"rawFile":")" + raw + "\"}}");
    EXPECT_TRUE(*letters_.purge({.name = "x.json"}));
  }
  EXPECT_THAT(names_in(dead()), ElementsAre("other.raw"));
  EXPECT_THAT(names_in(queue()), ElementsAre("a.raw"));
}

TEST(DeadLetterFilter, AllOfItMustHold) {
  const DeadLetter letter{.type = "order.created",
                          .last_error = "Unknown CUSTOMER 7",
                          .dead_lettered_at = format_timestamp(kNow),
                          .reason = "max_attempts"};
  EXPECT_FALSE(DeadLetterFilter{}.any());
  EXPECT_TRUE(DeadLetterFilter{}.fits(letter));
  EXPECT_TRUE(DeadLetterFilter{.type = "order.*"}.fits(letter));
  EXPECT_FALSE(DeadLetterFilter{.type = "order"}.fits(letter));
  EXPECT_TRUE(DeadLetterFilter{.error = "customer"}.fits(letter));
  EXPECT_TRUE(DeadLetterFilter{.error = ""}.fits(letter));
  EXPECT_FALSE(DeadLetterFilter{.error = "customers"}.fits(letter));
  EXPECT_TRUE(DeadLetterFilter{.reason = "max_attempts"}.fits(letter));
  EXPECT_FALSE(DeadLetterFilter{.reason = "max"}.fits(letter));
  EXPECT_TRUE(DeadLetterFilter{.before = kNow + hours(1)}.fits(letter));
  EXPECT_FALSE(DeadLetterFilter{.before = kNow - hours(1)}.fits(letter));
  EXPECT_TRUE(DeadLetterFilter{.after = kNow - hours(1)}.fits(letter));
  EXPECT_FALSE(DeadLetterFilter{.after = kNow + hours(1)}.fits(letter));
  EXPECT_FALSE((DeadLetterFilter{.type = "order.*", .error = "nothing"}.fits(letter)));
}

// The event is in the queue or among the dead, whole, whenever a crash comes; and the same call
// finishes what was begun.
class CrashOfBurial : public testing::TestWithParam<bool> {};

TEST_P(CrashOfBurial, LosesNothing) {
  const bool raw = GetParam();
  const auto bury = [raw](SpoolFiles& files) {
    DeadLetters letters(files);
    return (raw ? letters.bury_raw(kName, DeathReason::corrupt, "bad", kNow)
                : letters.bury(kName, tried(), DeathReason::max_attempts, "bad", kNow))
        .has_value();
  };
  test::crash_at_every_step(
      [](const fs::path& spool) { write_file(spool / "queue" / kName, kEvent); }, bury,
      [&](SpoolFiles& files, test::ChildEnd end) {
        const fs::path queue = files.directory() / "queue";
        const fs::path dead = files.directory() / "dead-letter";
        const bool queued = fs::exists(queue / kName);
        const bool buried = fs::exists(dead / kName);
        ASSERT_TRUE(queued || buried);
        EXPECT_TRUE(end == test::ChildEnd::killed || !queued);
        if (queued) {
          EXPECT_EQ(read_file(queue / kName), kEvent);
          EXPECT_TRUE(bury(files));
        }
        EXPECT_FALSE(fs::exists(queue / kName));
        EXPECT_TRUE(Json::parse(read_file(dead / kName)));
        if (raw) {
          EXPECT_THAT(names_in(dead), ElementsAre(kName, kId + ".raw"));
          EXPECT_EQ(read_file(dead / (kId + ".raw")), kEvent);
        } else {
          EXPECT_THAT(names_in(dead), ElementsAre(kName));
          EXPECT_THAT(read_file(dead / kName), HasSubstr(kEvent));
        }
      });
}

INSTANTIATE_TEST_SUITE_P(EventsAndBytes, CrashOfBurial, testing::Bool());

TEST(CrashOfRetry, LosesNothing) {
  const auto retry = [](SpoolFiles& files) {
    return DeadLetters(files).retry({.name = kName}).has_value();
  };
  test::crash_at_every_step(
      [](const fs::path& spool) {
        write_file(spool / "dead-letter" / kName, R"({"event":)" + kEvent + "}");
      },
      retry,
      [&](SpoolFiles& files, test::ChildEnd) {
        const fs::path queue = files.directory() / "queue";
        const fs::path dead = files.directory() / "dead-letter";
        ASSERT_TRUE(fs::exists(queue / kName) || fs::exists(dead / kName));
        EXPECT_TRUE(retry(files));
        EXPECT_THAT(names_in(dead), IsEmpty());
        EXPECT_THAT(names_in(queue), ElementsAre(kName));
        EXPECT_EQ(read_file(queue / kName), kEvent);
      });
}

}  // namespace
}  // namespace reprise::spool
