"""Pushing: what is stored comes back as it was, in order, and each job has its result."""

import base64
import os
import re
import time

import pytest

from times import assert_close, seconds_since_1970
from waiting import eventually, time_passes

MIB = 1 << 20


def claimed_payload_bytes(queue, body_payload):
    """Pushes this JSON text as a payload and returns the text that a claim gives back."""
    body = b'{"jobs":[{"payload":' + body_payload + b'}]}'
    assert queue.client.request("POST", queue.path("/push"), body).status == 200
    reply = queue.client.request("POST", queue.path("/claim"), {})
    [job] = reply.json()["jobs"]
    start = re.search(rb'"payload"\s*:\s*', reply.body).end()
    queue.client.ack(job)
    return reply.body[start:start + len(body_payload)]


@pytest.mark.parametrize("payload", [
    b"null", b"true", b"0", b"-0.0", b'""', b"[]", b"{}", b"1e400", b"0.10",
    b"123456789012345678901234567890", b'{"a":1,"a":2}', b'{"b": [1 ,2,  {"c":null}], "a" :"x"}',
    b'"\\u00e9\\/\\ud83d\\ude00\\n"', '"é😀\u2028"'.encode(), b'"\\u0000"',
    b'["payload", {"payload": "payload"}]',
])
def test_a_json_payload_comes_back_byte_for_byte(queue, payload):
    assert claimed_payload_bytes(queue, payload) == payload


def test_bytes_come_back_as_base64(queue):
    data = bytes(range(256)) + os.urandom(1000)
    text = base64.b64encode(data).decode()
    queue.push_jobs([{"payload_base64": text}])
    job = queue.claim_one()
    assert "payload" not in job
    assert base64.b64decode(job["payload_base64"], validate=True) == data


def test_a_job_without_a_payload_has_null(queue):
    queue.push_jobs([{}])
    job = queue.claim_one()
    assert job["payload"] is None and "payload_base64" not in job


def test_the_empty_payload_of_bytes_is_not_null(queue):
    queue.push_jobs([{"payload_base64": ""}])
    assert queue.claim_one()["payload_base64"] == ""


def test_what_shares_claims_out_is_shown_with_the_job(queue):
    given = {"fairness_key": "acme €", "weight": 3, "throttle_keys": ["api", "b/c"]}
    shown = queue.job(queue.push_one(1, **given))
    assert {name: shown[name] for name in given} == given
    plain = queue.job(queue.push_one(1))
    assert [plain[name] for name in given] == ["default", 1, []]


def test_a_throttle_that_is_named_again_counts_once(queue):
    job_id = queue.push_one(1, throttle_keys=["b", "a", "b", "a"])
    assert queue.job(job_id)["throttle_keys"] == ["b", "a"]


def test_a_fairness_key_weight_or_throttle_out_of_its_range_refuses_that_job_only(queue):
    bad = [("fairness_key", ""), ("fairness_key", "x" * 201), ("fairness_key", "é" * 101),
           ("weight", 0), ("weight", 1001), ("weight", 1.5), ("throttle_keys", [""]),
           ("throttle_keys", ["x" * 201]), ("throttle_keys", [str(n) for n in range(17)])]
    results = queue.push_jobs([{field: value} for field, value in bad] + [{}])
    assert [result["status"] for result in results] == ["rejected"] * len(bad) + ["pushed"]
    for (field, value), result in zip(bad, results):
        assert result["error"]["code"] == "invalid_field", value
        assert field in result["error"]["message"]
    assert queue.counts() == {"pending": 1}


def test_headers_and_priority_come_back(queue):
    headers = {"tenant": "a", "Ünïcode": "wört 😀", "empty": "", "case": "x", "Case": "y"}
    queue.push_one(1, headers=headers, priority=4294967295)
    job = queue.claim_one()
    assert job["headers"] == headers and job["priority"] == 4294967295


