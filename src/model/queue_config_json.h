// QueueConfig to and from JSON: the one place that knows the field names, for the API, storage and
// config files.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "model/queue.h"

namespace reprise {

// Changes the fields that `json` names and leaves the others: over a default-constructed config it
// is a PUT, over an existing one a PATCH. null puts a field back to its default. `breaker` is
// replaced as a whole. On error `config` is unchanged and the message names the field.
// `text`, when there is one, is what `json` was read from: numbers in `defaults` then stay as they
// are written there ("1.0" stays "1.0").
Status apply_config_json(QueueConfig& config, const Json& json, std::string_view text = {});

void write_config_json(JsonWriter& out, const QueueConfig& config);

}  // namespace reprise
