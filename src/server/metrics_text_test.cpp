#include "server/metrics_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

std::string text_of(const std::vector<QueueStats>& queues, const WebhookStats& webhooks = {},
                    const std::vector<ThrottleStats>& throttles = {},
                    const worker::WorkerMetrics& workers = {}) {
  BrokerMetrics broker;
  broker.operations_running = 2;
  broker.hook_hosts = 3;
  broker.hook_hosts_started = 6;
  broker.hook_hosts_killed = 2;
  broker.hook_hosts_lost = 1;
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
                       .throttles = throttles,
                       .broker = broker,
                       .event_subscribers = 0,
                       .server = server,
                       .process = {},
                       .webhooks = webhooks,
                       .workers = workers});
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

// All samples of a metric, in order.
std::string samples_of(const std::string& text, const std::string& name) {
  const std::string type = "# TYPE " + name + " ";
  const std::size_t begin = text.find('\n', text.find(type)) + 1;
  return text.substr(begin, text.find("# HELP", begin) - begin);
}

TEST(MetricsText, HasTheTopKeysOfQueuesThatNameAny) {
  std::vector<QueueStats> queues = some_queues(3);
  queues[0].keys.active = 1;
  queues[0].keys.top = {{.key = "default", .pending = 9, .weight = 1}};
  queues[2].keys.active = 40;
  queues[2].keys.top = {{.key = "acme", .pending = 4, .active = 3, .weight = 2, .delivered = 5},
                        {.key = "a\"b\\c\nd", .pending = 1},
                        {.key = "default", .delivered = 2}};
  queues[2].keys.other = {.pending = 10, .active = 11, .delivered = 12};
  const std::string text = text_of(queues);
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_queue_keys gauge\n"));
  EXPECT_EQ(samples_of(text, "reprise_queue_keys"),
            "reprise_queue_keys{namespace=\"default\",queue=\"q0\"} 1\n"
            "reprise_queue_keys{namespace=\"default\",queue=\"q1\"} 0\n"
            "reprise_queue_keys{namespace=\"default\",queue=\"q2\"} 40\n");
  const auto lines = [](const std::string& name, const std::array<const char*, 4>& values) {
    static constexpr std::array kKeys = {"acme", R"(a\"b\\c\nd)", "default", "other"};
    std::string expected;
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      expected += name + "{namespace=\"default\",queue=\"q2\",key=\"" + kKeys.at(i) + "\"} " +
                  values.at(i) + "\n";
    }
    return expected;
  };
  EXPECT_EQ(samples_of(text, "reprise_key_pending"),
            lines("reprise_key_pending", {"4", "1", "0", "10"}));
  EXPECT_EQ(samples_of(text, "reprise_key_active"),
            lines("reprise_key_active", {"3", "0", "0", "11"}));
  EXPECT_EQ(samples_of(text, "reprise_key_delivered"),
            lines("reprise_key_delivered", {"5", "0", "2", "12"}));
}

TEST(MetricsText, AKeyCalledOtherIsCountedWithTheOthers) {
  std::vector<QueueStats> queues = some_queues(1);
  queues[0].keys.top = {{.key = "other", .pending = 1, .active = 2, .delivered = 3}};
  queues[0].keys.other = {.pending = 10, .active = 20, .delivered = 30};
  const std::string text = text_of(queues);
  const std::string labels = "{namespace=\"default\",queue=\"q0\",key=\"other\"} ";
  EXPECT_EQ(samples_of(text, "reprise_key_pending"), "reprise_key_pending" + labels + "11\n");
  EXPECT_EQ(samples_of(text, "reprise_key_active"), "reprise_key_active" + labels + "22\n");
  EXPECT_EQ(samples_of(text, "reprise_key_delivered"), "reprise_key_delivered" + labels + "33\n");
}

