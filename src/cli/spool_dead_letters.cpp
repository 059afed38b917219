// spool inspect, retry, purge: the events that were given up.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "cli/dead_letter_choice.h"
#include "cli/dead_letter_report.h"
#include "cli/exit_code.h"
#include "cli/flags.h"
#include "cli/progress.h"
#include "cli/reply_text.h"
#include "cli/spool_commands.h"
#include "cli/spool_flags.h"
#include "cli/warnings.h"
#include "spool/dead_letters.h"

namespace reprise::cli {
namespace {

using spool::DeadLetter;
using spool::SpoolFiles;

constexpr char kGroup[] = "Dead letters";
constexpr std::size_t kRawHeadBytes = 1024;

struct InspectFlags {
  std::string id;
  bool no_header = false;
};

struct SelectionFlags {
  std::vector<std::string> ids;
  bool all = false;
  std::optional<std::string> type;
  std::optional<std::string> error;
  std::optional<std::string> reason;
  std::optional<std::string> older_than;
  std::optional<std::string> newer_than;
  bool dry_run = false;

  bool any_filter() const { return type || error || reason || older_than || newer_than; }
};

// The dead letters of a directory, newest first; none when there is no spool.
struct Letters {
  std::optional<SpoolFiles> files;
  std::vector<DeadLetter> all;
};

Result<Letters> read_letters(const Output& output, const std::filesystem::path& directory) {
  auto files = SpoolFiles::open(directory);
  if (!files) return files.error();
  Letters letters{.files = *std::move(files), .all = {}};
  if (!letters.files) return letters;
  std::vector<std::string> texts;
  auto all = spool::DeadLetters(*letters.files).list(texts);
  if (!all) return all.error();
  ProgressBar no_bar(false);
  Warnings warnings(output, no_bar);
  for (const auto& text : texts) warnings.add(text);
  warnings.end();
  letters.all = *std::move(all);
  return letters;
}

int inspect_one(const Output& output, Letters& letters, const std::string& id) {
  const auto found = find_dead_letter(letters.all, id);
  if (!found) return output.fail(found.error());
  if (*found == nullptr) {
    output.print_problem({.code = "not_found", .message = fmt::format("no dead letter '{}'", id)});
    return kExitRefused;
  }
  const spool::DeadLetters dead(*letters.files);
  const auto stored = dead.show(**found);
  if (!stored) return output.fail(stored.error());
  const std::string raw_head = dead.raw_head(**found, kRawHeadBytes);
  output.print(output.json() ? dead_letter_json(**found, *stored, raw_head)
                             : dead_letter_record(**found, *stored, raw_head, output.terminal()));
  return kExitOk;
}

int inspect(const Output& output, const std::filesystem::path& directory,
            const InspectFlags& flags) {
  auto letters = read_letters(output, directory);
  if (!letters) return output.fail(letters.error());
  if (!flags.id.empty()) return inspect_one(output, *letters, flags.id);
  output.print(output.json()
                   ? dead_letters_json(letters->all)
                   : dead_letters_table(letters->all, output.terminal(), !flags.no_header));
  return kExitOk;
}

// The flags have passed their checks.
spool::DeadLetterFilter filter_of(const SelectionFlags& flags, Timestamp now) {
  const auto ago = [&](const std::optional<std::string>& text) -> std::optional<Timestamp> {
    if (!text) return std::nullopt;
    return now - *parse_duration(*text);
  };
  return {.type = flags.type,
          .error = flags.error,
          .reason = flags.reason,
          .before = ago(flags.older_than),
          .after = ago(flags.newer_than)};
}

// retry and purge: one road, two verbs.
class DeadLettersCommand {
 public:
  DeadLettersCommand(const Output& output, DeadJobsVerb verb, const SelectionFlags& flags)
      : output_(output), verb_(verb), flags_(flags) {}

  int run(const std::filesystem::path& directory) {
    check_usage();
    auto letters = read_letters(output_, directory);
    if (!letters) return output_.fail(letters.error());
    done_.dry_run = flags_.dry_run;
    std::vector<const DeadLetter*> chosen;
    if (!flags_.ids.empty()) {
      for (const auto& id : flags_.ids) {
        const auto found = find_dead_letter(letters->all, id);
        // Nothing has been done yet.
        if (!found) return output_.fail(found.error());
        choose(chosen, *found, id);
      }
    } else if (flags_.all || flags_.any_filter()) {
      const auto filter = filter_of(flags_, wall_now());
      for (const auto& letter : letters->all) {
        if (flags_.all || filter.fits(letter)) chosen.push_back(&letter);
      }
    } else if (letters->all.empty()) {
      output_.note("no dead letters");
      return kExitOk;
    } else {
      auto answer = choose_dead_letters(output_, letters->all, verb_.name);
      if (!answer) return kExitRefused;
      chosen = *std::move(answer);
    }
    change(letters->files, chosen);
    const int code = report();
    if (!letters->files || flags_.dry_run) return code;
    const auto synced = letters->files->sync_removals(spool::Folder::dead_letter);
    return synced ? code : output_.fail(synced.error());
  }

 private:
  void check_usage() const {
    const bool selects = flags_.all || flags_.any_filter();
    if (!flags_.ids.empty() && selects) {
      throw CLI::ValidationError("ids go alone: without --all or a filter");
    }
    if (flags_.all && flags_.any_filter()) {
      throw CLI::ValidationError("--all and a filter exclude each other");
    }
    if (flags_.ids.empty() && !selects && !output_.terminal().can_ask()) {
      throw CLI::ValidationError("nothing is selected: name ids, a filter, or --all");
    }
  }

