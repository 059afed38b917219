// Follow: drains for ever (docs/spool.md, `--follow`): a run, then a wait for new files or for the
// time to try again.
#pragma once

#include <functional>

#include "base/clock.h"
#include "base/result.h"
#include "base/time.h"
#include "spool/drain.h"
#include "spool/queue_watch.h"

namespace reprise::spool {

// What follow() waits on: the real one uses a QueueWatch.
using WaitForFiles = std::function<bool(Duration longest)>;

// Until an interrupt or something that a person must fix. The result is that of all runs together;
// `remaining`, `retried` and `rejected_files` are the last state, what waits for its time included.
Result<DrainResult> follow(Drain& drain, const WaitForFiles& wait_for_files, const Clock& clock,
                           Pauses& pauses, const DrainWatcher& watcher);

}  // namespace reprise::spool
