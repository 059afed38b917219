#include "hooks/host/sandbox.h"

#include <linux/capability.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <system_error>

#include "hooks/protocol.h"

namespace reprise::hooks {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Lua's allocator has the exact limits; this one is for what goes wrong beside it. Two scripts of
// the largest memory and what is made of them in C++, the largest frame while it grows, and room.
constexpr std::uint64_t kAddressSpaceBytes =
    4 * (64ULL << 20) + 2 * std::uint64_t{kMaxFrameBytes} + (64ULL << 20);

Error system_error(const char* what, int code) {
  return Error{Errc::io, std::string("the hook host cannot lock itself in: ") + what + ": " +
                             std::generic_category().message(code)};
}

// The address space in use now.
std::optional<std::uint64_t> mapped_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return std::nullopt;
  unsigned long long pages = 0;
  const int found = std::fscanf(file, "%llu", &pages);
  std::fclose(file);
  if (found != 1) return std::nullopt;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

Status limit(__rlimit_resource resource, const char* name, rlim_t most) {
  const rlimit both{most, most};
  if (setrlimit(resource, &both) != 0) return system_error(name, errno);
  return ok();
}

Status limit_resources() {
  REPRISE_TRY(limit(RLIMIT_FSIZE, "RLIMIT_FSIZE", 0));
  REPRISE_TRY(limit(RLIMIT_NPROC, "RLIMIT_NPROC", 0));
  REPRISE_TRY(limit(RLIMIT_CORE, "RLIMIT_CORE", 0));
  REPRISE_TRY(limit(RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", 0));
  // Sanitizers map terabytes of shadow, and open pipes.
  if (kSanitized) return ok();
  // Without /proc there is no number to add to; what may be mapped is still limited by the cgroup
  // and, for Lua, by its allocator.
  if (const auto mapped = mapped_bytes()) {
    REPRISE_TRY(limit(RLIMIT_AS, "RLIMIT_AS", *mapped + kAddressSpaceBytes));
  }
  // The last one: it also keeps this process from opening anything.
  return limit(RLIMIT_NOFILE, "RLIMIT_NOFILE", 0);
}

Status close_all_but(int socket) {
  constexpr auto kLast = std::numeric_limits<unsigned int>::max();
  const auto kept = static_cast<unsigned int>(socket);
  // A sanitizer's report is of use only if it can be written.
  const unsigned int first = kSanitized ? STDERR_FILENO + 1 : 0;
  if (kept > first && close_range(first, kept - 1, 0) != 0) {
    return system_error("close_range", errno);
  }
  if (close_range(kept + 1, kLast, 0) != 0) return system_error("close_range", errno);
  return ok();
}

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_KILL_PROCESS)) {}
  ~Filter() { seccomp_release(context_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  template <class... Conditions>
  void allow(int call, Conditions... conditions) {
    if (problem_ != 0) return;
    problem_ = context_ == nullptr ? -ENOMEM
                                   : seccomp_rule_add(context_, SCMP_ACT_ALLOW, call,
                                                      sizeof...(conditions), conditions...);
  }
  Status load() {
    if (problem_ == 0) problem_ = seccomp_load(context_);
    if (problem_ != 0) return system_error("seccomp", -problem_);
    return ok();
  }

 private:
  scmp_filter_ctx context_;
  int problem_ = 0;
};

void allow_memory(Filter& filter) {
  // No file, nothing shared, nothing that can be run. glibc takes memory with these flags, a
  // sanitizer at places of its choice.
  constexpr int kFixed = kSanitized ? 0 : MAP_FIXED;
  filter.allow(SCMP_SYS(mmap), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
               SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS | kFixed,
                       MAP_PRIVATE | MAP_ANONYMOUS));
  filter.allow(SCMP_SYS(mprotect), SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  filter.allow(SCMP_SYS(munmap));
  filter.allow(SCMP_SYS(mremap));
  for (const int advice : {MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE}) {
    filter.allow(SCMP_SYS(madvise), SCMP_A2(SCMP_CMP_EQ, static_cast<scmp_datum_t>(advice)));
  }
  filter.allow(SCMP_SYS(brk));
}

// What the runtime of a sanitizer does beside the program: locks that yield, who-am-I for reports,
// signal stacks, and the report itself.
void allow_sanitizer(Filter& filter) {
  for (const int call :
       {SCMP_SYS(sched_yield), SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(sigaltstack),
        SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(getrandom), SCMP_SYS(nanosleep),
        SCMP_SYS(clock_nanosleep), SCMP_SYS(getrlimit), SCMP_SYS(getrusage),
        // UBSan finds out whether an object can be read by writing it to a pipe.
        SCMP_SYS(pipe2), SCMP_SYS(pipe), SCMP_SYS(write), SCMP_SYS(close), SCMP_SYS(madvise)}) {
    filter.allow(call);
  }
}

// A server that runs as root has them; a script's process needs none.
Status drop_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) != 0) return system_error("capset", errno);
  return ok();
}

Status load_filter(int socket) {
  Filter filter;
  const auto only = static_cast<scmp_datum_t>(socket);
  filter.allow(SCMP_SYS(read), SCMP_A0(SCMP_CMP_EQ, only));
  filter.allow(SCMP_SYS(write), SCMP_A0(SCMP_CMP_EQ, only));
  allow_memory(filter);
  filter.allow(SCMP_SYS(futex));
  // The clocks are read without a call where the kernel offers that.
  filter.allow(SCMP_SYS(clock_gettime));
  filter.allow(SCMP_SYS(gettimeofday));
  // A read that a stop and continue interrupted.
  filter.allow(SCMP_SYS(restart_syscall));
  filter.allow(SCMP_SYS(rt_sigreturn));
  filter.allow(SCMP_SYS(exit));
  filter.allow(SCMP_SYS(exit_group));
  if (kSanitized) allow_sanitizer(filter);
  return filter.load();
}

}  // namespace

Status enter_sandbox(int socket) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return system_error("no_new_privs", errno);
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return system_error("dumpable", errno);
  REPRISE_TRY(limit_resources());
  REPRISE_TRY(drop_capabilities());
  REPRISE_TRY(close_all_but(socket));
  return load_filter(socket);
}

}  // namespace reprise::hooks
