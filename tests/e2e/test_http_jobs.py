"""Browsing, showing and dropping jobs; prefixes of ids; the dead-letter envelope."""

import time

import pytest

from ids import colliding_ids
from times import assert_close, seconds_since_1970
from waiting import eventually, time_passes

SHOWN_FIELDS = {"id", "queue", "namespace", "status", "lane", "payload", "headers", "priority",
                "fairness_key", "weight", "throttle_keys", "key", "attempts", "failures", "pushed_at", "due_at", "expires_at",
                "lease_expires_at", "worker", "last_error", "history", "generation", "ended_at",
                "last_error_type", "reason", "origin_queue"}


@pytest.fixture
def zoo(absent_queue):
    """A queue with one job of every status; the payload names it."""
    queue = absent_queue.created(retry={"attempts": 2, "cooldown": "1h"})
    queue.push("active", headers={"tenant": "a"})
    queue.push("failed", headers={"tenant": "a"})
    queue.push("dead", headers={"tenant": "b"})
    queue.push("pending", headers={"tenant": "b"})
    queue.push("scheduled", delay="1h")
    jobs = {job["payload"]: job for job in queue.claim(3, worker="host-1")}
    queue.client.fail(jobs["failed"], error="upstream timeout")
    queue.client.fail(jobs["dead"], error="no such order", final=True)
    queue.tokens = [job["token"] for job in jobs.values()]
    return queue


def names(jobs):
    return [job["payload"] for job in jobs]


class TestBrowse:
    def test_jobs_come_in_push_order_whatever_their_status(self, zoo):
        assert names(zoo.jobs()) == ["active", "failed", "dead", "pending", "scheduled"]

    @pytest.mark.parametrize("status", ["scheduled", "pending", "active", "failed", "dead"])
    def test_by_status(self, zoo, status):
        [job] = zoo.jobs(status=status)
        assert job["payload"] == job["status"] == status

    def test_by_lane(self, zoo):
        assert names(zoo.jobs(lane="fresh")) == ["active", "pending", "scheduled"]
        assert names(zoo.jobs(lane="retry")) == ["failed", "dead"]

    def test_by_a_part_of_the_last_error(self, zoo):
        assert names(zoo.jobs(error="timeout")) == ["failed"]
        assert names(zoo.jobs(error="o")) == ["failed", "dead"]
        assert names(zoo.jobs(error="nothing like it")) == []

    def test_by_a_header(self, zoo):
        assert names(zoo.jobs(**{"header.tenant": "a"})) == ["active", "failed"]
        assert names(zoo.jobs(**{"header.tenant": "A"})) == []
        assert names(zoo.jobs(**{"header.other": "a"})) == []

    def test_by_age(self, zoo):
        assert zoo.jobs(older_than="1h") == []
        old = zoo.jobs()[0]
        time_passes(seconds_since_1970(old["pushed_at"]) + 0.3)
        zoo.push("new")
        found = names(zoo.jobs(older_than="250ms"))
        assert "active" in found and "new" not in found

    def test_filters_add_up(self, zoo):
        assert names(zoo.jobs(status="dead", error="order", **{"header.tenant": "b"})) == ["dead"]
        assert zoo.jobs(status="dead", error="timeout") == []

    def test_a_list_shows_what_one_job_shows_without_the_history(self, zoo):
        for listed in zoo.jobs():
            shown = zoo.job(listed["id"])
            assert "history" not in listed and "dead_letter" not in listed
            assert listed == {name: shown[name] for name in listed}
            assert set(listed) == SHOWN_FIELDS - {"history"}

    def test_tokens_are_never_shown(self, zoo):
        bodies = [zoo.client.request("GET", zoo.path("/jobs")).body]
        bodies += [zoo.client.request("GET", zoo.path(f"/jobs/{job['id']}")).body
                   for job in zoo.jobs()]
        for token in zoo.tokens:
            assert not any(token.encode() in body for body in bodies)

    def test_the_default_page_has_fifty_jobs(self, queue):
        queue.push(*range(60))
        assert len(queue.jobs()) == 50

    def test_pages_cover_everything_once(self, queue):
        queue.push(*range(25))
        assert names(queue.all_jobs(limit=4)) == list(range(25))

    def test_the_last_page_has_no_cursor(self, queue):
        queue.push(1, 2)
        assert queue.client.get(queue.path("/jobs", limit=50))["cursor"] is None

    def test_a_cursor_stays_valid_while_jobs_come_and_go(self, queue):
        ids = queue.push(*range(10))
        page = queue.client.get(queue.path("/jobs", limit=5))
        for gone in (ids[3], ids[4], ids[5]):
            queue.drop(gone)
        queue.push(10)
        rest = queue.jobs(cursor=page["cursor"])
        assert names(page["jobs"]) == [0, 1, 2, 3, 4] and names(rest) == [6, 7, 8, 9, 10]

    def test_a_filter_that_fits_few_of_many_finds_them_all(self, queue):
        for block in range(5):
            queue.push(*[{"n": n} for n in range(999)])
            queue.push_one(f"needle {block}", headers={"rare": "yes"})
        found = queue.all_jobs(limit=1000, **{"header.rare": "yes"})
        assert names(found) == [f"needle {n}" for n in range(5)]


