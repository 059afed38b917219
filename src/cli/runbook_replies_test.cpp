// worker, run, project and timers against a server that gives recorded replies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/cli_run.h"
#include "support/webhook_receiver.h"

namespace reprise::cli {
namespace {

using test::run_cli;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string run_with(const std::string& status, const std::string& more = R"("error":null)") {
  return R"({"id":"3K9M2QAX7B4C1","namespace":"shop","pipeline":"ship","status":")" + status +
         R"(",)" + more + "}";
}

struct Answer {
  int status = 200;
  std::string body;
};

class RunbookReplies : public ::testing::Test {
 protected:
  RunbookReplies() { setenv("REPRISE_URL", server_.url("").c_str(), 1); }
  ~RunbookReplies() override {
    unsetenv("REPRISE_URL");
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }

  // `reply` gets "GET /v1/runs/3K9M?wait=30s".
  void reply_by(std::function<Answer(const std::string& line)> reply) {
    server_.answer_with([reply = std::move(reply)](const test::ReceivedRequest& request) {
      const Answer answer = reply(request.head.substr(0, request.head.find(" HTTP/1.1\r\n")));
      return "HTTP/1.1 " + std::to_string(answer.status) +
             " Whatever\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n\r\n" +
             answer.body;
    });
  }
  void reply_with(int status, const std::string& body) {
    reply_by([=](const std::string&) { return Answer{status, body}; });
  }
  std::vector<std::string> request_lines() const {
    std::vector<std::string> lines;
    for (const auto& request : server_.requests()) {
      lines.push_back(request.head.substr(0, request.head.find(" HTTP/1.1\r\n")));
    }
    return lines;
  }
  std::string last_request() const { return request_lines().back(); }
  std::string last_body() const { return server_.requests().back().body; }

  test::WebhookReceiver server_;
};

