#include "runbook/command_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::runbook {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct Parsed {
  CommandTemplate command;
  std::vector<TemplateProblem> problems;
};

Parsed parse(std::string_view text, TemplateScope scope = TemplateScope::item) {
  Parsed parsed;
  parsed.command = CommandTemplate::parse(text, scope, parsed.problems);
  return parsed;
}

auto error(std::size_t line, std::string_view message) {
  return AllOf(Field(&TemplateProblem::warning, false), Field(&TemplateProblem::line, line),
               Field(&TemplateProblem::message, HasSubstr(std::string(message))));
}
auto warning(std::size_t line, std::string_view message) {
  return AllOf(Field(&TemplateProblem::warning, true), Field(&TemplateProblem::line, line),
               Field(&TemplateProblem::message, HasSubstr(std::string(message))));
}

struct Good {
  std::string_view text;
  std::string_view script;
};
class Script : public testing::TestWithParam<Good> {};

TEST_P(Script, HasReferencesThatItsQuotesAskFor) {
  const Parsed parsed = parse(GetParam().text);
  EXPECT_THAT(parsed.problems, IsEmpty());
  EXPECT_EQ(parsed.command.script(), GetParam().script);
  EXPECT_EQ(parsed.command.source(), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(
    Roots, Script,
    testing::Values(
        Good{"a ${item.id}", "a \"${REPRISE_ITEM_id}\""},
        Good{"a ${item}", "a \"${REPRISE_ITEM}\""},
        Good{"a ${item.a.b-c}", "a \"${REPRISE_ITEM_a_b_c}\""},
        Good{"a ${item.größe}", "a \"${REPRISE_ITEM_gr____e}\""},
        Good{"a ${item.0}", "a \"${REPRISE_ITEM_0}\""},
        Good{"a ${job.id} ${job.attempts} ${job.failures}",
             "a \"${REPRISE_JOB_id}\" \"${REPRISE_JOB_attempts}\" \"${REPRISE_JOB_failures}\""},
        Good{"a ${job.headers.X-Trace.Id}", "a \"${REPRISE_JOB_headers_X_Trace_Id}\""},
        Good{"a ${queue} ${worker}", "a \"${REPRISE_QUEUE_name}\" \"${REPRISE_WORKER_name}\""},
        Good{"a ${run.id} ${project.root}", "a \"${REPRISE_RUN_id}\" \"${REPRISE_PROJECT_root}\""},
        Good{"a ${env.HOME}", "a \"${REPRISE_ENV_HOME}\""},
        Good{"a ${item.id:-x y}", "a \"${REPRISE_ITEM_id}\""},
        Good{"a \"${queue:-none}\"", "a \"${REPRISE_QUEUE_name}\""}));

INSTANTIATE_TEST_SUITE_P(
    LeftAlone, Script,
    testing::Values(Good{"echo $HOME ${HOME} ${A:-b} ${#A} ${!A} ${A[@]} ${A#b} ${1} ${@}",
                         "echo $HOME ${HOME} ${A:-b} ${#A} ${!A} ${A[@]} ${A#b} ${1} ${@}"},
                    Good{"echo \\${item.id}", "echo \\${item.id}"},
                    Good{"echo \"\\${item.id}\"", "echo \"\\${item.id}\""},
                    Good{"echo '\\${item.id}'", "echo '\\${item.id}'"},
                    Good{"cat <<E\n\\${item.id}\nE\n", "cat <<E\n\\${item.id}\nE\n"},
                    Good{"for job in a; do echo ${job} ${run} ${items}; done",
                         "for job in a; do echo ${job} ${run} ${items}; done"},
                    Good{"queue=a; echo ${queue#a} ${#queue}",
                         "queue=a; echo ${queue#a} ${#queue}"},
                    Good{"# ${item.id} ${itme.id}\ntrue", "# ${item.id} ${itme.id}\ntrue"},
                    Good{"node -e 'a = `${user.name}`'", "node -e 'a = `${user.name}`'"},
                    Good{"echo $${item.id}", "echo $${item.id}"},
                    Good{"read -r -t 5 x; declare -A m; m[a]=1; unset x",
                         "read -r -t 5 x; declare -A m; m[a]=1; unset x"},
                    Good{"x=$((1 << 2)); echo $((x # 3))", "x=$((1 << 2)); echo $((x # 3))"}));

INSTANTIATE_TEST_SUITE_P(
    NestedShells, Script,
    testing::Values(Good{"bash -c 'a ${item.x}'", "bash -c 'a \"${REPRISE_ITEM_x?}\"'"},
                    Good{"bash -c 'a \"b ${item.x}\"'", "bash -c 'a \"b ${REPRISE_ITEM_x?}\"'"},
                    Good{"ssh host 'a ${item.x}'", "ssh host 'a \"${REPRISE_ITEM_x?}\"'"},
                    Good{"sudo -u me /bin/sh -ec 'a ${item.x}'",
                         "sudo -u me /bin/sh -ec 'a \"${REPRISE_ITEM_x?}\"'"},
                    Good{"find . -exec sh -c 'a \"$1\" ${item.x}' _ {} \\;",
                         "find . -exec sh -c 'a \"$1\" \"${REPRISE_ITEM_x?}\"' _ {} \\;"},
                    Good{"ssh host bash -s <<'END'\na ${item.x}\nEND\n",
                         "ssh host bash -s <<'END'\na \"${REPRISE_ITEM_x?}\"\nEND\n"}));

TEST(NestedShell, WithQuotesThatCannotBeToldKeepsTheReference) {
  const Parsed parsed = parse("ssh host 'a (${item.x} b'");
  EXPECT_THAT(parsed.problems, IsEmpty());
  EXPECT_EQ(parsed.command.script(), "ssh host 'a (${REPRISE_ITEM_x?} b'");
}

TEST(Variables, AreOneForTheSameTemplate) {
  const Parsed parsed = parse("a ${item.x} \"${item.x}\" ${item.y}");
  EXPECT_THAT(parsed.command.references(),
              ElementsAre(Field(&TemplateReference::variable, "REPRISE_ITEM_x"),
                          Field(&TemplateReference::variable, "REPRISE_ITEM_y")));
}

TEST(Variables, AreToldApartWhenPathsLookAlike) {
  const Parsed parsed = parse("a ${item.a.b} ${item.a_b} ${item.a-b} ${item.a_b_2}");
  EXPECT_EQ(parsed.command.script(),
            "a \"${REPRISE_ITEM_a_b}\" \"${REPRISE_ITEM_a_b_2}\" \"${REPRISE_ITEM_a_b_3}\" "
            "\"${REPRISE_ITEM_a_b_2_2}\"");
}

TEST(Variables, AreToldApartByTheFallback) {
  const Parsed parsed = parse("a ${item.x} ${item.x:-} ${item.x:-b} ${item.x:-b}");
  ASSERT_EQ(parsed.command.references().size(), 3U);
  EXPECT_EQ(parsed.command.references()[1].fallback, "");
  EXPECT_EQ(parsed.command.references()[2].fallback, "b");
  EXPECT_EQ(parsed.command.script(),
            "a \"${REPRISE_ITEM_x}\" \"${REPRISE_ITEM_x_2}\" \"${REPRISE_ITEM_x_3}\" "
            "\"${REPRISE_ITEM_x_3}\"");
}

TEST(Variables, HaveNamesOfBoundedLength) {
  const Parsed parsed = parse(std::string("a ${item.").append(5000, 'x').append("}"));
  EXPECT_LE(parsed.command.references()[0].variable.size(), 110U);
}

TEST(Fallback, GoesToTheMatchingBrace) {
  const Parsed parsed = parse("a ${item.x:-{\"a\": {}}}b");
  EXPECT_EQ(parsed.command.references()[0].fallback, "{\"a\": {}}");
  EXPECT_EQ(parsed.command.script(), "a \"${REPRISE_ITEM_x}\"b");
}

struct Bad {
  std::string_view text;
  std::size_t line;
  std::string_view message;
};
class Refused : public testing::TestWithParam<Bad> {};

TEST_P(Refused, WithTheLineAndTheReason) {
  EXPECT_THAT(parse(GetParam().text).problems,
              testing::Contains(error(GetParam().line, GetParam().message)))
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Names, Refused,
    testing::Values(
        Bad{"a ${itme.id}", 1, "unknown template name 'itme.id'; did you mean 'item.id'?"},
        Bad{"a\nb ${foo.bar}", 2, "unknown template name 'foo.bar'"},
        Bad{"a ${job.ids}", 1, "unknown template name 'job.ids'; did you mean 'job.id'?"},
        Bad{"a ${job.header.x}", 1, "did you mean 'job.headers.x'?"},
        Bad{"a ${job.id.x}", 1, "unknown template name 'job.id.x'"},
        Bad{"a ${queue.name}", 1, "unknown template name 'queue.name'; did you mean 'queue'?"},
        Bad{"a ${quue.name}", 1, "did you mean 'queue'?"},
        Bad{"a ${run.ids}", 1, "did you mean 'run.id'?"},
        Bad{"a ${project.rot}", 1, "did you mean 'project.root'?"},
        Bad{"a ${env.A.B}", 1, "unknown template name 'env.A.B'"},
        Bad{"a ${env.a-b}", 1, "unknown template name 'env.a-b'"},
        Bad{"a ${item.}", 1, "a name is missing beside a '.'"},
        Bad{"a ${item..b}", 1, "a name is missing beside a '.'"},
        Bad{"a ${item.a b}", 1, "only ':-text'"}, Bad{"a ${item.a:+b}", 1, "only ':-text'"},
        Bad{"a ${item.a[0]}", 1, "only ':-text'"}, Bad{"a ${item.a", 1, "no closing brace"},
        Bad{"a ${item.a:-b", 1, "no closing brace"},
        Bad{"a ${item.a:-${item.b}}", 1, "no template can stand in it"},
        Bad{"bash -c 'a ${itme.id}${item.b}'", 1, "did you mean 'item.id'?"}));

INSTANTIATE_TEST_SUITE_P(
    Computed, Refused,
    testing::Values(
        Bad{"echo $((${item.n} + 1))", 1, "where the shell computes"},
        Bad{"echo \"$((1 + ${item.n}))\"", 1, "where the shell computes"},
        Bad{"true\n((${item.n} > 1))", 2, "where the shell computes"},
        Bad{"if (( \"${item.n}\" > 1 )); then :; fi", 1, "where the shell computes"},
        Bad{"(( '${item.n}' ))", 1, "where the shell computes"},
        Bad{"for ((i = 0; i < ${item.n}; i++)); do :; done", 1, "where the shell computes"},
        Bad{"echo $[${item.n}]", 1, "where the shell computes"}, Bad{"let x=${item.n}", 1, "'let'"},
        Bad{"let \"x = ${item.n}\"", 1, "'let'"}, Bad{"x=1 builtin let ${item.n}", 1, "'let'"},
        Bad{"[[ ${item.n} -eq 1 ]]", 1, "use [ … ]"}, Bad{"[[ 1 -ne ${item.n} ]]", 1, "use [ … ]"},
        Bad{"[[ \"${item.n}\" -lt 1 ]]", 1, "use [ … ]"},
        Bad{"[[ -n a && ( 1 -le ${item.n} ) ]]", 1, "use [ … ]"},
        Bad{"[[ ${item.n} -gt 1 ]]", 1, "use [ … ]"},
        Bad{"if [[ a == b ||\n ${item.n} -ge 1 ]]; then :; fi", 2, "use [ … ]"},
        Bad{"[[ $(echo ${item.n}) -eq 1 ]]", 1, "use [ … ]"},
        Bad{"[[ -v ${item.n} ]]", 1, "[[ … ]]"}, Bad{"[ -v ${item.n} ]", 1, "variable's name"},
        Bad{"a[${item.n}]=1", 1, "where the shell computes"},
        Bad{"a[ ${item.n} ]+=1", 1, "where the shell computes"},
        Bad{"a=([${item.n}]=1)", 1, "where the shell computes"},
        Bad{"echo ${a[${item.n}]}", 1, "where the shell computes"},
        Bad{"echo \"${a[${item.n}]}\"", 1, "where the shell computes"},
        Bad{"echo ${a:${item.n}}", 1, "where the shell computes"},
        Bad{"echo ${a:1:${item.n}}", 1, "where the shell computes"},
        Bad{"cat <<E\n$((${item.n}))\nE\n", 2, "where the shell computes"},
        Bad{"echo `echo $((${item.n}))`", 1, "where the shell computes"},
        Bad{"echo $((`echo ${item.n}`))", 1, "where the shell computes"},
        Bad{"bash -c 'echo $((${item.n}))'", 1, "where the shell computes"},
        Bad{"declare -i x=${item.n}", 1, "-i"}, Bad{"declare ${item.n}=1", 1, "variable's name"},
        Bad{"export ${item.n}", 1, "variable's name"}, Bad{"unset ${item.n}", 1, "'unset'"},
        Bad{"read -r ${item.n}", 1, "variable's name"},
        Bad{"printf -v ${item.n} x", 1, "variable's name"}));

INSTANTIATE_TEST_SUITE_P(
    NotEnded, Refused,
    testing::Values(Bad{"echo 'a", 1, "single quote is not closed"},
                    Bad{"true\necho \"a", 2, "double quote is not closed"},
                    Bad{"echo $'a\\'", 1, "single quote is not closed"},
                    Bad{"echo `a", 1, "backtick is not closed"},
                    Bad{"echo $(a", 1, "no closing bracket"}, Bad{"(a", 1, "no closing bracket"},
                    Bad{"a=(1", 1, "no closing bracket"}, Bad{"echo $((1", 1, "closing bracket"},
                    Bad{"echo ${a", 1, "no closing brace"},
                    Bad{"true\ncat <<END\nfoo", 2, "here-document 'END' is not ended"},
                    Bad{"cat <<END", 1, "here-document 'END' is not ended"},
                    Bad{"cat <<END\n END\n", 1, "here-document 'END' is not ended"},
                    Bad{"cat <<END\na\\\nEND\n", 1, "here-document 'END' is not ended"},
                    Bad{"x=$(cat <<END)\n", 1, "here-document 'END' is not ended"},
                    Bad{"cat <<\n", 1, "without a delimiter"},
                    Bad{"cat <<${item.x}\na\n", 1, "delimiter of a here-document"},
                    Bad{"cat <<END\n$(a\nEND\n)\n", 2, "no closing bracket"}));

TEST(Refused, WhenNestedTooDeep) {
  for (const std::string_view opening : {"$(", "(", "\"$(", "${a:-", "$((", "a=(", "@("}) {
    std::string text = "echo ";
    for (int i = 0; i < 50'000; ++i) text += opening;
    EXPECT_THAT(parse(text).problems, testing::Contains(Field(&TemplateProblem::warning, false)));
  }
}

TEST(List, KnowsNeitherItemNorJob) {
  EXPECT_THAT(parse("a ${item.id} ${job.id}", TemplateScope::list).problems,
              ElementsAre(error(1, "'item.id' cannot stand in 'list'"),
                          error(1, "'job.id' cannot stand in 'list'")));
  EXPECT_THAT(parse("a ${queue} ${worker} ${env.A} ${project.root}", TemplateScope::list).problems,
              IsEmpty());
}

// The word is tried as the other shell's command, where the fallback has lost its quotes; that
// shell could not read it.
TEST(References, AreThoseOfTheScript) {
  const Parsed parsed = parse("ssh host '${item.id} \"'${item.a:-'x'}");
  EXPECT_EQ(parsed.command.script(), "ssh host '${REPRISE_ITEM_id?} \"'\"${REPRISE_ITEM_a}\"");
  EXPECT_THAT(parsed.command.references(),
              UnorderedElementsAre(Field(&TemplateReference::variable, "REPRISE_ITEM_id"),
                                   Field(&TemplateReference::variable, "REPRISE_ITEM_a")));
}

struct Doubtful {
  std::string_view text;
  std::size_t line;
  std::string_view message;
};
class Warned : public testing::TestWithParam<Doubtful> {};

TEST_P(Warned, ButTaken) {
  EXPECT_THAT(parse(GetParam().text).problems,
              ElementsAre(warning(GetParam().line, GetParam().message)))
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    Places, Warned,
    testing::Values(Doubtful{"jq '.a == \"${item.id}\"'", 1,
                             "'item.id' is not expanded in single quotes"},
                    Doubtful{"true\npython3 -c 'print(${item.id})'", 2, "single quotes"},
                    Doubtful{"bash x.sh '${item.id}'", 1, "single quotes"},
                    Doubtful{"bash -c 'echo $1' _ '${item.id}'", 1, "single quotes"},
                    Doubtful{"echo $'${item.id}'", 1, "single quotes"},
                    Doubtful{"cat <<'END'\n${item.id}\nEND\n", 2, "delimiter is quoted"},
                    Doubtful{"jq '${itme.id}'", 1, "did you mean 'item.id'?"},
                    Doubtful{"bash -c \"a ${item.id}\"", 1, "would run what is in it"},
                    Doubtful{"eval a ${item.id}", 1, "would run what is in it"},
                    Doubtful{"eval { ${item.id}", 1, "would run what is in it"},
                    Doubtful{"ssh host a ${item.id}", 1, "would run what is in it"},
                    Doubtful{"bash <<END\na ${item.id}\nEND\n", 2, "quote the delimiter: <<'END'"},
                    Doubtful{"a ${item.id:-$HOME}", 1, "the shell does not expand it"}));

}  // namespace
}  // namespace reprise::runbook
