#include "runbook/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace reprise::runbook {
namespace {

constexpr std::size_t kMostSuggestions = 50;

}  // namespace

std::string to_text(const Finding& finding) {
  std::string text = finding.place.file;
  if (finding.place.line != 0) text += fmt::format(":{}", finding.place.line);
  text += ": ";
  if (finding.severity == Severity::warning) text += "warning: ";
  if (!finding.path.empty()) text += finding.path + ": ";
  return text + finding.message;
}

Subject Subject::at(std::string_view key, Position where) const {
  return {file, path.empty() ? std::string(key) : fmt::format("{}.{}", path, key), where};
}

void Findings::error(const Subject& subject, std::string message) {
  has_errors_ = true;
  add(Severity::error, subject, std::move(message));
}

void Findings::warning(const Subject& subject, std::string message) {
  add(Severity::warning, subject, std::move(message));
}

void Findings::add(Severity severity, const Subject& subject, std::string message) {
  if (findings_.size() >= kMost) {
    ++left_out_;
    return;
  }
  findings_.push_back({severity, subject.place(), subject.path, std::move(message)});
}

std::string Findings::suggestion(std::string_view typed, std::span<const std::string> candidates) {
  if (suggestions_ >= kMostSuggestions) return {};
  ++suggestions_;
  const auto meant = did_you_mean(typed, candidates);
  return meant ? fmt::format("; did you mean '{}'?", *meant) : std::string();
}

std::vector<Finding> Findings::take(std::span<const std::string> files) {
  const auto rank = [&](const Finding& finding) {
    return std::tuple(std::ranges::find(files, finding.place.file) - files.begin(),
                      finding.place.line, finding.place.column);
  };
  std::ranges::stable_sort(findings_, {}, rank);
  if (left_out_ != 0) {
    const std::string file = findings_.back().place.file;
    findings_.push_back({has_errors_ ? Severity::error : Severity::warning,
                         {file, 0, 0},
                         "",
                         fmt::format("{} more findings are left out", left_out_)});
  }
  return std::move(findings_);
}

}  // namespace reprise::runbook
