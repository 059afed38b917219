"""`queue push --spool`: a push that finds no server is kept, whole, and stored once in the end."""

import base64
import json
import re
import time

import pytest

from ingest_server import CLOSE, Answer, refusal
from reprise_cli import Cli
from reprise_http import Client
from spooling import FAILED, USAGE, Spool, counts, ulid_seconds
from times import assert_close, seconds_since_1970
from waiting import eventually

NOWHERE = "http://127.0.0.1:1"
NO_SERVER = 3


class Producer:
    """Pushes into one namespace, with a spool to fall back to."""

    def __init__(self, folder, namespace):
        self.spool = Spool(folder)
        self.namespace = namespace
        self.cli = Cli(env={"REPRISE_SPOOL": str(folder)})

    def run(self, url, *args, **options):
        return self.cli.run("queue", "push", "-n", self.namespace, "--server", url, *args,
                            "--spool", **options)

    def spooled(self, *args, url=NOWHERE, **options):
        """The id of the event that a push became."""
        result = self.run(url, *args, **options)
        assert result.code == 0, repr(result)
        event_id = result.out.removesuffix("\n")
        assert len(event_id) == 26 and event_id in self.spool.ids() and "spool" in result.err
        return event_id

    def drain(self, server):
        return self.spool.drain(f"{server.url}/api/events/ingest")


@pytest.fixture
def producer(tmp_path, namespace):
    return Producer(tmp_path / "spool", namespace)


@pytest.fixture
def front(start_ingest, shared_server):
    """A function that starts something between producer and server. `judge(index)` says what
    becomes of each reply: None passes it on, anything else is answered instead."""
    def start(judge):
        def pass_on(request):
            client = Client(shared_server.port)
            reply = client.request("POST", request.path, request.body)
            client.close()
            instead = judge(request.index)
            return Answer(reply.status, reply.body) if instead is None else instead
        return start_ingest(otherwise=pass_on)
    return start


class TestServerUp:
    def test_it_pushes_as_ever(self, producer, shared_server, queue):
        result = producer.run(shared_server.url, "jobs", '{"id":1}')
        assert result.code == 0 and re.fullmatch(r"[0-9A-Z]{13}\n", result.out)
        assert result.err == "" and producer.spool.names() == []
        job = queue.job(result.out.strip())
        assert job["payload"] == {"id": 1} and ulid_seconds(job["key"])

    def test_a_key_of_its_own_stays(self, producer, shared_server, queue):
        producer.run(shared_server.url, "jobs", "1", "--key", "mine")
        assert queue.jobs()[0]["key"] == "mine"

    def test_many(self, producer, shared_server, queue):
        result = producer.run(shared_server.url, "jobs", "--stdin", stdin="1\n2\n3\n")
        assert result.code == 0 and result.out.startswith("pushed 3, ")
        assert producer.spool.names() == [] and len({job["key"] for job in queue.jobs()}) == 3

    def test_a_refusal_is_no_reason_to_spool(self, producer, shared_server, absent_queue):
        result = producer.run(shared_server.url, "jobs", "1")
        assert result.code == FAILED and "(queue_not_found)" in result.err
        absent_queue.create(max_jobs=1)
        producer.run(shared_server.url, "jobs", "1")
        full = producer.run(shared_server.url, "jobs", "1")
        assert full.code == FAILED and "(queue_full)" in full.err
        assert producer.spool.names() == []

    @pytest.mark.parametrize("args", [["{broken"], ["1", "--delay", "soon"], [], ["1", "2"],
                                      ["1", "--priority", "x"], ["--file", "/nonexistent"]])
    def test_wrong_usage_stores_nothing(self, producer, args):
        assert producer.run(NOWHERE, "jobs", *args).code == USAGE
        assert producer.spool.names() == []

    def test_without_the_flag_nothing_is_spooled(self, producer):
        result = producer.cli.run("queue", "push", "jobs", "1", "--server", NOWHERE)
        assert result.code == NO_SERVER and producer.spool.names() == []


