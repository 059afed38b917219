#include "broker/job_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "broker/core.h"
#include "storage/memory/memory_storage.h"
#include "support/fake_clock.h"

namespace reprise {
namespace {

using std::chrono::seconds;

class JobReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    core = *BrokerCore::recover(*storage, random, {});
    ASSERT_TRUE(core->engine().put_queue({.queue = kQueue}, clock.now()).has_value());
  }

  Seq push(std::string payload, Duration delay = {}, Headers headers = {}) {
    PushCommand command{.queue = kQueue};
    command.jobs.emplace_back(
        NewJob{.payload = std::move(payload), .headers = std::move(headers), .delay = delay});
    return (*core->engine().push(next_request++, std::move(command), clock.now()))->results[0]->seq;
  }
  LeaseToken claim() {
    return (*core->engine().claim(next_claim++, {.queue = kQueue}, clock.now()))->jobs.at(0).token;
  }
  void fail(LeaseToken token, std::string error, bool final) {
    const std::vector<FailItem> items{{.token = token, .error = std::move(error), .final = final}};
    ASSERT_TRUE(core->engine().fail(next_request++, items, clock.now())->at(0).has_value());
  }
  JobReader reader() {
    SealedBatch batch = core->seal(clock.now());
    EXPECT_TRUE(
        BrokerCore::commit(*storage, batch.changes, storage::Durability::synced).has_value());
    core->settled(batch.number);
    return {*storage, *core->engine().find_queue(kQueue)};
  }
  std::vector<Seq> browse(JobFilter filter, std::uint32_t limit = 50) {
    std::vector<Seq> seqs;
    const auto page = reader().browse(
        {.queue = kQueue, .filter = std::move(filter), .limit = limit}, clock.now());
    for (const JobView& job : page->jobs) seqs.push_back(job.seq);
    return seqs;
  }

  const QueueName kQueue{.name = "orders"};
  std::unique_ptr<storage::Storage> storage = storage::make_memory_storage();
  SeededRandom random{1};
  test::FakeClock clock;
  std::unique_ptr<BrokerCore> core;
  ClaimId next_claim = 1;
  RequestId next_request = 1;
};

// One job in each status, pushed in this order: dead, failed, active, pending, scheduled.
class JobReaderStatusTest : public JobReaderTest {
 protected:
  void SetUp() override {
    JobReaderTest::SetUp();
    const auto keep_trying = [](QueueConfig& config) {
      config.retry = {.attempts = 3, .wait = seconds(60)};
      return ok();
    };
    ASSERT_TRUE(core->engine().edit_queue(kQueue, keep_trying, clock.now()).has_value());
    dead = push("1", {}, {{"tenant", "a"}});
    fail(claim(), "no such card", true);
    failed = push("2", {}, {{"tenant", "b"}});
    fail(claim(), "timeout", false);
    active = push("3");
    claim();
    clock.advance(seconds(10));
    pending = push("4", {}, {{"tenant", "a"}});
    scheduled = push("5", seconds(60));
  }
  Seq dead{}, failed{}, active{}, pending{}, scheduled{};
};

TEST_F(JobReaderStatusTest, BrowsesEveryStatusInPushOrder) {
  EXPECT_EQ(browse({}), (std::vector<Seq>{dead, failed, active, pending, scheduled}));
}

TEST_F(JobReaderStatusTest, FiltersByStatus) {
  EXPECT_EQ(browse({.status = JobStatus::dead}), std::vector<Seq>{dead});
  EXPECT_EQ(browse({.status = JobStatus::failed}), std::vector<Seq>{failed});
  EXPECT_EQ(browse({.status = JobStatus::active}), std::vector<Seq>{active});
  EXPECT_EQ(browse({.status = JobStatus::pending}), std::vector<Seq>{pending});
  EXPECT_EQ(browse({.status = JobStatus::scheduled}), std::vector<Seq>{scheduled});
}

