#include "worker/run_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::worker {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

Timestamp at(int second) { return Timestamp(seconds(1'000'000 + second)); }

// Numbers that a test chooses; the ids of runs come from them.
class ListedRandom final : public Random {
 public:
  std::uint64_t next_u64() override {
    if (listed.empty()) return seeded_.next_u64();
    const std::uint64_t number = listed.front();
    listed.erase(listed.begin());
    return number;
  }
  std::vector<std::uint64_t> listed;

 private:
  SeededRandom seeded_{7};
};

class RunStoreTest : public testing::Test {
 protected:
  void SetUp() override { open(); }
  // As the next server does.
  void open(int second = 0) {
    store_.reset();
    auto store =
        RunStore::open({.directory = path_, .keep = keep_, .log_bytes = 1000}, random_, at(second));
    ASSERT_TRUE(store.has_value());
    store_ = *std::move(store);
  }

  std::string begin(int second, RunView view = {}) {
    view.started_at = at(second);
    view.status = RunStatus::running;
    if (view.ns.empty()) view.ns = "shop";
    if (view.pipeline.empty()) view.pipeline = "ship";
    return *store_->begin(view);
  }
  void end(const std::string& id, int second, RunStatus status = RunStatus::succeeded) {
    const RunView* view = store_->find(id);
    ASSERT_NE(view, nullptr);
    store_->end(id, status, view->error, view->error_type, at(second));
  }
  std::vector<std::string> ids(const RunQuery& query = {}) const {
    std::vector<std::string> ids;
    for (const RunView& view : store_->list(query)) ids.push_back(view.id);
    return ids;
  }

  test::TempDirectory directory_;
  const std::string path_ = directory_ / "runs";
  ListedRandom random_;
  std::uint32_t keep_ = 1000;
  std::unique_ptr<RunStore> store_;
};

TEST_F(RunStoreTest, MakesItsDirectoryForItsOwnerAlone) {
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_all);
  EXPECT_THAT(ids(), IsEmpty());
}

TEST_F(RunStoreTest, ADirectoryThatCannotBeMadeIsAnError) {
  test::write_file(directory_ / "file", "x");
  const auto store = RunStore::open({.directory = directory_ / "file/runs"}, random_, at(0));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Errc::io);
  EXPECT_THAT(store.error().detail, testing::HasSubstr("file/runs"));
}

TEST_F(RunStoreTest, ARunHasARecordAndALog) {
  const std::string id = begin(1);
  EXPECT_EQ(id.size(), 13U);
  EXPECT_TRUE(fs::exists(path_ + "/" + id + "/run.json"));
  store_->log(id)->append("hello\n");
  EXPECT_EQ(store_->view(id).log_bytes, 6U);
  EXPECT_EQ(store_->view(id).status, RunStatus::running);
  EXPECT_EQ(store_->read_log(id, {}).text, "hello\n");
  EXPECT_FALSE(store_->read_log(id, {}).ended);
  end(id, 2, RunStatus::failed);
  EXPECT_EQ(store_->log(id), nullptr);
  EXPECT_EQ(store_->view(id).status, RunStatus::failed);
  EXPECT_TRUE(store_->read_log(id, {}).ended);
  EXPECT_TRUE(store_->read_log(id, {.offset = 6}).ended);
  EXPECT_FALSE(store_->read_log(id, {.limit = 3}).ended);  // there is more
}

TEST_F(RunStoreTest, ALogBeyondItsLimitIsCounted) {
  const std::string id = begin(1);
  store_->log(id)->append(std::string(1500, 'x'));
  EXPECT_EQ(store_->view(id).log_bytes, 1000U);
  EXPECT_EQ(store_->view(id).log_left_out, 500U);
  end(id, 2);
  EXPECT_EQ(store_->view(id).log_left_out, 500U);
  open();
  EXPECT_EQ(store_->view(id).log_left_out, 500U);
  EXPECT_EQ(store_->view(id).log_bytes, store_->read_log(id, {}).text.size());
}