class TestServerDown:
    def test_it_is_stored_as_that_very_job_later(self, producer, shared_server, queue):
        event_id = producer.spooled("jobs", '{"id":1}')
        event = producer.spool.event(event_id)
        assert event["type"] == "reprise.push"
        assert counts(producer.drain(shared_server)) == {"accepted": 1}
        [job] = queue.jobs()
        assert job["payload"] == {"id": 1} and job["key"] == event_id and job["headers"] == {}

    def test_all_fields_survive(self, producer, shared_server, queue):
        began = time.time()
        producer.spooled("jobs", '{"n": 1.50, "big": 123456789012345678901234567890}',
                         "--delay", "1h", "--priority", "7", "--key", "mine", "--header",
                         "tenant=a", "--header", "eq=a=b", "--ttl", "2h", "--fairness-key", "acme",
                         "--weight", "3", "--throttle-key", "api", "--throttle-key", "mail")
        producer.drain(shared_server)
        [job] = queue.jobs()
        assert (job["status"], job["priority"], job["key"]) == ("scheduled", 7, "mine")
        assert job["headers"] == {"tenant": "a", "eq": "a=b"} and job["weight"] == 3
        assert (job["fairness_key"], job["throttle_keys"]) == ("acme", ["api", "mail"])
        assert_close(job["due_at"], began + 3600, slack=30)
        assert_close(job["expires_at"], began + 7200, slack=30)
        reply = queue.client.request("GET", queue.path(f"/jobs/{job['id']}"))
        assert b'{"n": 1.50, "big": 123456789012345678901234567890}' in reply.body

    def test_bytes_survive(self, producer, shared_server, queue):
        data = bytes(range(256))
        producer.spooled("jobs", "-", "--raw", stdin=data)
        producer.spooled("jobs", "--payload-base64", "AAEC")
        producer.drain(shared_server)
        assert [base64.b64decode(job["payload_base64"]) for job in queue.jobs()] == [
            data, b"\x00\x01\x02"]

    def test_fields_given_one_by_one(self, producer, shared_server, queue):
        producer.spooled("jobs", "--var", "customer=acme", "--var", "id:=7")
        producer.drain(shared_server)
        assert queue.jobs()[0]["payload"] == {"customer": "acme", "id": 7}

    def test_a_queue_that_is_to_be_made(self, producer, shared_server, absent_queue):
        producer.spooled("jobs", "1", "--create")
        producer.drain(shared_server)
        assert absent_queue.counts() == {"pending": 1}

    def test_one_that_is_not_there_is_refused_then(self, producer, shared_server, absent_queue):
        event_id = producer.spooled("jobs", "1")
        assert counts(producer.drain(shared_server)) == {"retried": 1, "remaining": 1}
        assert "jobs" in producer.spool.event(event_id)["_lastError"]
        absent_queue.create()
        assert counts(producer.drain(shared_server)) == {"accepted": 1}

    def test_a_delay_that_has_passed_is_over(self, producer, shared_server, queue):
        event_id = producer.spooled("jobs", "1", "--delay", "1s")
        event = producer.spool.event(event_id)
        eventually(lambda: time.time() > seconds_since_1970(event["timestamp"]) + 1.05, "a second")
        producer.drain(shared_server)
        assert queue.counts() == {"pending": 1}

    @pytest.mark.parametrize("status", [502, 503, 504])
    def test_not_now_is_as_good_as_no_answer(self, producer, start_ingest, status):
        server = start_ingest(otherwise=refusal(status, "not now"))
        producer.spooled("jobs", "1", url=server.base)
        assert len(producer.spool.names()) == 1

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 429, 500, 507])
    def test_any_other_answer_is_one(self, producer, start_ingest, status):
        server = start_ingest(otherwise=refusal(status, "no"))
        result = producer.run(server.base, "jobs", "1")
        assert result.code != 0 and result.out == "" and producer.spool.names() == []

    def test_a_line_on_stderr_says_why_and_what_to_do(self, producer):
        result = producer.run(NOWHERE, "jobs", "1")
        assert result.code == 0 and len(result.err.splitlines()) == 1
        assert NOWHERE in result.err and "reprise spool drain" in result.err

    def test_as_json(self, producer):
        result = producer.run(NOWHERE, "jobs", "1", "--json")
        assert result.json() == {"spooled": True, "id": producer.spool.ids()[0]}
        result = producer.run(NOWHERE, "jobs", "--stdin", "--json", stdin="1\n2\n")
        assert result.json() == {"pushed": 0, "duplicates": 0, "rejected": 0, "spooled": 2,
                                 "lines": 2}

    def test_a_key_makes_it_once(self, producer, shared_server, queue):
        for _ in range(3):
            producer.spooled("jobs", "1", "--key", "once")
        told = producer.drain(shared_server)
        assert (told["accepted"], told["duplicates"]) == (1, 2)
        assert queue.counts() == {"pending": 1}


