"""Replies that are cut short, lie or make no sense: no event is removed that was not accepted by
name, none is counted that was not refused by name."""

import json
import threading

import pytest

from ingest_server import CLOSE, Answer, IngestServer, accept_all, refusal, results
from spooling import Spool, counts, read_result, total

GOOD = results("accepted", "accepted", "accepted")
LEFT, GONE, COUNTED = "left as it was", "removed", "counted"


def entry(index, status, **fields):
    return {"index": index, "status": status} | fields


def fates(spool, ids):
    """What has become of each event."""
    there = set(spool.ids())
    return [GONE if event_id not in there else
            COUNTED if spool.event(event_id).get("_attempts") else LEFT for event_id in ids]


# A reply to three events, and what must become of each.
LIES = {
    "no results": ([], [LEFT, LEFT, LEFT]),
    "one is missing": ([entry(0, "accepted"), entry(2, "accepted")], [GONE, LEFT, GONE]),
    "a refused one is missing": ([entry(0, "rejected")], [COUNTED, LEFT, LEFT]),
    "an index out of range": ([entry(0, "accepted"), entry(3, "accepted")], [GONE, LEFT, LEFT]),
    "a large index": ([entry(1 << 40, "accepted"), entry(1, "accepted")], [LEFT, GONE, LEFT]),
    "a huge index": ([entry(1 << 64, "accepted"), entry(1, "accepted")], [LEFT, GONE, LEFT]),
    "a negative index": ([entry(-1, "accepted"), entry(0, "accepted")], [GONE, LEFT, LEFT]),
    "an index that wraps": ([entry((1 << 32) + 1, "accepted")], [LEFT, LEFT, LEFT]),
    "repeated": ([entry(0, "accepted"), entry(0, "accepted"), entry(1, "accepted")],
                 [LEFT, GONE, LEFT]),
    "repeated with another word": ([entry(1, "accepted"), entry(1, "rejected"),
                                    entry(2, "duplicate")], [LEFT, LEFT, GONE]),
    "thrice": ([entry(2, "rejected")] * 3, [LEFT, LEFT, LEFT]),
    "another status": ([entry(0, "stored"), entry(1, "accepted"), entry(2, "deferred")],
                       [LEFT, GONE, LEFT]),
    "statuses in capitals": ([entry(0, "Accepted"), entry(1, "ACCEPTED"), entry(2, "accepted")],
                             [LEFT, LEFT, GONE]),
    "status with spaces": ([entry(0, " accepted"), entry(1, "accepted "), entry(2, "")],
                           [LEFT, LEFT, LEFT]),
    "a status of another kind": ([entry(0, None), entry(1, 202), entry(2, ["accepted"])],
                                 [LEFT, LEFT, LEFT]),
    "no status": ([{"index": 0}, {"index": 1, "error": "x"}, entry(2, "accepted")],
                  [LEFT, LEFT, GONE]),
    "no index": ([{"status": "accepted"}, {"status": "accepted"}, entry(2, "accepted")],
                 [LEFT, LEFT, GONE]),
    "an index of another kind": ([entry("0", "accepted"), entry(None, "accepted"),
                                  entry([2], "accepted"), entry(True, "accepted")],
                                 [LEFT, LEFT, LEFT]),
    "a broken index": ([entry(0.5, "accepted"), entry(1, "accepted")], [LEFT, GONE, LEFT]),
    "more results than events": ([entry(index, "accepted") for index in range(100)],
                                 [GONE, GONE, GONE]),
    "entries that are none": ([None, 5, "accepted", [], entry(1, "accepted")],
                              [LEFT, GONE, LEFT]),
    "accepted with an error": ([entry(0, "accepted", error="but"), entry(1, "rejected", error="no"),
                                entry(2, "duplicate", error="?")], [GONE, COUNTED, GONE]),
}


