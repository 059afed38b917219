#include "journal_floor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "load_error.h"

namespace reprise::bench {
namespace {

constexpr std::size_t kMebi = 1U << 20;
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kContentBytes = 4 * kMebi;
constexpr std::size_t kOverwrittenBytes = 64 * kMebi;
constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();

[[noreturn]] void fail() {
  throw LoadError(fmt::format("journal floor: {}", std::strerror(errno)));
}

// What is written, whatever the batch: a batch does not show its bytes. Direct writes want it at
// the start of a block.
struct Content {
  Content() : bytes(static_cast<char*>(std::aligned_alloc(kBlockBytes, kContentBytes))) {
    std::mt19937_64 random(42);
    for (std::size_t i = 0; i < kContentBytes; ++i) bytes[i] = static_cast<char>(random());
  }
  ~Content() { std::free(bytes); }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  char* const bytes;
};

class JournalFloor final : public OneStepCommitter {
 public:
  JournalFloor(const std::string& path, JournalKind kind)
      : kind_(kind),
        reuse_after_(kind == JournalKind::append ? kUnbounded : kOverwrittenBytes),
        fd_(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC | (is_direct() ? O_DIRECT : 0),
                 0600)) {
    if (fd_ < 0) fail();
    if (kind == JournalKind::append) return;
    while (at_ < reuse_after_) write_next(kContentBytes, 0);
    if (fsync(fd_) != 0) fail();
  }
  ~JournalFloor() override { close(fd_); }
  JournalFloor(const JournalFloor&) = delete;
  JournalFloor& operator=(const JournalFloor&) = delete;

  void commit(const storage::Batch& batch, storage::Durability durability) override {
    const bool synced = durability == storage::Durability::synced;
    std::size_t bytes = batch.byte_size();
    if (is_direct()) bytes = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    if (bytes > kContentBytes) throw LoadError("journal floor: the batches are too large for it");
    if (bytes > reuse_after_ - at_) at_ = 0;
    write_next(bytes, synced && is_direct() ? RWF_DSYNC : 0);
    if (synced && !is_direct()) sync();
  }
  void sync() override {
    if (fdatasync(fd_) != 0) fail();
  }

 private:
  bool is_direct() const { return kind_ == JournalKind::direct; }

  void write_next(std::size_t bytes, int flags) {
    const iovec part{.iov_base = content_.bytes, .iov_len = bytes};
    const auto written = pwritev2(fd_, &part, 1, static_cast<off_t>(at_), flags);
    if (written != static_cast<ssize_t>(bytes)) fail();
    at_ += bytes;
  }

  const JournalKind kind_;
  const std::size_t reuse_after_;
  const int fd_;
  const Content content_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Committer> open_journal_floor(const std::string& folder, JournalKind kind) {
  return std::make_unique<JournalFloor>(folder + "/journal", kind);
}

}  // namespace reprise::bench
