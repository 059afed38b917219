// Errors as workers report them: some kinds of text, each with numbers, ids and quoted parts that
// differ from job to job.
#pragma once

#include <cstdint>
#include <string>

namespace reprise::bench {

// Kinds take turns: jobs `serial` and `serial` + kErrorKinds have the same one. ASCII, and nothing
// that JSON must escape.
inline constexpr std::uint64_t kErrorKinds = 20;
std::string error_text(std::uint64_t serial);

}  // namespace reprise::bench
