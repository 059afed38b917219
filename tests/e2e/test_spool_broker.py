"""A spool drained into a real server: each event becomes one job, however often it is sent."""

import time
from urllib.parse import urlencode

import pytest

from hooking import PATIENT_MS, on_enqueue
from ingest_server import CLOSE, Answer
from reprise_cli import Cli
from reprise_http import Client
from spooling import UNSENT, Spool, counts, iso, read_result, ulid
from times import assert_close
from waiting import eventually

REFUSE_ODD = on_enqueue("""
    local event = json.decode(msg.payload)
    if event.data % 2 == 1 then return { reject = "odd: " .. event.data } end
""")
LIMIT_BYTES = (1 << 20) - len(b'{"events":[]}')


def ingest_url(server, **params):
    return server.url + "/api/events/ingest" + ("?" + urlencode(params) if params else "")


def payload_ids(queue):
    return [job["payload"]["id"] for job in queue.all_jobs(limit=1000)]


@pytest.fixture
def events_queue(api, namespace):
    """Where events go that no route leads elsewhere. It is not there yet."""
    return api.queue("events", namespace)


@pytest.fixture
def url(shared_server, namespace):
    return ingest_url(shared_server, namespace=namespace)


class TestDelivery:
    def test_each_event_becomes_a_job(self, spool, url, events_queue):
        ids = spool.put_many(120)
        assert counts(spool.drain(url)) == {"accepted": 120}
        assert payload_ids(events_queue) == ids and spool.names() == []

    def test_in_the_namespace_of_the_command(self, spool, shared_server, namespace, events_queue):
        event_id = spool.put("order.created", {"id": 7})
        result = spool.ok("drain", "--server", shared_server.url, "-n", namespace)
        assert result.out.startswith("accepted 1, ")
        [job] = events_queue.jobs()
        assert job["payload"]["id"] == event_id and job["payload"]["data"] == {"id": 7}
        assert job["headers"] == {"event-type": "order.created"}

    def test_byte_for_byte(self, spool, url, events_queue):
        event = (b'{"id": "%s" ,"type":"t", "n": 1.50, "big":123456789012345678901234567890, '
                 b'"x": "\\u00e9\\/", "deep": %s}' % (ulid().encode(), b"[" * 58 + b"]" * 58))
        spool.put_bytes(event)
        assert counts(spool.drain(url)) == {"accepted": 1}
        reply = events_queue.client.request("POST", events_queue.path("/claim"), {})
        assert event in reply.body

    def test_an_event_of_a_mebibyte(self, spool, url, events_queue):
        event_id = ulid()
        frame = len(b'{"id":"","type":"t","data":""}') + len(event_id)
        spool.put_bytes(b'{"id":"%s","type":"t","data":"%s"}' % (
            event_id.encode(), b"x" * (LIMIT_BYTES - frame)))
        ids = [event_id, *spool.put_many(3)]
        assert counts(spool.drain(url)) == {"accepted": 4}
        assert sorted(payload_ids(events_queue)) == ids

    def test_what_spool_add_wrote(self, spool, url, events_queue):
        ids = spool.add("order.created", "--ndjson-stdin", stdin="1\n2\n3\n")
        assert counts(spool.drain(url)) == {"accepted": 3}
        assert payload_ids(events_queue) == ids

    def test_into_a_queue_of_choice(self, spool, shared_server, namespace, queue):
        spool.put_many(3)
        spool.drain(ingest_url(shared_server, namespace=namespace, queue="jobs"))
        assert queue.counts() == {"pending": 3}

    def test_along_routes(self, spool, start_server):
        server = start_server("--ingest-route", "order.*=orders", "--ingest-route",
                              "order.refund=refunds", "--ingest-route", "*.failed=alarms")
        for name in ("order.created", "order.refund", "mail.failed", "other"):
            spool.put(name)
        assert counts(spool.drain(ingest_url(server))) == {"accepted": 4}
        types = {name: [job["headers"]["event-type"]
                        for job in server.client().queue(name).jobs()]
                 for name in ("orders", "refunds", "alarms", "events")}
        assert types == {"orders": ["order.created"], "refunds": ["order.refund"],
                         "alarms": ["mail.failed"], "events": ["other"]}


