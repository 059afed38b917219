"""A queue's breaker: when nearly all fails it stops, looks, and spares the jobs their attempts."""

import json
import time

import pytest

from background import claim_in_background, in_background
from hooking import BURY, PATIENT_MS, calls_of
from metrics_text import read_metrics
from refusals import assert_refused
from reprise_http import Client
from scheduling import breaker_of
from times import assert_close, seconds_since_1970
from waiting import eventually, holds_for, time_passes

DEFAULTS = {"failure_rate": 0.5, "window": "1m", "min": 20, "pause": "30s", "canaries": 1}
EVENTS = ("queue:breaker_open", "queue:breaker_trial", "queue:breaker_closed")
PAUSE_SECONDS = 0.2
PAUSE = "200ms"
# Long enough to look at what happens while it is open.
LONG_PAUSE = "1h"


@pytest.fixture
def guarded(absent_queue):
    """A function that makes a queue with a breaker that opens when 4 attempts have failed."""
    def create(pause=PAUSE, retry=None, **fields):
        config = {name: fields.pop(name) for name in list(fields) if name not in DEFAULTS}
        return absent_queue.created(
            lease="1h", retry=retry or {"attempts": "unlimited"},
            breaker={"failure_rate": 0.5, "min": 4, "pause": pause, **fields}, **config)
    return create


def state_of(queue):
    return breaker_of(queue)["state"]


def fail_all(queue, jobs, **fields):
    return queue.client.leases("fail", [{"token": job["token"], **fields} for job in jobs])


def open_it(queue, count=4):
    """Opens the breaker with so many jobs, which then are out of the way."""
    queue.push(*["failed"] * count)
    jobs = queue.claim(count)
    assert len(jobs) == count
    fail_all(queue, jobs, delay="1h")
    # A short pause may be over by now.
    told = breaker_of(queue)
    assert told["opened"] == 1 and told["state"] in ("open", "trial"), told


def next_canaries(queue, count=1):
    """So many canaries, which is all that there are."""
    canaries = []
    while len(canaries) < count:
        got = queue.claim(100, wait="10s")
        assert got, f"{len(canaries)} canaries came, not {count}"
        canaries += got
    assert state_of(queue) == "trial" and queue.claim(100) == []
    assert len(canaries) == count
    return canaries


class TestSettings:
    def test_there_is_none_unless_it_is_set(self, queue):
        assert queue.show()["config"]["breaker"] is None and breaker_of(queue) is None

    def test_what_is_left_out_has_its_default(self, queue):
        assert queue.patch(breaker={})["config"]["breaker"] == DEFAULTS
        set_one = queue.patch(breaker={"pause": "1s"})["config"]["breaker"]
        assert (set_one["pause"], set_one["min"]) == ("1s", 20)
        assert queue.patch(breaker=None)["config"]["breaker"] is None
        assert breaker_of(queue) is None

    def test_it_begins_closed(self, guarded):
        assert breaker_of(guarded()) == {
            "state": "closed", "open_until": None, "opened": 0, "spared": 0, "failure_rate": 0,
            "ended": 0, "canaries_out": 0}

    @pytest.mark.parametrize("breaker", [
        {"failure_rate": 1, "window": "1h", "min": 1000000, "pause": "1d", "canaries": 1000},
        {"failure_rate": 0.001, "window": "1s", "min": 1, "pause": "100ms", "canaries": 1}])
    def test_the_ends_of_the_ranges_are_in_them(self, absent_queue, breaker):
        queue = absent_queue.created(breaker=breaker)
        assert queue.show()["config"]["breaker"] == breaker

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    @pytest.mark.parametrize("breaker, codes, name", [
        *[({name: value}, "invalid_field", f"breaker.{name}") for name, value in [
            ("failure_rate", 0), ("failure_rate", -0.1), ("failure_rate", 1.01),
            ("window", "999ms"), ("window", "61m"), ("window", "soon"), ("min", 0), ("min", -1),
            ("min", 1000001), ("pause", "99ms"), ("pause", "25h"), ("pause", -1),
            ("canaries", 0), ("canaries", 1001)]],
        *[({name: value}, ("invalid_request", "invalid_field"), f"breaker.{name}")
          for name, value in [("failure_rate", "0.5"), ("failure_rate", True), ("window", []),
                              ("min", 1.5), ("min", "4"), ("pause", {}), ("canaries", 1.5)]],
        ({"minimum": 4}, "unknown_field", "breaker.minimum"),
        (0.5, "invalid_request", "breaker"), ([], "invalid_request", "breaker"),
        ("on", "invalid_request", "breaker")], ids=lambda value: json.dumps(value)[:40])
    def test_what_cannot_be_is_refused_by_its_fields_path(self, absent_queue, method, breaker,
                                                          codes, name):
        queue = absent_queue.created(breaker={"pause": "7s"})
        assert_refused(queue, method, queue.path(), {"lease": "9s", "breaker": breaker}, codes,
                       name)


