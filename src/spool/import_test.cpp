#include "spool/import.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "spool/event.h"
#include "support/fake_clock.h"
#include "support/files.h"
#include "support/spool_crash.h"
#include "support/temp_directory.h"

namespace reprise::spool {
namespace {

namespace fs = std::filesystem;
using test::names_in;
using test::read_file;
using test::write_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kId = "01KA5QH3M5T6W0V8Z2Y4X6C8B1";

class ImportTest : public testing::Test {
 protected:
  ImportTest()
      : files_(std::move(*SpoolFiles::create(directory_ / "spool"))),
        outbox_(files_),
        random_(1),
        ids_(random_) {
    fs::create_directory(from());
  }

  fs::path from() const { return directory_ / "from"; }
  fs::path queue() const { return directory_ / "spool/queue"; }
  void import(bool remove = false) {
    result_ = {};
    const auto status = import_events(from(), outbox_, ids_, clock_, {.remove = remove}, result_);
    EXPECT_TRUE(status) << status.error().detail;
  }
  std::string reason_for(const std::string& text) {
    write_file(from() / "x.json", text);
    import();
    return result_.skipped.size() == 1 ? result_.skipped.front().reason : "it was imported";
  }

  test::TempDirectory directory_;
  SpoolFiles files_;
  Outbox outbox_;
  SeededRandom random_;
  UlidSource ids_;
  test::FakeClock clock_;
  ImportResult result_;
};

TEST_F(ImportTest, AWholeEventIsTakenAsItIs) {
  const std::string event =
      R"({"id":")" + kId + R"(", "type":"a","timestamp":"t", "data": [1.0,1e400]})";
  write_file(from() / "whatever.json", " " + event + "\n");
  import();
  EXPECT_EQ(result_.imported, 1U);
  EXPECT_THAT(names_in(queue()), ElementsAre(kId + ".json"));
  EXPECT_EQ(read_file(queue() / (kId + ".json")), event);
  EXPECT_THAT(names_in(from()), ElementsAre("whatever.json"));
}

TEST_F(ImportTest, WhatIsMissingIsPutInFront) {
  write_file(from() / "a.json", R"({ "type":"a", "_attempts":3,"_lastError":"no"})");
  const timespec times[2] = {{1'700'000'000, 250'000'000}, {1'700'000'000, 250'000'000}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (from() / "a.json").c_str(), times, 0), 0);
  import();
  const auto names = names_in(queue());
  ASSERT_EQ(names.size(), 1U);
  const std::string id = names[0].substr(0, kUlidChars);
  ASSERT_TRUE(decode_ulid(id));
  EXPECT_EQ(ulid_time(*decode_ulid(id)), clock_.now());
  EXPECT_EQ(read_file(queue() / names[0]),
            R"({"id":")" + id + R"(","timestamp":"2023-11-14T22:13:20.250Z", "type":"a"})");
  EXPECT_TRUE(parse_event(read_file(queue() / names[0])));
}

TEST_F(ImportTest, FilesAreTakenInTheOrderOfTheirNames) {
  for (const std::string name : {"3", "1", "2"}) {
    write_file(from() / (name + ".json"), R"({"type":"a","n":)" + name + "}");
  }
  import();
  std::string order;
  for (const auto& name : names_in(queue())) {
    const std::string text = read_file(queue() / name);
    order += text[text.size() - 2];
  }
  EXPECT_EQ(order, "123");
}

TEST_F(ImportTest, WhatCannotBeImportedIsToldWithItsReason) {
  EXPECT_THAT(reason_for("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(reason_for("[]"), HasSubstr("this is an array"));
  EXPECT_EQ(reason_for("{}"), "`type` is missing");
  EXPECT_EQ(reason_for(R"({"type":7})"), "`type` must be a string");
  EXPECT_EQ(reason_for(R"({"type":""})"), "`type` must not be empty");
  EXPECT_EQ(reason_for(R"({"type":"a","id":"x"})"), "`id` is no ULID: \"x\"");
  EXPECT_EQ(reason_for(R"({"type":"a","id":null})"), "`id` is null, no ULID");
  EXPECT_THAT(reason_for(R"({"type":")" + std::string(kMaxEventBytes, 'x') + "\"}"),
              HasSubstr("too large: "));
  // It is the added fields that are too much.
  EXPECT_THAT(reason_for(R"({"type":"a","x":")" + std::string(kMaxEventBytes - 20, 'x') + "\"}"),
              HasSubstr("too large: "));
  EXPECT_THAT(names_in(queue()), IsEmpty());
}

TEST_F(ImportTest, OtherFilesAreLeftAlone) {
  for (const char* name : {"a.txt", ".a.json", "b.json.tmp"}) {
    write_file(from() / name, R"({"type":"a"})");
  }
  write_file(directory_ / "target", R"({"type":"a"})");
  fs::create_symlink(directory_ / "target", from() / "link.json");
  fs::create_directory(from() / "dir.json");
  ASSERT_EQ(::mkfifo((from() / "fifo.json").c_str(), 0600), 0);
  write_file(from() / "huge.json", "");
  ASSERT_EQ(::truncate((from() / "huge.json").c_str(), off_t{1} << 30), 0);
  import(true);
  EXPECT_EQ(result_.imported, 0U);
  std::vector<std::string> reasons;
  for (const auto& skipped : result_.skipped)
    reasons.push_back(skipped.file + ": " + skipped.reason);
  EXPECT_THAT(reasons, ElementsAre("dir.json: a directory", "fifo.json: a FIFO",
                                   HasSubstr("huge.json: too large: 1073741824 bytes"),
                                   "link.json: a symbolic link"));
  EXPECT_EQ(names_in(from()).size(), 7U);
}

TEST_F(ImportTest, WhatIsQueuedAlreadyIsSkippedInAnyCase) {
  const auto with_id = [](const std::string& id) { return R"({"id":")" + id + R"(","type":"a"})"; };
  write_file(queue() / (kId + ".json"), "queued");
  write_file(from() / "a.json", with_id(kId));
  write_file(from() / "b.json", with_id("01ka5qh3m5t6w0v8z2y4x6c8b1"));
  import();
  EXPECT_EQ(result_.imported, 0U);
  EXPECT_EQ(result_.already_queued, 2U);
  EXPECT_THAT(result_.skipped, IsEmpty());
  EXPECT_EQ(read_file(queue() / (kId + ".json")), "queued");
}

TEST_F(ImportTest, WhatIsInTheSpoolCanBeRemoved) {
  write_file(from() / "a.json", R"({"type":"a"})");
  write_file(from() / "bad.json", R"({"type":7})");
  write_file(from() / "c.json", R"({"type":"a","id":")" + kId + "\"}");
  write_file(queue() / (kId + ".json"), "queued");
  import(true);
  EXPECT_EQ(result_.imported, 1U);
  EXPECT_EQ(result_.already_queued, 1U);
  EXPECT_EQ(result_.skipped.size(), 1U);
  EXPECT_THAT(names_in(from()), ElementsAre("bad.json"));
}

