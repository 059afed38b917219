#include "spool/new_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "spool/directory.h"

namespace reprise::spool {
namespace {

constexpr mode_t kFileMode = 0600;
// A name of 255 bytes, which is the most there can be, leaves no room for a dot and an ending.
constexpr std::size_t kMaxStemBytes = 200;
constexpr int kMaxTemporaryNames = 1000;

// How the data of a group is made durable. fsync() of each file is one write of the journal after
// the other: 1,000 small files take seconds. syncfs() writes all of them at once, in some ten
// milliseconds, but also whatever else is waiting to be written on that file system, which may be
// much. So a few files are synced one by one, and many together. (syncfs() tells write errors since
// Linux 5.8, to descriptors that were opened before them.)
constexpr std::size_t kMostSyncedOneByOne = 8;

// What a file system says that does not know a flag of renameat2, or the call.
bool is_unsupported(int code) {
  return code == EINVAL || code == ENOSYS || code == EOPNOTSUPP || code == ENOTTY;
}

int close_checked(UniqueFd fd) {
  // EINTR: it is closed all the same.
  return ::close(fd.release()) == 0 || errno == EINTR ? 0 : errno;
}

std::string temporary_name(const std::string& name, int number) {
  const std::string stem = name.substr(0, kMaxStemBytes);
  return number == 0 ? fmt::format(".{}.tmp", stem) : fmt::format(".{}.{}.tmp", stem, number);
}

// Puts `from` in the place of `to`. ENOENT: there is none.
int exchange_names(int directory, const std::string& from, const std::string& to) {
  if (::renameat2(directory, from.c_str(), directory, to.c_str(), RENAME_EXCHANGE) == 0) {
    ::unlinkat(directory, from.c_str(), 0);  // the old content; if it stays, it is swept
    return 0;
  }
  if (!is_unsupported(errno)) return errno;
  if (kind_of_entry(directory, to.c_str()) == 0) return ENOENT;
  return ::renameat(directory, from.c_str(), directory, to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

int write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int link_to_free_name(int directory, const std::string& from, const std::string& to) {
  if (::linkat(directory, from.c_str(), directory, to.c_str(), 0) != 0) return errno;
  ::unlinkat(directory, from.c_str(), 0);  // if it stays, it is swept
  return 0;
}

int rename_to_free_name(int directory, const std::string& from, const std::string& to) {
  if (::renameat2(directory, from.c_str(), directory, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  return is_unsupported(errno) ? link_to_free_name(directory, from, to) : errno;
}

NewFiles::~NewFiles() {
  // An empty name is one that is done with; somebody else may have that temporary by now.
  for (const Pending& file : pending_) {
    if (!file.temporary.empty()) remove(file.temporary);
  }
}

void NewFiles::remove(const std::string& name) const { ::unlinkat(directory_, name.c_str(), 0); }

Error NewFiles::failed(const std::string& name, int code) const {
  return io_error("write", path_ / name, code);
}

// A name that a crash has left is not taken over: another process may just be writing to it.
Result<UniqueFd> NewFiles::make_temporary(const std::string& name) {
  for (int number = 0; number < kMaxTemporaryNames; ++number) {
    std::string temporary = temporary_name(name, number);
    UniqueFd fd(::openat(directory_, temporary.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (!fd && errno == EEXIST) continue;
    if (!fd) return failed(name, errno);
    pending_.push_back({std::move(temporary), name});
    if (const int code = correct_mode(fd.get()); code != 0) return failed(name, code);
    return fd;
  }
  return failed(name, EEXIST);
}

// A umask may have taken more than it should. It is the same for all of a group, so the first file
// tells for the others.
int NewFiles::correct_mode(int fd) {
  if (mode_is_right_) return 0;
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno;
  mode_is_right_ = (info.st_mode & 07777) == kFileMode;
  return mode_is_right_ || ::fchmod(fd, kFileMode) == 0 ? 0 : errno;
}

Result<UniqueFd> NewFiles::make(const std::string& name) { return make_temporary(name); }

Status NewFiles::write(const std::vector<NewFile>& files) {
  const bool together = files.size() > kMostSyncedOneByOne;
  const UniqueFd file_system = together ? reopen_directory(directory_) : UniqueFd();
  if (together && !file_system) return io_error("open", path_, errno);
  std::vector<UniqueFd> open;
  pending_.reserve(files.size());
  for (const NewFile& file : files) {
    auto fd = make_temporary(file.name);
    if (!fd) return fd.error();
    reached("temporary made");
    int code = write_whole(fd->get(), file.content);
    if (code == 0 && together) code = close_checked(std::move(*fd));
    if (code != 0) return failed(file.name, code);
    if (!together) open.push_back(std::move(*fd));
    reached("temporary written");
  }
  REPRISE_TRY(sync_each(open));
  if (together && ::syncfs(file_system.get()) != 0) return io_error("sync", path_, errno);
  reached("data synced");
  return ok();
}

Status NewFiles::sync_each(const std::vector<UniqueFd>& open) {
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (TEMP_FAILURE_RETRY(::fsync(open[i].get())) != 0) return failed(pending_[i].name, errno);
  }
  return ok();
}

Status NewFiles::sync_names() {
  const int code = sync_directory(directory_);
  if (code != 0) return io_error("sync", path_, code);
  reached("directory synced");
  return ok();
}

Result<std::vector<std::string>> NewFiles::publish() {
  std::vector<std::string> taken;
  std::vector<std::string> named;
  const auto take_back = [&](Error error) {
    for (const std::string& name : named) remove(name);
    // Whether this is durable changes nothing any more: the error is told.
    sync_directory(directory_);
    return error;
  };
  for (Pending& file : pending_) {
    const int code = rename_to_free_name(directory_, file.temporary, file.name);
    if (code == EEXIST) {
      taken.push_back(file.name);
      remove(file.temporary);
    } else if (code != 0) {
      return take_back(failed(file.name, code));
    } else {
      named.push_back(file.name);
    }
    file.temporary.clear();
    reached("named");
  }
  if (auto synced = sync_names(); !synced) return take_back(synced.error());
  return taken;
}

Result<std::vector<std::string>> NewFiles::exchange() {
  std::vector<std::string> vanished;
  for (Pending& file : pending_) {
    const int code = exchange_names(directory_, file.temporary, file.name);
    if (code == ENOENT) {
      vanished.push_back(file.name);
      remove(file.temporary);
    } else if (code != 0) {
      return failed(file.name, code);
    }
    file.temporary.clear();
    reached("exchanged");
  }
  REPRISE_TRY(sync_names());
  return vanished;
}

Status NewFiles::overwrite() {
  for (Pending& file : pending_) {
    if (::renameat(directory_, file.temporary.c_str(), directory_, file.name.c_str()) != 0) {
      return failed(file.name, errno);
    }
    file.temporary.clear();
    reached("named");
  }
  REPRISE_TRY(sync_names());
  return ok();
}

}  // namespace reprise::spool
