"""POST /api/events/ingest: events of producers become jobs, each once, and each has its result."""

import base64
import json
import time

import pytest

from hooking import PATIENT_MS, on_enqueue
from metrics_text import read_metrics
from outside import Outside
from times import assert_close
from waiting import eventually

ROUTE = "/api/events/ingest"
MIB = 1 << 20


def event(event_id, kind="order.created", **fields):
    return {"id": event_id, "type": kind, **fields}


def push_event(event_id, queue, job, timestamp=None, **data):
    """A job that could not be pushed when it was made."""
    stamp = {"timestamp": timestamp} if timestamp else {}
    return event(event_id, "reprise.push", **stamp, data={
        "namespace": queue.namespace, "queue": queue.name, "job": job, **data})


def ago(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - seconds))


class Ingest:
    """The route of one namespace."""

    def __init__(self, client, namespace):
        self.client = client
        self.namespace = namespace

    def queue(self, name="events"):
        return self.client.queue(name, self.namespace)

    def send(self, body, **params):
        query = "&".join(f"{name}={value}"
                         for name, value in {"namespace": self.namespace, **params}.items())
        return self.client.request("POST", f"{ROUTE}?{query}", body)

    def taken(self, *events, **params):
        """The reply to events of which some may be taken; its sums are right."""
        reply = self.send({"events": list(events)}, **params)
        assert reply.status == 202, reply
        body = reply.json()
        assert [result["index"] for result in body["results"]] == list(range(len(events)))
        statuses = [result["status"] for result in body["results"]]
        assert [body[name] for name in ("ingested", "duplicates", "rejected", "deferred")] == [
            statuses.count(status) for status in ("accepted", "duplicate", "rejected", "deferred")]
        for result in body["results"]:
            failed = result["status"] in ("rejected", "deferred")
            assert set(result) == {"index", "status"} | ({"error", "code"} if failed else set())
        return body

    def results(self, *events, **params):
        return self.taken(*events, **params)["results"]

    def statuses(self, *events, **params):
        return [result["status"] for result in self.results(*events, **params)]

    def rejection(self, *events, **params):
        """(code, text) of the only event."""
        [result] = self.results(*events, **params)
        assert result["status"] == "rejected", result
        return result["code"], result["error"]


@pytest.fixture
def ingest(api, namespace):
    return Ingest(api, namespace)


def payload_text(queue):
    """The bytes of the payload of the only job."""
    body = queue.client.request("POST", queue.path("/claim"), {}).body.decode()
    return body.split('"payload":', 1)[1].split(',"headers":', 1)[0]


class TestStoring:
    def test_an_event_is_stored_byte_for_byte_with_its_type_as_a_header(self, ingest):
        text = ('{ "type":"order.created","n": 1.0,"big":123456789012345678901234567890,'
                '"data" : {"a":"\\u00e9\\/é"},  "id":"a"}')
        reply = ingest.send(f'{{"events": [ {text} ]}}'.encode())
        assert reply.status == 202
        assert reply.json() == {"ingested": 1, "duplicates": 0, "rejected": 0, "deferred": 0,
                                "results": [{"index": 0, "status": "accepted"}]}
        [job] = ingest.queue().jobs()
        assert (job["headers"], job["key"]) == ({"event-type": "order.created"}, "a")
        assert payload_text(ingest.queue()) == text

    def test_events_come_out_in_the_order_they_came_in(self, ingest):
        events = [event(str(n), data=n) for n in range(100)]
        assert ingest.statuses(*events) == ["accepted"] * 100
        assert [job["payload"] for job in ingest.queue().claim(100)] == events

    def test_fields_that_mean_nothing_here_are_the_producers_own(self, ingest):
        events = [event("a", data=None, custom=[1], _attempts=3), event("b", timestamp=None),
                  event("c", timestamp="2026-01-31T08:15:00.250Z"),
                  event("d", timestamp="2026-01-31 10:15+02:00")]
        assert ingest.statuses(*events) == ["accepted"] * 4

    def test_the_longest_id_and_type(self, ingest):
        assert ingest.statuses(event("i" * 512, "é" * 100)) == ["accepted"]

    def test_the_largest_event(self, ingest):
        room = MIB - len(json.dumps(event("a", data="")))
        assert ingest.statuses(event("a", data="x" * room)) == ["accepted"]
        code, text = ingest.rejection(event("b", data="x" * (room + 1)))
        assert code == "payload_too_large" and "events[0]" in text


