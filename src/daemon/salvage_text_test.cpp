#include "daemon/salvage_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace reprise::daemon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

storage::SalvageReport example() {
  storage::SalvageReport report;
  report.queues.push_back({.name = {.name = "orders"}, .number = 1, .live_kept = 12});
  report.queues.push_back({.name = {.ns = "shop", .name = "recovered-7"},
                           .number = 7,
                           .recovered = true,
                           .live_kept = 3,
                           .live_lost = 2,
                           .live_reset = 1,
                           .dead_kept = 5,
                           .dead_lost = 4});
  report.batches_read = 100;
  report.batches_lost = 1;
  report.places_lost = 6;
  report.damage = {"db/000012.sst is \"damaged\""};
  return report;
}

const SalvagePaths kPaths{.from = "/old", .to = "/new one"};

TEST(SalvageTable, IsTabsForPipes) {
  EXPECT_EQ(salvage_table(example(), false, true),
            "NAMESPACE\tQUEUE\tKEPT\tLOST\tRESET\tDEAD\tDEAD LOST\n"
            "default\torders\t12\t0\t0\t0\t0\n"
            "shop\trecovered-7\t3\t2\t1\t5\t4\n");
  EXPECT_EQ(salvage_table({}, false, false), "");
}

TEST(SalvageTable, IsAlignedForPeople) {
  EXPECT_EQ(salvage_table(example(), true, true),
            "NAMESPACE  QUEUE        KEPT  LOST  RESET  DEAD  DEAD LOST\n"
            "default    orders         12     0      0     0          0\n"
            "shop       recovered-7     3     2      1     5          4\n");
}

TEST(SalvageJson, HasEverything) {
  const auto json = Json::parse(salvage_json(example(), kPaths));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["to"].string_or(""), "/new one");
  EXPECT_EQ(salvage_json(example(), kPaths),
            R"({"data":"/old","to":"/new one","lost_anything":true,)"
            R"("jobs":{"kept":15,"lost":2,"reset":1},"dead":{"kept":5,"lost":4},)"
            R"("journal":{"batches_read":100,"batches_lost":1},"places_lost":6,"queues":[)"
            R"({"name":"orders","namespace":"default","recovered":false,)"
            R"("jobs":{"kept":12,"lost":0,"reset":0},"dead":{"kept":0,"lost":0}},)"
            R"({"name":"recovered-7","namespace":"shop","recovered":true,)"
            R"("jobs":{"kept":3,"lost":2,"reset":1},"dead":{"kept":5,"lost":4}}],)"
            R"("damage":["db/000012.sst is \"damaged\""]})");
}

TEST(SalvageNotes, SayWhatWasLostAndWhatToDo) {
  const auto notes = salvage_notes(example(), kPaths);
  EXPECT_EQ(notes.front(), "damaged: db/000012.sst is \"damaged\"");
  EXPECT_THAT(notes, Contains("kept 15 jobs and 5 dead jobs"));
  EXPECT_THAT(notes, Contains(HasSubstr("lost 2 jobs and 4 dead jobs")));
  EXPECT_THAT(notes, Contains(HasSubstr("1 job lost the count of attempts")));
  EXPECT_THAT(notes, Contains(HasSubstr("recovered-7")));
  EXPECT_EQ(notes.back(), "start a server on it with: reprise serve --data '/new one'");
}

TEST(SalvageNotes, OfAWholeDirectoryAreShort) {
  storage::SalvageReport report;
  report.queues.push_back({.name = {.name = "orders"}, .number = 1, .live_kept = 1});
  const auto notes = salvage_notes(report, kPaths);
  EXPECT_THAT(notes, Contains("nothing was lost"));
  EXPECT_THAT(notes, Contains("kept 1 job and 0 dead jobs"));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("damaged"))));
}

TEST(SalvageNotes, DoNotFloodATerminal) {
  storage::SalvageReport report;
  for (int i = 0; i < 500; ++i) report.damage.push_back(std::to_string(i));
  EXPECT_LT(salvage_notes(report, kPaths).size(), 30U);
}

}  // namespace
}  // namespace reprise::daemon