TEST_F(RunStoreTest, ListsTheNewestFirstAndByWhatIsAskedFor) {
  const std::string a = begin(1, {.ns = "shop", .worker = "w1", .queue = "q1"});
  const std::string b = begin(2, {.ns = "shop", .pipeline = "other", .worker = "w2"});
  const std::string c = begin(3, {.ns = "else", .worker = "w1"});
  end(b, 4, RunStatus::failed);
  EXPECT_THAT(ids(), ElementsAre(c, b, a));
  EXPECT_THAT(ids({.limit = 2}), ElementsAre(c, b));
  EXPECT_THAT(ids({.ns = "shop"}), ElementsAre(b, a));
  EXPECT_THAT(ids({.worker = "w1"}), ElementsAre(c, a));
  EXPECT_THAT(ids({.ns = "shop", .worker = "w1"}), ElementsAre(a));
  EXPECT_THAT(ids({.queue = "q1"}), ElementsAre(a));
  EXPECT_THAT(ids({.pipeline = "other"}), ElementsAre(b));
  EXPECT_THAT(ids({.status = RunStatus::running}), ElementsAre(c, a));
  EXPECT_THAT(ids({.status = RunStatus::failed}), ElementsAre(b));
  EXPECT_THAT(ids({.ns = "nobody"}), IsEmpty());
}

TEST_F(RunStoreTest, FindsARunByItsIdOrTheBeginningOfIt) {
  // Two ids that begin with the same characters, and one that does not.
  const std::uint64_t number = 1;
  const std::string first = encode_job_id(number);
  std::uint64_t twin = 2;
  while (!encode_job_id(twin).starts_with(first.substr(0, 4))) ++twin;
  std::uint64_t other = 2;
  while (encode_job_id(other).starts_with(first.substr(0, 4))) ++other;
  random_.listed = {number, twin, other};
  const std::string a = begin(1);
  const std::string b = begin(2);
  const std::string c = begin(3);
  ASSERT_EQ(a, first);
  ASSERT_EQ(a.substr(0, 4), b.substr(0, 4));

  EXPECT_EQ(*store_->resolve(a), a);
  EXPECT_EQ(*store_->resolve(c.substr(0, 4)), c);
  std::string lower = c;
  for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
  EXPECT_EQ(*store_->resolve(lower), c);
  const auto ambiguous = store_->resolve(a.substr(0, 4));
  ASSERT_FALSE(ambiguous.has_value());
  EXPECT_EQ(ambiguous.error().code, Errc::ambiguous_id);
  EXPECT_THAT(ambiguous.error().matches, testing::UnorderedElementsAre(a, b));
  for (const std::string& unknown : {c.substr(0, 3), std::string(), std::string("0000"), c + "0"}) {
    const auto found = store_->resolve(unknown);
    ASSERT_FALSE(found.has_value()) << unknown;
    EXPECT_EQ(found.error().code, Errc::run_not_found);
  }
}

TEST_F(RunStoreTest, AnIdIsNeverGivenTwice) {
  random_.listed = {5, 5, 6};
  EXPECT_EQ(begin(1), encode_job_id(5));
  EXPECT_EQ(begin(2), encode_job_id(6));
}

TEST_F(RunStoreTest, KeepsTheLatestThatHaveEndedAndAllThatRun) {
  keep_ = 2;
  open();
  const std::string running = begin(0);
  const std::string a = begin(1);
  const std::string b = begin(2);
  const std::string c = begin(3);
  end(c, 4);
  end(a, 5);
  EXPECT_THAT(ids(), ElementsAre(c, b, a, running));
  end(b, 6);
  EXPECT_THAT(ids(), ElementsAre(b, a, running));  // c ended first
  EXPECT_FALSE(fs::exists(path_ + "/" + c));
  EXPECT_EQ(store_->find(c), nullptr);
  EXPECT_TRUE(store_->read_log(c, {}).ended);
  EXPECT_EQ(store_->view(c).id, "");
  keep_ = 0;
  open(7);
  EXPECT_THAT(ids(), IsEmpty());
}

