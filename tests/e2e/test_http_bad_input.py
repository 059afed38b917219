"""Requests that must be refused: with the documented code, by name, and without any effect."""

import base64
import json

import pytest

import api_page
from raw_http import RawConnection, message

MIB = 1 << 20
BAD_DURATIONS = ["soon", "", "1 fortnight", "-1s", "5 5", "1s2", "s", "0x10", "1e3s", "∞",
                 "1h-5m"]


@pytest.fixture
def guarded(absent_queue):
    """A queue with a pending, a leased and a dead job, which refused requests must leave alone."""
    queue = absent_queue.created(lease="1h", retry={"attempts": 3, "cooldown": "1s"})
    queue.push("pending", "leased", "dead")
    first, second, third = queue.claim(3)
    queue.client.release(first)
    queue.client.fail(third, final=True, error="x")
    queue.token = second["token"]
    return queue


def refusal(reply):
    """(status, code, message) of a request or of the first of its items."""
    body = reply.json()
    error = body["error"] if "error" in body else body["results"][0]["error"]
    assert isinstance(error["message"], str) and error["message"]
    return reply.status, error["code"], error["message"]


def assert_refused(queue, method, path, body, status, code, names=""):
    """`code` may be several, where a body is wrong in more than one way."""
    codes = [code] if isinstance(code, str) else code
    before = queue.snapshot()
    got_status, got_code, text = refusal(queue.client.request(method, path, body))
    assert got_status == status and got_code in codes, f"{got_status} {got_code}: {text}"
    assert names in text, f"{names!r} is not named: {text}"
    assert queue.snapshot() == before
    everywhere = queue.client.get(f"/v1/queues?namespace={queue.namespace}")["queues"]
    assert [each["name"] for each in everywhere] == ["jobs"]


def cases(code, *bodies_and_names):
    return [pytest.param(body, code, name, id=f"{code}-{json.dumps(body)[:60]}")
            for body, name in bodies_and_names]


