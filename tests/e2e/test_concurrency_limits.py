"""Concurrency: never more leases than a queue or a key may have, and no room is left unused."""

import json
import threading
import time
from collections import Counter

import pytest

from background import claim_in_background, in_background
from hooking import PATIENT_MS, hook_of, on_failure
from refusals import assert_refused
from reprise_http import Client
from scheduling import assert_shares, claim_sizes, keys_of, push_keyed, top_keys
from waiting import eventually

RESTARTS = ["stop", "kill"]
CLAIMERS = 12
# Takes a while, well within its time, and then keeps the job for later.
THINKS = on_failure('for i = 1, 10000000 do end return { action = "retry", delay_ms = 3600000 }')

ENDS = {
    "ack": lambda queue, job: queue.client.ack(job),
    "release": lambda queue, job: queue.client.release(job),
    "fail": lambda queue, job: queue.client.fail(job),
    "death": lambda queue, job: queue.client.fail(job, final=True),
    "drop": lambda queue, job: queue.drop(job["id"]),
    "expiry": lambda queue, job: queue.client.extend(job, lease="100ms"),
}


@pytest.fixture
def limited(absent_queue):
    """A function that makes a queue whose failed jobs are retried at once and for ever."""
    def create(**config):
        return absent_queue.created(retry={"attempts": "unlimited"}, lease="1h", **config)
    return create


def start_waiting(queue, **fields):
    """A claim that is in line by the time this returns."""
    before = queue.stats()["waiting_claims"]
    claim = claim_in_background(queue, **fields)
    eventually(lambda: queue.stats()["waiting_claims"] == before + 1, "the claim to wait")
    return claim


class Gauge:
    """What claimers hold between the reply to a claim and the next request: never more than is
    leased."""

    def __init__(self):
        self.lock = threading.Lock()
        self.held = Counter()
        self.most = Counter()
        self.done = 0

    def take(self, jobs):
        with self.lock:
            for key in keys_of(jobs):
                self.held[key] += 1
                self.held["all"] += 1
                self.most[key] = max(self.most[key], self.held[key])
                self.most["all"] = max(self.most["all"], self.held["all"])

    def give(self, jobs):
        with self.lock:
            for key in keys_of(jobs):
                self.held[key] -= 1
                self.held["all"] -= 1
            self.done += len(jobs)


def claim_and_ack(queue, gauge, total, size):
    own = queue.through(Client(queue.client.port, timeout=60))
    while gauge.done < total:
        jobs = own.claim(size, wait="200ms")
        gauge.take(jobs)
        gauge.give(jobs)
        if jobs:
            own.client.ack_all(jobs)


class TestNeverMore:
    def test_with_many_claimers_at_once(self, limited):
        queue = limited(concurrency=5, concurrency_per_key=2)
        for key in "abcd":
            push_keyed(queue, key, 60)
        gauge = Gauge()
        claimers = [in_background(claim_and_ack, queue, gauge, 240, 1 + number % 3)
                    for number in range(CLAIMERS)]
        watched = 0
        while not all(claimer.done() for claimer in claimers):
            stats = queue.stats()
            assert stats["active"] <= 5
            assert all(entry["active"] <= 2 for entry in stats["keys"]["top"])
            watched += 1
        for claimer in claimers:
            claimer.result(1)
        assert gauge.done == 240 and watched > 1
        assert gauge.most["all"] <= 5 and max(gauge.most[key] for key in "abcd") <= 2
        assert queue.counts() == {}

    def test_one_claim_gets_no_more_than_there_is_room(self, limited):
        queue = limited(concurrency=3)
        queue.push(*range(10))
        assert [len(queue.claim(2)), len(queue.claim(100)), len(queue.claim(1))] == [2, 1, 0]

    def test_both_lanes_count_together(self, limited):
        queue = limited()
        queue.push(*range(4))
        for job in queue.claim(4):
            queue.client.fail(job, delay="0s")
        eventually(lambda: queue.stats()["lanes"]["retry"] == 4, "the retries to be due")
        queue.push(*range(4))
        queue.patch(concurrency=3)
        assert len(queue.claim(2, lane="retry")) == 2
        assert len(queue.claim(10, lane="fresh")) == 1
        assert queue.claim(10) == queue.claim(10, lane="retry") == []

    def test_a_waiting_line_is_given_only_what_there_is_room_for(self, limited):
        queue = limited(concurrency=2)
        claims = [start_waiting(queue) for _ in range(4)]
        queue.push(*range(10))
        eventually(lambda: sum(claim.done() for claim in claims) == 2, "two to be answered")
        assert queue.stats()["waiting_claims"] == 2 and queue.counts()["active"] == 2
        for _ in range(2):
            held = next(claim for claim in claims if claim.done())
            claims.remove(held)
            queue.client.ack(held.result()[0])
            eventually(lambda: sum(claim.done() for claim in claims) == 2, "the next one")
            assert queue.counts()["active"] == 2

    @pytest.mark.parametrize("how", RESTARTS)
    def test_leases_of_before_a_restart_count(self, server, how):
        queue = server.client().queue("q").created(lease="1h", concurrency=4,
                                                   concurrency_per_key=2)
        for key in "abc":
            push_keyed(queue, key, 5)
        held = claim_sizes(queue, [3])
        before = Counter(keys_of(held))
        server.restart(how)
        queue = queue.through(server.client())
        config = queue.show()["config"]
        assert (config["concurrency"], config["concurrency_per_key"]) == (4, 2)
        more = queue.claim(10)
        assert len(more) == 1 and queue.claim(10) == []
        assert max((before + Counter(keys_of(more))).values()) <= 2
        queue.client.ack(held[0])
        assert len(queue.claim(10)) == 1


