#include "runbook/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::runbook {
namespace {

namespace fs = std::filesystem;
using test::TempDirectory;
using test::write_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Project : public testing::Test {
 protected:
  Project() : root_(fs::canonical(directory_.path()).string() + "/shop") {
    fs::create_directories(root_ + "/.reprise");
  }

  void file(const std::string& name, std::string_view text) {
    write_file(root_ + "/.reprise/" + name, text);
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> all;
    for (const Finding& finding : load_runbook(root_).findings) all.push_back(to_text(finding));
    return all;
  }

  TempDirectory directory_;
  std::string root_;
};

TEST_F(Project, IsFoundUpwards) {
  fs::create_directories(root_ + "/a/b");
  EXPECT_EQ(find_project(root_), root_);
  EXPECT_EQ(find_project(root_ + "/a/b"), root_);
  EXPECT_EQ(find_project(root_ + "/a/../a/b/"), root_);
  EXPECT_EQ(find_project(root_ + "/.reprise"), root_);
  fs::create_directory_symlink(root_ + "/a", directory_ / "link");
  EXPECT_EQ(find_project(directory_ / "link"), root_);
  EXPECT_EQ(find_project(directory_.path()), std::nullopt);
  EXPECT_EQ(find_project(directory_ / "nowhere"), std::nullopt);
  // The nearest one, and only a directory.
  fs::create_directories(root_ + "/a/.reprise");
  write_file(root_ + "/a/b/.reprise", "");
  EXPECT_EQ(find_project(root_ + "/a/b"), root_ + "/a");
}

TEST_F(Project, HasTheNameOfItsConfigOrDirectory) {
  EXPECT_EQ(*project_name(root_), "shop");
  file("config.json", R"({"project": {"name": "from-json"}})");
  EXPECT_EQ(*project_name(root_), "from-json");
  fs::remove(root_ + "/.reprise/config.json");
  file("config.toml", "[project]\nname = 'from-toml'\n[queue.x]\ntype = 'wrong'");
  EXPECT_EQ(*project_name(root_), "from-toml");
  EXPECT_EQ(load_runbook(root_).ns, "from-toml");
  file("config.toml", "[project]\nname = 'a b'");
  const auto refused = project_name(root_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_runbook);
  EXPECT_THAT(refused.error().detail, HasSubstr(".reprise/config.toml:2: project.name: "));
  file("config.toml", "[project");
  EXPECT_THAT(project_name(root_).error().detail, HasSubstr(".reprise/config.toml:1: not TOML"));
}

TEST_F(Project, WithADirectoryThatCannotBeANameNeedsOne) {
  const std::string odd = directory_ / "my shop";
  fs::create_directories(odd + "/.reprise");
  const auto refused = project_name(odd);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_runbook);
  EXPECT_THAT(refused.error().detail, HasSubstr("write [project] name"));
}

TEST_F(Project, IsReadFromAllFilesInTheOrderOfTheirNames) {
  file("b.toml", "[worker.w]\nqueue = 'q'\nrun = 'p'");
  file("a.json", R"({"queue": {"q": {"type": "persisted", "vars": []}}})");
  file("c.toml", "[[pipeline.p.step]]\nname = 's'\nrun = 'ls'");
  file(".hidden.toml", "no toml");
  file("notes.md", "no toml");
  file("a.toml.bak", "no toml");
  const auto result = load_runbook(root_);
  ASSERT_TRUE(result.runbook) << testing::PrintToString(texts());
  EXPECT_THAT(result.runbook->files,
              ElementsAre(".reprise/a.json", ".reprise/b.toml", ".reprise/c.toml"));
  EXPECT_EQ(result.runbook->root, root_);
  EXPECT_EQ(result.runbook->ns, "shop");
  EXPECT_EQ(load_runbook(root_, "other").runbook->ns, "other");
}

TEST_F(Project, WithoutFilesDeclaresNothing) {
  EXPECT_THAT(texts(), ElementsAre(HasSubstr(".reprise: warning: holds no .toml")));
  EXPECT_TRUE(load_runbook(root_).runbook);
}

