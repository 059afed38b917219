"""No payload becomes a command: texts that would be code if they were pasted, everywhere a template
may stand. Each must arrive as it is, byte for byte, and a canary must not appear."""

import json

import pytest

from projects import pipeline, simple, step, worker
from waiting import eventually

# Prints what it is given, each argument between NULs: ./record NAME ARG…
RECORD = """#!/bin/bash
name=$1; shift
printf '%s\\0' "$#" "$@" > "got/$REPRISE_JOB_ID.$name"
"""


def payloads(canary):
    act = f"touch {canary}"
    return [
        f"$({act})", f"`{act}`", f"; {act}", f"| {act}", f"&& {act}", f"|| {act}", f"& {act} &",
        f"\n{act}\n", f"'; {act}; '", f'"; {act}; "', f"'\"; {act}; \"'", f"\\\"; {act}; \\\"",
        f"x\nEND\n{act}\n", f"END\n{act}", f"'\nEND\n{act}", f"a[$({act})]", f"a[0$({act})]+1",
        f"${{x:-$({act})}}", f"${{x:=`{act}`}}", f"$(({'a'}[$({act})]))", f"() {{ :; }}; {act}",
        f"<({act})", f">({act})", f"> {canary}", f">> {canary}", f"< /dev/null > {canary}",
        f"{{{act},}}", f"$'\\n{act}'", f"\\\n{act}", f"# \n{act}", f"x\r\n{act}\r\n",
        f")\n{act}\n(", f"}}; {act}; {{", f"]]; {act}; [[", f";; esac; {act}; case x in *) ",
        f"fi; {act}", f"done; {act}", f"${{item.v}} $({act})", f"\"$({act})\"", f"'$({act})'",
        f"%s%n$({act})", f"-e {act}", f"--rcfile {canary}", f"\\$({act})", f"\\\\`{act}`",
        f"!{act}", f"$REPRISE_JOB_ID$({act})", f"\x1b[31m$({act})\x07", f"é ☃ 🙂 $({act})",
        # Harmless, and easily changed on the way.
        "", " ", "  two  spaces  ", "\t", "*", "?", "[a-z]*", "~", "~root", "{a,b}", "$HOME", "$$",
        "$!", "${PATH}", "!!", "\\", "\\\\", "\\n", "'", '"', "''", '""', "#", "&", "a=b", "-n",
        "\n", "\n\n", "ends with newlines\n\n", "\x01\x02\x7f", "\u2028\u0085", "x" * 50_000,
    ]


# {name: (command, what becomes of the value)}; the recorder is told the value and then `end`.
CONTEXTS = {
    "plain": ("./record plain ${item.v} end", None),
    "quoted": ('./record quoted "${item.v}" end', None),
    "inside": ("./record inside pre${item.v}post end", lambda v: f"pre{v}post"),
    "inside-quotes": ('./record inside-quotes "pre ${item.v} post" end',
                      lambda v: f"pre {v} post"),
    "between-single": ("./record between-single 'a b'${item.v}'c d' end",
                       lambda v: f"a b{v}c d"),
    "fallback": ("./record fallback ${item.v:-fall back} end", None),
    "nested-field": ("./record nested-field ${item.a.b} end", None),
    "header": ("./record header ${job.headers.h:-} end", lambda v: ""),
    "assigned": ("x=${item.v}; y=\"${item.v}\"; [ \"$x\" = \"$y\" ]; ./record assigned \"$x\" end",
                 None),
    "array": ("x=(${item.v} end); ./record array \"${x[@]}\"", None),
    "loop": ("for x in ${item.v}; do ./record loop \"$x\" end; done", None),
    "substitution": ("x=$(printf %s. ${item.v}); ./record substitution \"${x%.}\" end", None),
    "in-quoted-substitution": (
        'x="$(printf %s. "${item.v}")"; ./record in-quoted-substitution "${x%.}" end', None),
    "backticks": ("x=`printf %s. ${item.v}`; ./record backticks \"${x%.}\" end", None),
    "here-document": ("x=$(cat <<END\n${item.v}.\nEND\n); ./record here-document \"${x%.}\" end",
                      None),
    "here-string": ("x=$(cat <<< ${item.v}.); ./record here-string \"${x%.}\" end", None),
    "case": ("case ${item.v} in ${item.v}) ./record case ${item.v} end;; esac", None),
    "test": ("[[ ${item.v} == ${item.v} ]]; [ ${item.v} = ${item.v} ]; "
             "./record test ${item.v} end", None),
    "function": ("f() { ./record function \"$1\" ${item.v}; }; f ${item.v}", "twice"),
    "comment": ("# ${item.v}\n./record comment ${item.v} end # ${item.v}", None),
    "subshell": ("( ./record subshell ${item.v} end )", None),
    "piped": ("true | ./record piped ${item.v} end", None),
    "many-lines": ("./record \\\n  many-lines \\\n  ${item.v} \\\n  end", None),
    "nested-shell": ("bash -c './record nested-shell \"${item.v}\" end'", None),
    "nested-twice": ("bash -c 'bash -c \"./record nested-twice \\\"\\$1\\\" end\" x \"${item.v}\"'",
                     None),
    "nested-document": ("bash -s <<'END'\n./record nested-document \"${item.v}\" end\nEND\n",
                        None),
    "whole-item": ("./record whole-item ${item} end", "json"),
}


def expected(context, value):
    change = CONTEXTS[context][1]
    if change == "twice":
        return [value, value]
    return [value if change is None else change(value), "end"]


def recorded(project, job_id, name):
    path = project.path("got") / f"{job_id}.{name}"
    if not path.exists():
        return "nothing was recorded"
    count, *given = path.read_bytes().decode().split("\0")[:-1]
    assert int(count) == len(given)
    return given


