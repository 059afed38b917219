// Samples: jobs as somebody makes them up, to try a hook with.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/hook.h"
#include "model/limits.h"

namespace reprise::server {

inline constexpr std::size_t kMaxSamples = 1000;

// Errors name the sample and its field.
Result<std::vector<HookMessage>> read_samples(const Json& json, HookKind hook,
                                              const Limits& limits);

}  // namespace reprise::server
