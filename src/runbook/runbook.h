// Runbook: what a project declares, checked and ready to use: every name in it leads somewhere and
// every command has been read. Plain values; load.h makes them from files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/queue.h"
#include "runbook/command_template.h"

namespace reprise::runbook {

// Where something stands: ".reprise/shop.toml", relative to the project's directory. Lines and
// columns count from 1; 0: the file as a whole.
struct Place {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

enum class Severity : std::uint8_t { error, warning };

struct Finding {
  Severity severity = Severity::error;
  Place place;
  std::string path;  // "queue.bugs.poll"; empty: the file
  std::string message;
  friend bool operator==(const Finding&, const Finding&) = default;
};
// ".reprise/shop.toml:12: queue.bugs.poll: unknown duration suffix 'x'"
std::string to_text(const Finding& finding);

struct ExternalQueue {
  static constexpr Duration kShortestPoll = std::chrono::milliseconds(200);
  static constexpr Duration kLongestPoll = std::chrono::hours(24 * 30);
  static constexpr Duration kDefaultTimeout = std::chrono::seconds(60);

  CommandTemplate list;
  CommandTemplate take;
  std::optional<CommandTemplate> done;
  std::optional<CommandTemplate> failed;
  std::string key;               // a field; empty: id, number, or a hash of the item
  std::optional<Duration> poll;  // nothing: only when there is a reason to
  Duration timeout = kDefaultTimeout;
};

struct QueueDeclaration {
  std::string name;
  Place place;
  std::variant<QueueConfig, ExternalQueue> what;  // QueueConfig: persisted

  const QueueConfig* persisted() const { return std::get_if<QueueConfig>(&what); }
  const ExternalQueue* external() const { return std::get_if<ExternalQueue>(&what); }
};

using StepIndex = std::size_t;

struct Step {
  std::string name;
  Place place;
  CommandTemplate run;
  std::optional<Duration> timeout;
  // Where to go on. The default of on_done is in it already (the next step that is no handler);
  // so are the pipeline's own on_fail and on_cancel. Nothing: the run ends.
  std::optional<StepIndex> on_done;
  std::optional<StepIndex> on_fail;
  std::optional<StepIndex> on_cancel;
  // Named in on_fail or on_cancel of a step before it: the order of steps passes over it.
  bool handler = false;
};

struct Pipeline {
  static constexpr Duration kDefaultTimeout = std::chrono::hours(1);
  static constexpr std::uint32_t kMostVisits = 5;

  std::string name;
  Place place;
  Duration timeout = kDefaultTimeout;
  std::vector<Step> steps;  // at least one; a run begins with the first
};

struct WorkerDeclaration {
  static constexpr std::uint32_t kMostConcurrency = 1000;

  std::string name;
  Place place;
  std::string queue;
  std::string pipeline;
  std::uint32_t concurrency = 1;
  bool autostart = false;
};

struct Runbook {
  std::string ns;    // the project's name
  std::string root;  // the project's directory, absolute
  std::vector<std::string> files;
  std::map<std::string, QueueDeclaration, std::less<>> queues;
  std::map<std::string, Pipeline, std::less<>> pipelines;
  std::map<std::string, WorkerDeclaration, std::less<>> workers;
};

}  // namespace reprise::runbook
