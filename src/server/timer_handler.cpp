// Timers: what the server will do by itself, and when.
#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "model/timer_id.h"
#include "server/handlers.h"
#include "server/worker_json.h"

namespace reprise::server {
namespace {

using worker::TimerView;

constexpr std::uint64_t kMaxTimers = 1000;
constexpr std::uint64_t kDefaultTimers = 100;
// Pages that may turn up nothing: a queue with millions of delayed jobs is not read through for a
// few failed ones.
constexpr int kMaxEmptyPages = 50;

struct QueueToRead {
  QueueName name;
  std::uint64_t failed = 0;  // jobs still to be found
};

// Gathers failed jobs, queue after queue and page after page.
struct Gathering {
  Broker& broker;
  std::uint64_t limit = 0;
  Done<std::vector<TimerView>> done;
  std::vector<TimerView> timers{};
  std::deque<QueueToRead> queues{};
  std::string cursor{};
  int empty_pages = 0;
};

void read_next_page(const std::shared_ptr<Gathering>& gathering);

void on_page(const std::shared_ptr<Gathering>& gathering, BrowsePage page) {
  QueueToRead& queue = gathering->queues.front();
  for (const JobView& job : page.jobs) {
    const TimerId id{TimerId::Kind::queue_retry, queue.name.ns, queue.name.name, job.seq};
    gathering->timers.push_back({id.to_text(), job.state ? job.state->due : Timestamp{}});
  }
  queue.failed -= std::min<std::uint64_t>(queue.failed, page.jobs.size());
  if (page.jobs.empty()) ++gathering->empty_pages;
  const bool at_end =
      page.cursor.empty() || queue.failed == 0 || gathering->empty_pages > kMaxEmptyPages;
  gathering->cursor = at_end ? std::string() : std::move(page.cursor);
  if (at_end) gathering->queues.pop_front();
  read_next_page(gathering);
}

void read_next_page(const std::shared_ptr<Gathering>& gathering) {
  const std::uint64_t found = gathering->timers.size();
  if (gathering->queues.empty() || found >= gathering->limit) {
    return gathering->done(std::move(gathering->timers));
  }
  BrowseQuery query{.queue = gathering->queues.front().name};
  query.filter.status = JobStatus::failed;
  query.limit = static_cast<std::uint32_t>(gathering->limit - found);
  query.cursor = gathering->cursor;
  gathering->broker.browse(std::move(query), [gathering](Result<BrowsePage> page) {
    if (page) return on_page(gathering, std::move(*page));
    if (page.error().code != Errc::queue_not_found) return gathering->done(page.error());
    on_page(gathering, BrowsePage{});  // deleted meanwhile
  });
}

void read_failed_jobs(const std::shared_ptr<Gathering>& gathering, std::string ns) {
  gathering->broker.list_queues(
      std::move(ns), [gathering](const Result<std::vector<QueueStats>>& queues) {
        if (!queues) return gathering->done(queues.error());
        for (const QueueStats& stats : *queues) {
          const auto failed = stats.by_status[static_cast<std::size_t>(JobStatus::failed)];
          if (failed > 0) gathering->queues.push_back({stats.queue.name, failed});
        }
        read_next_page(gathering);
      });
}

}  // namespace

Status list_timers(Api& api, Request& request, const Exchange& exchange) {
  auto ns = request.namespace_or_all();
  if (!ns) return ns.error();
  const auto limit = request.query.take_number("limit", 1, kMaxTimers).value_or(kDefaultTimers);
  REPRISE_TRY(request.query.finish());
  REPRISE_TRY(request.expect_no_fields());
  auto gathering = std::make_shared<Gathering>(
      Gathering{api.broker, limit, exchange.then<std::vector<TimerView>>(timers_response)});
  // Jobs cool down whether workers run or not.
  if (api.workers == nullptr) {
    read_failed_jobs(gathering, std::move(*ns));
    return ok();
  }
  api.workers->list_timers(*ns, [gathering, ns = *ns](Result<std::vector<TimerView>> polls) {
    if (!polls) return gathering->done(polls.error());
    gathering->timers = std::move(*polls);
    if (gathering->timers.size() > gathering->limit) gathering->timers.resize(gathering->limit);
    read_failed_jobs(gathering, ns);
  });
  return ok();
}

}  // namespace reprise::server
