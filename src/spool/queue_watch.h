// QueueWatch: waits for new files in queue/, with inotify.
// Threads: one owner.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "spool/drain.h"
#include "spool/spool_files.h"

namespace reprise::spool {

class QueueWatch {
 public:
  // What arrives from now on ends the next wait.
  static Result<QueueWatch> start(const SpoolFiles& files);
  // True: something has arrived, maybe; false: the time is over or `pauses` was interrupted.
  bool wait(Duration longest, const Pauses& pauses);

 private:
  explicit QueueWatch(UniqueFd fd) : fd_(std::move(fd)) {}
  // Reads all that there is to read. True: some of it is about an event's file.
  bool take_arrivals();

  UniqueFd fd_;
};

}  // namespace reprise::spool
