// Response: what a handler answers, and its bytes on the wire.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/json_writer.h"
#include "base/result.h"

namespace reprise::server {

struct Response {
  int http_status = 200;
  std::string body;
  std::string_view content_type = "application/json";  // of static storage
  std::string extra_headers{};                         // whole lines, each with its CR LF
  bool close = false;                                  // end the connection after it
  // Leases that this reply hands out. If it cannot be delivered nobody knows their tokens, so they
  // are released instead of keeping their jobs from others for a lease time.
  std::vector<LeaseToken> leases{};
};

// Adds the headers that some statuses call for (Retry-After, WWW-Authenticate).
Response json_response(JsonWriter&& json, int http_status = 200);

// {"error": {"code": …, "message": …}} with the status of the code.
Response error_response(const Error& error);
// A message repeats parts of the request, so it is cut where it gets long.
std::string_view shown_message(const Error& error);
// {"code": …, "message": …}
void write_error(JsonWriter& out, const Error& error);

// The statuses this server sends. The metrics have a counter for each.
inline constexpr int kHttpStatuses[] = {200, 201, 202, 400, 401, 403, 404, 405, 408, 409, 413,
                                        414, 417, 422, 429, 431, 500, 501, 503, 505, 507};

// Everything before the body, appended to `out`. `date` is the value of the Date header.
struct ResponseHeadOptions {
  std::string_view date;
  bool keep_alive = true;
  bool http_1_0 = false;  // keep-alive must then be said
};
void append_response_head(std::string& out, const Response& response,
                          const ResponseHeadOptions& options);
// The same for a body without an end: no length, and the connection closes after it.
void append_stream_head(std::string& out, std::string_view content_type, std::string_view date);

// "Sat, 31 Jan 2026 08:15:00 GMT"
std::string format_http_date(std::int64_t unix_seconds);

}  // namespace reprise::server