def test_each_job_of_a_batch_has_its_result_in_order(queue):
    results = queue.push_jobs([{"payload": n} for n in range(5)])
    assert [(r["index"], r["status"]) for r in results] == [(n, "pushed") for n in range(5)]
    assert all(re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{13}", r["id"]) for r in results)
    assert len({r["id"] for r in results}) == 5


def test_an_empty_batch_is_no_error(queue):
    assert queue.push_jobs([]) == []


def test_jobs_are_served_in_push_order_within_a_priority(queue):
    queue.push("c", "d")
    queue.push("a", priority=10)
    queue.push("e")
    queue.push("last", priority=2000)
    queue.push("b", priority=10)
    queue.push("first", priority=0)
    assert [job["payload"] for job in queue.claim(10)] == ["first", "a", "b", "c", "d", "e", "last"]


def test_a_delayed_job_waits_and_then_takes_its_place_in_push_order(queue):
    early = queue.push_one("early", delay="300ms")
    queue.push("late")
    shown = queue.job(early)
    assert shown["status"] == "scheduled"
    assert_close(shown["due_at"], time.time() + 0.3)
    time_passes(seconds_since_1970(shown["due_at"]))
    eventually(lambda: queue.status_of(early) == "pending", "the delay to end")
    assert queue.job(early)["due_at"] is None
    assert [job["payload"] for job in queue.claim(10)] == ["early", "late"]


def test_a_delayed_job_is_not_served_before_it_is_due(queue):
    queue.push("x", delay="300ms")
    assert queue.claim() == []
    job = eventually(queue.claim, "the delayed job")[0]
    assert time.time() >= seconds_since_1970(job["pushed_at"]) + 0.3


class TestKeys:
    def test_a_second_push_with_a_key_stores_nothing(self, queue):
        first = queue.push_one("first", key="k")
        [second] = queue.push_jobs([{"payload": "second", "key": "k"}])
        assert second == {"index": 0, "status": "duplicate", "id": first}
        assert [job["payload"] for job in queue.claim(10)] == ["first"]

    def test_the_key_counts_within_one_batch(self, queue):
        results = queue.push_jobs([{"payload": n, "key": k} for n, k in enumerate("aba")])
        assert [r["status"] for r in results] == ["pushed", "pushed", "duplicate"]
        assert results[2]["id"] == results[0]["id"]

    def test_the_key_outlives_its_job(self, queue):
        def push(key):
            return queue.push_jobs([{"key": key}])[0]
        acked, dropped, died = push("acked"), push("dropped"), push("died")
        jobs = {job["id"]: job for job in queue.claim(3)}
        queue.client.ack(jobs[acked["id"]])
        queue.drop(dropped["id"])
        queue.client.fail(jobs[died["id"]], final=True)
        for key, first in (("acked", acked), ("dropped", dropped), ("died", died)):
            assert push(key) == {"index": 0, "status": "duplicate", "id": first["id"]}

    def test_the_key_is_forgotten_after_its_window(self, absent_queue):
        queue = absent_queue.created(key_window="300ms")
        first = queue.push_one(1, key="k")
        [second] = queue.push_jobs([{"payload": 2, "key": "k"}])
        assert second["status"] == "duplicate"
        again = eventually(lambda: (lambda r: r["status"] == "pushed" and r)(
            queue.push_jobs([{"payload": 3, "key": "k"}])[0]), "the window to end")
        assert again["id"] != first

    def test_a_key_may_be_any_text(self, queue):
        for key in ("a/b?c=d&e", "ключ", " spaced ", "k" * 512, "é" * 256):
            first = queue.push_one(1, key=key)
            assert queue.push_jobs([{"payload": 2, "key": key}])[0]["id"] == first
            assert queue.job(first)["key"] == key

    def test_a_refused_job_does_not_use_up_its_key(self, absent_queue):
        queue = absent_queue.created(max_jobs=1)
        queue.push(1)
        assert queue.push_jobs([{"payload": 2, "key": "k"}], status=429)[0]["status"] == "rejected"
        queue.client.ack(queue.claim_one())
        assert queue.push_jobs([{"payload": 3, "key": "k"}])[0]["status"] == "pushed"

    def test_a_duplicate_is_answered_even_when_the_queue_is_full(self, absent_queue):
        queue = absent_queue.created(max_jobs=1)
        first = queue.push_one(1, key="k")
        assert queue.push_jobs([{"payload": 2, "key": "k"}])[0] == {
            "index": 0, "status": "duplicate", "id": first}


class TestTtl:
    def assert_expires(self, queue, job_id):
        eventually(lambda: queue.status_of(job_id) == "dead", "the job to expire")
        assert queue.job(job_id)["dead_letter"]["meta"]["reason"] == "expired"

    def test_a_pending_job_dies_when_its_time_is_over(self, queue):
        job_id = queue.push_one(1, ttl="200ms")
        assert_close(queue.job(job_id)["expires_at"], time.time() + 0.2)
        self.assert_expires(queue, job_id)
        assert queue.claim() == []

    def test_a_scheduled_job_dies_when_its_time_is_over(self, queue):
        self.assert_expires(queue, queue.push_one(1, ttl="200ms", delay="1h"))

    def test_a_job_that_waits_for_its_retry_dies_when_its_time_is_over(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 9, "cooldown": "1h"})
        job_id = queue.push_one(1, ttl="500ms")
        assert queue.client.fail(queue.claim_one(), error="first try")["status"] == "retrying"
        self.assert_expires(queue, job_id)
        assert queue.job(job_id)["last_error"] == "first try"

    def test_a_leased_job_whose_time_is_over_is_not_tried_again(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 9, "cooldown": "0s"})
        job_id = queue.push_one(1, ttl="300ms")
        queue.claim_one(lease="600ms")
        self.assert_expires(queue, job_id)
        assert queue.job(job_id)["attempts"] == 1

    def test_the_queue_gives_the_default_and_the_job_may_differ(self, absent_queue):
        queue = absent_queue.created(ttl="200ms")
        short, long = queue.push_one("short"), queue.push_one("long", ttl="1h")
        self.assert_expires(queue, short)
        assert queue.claim_one()["id"] == long

    def test_without_a_ttl_a_job_never_expires(self, queue):
        assert queue.job(queue.push_one(1))["expires_at"] is None


