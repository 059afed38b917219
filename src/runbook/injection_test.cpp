// Real bash, real payloads: whatever an item holds arrives as one word, byte for byte, and nothing
// of it is run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "runbook/command_template.h"
#include "support/bash_run.h"
#include "support/temp_directory.h"

namespace reprise::runbook {
namespace {

using test::BashResult;
using test::TempDirectory;

const std::vector<std::string>& payloads() {
  static const std::vector<std::string> all = {
      "plain",
      "two words",
      "  spaces  around  ",
      "$(touch canary)",
      "`touch canary`",
      "; touch canary",
      "; touch canary;",
      "| touch canary",
      "|| touch canary",
      "&& touch canary",
      "& touch canary &",
      "\ntouch canary\n",
      "a\nb",
      "'; touch canary; '",
      "\"; touch canary; \"",
      "\"$(touch canary)\"",
      "'$(touch canary)'",
      "\\\"$(touch canary)\\\"",
      "'\"'\"'; touch canary",
      "it's",
      "say \"hi\"",
      "\\",
      "\\\\",
      "\\n\\t",
      "trailing\\",
      "*",
      "?",
      "[a-z]*",
      "{a,b}",
      "~",
      "~root",
      "-n",
      "--help",
      "-rf /",
      "$IFS",
      "$HOME",
      "${HOME}",
      "${item.x}",
      "${REPRISE_ITEM_x}",
      "$((1+1))",
      "$[1+1]",
      "a[$(touch canary)]",
      "a[$(touch canary)]=1",
      "x=1",
      "!!",
      "!touch canary",
      "<(touch canary)",
      ">(touch canary)",
      "> canary",
      "< /etc/passwd",
      "# comment",
      ")",
      "(",
      "}",
      "]]",
      ";;",
      "esac",
      "END\ntouch canary\n",
      "END",
      "EOF\n$(touch canary)\nEOF",
      "$'\\x3b touch canary'",
      "%s%n",
      "\t",
      "\x1b[31m",
      "\r\n",
      "é ü 漢字 😀",
      "\xff\xfe",
      std::string(8'000, 'x'),
      std::string(4'000, '$') + "(touch canary)",
      "() { :; }; touch canary",
      "eval touch canary",
  };
  return all;
}

// `command` prints the item's x between < and >, and a line break.
struct Context {
  const char* name;
  const char* command;
};

class Injection : public testing::TestWithParam<Context> {};

const Context kContexts[] = {
    {"plain", "printf '<%s>' ${item.x}"},
    {"two_words_of_it", "printf '<%s>' ${item.x} >/dev/null; printf '<%s>' ${item.x}"},
    {"in_a_word", "printf '<%s>' a${item.x}b | sed '1s/^<a/</; $s/b>$/>/'"},
    {"word_beside_quotes", "printf '%s' '<'${item.x}\">\""},
    {"double_quotes", "printf '%s' \"<${item.x}>\""},
    {"double_quotes_with_single", "printf '%s' \"'<${item.x}>'\" | sed \"1s/^'//; \\$s/'\\$//\""},
    {"localised_quotes", "printf '%s' $\"<${item.x}>\""},
    {"nested_bash", "bash -c 'printf \"<%s>\" ${item.x}'"},
    {"nested_bash_options", "bash -euo pipefail -c 'printf \"<%s>\" ${item.x}'"},
    {"nested_bash_quoted", "bash -c 'printf \"%s\" \"<${item.x}>\"'"},
    {"nested_bash_escaped_quote", "bash -c 'printf '\\''<%s>'\\'' ${item.x}'"},
    {"nested_bash_other_quote", "bash -c 'printf '\"'\"'<%s>'\"'\"' ${item.x}'"},
    {"nested_sh", "env A=1 sh -c 'printf \"<%s>\" ${item.x}'"},
    {"nested_substitution",
     "bash -c 'printf \"<%s>\" \"$(printf %s ${item.x}; echo .)\"' | "
     "sed '$s/\\.>$/>/'"},
    {"nested_ansi", "bash -c $'printf \"<%s>\" ${item.x}'"},
    {"eval", "eval 'printf \"<%s>\" ${item.x}'"},
    {"trap", "trap 'printf \"<%s>\" ${item.x}' EXIT"},
    {"argument_of_nested", "bash -c 'printf \"<%s>\" \"$1\"' _ ${item.x}"},
    {"here_document", "IFS= read -r -d '' x <<END || true\n<${item.x}>\nEND\nprintf %s \"${x%?}\""},
    {"here_document_tabs", "cat <<-END\n\t<${item.x}>\n\tEND\n"},
    {"two_here_documents", "cat <<A - <<B\nno ${item.x}\nA\n<${item.x}>\nB\n"},
    {"nested_here_document", "bash <<'END'\nprintf '<%s>' ${item.x}\nEND\n"},
    {"nested_here_document_quoted", "bash -s -- <<\"END\"\nprintf '%s' \"<${item.x}>\"\nEND\n"},
    {"nested_here_document_backslash", "bash <<\\END\nprintf '%s' \"<${item.x}>\"\nEND\n"},
    {"here_document_substitution", "cat <<END\n<$(printf '%s>' ${item.x})\nEND\n"},
    {"here_string", "cat <<< \"<\"${item.x}\">\""},
    {"substitution", "x=$(printf '<%s>' ${item.x}); printf %s \"$x\""},
    {"quoted_substitution", "printf '%s' \"$(printf '<%s>' \"${item.x}\")\""},
    {"quoted_substitution_plain", "printf '%s' \"$(printf '<%s>' ${item.x})\""},
    {"deep_substitution", "printf '%s' \"$(printf %s \"$(printf '<%s>' \"${item.x}\")\")\""},
    {"substitution_with_case",
     "x=$(case a in a) printf '<%s>' ${item.x};; (b) echo;; esac); printf %s \"$x\""},
    {"substitution_with_comment", "x=$(printf '<%s>' ${item.x} # it's )\n); printf %s \"$x\""},
    {"backticks", "x=`printf '<%s>' ${item.x}`; printf %s \"$x\""},
    {"quoted_backticks", "printf '%s' \"`printf '<%s>' ${item.x}`\""},
    {"quoted_backticks_escaped", "printf '%s' \"`printf \\\"<%s>\\\" \\\"${item.x}\\\"`\""},
    {"nested_backticks", "x=`printf %s \"\\`printf '<%s>' ${item.x}\\`\"`; printf %s \"$x\""},
    {"process_substitution", "cat <(printf '<%s>' ${item.x})"},
    {"test", "[[ ${item.x} == ${item.x} ]] && printf '<%s>' ${item.x}"},
    {"test_pattern",
     "y=${item.x}; [[ $y == ${item.x} && -n \"x${item.x}\" ]]; printf '<%s>' \"$y\""},
    {"test_regex", "y=${item.x}; [[ $y =~ ${item.x} ]]; printf '<%s>' \"$y\""},
    {"old_test", "[ ${item.x} = ${item.x} ]; printf '<%s>' ${item.x}"},
    {"case_subject", "case ${item.x} in ${item.x}) printf '<%s>' ${item.x};; *) echo no;; esac"},
    {"case_pattern_list", "case ${item.x} in nothing | ${item.x}) printf '<%s>' ${item.x} ;; esac"},
    {"array", "a=(${item.x} b); printf '<%s>' \"${a[0]}\"; test ${#a[@]} -eq 2"},
    {"array_append", "a=(); a+=(${item.x}); printf '<%s>' \"${a[@]}\""},
    {"assignment", "y=${item.x}; printf '<%s>' \"$y\""},
    {"assignment_before_command", "Y=${item.x} bash -c 'printf \"<%s>\" \"$Y\"'"},
    {"local_variable", "f() { local y=${item.x}; printf '<%s>' \"$y\"; }; f"},
    {"export", "export Y=${item.x}; printf '<%s>' \"$Y\""},
    {"function_argument", "f() { printf '<%s>' \"$1\"; }; f ${item.x}"},
    {"function_keyword", "function f { printf '<%s>' ${item.x}; }; f"},
    {"default", "printf '<%s>' ${FOO:-${item.x}}"},
    {"default_quoted", "printf '<%s>' \"${FOO:-${item.x}}\""},
    {"default_quoted_twice", "printf '<%s>' \"${FOO:-\"${item.x}\"}\""},
    {"alternative", "FOO=1; printf '<%s>' ${FOO:+${item.x}}"},
    {"prefix_pattern",
     "y=${item.x}z; printf '<%s>' \"${y#${item.x}}\" | grep -qx '<z>'; "
     "printf '<%s>' ${item.x}"},
    {"suffix_pattern_plain",
     "y=z${item.x}; y=${y%${item.x}}; [ \"$y\" = z ]; "
     "printf '<%s>' ${item.x}"},
    {"replacement", "y=q; printf '<%s>' \"${y/q/${item.x}}\""},
    {"loop", "for y in ${item.x}; do printf '<%s>' \"$y\"; done"},
    {"loop_body", "for ((i = 0; i < 1; i++)); do printf '<%s>' ${item.x}; done"},
    {"pipe", "printf '<%s>' ${item.x} | cat"},
    {"subshell", "(printf '<%s>' ${item.x})"},
    {"group", "{ printf '<%s>' ${item.x}; }"},
    {"condition", "if test -n \"x\"${item.x}; then printf '<%s>' ${item.x}; fi"},
    {"brace_list", "set -- {q,${item.x}}; printf '<%s>' \"$2\""},
    {"after_comment", "# it's a comment with \"quotes and ${item.x}\nprintf '<%s>' ${item.x}"},
    {"hash_in_word", "y=a#b'c'; printf '<%s>' ${item.x}"},
    {"escaped_quote", "y=\\'\\\"; printf '<%s>' ${item.x}"},
    {"ansi_before", "y=$'it\\'s'; printf '<%s>' ${item.x}"},
    {"line_continuation", "printf \\\n  '<%s>' \\\n  ${item.x}"},
    {"arithmetic_before", "y=$((1 << 2)); ((y++)) || true; printf '<%s>' ${item.x}"},
    {"dollars", "y=$$$?$#; printf '<%s>' ${item.x}"},
    {"after_unicode", "y='é'; printf '<%s>' ${item.x}"},
};

TEST_P(Injection, ArrivesAsOneWordAndRunsNothing) {
  const TempDirectory directory;
  std::vector<TemplateProblem> problems;
  const auto command = CommandTemplate::parse(GetParam().command, TemplateScope::item, problems);
  for (const TemplateProblem& problem : problems) EXPECT_TRUE(problem.warning) << problem.message;
  for (const std::string& payload : payloads()) {
    // Bytes that are no text do not come in as JSON.
    JsonWriter item;
    item.begin_object().key("x").value(payload).end_object();
    TemplateInput input{.item = item.text()};
    auto variables = expand(command, input);
    ASSERT_TRUE(variables) << variables.error().detail;
    const std::string value = variables->front().second;
    const BashResult result = test::run_bash(command.script(), directory.path(), *variables);
    std::string out = result.out;
    // Here-documents end with a line break of their own.
    if (out.ends_with(">\n")) out.pop_back();
    EXPECT_EQ(out, "<" + value + ">") << command.script() << "\nexit code " << result.exit_code;
    EXPECT_EQ(result.exit_code, 0);
    ASSERT_FALSE(std::filesystem::exists(directory / "canary")) << payload;
    if (HasFailure()) return;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

INSTANTIATE_TEST_SUITE_P(Contexts, Injection, testing::ValuesIn(kContexts),
                         [](const auto& context) { return context.param.name; });

}  // namespace
}  // namespace reprise::runbook