class TestRoom:
    @pytest.mark.parametrize("end", ENDS)
    def test_a_waiting_claim_is_woken_when_a_lease_ends(self, limited, end):
        queue = limited(concurrency=2)
        queue.push(*range(5))
        held, _ = queue.claim(2)
        claim = start_waiting(queue)
        assert not claim.done()
        ENDS[end](queue, held)
        assert len(claim.result(5)) == 1
        assert queue.counts()["active"] == 2

    @pytest.mark.parametrize("end", ENDS)
    def test_and_when_one_of_its_key_ends(self, limited, end):
        queue = limited(concurrency_per_key=1)
        push_keyed(queue, "a", 5)
        [held] = queue.claim(5)
        claim = start_waiting(queue)
        assert not claim.done()
        ENDS[end](queue, held)
        assert len(claim.result(5)) == 1
        assert top_keys(queue)["a"]["active"] == 1

    def test_one_end_wakes_one_claim(self, limited):
        queue = limited(concurrency=2)
        queue.push(*range(5))
        held = queue.claim(2)
        claims = [start_waiting(queue) for _ in range(2)]
        queue.client.ack(held[0])
        eventually(lambda: any(claim.done() for claim in claims), "one to be woken")
        assert queue.stats()["waiting_claims"] == 1
        queue.client.ack(held[1])
        assert [len(claim.result(5)) for claim in claims] == [1, 1]

    def test_a_higher_limit_wakes_a_waiting_claim(self, limited):
        for field in ("concurrency", "concurrency_per_key"):
            queue = limited(**{field: 1})
            queue.push(*range(5))
            queue.claim(1)
            claim = start_waiting(queue, max=10)
            queue.patch(**{field: 3})
            assert len(claim.result(5)) == 2
            claim = start_waiting(queue, max=10)
            queue.patch(**{field: None})
            assert len(claim.result(5)) == 2
            queue.delete()

    def test_a_lower_limit_takes_nothing_back(self, limited):
        queue = limited(concurrency=4)
        queue.push(*range(10))
        held = queue.claim(10)
        queue.patch(concurrency=2)
        assert queue.counts()["active"] == 4
        for job in held[:2]:
            assert queue.client.ack(job)["status"] == "acked"
            assert queue.claim(10) == []
        queue.client.ack(held[2])
        assert len(queue.claim(10)) == 1 and queue.claim(10) == []

    def test_a_lower_limit_of_each_key_takes_nothing_back(self, limited):
        queue = limited(concurrency_per_key=3)
        push_keyed(queue, "a", 10)
        held = queue.claim(10)
        queue.patch(concurrency_per_key=1)
        for job in held[:2]:
            queue.client.ack(job)
            assert queue.claim(10) == []
        queue.client.ack(held[2])
        assert len(queue.claim(10)) == 1


