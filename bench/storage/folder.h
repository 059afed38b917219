// Folders of a run: made empty, looked at, taken away, and taken out of the kernel's memory.
#pragma once

#include <cstdint>
#include <string>

namespace reprise::bench {

// A folder that is there, and empty, while this lives. What it held is gone from the disk when the
// next measurement begins, so that none pays for the one before.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string path);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// Waits until the folder's file system has nothing left to write.
void settle_disk(const std::string& folder);

// Of all files below, allocated and not apparent: a preallocated file counts as a whole.
std::uint64_t allocated_bytes(const std::string& folder);

// Makes the next read of each file below one of the disk, as after a start of the machine.
void drop_from_page_cache(const std::string& folder);

}  // namespace reprise::bench
