"""`reprise spool drain`, rule by rule, against an endpoint that answers what it is told to."""

import ctypes
import json
import os
import re
import subprocess
import time

import pytest

from ingest_server import HANG, Answer, accept_all, all_are, each, refusal, rejecting, results
from memory_peak import peak_until_end_kib
from reprise_server import LIBC, binary, die_with_parent
from spooling import FAILED, LOCKED, USAGE, counts, iso, read_result, total, ulid
from times import assert_close, seconds_since_1970
from waiting import eventually

MIB = 1 << 20
MOST_EVENT_BYTES = MIB - len(b'{"events":[]}')
PR_CAPBSET_DROP, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2


def dies_of(spool, server, *flags):
    """The envelope of the only event, dead in one drain."""
    assert counts(spool.drain(server.url, *flags)) == {"deadLettered": 1}
    return spool.letter()


class TestRequests:
    def test_what_is_sent(self, spool, ingest):
        event_id = spool.put("order.created", {"id": 7})
        spool.drain(ingest.url + "?key=a%20b")
        [request] = ingest.requests
        assert request.path == "/ingest?key=a%20b"
        assert request.headers["content-type"].startswith("application/json")
        assert "authorization" not in request.headers
        assert list(json.loads(request.body)) == ["events"]
        [event] = request.events
        assert set(event) == {"id", "type", "timestamp", "data"} and event["id"] == event_id

    def test_without_an_address_it_is_that_of_the_server(self, spool, ingest):
        spool.put()
        spool.ok("drain", "--server", ingest.base)
        spool.put()
        spool.ok("drain", "-n", "shop", env={"REPRISE_URL": ingest.base + "/"})
        plain, named = [request.path for request in ingest.requests]
        assert plain in ("/api/events/ingest", "/api/events/ingest?namespace=default")
        assert named == "/api/events/ingest?namespace=shop"

    def test_it_carries_the_token(self, spool, ingest, tmp_path):
        (tmp_path / "tokens").write_text("# mine\nops:from-file\n")
        for flags, env in (((), {"REPRISE_TOKEN": "from-variable"}),
                           (("--token-file", tmp_path / "tokens"), {"REPRISE_TOKEN": "other"})):
            spool.put()
            spool.drain(ingest.url, *flags, env=env)
        assert [request.headers["authorization"] for request in ingest.requests] == [
            "Bearer from-variable", "Bearer from-file"]

    def test_nothing_to_send_is_no_request(self, spool, ingest):
        spool.add()
        spool.drain(ingest.url)
        assert counts(spool.drain(ingest.url)) == {} and len(ingest.requests) == 1

    def test_a_reply_in_chunks(self, spool, start_ingest):
        spool.put()
        server = start_ingest(lambda request: Answer(200, accept_all(request), chunked=True))
        assert counts(spool.drain(server.url)) == {"accepted": 1}

    @pytest.mark.parametrize("status", [200, 201, 202, 207, 299])
    def test_any_2xx_is_a_reply(self, spool, start_ingest, status):
        spool.put()
        server = start_ingest(Answer(status, results("accepted")))
        assert counts(spool.drain(server.url)) == {"accepted": 1}

    @pytest.mark.parametrize("flags", [
        ["--to", "nonsense"], ["--to", "ftp://127.0.0.1/"], ["--to", ""],
        ["--to", "http://user:password@127.0.0.1/"], ["--batch", "0"],
        ["--batch", "101"], ["--batch", "x"], ["--max-attempts", "0"], ["--max-attempts", "x"],
        ["extra"]])
    def test_wrong_usage(self, spool, flags):
        spool.put()
        before = spool.snapshot()
        result = spool.run("drain", *flags)
        assert result.code == USAGE and result.out == "" and spool.snapshot() == before


