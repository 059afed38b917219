// Parts of a reply as fields of a Record, whatever they hold: a server that has learned a new
// setting or counter shows it without a new command line.
#pragma once

#include <string>
#include <string_view>

#include "base/json_view.h"
#include "cli/table.h"

namespace reprise::cli {

// One field for a plain value; for an object one for each member, for an array one for each
// element, however deep: "config.retry.backoff.base". The label is the path from `label_from` on,
// in words: "retry backoff base".
void add_fields(Record& record, const std::string& path, JsonView value,
                std::size_t label_from = 0);

}  // namespace reprise::cli
