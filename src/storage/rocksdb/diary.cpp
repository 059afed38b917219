#include "storage/rocksdb/diary.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/time.h"

namespace reprise::storage {
namespace {

constexpr off_t kFileBytesMax = 1 << 20;

class Diary final : public ::rocksdb::Logger {
 public:
  explicit Diary(std::string database)
      : Logger(::rocksdb::InfoLogLevel::INFO_LEVEL), path_(std::move(database) + "/LOG") {}
  ~Diary() override { close_file(); }

  using Logger::Logv;
  void Logv(const char* format, std::va_list arguments) override {
    std::array<char, 2048> text{};
    std::vsnprintf(text.data(), text.size(), format, arguments);
    const auto now = std::chrono::floor<Duration>(std::chrono::system_clock::now());
    const std::string line = format_timestamp(now) + " " + text.data() + "\n";
    const std::lock_guard lock(mutex_);
    if (!open_file()) return;
    if (::write(file_, line.data(), line.size()) < 0) close_file();
  }

 private:
  bool open_file() {
    if (file_ >= 0 && is_full()) {
      close_file();
      std::rename(path_.c_str(), (path_ + ".old").c_str());
    }
    if (file_ < 0) {
      file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    }
    return file_ >= 0;
  }
  bool is_full() const {
    struct stat status {};
    return ::fstat(file_, &status) == 0 && status.st_size >= kFileBytesMax;
  }
  void close_file() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }

  const std::string path_;
  std::mutex mutex_;
  int file_ = -1;  // protected by mutex_
};

class NoDiary final : public ::rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, std::va_list) override {}
};

}  // namespace

std::shared_ptr<::rocksdb::Logger> make_diary(std::string database) {
  return std::make_shared<Diary>(std::move(database));
}

std::shared_ptr<::rocksdb::Logger> make_no_diary() { return std::make_shared<NoDiary>(); }

}  // namespace reprise::storage
