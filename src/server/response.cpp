#include "server/response.h"

#include <fmt/format.h>

#include <array>
#include <ctime>

#include "reprise_version.h"

namespace reprise::server {
namespace {

constexpr std::string_view kRetryAfter = "Retry-After: 1\r\n";
constexpr std::string_view kChallenge = "WWW-Authenticate: Bearer\r\n";

std::string_view status_line(int http_status) {
  switch (http_status) {
    case 200:
      return "HTTP/1.1 200 OK\r\n";
    case 201:
      return "HTTP/1.1 201 Created\r\n";
    case 202:
      return "HTTP/1.1 202 Accepted\r\n";
    case 400:
      return "HTTP/1.1 400 Bad Request\r\n";
    case 401:
      return "HTTP/1.1 401 Unauthorized\r\n";
    case 403:
      return "HTTP/1.1 403 Forbidden\r\n";
    case 404:
      return "HTTP/1.1 404 Not Found\r\n";
    case 405:
      return "HTTP/1.1 405 Method Not Allowed\r\n";
    case 408:
      return "HTTP/1.1 408 Request Timeout\r\n";
    case 409:
      return "HTTP/1.1 409 Conflict\r\n";
    case 413:
      return "HTTP/1.1 413 Content Too Large\r\n";
    case 414:
      return "HTTP/1.1 414 URI Too Long\r\n";
    case 417:
      return "HTTP/1.1 417 Expectation Failed\r\n";
    case 422:
      return "HTTP/1.1 422 Unprocessable Content\r\n";
    case 429:
      return "HTTP/1.1 429 Too Many Requests\r\n";
    case 431:
      return "HTTP/1.1 431 Request Header Fields Too Large\r\n";
    case 501:
      return "HTTP/1.1 501 Not Implemented\r\n";
    case 503:
      return "HTTP/1.1 503 Service Unavailable\r\n";
    case 505:
      return "HTTP/1.1 505 HTTP Version Not Supported\r\n";
    case 507:
      return "HTTP/1.1 507 Insufficient Storage\r\n";
    default:
      return "HTTP/1.1 500 Internal Server Error\r\n";
  }
}

// On every reply: nobody may guess another type, and nobody may keep a copy.
const std::string& common_headers() {
  static const std::string headers = fmt::format(
      "Server: reprise/{}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n",
      kVersion);
  return headers;
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

// Messages repeat parts of the request; a request of megabytes must not come back. What a script
// may say of a job that it refuses fits whole.
std::string_view shown_message(const Error& error) {
  const std::string_view message = error.detail;
  // Findings repeat nothing of the request, and all of them are promised.
  const std::size_t most = error.code == Errc::invalid_runbook ? 256 * 1024 : 1000;
  if (message.size() <= most) return message;
  std::size_t end = most;
  const auto is_continuation = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
  };
  while (end > 0 && is_continuation(message[end])) --end;
  return message.substr(0, end);
}

Response json_response(JsonWriter&& json, int http_status) {
  Response response;
  response.http_status = http_status;
  response.body = json.take();
  if (http_status == 429 || http_status == 503 || http_status == 507) {
    response.extra_headers = kRetryAfter;
  }
  if (http_status == 401) response.extra_headers = kChallenge;
  return response;
}

void write_error(JsonWriter& out, const Error& error) {
  out.begin_object();
  out.key("code").value(errc_info(error.code).wire_name);
  out.key("message").value(shown_message(error));
  out.end_object();
}

Response error_response(const Error& error) {
  JsonWriter json;
  json.begin_object().key("error");
  write_error(json, error);
  if (error.code == Errc::ambiguous_id) {
    json.key("matches").begin_array();
    for (const std::string& id : error.matches) json.value(id);
    json.end_array();
  }
  json.end_object();
  return json_response(std::move(json), errc_info(error.code).http_status);
}

void append_response_head(std::string& out, const Response& response,
                          const ResponseHeadOptions& options) {
  out += status_line(response.http_status);
  append_header(out, "Content-Type", response.content_type);
  const auto length = fmt::format_int(response.body.size());
  append_header(out, "Content-Length", {length.data(), length.size()});
  append_header(out, "Date", options.date);
  out += common_headers();
  out += response.extra_headers;
  if (!options.keep_alive) {
    out += "Connection: close\r\n";
  } else if (options.http_1_0) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
}

void append_stream_head(std::string& out, std::string_view content_type, std::string_view date) {
  out += status_line(200);
  append_header(out, "Content-Type", content_type);
  append_header(out, "Date", date);
  out += common_headers();
  out += "Connection: close\r\n\r\n";
}

std::string format_http_date(std::int64_t unix_seconds) {
  // By hand: strftime's names of days and months depend on the locale.
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<std::size_t>(parts.tm_wday)], parts.tm_mday,
                     kMonths[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace reprise::server
