// A hook host for tests that knows no Lua: messages and sources tell it what to do, rudeness
// included. Runs in place of the real one, as the body of a nursery's host.
//
// The error of an on_failure message is its order:
//   ""              retry, with `failures` milliseconds as the delay
//   "script"        dead, with the hook's source as the reason
//   "config KEY"    dead, with the value as the reason ("nil" when there is none)
//   "payload"       dead, with the payload as the reason; asks for it when it has not come
//   "pid"           dead, with the number of the process as the reason
//   "log N"         like "", with N lines of log
//   "fail"          a HookFailure
//   "loop", "sleep MS", "exit", "abort"                 it runs, waits or ends in mid-call
//   "garbage", "wrong batch", "wrong place", "wrong type", "too many"  it answers nonsense
//   "silent exit"   it ends and says that no call was running
//   "false page"    it hangs and says that a call runs which does not exist
//   "hidden hang"   it hangs and says that no call runs
// on_enqueue messages are all answered with weight 7.
//
// A source with "loop at load", "exit at load", "nonsense at load" or "problem at load" does that.
#pragma once

#include "hooks/protocol.h"

namespace reprise::test {

void run_scripted_host(int socket, hooks::HostProgress& progress);

}  // namespace reprise::test