class TestOpening:
    def test_not_before_min_attempts_have_ended(self, guarded):
        queue = guarded(pause=LONG_PAUSE)
        queue.push(*range(10))
        for ended, job in enumerate(queue.claim(3), 1):
            queue.client.fail(job)
            told = breaker_of(queue)
            assert (told["state"], told["ended"], told["failure_rate"]) == ("closed", ended, 1)
        queue.client.fail(queue.claim_one(lane="fresh"))
        told = breaker_of(queue)
        assert (told["state"], told["opened"]) == ("open", 1)
        assert_close(told["open_until"], time.time() + 3600)

    @pytest.mark.parametrize("rate, acks, fails, state", [
        (0.5, 2, 2, "open"), (0.5, 3, 2, "closed"), (1, 0, 4, "open"), (1, 1, 9, "closed"),
        (0.1, 9, 1, "open"), (0.1, 10, 1, "closed")])
    def test_when_so_many_have_failed_or_more(self, guarded, rate, acks, fails, state):
        queue = guarded(pause=LONG_PAUSE, failure_rate=rate)
        queue.push(*range(acks + fails))
        jobs = queue.claim(acks + fails)
        for job in jobs[:acks]:
            queue.client.ack(job)
        assert state_of(queue) == "closed"
        fail_all(queue, jobs[acks:])
        assert state_of(queue) == state

    @pytest.mark.parametrize("how", ["fail", "final", "expiry", "worker_lost"])
    def test_each_of_these_is_a_failure(self, guarded, how):
        queue = guarded(pause=LONG_PAUSE)
        queue.push(*range(4))
        jobs = queue.claim(4)
        if how == "expiry":
            queue.client.leases("extend", [{"token": job["token"], "lease": "100ms"}
                                           for job in jobs])
        else:
            fail_all(queue, jobs, **{"fail": {}, "final": {"final": True},
                                     "worker_lost": {"outcome": "worker_lost"}}[how])
        eventually(lambda: state_of(queue) == "open", "the breaker to open")

    def test_a_release_is_none(self, guarded):
        queue = guarded()
        queue.push(*range(10))
        for job in queue.claim(10):
            queue.client.release(job)
        told = breaker_of(queue)
        assert (told["state"], told["ended"]) == ("closed", 0)

    def test_what_ended_before_its_window_does_not_count(self, guarded):
        queue = guarded(window="1s")
        queue.push(*range(6))
        jobs = queue.claim(6)
        fail_all(queue, jobs[:3], delay="1h")
        assert breaker_of(queue)["ended"] == 3
        eventually(lambda: breaker_of(queue)["ended"] == 0, "the window to pass")
        fail_all(queue, jobs[3:], delay="1h")
        told = breaker_of(queue)
        assert (told["state"], told["ended"]) == ("closed", 3)

    def test_other_queues_have_nothing_to_do_with_it(self, guarded):
        queue = guarded(pause=LONG_PAUSE)
        other = queue.sibling("other").created(breaker={})
        other.push(1)
        open_it(queue)
        assert state_of(other) == "closed" and len(other.claim()) == 1