class TestOnce:
    def test_a_second_time_is_a_duplicate(self, spool, url, events_queue):
        ids = spool.put_many(3)
        files = spool.snapshot()
        spool.drain(url)
        for name, data in files.items():
            spool.put_bytes(data, name.removeprefix("queue/"))
        fresh = spool.put()
        assert counts(spool.drain(url)) == {"accepted": 1, "duplicates": 3}
        assert payload_ids(events_queue) == [*ids, fresh]

    def test_one_that_has_been_worked_off_too(self, spool, url, events_queue):
        spool.put()
        files = spool.snapshot()
        spool.drain(url)
        events_queue.client.ack(events_queue.claim_one())
        [(name, data)] = files.items()
        spool.put_bytes(data, name.removeprefix("queue/"))
        assert counts(spool.drain(url)) == {"duplicates": 1}
        assert events_queue.counts() == {}

    def test_two_files_of_one_id(self, spool, url, events_queue):
        event_id = spool.put()
        spool.put(id=event_id, name="another.json")
        told = spool.drain(url)
        assert (told["accepted"], told["duplicates"]) == (1, 1)
        assert payload_ids(events_queue) == [event_id]

    def test_an_answer_that_got_lost(self, spool, shared_server, url, events_queue, start_ingest):
        """The server stored the batch, and the producer did not hear of it."""
        ids = spool.put_many(5)

        def pass_on(request):
            client = Client(shared_server.port)
            reply = client.request("POST", url.removeprefix(shared_server.url), request.body)
            client.close()
            return CLOSE if request.index == 0 else Answer(reply.status, reply.body)
        assert counts(spool.drain(start_ingest(otherwise=pass_on).url)) == {"duplicates": 5}
        assert payload_ids(events_queue) == ids


class TestRefused:
    @pytest.fixture
    def hooked_queue(self, events_queue):
        return events_queue.created(on_enqueue=REFUSE_ODD, hook_timeout_ms=PATIENT_MS)

    def test_those_that_a_hook_refuses_stay_with_its_words(self, spool, url, hooked_queue):
        ids = spool.put_many(20)
        assert counts(spool.drain(url, "--batch", "7")) == {"accepted": 10, "retried": 10,
                                                            "remaining": 10}
        assert spool.ids() == ids[1::2] and payload_ids(hooked_queue) == ids[::2]
        event = spool.event(ids[3])
        assert event["_attempts"] == 1 and "odd: 3" in event["_lastError"]

    def test_and_die_in_the_end(self, spool, url, hooked_queue):
        ids = spool.put_many(4)
        for _ in range(2):
            spool.drain(url, "--max-attempts", "3")
        assert counts(spool.drain(url, "--max-attempts", "3")) == {"deadLettered": 2}
        assert spool.dead_ids() == ids[1::2]
        hooked_queue.patch(on_enqueue=None)
        spool.ok("retry", "--all")
        assert counts(spool.drain(url)) == {"accepted": 2}
        assert sorted(payload_ids(hooked_queue)) == ids

    @pytest.mark.parametrize("fields", [{"type": None}, {"type": ""}, {"type": 5},
                                        {"type": "x" * 201}, {"type": "a\nb"},
                                        {"timestamp": "yesterday"}, {"timestamp": 5}], ids=str)
    def test_events_that_the_endpoint_cannot_take(self, spool, url, events_queue, fields):
        first, bad, last = spool.put(), spool.put(**fields), spool.put()
        assert counts(spool.drain(url)) == {"accepted": 2, "retried": 1, "remaining": 1}
        assert next(iter(fields)) in spool.event(bad)["_lastError"]
        assert payload_ids(events_queue) == [first, last]

    def test_a_queue_that_asks_for_fields(self, spool, url, events_queue):
        events_queue.create(vars=["tenant"])
        without, with_it = spool.put(), spool.put(tenant="acme")
        assert counts(spool.drain(url)) == {"accepted": 1, "retried": 1, "remaining": 1}
        assert "tenant" in spool.event(without)["_lastError"]
        assert payload_ids(events_queue) == [with_it]

    def test_one_that_is_nested_too_deep_blocks_nobody(self, spool, url, events_queue):
        first = spool.put()
        name = spool.put_bytes(b'{"id": "%s", "type": "t", "data": %s}' % (
            ulid().encode(), b"[" * 100 + b"]" * 100))
        last = spool.put()
        told = spool.drain(url)
        assert told["accepted"] == 2 and payload_ids(events_queue) == [first, last]
        assert (told["retried"], spool.names()) == (1, [name]) or told["corrupt"] == 1


