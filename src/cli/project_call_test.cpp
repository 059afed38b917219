// Commands inside a project: what they tell the server of it.
#include "cli/project_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/cli_run.h"
#include "support/webhook_receiver.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using test::run_cli;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kStarted[] = R"({"results":[{"name":"a","status":"running"}]})";
constexpr char kUnknown[] = R"({"error":{"code":"project_not_found","message":"no project"}})";

// Inside the project "shop", with a server that knows none unless it is told where it is.
class InProject : public ::testing::Test {
 protected:
  InProject() : before_(fs::current_path()) {
    std::string pattern = (fs::temp_directory_path() / "in_project_XXXXXX").string();
    top_ = fs::canonical(::mkdtemp(pattern.data()));
    fs::create_directories(top_ / "shop" / ".reprise");
    fs::create_directories(top_ / "shop" / "deep");
    root_ = (top_ / "shop").string();
    fs::current_path(top_ / "shop" / "deep");
    setenv("REPRISE_URL", server_.url("").c_str(), 1);
    unsetenv("REPRISE_PROJECT");
    server_.answer_with([](const test::ReceivedRequest& request) {
      const bool told = request.body.find(R"("root")") != std::string::npos;
      const std::string body = told ? kStarted : kUnknown;
      return std::string("HTTP/1.1 ") + (told ? "200" : "404") +
             " Whatever\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    });
  }
  ~InProject() override {
    unsetenv("REPRISE_URL");
    unsetenv("REPRISE_PROJECT");
    fs::current_path(before_);
    fs::remove_all(top_);
  }

  // "POST /v1/workers/start?namespace=shop {"names":["a"]}"
  std::vector<std::string> requests() const {
    std::vector<std::string> all;
    for (const auto& request : server_.requests()) {
      all.push_back(request.head.substr(0, request.head.find(" HTTP/1.1\r\n")) + " " +
                    request.body);
    }
    return all;
  }

  fs::path before_;
  fs::path top_;
  std::string root_;
  test::WebhookReceiver server_;
};

TEST_F(InProject, StartNamesTheProjectAndItsDirectory) {
  const auto ran = run_cli({"worker", "start", "a"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_THAT(requests(),
              ElementsAre(R"(POST /v1/workers/start?namespace=shop {"names":["a"],"root":")" +
                          root_ + R"("})"));
}

TEST_F(InProject, OtherVerbsNameTheNamespaceOnly) {
  EXPECT_EQ(run_cli({"worker", "stop", "a"}).exit_code, 1);
  EXPECT_THAT(requests(), ElementsAre(R"(POST /v1/workers/stop?namespace=shop {"names":["a"]})"));
}

TEST_F(InProject, AnotherNameIsFirstOneThatTheServerKnows) {
  setenv("REPRISE_PROJECT", "other", 1);
  const auto ran = run_cli({"worker", "start", "a"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, root_ + " is project other from now on\n");
  EXPECT_THAT(requests(),
              ElementsAre(R"(POST /v1/workers/start?namespace=other {"names":["a"]})",
                          R"(POST /v1/workers/start?namespace=other {"names":["a"],"root":")" +
                              root_ + R"("})"));
}

TEST_F(InProject, AddNamesTheProjectHereOrInADirectory) {
  const std::string reply = R"({"name":"shop","root":"/r","findings":[{"severity":"warning",)"
                            R"("file":"a.toml","line":3,"path":"p","message":"hm\u001b"}]})";
  server_.answer_with([reply](const auto&) {
    return "HTTP/1.1 201 Created\r\nContent-Length: " + std::to_string(reply.size()) + "\r\n\r\n" +
           reply;
  });
  const auto ran = run_cli({"project", "add"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "added project shop (/r)\n");
  EXPECT_EQ(ran.err, "a.toml:3: warning: p: hm\\u001b\n");
  fs::current_path(top_);
  EXPECT_EQ(run_cli({"project", "add", "shop/deep", "--project", "other"}).exit_code, 0);
  EXPECT_THAT(requests(), ElementsAre(R"(PUT /v1/projects/shop {"root":")" + root_ + R"("})",
                                      R"(PUT /v1/projects/other {"root":")" + root_ + R"("})"));
  EXPECT_THAT(run_cli({"project", "add"}).err, HasSubstr(".reprise/"));
}

TEST_F(InProject, EveryCommandWorksInItsNamespace) {
  run_cli({"queue", "list"});
  run_cli({"queue", "list", "-n", "x"});
  run_cli({"audit"});
  run_cli({"audit", "--project", "y"});
  EXPECT_THAT(requests(),
              ElementsAre("GET /v1/queues?namespace=shop ", "GET /v1/queues?namespace=x ",
                          "GET /v1/audit ", "GET /v1/audit?namespace=y "));
}

}  // namespace
}  // namespace reprise::cli