class TestOpen:
    def test_no_job_is_given_out(self, guarded):
        queue = guarded(pause=LONG_PAUSE)
        open_it(queue)
        queue.push(*range(5))
        for lane in ("any", "fresh", "retry"):
            assert queue.claim(5, lane=lane) == []
        assert queue.claim(5, wait="200ms") == []
        assert queue.stats()["pending"] == 5

    def test_leases_that_are_out_go_on(self, guarded):
        queue = guarded(pause=LONG_PAUSE)
        queue.push("acked", "extended", "released")
        acked, extended, released = queue.claim(3)
        open_it(queue)
        assert queue.client.ack(acked)["status"] == "acked"
        assert queue.client.extend(extended, lease="2h")["status"] == "extended"
        assert queue.client.release(released)["status"] == "released"
        assert state_of(queue) == "open" and breaker_of(queue)["spared"] == 0

    @pytest.mark.parametrize("change", [{"pause": "2h"}, {"min": 1000}, None])
    def test_a_change_closes_it_and_empties_its_window(self, guarded, change):
        queue = guarded(pause=LONG_PAUSE)
        open_it(queue)
        queue.push(*range(3))
        claim = claim_in_background(queue, max=3)
        queue.patch(breaker=change)
        assert len(claim.result(5)) == 3
        if change:
            told = breaker_of(queue)
            assert (told["state"], told["open_until"], told["ended"]) == ("closed", None, 0)

    @pytest.mark.parametrize("how", ["stop", "kill"])
    def test_a_restart_closes_it_and_empties_its_window(self, server, how):
        queue = server.client().queue("q").created(
            lease="1h", retry={"attempts": "unlimited"}, breaker={"min": 4, "pause": "1h"})
        config = queue.show()["config"]["breaker"]
        open_it(queue)
        queue.push(*range(3))
        server.restart(how)
        queue = queue.through(server.client())
        assert queue.show()["config"]["breaker"] == config
        assert breaker_of(queue) == {
            "state": "closed", "open_until": None, "opened": 0, "spared": 0, "failure_rate": 0,
            "ended": 0, "canaries_out": 0}
        assert len(queue.claim(10)) == 3