CONFIGS = [
    *cases("unknown_field", ({"leese": "1s"}, "leese"), ({"retry": {"attempt": 1}}, "attempt"),
           ({"paused": True}, "paused"), ({"name": "x"}, "name"), ({"": 1}, "")),
    *cases("invalid_request", ({"lease": True}, "lease"), ({"lease": ["1s"]}, "lease"),
           ({"retry": 3}, "retry"), ({"retry": []}, "retry"),
           ({"retry": {"attempts": "3"}}, "attempts"), ({"max_jobs": "10"}, "max_jobs"),
           ({"max_bytes": {}}, "max_bytes"), ({"ttl": False}, "ttl")),
    *cases("invalid_field", ({"lease": "99ms"}, "lease"), ({"lease": "8d"}, "lease"),
           ({"lease": 0}, "lease"), ({"lease": -1}, "lease"), ({"lease": 1e300}, "lease"),
           ({"retry": {"attempts": -1}}, "attempts"), ({"retry": {"cooldown": "-1s"}}, "cooldown"),
           ({"max_jobs": -1}, "max_jobs"), ({"max_bytes": -5}, "max_bytes"),
           ({"key_window": -1}, "key_window"), ({"ttl": -1}, "ttl")),
    *cases("invalid_field", *[({"lease": text}, "lease") for text in BAD_DURATIONS]),
    *cases("unknown_field", ({"retry": {"backoff": {"bse": 1}}}, "bse"),
           ({"fetch": {"share": 1}}, "share"), ({"keep_ded": "1d"}, "keep_dead")),
    *cases("invalid_request", ({"retry": {"attempts": "many"}}, "attempts"),
           ({"retry": {"max_retries": True}}, "max_retries"), ({"retry": {"backoff": 5}}, "backoff"),
           ({"retry": {"backoff": {"factor": "4"}}}, "factor"), ({"fetch": 0.5}, "fetch"),
           ({"fetch": {"retry_share": "half"}}, "retry_share"),
           ({"dead_letter_queue": 1}, "dead_letter_queue"), ({"max_dead": "10"}, "max_dead"),
           ({"keep_dead": []}, "keep_dead"), ({"on_dead_webhook": {}}, "on_dead_webhook")),
    *cases("invalid_field", ({"retry": {"attempts": 3, "max_retries": 2}}, "max_retries"),
           ({"retry": {"cooldown": "1s", "backoff": {}}}, "backoff"),
           ({"retry": {"max_retries": 2**32 - 1}}, "max_retries"),
           ({"retry": {"backoff": {"factor": 0.5}}}, "factor"),
           ({"retry": {"backoff": {"jitter": 1.5}}}, "jitter"),
           ({"retry": {"backoff": {"jitter": -0.1}}}, "jitter"),
           ({"retry": {"backoff": {"base": "2h", "max": "1h"}}}, "base"),
           ({"retry": {"backoff": {"base": -1}}}, "base"),
           ({"fetch": {"retry_share": 1.1}}, "retry_share"),
           ({"fetch": {"retry_share": -0.1}}, "retry_share"),
           ({"fetch": {"retry_in_flight": 0}}, "retry_in_flight"),
           ({"keep_dead": 0}, "keep_dead"), ({"keep_dead": "soon"}, "keep_dead"),
           ({"keep_completed": 0}, "keep_completed"), ({"max_dead": -1}, "max_dead"),
           ({"on_dead_webhook": "ftp://host/"}, "on_dead_webhook"),
           ({"on_dead_webhook": "http://user:secret@host/"}, "on_dead_webhook"),
           ({"on_dead_webhook": "host"}, "on_dead_webhook"),
           ({"dead_letter_queue": "jobs"}, "dead_letter_queue")),
    *cases("invalid_name", ({"dead_letter_queue": ".x"}, "dead_letter_queue")),
    *cases("unknown_field", ({"breaker": {"canary": 1}}, "breaker.canary")),
    *cases("invalid_request", ({"concurrency": "5"}, "concurrency"),
           ({"concurrency_per_key": []}, "concurrency_per_key"), ({"breaker": True}, "breaker"),
           ({"breaker": {"window": False}}, "breaker.window")),
    *cases("invalid_field", ({"concurrency": 0}, "concurrency"),
           ({"concurrency": -1}, "concurrency"), ({"concurrency": 1.5}, "concurrency"),
           ({"concurrency_per_key": 0}, "concurrency_per_key"),
           ({"breaker": {"failure_rate": 0}}, "breaker.failure_rate"),
           ({"breaker": {"failure_rate": 1.1}}, "breaker.failure_rate"),
           ({"breaker": {"window": "2h"}}, "breaker.window"),
           ({"breaker": {"min": 0}}, "breaker.min"), ({"breaker": {"pause": 0}}, "breaker.pause"),
           ({"breaker": {"canaries": 1001}}, "breaker.canaries")),
    *cases("invalid_request", ({"on_enqueue": 1}, "on_enqueue"), ({"on_failure": []}, "on_failure"),
           ({"on_hook_error": True}, "on_hook_error"),
           ({"hook_timeout_ms": "10ms"}, "hook_timeout_ms"),
           ({"hook_memory_bytes": "1MiB"}, "hook_memory_bytes")),
    *cases("invalid_script", ({"on_enqueue": ""}, "on_enqueue"), ({"on_failure": ""}, "on_failure")),
    *cases("invalid_field", ({"on_hook_error": "ignore"}, "on_hook_error"),
           ({"hook_timeout_ms": 0}, "hook_timeout_ms"),
           ({"hook_timeout_ms": 1001}, "hook_timeout_ms"),
           ({"hook_memory_bytes": 131071}, "hook_memory_bytes"),
           ({"hook_memory_bytes": 67108865}, "hook_memory_bytes")),
]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("body, code, names", CONFIGS)
def test_a_bad_config_is_refused(guarded, method, body, code, names):
    assert_refused(guarded, method, guarded.path(), body, 400, code, names)


def test_a_misspelt_field_is_told_what_was_probably_meant(guarded):
    for field, meant in (("leese", "lease"), ("max_job", "max_jobs"), ("key_windw", "key_window")):
        assert_refused(guarded, "PATCH", guarded.path(), {field: 1}, 400, "unknown_field", meant)


def job(**fields):
    return {"jobs": [{"payload": "x", **fields}]}


