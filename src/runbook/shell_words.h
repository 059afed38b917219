// What the words of a simple command say about how the shell, or another one, reads its arguments.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::runbook {

// In the literal text of a word: here stood a template; here stood something else that the shell
// expands.
inline constexpr char kTemplateMark = '\x01';
inline constexpr char kExpansionMark = '\x02';

// The words of a simple command so far, quotes taken off. A here-document looks at them later.
struct CommandWords {
  std::vector<std::string> words;
};

bool is_identifier(std::string_view text);
// "name=…", "name+=…", "name[…]=…".
bool is_assignment(std::string_view word);
// if, then, do, {, !, …: a command follows.
bool goes_before_command(std::string_view word);
// -eq, -lt, …
bool is_arithmetic_operator(std::string_view word);

// Whether the word that follows `words` is a command that a shell reads: of bash -c, ssh, eval.
bool is_code_next(std::span<const std::string> words);
// Whether what stands on the command's standard input is read by a shell.
bool reads_code(std::span<const std::string> words);

// Why a template must not be in `word`, which follows `words`: the shell would compute with it.
// Empty: it may.
std::string computing_builtin(std::span<const std::string> words, std::string_view word);

}  // namespace reprise::runbook