TEST_F(Project, TellsFilesThatCannotBeRead) {
  file("large.toml", std::string(kMostFileBytes + 1, '#'));
  file("bytes.toml", "a = '\xff'");
  fs::create_directory(root_ + "/.reprise/folder.toml");
  ASSERT_EQ(::mkfifo((root_ + "/.reprise/pipe.json").c_str(), 0600), 0);
  fs::create_symlink("nowhere", root_ + "/.reprise/broken.toml");
  EXPECT_THAT(
      texts(),
      ElementsAre(".reprise/broken.toml: cannot be read: No such file or directory",
                  ".reprise/bytes.toml:1: not UTF-8", ".reprise/folder.toml: is not a regular file",
                  ".reprise/large.toml: is larger than 1 MiB",
                  ".reprise/pipe.json: is not a regular file"));
  EXPECT_FALSE(load_runbook(root_).runbook);
}

TEST_F(Project, ThatIsGoneIsAFinding) {
  const auto result = load_runbook(directory_ / "nowhere");
  EXPECT_FALSE(result.runbook);
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_THAT(to_text(result.findings[0]), HasSubstr(".reprise: the directory cannot be read"));
}

TEST_F(Project, HasAFingerprintThatChangesWithItsFiles) {
  std::string last;
  const auto changed = [&] {
    const std::string now = runbook_fingerprint(root_);
    return std::exchange(last, now) != now;
  };
  EXPECT_TRUE(changed());
  EXPECT_FALSE(changed());
  file("a.toml", "x");
  EXPECT_TRUE(changed());
  EXPECT_FALSE(changed());
  file("a.toml", "xy");
  EXPECT_TRUE(changed());
  file("notes.md", "x");
  EXPECT_FALSE(changed());
  fs::rename(root_ + "/.reprise/a.toml", root_ + "/.reprise/b.toml");
  EXPECT_TRUE(changed());
  // Replaced by another of the same size and time, as editors do.
  const auto time = fs::last_write_time(root_ + "/.reprise/b.toml");
  file("new", "xz");
  fs::last_write_time(root_ + "/.reprise/new", time);
  fs::rename(root_ + "/.reprise/new", root_ + "/.reprise/b.toml");
  EXPECT_TRUE(changed());
  fs::remove(root_ + "/.reprise/b.toml");
  EXPECT_TRUE(changed());
  fs::remove_all(root_ + "/.reprise");
  EXPECT_TRUE(changed());
  EXPECT_THAT(last, IsEmpty());
}

TEST_F(Project, MustNotBeWritableForEverybody) {
  file("a.toml", "");
  EXPECT_TRUE(check_ownership(root_));
  ::chmod((root_ + "/.reprise/a.toml").c_str(), 0666);
  auto refused = check_ownership(root_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unsafe_project);
  EXPECT_EQ(refused.error().detail, ".reprise/a.toml can be written by everybody; chmod o-w it");
  ::chmod((root_ + "/.reprise/a.toml").c_str(), 0600);
  ::chmod((root_ + "/.reprise").c_str(), 0777);
  refused = check_ownership(root_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, ".reprise can be written by everybody; chmod o-w it");
  ::chmod((root_ + "/.reprise").c_str(), 0755);
  EXPECT_TRUE(check_ownership(root_));
}

TEST_F(Project, MustNotBelongToSomebodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  file("a.toml", "");
  ASSERT_EQ(::chown((root_ + "/.reprise/a.toml").c_str(), 12345, 12345), 0);
  const auto refused = check_ownership(root_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unsafe_project);
  EXPECT_THAT(refused.error().detail, HasSubstr(".reprise/a.toml belongs to user 12345"));
}

TEST_F(Project, ThatIsGoneIsNotSafe) {
  fs::remove_all(root_ + "/.reprise");
  EXPECT_EQ(check_ownership(root_).error().code, Errc::unsafe_project);
}

}  // namespace
}  // namespace reprise::runbook