TEST_F(RunStoreTest, WhatHasEndedIsThereForTheNextServer) {
  const std::string id =
      begin(1, {.worker = "shipper", .queue = "orders", .job = "7ZK3M9QAX2B4C", .external = true});
  RunView* view = store_->find(id);
  view->error = "step pick: exit code 3";
  view->error_type = "exit_3";
  view->steps = {{.name = "pick",
                  .visit = 2,
                  .status = RunStatus::failed,
                  .exit_code = 3,
                  .error = "bad \"luck\"\n",
                  .started_at = at(1),
                  .ended_at = at(2)}};
  store_->log(id)->append("out\n");
  end(id, 3, RunStatus::failed);
  open(10);
  const RunView read = store_->view(id);
  EXPECT_EQ(read.ns, "shop");
  EXPECT_EQ(read.pipeline, "ship");
  EXPECT_EQ(read.worker, "shipper");
  EXPECT_EQ(read.queue, "orders");
  EXPECT_EQ(read.job, "7ZK3M9QAX2B4C");
  EXPECT_TRUE(read.external);
  EXPECT_EQ(read.status, RunStatus::failed);
  EXPECT_EQ(read.started_at, at(1));
  EXPECT_EQ(read.ended_at, at(3));
  EXPECT_EQ(read.error, "step pick: exit code 3");
  EXPECT_EQ(read.error_type, "exit_3");
  EXPECT_EQ(read.log_bytes, 4U);
  ASSERT_EQ(read.steps.size(), 1U);
  EXPECT_EQ(read.steps[0].name, "pick");
  EXPECT_EQ(read.steps[0].visit, 2U);
  EXPECT_EQ(read.steps[0].status, RunStatus::failed);
  EXPECT_EQ(read.steps[0].exit_code, 3);
  EXPECT_EQ(read.steps[0].error, "bad \"luck\"\n");
  EXPECT_EQ(read.steps[0].started_at, at(1));
  EXPECT_EQ(read.steps[0].ended_at, at(2));
  EXPECT_EQ(store_->read_log(id, {}).text, "out\n");
}

TEST_F(RunStoreTest, WhatHadNotEndedIsLost) {
  const std::string ended = begin(1);
  end(ended, 2);
  const std::string id = begin(3, {.job = "J"});
  store_->log(id)->append("so far\n");
  open(10);
  EXPECT_EQ(store_->view(ended).status, RunStatus::succeeded);
  const RunView view = store_->view(id);
  EXPECT_EQ(view.status, RunStatus::lost);
  EXPECT_EQ(view.ended_at, at(10));
  EXPECT_EQ(view.error_type, "lost");
  EXPECT_THAT(view.error, testing::HasSubstr("server ended"));
  EXPECT_EQ(store_->log(id), nullptr);
  EXPECT_TRUE(store_->read_log(id, {}).ended);
}

TEST_F(RunStoreTest, WhatWasLostOnceStaysAsItIs) {
  const std::string id = begin(1);
  open(10);
  open(20);
  EXPECT_EQ(store_->view(id).status, RunStatus::lost);
  EXPECT_EQ(store_->view(id).ended_at, at(10));
}

TEST_F(RunStoreTest, TheLogOfALostRunIsReadToItsEnd) {
  const std::string id = begin(1);
  store_->log(id)->append("0123456789");
  open(2);
  EXPECT_EQ(store_->view(id).log_bytes, 10U);
  EXPECT_FALSE(store_->read_log(id, {.limit = 4}).ended);
  EXPECT_TRUE(store_->read_log(id, {.offset = 4}).ended);
}

TEST_F(RunStoreTest, WhatCannotBeReadIsRemoved) {
  const std::string good = begin(1);
  end(good, 2);
  const std::string moved = begin(3);
  end(moved, 4);
  fs::rename(path_ + "/" + moved, path_ + "/OTHERNAME0000");
  fs::create_directory(path_ + "/EMPTY00000000");
  fs::create_directory(path_ + "/DAMAGED000000");
  test::write_file(path_ + "/DAMAGED000000/run.json", "{\"id\":\"DAMAGED0");
  test::write_file(path_ + "/file", "x");
  open(5);
  EXPECT_THAT(ids(), ElementsAre(good));
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), fs::directory_iterator()), 1);
}

TEST_F(RunStoreTest, ADirectoryThatCannotBeMadeIsAnErrorOfTheRun) {
  fs::remove_all(path_);
  const auto id = store_->begin({.started_at = at(1)});
  ASSERT_FALSE(id.has_value());
  EXPECT_EQ(id.error().code, Errc::io);
  EXPECT_THAT(ids(), IsEmpty());
}

TEST_F(RunStoreTest, UnknownRunsAreNoTrouble) {
  store_->end("nothing", RunStatus::failed, "", "", at(1));
  EXPECT_EQ(store_->find("nothing"), nullptr);
  EXPECT_EQ(store_->log("nothing"), nullptr);
}

TEST(RunRecordText, DamagedTextIsNoRecord) {
  RunView record;
  record.id = "ABC";
  record.started_at = at(1);
  const std::string whole = encode_run(record);
  ASSERT_TRUE(decode_run(whole).has_value());
  for (std::size_t end = 0; end < whole.size(); ++end) {
    EXPECT_FALSE(decode_run(std::string_view(whole).substr(0, end)).has_value()) << end;
  }
  EXPECT_FALSE(decode_run(R"({"id":"ABC","status":"odd","started_at":1})").has_value());
}

}  // namespace
}  // namespace reprise::worker
