"""`reprise spool drain --follow`: stays, sends what comes, and waits where one run would stop."""

import json
import signal
import time

import pytest

from ingest_server import HANG, Answer, accept_all, each, refusal, rejecting
from spooling import LOCKED, UNSENT, counts, read_result, write_whole
from waiting import eventually, holds_for

# A busy machine needs longer than the follower.
PROMPT_SECONDS = 3


@pytest.fixture
def follow(spool):
    """A function that starts a follower: follow(server, *flags). It ends with the test."""
    processes = []

    def start(server, *flags):
        process = spool.start("drain", "--to", server.url, "--follow", "--json", *flags)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def end(process, number=signal.SIGINT):
    """The result of all it did."""
    began = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0, (process.returncode, out, err)
    assert time.monotonic() - began < PROMPT_SECONDS
    told = json.loads(out)
    return {name: value for name, value in told.items() if value}


def arrives(server, *ids):
    eventually(lambda: set(ids) <= set(server.ids()), f"{ids} at the endpoint")


def empties(spool):
    """The answer has been heard, too."""
    eventually(lambda: spool.names() == [], "the files to be gone")


class TestComing:
    def test_it_sends_what_is_there_and_what_comes(self, spool, follow, ingest):
        first = spool.put()
        process = follow(ingest)
        arrives(ingest, first)
        for _ in range(3):
            began = time.monotonic()
            arrives(ingest, *spool.add())
            assert time.monotonic() - began < PROMPT_SECONDS
        empties(spool)
        told = end(process)
        assert told["accepted"] == 4 and "remaining" not in told

    def test_files_of_other_producers_too(self, spool, follow, ingest):
        process = follow(ingest)
        eventually(lambda: spool.status()["drainer"] or process.poll(), "the follower")
        arrives(ingest, spool.put())
        empties(spool)
        assert end(process)["accepted"] == 1

    def test_before_the_directory_is_there(self, spool, follow, ingest):
        process = follow(ingest)
        holds_for(lambda: process.poll() is None, 0.3, "the follower")
        arrives(ingest, *spool.add())
        empties(spool)
        assert end(process)["accepted"] == 1

    def test_a_file_is_taken_when_it_is_whole(self, spool, follow, ingest):
        process = follow(ingest)
        spool.put()
        temporary = spool.queue / ".slow.json.tmp"
        temporary.write_bytes(b'{"id"')
        holds_for(lambda: process.poll() is None and len(ingest.ids()) <= 1, 0.3, "the follower")
        write_whole(spool.queue / "whole.json", b'{"id": "0123456789ABCDEFGHJKMNPQRS"}')
        arrives(ingest, "0123456789ABCDEFGHJKMNPQRS")
        assert "corrupt" not in end(process)

    def test_a_stream_of_them(self, spool, follow, ingest):
        process = follow(ingest)
        ids = spool.add("t", "--ndjson-stdin", stdin="1\n" * 500)
        arrives(ingest, *ids)
        empties(spool)
        assert end(process)["accepted"] == 500 and sorted(ingest.ids()) == ids

    def test_idle_it_asks_nobody(self, spool, follow, ingest):
        spool.put()
        follow(ingest)
        eventually(lambda: spool.names() == [], "the first event to be sent")
        holds_for(lambda: len(ingest.requests) == 1, 1.0, "quiet")

    def test_retried_letters_are_noticed(self, spool, follow, ingest):
        process = follow(ingest)
        dead = spool.bury()
        spool.ok("retry", dead)
        arrives(ingest, dead)
        empties(spool)
        assert end(process)["accepted"] == 1


