#include "cli/warnings.h"

#include <fmt/format.h>

#include <utility>

#include "cli/escape.h"

namespace reprise::cli {
namespace {

constexpr std::uint64_t kShown = 20;

}  // namespace

void Warnings::add(std::string_view text) {
  if (++count_ > kShown) return;
  progress_.clear();
  output_.note("reprise: warning: " + escape_text(text));
}

void Warnings::end() {
  const std::uint64_t count = std::exchange(count_, 0);
  if (count <= kShown) return;
  progress_.clear();
  output_.note(fmt::format("reprise: warning: and {} more", count - kShown));
}

}  // namespace reprise::cli
