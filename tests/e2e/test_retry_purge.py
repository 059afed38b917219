"""Bringing jobs back and deleting them for good, by ids and by filters."""

import json
import time

import pytest

from background import claim_in_background
from failing import claim_these, fail_again, make_cooling, make_dead
from ids import colliding_ids
from refusals import assert_refused
from times import assert_close, seconds_since_1970
from waiting import eventually

NOBODY = "7ZK3M9QAX2B4C"
WRONG = ("invalid_field", "invalid_request")
MISSPELT = ("older_then", "header", "all", "dryrun")
DONE = {"retry": "retried", "purge": "purged"}


@pytest.fixture
def patient(absent_queue):
    """A queue whose failed jobs may be retried."""
    return absent_queue.created(retry={"attempts": "unlimited"})


def ids_of(jobs):
    return [job["id"] for job in jobs]


class TestRetry:
    def test_a_dead_job_is_pending_again_with_its_past(self, patient):
        job_id = patient.push_one("payload", headers={"a": "b"}, priority=5)
        fail_again(patient, 1, error="once")
        patient.client.fail(eventually(patient.claim)[0], error="twice", final=True)
        before = patient.job(job_id)
        assert patient.retry(job_id) == {"retried": 1, "skipped": [], "not_found": [],
                                         "operation": None}
        shown = patient.job(job_id)
        assert (shown["status"], shown["lane"], shown["failures"], shown["attempts"]) == (
            "pending", "fresh", 0, 2)
        assert (shown["generation"], shown["ended_at"], shown["reason"]) == (2, None, None)
        for same in ("payload", "headers", "priority", "pushed_at", "history"):
            assert shown[same] == before[same]
        assert patient.totals()["retried"] == 1
        job = patient.claim_one(lane="fresh")
        assert (job["id"], job["attempts"], job["failures"]) == (job_id, 3, 0)

    def test_each_retry_by_hand_is_a_generation(self, queue):
        job_id = queue.push_one(1)
        for generation in (1, 2, 3):
            queue.client.fail(queue.claim_one(), error=f"error {generation}")
            assert queue.job(job_id)["dead_letter"]["meta"]["generation"] == generation
            queue.retry(job_id)
            assert queue.job(job_id)["generation"] == generation + 1
        entries = [(entry["attempt"], entry["generation"], entry["error"])
                   for entry in queue.job(job_id)["history"]]
        assert entries == [(n, n, f"error {n}") for n in (1, 2, 3)]

    def test_automatic_retries_do_not_change_the_generation(self, patient):
        job_id = patient.push_one(1)
        fail_again(patient, 3)
        assert patient.job(job_id)["generation"] == 1

    def test_its_place_is_that_of_its_push(self, queue):
        ids = make_dead(queue, "old 1", "old 2")
        queue.push("new")
        queue.retry(*reversed(ids))
        assert [job["payload"] for job in queue.claim(3)] == ["old 1", "old 2", "new"]

    def test_it_wakes_a_waiting_claim(self, queue):
        [job_id] = make_dead(queue, "x")
        claim = claim_in_background(queue)
        eventually(lambda: queue.stats()["waiting_claims"] == 1, "the claim to wait")
        queue.retry(job_id)
        assert ids_of(claim.result(5)) == [job_id]

    def test_quotas_do_not_refuse_it(self, absent_queue):
        queue = absent_queue.created(max_jobs=1, max_bytes=10)
        [job_id] = make_dead(queue, "x")
        queue.push("y")
        assert queue.push_jobs([{"payload": 1}], status=429)
        assert queue.retry(job_id)["retried"] == 1
        assert queue.counts() == {"pending": 2}

    def test_it_counts_for_the_quota_again(self, absent_queue):
        queue = absent_queue.created(max_jobs=1)
        [job_id] = make_dead(queue, "x")
        queue.retry(job_id)
        assert queue.push_jobs([{"payload": 1}], status=429)[0]["error"]["code"] == "queue_full"

    def test_its_ttl_begins_again(self, queue):
        [job_id] = make_dead(queue, "x", ttl="1h")
        first = queue.job(job_id)
        eventually(lambda: time.time() > seconds_since_1970(first["pushed_at"]) + 0.1)
        retried_at = time.time()
        queue.retry(job_id)
        expires = queue.job(job_id)["expires_at"]
        assert_close(expires, retried_at + 3600, slack=1)
        assert seconds_since_1970(expires) >= retried_at + 3600 - 0.01

    def test_a_job_that_died_of_its_ttl_lives_for_as_long_again(self, queue):
        job_id = queue.push_one(1, ttl="400ms")
        eventually(lambda: queue.status_of(job_id) == "dead", "the job to expire")
        queue.retry(job_id)
        shown = queue.job(job_id)
        assert (shown["status"], shown["generation"]) == ("pending", 2)
        eventually(lambda: queue.status_of(job_id) == "dead", "the job to expire again")
        again = queue.job(job_id)
        assert again["reason"] == "expired"
        assert seconds_since_1970(again["ended_at"]) >= seconds_since_1970(shown["expires_at"])

    def test_it_is_told(self, patient, events):
        stream = events("queue:retry")
        [dead] = make_dead(patient, "x")
        [cooling] = make_cooling(patient, "y")
        patient.retry(dead, cooling)
        told = stream.take(2)
        assert [event.data["id"] for event in told] == [dead, cooling]
        assert [event.data["generation"] for event in told] == [2, 2]
        assert {event.data["queue"] for event in told} == {"jobs"}

    def test_failed_jobs_are_selected_only_when_asked_for(self, patient):
        dead, cooling = make_dead(patient, "x"), make_cooling(patient, "x", "x")
        assert patient.retry(filter={"error": "x"})["retried"] == 1
        assert patient.counts() == {"pending": 1, "failed": 2}
        assert patient.retry(filter={"status": "failed", "error": "x"})["retried"] == 2
        assert patient.counts() == {"pending": 3}
        assert {job["failures"] for job in patient.jobs()} == {0}
        assert sorted(ids_of(patient.jobs())) == sorted(dead + cooling)

    def test_everything_is_there_after_a_kill(self, server):
        queue = server.client().queue("q").created(retry={"attempts": 3})
        dead, purged = make_dead(queue, "a", "b")
        [cooling] = make_cooling(queue, "c")
        queue.retry(dead, cooling)
        queue.purge(purged)
        before = queue.snapshot(), queue.job(dead), queue.job(cooling)
        server.restart("kill")
        queue = queue.through(server.client())
        assert (queue.snapshot(), queue.job(dead), queue.job(cooling)) == before
        assert queue.status_of(purged) is None
        assert ids_of(queue.claim(9)) == [dead, cooling]


