#include "cli/dead_letter_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "cli/job_choice.h"
#include "cli/table.h"

namespace reprise::cli {
namespace {

using spool::DeadLetter;

constexpr std::size_t kMinPrefix = 4;
constexpr std::size_t kShownMatches = 10;
// As many as fit on a small terminal with the question below them.
constexpr std::size_t kShownLetters = 20;

bool same_letter(char a, char b) {
  return std::toupper(static_cast<unsigned char>(a)) == std::toupper(static_cast<unsigned char>(b));
}

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::ranges::equal(text.substr(0, prefix.size()), prefix, same_letter);
}

bool equals(std::string_view text, std::string_view other) {
  return text.size() == other.size() && begins_with(text, other);
}

std::string_view stem_of(std::string_view name) { return name.substr(0, name.rfind('.')); }

template <class Fits>
std::vector<const DeadLetter*> all_that(std::span<const DeadLetter> letters, Fits fits) {
  std::vector<const DeadLetter*> found;
  for (const auto& letter : letters) {
    if (fits(letter)) found.push_back(&letter);
  }
  return found;
}

Error ambiguous(std::string_view given, const std::vector<const DeadLetter*>& found) {
  Error error{Errc::ambiguous_id, fmt::format("{} fits {} dead letters", given, found.size()), {}};
  for (std::size_t i = 0; i < std::min(found.size(), kShownMatches); ++i) {
    error.matches.emplace_back(stem_of(found[i]->name));
  }
  return error;
}

}  // namespace

Result<const DeadLetter*> find_dead_letter(std::span<const DeadLetter> letters,
                                           std::string_view given) {
  // The name of a file is one letter's alone, which an id need not be.
  auto found = all_that(letters, [&](const DeadLetter& letter) {
    return letter.name == given || stem_of(letter.name) == given;
  });
  if (found.empty()) {
    found = all_that(letters, [&](const DeadLetter& letter) { return equals(letter.id, given); });
  }
  if (found.empty() && given.size() < kMinPrefix) {
    return Error{
        Errc::invalid_field,
        fmt::format("'{}' is too short: an id needs its first {} characters", given, kMinPrefix)};
  }
  if (found.empty()) {
    found = all_that(letters, [&](const DeadLetter& letter) {
      return begins_with(letter.id, given) || begins_with(letter.name, given);
    });
  }
  if (found.size() > 1) return ambiguous(given, found);
  return found.empty() ? nullptr : found.front();
}

std::optional<std::vector<const DeadLetter*>> choose_dead_letters(
    const Output& output, std::span<const DeadLetter> letters, std::string_view verb) {
  Table table({{.title = "#", .align = Column::Align::right},
               {.title = "ID"},
               {.title = "EVENT TYPE", .may_be_cut = true},
               {.title = "ATTEMPTS", .align = Column::Align::right, .may_be_left_out = true},
               {.title = "LAST ERROR", .may_be_cut = true}},
              for_questions(output.terminal()), true);
  const std::size_t shown = std::min(letters.size(), kShownLetters);
  for (std::size_t i = 0; i < shown; ++i) {
    const DeadLetter& letter = letters[i];
    table.add({Cell(std::to_string(i + 1)), Cell(letter.id, Style::bold), Cell(letter.type),
               Cell(std::to_string(letter.attempts)), Cell(letter.last_error)});
  }
  fmt::print(stderr, "{}", table.take_text());
  if (shown < letters.size()) output.note(fmt::format("… and {} more", letters.size() - shown));

  const auto choice = ask_for_choice(output, verb, shown);
  if (!choice) return std::nullopt;
  std::vector<const DeadLetter*> chosen;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (choice->all || std::ranges::binary_search(choice->numbers, i + 1)) {
      chosen.push_back(&letters[i]);
    }
  }
  return chosen;
}

}  // namespace reprise::cli