TEST(MetricsText, SumsTheKeysOfQueuesBeyondTheThousandth) {
  std::vector<QueueStats> queues = some_queues(1002);
  for (QueueStats& stats : queues) {
    stats.keys.active = 2;
    stats.keys.top = {{.key = "acme", .pending = 4}};
    stats.breaker = OutageStats{};
  }
  const std::string text = text_of(queues);
  EXPECT_THAT(text, HasSubstr("reprise_queue_keys{namespace=\"_other\",queue=\"_other\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("queue=\"q999\",key=\"acme\"} 4\n"));
  EXPECT_THAT(text, Not(HasSubstr("queue=\"_other\",key=")));
  EXPECT_THAT(text, Not(HasSubstr("reprise_queue_breaker{namespace=\"_other\"")));
}

TEST(MetricsText, HasTheBreakersOfQueues) {
  for (const auto& [state, number] : {std::pair{BreakerState::closed, "0"},
                                      {BreakerState::open, "1"},
                                      {BreakerState::trial, "2"}}) {
    std::vector<QueueStats> queues = some_queues(2);
    queues[1].breaker = OutageStats{.state = state, .opened = 3, .spared = 40};
    const std::string text = text_of(queues);
    const std::string labels = "{namespace=\"default\",queue=\"q1\"} ";
    EXPECT_EQ(samples_of(text, "reprise_queue_breaker"),
              "reprise_queue_breaker" + labels + number + "\n");
    EXPECT_EQ(samples_of(text, "reprise_queue_breaker_opened_total"),
              "reprise_queue_breaker_opened_total" + labels + "3\n");
    EXPECT_EQ(samples_of(text, "reprise_queue_breaker_spared_total"),
              "reprise_queue_breaker_spared_total" + labels + "40\n");
  }
}

ThrottleStats throttle_of(std::string ns, std::string key, std::uint64_t waiting) {
  return {.throttle = {.ns = std::move(ns), .key = std::move(key), .rate = {}},
          .tokens = 0.5,
          .waiting = waiting};
}

TEST(MetricsText, HasTheThrottlesThatMostWaitFor) {
  std::vector<ThrottleStats> throttles;
  for (int i = 10; i < 35; ++i) throttles.push_back(throttle_of("a", "t" + std::to_string(i), 0));
  throttles.push_back(throttle_of("b", "api", 7));
  throttles.push_back(throttle_of("b", "say \"x\"", 9));
  const std::string text = text_of({}, {}, throttles);
  const auto lines = [](const std::string& name, std::array<const char*, 3> values) {
    std::string expected = name + R"({namespace="b",throttle="say \"x\""} )" + values[0] + "\n" +
                           name + R"({namespace="b",throttle="api"} )" + values[1] + "\n";
    for (int i = 10; i < 28; ++i) {
      expected +=
          name + R"({namespace="a",throttle="t)" + std::to_string(i) + "\"} " + values[2] + "\n";
    }
    return expected;
  };
  EXPECT_EQ(samples_of(text, "reprise_throttle_tokens"),
            lines("reprise_throttle_tokens", {"0.5", "0.5", "0.5"}));
  EXPECT_EQ(samples_of(text, "reprise_throttle_waiting"),
            lines("reprise_throttle_waiting", {"9", "7", "0"}));
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

TEST(MetricsText, CountsProjectsWorkersAndRuns) {
  const std::string text = text_of({}, {}, {},
                                   {.projects = 5,
                                    .broken_projects = 2,
                                    .workers_running = 6,
                                    .workers_stopped = 7,
                                    .slots = 8,
                                    .active = 9,
                                    .runs_succeeded = 10,
                                    .runs_failed = 11,
                                    .runs_cancelled = 12,
                                    .runs_lost = 13,
                                    .polls_succeeded = 14,
                                    .polls_failed = 15});
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_projects gauge\n"
                              "reprise_projects{state=\"ok\"} 3\n"
                              "reprise_projects{state=\"broken\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_workers gauge\n"
                              "reprise_workers{status=\"running\"} 6\n"
                              "reprise_workers{status=\"stopped\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_worker_slots 8\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_worker_slots_active 9\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_runs_total counter\n"
                              "reprise_runs_total{status=\"succeeded\"} 10\n"
                              "reprise_runs_total{status=\"failed\"} 11\n"
                              "reprise_runs_total{status=\"cancelled\"} 12\n"
                              "reprise_runs_total{status=\"lost\"} 13\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_polls_total counter\n"
                              "reprise_polls_total{result=\"succeeded\"} 14\n"
                              "reprise_polls_total{result=\"failed\"} 15\n"));
}

