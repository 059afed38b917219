"""scripts/test --whole counts and tells what tests did as if each had run alone."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import whole_programs  # noqa: E402

# Behaves like a GoogleTest program with the tests it is asked for. What a test does is in its name.
PROGRAM = r'''#!/usr/bin/python3
import os, sys, time
options = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
results, code = [], 0

def first_time(name):
    known = os.path.exists(name)
    open(name, "w").close()
    return not known

print("Running main()", flush=True)
for name in options["--gtest_filter"].split(":"):
    print(f"[ RUN      ] {name}", flush=True)
    if "Crash" in name:
        os.abort()
    if "Exit" in name:
        os._exit(3)
    if "Hang" in name:
        time.sleep(60)
    print("says", name)
    if "Environment" in name:
        print("sees", os.environ["GIVEN"], os.getcwd())
    verdict = "FAILED" if "Fail" in name else "FAILED" if "Once" in name and first_time(name) else "SKIPPED" if "Skip" in name else "OK"
    label = {"FAILED": "[  FAILED  ]", "SKIPPED": "[  SKIPPED ]", "OK": "[       OK ]"}[verdict]
    with_value = ", where GetParam() = (1, 2)" if verdict == "FAILED" else ""
    print(f"{label} {name}{with_value} (0 ms)", flush=True)
    results.append((name, {"FAILED": "<failure/>", "SKIPPED": "<skipped/>", "OK": ""}[verdict]))
    code = code or int(verdict == "FAILED")
    if "Leak" in name:
        code = 23
if code == 23:
    print("ERROR: LeakSanitizer")
with open(options["--gtest_output"].removeprefix("xml:"), "w") as file:
    cases = "".join(f'<testcase classname="{name.split(".")[0]}" name="{name.split(".")[1]}">{end}'
                    "</testcase>" for name, end in results)
    file.write(f"<testsuites>{cases}</testsuites>")
sys.exit(code)
'''


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "some_test"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    return path


def described(program, names, seconds=30.0):
    """Tests as ctest describes them."""
    return [{"name": f"some.{name}",
             "command": [str(program), f"--gtest_filter={name}", "--gtest_also_run_disabled_tests"],
             "properties": [{"name": "ENVIRONMENT", "value": ["GIVEN=yes"]},
                            {"name": "TIMEOUT", "value": seconds},
                            {"name": "WORKING_DIRECTORY", "value": str(program.parent)}]}
            for name in names]


def outcome_of(program, *names, seconds=30.0):
    shard = whole_programs.Shard("some_test, shard 1 of 1", (str(program),), names, ("GIVEN=yes",),
                                 str(program.parent), seconds)
    return whole_programs.run_shard(shard, {"PATH": "/usr/bin:/bin"})[0]


def counts(outcome):
    return outcome.passed, outcome.failed, outcome.skipped


@pytest.mark.parametrize("number, jobs, most", [(1, 2, 1), (41, 2, 2), (500, 2, 31), (5000, 2, 50)])
def test_each_test_is_in_one_shard(program, number, jobs, most):
    names = [f"Suite.Case{index}" for index in range(number)]
    shards = whole_programs.shards_of(described(program, names), jobs)
    assert sorted(name for shard in shards for name in shard.tests) == sorted(names)
    assert max(len(shard.tests) for shard in shards) <= most
    assert len({shard.name for shard in shards}) == len(shards)


def test_a_shard_runs_as_ctest_would_run_its_tests(program):
    [shard] = whole_programs.shards_of(described(program, ["A.Environment"], seconds=7.0), 2)
    assert shard.seconds == 7.0
    assert shard.command == (str(program), "--gtest_also_run_disabled_tests")
    outcome, _ = whole_programs.run_shard(shard, {"PATH": "/usr/bin:/bin"})
    assert counts(outcome) == (1, 0, 0)
    outcome = outcome_of(program, "A.EnvironmentFail")
    assert f"sees yes {program.parent}" in outcome.told


def test_only_what_failed_is_told(program):
    outcome = outcome_of(program, "A.One", "A.Fail", "A.Skip", "A.Two")
    assert counts(outcome) == (2, 1, 1)
    assert "says A.Fail" in outcome.told
    assert "says A.One" not in outcome.told and "says A.Two" not in outcome.told
    assert outcome_of(program, "A.One", "A.Skip").told == ""


@pytest.mark.parametrize("fault, problem", [("Crash", "was killed by SIGABRT"),
                                            ("Exit", "ended with 3")])
def test_a_test_that_ends_the_program_is_named_and_hides_no_other(program, fault, problem):
    outcome = outcome_of(program, "A.One", f"A.{fault}", "A.Fail", "A.Two", f"B.{fault}", "B.Skip")
    assert counts(outcome) == (2, 3, 1)
    assert f"some_test, shard 1 of 1: {problem} in A.{fault}" in outcome.told
    assert f"{problem} in B.{fault}" in outcome.told
    assert "says A.Fail" in outcome.told


def test_a_test_that_never_ends_is_named_and_hides_no_other(program):
    outcome = outcome_of(program, "A.One", "A.Hang", "A.Two", seconds=1.0)
    assert counts(outcome) == (2, 1, 0)
    assert "took more than 1 s in A.Hang" in outcome.told


def test_a_program_that_ends_badly_after_its_tests_has_failed(program):
    outcome = outcome_of(program, "A.One", "A.Leak")
    assert counts(outcome) == (2, 1, 0)
    assert "LeakSanitizer" in outcome.told and "ended with 23" in outcome.told


def test_a_program_that_runs_fewer_tests_than_asked_has_failed(program, tmp_path):
    program.write_text(PROGRAM.replace('.split(":"):', '.split(":")[1:]:'))
    assert counts(outcome_of(program, "A.One", "A.Two")) == (1, 1, 0)
    program.write_text("#!/bin/sh\nexit 0\n")
    assert counts(outcome_of(program, "A.One", "A.Two")) == (0, 1, 0)


@pytest.mark.parametrize("script, expected", [("exit 0", (1, 0, 0)),
                                              ("echo oops; exit 1", (0, 1, 0))])
def test_what_is_no_googletest_is_judged_by_its_end(tmp_path, script, expected):
    program = tmp_path / "fuzz"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    tests = [{"name": "fuzz.a", "command": [str(program)], "properties": []},
             {"name": "fuzz.b", "command": [str(program)], "properties": []}]
    shards = whole_programs.shards_of(tests, 2)
    assert [shard.name for shard in shards] == ["fuzz.a", "fuzz.b"]
    outcome, _ = whole_programs.run_shard(shards[0], {})
    assert counts(outcome) == expected
    assert ("oops" in outcome.told) == bool(expected[1])


def test_a_test_whose_program_was_not_built_has_failed():
    [shard] = whole_programs.shards_of([{"name": "some_test_NOT_BUILT", "properties": []}], 2)
    outcome, _ = whole_programs.run_shard(shard, {})
    assert counts(outcome) == (0, 1, 0)
    assert "some_test_NOT_BUILT" in outcome.told


def run_all(monkeypatch, program, *names, second_tries=3):
    monkeypatch.setattr(whole_programs, "tests_of", lambda *_: described(program, names))
    return whole_programs.run(program.parent, "unit", None, 2, {"PATH": "/usr/bin:/bin"},
                              second_tries)


def test_a_test_that_passes_at_its_second_try_is_named(monkeypatch, program, capfd):
    outcome = run_all(monkeypatch, program, "A.One", "A.Once", "A.Fail")
    assert counts(outcome) == (2, 1, 0)
    assert outcome.unsteady == ("A.Once",)
    assert "says A.Once" in capfd.readouterr().out


def test_many_failures_get_no_second_try(monkeypatch, program):
    outcome = run_all(monkeypatch, program, "A.Once", "B.Once", second_tries=1)
    assert counts(outcome) == (0, 2, 0)
    assert outcome.unsteady == ()


@pytest.mark.parametrize("name", ["A.OnceLeak", "A.Crash"])
def test_what_a_sanitizer_or_a_signal_ended_gets_no_second_try(monkeypatch, program, name):
    outcome = run_all(monkeypatch, program, name)
    assert (outcome.failed, outcome.unsteady) == (1, ())
