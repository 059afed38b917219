// TableReader: reads the known fields of one table and complains about the rest, each with the
// place it stands at. Unlike JsonFields it goes on after an error, so that all of them are told.
//
//   TableReader reader(node, subject, findings);
//   reader.read("queue", worker.queue);
//   reader.finish();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "runbook/findings.h"
#include "runbook/node.h"

namespace reprise::runbook {

class TableReader {
 public:
  // `table` must be one, and outlive the reader.
  TableReader(const Node& table, Subject subject, Findings& findings)
      : table_(table), subject_(std::move(subject)), findings_(findings) {}

  // The field, which is known from now on; null when it is absent, or JSON's null.
  const Member* take(std::string_view name);

  // Each returns true when the field was there and well formed.
  bool read(std::string_view name, std::string& out);  // not empty
  bool read(std::string_view name, bool& out);
  bool read(std::string_view name, std::uint32_t& out, std::uint32_t least, std::uint32_t most);
  bool read(std::string_view name, Duration& out);  // more than 0
  bool read(std::string_view name, Duration& out, Duration least, Duration most);

  // About a field that is there, or else about the table.
  void error(std::string_view name, std::string message);
  Subject subject_of(std::string_view name) const;
  const Subject& subject() const { return subject_; }
  Findings& findings() { return findings_; }

  // Fields that nobody asked for, for each with what may have been meant.
  void finish();

 private:
  template <class T>
  bool read_as(std::string_view name, T& out);

  const Node& table_;
  Subject subject_;
  Findings& findings_;
  std::vector<std::string> known_;
};

}  // namespace reprise::runbook
