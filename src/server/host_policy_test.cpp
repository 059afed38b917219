#include "server/host_policy.h"

#include <gtest/gtest.h>

namespace reprise::server {
namespace {

RequestHead head_with(std::string_view host) {
  RequestHead head;
  head.host = host;
  return head;
}

bool answers(const HostPolicy& policy, std::string_view host) {
  return policy.check(head_with(host)).has_value();
}

bool answers_origin(const HostPolicy& policy, std::string_view host, std::string_view origin) {
  RequestHead head = head_with(host);
  head.origin = origin;
  const Status status = policy.check(head);
  if (!status) {
    EXPECT_EQ(status.error().code, Errc::forbidden_origin);
  }
  return status.has_value();
}

TEST(HostPolicy, AnswersToTheNamesOfThisMachineOnAnyPort) {
  const HostPolicy policy = HostPolicy::only({});
  for (const char* host :
       {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:7333"}) {
    EXPECT_TRUE(answers(policy, host)) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "notlocalhost", "127.0.0.2", "[::2]", "0.0.0.0"}) {
    EXPECT_FALSE(answers(policy, host)) << host;
  }
  EXPECT_EQ(policy.check(RequestHead()).error().code, Errc::forbidden_host);
}

TEST(HostPolicy, AnswersToNamesThatWereAdded) {
  const HostPolicy policy =
      HostPolicy::only({"queue.example", "10.0.0.1:7333", "fe80::1", "[::2]:1"});
  for (const char* host : {"Queue.Example:80", "10.0.0.1", "[fe80::1]:2", "[::2]"}) {
    EXPECT_TRUE(answers(policy, host)) << host;
  }
  EXPECT_FALSE(answers(policy, "q.example"));
}

TEST(HostPolicy, AnyHostMeansAny) { EXPECT_TRUE(answers(HostPolicy::any_host(), "evil.example")); }

TEST(HostPolicy, TakesOnlyItsOwnOrigin) {
  const HostPolicy policy = HostPolicy::only({});
  EXPECT_TRUE(answers_origin(policy, "localhost:7333", "http://localhost:7333"));
  EXPECT_TRUE(answers_origin(policy, "[::1]:7333", "http://[::1]:7333"));
  for (const char* origin : {"null", "", "http://localhost", "https://localhost:7333",
                             "http://localhost:7333.evil", "http://evil.example", "file://"}) {
    EXPECT_FALSE(answers_origin(policy, "localhost:7333", origin)) << origin;
  }
}

TEST(HostPolicy, WithTokensItMayStandBehindTls) {
  const HostPolicy policy = HostPolicy::any_host();
  EXPECT_TRUE(answers_origin(policy, "queue.example", "https://queue.example"));
  EXPECT_FALSE(answers_origin(policy, "queue.example", "https://evil.example"));
}

}  // namespace
}  // namespace reprise::server
