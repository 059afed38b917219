"""Scheduling across restarts: keys, weights and tokens are where they were."""

import time

import pytest

from failing import make_cooling
from scheduling import (LONG_LEASE, Throttles, assert_shares, assert_within_rate, claim_sizes,
                        keys_of, push_keyed, top_keys)
from waiting import eventually

STILL = "1/h"
# What a token may have grown by while a server restarts, at STILL.
NEARLY = 0.05


@pytest.fixture(params=["stop", "kill"])
def reopened(request, server):
    """A function that restarts the server: the same queue afterwards."""
    def reopen(queue):
        server.restart(request.param)
        return queue.through(server.client())
    return reopen


@pytest.fixture
def queue(server):
    return server.client().queue("q", "ns").created(lease="1h",
                                                    retry={"attempts": "unlimited"})


@pytest.fixture
def throttles(queue):
    return Throttles(queue.client, "ns")


def through(throttles, queue):
    """The same throttles over the connection of a queue."""
    return Throttles(queue.client, throttles.namespace)


def attributes(queue, ids):
    found = [queue.job(job_id) for job_id in ids]
    return [(job["status"], job["lane"], job["fairness_key"], job["weight"], job["throttle_keys"])
            for job in found]


class TestKeys:
    def test_jobs_of_every_status_keep_their_keys_and_weights(self, queue, reopened):
        fields = {"fairness_key": "acmé/1", "weight": 7, "throttle_keys": ["api", "customer:4 2"]}
        cooling = make_cooling(queue, "x", **fields)
        retry = queue.push_one("retry", **fields)
        queue.client.fail(queue.claim_one(lane="fresh"), delay="0s")
        eventually(lambda: queue.status_of(retry) == "pending", "the retry to be due")
        leased = queue.push_one("leased", **fields)
        held = queue.claim_one(lane="fresh")
        dead = queue.push_one("dead", **fields)
        queue.client.fail(queue.claim_one(lane="fresh"), final=True)
        pending = queue.push_one("pending", **fields)
        scheduled = queue.push_one("scheduled", delay="1h", **fields)
        ids = [*cooling, retry, leased, dead, pending, scheduled]

        before = attributes(queue, ids)
        assert [entry[0] for entry in before] == [
            "failed", "pending", "active", "dead", "pending", "scheduled"]
        assert {entry[2:4] for entry in before} == {("acmé/1", 7)}
        shown = top_keys(queue)["acmé/1"]
        queue = reopened(queue)
        assert attributes(queue, ids) == before
        again = top_keys(queue)["acmé/1"]
        assert [again[name] for name in ("pending", "active", "weight")] == [
            shown[name] for name in ("pending", "active", "weight")]
        assert queue.client.ack(held)["status"] == "acked"

    def test_shares_go_on_by_the_weights_from_before(self, queue, reopened):
        weights = {"a": 1, "b": 2, "c": 5}
        for key, weight in weights.items():
            push_keyed(queue, key, 120, weight)
        claim_sizes(queue, [1, 7, 30])
        queue = reopened(queue)
        keys = keys_of(claim_sizes(queue, [1] * 40 + [7] * 5))
        assert_shares(keys, weights)

    def test_the_retry_lane_too(self, queue, reopened):
        weights = {"a": 1, "b": 3}
        for key, weight in weights.items():
            push_keyed(queue, key, 60, weight)
        queue.client.leases("fail", [{"token": job["token"], "delay": "0s"}
                                     for job in queue.claim(120)])
        eventually(lambda: queue.stats()["lanes"]["retry"] == 120, "the retries to be due")
        queue = reopened(queue)
        assert_shares(keys_of(claim_sizes(queue, [1] * 40 + [20], lane="retry")), weights)

    def test_the_weight_is_that_of_the_latest_job_that_is_still_there(self, queue, reopened):
        for weight, priority in ((5, 9), (2, 1)):
            queue.push(["a", weight], fairness_key="a", weight=weight, priority=priority)
        assert top_keys(queue)["a"]["weight"] == 2
        [latest] = queue.claim()
        assert latest["payload"] == ["a", 2]
        queue = reopened(queue)
        assert top_keys(queue)["a"]["weight"] == 2
        queue.client.ack(latest)
        queue = reopened(queue)
        assert top_keys(queue)["a"]["weight"] == 5

    def test_keys_without_jobs_are_gone(self, queue, reopened):
        for number in range(5):
            push_keyed(queue, f"k{number}", 1)
        queue.client.ack_all(queue.claim(4))
        queue = reopened(queue)
        keys = queue.stats()["keys"]
        assert keys["active"] == 1 and len(keys["top"]) == 1


