"""Ack, fail, release, extend: what each does, and that a stale token does nothing at all."""

import time

import pytest

from times import assert_close, seconds_since_1970
from waiting import eventually, time_passes

VERBS = ["ack", "fail", "release", "extend"]
STATUSES = ["acked", "dead", "released", "extended"]


@pytest.fixture
def patient(absent_queue):
    """A queue that retries nine times, at once."""
    return absent_queue.created(retry={"attempts": 9, "cooldown": "0s"})


def leased(queue, payload=1, **fields):
    queue.push(payload)
    return queue.claim_one(**fields)


def test_an_acked_job_is_gone(queue):
    job = leased(queue)
    assert queue.client.ack(job) == {"index": 0, "status": "acked", "id": job["id"]}
    assert queue.status_of(job["id"]) is None
    assert queue.counts() == {} and queue.stats()["completed"] == 1


class TestFail:
    @pytest.mark.parametrize("attempts", [0, 1])
    def test_without_retries_the_first_failure_is_the_last(self, absent_queue, attempts):
        queue = absent_queue.created(retry={"attempts": attempts, "cooldown": "1s"})
        job = leased(queue)
        assert queue.client.fail(job, error="x") == {
            "index": 0, "status": "dead", "id": job["id"], "reason": "max_attempts"}
        assert queue.counts() == {"dead": 1}

    def test_a_job_dies_at_the_last_allowed_failure(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3, "cooldown": "0s"})
        queue.push(1)
        ends = [queue.client.fail(eventually(queue.claim)[0])["status"] for _ in range(3)]
        assert ends == ["retrying", "retrying", "dead"]

    def test_the_cooldown_is_waited_out(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3, "cooldown": "300ms"})
        job = leased(queue)
        result = queue.client.fail(job)
        assert result["status"] == "retrying"
        assert_close(result["retry_at"], time.time() + 0.3)
        shown = queue.job(job["id"])
        assert (shown["status"], shown["due_at"], shown["lane"]) == (
            "failed", result["retry_at"], "retry")
        assert queue.claim() == []
        eventually(queue.claim, "the retry")
        assert time.time() >= seconds_since_1970(result["retry_at"])

    def test_delay_overrides_the_cooldown(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3, "cooldown": "1h"})
        result = queue.client.fail(leased(queue), delay="2h")
        assert_close(result["retry_at"], time.time() + 7200)

    def test_delay_does_not_pass_the_cap(self, queue):
        assert queue.client.fail(leased(queue), delay="1s")["reason"] == "max_attempts"

    def test_final_is_dead_whatever_the_policy(self, patient):
        job = leased(patient)
        result = patient.client.fail(job, error="no such order", final=True, delay="1s")
        assert (result["status"], result["reason"]) == ("dead", "final")
        meta = patient.job(job["id"])["dead_letter"]["meta"]
        assert (meta["reason"], meta["decidedBy"]) == ("final", "client")

    def test_final_false_follows_the_policy(self, patient):
        assert patient.client.fail(leased(patient), final=False)["status"] == "retrying"

    def test_an_error_text_beyond_the_limit_is_refused_and_the_lease_goes_on(self, queue):
        job = leased(queue)
        refused = queue.client.fail(job, status=413, error="x" * 16385)
        assert (refused["status"], refused["error"]["code"]) == ("rejected", "error_too_long")
        assert queue.counts() == {"active": 1}
        assert queue.client.fail(job, error="x" * 16384)["status"] == "dead"
        assert queue.job(job["id"])["last_error"] == "x" * 16384


class TestRelease:
    def test_a_released_job_is_first_in_line_again(self, queue):
        job = leased(queue, "first")
        queue.push("second")
        assert queue.client.release(job) == {"index": 0, "status": "released", "id": job["id"]}
        assert [job["payload"] for job in queue.claim(2)] == ["first", "second"]

    def test_it_is_no_failure(self, queue):
        job = leased(queue)
        queue.client.release(job)
        shown = queue.job(job["id"])
        assert (shown["status"], shown["attempts"], shown["failures"]) == ("pending", 1, 0)
        assert shown["last_error"] is None and shown["history"][0]["outcome"] == "released"

    def test_with_delay_it_waits(self, queue):
        queue.client.release(leased(queue), delay="300ms")
        assert queue.claim() == []
        assert queue.counts() == {"scheduled": 1}
        eventually(queue.claim, "the released job")


