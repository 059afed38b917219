// A cursor over the base with the overlays on top, at one moment.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string_view>

#include "storage/durable/overlay_view.h"
#include "storage/rocksdb/database.h"
#include "storage/storage.h"

namespace reprise::storage {

class SeekableCursor : public Storage::Cursor {
 public:
  // To the first key at or after this one.
  virtual void seek(std::string_view key) = 0;
};

// All that is passed must outlive the cursor. `snapshot` may be null.
std::unique_ptr<Storage::Cursor> make_merged_cursor(const Database& base,
                                                    const ::rocksdb::Snapshot* snapshot,
                                                    const OverlayView& overlays, Keyspace keyspace,
                                                    std::string_view begin, std::string_view end);

// The same over any base, which has no keys at or after `end`.
std::unique_ptr<Storage::Cursor> make_merged_cursor(std::unique_ptr<SeekableCursor> base,
                                                    const OverlayView& overlays, Keyspace keyspace,
                                                    std::string_view begin, std::string_view end);

// The base alone.
std::unique_ptr<Storage::Cursor> make_base_cursor(const Database& base,
                                                  const ::rocksdb::Snapshot* snapshot,
                                                  ::rocksdb::ColumnFamilyHandle* family,
                                                  std::string_view begin, std::string_view end);

}  // namespace reprise::storage
