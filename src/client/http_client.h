// HttpClient: one server, one connection kept alive, one request at a time. A thin layer on
// libcurl. An HTTP status is no error here: only a request without an answer is (Errc::unreachable,
// with a message that names the server). Threads: one owner, no locks.
#pragma once

#include <chrono>
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
};

struct HttpResponse {
  int status = 0;
  std::string body;
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