@pytest.fixture
def recording(project):
    project.script("record", RECORD)
    project.path("got").mkdir()
    return project


def assert_as_given(project, job_id, value):
    wrong = []
    for context in CONTEXTS:
        given = recorded(project, job_id, context)
        if CONTEXTS[context][1] == "json":
            right = len(given) == 2 and json.loads(given[0]) == {"v": value, "a": {"b": value}}
        else:
            right = given == expected(context, value)
        if not right:
            wrong.append((context, value[:200], str(given)[:300]))
    return wrong


def test_every_payload_in_every_place(recording):
    project = recording
    canary = project.path("canary")
    # Each step goes on with the next also when it fails, so that one finding hides no other.
    names = list(CONTEXTS)
    steps = [step(name, CONTEXTS[name][0]) for name in names]
    for this, following in zip(steps, names[1:]):
        this["on_fail"] = following
        this["on_done"] = following
    project.declare(simple(*steps, concurrency=2)).start()
    values = payloads(canary)
    ids = project.queue().push(*[{"v": value, "a": {"b": value}} for value in values])
    eventually(lambda: set(project.queue().counts()) <= {"dead"}, "all to be through", 120, 0.1)
    assert not canary.exists(), "a payload was run as a command"
    wrong = [finding for job_id, value in zip(ids, values)
             for finding in assert_as_given(project, job_id, value)]
    assert not wrong, "\n".join(map(str, wrong[:20])) + f"\n{len(wrong)} in all"
    assert project.queue().counts() == {}


def test_a_nested_shell_without_quotes_runs_nothing(recording):
    project = recording
    canary = project.path("canary")
    project.declare(simple("bash -c './record nested ${item.v} end' || true",
                           "bash -s <<'END'\n./record document ${item.v} end\nEND\n",
                           concurrency=2)).start()
    project.queue().push(*[{"v": value} for value in payloads(canary)])
    eventually(lambda: set(project.queue().counts()) <= {"dead"}, "all to be through", 60, 0.1)
    assert not canary.exists(), "a payload was run as a command"


def test_headers(recording):
    project = recording
    canary = project.path("canary")
    project.declare(simple('./record header ${job.headers.h} end',
                           'bash -c \'./record nested "${job.headers.h}" end\'',
                           concurrency=2)).start()
    values = [value for value in payloads(canary) if 0 < len(value) < 1000]
    results = project.queue().push_jobs([{"payload": {}, "headers": {"h": value}}
                                         for value in values])
    pushed = [(result["id"], value) for result, value in zip(results, values)
              if result["status"] == "pushed"]
    assert len(pushed) > 40
    eventually(lambda: set(project.queue().counts()) <= {"dead"}, "all to be through", 60, 0.1)
    assert not canary.exists(), "a header was run as a command"
    assert [(recorded(project, job_id, "header"), recorded(project, job_id, "nested"))
            for job_id, _ in pushed] == [([value, "end"], [value, "end"]) for _, value in pushed]


def test_items_and_keys_of_an_external_queue(recording):
    project = recording
    canary = project.path("canary")
    values = [value for value in payloads(canary) if value]
    project.path("items.json").write_text(json.dumps([{"id": value} for value in values]))
    # Each key has a directory of its own: taken once.
    claim = "mkdir \"taken/$(printf %s. ${job.id} | md5sum | cut -c1-32)\""
    project.path("taken").mkdir()
    log = "printf '%s\\0' ${item.id} ${job.id} >>"
    project.declare(
        queue={"bugs": {"type": "external", "list": "cat items.json", "poll": "500ms",
                        "take": f"{claim}; {log} takes", "done": f"{log} dones",
                        "failed": f"{log} fails"}},
        pipeline={"fix": pipeline(f"{log} runs")}, worker={"w": worker("bugs", "fix")})
    project.start()
    eventually(lambda: project.worker()["succeeded"] + project.worker()["failed"] >= len(values),
               "all to be through", 90, 0.1)
    twice = sorted(value for value in values for _ in range(2))

    def told(name):
        return sorted(project.path(name).read_bytes().decode().split("\0")[:-1])

    eventually(lambda: len(told("dones")) >= len(twice), "all to be told")
    assert not canary.exists(), "an item was run as a command"
    assert told("takes") == told("runs") == told("dones") == twice
    assert not project.path("fails").exists()


def test_errors_do_not_become_commands(recording):
    """What a step prints to stderr is handed on to its handler."""
    project = recording
    canary = project.path("canary")
    project.declare(simple(
        step("fail", "printf '%s' ${item.v} >&2; exit 1", on_fail="undo"),
        step("undo", "./record error \"$REPRISE_ERROR\""), concurrency=2)).start()
    ids = project.queue().push(*[{"v": value} for value in payloads(canary)])
    eventually(lambda: project.queue().counts() == {"dead": len(ids)}, "all to be dead", 60, 0.1)
    assert not canary.exists(), "an error was run as a command"
    assert all(len(recorded(project, job_id, "error")) == 1 for job_id in ids)


def test_names_of_fields(recording):
    """Fields with odd names may be beside the one that is asked for."""
    project = recording
    canary = project.path("canary")
    project.declare(simple("./record field ${item.v} end")).start()
    odd = {f"$(touch {canary})": 1, "v;x": 2, "v\nREPRISE_X=1": 3, "PATH": "/nowhere",
           "BASH_ENV": f"{canary}", "LD_PRELOAD": "/nowhere", "a=b": 4, "": 5, "v": "right"}
    job_id = project.done(odd)
    assert recorded(project, job_id, "field") == ["right", "end"]
    assert not canary.exists()
