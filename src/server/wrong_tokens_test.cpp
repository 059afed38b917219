#include "server/wrong_tokens.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/address.hpp>
#include <string>

namespace reprise::server {
namespace {

using namespace std::chrono_literals;

Peer at(const std::string& text) {
  namespace ip = boost::asio::ip;
  const auto address = ip::make_address(text);
  return peer_of(
      (address.is_v4() ? ip::make_address_v6(ip::v4_mapped, address.to_v4()) : address.to_v6())
          .to_bytes());
}

struct WrongTokensTest : testing::Test {
  void use_up(Peer who) {
    for (int i = 0; i < WrongTokens::kAtOnce; ++i) {
      EXPECT_FALSE(wrong.must_wait(who, now)) << i;
      wrong.count(who, now);
    }
  }

  WrongTokens wrong;
  WrongTokens::Time now{1h};
  const Peer peer = at("10.0.0.1");
};

TEST_F(WrongTokensTest, AFewAreForgivenAndThenOneASecond) {
  use_up(peer);
  EXPECT_TRUE(wrong.must_wait(peer, now));
  EXPECT_TRUE(wrong.must_wait(peer, now + 999ms));
  now += 1s;
  EXPECT_FALSE(wrong.must_wait(peer, now));
  wrong.count(peer, now);
  EXPECT_TRUE(wrong.must_wait(peer, now));
}

TEST_F(WrongTokensTest, AllIsForgottenInTime) {
  use_up(peer);
  now += WrongTokens::kAtOnce * WrongTokens::kEvery;
  use_up(peer);
  EXPECT_TRUE(wrong.must_wait(peer, now));
}

TEST_F(WrongTokensTest, OtherAddressesAreNotConcerned) {
  use_up(peer);
  EXPECT_FALSE(wrong.must_wait(at("10.0.0.2"), now));
  EXPECT_FALSE(wrong.must_wait(at("::1"), now));
}

TEST_F(WrongTokensTest, ANetworkOfIpv6CountsAsOneAndAMappedAddressAsItself) {
  use_up(at("2001:db8:1:2::1"));
  EXPECT_TRUE(wrong.must_wait(at("2001:db8:1:2:ffff::9"), now));
  EXPECT_FALSE(wrong.must_wait(at("2001:db8:1:3::1"), now));
  use_up(at("::ffff:10.0.0.1"));
  EXPECT_TRUE(wrong.must_wait(peer, now));
}

TEST_F(WrongTokensTest, ItRemembersSoManyAndKeepsTheWorst) {
  use_up(peer);
  for (unsigned i = 0; i < 2 * WrongTokens::kMaxPeers; ++i) {
    wrong.count(0x0B000000U + i, now);
  }
  EXPECT_EQ(wrong.peers(), WrongTokens::kMaxPeers);
  EXPECT_TRUE(wrong.must_wait(peer, now));
  // Room is made of those that have lived it down.
  now += 2s;
  wrong.count(at("10.0.0.2"), now);
  EXPECT_EQ(wrong.peers(), 2U);
}

}  // namespace
}  // namespace reprise::server
