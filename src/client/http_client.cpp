#include "client/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
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

struct Received {
  std::string bytes;
  std::size_t limit = 0;  // 0: none
  bool cut = false;
};

// libcurl's write callback. Taking fewer bytes than there are ends the transfer.
std::size_t append_bytes(char* data, std::size_t size, std::size_t count, void* to) {
  auto& received = *static_cast<Received*>(to);
  const std::size_t came = size * count;
  const std::size_t room = received.limit == 0 ? came : received.limit - received.bytes.size();
  const std::size_t taken = std::min(came, room);
  received.bytes.append(data, taken);
  received.cut = taken < came;
  return taken;
}

int ask_whether_to_go_on(void* keep_going, curl_off_t /*to_get*/, curl_off_t /*got*/,
                         curl_off_t /*to_send*/, curl_off_t /*sent*/) {
  return (*static_cast<const std::function<bool()>*>(keep_going))() ? 0 : 1;
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
  Received received;
  std::function<bool()> keep_going;  // of send()

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
    received = {};
    message.fill('\0');
    headers.reset();
    // libcurl would otherwise wait a second for "100 Continue" before a large body.
    add_header("Expect:");
    if (!token.empty()) add_header("Authorization: Bearer " + token);
    for (const auto& header : request.headers) add_header(header);

    const std::string url = server.base + request.target;
    curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
    // A key may be "..", which libcurl would take for a way out of the folder.
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
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

  HttpResponse response() {
    HttpResponse response{
        .status = status(), .body = std::move(received.bytes), .cut = received.cut};
    response.retry_after = retry_after();
    const char* redirect = nullptr;
    curl_easy_getinfo(curl.get(), CURLINFO_REDIRECT_URL, &redirect);
    if (redirect != nullptr) response.redirect = redirect;
    return response;
  }

  std::optional<std::chrono::seconds> retry_after() const {
    curl_off_t seconds = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) return std::chrono::seconds(seconds);
    // libcurl takes more seconds than it can count for none.
    curl_header* header = nullptr;
    if (curl_easy_header(curl.get(), "Retry-After", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) {
      return std::nullopt;
    }
    const std::string_view value = header->value;
    const bool is_number = value.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_number || value.size() < 10) return std::nullopt;
    return std::chrono::hours(24 * 365);
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

void HttpClient::set_keep_going(std::function<bool()> keep_going) {
  impl_->keep_going = std::move(keep_going);
}

Result<HttpResponse> HttpClient::send(const HttpRequest& request) {
  impl_->prepare(request);
  impl_->received.limit = request.max_reply_bytes;
  curl_easy_setopt(impl_->curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(request.timeout.count()));
  if (impl_->keep_going) {
    curl_easy_setopt(impl_->curl.get(), CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(impl_->curl.get(), CURLOPT_XFERINFOFUNCTION, ask_whether_to_go_on);
    curl_easy_setopt(impl_->curl.get(), CURLOPT_XFERINFODATA, &impl_->keep_going);
    // Giving up must not wait for a name server that does not answer.
    curl_easy_setopt(impl_->curl.get(), CURLOPT_QUICK_EXIT, 1L);
  }
  const CURLcode code = curl_easy_perform(impl_->curl.get());
  if (code != CURLE_OK && !impl_->received.cut) return impl_->unreachable(code, request.timeout);
  return impl_->response();
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
    if (status == 200 && !impl_->received.bytes.empty()) {
      handler.on_bytes(std::exchange(impl_->received.bytes, {}));
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
  return HttpResponse{.status = status, .body = std::move(impl_->received.bytes)};
}

}  // namespace reprise::client
