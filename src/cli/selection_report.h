// What a retry or purge did, or would do, as people read it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_view.h"
#include "cli/command_context.h"

namespace reprise::cli {

// A retry or purge: its name in the API, and the field that counts what it did.
struct DeadJobsVerb {
  std::string_view name;     // "retry"
  std::string_view counted;  // "retried"
};
inline constexpr DeadJobsVerb kRetryVerb{.name = "retry", .counted = "retried"};
inline constexpr DeadJobsVerb kPurgeVerb{.name = "purge", .counted = "purged"};

// Counts what one or several replies say, and why jobs were left alone.
class SelectionReport {
 public:
  SelectionReport(DeadJobsVerb verb, std::string queue) : verb_(verb), queue_(std::move(queue)) {}

  // A reply of POST …/retry or …/purge that goes on no longer.
  void add_reply(JsonView reply);
  // An operation that has ended.
  void add_operation(JsonView operation);

  // "retried 1, skipped 1, not found 0" and the reasons. Returns the exit code: one job that was
  // refused is enough for kExitRefused.
  int print(const CommandContext& context) const;
  int exit_code() const;

 private:
  void note_how_it_ended(JsonView operation);

  DeadJobsVerb verb_;
  std::string queue_;
  std::uint64_t done_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint64_t not_found_ = 0;
  bool ended_early_ = false;
  std::vector<Problem> problems_;
};

// "40 jobs", "1 job", "at least 1000 jobs": what a dry run has found.
std::string matched_text(JsonView dry_run);
// The same as a sentence, with a table of examples.
void print_dry_run(const CommandContext& context, DeadJobsVerb verb, JsonView dry_run);

}  // namespace reprise::cli
