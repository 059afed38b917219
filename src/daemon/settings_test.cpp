#include "daemon/settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/json.h"
#include "daemon/settings_file.h"
#include "daemon/settings_print.h"
#include "daemon/settings_table.h"

namespace reprise::daemon {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// Each test has a directory of its own and runs in it, so that reprise.toml is the test's.
class SettingsTest : public testing::Test {
 protected:
  SettingsTest() : before_(std::filesystem::current_path()) {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() /
                 fmt::format("reprise-settings-{}-{}", getpid(), info->name());
    std::filesystem::create_directories(directory_);
    std::filesystem::current_path(directory_);
  }
  ~SettingsTest() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(directory_);
  }

  static void write(const std::string& name, const std::string& text) {
    std::ofstream(name, std::ios::binary) << text;
  }

  LoadedSettings load() const {
    auto loaded = load_settings(sources_);
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().detail);
    return loaded ? *loaded : LoadedSettings{};
  }

  std::string load_error() const {
    const auto loaded = load_settings(sources_);
    EXPECT_FALSE(loaded);
    if (loaded) return "";
    EXPECT_EQ(loaded.error().code, Errc::invalid_field);
    return loaded.error().detail;
  }

  SettingSources sources_;

 private:
  std::filesystem::path before_;
  std::filesystem::path directory_;
};

TEST_F(SettingsTest, WithoutAnySourceEverySettingIsItsDefault) {
  const LoadedSettings loaded = load();
  EXPECT_EQ(loaded.settings.storage.directory, "./.reprise-data");
  EXPECT_EQ(loaded.settings.http.listen, "127.0.0.1:7333");
  EXPECT_EQ(loaded.settings.broker.durability, DurabilityMode::sync);
  EXPECT_EQ(loaded.settings.shutdown_grace, 4s);
  for (const Setting& setting : all_settings()) {
    EXPECT_EQ(loaded.origins.at(setting.name), "default") << setting.name;
  }
}

TEST_F(SettingsTest, AFlagBeatsTheEnvironmentWhichBeatsTheFile) {
  write("reprise.toml", "data = \"file\"\nlisten = \"127.0.0.1:1\"\ncache_bytes = \"2MiB\"\n");
  sources_.environment = {{"REPRISE_DATA", "environment"}, {"REPRISE_LISTEN", "127.0.0.1:2"}};
  sources_.flags = {{"data", {"flag"}}};
  const LoadedSettings loaded = load();
  EXPECT_EQ(loaded.settings.storage.directory, "flag");
  EXPECT_EQ(loaded.settings.http.listen, "127.0.0.1:2");
  EXPECT_EQ(loaded.settings.broker.cache_bytes, 2U << 20);
  EXPECT_EQ(loaded.origins.at("data"), "--data");
  EXPECT_EQ(loaded.origins.at("listen"), "REPRISE_LISTEN");
  EXPECT_EQ(loaded.origins.at("cache_bytes"), "reprise.toml:3");
  EXPECT_EQ(loaded.origins.at("durability"), "default");
}

TEST_F(SettingsTest, TheFlagForTheFileBeatsItsVariable) {
  write("a.toml", "data = \"a\"");
  write("b.toml", "data = \"b\"");
  sources_.environment = {{"REPRISE_CONFIG", "b.toml"}};
  EXPECT_EQ(load().origins.at("data"), "b.toml:1");
  sources_.config_file = "a.toml";
  EXPECT_EQ(load().settings.storage.directory, "a");
}

TEST_F(SettingsTest, AFileThatWasNamedMustBeThere) {
  sources_.config_file = "missing.toml";
  EXPECT_THAT(load_error(), AllOf(HasSubstr("missing.toml"), HasSubstr("No such file")));
  sources_.config_file = ".";
  EXPECT_THAT(load_error(), HasSubstr("cannot read"));
}

