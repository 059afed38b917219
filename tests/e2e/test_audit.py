"""The audit: who retried, purged, dropped and deleted what, and how much of it."""

import json
import time

import pytest

from failing import make_cooling, make_dead
from times import assert_close
from waiting import eventually

NOBODY = "7ZK3M9QAX2B4C"
TOKENS = "ops:secret-of-ops\nana:secret-of-ana\nbare-secret\n"


@pytest.fixture
def guarded(start_server, tmp_path):
    """A server with tokens."""
    path = tmp_path / "tokens"
    path.write_text(TOKENS)
    return start_server("--token-file", str(path), token="secret-of-ops")


def audit(of, **params):
    """The records of a queue's namespace."""
    return of.client.audit(namespace=of.namespace, **params)


def record(queue, **fields):
    """A record as it should be, without its number and time."""
    return {"namespace": queue.namespace, "queue": queue.name, "by": None, "ids": [],
            "filter": None, "done": 0, "skipped": 0, "not_found": 0, "operation": None} | fields


def only(queue, **params):
    """The only record, without its number and time."""
    [found] = audit(queue, **params)
    assert isinstance(found.pop("number"), int)
    assert_close(found.pop("at"), time.time())
    return found


class TestActions:
    @pytest.mark.parametrize("action", ["retry", "purge"])
    def test_by_ids(self, queue, action):
        one, two = make_dead(queue, "a", "b")
        pending = queue.push_one(1)
        getattr(queue, action)(one, two, pending, NOBODY)
        found = only(queue)
        assert found["ids"] == [one, two, pending, NOBODY]
        assert found == record(queue, action=action, ids=found["ids"], done=2, skipped=1,
                               not_found=1)

    @pytest.mark.parametrize("action", ["retry", "purge"])
    def test_by_filter(self, queue, action):
        make_dead(queue, "a", "a", "b")
        wanted = {"error": "a", "newer_than": "7d"}
        getattr(queue, action)(filter=wanted)
        found = only(queue)
        number = found["operation"]
        assert found == record(queue, action=action, filter=wanted, done=2, operation=number)
        assert queue.client.operation(number)["done"] == 2

    def test_a_drop(self, queue):
        job_id = queue.push_one(1)
        queue.drop(job_id[:8])
        assert only(queue) == record(queue, action="drop", ids=[job_id], done=1)

    def test_a_deletion_of_a_queue(self, queue):
        make_dead(queue, "x")
        queue.push(1, 2)
        queue.delete()
        assert only(queue) == record(queue, action="delete", done=3)

    def test_a_cancelled_operation(self, queue):
        make_dead(queue, *["x"] * 5)
        operation = queue.retry(filter={}, rate="1/h", status=202)["operation"]["id"]
        done = queue.client.cancel(operation)["done"]
        cancel, retry = audit(queue)
        assert (cancel["action"], cancel["operation"], cancel["queue"]) == (
            "cancel", operation, "jobs")
        assert (retry["action"], retry["operation"], retry["done"]) == ("retry", operation, done)

    def test_an_operation_is_there_when_it_begins_and_has_its_counts_when_it_ends(self, queue):
        make_dead(queue, *["x"] * 10)
        operation = queue.purge(filter={}, rate="20/s", status=202)["operation"]["id"]
        begun = audit(queue)[0]
        assert (begun["action"], begun["operation"], begun["filter"]) == ("purge", operation, {})
        assert begun["done"] < 10
        eventually(lambda: queue.client.operation(operation)["state"] == "done")
        after = audit(queue)[0]
        assert (after["number"], after["done"]) == (begun["number"], 10)

    def test_only_the_first_ten_ids_are_kept(self, queue):
        ids = make_dead(queue, *["x"] * 15)
        queue.purge(*ids)
        assert only(queue) == record(queue, action="purge", ids=ids[:10], done=15)

    def test_a_retry_from_a_dead_letter_queue_is_that_queues(self, queue):
        queue.patch(dead_letter_queue="graves")
        [job_id] = make_dead(queue, "x")
        graves = queue.sibling("graves")
        graves.retry(job_id)
        assert only(graves) == record(graves, action="retry", ids=[job_id], done=1)

    def test_what_is_refused_or_only_tried_leaves_none(self, queue):
        make_dead(queue, "x")
        queue.retry(filter={}, dry_run=True)
        queue.purge(filter={}, dry_run=True)
        queue.client.request("POST", queue.path("/purge"), {"filter": {"older_than": "7 parsecs"}})
        queue.client.request("POST", queue.path("/purge"), {})
        queue.client.request("DELETE", queue.path(f"/jobs/{NOBODY}"))
        queue.client.request("DELETE", queue.sibling("absent").path())
        assert audit(queue) == []

    def test_what_happens_by_itself_leaves_none(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3}, max_dead=1, keep_completed="1h")
        make_cooling(queue, "x", delay="0s")
        queue.push(1)
        queue.client.ack(queue.claim_one())
        make_dead(queue, "x", "y")
        eventually(lambda: queue.stats()["dead"] == 1, "one to be deleted")
        queue.pause()
        queue.resume()
        assert audit(queue) == []


