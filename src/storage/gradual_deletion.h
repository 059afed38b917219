// GradualDeletion: gives the space of large files back a little at a time.
//
// Where a file system tells the disk of every block that it frees (ext4 with `discard`, as cloud
// images have it), deleting 16 MiB takes 25 ms, and no synced write, of any file, ends meanwhile: a
// compaction that replaces ten files would hold commits up for a quarter of a second. So a file
// that is to be deleted gets another name at once, and a thread cuts off its end, a step and a
// pause, until nothing is left.
//
// What a stop leaves is deleted after the next start.
// Threads: any; one of its own. The real disk only.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace reprise::storage {

class GradualDeletion {
 public:
  // What such a file is called: its own name and this.
  static constexpr char kSuffix[] = ".gone";

  // Begins with what is left of files in `directory` whose names ended in `extension`.
  GradualDeletion(std::string directory, std::string_view extension);
  ~GradualDeletion();  // leaves what has not been deleted yet
  GradualDeletion(const GradualDeletion&) = delete;
  GradualDeletion& operator=(const GradualDeletion&) = delete;

  const std::string& directory() const { return directory_; }

  // A file in the directory. False: it is small, or has a second name (backups link to files), and
  // the caller deletes it as ever; or it is not there.
  [[nodiscard]] bool take(const std::string& path);
  // Deletes all that waits, without pauses. Returns when it is gone, or soon after `interrupted`.
  void finish(const std::atomic<bool>& interrupted);

 private:
  struct Doomed {
    std::string path;
    std::int64_t bytes = 0;
  };

  void add(Doomed file);
  void run();
  void delete_first(std::unique_lock<std::mutex>& lock);
  void pause(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::duration step);
  bool disk_wants_it() const;

  const std::string directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  std::deque<Doomed> waiting_;
  std::int64_t bytes_ = 0;  // of all that waits
  int hurries_ = 0;
  bool stopping_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace reprise::storage