PUSHES = [
    *cases("unknown_field", ({"jobs": [], "creat": True}, "creat"), (job(prio=1), "prio"),
           ({"job": {}}, "job"), (job(id="7ZK3M9QAX2B4C"), "id")),
    *cases("invalid_request", ({}, "jobs"), ({"jobs": {}}, "jobs"), ({"jobs": None}, "jobs"),
           ({"jobs": [1]}, "jobs"), ({"jobs": [None]}, "jobs"), (job(headers=[]), "headers"),
           (job(headers={"a": 1}), "headers"), (job(headers={"a": None}), "headers"),
           (job(priority="1"), "priority"), (job(key=1), "key"), (job(delay=True), "delay"),
           (job(fairness_key=1), "fairness_key"), (job(weight="3"), "weight"),
           (job(throttle_keys="api"), "throttle_keys"), (job(throttle_keys=[1]), "throttle_keys"),
           (job(ttl=[]), "ttl"), ({"jobs": [{"payload_base64": 1}]}, "payload_base64"),
           (job() | {"create": "yes"}, "create")),
    *cases("invalid_field", (job(priority=-1), "priority"), (job(priority=2**32), "priority"),
           (job(priority=2**70), "priority"), (job(delay=-1), "delay"), (job(ttl=-1), "ttl"),
           (job(delay="100000000000d"), "delay"), (job(delay=1e300), "delay"),
           ({"jobs": [{"payload_base64": "!!!!"}]}, "payload_base64"),
           ({"jobs": [{"payload_base64": "AAA"}]}, "payload_base64")),
    *cases("invalid_field", *[(job(delay=text), "delay") for text in BAD_DURATIONS]),
]


@pytest.mark.parametrize("body, code, names", PUSHES)
def test_a_bad_push_is_refused(guarded, body, code, names):
    assert_refused(guarded, "POST", guarded.path("/push"), body, 400, code, names)


def test_a_payload_given_twice_is_refused(guarded):
    before = guarded.snapshot()
    body = {"jobs": [{"payload": 1, "payload_base64": "AAEC"}]}
    status, _, _ = refusal(guarded.client.request("POST", guarded.path("/push"), body))
    assert status == 400 and guarded.snapshot() == before


@pytest.mark.parametrize("priority", [1.5, 0.1])
def test_a_priority_is_a_whole_number(guarded, priority):
    before = guarded.snapshot()
    status, _, text = refusal(
        guarded.client.request("POST", guarded.path("/push"), job(priority=priority)))
    assert status == 400 and "priority" in text and guarded.snapshot() == before


def test_one_unknown_field_refuses_the_whole_batch(guarded):
    body = {"jobs": [{"payload": 1}, {"payload": 2, "dely": "1s"}]}
    assert_refused(guarded, "POST", guarded.path("/push"), body, 400, "unknown_field", "dely")


CLAIMS = [
    *cases("unknown_field", ({"maxx": 1}, "maxx"), ({"timeout": "1s"}, "timeout")),
    *cases("invalid_request", ({"max": "1"}, "max"), ({"wait": True}, "wait"),
           ({"lane": 1}, "lane"), ({"worker": 5}, "worker"), ({"lease": []}, "lease")),
    *cases("invalid_field", ({"max": 0}, "max"), ({"max": -1}, "max"), ({"max": 1001}, "max"),
           ({"wait": "11m"}, "wait"), ({"wait": -1}, "wait"), ({"lease": "99ms"}, "lease"),
           ({"lease": "8d"}, "lease"), ({"lane": "middle"}, "lane"), ({"lane": ""}, "lane"),
           ({"worker": "w" * 201}, "worker")),
    *cases("invalid_field", *[({"wait": text}, "wait") for text in BAD_DURATIONS]),
]


@pytest.mark.parametrize("body, code, names", CLAIMS)
def test_a_bad_claim_is_refused(guarded, body, code, names):
    assert_refused(guarded, "POST", guarded.path("/claim"), body, 400, code, names)


def lease(**fields):
    return {"leases": [{"token": "TOKEN", **fields}]}


