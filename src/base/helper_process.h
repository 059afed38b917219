// A helper process: a program, mostly this very one, started anew with a socket to us.
//
// Being exec'd it has neither our threads nor our memory, so it can fork where we must not. It
// begins without our signals, terminal, session, descriptors and environment: secrets in there are
// none of its business.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace reprise {

// Where the helper finds its end of the socket, a SOCK_SEQPACKET. 0 to 2 are /dev/null.
inline constexpr int kHelperSocketFd = 3;

struct HelperProcess {
  UniqueFd socket;  // our end; does not block
  pid_t pid = 0;    // for the caller to reap
};

// `program` is started with one argument; empty: this very program. `variables` ("NAME=value") are
// its environment, with what any program needs to run. Errc::io: it cannot be started.
Result<HelperProcess> start_helper(const std::string& program, std::string argument,
                                   std::vector<std::string> variables = {});

}  // namespace reprise