TEST(MetricsText, CountsTheAnswersOfHooks) {
  std::vector<QueueStats> queues = some_queues(3);
  queues[1].hooks[static_cast<std::size_t>(HookKind::on_enqueue)] =
      HookStats{.succeeded = 9, .remembered = 4};
  queues[2].hooks[static_cast<std::size_t>(HookKind::on_failure)] = HookStats{
      .breaker = BreakerState::open, .succeeded = 12, .failed = {1, 2, 3, 4, 5, 6}, .in_flight = 7};
  const std::string text = text_of(queues);
  const auto lines = [](const std::string& labels, std::vector<int> counts) {
    static constexpr std::array kResults = {
        "ok", "error", "timeout", "memory", "invalid_result", "host_lost", "breaker_open"};
    std::string expected;
    for (std::size_t i = 0; i < kResults.size(); ++i) {
      expected += "reprise_hook_calls_total{namespace=\"default\"," + labels + ",result=\"" +
                  kResults.at(i) + "\"} " + std::to_string(counts.at(i)) + "\n";
    }
    return expected;
  };
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_hook_calls_total counter\n" +
                              lines("queue=\"q1\",hook=\"on_enqueue\"", {9, 0, 0, 0, 0, 0, 0}) +
                              lines("queue=\"q2\",hook=\"on_failure\"", {12, 1, 2, 3, 4, 5, 6}) +
                              "# HELP"));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_hook_remembered_total counter\n"
                              "reprise_hook_remembered_total{namespace=\"default\","
                              "queue=\"q1\",hook=\"on_enqueue\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_hook_in_flight gauge\n"
                              "reprise_hook_in_flight{namespace=\"default\",queue=\"q1\","
                              "hook=\"on_enqueue\"} 0\n"
                              "reprise_hook_in_flight{namespace=\"default\",queue=\"q2\","
                              "hook=\"on_failure\"} 7\n"));
}

TEST(MetricsText, HasTheStateOfBreakers) {
  for (const auto& [state, number] : {std::pair{BreakerState::closed, "0"},
                                      {BreakerState::open, "1"},
                                      {BreakerState::trial, "2"}}) {
    std::vector<QueueStats> queues = some_queues(1);
    queues[0].hooks[static_cast<std::size_t>(HookKind::on_failure)] = HookStats{.breaker = state};
    EXPECT_THAT(text_of(queues), HasSubstr("# TYPE reprise_hook_breaker gauge\n"
                                           "reprise_hook_breaker{namespace=\"default\","
                                           "queue=\"q0\",hook=\"on_failure\"} " +
                                           std::string(number) + "\n"));
  }
}

TEST(MetricsText, CountsTheProcessesThatRunHooks) {
  const std::string text = text_of({});
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_hook_hosts gauge\nreprise_hook_hosts 3\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE reprise_hook_hosts_started_total counter\n"
                              "reprise_hook_hosts_started_total 6\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_hook_hosts_killed_total 2\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_hook_hosts_lost_total 1\n"));
}

TEST(MetricsText, LeavesOutTheHooksOfQueuesBeyondTheThousandth) {
  std::vector<QueueStats> queues = some_queues(1001);
  for (QueueStats& stats : queues) stats.hooks[0] = HookStats{.succeeded = 1};
  const std::string text = text_of(queues);
  EXPECT_THAT(text, HasSubstr("queue=\"q999\",hook=\"on_enqueue\",result=\"ok\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("queue=\"_other\",hook=")));
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