class TestOneDrainerAtATime:
    """Rule 1."""

    @pytest.fixture
    def held(self, spool, start_ingest):
        """A drain that holds the lock, and the endpoint that keeps it waiting."""
        spool.put()
        server = start_ingest(HANG)
        process = spool.start("drain", "--to", server.url)
        eventually(lambda: server.requests, "the first request")
        yield process, server
        process.kill()
        process.communicate()

    def test_a_second_one_says_who_drains(self, spool, held):
        process, server = held
        result = spool.run("drain", "--to", server.url)
        assert result.code == LOCKED and result.out == ""
        assert str(process.pid) in result.err and "(spool_locked)" in result.err
        assert len(server.requests) == 1
        told = spool.run("drain", "--to", server.url, "--json")
        assert told.code == LOCKED and told.out == ""
        assert json.loads(told.err)["error"]["code"] == "spool_locked"

    def test_status_says_so_too(self, spool, held):
        process, _ = held
        drainer = spool.status()["drainer"]
        assert set(drainer) == {"pid", "since"} and drainer["pid"] == process.pid
        assert_close(drainer["since"], time.time(), slack=30)
        assert spool.ok("status").fields()["drainer.pid"] == str(process.pid)

    def test_everything_else_goes_on(self, spool, held):
        added = spool.add()
        dead = [spool.bury(), spool.bury()]
        spool.ok("inspect")
        spool.ok("retry", dead[0])
        spool.ok("purge", dead[1])
        assert {*added, dead[0]} < set(spool.ids()) and spool.dead_ids() == []

    def test_the_lock_of_a_killed_one_is_free(self, spool, held):
        process, server = held
        process.kill()
        process.wait()
        assert spool.status()["drainer"] is None
        assert counts(spool.drain(server.url)) == {"accepted": 1}

    @pytest.mark.parametrize("text", ["", "nonsense", '{"pid": 1}', "1\n"])
    def test_a_file_that_nobody_holds_locks_nothing(self, spool, ingest, text):
        spool.put()
        (spool.directory / "lock").write_text(text)
        assert spool.status()["drainer"] is None
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}

    def test_afterwards_nobody_drains(self, spool, ingest):
        spool.put()
        spool.drain(ingest.url)
        assert spool.status()["drainer"] is None


class TestBatches:
    """Rule 1."""

    def test_of_50_in_the_order_of_their_names(self, spool, ingest):
        ids = spool.put_many(120)
        assert counts(spool.drain(ingest.url)) == {"accepted": 120}
        assert ingest.batches() == [ids[:50], ids[50:100], ids[100:]]

    @pytest.mark.parametrize("size", [1, 3, 100])
    def test_of_another_size(self, spool, ingest, size):
        ids = spool.put_many(7)
        spool.drain(ingest.url, "--batch", size)
        assert ingest.batches() == [ids[at:at + size] for at in range(0, 7, size)]

    def test_of_1_mib_at_most(self, spool, ingest):
        ids = [spool.put(data="x" * 300_000) for _ in range(8)]
        assert counts(spool.drain(ingest.url)) == {"accepted": 8}
        assert ingest.ids() == ids and max(map(len, ingest.batches())) == 3
        assert all(len(request.body) <= MIB for request in ingest.requests)

    def test_an_event_that_fills_one_fits(self, spool, ingest):
        event_id = ulid()
        frame = len(b'{"id":"","data":""}') + len(event_id)
        spool.put_bytes(b'{"id":"%s","data":"%s"}' % (
            event_id.encode(), b"x" * (MOST_EVENT_BYTES - frame)))
        others = spool.put_many(2)
        assert counts(spool.drain(ingest.url)) == {"accepted": 3}
        assert sorted(ingest.ids()) == [event_id, *others]

    def test_bookkeeping_does_not_count(self, spool, ingest):
        event_id = ulid()
        frame = len(b'{"id":"","data":""}') + len(event_id)
        spool.put_bytes(b'{"id":"%s","data":"%s","_lastError":"%s"}' % (
            event_id.encode(), b"x" * (MOST_EVENT_BYTES - frame), b"y" * 2000))
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}

    def test_one_that_is_too_large_is_dead_lettered_unsent(self, spool, ingest):
        first, large, last = spool.put(), spool.put("big", "x" * MIB), spool.put()
        result = spool.run("drain", "--to", ingest.url, "--json")
        assert result.code == 0 and ingest.ids() == [first, last]
        assert counts(read_result(result)) == {"accepted": 2, "deadLettered": 1}
        meta = spool.letter()["meta"]
        assert (meta["reason"], meta["decidedBy"], meta["attempts"]) == ("too_large", "policy", 0)
        assert spool.letter()["event"]["id"] == large and meta["queueFile"] == f"{large}.json"


