// Keyspace: the ordered maps that a storage holds. A job's status decides where it lives, so every
// move is one atomic batch. Keys and values are laid out in docs/format.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace reprise::storage {

// The values are part of the stored format.
enum class Keyspace : std::uint8_t {
  meta = 0,
  queues = 1,
  jobs = 2,
  states = 3,
  dead = 4,
  keys = 5,
  completed = 6,
  endings = 7,  // dead and completed jobs by the time they ended
};

inline constexpr std::array kAllKeyspaces = {Keyspace::meta,      Keyspace::queues, Keyspace::jobs,
                                             Keyspace::states,    Keyspace::dead,   Keyspace::keys,
                                             Keyspace::completed, Keyspace::endings};

// Those whose keys begin with a queue's number: what goes when the queue goes.
inline constexpr std::array kQueueKeyspaces = {Keyspace::jobs,      Keyspace::states,
                                               Keyspace::dead,      Keyspace::keys,
                                               Keyspace::completed, Keyspace::endings};

std::string_view keyspace_name(Keyspace keyspace);

}  // namespace reprise::storage