LEASES = [
    ("ack", {}, "invalid_request", "leases"),
    ("ack", {"leases": {}}, "invalid_request", "leases"),
    ("ack", {"leases": ["x"]}, "invalid_request", "leases"),
    ("ack", {"leases": [{}]}, "invalid_request", "token"),
    ("ack", {"leases": [{"token": 5}]}, "invalid_request", "token"),
    ("ack", {"leases": [{"token": None}]}, "invalid_request", "token"),
    ("ack", {"leases": [], "lease": 1}, "unknown_field", "lease"),
    ("ack", lease(error="x"), "unknown_field", "error"),
    ("ack", lease(tokn="x"), "unknown_field", "tokn"),
    ("fail", lease(eror="x"), "unknown_field", "eror"),
    ("fail", lease(error=5), "invalid_request", "error"),
    ("fail", lease(final="yes"), "invalid_request", "final"),
    ("fail", lease(delay=-1), "invalid_field", "delay"),
    ("fail", lease(delay="soon"), "invalid_field", "delay"),
    ("fail", lease(error_type=5), "invalid_request", "error_type"),
    ("fail", lease(error_type="t" * 201), "invalid_field", "error_type"),
    ("fail", lease(outcome="lease_expired"), "invalid_field", "outcome"),
    ("fail", lease(outcome=1), "invalid_request", "outcome"),
    ("release", lease(error="x"), "unknown_field", "error"),
    ("release", lease(outcome="worker_lost"), "unknown_field", "outcome"),
    ("release", lease(delay="soon"), "invalid_field", "delay"),
    ("release", lease(delay={}), "invalid_request", "delay"),
    ("extend", lease(lease="99ms"), "invalid_field", "lease"),
    ("extend", lease(lease="8d"), "invalid_field", "lease"),
    ("extend", lease(lease="soon"), "invalid_field", "lease"),
    ("extend", lease(lease=True), "invalid_request", "lease"),
    ("extend", lease(delay="1s"), "unknown_field", "delay"),
]


@pytest.mark.parametrize("verb, body, code, names", LEASES)
def test_a_bad_end_of_a_lease_is_refused(guarded, verb, body, code, names):
    body = json.loads(json.dumps(body).replace("TOKEN", guarded.token))
    assert_refused(guarded, "POST", f"/v1/{verb}", body, 400, code, names)
    assert guarded.client.ack(guarded.token)["status"] == "acked"


def selected(**fields):
    return {"filter": {}, **fields}


SELECTIONS = [
    *cases("invalid_request", ({}, "ids"), ({"ids": None}, "ids"), ({"ids": "DEAD"}, "ids"),
           ({"ids": ["DEAD", 5]}, "ids[1]"), ({"ids": ["DEAD"], "filter": {}}, "filter"),
           ({"filter": []}, "filter"), ({"filter": {"headers": {"a": 1}}}, "headers"),
           (selected(limit="5"), "limit"), (selected(rate=5), "rate"),
           (selected(dry_run="yes"), "dry_run")),
    *cases("unknown_field", ({"ids": ["DEAD"], "id": "x"}, "id"), (selected(all=True), "all"),
           ({"filter": {"sttaus": "dead"}}, "sttaus"), ({"filter": {"lane": "retry"}}, "lane")),
    *cases("invalid_field", *[({"ids": ["DEAD"], field: value}, field) for field, value in
                              (("dry_run", True), ("limit", 1), ("rate", "1/s"), ("wait", "1s"))],
           ({"filter": {"status": "pending"}}, "status"),
           ({"filter": {"fingerprint": "x"}}, "fingerprint"),
           ({"filter": {"reason": "boredom"}}, "reason"),
           ({"filter": {"older_than": "soon"}}, "older_than"),
           (selected(limit=0), "limit"), (selected(limit=-1), "limit"),
           (selected(rate="fast"), "rate"), (selected(rate="0/s"), "rate"),
           (selected(rate="0.5/s"), "rate"), (selected(rate="-1/s"), "rate"),
           (selected(wait="601s"), "wait"), (selected(wait=-1), "wait")),
]


@pytest.mark.parametrize("verb", ["retry", "purge"])
@pytest.mark.parametrize("body, code, names", SELECTIONS)
def test_a_bad_retry_or_purge_is_refused(guarded, verb, body, code, names):
    dead = guarded.jobs(status="dead")[0]["id"]
    body = json.loads(json.dumps(body).replace("DEAD", dead))
    assert_refused(guarded, "POST", guarded.path(f"/{verb}"), body, 400, code, names)