class TestWhatIsNoEvent:
    """Rule 2."""

    BAD = {
        "0 bytes": b"", "a space": b" ", "truncated": b'{"id": "%s", "da' % ulid().encode(),
        "a number": b"42", "an array": b"[]", "null": b"null", "text": b'"text"',
        "invalid utf-8": b'{"id": "%s", "x": "\xff\xfe"}' % ulid().encode(),
        "a surrogate": b'{"id": "%s", "x": "\xed\xa0\x80"}' % ulid().encode(),
        "a byte order mark": b'\xef\xbb\xbf{"id": "%s"}' % ulid().encode(),
        "deep nesting": b'{"id": "%s", "x": %s}' % (ulid().encode(), b"[" * 200_000),
        "zeros": bytes(5000), "no id": b'{"type": "t"}', "two objects":
        b'{"id": "%s"} {"id": "%s"}' % (ulid().encode(), ulid().encode()),
        "a trailing comma": b'{"id": "%s",}' % ulid().encode(),
        "a bare NaN": b'{"id": "%s", "n": NaN}' % ulid().encode(),
        "a control character": b'{"id": "%s", "n": "\n"}' % ulid().encode(),
        "a comment": b'{"id": "%s"} // done' % ulid().encode(),
        "binary": bytes(range(256)),
    }
    BAD_IDS = [5, None, True, [], {}, "", "abc", "0" * 25, "0" * 27, "8" + "0" * 25,
               "0" * 25 + "U", "0" * 25 + "!", "0" * 24 + "é", "0" * 25 + "\n"]

    def assert_corrupt(self, spool, ingest, data):
        before, name, after = spool.put(), spool.put_bytes(data), spool.put()
        assert counts(spool.drain(ingest.url)) == {"accepted": 2, "corrupt": 1}
        assert ingest.ids() == [before, after]
        letter = spool.letter()
        meta = letter["meta"]
        assert letter["event"] is None and meta["attempts"] == 0 and meta["reason"] == "corrupt"
        assert meta["lastError"].startswith("Corrupt event file: ") and meta["queueFile"] == name
        assert meta["decidedBy"] == "policy" and meta["history"] == []
        assert_close(meta["deadLetteredAt"], time.time(), slack=30)
        assert spool.raw_bytes(letter) == data and meta["rawFile"].endswith(".raw")
        assert meta["rawFile"].removesuffix(".raw") == spool.dead_ids()[0]

    @pytest.mark.parametrize("what", BAD)
    def test_it_is_dead_lettered_and_the_others_go_on(self, spool, ingest, what):
        self.assert_corrupt(spool, ingest, self.BAD[what])

    @pytest.mark.parametrize("bad_id", BAD_IDS, ids=repr)
    def test_so_is_one_without_a_valid_id(self, spool, ingest, bad_id):
        self.assert_corrupt(spool, ingest, json.dumps({"id": bad_id, "type": "t"}).encode())

    def test_many_at_once(self, spool, ingest):
        for data in self.BAD.values():
            spool.put_bytes(data)
            spool.put()
        assert counts(spool.drain(ingest.url)) == {"accepted": len(self.BAD),
                                                   "corrupt": len(self.BAD)}
        assert {spool.raw_bytes(letter) for letter in spool.letters().values()} == set(
            self.BAD.values())

    def test_nothing_but_corrupt_ones_needs_no_endpoint(self, spool):
        spool.put_bytes(b"{")
        assert counts(spool.drain("http://127.0.0.1:1/")) == {"corrupt": 1}

    def test_one_of_a_gigabyte_takes_no_memory(self, spool, ingest):
        event_id = spool.put()
        with open(spool.queue / f"{ulid()}.json", "wb") as huge:
            huge.truncate(1 << 30)
        process = spool.start("drain", "--to", ingest.url, "--json")
        peak = peak_until_end_kib(process)
        told = read_result(process.communicate()[0])
        assert process.returncode == 0 and told["accepted"] == 1 and spool.names() == []
        assert told["corrupt"] + told["deadLettered"] == 1 and ingest.ids() == [event_id]
        assert 0 < peak < 200 * 1024
        raw = [path for path in spool.dead_letter.iterdir() if path.suffix == ".raw"]
        assert sum(path.stat().st_size for path in raw) == 1 << 30

    def test_a_note_says_that_events_died(self, spool, ingest):
        spool.put_bytes(b"{")
        result = spool.ok("drain", "--to", ingest.url)
        assert "reprise spool inspect" in result.err
        assert result.out == ("accepted 0, duplicates 0, retried 0, dead-lettered 0, corrupt 1, "
                              "remaining 0\n")

    def test_one_that_cannot_be_read_is_left_alone(self, spool, ingest):
        first, closed, last = spool.put_many(3)
        (spool.queue / f"{closed}.json").chmod(0)

        def powerless():
            die_with_parent()
            for capability in (DAC_OVERRIDE, DAC_READ_SEARCH):
                LIBC.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
        process = subprocess.Popen(
            [binary(), *map(str, spool.words("drain", ["--to", ingest.url, "--json"]))],
            env=spool.cli.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=powerless)
        out, err = process.communicate(timeout=20)
        told = read_result(out)
        assert process.returncode == FAILED and counts(told) == {"accepted": 2, "remaining": 1}
        assert f"{closed}.json" in err.decode() and spool.dead_names() == []
        assert ingest.ids() == [first, last] and spool.ids() == [closed]

    def test_one_that_has_vanished_is_no_corrupt_one(self, spool, start_ingest):
        first, gone, last = spool.put_many(3)

        def take_it_away(request):
            (spool.queue / f"{gone}.json").unlink()
            return accept_all(request)
        server = start_ingest(take_it_away)
        result = spool.run("drain", "--to", server.url, "--batch", "1", "--json")
        assert result.code in (0, FAILED) and server.ids() == [first, last], repr(result)
        assert f"{gone}.json" in result.err and spool.dead_names() == []
        assert counts(read_result(result))["accepted"] == 2


