"""Lanes: new jobs and retries share what is given out, exactly, and neither starves."""

import json
from fractions import Fraction
from itertools import accumulate
from math import ceil, floor

import pytest

from background import claim_in_background
from failing import fail_again, make_cooling, make_retries
from metrics_text import read_metrics
from refusals import assert_refused
from waiting import eventually

SHARES = ["0.2", "0.5", "0.37", "0.999999", "0.000001", "0", "1"]
MIXED_SIZES = [1, 7, 3, 13, 2, 40, 1, 1, 20, 5, 1, 6]


@pytest.fixture
def patient(absent_queue):
    """A queue whose failed jobs are retried at once and for ever."""
    return absent_queue.created(retry={"attempts": "unlimited"})


def with_fetch(queue, **fetch):
    queue.patch(fetch=fetch)
    return queue


def fill(queue, fresh, retries):
    """So many jobs pending in each lane."""
    make_retries(queue, retries)
    queue.push(*["fresh"] * fresh)
    lanes = queue.stats()["lanes"]
    assert (lanes["fresh"], lanes["retry"]) == (fresh, retries)


def retries_in(jobs):
    return sum(job["failures"] > 0 for job in jobs)


def assert_exact(counts, sizes, share):
    """Of any run of claims of these sizes, so many jobs were retries: ⌊n·s⌋ to ⌈n·s⌉."""
    given, retried = [0, *accumulate(sizes)], [0, *accumulate(counts)]
    for start in range(len(sizes)):
        for end in range(start + 1, len(given)):
            jobs = given[end] - given[start]
            assert floor(jobs * share) <= retried[end] - retried[start] <= ceil(jobs * share), (
                f"claims {start} to {end}: {retried[end] - retried[start]} of {jobs}")


class TestShare:
    @pytest.mark.parametrize("share", SHARES)
    def test_it_is_exact_over_claims_of_one_job(self, patient, share):
        with_fetch(patient, retry_share=float(share))
        fill(patient, fresh=61, retries=61)
        counts = [retries_in(patient.claim(1)) for _ in range(60)]
        assert_exact(counts, [1] * 60, Fraction(share))

    @pytest.mark.parametrize("share", SHARES)
    def test_it_is_exact_over_claims_of_any_size(self, patient, share):
        with_fetch(patient, retry_share=float(share))
        total = sum(MIXED_SIZES)
        fill(patient, fresh=total, retries=total)
        claims = [patient.claim(size) for size in MIXED_SIZES]
        assert [len(jobs) for jobs in claims] == MIXED_SIZES
        assert_exact([retries_in(jobs) for jobs in claims], MIXED_SIZES, Fraction(share))

    @pytest.mark.parametrize("share", ["0.2", "0.37"])
    def test_large_claims_and_single_ones_count_together(self, patient, share):
        """A claim is a run of single jobs: after n jobs the retries are those of the credit."""
        with_fetch(patient, retry_share=float(share))
        fill(patient, fresh=110, retries=110)
        credit = Fraction(str(patient.stats()["lanes"]["retry_credit"]))
        jobs = patient.claim(50) + [patient.claim_one() for _ in range(7)] + patient.claim(43)
        exact = credit + 100 * Fraction(share)
        assert retries_in(jobs) == floor(exact)
        assert patient.stats()["lanes"]["retry_credit"] == pytest.approx(float(exact % 1))

    def test_the_default_gives_one_of_five_to_retries(self, patient):
        assert patient.show()["config"]["fetch"] == {"retry_share": 0.2, "retry_in_flight": None}
        fill(patient, fresh=50, retries=50)
        assert retries_in(patient.claim(50)) == 10

    def test_a_new_job_waits_for_at_most_two_others(self, patient):
        make_retries(patient, 60)
        for _ in range(8):
            patient.push("new")
            given = [patient.claim_one() for _ in range(3)]
            assert any(job["payload"] == "new" for job in given)

    def test_a_share_of_0_gives_retries_only_what_new_jobs_leave(self, patient):
        with_fetch(patient, retry_share=0)
        fill(patient, fresh=5, retries=5)
        assert [retries_in(patient.claim(5)), retries_in(patient.claim(5))] == [0, 5]

    def test_a_share_of_1_gives_new_jobs_only_what_retries_leave(self, patient):
        with_fetch(patient, retry_share=1)
        fill(patient, fresh=5, retries=5)
        assert [retries_in(patient.claim(5)), retries_in(patient.claim(5))] == [5, 0]

    def test_a_changed_share_counts_from_the_next_claim_on(self, patient):
        fill(patient, fresh=60, retries=60)
        patient.claim(10)
        with_fetch(patient, retry_share=0.5)
        assert retries_in(patient.claim(40)) == 20

    @pytest.mark.parametrize("share, expected", [(0.2, 4), (0.5, 10)])
    def test_waiting_claims_keep_it_too(self, patient, share, expected):
        with_fetch(patient, retry_share=share)
        fill(patient, fresh=20, retries=20)
        patient.pause()
        claims = [claim_in_background(patient) for _ in range(20)]
        eventually(lambda: patient.stats()["waiting_claims"] == 20, "all to wait")
        patient.resume()
        jobs = [job for claim in claims for job in claim.result(10)]
        assert (len(jobs), retries_in(jobs)) == (20, expected)


