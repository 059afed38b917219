// The scheduling attributes of a job as bytes, the same in its record and in the job index. Those
// that most jobs have, the default, are no bytes at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/job.h"

namespace reprise::storage {

std::string encode_scheduling(const Scheduling& scheduling);
// nullopt: damaged.
std::optional<Scheduling> decode_scheduling(std::string_view bytes);

}  // namespace reprise::storage
