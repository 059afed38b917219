"""Rule 6 and rule 8 of a drain: trouble is waited out and counts against no event, what a person
must mend stops at once, and so does an interrupt.

Real waits take seconds. Those that only have to be sat through run side by side, in one test.
"""

import email.utils
import json
import signal
import socket
import threading
import time

import pytest

from ingest_server import CLOSE, HANG, Answer, IngestServer, accept_all, all_are, refusal
from memory_peak import peak_until_end_kib
from spooling import UNSENT, Spool, counts, read_result, total
from waiting import eventually

# A busy machine gets round to it later, never sooner.
SLACK = 2.5


def assert_waits(gaps, wanted):
    """Each wait is as long as wanted, give or take a quarter."""
    assert len(gaps) == len(wanted), f"{gaps}, expected {wanted}"
    for gap, seconds in zip(gaps, wanted):
        assert seconds * 0.75 - 0.02 <= gap <= seconds * 1.25 + SLACK, f"{gaps}, expected {wanted}"


class Scenario:
    """One drain with its endpoint, in a directory of its own."""

    def __init__(self, folder, *script, events=1, batch=None, otherwise=accept_all):
        folder.mkdir()
        self.spool = Spool(folder / "spool")
        self.ids = self.spool.put_many(events)
        self.before = self.spool.snapshot()
        self.server = IngestServer(*script, otherwise=otherwise)
        self.flags = ["--batch", str(batch)] if batch else []

    def run(self, url=None):
        began = time.monotonic()
        self.result = self.spool.run("drain", "--to", url or self.server.url, "--json", *self.flags,
                                     timeout=90)
        self.seconds = time.monotonic() - began
        self.server.close()
        self.told = read_result(self.result)
        return self

    def assert_untouched(self):
        """Nothing was counted against what is left."""
        for name, data in self.spool.snapshot().items():
            assert data == self.before[name], name
        assert total(self.told) == len(self.ids)


class OddListener:
    """Answers each connection by answer(socket), and knows when they came."""

    def __init__(self, answer):
        self.answer = answer
        self.times = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d/" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # the end
                return
            self.times.append(time.monotonic())
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 202 Accepted\r\n\r\n")
                self.answer(connection)
            except OSError:  # nobody listens any more
                pass


def drip(connection):
    while True:
        connection.sendall(b" ")
        time.sleep(0.3)


def pour(connection):
    while True:
        connection.sendall(b" " * 65536)


