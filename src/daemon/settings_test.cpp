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

TEST_F(SettingsTest, AListInTheEnvironmentIsSeparatedByCommas) {
  sources_.environment = {{"REPRISE_ALLOWED_HOSTS", "a.example,b.example"}};
  EXPECT_THAT(load().settings.http.allowed_hosts, ElementsAre("a.example", "b.example"));
  sources_.flags = {{"allowed_hosts", {"c.example"}}};
  EXPECT_THAT(load().settings.http.allowed_hosts, ElementsAre("c.example"));
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
      {"sync_interval", "soon", "'soon' is not a duration"},
      {"sync_interval", "11s", "11s is out of range: 1ms to 10s"},
      {"disk_reserve", "much", "'much' is not a size"},
      {"cache_bytes", "1KiB", "1KiB is out of range: 1MiB to 1TiB"},
      {"max_headers", "-1", "'-1' is not a whole number"},
      {"max_headers", "99999999999999999999", "not a whole number"},
      {"max_headers", "1e3", "'1e3' is not a whole number"},
      {"io_threads", "0", "0 is out of range: 1 to 64"},
      {"durability", "fast", "'fast' is not one of sync, interval, none"},
      {"allowed_hosts", "", "an item is empty"},
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
                          {"REPRISE_DURABILTY", "none"}};
  EXPECT_THAT(load().warnings, ElementsAre("REPRISE_DURABILTY: no such setting; did you mean "
                                           "REPRISE_DURABILITY?"));
}

TEST_F(SettingsTest, ShownSettingsReadBackAsTheyWere) {
  sources_.flags = {{"allowed_hosts", {"a", "b \"quoted\""}},
                    {"cache_bytes", {"1048577"}},
                    {"sync_interval", {"1.5s"}},
                    {"log_level", {"warn"}},
                    {"data", {"/var/lib/reprise"}}};
  const LoadedSettings loaded = load();
  write("reprise.toml", settings_as_toml(loaded));
  sources_.flags.clear();
  const LoadedSettings again = load();
  for (const Setting& setting : all_settings()) {
    EXPECT_EQ(setting.get(again.settings), setting.get(loaded.settings)) << setting.name;
  }
}

TEST_F(SettingsTest, SettingsAreShownAsJsonWithTheirOrigin) {
  sources_.flags = {{"max_headers", {"5"}}};
  const auto json = Json::parse(settings_as_json(load()));
  ASSERT_TRUE(json);
  EXPECT_EQ((*json)["max_headers"]["value"].integer(), 5);
  EXPECT_EQ((*json)["max_headers"]["origin"].string_or(""), "--max-headers");
  EXPECT_EQ((*json)["sync_interval"]["value"].string_or(""), "50ms");
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
  EXPECT_EQ(problem("[data]\nx = 1"), "x.toml:1: data: must be text, not a table");
  EXPECT_EQ(problem("\n[server]\n"), "x.toml:2: server: no such setting");
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

TEST(Documentation, TheExampleFileIsAccepted) {
  const std::string text = documentation();
  const std::string fence = "```toml\n";
  const std::size_t begin = text.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = text.find("```", begin + fence.size());
  const std::string example = text.substr(begin + fence.size(), end - begin - fence.size());

  const SettingsFile file = parse_settings_file(example, "reprise.toml");
  EXPECT_THAT(file.problems, IsEmpty());
  EXPECT_GE(file.values.size(), 5U);
  Settings settings;
  for (const FileValue& value : file.values) {
    EXPECT_TRUE(value.setting->set(settings, value.values)) << value.origin;
  }
}

}  // namespace
}  // namespace reprise::daemon