  // Each once, however often it was named.
  void choose(std::vector<const DeadLetter*>& chosen, const DeadLetter* letter,
              const std::string& id) {
    if (letter == nullptr) {
      done_.not_found.push_back(id);
    } else if (std::ranges::find(chosen, letter) == chosen.end()) {
      chosen.push_back(letter);
    }
  }

  void change(std::optional<SpoolFiles>& files, const std::vector<const DeadLetter*>& chosen) {
    ProgressBar progress(output_.terminal().err_is_tty && !output_.json());
    const bool retrying = verb_.name == kRetryVerb.name;
    std::uint64_t seen = 0;
    for (const DeadLetter* letter : chosen) {
      if (retrying && !letter->cannot_retry.empty()) {
        done_.skipped.push_back({.id = letter->id, .reason = letter->cannot_retry});
      } else if (flags_.dry_run) {
        ++done_.done;
      } else {
        spool::DeadLetters dead(*files);
        count(*letter, retrying ? dead.retry(*letter) : dead.purge(*letter));
      }
      progress.update(
          {.done = ++seen, .total = chosen.size(), .count = seen, .unit = "dead letters"});
    }
  }

  // One that fails leaves the others alone; one that is gone was somebody else's.
  void count(const DeadLetter& letter, const Result<bool>& changed) {
    if (!changed) {
      done_.skipped.push_back(
          {.id = letter.id, .reason = changed.error().detail, .code = changed.error().code});
    } else if (*changed) {
      ++done_.done;
    } else {
      done_.not_found.push_back(letter.id);
    }
  }

  int report() const {
    if (output_.json()) {
      output_.print(done_json(verb_, done_));
    } else {
      output_.print(done_text(verb_, done_));
      for (const auto& problem : done_problems(done_)) output_.print_problem(problem);
    }
    return done_exit_code(done_);
  }

  const Output& output_;
  DeadJobsVerb verb_;
  const SelectionFlags& flags_;
  DeadLettersDone done_;
};

void add_filter_flags(CLI::App& command, SelectionFlags& flags) {
  constexpr char kFilterGroup[] = "Filter (all that are given must hold)";
  const auto add = [&](const char* flag, std::optional<std::string>& target, const char* type,
                       const char* description) {
    command.add_option(flag, target, description)->type_name(type)->group(kFilterGroup);
  };
  add("--type", flags.type, "PATTERN", "The event's type; * stands for anything");
  add("--error", flags.error, "TEXT", "A part of the last error, in any case");
  add("--reason", flags.reason, "WORD", "Why it died: max_attempts, too_large or corrupt");
  add_duration(command, "--older-than", flags.older_than, "Dead-lettered longer ago than this")
      ->group(kFilterGroup);
  add_duration(command, "--newer-than", flags.newer_than, "Dead-lettered within this")
      ->group(kFilterGroup);
}

void add_selection(CLI::App& spool, const Commands& commands, const CommandInfo& info,
                   DeadJobsVerb verb) {
  auto flags = std::make_shared<SelectionFlags>();
  CLI::App& command = add_command(spool, info);
  command
      .add_option("ID", flags->ids,
                  "Ids of dead letters, or prefixes; none: --all, a filter, or a list")
      ->type_name("");
  command.add_flag("--all", flags->all, "All dead letters");
  command.add_flag("--dry-run", flags->dry_run, "Change nothing; say what would be done");
  add_filter_flags(command, *flags);
  on_spool_run(command, commands, [flags, verb](const Output& output, const auto& directory) {
    return DeadLettersCommand(output, verb, *flags).run(directory);
  });
}

void add_inspect(CLI::App& spool, const Commands& commands) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App& command =
      add_command(spool, {.name = "inspect",
                          .description = "List dead letters, the latest first, or show one whole",
                          .examples = "  reprise spool inspect\n"
                                      "  reprise spool inspect 01KA5QH3M5\n"
                                      "  reprise spool inspect 01KA5QH3M5 --json | jq .meta",
                          .group = kGroup});
  command.add_option("ID", flags->id, "A dead letter's id, or a prefix of it")->type_name("");
  add_no_header(command, flags->no_header);
  on_spool_run(command, commands, [flags](const Output& output, const auto& directory) {
    return inspect(output, directory, *flags);
  });
}

}  // namespace

void add_spool_dead_letter_commands(CLI::App& spool, const Commands& commands) {
  add_inspect(spool, commands);
  add_selection(spool, commands,
                {.name = "retry",
                 .description = "Put dead letters back into the queue, with no attempts counted",
                 .examples = "  reprise spool retry 01KA5QH3M5\n"
                             "  reprise spool retry                    choose from a list\n"
                             "  reprise spool retry --error 'unknown customer' --dry-run\n"
                             "  reprise spool retry --all && reprise spool drain",
                 .group = kGroup},
                kRetryVerb);
  add_selection(spool, commands,
                {.name = "purge",
                 .description = "Delete dead letters for good",
                 .examples = "  reprise spool purge 01KA5QH3M5\n"
                             "  reprise spool purge                    choose from a list\n"
                             "  reprise spool purge --reason corrupt --older-than 7d\n"
                             "  reprise spool purge --all",
                 .group = kGroup},
                kPurgeVerb);
}

}  // namespace reprise::cli
