#include "queue_requests.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "error_texts.h"
#include "load_error.h"

namespace reprise::bench {
namespace {

constexpr std::string_view kJobsOpening = R"({"jobs":[)";
constexpr std::string_view kJobOpening = R"({"payload":)";
constexpr std::string_view kListClosing = "]}";
constexpr std::size_t kShownBytes = 500;

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    count++;
  }
  return count;
}

[[noreturn]] void refuse(const HttpReply& reply, std::string_view wanted) {
  throw LoadError(fmt::format("wanted {}, got status {}: {}", wanted, reply.status,
                              reply.body.substr(0, kShownBytes)));
}

}  // namespace

QueueRequests::QueueRequests(std::string host, std::string queue, const PayloadSource& payloads)
    : host_(std::move(host)), path_("/v1/queues/" + std::move(queue)), payloads_(payloads) {}

void QueueRequests::create(std::string& out) const { write(out, "PUT " + path_, "{}"); }

void QueueRequests::push(std::string& out, const Stamp& first, std::size_t count) const {
  const std::size_t job_bytes = kJobOpening.size() + payloads_.payload_bytes() + 1;
  const std::size_t commas = count - 1;
  write_head(out, "POST " + path_ + "/push",
             kJobsOpening.size() + count * job_bytes + commas + kListClosing.size());
  out += kJobsOpening;
  for (std::size_t i = 0; i < count; i++) {
    if (i > 0) out += ',';
    out += kJobOpening;
    payloads_.append(out, {first.serial + i, first.due});
    out += '}';
  }
  out += kListClosing;
}

void QueueRequests::claim(std::string& out, std::size_t max, std::chrono::seconds wait) const {
  write(out, "POST " + path_ + "/claim",
        fmt::format(R"({{"max":{},"wait":"{}s","lease":"1h"}})", max, wait.count()));
}

void QueueRequests::ack(std::string& out, const std::vector<std::string>& tokens) const {
  std::string body = R"({"leases":[)";
  for (std::size_t i = 0; i < tokens.size(); i++) {
    if (i > 0) body += ',';
    body += R"({"token":")";
    body += tokens[i];
    body += R"("})";
  }
  body += kListClosing;
  write(out, "POST /v1/ack", body);
}

void QueueRequests::fail_for_good(std::string& out, const ClaimedJobs& jobs) const {
  std::string body = R"({"leases":[)";
  for (std::size_t i = 0; i < jobs.tokens.size(); i++) {
    if (i > 0) body += ',';
    fmt::format_to(std::back_inserter(body), R"({{"token":"{}","error":"{}","final":true}})",
                   jobs.tokens[i], error_text(jobs.stamps[i].serial));
  }
  body += kListClosing;
  write(out, "POST /v1/fail", body);
}

void QueueRequests::write(std::string& out, std::string_view request_line,
                          std::string_view body) const {
  write_head(out, request_line, body.size());
  out += body;
}

void QueueRequests::write_head(std::string& out, std::string_view request_line,
                               std::size_t body_bytes) const {
  out.clear();
  fmt::format_to(std::back_inserter(out),
                 "{} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
                 "Content-Length: {}\r\n\r\n",
                 request_line, host_, body_bytes);
}

void expect_ok(const HttpReply& reply) {
  if (reply.status != 200 && reply.status != 201) refuse(reply, "status 200 or 201");
}

void expect_results(const HttpReply& reply, std::string_view status, std::size_t count) {
  if (reply.status != 200 || count_of(reply.body, fmt::format("\"{}\"", status)) != count) {
    refuse(reply, fmt::format("status 200 with {} × \"{}\"", count, status));
  }
}

}  // namespace reprise::bench