class TestTheReplyDecides:
    """Rule 3."""

    def test_event_by_event(self, spool, start_ingest):
        accepted, known, refused = spool.put_many(3)
        server = start_ingest(results("accepted", "duplicate", ("rejected", "no such customer")))
        told = spool.drain(server.url)
        assert counts(told) == {"accepted": 1, "duplicates": 1, "retried": 1, "remaining": 1}
        assert told["stoppedEarly"] is False and spool.ids() == [refused]
        event = spool.event(refused)
        assert (event["_attempts"], event["_lastError"]) == (1, "no such customer")
        assert_close(event["_firstAttemptAt"], time.time(), slack=30)

    def test_the_order_of_results_does_not_matter(self, spool, start_ingest):
        first, second, third = spool.put_many(3)
        server = start_ingest({"results": [{"index": 2, "status": "accepted"},
                                           {"index": 0, "status": "rejected", "error": "no"},
                                           {"index": 1, "status": "accepted"}]})
        spool.drain(server.url)
        assert spool.ids() == [first] and spool.event(first)["_lastError"] == "no"

    WORDS = [
        ({"results": [{"index": 0, "status": "rejected", "error": "plain"}]}, "plain"),
        ({"results": [{"index": 0, "status": "rejected", "error": {"message": "inside"}}]},
         "inside"),
        ({"results": [{"index": 0, "status": "rejected",
                       "error": {"code": "x", "message": "both"}}]}, "both"),
        ({"results": [{"index": 0, "status": "rejected"}],
          "errors": [{"index": 0, "error": "beside"}]}, "beside"),
        ({"results": [{"index": 0, "status": "rejected"}],
          "errors": [{"index": 0, "error": {"message": "deeper"}}]}, "deeper"),
    ]

    @pytest.mark.parametrize("reply, words", WORDS, ids=lambda value: str(value)[-20:])
    def test_where_the_words_stand(self, spool, start_ingest, reply, words):
        event_id = spool.put()
        spool.drain(start_ingest(reply).url)
        assert spool.event(event_id)["_lastError"] == words

    @pytest.mark.parametrize("reply", [
        {"results": [{"index": 0, "status": "rejected"}]},
        {"results": [{"index": 0, "status": "rejected", "error": None}]},
        {"results": [{"index": 0, "status": "rejected", "error": {}}]},
        {"results": [{"index": 0, "status": "rejected", "error": ["x"]}], "errors": "none"},
        {"results": [{"index": 0, "status": "rejected", "error": 5}], "errors": [{"index": 7}]}])
    def test_without_words_it_is_rejected_all_the_same(self, spool, start_ingest, reply):
        event_id = spool.put()
        assert counts(spool.drain(start_ingest(reply).url)) == {"retried": 1, "remaining": 1}
        event = spool.event(event_id)
        assert event["_attempts"] == 1 and isinstance(event["_lastError"], str)

    def test_words_of_any_kind_are_kept(self, spool, start_ingest):
        words = 'quotes " \\ and\nlines \x00 \x1b[31m ü \U0001f600'
        event_id = spool.put()
        spool.drain(start_ingest(all_are("rejected", words)).url)
        assert spool.event(event_id)["_lastError"] == words

    def test_what_was_taken_away_meanwhile_does_not_come_back(self, spool, start_ingest):
        spool.put_many(3)

        def take_all(request):
            for name in spool.names():
                (spool.queue / name).unlink()
            return results("accepted", ("rejected", "no"), "duplicate")
        result = spool.run("drain", "--to", start_ingest(take_all).url, "--json")
        told = read_result(result)
        assert (told["accepted"], told["duplicates"], told["retried"]) == (1, 1, 0)
        assert result.code in (0, FAILED) and spool.names() == spool.dead_names() == []

    def test_the_last_of_several_attempts(self, spool, start_ingest):
        event_id = spool.put()
        server = start_ingest(all_are("rejected", "first"), all_are("rejected", "second"))
        spool.drain(server.url)
        began = spool.event(event_id)["_firstAttemptAt"]
        spool.drain(server.url)
        event = spool.event(event_id)
        assert (event["_attempts"], event["_lastError"]) == (2, "second")
        assert event["_firstAttemptAt"] == began

    def test_at_max_attempts_it_is_dead_lettered(self, spool, start_ingest):
        event_id = spool.put("order.created", {"id": 7})
        event = spool.event(event_id)
        server = start_ingest(otherwise=all_are("rejected", "unknown customer"))
        for _ in range(2):
            assert counts(spool.drain(server.url, "--max-attempts", "3")) == {
                "retried": 1, "remaining": 1}
        began = spool.event(event_id)["_firstAttemptAt"]
        letter = dies_of(spool, server, "--max-attempts", "3")
        died = letter["meta"].pop("deadLetteredAt")
        assert letter == {"event": event, "meta": {
            "attempts": 3, "lastError": "unknown customer", "firstAttemptAt": began,
            "queueFile": f"{event_id}.json", "reason": "max_attempts", "decidedBy": "policy",
            "history": []}}
        assert seconds_since_1970(died) >= seconds_since_1970(began)
        assert spool.dead_names() == [f"{event_id}.json"] and spool.ids() == []
        assert len(server.requests) == 3

    def test_ten_attempts_by_default(self, spool, start_ingest):
        spool.put("a", _attempts=8)
        server = start_ingest(otherwise=all_are("rejected"))
        assert counts(spool.drain(server.url)) == {"retried": 1, "remaining": 1}
        assert dies_of(spool, server)["meta"]["attempts"] == 10

    def test_one_attempt(self, spool, start_ingest):
        spool.put()
        letter = dies_of(spool, start_ingest(all_are("rejected", "no")), "--max-attempts", "1")
        assert (letter["meta"]["attempts"], letter["meta"]["lastError"]) == (1, "no")

    def test_a_note_says_what_to_do(self, spool, start_ingest):
        spool.put()
        result = spool.ok("drain", "--to", start_ingest(all_are("rejected")).url,
                          "--max-attempts", "1")
        assert "reprise spool inspect" in result.err and result.out.startswith("accepted 0, ")


