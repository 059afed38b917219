#include "storage/rocksdb/write_behind_files.h"

#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_name.h"

namespace reprise::storage {
namespace {

using ::rocksdb::FileOptions;
using ::rocksdb::IODebugContext;
using ::rocksdb::IOOptions;
using ::rocksdb::IOStatus;
using ::rocksdb::Slice;

constexpr std::size_t kBlockBytes = 4096;  // what writes past the page cache are made of
// Of one write: larger ones are no faster, and commits on the same disk wait behind each of them.
constexpr std::size_t kPieceBytes = 256U << 10;
constexpr std::size_t kPiecesMax = 6;  // of a file that wait for the disk
// Without hurry: three quarters of the time are for commits, but a slow disk makes nobody wait for
// minutes.
constexpr int kPauseShare = 3;
constexpr std::chrono::milliseconds kPauseMax{5};

IOStatus system_error(const std::string& path) {
  const int number = errno;
  const std::string why = std::generic_category().message(number);
  if (number == ENOSPC || number == EDQUOT) return IOStatus::NoSpace(path, why);
  if (number == EINVAL) return IOStatus::InvalidArgument(path, why);
  return IOStatus::IOError(path, why);
}

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Free>;

// Pieces that files use one after another. Threads: any.
class Pieces {
 public:
  Memory take() {
    {
      const std::lock_guard lock(mutex_);
      if (!unused_.empty()) {
        Memory memory = std::move(unused_.back());
        unused_.pop_back();
        return memory;
      }
    }
    Memory memory(static_cast<char*>(std::aligned_alloc(kBlockBytes, kPieceBytes)));
    if (!memory) throw std::bad_alloc();
    return memory;
  }
  void give_back(Memory memory) {
    const std::lock_guard lock(mutex_);
    unused_.push_back(std::move(memory));
  }

