"""The oracle on servers with a bug: each of thirteen is planted in turn, and is called by its name.

`reprise_planted` is the server with the faults of src/base/planted_bug.h in it, of which PLANTED_BUG
turns one on.
"""

import re
from pathlib import Path

import pytest

from beanstalk_servers import RepriseDoor
from checker import KINDS
from reprise_server import ROOT, binary
from workload import CLIENTS

LOAD_LINES = 6000  # of the journal, in a second or more: leases end meanwhile
# A job without a timer is waited for in vain; the longest honest wait is that for a lease.
PATIENCE_SECONDS = 4

# What else a bug brings with it, which the oracle may name too.
FOLLOWS = {
    "lost": {"wrong_stats"},  # it is counted nowhere any more
    "phantom": {"wrong_stats"},  # a push that was refused is not counted
    # Its lease is back too, so its token is good once more; it is counted as completed twice.
    "resurrected": {"stale_token", "wrong_stats"},
    # Whoever holds the lease now has it taken away, by what the oracle was told of another lease;
    # when it deletes the job by its number, nobody has it, and it is counted as dropped.
    "stale_token": {"double_lease", "wrong_attempts", "wrong_death", "early", "resurrected",
                    "wrong_stats"},
    "double_lease": {"wrong_stats"},  # a delete after the end of the lease is a drop
    "wrong_attempts": {"wrong_stats"},  # leases are counted by attempts
    "corrupted": set(),
    "duplicate": set(),
    "wrong_death": set(),
    "wrong_order": set(),
    "wrong_stats": set(),
    "early": set(),
    "stuck": set(),
}
# These do their harm in a restart.
NEEDS_A_KILL = {"resurrected"}
# These set a timer under another moment than the job's own: a kick, which looks for it there, would
# put the job into two places, and bring troubles that are none of the bug's.
WRONG_TIMERS = {"early", "stuck"}
# These are found by clients of the beanstalk protocol alone, too.
THROUGH_TUBES = ["lost", "resurrected", "wrong_attempts", "wrong_order", "early"]


def planted_binary():
    path = Path(binary()).with_name("reprise_planted")
    assert path.is_file(), f"no {path}: `make test` builds it"
    return str(path)


def kinds_found(start_server, start_run, violations_of, bug, **options):
    environment = {"PLANTED_BUG": bug} if bug else {}
    server = start_server(program=planted_binary(), env=environment, kind=RepriseDoor, ready=False)
    run = start_run(server, patience=PATIENCE_SECONDS, kicks=bug not in WRONG_TIMERS, **options)
    run.load_until(LOAD_LINES)
    if bug is None or bug in NEEDS_A_KILL:
        run.crash_after(0)
        run.load_until(LOAD_LINES)
    return {violation.kind for violation in violations_of(run)}


@pytest.mark.parametrize("bug", KINDS)
def test_a_planted_bug_is_found_and_named(start_server, start_run, violations_of, bug):
    kinds = kinds_found(start_server, start_run, violations_of, bug)
    assert bug in kinds
    assert kinds - {bug} <= FOLLOWS[bug]


@pytest.mark.parametrize("bug", THROUGH_TUBES)
def test_a_planted_bug_is_found_through_tubes(start_server, start_run, violations_of, bug):
    kinds = kinds_found(start_server, start_run, violations_of, bug, tube_clients=CLIENTS)
    assert bug in kinds
    assert kinds - {bug} <= FOLLOWS[bug]


def test_without_a_planted_bug_nothing_is_found(start_server, start_run, violations_of):
    assert kinds_found(start_server, start_run, violations_of, None) == set()


def test_the_server_can_have_every_bug_that_the_oracle_can_name():
    text = (ROOT / "src/base/planted_bug.h").read_text()
    body = re.search(r"enum class PlantedBug [^{]*\{(.*?)\}", text, re.DOTALL)[1]
    assert set(re.findall(r"^  (\w+),", body, re.MULTILINE)) == set(KINDS) == set(FOLLOWS)