TEST_F(JobReaderStatusTest, ADelayThatHasPassedShowsAsPending) {
  clock.advance(seconds(60));
  EXPECT_EQ(browse({.status = JobStatus::pending}), (std::vector<Seq>{failed, pending, scheduled}));
}

TEST_F(JobReaderStatusTest, FiltersByLaneErrorAgeAndHeader) {
  EXPECT_EQ(browse({.lane = Lane::retry}), (std::vector<Seq>{dead, failed}));
  EXPECT_EQ(browse({.lane = Lane::fresh}), (std::vector<Seq>{active, pending, scheduled}));
  EXPECT_EQ(browse({.error = "card"}), std::vector<Seq>{dead});
  EXPECT_EQ(browse({.older_than = seconds(5)}), (std::vector<Seq>{dead, failed, active}));
  EXPECT_EQ(browse({.headers = {{"tenant", "a"}}}), (std::vector<Seq>{dead, pending}));
}

TEST_F(JobReaderStatusTest, PagesHoldEveryJobOnce) {
  for (const std::uint32_t limit : {1U, 2U, 3U, 5U}) {
    std::vector<Seq> seqs;
    std::string cursor;
    do {
      const auto page =
          *reader().browse({.queue = kQueue, .limit = limit, .cursor = cursor}, clock.now());
      EXPECT_LE(page.jobs.size(), limit);
      for (const JobView& job : page.jobs) seqs.push_back(job.seq);
      cursor = page.cursor;
    } while (!cursor.empty());
    EXPECT_EQ(seqs, (std::vector<Seq>{dead, failed, active, pending, scheduled}));
  }
}

TEST_F(JobReaderStatusTest, ShowsOneJobWhole) {
  const JobView job = *reader().show(failed, clock.now());
  EXPECT_EQ(job.status, JobStatus::failed);
  EXPECT_EQ(job.record->payload, "2");
  EXPECT_EQ(job.state->history.at(0).error, "timeout");
  EXPECT_EQ(reader().show(dead, clock.now())->status, JobStatus::dead);
  EXPECT_EQ(reader().show(9999, clock.now()).error().code, Errc::job_not_found);
}

TEST_F(JobReaderStatusTest, ResolvesWholeIdsAndPrefixes) {
  const Seq end = core->engine().next_seq();
  const std::string id = encode_job_id(pending);
  EXPECT_EQ(*reader().resolve(id, end), pending);
  EXPECT_EQ(*reader().resolve(id.substr(0, 8), end), pending);
  EXPECT_EQ(*reader().resolve(encode_job_id(dead).substr(0, 8), end), dead);
  EXPECT_EQ(reader().resolve(id.substr(0, 3), end).error().code, Errc::invalid_field);
  EXPECT_EQ(reader().resolve("!!!!", end).error().code, Errc::invalid_field);
  EXPECT_EQ(reader().resolve(encode_job_id(9999).substr(0, 8), end).error().code,
            Errc::job_not_found);
}

TEST_F(JobReaderTest, APrefixOfSeveralJobsListsThem) {
  // 19 bits of an id are known with four characters, so among 4000 jobs some share them.
  std::map<std::string, std::vector<std::string>> by_prefix;
  for (int i = 0; i < 4000; ++i) {
    const std::string id = encode_job_id(push("1"));
    by_prefix[id.substr(0, 4)].push_back(id);
  }
  const auto shared =
      std::ranges::find_if(by_prefix, [](auto& row) { return row.second.size() > 1; });
  ASSERT_NE(shared, by_prefix.end());
  auto error = reader().resolve(shared->first, core->engine().next_seq()).error();
  EXPECT_EQ(error.code, Errc::ambiguous_id);
  std::ranges::sort(error.matches);
  std::ranges::sort(shared->second);
  EXPECT_EQ(error.matches, shared->second);
}

TEST_F(JobReaderTest, ABadCursorIsRefused) {
  EXPECT_EQ(reader().browse({.queue = kQueue, .cursor = "x"}, clock.now()).error().code,
            Errc::invalid_field);
}

}  // namespace
}  // namespace reprise