class TestTrial:
    @pytest.mark.parametrize("canaries", [1, 3])
    def test_after_the_pause_so_many_jobs_are_given_out_and_no_more(self, guarded, canaries):
        queue = guarded(canaries=canaries)
        before = time.monotonic()
        open_it(queue)
        queue.push(*range(20))
        next_canaries(queue, canaries)
        assert time.monotonic() - before >= PAUSE_SECONDS
        told = breaker_of(queue)
        assert (told["canaries_out"], told["open_until"]) == (canaries, None)
        holds_for(lambda: queue.claim(100) == [] and state_of(queue) == "trial", 2 * PAUSE_SECONDS)

    def test_claims_one_by_one_get_no_more_together(self, guarded):
        queue = guarded(canaries=3)
        claims = [claim_in_background(queue) for _ in range(8)]

        def served():
            return [job for claim in claims if claim.done() for job in claim.result()]
        eventually(lambda: queue.stats()["waiting_claims"] == 8, "all to wait")
        queue.push(*["failed"] * 4)
        failed = eventually(lambda: (lambda jobs: len(jobs) == 4 and jobs)(served()), "four jobs")
        fail_all(queue, failed, delay="1h")
        queue.push(*range(20))
        eventually(lambda: len(served()) == 7, "three canaries")
        assert state_of(queue) == "trial" and queue.stats()["waiting_claims"] == 1
        queue.client.ack_all([job for job in served() if job not in failed])
        eventually(lambda: len(served()) == 8, "the last claim to be answered")
        assert state_of(queue) == "closed"

    def test_the_trial_waits_for_a_job(self, guarded):
        queue = guarded()
        open_it(queue)
        time_passes(time.time() + PAUSE_SECONDS)
        queue.push("late")
        [canary] = next_canaries(queue)
        assert canary["payload"] == "late"

    def test_when_all_have_succeeded_it_is_closed_and_its_window_empty(self, guarded):
        queue = guarded(canaries=3)
        open_it(queue)
        queue.push(*range(20))
        first, second, third = next_canaries(queue, 3)
        claim = claim_in_background(queue, max=100)
        for job in (first, second):
            queue.client.ack(job)
            assert state_of(queue) == "trial"
        assert breaker_of(queue)["canaries_out"] == 1 and not claim.done()
        queue.client.ack(third)
        assert len(claim.result(5)) == 17
        told = breaker_of(queue)
        assert (told["state"], told["ended"], told["failure_rate"], told["opened"]) == (
            "closed", 0, 0, 1)

    @pytest.mark.parametrize("how", ["fail", "final", "expiry"])
    def test_when_one_fails_it_is_open_for_another_pause(self, guarded, how):
        queue = guarded(canaries=2)
        open_it(queue)
        queue.push(*range(20))
        first, second = next_canaries(queue, 2)
        queue.client.ack(first)
        if how == "expiry":
            queue.client.extend(second, lease="100ms")
        else:
            queue.client.fail(second, final=how == "final")
        eventually(lambda: breaker_of(queue)["opened"] == 2, "the breaker to open again")
        assert not set(job["id"] for job in next_canaries(queue, 2)) & {second["id"]}

    def test_it_may_reopen_any_number_of_times(self, guarded):
        queue = guarded(pause="100ms")
        open_it(queue)
        queue.push(*range(10))
        for opened in (2, 3, 4):
            [canary] = next_canaries(queue)
            queue.client.fail(canary)
            assert breaker_of(queue)["opened"] == opened
        queue.client.ack(next_canaries(queue)[0])
        assert state_of(queue) == "closed"

    @pytest.mark.parametrize("end", ["release", "drop"])
    def test_a_canary_that_is_released_or_dropped_makes_room_for_another(self, guarded, end):
        queue = guarded()
        open_it(queue)
        queue.push(*range(5))
        for _ in range(3):
            [canary] = next_canaries(queue)
            if end == "release":
                queue.client.release(canary, delay="1h")
            else:
                queue.drop(canary["id"])
            assert breaker_of(queue)["state"] == "trial"
            assert breaker_of(queue)["canaries_out"] == 0
        queue.client.ack(next_canaries(queue)[0])
        assert state_of(queue) == "closed"

    def test_leases_from_before_are_no_canaries(self, guarded):
        queue = guarded()
        queue.push(*"abcd")
        succeeds, fails, *_ = queue.claim(4)
        open_it(queue)
        queue.push(*range(5))
        [canary] = next_canaries(queue)
        queue.client.ack(succeeds)
        assert state_of(queue) == "trial"
        queue.client.fail(fails)
        told = breaker_of(queue)
        assert (told["state"], told["opened"], told["canaries_out"]) == ("trial", 1, 1)
        queue.client.ack(canary)
        assert state_of(queue) == "closed"