class TestOneBadEvent:
    @pytest.mark.parametrize("bad, code, named", [
        (1, "invalid_request", "expected an object"), ([], "invalid_request", "an object"),
        (None, "invalid_request", "an object"), ({}, "invalid_request", "'id'"),
        ({"id": "x"}, "invalid_request", "'type'"), ({"type": "x"}, "invalid_request", "'id'"),
        ({"id": 1, "type": "x"}, "invalid_request", "events[1].id"),
        ({"id": "x", "type": True}, "invalid_request", "events[1].type"),
        ({"id": "", "type": "x"}, "invalid_field", "events[1].id"),
        ({"id": "x" * 513, "type": "x"}, "key_too_long", "events[1].id"),
        ({"id": "x", "type": ""}, "invalid_field", "events[1].type"),
        ({"id": "x", "type": "x" * 201}, "invalid_field", "events[1].type"),
        ({"id": "x", "type": "a\nb"}, "invalid_field", "control characters"),
        ({"id": "x", "type": "a\x7f"}, "invalid_field", "control characters"),
        ({"id": "x", "type": "x", "timestamp": "yesterday"}, "invalid_field", "timestamp"),
        ({"id": "x", "type": "x", "timestamp": 1769847300}, "invalid_request", "timestamp"),
        ({"id": "x", "type": "x", "timestamp": "2026-02-30T00:00Z"}, "invalid_field", "timestamp"),
    ])
    def test_it_is_rejected_and_the_others_are_stored(self, ingest, bad, code, named):
        results = ingest.results(event("a"), bad, event("b"))
        assert [result["status"] for result in results] == ["accepted", "rejected", "accepted"]
        assert results[1]["code"] == code and named in results[1]["error"], results[1]
        assert [job["key"] for job in ingest.queue().jobs()] == ["a", "b"]

    def test_a_field_that_comes_twice(self, ingest):
        reply = ingest.send(b'{"events":[{"id":"a","id":"b","type":"t"}]}')
        [result] = reply.json()["results"]
        assert (result["status"], result["code"]) == ("rejected", "invalid_request")
        assert "duplicate field 'id'" in result["error"]

    def test_when_all_are_bad_there_is_no_queue(self, ingest):
        assert ingest.statuses(1, {}) == ["rejected", "rejected"]
        assert ingest.client.request("GET", ingest.queue().path()).status == 404


