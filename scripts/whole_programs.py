"""Runs test programs whole, in shards: under sanitizers a start costs more than most tests.

ctest tells which tests there are, and of each its program, environment and time limit. The tests of
a program are dealt out to shards, and a shard is one run of the program. A program that dies takes
the rest of its shard with it; that rest is run again without the test that killed it, so one fault
hides no other. A test that only failed an expectation gets a second try, alone; one that a
sanitizer spoke about does not.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import junit_report

# A shard this long makes the start of its program cheap. Shorter ones, where there are few tests,
# keep all jobs busy until the end.
SHARD_TESTS = 50
SHARDS_PER_JOB = 8
FILTER = "--gtest_filter="
SANITIZER = re.compile(r"Sanitizer|runtime error: ")

STARTED = re.compile(r"\[ RUN      \] (\S+)$", re.MULTILINE)
ENDED = re.compile(r"\[ {2} {0,5}(OK|FAILED|SKIPPED) {1,2}\] ([^\s,]+)(?:, where .*)? \(\d+ ms\)$",
                   re.MULTILINE)
PASSED = re.compile(r"\[ RUN      \] (\S+)\n(?:(?!\[ RUN      \]).)*?\[       OK \] \1 \(\d+ ms\)\n",
                    re.DOTALL)


@dataclass(frozen=True)
class Shard:
    name: str
    command: tuple
    tests: tuple  # as the program calls them; empty: it is no GoogleTest, and one test itself
    environment: tuple
    folder: str
    seconds: float


@dataclass(frozen=True)
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    told: str = ""
    unsteady: tuple = ()  # failed at first, passed at the second try

    def __add__(self, other):
        return Outcome(self.passed + other.passed, self.failed + other.failed,
                       self.skipped + other.skipped, self.told + other.told,
                       self.unsteady + other.unsteady)


def tests_of(build, part, only):
    """The tests of a part, as ctest describes them; raises ValueError when it cannot."""
    command = ["ctest", "--test-dir", str(build), "--label-regex", f"^{part}$", "--show-only=json-v1"]
    result = subprocess.run(command + (["--tests-regex", only] if only else []),
                            capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise ValueError(result.stderr or result.stdout)
    return json.loads(result.stdout)["tests"]


def shards_of(tests, jobs):
    """The tests dealt out to shards. Of neighbours, which take about as long, each gets its share."""
    programs = {}
    for test in tests:
        command = test.get("command", [])
        names = [word.removeprefix(FILTER) for word in command if word.startswith(FILTER)]
        rest = tuple(word for word in command if not word.startswith(FILTER))
        properties = {each["name"]: each["value"] for each in test["properties"]}
        about = (rest, tuple(properties.get("ENVIRONMENT", ())),
                 properties.get("WORKING_DIRECTORY", "."), properties.get("TIMEOUT", 300.0))
        # What is no GoogleTest stays alone.
        programs.setdefault(about if names else (*about, test["name"]), []).append(
            (test["name"], *names))

    size = max(1, min(SHARD_TESTS, len(tests) // (SHARDS_PER_JOB * jobs)))
    shards = []
    for (command, environment, folder, seconds, *_), cases in programs.items():
        count = -(-len(cases) // size)
        for index in range(count):
            names = tuple(case[1] for case in cases[index::count] if len(case) > 1)
            name = f"{Path(command[0]).name}, shard {index + 1} of {count}" if names else cases[0][0]
            shards.append(Shard(name, command, names, environment, folder, seconds))
    return shards


def start(shard, environment, report, output):
    """Runs the program to its end, and tells how it ended; nothing if all is well."""
    environment = environment | dict(each.split("=", 1) for each in shard.environment)
    command = list(shard.command)
    if shard.tests:
        command += [FILTER + ":".join(shard.tests), f"--gtest_output=xml:{report}"]
    # A session of its own: processes that a stuck test has started end with it.
    process = subprocess.Popen(command, cwd=shard.folder, env=environment, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        code = process.wait(shard.seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"took more than {shard.seconds:.0f} s"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with {code}" if code else None


def without_passed(output):
    return PASSED.sub("", output)


def cut_short(shard, problem, output):
    """What a program that died has left: verdicts, the test it died in, and the tests to run again."""
    verdicts = {name: verdict for verdict, name in ENDED.findall(output)}
    begun = STARTED.findall(output)
    died_in = begun[-1] if begun and begun[-1] not in verdicts else None
    values = list(verdicts.values())
    told = (f"{without_passed(output)}\n"
            f"{shard.name}: {problem} in {died_in or 'no test of its own'}\n")
    outcome = Outcome(values.count("OK"), values.count("FAILED") + 1, values.count("SKIPPED"), told)
    rest = tuple(name for name in shard.tests if name not in begun)
    return outcome, rest if begun else ()


def run_shard(shard, environment):
    """What became of a shard, and the part of it that deserves a second try."""
    nothing = replace(shard, tests=())
    if not shard.command:
        return Outcome(failed=1, told=f"{shard.name}: there is no program to run it\n"), nothing
    outcome = Outcome()
    while True:
        with tempfile.TemporaryDirectory() as scratch:
            report, log = Path(scratch, "report.xml"), Path(scratch, "output")
            with log.open("wb") as output:
                problem = start(shard, environment, report, output)
            output = log.read_text(errors="replace")
            if not shard.tests:
                told = f"{output}\n{shard.name}: {problem}\n" if problem else ""
                return Outcome(passed=not problem, failed=bool(problem), told=told), nothing
            if report.exists():
                ended, again = complete(shard, problem, output, report)
                return outcome + ended, again
        died, rest = cut_short(shard, problem or "left no report", output)
        outcome += died
        if not rest:
            return outcome, nothing
        shard = replace(shard, tests=rest)


def complete(shard, problem, output, report):
    """A program that has run all its tests can still end badly: with a leak, for one."""
    passed, failed, skipped = junit_report.count(report)
    if not problem and not failed:
        if passed + skipped == len(shard.tests):
            return Outcome(passed, 0, skipped), replace(shard, tests=())
        problem = f"ran {passed + skipped} tests of {len(shard.tests)}"
    told = f"{without_passed(output)}\n{shard.name}: {problem or 'has failed'}\n"
    again = ()
    if failed and not SANITIZER.search(output):
        again = tuple(".".join(case) for case in junit_report.failed_cases(report))
    return Outcome(passed, max(failed, 1), skipped, told), replace(shard, tests=again)


def second_try(shard, environment):
    """The names of the tests in a shard that pass when they run once more."""
    passed = []
    for test in shard.tests:
        outcome, _ = run_shard(replace(shard, tests=(test,)), environment)
        if outcome.passed:
            passed.append(test)
    return tuple(passed)


def run(build, part, only, jobs, environment, second_tries):
    """The outcome of a part; prints what failed as it happens."""
    try:
        shards = shards_of(tests_of(build, part, only), jobs)
    except ValueError as error:
        print(f"{part}: ctest cannot tell its tests\n{error}", flush=True)
        return Outcome(failed=1)
    total, again = Outcome(), []
    with ThreadPoolExecutor(jobs) as pool:
        for outcome, failed in pool.map(lambda shard: run_shard(shard, environment), shards):
            print(outcome.told, end="", flush=True)
            total += replace(outcome, told="")
            again.append(failed)
    if sum(len(shard.tests) for shard in again) <= second_tries:
        for shard in again:
            steadied = second_try(shard, environment)
            total += Outcome(passed=len(steadied), failed=-len(steadied), unsteady=steadied)
    return total
