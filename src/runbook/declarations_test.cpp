// Every rule of docs/runbooks.md, good and bad, in both formats.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runbook/load.h"
#include "runbook/node.h"

namespace reprise::runbook {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Findings as people see them.
std::vector<std::string> texts(const LoadResult& result) {
  std::vector<std::string> all;
  for (const Finding& finding : result.findings) all.push_back(to_text(finding));
  return all;
}

LoadResult load(std::vector<SourceFile> files) { return parse_runbook("/srv/shop", "", files); }
LoadResult load_toml(std::string text) { return load({{".reprise/a.toml", std::move(text)}}); }

// A good runbook, which the tables below add a mistake to.
constexpr std::string_view kGood = R"(
[queue.orders]
type = "persisted"
vars = ["id"]

[queue.bugs]
type = "external"
list = "list"
take = "take ${item.id}"

[pipeline.ship]
[[pipeline.ship.step]]
name = "pick"
run = "pick ${item.id}"

[worker.shipper]
queue = "orders"
run = "ship"
[worker.fixer]
queue = "bugs"
run = "ship"
)";

TEST(Declarations, OfTheManualAreTaken) {
  const auto result = load_toml(R"(
[queue.orders]
type     = "persisted"
vars     = ["id", "customer"]
defaults = { customer = "unknown", n = 1.50, deep = { a = [1] } }
retry    = { attempts = 3, cooldown = "30s" }
lease = 60

[queue.bugs]
type = "external"
list = "gh issue list --json number,title"
take = "gh issue edit ${item.number} --add-assignee @me"
done = "gh issue close ${item.number}"
key  = "number"
poll = "30s"

[pipeline.ship]
timeout = "10m"

[[pipeline.ship.step]]
name    = "pick"
run     = "./pick.sh ${item.id}"
timeout = "2m"
on_fail = "undo"

[[pipeline.ship.step]]
name = "undo"
run  = "./undo.sh ${item.id}"

[worker.shipper]
queue       = "orders"
run         = "ship"
concurrency = 4
autostart   = true
[worker.fixer]
queue = "bugs"
run = "ship"
)");
  ASSERT_TRUE(result.runbook) << testing::PrintToString(texts(result));
  EXPECT_THAT(result.findings, IsEmpty());
  const Runbook& runbook = *result.runbook;
  EXPECT_EQ(runbook.ns, "shop");
  EXPECT_EQ(runbook.root, "/srv/shop");
  EXPECT_THAT(runbook.files, ElementsAre(".reprise/a.toml"));
  const QueueConfig* orders = runbook.queues.at("orders").persisted();
  ASSERT_NE(orders, nullptr);
  EXPECT_THAT(orders->vars, ElementsAre("id", "customer"));
  EXPECT_EQ(orders->defaults, "{\"customer\":\"unknown\",\"n\":1.5,\"deep\":{\"a\":[1]}}");
  EXPECT_EQ(orders->retry.attempts, 3U);
  EXPECT_EQ(orders->lease, 1min);
  EXPECT_EQ(runbook.queues.at("orders").place, (Place{".reprise/a.toml", 2, 8}));
  const ExternalQueue* bugs = runbook.queues.at("bugs").external();
  ASSERT_NE(bugs, nullptr);
  EXPECT_EQ(bugs->poll, 30s);
  EXPECT_EQ(bugs->timeout, 60s);
  EXPECT_EQ(bugs->key, "number");
  EXPECT_TRUE(bugs->done);
  EXPECT_FALSE(bugs->failed);
  EXPECT_EQ(bugs->take.script(), "gh issue edit \"${REPRISE_ITEM_number}\" --add-assignee @me");
  const Pipeline& ship = runbook.pipelines.at("ship");
  EXPECT_EQ(ship.timeout, 10min);
  EXPECT_EQ(ship.steps.at(0).timeout, 2min);
  EXPECT_EQ(ship.steps.at(0).on_fail, 1U);
  EXPECT_EQ(ship.steps.at(0).on_done, std::nullopt);
  EXPECT_TRUE(ship.steps.at(1).handler);
  const WorkerDeclaration& shipper = runbook.workers.at("shipper");
  EXPECT_EQ(shipper.concurrency, 4U);
  EXPECT_TRUE(shipper.autostart);
}

