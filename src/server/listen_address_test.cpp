#include "server/listen_address.h"

#include <gtest/gtest.h>

namespace reprise::server {
namespace {

TEST(ParseListenAddress, TakesNamesAndAddresses) {
  const auto check = [](std::string_view text, std::string_view host, std::string_view port) {
    const auto address = parse_listen_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->host, host);
    EXPECT_EQ(address->port, port);
  };
  check("127.0.0.1:7333", "127.0.0.1", "7333");
  check("[::1]:0", "::1", "0");
  check("localhost:65535", "localhost", "65535");
}

TEST(ParseListenAddress, SaysWhatIsWrong) {
  for (const char* text : {"", "localhost", ":7333", "localhost:", "localhost:x", "localhost:65536",
                           "localhost:-1", "::1:7333", "[]:1", "1.2.3.4:80x"}) {
    const auto address = parse_listen_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, Errc::invalid_field);
    EXPECT_NE(address.error().detail.find("listen: "), std::string::npos);
  }
}

}  // namespace
}  // namespace reprise::server
