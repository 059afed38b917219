// What the server, the step host and the supervisors of steps say to each other (step_runner.h).
//
// All of them are the same binary, so messages are plain structs, over SOCK_SEQPACKET:
//   server -> step host   first a HostBegin, followed by the path of the lock file, then a
//                         StepRequest for each step, with the descriptors of StepFds
//   step host -> server   HostReports
//   server -> supervisor  StepOrders, one byte each; the end of the socket is kill
//   supervisor -> server  one StepReport, followed by its detail, when nothing of the step is left
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "worker/step_runner.h"

namespace reprise::worker {

// What a supervisor is given. `spec` holds what write_spec() has written.
struct StepFds {
  UniqueFd control;
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
  UniqueFd spec;
};
inline constexpr std::size_t kFdsOfStep = 5;

struct HostBegin {
  std::uint64_t descriptors{};  // how many steps may have (descriptor_limit.h)
};

struct StepRequest {
  StepId step{};
};

enum class HostNews : std::uint32_t {
  ready,    // it has the lock
  no_lock,  // error: errno; it ends
  taken,    // the step has a supervisor
  failed,   // it has none; error: errno
  gone,     // the supervisor has ended, and so has all that it had
};
struct HostReport {
  HostNews news{};
  std::int32_t error = 0;
  StepId step = 0;
};

enum class StepOrder : char { terminate = 't', kill = 'k' };

struct StepReport {
  StepEnd::Kind kind{};
  std::int32_t code = 0;
};
inline constexpr std::size_t kMaxReportBytes = 8192;

// False with errno: it was not sent.
bool send_message(int socket, std::string_view bytes, std::span<const int> fds = {});
template <class Message>
bool send_struct(int socket, const Message& message, std::span<const int> fds = {}) {
  return send_message(socket, {reinterpret_cast<const char*>(&message), sizeof(message)}, fds);
}
// The bytes of the next message, 0 at the end; nothing with errno: there is none. Descriptors that
// came along are put in `fds` as far as they go.
std::optional<std::size_t> receive_message(int socket, std::span<char> into,
                                           std::span<UniqueFd> fds = {});

// The script, directory and environment in a file without a name: they can be megabytes.
// Errc::invalid_field: there is a NUL character in one of them. Errc::io: no memory, no descriptor.
Result<UniqueFd> write_spec(const StepSpec& spec);

// As execve() wants it. The memory is the process's until it ends.
struct SpecView {
  char* script = nullptr;
  char* directory = nullptr;
  std::vector<char*> environment;  // ends with a null pointer
};
// Nothing with errno: it cannot be read.
std::optional<SpecView> read_spec(int fd);

}  // namespace reprise::worker