 private:
  std::mutex mutex_;
  std::vector<Memory> unused_;  // protected by mutex_
};

// Threads: one that fills it, and, once a piece is full, its own.
class WriteBehindFile final : public ::rocksdb::FSWritableFile {
 public:
  WriteBehindFile(std::string path, int file, std::shared_ptr<Pieces> pieces, const Pace& pace)
      : path_(std::move(path)),
        file_(file),
        pieces_(std::move(pieces)),
        pace_(pace),
        piece_(pieces_->take()) {}
  ~WriteBehindFile() override { (void)close(); }
  WriteBehindFile(const WriteBehindFile&) = delete;
  WriteBehindFile& operator=(const WriteBehindFile&) = delete;

  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t part = std::min(data.size() - at, kPieceBytes - piece_bytes_);
      std::memcpy(piece_.get() + piece_bytes_, data.data() + at, part);
      piece_bytes_ += part;
      at += part;
      if (piece_bytes_ == kPieceBytes) {
        if (auto status = hand_over(); !status.ok()) return status;
      }
    }
    return IOStatus::OK();
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const ::rocksdb::DataVerificationInfo&, IODebugContext* context) override {
    return Append(data, options, context);
  }

  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (auto status = finish_writing(); !status.ok()) return status;
    return checked(TEMP_FAILURE_RETRY(::fdatasync(file_)));
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return close(); }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override {
    return begin_ + piece_bytes_;
  }

 private:
  struct Piece {
    Memory memory;
    std::uint64_t begin{};
  };

  IOStatus checked(int result) const { return result == 0 ? IOStatus::OK() : system_error(path_); }

  // The piece is full; the next one is empty.
  IOStatus hand_over() {
    if (!writer_.joinable()) writer_ = std::thread([this] { write(); });
    std::unique_lock lock(mutex_);
    waiting_.push_back({std::move(piece_), begin_});
    changed_.notify_all();
    begin_ += kPieceBytes;
    piece_bytes_ = 0;
    changed_.wait(lock, [this] { return waiting_.size() + (writing_ ? 1 : 0) < kPiecesMax; });
    piece_ = pieces_->take();
    return failure_;
  }

  // All of it, up to its last byte. More may follow: then the last blocks are written once more.
  IOStatus finish_writing() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return waiting_.empty() && !writing_; });
      if (!failure_.ok()) return failure_;
    }
    if (piece_bytes_ == 0) return IOStatus::OK();
    const std::size_t whole = (piece_bytes_ + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    std::memset(piece_.get() + piece_bytes_, 0, whole - piece_bytes_);
    if (auto status = write_blocks(piece_.get(), begin_, whole); !status.ok()) return status;
    const auto size = static_cast<off_t>(begin_ + piece_bytes_);
    return checked(TEMP_FAILURE_RETRY(::ftruncate(file_, size)));
  }

  IOStatus close() {
    if (file_ < 0) return IOStatus::OK();
    auto status = finish_writing();
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (writer_.joinable()) writer_.join();
    pieces_->give_back(std::move(piece_));
    const bool closed = ::close(std::exchange(file_, -1)) == 0;
    return status.ok() && !closed ? system_error(path_) : status;
  }

  // What its thread does. After a failure nothing more is written.
  void write() {
    name_this_thread("write behind");
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      Piece piece = std::move(waiting_.front());
      waiting_.pop_front();
      if (failure_.ok()) {
        writing_ = true;
        lock.unlock();
        const auto began = std::chrono::steady_clock::now();
        auto status = write_blocks(piece.memory.get(), piece.begin, kPieceBytes);
        if (!pace_.hurries()) pause_after(std::chrono::steady_clock::now() - began);
        lock.lock();
        writing_ = false;
        failure_ = std::move(status);
      }
      pieces_->give_back(std::move(piece.memory));
      changed_.notify_all();
    }
  }

  static void pause_after(std::chrono::nanoseconds writing) {
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(kPauseShare * writing, kPauseMax));
  }

  IOStatus write_blocks(const char* memory, std::uint64_t begin, std::size_t bytes) const {
    for (std::size_t at = 0; at < bytes;) {
      const ssize_t written =
          ::pwrite(file_, memory + at, bytes - at, static_cast<off_t>(begin + at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error(path_);
      if (written == 0 || static_cast<std::size_t>(written) % kBlockBytes != 0) {
        return IOStatus::IOError(path_, "a write was cut short");
      }
      at += static_cast<std::size_t>(written);
    }
    return IOStatus::OK();
  }

  const std::string path_;
  int file_;
  const std::shared_ptr<Pieces> pieces_;
  const Pace& pace_;
  // Of the thread that fills it.
  Memory piece_;
  std::size_t piece_bytes_ = 0;
  std::uint64_t begin_ = 0;  // where the piece is in the file; all before was handed over

  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  std::deque<Piece> waiting_;
  bool writing_ = false;
  bool closing_ = false;
  IOStatus failure_;

  std::thread writer_;  // last: it uses all of the above
};

class WriteBehindFiles final : public ::rocksdb::FileSystemWrapper {
 public:
  explicit WriteBehindFiles(const Pace& pace)
      : FileSystemWrapper(::rocksdb::FileSystem::Default()), pace_(pace) {}
  const char* Name() const override { return "WriteBehindFiles"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions&,
                           std::unique_ptr<::rocksdb::FSWritableFile>* made,
                           IODebugContext*) override {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_DIRECT;
    constexpr mode_t kMode = 0644;
    const int file = ::open(path.c_str(), kFlags, kMode);
    if (file < 0) return system_error(path);
    *made = std::make_unique<WriteBehindFile>(path, file, pieces_, pace_);
    return IOStatus::OK();
  }

 private:
  const Pace& pace_;
  const std::shared_ptr<Pieces> pieces_ = std::make_shared<Pieces>();
};

}  // namespace

std::unique_ptr<::rocksdb::Env> make_write_behind_files(const Pace& pace) {
  return ::rocksdb::NewCompositeEnv(std::make_shared<WriteBehindFiles>(pace));
}

}  // namespace reprise::storage
