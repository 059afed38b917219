"""kill -9 under load, again and again: what a client was told stays true.

CYCLES=n        kills in all (200 by default), shared out among the runs below
REPRISE_SEED=n  replays the choices and the delays of a run; the seed is printed
"""

import os
import random
import shutil

import pytest

from beanstalk_servers import RepriseDoor
from crash_run import SMALL_BUFFERS, describe

CYCLES = int(os.environ.get("CYCLES", "200"))


# Several short runs, so that they share out among the processes of a test run.
@pytest.mark.parametrize("flags, of_200", [
    *(pytest.param(SMALL_BUFFERS, 35, id=f"small-buffers-{number}") for number in (1, 2, 3, 4)),
    pytest.param([], 40, id="defaults"),
    pytest.param(["--durability", "none", *SMALL_BUFFERS], 20, id="unsynced"),
])
def test_nothing_a_client_was_told_is_undone_by_a_crash(start_server, start_run, violations_of,
                                                        record_property, flags, of_200):
    run = start_run(start_server(*flags, kind=RepriseDoor, ready=False))
    choose = random.Random(run.seed)
    for _ in range(max(CYCLES * of_200 // 200, 1)):
        run.crash_at_random(choose)
    assert violations_of(run) == []
    figures = run.figures()
    record_property("figures", describe(figures))
    assert_the_run_proved_something(run, figures)


def test_a_server_that_forgets_is_found_out(start_server, start_run, violations_of):
    """The whole harness: a data directory from before the load takes the place of the real one."""
    run = start_run(start_server(kind=RepriseDoor, ready=False))
    run.crash_after(0.2)
    data, earlier = run.server.data, run.server.folder / "earlier"
    run.crash_after(0.2, while_down=lambda: shutil.copytree(data, earlier))

    def forget():
        shutil.rmtree(data)
        earlier.rename(data)

    run.crash_after(0.4, while_down=forget)
    kinds = {violation.kind for violation in violations_of(run)}
    assert {"lost", "resurrected"} & kinds


def assert_the_run_proved_something(run, figures):
    """A run in which little happened, or nothing was in flight at the kills, proves nothing."""
    for kind in ("push", "claim", "ack", "fail", "release", "extend", "retry", "purge",
                 "tube push", "tube claim", "tube ack", "tube fail", "tube release", "tube extend",
                 "tube retry", "retry by filter", "purge by filter"):
        assert figures.get(kind, 0) > 0, f"no {kind} was answered"
    assert figures["operations"] > 50 * run.cycles
    assert figures["in_flight"] > run.cycles
    assert any(job["attempts"] > 1 for entry in run.entries
               if entry.kind == "claim" and entry.outcome == "replied"
               for job in entry.reply["jobs"])