class TestWaits:
    """Each of the methods `when_…` takes a directory, runs one drain there and looks at it."""

    def test_all_of_them(self, tmp_path):
        scenarios = [getattr(self, name) for name in dir(self) if name.startswith("when_")]
        wrong = {}

        def run(scenario):
            try:
                scenario(tmp_path / scenario.__name__)
            except BaseException as error:  # told below
                wrong[scenario.__name__] = repr(error)
        threads = [threading.Thread(target=run, args=(scenario,)) for scenario in scenarios]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(scenarios) > 8
        assert not wrong, "\n" + "\n".join(f"{name}: {text}" for name, text in wrong.items())

    def when_every_batch_fails_it_stops_after_three(self, folder):
        case = Scenario(folder, events=8, batch=2, otherwise=503).run()
        assert case.result.code == UNSENT and case.told["stoppedEarly"]
        assert counts(case.told) == {"remaining": 8}
        assert_waits(case.server.gaps(), [1, 2, 4, 2, 1, 2, 4, 4, 1, 2, 4])
        assert case.server.batches() == [case.ids[at:at + 2] for at in (0, 2, 4)
                                         for _ in range(4)]
        case.assert_untouched()

    def when_a_batch_succeeds_the_count_starts_anew(self, folder):
        ids = []

        def judge(request):
            # The first and the third batch have no luck.
            return 500 if {ids[0], ids[2]} & set(request.ids) else accept_all(request)
        case = Scenario(folder, events=4, batch=1, otherwise=judge)
        ids += case.ids
        case.run()
        assert case.result.code == UNSENT and case.told["stoppedEarly"] is False
        assert counts(case.told) == {"accepted": 2, "remaining": 2}
        gaps = case.server.gaps()
        assert_waits(gaps[:4], [1, 2, 4, 2])
        assert gaps[4] < SLACK  # a success is followed at once
        assert_waits(gaps[5:], [1, 2, 4, 2])
        case.assert_untouched()

    def when_nobody_answers_in_30_seconds(self, folder):
        case = Scenario(folder, HANG, accept_all)
        case.run()
        assert case.result.code == 0 and counts(case.told) == {"accepted": 1}
        [gap] = case.server.gaps()
        assert 29.5 <= gap <= 31.25 + 2 * SLACK, gap

    def when_the_answer_comes_drop_by_drop(self, folder):
        """The 30 seconds are those of the whole answer."""
        with OddListener(drip) as listener:
            case = Scenario(folder)
            process = case.spool.start("drain", "--to", listener.url)
            eventually(lambda: len(listener.times) == 2, "a second request", timeout=45)
            process.terminate()
            process.communicate()
        assert 29.5 <= listener.times[1] - listener.times[0] <= 31.25 + 2 * SLACK, listener.times

    def when_the_answer_has_no_end(self, folder):
        with OddListener(pour) as listener:
            case = Scenario(folder)
            process = case.spool.start("drain", "--to", listener.url, "--json")
            peak = peak_until_end_kib(process)
            out, _ = process.communicate()
        assert process.returncode == UNSENT and counts(read_result(out)) == {"remaining": 1}
        assert len(listener.times) == 4 and 0 < peak < 200 * 1024, peak

    def when_nobody_listens(self, folder):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}/"
            case = Scenario(folder).run(url)
        assert case.result.code == UNSENT and counts(case.told) == {"remaining": 1}
        assert 7 * 0.75 <= case.seconds <= 7 * 1.25 + 4 * SLACK, case.seconds
        assert "127.0.0.1" in case.result.err
        case.assert_untouched()

    def when_it_gets_better(self, folder):
        script = [CLOSE, Answer(429, b"slow down"), Answer(502, b"<html>")]
        case = Scenario(folder, *script, events=3).run()
        assert case.result.code == 0 and counts(case.told) == {"accepted": 3}
        assert_waits(case.server.gaps(), [1, 2, 4])
        assert case.server.batches() == [case.ids] * 4

    def when_the_status_is(self, folder):
        folder.mkdir()
        statuses = [408, 429, 500, 501, 502, 503, 504, 507, 599]
        cases = [Scenario(folder / str(status), status) for status in statuses]
        threads = [threading.Thread(target=case.run) for case in cases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for status, case in zip(statuses, cases):
            assert counts(case.told) == {"accepted": 1}, status
            assert_waits(case.server.gaps(), [1])

    def when_the_endpoint_says_how_long_in_a_header(self, folder):
        case = Scenario(folder, Answer(429, {}, {"Retry-After": "3"})).run()
        assert counts(case.told) == {"accepted": 1}
        assert 3 <= case.server.gaps()[0] <= 3 * 1.25 + SLACK, case.server.gaps()

    def when_the_endpoint_says_how_long_as_a_date(self, folder):
        def later(_):
            return Answer(503, {}, {"Retry-After": email.utils.formatdate(time.time() + 5,
                                                                          usegmt=True)})
        case = Scenario(folder, later).run()
        assert counts(case.told) == {"accepted": 1}
        assert 3.9 <= case.server.gaps()[0] <= 5 * 1.25 + SLACK, case.server.gaps()

    def when_the_endpoint_says_how_long_in_its_reply(self, folder):
        case = Scenario(folder, refusal(503, retry_after_seconds=3)).run()
        assert counts(case.told) == {"accepted": 1}
        assert 3 <= case.server.gaps()[0] <= 3 * 1.25 + SLACK, case.server.gaps()

    def when_a_time_makes_no_sense(self, folder):
        script = [Answer(503, {}, {"Retry-After": "soon"}), Answer(503, {}, {"Retry-After": "-5"}),
                  refusal(503, retry_after_seconds="x")]
        case = Scenario(folder, *script).run()
        assert counts(case.told) == {"accepted": 1}
        assert_waits(case.server.gaps(), [1, 2, 4])

    def when_others_must_not_pay(self, folder):
        """Trouble between rejections: only these are counted."""
        case = Scenario(folder, all_are("rejected", "no"), 503, accept_all, events=2, batch=1).run()
        assert case.result.code == 0
        assert counts(case.told) == {"accepted": 1, "retried": 1, "remaining": 1}
        assert case.spool.event(case.ids[0])["_attempts"] == 1

    def when_halves_meet_trouble(self, folder):
        """A batch is refused as a whole, and while the offender is sought the endpoint stumbles."""
        ids = []

        def judge(request):
            return 422 if ids[2] in request.ids else accept_all(request)
        case = Scenario(folder, 422, 503, events=4, otherwise=judge)
        ids += case.ids
        case.run()
        assert counts(case.told) == {"accepted": 3, "retried": 1, "remaining": 1}
        assert case.spool.ids() == [case.ids[2]]


class TestItStopsAtOnce:
    """What a person must mend, and endpoints that want to be left alone."""

    def stopped(self, spool, server, *words):
        ids = spool.put_many(3)
        before = spool.snapshot()
        result = spool.run("drain", "--to", server.url, "--batch", "1", "--json", timeout=10)
        told = read_result(result)
        assert result.code == UNSENT and told["stoppedEarly"] is True
        assert counts(told) == {"remaining": 3} and spool.snapshot() == before
        assert server.batches() == [ids[:1]]
        for word in words:
            assert word in (result.err + told["stopReason"]).lower(), repr(result)
        return result

    @pytest.mark.parametrize("status", [401, 403])
    def test_a_wrong_token(self, spool, start_ingest, status):
        self.stopped(spool, start_ingest(otherwise=status), "token", str(status))

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_redirects_are_not_followed(self, spool, start_ingest, ingest, status):
        server = start_ingest(otherwise=Answer(status, {}, {"Location": ingest.url}))
        self.stopped(spool, server, str(status))
        assert ingest.requests == []

    @pytest.mark.parametrize("status", [300, 304, 402, 404, 405, 406, 409, 410, 411, 415, 426, 451])
    def test_any_other_status_is_a_wrong_address(self, spool, start_ingest, status):
        answer = b"HTTP/1.1 304 Not Modified\r\n\r\n" if status == 304 else status
        self.stopped(spool, start_ingest(otherwise=answer), str(status))

    def test_the_message_says_what_to_do(self, spool, start_ingest):
        spool.put()
        result = spool.run("drain", "--to", start_ingest(404).url)
        assert result.code == UNSENT and "--to" in result.err and "404" in result.err
        result = spool.run("drain", "--to", start_ingest(401).url)
        assert result.code == UNSENT
        assert "--token-file" in result.err and "REPRISE_TOKEN" in result.err
        assert result.out.endswith("remaining 1\n")

    @pytest.mark.parametrize("wait", ["31", "86400", "99999999999999999999",
                                      "Fri, 31 Dec 2100 23:59:59 GMT"])
    @pytest.mark.parametrize("status", [429, 503])
    def test_patience_beyond_30_seconds(self, spool, start_ingest, status, wait):
        self.stopped(spool, start_ingest(otherwise=Answer(status, {}, {"Retry-After": wait})))

    @pytest.mark.parametrize("wait", [30.5, 3600, 1e30])
    def test_the_same_in_the_reply(self, spool, start_ingest, wait):
        self.stopped(spool, start_ingest(otherwise=refusal(503, retry_after_seconds=wait)))

    def test_what_came_before_is_done(self, spool, start_ingest):
        ids = spool.put_many(4)
        told = spool.drain(start_ingest(accept_all, all_are("rejected"), 403).url, "--batch", "1",
                           code=UNSENT)
        assert counts(told) == {"accepted": 1, "retried": 1, "remaining": 3}
        assert spool.ids() == ids[1:]

    def test_an_error_as_json_goes_to_stderr(self, spool, start_ingest):
        spool.put()
        result = spool.run("drain", "--to", start_ingest(401).url, "--json")
        assert result.code == UNSENT and read_result(result)["stopReason"]
        for line in result.err.splitlines():
            assert json.loads(line)["error"]["message"]


class TestInterrupts:
    """Rule 8."""

    def interrupted(self, spool, process, number):
        """The result of a drain that is ended by this signal, within a second."""
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        seconds = time.monotonic() - began
        assert process.returncode == UNSENT, (process.returncode, out, err)
        assert seconds < 1 + SLACK / 2, seconds
        told = read_result(out)
        assert told["stoppedEarly"] is True and told["remaining"] == len(spool.names())
        return told

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_in_a_wait(self, spool, start_ingest, number):
        spool.put_many(2)
        server = start_ingest(accept_all, otherwise=Answer(503, {}, {"Retry-After": "20"}))
        process = spool.start("drain", "--to", server.url, "--batch", "1", "--json")
        eventually(lambda: len(server.requests) == 2, "the second request")
        time.sleep(0.1)  # the answer is on its way; the wait begins
        assert counts(self.interrupted(spool, process, number)) == {"accepted": 1, "remaining": 1}

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_in_a_request_that_hangs(self, spool, start_ingest, number):
        ids = spool.put_many(3)
        server = start_ingest(accept_all, HANG)
        process = spool.start("drain", "--to", server.url, "--batch", "1", "--json")
        eventually(lambda: len(server.requests) == 2, "the second request")
        assert counts(self.interrupted(spool, process, number)) == {"accepted": 1, "remaining": 2}
        assert spool.ids() == ids[1:] and "_attempts" not in spool.event(ids[1])

    def test_while_it_connects(self, spool):
        # A listener whose backlog is full answers no one.
        with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            spool.put()
            process = spool.start("drain", "--json", "--to",
                                  "http://127.0.0.1:%d/" % listener.getsockname()[1])
            eventually(lambda: spool.status()["drainer"], "the drain to begin")
            time.sleep(0.2)
            assert counts(self.interrupted(spool, process, signal.SIGINT)) == {"remaining": 1}

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_between_batches(self, spool, start_ingest, number):
        spool.put_many(300)
        processes = []

        def answer(request):
            if request.index == 3:
                processes[0].send_signal(number)
            return Answer(202, accept_all(request), delay=0.02)
        server = start_ingest(otherwise=answer)
        processes.append(spool.start("drain", "--to", server.url, "--batch", "1", "--json"))
        out, _ = processes[0].communicate(timeout=10)
        told = read_result(out)
        assert processes[0].returncode == UNSENT and told["stoppedEarly"] is True
        assert total(told) == 300 and told["remaining"] == len(spool.names())
        assert 3 <= told["accepted"] < 100
        # One answer may have been on its way; what was taken from the directory was accepted.
        assert len(server.requests) - told["accepted"] in (0, 1)

    def test_afterwards_the_rest_can_be_sent(self, spool, start_ingest):
        ids = spool.put_many(5)
        server = start_ingest(accept_all, HANG)
        process = spool.start("drain", "--to", server.url, "--batch", "2", "--json")
        eventually(lambda: len(server.requests) == 2, "the second request")
        self.interrupted(spool, process, signal.SIGTERM)
        assert counts(spool.drain(server.url)) == {"accepted": 3}
        assert server.ids() == [*ids[:4], *ids[2:]] and spool.temporaries() == []