class TestUnusedRoom:
    @pytest.mark.parametrize("fresh, retries", [(0, 10), (10, 0), (2, 8), (9, 1), (8, 2)])
    @pytest.mark.parametrize("share", [0, 0.2, 1])
    def test_a_claim_is_filled_from_either_lane(self, patient, share, fresh, retries):
        with_fetch(patient, retry_share=share)
        if retries:
            make_retries(patient, retries)
        if fresh:
            patient.push(*["fresh"] * fresh)
        jobs = patient.claim(10)
        assert (len(jobs), retries_in(jobs)) == (10, retries)

    def test_a_lane_that_was_empty_saves_up_nothing(self, patient):
        patient.push(*range(100))
        for _ in range(10):
            patient.client.ack_all(patient.claim(10))
        fill(patient, fresh=20, retries=20)
        assert retries_in(patient.claim(10)) == 2

    def test_retries_given_for_want_of_new_jobs_are_not_owed_for(self, patient):
        make_retries(patient, 70)
        assert retries_in(patient.claim(50)) == 50
        patient.push(*["fresh"] * 20)
        assert retries_in(patient.claim(10)) == 2


ENDS = {
    "ack": lambda queue, job: queue.client.ack(job),
    "release": lambda queue, job: queue.client.release(job),
    "fail": lambda queue, job: queue.client.fail(job),
    "death": lambda queue, job: queue.client.fail(job, final=True),
    "drop": lambda queue, job: queue.drop(job["id"]),
    "expiry": lambda queue, job: queue.client.extend(job, lease="100ms"),
}


class TestInFlight:
    @pytest.fixture
    def capped(self, patient):
        return with_fetch(patient, retry_in_flight=2)

    def test_no_more_retries_are_leased_at_once(self, capped):
        make_retries(capped, 5)
        first = capped.claim(10)
        assert len(first) == 2 and capped.claim(10) == capped.claim(10, lane="retry") == []
        assert capped.stats()["lanes"]["retry_in_flight"] == 2
        capped.client.ack(first[0])
        assert len(capped.claim(10)) == 1 and capped.claim() == []

    def test_beyond_it_the_room_is_for_new_jobs(self, capped):
        fill(capped, fresh=20, retries=10)
        jobs = capped.claim(20)
        assert (len(jobs), retries_in(jobs)) == (20, 2)
        assert capped.counts() == {"active": 20, "pending": 10}
        capped.push(*["more"] * 20)
        assert retries_in([capped.claim_one() for _ in range(20)]) == 0

    def test_new_jobs_do_not_count(self, capped):
        capped.push(*range(10))
        assert len(capped.claim(10)) == 10
        make_retries(capped, 3)
        assert len(capped.claim(10)) == 2

    @pytest.mark.parametrize("lane", ["any", "retry"])
    @pytest.mark.parametrize("end", ENDS)
    def test_a_waiting_claim_is_woken_when_a_retrys_lease_ends(self, capped, end, lane):
        make_retries(capped, 4)
        held, _ = capped.claim(2)
        claim = claim_in_background(capped, lane=lane)
        eventually(lambda: capped.stats()["waiting_claims"] == 1, "the claim to wait")
        assert not claim.done()
        ENDS[end](capped, held)
        [job] = claim.result(5)
        assert job["failures"] == 1
        assert capped.stats()["lanes"]["retry_in_flight"] == 2

    def test_one_end_wakes_one_claim(self, capped):
        make_retries(capped, 5)
        held = capped.claim(2)
        claims = [claim_in_background(capped, wait="5s") for _ in range(2)]
        eventually(lambda: capped.stats()["waiting_claims"] == 2, "both to wait")
        capped.client.ack(held[0])
        eventually(lambda: any(claim.done() for claim in claims), "one to be woken")
        assert capped.stats()["waiting_claims"] == 1
        capped.client.ack(held[1])
        assert all(len(claim.result(5)) == 1 for claim in claims)

    def test_leases_of_before_a_restart_count(self, server):
        queue = server.client().queue("q").created(
            retry={"attempts": "unlimited"}, fetch={"retry_share": 0.2, "retry_in_flight": 1})
        make_retries(queue, 2)
        held = queue.claim_one()
        server.restart("kill")
        queue = queue.through(server.client())
        assert queue.stats()["lanes"]["retry_in_flight"] == 1
        assert queue.claim(10) == []
        queue.client.ack(held)
        assert queue.claim_one()["failures"] == 1

    def test_a_job_retried_by_hand_is_no_retry(self, capped):
        ids = make_cooling(capped, "a", "b", "c")
        capped.retry(*ids)
        assert len(capped.claim(10)) == 3
        assert capped.stats()["lanes"]["retry_in_flight"] == 0

    def test_a_lower_cap_takes_no_lease_away(self, capped):
        make_retries(capped, 4)
        held = capped.claim(2)
        with_fetch(capped, retry_in_flight=1)
        capped.client.ack(held[0])
        assert capped.claim() == []
        capped.client.ack(held[1])
        assert len(capped.claim(10)) == 1

    def test_null_lifts_it(self, capped):
        make_retries(capped, 4)
        capped.claim(10)
        with_fetch(capped, retry_in_flight=None)
        assert len(capped.claim(10)) == 2