class TestPurge:
    def test_a_purged_job_is_gone(self, queue):
        one, two = make_dead(queue, "a", "b")
        assert queue.purge(one) == {"purged": 1, "skipped": [], "not_found": [],
                                    "operation": None}
        assert queue.status_of(one) is None and queue.status_of(two) == "dead"
        assert queue.counts() == {"dead": 1} and queue.totals()["purged"] == 1

    def test_each_is_told(self, queue, events):
        stream = events("queue:purged")
        ids = make_dead(queue, "a", "b", "c")
        queue.purge(ids[0])
        queue.purge(filter={})
        told = stream.take(3)
        assert {event.data["id"] for event in told} == set(ids)
        assert {event.data["cause"] for event in told} == {"purge"}

    def test_a_filter_takes_dead_jobs_only(self, patient):
        make_cooling(patient, "x")
        make_dead(patient, "x")
        patient.push("x", "x")
        patient.claim_one()
        assert patient.purge(filter={})["purged"] == 1
        assert patient.counts() == {"failed": 1, "pending": 1, "active": 1}

    @pytest.mark.parametrize("status", ["failed", "pending", "active", "scheduled", "completed"])
    def test_a_filter_for_jobs_that_are_not_dead_is_refused(self, patient, status):
        make_cooling(patient, "x")
        patient.push("x")
        assert_refused(patient, "POST", patient.path("/purge"), {"filter": {"status": status}},
                       "invalid_field", "filter.status")


def job_in(queue, status):
    """A job of this status."""
    if status == "failed":
        return make_cooling(queue, "x")[0]
    job_id = queue.push_one(1, **({"delay": "1h"} if status == "scheduled" else {}))
    if status in ("active", "completed"):
        job = queue.claim_one()
        if status == "completed":
            queue.client.ack(job)
    assert queue.status_of(job_id) == status
    return job_id


@pytest.mark.parametrize("verb, status", [
    *[("retry", status) for status in ("scheduled", "pending", "active", "completed")],
    *[("purge", status) for status in ("scheduled", "pending", "active", "completed", "failed")]])
def test_another_status_is_refused_and_named(absent_queue, verb, status):
    queue = absent_queue.created(retry={"attempts": 3}, keep_completed="1h")
    job_id = job_in(queue, status)
    before = queue.job(job_id)
    reply = getattr(queue, verb)(job_id, status=409)
    assert (reply[DONE[verb]], reply["error"]["code"]) == (0, "wrong_status")
    assert status in reply["error"]["message"]
    assert [(each["id"], each["status"]) for each in reply["skipped"]] == [(job_id, status)]
    assert queue.job(job_id) == before and DONE[verb] not in queue.totals()


