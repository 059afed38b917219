// ReferenceTable: the distinct templates of one command, each with a variable of its own.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "runbook/command_template.h"

namespace reprise::runbook {

class ReferenceTable {
 public:
  // The name of its variable. The same template with the same fallback has the same one.
  const std::string& variable_for(const TemplateReference& reference);
  std::vector<TemplateReference> take() { return std::move(references_); }

 private:
  std::vector<TemplateReference> references_;
  std::set<std::string> taken_;
};

}  // namespace reprise::runbook