class TestNamedLane:
    def test_a_claim_is_given_only_its_lane(self, patient):
        fill(patient, fresh=2, retries=3)
        assert retries_in(patient.claim(2, lane="retry")) == 2
        fresh = patient.claim(10, lane="fresh")
        assert (len(fresh), retries_in(fresh)) == (2, 0)
        assert len(patient.claim(10, lane="retry")) == 1

    def test_a_waiting_claim_is_woken_only_by_its_lane(self, patient):
        retry = claim_in_background(patient, lane="retry")
        eventually(lambda: patient.stats()["waiting_claims"] == 1, "the claim to wait")
        patient.push("new")
        job = patient.claim_one(wait="5s")
        assert job["payload"] == "new" and not retry.done()
        patient.client.fail(job, delay="0s")
        [again] = retry.result(5)
        assert again["id"] == job["id"]

    def test_one_that_waits_for_new_jobs_leaves_retries_to_others(self, patient):
        make_retries(patient, 1)
        fresh = claim_in_background(patient, lane="fresh")
        eventually(lambda: patient.stats()["waiting_claims"] == 1, "the claim to wait")
        assert patient.claim_one()["failures"] == 1 and not fresh.done()
        patient.push("new")
        assert [job["payload"] for job in fresh.result(5)] == ["new"]

    def test_a_lane_nobody_has_is_refused(self, patient):
        patient.push(1)
        assert_refused(patient, "POST", patient.path("/claim"), {"lane": "slow"}, "invalid_field",
                       "lane")


class TestOrder:
    def test_retries_come_by_the_time_they_were_due_not_by_priority_or_push(self, patient):
        patient.push("first", priority=1)
        patient.push("second", priority=2)
        for job, delay in zip(patient.claim(2), ("250ms", "50ms")):
            patient.client.fail(job, delay=delay)
        eventually(lambda: patient.stats()["lanes"]["retry"] == 2, "both to be due")
        assert [job["payload"] for job in patient.claim(2)] == ["second", "first"]

    def test_new_jobs_keep_their_order_with_retries_between(self, patient):
        make_retries(patient, 20)
        patient.push(*range(30))
        given = [job["payload"] for _ in range(6) for job in patient.claim(5)
                 if not job["failures"]]
        assert given == list(range(24))


