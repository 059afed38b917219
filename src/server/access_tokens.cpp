#include "server/access_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace reprise::server {
namespace {

constexpr std::string_view kDefaultTokenName = "default";
constexpr std::string_view kScheme = "Bearer ";

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// What may follow "Bearer " in a header without being cut or folded on its way.
bool is_secret_char(char c) { return c > ' ' && c < 0x7F; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Result<AccessToken> parse_line(std::string_view line) {
  AccessToken token{std::string(kDefaultTokenName), {}};
  if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    token.name = trim(line.substr(0, colon));
    line = trim(line.substr(colon + 1));
  }
  if (token.name.empty()) return Error{Errc::invalid_request, "the name before ':' is empty"};
  if (line.empty()) return Error{Errc::invalid_request, "the token is empty"};
  if (!std::ranges::all_of(line, is_secret_char)) {
    return Error{Errc::invalid_request, "a token is printable ASCII without spaces"};
  }
  token.secret = line;
  return token;
}

}  // namespace

Result<std::vector<AccessToken>> parse_access_tokens(std::string_view text) {
  std::vector<AccessToken> tokens;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;

    auto token = parse_line(line);
    if (!token) {
      return Error{Errc::invalid_request, fmt::format("line {}: {}", number, token.error().detail)};
    }
    tokens.push_back(std::move(*token));
  }
  if (tokens.empty()) return Error{Errc::invalid_request, "there is no token in it"};
  return tokens;
}

Result<std::vector<AccessToken>> read_access_token_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad()) {
    return Error{Errc::io, fmt::format("{} cannot be read", path)};
  }
  auto tokens = parse_access_tokens(text);
  if (tokens) return tokens;
  return Error{tokens.error().code, fmt::format("{}: {}", path, tokens.error().detail)};
}

std::optional<std::string_view> AccessTokens::match(std::string_view authorization) const {
  if (authorization.size() <= kScheme.size()) return std::nullopt;
  // The scheme's name is case-insensitive; it is no secret.
  const std::string_view scheme = authorization.substr(0, kScheme.size());
  if (!std::ranges::equal(scheme, kScheme, {}, lower, lower)) return std::nullopt;
  const std::string_view offered = trim(authorization.substr(kScheme.size()));

  // No early exit: which token fits must not show in the time it takes.
  std::optional<std::string_view> found;
  for (const AccessToken& token : tokens_) {
    if (equal_constant_time(token.secret, offered)) found = token.name;
  }
  return found;
}

}  // namespace reprise::server
