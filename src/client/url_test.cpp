#include "client/url.h"

#include <gtest/gtest.h>

namespace reprise::client {
namespace {

TEST(Url, EncodesWhatMayMeanSomething) {
  EXPECT_EQ(percent_encode("orders-1._~"), "orders-1._~");
  EXPECT_EQ(percent_encode("a/b?c=d&e é"), "a%2Fb%3Fc%3Dd%26e%20%C3%A9");
}

TEST(Url, MakesAQuery) {
  EXPECT_EQ(encode_query({}), "");
  EXPECT_EQ(encode_query({{"namespace", "*"}, {"header.a b", "="}}),
            "?namespace=%2A&header.a%20b=%3D");
}

TEST(Url, TakesAServer) {
  EXPECT_EQ(parse_server_url("http://127.0.0.1:7333/")->base, "http://127.0.0.1:7333");
  EXPECT_EQ(parse_server_url("queue.example:80")->base, "http://queue.example:80");
  EXPECT_EQ(parse_server_url("https://queue.example/reprise/")->base,
            "https://queue.example/reprise");
}

TEST(Url, KnowsThisMachine) {
  for (const char* url :
       {"localhost:1", "http://127.0.0.1", "http://127.1.2.3:7", "http://[::1]:7"}) {
    EXPECT_TRUE(parse_server_url(url)->loopback) << url;
  }
  EXPECT_FALSE(parse_server_url("http://queue.example")->loopback);
}

TEST(Url, RefusesWhatIsNoServer) {
  for (const char* url : {"", "http://", "ftp://x", "http://x?y=1", "http://[::1", "localhost:x"}) {
    EXPECT_FALSE(parse_server_url(url)) << url;
  }
}

TEST(Url, TakesAnEndpointApartWithoutChangingIt) {
  const auto parts = [](const char* url) {
    const auto parsed = parse_endpoint_url(url);
    return parsed ? parsed->server.base + " " + parsed->target : parsed.error().detail;
  };
  EXPECT_EQ(parts("https://in.example/a/../b//?key=%2F&x=?"),
            "https://in.example /a/../b//?key=%2F&x=?");
  EXPECT_EQ(parts("http://127.0.0.1:7333/api/events/ingest"),
            "http://127.0.0.1:7333 /api/events/ingest");
  EXPECT_EQ(parts("http://[::1]:80"), "http://[::1]:80 /");
  EXPECT_EQ(parts("http://in.example?a=/b"), "http://in.example /?a=/b");
  EXPECT_EQ(parts("http://in.example/a#b"), "http://in.example /a");
  EXPECT_TRUE(parse_endpoint_url("http://[::1]:80/x")->server.loopback);
  EXPECT_FALSE(parse_endpoint_url("http://in.example/x")->server.loopback);
}

TEST(Url, RefusesWhatIsNoEndpoint) {
  for (const char* url : {"", "in.example/x", "http://", "ftp://x/y", "http://a b/", "http://x:y/z",
                          "http://x/\n", "/path"}) {
    EXPECT_FALSE(parse_endpoint_url(url)) << url;
  }
  const auto secret = parse_endpoint_url("http://me:secret@in.example/x");
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.error().detail.find("secret"), std::string::npos);
}

}  // namespace
}  // namespace reprise::client
