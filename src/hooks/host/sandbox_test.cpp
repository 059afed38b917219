#include "hooks/host/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::hooks {
namespace {

struct Ending {
  int status{};
  bool killed_for_a_call() const { return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS; }
  bool clean() const { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }
};

// A child that is locked in and then does `what`; it ends with 0 when that returns true.
class Child {
 public:
  explicit Child(const std::function<bool(int socket)>& what) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    socket_ = ends[0];
    pid_ = fork();
    if (pid_ == 0) {
      // A test that hangs must not leave a process behind.
      alarm(60);
      if (!enter_sandbox(ends[1])) _exit(99);
      _exit(what(ends[1]) ? 0 : 1);
    }
    close(ends[1]);
  }
  ~Child() { close(socket_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int socket() const { return socket_; }
  Ending wait() const {
    Ending ending;
    EXPECT_EQ(waitpid(pid_, &ending.status, 0), pid_);
    return ending;
  }

 private:
  int socket_ = -1;
  pid_t pid_ = -1;
};

Ending ending_of(const std::function<bool(int socket)>& what) { return Child(what).wait(); }

void expect_killed(const char* name, const std::function<void()>& what) {
  const Ending ending = ending_of([&](int) {
    what();
    return true;
  });
  EXPECT_TRUE(ending.killed_for_a_call()) << name << ": status " << ending.status;
}

TEST(Sandbox, ItsSocketCanBeReadAndWritten) {
  const Child child([](int socket) {
    char byte = 0;
    return read(socket, &byte, 1) == 1 && write(socket, &byte, 1) == 1 &&
           read(socket, &byte, 1) == 0;
  });
  char byte = 'x';
  EXPECT_EQ(write(child.socket(), &byte, 1), 1);
  byte = 0;
  EXPECT_EQ(read(child.socket(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  shutdown(child.socket(), SHUT_WR);
  EXPECT_TRUE(child.wait().clean());
}

TEST(Sandbox, MemoryClocksAndExceptionsWork) {
  const Ending ending = ending_of([](int) {
    std::vector<std::string> all;
    for (int i = 0; i < 1000; ++i) all.emplace_back(10'000, 'x');
    std::string growing;
    while (growing.size() < (64U << 20)) growing.append(growing.size() + 1, 'y');
    timespec now{};
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return false;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) return false;
    try {
      throw std::runtime_error("thrown");
    } catch (const std::runtime_error&) {
      return true;
    }
  });
  EXPECT_TRUE(ending.clean()) << ending.status;
}

TEST(Sandbox, EveryOtherDescriptorIsClosed) {
  // The call is allowed on the socket alone, so ask through what is allowed on any number: none is.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  expect_killed("write to stdout", [] { (void)!write(STDOUT_FILENO, "x", 1); });
#endif
  expect_killed("read of stdin", [] {
    char byte = 0;
    (void)!read(STDIN_FILENO, &byte, 1);
  });
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  // The writing end stays open in the child unless the sandbox closes it.
  const Child child([](int socket) {
    char byte = 0;
    return read(socket, &byte, 1) == 0;
  });
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  shutdown(child.socket(), SHUT_WR);
  EXPECT_TRUE(child.wait().clean());
}

TEST(Sandbox, WhatReachesOutEndsTheProcess) {
  expect_killed("open", [] { syscall(SYS_open, "/etc/passwd", O_RDONLY); });
  expect_killed("openat", [] { (void)open("/etc/passwd", O_RDONLY); });
  expect_killed("creat", [] { syscall(SYS_creat, "/tmp/never", 0600); });
  expect_killed("unlink", [] { unlink("/tmp/never"); });
  expect_killed("socket", [] { (void)socket(AF_INET, SOCK_STREAM, 0); });
  expect_killed("socketpair", [] {
    int ends[2];
    (void)socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  });
  expect_killed("dup", [] { (void)dup(0); });
  expect_killed("ioctl", [] { syscall(SYS_ioctl, 0, 0, 0); });
  expect_killed("fcntl", [] { syscall(SYS_fcntl, 0, F_GETFD); });
  expect_killed("memfd_create", [] { syscall(SYS_memfd_create, "m", 0); });
  expect_killed("io_uring_setup", [] { syscall(SYS_io_uring_setup, 1, nullptr); });
}

TEST(Sandbox, WhatTouchesProcessesEndsTheProcess) {
  expect_killed("fork", [] { syscall(SYS_fork); });
  expect_killed("clone", [] { syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); });
  expect_killed("clone3", [] { syscall(SYS_clone3, nullptr, 0); });
  expect_killed("execve", [] { syscall(SYS_execve, "/bin/true", nullptr, nullptr); });
  expect_killed("execveat", [] { syscall(SYS_execveat, 0, "/bin/true", nullptr, nullptr, 0); });
  expect_killed("kill", [] { syscall(SYS_kill, 1, 0); });
  expect_killed("tgkill", [] { syscall(SYS_tgkill, 1, 1, 0); });
  expect_killed("ptrace", [] { syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0); });
  expect_killed("process_vm_readv", [] { syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0); });
  expect_killed("prctl", [] { syscall(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); });
  expect_killed("setrlimit", [] {
    const rlimit most{100, 100};
    syscall(SYS_setrlimit, RLIMIT_NOFILE, &most);
  });
  expect_killed("prlimit64", [] { syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, nullptr); });
}

TEST(Sandbox, NothingBecomesCodeAndNothingIsShared) {
  expect_killed("mmap that can be run", [] {
    (void)mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  });
  expect_killed("mmap that is shared",
                [] { (void)mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0); });
  expect_killed("mmap of a file", [] { (void)mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 0, 0); });
  expect_killed("mprotect that makes code", [] {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
  });
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Sandbox, MemoryHasAnEnd) {
  const Ending ending = ending_of([](int) {
    void* much =
        mmap(nullptr, 4ULL << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return much == MAP_FAILED && errno == ENOMEM;
  });
  EXPECT_TRUE(ending.clean()) << ending.status;
}
#endif

}  // namespace
}  // namespace reprise::hooks