class TestOncePerRun:
    """Rule 4."""

    def test_refused_events_do_not_block_the_tail(self, spool, start_ingest):
        ids = spool.put_many(7)
        server = start_ingest(otherwise=rejecting(*ids[:3]))
        told = spool.drain(server.url, "--batch", "2")
        assert counts(told) == {"accepted": 4, "retried": 3, "remaining": 3}
        assert server.ids() == ids
        assert [event["_attempts"] for event in spool.events()] == [1, 1, 1]

    def test_nor_burn_their_attempts(self, spool, start_ingest):
        ids = spool.put_many(120)
        server = start_ingest(otherwise=all_are("rejected"))
        assert counts(spool.drain(server.url)) == {"retried": 120, "remaining": 120}
        assert server.ids() == ids
        assert {event["_attempts"] for event in spool.events()} == {1}

    def test_one_with_all_its_attempts_used_is_not_sent(self, spool, start_ingest):
        used = spool.put(_attempts=10, _firstAttemptAt=iso(1_700_000_000), _lastError="before")
        more = spool.put(_attempts=999)
        fresh = spool.put()
        server = start_ingest()
        assert counts(spool.drain(server.url)) == {"accepted": 1, "deadLettered": 2}
        assert server.ids() == [fresh]
        meta = spool.letters()[f"{used}.json"]["meta"]
        assert (meta["attempts"], meta["lastError"], meta["reason"]) == (
            10, "before", "max_attempts")
        assert meta["firstAttemptAt"] == iso(1_700_000_000)
        assert spool.letters()[f"{more}.json"]["meta"]["reason"] == "max_attempts"

    @pytest.mark.parametrize("attempts", ["many", None, -1, 1.5, [], 1e99, 2 ** 70])
    def test_a_count_that_is_none_does_no_harm(self, spool, start_ingest, attempts):
        event_id, other = spool.put(_attempts=attempts), spool.put()
        told = spool.drain(start_ingest().url)
        assert total(told) == 2 and told["accepted"] >= 1
        assert event_id in [*spool.dead_ids()] or told["accepted"] == 2

    def test_a_run_takes_what_was_there_when_it_began(self, spool, start_ingest):
        ids = spool.put_many(2)
        late = []

        def add_one(request):
            late.append(spool.put())
            return accept_all(request)
        server = start_ingest(otherwise=add_one)
        result = spool.ok("drain", "--to", server.url, "--batch", "1", "--json")
        assert counts(read_result(result)) == {"accepted": 2}
        assert server.ids() == ids and spool.ids() == late