class TestThrottles:
    def test_settings_are_kept(self, queue, throttles, reopened):
        throttles.set("api", "100/s", 20)
        throttles.set("customer:42/a b é", "10/30s")
        throttles.set("gone", "1/s")
        throttles.unset("gone")
        Throttles(queue.client).set("api", "5/m")
        before = throttles.list(), Throttles(queue.client).list()
        assert [len(each) for each in before] == [2, 1]
        queue = reopened(queue)
        assert (through(throttles, queue).list(), Throttles(queue.client).list()) == before

    def test_a_changed_setting_is_kept(self, queue, throttles, reopened):
        throttles.set("api", STILL, 20)
        throttles.set("api", "2/h", 5)
        queue = reopened(queue)
        [kept] = through(throttles, queue).list()
        assert (kept["rate"], kept["burst"], round(kept["tokens"])) == ("2/h", 5, 5)

    def test_there_is_no_free_burst_after_a_restart(self, queue, throttles, reopened):
        throttles.set("api", STILL, 5)
        queue.push(*range(20), throttle_keys=["api"])
        given = len(queue.claim(3))
        for left in (2, 1, 0, 0):
            queue = reopened(queue)
            tokens = through(throttles, queue).tokens("api")
            assert tokens == pytest.approx(left, abs=NEARLY)
            given += len(queue.claim(1))
        assert given == 5 and queue.claim(10) == []

    def test_several_throttles_of_a_job_are_kept_together(self, queue, throttles, reopened):
        throttles.set("wide", STILL, 5)
        throttles.set("narrow", STILL, 2)
        queue.push(*range(5), throttle_keys=["wide", "narrow"])
        assert len(queue.claim(5)) == 2
        queue = reopened(queue)
        assert queue.claim(5) == []
        kept = through(throttles, queue)
        assert [kept.tokens("wide"), kept.tokens("narrow")] == pytest.approx([3, 0], abs=NEARLY)

    def test_a_rate_holds_across_restarts(self, queue, throttles, reopened):
        throttles.set("api", "20/s", 10)
        queue.push(*range(300), throttle_keys=["api"])
        started = time.monotonic()
        jobs = []
        for _ in range(3):
            jobs += queue.claim(100, lease=LONG_LEASE)
            jobs += queue.claim(100, wait="1s", lease=LONG_LEASE)
            assert len(jobs) <= 10 + 20 * (time.monotonic() - started)
            queue = reopened(queue)
        jobs += queue.claim(100, wait="5s", lease=LONG_LEASE)
        assert 14 <= len(jobs) <= 10 + 20 * (time.monotonic() - started)
        assert_within_rate(jobs, rate=20, burst=10)

    def test_jobs_that_waited_for_a_token_wait_on_and_are_woken(self, queue, throttles, reopened):
        throttles.set("api", "2/s", 1)
        queue.push(*range(3), throttle_keys=["api"])
        started = time.monotonic()
        assert len(queue.claim(3)) == 1
        queue = reopened(queue)
        jobs = queue.claim(1, wait="10s")
        assert [job["payload"] for job in jobs] == [1]
        assert time.monotonic() - started >= 0.5
        assert [job["payload"] for job in queue.claim(1, wait="10s")] == [2]

    def test_unset_then_restart_gives_all(self, queue, throttles, reopened):
        throttles.set("api", STILL, 1)
        queue.push(*range(5), throttle_keys=["api"])
        assert len(queue.claim(5)) == 1
        throttles.unset("api")
        queue = reopened(queue)
        assert len(queue.claim(5)) == 4
