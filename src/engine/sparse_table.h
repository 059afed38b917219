// Hash tables do not give back what they once needed; this makes them, now and then.
#pragma once

#include <cstddef>

namespace reprise {

template <class Table>
void shrink_if_sparse(Table& table) {
  constexpr std::size_t kNotWorthIt = 1024;
  if (table.capacity() > kNotWorthIt && table.size() < table.capacity() / 16) table.rehash(0);
}

}  // namespace reprise
