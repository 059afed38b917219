#include "runbook/shell_words.h"

#include <algorithm>
#include <array>

namespace reprise::runbook {
namespace {

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view base_name(std::string_view word) { return word.substr(word.rfind('/') + 1); }

bool is_shell(std::string_view word) {
  constexpr auto kShells =
      std::to_array<std::string_view>({"bash", "sh", "zsh", "dash", "ksh", "ash"});
  return contains(kShells, base_name(word));
}

// The words behind a shell's name: is the next one its -c script?
bool is_script_next(std::span<const std::string> options) {
  bool takes_script = false;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const std::string_view option = options[i];
    if (option.size() < 2 || (option[0] != '-' && option[0] != '+')) return false;
    if (option.starts_with("--")) continue;
    if (option[0] == '-' && option.find('c') != std::string_view::npos) takes_script = true;
    // -o pipefail
    if (option.back() == 'o' || option.back() == 'O') ++i;
  }
  return takes_script;
}

bool has_template(std::string_view word) {
  return word.find(kTemplateMark) != std::string_view::npos;
}

// The command itself, behind what only says where to look for it.
std::span<const std::string> without_prefixes(std::span<const std::string> words) {
  while (!words.empty() && (words[0] == "builtin" || words[0] == "command" || words[0] == "exec" ||
                            is_assignment(words[0]))) {
    words = words.subspan(1);
  }
  return words;
}

// An option of read or mapfile that something follows, which is no variable.
bool wants_value(std::string_view option) {
  return option.size() > 1 && option[0] == '-' &&
         std::string_view("dinNptuOsCc").find(option.back()) != std::string_view::npos;
}

bool names_a_variable(std::string_view word) {
  return has_template(word.substr(0, word.find('=')));
}

}  // namespace

bool is_identifier(std::string_view text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         std::ranges::all_of(text, is_name_char);
}

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  auto name = word.substr(0, equals);
  if (name.ends_with('+')) name.remove_suffix(1);
  if (name.ends_with(']')) name = name.substr(0, name.find('['));
  return is_identifier(name);
}

bool goes_before_command(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"if", "then", "else", "elif", "do", "while", "until", "!", "{", "time", "coproc"});
  return contains(kWords, word);
}

bool is_arithmetic_operator(std::string_view word) {
  constexpr auto kOperators =
      std::to_array<std::string_view>({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"});
  return contains(kOperators, word);
}

bool is_code_next(std::span<const std::string> words) {
  words = without_prefixes(words);
  if (words.empty()) return false;
  if (words[0] == "eval") return true;
  if (words[0] == "trap") return words.size() == 1 || (words.size() == 2 && words[1] == "--");
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (base_name(words[i]) == "ssh") return true;
    if (is_shell(words[i]) && is_script_next(words.subspan(i + 1))) return true;
    if (base_name(words[i]) == "su" && words.back() == "-c") return true;
  }
  return false;
}

bool reads_code(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return is_shell(word) || base_name(word) == "ssh" || base_name(word) == "su";
  });
}

std::string computing_builtin(std::span<const std::string> words, std::string_view word) {
  constexpr auto kDeclaring =
      std::to_array<std::string_view>({"declare", "typeset", "local", "export", "readonly"});
  constexpr auto kReading = std::to_array<std::string_view>({"read", "mapfile", "readarray"});
  words = without_prefixes(words);
  if (words.empty()) return {};
  const std::string_view command = words[0];
  const std::string_view before = words.back();
  if (command == "let") return "'let'";
  if (command == "unset" && has_template(word)) return "'unset'";
  if (contains(kReading, command) && has_template(word) && !wants_value(before)) {
    return "a variable's name";
  }
  if (command == "printf" && words.size() == 2 && before == "-v" && has_template(word)) {
    return "a variable's name";
  }
  if (contains(kDeclaring, command)) {
    if (names_a_variable(word)) return "a variable's name";
    const bool integers = std::ranges::any_of(words, [](const std::string& option) {
      return option.starts_with('-') && option.find('i') != std::string::npos;
    });
    if (integers) return "a variable with -i";
  }
  if ((command == "[" || command == "test") && before == "-v" && has_template(word)) {
    return "a variable's name";
  }
  return {};
}

}  // namespace reprise::runbook
