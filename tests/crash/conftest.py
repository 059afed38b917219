"""Fixtures of the crash tests."""

import os
import secrets
import shutil

import pytest

from crash_run import CrashRun


@pytest.fixture
def start_run():
    """A function that puts a server under load: start_run(server, …)."""
    runs = []

    def start(server, **options):
        seed = int(os.environ.get("REPRISE_SEED", secrets.randbelow(2**32)))
        print(f"REPRISE_SEED={seed}")
        run = CrashRun(server, seed, **options)
        runs.append(run)
        run.start()
        return run

    yield start
    for run in runs:
        run.dispose()


def pytest_terminal_summary(terminalreporter):
    """How much the runs that passed have proved."""
    for report in terminalreporter.stats.get("passed", ()):
        for name, value in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")


@pytest.fixture
def violations_of(tmp_path):
    """A function that drains and checks a run. What was found is printed, with the means to look
    into it."""
    def finish(run):
        violations = run.finish()
        if violations:
            shutil.copy(run.journal_path, tmp_path)
            print(f"journal: {tmp_path / run.journal_path.name}")
            print("\n".join(f"{each.kind}: {each.text}" for each in violations[:20]))
        return violations

    return finish