class TestSparedFailures:
    @pytest.fixture
    def outage(self, guarded):
        """An open breaker of a queue whose jobs die at their first failure, and leases of jobs a,
        b and c from before."""
        queue = guarded(pause=LONG_PAUSE, retry={"attempts": 1})
        queue.push(*"abc")
        queue.held = queue.claim(3)
        queue.push(*range(4))
        fail_all(queue, queue.claim(4))
        assert state_of(queue) == "open" and queue.counts() == {"active": 3, "dead": 4}
        return queue

    def test_a_failure_does_not_count_and_the_job_goes_back_to_its_lane(self, outage):
        job = outage.held[0]
        assert outage.client.fail(job, error="down")["status"] != "dead"
        shown = outage.job(job["id"])
        assert (shown["status"], shown["lane"], shown["failures"], shown["attempts"]) == (
            "pending", "fresh", 0, 1)
        [attempt] = shown["history"]
        assert (attempt["attempt"], attempt["outcome"], attempt["error"]) == (1, "failed", "down")
        assert breaker_of(outage)["spared"] == 1

    def test_nor_does_an_expired_lease(self, outage):
        job = outage.held[0]
        outage.client.extend(job, lease="100ms")
        eventually(lambda: outage.status_of(job["id"]) == "pending", "the lease to run out")
        shown = outage.job(job["id"])
        assert (shown["failures"], shown["attempts"]) == (0, 1)
        assert shown["history"][0]["outcome"] == "lease_expired"
        assert breaker_of(outage)["spared"] == 1

    def test_a_retry_stays_one_with_the_failures_it_had(self, guarded):
        queue = guarded(pause=LONG_PAUSE)
        job_id = queue.push_one("x")
        queue.client.fail(queue.claim_one(), delay="0s")
        [job] = eventually(lambda: queue.claim(lane="retry"), "the retry")
        open_it(queue, count=3)
        queue.client.fail(job, error="down")
        shown = queue.job(job_id)
        assert (shown["status"], shown["lane"], shown["failures"], shown["attempts"]) == (
            "pending", "retry", 1, 2)
        assert [attempt["attempt"] for attempt in shown["history"]] == [1, 2]

    def test_final_still_kills(self, outage):
        job = outage.held[0]
        result = outage.client.fail(job, final=True)
        assert (result["status"], result["reason"]) == ("dead", "final")
        assert outage.job(job["id"])["status"] == "dead"

    def test_a_delay_holds(self, outage):
        job = outage.held[0]
        outage.client.fail(job, delay="1h")
        shown = outage.job(job["id"])
        assert (shown["failures"], shown["attempts"]) == (0, 1)
        assert_close(shown["due_at"], time.time() + 3600)

    def test_a_ttl_still_ends(self, guarded):
        queue = guarded(pause=LONG_PAUSE)
        job_id = queue.push_one("x", ttl="3s")
        [job] = queue.claim()
        open_it(queue)
        time_passes(seconds_since_1970(queue.job(job_id)["expires_at"]))
        result = queue.client.fail(job)
        assert (result["status"], result["reason"]) == ("dead", "expired")
        assert queue.job(job_id)["status"] == "dead"

    def test_no_hook_is_asked(self, guarded):
        queue = guarded(pause=LONG_PAUSE, on_failure=BURY, hook_timeout_ms=PATIENT_MS)
        queue.push(*"ab", *range(4))
        held, other, *jobs = queue.claim(6)
        assert {result["status"] for result in fail_all(queue, jobs)} == {"dead"}
        assert state_of(queue) == "open"
        asked = calls_of(queue)
        queue.client.fail(held)
        assert calls_of(queue) == asked == (4, {})
        assert queue.status_of(held["id"]) == "pending"
        queue.client.fail(other, delay="1h")
        assert calls_of(queue) == asked

    def test_a_canary_loses_nothing_either(self, guarded):
        queue = guarded(retry={"attempts": 1})
        queue.push(*range(4))
        fail_all(queue, queue.claim(4))
        queue.push("canary", "next")
        [canary] = next_canaries(queue)
        assert queue.client.fail(canary, error="down")["status"] != "dead"
        shown = queue.job(canary["id"])
        assert (shown["failures"], shown["attempts"], shown["history"][0]["error"]) == (
            0, 1, "down")
        assert breaker_of(queue)["spared"] == 1

    def test_after_it_has_closed_failures_count_again(self, guarded):
        queue = guarded(retry={"attempts": 1})
        queue.push(*range(4))
        fail_all(queue, queue.claim(4))
        queue.push(*"ab")
        queue.client.ack(next_canaries(queue)[0])
        assert queue.client.fail(queue.claim_one())["status"] == "dead"
        told = breaker_of(queue)
        assert (told["state"], told["ended"], told["failure_rate"]) == ("closed", 1, 1)