class TestBadRequests:
    @pytest.mark.parametrize("body, status, code, named", [
        (b"", 400, "invalid_request", "JSON"), (b"{", 400, "invalid_request", "JSON"),
        (b"[]", 400, "invalid_request", "an object"), (b"{}", 400, "invalid_request", "'events'"),
        (b'{"events":[]}', 400, "invalid_request", "no events"),
        (b'{"events":{}}', 400, "invalid_request", "an array"),
        (b'{"events":[{"id":"a","type":"t"}],"event":1}', 400, "unknown_field", "'event'"),
        (b'{"events":[{"id":"a","type":"t"}],"events":[]}', 400, "invalid_request", "duplicate"),
        (b'{"events":[{"id":"a","type":"t"}]} x', 400, "invalid_request", "JSON"),
        (b'{"events":[{"id":"a","type":"t"},{"id":"\xff","type":"t"}]}', 400, "invalid_request",
         "JSON"),
        (b'{"events":[{"id":"a","type":"t"},{"id":"\\ud800","type":"t"}]}', 400, "invalid_request",
         "events[1]"),
        (b'{"events":[{"id":"a","type":"t"},{"id":"b","type":"t","data":' + b"[" * 100 + b"]" * 100
         + b"}]}", 400, "invalid_request", "events[1]"),
        (json.dumps({"events": [event(str(n)) for n in range(101)]}).encode(), 413,
         "too_many_events", "100"),
        (json.dumps({"events": [event(str(n), data="x" * 900_000) for n in range(20)]}).encode(),
         413, "batch_too_large", "16"),
    ])
    def test_a_doubtful_body_stores_nothing(self, ingest, body, status, code, named):
        reply = ingest.send(body)
        assert (reply.status, reply.code) == (status, code)
        assert named in reply.message
        assert ingest.client.request("GET", ingest.queue().path()).status == 404

    def test_a_body_beyond_the_limit(self, start_server):
        server = start_server("--max-body-bytes", "2000", "--max-batch-bytes", "1000",
                              "--max-payload-bytes", "1000")
        client = server.client()
        body = {"events": [event("a", data="x" * 2000)]}
        assert client.refused("POST", ROUTE, body) == (413, "body_too_large")

    @pytest.mark.parametrize("query, code", [
        ("?queue=.q", "invalid_name"), ("?queue=", "invalid_name"),
        ("?namespace=*", "invalid_name"), ("?namespace=a%20b", "invalid_name"),
        ("?queu=q", "unknown_field"), ("?queue=a&queue=b", "invalid_request")])
    def test_bad_parameters(self, api, query, code):
        assert api.refused("POST", ROUTE + query, {"events": [event("a")]}) == (400, code)

    def test_another_method(self, api):
        reply = api.request("GET", ROUTE)
        assert (reply.status, reply.headers["allow"]) == (405, "POST")

    def test_a_token_is_needed_where_there_are_any(self, start_server, tmp_path):
        tokens = tmp_path / "tokens"
        tokens.write_text("alice:wonderland-secret\n")
        server = start_server("--token-file", str(tokens), token="wonderland-secret")
        body = {"events": [event("a")]}
        assert server.client().refused("POST", ROUTE, body) == (401, "unauthorized")
        assert server.client(token="wrong").refused("POST", ROUTE, body) == (401, "unauthorized")
        assert server.client(token="wonderland-secret").request("POST", ROUTE, body).status == 202


class TestDuplicates:
    def test_in_one_request_and_in_the_next(self, ingest):
        assert ingest.statuses(event("a"), event("a"), event("b")) == [
            "accepted", "duplicate", "accepted"]
        assert ingest.statuses(event("b", "other"), event("c")) == ["duplicate", "accepted"]
        assert [job["key"] for job in ingest.queue().jobs()] == ["a", "b", "c"]

    def test_each_queue_has_its_own(self, ingest):
        assert ingest.statuses(event("a"), queue="one") == ["accepted"]
        assert ingest.statuses(event("a"), queue="two") == ["accepted"]
        assert ingest.statuses(event("a"), queue="one") == ["duplicate"]

    def test_a_job_that_is_done_is_known_all_the_same(self, ingest):
        ingest.statuses(event("a"))
        ingest.client.ack(ingest.queue().claim_one())
        assert ingest.statuses(event("a")) == ["duplicate"]

    def test_across_a_crash(self, server):
        ingest = Ingest(server.client(), "default")
        events = [event(str(n)) for n in range(50)]
        assert ingest.statuses(*events) == ["accepted"] * 50
        server.restart("kill")
        ingest = Ingest(server.client(), "default")
        assert ingest.statuses(*events, event("new")) == ["duplicate"] * 50 + ["accepted"]
        assert len(ingest.queue().all_jobs(limit=1000)) == 51

    def test_a_short_window_of_the_queue_does_not_count(self, ingest):
        queue = ingest.queue("jobs").created(key_window="1s")
        ingest.statuses(event("a"), queue="jobs")
        queue.push_one("b", key="b")
        eventually(lambda: queue.push_jobs([{"key": "b"}])[0]["status"] == "pushed",
                   "the window of a push to end")
        assert ingest.statuses(event("a"), queue="jobs") == ["duplicate"]


