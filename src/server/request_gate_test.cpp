#include "server/request_gate.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::server {
namespace {

using std::string_literals::operator""s;

constexpr int kPasses = 0;

struct GateCase {
  const char* name;
  std::string block;
  int status;  // kPasses, or that of the refusal
};

// A header block of these lines.
std::string lines(const std::vector<std::string>& all) {
  std::string block;
  for (const std::string& line : all) block += line + "\r\n";
  return block + "\r\n";
}

std::string get(const std::string& target, const std::string& extra = {}) {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + extra + "\r\n";
}
std::string post(const std::string& extra) {
  return "POST /v1/ack HTTP/1.1\r\nHost: localhost\r\n" + extra + "\r\n";
}
std::string with_line(const std::string& request_line) {
  return lines({request_line, "Host: localhost"});
}
std::string with_host(const std::string& host) {
  return lines({"GET / HTTP/1.1", "Host: " + host});
}
std::string fields(std::size_t count) {
  std::string extra;
  for (std::size_t i = 1; i < count; ++i) extra += "X-" + std::to_string(i) + ": y\r\n";
  return get("/", extra);
}

std::vector<GateCase> cases() {
  return {
      // The request line.
      {"plain", get("/healthz"), kPasses},
      {"query", get("/v1/queues?namespace=a%20b&x"), kPasses},
      {"http_1_0", "GET / HTTP/1.0\r\n\r\n", kPasses},
      {"odd_method_is_a_token", with_line("BREW / HTTP/1.1"), kPasses},
      {"method_with_parentheses", with_line("G(E)T / HTTP/1.1"), 400},
      {"no_method", with_line(" / HTTP/1.1"), 400},
      {"method_with_nul", with_line("G\0T / HTTP/1.1"s), 400},
      {"no_target", with_line("GET  HTTP/1.1"), 400},
      {"no_version", with_line("GET /"), 400},
      {"version_only", with_line("HTTP/1.1"), 400},
      {"lower_case_version", with_line("GET / http/1.1"), 400},
      {"version_without_minor", with_line("GET / HTTP/1"), 400},
      {"version_with_two_digits", with_line("GET / HTTP/1.10"), 400},
      {"version_2", with_line("GET / HTTP/2.0"), 505},
      {"version_1_2", with_line("GET / HTTP/1.2"), kPasses},
      {"version_0_9", with_line("GET / HTTP/0.9"), 505},
      {"space_in_target", with_line("GET /a b HTTP/1.1"), 400},
      {"tab_in_target", with_line("GET /a\tb HTTP/1.1"), 400},
      {"space_after_version", with_line("GET / HTTP/1.1 "), 400},
      {"two_spaces_before_version", with_line("GET /  HTTP/1.1"), 400},
      {"target_without_slash", with_line("GET healthz HTTP/1.1"), 400},
      {"asterisk", with_line("OPTIONS * HTTP/1.1"), 400},
      {"authority_form", with_line("CONNECT localhost:80 HTTP/1.1"), 400},
      {"fragment", get("/a#b"), 400},
      {"quote_in_target", get("/a\"b"), 400},
      {"braces_in_target", get("/{queue}"), 400},
      {"backslash_in_target", get("/a\\b"), 400},
      {"bytes_beyond_ascii_in_target", get("/\xC3\xA9"), 400},
      {"control_in_target", get("/a\x01"), 400},
      {"delete_in_target", get("/a\x7F"), 400},
      // Absolute form.
      {"absolute_with_the_same_host", with_line("GET http://localhost/a?b HTTP/1.1"), kPasses},
      {"absolute_with_another_case", with_line("GET HTTP://LOCALHOST/ HTTP/1.1"), kPasses},
      {"absolute_without_path", with_line("GET http://localhost HTTP/1.1"), kPasses},
      {"absolute_with_another_host", with_line("GET http://evil/ HTTP/1.1"), kPasses},
      {"absolute_with_another_port", with_line("GET http://localhost:1/ HTTP/1.1"), kPasses},
      {"absolute_without_authority", with_line("GET http:///a HTTP/1.1"), 400},
      {"absolute_with_a_user", with_line("GET http://a@localhost/ HTTP/1.1"), 400},
      {"absolute_of_another_scheme", with_line("GET ftp://localhost/ HTTP/1.1"), 400},
      {"absolute_in_http_1_0", "GET http://localhost/ HTTP/1.0\r\n\r\n", kPasses},
      {"absolute_without_host", "GET http://localhost/ HTTP/1.1\r\n\r\n", 400},
      // Host.
      {"host_missing", lines({"GET / HTTP/1.1"}), 400},
      {"host_twice", get("/", "Host: localhost\r\n"), 400},
      {"host_twice_in_other_case", get("/", "HOST: localhost\r\n"), 400},
      {"host_empty", with_host(""), 400},
      {"host_with_port", with_host("localhost:7333"), kPasses},
      {"host_with_empty_port", with_host("localhost:"), kPasses},
      {"host_ip6", with_host("[::1]:7333"), kPasses},
      {"host_ip6_open", with_host("[::1"), 400},
      {"host_ip6_empty", with_host("[]"), 400},
      {"host_ip6_with_rest", with_host("[::1]x"), 400},
      {"host_with_user", with_host("a@localhost"), 400},
      {"host_with_path", with_host("localhost/a"), 400},
      {"host_with_space", with_host("local host"), 400},
      {"host_list", with_host("a, b"), 400},
      {"host_with_word_for_port", with_host("localhost:x"), 400},
      {"host_with_long_port", with_host("localhost:123456"), 400},
      // Lines and fields.
      {"no_space_after_colon", get("/", "X-A:1\r\n"), kPasses},
      {"empty_value", get("/", "X-A:\r\n"), kPasses},
      {"bytes_beyond_ascii_in_value", get("/", "X-A: \xC3\xA9\r\n"), kPasses},
      {"tab_in_value", get("/", "X-A: a\tb\r\n"), kPasses},
      {"folded", get("/", "X-A: 1\r\n folded\r\n"), 400},
      {"folded_with_tab", get("/", "X-A: 1\r\n\tfolded\r\n"), 400},
      {"space_before_first_field", lines({"GET / HTTP/1.1", " X: 1", "Host: localhost"}), 400},
      {"space_before_colon", get("/", "X-A : 1\r\n"), 400},
      {"tab_before_colon", get("/", "X-A\t: 1\r\n"), 400},
      {"no_colon", get("/", "X-A\r\n"), 400},
      {"no_name", get("/", ": 1\r\n"), 400},
      {"name_with_slash", get("/", "X/A: 1\r\n"), 400},
      {"name_beyond_ascii", get("/", "X\xC3\xA9: 1\r\n"), 400},
      {"nul_in_value", get("/", "X-A: a\0b\r\n"s), 400},
      {"bare_cr_in_value", get("/", "X-A: a\rb\r\n"), 400},
      {"bare_cr_at_end", get("/", "X-A: a\r\r\n"), 400},
      {"bare_lf_in_fields", "GET / HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n", 400},
      {"bare_lf_everywhere", "GET / HTTP/1.1\nHost: localhost\n\n", 400},
      {"bare_lf_at_end", "GET / HTTP/1.1\r\nHost: localhost\r\n\n", 400},
      {"escape_in_value", get("/", "X-A: \x1B[31m\r\n"), 400},
      {"delete_in_value", get("/", "X-A: \x7F\r\n"), 400},
      {"hundred_fields", fields(100), kPasses},
      {"hundred_and_one_fields", fields(101), 431},
      {"authorization_twice", get("/", "Authorization: a\r\nAuthorization: b\r\n"), 400},
      {"origin_twice", get("/", "Origin: a\r\nOrigin: b\r\n"), 400},
      {"unknown_field_twice", get("/", "X-A: 1\r\nX-A: 2\r\n"), kPasses},
      // How long the body is.
      {"length", post("Content-Length: 2\r\n"), kPasses},
      {"length_zero", post("Content-Length: 0\r\n"), kPasses},
      {"length_with_blanks", post("Content-Length:  2\t\r\n"), kPasses},
      {"length_largest", post("Content-Length: 9223372036854775807\r\n"), kPasses},
      {"length_beyond_63_bits", post("Content-Length: 9223372036854775808\r\n"), kPasses},
      {"length_beyond_64_bits", post("Content-Length: 99999999999999999999999\r\n"), kPasses},
      {"length_empty", post("Content-Length:\r\n"), 400},
      {"length_twice", post("Content-Length: 2\r\nContent-Length: 2\r\n"), 400},
      {"length_list", post("Content-Length: 2, 2\r\n"), 400},
      {"length_negative", post("Content-Length: -1\r\n"), 400},
      {"length_with_plus", post("Content-Length: +2\r\n"), 400},
      {"length_hexadecimal", post("Content-Length: 0x2\r\n"), 400},
      {"length_with_space", post("Content-Length: 2 2\r\n"), 400},
      {"length_with_fraction", post("Content-Length: 2.0\r\n"), 400},
      {"chunked", post("Transfer-Encoding: chunked\r\n"), kPasses},
      {"chunked_in_other_case", post("TRANSFER-ENCODING: Chunked\r\n"), kPasses},
      {"chunked_twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"chunked_list", post("Transfer-Encoding: chunked, chunked\r\n"), 400},
      {"chunked_before_another", post("Transfer-Encoding: chunked, identity\r\n"), 400},
      {"chunked_with_parameter", post("Transfer-Encoding: chunked;a=b\r\n"), 400},
      {"gzip_and_chunked", post("Transfer-Encoding: gzip, chunked\r\n"), 501},
      {"identity", post("Transfer-Encoding: identity\r\n"), 400},
      {"misspelt_coding", post("Transfer-Encoding: xchunked\r\n"), 400},
      {"coding_with_control",
       post("Transfer-Encoding: \x0B"
            "chunked\r\n"),
       400},
      {"empty_coding", post("Transfer-Encoding:\r\n"), 400},
      {"length_and_chunked", post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"), 400},
      {"chunked_and_length", post("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n"), 400},
      {"chunked_in_http_1_0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      // Expect.
      {"continue", post("Expect: 100-continue\r\n"), kPasses},
      {"continue_in_other_case", post("Expect: 100-Continue\r\n"), kPasses},
      {"other_expectation", post("Expect: 200-ok\r\n"), 417},
      {"expectation_twice", post("Expect: 100-continue\r\nExpect: 100-continue\r\n"), 400},
      // The block as a whole.
      {"bytes_after_the_end", get("/") + "x", 400},
      {"empty", "", 400},
      {"not_http", "\x16\x03\x01\x02\r\n\r\n", 400},
  };
}

TEST(RequestGate, DecidesEachCaseAsTheTableSays) {
  for (const GateCase& test : cases()) {
    const auto result = read_request_head(test.block);
    const auto* refusal = std::get_if<GateRefusal>(&result);
    EXPECT_EQ(refusal == nullptr ? kPasses : refusal->http_status, test.status) << test.name;
    if (refusal != nullptr) {
      EXPECT_FALSE(refusal->detail.empty()) << test.name;
    }
  }
}

RequestHead head_of(const std::string& block) {
  const auto result = read_request_head(block);
  EXPECT_TRUE(std::holds_alternative<RequestHead>(result)) << block;
  const auto* head = std::get_if<RequestHead>(&result);
  return head == nullptr ? RequestHead() : *head;
}

TEST(RequestGate, TellsMethodPathAndQueryApart) {
  const std::string block = get("/v1/queues/a%20b?x=1&y=?");
  const RequestHead head = head_of(block);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.path, "/v1/queues/a%20b");
  EXPECT_EQ(head.query, "x=1&y=?");
  EXPECT_FALSE(head.has_body());
}

TEST(RequestGate, TakesTheAuthorityOffAnAbsoluteTarget) {
  const std::string block = with_line("GET http://localhost/a?b HTTP/1.1");
  const RequestHead head = head_of(block);
  EXPECT_EQ(head.path, "/a");
  EXPECT_EQ(head.query, "b");
}

TEST(RequestGate, TheHostOfAnAbsoluteTargetCounts) {
  const std::string block = with_line("GET http://evil.example:1/a HTTP/1.1");
  EXPECT_EQ(head_of(block).host, "evil.example:1");
}

TEST(RequestGate, ALengthBeyondAllNumbersIsTheLargest) {
  EXPECT_EQ(head_of(post("Content-Length: 99999999999999999999999\r\n")).content_length,
            UINT64_MAX);
}

TEST(RequestGate, KeepsTheFieldsTheServerReads) {
  const std::string block =
      get("/",
          "authorization:  Bearer x \r\nOrigin: http://a\r\nIf-None-Match: *\r\n"
          "Last-Event-ID: 7\r\nContent-Encoding: gzip\r\nX-Other: y\r\n");
  const RequestHead head = head_of(block);
  EXPECT_EQ(head.host, "localhost");
  EXPECT_EQ(head.authorization, "Bearer x");
  EXPECT_EQ(head.origin, "http://a");
  EXPECT_EQ(head.if_none_match, "*");
  EXPECT_EQ(head.last_event_id, "7");
  EXPECT_EQ(head.content_encoding, "gzip");
}

TEST(RequestGate, KnowsWhetherTheConnectionGoesOn) {
  EXPECT_TRUE(head_of(get("/")).keep_alive);
  EXPECT_FALSE(head_of(get("/", "Connection: close\r\n")).keep_alive);
  EXPECT_FALSE(head_of(get("/", "Connection: TE, Close\r\n")).keep_alive);
  EXPECT_FALSE(head_of(get("/", "Connection: keep-alive\r\nConnection: close\r\n")).keep_alive);
  EXPECT_FALSE(head_of("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(head_of("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keep_alive);
}

TEST(RequestGate, OverlooksExpectInHttp10) {
  EXPECT_TRUE(head_of(post("Expect: 100-continue\r\n")).expects_continue);
  EXPECT_FALSE(head_of("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expects_continue);
}

TEST(FindHeaderEnd, FindsTheFirstEmptyLine) {
  EXPECT_EQ(find_header_end("a\r\n\r\nrest\r\n\r\n"), 5U);
  EXPECT_EQ(find_header_end("a\n\nrest"), 3U);
  EXPECT_EQ(find_header_end("a\r\n\nrest"), 4U);
  EXPECT_EQ(find_header_end("a\r\nb\r\n"), 0U);
  EXPECT_EQ(find_header_end(""), 0U);
}

TEST(FindHeaderEnd, MissesNothingWhenBytesComeOneByOne) {
  const std::string block = get("/", "X: y\r\n");
  for (std::size_t size = 0; size < block.size(); ++size) {
    EXPECT_EQ(find_header_end(std::string_view(block).substr(0, size), size == 0 ? 0 : size - 1),
              0U);
  }
  for (std::size_t searched = 0; searched < block.size(); ++searched) {
    EXPECT_EQ(find_header_end(block, searched), block.size()) << searched;
  }
}

}  // namespace
}  // namespace reprise::server
