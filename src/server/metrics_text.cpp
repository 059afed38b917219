#include "server/metrics_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "reprise_version.h"
#include "server/routes.h"

namespace reprise::server {
namespace {

class MetricsWriter {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    print("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }

  // `labels` without braces: a="1",b="2".
  template <class Number>
  void sample(std::string_view labels, Number value) {
    if (labels.empty()) {
      print("{} {}\n", name_, value);
    } else {
      print("{}{{{}}} {}\n", name_, labels, value);
    }
  }

  template <class Number>
  void single(std::string_view name, std::string_view type, std::string_view help, Number value) {
    begin(name, type, help);
    sample("", value);
  }

  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    begin(name, "histogram", help);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      below += histogram.counts[i];
      const bool last = i >= histogram.upper_bounds.size();
      const std::string bound = last ? "+Inf" : fmt::format("{}", histogram.upper_bounds[i]);
      print("{}_bucket{{le=\"{}\"}} {}\n", name, bound, below);
    }
    print("{}_sum {}\n{}_count {}\n", name, histogram.sum, name, below);
  }

  std::string take() { return std::move(out_); }

 private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  std::string out_;
  std::string_view name_;
};

// Names of queues and namespaces hold nothing that needs escaping in a label.
std::string queue_labels(const QueueName& name) {
  return fmt::format("namespace=\"{}\",queue=\"{}\"", name.ns, name.name);
}

// A label's value that may be any text.
std::string label_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else {
      if (c == '\\' || c == '"') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

void add_up(QueueStats& sum, const QueueStats& stats) {
  for (std::size_t i = 0; i < kJobStatusCount; ++i) sum.by_status[i] += stats.by_status[i];
  sum.bytes += stats.bytes;
  sum.waiting_claims += stats.waiting_claims;
  if (stats.oldest_pending_age) {
    sum.oldest_pending_age =
        std::max(sum.oldest_pending_age.value_or(Duration::zero()), *stats.oldest_pending_age);
  }
  sum.push_rate += stats.push_rate;
  sum.claim_rate += stats.claim_rate;
  sum.completion_rate += stats.completion_rate;
  sum.failure_rate += stats.failure_rate;
  static constexpr std::array kTotals = {
      &QueueTotals::pushed,        &QueueTotals::duplicates,   &QueueTotals::claimed,
      &QueueTotals::completed,     &QueueTotals::failed,       &QueueTotals::released,
      &QueueTotals::lease_expired, &QueueTotals::expired,      &QueueTotals::died,
      &QueueTotals::dropped,       &QueueTotals::corrupt,      &QueueTotals::moved_in,
      &QueueTotals::moved_out,     &QueueTotals::retried,      &QueueTotals::purged,
      &QueueTotals::dead_expired,  &QueueTotals::dead_evicted, &QueueTotals::claimed_retry};
  for (const auto total : kTotals) sum.totals.*total += stats.totals.*total;
  sum.keys.active += stats.keys.active;
  sum.lanes.retry_in_flight += stats.lanes.retry_in_flight;
  sum.lanes.retry_credit += stats.lanes.retry_credit;
  for (std::size_t i = 0; i < kFailureBuckets; ++i) {
    sum.lanes.retries_by_failures[i] += stats.lanes.retries_by_failures[i];
  }
}

// A row of samples: its labels and where its numbers are.
struct QueueRow {
  std::string labels;
  const QueueStats* stats;
};

struct QueueTotalMetric {
  std::string_view name;
  std::string_view help;
  std::uint64_t QueueTotals::*total;
};
constexpr std::array<QueueTotalMetric, 17> kQueueTotals = {{
    {"reprise_pushed_total", "Jobs pushed.", &QueueTotals::pushed},
    {"reprise_duplicates_total", "Pushes whose key was known.", &QueueTotals::duplicates},
    {"reprise_claimed_total", "Leases granted.", &QueueTotals::claimed},
    {"reprise_completed_total", "Jobs acked.", &QueueTotals::completed},
    {"reprise_failed_total", "Failed attempts.", &QueueTotals::failed},
    {"reprise_released_total", "Leases given back.", &QueueTotals::released},
    {"reprise_lease_expired_total", "Leases that ran out.", &QueueTotals::lease_expired},
    {"reprise_expired_total", "Jobs that outlived their ttl.", &QueueTotals::expired},
    {"reprise_died_total", "Jobs that became dead.", &QueueTotals::died},
    {"reprise_dropped_total", "Jobs dropped.", &QueueTotals::dropped},
    {"reprise_corrupt_total", "Jobs that could not be read and became dead.",
     &QueueTotals::corrupt},
    {"reprise_moved_in_total", "Jobs that came from another queue.", &QueueTotals::moved_in},
    {"reprise_moved_out_total", "Jobs that went to another queue.", &QueueTotals::moved_out},
    {"reprise_retried_total", "Jobs brought back by hand.", &QueueTotals::retried},
    {"reprise_purged_total", "Dead jobs deleted by hand.", &QueueTotals::purged},
    {"reprise_dead_expired_total", "Dead jobs deleted because of keep_dead.",
     &QueueTotals::dead_expired},
    {"reprise_dead_evicted_total", "Dead jobs deleted because of max_dead.",
     &QueueTotals::dead_evicted},
}};

struct QueueRateMetric {
  std::string_view name;
  double QueueStats::*rate;
};
constexpr std::array<QueueRateMetric, 4> kQueueRates = {{
    {"reprise_push_rate", &QueueStats::push_rate},
    {"reprise_claim_rate", &QueueStats::claim_rate},
    {"reprise_completion_rate", &QueueStats::completion_rate},
    {"reprise_failure_rate", &QueueStats::failure_rate},
}};

void write_queue_state(MetricsWriter& out, const std::vector<QueueRow>& rows) {
  out.begin("reprise_jobs", "gauge", "Jobs by status.");
  for (const QueueRow& row : rows) {
    for (std::size_t i = 0; i < kJobStatusCount; ++i) {
      const auto status = static_cast<JobStatus>(i);
      if (status == JobStatus::completed) continue;  // a total, with a metric of its own
      out.sample(fmt::format("{},status=\"{}\"", row.labels, status_name(status)),
                 row.stats->by_status[i]);
    }
  }
  out.begin("reprise_queue_bytes", "gauge", "Bytes of jobs that are not dead.");
  for (const QueueRow& row : rows) out.sample(row.labels, row.stats->bytes);
  out.begin("reprise_oldest_pending_age_seconds", "gauge", "Age of the oldest pending job.");
  for (const QueueRow& row : rows) {
    const Duration age = row.stats->oldest_pending_age.value_or(Duration::zero());
    out.sample(row.labels, std::chrono::duration<double>(age).count());
  }
  out.begin("reprise_waiting_claims", "gauge", "Claims in line.");
  for (const QueueRow& row : rows) out.sample(row.labels, row.stats->waiting_claims);
}

void write_lanes(MetricsWriter& out, const std::vector<QueueRow>& rows) {
  out.begin("reprise_claimed_by_lane_total", "counter", "Leases granted, by lane.");
  for (const QueueRow& row : rows) {
    const QueueTotals& totals = row.stats->totals;
    out.sample(row.labels + ",lane=\"fresh\"", totals.claimed - totals.claimed_retry);
    out.sample(row.labels + ",lane=\"retry\"", totals.claimed_retry);
  }
  out.begin("reprise_retry_backlog", "gauge", "Retries that wait, by how often they have failed.");
  for (const QueueRow& row : rows) {
    for (std::size_t i = 0; i < kFailureBuckets; ++i) {
      out.sample(fmt::format("{},failures=\"{}\"", row.labels, failure_bucket_name(i)),
                 row.stats->lanes.retries_by_failures[i]);
    }
  }
  out.begin("reprise_retry_credit", "gauge", "What the retry lane has saved up, 0 to 1.");
  for (const QueueRow& row : rows) out.sample(row.labels, row.stats->lanes.retry_credit);
  out.begin("reprise_retry_in_flight", "gauge", "Retries that are leased.");
  for (const QueueRow& row : rows) out.sample(row.labels, row.stats->lanes.retry_in_flight);
}

struct KeyRow {
  std::string labels;
  KeyStats stats;
};

// Nothing for a queue where nobody names keys, and the sum of queues beyond the first ones.
void add_key_rows(std::vector<KeyRow>& rows, const QueueRow& queue) {
  const KeysStats& keys = queue.stats->keys;
  const bool names_keys = std::ranges::any_of(
      keys.top, [](const KeyStats& key) { return key.key != kDefaultFairnessKey; });
  if (!names_keys) return;
  // A key that is called so itself is counted there: no two samples may have the same labels.
  static constexpr std::string_view kOther = "other";
  KeyStats other = keys.other;
  for (const KeyStats& key : keys.top) {
    if (key.key == kOther) {
      other.pending += key.pending;
      other.active += key.active;
      other.delivered += key.delivered;
    } else {
      rows.push_back({fmt::format("{},key=\"{}\"", queue.labels, label_text(key.key)), key});
    }
  }
  rows.push_back({fmt::format("{},key=\"{}\"", queue.labels, kOther), other});
}

struct KeyMetric {
  std::string_view name;
  std::string_view help;
  std::uint64_t KeyStats::*number;
};
constexpr std::array<KeyMetric, 3> kKeyMetrics = {{
    {"reprise_key_pending", "Jobs of a fairness key that are pending.", &KeyStats::pending},
    {"reprise_key_active", "Jobs of a fairness key that are leased.", &KeyStats::active},
    {"reprise_key_delivered", "Leases granted to a fairness key in the last minute.",
     &KeyStats::delivered},
}};

void write_keys(MetricsWriter& out, const std::vector<QueueRow>& rows) {
  out.begin("reprise_queue_keys", "gauge", "Fairness keys that have jobs.");
  for (const QueueRow& row : rows) out.sample(row.labels, row.stats->keys.active);
  std::vector<KeyRow> keys;
  for (const QueueRow& row : rows) add_key_rows(keys, row);
  for (const KeyMetric& metric : kKeyMetrics) {
    out.begin(metric.name, "gauge", metric.help);
    for (const KeyRow& key : keys) out.sample(key.labels, key.stats.*metric.number);
  }
}

void write_breakers(MetricsWriter& out, const std::vector<QueueRow>& rows) {
  const auto write = [&](std::string_view name, std::string_view type, std::string_view help,
                         auto number) {
    out.begin(name, type, help);
    for (const QueueRow& row : rows) {
      if (row.stats->breaker) out.sample(row.labels, number(*row.stats->breaker));
    }
  };
  write("reprise_queue_breaker", "gauge", "0 closed, 1 open, 2 trial.",
        [](const OutageStats& breaker) { return static_cast<int>(breaker.state); });
  write("reprise_queue_breaker_opened_total", "counter", "Times that a queue's breaker opened.",
        [](const OutageStats& breaker) { return breaker.opened; });
  write("reprise_queue_breaker_spared_total", "counter",
        "Failures that did not count because of it.",
        [](const OutageStats& breaker) { return breaker.spared; });
}

void write_throttles(MetricsWriter& out, const std::vector<ThrottleStats>& throttles) {
  std::vector<const ThrottleStats*> shown;
  shown.reserve(throttles.size());
  for (const ThrottleStats& stats : throttles) shown.push_back(&stats);
  std::ranges::stable_sort(shown, std::ranges::greater(), &ThrottleStats::waiting);
  if (shown.size() > kMaxThrottlesInMetrics) shown.resize(kMaxThrottlesInMetrics);
  const auto labels = [](const Throttle& throttle) {
    return fmt::format("namespace=\"{}\",throttle=\"{}\"", throttle.ns, label_text(throttle.key));
  };
  out.begin("reprise_throttle_tokens", "gauge", "Tokens in a throttle's bucket.");
  for (const auto* stats : shown) out.sample(labels(stats->throttle), stats->tokens);
  out.begin("reprise_throttle_waiting", "gauge", "Fairness keys that wait for a throttle.");
  for (const auto* stats : shown) out.sample(labels(stats->throttle), stats->waiting);
}

struct HookRow {
  std::string labels;
  const HookStats* stats;
};

// Queues beyond the first ones are not summed up here: what could be told of them all is little.
void write_hooks(MetricsWriter& out, const std::vector<QueueRow>& rows) {
  std::vector<HookRow> hooks;
  for (const QueueRow& row : rows) {
    for (std::size_t kind = 0; kind < kHookKindCount; ++kind) {
      const auto& stats = row.stats->hooks[kind];
      if (!stats) continue;
      const std::string_view name = hook_name(static_cast<HookKind>(kind));
      hooks.push_back({fmt::format("{},hook=\"{}\"", row.labels, name), &*stats});
    }
  }
  out.begin("reprise_hook_calls_total", "counter", "Answers of hooks since the server started.");
  for (const HookRow& hook : hooks) {
    out.sample(hook.labels + ",result=\"ok\"", hook.stats->succeeded);
    for (std::size_t fault = 0; fault < kHookFaultCount; ++fault) {
      out.sample(fmt::format("{},result=\"{}\"", hook.labels,
                             hook_fault_name(static_cast<HookFault>(fault))),
                 hook.stats->failed[fault]);
    }
  }
  out.begin("reprise_hook_remembered_total", "counter",
            "Those of the answers with result=ok that were known without a call.");
  for (const HookRow& hook : hooks) out.sample(hook.labels, hook.stats->remembered);
  out.begin("reprise_hook_breaker", "gauge", "0 closed, 1 open, 2 trial.");
  for (const HookRow& hook : hooks) {
    out.sample(hook.labels, static_cast<int>(hook.stats->breaker));
  }
  out.begin("reprise_hook_in_flight", "gauge", "Calls that are out or wait for their turn.");
  for (const HookRow& hook : hooks) out.sample(hook.labels, hook.stats->in_flight);
}

void write_webhooks(MetricsWriter& out, const WebhookStats& webhooks) {
  out.single("reprise_webhooks_pending", "gauge", "Deaths still to be told.", webhooks.pending);
  out.begin("reprise_webhooks_total", "counter", "Deaths told, or tried to.");
  out.sample("result=\"delivered\"", webhooks.delivered);
  out.sample("result=\"failed\"", webhooks.failed);
  out.sample("result=\"given_up\"", webhooks.given_up);
}

void write_workers(MetricsWriter& out, const worker::WorkerMetrics& workers) {
  out.begin("reprise_projects", "gauge", "Projects that the server knows.");
  out.sample("state=\"ok\"", workers.projects - workers.broken_projects);
  out.sample("state=\"broken\"", workers.broken_projects);
  out.begin("reprise_workers", "gauge", "Workers of all projects.");
  out.sample("status=\"running\"", workers.workers_running);
  out.sample("status=\"stopped\"", workers.workers_stopped);
  out.single("reprise_worker_slots", "gauge", "Jobs that running workers may have at once.",
             workers.slots);
  out.single("reprise_worker_slots_active", "gauge", "Jobs that they have.", workers.active);
  out.begin("reprise_runs_total", "counter", "Runs that have ended since the server started.");
  out.sample("status=\"succeeded\"", workers.runs_succeeded);
  out.sample("status=\"failed\"", workers.runs_failed);
  out.sample("status=\"cancelled\"", workers.runs_cancelled);
  out.sample("status=\"lost\"", workers.runs_lost);
  out.begin("reprise_polls_total", "counter", "Lists of external queues read.");
  out.sample("result=\"succeeded\"", workers.polls_succeeded);
  out.sample("result=\"failed\"", workers.polls_failed);
}

void write_queues(MetricsWriter& out, const std::vector<QueueStats>& queues) {
  std::vector<QueueRow> rows;
  QueueStats others;
  for (const QueueStats& stats : queues) {
    if (rows.size() < kMaxQueuesInMetrics) {
      rows.push_back({queue_labels(stats.queue.name), &stats});
    } else {
      add_up(others, stats);
    }
  }
  // '_' cannot begin a name, so no queue is called so.
  if (queues.size() > rows.size()) rows.push_back({queue_labels({"_other", "_other"}), &others});

  write_queue_state(out, rows);
  write_lanes(out, rows);
  write_keys(out, rows);
  write_breakers(out, rows);
  write_hooks(out, rows);
  for (const QueueTotalMetric& metric : kQueueTotals) {
    out.begin(metric.name, "counter", metric.help);
    for (const QueueRow& row : rows) out.sample(row.labels, row.stats->totals.*metric.total);
  }
  for (const QueueRateMetric& metric : kQueueRates) {
    out.begin(metric.name, "gauge", "Per second over the last minute.");
    for (const QueueRow& row : rows) out.sample(row.labels, row.stats->*metric.rate);
  }
}

void write_broker(MetricsWriter& out, const BrokerMetrics& broker) {
  out.histogram("reprise_commit_seconds", "Time to commit a batch.", broker.commit_seconds);
  out.histogram("reprise_commit_batch_commands", "Commands in a batch.", broker.batch_commands);
  out.histogram("reprise_commit_batch_bytes", "Bytes in a batch.", broker.batch_bytes);
  out.begin("reprise_storage_info", "gauge", "How jobs are kept.");
  out.sample(
      fmt::format("storage=\"{}\",durability=\"{}\"", broker.storage_kind, broker.durability), 1);
  out.single("reprise_storage_bytes", "gauge", "Bytes of the data directory.",
             broker.storage_bytes);
  out.single("reprise_disk_free_bytes", "gauge", "Bytes free on its disk.", broker.free_disk_bytes);
  out.single("reprise_disk_low", "gauge", "1 while pushes are refused for lack of disk.",
             broker.disk_low ? 1 : 0);
  out.single("reprise_cache_bytes", "gauge", "Bytes in the cache of recent jobs.",
             broker.cache_bytes);
  out.single("reprise_cache_hits_total", "counter", "Jobs found in the cache.", broker.cache_hits);
  out.single("reprise_cache_misses_total", "counter", "Jobs read from storage.",
             broker.cache_misses);
  out.single("reprise_events_published_total", "counter", "Events told to whoever watches.",
             broker.events_published);
  out.single("reprise_operations_running", "gauge", "Retries and purges under way.",
             broker.operations_running);
  out.single("reprise_hook_hosts", "gauge", "Processes that run hooks.", broker.hook_hosts);
  out.single("reprise_hook_hosts_started_total", "counter", "Such processes started.",
             broker.hook_hosts_started);
  out.single("reprise_hook_hosts_killed_total", "counter",
             "Such processes killed for a call that took too long.", broker.hook_hosts_killed);
  out.single("reprise_hook_hosts_lost_total", "counter", "Such processes that ended by themselves.",
             broker.hook_hosts_lost);
}

void write_server(MetricsWriter& out, const ServerStats& server) {
  out.begin("reprise_http_requests_total", "counter", "Requests answered.");
  for (std::size_t index = 0; index <= kNoRoute; ++index) {
    if (index >= routes().size() && index != kNoRoute) continue;
    const std::string route =
        index == kNoRoute ? "none"
                          : fmt::format("{} {}", routes()[index].method, routes()[index].pattern);
    for (const int http_status : kHttpStatuses) {
      const std::uint64_t count = server.requests(index, http_status);
      if (count == 0) continue;
      out.sample(fmt::format("route=\"{}\",status=\"{}\"", route, http_status), count);
    }
  }
  const IngestCounts ingested = server.ingested();
  out.begin("reprise_ingested_events_total", "counter", "Events that came to be ingested.");
  out.sample("result=\"accepted\"", ingested.accepted);
  out.sample("result=\"duplicate\"", ingested.duplicates);
  out.sample("result=\"rejected\"", ingested.rejected);
  out.sample("result=\"deferred\"", ingested.deferred);
  out.single("reprise_connections", "gauge", "Connections open.", server.connections.load());
  out.single("reprise_connections_refused_total", "counter", "Connections beyond the limit.",
             server.connections_refused.load());
}

// When the process began, in clock ticks since the machine did: field 22 of its stat. The second
// field is the program's name in parentheses and may hold anything.
std::uint64_t start_ticks() {
  std::ifstream file("/proc/self/stat");
  std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(stat.c_str() + at, nullptr, 10);
}

double boot_time_seconds() {
  std::ifstream file("/proc/stat");
  std::string word;
  double value = 0;
  while (file >> word) {
    if (word == "btime" && file >> value) return value;
  }
  return 0;
}

void write_beanstalk(MetricsWriter& out, const BeanstalkStats& beanstalk) {
  out.single("reprise_beanstalk_connections", "gauge", "Open connections of beanstalk clients.",
             beanstalk.connections);
  out.begin("reprise_beanstalk_commands_total", "counter", "Commands of beanstalk clients.");
  for (std::size_t i = 0; i < kBeanstalkVerbCount; ++i) {
    const auto verb = static_cast<BeanstalkVerb>(i);
    out.sample(fmt::format("command=\"{}\"", beanstalk_verb_name(verb)), beanstalk.count(verb));
  }
}

}  // namespace

ProcessNumbers read_process_numbers() {
  ProcessNumbers numbers;
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  if (std::ifstream("/proc/self/statm") >> total_pages >> resident_pages) {
    numbers.resident_bytes = resident_pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  }
  static const double start_time =
      boot_time_seconds() +
      static_cast<double>(start_ticks()) / static_cast<double>(sysconf(_SC_CLK_TCK));
  numbers.start_time_seconds = start_time;
  return numbers;
}

std::string metrics_text(const MetricsInput& input) {
  MetricsWriter out;
  write_queues(out, input.queues);
  write_throttles(out, input.throttles);
  write_broker(out, input.broker);
  write_webhooks(out, input.webhooks);
  write_workers(out, input.workers);
  out.single("reprise_event_subscribers", "gauge", "Readers of the event stream.",
             input.event_subscribers);
  write_server(out, input.server);
  write_beanstalk(out, input.beanstalk);
  out.begin("reprise_build_info", "gauge", "The version that runs.");
  out.sample(fmt::format("version=\"{}\"", kVersion), 1);
  out.single("process_resident_memory_bytes", "gauge", "Resident memory.",
             input.process.resident_bytes);
  out.single("process_start_time_seconds", "gauge", "Start of the process since 1970.",
             fmt::format("{:.2f}", input.process.start_time_seconds));
  return out.take();
}

}  // namespace reprise::server
