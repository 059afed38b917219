#include "folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "load_error.h"

namespace reprise::bench {
namespace {

namespace fs = std::filesystem;

// Calls `use` with each regular file below. Files may vanish at any time: compactions remove them.
template <class Use>
void for_each_file(const std::string& folder, const Use& use) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error)) {
    if (at->is_regular_file(error)) use(at->path());
    error.clear();
  }
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

ScratchFolder::ScratchFolder(std::string path) : path_(std::move(path)) {
  fs::remove_all(path_);
  fs::create_directories(path_);
  settle_disk(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void settle_disk(const std::string& folder) {
  const Descriptor descriptor(folder);
  if (descriptor.get() < 0 || syncfs(descriptor.get()) != 0) {
    throw LoadError(folder + ": " + std::strerror(errno));
  }
}

std::uint64_t allocated_bytes(const std::string& folder) {
  constexpr std::uint64_t kBlockBytes = 512;  // of st_blocks, whatever the file system's are
  std::uint64_t bytes = 0;
  for_each_file(folder, [&](const fs::path& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0) {
      bytes += static_cast<std::uint64_t>(status.st_blocks) * kBlockBytes;
    }
  });
  return bytes;
}

void drop_from_page_cache(const std::string& folder) {
  settle_disk(folder);  // what is not written yet cannot be dropped
  for_each_file(folder, [](const fs::path& path) {
    const Descriptor file(path);
    if (file.get() >= 0) posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  });
}

}  // namespace reprise::bench