class TestShow:
    def test_a_new_job(self, queue):
        job_id = queue.push_one({"id": 1}, headers={"tenant": "a"}, key="k1", priority=7)
        job = queue.job(job_id)
        assert_close(job.pop("pushed_at"), time.time())
        assert job == {"id": job_id, "queue": "jobs", "namespace": queue.namespace,
                       "status": "pending", "lane": "fresh", "payload": {"id": 1},
                       "headers": {"tenant": "a"}, "priority": 7, "fairness_key": "default",
                       "weight": 1, "throttle_keys": [], "key": "k1", "attempts": 0,
                       "failures": 0, "generation": 1, "due_at": None, "expires_at": None,
                       "lease_expires_at": None, "ended_at": None, "worker": None,
                       "last_error": None, "last_error_type": None, "reason": None,
                       "origin_queue": None, "history": []}

    def test_a_failed_job_tells_its_attempts(self, zoo):
        job = zoo.job(zoo.jobs(status="failed")[0]["id"])
        [entry] = job["history"]
        assert_close(entry.pop("at"), time.time())
        assert_close(entry.pop("ended_at"), time.time())
        assert entry == {"attempt": 1, "generation": 1, "outcome": "failed", "worker": "host-1",
                         "error": "upstream timeout", "error_type": None}
        assert job["last_error"] == "upstream timeout"
        assert_close(job["due_at"], time.time() + 3600)

    def test_bytes_are_shown_as_base64(self, queue):
        queue.push_jobs([{"payload_base64": "AAEC"}])
        [listed] = queue.jobs()
        assert listed["payload_base64"] == "AAEC" and "payload" not in listed
        assert queue.job(listed["id"])["payload_base64"] == "AAEC"

    @pytest.mark.parametrize("job_id", ["7ZK3M9QAX2B4C", "0000", "0000000000000"])
    def test_an_unknown_job_is_not_found(self, queue, job_id):
        for method in ("GET", "DELETE"):
            assert queue.client.refused(method, queue.path(f"/jobs/{job_id}")) == (
                404, "job_not_found")

    def test_a_job_is_found_only_in_its_own_queue(self, queue):
        other = queue.sibling("other").created()
        job_id = queue.push_one(1)
        for text in (job_id, job_id[:8]):
            assert other.client.refused("GET", other.path(f"/jobs/{text}")) == (
                404, "job_not_found")


