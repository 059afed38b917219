"""Waiting claims: woken at once, in line, and never given a job after they have gone."""

import json
import time

import pytest

from background import claim_in_background, in_background
from raw_http import RawConnection, message
from reprise_http import Client
from waiting import eventually, holds_for

AT_ONCE_SECONDS = 1.0


@pytest.fixture
def patient(absent_queue):
    return absent_queue.created(retry={"attempts": 9, "cooldown": "0s"})


def waiting(queue, count):
    eventually(lambda: queue.stats()["waiting_claims"] == count, f"{count} waiting claims")


def start_waiting(queue, **fields):
    """A claim that is in line by the time this returns."""
    before = queue.stats()["waiting_claims"]
    claim = claim_in_background(queue, **fields)
    waiting(queue, before + 1)
    return claim


def assert_woken(claim, payload):
    """The claim ends at once, with this job."""
    started = time.monotonic()
    [job] = claim.result(10)
    assert time.monotonic() - started < AT_ONCE_SECONDS
    assert job["payload"] == payload
    return job


class TestWaking:
    def test_a_push_wakes_a_waiting_claim_at_once(self, queue):
        claim = start_waiting(queue)
        queue.push("x")
        assert_woken(claim, "x")
        assert queue.stats()["waiting_claims"] == 0

    def test_a_pending_job_is_not_waited_for(self, queue):
        queue.push("x")
        assert_woken(claim_in_background(queue), "x")

    def test_one_push_fills_as_much_of_a_claim_as_it_can(self, queue):
        claim = start_waiting(queue, max=10)
        queue.push(1, 2, 3)
        assert [job["payload"] for job in claim.result(10)] == [1, 2, 3]

    def test_a_delayed_job_wakes_it_when_it_is_due(self, queue):
        claim = start_waiting(queue)
        pushed = time.monotonic()
        queue.push("later", delay="300ms")
        [job] = claim.result(10)
        assert job["payload"] == "later" and 0.29 <= time.monotonic() - pushed < 1.3

    def test_a_released_job_wakes_it(self, queue):
        queue.push("x")
        job = queue.claim_one()
        claim = start_waiting(queue)
        queue.client.release(job)
        assert assert_woken(claim, "x")["attempts"] == 2

    def test_a_failed_job_wakes_it_when_its_retry_is_due(self, patient):
        patient.push("x")
        job = patient.claim_one()
        claim = start_waiting(patient)
        patient.client.fail(job, delay="200ms")
        assert assert_woken(claim, "x")["failures"] == 1

    def test_an_expired_lease_wakes_it(self, patient):
        patient.push("x")
        patient.claim_one(lease="300ms")
        claim = start_waiting(patient)
        assert assert_woken(claim, "x")["attempts"] == 2

    def test_a_push_to_another_queue_does_not(self, queue):
        other = queue.sibling("other").created()
        claim = start_waiting(queue)
        other.push("not for you")
        queue.push("for you")
        assert_woken(claim, "for you")
        assert other.counts() == {"pending": 1}


class TestLine:
    def test_claims_are_served_in_the_order_of_their_arrival(self, queue):
        claims = [start_waiting(queue) for _ in range(6)]
        for number, claim in enumerate(claims):
            queue.push(number)
            assert_woken(claim, number)

    def test_one_batch_is_dealt_out_along_the_line(self, queue):
        claims = [start_waiting(queue, max=2) for _ in range(3)]
        queue.push(*range(5))
        dealt = [[job["payload"] for job in claim.result(10)] for claim in claims]
        assert dealt == [[0, 1], [2, 3], [4]]

    def test_a_claim_of_another_lane_does_not_block_the_line(self, patient):
        retry = start_waiting(patient, lane="retry")
        fresh = start_waiting(patient, lane="fresh")
        patient.push("x")
        job = assert_woken(fresh, "x")
        assert patient.stats()["waiting_claims"] == 1
        patient.client.fail(job)
        assert_woken(retry, "x")

    def test_a_hundred_waiting_claims_each_get_one_job(self, queue):
        claims = [claim_in_background(queue) for _ in range(100)]
        waiting(queue, 100)
        queue.push(*range(100))
        jobs = [claim.result(20)[0] for claim in claims]
        assert sorted(job["payload"] for job in jobs) == list(range(100))
        assert queue.claim() == []

    def test_the_line_has_an_end(self, start_server):
        server = start_server("--max-waiting-claims", "2")
        queue = server.client().queue("q").created()
        claims = [start_waiting(queue) for _ in range(2)]
        refused = queue.client.refused("POST", queue.path("/claim"), {"wait": "30s"})
        assert refused == (503, "too_many_waiting")
        assert queue.claim() == []  # not waiting needs no place in line
        queue.push(1, 2)
        assert all(claim.result(10) for claim in claims)


class TestLeaving:
    def test_a_claim_ends_empty_when_its_time_is_over(self, queue):
        started = time.monotonic()
        assert queue.claim(wait="300ms") == []
        assert 0.29 <= time.monotonic() - started < 3
        queue.push("x")
        assert queue.claim_one()["attempts"] == 1

    def test_closing_the_connection_withdraws_the_claim(self, queue):
        body = json.dumps({"wait": "60s"}).encode()
        with RawConnection(queue.client.port) as connection:
            connection.send(message("POST", queue.path("/claim"), body))
            waiting(queue, 1)
        waiting(queue, 0)
        queue.push("x")
        assert queue.counts() == {"pending": 1}
        assert queue.claim_one()["attempts"] == 1

    def test_a_withdrawn_claim_gives_its_place_to_the_next(self, queue):
        body = json.dumps({"wait": "60s"}).encode()
        with RawConnection(queue.client.port) as connection:
            connection.send(message("POST", queue.path("/claim"), body))
            waiting(queue, 1)
            second = start_waiting(queue)
        waiting(queue, 1)
        queue.push("x")
        assert_woken(second, "x")

    def test_deleting_the_queue_ends_the_wait(self, queue):
        own = Client(queue.client.port)
        request = in_background(own.request, "POST", queue.path("/claim"), {"wait": "60s"})
        waiting(queue, 1)
        queue.delete()
        reply = request.result(5)
        assert reply.status == 404 and reply.code == "queue_not_found"


class TestPause:
    def test_a_paused_queue_lets_claims_wait_and_resuming_wakes_them(self, queue):
        queue.pause()
        queue.push("x")
        claim = start_waiting(queue)
        holds_for(lambda: queue.counts() == {"pending": 1}, 0.2, "the job stays pending")
        queue.resume()
        assert_woken(claim, "x")

    def test_a_claim_that_waits_already_is_paused_too(self, queue):
        claim = start_waiting(queue)
        queue.pause()
        queue.push("x")
        holds_for(lambda: not claim.done(), 0.2, "the claim waits")
        queue.resume()
        assert_woken(claim, "x")

    def test_the_wait_on_a_paused_queue_ends_in_time(self, queue):
        queue.pause()
        queue.push("x")
        started = time.monotonic()
        assert queue.claim(wait="300ms") == []
        assert 0.29 <= time.monotonic() - started < 3

    def test_resuming_keeps_the_order_of_the_line(self, queue):
        queue.pause()
        claims = [start_waiting(queue) for _ in range(3)]
        queue.push(*range(3))
        queue.resume()
        assert [claim.result(10)[0]["payload"] for claim in claims] == [0, 1, 2]
