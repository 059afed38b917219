// Tables of jobs that are all gone: a backlog that is worked off in order leaves them one after
// another. Thrown away whole, they need no tombstones, and no compaction has to read and merge what
// nobody wants any more.
#pragma once

#include <functional>

#include "base/result.h"
#include "storage/durable/overlay.h"
#include "storage/rocksdb/database.h"

namespace reprise::storage {

// Throws away each table of jobs in which the overlay, the next to be written to the base, leaves
// nothing. Two that know nothing of each other have to agree on that: the job index, by which every
// job in the table's range is erased in the overlay, and the table itself, which must hold just as
// many. Where they do not, the table stays, and with it what may be wrong.
//
// Durable when it returns, and ahead of the rest of the checkpoint, which is harmless: the journal
// has the erasures, synced, and until the checkpoint is done a start finds them there.
//
// `nobody_looks_back` is asked when there are such tables: whether no reader is left that wants to
// see what was there before the overlay's last batch; from then on none comes, either.
Status drop_dead_tables(Database& base, const Overlay& overlay,
                        const std::function<bool()>& nobody_looks_back);

}  // namespace reprise::storage