TEST_F(RunbookReplies, WorkersAreStartedEachByItself) {
  reply_with(200, R"({"results":[{"name":"a","status":"running","was_running":false},)"
                  R"({"name":"b","status":"error","error":{"code":"worker_not_found",)"
                  R"("message":"no worker 'b'; did you mean 'a'?"}}]})");
  const auto ran = run_cli({"worker", "start", "a", "b", "--project", "shop"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "started a\n");
  EXPECT_EQ(ran.err, "reprise: no worker 'b'; did you mean 'a'? (worker_not_found)\n");
  EXPECT_EQ(last_request(), "POST /v1/workers/start?namespace=shop");
  EXPECT_EQ(last_body(), R"({"names":["a","b"]})");
  const auto json = run_cli({"worker", "start", "a", "b", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(json.err, "");
  EXPECT_THAT(json.out, HasSubstr(R"({"results":[{"name":"a")"));
}

TEST_F(RunbookReplies, WorkersAreStoppedRestartedAndResized) {
  reply_with(200, R"({"results":[]})");
  EXPECT_EQ(run_cli({"worker", "stop", "--all", "--now"}).exit_code, 0);
  EXPECT_EQ(last_request(), "POST /v1/workers/stop?namespace=default");
  EXPECT_EQ(last_body(), R"({"all":true,"now":true})");
  EXPECT_EQ(run_cli({"worker", "restart", "a"}).exit_code, 0);
  EXPECT_EQ(last_request(), "POST /v1/workers/restart?namespace=default");
  EXPECT_EQ(run_cli({"worker", "resize", "a", "8"}).exit_code, 0);
  EXPECT_EQ(last_body(), R"({"names":["a"],"concurrency":8})");
}

TEST_F(RunbookReplies, OutsideOfAProjectAnErrorSaysWhatToDo) {
  reply_with(404, R"({"error":{"code":"project_not_found","message":"no project 'default'"}})");
  const auto ran = run_cli({"worker", "start", "a"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err,
            "reprise: no project 'default' (project_not_found)\n"
            "  run it inside the project, or make it known: reprise project add DIR\n");
}

TEST_F(RunbookReplies, AllErrorsOfARunbookAreListed) {
  reply_with(
      400, R"({"error":{"code":"invalid_runbook","message":"a.toml:1: x\na.toml:2: y\u001b\n"}})");
  EXPECT_EQ(run_cli({"worker", "start", "a"}).err,
            "reprise: a.toml:1: x (invalid_runbook)\n  a.toml:2: y\\u001b\n");
}

TEST_F(RunbookReplies, WorkerListTellsOfBrokenRunbooks) {
  reply_with(200, R"({"workers":[],"projects":[{"name":"shop","broken":true,"loaded_at":null,)"
                  R"("findings":[{"severity":"error","file":"a.toml","line":2,"message":"m"}]}]})");
  const auto ran = run_cli({"worker", "list", "-A"});
  EXPECT_EQ(ran.out, "NAMESPACE\tWORKER\tQUEUE\tSTATUS\tACTIVE\tLAST POLL\tLAST ERROR\n");
  EXPECT_EQ(ran.err, "runbook of shop is broken, none is in force: a.toml:2: m\n");
  EXPECT_EQ(last_request(), "GET /v1/workers?namespace=%2A");
}

TEST_F(RunbookReplies, LogsComePageByPageAsTheyAre) {
  reply_by([](const std::string& line) {
    if (line.find("offset=4") != line.npos)
      return Answer{200, R"({"text":"b\u001b\n","next":7,"ended":true})"};
    if (line.find("offset=7") != line.npos)
      return Answer{200, R"({"text":"","next":7,"ended":true})"};
    return Answer{200, R"({"text":"a\t1\n","next":4,"ended":true})"};
  });
  EXPECT_EQ(run_cli({"run", "logs", "3K9M"}).out, "a\t1\nb\x1b\n");
  EXPECT_THAT(request_lines(),
              ElementsAre("GET /v1/runs/3K9M/log", "GET /v1/runs/3K9M/log?offset=4",
                          "GET /v1/runs/3K9M/log?offset=7"));
  EXPECT_EQ(run_cli({"run", "logs", "3K9M", "-f"}).out, "a\t1\nb\x1b\n");
  EXPECT_EQ(last_request(), "GET /v1/runs/3K9M/log?offset=7&wait=20s");
  EXPECT_EQ(run_cli({"run", "logs", "3K9M", "--json"}).out,
            "{\"text\":\"a\\t1\\n\",\"next\":4,\"ended\":true}\n"
            "{\"text\":\"b\\u001b\\n\",\"next\":7,\"ended\":true}\n");
}

TEST_F(RunbookReplies, ALogThatNeverEndsHasATail) {
  reply_with(200, R"({"text":"0123456789","next":10,"ended":false})");
  EXPECT_EQ(run_cli({"worker", "logs", "a", "--tail", "15"}).out, "01234567890123456789");
  EXPECT_EQ(request_lines().front(), "GET /v1/workers/a/log?tail=15&namespace=default");
}

TEST_F(RunbookReplies, FollowingEndsWithAnInterrupt) {
  reply_by([](const std::string& line) {
    if (line.find("offset=2") == line.npos)
      return Answer{200, R"({"text":"a\n","next":2,"ended":false})"};
    ::kill(::getpid(), SIGINT);
    return Answer{200, R"({"text":"","next":2,"ended":false})"};
  });
  const auto ran = run_cli({"worker", "logs", "a", "-f"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "a\n");
  EXPECT_EQ(ran.err, "");
}

TEST_F(RunbookReplies, ATrialPrintsItsOutputAndTellsHowItEnded) {
  reply_by([](const std::string& line) {
    if (line.starts_with("POST /v1/runs?")) return Answer{201, run_with("running")};
    if (line.find("/log?offset=3") != line.npos)
      return Answer{200, R"({"text":"","next":3,"ended":true})"};
    if (line.find("/log") != line.npos)
      return Answer{200, R"({"text":"hi\n","next":3,"ended":false})"};
    return Answer{200,
                  run_with("failed", R"("error":"step a: exit code 3","error_type":"exit_3")")};
  });
  const auto ran = run_cli({"run", "ship", "--item", R"({"id":7})", "-n", "shop"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.out, "hi\n");
  EXPECT_EQ(ran.err, "reprise: step a: exit code 3 (exit_3)\n");
  EXPECT_EQ(server_.requests().front().body, R"({"pipeline":"ship","item":{"id":7}})");
  EXPECT_EQ(request_lines().front(), "POST /v1/runs?namespace=shop");

  const auto json = run_cli({"run", "ship", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_THAT(json.out, HasSubstr(R"("status":"failed")"));
  EXPECT_EQ(json.err, "");
  const auto detached = run_cli({"run", "--detach", "--", "list"});
  EXPECT_EQ(detached.exit_code, 0);
  EXPECT_EQ(detached.out, "3K9M2QAX7B4C1\n");
  EXPECT_EQ(last_body(), R"({"pipeline":"list"})");
}

TEST_F(RunbookReplies, AnInterruptCancelsATrialAndWaitsForItsEnd) {
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  reply_by([cancelled](const std::string& line) {
    if (line.starts_with("POST /v1/runs?")) return Answer{201, run_with("running")};
    if (line.ends_with("/cancel")) {
      *cancelled = true;
      return Answer{200, run_with("running")};
    }
    if (line.find("/log?offset=5") != line.npos)
      return Answer{200, R"({"text":"","next":5,"ended":true})"};
    if (line.find("/log") != line.npos && *cancelled) {
      return Answer{200, R"({"text":"undo\n","next":5,"ended":true})"};
    }
    if (line.find("/log") != line.npos) {
      ::kill(::getpid(), SIGINT);
      return Answer{200, R"({"text":"","next":0,"ended":false})"};
    }
    return Answer{200, run_with(*cancelled ? "cancelled" : "running")};
  });
  const auto ran = run_cli({"run", "ship"});
  EXPECT_EQ(ran.exit_code, 4);
  EXPECT_EQ(ran.out, "undo\n");
  EXPECT_THAT(ran.err, HasSubstr("reprise: run 3K9M2QAX7B4C1 was cancelled (cancelled)\n"));
  EXPECT_THAT(request_lines(), ::testing::Contains("POST /v1/runs/3K9M2QAX7B4C1/cancel"));
}

TEST_F(RunbookReplies, WaitingTellsHowItEndedOrThatItHasNot) {
  reply_with(200, run_with("running"));
  const auto running = run_cli({"run", "wait", "3K9M", "--timeout", "0s"});
  EXPECT_EQ(running.exit_code, 6);
  EXPECT_EQ(running.err, "reprise: run 3K9M2QAX7B4C1 still runs (running)\n");
  EXPECT_EQ(last_request(), "GET /v1/runs/3K9M");
  for (const auto& [status, code] : std::vector<std::pair<std::string, int>>{
           {"succeeded", 0}, {"failed", 1}, {"cancelled", 4}, {"lost", 5}}) {
    reply_with(200, run_with(status));
    EXPECT_EQ(run_cli({"run", "wait", "3K9M"}).exit_code, code) << status;
    EXPECT_EQ(run_cli({"run", "wait", "3K9M", "--json"}).out, run_with(status) + "\n");
  }
  EXPECT_EQ(last_request(), "GET /v1/runs/3K9M?wait=30s");
  reply_with(404, R"({"error":{"code":"run_not_found","message":"no run '3K9M'"}})");
  EXPECT_EQ(run_cli({"run", "wait", "3K9M"}).exit_code, 1);
}

TEST_F(RunbookReplies, RunsAreListedAndCancelled) {
  reply_with(200, R"({"runs":[)" + run_with("lost") + "]}");
  EXPECT_THAT(run_cli({"run", "list", "--worker", "w", "--status", "lost", "--limit", "5"}).out,
              HasSubstr("3K9M2QAX7B4C1\tlost\tship\t"));
  EXPECT_EQ(last_request(), "GET /v1/runs?worker=w&status=lost&limit=5&namespace=default");
  EXPECT_EQ(run_cli({"run", "list", "-A"}).exit_code, 0);
  EXPECT_EQ(last_request(), "GET /v1/runs?namespace=%2A");
  reply_with(200, run_with("running"));
  EXPECT_EQ(run_cli({"run", "cancel", "3K9M"}).out, "cancelling 3K9M2QAX7B4C1\n");
  EXPECT_EQ(last_request(), "POST /v1/runs/3K9M/cancel");
}

TEST_F(RunbookReplies, ProjectsAreListedAndRemoved) {
  reply_with(200, R"({"projects":[{"name":"shop","root":"/srv/shop","broken":false,"queues":2,)"
                  R"("pipelines":1,"workers":1,"files":["a"],"findings":[]}]})");
  EXPECT_EQ(run_cli({"project", "list", "--no-header"}).out, "shop\t/srv/shop\tok\t2\t1\t1\n");
  reply_with(200, R"({"name":"shop"})");
  EXPECT_EQ(run_cli({"project", "remove", "shop"}).out, "removed project shop\n");
  EXPECT_EQ(last_request(), "DELETE /v1/projects/shop");
}

TEST_F(RunbookReplies, AnExternalQueueIsShownWithWhatIsKnownOfIt) {
  reply_with(200, R"({"name":"bugs","namespace":"shop","type":"external","workers":["fixer"],)"
                  R"("poll":"30s","listed":3,"in_hand":1,"last_error":null})");
  EXPECT_EQ(run_cli({"queue", "show", "bugs"}).out,
            "FIELD\tVALUE\nname\tbugs\nnamespace\tshop\ntype\texternal\nworkers.0\tfixer\n"
            "poll\t30s\nlisted\t3\nin_hand\t1\nlast_error\t-\n");
}

TEST_F(RunbookReplies, TimersTellInHowLong) {
  reply_with(200,
             R"({"timers":[{"id":"queue-poll:shop/fixer","due_at":"2026-01-31T08:15:00.250Z"}]})");
  EXPECT_EQ(run_cli({"timers", "--limit", "7"}).out, "TIMER\tDUE\nqueue-poll:shop/fixer\t0s\n");
  EXPECT_EQ(last_request(), "GET /v1/timers?limit=7&namespace=default");
}

}  // namespace
}  // namespace reprise::cli
