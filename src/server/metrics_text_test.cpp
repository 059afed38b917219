#include "server/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "support/fake_broker.h"

namespace reprise::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<QueueStats> some_queues(std::size_t count) {
  std::vector<QueueStats> queues;
  for (std::size_t i = 0; i < count; ++i) {
    queues.push_back(test::stats_of({"default", "q" + std::to_string(i)}));
    queues.back().by_status[static_cast<std::size_t>(JobStatus::pending)] = 2;
    queues.back().totals.pushed = 3;
    queues.back().push_rate = 0.5;
    queues.back().oldest_pending_age = std::chrono::milliseconds(1500);
  }
  return queues;
}

std::string text_of(const std::vector<QueueStats>& queues, const WebhookStats& webhooks = {}) {
  BrokerMetrics broker;
  broker.operations_running = 2;
  broker.durability = "sync";
  broker.storage_kind = "memory";
  for (Histogram* histogram :
       {&broker.commit_seconds, &broker.batch_commands, &broker.batch_bytes}) {
    *histogram = {.upper_bounds = {0.5, 1}, .counts = {2, 1, 4}, .sum = 9.5};
  }
  ServerStats server;
  server.count_request(0, 200);
  server.count_request(0, 200);
  server.count_request(kNoRoute, 404);
  return metrics_text({.queues = queues,
                       .broker = broker,
                       .event_subscribers = 0,
                       .server = server,
                       .process = {},
                       .webhooks = webhooks});
}