class TestWholeBatchesThatAreRefused:
    """Rule 5."""

    @pytest.mark.parametrize("status", [400, 413, 422])
    @pytest.mark.parametrize("bad", [0, 3, 6])
    def test_the_offender_is_found_by_halving(self, spool, start_ingest, status, bad):
        ids = spool.put_many(7)

        def judge(request):
            return status if ids[bad] in request.ids else accept_all(request)
        server = start_ingest(otherwise=judge)
        told = spool.drain(server.url)
        assert counts(told) == {"accepted": 6, "retried": 1, "remaining": 1}
        assert spool.ids() == [ids[bad]] and spool.event(ids[bad])["_attempts"] == 1
        assert [ids[bad]] in server.batches() and len(server.requests) <= 8
        sent = [event_id for batch, request in zip(server.batches(), server.requests)
                if ids[bad] not in batch for event_id in batch]
        assert sorted(sent) == sorted(set(ids) - {ids[bad]})

    def test_several_offenders(self, spool, start_ingest):
        ids = spool.put_many(50)
        bad = {ids[0], ids[1], ids[25], ids[49]}
        server = start_ingest(
            otherwise=lambda request: 400 if bad & set(request.ids) else accept_all(request))
        assert counts(spool.drain(server.url)) == {"accepted": 46, "retried": 4, "remaining": 4}
        assert set(spool.ids()) == bad and len(server.requests) <= 60

    REPLIES = {
        "errors": lambda index: refusal(400, errors=[{"index": index, "error": "the words"}]),
        "details": lambda index: refusal(422, details=[{"index": index, "message": "the words"}]),
        "details of the error": lambda index: Answer(400, {"error": {
            "code": "x", "message": "bad", "details": [{"index": index, "error": "the words"}]}}),
        "text": lambda index: refusal(400, f"events[{index}].type: the words"),
        "plain text": lambda index: Answer(400, f"events[{index}]: the words".encode(),
                                           {"Content-Type": "text/plain"}),
        "error text": lambda index: Answer(400, {"error": f"the words: events[{index}]"}),
        "message": lambda index: Answer(413, {"message": f"the words for events[{index}]"}),
    }

    @pytest.mark.parametrize("kind", REPLIES)
    def test_the_reply_may_name_the_offender(self, spool, start_ingest, kind):
        ids = spool.put_many(20)
        bad = ids[13]

        def judge(request):
            return (self.REPLIES[kind](request.ids.index(bad)) if bad in request.ids
                    else accept_all(request))
        server = start_ingest(otherwise=judge)
        assert counts(spool.drain(server.url)) == {"accepted": 19, "retried": 1, "remaining": 1}
        assert spool.ids() == [bad] and "the words" in spool.event(bad)["_lastError"]
        # By halving it would have taken more than these.
        assert len(server.requests) <= 4

    @pytest.mark.parametrize("index", [99, -1, "3", 1.5, None, 2 ** 70])
    def test_an_index_that_makes_no_sense_is_as_good_as_none(self, spool, start_ingest, index):
        ids = spool.put_many(6)
        server = start_ingest(otherwise=lambda request: (
            refusal(400, "events[99] is bad", errors=[{"index": index, "error": "x"}])
            if ids[2] in request.ids else accept_all(request)))
        assert counts(spool.drain(server.url)) == {"accepted": 5, "retried": 1, "remaining": 1}
        assert spool.ids() == [ids[2]]

    def test_one_event_alone_is_the_offender(self, spool, start_ingest):
        event_id = spool.put()
        server = start_ingest(refusal(400, "bad in itself"))
        assert counts(spool.drain(server.url)) == {"retried": 1, "remaining": 1}
        assert len(server.requests) == 1 and spool.event(event_id)["_attempts"] == 1
        assert "bad in itself" in spool.event(event_id)["_lastError"]

    def test_an_endpoint_that_refuses_everything_counts_each_once(self, spool, start_ingest):
        spool.put_many(20)
        server = start_ingest(otherwise=400)
        assert counts(spool.drain(server.url)) == {"retried": 20, "remaining": 20}
        assert {event["_attempts"] for event in spool.events()} == {1}
        assert len(server.requests) <= 40

    def test_an_offender_dies_at_its_last_attempt(self, spool, start_ingest):
        ids = spool.put_many(4)
        bad = spool.put(_attempts=9)
        server = start_ingest(otherwise=lambda request: (
            refusal(422, "cannot be") if bad in request.ids else accept_all(request)))
        assert counts(spool.drain(server.url)) == {"accepted": 4, "deadLettered": 1}
        assert spool.letter()["event"]["id"] == bad and len(ids) == 4
        assert "cannot be" in spool.letter()["meta"]["lastError"]

    def test_within_the_halves_the_reply_decides_as_ever(self, spool, start_ingest):
        ids = spool.put_many(8)
        statuses = {ids[0]: "duplicate", ids[5]: ("rejected", "no")}
        server = start_ingest(otherwise=lambda request: 400 if ids[3] in request.ids else each(
            lambda event: statuses.get(event["id"], "accepted"))(request))
        assert counts(spool.drain(server.url)) == {"accepted": 5, "duplicates": 1, "retried": 2,
                                                   "remaining": 2}
        assert spool.ids() == [ids[3], ids[5]] and spool.event(ids[5])["_lastError"] == "no"

    def test_batches_behind_it_go_on(self, spool, start_ingest):
        ids = spool.put_many(9)
        server = start_ingest(
            otherwise=lambda request: 413 if ids[1] in request.ids else accept_all(request))
        assert counts(spool.drain(server.url, "--batch", "3")) == {"accepted": 8, "retried": 1,
                                                                   "remaining": 1}