class TestNotNow:
    def test_a_queue_that_is_nearly_full(self, spool, url, events_queue):
        events_queue.create(max_jobs=3)
        ids = spool.put_many(5)
        result = spool.run("drain", "--to", url, "--json")
        told = read_result(result)
        assert (told["accepted"], told["remaining"], told["retried"]) == (3, 2, 0)
        assert spool.ids() == ids[3:] and payload_ids(events_queue) == ids[:3]
        assert all("_attempts" not in event for event in spool.events())
        events_queue.client.ack_all(events_queue.claim(3))
        assert counts(spool.drain(url)) == {"accepted": 2}

    def test_one_that_is_full_burns_no_attempts(self, spool, url, events_queue):
        events_queue.create(max_jobs=1)
        events_queue.push(1)
        spool.put_many(2)
        before = spool.snapshot()
        process = spool.start("drain", "--to", url, "--json")
        time.sleep(1.2)  # at least once it has heard that there is no room
        assert spool.snapshot() == before and process.poll() is None
        events_queue.client.ack(events_queue.claim_one())
        events_queue.patch(max_jobs=None)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0 and counts(read_result(out)) == {"accepted": 2}, err

    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_a_restart_in_the_middle(self, spool, start_server, how):
        server = start_server()
        ids = spool.put_many(200)
        process = spool.start("drain", "--to", ingest_url(server), "--batch", "2", "--json")
        eventually(lambda: len(spool.names()) < 190, "the first batches", timeout=20)
        server.listen = f"127.0.0.1:{server.port}"
        server.restart(how)
        out, err = process.communicate(timeout=60)
        told = read_result(out)
        if process.returncode != 0:  # the batches of that moment were left for another run
            assert process.returncode == UNSENT, err
            again = spool.drain(ingest_url(server))
            assert told["remaining"] == again["accepted"] + again["duplicates"]
        assert spool.names() == spool.dead_names() == []
        assert sorted(payload_ids(server.client().queue("events"))) == ids


class TestTokens:
    @pytest.fixture
    def guarded(self, start_server, tmp_path):
        (tmp_path / "tokens").write_text("ops:secret\n")
        return start_server("--token-file", str(tmp_path / "tokens"), token="secret")

    def test_none_and_a_wrong_one_stop_it_at_once(self, spool, guarded):
        spool.put_many(2)
        before = spool.snapshot()
        for env in ({}, {"REPRISE_TOKEN": "wrong"}):
            result = spool.run("drain", "--server", guarded.url, env=env)
            assert result.code == UNSENT and "token" in result.err and spool.snapshot() == before
            assert "secret" not in result.err and "wrong" not in result.err

    def test_the_right_one(self, spool, guarded, tmp_path):
        spool.put()
        told = spool.drain(ingest_url(guarded), "--token-file", tmp_path / "tokens")
        assert counts(told) == {"accepted": 1}
        spool.put()
        spool.ok("drain", "--server", guarded.url, env={"REPRISE_TOKEN": "secret"})
        assert spool.names() == []


