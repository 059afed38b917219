#include "cli/runbook_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace reprise::cli {
namespace {

using runbook::LoadResult;
using runbook::parse_runbook;
using ::testing::HasSubstr;
using ::testing::Not;

LoadResult good() {
  return parse_runbook("/srv/shop", "",
                       {{".reprise/queues.toml",
                         "[queue.orders]\ntype = 'persisted'\nvars = []\nlease = '1m'\n"
                         "[queue.bugs]\ntype = 'external'\nlist = 'ls'\ntake = 'take ${item.id}'\n"
                         "poll = '30s'\n"},
                        {".reprise/ship.json",
                         R"({"pipeline": {"ship": {"step": [
                              {"name": "pick", "run": "pick ${item.id}", "on_fail": "undo"},
                              {"name": "undo", "run": "undo\nall", "timeout": "5s"}]}},
                             "worker": {"shipper": {"queue": "orders", "run": "ship"},
                                        "fixer": {"queue": "bugs", "run": "ship",
                                                  "concurrency": 4, "autostart": true}}})"}});
}

LoadResult bad() {
  return parse_runbook("/srv/shop", "",
                       {{".reprise/a.toml",
                         "[queue.\"a\\u001b\"]\n[queue.b]\ntype = 'external'\n"
                         "list = 'ls'\ntake = 'take'\npoll = '5x'\n"}});
}

TEST(RunbookCheck, CountsWhatEachFileDeclares) {
  const auto loaded = good();
  ASSERT_TRUE(loaded.runbook) << findings_text(loaded);
  EXPECT_FALSE(has_errors(loaded));
  EXPECT_EQ(findings_text(loaded), "");
  EXPECT_EQ(files_text(*loaded.runbook),
            ".reprise/queues.toml: 2 queues, 0 pipelines, 0 workers\n"
            ".reprise/ship.json: 0 queues, 1 pipeline, 2 workers\n");
}

TEST(RunbookCheck, PrintsALineForEachFinding) {
  const auto loaded = bad();
  EXPECT_TRUE(has_errors(loaded));
  const std::string text = findings_text(loaded);
  EXPECT_THAT(text, HasSubstr(".reprise/a.toml:1: queue.a\\u001b: queue name 'a\\u001b' may"));
  EXPECT_THAT(text, HasSubstr(".reprise/a.toml:2: warning: queue.b: no worker"));
  EXPECT_THAT(text, HasSubstr(".reprise/a.toml:6: queue.b.poll: unknown duration suffix 'x'"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(RunbookCheck, HasAllOfItInJson) {
  const auto fine = Json::parse(check_json(good(), "/srv/shop"));
  ASSERT_TRUE(fine);
  EXPECT_TRUE(*(*fine)["ok"].boolean());
  EXPECT_EQ((*fine)["project"].string_or(""), "shop");
  EXPECT_EQ((*fine)["root"].string_or(""), "/srv/shop");
  EXPECT_EQ((*fine)["files"].array()->size(), 2U);
  EXPECT_EQ((*fine)["queues"].integer(), 2);
  EXPECT_EQ((*fine)["pipelines"].integer(), 1);
  EXPECT_EQ((*fine)["workers"].integer(), 2);
  EXPECT_TRUE((*fine)["findings"].array()->empty());

  const auto broken = Json::parse(check_json(bad(), "/srv/shop"));
  ASSERT_TRUE(broken);
  EXPECT_FALSE(*(*broken)["ok"].boolean());
  ASSERT_EQ((*broken)["findings"].array()->size(), 3U);
  EXPECT_EQ(
      (*broken)["findings"].array()->at(2).dump(),
      R"({"severity":"error","file":".reprise/a.toml","line":6,"column":1,)"
      R"("path":"queue.b.poll","message":"unknown duration suffix 'x' in '5x': use ms, s, m, )"
      R"(h or d"})");
}

TEST(RunbookShow, PrintsTables) {
  EXPECT_EQ(show_text(*good().runbook, Terminal{}),
            "project shop (/srv/shop)\n"
            "\n"
            "QUEUE\tTYPE\tCONFIG\n"
            "bugs\texternal\tlisted every 30s, timeout 1m\n"
            "orders\tpersisted\tlease=\"1m\"\n"
            "\n"
            "PIPELINE\tSTEP\tHANDLER\tON_DONE\tON_FAIL\tON_CANCEL\tTIMEOUT\tRUN\n"
            "ship\tpick\t-\t-\tundo\t-\t-\tpick ${item.id}\n"
            "ship\tundo\tyes\t-\t-\t-\t5s\tundo\\nall\n"
            "\n"
            "WORKER\tQUEUE\tRUN\tCONCURRENCY\tAUTOSTART\n"
            "fixer\tbugs\tship\t4\tyes\n"
            "shipper\torders\tship\t1\tno\n");
}

TEST(RunbookShow, LeavesOutTablesThatWouldBeEmpty) {
  EXPECT_EQ(show_text(*parse_runbook("/srv/shop", "x", {}).runbook, Terminal{}),
            "project x (/srv/shop)\n");
}

TEST(RunbookShow, HasAllOfItInJson) {
  const auto shown = Json::parse(show_json(*good().runbook));
  ASSERT_TRUE(shown);
  const Json& bugs = (*shown)["queues"].array()->at(0);
  EXPECT_EQ(bugs.dump(),
            R"({"name":"bugs","type":"external","list":"ls","take":"take ${item.id}","done":null,)"
            R"("failed":null,"key":null,"poll":"30s","timeout":"1m"})");
  const Json& orders = (*shown)["queues"].array()->at(1);
  EXPECT_EQ(orders["config"]["lease"].string_or(""), "1m");
  const Json& pipeline = (*shown)["pipelines"].array()->at(0);
  EXPECT_EQ(pipeline["timeout"].string_or(""), "1h");
  EXPECT_EQ(pipeline["steps"].array()->at(0).dump(),
            R"({"name":"pick","run":"pick ${item.id}","script":"pick \"${REPRISE_ITEM_id}\"",)"
            R"("timeout":null,"on_done":null,"on_fail":"undo","on_cancel":null,"handler":false})");
  EXPECT_EQ((*shown)["workers"].array()->at(0).dump(),
            R"({"name":"fixer","queue":"bugs","run":"ship","concurrency":4,"autostart":true})");
}

}  // namespace
}  // namespace reprise::cli
