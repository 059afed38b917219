"""A dead-letter queue: what dies goes there in one step, with its story, and can go back."""

import json
import time

import pytest

from background import claim_in_background
from failing import claim_these, fail_again, make_dead
from metrics_text import read_metrics
from times import assert_close, seconds_since_1970
from waiting import eventually

ERROR_HEADER_BYTES_MAX = 2048
MARKS = {"reprise-origin-queue", "reprise-death-reason", "reprise-error", "reprise-attempts",
         "reprise-died-at"}


@pytest.fixture
def graves(queue):
    """The queue where jobs of `origin` go when they die; it is there, with defaults."""
    return queue.sibling("graves").created()


@pytest.fixture
def origin(queue, graves):
    queue.patch(dead_letter_queue="graves")
    return queue


def moved(graves, job_id):
    """The job as it is in the dead-letter queue, once it is there."""
    eventually(lambda: graves.status_of(job_id), "the job to come to the dead-letter queue")
    return graves.job(job_id)


class TestDeath:
    def test_a_dead_job_is_a_pending_job_of_the_other_queue(self, origin, graves):
        job_id = origin.push_one({"n": 1}, headers={"tenant": "a"}, priority=7)
        before = origin.job(job_id)
        result = origin.client.fail(origin.claim_one(worker="w"), error="no\nluck é",
                                    error_type="Net")
        assert (result["status"], result["reason"], result["id"]) == (
            "dead", "max_attempts", job_id)
        assert origin.status_of(job_id) is None
        assert origin.counts() == {} and graves.counts() == {"pending": 1}
        shown = graves.job(job_id)
        assert (shown["queue"], shown["status"], shown["origin_queue"]) == (
            "graves", "pending", "jobs")
        assert (shown["payload"], shown["priority"], shown["pushed_at"]) == (
            {"n": 1}, 7, before["pushed_at"])
        headers = shown["headers"]
        assert set(headers) == MARKS | {"tenant"} and headers["tenant"] == "a"
        assert headers["reprise-origin-queue"] == "jobs"
        assert headers["reprise-death-reason"] == "max_attempts"
        assert headers["reprise-error"] == "no\nluck é"
        assert headers["reprise-attempts"] == "1"
        assert_close(headers["reprise-died-at"], time.time())
        [entry] = shown["history"]
        assert (entry["error"], entry["error_type"], entry["worker"]) == (
            "no\nluck é", "Net", "w")

    @pytest.mark.parametrize("reason", ["final", "lease_expired", "worker_lost", "expired"])
    def test_every_way_to_die_leads_there(self, origin, graves, reason):
        job_id = origin.push_one(1, **({"ttl": "100ms"} if reason == "expired" else {}))
        if reason == "lease_expired":
            origin.claim_one(lease="100ms")
        elif reason != "expired":
            origin.client.fail(origin.claim_one(), **{
                "final": {"final": True}, "worker_lost": {"outcome": "worker_lost"}}[reason])
        headers = moved(graves, job_id)["headers"]
        assert headers["reprise-death-reason"] == reason
        assert headers["reprise-attempts"] == ("0" if reason == "expired" else "1")
        assert origin.totals()["died"] == 1 and origin.counts() == {}

    def test_a_claim_there_gives_the_job_with_its_headers(self, origin, graves):
        [job_id] = make_dead(origin, "x")
        job = graves.claim_one()
        assert (job["id"], job["payload"], job["attempts"]) == (job_id, "x", 2)
        assert job["headers"]["reprise-origin-queue"] == "jobs"
        assert graves.client.ack(job)["status"] == "acked"
        assert graves.status_of(job_id) is None and graves.counts() == {}

    def test_a_claim_that_waits_there_is_woken(self, origin, graves):
        claim = claim_in_background(graves)
        eventually(lambda: graves.stats()["waiting_claims"] == 1, "the claim to wait")
        [job_id] = make_dead(origin, "x")
        assert [job["id"] for job in claim.result(5)] == [job_id]

    @pytest.mark.parametrize("error", ["x" * 5000, "é" * 3000, "a" + "é" * 3000, "€" * 3000])
    def test_a_long_error_is_cut_in_the_header_only(self, origin, graves, error):
        [job_id] = make_dead(origin, error)
        shown = moved(graves, job_id)
        cut = shown["headers"]["reprise-error"]
        assert error.startswith(cut)
        size = len(cut.encode())
        assert ERROR_HEADER_BYTES_MAX - 3 <= size <= ERROR_HEADER_BYTES_MAX
        assert shown["last_error"] == error

    def test_a_job_with_as_many_headers_as_are_allowed_gets_there_too(self, origin, graves):
        own = {f"h{number}": "v" for number in range(64)}
        [job_id] = make_dead(origin, "x", headers=own)
        assert moved(graves, job_id)["headers"].keys() == own.keys() | MARKS
        origin.sibling("graves").retry(job_id)
        assert origin.job(job_id)["headers"] == own

    def test_no_quota_refuses_it(self, origin, graves):
        graves.patch(max_jobs=1, max_bytes=10)
        graves.push("full")
        ids = make_dead(origin, *["x" * 100] * 5)
        assert graves.counts() == {"pending": 6}
        assert all(graves.status_of(job_id) == "pending" for job_id in ids)
        [refused] = graves.push_jobs([{"payload": 1}], status=429)
        assert refused["error"]["code"] == "queue_full"

    def test_a_paused_one_takes_them(self, origin, graves):
        graves.pause()
        make_dead(origin, "x")
        assert graves.counts() == {"pending": 1} and graves.claim() == []

    def test_a_missing_queue_is_made_with_defaults(self, queue):
        queue.patch(dead_letter_queue="graves")
        graves = queue.sibling("graves")
        defaults = queue.sibling("plain").create()["config"]
        [job_id] = make_dead(queue, "x")
        assert graves.status_of(job_id) == "pending"
        assert graves.show()["config"] == defaults
        graves.delete()
        [again] = make_dead(queue, "y")
        assert graves.status_of(again) == "pending"

    def test_it_is_one_of_the_same_namespace(self, api, namespace):
        queues = [api.queue("q", namespace + suffix).created(dead_letter_queue="graves")
                  for suffix in ("-a", "-b")]
        make_dead(queues[0], "x")
        assert queues[0].sibling("graves").counts() == {"pending": 1}
        assert queues[1].sibling("graves").path() != queues[0].sibling("graves").path()
        reply = api.request("GET", queues[1].sibling("graves").path())
        assert reply.status == 404 or reply.json()["stats"]["pending"] == 0

    def test_it_is_told(self, origin, graves, events):
        stream = events("queue:dead")
        [job_id] = make_dead(origin, "x")
        event = stream.next().data
        assert (event["id"], event["queue"], event["reason"], event["dead_letter_queue"]) == (
            job_id, "jobs", "final", "graves")

    def test_many_at_once_all_arrive(self, origin, graves):
        ids = make_dead(origin, *["x"] * 500)
        assert origin.counts() == {} and graves.counts() == {"pending": 500}
        assert [job["id"] for job in graves.claim(1000)] == ids
        assert origin.totals()["died"] == 500

    def test_an_answered_death_survives_a_kill(self, server):
        queue = server.client().queue("q").created(dead_letter_queue="graves")
        ids = make_dead(queue, "a", "b")
        graves = queue.sibling("graves")
        before = [graves.job(job_id) for job_id in ids]
        server.restart("kill")
        graves = graves.through(server.client())
        assert [graves.job(job_id) for job_id in ids] == before
        assert graves.sibling("q").counts() == {}
        graves.retry(*ids)
        assert graves.sibling("q").counts() == {"pending": 2}

    def test_taking_the_setting_back_keeps_the_dead_with_their_queue(self, origin, graves):
        origin.patch(dead_letter_queue=None)
        [job_id] = make_dead(origin, "x")
        assert origin.status_of(job_id) == "dead" and graves.counts() == {}