class TestPoison:
    def trials_until_closed(self, queue, most=15):
        for trials in range(1, most + 1):
            [canary] = next_canaries(queue)
            if canary["payload"] == "poison":
                queue.client.fail(canary)
            else:
                queue.client.ack(canary)
                assert state_of(queue) == "closed"
                return trials
        raise AssertionError(f"not closed after {most} trials")

    def test_a_job_that_always_fails_does_not_keep_it_open(self, guarded):
        queue = guarded(pause="100ms")
        open_it(queue)
        queue.push("poison", priority=0)
        queue.push("good")
        assert self.trials_until_closed(queue) == 2

    def test_it_is_tried_again_when_it_is_the_only_one(self, guarded):
        """After more than one pause, so that others have the first turn."""
        queue = guarded(pause="100ms")
        open_it(queue)
        job_id = queue.push_one("poison")
        for _ in range(2):
            [canary] = next_canaries(queue)
            failed = time.monotonic()
            queue.client.fail(canary)
        [canary] = next_canaries(queue)
        assert canary["id"] == job_id and time.monotonic() - failed > 0.1
        assert (canary["attempts"], canary["failures"]) == (3, 0)
        queue.client.ack(canary)
        assert state_of(queue) == "closed"

    def test_several_of_them_do_not_either(self, guarded):
        queue = guarded(pause="100ms")
        open_it(queue)
        queue.push(*["poison"] * 3, priority=0)
        queue.push("good")
        assert self.trials_until_closed(queue) >= 4


class TestWhatIsTold:
    def test_events_in_their_order(self, guarded, events):
        queue = guarded()
        stream = events(*EVENTS)
        open_it(queue)
        until = breaker_of(queue)["open_until"]
        queue.push(*range(4))
        queue.client.fail(next_canaries(queue)[0])
        queue.client.ack(next_canaries(queue)[0])
        told = stream.take(5)
        assert [event.type.removeprefix("queue:breaker_") for event in told] == [
            "open", "trial", "open", "trial", "closed"]
        for event in told:
            assert event.data["type"] == event.type
            assert (event.data["namespace"], event.data["queue"]) == (queue.namespace, "jobs")
            assert "id" not in event.data
            assert_close(event.data["at"], time.time(), slack=20)
            assert ("open_until" in event.data) == (event.type == EVENTS[0])
        assert until in (None, told[0].data["open_until"])
        for opened in (told[0], told[2]):
            pause = (seconds_since_1970(opened.data["open_until"])
                     - seconds_since_1970(opened.data["at"]))
            assert pause == pytest.approx(PAUSE_SECONDS, abs=0.05)
        # The trial does not begin before the pause is over.
        assert seconds_since_1970(told[1].data["at"]) >= seconds_since_1970(
            told[0].data["open_until"])

    def test_metrics(self, guarded):
        queue = guarded()
        plain = queue.sibling("plain").created()

        def value(name, of=queue):
            return read_metrics(queue.client).value(
                f"reprise_queue_breaker{name}", namespace=queue.namespace, queue=of.name)
        assert (value(""), value("_opened_total"), value("_spared_total")) == (0, 0, 0)
        assert value("", plain) is None and value("_opened_total", plain) is None
        queue.patch(breaker={"min": 4, "pause": LONG_PAUSE})
        queue.push("held")
        held = queue.claim_one()
        open_it(queue)
        queue.client.fail(held, delay="1h")
        assert (value(""), value("_opened_total"), value("_spared_total")) == (1, 1, 1)

    def test_metrics_of_a_trial(self, guarded):
        queue = guarded()
        open_it(queue)
        queue.push(1)
        [canary] = next_canaries(queue)

        def value():
            return read_metrics(queue.client).value(
                "reprise_queue_breaker", namespace=queue.namespace, queue=queue.name)
        assert value() == 2
        queue.client.ack(canary)
        assert value() == 0


def test_many_workers_and_an_outage_kill_no_job_of_its_attempts(guarded):
    """Everything fails for a while, then everything works: only the jobs that opened it die."""
    queue = guarded(pause="100ms", retry={"attempts": 1}, min=5)
    queue.push(*range(100))
    outage_ends = time.monotonic() + 1

    def work():
        own = queue.through(Client(queue.client.port))
        while queue_left(own):
            for job in own.claim(2, wait="200ms"):
                if time.monotonic() < outage_ends:
                    own.client.fail(job)
                else:
                    own.client.ack(job)

    def queue_left(own):
        return set(own.counts()) - {"dead"}
    for worker in [in_background(work) for _ in range(4)]:
        worker.result(30)
    stats = queue.stats()
    assert (stats["dead"], stats["totals"]["completed"]) == (5, 95)
    told = breaker_of(queue)
    assert told["state"] == "closed" and told["opened"] > 1 and told["spared"] > 0
