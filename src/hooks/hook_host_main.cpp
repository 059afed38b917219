#include "hooks/hook_host_main.h"

#include "hooks/host/host_server.h"
#include "hooks/nursery.h"

namespace reprise::hooks {

int hook_host_main() { return run_nursery(kNurseryControlFd, run_host); }

}  // namespace reprise::hooks
