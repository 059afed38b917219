// Findings: collects what is wrong with a runbook, all of it, so that one check tells everything.
// A file of nothing but mistakes must not take for ever: beyond kMost they are only counted, and
// suggestions end after a few.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runbook/node.h"
#include "runbook/runbook.h"

namespace reprise::runbook {

// What a finding is about.
struct Subject {
  std::string file;
  std::string path;
  Position position;

  Place place() const { return {file, position.line, position.column}; }
  Subject at(std::string_view key, Position where) const;  // a field of it
};

class Findings {
 public:
  static constexpr std::size_t kMost = 1000;

  void error(const Subject& subject, std::string message);
  void warning(const Subject& subject, std::string message);
  bool has_errors() const { return has_errors_; }

  // "; did you mean 'orders'?", or nothing.
  std::string suggestion(std::string_view typed, std::span<const std::string> candidates);
  // By file and line, in the order of the files.
  std::vector<Finding> take(std::span<const std::string> files);

 private:
  void add(Severity severity, const Subject& subject, std::string message);

  std::vector<Finding> findings_;
  std::size_t left_out_ = 0;
  std::size_t suggestions_ = 0;
  bool has_errors_ = false;
};

}  // namespace reprise::runbook