class TestMoves:
    def moves(self, queue):
        """Jobs that came from and went to other queues, by totals; metrics must agree."""
        totals, metrics = queue.totals(), read_metrics(queue.client)
        for name in ("moved_in", "moved_out"):
            assert metrics.value(f"reprise_{name}_total", namespace=queue.namespace,
                                 queue=queue.name) == totals.get(name, 0)
        return totals.get("moved_in", 0), totals.get("moved_out", 0)

    def test_there_and_back_is_counted(self, origin, graves):
        ids = make_dead(origin, "a", "b", "c")
        assert (self.moves(origin), self.moves(graves)) == ((0, 3), (3, 0))
        graves.retry(ids[0], ids[1])
        assert (self.moves(origin), self.moves(graves)) == ((2, 3), (3, 2))
        assert origin.totals()["died"] == 3 and origin.totals()["pushed"] == 3
        assert "pushed" not in graves.totals()

    def test_a_retry_that_stays_is_no_move(self, queue):
        [job_id] = make_dead(queue, "x")
        queue.retry(job_id)
        assert self.moves(queue) == (0, 0)


class TestLifeThere:
    def test_it_fails_by_that_queues_policy_and_its_history_goes_on(self, origin, graves):
        graves.patch(retry={"attempts": 2})
        origin.patch(retry={"attempts": 3})
        job_id = origin.push_one(1)
        fail_again(origin, 2, error="early")
        origin.client.fail(eventually(origin.claim)[0], error="deadly")
        assert moved(graves, job_id)["headers"]["reprise-attempts"] == "3"
        assert graves.client.fail(graves.claim_one(), error="there 1")["status"] == "retrying"
        job = eventually(graves.claim)[0]
        result = graves.client.fail(job, error="there 2")
        assert (result["status"], result["reason"]) == ("dead", "max_attempts")
        shown = graves.job(job_id)
        assert (shown["status"], shown["attempts"]) == ("dead", 5)
        assert [entry["error"] for entry in shown["history"]] == [
            "early", "early", "deadly", "there 1", "there 2"]
        assert shown["dead_letter"]["meta"]["lastError"] == "there 2"
        assert shown["dead_letter"]["event"]["queue"] == "graves"

    def test_it_can_be_dropped(self, origin, graves):
        [job_id] = make_dead(origin, "x")
        assert graves.drop(job_id)["status"] == "pending"
        assert graves.counts() == {}

    def test_it_can_be_purged_only_when_dead(self, origin, graves):
        one, two = make_dead(origin, "x", "y")
        assert graves.purge(one, status=409)["error"]["code"] == "wrong_status"
        graves.client.fail(graves.claim_one())
        assert graves.purge(filter={})["purged"] == 1
        assert graves.counts() == {"pending": 1} and graves.status_of(two) == "pending"