class TestExtend:
    def test_the_deadline_is_the_lease_from_now(self, queue):
        job = leased(queue)
        result = queue.client.extend(job, lease="2m")
        assert_close(result["lease_expires_at"], time.time() + 120)
        assert queue.job(job["id"])["lease_expires_at"] == result["lease_expires_at"]
        assert_close(queue.client.extend(job, lease="10s")["lease_expires_at"], time.time() + 10)

    def test_without_a_lease_it_takes_the_queues(self, absent_queue):
        queue = absent_queue.created(lease="5m")
        result = queue.client.extend(leased(queue, lease="1s"))
        assert_close(result["lease_expires_at"], time.time() + 300)

    def test_an_extended_lease_outlives_its_first_deadline(self, patient):
        job = leased(patient, lease="300ms")
        patient.client.extend(job, lease="30s")
        time_passes(seconds_since_1970(job["lease_expires_at"]) + 0.1)
        assert patient.claim() == []
        assert patient.client.ack(job)["status"] == "acked"

    def test_a_shortened_lease_ends_early(self, patient):
        job = leased(patient)
        patient.client.extend(job, lease="100ms")
        assert eventually(patient.claim, "the job again")[0]["attempts"] == 2


class TestExpiry:
    def test_an_expired_lease_is_a_failure_like_any_other(self, patient):
        job = leased(patient, lease="100ms", worker="slow")
        again = eventually(patient.claim, "the expired job")[0]
        assert time.time() >= seconds_since_1970(job["lease_expires_at"])
        assert (again["id"], again["attempts"], again["failures"]) == (job["id"], 2, 1)
        assert again["token"] != job["token"]
        [entry] = patient.job(job["id"])["history"]
        assert (entry["outcome"], entry["worker"]) == ("lease_expired", "slow")
        assert patient.totals()["lease_expired"] == 1

    def test_at_the_cap_it_is_death(self, queue):
        job = leased(queue, lease="100ms")
        eventually(lambda: queue.counts() == {"dead": 1}, "the job to die")
        meta = queue.job(job["id"])["dead_letter"]["meta"]
        assert (meta["reason"], meta["decidedBy"]) == ("lease_expired", "policy")

    def test_the_cooldown_follows_it(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3, "cooldown": "1h"})
        leased(queue, lease="100ms")
        eventually(lambda: queue.counts() == {"failed": 1}, "the lease to expire")


def make_stale(queue, how):
    """A job whose token has lost its lease."""
    api = queue.client
    if how == "expired":
        job = leased(queue, lease="100ms")
        eventually(lambda: queue.counts() == {"pending": 1}, "the lease to expire")
        return job
    job = leased(queue)
    if how == "acked":
        api.ack(job)
    elif how == "failed":
        api.fail(job, delay="1h")
    elif how == "dead":
        api.fail(job, final=True)
    elif how == "released":
        api.release(job)
    elif how == "dropped":
        queue.drop(job["id"])
    elif how == "claimed again":
        api.release(job)
        queue.claim_one()
    return job


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("how", ["expired", "acked", "failed", "dead", "released", "dropped",
                                 "claimed again"])
def test_a_stale_token_is_refused_and_changes_nothing(patient, how, verb):
    job = make_stale(patient, how)
    before = patient.snapshot()
    refused = patient.client.one_lease(verb, job, status=409)
    assert (refused["status"], refused["error"]["code"]) == ("rejected", "lease_lost")
    assert patient.snapshot() == before


