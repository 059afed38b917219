#include "server/response.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace reprise::server {
namespace {

TEST(ErrorResponse, HasTheStatusAndBodyOfItsCode) {
  const Response response = error_response({Errc::lease_lost, "lease of job \"x\" expired"});
  EXPECT_EQ(response.http_status, 409);
  EXPECT_EQ(response.body,
            R"({"error":{"code":"lease_lost","message":"lease of job \"x\" expired"}})");
}

TEST(ErrorResponse, AnAmbiguousPrefixListsItsMatches) {
  const Response response = error_response({Errc::ambiguous_id, "two jobs", {"A", "B"}});
  EXPECT_EQ(response.body,
            R"({"error":{"code":"ambiguous_id","message":"two jobs"},"matches":["A","B"]})");
}

TEST(ErrorResponse, SaysWhenToTryAgainAndHowToGetIn) {
  for (const Errc code : {Errc::overloaded, Errc::queue_full, Errc::shutting_down,
                          Errc::hooks_unavailable, Errc::too_many_keys, Errc::disk_full}) {
    EXPECT_EQ(error_response({code, ""}).extra_headers, "Retry-After: 1\r\n");
  }
  EXPECT_EQ(error_response({Errc::unauthorized, ""}).extra_headers, "WWW-Authenticate: Bearer\r\n");
}

TEST(ErrorResponse, DoesNotRepeatALargeRequest) {
  std::string text;
  for (int i = 0; i < 10000; ++i) text += "\xE2\x82\xAC";
  const Response response = error_response({Errc::unknown_field, text});
  EXPECT_LT(response.body.size(), 1100U);
  EXPECT_EQ(response.body.find("\xEF\xBF\xBD"), std::string::npos);  // no character cut in two
}

TEST(ErrorResponse, AJobThatAHookRefusesIsUnprocessableContent) {
  const std::string all_it_may_say(1000, 'x');
  const Response response = error_response({Errc::hook_rejected, all_it_may_say});
  EXPECT_EQ(response.http_status, 422);
  EXPECT_EQ(response.extra_headers, "");
  EXPECT_EQ(response.body,
            R"({"error":{"code":"hook_rejected","message":")" + all_it_may_say + R"("}})");
  std::string head;
  append_response_head(head, response, {.date = "NOW"});
  EXPECT_TRUE(head.starts_with("HTTP/1.1 422 Unprocessable Content\r\n")) << head;
}

TEST(ErrorResponse, EveryCodeHasAStatusThatIsCounted) {
  for (const ErrcInfo& info : all_errcs()) {
    const auto* found =
        std::find(std::begin(kHttpStatuses), std::end(kHttpStatuses), info.http_status);
    EXPECT_NE(found, std::end(kHttpStatuses)) << info.wire_name;
  }
}

TEST(AppendResponseHead, SaysWhatEveryReplySays) {
  std::string head;
  append_response_head(head, {.http_status = 201, .body = "{}"}, {.date = "NOW"});
  EXPECT_TRUE(
      head.starts_with("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                       "Content-Length: 2\r\nDate: NOW\r\nServer: reprise/"));
  EXPECT_NE(head.find("\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"),
            std::string::npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_EQ(head.find("Connection:"), std::string::npos);
}

TEST(AppendResponseHead, EveryStatusThatIsCountedHasItsLine) {
  for (const int http_status : kHttpStatuses) {
    std::string head;
    append_response_head(head, {.http_status = http_status}, {.date = ""});
    EXPECT_TRUE(head.starts_with("HTTP/1.1 " + std::to_string(http_status) + " ")) << head;
  }
}

TEST(AppendResponseHead, SaysHowTheConnectionGoesOn) {
  std::string closing;
  append_response_head(closing, {}, {.date = "", .keep_alive = false});
  EXPECT_NE(closing.find("Connection: close\r\n"), std::string::npos);
  std::string old;
  append_response_head(old, {}, {.date = "", .keep_alive = true, .http_1_0 = true});
  EXPECT_NE(old.find("Connection: keep-alive\r\n"), std::string::npos);
}

TEST(FormatHttpDate, IsThatOfTheStandard) {
  EXPECT_EQ(format_http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

}  // namespace
}  // namespace reprise::server
