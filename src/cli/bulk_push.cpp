#include "cli/bulk_push.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/job_encoder.h"

namespace reprise::cli {
namespace {

// A refusal that a single job of the batch may have caused.
bool one_job_may_be_the_cause(const client::Reply& reply) {
  const std::string code = reply.json()["error"]["code"].string_or("");
  return (reply.status == 400 || reply.status == 413) && code != "invalid_name";
}

// What has become of the jobs nobody knows, as without an answer.
Error tells_nothing(int status) {
  return {
      Errc::unreachable,
      fmt::format("the server's answer (HTTP {}) does not tell what became of each job", status)};
}

}  // namespace

BulkPush::BulkPush(Send send, OnRejected on_rejected, bool create)
    : send_(std::move(send)), on_rejected_(std::move(on_rejected)), create_(create) {}

bool BulkPush::add(PushedJob job) {
  if (stop_) return false;
  if (!items_.empty() && bytes_ + job.job.size() > kBatchBytes && !flush()) return false;
  bytes_ += job.job.size();
  items_.push_back(std::move(job));
  return items_.size() < kBatchJobs || flush();
}

void BulkPush::reject(std::uint64_t line, const Problem& problem) {
  ++counts_.rejected;
  on_rejected_(line, problem);
  if (items_.empty()) counts_.lines = std::max(counts_.lines, line);
}

bool BulkPush::flush() {
  if (stop_) return false;
  const bool sent = items_.empty() || send(0, items_.size());
  items_.clear();
  bytes_ = 0;
  return sent;
}

bool BulkPush::send(std::size_t begin, std::size_t end) {
  if (away_) return keep(begin, end);
  std::vector<std::string_view> jobs;
  for (std::size_t i = begin; i < end; ++i) jobs.push_back(items_[i].job);
  auto reply = send_(push_body(jobs, create_));

  if (keep_ && is_away(reply)) return leave_to_spool(std::move(reply), begin, end);
  if (reply && !reply->refused()) {
    const auto results = reply->json()["results"].elements();
    if (results.size() == end - begin) {
      count_results(results, begin, end);
      return true;
    }
    reply = tells_nothing(reply->status);
    if (keep_) return leave_to_spool(std::move(reply), begin, end);
  }
  if (reply && one_job_may_be_the_cause(*reply)) {
    if (end - begin > 1) {
      const std::size_t middle = begin + (end - begin) / 2;
      return send(begin, middle) && send(middle, end);
    }
    counts_.lines = items_[begin].line;
    ++counts_.rejected;
    on_rejected_(items_[begin].line, problem_from(reply->json()["error"]));
    return true;
  }
  stop_ = Stop{.reply = std::move(reply),
               .first_line = items_[begin].line,
               .last_line = items_[end - 1].line,
               .spool_error = {}};
  return false;
}

bool BulkPush::leave_to_spool(Result<client::Reply> reply, std::size_t begin, std::size_t end) {
  away_ = std::move(reply);
  last_line_sent_ = items_[end - 1].line;
  return keep(begin, end);
}

bool BulkPush::keep(std::size_t begin, std::size_t end) {
  KeptJobs kept = keep_(std::span(items_).subspan(begin, end - begin));
  counts_.spooled += kept.stored;
  for (const auto& [line, problem] : kept.rejected) {
    ++counts_.rejected;
    on_rejected_(line, problem);
  }
  if (kept.dealt_with > 0) counts_.lines = items_[begin + kept.dealt_with - 1].line;
  if (!kept.error) return true;
  stop_ = Stop{.reply = *away_,
               .first_line = items_[begin + kept.dealt_with].line,
               .last_line = last_line_sent_,
               .spool_error = std::move(kept.error)};
  return false;
}

void BulkPush::count_results(const std::vector<JsonView>& results, std::size_t begin,
                             std::size_t end) {
  for (const auto& result : results) {
    const std::string status = result["status"].string_or("");
    if (status == "pushed") {
      ++counts_.pushed;
    } else if (status == "duplicate") {
      ++counts_.duplicates;
    } else {
      ++counts_.rejected;
      const std::size_t index = begin + result["index"].unsigned_integer().value_or(0);
      on_rejected_(items_[std::min(index, end - 1)].line, problem_from(result["error"]));
    }
  }
  counts_.lines = items_[end - 1].line;
}

}  // namespace reprise::cli