TEST_F(SettingsTest, EveryKindIsReadFromEverySource) {
  write("reprise.toml",
        "sync_interval = 0.5\nheader_timeout = 3\ndisk_reserve = 1024\nmax_headers = 7\n"
        "durability = \"none\"\nallowed_hosts = [\"a\", \"b\"]\n");
  sources_.environment = {{"REPRISE_WRITE_TIMEOUT", "1m30s"}, {"REPRISE_LOG_FORMAT", "json"}};
  sources_.flags = {{"max_key_bytes", {"1KiB"}}};
  const Settings settings = load().settings;
  EXPECT_EQ(settings.broker.sync_interval, 500ms);
  EXPECT_EQ(settings.http.header_timeout, 3s);
  EXPECT_EQ(settings.broker.disk_reserve_bytes, 1024U);
  EXPECT_EQ(settings.broker.limits.max_headers, 7U);
  EXPECT_EQ(settings.broker.durability, DurabilityMode::none);
  EXPECT_THAT(settings.http.allowed_hosts, ElementsAre("a", "b"));
  EXPECT_EQ(settings.http.write_timeout, 90s);
  EXPECT_EQ(settings.log_format, LogFormat::json);
  EXPECT_EQ(settings.broker.limits.max_key_bytes, 1024U);
}

TEST_F(SettingsTest, HooksHaveTheirLimits) {
  const Settings defaults = load().settings;
  EXPECT_EQ(defaults.broker.limits.hook_timeout_ms, 10U);
  EXPECT_EQ(defaults.broker.limits.hook_memory_bytes, 1U << 20);
  EXPECT_EQ(defaults.broker.max_hook_hosts, 64U);
  write("reprise.toml", "hook_timeout_ms = 1000\n");
  sources_.environment = {{"REPRISE_HOOK_MEMORY_BYTES", "64MiB"}};
  sources_.flags = {{"max_hook_hosts", {"2"}}};
  const Settings settings = load().settings;
  EXPECT_EQ(settings.broker.limits.hook_timeout_ms, 1000U);
  EXPECT_EQ(settings.broker.limits.hook_memory_bytes, 64U << 20);
  EXPECT_EQ(settings.broker.max_hook_hosts, 2U);
}

TEST_F(SettingsTest, WorkersHaveTheirs) {
  const Settings defaults = load().settings;
  EXPECT_TRUE(defaults.workers);
  EXPECT_EQ(defaults.project_dir, "");
  EXPECT_EQ(defaults.project, "");
  EXPECT_EQ(defaults.worker.keep_runs, 1000U);
  EXPECT_EQ(defaults.worker.run_log_bytes, 10U << 20);
  write("reprise.toml", "workers = false\nkeep_runs = 5\nproject_dir = \"/srv/shop\"\n");
  sources_.environment = {{"REPRISE_RUN_LOG_BYTES", "4KiB"}, {"REPRISE_PROJECT", "shop"}};
  const Settings settings = load().settings;
  EXPECT_FALSE(settings.workers);
  EXPECT_EQ(settings.project_dir, "/srv/shop");
  EXPECT_EQ(settings.project, "shop");
  EXPECT_EQ(settings.worker.keep_runs, 5U);
  EXPECT_EQ(settings.worker.run_log_bytes, 4096U);
  sources_.flags = {{"workers", {"true"}}, {"project", {"other"}}, {"project_dir", {"none"}}};
  EXPECT_TRUE(load().settings.workers);
  EXPECT_EQ(load().settings.project, "other");
  EXPECT_EQ(load().settings.project_dir, "none");
}

TEST_F(SettingsTest, ABadNameOfAProjectIsRefusedWhereverItComesFrom) {
  sources_.environment = {{"REPRISE_PROJECT", "my shop"}};
  EXPECT_THAT(load_error(), AllOf(testing::StartsWith("REPRISE_PROJECT: project name 'my shop'"),
                                  HasSubstr("letters, digits")));
  sources_.environment.clear();
  write("reprise.toml", "project = \"/srv/shop\"\n");
  EXPECT_THAT(load_error(), testing::StartsWith("reprise.toml:1: project: project name"));
}

TEST_F(SettingsTest, AListInTheEnvironmentIsSeparatedByCommas) {
  sources_.environment = {{"REPRISE_ALLOWED_HOSTS", "a.example,b.example"}};
  EXPECT_THAT(load().settings.http.allowed_hosts, ElementsAre("a.example", "b.example"));
  sources_.flags = {{"allowed_hosts", {"c.example"}}};
  EXPECT_THAT(load().settings.http.allowed_hosts, ElementsAre("c.example"));
}

std::string queue_of(const LoadedSettings& loaded, std::string_view type) {
  return std::string(loaded.settings.http.ingest_routes.queue_of(type));
}

