#include "model/webhook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(WebhookKey, IsOrderedByDeath) {
  const WebhookKey early{.died_at = Timestamp(1s), .queue = 2, .seq = 9};
  EXPECT_LT(early, (WebhookKey{.died_at = Timestamp(2s), .queue = 1, .seq = 1}));
  EXPECT_LT(early, (WebhookKey{.died_at = Timestamp(1s), .queue = 3, .seq = 1}));
  EXPECT_LT(early, (WebhookKey{.died_at = Timestamp(1s), .queue = 2, .seq = 10}));
}

class GoodUrl : public testing::TestWithParam<std::string_view> {};

TEST_P(GoodUrl, IsTaken) {
  const Status checked = check_webhook_url(GetParam());
  EXPECT_TRUE(checked) << checked.error().detail;
}

INSTANTIATE_TEST_SUITE_P(Urls, GoodUrl,
                         testing::Values("http://example.com", "https://example.com/a/b?c=d@e#f",
                                         "HTTPS://Example.Com:8443/x", "http://127.0.0.1:80",
                                         "http://[::1]:8080/x", "http://[fe80::1]",
                                         "http://my_host", "https://bücher.example/",
                                         "http://host?x=1", "http://host:65535"));

struct Bad {
  std::string_view url;
  std::string_view message;
};

class BadUrl : public testing::TestWithParam<Bad> {};

TEST_P(BadUrl, IsRefusedWithAReason) {
  const Status checked = check_webhook_url(GetParam().url);
  ASSERT_FALSE(checked) << GetParam().url;
  EXPECT_EQ(checked.error().code, Errc::invalid_field);
  EXPECT_THAT(checked.error().detail, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Urls, BadUrl,
    testing::Values(Bad{"", "an address is missing"},
                    Bad{"example.com/x", "'example.com/x' does not begin with http:// or https://"},
                    Bad{"ftp://example.com", "does not begin with http"},
                    Bad{"file:///etc/passwd", "does not begin with http"},
                    Bad{"http:/example.com", "does not begin with http"},
                    Bad{"http://", "'http://' names no host"}, Bad{"http:///x", "names no host"},
                    Bad{"http://:80/", "names no host"}, Bad{"http://[]/", "names no host"},
                    Bad{"http://[::1/", "names no host"}, Bad{"http://[a b]/", "a space"},
                    Bad{"http://[x]/", "names no host"},
                    Bad{"http://user@example.com", "a user or a password"},
                    Bad{"http://a b", "a space or a control character"},
                    Bad{"http://a/\r\nX: y", "a space or a control character"},
                    Bad{std::string_view("http://a\0", 9), "a space or a control character"},
                    Bad{"http://ab\\c/", "has '\\' in the name of its host"},
                    Bad{"http://[::1]x", "has 'x' in the name of its host"},
                    Bad{"http://host:", "no port between 1 and 65535"},
                    Bad{"http://host:0", "no port"}, Bad{"http://host:65536", "no port"},
                    Bad{"http://host:8x", "no port"}, Bad{"http://host:-1", "no port"}));

TEST(WebhookUrl, APasswordIsNotRepeated) {
  const Status checked = check_webhook_url("http://user:secret@example.com");
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().detail, Not(HasSubstr("secret")));
}

TEST(WebhookUrl, HasALongestLength) {
  std::string url = "http://example.com/";
  url.append(kMaxWebhookUrlBytes - url.size(), 'x');
  EXPECT_TRUE(check_webhook_url(url));
  const Status checked = check_webhook_url(url + "x");
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().detail, HasSubstr("2001 bytes, more than 2000"));
}

}  // namespace
}  // namespace reprise