class TestWayBack:
    def assert_back(self, origin, job_id, headers, attempts):
        shown = origin.job(job_id)
        assert (shown["status"], shown["lane"], shown["failures"], shown["attempts"]) == (
            "pending", "fresh", 0, attempts)
        assert (shown["queue"], shown["generation"], shown["headers"], shown["origin_queue"]) == (
            "jobs", 2, headers, None)
        job = origin.claim_one(lane="fresh")
        assert job["id"] == job_id and job["headers"] == headers

    def test_a_pending_one_goes_back_to_where_it_came_from(self, origin, graves):
        [job_id] = make_dead(origin, "x", headers={"tenant": "a"})
        assert graves.retry(job_id)["retried"] == 1
        assert graves.status_of(job_id) is None and graves.counts() == {}
        self.assert_back(origin, job_id, {"tenant": "a"}, 1)

    def test_a_dead_one_goes_back_too(self, origin, graves):
        [job_id] = make_dead(origin, "x", headers={"tenant": "a"})
        graves.client.fail(graves.claim_one(), error="there")
        assert graves.counts() == {"dead": 1}
        assert graves.retry(job_id)["retried"] == 1
        assert graves.counts() == {}
        self.assert_back(origin, job_id, {"tenant": "a"}, 2)

    def test_a_cooling_one_goes_back_too(self, origin, graves):
        graves.patch(retry={"attempts": 2, "cooldown": "400ms"})
        [job_id] = make_dead(origin, "x")
        due = seconds_since_1970(graves.client.fail(graves.claim_one())["retry_at"])
        assert graves.retry(job_id)["retried"] == 1
        self.assert_back(origin, job_id, {}, 2)
        eventually(lambda: time.time() > due + 0.1, "its old retry time")
        assert graves.counts() == {} and origin.counts() == {"active": 1}

    def test_a_filter_takes_the_pending_and_the_dead(self, origin, graves):
        ids = make_dead(origin, "a", "b", "c")
        graves.client.fail(graves.claim_one())
        held = graves.claim_one()
        own = graves.push_one("pushed here")
        assert graves.retry(filter={}, dry_run=True)["matched"] == 2
        assert graves.retry(filter={})["retried"] == 2
        assert graves.counts() == {"active": 1, "pending": 1}
        assert {job["id"] for job in origin.jobs()} == set(ids) - {held["id"]}
        assert graves.status_of(own) == "pending"

    def test_an_operation_knows_how_many_there_are_at_most(self, origin, graves):
        make_dead(origin, *["x"] * 5)
        operation = graves.retry(filter={}, rate="100/s", wait="10s")["operation"]
        assert (operation["state"], operation["done"]) == ("done", 5)
        assert operation["total"] is None or operation["total"] >= 5

    def test_one_whose_origin_is_gone_stays(self, origin, graves):
        [job_id] = make_dead(origin, "x")
        origin.delete()
        reply = graves.retry(job_id, status=404)
        assert (reply["retried"], reply["error"]["code"]) == (0, "queue_not_found")
        assert [skipped["code"] for skipped in reply["skipped"]] == ["queue_not_found"]
        assert graves.retry(filter={})["retried"] == 0
        assert graves.status_of(job_id) == "pending"

    def test_a_filter_by_error_takes_those_alone(self, origin, graves):
        make_dead(origin, "timeout 1", "refused", "timeout 2")
        assert graves.retry(filter={"error": "timeout"})["retried"] == 2
        assert [job["payload"] for job in origin.claim(9)] == ["timeout 1", "timeout 2"]

    @pytest.mark.parametrize("status", ["pending", "active"])
    def test_others_of_that_queue_are_refused(self, origin, graves, status):
        if status == "pending":
            job_id = graves.push_one("pushed here")
        else:
            [job_id] = make_dead(origin, "x")
            claim_these(graves, [job_id])
        reply = graves.retry(job_id, status=409)
        assert reply["error"]["code"] == "wrong_status" and status in reply["error"]["message"]
        assert graves.status_of(job_id) == status and origin.counts() == {}

    def test_a_job_pushed_there_that_died_there_is_retried_there(self, origin, graves):
        [job_id] = make_dead(graves, "x")
        assert graves.retry(job_id)["retried"] == 1
        assert graves.status_of(job_id) == "pending" and origin.counts() == {}

    def test_where_it_was_it_is_not_found(self, origin, graves):
        [job_id] = make_dead(origin, "x")
        assert origin.retry(job_id, status=404)["not_found"] == [job_id]
        assert origin.retry(filter={})["retried"] == 0
        assert graves.counts() == {"pending": 1}

    def test_the_origins_quota_does_not_refuse_it(self, origin, graves):
        origin.patch(max_jobs=1)
        [job_id] = make_dead(origin, "x")
        origin.push("full")
        assert graves.retry(job_id)["retried"] == 1
        assert origin.counts() == {"pending": 2}

    def test_one_that_dies_again_comes_again_under_its_id(self, origin, graves):
        [job_id] = make_dead(origin, "first")
        for generation in (2, 3):
            graves.retry(job_id)
            origin.client.fail(origin.claim_one(), error=f"error {generation}")
            shown = graves.job(job_id)
            assert (shown["generation"], shown["attempts"]) == (generation, generation)
            assert shown["headers"]["reprise-error"] == f"error {generation}"
            assert set(shown["headers"]) == MARKS

    def test_jobs_of_several_queues_each_find_their_way(self, origin, graves):
        second = origin.sibling("second").created(dead_letter_queue="graves")
        [one], [two] = make_dead(origin, "x"), make_dead(second, "y")
        assert graves.retry(filter={})["retried"] == 2
        assert [job["id"] for job in origin.jobs()] == [one]
        assert [job["id"] for job in second.jobs()] == [two]

    def test_it_is_told_with_the_queue_where_it_is_now(self, origin, graves, events):
        [job_id] = make_dead(origin, "x")
        stream = events("queue:retry")
        graves.retry(job_id)
        event = stream.next().data
        assert (event["id"], event["queue"], event["generation"]) == (job_id, "jobs", 2)

    def test_it_wakes_a_claim_that_waits_at_the_origin(self, origin, graves):
        [job_id] = make_dead(origin, "x")
        claim = claim_in_background(origin)
        eventually(lambda: origin.stats()["waiting_claims"] == 1, "the claim to wait")
        graves.retry(job_id)
        assert [job["id"] for job in claim.result(5)] == [job_id]


