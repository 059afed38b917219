#include "client/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/duration.h"

namespace reprise::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr long kConnectTimeoutMs = 5000;
constexpr int kStreamPollMs = 50;
constexpr milliseconds kStreamBegins = std::chrono::seconds(15);

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

std::size_t append_bytes(char* data, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(data, size * count);
  return size * count;
}

void init_curl_once() {
  static const CURLcode done = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(done);
}

}  // namespace

struct HttpClient::Impl {
  ServerUrl server;
  std::string token;
  Easy curl;
  std::array<char, CURL_ERROR_SIZE> message{};
  Slist headers;
  std::string received;

  Impl(ServerUrl url, std::string secret) : server(std::move(url)), token(std::move(secret)) {
    init_curl_once();
    curl.reset(curl_easy_init());
  }

  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    static_cast<void>(headers.release());
    headers.reset(longer);
  }

  // curl_easy_reset keeps the live connection, so the next request reuses it.
  void prepare(const HttpRequest& request) {
    CURL* const easy = curl.get();
    curl_easy_reset(easy);
    received.clear();
    message.fill('\0');
    headers.reset();
    // libcurl would otherwise wait a second for "100 Continue" before a large body.
    add_header("Expect:");
    if (!token.empty()) add_header("Authorization: Bearer " + token);
    for (const auto& header : request.headers) add_header(header);

    const std::string url = server.base + request.target;
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "reprise-cli");
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message.data());
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, append_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &received);
    // A proxy for the world outside knows nothing of a server on this machine.
    if (server.loopback) curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (request.body) {
      add_header("Content-Type: application/json");
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body->data());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body->size()));
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  }

  int status() const {
    long code = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }

  Error unreachable(CURLcode code, milliseconds timeout) const {
    std::string reason = message[0] != '\0' ? message.data() : curl_easy_strerror(code);
    if (code == CURLE_OPERATION_TIMEDOUT) {
      reason = fmt::format("no answer within {}", humanize_duration(timeout));
    } else if (code == CURLE_COULDNT_CONNECT) {
      // "Connection refused" says more than libcurl's "Couldn't connect to server".
      long os_error = 0;
      curl_easy_getinfo(curl.get(), CURLINFO_OS_ERRNO, &os_error);
      if (os_error != 0) reason = std::strerror(static_cast<int>(os_error));
    }
    return {Errc::unreachable, fmt::format("cannot reach {}: {}", server.base, reason)};
  }
};

HttpClient::HttpClient(ServerUrl server, std::string token)
    : impl_(std::make_unique<Impl>(std::move(server), std::move(token))) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

const std::string& HttpClient::server() const { return impl_->server.base; }

Result<HttpResponse> HttpClient::send(const HttpRequest& request) {
  impl_->prepare(request);
  curl_easy_setopt(impl_->curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(request.timeout.count()));
  const CURLcode code = curl_easy_perform(impl_->curl.get());
  if (code != CURLE_OK) return impl_->unreachable(code, request.timeout);
  return HttpResponse{.status = impl_->status(), .body = std::move(impl_->received)};
}

namespace {

// The result of the one transfer of `multi`, once it has ended.
std::optional<CURLcode> finished(CURLM* multi) {
  int left = 0;
  while (const CURLMsg* note = curl_multi_info_read(multi, &left)) {
    if (note->msg == CURLMSG_DONE) return note->data.result;
  }
  return std::nullopt;
}

}  // namespace

// The multi interface, because a blocking call would notice an interrupt only when bytes arrive.
Result<HttpResponse> HttpClient::stream(const HttpRequest& request, const StreamHandler& handler) {
  impl_->prepare(request);
  CURL* const easy = impl_->curl.get();
  const Multi multi(curl_multi_init());
  curl_multi_add_handle(multi.get(), easy);

  std::optional<CURLcode> end;
  std::optional<steady_clock::time_point> latest;
  const auto patience = steady_clock::now() + kStreamBegins;
  int running = 1;
  while (!end) {
    curl_multi_perform(multi.get(), &running);
    end = finished(multi.get());
    const int status = impl_->status();
    // Handed over here rather than in libcurl's callback: there SIGPIPE is ignored, and a reader of
    // our output that has gone away would not end us.
    if (status == 200 && !impl_->received.empty()) {
      handler.on_bytes(std::exchange(impl_->received, {}));
      latest = steady_clock::now();
    } else if (status != 0 && !latest) {
      latest = steady_clock::now();
    }
    std::optional<milliseconds> idle;
    if (latest) idle = std::chrono::duration_cast<milliseconds>(steady_clock::now() - *latest);
    if (!end && !latest && steady_clock::now() > patience) end = CURLE_OPERATION_TIMEDOUT;
    if (!end && !handler.keep_going(idle)) break;
    if (!end) curl_multi_poll(multi.get(), nullptr, 0, kStreamPollMs, nullptr);
  }
  const int status = impl_->status();
  curl_multi_remove_handle(multi.get(), easy);
  if (end && *end != CURLE_OK && status == 0) {
    return impl_->unreachable(*end, kStreamBegins);
  }
  return HttpResponse{.status = status, .body = std::move(impl_->received)};
}

}  // namespace reprise::client
