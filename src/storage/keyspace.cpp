#include "storage/keyspace.h"

#include <cstddef>

namespace reprise::storage {
namespace {

constexpr std::array<std::string_view, kAllKeyspaces.size()> kNames = {
    "meta", "queues", "jobs", "states", "dead", "keys", "completed", "endings"};

}  // namespace

std::string_view keyspace_name(Keyspace keyspace) {
  return kNames[static_cast<std::size_t>(keyspace)];
}

}  // namespace reprise::storage
