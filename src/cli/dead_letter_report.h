// Dead letters of the spool, and what a retry or purge of them did, as people and machines read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/errc.h"
#include "cli/output.h"
#include "cli/selection_report.h"
#include "cli/terminal.h"
#include "spool/dead_letters.h"

namespace reprise::cli {

std::string dead_letters_json(std::span<const spool::DeadLetter> letters);
std::string dead_letters_table(std::span<const spool::DeadLetter> letters, const Terminal& terminal,
                               bool header);

// One whole: `stored` is its file's text, `raw_head` the first bytes of what is no event.
std::string dead_letter_json(const spool::DeadLetter& letter, std::string_view stored,
                             std::string_view raw_head);
std::string dead_letter_record(const spool::DeadLetter& letter, std::string_view stored,
                               std::string_view raw_head, const Terminal& terminal);

// What became of the dead letters that were selected.
struct DeadLettersDone {
  struct Skipped {
    std::string id;
    std::string reason;
    Errc code = Errc::wrong_status;  // that is, it cannot be retried
  };
  std::uint64_t done = 0;
  std::vector<Skipped> skipped;
  std::vector<std::string> not_found;
  bool dry_run = false;
};
std::string done_json(DeadJobsVerb verb, const DeadLettersDone& done);
// "retried 3, skipped 1, not found 0"
std::string done_text(DeadJobsVerb verb, const DeadLettersDone& done);
// What was skipped and not found, one by one.
std::vector<Problem> done_problems(const DeadLettersDone& done);
int done_exit_code(const DeadLettersDone& done);

}  // namespace reprise::cli
