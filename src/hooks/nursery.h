// The nursery: a small process with one thread that forks hosts for the broker.
//
// The broker has many threads and much memory; a process forked from it would begin with copies of
// both. The nursery is exec'd anew, has neither, and is never told a script, so each host begins
// as clean as it was. It reaps its hosts, and it and they end with the broker, whatever ends that.
//
// Control socket (SOCK_SEQPACKET): the broker sends a NurseryRequest for each host it wants; a
// NurseryReport says what became of it, with three descriptors when it runs: its socket, its pidfd
// and its progress page. One more report says that it has ended and how.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/helper_process.h"
#include "hooks/protocol.h"

namespace reprise::hooks {

// What a host does from its first moment to its end; returning ends it.
using HostBody = void (*)(int socket, HostProgress& progress);

// Where a program that is started as a nursery finds the control socket.
inline constexpr int kNurseryControlFd = kHelperSocketFd;
inline constexpr std::size_t kProgressPageBytes = 4096;
static_assert(sizeof(HostProgress) <= kProgressPageBytes);

struct NurseryRequest {
  std::uint32_t host{};  // a number of the broker's, unique
};
enum class NurseryNews : std::uint32_t {
  started = 0,
  failed = 1,  // detail: errno
  ended = 2,   // detail: what waitpid() said
};
struct NurseryReport {
  NurseryNews news{};
  std::uint32_t host{};
  std::int32_t pid = 0;
  std::int32_t detail = 0;
};
inline constexpr std::size_t kFdsOfStarted = 3;  // socket, pidfd, page

// Serves until the control socket is closed at the other end. Returns the process's exit status.
int run_nursery(int control_fd, HostBody body);

}  // namespace reprise::hooks
