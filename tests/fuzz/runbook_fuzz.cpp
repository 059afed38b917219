// Whatever stands in a runbook, TOML or JSON: every problem is named with its place, and a runbook
// without one is complete: each name in it leads somewhere.
//
// An input is a letter for the format, then the text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "fuzz/fuzz.h"
#include "model/limits.h"
#include "runbook/load.h"
#include "runbook/node.h"

namespace reprise::runbook {
namespace {

std::size_t lines_of(std::string_view text) {
  std::size_t lines = 1;
  for (const char c : text) lines += c == '\n';
  return lines;
}

void check_steps(const Pipeline& pipeline) {
  REPRISE_CHECK(!pipeline.steps.empty());
  for (const Step& step : pipeline.steps) {
    for (const auto& next : {step.on_done, step.on_fail, step.on_cancel}) {
      REPRISE_CHECK(!next || *next < pipeline.steps.size());
    }
  }
}

void check(const Runbook& runbook) {
  for (const auto& [name, queue] : runbook.queues) {
    REPRISE_CHECK(queue.name == name && static_cast<bool>(check_name("queue", name)));
  }
  for (const auto& [name, pipeline] : runbook.pipelines) {
    REPRISE_CHECK(pipeline.name == name);
    check_steps(pipeline);
  }
  for (const auto& [name, worker] : runbook.workers) {
    REPRISE_CHECK(worker.name == name && runbook.queues.contains(worker.queue) &&
                  runbook.pipelines.contains(worker.pipeline));
    REPRISE_CHECK(worker.concurrency >= 1 &&
                  worker.concurrency <= WorkerDeclaration::kMostConcurrency);
  }
}

void check_runbook(const std::string& name, std::string_view text) {
  const LoadResult loaded = parse_runbook("/project", "shop", {{name, std::string(text)}});
  bool has_errors = false;
  const std::size_t lines = lines_of(text);
  for (const Finding& finding : loaded.findings) {
    has_errors |= finding.severity == Severity::error;
    REPRISE_CHECK(!finding.message.empty());
    REPRISE_CHECK(finding.place.file == name && finding.place.line <= lines);
    REPRISE_CHECK(is_valid_utf8(to_text(finding)) || !is_valid_utf8(text));
  }
  REPRISE_CHECK(loaded.runbook.has_value() != has_errors);
  if (loaded.runbook) check(*loaded.runbook);
}

// A value of the file is the same as JSON, and read from there.
void check_document(const Document& document) {
  if (!document.root) {
    REPRISE_CHECK(!document.problems.empty());
    return;
  }
  if (!document.problems.empty() || first_without_json(*document.root)) return;
  const std::string json = to_json(*document.root);
  const Document again = read_json(json);
  REPRISE_CHECK(again.root && again.problems.empty() && to_json(*again.root) == json);
}

}  // namespace
}  // namespace reprise::runbook

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::runbook;
  const auto [kind, rest] = reprise::fuzz::choice_of(data, size);
  if (kind == 't') {
    check_document(read_toml(rest));
    check_runbook(".reprise/shop.toml", rest);
  }
  if (kind == 'j') {
    check_document(read_json(rest));
    check_runbook(".reprise/shop.json", rest);
  }
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() { return {}; }
