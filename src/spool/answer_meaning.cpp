#include "spool/answer_meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reprise::spool {
namespace {

// ": words" of the server, when it has some.
std::string and_its_words(const IngestAnswer& answer) {
  const std::string words = short_refusal_text(answer.body);
  return words.empty() ? words : ": " + words;
}

std::optional<Duration> patience_of(const IngestAnswer& answer) {
  const auto in_body = retry_after_of(answer.body);
  if (!in_body || !answer.retry_after) return in_body ? in_body : answer.retry_after;
  return std::max(*in_body, *answer.retry_after);
}

Judgement trouble(const IngestAnswer& answer, std::string reason) {
  return {
      .meaning = Meaning::trouble, .reason = std::move(reason), .patience = patience_of(answer)};
}

Judgement judge_success(const IngestAnswer& answer, const std::string& url, std::size_t count) {
  auto verdicts = parse_results(answer.body, count);
  if (!verdicts) {
    return trouble(answer, fmt::format("{} answered {}, but not with results for a batch{}", url,
                                       answer.status, and_its_words(answer)));
  }
  return {.meaning = Meaning::verdicts,
          .verdicts = std::move(*verdicts),
          .patience = patience_of(answer)};
}

std::string refusal_reason(const IngestAnswer& answer, const std::string& url) {
  if (answer.status == 401 || answer.status == 403) {
    return fmt::format(
        "{} refuses the token ({}{}): give the right one with --token-file or REPRISE_TOKEN", url,
        answer.status, and_its_words(answer));
  }
  if (answer.status < 400) {
    if (answer.location.empty()) {
      return fmt::format("{} redirects ({}) without saying where: check --to", url, answer.status);
    }
    return fmt::format("{} redirects to {} ({}): give that with --to", url, answer.location,
                       answer.status);
  }
  return fmt::format("{} answered {}{}; check --to", url, answer.status, and_its_words(answer));
}

}  // namespace

Judgement judge(const IngestAnswer& answer, const std::string& url, std::size_t count) {
  const int status = answer.status;
  if (status == 0) return trouble(answer, answer.detail);
  if (status >= 200 && status < 300) return judge_success(answer, url, count);
  if (status == 400 || status == 413 || status == 422) return {.meaning = Meaning::bad_request};
  if (status == 408 || status == 429 || status < 300 || status >= 500) {
    return trouble(answer, fmt::format("{} answered {}{}", url, status, and_its_words(answer)));
  }
  return {.meaning = Meaning::refused, .reason = refusal_reason(answer, url)};
}

}  // namespace reprise::spool
