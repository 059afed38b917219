// The body of a push: {"jobs": [{"payload": …, "headers": {…}, …}], "create": false}.
// Payloads stay the bytes that came: nothing is parsed and written again.
//
// What is wrong with one job alone (a limit, a value out of its range) becomes that job's error,
// and the others go on. What makes the request as a whole doubtful (no JSON, wrong types, unknown
// or repeated fields, a batch beyond the limits) refuses all of it.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/commands.h"
#include "model/limits.h"

namespace reprise::server {

struct PushBody {
  std::vector<Result<NewJob>> jobs;
  bool create = false;
};

Result<PushBody> parse_push_body(std::string_view body, const Limits& limits);

}  // namespace reprise::server
