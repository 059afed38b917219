// The job index as it is in the base.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/durable/job_index.h"
#include "storage/durable/merged_cursor.h"

namespace reprise::storage {

class BaseChunks final : public ChunkSource {
 public:
  // `snapshot` may be null: as it is now.
  BaseChunks(const Database& base, const ::rocksdb::Snapshot* snapshot)
      : base_(base), snapshot_(snapshot) {}

  Result<std::optional<std::string>> get(std::string_view key) const override {
    ::rocksdb::ReadOptions options;
    options.snapshot = snapshot_;
    return base_.read(options, base_.index(), key);
  }
  std::unique_ptr<Storage::Cursor> cursor(std::string_view begin,
                                          std::string_view end) const override {
    return make_base_cursor(base_, snapshot_, base_.index(), begin, end);
  }

 private:
  const Database& base_;
  const ::rocksdb::Snapshot* const snapshot_;
};

}  // namespace reprise::storage