TEST_F(SettingsTest, RoutesOfIngestedEventsAreATableInTheFile) {
  EXPECT_EQ(queue_of(load(), "order.created"), "events");
  write("reprise.toml",
        "max_headers = 5\n\n[ingest.routes]\n\"order.*\" = \"orders\"\n\"a=b\" = \"odd\"\n");
  const LoadedSettings loaded = load();
  EXPECT_EQ(queue_of(loaded, "order.created"), "orders");
  EXPECT_EQ(queue_of(loaded, "a=b"), "odd");
  EXPECT_EQ(loaded.origins.at("ingest_routes"), "reprise.toml:3");
  EXPECT_EQ(loaded.settings.broker.limits.max_headers, 5U);
}

TEST_F(SettingsTest, RoutesOfAStrongerSourceReplaceThoseOfAWeakerOne) {
  write("reprise.toml", "[ingest.routes]\n\"order.*\" = \"orders\"\n");
  sources_.environment = {{"REPRISE_INGEST_ROUTES", "a*=one,*b=two"}};
  EXPECT_EQ(queue_of(load(), "order.created"), "events");
  EXPECT_EQ(queue_of(load(), "ax"), "one");
  EXPECT_EQ(queue_of(load(), "xb"), "two");
  sources_.flags = {{"ingest_routes", {"a*=three", "order.*=four"}}};
  EXPECT_EQ(queue_of(load(), "ax"), "three");
  EXPECT_EQ(queue_of(load(), "order.created"), "four");
  EXPECT_EQ(queue_of(load(), "xb"), "events");
  EXPECT_EQ(load().origins.at("ingest_routes"), "--ingest-route");
}

TEST_F(SettingsTest, ABadRouteIsNamedWhereverItComesFrom) {
  write("reprise.toml", "\n[ingest.routes]\n\"a*\" = \"fine\"\n\"b*\" = \"not fine\"\n");
  EXPECT_THAT(load_error(), AllOf(testing::StartsWith("reprise.toml:2: ingest_routes: route "),
                                  HasSubstr("'b*=not fine'"), HasSubstr("letters, digits")));
  write("reprise.toml", "");
  sources_.environment = {{"REPRISE_INGEST_ROUTES", "a*=one,b*"}};
  EXPECT_THAT(load_error(), testing::StartsWith("REPRISE_INGEST_ROUTES: route 'b*': has no '='"));
}

TEST_F(SettingsTest, AnEmptyVariableCountsAsAbsent) {
  sources_.environment = {{"REPRISE_DATA", ""}, {"REPRISE_CONFIG", ""}};
  EXPECT_EQ(load().origins.at("data"), "default");
}

TEST_F(SettingsTest, BadValuesOfEachKindNameTheSettingAndItsOrigin) {
  struct Case {
    std::string name, value, complaint;
  };
  const std::vector<Case> cases = {
      {"data", "", "must not be empty"},
      {"listen", "nowhere", "'nowhere' has no port"},
      {"listen", "127.0.0.1:99999", "0 to 65535"},
      {"beanstalk", "nowhere", "'nowhere' has no port"},
      {"beanstalk_remote", "yes", "'yes' is not true or false"},
      {"sync_interval", "soon", "'soon' is not a duration"},
      {"sync_interval", "11s", "11s is out of range: 1ms to 10s"},
      {"disk_reserve", "much", "'much' is not a size"},
      {"cache_bytes", "1KiB", "1KiB is out of range: 1MiB to 1TiB"},
      {"max_headers", "-1", "'-1' is not a whole number"},
      {"max_headers", "99999999999999999999", "not a whole number"},
      {"max_headers", "1e3", "'1e3' is not a whole number"},
      {"io_threads", "0", "0 is out of range: 1 to 64"},
      {"hook_timeout_ms", "0", "0 is out of range: 1 to 1000"},
      {"hook_timeout_ms", "1001", "1001 is out of range: 1 to 1000"},
      {"hook_timeout_ms", "10ms", "'10ms' is not a whole number"},
      {"hook_memory_bytes", "64KiB", "64KiB is out of range: 128KiB to 64MiB"},
      {"hook_memory_bytes", "65MiB", "65MiB is out of range: 128KiB to 64MiB"},
      {"max_hook_hosts", "0", "0 is out of range: 1 to 1000"},
      {"workers", "yes", "'yes' is not true or false"},
      {"workers", "", "'' is not true or false"},
      {"project", ".shop", "must start with a letter or digit"},
      {"keep_runs", "0", "0 is out of range: 1 to 100000"},
      {"run_log_bytes", "1KiB", "1KiB is out of range: 4KiB to 1GiB"},
      {"durability", "fast", "'fast' is not one of sync, interval, none"},
      {"allowed_hosts", "", "an item is empty"},
      {"ingest_routes", "", "route '': has no '='; write PATTERN=QUEUE"},
      {"ingest_routes", "order.*=my orders", "route 'order.*=my orders': queue name 'my orders'"},
  };
  for (const auto& [name, value, complaint] : cases) {
    sources_.flags = {{name, {value}}};
    const std::string flag = find_setting(name)->flag;
    EXPECT_THAT(load_error(), AllOf(testing::StartsWith(flag + ": "), HasSubstr(complaint)));
  }
}

