// RunLog: the output of a run in a file that never grows beyond a limit; what is beyond is counted.
// Trouble with the disk is not the run's: what cannot be written is counted as left out.
// Threads: any; appending waits for the disk's cache at most.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "worker/worker_service.h"

namespace reprise::worker {

class RunLog {
 public:
  RunLog(std::string path, std::uint64_t bytes_max);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  // False: nothing of it was kept.
  bool append(std::string_view bytes);
  // Writes how much was left out, and closes the file.
  void finish();

  std::uint64_t bytes() const;
  std::uint64_t left_out() const;

 private:
  bool write_locked(std::string_view bytes);

  const std::string path_;
  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;
  int fd_ = -1;
  std::uint64_t bytes_ = 0;
  std::uint64_t left_out_ = 0;
};

// A piece of a file, as LogQuery asks for it (but for waiting). A file that is not there is empty.
LogPart read_log_file(const std::string& path, const LogQuery& query);

// WorkerLog: what a worker did lately, in lines. Two files take turns: the older one goes when the
// younger is full. Places in it count from the beginning of this run of the server.
// Threads: any.
class WorkerLog {
 public:
  static constexpr std::uint64_t kFileBytes = 2ULL << 20;

  explicit WorkerLog(std::string path, std::uint64_t file_bytes = kFileBytes);
  ~WorkerLog();
  WorkerLog(const WorkerLog&) = delete;
  WorkerLog& operator=(const WorkerLog&) = delete;

  void append(std::string_view lines);
  LogPart read(const LogQuery& query) const;
  std::uint64_t end() const;

 private:
  void turn_over();

  const std::string path_;
  const std::string old_path_;
  const std::uint64_t file_bytes_;
  mutable std::mutex mutex_;
  int fd_ = -1;
  std::uint64_t begin_ = 0;    // of the younger file
  std::uint64_t written_ = 0;  // in it
  std::uint64_t old_bytes_ = 0;
};

}  // namespace reprise::worker