def test_a_full_disk_refuses_retries_and_lets_purges_make_room(start_server):
    server = start_server()
    queue = server.client().queue("q").created()
    ids = make_dead(queue, "a", "b", "c")
    server.kill()
    server.start("--disk-reserve", "1000TiB")
    queue = queue.through(server.client())
    for body in ({"ids": ids[:1]}, {"filter": {}}):
        assert queue.client.refused("POST", queue.path("/retry"), body) == (507, "disk_full")
    assert queue.counts() == {"dead": 3}
    assert queue.purge(ids[0])["purged"] == 1
    assert queue.purge(filter={})["purged"] == 2


@pytest.mark.parametrize("verb", DONE)
class TestByIds:
    def act(self, queue, verb, *ids, **fields):
        return getattr(queue, verb)(*ids, **fields)

    @pytest.mark.parametrize("length", [4, 8, 13])
    def test_a_unique_prefix_will_do(self, queue, verb, length):
        [job_id] = make_dead(queue, "x")
        assert self.act(queue, verb, job_id[:length].lower())[DONE[verb]] == 1
        assert queue.counts().get("dead") is None

    def test_each_is_judged_by_itself(self, queue, verb):
        dead, left = make_dead(queue, "x", "y")
        pending = queue.push_one("p")
        reply = self.act(queue, verb, pending, NOBODY, dead)
        assert reply[DONE[verb]] == 1 and reply["not_found"] == [NOBODY]
        [skipped] = reply["skipped"]
        assert (skipped["id"], skipped["status"], skipped["code"]) == (
            pending, "pending", "wrong_status")
        assert "pending" in skipped["reason"] and pending[:8] in skipped["reason"]
        assert queue.status_of(pending) == "pending" and queue.status_of(left) == "dead"

    def test_one_named_twice_is_done_once(self, queue, verb):
        [job_id] = make_dead(queue, "x")
        assert self.act(queue, verb, job_id, job_id)[DONE[verb]] == 1
        assert queue.totals()[DONE[verb]] == 1

    def test_a_prefix_that_fits_several_is_skipped(self, queue, verb):
        prefix = colliding_ids(queue)[0][:4]
        before = queue.counts()
        reply = self.act(queue, verb, prefix, status=409)
        assert (reply[DONE[verb]], reply["error"]["code"]) == (0, "ambiguous_id")
        [skipped] = reply["skipped"]
        assert (skipped["id"], skipped["status"], skipped["code"]) == (
            prefix, None, "ambiguous_id")
        assert queue.counts() == before

    def test_no_ids_are_no_error(self, queue, verb):
        make_dead(queue, "x")
        assert self.act(queue, verb)[DONE[verb]] == 0
        assert queue.counts() == {"dead": 1}

    def test_when_none_was_done_the_status_is_that_of_the_first_refusal(self, queue, verb):
        pending = queue.push_one(1)
        reply = self.act(queue, verb, NOBODY, status=404)
        assert (reply["error"]["code"], reply["not_found"]) == ("job_not_found", [NOBODY])
        assert reply[DONE[verb]] == 0
        assert self.act(queue, verb, NOBODY, pending, status=404)["skipped"][0]["id"] == pending
        reply = self.act(queue, verb, pending, NOBODY, status=409)
        assert reply["error"]["code"] == "wrong_status" and reply["not_found"] == [NOBODY]

    def test_a_thousand_are_taken_and_one_more_is_refused_whole(self, queue, verb):
        ids = make_dead(queue, *["x"] * 1000)
        reply = queue.client.request("POST", queue.path(f"/{verb}"), {"ids": ids + [NOBODY]})
        assert reply.status in (400, 413) and queue.counts() == {"dead": 1000}
        assert self.act(queue, verb, *ids)[DONE[verb]] == 1000

    def test_an_unknown_queue_is_not_found(self, absent_queue, verb):
        for body in ({"ids": [NOBODY]}, {"filter": {}}):
            assert absent_queue.client.refused("POST", absent_queue.path(f"/{verb}"), body) == (
                404, "queue_not_found")

    def test_a_job_of_another_queue_is_not_touched(self, queue, verb):
        [elsewhere] = make_dead(queue.sibling("other").created(), "x")
        assert self.act(queue, verb, elsewhere, status=404)["not_found"] == [elsewhere]
        assert queue.sibling("other").status_of(elsewhere) == "dead"


