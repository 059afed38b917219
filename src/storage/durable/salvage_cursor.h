// A cursor over an iterator of RocksDB that steps over what cannot be read.
//
// RocksDB does not say where an unreadable block ends. So the cursor feels its way: it tries keys
// further and further behind the place, and then between the last that failed and the first that
// did not. In between, what other tables have is read one by one (salvage_holes.h).
#pragma once

#include <rocksdb/iterator.h>

#include <memory>
#include <string_view>

#include "storage/durable/merged_cursor.h"
#include "storage/durable/salvage_holes.h"
#include "storage/durable/salvage_report.h"

namespace reprise::storage {

class SkippingCursor : public SeekableCursor {
 public:
  // What is unreadable may have had a later word on this key.
  virtual bool doubtful() const = 0;
};

// `family` tells how long keys are. `holes` may be null: what is beside the unreadable is left out.
// The iterator's source must outlive the cursor, whose status is always ok: damage goes to
// `damage`.
std::unique_ptr<SkippingCursor> make_skipping_cursor(std::unique_ptr<::rocksdb::Iterator> iterator,
                                                     std::string_view family, DamageLog& damage,
                                                     std::unique_ptr<HoleReader> holes = nullptr);

}  // namespace reprise::storage
