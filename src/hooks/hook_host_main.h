// What `reprise hook-host` does: nothing that a person would start by hand.
#pragma once

namespace reprise::hooks {

// The nursery of hook hosts, with the control socket at descriptor 3; returns the exit status.
int hook_host_main();

}  // namespace reprise::hooks
