#include "webhook/http_poster.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "reprise_version.h"
#include "webhook/cloud_event.h"

namespace reprise::webhook {
namespace {

constexpr long kConnectTimeoutMs = 5'000;
constexpr long kTotalTimeoutMs = 15'000;
// Connections kept for the next request, for as many addresses as are talked to at once.
constexpr long kConnectionsKept = 16;
// Beyond this an answer is cut off; what it says about success is known by then.
constexpr std::size_t kAnswerBytesRead = 64 << 10;

struct EasyDeleter {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct SlistDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using Slist = std::unique_ptr<curl_slist, SlistDeleter>;

struct Request {
  WebhookKey key;
  std::string body;
  std::size_t answer_bytes = 0;
  std::array<char, CURL_ERROR_SIZE> message{};
  Easy curl;  // last: it uses the others until its end
};

// libcurl's write callback. Taking fewer bytes than there are ends the transfer.
std::size_t discard(char* /*data*/, std::size_t size, std::size_t count, void* request) {
  auto& read = static_cast<Request*>(request)->answer_bytes;
  read += size * count;
  return read > kAnswerBytesRead ? 0 : size * count;
}

void init_curl_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(done);
}

Slist make_headers() {
  curl_slist* list = nullptr;
  list = curl_slist_append(list, fmt::format("Content-Type: {}", kCloudEventContentType).c_str());
  // libcurl would otherwise wait a second for "100 Continue" before a large body.
  list = curl_slist_append(list, "Expect:");
  return Slist(list);
}

void configure(Request& request, const std::string& url, curl_slist* headers) {
  CURL* const easy = request.curl.get();
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, fmt::format("reprise/{}", kVersion).c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &request);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request.message.data());
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, kTotalTimeoutMs);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  // A name server that does not answer would otherwise be waited for where the request is ended:
  // all other requests, and the end of the process, would wait with it.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
}

std::string problem_of(const Request& request, CURLcode code) {
  if (code == CURLE_COULDNT_CONNECT) {
    // "Connection refused" says more than libcurl's "Couldn't connect to server".
    long os_error = 0;
    curl_easy_getinfo(request.curl.get(), CURLINFO_OS_ERRNO, &os_error);
    if (os_error != 0) return std::strerror(static_cast<int>(os_error));
  }
  return request.message[0] != '\0' ? request.message.data() : curl_easy_strerror(code);
}

// A 2xx counts from its first line on: an answer that never ends, or is cut off, was given.
HttpPoster::Outcome outcome_of(const Request& request, CURLcode code) {
  long status = 0;
  curl_easy_getinfo(request.curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) return {.key = request.key, .accepted = true};
  const bool answered = code == CURLE_OK || request.answer_bytes > kAnswerBytesRead;
  return {.key = request.key,
          .problem = answered ? fmt::format("HTTP {}", status) : problem_of(request, code)};
}

}  // namespace

struct HttpPoster::Impl {
  Slist headers;
  Multi multi;
  std::map<CURL*, std::unique_ptr<Request>> requests;

  Impl() : headers(make_headers()) {
    init_curl_once();
    multi.reset(curl_multi_init());
    REPRISE_CHECK(multi != nullptr && headers != nullptr);
    curl_multi_setopt(multi.get(), CURLMOPT_MAXCONNECTS, kConnectionsKept);
  }
  // Each has to leave before its end and before that of `multi`.
  ~Impl() {
    for (const auto& [easy, request] : requests) curl_multi_remove_handle(multi.get(), easy);
  }

  void collect(std::vector<Outcome>& into) {
    int left = 0;
    while (const CURLMsg* note = curl_multi_info_read(multi.get(), &left)) {
      if (note->msg != CURLMSG_DONE) continue;
      // Read before the handle leaves: the note goes with it.
      CURL* const easy = note->easy_handle;
      const CURLcode code = note->data.result;
      const auto at = requests.find(easy);
      into.push_back(outcome_of(*at->second, code));
      curl_multi_remove_handle(multi.get(), easy);
      requests.erase(at);
    }
  }
};

HttpPoster::HttpPoster() : impl_(std::make_unique<Impl>()) {}
HttpPoster::~HttpPoster() = default;

std::size_t HttpPoster::under_way() const { return impl_->requests.size(); }

void HttpPoster::post(const WebhookKey& key, const std::string& url, std::string body) {
  auto request = std::make_unique<Request>();
  request->key = key;
  request->body = std::move(body);
  request->curl.reset(curl_easy_init());
  REPRISE_CHECK(request->curl != nullptr);
  configure(*request, url, impl_->headers.get());
  CURL* const easy = request->curl.get();
  impl_->requests.emplace(easy, std::move(request));
  curl_multi_add_handle(impl_->multi.get(), easy);
}

std::vector<HttpPoster::Outcome> HttpPoster::wait(Duration at_most) {
  std::vector<Outcome> ended;
  int running = 0;
  curl_multi_perform(impl_->multi.get(), &running);
  impl_->collect(ended);
  if (!ended.empty()) return ended;
  // Rounded up: to wake a little early would be to spin.
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
      std::clamp(at_most, Duration::zero(), Duration(std::chrono::minutes(1))));
  curl_multi_poll(impl_->multi.get(), nullptr, 0, static_cast<int>(wait.count()), nullptr);
  curl_multi_perform(impl_->multi.get(), &running);
  impl_->collect(ended);
  return ended;
}

void HttpPoster::wake() { curl_multi_wakeup(impl_->multi.get()); }

}  // namespace reprise::webhook