class TestLostAnswers:
    def test_a_job_that_was_stored_is_not_stored_again(self, producer, shared_server, queue,
                                                       front):
        event_id = producer.spooled("jobs", '{"id":1}', url=front(lambda _: CLOSE).base)
        assert queue.counts() == {"pending": 1} and queue.jobs()[0]["key"] == event_id
        assert counts(producer.drain(shared_server)) == {"duplicates": 1}
        assert queue.counts() == {"pending": 1}

    def test_nor_one_with_a_key_of_its_own(self, producer, shared_server, queue, front):
        producer.spooled("jobs", "1", "--key", "mine", url=front(lambda _: Answer(502, b"")).base)
        assert counts(producer.drain(shared_server)) == {"duplicates": 1}
        assert queue.counts() == {"pending": 1}

    def test_nor_one_that_has_been_worked_off(self, producer, shared_server, queue, front):
        producer.spooled("jobs", "1", url=front(lambda _: CLOSE).base)
        queue.client.ack(queue.claim_one())
        assert counts(producer.drain(shared_server)) == {"duplicates": 1}
        assert queue.counts() == {}

    def test_of_many(self, producer, shared_server, queue, front):
        lines = "".join(f"{n}\n" for n in range(2200))
        result = producer.run(front(lambda index: CLOSE if index else None).base,
                              "jobs", "--stdin", stdin=lines)
        assert result.code == 0 and "spooled 1200" in result.out, repr(result)
        assert len(producer.spool.names()) == 1200 and queue.counts() == {"pending": 2000}
        assert counts(producer.drain(shared_server)) == {"accepted": 200, "duplicates": 1000}
        assert sorted(job["payload"] for job in queue.all_jobs(limit=1000)) == list(range(2200))


class TestMany:
    def test_without_a_server_all_are_spooled(self, producer, shared_server, queue, tmp_path):
        (tmp_path / "jobs.ndjson").write_text("".join(f"{n}\n" for n in range(300)))
        result = producer.run(NOWHERE, "jobs", "--file", tmp_path / "jobs.ndjson", "--header",
                              "tenant=a")
        assert result.code == 0 and "spool" in result.err, repr(result)
        assert len(producer.spool.names()) == 300
        assert counts(producer.drain(shared_server)) == {"accepted": 300}
        jobs = queue.all_jobs(limit=1000)
        assert [job["payload"] for job in jobs] == list(range(300))
        assert {job["headers"]["tenant"] for job in jobs} == {"a"}

    def test_envelopes(self, producer, shared_server, queue):
        envelopes = [{"payload": 1, "key": "mine", "priority": 3},
                     {"payload": {"a": 2}, "headers": {"x": "y"}, "delay": "1h"}]
        result = producer.run(NOWHERE, "jobs", "--stdin", "--envelope",
                              stdin="".join(json.dumps(line) + "\n" for line in envelopes))
        assert result.code == 0 and len(producer.spool.names()) == 2
        producer.drain(shared_server)
        first, second = queue.jobs()
        assert (first["key"], first["priority"], first["payload"]) == ("mine", 3, 1)
        assert (second["headers"], second["status"]) == ({"x": "y"}, "scheduled")

    def test_a_line_that_is_no_json_is_told_and_left_out(self, producer):
        result = producer.run(NOWHERE, "jobs", "--stdin", stdin="1\n{broken\n3\n")
        assert result.code == FAILED and "line 2" in result.err
        assert len(producer.spool.names()) == 2

    @pytest.mark.parametrize("status, body", [
        (503, {"error": {"code": "shutting_down", "message": "bye"}}), (502, b"<html>"),
        (504, b""), (503, {}), (502, {"message": "Bad Gateway"}), (503, []), (504, b"null"),
        (503, {"results": []})])
    def test_not_now_in_any_words_spools_them(self, producer, start_ingest, status, body):
        server = start_ingest(otherwise=Answer(status, body))
        result = producer.run(server.base, "jobs", "--stdin", stdin="1\n2\n3\n")
        assert result.code == 0 and "spooled 3" in result.out, repr(result)
        assert len(producer.spool.names()) == 3

    @pytest.mark.parametrize("body", [b"", b"<html>", {}, {"results": []}, {"results": 5},
                                      {"results": [{"index": 0, "status": "pushed",
                                                    "id": "7ZK3M9QAX2B4C"}]}],
                             ids=lambda body: str(body)[:20])
    def test_a_reply_that_does_not_tell_of_each_is_no_success(self, producer, start_ingest, body):
        """Whatever became of them, nobody may believe that all are stored."""
        server = start_ingest(otherwise=Answer(200, body))
        result = producer.run(server.base, "jobs", "--stdin", stdin="1\n2\n3\n")
        assert result.code != 0 or len(producer.spool.names()) >= 2, repr(result)

    def test_the_server_goes_away_in_the_middle(self, producer, shared_server, queue, front):
        lines = "".join(f"{n}\n" for n in range(2300))
        gone = {"error": {"code": "shutting_down", "message": "bye"}}
        server = front(lambda index: None if index < 1 else Answer(503, gone))
        result = producer.run(server.base, "jobs", "--stdin", stdin=lines)
        assert result.code == 0, repr(result)
        assert len(producer.spool.names()) == 1300
        producer.drain(shared_server)
        assert sorted(job["payload"] for job in queue.all_jobs(limit=1000)) == list(range(2300))
