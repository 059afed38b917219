// Selection: which jobs a retry or purge by filter means, a page at a time, and what the jobs of a
// queue died of. Reads committed storage only; what is found is judged again by the engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "broker/browse.h"
#include "model/operation.h"
#include "storage/storage.h"

namespace reprise {

struct SelectedPage {
  std::vector<Seq> jobs;  // the longest dead first
  std::string cursor;     // for the next page
  bool finished = false;  // there is none
};

// The jobs that `operation` selects, from its cursor on: at most `most`, and after so many that
// were looked at. A job that ended after the operation began is not among them.
Result<SelectedPage> select_page(const storage::Storage& storage, const Operation& operation,
                                 std::size_t most);

// All of them, counted.
Result<SelectionPreview> preview_selection(const storage::Storage& storage,
                                           const Operation& operation);

Result<ErrorGroups> group_errors(const storage::Storage& storage, QueueNumber queue,
                                 const ErrorGroupsQuery& query, Timestamp now);

}  // namespace reprise
