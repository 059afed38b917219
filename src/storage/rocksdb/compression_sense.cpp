#include "storage/rocksdb/compression_sense.h"

namespace reprise::storage {
namespace {

// What saves less than an eighth is not worth it, and is tried again after so many files: payloads
// may be others by then. A small file tells little.
constexpr unsigned kFilesLeftAsTheyAre = 15;
constexpr std::uint64_t kTellingBytesMin = 1ULL << 20;

}  // namespace

bool CompressionSense::compresses(const ::rocksdb::ColumnFamilyHandle* family) {
  unsigned& left = files_left_as_they_are_[family];
  if (left == 0) return true;
  --left;
  return false;
}

void CompressionSense::learn(const ::rocksdb::ColumnFamilyHandle* family, std::uint64_t bytes,
                             std::uint64_t stored_bytes) {
  if (bytes < kTellingBytesMin || stored_bytes <= bytes - bytes / 8) return;
  files_left_as_they_are_[family] = kFilesLeftAsTheyAre;
}

}  // namespace reprise::storage