class TestLies:
    @pytest.mark.parametrize("lie", LIES)
    def test_only_what_is_said_clearly_counts(self, spool, start_ingest, lie):
        entries, wanted = LIES[lie]
        ids = spool.put_many(3)
        untouched = spool.snapshot()
        server = start_ingest({"results": entries})
        result = spool.run("drain", "--to", server.url, "--json")
        assert fates(spool, ids) == wanted and spool.dead_names() == []
        told = read_result(result)
        assert total(told) == 3 and told["remaining"] == 3 - wanted.count(GONE)
        assert told["retried"] == wanted.count(COUNTED) and len(server.requests) == 1
        for event_id, fate in zip(ids, wanted):
            if fate == LEFT:
                name = f"queue/{event_id}.json"
                assert spool.snapshot()[name] == untouched[name]

    def test_sums_that_contradict_the_results_count_for_nothing(self, spool, start_ingest):
        ids = spool.put_many(2)
        server = start_ingest(results("accepted", ("rejected", "no")) | {
            "ingested": 2, "duplicates": 7, "rejected": 0, "deferred": -1})
        assert counts(spool.drain(server.url)) == {"accepted": 1, "retried": 1, "remaining": 1}
        assert spool.ids() == ids[1:]

    def test_errors_beside_good_results_count_for_nothing(self, spool, start_ingest):
        spool.put_many(2)
        server = start_ingest(results("accepted", "accepted") | {
            "errors": [{"index": 0, "error": "x"}], "error": {"message": "events[1]"}})
        assert counts(spool.drain(server.url)) == {"accepted": 2}

    def test_the_liar_is_asked_again_in_the_next_run(self, spool, start_ingest):
        ids = spool.put_many(3)
        server = start_ingest(results("accepted"))
        spool.run("drain", "--to", server.url)
        assert counts(spool.drain(server.url)) == {"accepted": 2}
        assert server.batches() == [ids, ids[1:]]

    def test_words_without_end_are_kept_within_reason(self, spool, start_ingest):
        event_id = spool.put()
        spool.drain(start_ingest(results(("rejected", "no! " * 500_000))).url)
        event = spool.event(event_id)
        assert event["_lastError"].startswith("no! no! ") and event["_attempts"] == 1
        assert counts(spool.drain(start_ingest().url)) == {"accepted": 1}


def whole(body):
    data = json.dumps(body).encode()
    return b"HTTP/1.1 202 Accepted\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


