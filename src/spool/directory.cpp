#include "spool/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <system_error>

namespace reprise::spool {
namespace {

constexpr mode_t kDirectoryMode = 0700;

std::string reason(int code) { return std::generic_category().message(code); }

mode_t kind_of_type(unsigned char type) {
  return type == DT_UNKNOWN ? 0 : static_cast<mode_t>(DTTOIF(type));
}

FileContent not_whole(FileContent::State state, std::string problem) {
  FileContent content;
  content.state = state;
  content.problem = std::move(problem);
  return content;
}

// Reads until the end or until `bytes` is full. 0, or an errno.
int read_into(int fd, std::string& bytes) {
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return 0;
}

}  // namespace

Error io_error(std::string_view action, const std::filesystem::path& path, int code) {
  return Error{Errc::io, fmt::format("cannot {} {}: {}", action, path.string(), reason(code))};
}

UniqueFd reopen_directory(int directory) {
  return UniqueFd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Status make_directory(int parent, const std::string& name, const std::filesystem::path& path) {
  if (::mkdirat(parent, name.c_str(), kDirectoryMode) != 0) {
    return errno == EEXIST ? ok() : io_error("make", path, errno);
  }
  // A umask may have taken from the mode what we need ourselves.
  if (::fchmodat(parent, name.c_str(), kDirectoryMode, 0) != 0) {
    return io_error("set the mode of", path, errno);
  }
  if (const int code = sync_directory(parent); code != 0) return io_error("make", path, code);
  return ok();
}

int sync_directory(int directory) {
  // EINVAL: the file system has nothing to sync here.
  return TEMP_FAILURE_RETRY(::fsync(directory)) == 0 || errno == EINVAL ? 0 : errno;
}

mode_t kind_of_entry(int directory, const char* name) {
  struct stat info {};
  if (::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return info.st_mode & S_IFMT;
}

std::string_view kind_name(mode_t kind) {
  switch (kind) {
    case S_IFREG:
      return "a regular file";
    case S_IFLNK:
      return "a symbolic link";
    case S_IFDIR:
      return "a directory";
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

Status for_each_entry(int directory, const std::filesystem::path& path,
                      const std::function<void(std::string_view name, mode_t kind)>& visit) {
  UniqueFd fd = reopen_directory(directory);
  if (!fd) return io_error("list", path, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), &::closedir);
  if (!stream) return io_error("list", path, errno);
  const int own = fd.release();  // the stream closes it
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      return errno == 0 ? ok() : io_error("list", path, errno);
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    mode_t kind = kind_of_type(entry->d_type);
    if (kind == 0) kind = kind_of_entry(own, entry->d_name);
    if (kind != 0) visit(name, kind);
  }
}

// O_NONBLOCK: opening a FIFO would wait for a writer. It changes nothing for a regular file.
UniqueFd open_regular(int directory, const std::string& name, FileContent& content) {
  using State = FileContent::State;
  UniqueFd fd(
      ::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd) {
    const int code = errno;
    if (code == ENOENT) {
      content = not_whole(State::vanished, reason(code));
    } else {
      const mode_t kind = kind_of_entry(directory, name.c_str());
      const bool regular = kind == 0 || kind == S_IFREG;
      content = not_whole(State::unreadable, regular ? reason(code) : std::string(kind_name(kind)));
    }
    return fd;
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    content = not_whole(State::unreadable, reason(errno));
    return {};
  }
  if (!S_ISREG(info.st_mode)) {
    content = not_whole(State::unreadable, std::string(kind_name(info.st_mode & S_IFMT)));
    return {};
  }
  content.size = static_cast<std::uint64_t>(info.st_size);
  content.changed_at = Timestamp(std::chrono::duration_cast<Duration>(
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec)));
  return fd;
}

FileContent read_regular(int directory, const std::string& name, std::size_t max_bytes,
                         Beyond beyond) {
  FileContent content;
  const UniqueFd fd = open_regular(directory, name, content);
  if (!fd) return content;
  if (content.size > max_bytes && beyond == Beyond::refuse) {
    content.state = FileContent::State::too_large;
    return content;
  }
  // One more than expected: a file that grows meanwhile is noticed, one that shrinks ends early.
  const std::uint64_t wanted = std::min<std::uint64_t>(content.size, max_bytes) + 1;
  content.bytes.resize(wanted);
  if (const int code = read_into(fd.get(), content.bytes); code != 0) {
    return not_whole(FileContent::State::unreadable, reason(code));
  }
  if (beyond == Beyond::cut) {
    content.bytes.resize(std::min(content.bytes.size(), max_bytes));
  } else if (content.bytes.size() == wanted) {
    return not_whole(FileContent::State::unreadable, "it is still being written");
  } else {
    content.size = content.bytes.size();
  }
  return content;
}

}  // namespace reprise::spool
