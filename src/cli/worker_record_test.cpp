// How workers and projects read.
#include "cli/worker_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/project_record.h"

namespace reprise::cli {
namespace {

constexpr char kWorker[] =
    R"({"name":"shipper","namespace":"shop","queue":"orders","type":"persisted","pipeline":"ship",)"
    R"("status":"running","active":1,"concurrency":4,"autostart":true,"last_poll_at":null,)"
    R"("next_poll_at":null,"succeeded":12,"failed":1,"last_error":"a\u001b[31m\nb","last_error_at":null})";

std::string table_of(const std::vector<Column>& columns, std::vector<Cell> row) {
  Table table(columns, Terminal{}, true);
  table.add(std::move(row));
  return table.take_text();
}

TEST(WorkerRecord, AWorkerIsARow) {
  EXPECT_EQ(table_of(worker_columns(false), worker_row(JsonView(kWorker), false)),
            "WORKER\tQUEUE\tSTATUS\tACTIVE\tLAST POLL\tLAST ERROR\n"
            "shipper\torders\trunning\t1/4\t-\ta\\u001b[31m\\nb\n");
  EXPECT_EQ(table_of(worker_columns(true), worker_row(JsonView(kWorker), true)),
            "NAMESPACE\tWORKER\tQUEUE\tSTATUS\tACTIVE\tLAST POLL\tLAST ERROR\n"
            "shop\tshipper\torders\trunning\t1/4\t-\ta\\u001b[31m\\nb\n");
}

TEST(WorkerRecord, ACommandTellsWhatBecameOfIt) {
  const auto told = [](std::string_view verb, const std::string& more) {
    const std::string result = R"({"name":"shipper",)" + more + "}";
    return worker_result_text(verb, JsonView(result));
  };
  EXPECT_EQ(told("start", R"("status":"running","was_running":false)"), "started shipper");
  EXPECT_EQ(told("start", R"("status":"running","was_running":true)"),
            "shipper was running; woken");
  EXPECT_EQ(told("stop", R"("status":"stopped","was_running":true)"), "stopped shipper");
  EXPECT_EQ(told("stop", R"("status":"stopping","worker":{"active":2})"),
            "stopping shipper: 2 jobs still run");
  EXPECT_EQ(told("stop", R"("status":"stopping","worker":{"active":1})"),
            "stopping shipper: 1 job still runs");
  EXPECT_EQ(told("restart", R"("status":"restarting")"), "restarting shipper");
  EXPECT_EQ(told("resize", R"("status":"running","worker":{"concurrency":8})"),
            "resized shipper to 8");
}

constexpr char kFindings[] =
    R"([{"severity":"warning","file":".reprise/shop.toml","line":3,"column":1,"path":"","message":"hm"},)"
    R"({"severity":"error","file":".reprise/shop.toml","line":12,"column":8,"path":"queue.bugs.poll",)"
    R"("message":"no duration"}])";

std::string project(const std::string& more) {
  return R"({"name":"shop","root":"/srv/shop","queues":2,"pipelines":1,"workers":1,)"
         R"("findings":)" +
         std::string(kFindings) + "," + more + "}";
}

TEST(ProjectRecord, AProjectIsARow) {
  const std::string good = project(R"("broken":false,"files":[".reprise/shop.toml"])");
  EXPECT_EQ(table_of(project_columns(), project_row(JsonView(good))),
            "PROJECT\tROOT\tSTATE\tQUEUES\tPIPELINES\tWORKERS\n"
            "shop\t/srv/shop\tok\t2\t1\t1\n");
  EXPECT_EQ(project_state(JsonView(project(R"("broken":true,"files":["a.toml"])"))), "broken");
  EXPECT_EQ(project_state(JsonView(project(R"("broken":true,"missing":true,"files":[])"))),
            "missing");
}

TEST(ProjectRecord, WarningsAreToldLikeACheckTellsThem) {
  const std::string good = project(R"("broken":false)");
  EXPECT_THAT(warning_texts(JsonView(good)),
              ::testing::ElementsAre(".reprise/shop.toml:3: warning: hm"));
}

TEST(ProjectRecord, ABrokenRunbookSaysWhichVersionIsInForce) {
  EXPECT_EQ(broken_text(JsonView(project(R"("broken":false)"))), "");
  const std::string broken =
      project(R"("broken":true,"loaded_at":"2026-01-31T08:15:10.250Z","files":["a"])");
  EXPECT_EQ(broken_text(JsonView(broken)),
            "runbook of shop is broken, the version of 08:15:10 is in force: "
            ".reprise/shop.toml:12: queue.bugs.poll: no duration");
  EXPECT_EQ(broken_text(JsonView(project(R"("broken":true,"loaded_at":null)"))),
            "runbook of shop is broken, none is in force: "
            ".reprise/shop.toml:12: queue.bugs.poll: no duration");
  EXPECT_EQ(broken_text(JsonView(R"({"name":"shop","broken":true,"loaded_at":null})")),
            "runbook of shop is broken, none is in force");
}

}  // namespace
}  // namespace reprise::cli
