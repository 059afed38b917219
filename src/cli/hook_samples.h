// HookSamples: from what a person has at hand (a sample, an array of them, one a line, or jobs as
// `queue job --json`, `queue jobs --json` and `queue claim --json` print them) to the samples that
// POST …/hooks/test takes. Payloads travel with the bytes they were given in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_view.h"
#include "base/result.h"
#include "model/hook_kind.h"

namespace reprise::cli {

// Each sample as a JSON object. Errc::invalid_request: the text is something else.
Result<std::vector<std::string>> parse_hook_samples(std::string_view text, HookKind hook);

// What belongs to a job but is not told to this hook is left out; a name that nobody knows stays,
// so that the server can complain about it. For on_failure, a job counts as failing with its last
// error: one that has not failed yet, or is leased, as if that failure came now.
std::string hook_sample(JsonView given, HookKind hook);

}  // namespace reprise::cli