class TestKeys:
    def test_each_key_has_its_own_limit(self, limited):
        queue = limited(concurrency_per_key=2)
        for key in "abc":
            push_keyed(queue, key, 5)
        jobs = queue.claim(100)
        assert Counter(keys_of(jobs)) == {"a": 2, "b": 2, "c": 2}
        assert queue.claim(100) == []
        queue.client.ack(next(job for job in jobs if keys_of([job]) == ["b"]))
        assert keys_of(queue.claim(100)) == ["b"]

    def test_a_key_without_room_is_passed_over(self, limited):
        queue = limited(concurrency_per_key=5)
        push_keyed(queue, "large", 100, weight=1000)
        for key in "ab":
            push_keyed(queue, key, 5)
        jobs = claim_sizes(queue, [1] * 15)
        assert Counter(keys_of(jobs)) == {"large": 5, "a": 5, "b": 5}

    def test_a_key_that_was_full_is_owed_no_more_than_others(self, limited):
        """It had its room; it does not catch up for the time it was passed over."""
        queue = limited(concurrency_per_key=50)
        push_keyed(queue, "full", 200)
        claim_sizes(queue, [50])
        push_keyed(queue, "free", 100)
        claim_sizes(queue, [1] * 40)
        queue.patch(concurrency_per_key=None)
        assert_shares(keys_of(claim_sizes(queue, [1] * 40)), {"full": 1, "free": 1}, off=2)

    def test_the_limit_of_the_queue_holds_as_well(self, limited):
        queue = limited(concurrency=5, concurrency_per_key=2)
        for key in "abcd":
            push_keyed(queue, key, 5)
        keys = Counter(keys_of(queue.claim(100)))
        assert sum(keys.values()) == 5 and max(keys.values()) == 2

    def test_both_lanes_of_a_key_count_together(self, limited):
        queue = limited()
        push_keyed(queue, "a", 2)
        for job in queue.claim(2):
            queue.client.fail(job, delay="0s")
        eventually(lambda: queue.stats()["lanes"]["retry"] == 2, "the retries to be due")
        push_keyed(queue, "a", 2)
        push_keyed(queue, "b", 1)
        queue.patch(concurrency_per_key=1)
        assert keys_of(queue.claim(10, lane="retry")) == ["a"]
        assert keys_of(queue.claim(10, lane="fresh")) == ["b"]
        assert queue.claim(10) == []


@pytest.mark.parametrize("field", ["concurrency", "concurrency_per_key"])
def test_a_job_whose_failure_waits_for_its_hook_still_counts(absent_queue, field):
    queue = absent_queue.created(lease="1h", on_failure=THINKS, hook_timeout_ms=PATIENT_MS,
                                 **{field: 6})
    queue.push(*range(20))
    tokens = [{"token": job["token"]} for job in queue.claim(20)]
    failing = in_background(Client(queue.client.port).leases, "fail", tokens)
    given, thinking = [], []
    while len(given) < 6:
        given += queue.claim(20)
        # What the hook still has in hand now, it had in hand during the claim.
        thinking.append(hook_of(queue)["in_flight"])
        assert len(given) + thinking[-1] <= 6
    assert any(thinking), "the hook was too quick to look at"
    assert {result["status"] for result in failing.result(10)} == {"retrying"}
    assert queue.claim(20) == []


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("field", ["concurrency", "concurrency_per_key"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "5", True, [], 2**70], ids=json.dumps)
def test_a_limit_that_is_none_is_refused_by_name(absent_queue, method, field, value):
    queue = absent_queue.created(concurrency=7, concurrency_per_key=3)
    assert_refused(queue, method, queue.path(), {"lease": "9s", field: value},
                   ("invalid_request", "invalid_field"), field)


def test_there_is_none_unless_it_is_set(queue):
    config = queue.show()["config"]
    assert (config["concurrency"], config["concurrency_per_key"]) == (None, None)
    config = queue.patch(concurrency=50, concurrency_per_key=5)["config"]
    assert (config["concurrency"], config["concurrency_per_key"]) == (50, 5)
    config = queue.patch(concurrency=None)["config"]
    assert (config["concurrency"], config["concurrency_per_key"]) == (None, 5)


def test_other_queues_are_not_limited(limited):
    queue = limited(concurrency=1)
    other = queue.sibling("other").created()
    for each in (queue, other):
        each.push(*range(5))
    assert (len(queue.claim(5)), len(other.claim(5))) == (1, 5)
    started = time.monotonic()
    assert queue.claim(5, wait="200ms") == [] and time.monotonic() - started >= 0.2