TEST(MetricsText, HasQueuesByNameAndStatus) {
  const std::string text = text_of(some_queues(1));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_jobs gauge\n"));
  EXPECT_THAT(text,
              HasSubstr("reprise_jobs{namespace=\"default\",queue=\"q0\",status=\"pending\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("reprise_pushed_total{namespace=\"default\",queue=\"q0\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("reprise_push_rate{namespace=\"default\",queue=\"q0\"} 0.5\n"));
  EXPECT_THAT(
      text,
      HasSubstr("reprise_oldest_pending_age_seconds{namespace=\"default\",queue=\"q0\"} 1.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("status=\"completed\"")));
}

TEST(MetricsText, HasTheLanes) {
  std::vector<QueueStats> queues = some_queues(1);
  queues[0].totals.claimed = 10;
  queues[0].totals.claimed_retry = 3;
  queues[0].lanes.retry_credit = 0.4;
  queues[0].lanes.retry_in_flight = 2;
  queues[0].lanes.retries_by_failures.front() = 5;
  queues[0].lanes.retries_by_failures.back() = 6;
  const std::string text = text_of(queues);
  const auto line = [](const std::string& name, const std::string& label, const char* value) {
    return "\n" + name + "{namespace=\"default\",queue=\"q0\"" + label + "} " + value + "\n";
  };
  EXPECT_THAT(text, HasSubstr(line("reprise_claimed_total", "", "10")));
  EXPECT_THAT(text, HasSubstr(line("reprise_claimed_by_lane_total", ",lane=\"fresh\"", "7")));
  EXPECT_THAT(text, HasSubstr(line("reprise_claimed_by_lane_total", ",lane=\"retry\"", "3")));
  EXPECT_THAT(text, HasSubstr(line("reprise_retry_backlog", ",failures=\"1\"", "5")));
  EXPECT_THAT(text, HasSubstr(line("reprise_retry_backlog", ",failures=\"9\"", "0")));
  EXPECT_THAT(text, HasSubstr(line("reprise_retry_backlog", ",failures=\"10+\"", "6")));
  EXPECT_THAT(text, HasSubstr(line("reprise_retry_credit", "", "0.4")));
  EXPECT_THAT(text, HasSubstr(line("reprise_retry_in_flight", "", "2")));
}

TEST(MetricsText, CountsWhatIsDoneToTheDead) {
  std::vector<QueueStats> queues = some_queues(1);
  QueueTotals& totals = queues[0].totals;
  totals.moved_in = 1;
  totals.moved_out = 2;
  totals.retried = 3;
  totals.purged = 4;
  totals.dead_expired = 5;
  totals.dead_evicted = 6;
  const std::string text = text_of(queues);
  int value = 0;
  for (const std::string name :
       {"moved_in", "moved_out", "retried", "purged", "dead_expired", "dead_evicted"}) {
    EXPECT_THAT(text, HasSubstr("# TYPE reprise_" + name + "_total counter\n"));
    EXPECT_THAT(text,
                HasSubstr("\nreprise_" + name + "_total{namespace=\"default\",queue=\"q0\"} " +
                          std::to_string(++value) + "\n"));
  }
}

TEST(MetricsText, CountsOperationsAndWebhooks) {
  const std::string text = text_of({}, {.delivered = 5, .failed = 6, .given_up = 7, .pending = 8});
  EXPECT_THAT(text, HasSubstr("\nreprise_operations_running 2\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_webhooks_pending 8\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_webhooks_total counter\n"
                              "reprise_webhooks_total{result=\"delivered\"} 5\n"
                              "reprise_webhooks_total{result=\"failed\"} 6\n"
                              "reprise_webhooks_total{result=\"given_up\"} 7\n"));
}

TEST(MetricsText, SumsQueuesBeyondTheThousandth) {
  const std::string text = text_of(some_queues(1003));
  EXPECT_THAT(text, HasSubstr("queue=\"q999\",status=\"pending\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("queue=\"q1000\"")));
  EXPECT_THAT(text, HasSubstr("queue=\"_other\",status=\"pending\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("reprise_pushed_total{namespace=\"_other\",queue=\"_other\"} 9\n"));
}

TEST(MetricsText, SumsTheLanesOfQueuesBeyondTheThousandth) {
  std::vector<QueueStats> queues = some_queues(1002);
  for (QueueStats& stats : queues) {
    stats.totals.claimed = 5;
    stats.totals.claimed_retry = 2;
    stats.totals.purged = 4;
    stats.lanes.retry_in_flight = 1;
    stats.lanes.retries_by_failures[2] = 3;
  }
  const std::string text = text_of(queues);
  EXPECT_THAT(text, HasSubstr("queue=\"_other\",lane=\"fresh\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("queue=\"_other\",lane=\"retry\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("reprise_purged_total{namespace=\"_other\",queue=\"_other\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("queue=\"_other\",failures=\"3\"} 6\n"));
  EXPECT_THAT(text,
              HasSubstr("reprise_retry_in_flight{namespace=\"_other\",queue=\"_other\"} 2\n"));
}

TEST(MetricsText, HistogramsAreCumulative) {
  EXPECT_THAT(text_of({}), HasSubstr("# TYPE reprise_commit_seconds histogram\n"
                                     "reprise_commit_seconds_bucket{le=\"0.5\"} 2\n"
                                     "reprise_commit_seconds_bucket{le=\"1\"} 3\n"
                                     "reprise_commit_seconds_bucket{le=\"+Inf\"} 7\n"
                                     "reprise_commit_seconds_sum 9.5\n"
                                     "reprise_commit_seconds_count 7\n"));
}

TEST(MetricsText, CountsRequestsByRouteAndStatus) {
  const std::string text = text_of({});
  EXPECT_THAT(text, HasSubstr("reprise_http_requests_total{route=\"GET /v1/queues\","
                              "status=\"200\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("reprise_http_requests_total{route=\"none\",status=\"404\"} 1\n"));
}

TEST(MetricsText, HasTheMetricsOfTheApiPageAndNoOther) {
  std::ifstream file(REPRISE_SOURCE_DIR "/docs/api.md");
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t begin = page.find("`GET /metrics`:");
  const std::string section = page.substr(begin, page.find("## Errors", begin) - begin);
  const auto names = [](const std::string& text, const char* pattern) {
    const std::regex name(pattern);
    std::set<std::string> found;
    for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match) {
      found.insert((*match)[1]);
    }
    return found;
  };
  EXPECT_EQ(names(text_of(some_queues(1)), "# TYPE ([a-z_]+) "),
            names(section, "`((?:reprise|process)_[a-z_]+)`"));
}

TEST(ReadProcessNumbers, AreThoseOfThisProcess) {
  const ProcessNumbers numbers = read_process_numbers();
  EXPECT_GT(numbers.resident_bytes, 1U << 20);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LT(numbers.start_time_seconds, now + 5);
  EXPECT_GT(numbers.start_time_seconds, now - 3600);
}

}  // namespace
}  // namespace reprise::server
