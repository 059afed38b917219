// A running HttpServer over a FakeBroker and a FakeWorkerService.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <string_view>

#include "support/fake_worker_service.h"
#include "support/http_server_fixture.h"

namespace reprise::test {

inline const Timestamp kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12);

class WorkerHttpTest : public HttpServerTest {
 protected:
  void SetUp() override { start({.workers = &service}); }
  void TearDown() override { server.reset(); }  // before the service

  // The code of a refusal whose message has `named` in it.
  std::string refused(std::string_view method, std::string_view target, std::string_view body = {},
                      std::string_view named = {}) {
    const HttpReply reply = ask(method, target, body);
    EXPECT_GE(reply.status, 400) << method << " " << target << " " << body;
    const Json json = json_of(reply);
    EXPECT_THAT(json["error"]["message"].string_or(""), ::testing::HasSubstr(std::string(named)))
        << method << " " << target << " " << body;
    return json["error"]["code"].string_or("");
  }

  FakeWorkerService service;
};

}  // namespace reprise::test