class TestTheResult:
    """Rule 7."""

    def test_everything_at_once(self, spool, start_ingest):
        ids = spool.put_many(6)
        dying = spool.put(_attempts=9)
        spool.put(_attempts=10)
        spool.put(data="x" * MIB)
        spool.put_bytes(b"{")
        statuses = {ids[0]: "duplicate", ids[1]: "rejected", ids[2]: "postponed",
                    dying: "rejected"}
        server = start_ingest(otherwise=each(lambda event: statuses.get(event["id"], "accepted")))
        result = spool.run("drain", "--to", server.url, "--json")
        assert read_result(result) == {"accepted": 3, "retried": 1, "deadLettered": 3, "corrupt": 1,
                                       "duplicates": 1, "remaining": 2, "stoppedEarly": False}
        assert spool.ids() == [ids[1], ids[2]] and "_attempts" not in spool.event(ids[2])

    def test_for_people_it_is_a_line(self, spool, start_ingest):
        spool.put_many(3)
        server = start_ingest(results("accepted", "duplicate", "rejected"))
        result = spool.ok("drain", "--to", server.url)
        assert result.out == ("accepted 1, duplicates 1, retried 1, dead-lettered 0, corrupt 0, "
                              "remaining 1\n")

    def test_nothing_there(self, spool, ingest):
        result = spool.ok("drain", "--to", ingest.url)
        assert result.out == ("accepted 0, duplicates 0, retried 0, dead-lettered 0, corrupt 0, "
                              "remaining 0\n")
        assert result.err == ""

    def test_progress_is_for_terminals(self, spool, start_ingest):
        def slowly(request):
            return Answer(202, accept_all(request), delay=0.15)
        spool.put_many(10)
        result = spool.ok("drain", "--to", start_ingest(otherwise=slowly).url, "--batch", "2")
        assert result.err == ""
        spool.put_many(10)
        with spool.terminal("drain", "--to", start_ingest(otherwise=slowly).url, "--batch", "2",
                            env={"NO_COLOR": "1"}) as terminal:
            code, text = terminal.finish()
        assert code == 0 and "accepted 10, duplicates 0" in text
        progress = re.sub(r"accepted 10, duplicates 0.*", "", text, flags=re.DOTALL)
        assert re.search(r"\d", progress), f"no progress: {text!r}"


