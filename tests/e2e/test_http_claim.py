"""Claiming: who gets which jobs, with what they need to work on them."""

import time

import pytest

from times import assert_close
from waiting import eventually

MIB = 1 << 20


def test_a_claimed_job_has_the_documented_shape(queue):
    job_id = queue.push_one({"id": 1}, headers={"tenant": "a"})
    job = queue.claim_one(worker="host-1", lease="45s")
    assert_close(job.pop("pushed_at"), time.time())
    assert_close(job.pop("lease_expires_at"), time.time() + 45)
    assert len(job.pop("token")) >= 16
    assert job == {"id": job_id, "payload": {"id": 1}, "headers": {"tenant": "a"},
                   "priority": 1000, "attempts": 1, "failures": 0}


def test_every_field_of_a_claim_is_optional(queue):
    queue.push(1, 2)
    jobs = queue.client.call("POST", queue.path("/claim"), {})["jobs"]
    assert len(jobs) == 1
    assert_close(jobs[0]["lease_expires_at"], time.time() + 30)


def test_the_lease_is_the_queues_unless_the_claim_says_otherwise(absent_queue):
    queue = absent_queue.created(lease="5m")
    queue.push(1, 2)
    assert_close(queue.claim_one()["lease_expires_at"], time.time() + 300)
    assert_close(queue.claim_one(lease="7d")["lease_expires_at"], time.time() + 7 * 86400)


def test_a_claim_takes_at_most_what_it_asks_for(queue):
    queue.push(*range(10))
    assert [job["payload"] for job in queue.claim(4)] == [0, 1, 2, 3]
    assert [job["payload"] for job in queue.claim(1000)] == [4, 5, 6, 7, 8, 9]
    assert queue.claim(1000) == []


def test_nothing_to_claim_is_no_error(queue):
    assert queue.claim(10) == []


def test_a_job_is_leased_to_one_worker_only(queue):
    queue.push(*range(50))
    other = queue.through(type(queue.client)(queue.client.port))
    taken = [job["id"] for _ in range(5) for job in queue.claim(5) + other.claim(5)]
    assert len(taken) == len(set(taken)) == 50


def test_tokens_are_secrets_of_their_own(queue):
    queue.push(*range(100))
    assert len({job["token"] for job in queue.claim(100)}) == 100


def test_attempts_count_leases_and_failures_count_failures(absent_queue):
    queue = absent_queue.created(retry={"attempts": 9, "cooldown": "0s"})
    queue.push(1)
    seen = []
    for end in ("fail", "release", "fail", "release", "ack"):
        job = eventually(queue.claim, "the job again")[0]
        seen.append((job["attempts"], job["failures"]))
        queue.client.one_lease(end, job)
    assert seen == [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)]


def test_the_last_error_comes_with_a_job_that_has_failed(absent_queue):
    queue = absent_queue.created(retry={"attempts": 9, "cooldown": "0s"})
    queue.push(1)
    first = queue.claim_one()
    assert "last_error" not in first
    queue.client.fail(first, error="time\nout é")
    again = eventually(queue.claim)[0]
    assert again["last_error"] == "time\nout é"
    queue.client.fail(again, error="other")
    assert eventually(queue.claim)[0]["last_error"] == "other"


def test_the_worker_is_shown_while_it_works_and_in_the_history(queue):
    job_id = queue.push_one(1)
    job = queue.claim_one(worker="host-1 é")
    shown = queue.job(job_id)
    assert shown["worker"] == "host-1 é"
    assert shown["lease_expires_at"] == job["lease_expires_at"]
    queue.client.fail(job, error="x")
    shown = queue.job(job_id)
    assert shown["worker"] is None and shown["lease_expires_at"] is None
    assert shown["history"][0]["worker"] == "host-1 é"


def test_a_reply_holds_16_mib_of_payloads_at_most(queue):
    for _ in range(2):
        queue.push(*["x" * (MIB - 2)] * 10)
    first, second = queue.claim(20), queue.claim(20)
    assert 1 <= len(first) <= 16 and len(first) + len(second) == 20


class TestLanes:
    @pytest.fixture
    def lanes(self, absent_queue):
        """A queue whose failed jobs are retried at once."""
        return absent_queue.created(retry={"attempts": 1000, "cooldown": "0s"})

    def fill(self, queue, fresh, retries):
        """So many jobs pending in each lane; a retry's payload is its number, a fresh job's "f"."""
        if retries:
            queue.push(*range(retries))
            jobs = queue.claim(retries)
            queue.client.leases("fail", [{"token": job["token"]} for job in jobs])
        if fresh:
            queue.push(*["f"] * fresh)
        eventually(lambda: queue.stats()["pending"] == fresh + retries, "the retries to be due")

    def split(self, jobs):
        retries = sum(job["failures"] > 0 for job in jobs)
        return len(jobs) - retries, retries

    def test_a_claim_may_name_its_lane(self, lanes):
        self.fill(lanes, fresh=3, retries=3)
        assert self.split(lanes.claim(10, lane="fresh")) == (3, 0)
        assert self.split(lanes.claim(10, lane="retry")) == (0, 3)
        assert lanes.claim(10, lane="any") == []

    def test_one_of_five_single_claims_is_a_retry_while_both_lanes_wait(self, lanes):
        self.fill(lanes, fresh=200, retries=100)
        assert self.split([lanes.claim_one() for _ in range(100)]) == (80, 20)

    def test_one_of_five_jobs_of_large_claims_is_a_retry(self, lanes):
        self.fill(lanes, fresh=300, retries=100)
        assert self.split([job for size in (7, 13, 50, 30, 100) for job in lanes.claim(size)]
                          ) == (160, 40)

    def test_an_empty_lane_gives_its_room_to_the_other(self, lanes):
        self.fill(lanes, fresh=0, retries=10)
        assert self.split(lanes.claim(10)) == (0, 10)
        self.fill(lanes, fresh=10, retries=0)
        assert self.split(lanes.claim(10)) == (10, 0)
        self.fill(lanes, fresh=2, retries=8)
        assert self.split(lanes.claim(10)) == (2, 8)

    def test_retries_are_ordered_by_their_retry_time(self, lanes):
        lanes.push("a", "b", "c")
        delays = {"a": "300ms", "b": "200ms", "c": "100ms"}
        for job in lanes.claim(3):
            lanes.client.fail(job, delay=delays[job["payload"]])
        eventually(lambda: lanes.counts() == {"pending": 3}, "all to be due")
        assert [job["payload"] for job in lanes.claim(3)] == ["c", "b", "a"]

    def test_a_released_fresh_job_stays_fresh(self, lanes):
        lanes.push(1)
        lanes.client.release(lanes.claim_one())
        assert lanes.claim(lane="retry") == []
        assert lanes.claim_one(lane="fresh")["attempts"] == 2