TEST_F(SettingsTest, MessagesSayWhichSourceWasWrong) {
  write("reprise.toml", "# comment\n\nsync_interval = \"soon\"\n");
  EXPECT_THAT(load_error(), testing::StartsWith("reprise.toml:3: sync_interval: 'soon'"));
  write("reprise.toml", "");
  sources_.environment = {{"REPRISE_SYNC_INTERVAL", "soon"}};
  EXPECT_THAT(load_error(), testing::StartsWith("REPRISE_SYNC_INTERVAL: 'soon'"));
}

TEST_F(SettingsTest, AWeakerSourceIsCheckedThoughAStrongerOneWins) {
  write("reprise.toml", "sync_interval = \"soon\"\n");
  sources_.flags = {{"sync_interval", {"20ms"}}};
  EXPECT_THAT(load_error(), HasSubstr("reprise.toml:1"));
}

TEST_F(SettingsTest, EveryMistakeIsReportedAtOnce) {
  write("reprise.toml", "durabilty = \"sync\"\ncache_bytes = true\n");
  sources_.flags = {{"io_threads", {"many"}}};
  EXPECT_EQ(load_error(),
            "reprise.toml:2: cache_bytes: must be a size like \"16MiB\", or a number of bytes, not "
            "a boolean\n"
            "reprise.toml:1: durabilty: no such setting; did you mean durability?\n"
            "--io-threads: 'many' is not a whole number");
}

TEST_F(SettingsTest, LimitsThatContradictEachOtherAreRefused) {
  sources_.flags = {{"max_payload_bytes", {"32MiB"}}};
  EXPECT_EQ(load_error(),
            "max_payload_bytes = 32MiB (--max-payload-bytes) is more than max_batch_bytes = 16MiB "
            "(default): lower the one or raise the other");
}

TEST_F(SettingsTest, UnknownVariablesAreWarnedOfExceptTheClients) {
  sources_.environment = {{"REPRISE_URL", "http://127.0.0.1:7333"},
                          {"REPRISE_TOKEN", "secret"},
                          {"REPRISE_NAMESPACE", "default"},
                          {"REPRISE_SPOOL", "/var/spool/reprise"},
                          {"REPRISE_DURABILTY", "none"}};
  EXPECT_THAT(load().warnings, ElementsAre("REPRISE_DURABILTY: no such setting; did you mean "
                                           "REPRISE_DURABILITY?"));
}

TEST_F(SettingsTest, ShownSettingsReadBackAsTheyWere) {
  sources_.flags = {{"allowed_hosts", {"a", "b \"quoted\""}},
                    {"cache_bytes", {"1048577"}},
                    {"sync_interval", {"1.5s"}},
                    {"log_level", {"warn"}},
                    {"ingest_routes", {"order.*=orders", "a=\"b\"\\*=odd", "*=rest"}},
                    {"workers", {"false"}},
                    {"project", {"shop"}},
                    {"data", {"/var/lib/reprise"}}};
  const LoadedSettings loaded = load();
  write("reprise.toml", settings_as_toml(loaded));
  sources_.flags.clear();
  const LoadedSettings again = load();
  for (const Setting& setting : all_settings()) {
    EXPECT_EQ(setting.get(again.settings), setting.get(loaded.settings)) << setting.name;
  }
}

TEST_F(SettingsTest, DefaultsAreShownSoThatTheyReadBackToo) {
  const LoadedSettings loaded = load();
  write("reprise.toml", settings_as_toml(loaded));
  const LoadedSettings again = load();
  for (const Setting& setting : all_settings()) {
    EXPECT_EQ(setting.get(again.settings), setting.get(loaded.settings)) << setting.name;
  }
}