def test_only_dead_jobs_are_purged_by_a_filter(guarded):
    assert_refused(guarded, "POST", guarded.path("/purge"), {"filter": {"status": "failed"}}, 400,
                   "invalid_field", "status")


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_more_ids_than_a_batch_are_refused(guarded, verb):
    dead = guarded.jobs(status="dead")[0]["id"]
    assert_refused(guarded, "POST", guarded.path(f"/{verb}"), {"ids": [dead] * 1001}, 413,
                   "batch_too_many_jobs", "1000")


@pytest.mark.parametrize("suffix, query, code, names", [
    ("", "nmespace=x", "unknown_field", "nmespace"),
    ("", "namespace=.x", "invalid_name", ""),
    ("/jobs", "statuss=dead", "unknown_field", "statuss"),
    ("/jobs", "status=zombie", "invalid_field", "status"),
    ("/jobs", "status=", "invalid_field", "status"),
    ("/jobs", "lane=any", "invalid_field", "lane"),
    ("/jobs", "older_than=soon", "invalid_field", "older_than"),
    ("/jobs", "older_than=-1s", "invalid_field", "older_than"),
    ("/jobs", "limit=0", "invalid_field", "limit"),
    ("/jobs", "limit=1001", "invalid_field", "limit"),
    ("/jobs", "limit=-1", "invalid_field", "limit"),
    ("/jobs", "limit=many", "invalid_field", "limit"),
    ("/jobs", "limit=1e2", "invalid_field", "limit"),
    ("/jobs", "cursor=garbage!", "invalid_field", "cursor"),
    ("/jobs", "newer_than=soon", "invalid_field", "newer_than"),
    ("/jobs", "fingerprint=x", "invalid_field", "fingerprint"),
    ("/jobs", "reason=boredom", "invalid_field", "reason"),
    ("/jobs", "order=oldest", "invalid_field", "order"),
    ("/jobs", "order=newest", "invalid_field", "order"),
    ("/jobs", "order=newest&status=failed", "invalid_field", "order"),
    ("/jobs", "order=newest&status=dead&cursor=garbage!", "invalid_field", "cursor"),
    ("/errors", "status=pending", "invalid_field", "status"),
    ("/errors", "limit=0", "invalid_field", "limit"),
    ("/errors", "limit=1001", "invalid_field", "limit"),
    ("/errors", "cursor=x", "unknown_field", "cursor"),
])
def test_a_bad_parameter_is_refused(guarded, suffix, query, code, names):
    path = f"/v1/queues/jobs{suffix}?{query}"
    if "namespace" not in query:
        path += f"&namespace={guarded.namespace}"
    assert_refused(guarded, "GET", path, None, 400, code, names)


@pytest.mark.parametrize("path", ["/v1/status", "/v1/queues", "/v1/events"])
def test_a_parameter_nobody_reads_is_refused(api, path):
    reply = api.request("GET", path + "?verbose=1")
    assert (reply.status, reply.code) == (400, "unknown_field") and "verbose" in reply.message


@pytest.mark.parametrize("query, code", [
    ("operations?state=ended", "invalid_field"), ("operations?limit=1", "unknown_field"),
    ("audit?action=push", "invalid_field"), ("audit?limit=0", "invalid_field"),
    ("audit?limit=1001", "invalid_field"), ("audit?before=0", "invalid_field"),
    ("audit?before=last", "invalid_field"), ("audit?by=ops", "unknown_field"),
    ("audit?queue=.x", "invalid_name"), ("audit?namespace=.x", "invalid_name")])
def test_a_bad_question_about_what_was_done_is_refused(api, query, code):
    assert api.refused("GET", "/v1/" + query) == (400, code)