// A runbook of TOML as JSON: the formats have the same fields.
std::string as_json(std::string_view toml) {
  const Document document = read_toml(toml);
  EXPECT_TRUE(document.root) << (document.problems.empty() ? "" : document.problems[0].message);
  return document.root ? to_json(*document.root) : "{}";
}

struct Mistake {
  std::string_view toml;     // added to kGood
  std::string_view finding;  // "path: message", a part of it
};
class Mistakes : public testing::TestWithParam<Mistake> {};

std::string with(std::string_view added) {
  // What begins with no table stands before all others.
  return added.starts_with('[') ? fmt::format("{}\n{}", kGood, added)
                                : fmt::format("{}\n{}", added, kGood);
}

TEST_P(Mistakes, AreFoundInToml) {
  const auto result = load_toml(with(GetParam().toml));
  EXPECT_FALSE(result.runbook);
  EXPECT_THAT(texts(result), ElementsAre(HasSubstr(std::string(GetParam().finding))));
  if (result.findings.empty()) return;
  EXPECT_NE(result.findings[0].place.line, 0U);
}

TEST_P(Mistakes, AreFoundInJson) {
  const auto result = load({{".reprise/a.json", as_json(with(GetParam().toml))}});
  EXPECT_FALSE(result.runbook);
  EXPECT_THAT(texts(result), ElementsAre(HasSubstr(std::string(GetParam().finding))));
}

INSTANTIATE_TEST_SUITE_P(
    Queues, Mistakes,
    testing::Values(
        Mistake{"[queue.x]\nvars = []", "queue.x: queue requires 'type' field"},
        Mistake{"[queue.x]\ntype = 'persistd'",
                "queue.x.type: unknown queue type 'persistd'; it is \"persisted\" or \"external\"; "
                "did you mean 'persisted'?"},
        Mistake{"[queue.x]\ntype = 3", "queue.x.type: expected a string, got 3"},
        Mistake{"[queue.x]\ntype = ''", "queue.x.type: must not be empty"},
        Mistake{"[queue.x]\ntype = 'persisted'", "queue.x: persisted queue requires 'vars' field"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = 'a'", "queue.x.vars: expected a list"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = ['a', 'a']",
                "queue.x.vars: 'a' stands twice"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = ['']", "queue.x.vars: a name must not be"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = [1]", "queue.x.vars: expected text"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\ndefaults = []",
                "queue.x.defaults: expected a table, got a list"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\npoll = '5s'",
                "queue.x.poll: persisted queue must not have 'poll' field: it is event-driven"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nlist = 'ls'",
                "queue.x.list: persisted queue must not have 'list' field"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\ntake = 'ls'",
                "queue.x.take: persisted queue must not have 'take' field"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\ndone = 'ls'",
                "queue.x.done: persisted queue must not have 'done' field"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nfailed = 'ls'",
                "queue.x.failed: persisted queue must not have 'failed' field"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nkey = 'id'",
                "queue.x.key: persisted queue must not have 'key' field"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\ntimeout = '1s'",
                "queue.x.timeout: persisted queue must not have 'timeout' field"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nleas = '1s'",
                "queue.x.leas: unknown field 'leas'; did you mean 'lease'?"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nlease = '5x'",
                "queue.x.lease: unknown duration suffix 'x'"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nlease = '1ms'",
                "queue.x.lease: must be between 100ms and 7d"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nretry = { atempts = 3 }",
                "queue.x.retry.atempts: unknown field 'retry.atempts'; did you mean"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nretry = 3",
                "queue.x.retry: expected an"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\n[queue.x.retry.backoff]\njitter = 7",
                "queue.x.retry.backoff.jitter: must be between 0 and 1"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nconcurrency = 0",
                "queue.x.concurrency: must be at least 1"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\nmax_jobs = -1",
                "queue.x.max_jobs: must not be negative"},
        Mistake{"[queue.x]\ntype = 'persisted'\nvars = []\ndead_letter_queue = '-'",
                "queue.x.dead_letter_queue: queue name '-'"},
        Mistake{"[queue.'a b']\ntype = 'persisted'\nvars = []", "queue.a b: queue name 'a b' may"},
        Mistake{"[queue]\nx = 3", "queue.x: expected a table, got a number"},
        Mistake{"[[queue.x]]\na = 3", "queue.x: expected a table, got a list"}));