class TestRefusals:
    def assert_refused(self, queue, method, config):
        before = queue.client.request("GET", queue.path()).json()
        reply = queue.client.request(method, queue.path(), config)
        assert reply.status == 400 and reply.code != "unknown_field", reply
        assert "dead_letter_queue" in reply.message
        assert queue.client.request("GET", queue.path()).json() == before

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_a_dead_letter_queue_has_none_of_its_own(self, origin, graves, method):
        self.assert_refused(graves, method, {"dead_letter_queue": "deeper"})

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_a_queue_that_has_one_is_none(self, origin, graves, method):
        other = origin.sibling("other").created()
        self.assert_refused(other, method, {"dead_letter_queue": "jobs"})

    def test_a_missing_one_cannot_be_made_with_one_of_its_own(self, queue):
        queue.patch(dead_letter_queue="missing")
        self.assert_refused(queue.sibling("missing"), "PUT", {"dead_letter_queue": "deeper"})

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    def test_a_queue_is_not_its_own(self, queue, method):
        self.assert_refused(queue, method, {"dead_letter_queue": "jobs"})

    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    @pytest.mark.parametrize("name", ["", ".hidden", "a/b", "x" * 201, 5, True, ["graves"], {}],
                             ids=json.dumps)
    def test_what_is_no_name_is_refused(self, queue, method, name):
        self.assert_refused(queue, method, {"dead_letter_queue": name})
