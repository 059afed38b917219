#include "hooks/nursery.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "hooks/host_link.h"
#include "hooks/nursery_keeper.h"
#include "hooks/nursery_link.h"
#include "support/child_processes.h"

namespace reprise::hooks {
namespace {

using namespace std::chrono_literals;
using test::wait_until;

bool wait_readable(int fd) {
  pollfd watched{.fd = fd, .events = POLLIN};
  return poll(&watched, 1, 20'000) == 1;
}

class NurseryTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = NurseryLink::start(program_.path());
    ASSERT_TRUE(started) << started.error().detail;
    nursery = std::move(*started);
  }
  NurseryLink::Report next_report() {
    while (wait_readable(nursery->control_fd())) {
      auto report = nursery->receive();
      if (!report) break;
      if (*report) return std::move(**report);
    }
    ADD_FAILURE() << "no report";
    return {};
  }
  NurseryLink::Report start_host(std::uint32_t number) {
    EXPECT_TRUE(nursery->request(number));
    auto report = next_report();
    EXPECT_EQ(report.what.news, NurseryNews::started);
    EXPECT_EQ(report.what.host, number);
    return report;
  }

  const test::OwnProgramAs program_{"scripted-host"};
  std::unique_ptr<NurseryLink> nursery;
};

TEST_F(NurseryTest, AHostHasASocketAPidfdAndAPage) {
  auto link = HostLink::make(start_host(1));
  ASSERT_TRUE(link);
  EXPECT_FALSE((*link)->running_call());
  (*link)->send(hooks::SetUp{.queue = "q"});
  (*link)->flush();
  ASSERT_TRUE(wait_readable((*link)->socket_fd()));
  EXPECT_EQ((*link)->receive(), HostLink::Received::some);
  const auto message = (*link)->next_message();
  ASSERT_TRUE(message && *message);
  EXPECT_TRUE(std::holds_alternative<SetUpDone>(**message));
}

TEST_F(NurseryTest, ThePageCannotBeMadeSmaller) {
  const auto report = start_host(1);
  EXPECT_NE(ftruncate(report.page.get(), 0), 0);
}

TEST_F(NurseryTest, AHostHasNothingOpenButItsSocket) {
  const auto report = start_host(1);
  const std::string directory = "/proc/" + std::to_string(report.what.pid) + "/fd";
  EXPECT_TRUE(wait_until([&] {
    const std::filesystem::directory_iterator entries(directory);
    return std::distance(begin(entries), end(entries)) == 4;  // three of them are /dev/null
  }));
}

TEST_F(NurseryTest, TellsHowAHostEnded) {
  const auto report = start_host(7);
  ::kill(report.what.pid, SIGTERM);
  const auto ended = next_report();
  EXPECT_EQ(ended.what.news, NurseryNews::ended);
  EXPECT_EQ(ended.what.host, 7U);
  EXPECT_TRUE(WIFSIGNALED(ended.what.detail));
  EXPECT_EQ(WTERMSIG(ended.what.detail), SIGTERM);
}

TEST_F(NurseryTest, AHostWhoseSocketIsClosedEnds) {
  auto report = start_host(1);
  report.socket.reset();
  EXPECT_EQ(next_report().what.news, NurseryNews::ended);
}

TEST_F(NurseryTest, HostsEndWithTheNursery) {
  const auto first = start_host(1);
  const auto second = start_host(2);
  ::kill(nursery->pid(), SIGKILL);
  EXPECT_TRUE(wait_readable(first.pidfd.get()));
  EXPECT_TRUE(wait_readable(second.pidfd.get()));
  ASSERT_TRUE(wait_readable(nursery->control_fd()));
  EXPECT_FALSE(nursery->receive());
}

TEST_F(NurseryTest, ClosesWithItsHosts) {
  const auto host = start_host(1);
  const pid_t pid = nursery->pid();
  nursery->close(20s);
  EXPECT_FALSE(test::is_alive(host.what.pid));
  EXPECT_FALSE(test::is_alive(pid));
}

TEST_F(NurseryTest, InheritsNoSecrets) {
  setenv("REPRISE_TEST_SECRET", "hunter2", 1);
  nursery.reset();
  SetUp();
  const auto host = start_host(1);
  unsetenv("REPRISE_TEST_SECRET");
  std::ifstream file("/proc/" + std::to_string(host.what.pid) + "/environ");
  const std::string environment((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(environment.find("hunter2"), environment.npos);
}

TEST_F(NurseryTest, InheritsNoDescriptors) {
  const UniqueFd inheritable(open("/dev/null", O_RDONLY));
  nursery.reset();
  SetUp();
  start_host(1);
  const std::string directory = "/proc/" + std::to_string(nursery->pid()) + "/fd";
  EXPECT_TRUE(wait_until([&] {
    const std::filesystem::directory_iterator entries(directory);
    return std::distance(begin(entries), end(entries)) == 5;  // 0 to 2, control, signals
  }));
}

}  // namespace
}  // namespace reprise::hooks
