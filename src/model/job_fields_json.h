// The parts that every JSON view of a job is made of, so that a field looks the same wherever it is
// shown: in the API's replies, in dead letters and in webhooks.
#pragma once

#include <string_view>

#include "base/json_writer.h"
#include "base/time.h"
#include "model/job.h"

namespace reprise {

// Null stands for "none" wherever the model has a value that means it.
void write_text_or_null(JsonWriter& out, std::string_view name, std::string_view text);
void write_time(JsonWriter& out, std::string_view name, Timestamp time);
void write_time_or_null(JsonWriter& out, std::string_view name, Timestamp time, bool is_set);

// "payload" as the JSON that came, or "payload_base64" for bytes.
void write_payload(JsonWriter& out, const JobRecord& record);
// fairness_key, weight, throttle_keys
void write_scheduling(JsonWriter& out, const Scheduling& scheduling);
void write_headers(JsonWriter& out, const Headers& headers);

}  // namespace reprise
