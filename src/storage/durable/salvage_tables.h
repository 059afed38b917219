// A base put together again from its table files alone, when no manifest says which of them count
// and in which order.
//
// That order is not in the files. But what is kept has an order of its own: a job is written once
// and erased once, counters only rise, clocks only go forward. So the versions of a key can be
// compared by what they say, and an erasure of a job counts wherever it stands. Notes say nothing
// about their order: for them the names of the tables decide, which rise as tables are made.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "storage/durable/salvage_report.h"
#include "storage/rocksdb/database.h"

namespace reprise::storage {

// Makes a database in `into`, a directory that is not there yet; `directory` is only read. Its
// index stays empty.
Result<std::unique_ptr<Database>> rebuild_from_tables(const std::string& directory,
                                                      const std::string& into, DamageLog& damage);

}  // namespace reprise::storage
