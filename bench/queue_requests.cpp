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
// The tenant's number has two digits.
constexpr std::string_view kTenantOpening = R"({"headers":{"tenant":"t)";
constexpr std::string_view kTenantClosing = R"("},"payload":)";
constexpr std::size_t kTenantDigits = 2;
constexpr std::string_view kFairnessOpening = R"({"fairness_key":"tenant-)";
constexpr std::string_view kFairnessClosing = R"(","payload":)";
constexpr std::size_t kFairnessDigits = 7;
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

// With so many digits, the first ones 0.
void append_number(std::string& out, std::uint64_t number, std::size_t digits) {
  out.append(digits, '0');
  for (std::size_t at = out.size(); number > 0; number /= 10) {
    out[--at] = static_cast<char>('0' + number % 10);
  }
}

[[noreturn]] void refuse(const HttpReply& reply, std::string_view wanted) {
  throw LoadError(fmt::format("wanted {}, got status {}: {}", wanted, reply.status,
                              reply.body.substr(0, kShownBytes)));
}

}  // namespace

QueueRequests::QueueRequests(std::string host, std::string queue, const PayloadSource& payloads,
                             Owners owners)
    : host_(std::move(host)),
      path_("/v1/queues/" + std::move(queue)),
      payloads_(payloads),
      owners_(owners) {}

void QueueRequests::create(std::string& out) const {
  write_head(out, "PUT " + path_, 0, "If-None-Match: *\r\n");
}

void QueueRequests::push(std::string& out, const Stamp& first, std::size_t count) const {
  const std::size_t job_bytes = opening_bytes() + payloads_.payload_bytes() + 1;
  const std::size_t commas = count - 1;
  write_head(out, "POST " + path_ + "/push",
             kJobsOpening.size() + count * job_bytes + commas + kListClosing.size());
  out += kJobsOpening;
  for (std::size_t i = 0; i < count; i++) {
    if (i > 0) out += ',';
    append_opening(out, first.serial + i);
    payloads_.append(out, {first.serial + i, first.due});
    out += '}';
  }
  out += kListClosing;
}

std::size_t QueueRequests::opening_bytes() const {
  if (owners_.tenants > 0) return kTenantOpening.size() + kTenantDigits + kTenantClosing.size();
  if (owners_.fairness_keys > 0) {
    return kFairnessOpening.size() + kFairnessDigits + kFairnessClosing.size();
  }
  return kJobOpening.size();
}

void QueueRequests::append_opening(std::string& out, std::uint64_t serial) const {
  if (owners_.tenants > 0) {
    out += kTenantOpening;
    append_number(out, serial % owners_.tenants, kTenantDigits);
    out += kTenantClosing;
  } else if (owners_.fairness_keys > 0) {
    out += kFairnessOpening;
    append_number(out, serial % owners_.fairness_keys, kFairnessDigits);
    out += kFairnessClosing;
  } else {
    out += kJobOpening;
  }
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

void QueueRequests::fail(std::string& out, const ClaimedJobs& jobs, bool final) const {
  std::string body = R"({"leases":[)";
  for (std::size_t i = 0; i < jobs.tokens.size(); i++) {
    if (i > 0) body += ',';
    fmt::format_to(std::back_inserter(body), R"({{"token":"{}","error":"{}","final":{}}})",
                   jobs.tokens[i], error_text(jobs.stamps[i].serial), final);
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
                               std::size_t body_bytes, std::string_view more_fields) const {
  out.clear();
  fmt::format_to(std::back_inserter(out),
                 "{} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n"
                 "{}Content-Length: {}\r\n\r\n",
                 request_line, host_, more_fields, body_bytes);
}

void expect_ok(const HttpReply& reply) {
  if (reply.status != 200 && reply.status != 201) refuse(reply, "status 200 or 201");
}

void expect_made_or_there(const HttpReply& reply) {
  if (reply.status != 409) expect_ok(reply);
}

void expect_results(const HttpReply& reply, std::string_view status, std::size_t count) {
  if (reply.status != 200 || count_of(reply.body, fmt::format("\"{}\"", status)) != count) {
    refuse(reply, fmt::format("status 200 with {} × \"{}\"", count, status));
  }
}

std::size_t expect_failed(const HttpReply& reply, std::size_t count) {
  const std::size_t dead = count_of(reply.body, "\"dead\"");
  if (reply.status != 200 || dead + count_of(reply.body, "\"retrying\"") != count) {
    refuse(reply, fmt::format("status 200 with {} × \"retrying\" or \"dead\"", count));
  }
  return dead;
}

}  // namespace reprise::bench