class TestWho:
    @pytest.mark.parametrize("secret, name", [("secret-of-ops", "ops"), ("secret-of-ana", "ana"),
                                              ("bare-secret", "default")])
    def test_it_is_the_tokens_name(self, guarded, secret, name):
        client = guarded.client(token=secret)
        queue = client.queue("q", "ns").created()
        ids = make_dead(queue, *["x"] * 9)
        queue.retry(ids[0])
        queue.purge(ids[1])
        queue.drop(ids[2])
        queue.retry(filter={}, limit=1)
        client.cancel(queue.purge(filter={}, rate="1/h", status=202)["operation"]["id"])
        queue.delete()
        records = client.audit()
        assert [each["action"] for each in records] == [
            "delete", "cancel", "purge", "retry", "drop", "purge", "retry"]
        assert {each["by"] for each in records} == {name}
        assert {each["by"] for each in client.operations()} == {name}
        assert secret not in json.dumps(records)

    def test_an_operation_keeps_the_name_of_who_began_it(self, guarded):
        ops, ana = (guarded.client(token=secret) for secret in ("secret-of-ops", "secret-of-ana"))
        queue = ops.queue("q").created()
        make_dead(queue, *["x"] * 5)
        operation = queue.retry(filter={}, rate="1/h", status=202)["operation"]
        ana.cancel(operation["id"])
        assert ops.operation(operation["id"])["by"] == "ops"
        assert [(each["action"], each["by"]) for each in ops.audit()] == [
            ("cancel", "ana"), ("retry", "ops")]

    def test_without_a_token_nobody_reads_it(self, guarded):
        assert guarded.client().refused("GET", "/v1/audit") == (401, "unauthorized")
        assert guarded.client().refused("GET", "/v1/operations") == (401, "unauthorized")


class TestReading:
    @pytest.fixture
    def past(self, queue):
        """A queue with a past of nine records, and another with one."""
        dead = make_dead(queue, *["x"] * 6)
        for job_id in dead[:3]:
            queue.retry(job_id)
        for job_id in dead[3:]:
            queue.purge(job_id)
        for job_id in dead[:3]:
            queue.drop(job_id)
        other = queue.sibling("other").created()
        other.drop(other.push_one(1))
        return queue

    def test_the_newest_come_first(self, past):
        records = audit(past)
        assert [each["action"] for each in records] == [
            *["drop"] * 4, *["purge"] * 3, *["retry"] * 3]
        numbers = [each["number"] for each in records]
        assert numbers == sorted(set(numbers), reverse=True)

    @pytest.mark.parametrize("limit", [1, 3, 4, 10])
    def test_pages_follow_each_other(self, past, limit):
        client, whole = past.client, audit(past)
        pages, before = [], None
        while True:
            more = {"before": before} if before else {}
            params = "&".join(f"{name}={value}" for name, value in more.items())
            page = client.get(f"/v1/audit?namespace={past.namespace}&limit={limit}&{params}"
                              .rstrip("&"))
            assert len(page["records"]) <= limit
            pages += page["records"]
            before = page["before"]
            if before is None:
                break
        assert pages == whole

    def test_a_page_is_not_moved_by_new_records(self, past):
        whole = audit(past)
        page = past.client.get(f"/v1/audit?namespace={past.namespace}&limit=4")
        past.drop(past.push_one(1))
        rest = audit(past, before=page["before"])
        assert page["records"] + rest == whole

    def test_by_queue_action_and_namespace(self, past):
        assert len(audit(past, queue="other")) == 1
        assert len(audit(past, queue="jobs")) == 9
        for action, count in (("retry", 3), ("purge", 3), ("drop", 4), ("delete", 0)):
            found = audit(past, action=action)
            assert len(found) == count and {each["action"] for each in found} <= {action}
        assert len(audit(past, action="drop", queue="other")) == 1
        assert past.client.audit(namespace=past.namespace + "-none") == []
        assert past.client.audit()[0]["number"] == audit(past)[0]["number"]

    @pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "before=x", "action=eat",
                                       "queue=.bad", "namespace=.bad", "who=me"])
    def test_a_bad_parameter_is_refused(self, api, query):
        reply = api.request("GET", f"/v1/audit?{query}")
        assert reply.status == 400 and query.split("=")[0] in reply.message

    def test_it_survives_a_kill(self, server):
        client = server.client()
        queue = client.queue("q").created()
        ids = make_dead(queue, "a", "b", "c")
        queue.retry(ids[0])
        queue.purge(filter={"error": "b"})
        queue.drop(ids[2])
        queue.sibling("gone").created().delete()
        before = client.audit()
        assert len(before) == 4
        server.restart("kill")
        client = server.client()
        assert client.audit() == before
        queue.through(client).drop(ids[0])
        after = client.audit()
        assert after[1:] == before and after[0]["number"] > before[0]["number"]
