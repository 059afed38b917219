// Interrupts (SIGINT, SIGTERM) for commands that do something about them. Without it, a signal ends
// the command at once.
// Threads: the command line has one.
#pragma once

#include <cstdint>

namespace reprise::cli {

enum class NextInterrupt : std::uint8_t {
  ignored,  // the first one ends the command soon
  ends,     // the first one begins something that may take long
};

// From now on the first interrupt is only remembered. Those that follow within half a second count
// as the same one: `timeout` and shells send a signal to a process and to its group.
void catch_interrupts(NextInterrupt next);
bool interrupted();

}  // namespace reprise::cli
