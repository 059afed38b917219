#include "spool/raw_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "spool/directory.h"
#include "spool/new_files.h"

namespace reprise::spool {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;

// Up to a piece from `offset` on. 0, or an errno.
int read_piece(int fd, off_t offset, std::string& piece) {
  piece.resize(kPieceBytes);
  std::size_t have = 0;
  while (have < piece.size()) {
    const ssize_t got =
        ::pread(fd, piece.data() + have, piece.size() - have, offset + static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  piece.resize(have);
  return 0;
}

// No hard links here, or not to a file of somebody else's.
bool needs_a_copy(int code) {
  return code == EPERM || code == EOPNOTSUPP || code == ENOSYS || code == EMLINK || code == EXDEV;
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// One name in queue/ and one in dead-letter/, and what is behind them.
struct RawPair {
  int queue;
  int dead;
  const std::string& queue_name;
  const std::string& raw_name;
};

// Whether the name that is taken is that of the very bytes we want to keep: a burial that was cut
// off has linked, or copied, them already.
Result<bool> is_kept_already(const RawPair& pair, const std::filesystem::path& path) {
  struct stat from {};
  struct stat kept {};
  if (::fstatat(pair.queue, pair.queue_name.c_str(), &from, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::fstatat(pair.dead, pair.raw_name.c_str(), &kept, AT_SYMLINK_NOFOLLOW) != 0) {
    return io_error("keep the bytes of", path, errno);
  }
  if (same_file(from, kept)) return true;
  if (!S_ISREG(kept.st_mode) || from.st_size != kept.st_size) return false;
  FileContent ignored;
  const UniqueFd one = open_regular(pair.queue, pair.queue_name, ignored);
  const UniqueFd other = open_regular(pair.dead, pair.raw_name, ignored);
  if (!one || !other) return false;
  return same_bytes(one.get(), other.get()) == 1;
}

}  // namespace

int copy_bytes(int from, int to) {
  std::string piece;
  for (off_t offset = 0;; offset += static_cast<off_t>(piece.size())) {
    if (const int code = read_piece(from, offset, piece); code != 0) return code;
    if (piece.empty()) return 0;
    if (const int code = write_whole(to, piece); code != 0) return code;
  }
}

int same_bytes(int one, int other) {
  std::string piece;
  std::string other_piece;
  for (off_t offset = 0;; offset += static_cast<off_t>(piece.size())) {
    if (const int code = read_piece(one, offset, piece); code != 0) return -code;
    if (const int code = read_piece(other, offset, other_piece); code != 0) return -code;
    if (piece != other_piece) return 0;
    if (piece.empty()) return 1;
  }
}

Result<bool> SpoolFiles::keep_raw(const Writing&, const std::string& queue_name,
                                  const std::string& raw_name) {
  const RawPair pair{queue_.get(), dead_letter_.get(), queue_name, raw_name};
  const auto path = folder_path(Folder::queue) / queue_name;
  const auto dead_path = folder_path(Folder::dead_letter);
  FileContent content;
  const UniqueFd file = open_regular(pair.queue, queue_name, content);
  // Who wrote it may not have synced it; a file that we may not open can only be linked.
  if (file) {
    ::fchmod(file.get(), 0600);
    if (TEMP_FAILURE_RETRY(::fsync(file.get())) != 0) return io_error("sync", path, errno);
  }
  if (::linkat(pair.queue, queue_name.c_str(), pair.dead, raw_name.c_str(), 0) == 0) {
    reached("linked");
  } else if (errno == EEXIST) {
    return is_kept_already(pair, path);
  } else if (!needs_a_copy(errno) || !file) {
    return io_error("keep the bytes of", path, errno);
  } else {
    NewFiles copy(pair.dead, dead_path, observer_);
    auto to = copy.make(raw_name);
    if (!to) return to.error();
    if (int code = copy_bytes(file.get(), to->get());
        code != 0 || TEMP_FAILURE_RETRY(::fsync(to->get())) != 0) {
      return io_error("keep the bytes of", path, code != 0 ? code : errno);
    }
    auto taken = copy.publish();
    if (!taken) return taken.error();
    if (taken->empty()) return true;
    return is_kept_already(pair, path);
  }
  if (const int code = sync_directory(pair.dead); code != 0) {
    ::unlinkat(pair.dead, raw_name.c_str(), 0);
    return io_error("sync", dead_path, code);
  }
  return true;
}

}  // namespace reprise::spool
