#include "server/access_tokens.h"

#include <gtest/gtest.h>

namespace reprise::server {
namespace {

TEST(ParseAccessTokens, ReadsNamedAndBareTokens) {
  const auto tokens = parse_access_tokens("# people\n\n  alice : s3cret:x \r\nbare\nalice:second");
  ASSERT_TRUE(tokens);
  ASSERT_EQ(tokens->size(), 3U);
  EXPECT_EQ((*tokens)[0].name, "alice");
  EXPECT_EQ((*tokens)[0].secret, "s3cret:x");
  EXPECT_EQ((*tokens)[1].name, "default");
  EXPECT_EQ((*tokens)[1].secret, "bare");
  EXPECT_EQ((*tokens)[2].secret, "second");
}

TEST(ParseAccessTokens, NamesTheLineButNeverItsText) {
  for (const char* text : {"ok\nalice:", ":s3cret\n", "alice:s3 cret",
                           "x\ny\ns\x01"
                           "3cret"}) {
    const auto tokens = parse_access_tokens(text);
    ASSERT_FALSE(tokens) << text;
    EXPECT_NE(tokens.error().detail.find("line "), std::string::npos);
    EXPECT_EQ(tokens.error().detail.find("3cret"), std::string::npos);
    EXPECT_EQ(tokens.error().detail.find("s3"), std::string::npos);
  }
}

TEST(ParseAccessTokens, WantsAtLeastOne) {
  EXPECT_FALSE(parse_access_tokens(""));
  EXPECT_FALSE(parse_access_tokens("# nobody\n\n"));
}

TEST(ReadAccessTokenFile, SaysWhenItCannotBeRead) {
  const auto tokens = read_access_token_file("/nonexistent/tokens");
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().code, Errc::io);
}

TEST(AccessTokens, MatchesWholeSecretsOnly) {
  const AccessTokens tokens({{"alice", "wonderland"}, {"default", "bare"}});
  EXPECT_EQ(tokens.match("Bearer wonderland"), "alice");
  EXPECT_EQ(tokens.match("bearer  bare"), "default");
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "Bearer wonderlan", "Bearer wonderlandx", "Bearer WONDERLAND",
        "Basic wonderland", "wonderland", "Bearer alice:wonderland", "Bearer wonderland bare"}) {
    EXPECT_EQ(tokens.match(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace reprise::server
