#include "spool/ingest_endpoint.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/http_client.h"
#include "client/url.h"
#include "spool/ingest_reply.h"

namespace reprise::spool {
namespace {

constexpr auto kExchangeTimeout = std::chrono::seconds(30);

std::string url_to_show(const client::EndpointUrl& url) {
  const std::size_t query = url.target.find('?');
  const std::string shown = url.server.base + url.target.substr(0, query);
  return query == std::string::npos ? shown : shown + "?…";
}

class HttpIngest final : public IngestEndpoint {
 public:
  HttpIngest(client::EndpointUrl url, const std::string& token, std::function<bool()> keep_going)
      : target_(url.target), shown_(url_to_show(url)), http_(std::move(url.server), token) {
    http_.set_keep_going(std::move(keep_going));
  }

  IngestAnswer send(const std::string& body) override {
    auto response = http_.send({.method = "POST",
                                .target = target_,
                                .headers = {"User-Agent: reprise-spool"},
                                .body = body,
                                .timeout = kExchangeTimeout,
                                .max_reply_bytes = kMaxReplyBytes});
    if (!response) return {.detail = response.error().detail};
    IngestAnswer answer{.status = response->status, .body = std::move(response->body)};
    if (response->retry_after) {
      // Bounded first: a wish of a million years does not fit a Duration.
      answer.retry_after =
          std::min(*response->retry_after, std::chrono::ceil<std::chrono::seconds>(kMaxRetryAfter));
    }
    answer.location = std::move(response->redirect);
    return answer;
  }

  const std::string& url() const override { return shown_; }

 private:
  const std::string target_;
  const std::string shown_;
  client::HttpClient http_;
};

}  // namespace

Result<std::unique_ptr<IngestEndpoint>> make_http_ingest(const std::string& url,
                                                         const std::string& token,
                                                         std::function<bool()> keep_going) {
  auto parsed = client::parse_endpoint_url(url);
  if (!parsed) return parsed.error();
  return std::unique_ptr<IngestEndpoint>(
      std::make_unique<HttpIngest>(std::move(*parsed), token, std::move(keep_going)));
}

}  // namespace reprise::spool