@pytest.mark.parametrize("operation", ["x", "7x", "-1", "0", "1.5", "18446744073709551616"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_is_no_number_is_no_operation(api, method, operation):
    assert api.refused(method, f"/v1/operations/{operation}") == (404, "operation_not_found")


BROKEN_JSON = [b"{", b"}", b'{"lease":}', b'{"lease":"1s",}', b"{} {}", b"{}x", b"nul", b"'x'",
               b'{"lease":NaN}', b'{lease:"1s"}', b'{"lease":"1s"', b'{"lease":"1s}', b"\xff\xfe",
               b'{"lease":"\xff"}', b'{"lease":"\\x"}', b'{"lease":"\\ud800"}', b'{"lease":01}',
               b'{"lease":"a\nb"}', b"\x00", b'{"lease":"1s"}\x00', b"//\n{}"]
NOT_OBJECTS = [b"[]", b'"x"', b"1", b"true", b"null"]


@pytest.mark.parametrize("body", BROKEN_JSON + NOT_OBJECTS)
def test_a_body_that_is_no_json_object_is_refused(guarded, body):
    for method, path in (("PUT", guarded.path()), ("POST", guarded.path("/push")),
                         ("POST", guarded.path("/claim")), ("POST", guarded.path("/retry")),
                         ("POST", guarded.path("/purge")), ("POST", "/v1/ack")):
        # A field that this route does not have may be noticed before the end of the body is.
        assert_refused(guarded, method, path, body, 400, ["invalid_request", "unknown_field"])


@pytest.mark.parametrize("body", [
    b"[" * 1_000_000, b'{"jobs":[{"payload":' + b"[" * 500_000,
    b'{"jobs":[{"payload":' + b'{"a":' * 100_000, b'{"jobs":' * 500_000],
    ids=["arrays", "arrays in a payload", "objects in a payload", "objects"])
def test_endless_nesting_is_refused(guarded, body):
    assert_refused(guarded, "POST", guarded.path("/push"), body, 400, "invalid_request")


def test_deep_nesting_that_is_complete_is_stored_whole_or_refused(guarded):
    payload = b"[" * 50_000 + b"]" * 50_000
    body = b'{"jobs":[{"payload":' + payload + b"}]}"
    reply = guarded.client.request("POST", guarded.path("/push"), body)
    assert reply.status in (200, 400), reply
    if reply.status == 200:
        [result] = reply.json()["results"]
        shown = guarded.client.request("GET", guarded.path(f"/jobs/{result['id']}"))
        assert payload in shown.body


BAD_NAMES = [".hidden", "-dash", "_x", "a%20b", "a%2Fb", "%00", "%C3%A9", "a" * 201, "..", "a%0A",
             "%2e%2e", "a+b", "a:b", "%F0%9F%98%80", "a%3Fb", "a%25b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_of_a_queue_is_refused(guarded, name):
    for method, suffix, body in (("PUT", "", {}), ("GET", "", None), ("POST", "/push", job()),
                                 ("DELETE", "", None)):
        path = f"/v1/queues/{name}{suffix}?namespace={guarded.namespace}"
        assert_refused(guarded, method, path, body, 400, "invalid_name")


@pytest.mark.parametrize("name", BAD_NAMES + ["", "*"])
def test_a_bad_name_of_a_namespace_is_refused(guarded, name):
    name = name.replace("+", "%2B")
    for method, suffix, body in (("PUT", "", {}), ("POST", "/push", job() | {"create": True})):
        assert_refused(guarded, method, f"/v1/queues/jobs{suffix}?namespace={name}", body, 400,
                       "invalid_name")


@pytest.mark.parametrize("path", ["/v1/queues/a%", "/v1/queues/a%2", "/v1/queues/%zz",
                                  "/v1/queues/jobs?namespace=%", "/v1/queues/jobs?namespace=%zz"])
def test_broken_percent_encoding_is_refused(guarded, path):
    before = guarded.snapshot()
    assert refusal(guarded.client.request("PUT", path, {}))[0] == 400
    assert guarded.snapshot() == before


def test_percent_encoding_of_ordinary_letters_means_those_letters(guarded):
    path = f"/v1/queues/%6Aobs?namespace={guarded.namespace}"
    assert guarded.client.get(path)["name"] == "jobs"


@pytest.mark.parametrize("name", ["a", "0", "A" * 200, "a.b_c-D", "9...", "con"])
def test_a_name_within_the_pattern_is_taken(api, namespace, name):
    assert api.queue(name, namespace).create()["name"] == name
    assert api.queue("q", f"{namespace[:100]}.{name[:90]}").create()["name"] == "q"


@pytest.mark.parametrize("path", sorted(api_page.methods_by_path()))
def test_a_known_path_with_another_method_names_the_methods_it_has(guarded, path):
    allowed = api_page.methods_by_path()[path]
    real = (path.replace("{queue}", "jobs").replace("{id}", "7ZK3M9QAX2B4C")
            .replace("{key}", "card.retry_ms").replace("{name}", "shop"))
    if "{queue}" in path:
        real += f"?namespace={guarded.namespace}"
    before = guarded.snapshot()
    for method in {"GET", "PUT", "PATCH", "DELETE", "POST", "OPTIONS"} - allowed:
        reply = guarded.client.request(method, real)
        assert (reply.status, reply.code) == (405, "method_not_allowed"), (method, reply)
        listed = {name.strip() for name in reply.headers["allow"].split(",")}
        assert allowed <= listed <= allowed | {"HEAD", "OPTIONS"}
    reply = guarded.client.request("BREW", real)
    assert (reply.status, reply.code) == (501, "invalid_request"), reply
    assert guarded.snapshot() == before


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v2/queues", "/v1/queue/x", "/V1/queues",
                                  "/v1/queues/x/y", "/v1/queues/x/jobs/7ZK3M9QA/y", "/v1/nack",
                                  "//v1/queues", "/v1/queues/x/push/", "/favicon.ico", "/../v1"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_path_is_not_found(api, method, path):
    assert api.refused(method, path) == (404, "not_found")


def test_a_body_beyond_24_mib_is_refused_before_it_is_read(guarded):
    before = guarded.snapshot()
    with RawConnection(guarded.client.port) as connection:
        connection.send(message("POST", guarded.path("/push"),
                                headers=[f"Content-Length: {24 * MIB + 1}"]))
        reply = connection.reply()
        assert (reply.status, reply.code) == (413, "body_too_large")
    assert guarded.snapshot() == before


def test_a_chunked_body_beyond_24_mib_is_refused(guarded):
    before = guarded.snapshot()
    chunk = b"%x\r\n" % MIB + b" " * MIB + b"\r\n"
    with RawConnection(guarded.client.port, timeout=30) as connection:
        connection.send(message("POST", guarded.path("/push"),
                                headers=["Transfer-Encoding: chunked"]))
        try:
            for _ in range(25):
                connection.send(chunk)
        except (ConnectionResetError, BrokenPipeError):
            pass  # it need not read all of what it refuses
        reply = connection.reply()
        assert reply is None or (reply.status, reply.code) == (413, "body_too_large")
    assert guarded.snapshot() == before


def test_a_body_of_exactly_the_limit_is_read(guarded):
    body = b'{"jobs":[]}'.ljust(24 * MIB)
    assert guarded.client.call("POST", guarded.path("/push"), body) == {"results": []}


@pytest.mark.parametrize("extra", [["X-Long: " + "x" * 17000],
                                   [f"X-{n}: {'y' * 100}" for n in range(200)]])
def test_a_header_beyond_16_kib_is_refused(shared_server, extra):
    with RawConnection(shared_server.port) as connection:
        connection.send(message("GET", "/healthz", headers=extra))
        reply = connection.reply()
        assert (reply.status, reply.code) == (431, "request_header_too_large")


def test_a_path_beyond_16_kib_is_refused(shared_server):
    with RawConnection(shared_server.port) as connection:
        connection.send(message("GET", "/" + "x" * 20000))
        reply = connection.reply()
        assert (reply.status, reply.code) == (414, "target_too_long")


def test_an_error_is_json_with_a_code_and_a_message(api):
    for path in ("/nowhere", "/v1/queues/absent-queue", "/v1/queues/.bad"):
        reply = api.request("GET", path)
        assert reply.headers["content-type"].startswith("application/json")
        assert set(reply.json()) == {"error"} and set(reply.json()["error"]) == {"code", "message"}


def test_what_a_message_repeats_of_the_request_is_short_and_harmless(guarded):
    body = {"\u001b[31m" + "x" * 100_000: 1}
    reply = guarded.client.request("PATCH", guarded.path(), body)
    assert reply.status == 400 and len(reply.body) < 2000 and b"\x1b" not in reply.body


def test_base64_must_be_complete_even_inside_a_batch(guarded):
    good = base64.b64encode(b"abc").decode()
    jobs = [{"payload_base64": good}, {"payload_base64": good + "="}]
    reply = guarded.client.request("POST", guarded.path("/push"), {"jobs": jobs})
    results = reply.json().get("results", [])
    assert reply.status == 400 or [r["status"] for r in results] == ["pushed", "rejected"]