class TestWhereTheyGo:
    def test_the_request_names_the_queue(self, ingest):
        ingest.statuses(event("a"), queue="orders")
        assert [job["key"] for job in ingest.queue("orders").jobs()] == ["a"]

    def test_routes_of_the_server(self, start_server):
        server = start_server("--ingest-route", "order.*=orders", "--ingest-route",
                              "order.refund=refunds", "--ingest-route", "*.failed=alarms")
        ingest = Ingest(server.client(), "shop")
        kinds = ["order.created", "order.refund", "order.failed", "other", "order.paid"]
        assert ingest.statuses(*(event(kind, kind) for kind in kinds)) == ["accepted"] * 5

        def keys(queue):
            return [job["key"] for job in ingest.queue(queue).jobs()]
        assert keys("orders") == ["order.created", "order.paid"]
        assert keys("refunds") == ["order.refund"]
        assert keys("alarms") == ["order.failed"]
        assert keys("events") == ["other"]
        ingest.statuses(event("x", "order.paid"), queue="mine")
        assert keys("mine") == ["x"]

    def test_routes_of_the_file(self, start_server, tmp_path):
        (tmp_path / "reprise.toml").write_text('[ingest.routes]\n"order.*" = "orders"\n')
        server = start_server("--config", str(tmp_path / "reprise.toml"))
        ingest = Ingest(server.client(), "default")
        ingest.statuses(event("a"), event("b", "other"))
        assert len(ingest.queue("orders").jobs()) == len(ingest.queue("events").jobs()) == 1

    def test_without_a_namespace_it_is_the_default_one(self, server):
        client = server.client()
        client.call("POST", ROUTE, {"events": [event("a")]}, 202)
        assert len(client.queue("events").jobs()) == 1


class TestQueuesThatDoNotTakeThem:
    def test_a_hook_that_refuses(self, ingest):
        ingest.queue("jobs").created(hook_timeout_ms=PATIENT_MS, on_enqueue=on_enqueue("""
            local event = json.decode(msg.payload)
            if event.data == "bad" then return { reject = "nobody wants it" } end
        """))
        results = ingest.results(event("a", data="bad"), event("b", data="good"), queue="jobs")
        assert results == [{"index": 0, "status": "rejected", "error": "nobody wants it",
                            "code": "hook_rejected"}, {"index": 1, "status": "accepted"}]

    def test_fields_that_are_required(self, ingest):
        ingest.queue("jobs").created(vars=["customer"])
        results = ingest.results(event("a"), event("b", customer="acme"), queue="jobs")
        assert [result["status"] for result in results] == ["rejected", "accepted"]
        assert results[0]["code"] == "missing_var" and "customer" in results[0]["error"]

    def test_defaults_that_make_them_too_large_together_ask_for_fewer(self, ingest):
        ingest.queue("jobs").created(defaults={"filler": "x" * 60_000})
        events = [event(str(n), data="y" * 150_000) for n in range(90)]
        reply = ingest.send({"events": events}, queue="jobs")
        assert (reply.status, reply.code) == (413, "batch_too_large")
        for half in (events[:45], events[45:]):
            assert ingest.statuses(*half, queue="jobs") == ["accepted"] * 45

    def test_an_external_queue(self, api, project):
        Outside(project).declare("true", poll=None)
        project.start()
        ingest = Ingest(api, project.ns)
        code, text = ingest.rejection(event("a"), queue="bugs")
        assert code == "external_queue" and "bugs" in text


