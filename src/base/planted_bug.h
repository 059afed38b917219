// PlantedBug: faults put into the server on purpose, to see whether the oracle of tests/crash finds
// each of them and calls it by its name.
// Invariants: in the product planted() is the constant false, so the compiler leaves nothing of a
// plant. Only reprise_planted, a program that is made for the tests, is compiled with
// REPRISE_PLANTED_BUGS, and there the environment variable PLANTED_BUG says which bug is on.
// A file that plants a bug is in the list of that program in tests/crash/CMakeLists.txt.
// Threads: any.
#pragma once

#include <cstdint>

#include "base/ids.h"

#ifdef REPRISE_PLANTED_BUGS
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#endif

namespace reprise {

// Each is what the oracle calls it, and what the environment calls it.
enum class PlantedBug : std::uint8_t {
  lost,            // a job that failed is deleted instead of kept
  phantom,         // a push that was refused is stored all the same
  resurrected,     // an acked job stays on disk
  double_lease,    // an extension is answered and not made
  stale_token,     // a token is taken whoever holds the lease now
  wrong_attempts,  // a lease counts as two
  stuck,           // the timer of a delayed job is set too late
  corrupted,       // a byte of a payload changes on its way out
  duplicate,       // a key is not remembered
  wrong_death,     // a job dies one failure too early
  wrong_order,     // a job waits behind others that came later
  wrong_stats,     // an ack is not counted
  early,           // the timer of a delayed job is set too early
};

#ifdef REPRISE_PLANTED_BUGS

inline bool planted(PlantedBug bug) {
  static constexpr std::array<std::string_view, 13> kNames = {
      "lost",           "phantom",     "resurrected", "double_lease", "stale_token",
      "wrong_attempts", "stuck",       "corrupted",   "duplicate",    "wrong_death",
      "wrong_order",    "wrong_stats", "early"};
  static const char* const wanted = std::getenv("PLANTED_BUG");
  return wanted != nullptr && kNames[static_cast<std::size_t>(bug)] == wanted;
}

// One job of eight: a server that is wrong every time would be found out by any test.
inline bool planted(PlantedBug bug, Seq job) { return job % 8 == 0 && planted(bug); }

#else

constexpr bool planted(PlantedBug /*bug*/) { return false; }
constexpr bool planted(PlantedBug /*bug*/, Seq /*job*/) { return false; }

#endif

}  // namespace reprise
