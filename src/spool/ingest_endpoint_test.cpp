#include "spool/ingest_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

#include "spool/ingest_reply.h"
#include "support/webhook_receiver.h"

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::ReceivedRequest;
using test::WebhookReceiver;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::unique_ptr<IngestEndpoint> endpoint(const std::string& url, const std::string& token = "",
                                         std::function<bool()> keep_going = {}) {
  auto made = make_http_ingest(url, token, std::move(keep_going));
  EXPECT_TRUE(made) << made.error().detail;
  return std::move(*made);
}

std::string reply(int status, std::string_view body, std::string_view headers = {}) {
  return "HTTP/1.1 " + std::to_string(status) +
         " Whatever\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
         std::string(headers) + "\r\n" + std::string(body);
}

IngestAnswer answer_to(const std::string& response) {
  WebhookReceiver receiver([&](const auto&) { return response; });
  return endpoint(receiver.url())->send("{}");
}

TEST(IngestEndpoint, PostsToExactlyThatAddress) {
  WebhookReceiver receiver([](const auto&) { return reply(202, "thanks"); });
  const auto to = endpoint(receiver.url("/in/../x//?key=s%2Fecret&b"), "open-sesame");
  const IngestAnswer answer = to->send(R"({"events":[]})");
  EXPECT_EQ(answer.status, 202);
  EXPECT_EQ(answer.body, "thanks");
  ASSERT_EQ(receiver.requests().size(), 1U);
  const ReceivedRequest request = receiver.requests().front();
  EXPECT_EQ(request.body, R"({"events":[]})");
  EXPECT_THAT(request.head, StartsWith("POST /in/../x//?key=s%2Fecret&b HTTP/1.1\r\n"));
  EXPECT_THAT(request.head, AllOf(HasSubstr("\r\nAuthorization: Bearer open-sesame\r\n"),
                                  HasSubstr("\r\nUser-Agent: reprise-spool\r\n"),
                                  HasSubstr("\r\nContent-Type: application/json\r\n"),
                                  Not(HasSubstr("reprise-cli"))));
  EXPECT_EQ(to->url(), receiver.url("/in/../x//?…"));
}

TEST(IngestEndpoint, NothingIsSentAsATokenWithoutOne) {
  WebhookReceiver receiver;
  endpoint(receiver.url())->send("{}");
  EXPECT_THAT(receiver.requests().front().head, Not(HasSubstr("Authorization")));
}

TEST(IngestEndpoint, RefusesWhatIsNoWholeAddress) {
  for (const char* url : {"", "in.example", "ftp://in.example/", "http://u:p@in.example/"}) {
    const auto made = make_http_ingest(url, "", {});
    ASSERT_FALSE(made) << url;
    EXPECT_EQ(made.error().code, Errc::invalid_field);
  }
}

TEST(IngestEndpoint, NoAnswerSaysWhy) {
  WebhookReceiver receiver;
  const std::string url = receiver.url();
  receiver.close();
  const IngestAnswer answer = endpoint(url)->send("{}");
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.detail, HasSubstr("Connection refused"));
}

TEST(IngestEndpoint, ReadsTheWishToBeLeftAlone) {
  EXPECT_EQ(answer_to(reply(503, "")).retry_after, std::nullopt);
  EXPECT_EQ(answer_to(reply(503, "", "retry-after: 120\r\n")).retry_after, 120s);
  EXPECT_EQ(answer_to(reply(503, "", "Retry-After: -120\r\n")).retry_after, std::nullopt);
  EXPECT_EQ(answer_to(reply(503, "", "Retry-After: soon\r\n")).retry_after, std::nullopt);
  EXPECT_EQ(answer_to(reply(503, "", "Retry-After: 999999999999999\r\n")).retry_after,
            kMaxRetryAfter);
  EXPECT_EQ(answer_to(reply(503, "", "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n")).retry_after,
            std::nullopt);
  EXPECT_EQ(answer_to(reply(503, "", "Retry-After: Sat, 21 Oct 2090 07:28:00 GMT\r\n")).retry_after,
            kMaxRetryAfter);
}

TEST(IngestEndpoint, RedirectsAreToldNotFollowed) {
  WebhookReceiver elsewhere;
  const IngestAnswer answer =
      answer_to(reply(307, "", "Location: " + elsewhere.url("/there") + "\r\n"));
  EXPECT_EQ(answer.status, 307);
  EXPECT_EQ(answer.location, elsewhere.url("/there"));
  EXPECT_TRUE(elsewhere.requests().empty());
}

TEST(IngestEndpoint, AnEndlessReplyIsCut) {
  const IngestAnswer fits = answer_to(reply(200, std::string(kMaxReplyBytes, 'x')));
  EXPECT_EQ(fits.body.size(), kMaxReplyBytes);
  const IngestAnswer cut = answer_to(reply(422, std::string(kMaxReplyBytes + 1, 'x')));
  EXPECT_EQ(cut.status, 422);
  EXPECT_EQ(cut.body.size(), kMaxReplyBytes);
}

TEST(IngestEndpoint, AnAnswerThatBreaksOffIsNone) {
  WebhookReceiver receiver([](const auto&) {
    return std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{}");
  });
  const auto to = endpoint(receiver.url());
  std::thread closer([&] {
    receiver.wait_for(1);
    receiver.close();
  });
  const IngestAnswer answer = to->send("{}");
  closer.join();
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.detail, "");
}

TEST(IngestEndpoint, KeepsItsConnection) {
  WebhookReceiver receiver([](const auto&) { return reply(200, "{}"); });
  const auto to = endpoint(receiver.url());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(to->send("{}").status, 200);
  EXPECT_EQ(receiver.connections(), 1U);
}

TEST(IngestEndpoint, AConnectionThatHasDiedBetweenTwoRequestsIsMadeAnew) {
  WebhookReceiver receiver([](const auto&) { return reply(200, "{}"); });
  const auto to = endpoint(receiver.url());
  EXPECT_EQ(to->send("{}").status, 200);
  receiver.drop_connections();
  const IngestAnswer answer = to->send("{}");
  EXPECT_EQ(answer.status, 200) << answer.detail;
}

TEST(IngestEndpoint, AConnectionThatDiesUnderTheNextRequestIsMadeAnew) {
  std::atomic<int> count = 0;
  WebhookReceiver receiver;
  receiver.answer_with([&](const auto&) {
    if (++count != 2) return reply(200, "{}");
    receiver.drop_connections();
    return std::string();
  });
  const auto to = endpoint(receiver.url());
  EXPECT_EQ(to->send("1").status, 200);
  const IngestAnswer answer = to->send("2");
  EXPECT_EQ(answer.status, 200) << answer.detail;
  ASSERT_EQ(receiver.requests().size(), 3U);
  EXPECT_EQ(receiver.requests()[2].body, "2");
}

TEST(IngestEndpoint, AnInterruptEndsARequestWithinASecond) {
  std::atomic<bool> go_on{true};
  WebhookReceiver receiver([&](const auto&) {
    go_on = false;
    return std::string();
  });
  const auto begin = steady_clock::now();
  const IngestAnswer answer =
      endpoint(receiver.url(), "", [&] { return go_on.load(); })->send("{}");
  EXPECT_EQ(answer.status, 0);
  EXPECT_LT(steady_clock::now() - begin, 5s);
}

}  // namespace
}  // namespace reprise::spool
