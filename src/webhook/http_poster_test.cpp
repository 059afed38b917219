#include "webhook/http_poster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "reprise_version.h"
#include "support/webhook_receiver.h"

namespace reprise::webhook {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::ReceivedRequest;
using test::WebhookReceiver;
using testing::HasSubstr;
using testing::StartsWith;

const WebhookKey kKey{.died_at = Timestamp(1s), .queue = 2, .seq = 3};

// The outcome of one request, within ten seconds.
HttpPoster::Outcome outcome(HttpPoster& poster) {
  const auto patience = steady_clock::now() + 10s;
  while (steady_clock::now() < patience) {
    const auto ended = poster.wait(1s);
    if (!ended.empty()) return ended.front();
  }
  return {.problem = "it never ended"};
}

HttpPoster::Outcome post(const std::string& url, std::string body = "{}") {
  HttpPoster poster;
  poster.post(kKey, url, std::move(body));
  return outcome(poster);
}

TEST(HttpPoster, PostsACloudEvent) {
  WebhookReceiver receiver;
  const auto result = post(receiver.url("/hook?token=1"), R"({"a":1})");
  EXPECT_TRUE(result.accepted) << result.problem;
  EXPECT_EQ(result.key, kKey);
  ASSERT_EQ(receiver.requests().size(), 1U);
  const ReceivedRequest request = receiver.requests().front();
  EXPECT_EQ(request.body, R"({"a":1})");
  EXPECT_THAT(request.head, StartsWith("POST /hook?token=1 HTTP/1.1\r\n"));
  EXPECT_THAT(request.head, HasSubstr("\r\nContent-Type: application/cloudevents+json\r\n"));
  EXPECT_THAT(request.head, HasSubstr(std::string("\r\nUser-Agent: reprise/") + kVersion + "\r\n"));
  EXPECT_THAT(request.head, testing::Not(HasSubstr("Expect:")));
}

TEST(HttpPoster, AMegabyteArrivesAsItIs) {
  WebhookReceiver receiver;
  const std::string body(1 << 20, 'x');
  EXPECT_TRUE(post(receiver.url(), body).accepted);
  EXPECT_EQ(receiver.requests().front().body, body);
}

TEST(HttpPoster, OnlyA2xxIsAccepted) {
  for (const int status : {200, 202, 204, 299}) {
    WebhookReceiver receiver([&](const auto&) { return WebhookReceiver::status(status); });
    EXPECT_TRUE(post(receiver.url()).accepted) << status;
  }
  for (const int status : {304, 400, 404, 500, 503}) {
    WebhookReceiver receiver([&](const auto&) { return WebhookReceiver::status(status); });
    const auto result = post(receiver.url());
    EXPECT_FALSE(result.accepted);
    EXPECT_EQ(result.problem, "HTTP " + std::to_string(status));
  }
}

TEST(HttpPoster, RedirectsAreNotFollowed) {
  WebhookReceiver elsewhere;
  WebhookReceiver receiver([&](const auto&) {
    return WebhookReceiver::status(307, "Location: " + elsewhere.url() + "\r\n");
  });
  EXPECT_EQ(post(receiver.url()).problem, "HTTP 307");
  EXPECT_TRUE(elsewhere.requests().empty());
}

TEST(HttpPoster, AnAnswerWithoutEndIsCutOff) {
  WebhookReceiver receiver([](const auto&) {
    return "HTTP/1.1 200 OK\r\n\r\n" + std::string(1 << 20, 'x');  // and then no end
  });
  const auto began = steady_clock::now();
  EXPECT_TRUE(post(receiver.url()).accepted);
  EXPECT_LT(steady_clock::now() - began, 5s);
}

TEST(HttpPoster, TellsWhyNobodyAnswered) {
  WebhookReceiver receiver;
  receiver.close();
  EXPECT_EQ(post(receiver.url()).problem, "Connection refused");
  EXPECT_THAT(post("http://no-such-host.invalid/").problem, HasSubstr("no-such-host.invalid"));
}

TEST(HttpPoster, ConnectionsThatEndTooSoonAreProblems) {
  WebhookReceiver receiver([](const auto&) { return std::string("nonsense\r\n\r\n"); });
  const auto result = post(receiver.url());
  EXPECT_FALSE(result.accepted);
  EXPECT_FALSE(result.problem.empty());
}

TEST(HttpPoster, SpeaksNothingButHttp) {
  for (const auto* url : {"file:///etc/hostname", "ftp://127.0.0.1/x", "gopher://127.0.0.1/"}) {
    const auto result = post(url);
    EXPECT_FALSE(result.accepted) << url;
    EXPECT_THAT(result.problem, HasSubstr("not supported")) << url;
  }
}

TEST(HttpPoster, AConnectionIsUsedAgain) {
  WebhookReceiver receiver;
  HttpPoster poster;
  for (int i = 0; i < 5; ++i) {
    poster.post(kKey, receiver.url(), "{}");
    EXPECT_TRUE(outcome(poster).accepted);
  }
  EXPECT_EQ(receiver.connections(), 1U);
}

TEST(HttpPoster, AWaitCanBeEndedFromAnotherThread) {
  HttpPoster poster;
  const auto began = steady_clock::now();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    poster.wake();
  });
  EXPECT_TRUE(poster.wait(30s).empty());
  other.join();
  EXPECT_LT(steady_clock::now() - began, 10s);
}

TEST(HttpPoster, ItsEndWaitsForNobody) {
  WebhookReceiver receiver([](const auto&) { return std::string(); });  // never answers
  const auto began = steady_clock::now();
  {
    HttpPoster poster;
    poster.post(kKey, receiver.url(), "{}");
    while (receiver.requests().empty()) poster.wait(10ms);
    EXPECT_EQ(poster.under_way(), 1U);
  }
  EXPECT_LT(steady_clock::now() - began, 5s);
}

}  // namespace
}  // namespace reprise::webhook
