#include "client/url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace reprise::client {
namespace {

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

// One part of a parsed url; empty when it has none.
std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out.push_back(c);
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string encode_query(const QueryParameters& parameters) {
  std::string out;
  for (const auto& [name, value] : parameters) {
    out += out.empty() ? '?' : '&';
    out += percent_encode(name) + '=' + percent_encode(value);
  }
  return out;
}

Result<ServerUrl> parse_server_url(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::invalid_field,
                 fmt::format("'{}' {}; write it as http://HOST:PORT", text, why)};
  };
  std::string whole(text);
  if (whole.find("://") == std::string::npos) whole.insert(0, "http://");

  const std::unique_ptr<CURLU, UrlDeleter> url(curl_url());
  if (curl_url_set(url.get(), CURLUPART_URL, whole.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
      CURLUE_OK) {
    return refuse("is no address of a server");
  }
  const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return refuse("is neither http nor https");
  if (!part_of(url.get(), CURLUPART_QUERY).empty()) return refuse("must not have a query");

  while (whole.ends_with('/')) whole.pop_back();
  return ServerUrl{.base = whole, .loopback = is_loopback(part_of(url.get(), CURLUPART_HOST))};
}

Result<EndpointUrl> parse_endpoint_url(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::invalid_field,
                 fmt::format("'{}' {}; write it as https://HOST:PORT/PATH", text, why)};
  };
  const std::string whole(text);
  const std::unique_ptr<CURLU, UrlDeleter> url(curl_url());
  if (whole.size() != std::string_view(whole.c_str()).size() ||
      curl_url_set(url.get(), CURLUPART_URL, whole.c_str(), CURLU_NON_SUPPORT_SCHEME) !=
          CURLUE_OK) {
    return refuse("is no whole address");
  }
  const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return refuse("is neither http nor https");
  if (!part_of(url.get(), CURLUPART_USER).empty() ||
      !part_of(url.get(), CURLUPART_PASSWORD).empty()) {
    return Error{Errc::invalid_field,
                 "the address must not hold a user or password; give a token instead"};
  }
  const std::size_t host = whole.find("://") + 3;
  const std::size_t host_end = std::min(whole.find_first_of("/?#", host), whole.size());
  std::string target = whole.substr(host_end, whole.find('#', host_end) - host_end);
  if (!target.starts_with('/')) target.insert(0, "/");
  return EndpointUrl{.server = {.base = whole.substr(0, host_end),
                                .loopback = is_loopback(part_of(url.get(), CURLUPART_HOST))},
                     .target = std::move(target)};
}

}  // namespace reprise::client