# Replies after which the same batch is sent again, a second later, and counted for nothing.
NONSENSE = {
    "no answer": CLOSE,
    "half an answer": Answer(202, GOOD, cut=20),
    "all but the last byte": Answer(202, GOOD, cut=len(json.dumps(GOOD)) - 1),
    "a length and no body": Answer(202, GOOD, cut=0),
    "half a head": b"HTTP/1.1 202 Acc",
    "not http": b"220 mail.example ESMTP\r\n",
    "bytes": bytes(range(256)) * 10,
    "a broken chunk": b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "a chunk cut short": b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n99\r\n{\"re",
    "a length that is none": b"HTTP/1.1 202 Accepted\r\nContent-Length: x\r\n\r\n{}",
    "an empty body": Answer(202, b""),
    "no json": Answer(202, b"<html>accepted</html>"),
    "half a json": Answer(202, json.dumps(GOOD).encode()[:-4]),
    "json and more": Answer(202, json.dumps(GOOD).encode() + b"}"),
    "a number": Answer(200, b"42"),
    "null": Answer(200, b"null"),
    "an array": [GOOD],
    "text": Answer(202, "accepted"),
    "an object without results": {"ingested": 3},
    "results that are a number": {"results": 3},
    "results that are an object": {"results": {"0": "accepted"}},
    "results that are null": {"results": None},
    "not utf-8": Answer(202, json.dumps(GOOD).encode().replace(b"accepted", b"\xff\xff")),
    "204": b"HTTP/1.1 204 No Content\r\n\r\n",
    "deep": Answer(202, b'{"results": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
}


class TestNonsense:
    @pytest.fixture(scope="class")
    def outcomes(self, tmp_path_factory):
        """Of each kind of nonsense: (spool, ids, server, result). They wait side by side."""
        servers, found, folder = [], {}, tmp_path_factory.mktemp("nonsense")

        def run(kind, number):
            spool = Spool(folder / str(number) / "spool")
            spool.directory.parent.mkdir()
            ids = spool.put_many(3)
            server = IngestServer(NONSENSE[kind])
            servers.append(server)
            result = spool.run("drain", "--to", server.url, "--json", timeout=60)
            found[kind] = spool, ids, server, result
        threads = [threading.Thread(target=run, args=(kind, number))
                   for number, kind in enumerate(NONSENSE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield found
        for server in servers:
            server.close()

    def test_it_is_sent_again_and_counted_for_nothing(self, outcomes):
        wrong = {}
        for kind, (spool, ids, server, result) in outcomes.items():
            try:
                self.check(spool, ids, server, result)
            except AssertionError as error:
                wrong[kind] = str(error)
        assert len(outcomes) == len(NONSENSE)
        assert not wrong, "\n" + "\n".join(f"{kind}: {text}" for kind, text in wrong.items())

    def check(self, spool, ids, server, result):
        assert result.code == 0, repr(result)
        assert counts(read_result(result)) == {"accepted": 3}
        assert server.batches() == [ids, ids] and spool.names() == spool.dead_names() == []
        assert 0.7 <= server.gaps()[0] <= 5, server.gaps()


class TestOddButClear:
    """Replies that are unusual and yet say all that is needed."""

    @pytest.mark.parametrize("answer", [
        whole(GOOD),
        Answer(202, b" \r\n\t" + json.dumps(GOOD).encode() + b"\n\n"),
        Answer(202, GOOD, {"Content-Type": "text/plain"}),
        Answer(200, {"results": GOOD["results"], "more": {"deep": [[[]]]}, "n": 1e300}),
        Answer(202, json.dumps(GOOD).replace("accepted", "\\u0061ccepted").encode()),
        Answer(202, json.dumps(GOOD).replace('"index": 1', '"index": 1.0').encode()),
        Answer(202, GOOD, chunked=True), Answer(202, GOOD, delay=0.3),
        Answer(202, GOOD, {"Retry-After": "60"}),
        Answer(202, GOOD | {"retry_after_seconds": 60}),
        Answer(202, GOOD, {"X-Long": "x" * 6000}),
    ], ids=lambda answer: "")
    def test_they_are_understood(self, spool, start_ingest, answer):
        spool.put_many(3)
        server = start_ingest(answer)
        assert counts(spool.drain(server.url)) == {"accepted": 3}
        assert len(server.requests) == 1

    def test_an_interim_answer_is_skipped(self, spool, start_ingest):
        spool.put_many(3)
        server = start_ingest(b"HTTP/1.1 100 Continue\r\n\r\n" + whole(GOOD))
        assert counts(spool.drain(server.url)) == {"accepted": 3}

    def test_a_body_without_a_length_ends_with_the_connection(self, spool, start_ingest):
        spool.put_many(3)
        server = start_ingest(b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps(GOOD).encode())
        assert counts(spool.drain(server.url)) == {"accepted": 3}

    @pytest.mark.parametrize("body", [b"", b"<html>", b"{", bytes(100), b'{"errors": 5}',
                                      b'{"errors": [5, {"index": {}}], "details": {}}',
                                      b'{"error": [1]}', b'events[99999999999999999999] events[]'])
    def test_a_refusal_in_any_words_leads_to_the_offender(self, spool, start_ingest, body):
        ids = spool.put_many(4)
        server = start_ingest(otherwise=lambda request: (
            Answer(400, body) if ids[1] in request.ids else accept_all(request)))
        assert counts(spool.drain(server.url)) == {"accepted": 3, "retried": 1, "remaining": 1}
        assert spool.ids() == [ids[1]]

    def test_a_refusal_that_blames_an_innocent_one_ends_all_the_same(self, spool, start_ingest):
        # Whoever is blamed, each event is counted at most once, and nothing is lost.
        ids = spool.put_many(6)
        server = start_ingest(otherwise=lambda request: (
            refusal(400, "events[0] is bad") if ids[4] in request.ids else accept_all(request)))
        told = spool.drain(server.url)
        assert told["accepted"] + told["retried"] == 6 and ids[4] in spool.ids()
        assert {event["_attempts"] for event in spool.events()} == {1}
