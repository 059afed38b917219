// A runbook from a text, as workers get it from a project's files.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "runbook/load.h"

namespace reprise::test {

// Of the project `shop`; what is wrong with the text is a failure of the test.
inline std::shared_ptr<const runbook::Runbook> runbook_from(const std::string& toml,
                                                            const std::string& root = "/") {
  auto loaded = runbook::parse_runbook(root, "shop", {{".reprise/shop.toml", toml}});
  for (const auto& finding : loaded.findings) {
    if (finding.severity == runbook::Severity::error) ADD_FAILURE() << runbook::to_text(finding);
  }
  if (!loaded.runbook) return std::make_shared<const runbook::Runbook>();
  return std::make_shared<const runbook::Runbook>(*std::move(loaded.runbook));
}

}  // namespace reprise::test