class TestFollowing:
    def test_two_spools_into_one_server(self, tmp_path, shared_server, url, events_queue):
        spools = [Spool(tmp_path / name, Cli(shared_server.url)) for name in "ab"]
        processes = [spool.start("drain", "--to", url, "--follow") for spool in spools]
        ids = [event_id for _ in range(5) for spool in spools for event_id in spool.add()]
        eventually(lambda: not any(spool.names() for spool in spools), "all to be sent")
        for process in processes:
            process.terminate()
            process.communicate(timeout=10)
        assert sorted(payload_ids(events_queue)) == sorted(ids)
        assert [process.returncode for process in processes] == [0, 0]


class TestPushEvents:
    """Events of type reprise.push, as anybody might write them."""

    def event(self, spool, namespace, at=None, **data):
        return spool.put("reprise.push", {"namespace": namespace, "queue": "jobs", "create": False,
                                          "job": {"payload": 1}} | data,
                         timestamp=iso(at or time.time()))

    def test_they_become_that_very_job(self, spool, url, namespace, queue):
        event_id = self.event(spool, namespace, job={
            "payload": {"n": 1}, "headers": {"tenant": "a"}, "priority": 7, "fairness_key": "acme",
            "weight": 3, "throttle_keys": ["api"]})
        assert counts(spool.drain(url)) == {"accepted": 1}
        [job] = queue.jobs()
        assert (job["payload"], job["headers"], job["priority"]) == ({"n": 1}, {"tenant": "a"}, 7)
        assert (job["fairness_key"], job["weight"], job["throttle_keys"]) == ("acme", 3, ["api"])
        assert job["key"] == event_id

    def test_delay_and_ttl_count_from_the_timestamp(self, spool, url, namespace, queue):
        began = time.time() - 600
        self.event(spool, namespace, at=began, job={"payload": 1, "delay": "1h", "ttl": "2h"})
        self.event(spool, namespace, at=began, job={"payload": 2, "delay": "5m"})
        spool.drain(url)
        waiting, due = queue.jobs()
        assert waiting["status"] == "scheduled" and due["status"] == "pending"
        assert_close(waiting["due_at"], began + 3600)
        assert_close(waiting["expires_at"], began + 7200)

    def test_no_parameter_changes_where_they_go(self, spool, shared_server, namespace, queue):
        self.event(spool, namespace)
        spool.drain(ingest_url(shared_server, namespace="elsewhere", queue="other"))
        assert queue.counts() == {"pending": 1}

    def test_a_queue_that_is_not_there(self, spool, url, namespace, absent_queue):
        self.event(spool, namespace)
        assert counts(spool.drain(url)) == {"retried": 1, "remaining": 1}
        self.event(spool, namespace, create=True)
        told = spool.drain(url)
        assert told["accepted"] >= 1 and absent_queue.counts()["pending"] >= 1

    @pytest.mark.parametrize("data", [None, {}, [], {"queue": "jobs"}, {"queue": 5, "job": {}},
                                      {"queue": "jobs", "job": 5},
                                      {"queue": "jobs", "job": {"priority": -1}},
                                      {"queue": "jobs", "job": {"payloda": 1}},
                                      {"queue": "jobs", "job": {"delay": "soon"}},
                                      {"queue": ".", "job": {}}], ids=str)
    def test_nonsense_is_rejected_alone(self, spool, url, namespace, queue, data):
        first = spool.put()
        bad = spool.put("reprise.push", data if not isinstance(data, dict) else
                        {"namespace": namespace} | data)
        last = spool.put()
        assert counts(spool.drain(url)) == {"accepted": 2, "retried": 1, "remaining": 1}
        assert spool.ids() == [bad] and spool.event(bad)["_lastError"] and queue.counts() == {}
        assert payload_ids(queue.sibling("events")) == [first, last]


def test_the_example_of_the_page(spool, shared_server, namespace, events_queue):
    """The first lines of docs/spool.md."""
    event_id = spool.ok("add", "order.created", "--data", '{"id": 7}').out.strip()
    spool.ok("status")
    result = spool.ok("drain", "--server", shared_server.url, "-n", namespace)
    assert result.out == ("accepted 1, duplicates 0, retried 0, dead-lettered 0, corrupt 0, "
                          "remaining 0\n")
    assert payload_ids(events_queue) == [event_id]
