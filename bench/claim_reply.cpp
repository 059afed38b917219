#include "claim_reply.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "load_error.h"
#include "queue_requests.h"

namespace reprise::bench {
namespace {

constexpr std::string_view kToken = R"("token":")";

std::size_t find_or_throw(std::string_view body, std::string_view part, std::size_t from) {
  const std::size_t at = body.find(part, from);
  if (at == std::string_view::npos) {
    throw LoadError(fmt::format("a claimed job without {}: {}", part, body.substr(from, 200)));
  }
  return at;
}

}  // namespace

ClaimedJobs read_claim_reply(const HttpReply& reply, const PayloadSource& payloads) {
  expect_ok(reply);
  const std::string_view body = reply.body;
  ClaimedJobs jobs;
  std::size_t at = 0;
  while ((at = body.find(kToken, at)) != std::string_view::npos) {
    at += kToken.size();
    const std::size_t end = find_or_throw(body, "\"", at);
    jobs.tokens.emplace_back(body.substr(at, end - at));
    at = find_or_throw(body, PayloadSource::kOpening, end);
    const std::optional<Stamp> stamp = payloads.check(body.substr(at, payloads.payload_bytes()));
    if (!stamp) throw LoadError("a payload came back changed");
    jobs.stamps.push_back(*stamp);
    at += payloads.payload_bytes();
  }
  return jobs;
}

}  // namespace reprise::bench
