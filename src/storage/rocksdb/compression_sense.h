// CompressionSense: whether the next table file is worth compressing, by what became of those
// before it. To try what cannot be compressed takes a fifth of a checkpoint's time, for blocks that
// are stored as they are in the end. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>

namespace rocksdb {
class ColumnFamilyHandle;
}

namespace reprise::storage {

class CompressionSense {
 public:
  // Of a file of this family that is about to be written.
  bool compresses(const ::rocksdb::ColumnFamilyHandle* family);
  // What became of one that was compressed.
  void learn(const ::rocksdb::ColumnFamilyHandle* family, std::uint64_t bytes,
             std::uint64_t stored_bytes);

 private:
  std::map<const ::rocksdb::ColumnFamilyHandle*, unsigned> files_left_as_they_are_;
};

}  // namespace reprise::storage
