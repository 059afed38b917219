#include "cli/job_choice.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <set>

#include "cli/escape.h"
#include "cli/exit_code.h"
#include "cli/job_listing.h"
#include "cli/reply_text.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

// As many as fit on a small terminal with the question below them.
constexpr std::uint64_t kShownJobs = 20;
constexpr std::string_view kSeparators = " \t\r\n,";

struct Range {
  std::size_t first;
  std::size_t last;
};

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// "3" or "3-5".
std::optional<Range> parse_range(std::string_view word) {
  const std::size_t dash = word.find('-');
  const auto first = parse_number(word.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number(word.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last) return std::nullopt;
  return Range{.first = *first, .last = *last};
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(kSeparators, at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

// Prints the numbered list; returns the whole ids in its order.
std::vector<std::string> show_list(CommandContext& context, const std::string& queue,
                                   int& exit_code) {
  Table table({{.title = "#", .align = Column::Align::right},
               {.title = "ID"},
               {.title = "DIED"},
               {.title = "ATTEMPTS", .align = Column::Align::right, .may_be_left_out = true},
               {.title = "LAST ERROR", .may_be_cut = true}},
              for_questions(context.terminal()), true);
  std::vector<std::string> ids;
  const auto add_page = [&](const std::vector<JsonView>& page) {
    const auto now = wall_now();
    for (const auto& job : page) {
      ids.push_back(text_of(job["id"]));
      table.add({Cell(std::to_string(ids.size())), Cell(ids.back().substr(0, 8), Style::bold),
                 Cell(age_text(job["ended_at"], now) + " ago"), Cell(text_of(job["attempts"])),
                 Cell(text_of(job["last_error"]))});
    }
  };
  std::string cursor;
  exit_code = for_each_job(context, queue, {{"status", "dead"}, {"order", "newest"}}, kShownJobs,
                           cursor, add_page);
  if (exit_code != kExitOk || ids.empty()) return {};
  fmt::print(stderr, "{}", table.take_text());
  if (!cursor.empty()) context.note("… and more");
  return ids;
}

}  // namespace

Result<Choice> parse_choice(std::string_view answer, std::size_t count) {
  Choice choice;
  std::set<std::size_t> numbers;
  const auto words = words_of(answer);
  if (words.size() == 1 && words.front() == "all") {
    choice.all = true;
    return choice;
  }
  for (const auto word : words) {
    const auto range = parse_range(word);
    if (!range || range->last > count) {
      return Error{Errc::invalid_field,
                   fmt::format("'{}' is none of 1 to {}", escape_text(word), count)};
    }
    for (std::size_t number = range->first; number <= range->last; ++number) {
      numbers.insert(number);
    }
  }
  choice.numbers.assign(numbers.begin(), numbers.end());
  return choice;
}

Terminal for_questions(Terminal terminal) {
  terminal.out_is_tty = true;
  return terminal;
}

std::optional<Choice> ask_for_choice(const Output& output, std::string_view verb,
                                     std::size_t count) {
  while (true) {
    fmt::print(stderr, "Which to {}? (1 3-5, all, or nothing to leave) ", verb);
    std::fflush(stderr);
    std::string answer;
    if (!std::getline(std::cin, answer)) {
      output.note("");  // the end of input leaves the cursor behind the question
      return std::nullopt;
    }
    auto choice = parse_choice(answer, count);
    if (!choice) {
      output.note(choice.error().detail);
      continue;
    }
    if (choice->nothing()) return std::nullopt;
    return *std::move(choice);
  }
}

std::optional<ChosenJobs> choose_dead_jobs(CommandContext& context, const std::string& queue,
                                           std::string_view verb, int& exit_code) {
  const auto ids = show_list(context, queue, exit_code);
  if (exit_code != kExitOk) return std::nullopt;
  if (ids.empty()) {
    context.note(fmt::format("no dead jobs in queue {}", escape_text(queue)));
    return std::nullopt;
  }
  const auto choice = ask_for_choice(context, verb, ids.size());
  if (!choice) {
    exit_code = kExitRefused;
    return std::nullopt;
  }
  ChosenJobs chosen{.all = choice->all, .ids = {}};
  for (const auto number : choice->numbers) chosen.ids.push_back(ids[number - 1]);
  return chosen;
}

}  // namespace reprise::cli