constexpr std::string_view kExternal =
    "[worker.w]\nqueue = 'x'\nrun = 'ship'\n[queue.x]\ntype = 'external'\n";

struct ExternalMistake {
  std::string_view fields;
  std::string_view finding;
};
class ExternalMistakes : public testing::TestWithParam<ExternalMistake> {};

TEST_P(ExternalMistakes, AreFound) {
  const std::string toml = with(fmt::format("{}{}", kExternal, GetParam().fields));
  for (const auto& result : {load_toml(toml), load({{".reprise/a.json", as_json(toml)}})}) {
    EXPECT_FALSE(result.runbook);
    EXPECT_THAT(texts(result), ElementsAre(HasSubstr(std::string(GetParam().finding))));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, ExternalMistakes,
    testing::Values(
        ExternalMistake{"take = 'a'", "queue.x: external queue requires 'list' field"},
        ExternalMistake{"list = 'a'", "queue.x: external queue requires 'take' field"},
        ExternalMistake{"list = 'a'\ntake = 'a'\npoll = '5x'",
                        "queue.x.poll: unknown duration suffix 'x'"},
        ExternalMistake{"list = 'a'\ntake = 'a'\npoll = '100ms'",
                        "queue.x.poll: must be between 200ms and 30d, got 100ms"},
        ExternalMistake{"list = 'a'\ntake = 'a'\npoll = '31d'", "must be between 200ms and 30d"},
        ExternalMistake{"list = 'a'\ntake = 'a'\npoll = -1", "queue.x.poll: "},
        ExternalMistake{"list = 'a'\ntake = 'a'\npoll = true", "queue.x.poll: expected a duration"},
        ExternalMistake{"list = 'a'\ntake = 'a'\ntimeout = 0", "queue.x.timeout: must be more"},
        ExternalMistake{"list = 'a'\ntake = 'a'\nkey = ''", "queue.x.key: must not be empty"},
        ExternalMistake{"list = 'a'\ntake = 'a'\nkey = 7", "queue.x.key: expected a string"},
        ExternalMistake{"list = ' '\ntake = 'a'", "queue.x.list: must not be empty"},
        ExternalMistake{"list = 'a'\ntake = ''", "queue.x.take: must not be empty"},
        ExternalMistake{"list = 'a ${item.id}'\ntake = 'a'",
                        "queue.x.list: 'item.id' cannot stand in 'list'"},
        ExternalMistake{"list = 'a'\ntake = 'a ${itme.id}'",
                        "queue.x.take: unknown template name 'itme.id'; did you mean 'item.id'?"},
        ExternalMistake{"list = 'a'\ntake = 'a'\ndone = 'a $(('", "queue.x.done: "},
        ExternalMistake{
            "list = 'a'\ntake = 'a'\nretry = { attempts = 3 }",
            "queue.x.retry: external queue must not have 'retry' field: the retry of an "
            "external item is the next poll"},
        ExternalMistake{"list = 'a'\ntake = 'a'\nlease = '5s'",
                        "queue.x.lease: external queue must not have 'lease' field"},
        ExternalMistake{"list = 'a'\ntake = 'a'\nvars = []",
                        "queue.x.vars: external queue must not have 'vars' field"},
        ExternalMistake{"list = 'a'\ntake = 'a'\ndefaults = {}",
                        "queue.x.defaults: external queue must not have 'defaults' field"},
        ExternalMistake{"list = 'a'\ntake = 'a'\nconcurrency = 3",
                        "queue.x.concurrency: external queue must not have 'concurrency' field"},
        ExternalMistake{"list = 'a'\ntake = 'a'\npol = '5s'",
                        "queue.x.pol: unknown field 'pol'; did you mean 'poll'?"}));

INSTANTIATE_TEST_SUITE_P(
    Pipelines, Mistakes,
    testing::Values(
        Mistake{"[pipeline.x]", "pipeline.x: pipeline has no steps"},
        Mistake{"[pipeline.x]\nstep = []", "pipeline.x.step: pipeline has no steps"},
        Mistake{"[pipeline.x.step]\nname = 'a'",
                "pipeline.x.step: expected a list of steps, got a table; in TOML write "
                "[[pipeline.x.step]]"},
        Mistake{"[pipeline.x]\nstep = [1]", "pipeline.x.step.0: expected a table"},
        Mistake{"[[pipeline.x.step]]\nrun = 'a'", "pipeline.x.step.0: step requires 'name' field"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'", "pipeline.x.step.0: step requires 'run' field"},
        Mistake{"[[pipeline.x.step]]\nname = 'a b'\nrun = 'a'",
                "pipeline.x.step.0.name: step name"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = ' '", "step.0.run: must not be empty"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 7", "step.0.run: expected a string, got 7"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a'\ntimeout = '5x'",
                "pipeline.x.step.0.timeout: unknown duration suffix 'x'"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a'\ntimeout = 0",
                "pipeline.x.step.0.timeout: must be more than 0"},
        Mistake{"[pipeline.x]\ntimeout = '0s'\n[[pipeline.x.step]]\nname = 'a'\nrun = 'a'",
                "pipeline.x.timeout: must be more than 0"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a'\non_don = 'b'",
                "pipeline.x.step.0.on_don: unknown field 'on_don'; did you mean 'on_done'?"},
        Mistake{"[pipeline.x]\ntimout = 3\n[[pipeline.x.step]]\nname = 'a'\nrun = 'a'",
                "pipeline.x.timout: unknown field 'timout'; did you mean 'timeout'?"},
        Mistake{"[[pipeline.x.step]]\nname = 'undo'\nrun = 'a'\non_fail = 'undoo'",
                "pipeline.x.step.0.on_fail: unknown step 'undoo'; available steps: undo; did you "
                "mean 'undo'?"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a'\non_done = 'zzz'",
                "pipeline.x.step.0.on_done: unknown step 'zzz'; available steps: a"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a'\non_cancel = 'b'",
                "pipeline.x.step.0.on_cancel: unknown step 'b'"},
        Mistake{"[pipeline.x]\non_fail = 'b'\n[[pipeline.x.step]]\nname = 'a'\nrun = 'a'",
                "pipeline.x.on_fail: unknown step 'b'; available steps: a"},
        Mistake{"[pipeline.x]\non_cancel = 'b'\n[[pipeline.x.step]]\nname = 'a'\nrun = 'a'",
                "pipeline.x.on_cancel: unknown step 'b'; available steps: a"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a'\n[[pipeline.x.step]]\nname = 'a'\n"
                "run = 'b'",
                "pipeline.x.step.1.name: step 'a' is defined twice, first at line"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a'\non_done = 'c'\n[[pipeline.x.step]]\n"
                "name = 'b'\nrun = 'b'\n[[pipeline.x.step]]\nname = 'c'\nrun = 'c'",
                "pipeline.x.step.1: step 'b' is unreachable"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a ${item.id'", "no closing brace"},
        Mistake{"[[pipeline.x.step]]\nname = 'a'\nrun = 'a $((${item.n}))'", "shell computes"}));

INSTANTIATE_TEST_SUITE_P(
    Workers, Mistakes,
    testing::Values(
        Mistake{"[worker.x]\nrun = 'ship'", "worker.x: worker requires 'queue' field"},
        Mistake{"[worker.x]\nqueue = 'orders'", "worker.x: worker requires 'run' field"},
        Mistake{"[worker.x]\nqueue = 'ordrs'\nrun = 'ship'",
                "worker.x.queue: unknown queue 'ordrs'; available queues: bugs, orders; did you "
                "mean 'orders'?"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'shp'",
                "worker.x.run: unknown pipeline 'shp'; available pipelines: ship; did you mean "
                "'ship'?"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'ship'\nconcurrency = 0",
                "worker.x.concurrency: must be between 1 and 1000, got 0"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'ship'\nconcurrency = 1001",
                "worker.x.concurrency: must be between 1 and 1000, got 1001"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'ship'\nconcurrency = -1",
                "worker.x.concurrency: must be between 1 and 1000, got -1"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'ship'\nconcurrency = 1.5",
                "worker.x.concurrency: must be a whole number"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'ship'\nconcurrency = '4'",
                "worker.x.concurrency: expected a whole number"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'ship'\nautostart = 1",
                "worker.x.autostart: expected true or false, got 1"},
        Mistake{"[worker.x]\nqueue = 'orders'\nrun = 'ship'\nqueu = 'a'",
                "worker.x.queu: unknown field 'queu'; did you mean 'queue'?"},
        Mistake{"[worker.-x]\nqueue = 'orders'\nrun = 'ship'",
                "worker.-x: worker name '-x' must"}));

INSTANTIATE_TEST_SUITE_P(
    Top, Mistakes,
    testing::Values(Mistake{"[queu.x]\na = 1", "queu: unknown field 'queu'; did you mean 'queue'?"},
                    Mistake{"[project]\nname = 'x'", "project: may stand only in .reprise/config"},
                    Mistake{"worker2 = 3", "worker2: unknown field 'worker2'; did you mean"}));

TEST(Findings, AreAllToldAtOnceByFileAndLine) {
  const auto result =
      load({{".reprise/a.toml",
             "[queue.bugs]\ntype = \"external\"\nlist = \"ls\"\npoll = \"5x\"\n"
             "[queue.orders]\ntype = \"persisted\"\nvars = []\npoll = \"1s\"\n"
             "retry = { attempts = -1, cooldown = \"5x\", foo = 3 }\n"},
            {".reprise/b.toml", "[worker.a]\nqueue = \"ordrs\"\nrun = \"x\"\nconcurrency = 0\n"}});
  EXPECT_THAT(
      texts(result),
      ElementsAre(
          ".reprise/a.toml:1: queue.bugs: external queue requires 'take' field",
          HasSubstr(".reprise/a.toml:1: warning: queue.bugs: no worker uses"),
          ".reprise/a.toml:4: queue.bugs.poll: unknown duration suffix 'x' in '5x': use ms, s, m, "
          "h "
          "or d",
          HasSubstr(".reprise/a.toml:8: queue.orders.poll: persisted queue must not have 'poll'"),
          HasSubstr(".reprise/a.toml:9: queue.orders.retry.attempts: "),
          HasSubstr(".reprise/a.toml:9: queue.orders.retry.cooldown: unknown duration suffix 'x'"),
          HasSubstr(".reprise/a.toml:9: queue.orders.retry.foo: unknown field 'retry.foo'"),
          HasSubstr(".reprise/b.toml:2: worker.a.queue: unknown queue 'ordrs'"),
          HasSubstr(
              ".reprise/b.toml:3: worker.a.run: unknown pipeline 'x'; there are no pipelines"),
          HasSubstr(".reprise/b.toml:4: worker.a.concurrency: must be between 1 and 1000")));
}

TEST(Findings, NameTheLineOfACommand) {
  const auto toml =
      load_toml("[[pipeline.p.step]]\nname = \"a\"\nrun = \"\"\"\necho\necho ${itme.id}\n\"\"\"\n");
  EXPECT_THAT(texts(toml), ElementsAre(HasSubstr(".reprise/a.toml:5: pipeline.p.step.0.run: ")));
  const auto json = load({{".reprise/a.json",
                           "{\"pipeline\": {\"p\": {\"step\": [\n{\"name\": \"a\",\n\"run\": "
                           "\"echo\\necho ${itme.id}\"}]}}}"}});
  EXPECT_THAT(texts(json), ElementsAre(testing::AllOf(HasSubstr(".reprise/a.json:3: pipeline.p"),
                                                      HasSubstr("(line 2 of the command)"))));
}

TEST(Findings, AreBounded) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += fmt::format("k{} = 1\n", i);
  const auto result = load_toml(text);
  EXPECT_EQ(result.findings.size(), 1001U);
  EXPECT_THAT(result.findings.back().message, "19000 more findings are left out");
}

TEST(Findings, OfAFileThatIsNoneDoNotHideThoseOfOthers) {
  const auto result = load({{".reprise/a.toml", "[queue.a\n"},
                            {".reprise/b.json", "{\"queue\": {},}"},
                            {".reprise/c.toml", "[worker.a]\nqueue = 'x'\nrun = 'y'"}});
  EXPECT_THAT(texts(result),
              ElementsAre(HasSubstr(".reprise/a.toml:1: not TOML"),
                          HasSubstr(".reprise/b.json:1: not JSON"), HasSubstr("unknown queue 'x'"),
                          HasSubstr("unknown pipeline 'y'")));
}

TEST(Twice, IsRefusedWithBothPlaces) {
  EXPECT_THAT(
      texts(load({{".reprise/a.toml", "[queue.a]\ntype = 'persisted'\nvars = []"},
                  {".reprise/b.json", R"({"queue": {"a": {"type": "persisted", "vars": []}}})"}})),
      ElementsAre(".reprise/b.json:1: queue.a: queue 'a' is defined twice, first at "
                  ".reprise/a.toml:1"));
  EXPECT_THAT(
      texts(load_toml("[queue.a]\ntype = 'persisted'\nvars = []\n[queue.a]\nvars = []")),
      ElementsAre(".reprise/a.toml:4: queue.a: 'queue.a' is defined twice, first at line 1"));
  EXPECT_THAT(texts(load_toml("[queue.a]\ntype = 'persisted'\nvars = []\nvars = []")),
              ElementsAre(HasSubstr("queue.a.vars: 'vars' is defined twice, first at line 3")));
  EXPECT_THAT(
      texts(load({{".reprise/a.json",
                   "{\"queue\": {\"a\": {\"type\": \"persisted\", \"vars\": []},\n\"a\": {}}}"}})),
      ElementsAre(".reprise/a.json:2: queue.a: 'a' is defined twice, first at line 1"));
  EXPECT_THAT(texts(load({{".reprise/a.toml", "[[pipeline.p.step]]\nname='a'\nrun='a'"},
                          {".reprise/b.toml", "[[pipeline.p.step]]\nname='a'\nrun='a'"}})),
              ElementsAre(HasSubstr("pipeline 'p' is defined twice, first at .reprise/a.toml:1")));
}

TEST(ProjectName, GivesTheNamespace) {
  EXPECT_EQ(load({{".reprise/config.toml", "[project]\nname = 'x'"}}).runbook->ns, "x");
  EXPECT_EQ(load({{".reprise/config.json", R"({"project": {"name": "x"}})"}}).runbook->ns, "x");
  EXPECT_EQ(load({{".reprise/config.toml", "[project]"}}).runbook->ns, "shop");
  EXPECT_EQ(parse_runbook("/srv/shop", "y", {{".reprise/config.toml", "[project]\nname = 'x'"}})
                .runbook->ns,
            "y");
  EXPECT_EQ(parse_runbook("/srv/shop/", "", {}).runbook->ns, "shop");
  EXPECT_THAT(texts(load({{".reprise/config.toml", "[project]\nname = 'a b'"}})),
              ElementsAre(HasSubstr(".reprise/config.toml:2: project.name: namespace name 'a b'")));
  EXPECT_THAT(texts(load({{".reprise/config.toml", "[project]\nnam = 'a'"}})),
              ElementsAre(HasSubstr("project.nam: unknown field 'nam'; did you mean 'name'?")));
  EXPECT_THAT(texts(load({{".reprise/config.toml", "project = 3"}})),
              ElementsAre(HasSubstr("project: expected a table")));
  EXPECT_THAT(texts(load({{".reprise/config.json", R"({"project": {"name": "x"}})"},
                          {".reprise/config.toml", "[project]\nname = 'x'"}})),
              ElementsAre(HasSubstr("project is defined twice, first at .reprise/config.json:1")));
}

TEST(ProjectName, NeedsANameThatItsDirectoryMayNotHave) {
  EXPECT_THAT(texts(parse_runbook("/srv/my shop", "", {})),
              ElementsAre(testing::AllOf(HasSubstr("namespace name 'my shop'"),
                                         HasSubstr("write [project] name = "))));
  EXPECT_TRUE(parse_runbook("/srv/my shop", "x", {}).runbook);
  EXPECT_TRUE(parse_runbook("/srv/my shop", "", {{".reprise/config.toml", "[project]\nname = 'x'"}})
                  .runbook);
}

TEST(Warnings, LeaveTheRunbookUsable) {
  const auto result =
      load_toml("[queue.bugs]\ntype = 'external'\nlist = 'ls'\ntake = '''jq '.${item.id}' '''\n");
  EXPECT_TRUE(result.runbook);
  EXPECT_THAT(texts(result),
              ElementsAre(".reprise/a.toml:1: warning: queue.bugs: no worker uses this external "
                          "queue: it is never listed",
                          HasSubstr(".reprise/a.toml:4: warning: queue.bugs.take: 'item.id' is not "
                                    "expanded in single quotes")));
}

TEST(Limits, AreThoseOfTheManual) {
  const auto queues = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += fmt::format("[queue.q{}]\ntype='persisted'\nvars=[]\n", i);
    return text;
  };
  EXPECT_TRUE(load_toml(queues(1000)).runbook);
  EXPECT_THAT(texts(load_toml(queues(1002))),
              ElementsAre(HasSubstr("queue.q1000: more than 1000 queues")));
  const auto steps = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += fmt::format("[[pipeline.p.step]]\nname = 's{}'\nrun = 'a'\n", i);
    }
    return text;
  };
  EXPECT_TRUE(load_toml(steps(100)).runbook);
  EXPECT_THAT(texts(load_toml(steps(101))), ElementsAre(HasSubstr("pipeline has 101 steps")));
  const std::string comment(kMostFileBytes, '#');
  EXPECT_TRUE(load_toml(comment).runbook);
  EXPECT_THAT(texts(load_toml(comment + "#")), ElementsAre(HasSubstr("is larger than 1 MiB")));
  std::string vars;
  for (int i = 0; i < 65; ++i) vars += fmt::format("'v{}',", i);
  EXPECT_THAT(texts(load_toml(fmt::format("[queue.q]\ntype='persisted'\nvars=[{}]", vars))),
              ElementsAre(HasSubstr("queue.q.vars: may have at most 64 names, got 65")));
  EXPECT_THAT(
      texts(load_toml(fmt::format("[queue.q]\ntype='persisted'\nvars=[]\ndefaults={{a='{}'}}",
                                  std::string(65536, 'x')))),
      ElementsAre(HasSubstr("queue.q.defaults: has 65544 bytes of JSON")));
  EXPECT_THAT(texts(load_toml(fmt::format("[[pipeline.p.step]]\nname='a'\nrun='{}'",
                                          std::string(131'072, 'x')))),
              ElementsAre(HasSubstr("put it into a file")));
}

TEST(TomlValues, ThatJsonDoesNotHaveAreRefused) {
  EXPECT_THAT(texts(load_toml("[queue.q]\ntype='persisted'\nvars=[]\nlease=2024-01-01\n"
                              "defaults={a=nan,\nb=1}")),
              Not(IsEmpty()));
  EXPECT_THAT(texts(load_toml("[queue.q]\ntype='persisted'\nvars=[]\nlease=2024-01-01")),
              ElementsAre(HasSubstr("queue.q.lease: must not be a date or time")));
  EXPECT_THAT(texts(load_toml("[queue.q]\ntype='persisted'\nvars=[]\ndefaults={a=nan}")),
              ElementsAre(HasSubstr("queue.q.defaults: holds nan")));
  EXPECT_THAT(texts(load_toml("[worker.q]\nqueue=2024-01-01\nrun=inf")),
              ElementsAre(HasSubstr("must not be a date"), HasSubstr("worker.q.run: must not be")));
}

TEST(JsonNull, StandsForNoField) {
  const auto result = load({{".reprise/a.json",
                             R"({"queue": {"q": {"type": "persisted", "vars": [], "poll": null,
                                 "ttl": null, "defaults": null}}})"}});
  EXPECT_TRUE(result.runbook) << testing::PrintToString(texts(result));
}

// The steps of a pipeline as "a>b!c?d" : on_done, on_fail, on_cancel; * marks handlers.
std::vector<std::string> flow(std::string_view pipeline) {
  const auto result = load_toml(std::string(pipeline));
  EXPECT_TRUE(result.runbook) << testing::PrintToString(texts(result));
  std::vector<std::string> all;
  if (!result.runbook) return all;
  const auto& steps = result.runbook->pipelines.at("p").steps;
  for (const Step& step : steps) {
    std::string text = step.name + (step.handler ? "*" : "");
    if (step.on_done) text += ">" + steps[*step.on_done].name;
    if (step.on_fail) text += "!" + steps[*step.on_fail].name;
    if (step.on_cancel) text += "?" + steps[*step.on_cancel].name;
    all.push_back(std::move(text));
  }
  return all;
}

std::string step(std::string_view name, std::string_view more = "") {
  return fmt::format("[[pipeline.p.step]]\nname = '{}'\nrun = 'x'\n{}\n", name, more);
}

TEST(Steps, FollowEachOther) {
  EXPECT_THAT(flow(step("a") + step("b") + step("c")), ElementsAre("a>b", "b>c", "c"));
}

TEST(Steps, PassOverHandlers) {
  EXPECT_THAT(flow(step("a", "on_fail = 'u'") + step("u") + step("b")),
              ElementsAre("a>b!u", "u*", "b"));
  EXPECT_THAT(flow(step("a", "on_cancel = 'u'") + step("u") + step("b")),
              ElementsAre("a>b?u", "u*", "b"));
  EXPECT_THAT(flow(step("test", "on_fail = 'fix'") + step("fix", "on_done = 'test'") + step("b")),
              ElementsAre("test>b!fix", "fix*>test", "b"));
}

TEST(Steps, ThatOneBehindThemNamesStayInTheOrder) {
  EXPECT_THAT(flow(step("a") + step("b", "on_fail = 'a'") + step("c", "on_fail = 'c'")),
              ElementsAre("a>b", "b>c!a", "c!c"));
}

TEST(Steps, HaveThePipelinesHandlers) {
  EXPECT_THAT(flow("[pipeline.p]\non_fail = 'u'\non_cancel = 'v'\n" + step("a") +
                   step("b", "on_fail = 'w'") + step("w") + step("u") + step("v") + step("c")),
              ElementsAre("a>b!u?v", "b>c!w?v", "w*", "u*", "v*", "c!u?v"));
  EXPECT_THAT(flow("[pipeline.p]\non_fail = 'a'\non_cancel = 'a'\n" + step("a") + step("b")),
              ElementsAre("a>b", "b!a?a"));
}

}  // namespace
}  // namespace reprise::runbook