class TestRefused:
    def test_they_are_sent_again_at_most_once_a_minute(self, spool, follow, start_ingest):
        bad = spool.put()
        server = start_ingest(otherwise=rejecting(bad))
        process = follow(server)
        for _ in range(4):
            arrives(server, *spool.add())
        assert server.ids().count(bad) == 1
        eventually(lambda: spool.ids() == [bad], "the others to be gone")
        assert spool.event(bad)["_attempts"] == 1
        told = end(process)
        assert told["accepted"] == 4 and told["remaining"] == 1

    def test_at_their_last_attempt_they_die(self, spool, follow, start_ingest):
        spool.put(_attempts=9)
        process = follow(start_ingest(otherwise=each(lambda _: ("rejected", "no"))))
        eventually(spool.dead_names, "a dead letter")
        spool.put_bytes(b"{")
        eventually(lambda: len(spool.dead_names()) == 2, "another one")
        told = end(process)
        assert (told["deadLettered"], told["corrupt"]) == (1, 1)


class TestEnding:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_an_interrupt_is_its_normal_end(self, spool, follow, ingest, number):
        spool.put()
        process = follow(ingest)
        eventually(lambda: ingest.requests and not spool.names(), "the event to be sent")
        assert end(process, number) == {"accepted": 1}

    def test_in_a_request_that_hangs_too(self, spool, follow, start_ingest):
        spool.put()
        server = start_ingest(HANG)
        process = follow(server)
        eventually(lambda: server.requests, "a request")
        assert end(process)["remaining"] == 1

    def test_and_while_it_waits(self, spool, follow, start_ingest):
        spool.put()
        server = start_ingest(otherwise=Answer(503, {}, {"Retry-After": "3600"}))
        process = follow(server)
        eventually(lambda: server.requests, "a request")
        holds_for(lambda: process.poll() is None and len(server.requests) == 1, 1.0, "patience")
        assert end(process)["remaining"] == 1

    @pytest.mark.parametrize("status", [401, 403, 404, 308])
    def test_what_a_person_must_mend_ends_it(self, spool, follow, start_ingest, status):
        spool.put()
        process = follow(start_ingest(otherwise=status))
        out, err = process.communicate(timeout=10)
        assert process.returncode == UNSENT and str(status) in err.decode() + out.decode()
        assert counts(read_result(out)) == {"remaining": 1}

    def test_for_people_the_result_is_a_line(self, spool, ingest):
        spool.put()
        process = spool.start("drain", "--to", ingest.url, "--follow")
        eventually(lambda: ingest.requests and not spool.names(), "the event to be sent")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=10)
        assert process.returncode == 0
        assert out.decode().splitlines()[-1] == ("accepted 1, duplicates 0, retried 0, "
                                                 "dead-lettered 0, corrupt 0, remaining 0")

    def test_it_holds_the_lock(self, spool, follow, ingest):
        spool.put()
        process = follow(ingest)
        eventually(lambda: ingest.requests, "a request")
        result = spool.run("drain", "--to", ingest.url)
        assert result.code == LOCKED and str(process.pid) in result.err
        assert spool.status()["drainer"]["pid"] == process.pid


class TestTrouble:
    def test_where_a_run_would_stop_it_waits_as_long_as_it_is_asked_to(self, spool, follow,
                                                                      start_ingest):
        """And what comes meanwhile is not sent before."""
        first = spool.put()
        server = start_ingest(refusal(429, retry_after_seconds=31))
        process = follow(server)
        eventually(lambda: server.requests, "a request")
        later = spool.add()
        holds_for(lambda: process.poll() is None and len(server.requests) == 1, 1.0, "patience")
        assert "_attempts" not in spool.event(first) and set(spool.ids()) == {first, *later}
        assert end(process)["remaining"] >= 1

    def test_an_endpoint_that_comes_back_gets_everything(self, spool, follow, start_ingest):
        # The batch's own retries take 7 s, then 5 s or so go by.
        ids = spool.put_many(2)
        server = start_ingest(503, 503, 503, 503, otherwise=accept_all)
        process = follow(server)
        eventually(lambda: spool.names() == [], "the events to be sent", timeout=40)
        assert server.batches() == [ids] * 5 and 3.5 <= server.gaps()[3] <= 12, server.gaps()
        assert end(process)["accepted"] == 2