TEST_F(SettingsTest, SettingsAreShownAsJsonWithTheirOrigin) {
  sources_.flags = {{"max_headers", {"5"}}, {"ingest_routes", {"a*=one"}}};
  const auto json = Json::parse(settings_as_json(load()));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["max_headers"]["value"].integer(), 5);
  EXPECT_EQ((*json)["max_headers"]["origin"].string_or(""), "--max-headers");
  EXPECT_EQ((*json)["sync_interval"]["value"].string_or(""), "50ms");
  ASSERT_NE((*json)["workers"]["value"].boolean(), nullptr);
  EXPECT_TRUE(*(*json)["workers"]["value"].boolean());
  EXPECT_EQ((*json)["ingest_routes"]["value"].dump(), R"({"a*":"one"})");
}

TEST(SettingsFile, WrongTypesAreRefusedWithTheTypeThatIsWanted) {
  const auto problem = [](const std::string& text) {
    const SettingsFile file = parse_settings_file(text, "x.toml");
    EXPECT_THAT(file.problems, SizeIs(1)) << text;
    return file.problems.empty() ? "" : file.problems.front();
  };
  EXPECT_EQ(problem("data = 1"), "x.toml:1: data: must be text, not a whole number");
  EXPECT_EQ(problem("max_headers = \"5\""),
            "x.toml:1: max_headers: must be a whole number, not text");
  EXPECT_EQ(problem("max_headers = 1.5"),
            "x.toml:1: max_headers: must be a whole number, not a number");
  EXPECT_EQ(problem("allowed_hosts = \"a\""),
            "x.toml:1: allowed_hosts: must be an array of text, not text");
  EXPECT_EQ(problem("allowed_hosts = [1]"),
            "x.toml:1: allowed_hosts: must be an array of text, not an array");
  EXPECT_EQ(problem("workers = \"true\""), "x.toml:1: workers: must be true or false, not text");
  EXPECT_EQ(problem("workers = 1"), "x.toml:1: workers: must be true or false, not a whole number");
  EXPECT_EQ(problem("[data]\nx = 1"), "x.toml:1: data: must be text, not a table");
  EXPECT_EQ(problem("\n[server]\n"), "x.toml:2: server: no such setting");
  EXPECT_EQ(problem("[ingest]\nroutes = 1"),
            "x.toml:2: ingest.routes: must be a table of text, not a whole number");
  EXPECT_EQ(problem("[ingest.routs]\n"), "x.toml:1: ingest.routs: no such setting");
  EXPECT_EQ(problem("[ingest.routes]\na = \"b\"\n\"c*\" = 1"),
            "x.toml:3: ingest.routes.\"c*\": must be text, not a whole number");
  EXPECT_EQ(problem("ingest_routes = [\"a=b\"]"),
            "x.toml:1: ingest_routes: write it as a table [ingest.routes]");
  EXPECT_EQ(problem("ingest = 1"), "x.toml:1: ingest: no such setting");
  EXPECT_THAT(problem("data = \"a\"\ndata = \"b\""), testing::StartsWith("x.toml:2: "));
  EXPECT_THAT(problem("data = "), testing::StartsWith("x.toml:1: "));
}

// ---- the documentation ----

std::string documentation() {
  return read_file(std::filesystem::path(REPRISE_SOURCE_DIR) / "docs" / "configuration.md");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

TEST(Documentation, TheTableOfSettingsIsTheOneInTheCode) {
  std::vector<std::string> expected;
  for (const Setting& setting : all_settings()) {
    expected.push_back(fmt::format("| `{}` | `{}` | `{}` | {} | {} |", setting.name, setting.flag,
                                   setting.variable, setting.default_text, setting.help));
  }
  std::vector<std::string> documented = lines_of(documentation());
  std::erase_if(documented, [](const std::string& line) { return !line.starts_with("| `"); });
  EXPECT_EQ(documented, expected) << fmt::format("it should be\n{}\n", fmt::join(expected, "\n"));
}

TEST(Documentation, TheExampleFilesAreAccepted) {
  const std::string text = documentation();
  const std::string fence = "```toml\n";
  std::size_t values = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    const std::size_t begin = at + fence.size();
    at = text.find("```", begin);
    const SettingsFile file = parse_settings_file(text.substr(begin, at - begin), "reprise.toml");
    EXPECT_THAT(file.problems, IsEmpty());
    Settings settings;
    for (const FileValue& value : file.values) {
      EXPECT_TRUE(value.setting->set(settings, value.values)) << value.origin;
    }
    values += file.values.size();
  }
  EXPECT_GE(values, 6U);
}

}  // namespace
}  // namespace reprise::daemon
