"""A disk that fails once, at any call of the fixed run of test_crash_points: what is promised is kept.

A sample of the calls, others each time; `make crash-points` takes all of them.
"""

import pytest

from disk_calls import SYNCS, WRITES
from disk_points import SHARDS, points
from fixed_run import OPERATIONS
from served_run import END_SECONDS, Served
from spooling import FAILED

COULD_NOT_START, STORAGE_FAILED = 1, 70
every_shard = pytest.mark.parametrize("shard", range(SHARDS))


@pytest.fixture
def troubled(start_server, disk_shim, calls_of_a_run, shard):
    """A function that makes a trouble at each of some calls, lets a test judge, and starts again."""
    def meet(trouble, kinds, usual, judge):
        candidates = [number for number, kind in enumerate(calls_of_a_run, 1) if kind in kinds]
        for number in points(candidates, usual, shard):
            served = Served(start_server, disk_shim, trouble, number)
            try:
                judge(served)
                served.check_after_restart()
            except AssertionError as wrong:
                raise AssertionError(
                    f"{trouble} at call {number}, {served.calls.happened_to()}: {wrong}") from wrong
            served.close()
    return meet


def assert_ended_with_a_reason(served, reason="Input/output error"):
    assert served.ended_by_itself, "it went on"
    assert served.code in (COULD_NOT_START, STORAGE_FAILED)
    assert served.ended_at - served.calls.happened_at() < END_SECONDS
    assert reason in served.server.log()


def is_of_options(served):
    """RocksDB writes its settings into a file that nobody reads, and goes on when it cannot. It syncs
    the directory after it."""
    path = served.calls.happened_to()
    return path.name.startswith("OPTIONS-") or path == served.server.data / "db"


def refusal_of(reply):
    body = reply.json()
    error = body.get("error") or body["results"][0]["error"]
    return reply.status, error["code"]


@every_shard
def test_a_failed_sync_ends_the_server_and_nothing_is_acknowledged_after_it(troubled):
    def judge(served):
        # The last syncs of a run may be fewer the next time.
        if not served.calls.happened() or (is_of_options(served) and not served.ended_by_itself):
            return
        assert_ended_with_a_reason(served)
        # Of other files a commit does not need the sync: its own has succeeded.
        if served.calls.happened_to().suffix == ".seg":
            assert all(at < served.calls.happened_at() for at in served.run.answered_at)
    troubled("sync", SYNCS, 12, judge)


@every_shard
def test_a_failed_call_ends_the_server_or_does_not_matter(troubled):
    def judge(served):
        # Names that could not be taken away are left for the next start.
        if served.ended_by_itself:
            assert_ended_with_a_reason(served)
        else:
            assert len(served.run.answered_at) == OPERATIONS and not served.run.refusals
    troubled("EIO", "wdstn", 12, judge)


@every_shard
def test_a_disk_that_is_full_for_a_moment_refuses_pushes_and_nothing_else(troubled):
    def judge(served):
        if served.ended_by_itself:
            assert served.code == COULD_NOT_START
            assert "No space left on device" in served.server.log()
            return
        assert all(refusal_of(reply) == (507, "disk_full") for reply in served.run.refusals)
        assert len(served.run.answered_at) + len(served.run.refusals) == OPERATIONS
    troubled("ENOSPC", WRITES, 8, judge)


@every_shard
def test_an_interrupted_sync_is_made_again_or_counts_as_failed(troubled):
    def judge(served):
        if served.ended_by_itself:
            # RocksDB takes it for a failure. The journal's own syncs are made again.
            assert served.calls.happened_to().suffix != ".seg"
            assert_ended_with_a_reason(served, "Interrupted system call")
        else:
            assert len(served.run.answered_at) == OPERATIONS and not served.run.refusals
    troubled("EINTR-sync", "st", 8, judge)


@every_shard
@pytest.mark.parametrize("trouble", ["EINTR", "short"])
def test_an_interrupted_write_is_seen_by_nobody(troubled, trouble):
    def judge(served):
        assert not served.ended_by_itself and not served.run.refusals, served.server.log()
        assert len(served.run.answered_at) == OPERATIONS
    troubled(trouble, WRITES, 4, judge)


class TestSpool:
    """Commands on a spool. The words of a failed one say what is wrong, and the next one goes on."""

    def meet(self, new_spool_run, candidates, usual, shard, trouble, judge):
        for number in points(candidates, usual, shard):
            run, calls = new_spool_run(trouble, number)
            run.run()
            try:
                judge([result for result in run.results if result.code != 0])
                run.check()
            except AssertionError as wrong:
                raise AssertionError(
                    f"{trouble} at call {number}, {calls.happened_to()}: {wrong}") from wrong

    @every_shard
    @pytest.mark.parametrize("trouble, kinds, words", [
        ("sync", SYNCS, "Input/output error"), ("EIO", "wstn", "Input/output error"),
        ("ENOSPC", WRITES, "No space left on device")])
    def test_a_failed_call_is_told_and_loses_nothing(self, new_spool_run, calls_of_a_spool_run,
                                                     shard, trouble, kinds, words):
        def judge(failed):
            assert len(failed) <= 1, failed
            for result in failed:
                assert result.code == FAILED and words in result.err, repr(result)
        candidates = [at for at, kind in enumerate(calls_of_a_spool_run, 1) if kind in kinds]
        self.meet(new_spool_run, candidates, 4, shard, trouble, judge)

    @every_shard
    @pytest.mark.parametrize("trouble, kinds", [("EINTR", WRITES), ("EINTR-sync", "st"), ("short", WRITES)])
    def test_an_interruption_is_seen_by_nobody(self, new_spool_run, calls_of_a_spool_run, shard,
                                               trouble, kinds):
        def judge(failed):
            assert failed == []
        candidates = [at for at, kind in enumerate(calls_of_a_spool_run, 1) if kind in kinds]
        self.meet(new_spool_run, candidates, 4, shard, trouble, judge)