class TestLater:
    def test_a_full_queue_defers_what_does_not_fit(self, ingest):
        queue = ingest.queue("jobs").created(max_jobs=2)
        results = ingest.results(event("a"), event("b"), event("c"), {}, event("a"), queue="jobs")
        assert [result["status"] for result in results] == [
            "accepted", "accepted", "deferred", "rejected", "duplicate"]
        assert results[2]["code"] == "queue_full" and "max_jobs" in results[2]["error"]
        queue.client.ack(queue.claim_one())
        assert ingest.statuses(event("c"), queue="jobs") == ["accepted"]

    @pytest.mark.parametrize("config, code", [({"max_jobs": 1}, "queue_full"),
                                              ({"max_bytes": 20}, "queue_bytes_full")])
    def test_when_nothing_fits_the_reply_says_when_to_come_again(self, ingest, config, code):
        ingest.queue("jobs").created(**config).push(1)
        for events in ([event("a")], [event("a"), {}, event("b")]):
            reply = ingest.send({"events": events}, queue="jobs")
            assert (reply.status, reply.code) == (429, code)
            assert int(reply.headers["retry-after"]) >= 1

    def test_of_two_queues_one_may_be_full(self, ingest):
        full = ingest.queue("full").created(max_jobs=1)
        full.push(1)
        statuses = ingest.statuses(push_event("a", full, {}), event("b"), push_event("c", full, {}))
        assert statuses == ["deferred", "accepted", "deferred"]

    def test_a_full_disk(self, start_server):
        server = start_server("--disk-reserve", "1024TiB")
        client = server.client()
        eventually(lambda: client.request("GET", "/readyz").status == 507, "the disk to be low")
        reply = client.request("POST", ROUTE, {"events": [event("a")]})
        assert (reply.status, reply.code) == (507, "disk_full")
        assert int(reply.headers["retry-after"]) >= 1

    def test_a_disk_that_fills_up_defers_and_takes_them_when_there_is_room(
            self, start_server, disk_shim, tmp_path):
        full = tmp_path / "full"
        server = start_server(env={"LD_PRELOAD": str(disk_shim), "DISK_IS_FULL_WHEN": str(full)})
        ingest = Ingest(server.client(), "default")
        assert ingest.statuses(event("known")) == ["accepted"]
        full.touch()
        accepted = []
        for number in range(500):
            batch = [event(f"{number}-{n}", data="x" * 50_000) for n in range(2)]
            reply = ingest.send({"events": batch})
            if reply.status != 202:
                break
            accepted += [each["id"] for each, result in zip(batch, reply.json()["results"])
                         if result["status"] == "accepted"]
        assert (reply.status, reply.code) == (507, "disk_full")
        assert ingest.statuses(event("known"), event("late")) == ["duplicate", "deferred"]
        full.unlink()
        eventually(lambda: ingest.send({"events": [event("late")]}).status == 202, "room again")
        stored = [job["key"] for job in ingest.queue().all_jobs(limit=1000)]
        assert stored == ["known", *accepted, "late"]


