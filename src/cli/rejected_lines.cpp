#include "cli/rejected_lines.h"

#include <fmt/format.h>

namespace reprise::cli {
namespace {

constexpr std::uint64_t kShownLines = 20;

}  // namespace

void RejectedLines::add(std::uint64_t line, const Problem& problem) {
  if (++count_ > kShownLines) return;
  progress_.clear();
  if (output_.json()) {
    output_.note(fmt::format(R"({{"line":{},"error":{}}})", line, to_json(problem)));
  } else {
    output_.print_problem(problem, fmt::format("line {}", line));
  }
}

void RejectedLines::end() const {
  if (count_ > kShownLines && !output_.json()) {
    output_.note(fmt::format("reprise: and {} more lines", count_ - kShownLines));
  }
}

}  // namespace reprise::cli