class TestCreate:
    def test_create_makes_the_queue_with_defaults(self, absent_queue):
        [result] = absent_queue.push_jobs([{"payload": 1}], create=True)
        assert result["status"] == "pushed"
        assert absent_queue.show()["config"]["lease"] == "30s"
        assert absent_queue.claim_one()["id"] == result["id"]

    def test_create_leaves_an_existing_queue_alone(self, absent_queue):
        absent_queue.create(lease="5s")
        absent_queue.push_jobs([{"payload": 1}], create=True)
        assert absent_queue.show()["config"]["lease"] == "5s"

    def test_without_create_an_unknown_queue_stays_unknown(self, absent_queue):
        body = {"jobs": [{"payload": 1}], "create": False}
        assert absent_queue.client.refused("POST", absent_queue.path("/push"), body) == (
            404, "queue_not_found")

    def test_a_malformed_push_creates_nothing(self, absent_queue):
        body = {"jobs": [{"payload": 1, "prioritty": 2}], "create": True}
        assert absent_queue.client.refused("POST", absent_queue.path("/push"), body) == (
            400, "unknown_field")
        assert absent_queue.client.refused("GET", absent_queue.path()) == (404, "queue_not_found")


# (what, a job at the limit, the same beyond it, the error)
JOB_LIMITS = [
    ("payload", {"payload": "x" * (MIB - 2)}, {"payload": "x" * (MIB - 1)}, "payload_too_large"),
    ("bytes", {"payload_base64": base64.b64encode(bytes(MIB)).decode()},
     {"payload_base64": base64.b64encode(bytes(MIB + 1)).decode()}, "payload_too_large"),
    ("headers", {"headers": {str(n): "" for n in range(64)}},
     {"headers": {str(n): "" for n in range(65)}}, "too_many_headers"),
    ("header value", {"headers": {"name": "v" * 4092}}, {"headers": {"name": "v" * 4093}},
     "header_too_large"),
    ("header name", {"headers": {"n" * 4096: ""}}, {"headers": {"n" * 4097: ""}},
     "header_too_large"),
    ("key", {"key": "k" * 512}, {"key": "k" * 513}, "key_too_long"),
]


@pytest.mark.parametrize("fits, beyond, code", [case[1:] for case in JOB_LIMITS],
                         ids=[case[0] for case in JOB_LIMITS])
def test_a_job_beyond_a_limit_is_refused_alone(queue, fits, beyond, code):
    [refused] = queue.push_jobs([beyond], status=413)
    assert refused["status"] == "rejected" and refused["error"]["code"] == code
    assert queue.counts() == {}
    mixed = queue.push_jobs([beyond, fits, {"payload": "another"}])
    assert [r["status"] for r in mixed] == ["rejected", "pushed", "pushed"]
    assert mixed[0]["error"]["code"] == code
    assert queue.counts() == {"pending": 2}


def test_a_batch_of_a_thousand_jobs_is_stored_and_one_more_is_refused_whole(queue):
    assert len(queue.push_jobs([{"payload": n} for n in range(1000)])) == 1000
    body = {"jobs": [{"payload": n} for n in range(1001)]}
    assert queue.client.refused("POST", queue.path("/push"), body) == (413, "batch_too_many_jobs")
    assert queue.counts() == {"pending": 1000}


def test_a_batch_with_too_many_bytes_is_refused_whole(queue):
    body = {"jobs": [{"payload": "x" * (MIB - 2)} for _ in range(17)]}
    assert queue.client.refused("POST", queue.path("/push"), body) == (413, "batch_too_large")
    assert queue.counts() == {}
    del body["jobs"][0]
    assert queue.client.request("POST", queue.path("/push"), body).status == 200
    assert queue.counts() == {"pending": 16}


def test_when_all_jobs_are_refused_the_status_is_that_of_the_first(absent_queue):
    queue = absent_queue.created(max_bytes=10)
    too_long_key, too_many_bytes = {"key": "k" * 513}, {"payload": "x" * 50}
    first, second = queue.push_jobs([too_long_key, too_many_bytes], status=413)
    assert (first["error"]["code"], second["error"]["code"]) == ("key_too_long", "queue_bytes_full")
    queue.push_jobs([too_many_bytes, too_long_key], status=429)
