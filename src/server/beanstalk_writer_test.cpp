#include "server/beanstalk_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "support/fake_broker.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using test::claimed_job;
using test::record_of;

constexpr Timestamp kNow{std::chrono::hours(24)};

template <class Reply>
std::string text(const Reply& reply) {
  std::string out;
  append_beanstalk(out, reply);
  return out;
}

session::JobFound found_job(JobStatus status, JobState state) {
  state.status = status;
  session::JobFound job;
  job.seq = 7;
  job.queue = "orders";
  job.status = status;
  JobRecord record;
  record.payload = "hello";
  record.priority = 5;
  record.pushed_at = kNow - 90s;
  job.record = std::make_shared<const JobRecord>(std::move(record));
  job.state = std::make_shared<const JobState>(std::move(state));
  job.lease = 60s;
  job.now = kNow;
  return job;
}

session::QueueFacts queue_facts(std::string name) {
  session::QueueFacts queue;
  queue.stats = test::stats_of({"default", std::move(name)});
  queue.stats.by_status = {1, 20, 3, 4, 5, 600};
  queue.stats.totals.pushed = 50;
  queue.stats.totals.completed = 6;
  queue.stats.totals.dropped = 2;
  queue.stats.totals.lease_expired = 9;
  queue.urgent = 11;
  return queue;
}

// What stands after "OK <bytes>".
std::string yaml_of(const std::string& reply) {
  const std::size_t begin = reply.find("\r\n");
  const std::string yaml = reply.substr(begin + 2, reply.size() - begin - 4);
  EXPECT_EQ(reply, "OK " + std::to_string(yaml.size()) + "\r\n" + yaml + "\r\n");
  return yaml;
}

TEST(BeanstalkWriter, PutsAreAnsweredOneByOne) {
  session::PutDone done;
  done.results.emplace_back(PushedJob{.seq = 18446744073709551615ULL});
  for (const Errc code : {Errc::queue_full, Errc::missing_var, Errc::hook_rejected,
                          Errc::shutting_down, Errc::io, Errc::payload_too_large}) {
    done.results.emplace_back(Error{code, ""});
  }
  EXPECT_EQ(text(done),
            "INSERTED 18446744073709551615\r\nOUT_OF_MEMORY\r\nBAD_FORMAT\r\nBAD_FORMAT\r\n"
            "DRAINING\r\nINTERNAL_ERROR\r\nJOB_TOO_BIG\r\n");
}

TEST(BeanstalkWriter, ErrorsThatAreNotOfAPut) {
  EXPECT_EQ(beanstalk_error_line(Errc::shutting_down, false), "INTERNAL_ERROR\r\n");
  for (const Errc code :
       {Errc::job_not_found, Errc::lease_lost, Errc::queue_not_found, Errc::wrong_status}) {
    EXPECT_EQ(beanstalk_error_line(code, false), "NOT_FOUND\r\n");
  }
  for (const Errc code :
       {Errc::disk_full, Errc::too_many_waiting, Errc::overloaded, Errc::queue_bytes_full}) {
    EXPECT_EQ(beanstalk_error_line(code, true), "OUT_OF_MEMORY\r\n");
  }
}

TEST(BeanstalkWriter, Refusals) {
  EXPECT_EQ(beanstalk_refusal_line(BeanstalkRefusal::bad_format), "BAD_FORMAT\r\n");
  EXPECT_EQ(beanstalk_refusal_line(BeanstalkRefusal::unknown_command), "UNKNOWN_COMMAND\r\n");
  EXPECT_EQ(beanstalk_refusal_line(BeanstalkRefusal::expected_crlf), "EXPECTED_CRLF\r\n");
  EXPECT_EQ(beanstalk_refusal_line(BeanstalkRefusal::job_too_big), "JOB_TOO_BIG\r\n");
  EXPECT_EQ(beanstalk_refusal_line(BeanstalkRefusal::out_of_memory), "OUT_OF_MEMORY\r\n");
}

TEST(BeanstalkWriter, ReservedJobsComeWithTheirBodies) {
  EXPECT_EQ(text(session::Reserved{{claimed_job(1, "hello"), claimed_job(20, "")}}),
            "RESERVED 1 5\r\nhello\r\nRESERVED 20 0\r\n\r\n");
  EXPECT_EQ(text(session::NotReserved{session::Why::timed_out, 2}), "TIMED_OUT\r\nTIMED_OUT\r\n");
  EXPECT_EQ(text(session::NotReserved{session::Why::deadline_soon}), "DEADLINE_SOON\r\n");
  EXPECT_EQ(text(session::NotReserved{session::Why::not_found}), "NOT_FOUND\r\n");
}