@pytest.mark.parametrize("verb", VERBS)
def test_the_new_holder_is_not_disturbed_by_the_old_one(patient, verb):
    old = make_stale(patient, "expired")
    new = patient.claim_one()
    patient.client.one_lease(verb, old, status=409)
    assert patient.client.ack(new)["status"] == "acked"


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("token", ["", "x", "stale-token", "0" * 31, "0" * 33, "!" * 32, "é" * 16,
                                   "\u0000" * 32, "A" * 100000])
def test_text_that_was_never_a_token_is_refused(queue, verb, token):
    leased(queue)
    before = queue.snapshot()
    refused = queue.client.one_lease(verb, token, status=400)
    assert (refused["status"], refused["error"]["code"]) == ("rejected", "invalid_lease_token")
    assert queue.snapshot() == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_forged_token_ends_no_lease(queue, verb):
    job = leased(queue)
    last = "1" if job["token"][-1] == "0" else "0"
    before = queue.snapshot()
    reply = queue.client.request("POST", f"/v1/{verb}",
                                 {"leases": [{"token": job["token"][:-1] + last}]})
    assert reply.json()["results"][0]["error"]["code"] in ("lease_lost", "invalid_lease_token")
    assert queue.snapshot() == before


@pytest.mark.parametrize("verb, status", list(zip(VERBS, STATUSES)))
class TestSeveralLeases:
    def test_each_item_has_its_result(self, queue, verb, status):
        queue.push(1, 2)
        one, two = queue.claim(2)
        queue.push(3)
        stale = queue.claim_one()
        queue.drop(stale["id"])
        tokens = [one["token"], stale["token"], "junk", two["token"]]
        results = queue.client.leases(verb, [{"token": token} for token in tokens])
        assert [r["index"] for r in results] == [0, 1, 2, 3]
        assert [r["status"] for r in results] == [status, "rejected", "rejected", status]
        assert (results[0]["id"], results[3]["id"]) == (one["id"], two["id"])

    def test_when_all_are_refused_the_status_is_that_of_the_first(self, queue, verb, status):
        stale = leased(queue)["token"]
        queue.drop(queue.jobs()[0]["id"])
        queue.client.leases(verb, [{"token": stale}, {"token": "junk"}], status=409)
        queue.client.leases(verb, [{"token": "junk"}, {"token": stale}], status=400)

    def test_no_leases_are_no_error(self, queue, verb, status):
        assert queue.client.leases(verb, []) == []

    def test_a_thousand_are_taken_and_one_more_is_refused_whole(self, queue, verb, status):
        queue.push(*range(1000))
        items = [{"token": job["token"]} for job in queue.claim(1000)]
        refused = queue.client.refused("POST", f"/v1/{verb}", {"leases": items + items[:1]})
        assert refused == (413, "batch_too_many_jobs")
        assert queue.counts() == {"active": 1000}
        assert {r["status"] for r in queue.client.leases(verb, items)} == {status}


def test_one_token_twice_in_a_call_works_once(queue):
    job = leased(queue)
    first, second = queue.client.ack_all([job, job])
    assert (first["status"], second["status"]) == ("acked", "rejected")
    assert second["error"]["code"] == "lease_lost"
    assert queue.totals()["completed"] == 1


def test_leases_of_several_queues_end_in_one_call(queue):
    other = queue.sibling("other").created()
    results = queue.client.ack_all([leased(queue), leased(other)])
    assert [r["status"] for r in results] == ["acked", "acked"]
    assert queue.counts() == other.counts() == {}


def test_the_history_keeps_the_first_attempt_and_the_last_nine(absent_queue):
    queue = absent_queue.created(retry={"attempts": 100, "cooldown": "0s"})
    job_id = queue.push_one(1)
    for attempt in range(1, 16):
        queue.client.fail(eventually(queue.claim)[0], error=f"error {attempt}")
    shown = queue.job(job_id)
    kept = [1, *range(7, 16)]
    assert [entry["attempt"] for entry in shown["history"]] == kept
    assert [entry["error"] for entry in shown["history"]] == [f"error {n}" for n in kept]
    assert (shown["attempts"], shown["failures"]) == (15, 15)
