"""SIGKILL at the disk: at each write, sync, truncation, rename, link and unlink of a fixed run of 200
operations with checkpoints and a restart in it, and of spools that are filled and drained.

A sample of the calls, others each time; `make crash-points` takes all of them.
"""

import shutil
import signal

import pytest

from disk_points import SHARDS, points
from fixed_run import RESTART, SETTINGS, FixedRun
from served_run import Served

KILLED = -signal.SIGKILL
every_shard = pytest.mark.parametrize("shard", range(SHARDS))


@every_shard
def test_a_server_killed_at_any_call_keeps_what_it_has_acknowledged(
        start_server, disk_shim, calls_of_a_run, shard):
    numbers = list(range(1, len(calls_of_a_run) + 1))
    for number in points(numbers, usual=24, shard=shard):
        served = Served(start_server, disk_shim, "kill", number)
        try:
            # The calls of threads are in another order each time, and a busy machine makes fewer
            # checkpoints: there may be fewer in all.
            if served.calls.happened():
                assert served.server.process.returncode == KILLED
            else:
                assert number > 0.75 * len(calls_of_a_run) and not served.ended_by_itself
            served.check_after_restart()
        except AssertionError as wrong:
            raise AssertionError(f"killed at call {number}: {wrong}") from wrong
        served.close()


@every_shard
def test_spool_commands_killed_at_any_call_lose_nothing_and_send_nothing_twice(
        new_spool_run, calls_of_a_spool_run, shard):
    numbers = list(range(1, len(calls_of_a_spool_run) + 1))
    for number in points(numbers, usual=32, shard=shard):
        run, calls = new_spool_run("kill", number)
        run.run(until=lambda result: result.code == KILLED)
        try:
            if calls.happened():
                assert run.results[-1].code == KILLED
            else:
                assert number > len(calls_of_a_spool_run) - 50
            run.check()
        except AssertionError as wrong:
            raise AssertionError(f"killed at call {number}: {wrong}") from wrong


class TestTheChecks:
    """They find out a server, and a spool, that have lost something."""

    def test_an_older_directory(self, start_server):
        server = start_server(*SETTINGS)
        run, older = FixedRun(), server.folder / "older"
        queue = server.client().queue("q")
        for step in run.steps():
            if step == RESTART:
                server.terminate()
                shutil.copytree(server.data, older)
                server.start()
                queue = queue.through(server.client())
            else:
                step(queue)
        server.kill()
        shutil.rmtree(server.data)
        older.rename(server.data)
        server.start()
        with pytest.raises(AssertionError, match="became None"):
            run.check(queue.through(server.client()))

    def test_a_lost_event(self, new_spool_run):
        run, _ = new_spool_run()
        run.run(until=lambda result: True)
        (run.spool.queue / run.spool.names()[50]).unlink()
        with pytest.raises(AssertionError, match="lost"):
            run.check()

    def test_an_event_that_arrives_twice(self, new_spool_run):
        run, _ = new_spool_run()
        run.run(until=lambda result: True)
        run.spool.put(type="t", data=50)
        with pytest.raises(AssertionError, match="twice"):
            run.check()