class TestDeadLetters:
    """Rule 9."""

    def test_an_existing_name_is_never_overwritten(self, spool, start_ingest):
        event_id = spool.put()
        spool.bury_bytes(f"{event_id}.json", b"precious")
        spool.bury_bytes(f"{event_id}.raw", b"treasure")
        assert spool.run("drain", "--to", start_ingest(all_are("rejected")).url,
                         "--max-attempts", "1").code == 0
        assert (spool.dead_letter / f"{event_id}.json").read_bytes() == b"precious"
        assert (spool.dead_letter / f"{event_id}.raw").read_bytes() == b"treasure"
        [name] = set(spool.dead_names()) - {f"{event_id}.json"}
        assert json.loads((spool.dead_letter / name).read_bytes())["event"]["id"] == event_id

    def test_nor_is_that_of_a_raw_file(self, spool, ingest):
        name = spool.put_bytes(b"new bytes")
        stem = name.removesuffix(".json")
        spool.bury_bytes(f"{stem}.json", b"precious")
        spool.bury_bytes(f"{stem}.raw", b"treasure")
        spool.ok("drain", "--to", ingest.url)
        assert (spool.dead_letter / f"{stem}.json").read_bytes() == b"precious"
        assert (spool.dead_letter / f"{stem}.raw").read_bytes() == b"treasure"
        [other] = set(spool.dead_names()) - {f"{stem}.json"}
        letter = json.loads((spool.dead_letter / other).read_bytes())
        assert spool.raw_bytes(letter) == b"new bytes" and letter["meta"]["queueFile"] == name

    def test_where_none_can_be_written_nothing_is_lost(self, spool, start_ingest):
        bad, name = spool.put(), spool.put_bytes(b"{")
        before = spool.snapshot()
        spool.dead_letter.write_text("no directory")
        result = spool.run("drain", "--to", start_ingest(rejecting(bad)).url, "--max-attempts",
                           "1", "--json")
        assert result.code == FAILED and "dead-letter" in result.err
        assert spool.names() == [f"{bad}.json", name]
        assert {**spool.snapshot(), **before} == spool.snapshot()


class TestAgain:
    def test_a_second_run_sends_only_what_is_left(self, spool, start_ingest):
        ids = spool.put_many(5)
        server = start_ingest(rejecting(ids[1]))
        spool.drain(server.url)
        assert counts(spool.drain(server.url)) == {"accepted": 1}
        assert server.batches() == [ids, [ids[1]]]
        assert spool.snapshot() == {}