TEST_F(ImportTest, ManyAreStoredInGroups) {
  write_file(from() / "0.json", R"({"type":"a"})");
  for (int i = 1; i <= 500; ++i) {
    fs::create_hard_link(from() / "0.json", from() / (std::to_string(i) + ".json"));
  }
  std::vector<std::uint64_t> progress;
  const auto status = import_events(from(), outbox_, ids_, clock_,
                                    {.progress =
                                         [&](std::uint64_t done, std::uint64_t found) {
                                           EXPECT_EQ(found, 501U);
                                           progress.push_back(done);
                                         }},
                                    result_);
  EXPECT_TRUE(status);
  EXPECT_EQ(result_.imported, 501U);
  EXPECT_THAT(progress, ElementsAre(500U, 501U));
  EXPECT_EQ(names_in(queue()).size(), 501U);
}

TEST_F(ImportTest, AFullSpoolTellsWhatWasDoneUntilThen) {
  // Nine of these are the bytes of a group.
  ASSERT_TRUE(outbox_.change_quota({.max_events = 9}));
  write_file(from() / "0.json", R"({"type":"a","x":")" + std::string(1'000'000, 'x') + "\"}");
  for (int i = 1; i <= 9; ++i) {
    fs::create_hard_link(from() / "0.json", from() / (std::to_string(i) + ".json"));
  }
  const auto status = import_events(from(), outbox_, ids_, clock_, {.remove = true}, result_);
  EXPECT_EQ(status.error().code, Errc::spool_full);
  EXPECT_EQ(result_.imported, 9U);
  EXPECT_THAT(names_in(from()), ElementsAre("9.json"));
}

TEST_F(ImportTest, TheQueueItselfIsNoSource) {
  write_file(queue() / (kId + ".json"), R"({"id":")" + kId + R"(","type":"a"})");
  const auto status = import_events(queue(), outbox_, ids_, clock_, {.remove = true}, result_);
  EXPECT_EQ(status.error().code, Errc::invalid_field);
  EXPECT_EQ(names_in(queue()).size(), 1U);
}

TEST_F(ImportTest, ADirectoryThatIsNotThereIsAnError) {
  const auto status = import_events(from() / "none", outbox_, ids_, clock_, {}, result_);
  EXPECT_THAT(status.error().detail, HasSubstr("/none: No such file or directory"));
}

}  // namespace
}  // namespace reprise::spool