class TestPushEvents:
    def test_every_field_of_a_job_arrives(self, ingest):
        queue = ingest.queue("jobs")
        job = {"payload": {"id": 7}, "headers": {"h": "v"}, "priority": 5, "fairness_key": "acme",
               "weight": 3, "throttle_keys": ["x"]}
        assert ingest.statuses(push_event("01A", queue, job, create=True), queue="other") == [
            "accepted"]
        [stored] = queue.jobs()
        assert {name: stored[name] for name in job} == job
        assert stored["key"] == "01A"
        assert ingest.client.request("GET", ingest.queue("other").path()).status == 404

    def test_bytes(self, ingest):
        queue = ingest.queue("jobs").created()
        text = base64.b64encode(b"\x00\xff").decode()
        ingest.statuses(push_event("a", queue, {"payload_base64": text}))
        assert queue.claim_one()["payload_base64"] == text

    def test_a_queue_that_is_not_there(self, ingest):
        absent = ingest.queue("absent")
        results = ingest.results(push_event("a", absent, {}),
                                 push_event("b", absent, {}, create=True),
                                 push_event("c", absent, {}))
        assert [result["status"] for result in results] == ["rejected", "accepted", "accepted"]
        assert results[0]["code"] == "queue_not_found" and "absent" in results[0]["error"]
        assert [job["key"] for job in absent.jobs()] == ["b", "c"]

    def test_its_id_is_its_key_so_a_push_before_it_counts(self, ingest):
        queue = ingest.queue("jobs").created()
        queue.push_one("first attempt", key="01A")
        assert ingest.statuses(push_event("01A", queue, {"payload": 1})) == ["duplicate"]

    def test_a_key_of_its_own(self, ingest):
        queue = ingest.queue("jobs").created()
        events = [push_event("01A", queue, {"key": "k"}), push_event("01B", queue, {"key": "k"})]
        assert ingest.statuses(*events) == ["accepted", "duplicate"]
        assert [job["key"] for job in queue.jobs()] == ["k"]

    def test_delay_and_ttl_count_from_its_timestamp(self, ingest):
        queue = ingest.queue("jobs").created()
        job = {"delay": "1h", "ttl": "2h"}
        now = time.time()
        assert ingest.statuses(
            push_event("part", queue, job, ago(1800)), push_event("over", queue, job, ago(5400)),
            push_event("none", queue, job), push_event("ahead", queue, job, ago(-1800))
        ) == ["accepted"] * 4
        part, over, none, ahead = sorted(
            queue.all_jobs(), key=lambda each: ["part", "over", "none", "ahead"].index(each["key"]))
        assert part["status"] == "scheduled" and over["status"] == "pending"
        for stored, seconds in ((part, 1800), (none, 3600), (ahead, 3600)):
            assert_close(stored["due_at"], now + seconds, slack=5)
        for stored, seconds in ((part, 5400), (over, 1800), (none, 7200), (ahead, 7200)):
            assert_close(stored["expires_at"], now + seconds, slack=5)

    def test_a_ttl_that_is_over_lets_it_expire(self, ingest):
        queue = ingest.queue("jobs").created()
        assert ingest.statuses(push_event("a", queue, {"ttl": "1h"}, ago(7200))) == ["accepted"]
        eventually(lambda: queue.stats()["totals"].get("expired") == 1, "it to expire")

    @pytest.mark.parametrize("data, code, named", [
        (None, "invalid_request", "data"), ([], "invalid_request", "data"),
        ({"job": {}}, "invalid_request", "'queue'"), ({"queue": "q"}, "invalid_request", "'job'"),
        ({"queue": ".q", "job": {}}, "invalid_name", ".q"),
        ({"queue": "q", "namespace": "*", "job": {}}, "invalid_name", "namespace"),
        ({"queue": "q", "job": {}, "jobs": []}, "unknown_field", "jobs"),
        ({"queue": "q", "job": {"paylod": 1}}, "unknown_field", "paylod"),
        ({"queue": "q", "job": 1}, "invalid_request", "data.job"),
        ({"queue": "q", "job": {"priority": -1}}, "invalid_field", "data.job"),
        ({"queue": "q", "job": {"delay": "soon"}}, "invalid_field", "delay"),
        ({"queue": "q", "job": {"ttl": 0}}, "invalid_field", "ttl"),
        ({"queue": "q", "job": {"weight": 0}}, "invalid_field", "weight"),
        ({"queue": "q", "job": {"key": "x" * 513}}, "key_too_long", "key"),
        ({"queue": "q", "job": {"headers": {"a": "x" * 4096}}}, "header_too_large", "headers"),
        ({"queue": "q", "job": {"payload": "x" * MIB}}, "payload_too_large", "payload"),
        ({"queue": "q", "create": "yes", "job": {}}, "invalid_request", "create"),
    ])
    def test_what_is_wrong_with_it_rejects_it_alone(self, ingest, data, code, named):
        results = ingest.results(event("a", "reprise.push", data=data), event("b"))
        assert [result["status"] for result in results] == ["rejected", "accepted"]
        assert results[0]["code"] == code and named in results[0]["error"], results[0]

    def test_without_data(self, ingest):
        code, text = ingest.rejection(event("a", "reprise.push"))
        assert code == "invalid_request" and "'data'" in text


def test_events_are_counted(server):
    ingest = Ingest(server.client(), "default")
    full = ingest.queue("full").created(max_jobs=1)
    full.push(1)
    ingest.taken(event("a"), event("b"), event("a"), {}, push_event("c", full, {}))
    assert ingest.send({"events": [push_event("c", full, {})]}).status == 429
    assert ingest.send({"events": []}).status == 400
    metrics = read_metrics(server.client())
    counted = {result: metrics.value("reprise_ingested_events_total", result=result)
               for result in ("accepted", "duplicate", "rejected", "deferred")}
    assert counted == {"accepted": 2, "duplicate": 1, "rejected": 1, "deferred": 2}
