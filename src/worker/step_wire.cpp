#include "worker/step_wire.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace reprise::worker {
namespace {

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status check_text(std::string_view what, std::string_view text) {
  if (text.find('\0') == text.npos) return ok();
  return Error{Errc::invalid_field, fmt::format("{} holds a NUL character", what)};
}

}  // namespace

bool send_message(int socket, std::string_view bytes, std::span<const int> fds) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsOfStep)> ancillary{};
  if (!fds.empty()) {
    message.msg_control = ancillary.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

std::optional<std::size_t> receive_message(int socket, std::span<char> into,
                                           std::span<UniqueFd> fds) {
  iovec part{.iov_base = into.data(), .iov_len = into.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kFdsOfStep)> ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    // ECONNRESET is told once, when the other end has gone without reading all; what it had sent
    // before follows.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) return std::nullopt;

  std::size_t place = 0;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (place < fds.size()) fds[place++] = std::move(owned);
    }
  }
  return static_cast<std::size_t>(got);
}

Result<UniqueFd> write_spec(const StepSpec& spec) {
  REPRISE_TRY(check_text("the command", spec.script));
  REPRISE_TRY(check_text("the directory", spec.directory));
  // Each text ends with a NUL character.
  std::string bytes;
  bytes.append(spec.script).push_back('\0');
  bytes.append(spec.directory).push_back('\0');
  for (const std::string& variable : spec.environment) {
    REPRISE_TRY(check_text("the variable " + variable.substr(0, variable.find('=')), variable));
    bytes.append(variable).push_back('\0');
  }
  UniqueFd file(memfd_create("step", MFD_CLOEXEC));
  if (!file || !write_all(file.get(), bytes)) {
    return Error{Errc::io, fmt::format("no memory for the command: {}", std::strerror(errno))};
  }
  return file;
}

std::optional<SpecView> read_spec(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* memory =
      mmap(nullptr, std::max<std::size_t>(size, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return std::nullopt;

  char* at = static_cast<char*>(memory);
  char* const end = at + size;
  const auto next_text = [&]() -> char* {
    char* const text = at;
    at = std::find(at, end, '\0');
    return at == end ? nullptr : (++at, text);
  };
  SpecView view;
  view.script = next_text();
  view.directory = next_text();
  while (at != end && view.directory != nullptr) {
    if (char* const variable = next_text()) view.environment.push_back(variable);
  }
  view.environment.push_back(nullptr);
  errno = EINVAL;
  if (view.script == nullptr || view.directory == nullptr) return std::nullopt;
  return view;
}

}  // namespace reprise::worker