class TestDeadLetter:
    def test_the_envelope_of_a_job_that_failed_too_often(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 2, "cooldown": "0s"})
        job_id = queue.push_one({"id": 1}, headers={"tenant": "a"}, key="k1")
        for error in ("first", "second"):
            queue.client.fail(eventually(lambda: queue.claim(worker="w"))[0], error=error)
        job = queue.job(job_id)
        event, meta = job["dead_letter"]["event"], job["dead_letter"]["meta"]
        assert event == {"id": job_id, "queue": "jobs", "namespace": queue.namespace,
                         "payload": {"id": 1}, "headers": {"tenant": "a"}, "priority": 1000,
                         "fairness_key": "default", "weight": 1, "throttle_keys": [],
                         "key": "k1", "pushed_at": job["pushed_at"]}
        assert (job["reason"], job["ended_at"]) == ("max_attempts", meta["deadLetteredAt"])
        for moment in ("firstAttemptAt", "deadLetteredAt"):
            assert_close(meta.pop(moment), time.time())
        history = meta.pop("history")
        assert meta == {"attempts": 2, "generation": 1, "lastError": "second",
                        "lastErrorType": None, "reason": "max_attempts", "decidedBy": "policy"}
        for entry in history:
            assert_close(entry.pop("at"), time.time())
        assert history == [{"worker": "w", "error": error, "errorType": None, "outcome": "failed"}
                           for error in ("first", "second")]

    def test_only_dead_jobs_have_one(self, zoo):
        having = [job["payload"] for job in zoo.jobs() if "dead_letter" in zoo.job(job["id"])]
        assert having == ["dead"]

    def test_a_job_that_expired_untried_has_no_attempts(self, queue):
        job_id = queue.push_one(1, ttl="100ms")
        eventually(lambda: queue.status_of(job_id) == "dead")
        meta = queue.job(job_id)["dead_letter"]["meta"]
        assert (meta["reason"], meta["decidedBy"], meta["attempts"]) == ("expired", "policy", 0)
        assert meta["history"] == []


class TestPrefixes:
    def test_any_unique_prefix_of_four_characters_does(self, queue):
        job_id = queue.push_one("x")
        for length in range(4, 14):
            assert queue.job(job_id[:length])["id"] == job_id
            assert queue.job(job_id[:length].lower())["id"] == job_id

    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_a_shorter_one_is_refused(self, queue, length):
        job_id = queue.push_one("x")
        reply = queue.client.request("DELETE", queue.path(f"/jobs/{job_id[:length]}"))
        assert 400 <= reply.status < 500 and queue.status_of(job_id) == "pending"

    def test_one_that_fits_several_is_refused_with_the_list(self, queue):
        first, second = colliding_ids(queue)
        for method in ("GET", "DELETE"):
            reply = queue.client.request(method, queue.path(f"/jobs/{first[:4]}"))
            assert (reply.status, reply.code) == (409, "ambiguous_id")
            assert {first, second} <= set(reply.json()["matches"])
            assert len(reply.json()["matches"]) <= 10
        assert {queue.status_of(first), queue.status_of(second)} == {"pending"}

    def test_jobs_that_are_gone_or_elsewhere_do_not_make_a_prefix_ambiguous(self, queue):
        first, second = colliding_ids(queue)
        queue.drop(first)
        assert queue.job(second[:4])["id"] == second

    def test_an_id_with_other_characters_is_no_id(self, queue):
        queue.push_one(1)
        reply = queue.client.request("GET", queue.path("/jobs/!!!!!!!!"))
        assert reply.status in (400, 404)


class TestDrop:
    @pytest.mark.parametrize("status", ["scheduled", "pending", "active", "failed", "dead"])
    def test_a_job_of_any_status_is_dropped(self, zoo, status):
        job_id = zoo.jobs(status=status)[0]["id"]
        assert zoo.drop(job_id) == {"dropped": True, "id": job_id, "status": status}
        assert zoo.status_of(job_id) is None
        assert status not in zoo.counts() and zoo.totals()["dropped"] == 1

    def test_the_lease_on_it_is_lost(self, queue):
        queue.push(1)
        job = queue.claim_one()
        queue.drop(job["id"])
        assert queue.client.ack(job, status=409)["error"]["code"] == "lease_lost"

    def test_a_prefix_is_enough(self, queue):
        job_id = queue.push_one(1)
        assert queue.drop(job_id[:8].lower())["id"] == job_id

    def test_a_dropped_job_is_not_served(self, queue):
        first, _ = queue.push(1, 2)
        queue.drop(first)
        assert names(queue.claim(10)) == [2]