TEST(BeanstalkWriter, WhatEndsHasItsOwnWord) {
  const auto settled = [](session::How how) {
    return text(session::Settled{how, {ok(), Error{Errc::job_not_found, ""}}});
  };
  EXPECT_EQ(settled(session::How::deleted), "DELETED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(settled(session::How::released), "RELEASED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(settled(session::How::buried), "BURIED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(settled(session::How::touched), "TOUCHED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(settled(session::How::kicked), "KICKED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(settled(session::How::paused), "PAUSED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(text(session::Kicked{12}), "KICKED 12\r\n");
}

TEST(BeanstalkWriter, AFailureSaysWhenItIsTriedAgainRoundedUp) {
  const auto failed = [](Result<Failed> result) {
    return text(session::FailDone{std::move(result), kNow});
  };
  EXPECT_EQ(failed(Failed{.status = JobStatus::failed, .retry_at = kNow + 1500ms}),
            "RETRYING 2\r\n");
  EXPECT_EQ(failed(Failed{.status = JobStatus::failed, .retry_at = kNow - 1s}), "RETRYING 0\r\n");
  EXPECT_EQ(failed(Failed{.status = JobStatus::dead}), "DEAD\r\n");
  EXPECT_EQ(failed(Error{Errc::lease_lost, ""}), "NOT_FOUND\r\n");
}

TEST(BeanstalkWriter, PeekFindsAJobOrNot) {
  std::string out;
  append_found(out, session::Found{found_job(JobStatus::pending, {})});
  append_found(out, session::Found{});
  append_found(out, session::Found{found_job(JobStatus::completed, {})});
  EXPECT_EQ(out, "FOUND 7 5\r\nhello\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
}

TEST(BeanstalkWriter, ListsOfTubes) {
  std::string out;
  append_tubes(out, std::vector<std::string>{"default", "b"});
  EXPECT_EQ(out, "OK 18\r\n---\n- default\n- b\n\r\n");
  out.clear();
  append_tubes(out, session::AllQueues{{queue_facts("a"), queue_facts("default")}});
  EXPECT_EQ(out, "OK 18\r\n---\n- a\n- default\n\r\n");
  out.clear();
  append_using(out, "a");
  append_watching(out, 12);
  EXPECT_EQ(out, "USING a\r\nWATCHING 12\r\n");
}

TEST(BeanstalkWriter, StatsOfAJob) {
  JobState state;
  state.attempts = 6;
  state.generation = 3;
  state.lease_deadline = kNow + 12'900ms;
  for (const AttemptOutcome outcome :
       {AttemptOutcome::released, AttemptOutcome::lease_expired, AttemptOutcome::released,
        AttemptOutcome::buried, AttemptOutcome::failed}) {
    state.history.push_back({.outcome = outcome});
  }
  std::string out;
  append_stats_job(out, session::Found{found_job(JobStatus::active, state)});
  EXPECT_EQ(yaml_of(out),
            "---\nid: 7\ntube: orders\nstate: reserved\npri: 5\nage: 90\ndelay: 0\nttr: 60\n"
            "time-left: 12\nfile: 0\nreserves: 6\ntimeouts: 1\nreleases: 2\nburies: 1\nkicks: 2\n");
}

TEST(BeanstalkWriter, StatsOfJobsInEveryState) {
  const auto state_of = [](JobStatus status) {
    JobState state;
    state.due = kNow + 30s;
    std::string out;
    append_stats_job(out, session::Found{found_job(status, state)});
    return out;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(state_of(JobStatus::pending), HasSubstr("state: ready\n"));
  EXPECT_THAT(state_of(JobStatus::pending), HasSubstr("time-left: 0\n"));
  EXPECT_THAT(state_of(JobStatus::scheduled), HasSubstr("state: delayed\n"));
  EXPECT_THAT(state_of(JobStatus::scheduled), HasSubstr("delay: 30\n"));
  EXPECT_THAT(state_of(JobStatus::failed), HasSubstr("state: delayed\n"));
  EXPECT_THAT(state_of(JobStatus::failed), HasSubstr("time-left: 30\n"));
  EXPECT_THAT(state_of(JobStatus::dead), HasSubstr("state: buried\n"));
  EXPECT_EQ(state_of(JobStatus::completed), "NOT_FOUND\r\n");

  session::JobFound fresh = found_job(JobStatus::pending, {});
  fresh.state = nullptr;
  std::string out;
  append_stats_job(out, session::Found{fresh});
  EXPECT_THAT(out, HasSubstr("reserves: 0\n"));
  EXPECT_THAT(out, HasSubstr("kicks: 0\n"));
}

TEST(BeanstalkWriter, StatsOfATube) {
  session::QueueFacts queue = queue_facts("orders");
  queue.pause = 100s;
  queue.paused_for = 99'500ms;
  std::string out;
  append_stats_tube(out, session::QueueFound{std::make_shared<const session::QueueFacts>(queue)},
                    {.using_it = 1, .watching = 2, .waiting = 3, .pauses = 4});
  EXPECT_EQ(yaml_of(out),
            "---\nname: orders\ncurrent-jobs-urgent: 11\ncurrent-jobs-ready: 20\n"
            "current-jobs-reserved: 3\ncurrent-jobs-delayed: 5\ncurrent-jobs-buried: 5\n"
            "total-jobs: 50\ncurrent-using: 1\ncurrent-watching: 2\ncurrent-waiting: 3\n"
            "cmd-delete: 8\ncmd-pause-tube: 4\npause: 100\npause-time-left: 99\n");
  out.clear();
  append_stats_tube(out, session::QueueFound{}, {});
  EXPECT_EQ(out, "NOT_FOUND\r\n");
}

TEST(BeanstalkWriter, StatsHaveTheFieldsOfBeanstalkdInItsOrder) {
  BeanstalkCensus census;
  census.stats.connections = 3;
  census.stats.commands[static_cast<std::size_t>(BeanstalkVerb::remove)] = 77;
  census.producers = 1;
  census.workers = 2;
  census.total_connections = 30;
  census.max_job_bytes = 1000;
  census.earlier_jobs = 40;
  census.earlier_timeouts = 100;
  census.uptime = 61s;
  census.draining = true;
  census.id = "0123456789abcdef";
  std::string out;
  append_stats(out, session::AllQueues{{queue_facts("a"), queue_facts("b")}}, census);
  const std::string yaml = yaml_of(out);
  std::string names;
  const std::regex field("([a-z-]+): ?.*\n");
  for (std::sregex_iterator i(yaml.begin(), yaml.end(), field), end; i != end; ++i) {
    names += (*i)[1].str() + ' ';
  }
  EXPECT_EQ(names,
            "current-jobs-urgent current-jobs-ready current-jobs-reserved current-jobs-delayed "
            "current-jobs-buried cmd-put cmd-peek cmd-peek-ready cmd-peek-delayed cmd-peek-buried "
            "cmd-reserve cmd-reserve-with-timeout cmd-delete cmd-release cmd-use cmd-watch "
            "cmd-ignore cmd-bury cmd-kick cmd-touch cmd-stats cmd-stats-job cmd-stats-tube "
            "cmd-list-tubes cmd-list-tube-used cmd-list-tubes-watched cmd-pause-tube job-timeouts "
            "total-jobs max-job-size current-tubes current-connections current-producers "
            "current-workers current-waiting total-connections pid version rusage-utime "
            "rusage-stime uptime binlog-oldest-index binlog-current-index binlog-records-migrated "
            "binlog-records-written binlog-max-size draining id hostname os platform ");
  using ::testing::HasSubstr;
  EXPECT_THAT(yaml, HasSubstr("current-jobs-ready: 40\n"));
  EXPECT_THAT(yaml, HasSubstr("cmd-delete: 77\n"));
  EXPECT_THAT(yaml, HasSubstr("total-jobs: 60\n"));
  EXPECT_THAT(yaml, HasSubstr("job-timeouts: 0\n"));
  EXPECT_THAT(yaml, HasSubstr("current-tubes: 2\n"));
  EXPECT_THAT(yaml, HasSubstr("uptime: 61\n"));
  EXPECT_THAT(yaml, HasSubstr("draining: true\n"));
}

}  // namespace
}  // namespace reprise::server
