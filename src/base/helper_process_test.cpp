#include "base/helper_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace reprise {
namespace {

using testing::HasSubstr;

class HelperProcessTest : public testing::Test {
 protected:
  HelperProcessTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "reprise-helper-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~HelperProcessTest() override { std::filesystem::remove_all(directory_); }

  std::string program(const std::string& script) {
    const std::string path = directory_ / "program";
    std::ofstream(path) << "#!/bin/bash\n" << script;
    chmod(path.c_str(), S_IRWXU);
    return path;
  }
  // What it sends, until its end.
  static std::string run(const std::string& program, std::vector<std::string> variables = {}) {
    auto helper = start_helper(program, "word", std::move(variables));
    EXPECT_TRUE(helper);
    if (!helper) return "";
    std::string all;
    std::array<char, 4096> message{};
    pollfd readable{.fd = helper->socket.get(), .events = POLLIN};
    while (poll(&readable, 1, 20'000) == 1) {
      const ssize_t got = recv(helper->socket.get(), message.data(), message.size(), 0);
      if (got <= 0) break;
      all.append(message.data(), static_cast<std::size_t>(got));
    }
    waitpid(helper->pid, nullptr, 0);
    return all;
  }

  std::filesystem::path directory_;
};

TEST_F(HelperProcessTest, HasItsArgumentAndTheSocket) {
  EXPECT_EQ(run(program("echo \"$# $1\" >&3")), "1 word\n");
}

TEST_F(HelperProcessTest, InheritsNoVariablesButThoseItIsGiven) {
  setenv("HELPER_TEST_SECRET", "hunter2", 1);
  const std::string variables = run(program("env >&3"), {"GIVEN=1"});
  unsetenv("HELPER_TEST_SECRET");
  EXPECT_THAT(variables, HasSubstr("GIVEN=1"));
  EXPECT_THAT(variables, Not(HasSubstr("hunter2")));
}

TEST_F(HelperProcessTest, InheritsNoDescriptors) {
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd inheritable(fcntl(file.get(), F_DUPFD, 77));
  EXPECT_EQ(inheritable.get(), 77);
  EXPECT_EQ(run(program("[ -e /proc/$$/fd/77 ] || [ ! -e /proc/$$/fd/3 ] || echo none >&3")),
            "none\n");
}

TEST_F(HelperProcessTest, IsInASessionOfItsOwn) {
  EXPECT_EQ(run(program("read -r _ _ _ _ _ session _ < /proc/$$/stat\n[ $session = $$ ] && "
                        "echo own >&3")),
            "own\n");
}

TEST_F(HelperProcessTest, TellsThatItCannotBeStarted) {
  const auto helper = start_helper("/no/such/program", "word");
  ASSERT_FALSE(helper);
  EXPECT_EQ(helper.error().code, Errc::io);
  EXPECT_THAT(helper.error().detail, HasSubstr("/no/such/program cannot be started"));
}

}  // namespace
}  // namespace reprise
