// HttpClient: one server, one connection kept alive, one request at a time. A thin layer on
// libcurl. An HTTP status is no error here: only a request without an answer is (Errc::unreachable,
// with a message that names the server). Threads: one owner, no locks.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/url.h"

namespace reprise::client {

struct HttpRequest {
  std::string method = "GET";
  std::string target;                // path and query, percent-encoded: "/v1/queues?namespace=a"
  std::vector<std::string> headers;  // "Name: value"
  std::optional<std::string> body;   // sent as application/json
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  // for the whole exchange
  // A reply's body beyond it is not read; 0: as long as it gets. Of send() only.
  std::size_t max_reply_bytes = 0;
};

struct HttpResponse {
  int status = 0;
  std::string body;
  bool cut = false;  // there was more than max_reply_bytes
  // What Retry-After asks for, as a time or a date; never negative. A date is compared with the
  // system's time.
  std::optional<std::chrono::seconds> retry_after;
  std::string redirect;  // where a 3xx points to, as a whole address
};

class HttpClient {
 public:
  // `token` is sent as a bearer token; empty: none.
  HttpClient(ServerUrl server, std::string token);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;

  const std::string& server() const;

  Result<HttpResponse> send(const HttpRequest& request);
  // Asked while send() waits, within a second and after every signal; false gives the request up
  // (Errc::unreachable). Empty: never.
  void set_keep_going(std::function<bool()> keep_going);

  struct StreamHandler {
    // The next bytes of a 200 reply's body, as they arrive.
    std::function<void(std::string_view)> on_bytes;
    // Asked at least every 50 ms; false ends the stream. `idle` is how long nothing has arrived;
    // nothing until the reply has begun.
    std::function<bool(std::optional<std::chrono::milliseconds> idle)> keep_going;
  };
  // Ends when the server ends the reply, the connection breaks after the reply began, or keep_going
  // says so. Errc::unreachable: the reply never began. A status other than 200 is returned with its
  // body. `request.timeout` is not used.
  Result<HttpResponse> stream(const HttpRequest& request, const StreamHandler& handler);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::client
