"""The wall clock jumps, by days and in both directions, while a server runs and while it is down:
no lease, delay or wait changes while it runs, and none is stuck after a restart."""

import json
import time

import pytest

from background import in_background
from times import seconds_since_1970
from wall_clock import WallClock

DAYS = [1, -1, 30]
SECONDS = 1.5  # of every lease, delay and wait here
EARLY = 0.1    # a clock of milliseconds on each side
LATE = 8.0     # a machine that is busy with other tests


@pytest.fixture
def wall_clock(tmp_path):
    return WallClock(tmp_path)


@pytest.fixture
def clocked(start_server, wall_clock):
    """A server that sees this wall clock."""
    return start_server("--workers", "false", "--log-format", "json",
                        env=wall_clock.environment())


def day_of_the_log(server, tmp_path, name):
    """The time of a line that is written now: what the process takes for the wall clock."""
    server.client().call("POST", "/v1/backup", {"directory": str(tmp_path / name)})
    return seconds_since_1970(json.loads(server.log().splitlines()[-1])["at"])


def elapsed(action, *args, **fields):
    started = time.monotonic()
    result = action(*args, **fields)
    return result, time.monotonic() - started


def prepare(client):
    """One queue for each thing that waits, each until SECONDS from now, and what the server says of
    its time."""
    delayed = client.queue("delayed").created()
    delayed.push(1, delay=f"{SECONDS}s")
    leased = client.queue("leased").created(retry={"attempts": 5, "cooldown": "0s"})
    leased.push(1)
    held = leased.claim_one(lease=f"{SECONDS}s")
    failed = client.queue("failed").created(retry={"attempts": 5, "cooldown": f"{SECONDS}s"})
    failed.push(1)
    client.fail(failed.claim_one(), error="x")
    return [delayed, leased, failed], held


def times_of(queues):
    found = {}
    for queue in queues:
        [job] = queue.all_jobs()
        found[queue.name] = {name: value for name, value in job.items() if name.endswith("_at")}
    return found


def claim_each(server, queues, wait="20s"):
    """Seconds until each queue gives out its job, all waited for at once."""
    def claim(queue):
        jobs, seconds = elapsed(queue.through(server.client()).claim, 1, wait=wait)
        return len(jobs), seconds
    waits = [in_background(claim, queue) for queue in queues]
    return [wait.result(60) for wait in waits]


@pytest.mark.parametrize("days", DAYS)
class TestWhileRunning:
    def test_the_jump_is_seen_by_the_process(self, clocked, wall_clock, tmp_path, days):
        """Otherwise the tests below would prove nothing."""
        before = day_of_the_log(clocked, tmp_path, "before")
        wall_clock.set(days)
        moved = day_of_the_log(clocked, tmp_path, "after") - before
        assert abs(moved - days * 86400) < 3600

    def test_no_lease_or_delay_changes(self, clocked, wall_clock, days):
        client = clocked.client()
        queues, held = prepare(client)
        waiting = client.queue("empty").created().through(clocked.client())
        times = times_of(queues)
        wait = in_background(elapsed, waiting.claim, 1, wait=f"{SECONDS}s")
        wall_clock.set(days)
        assert times_of(queues) == times
        assert [queue.counts() for queue in queues] == [
            {"scheduled": 1}, {"active": 1}, {"failed": 1}]
        for given, seconds in claim_each(clocked, queues):
            assert given == 1 and SECONDS - 1 < seconds < SECONDS + LATE
        assert client.ack(held, status=409)["error"]["code"] == "lease_lost"
        jobs, seconds = wait.result(30)
        assert jobs == [] and SECONDS - EARLY < seconds < SECONDS + LATE

    def test_time_as_it_is_told_goes_on_as_before(self, clocked, wall_clock, days):
        queue = clocked.client().queue("q").created()
        first, = queue.push(1)
        wall_clock.set(days)
        second, = queue.push(2)
        told = [seconds_since_1970(queue.job(each)["pushed_at"]) for each in (first, second)]
        assert 0 <= told[1] - told[0] < 60
        queue.claim(2)
        # What begins after the jump keeps its time as well.
        queue.push(3, delay=f"{SECONDS}s")
        [(given, seconds)] = claim_each(clocked, [queue])
        assert given == 1 and SECONDS - 1 < seconds < SECONDS + LATE


@pytest.mark.parametrize("how", ["kill", "terminate"])
class TestAcrossARestart:
    @pytest.mark.parametrize("days", [1, 30])
    def test_forwards_all_is_due(self, clocked, wall_clock, days, how):
        queues, held = prepare(clocked.client())
        wall_clock.set(days)
        clocked.restart(how)
        for given, seconds in claim_each(clocked, queues):
            assert given == 1 and seconds < LATE
        assert clocked.client().ack(held, status=409)["error"]["code"] == "lease_lost"

    def test_backwards_nothing_is_early_and_nothing_is_stuck(self, clocked, wall_clock, how):
        client = clocked.client()
        queues, held = prepare(client)
        times = times_of(queues)
        wall_clock.set(-1)
        clocked.restart(how)
        queues = [queue.through(clocked.client()) for queue in queues]
        assert times_of(queues) == times
        # Time goes on where it was: the lease is still good.
        other = clocked.client().queue("other").created()
        other.push(1)
        assert other.claim_one()
        for given, seconds in claim_each(clocked, queues):
            assert given == 1 and seconds < SECONDS + LATE
        assert clocked.client().ack(held, status=409)["error"]["code"] == "lease_lost"

    def test_there_and_back_again_nothing_is_stuck(self, clocked, wall_clock, how):
        """A month ahead by mistake, noticed and put right: no job waits for a month."""
        wall_clock.set(30)
        clocked.restart(how)
        queues, _ = prepare(clocked.client())
        wall_clock.set(0)
        clocked.restart(how)
        for given, seconds in claim_each(clocked, queues):
            assert given == 1 and seconds < SECONDS + LATE
        fresh = clocked.client().queue("fresh").created()
        fresh.push(1, delay=f"{SECONDS}s")
        [(given, seconds)] = claim_each(clocked, [fresh])
        assert given == 1 and SECONDS - 1 < seconds < SECONDS + LATE