class TestStats:
    def test_jobs_are_counted_by_lane_and_by_failures(self, patient):
        patient.push("new")
        patient.push_one("later", delay="1h")
        assert patient.stats()["lanes"] == {
            "fresh": 1, "retry": 0, "retry_in_flight": 0, "retry_credit": 0,
            "retries_by_failures": {**{str(n): 0 for n in range(1, 10)}, "10+": 0}}
        patient.client.ack(patient.claim_one())
        for failures in (1, 2, 2, 9, 10, 12):
            patient.push("x")
            fail_again(patient, failures - 1)
            patient.client.fail(eventually(patient.claim)[0], delay="1h")
        lanes = patient.stats()["lanes"]
        assert {n: count for n, count in lanes["retries_by_failures"].items() if count} == {
            "1": 1, "2": 2, "9": 1, "10+": 2}
        assert (lanes["fresh"], lanes["retry"]) == (0, 0)

    def test_a_retry_is_in_the_backlog_until_it_is_leased(self, patient):
        def backlog():
            lanes = patient.stats()["lanes"]
            return lanes["retries_by_failures"]["1"], lanes["retry"], lanes["retry_in_flight"]
        make_retries(patient, 2)
        assert backlog() == (2, 2, 0)
        job = patient.claim_one()
        assert backlog() == (1, 1, 1)
        patient.client.release(job)
        assert backlog() == (2, 2, 0)
        patient.drop(job["id"])
        assert backlog() == (1, 1, 0)

    def test_the_credit_is_what_has_been_saved_up(self, patient):
        fill(patient, fresh=20, retries=20)
        credits = []
        for _ in range(6):
            patient.claim_one()
            credits.append(patient.stats()["lanes"]["retry_credit"])
        assert credits == pytest.approx([0.2, 0.4, 0.6, 0.8, 0, 0.2])

    def test_claims_are_counted_by_lane(self, patient):
        fill(patient, fresh=10, retries=10)
        patient.claim(10)
        totals = patient.totals()
        assert (totals["claimed"], totals["claimed_retry"]) == (20, 2)

    def test_the_counts_survive_a_kill(self, server):
        queue = server.client().queue("q").created(retry={"attempts": "unlimited"})
        fill(queue, fresh=5, retries=5)
        make_cooling(queue.sibling("other").created(retry={"attempts": 2}), "x", "y")
        queue.claim(5)
        names = ("fresh", "retry", "retry_in_flight", "retries_by_failures")

        def counted(queue):
            return [[stats["lanes"][name] for name in names] + [stats["totals"]["claimed_retry"]]
                    for stats in (queue.stats(), queue.sibling("other").stats())]
        before = counted(queue)
        server.restart("kill")
        assert counted(queue.through(server.client())) == before

    def test_metrics_say_the_same(self, patient):
        fill(patient, fresh=20, retries=20)
        patient.claim(12)
        patient.push("more")
        metrics, lanes = read_metrics(patient.client), patient.stats()["lanes"]
        labels = {"namespace": patient.namespace, "queue": patient.name}

        def value(name, **more):
            return metrics.value(name, **labels, **more)
        assert value("reprise_retry_in_flight") == lanes["retry_in_flight"] == 2
        assert value("reprise_retry_credit") == pytest.approx(lanes["retry_credit"])
        assert value("reprise_retry_credit") == pytest.approx(0.4)
        assert value("reprise_claimed_by_lane_total", lane="retry") == 2
        assert value("reprise_claimed_by_lane_total", lane="fresh") == 30
        assert value("reprise_claimed_total") == 32
        for failures, count in lanes["retries_by_failures"].items():
            assert value("reprise_retry_backlog", failures=failures) == count
        assert value("reprise_retry_backlog", failures="1") == 18


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("fetch, code, name", [
    ({"retry_share": -0.1}, "invalid_field", "fetch.retry_share"),
    ({"retry_share": 1.01}, "invalid_field", "fetch.retry_share"),
    ({"retry_share": 20}, "invalid_field", "fetch.retry_share"),
    ({"retry_share": "0.2"}, "invalid_request", "fetch.retry_share"),
    ({"retry_share": True}, "invalid_request", "fetch.retry_share"),
    ({"retry_in_flight": -1}, "invalid_field", "fetch.retry_in_flight"),
    ({"retry_in_flight": 1.5}, ("invalid_field", "invalid_request"), "fetch.retry_in_flight"),
    ({"retry_in_flight": "none"}, "invalid_request", "fetch.retry_in_flight"),
    ({"retry_shares": 0.2}, "unknown_field", "fetch.retry_shares"),
    (0.2, "invalid_request", "fetch"), ([], "invalid_request", "fetch"),
], ids=json.dumps)
def test_a_bad_fetch_is_refused_by_its_fields_path(absent_queue, method, fetch, code, name):
    queue = absent_queue.created(fetch={"retry_share": 0.3, "retry_in_flight": 7})
    assert_refused(queue, method, queue.path(), {"lease": "9s", "fetch": fetch}, code, name)


def test_a_patch_changes_one_of_the_two(absent_queue):
    queue = absent_queue.created(fetch={"retry_share": 0.3, "retry_in_flight": 7})
    assert queue.patch(fetch={"retry_share": 0.5})["config"]["fetch"] == {
        "retry_share": 0.5, "retry_in_flight": 7}
    assert queue.patch(fetch={"retry_in_flight": None})["config"]["fetch"] == {
        "retry_share": 0.5, "retry_in_flight": None}
    assert queue.patch(fetch=None)["config"]["fetch"] == {
        "retry_share": 0.2, "retry_in_flight": None}