@pytest.mark.parametrize("verb", DONE)
class TestByFilter:
    def act(self, queue, verb, **fields):
        return getattr(queue, verb)(filter=fields.pop("filter", {}), **fields)

    def test_a_dry_run_counts_shows_examples_and_changes_nothing(self, queue, verb):
        ids = make_dead(queue, *[f"timeout {n}" for n in range(12)], "other")
        before = queue.snapshot()
        operations = queue.client.operations()
        reply = self.act(queue, verb, filter={"error": "timeout"}, dry_run=True)
        assert (reply[DONE[verb]], reply["matched"], reply["dry_run"]) == (0, 12, True)
        assert len(reply["examples"]) == 10
        for example in reply["examples"]:
            number = ids.index(example["id"])
            assert example == {"id": ids[number], "error": f"timeout {number}",
                               "ended_at": queue.job(ids[number])["ended_at"]}
        assert queue.snapshot() == before
        assert queue.client.audit(namespace=queue.namespace) == []
        assert queue.client.operations() == operations

    def test_a_dry_run_heeds_the_limit(self, queue, verb):
        make_dead(queue, *["x"] * 5)
        assert self.act(queue, verb, dry_run=True, limit=3)["matched"] == 3

    def test_a_limit_takes_the_longest_dead_first(self, patient, verb):
        ids = patient.push(*range(5))
        jobs = claim_these(patient, ids)
        for number in (2, 4, 0, 1, 3):
            patient.client.fail(jobs[number], final=True)
        assert self.act(patient, verb, limit=2)[DONE[verb]] == 2
        left = [job["payload"] for job in patient.all_jobs(status="dead", order="newest")]
        assert left == [3, 1, 0]

    def test_thousands_are_done_in_one_call(self, queue, verb):
        for _ in range(3):
            make_dead(queue, *["x"] * 1000)
        assert self.act(queue, verb)[DONE[verb]] == 3000
        assert queue.counts() == ({"pending": 3000} if verb == "retry" else {})
        assert queue.totals()[DONE[verb]] == 3000

    def test_nothing_to_do_is_no_error(self, queue, verb):
        queue.push(1)
        assert self.act(queue, verb)[DONE[verb]] == 0
        assert queue.counts() == {"pending": 1}

    @pytest.mark.parametrize("body, name", [
        *[({"filter": {"older_than": text}}, "older_than")
          for text in ("7 parsecs", "", "-1s", "7x", "1y", True, [], -1)],
        ({"filter": {"newer_than": "soon"}}, "newer_than"),
        ({"filter": {"older_then": "7d"}}, "older_then"), ({"filter": {"header": {}}}, "header"),
        ({"filter": {"headers": {"a": 1}}}, "headers"), ({"filter": {"headers": "a"}}, "headers"),
        ({"filter": {"reason": "boredom"}}, "reason"), ({"filter": {"error": 5}}, "error"),
        ({"filter": {"status": "deadd"}}, "status"), ({"filter": {"fingerprint": 1}},
                                                      "fingerprint"),
        ({"filter": []}, "filter"), ({"filter": "all"}, "filter"), ({"filter": None}, "filter"),
        ({}, "ids"), ({"ids": [], "filter": {}}, "filter"), ({"ids": "all"}, "ids"),
        ({"ids": [5]}, "ids"), ({"dry_run": True}, ""), ({"filter": {}, "all": True}, "all"),
        ({"filter": {}, "limit": 0}, "limit"), ({"filter": {}, "limit": -1}, "limit"),
        ({"filter": {}, "limit": "5"}, "limit"), ({"filter": {}, "limit": 1.5}, "limit"),
        *[({"filter": {}, "rate": rate}, "rate")
          for rate in ("100", "fast", "0/s", "-1/s", "100/fortnight", 100, "", "/s")],
        ({"filter": {}, "wait": "11m"}, "wait"), ({"filter": {}, "wait": "-1s"}, "wait"),
        ({"filter": {}, "wait": "a while"}, "wait"), ({"filter": {}, "dry_run": "yes"}, "dry_run"),
        ({"filter": {}, "dryrun": True}, "dryrun"),
    ], ids=json.dumps)
    def test_a_bad_request_is_refused_by_its_field_and_touches_nothing(self, queue, verb, body,
                                                                       name):
        make_dead(queue, "x", headers={"a": "1"})
        assert_refused(queue, "POST", queue.path(f"/{verb}"), body,
                       "unknown_field" if name in MISSPELT else WRONG, name)
        assert queue.client.audit(namespace=queue.namespace) == []

    @pytest.mark.parametrize("extra", [{"dry_run": True}, {"limit": 1}, {"rate": "1/s"}],
                             ids=json.dumps)
    def test_what_goes_with_a_filter_does_not_go_with_ids(self, queue, verb, extra):
        ids = make_dead(queue, "x", "y")
        assert_refused(queue, "POST", queue.path(f"/{verb}"), {"ids": ids, **extra},
                       WRONG, *extra)
