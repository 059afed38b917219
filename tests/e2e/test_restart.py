"""What survives: everything, whether the server was asked to stop or was killed."""

import json
import os
import signal
import threading
import time

import pytest

from background import claim_in_background, in_background
from raw_http import EventStream, RawConnection, push_message
from reprise_server import Server, folder_contains
from times import seconds_since_1970
from waiting import eventually, time_passes

RESTARTS = ["stop", "kill"]
STOP_SECONDS_MAX = 5


def reopened(server, queue, how):
    """The same queue after a restart."""
    server.restart(how)
    return queue.through(server.client())


@pytest.fixture
def lived_in(server):
    """A server whose queue has jobs of every status, and a past."""
    client = server.client()
    queue = client.queue("q", "ns").created(
        lease="1h", ttl="7d", retry={"attempts": 4, "cooldown": "1h"}, max_jobs=5000,
        max_bytes=10**9, key_window="48h")
    queue.push(*range(8))
    queue.push_one("scheduled", delay="1h", headers={"a": "b"}, priority=3)
    queue.push_one("keyed", key="key", ttl="1h")
    queue.push_jobs([{"payload_base64": "AAEC/w=="}, {"key": "key"}])
    acked, failed, dead, released, dropped, later, held = queue.claim(7, worker="host-1")
    client.ack(acked)
    client.fail(failed, error="try again é")
    client.fail(dead, error="hopeless", final=True)
    client.release(released)
    client.release(later, delay="2h")
    queue.drop(dropped["id"])
    client.extend(held, lease="2h")
    server.queue, server.held = queue, held
    return server


@pytest.mark.parametrize("how", RESTARTS)
def test_jobs_leases_histories_counts_and_config_survive(lived_in, how):
    before, jobs = lived_in.queue.snapshot()
    whole = [lived_in.queue.job(job["id"]) for job in jobs]
    assert lived_in.queue.counts() == {"scheduled": 2, "pending": 4, "active": 1, "failed": 1,
                                       "dead": 1}
    queue = reopened(lived_in, lived_in.queue, how)
    assert queue.snapshot() == (before, jobs)
    assert [queue.job(job["id"]) for job in jobs] == whole
    assert queue.client.ack(lived_in.held)["status"] == "acked"


@pytest.mark.parametrize("how", RESTARTS)
def test_everything_still_works_after_several_restarts(lived_in, how):
    queue = lived_in.queue
    for _ in range(3):
        queue = reopened(lived_in, queue, how)
        queue.push("more")
    assert queue.counts()["pending"] == 7
    served = queue.claim(100)
    assert len(served) == 7 and len({job["id"] for job in served}) == 7
    assert {r["status"] for r in queue.client.ack_all(served)} == {"acked"}


@pytest.mark.parametrize("how", RESTARTS)
def test_a_paused_queue_stays_paused(server, how):
    queue = server.client().queue("q").created()
    queue.push(1)
    queue.pause()
    queue = reopened(server, queue, how)
    assert queue.show()["paused"] is True and queue.claim() == []
    queue.resume()
    assert reopened(server, queue, how).claim_one()["payload"] == 1


@pytest.mark.parametrize("how", RESTARTS)
def test_keys_are_remembered(server, how):
    queue = server.client().queue("q").created()
    waiting, finished = queue.push_one(1, key="waiting"), queue.push_one(2, key="finished")
    queue.client.ack_all([job for job in queue.claim(2) if job["id"] == finished])
    queue = reopened(server, queue, how)
    results = queue.push_jobs([{"key": "waiting"}, {"key": "finished"}, {"key": "new"}])
    assert [r["status"] for r in results] == ["duplicate", "duplicate", "pushed"]
    assert [r["id"] for r in results[:2]] == [waiting, finished]


@pytest.mark.parametrize("how", RESTARTS)
def test_a_key_is_forgotten_at_the_end_of_its_window_also_across_a_restart(server, how):
    queue = server.client().queue("q").created(key_window="500ms")
    queue.push_one(1, key="k")
    queue = reopened(server, queue, how)
    eventually(lambda: queue.push_jobs([{"key": "k"}])[0]["status"] == "pushed",
               "the key to be forgotten")


@pytest.mark.parametrize("how", RESTARTS)
def test_the_attempts_go_on_counting(server, how):
    queue = server.client().queue("q").created(retry={"attempts": 3, "cooldown": "0s"})
    job_id = queue.push_one(1)
    ends = []
    for attempt in (1, 2, 3):
        job = eventually(queue.claim, "the job")[0]
        assert (job["attempts"], job["failures"]) == (attempt, attempt - 1)
        ends.append(queue.client.fail(job, error=f"error {attempt}")["status"])
        queue = reopened(server, queue, how)
    assert ends == ["retrying", "retrying", "dead"]
    meta = queue.job(job_id)["dead_letter"]["meta"]
    assert (meta["attempts"], meta["lastError"]) == (3, "error 3")
    assert [entry["error"] for entry in meta["history"]] == ["error 1", "error 2", "error 3"]


@pytest.mark.parametrize("how", RESTARTS)
def test_a_delay_that_ends_while_the_server_is_away_is_over_at_the_start(server, how):
    queue = server.client().queue("q").created()
    due_at = queue.job(queue.push_one("x", delay="300ms"))["due_at"]
    queue.push("y", delay="1h")
    server.kill() if how == "kill" else server.terminate()
    time_passes(seconds_since_1970(due_at))
    server.start()
    queue = queue.through(server.client())
    assert [job["payload"] for job in eventually(lambda: queue.claim(2))] == ["x"]
    assert queue.counts() == {"scheduled": 1, "active": 1}


@pytest.mark.parametrize("how", RESTARTS)
def test_a_lease_that_ends_while_the_server_is_away_has_expired_at_the_start(server, how):
    queue = server.client().queue("q").created(retry={"attempts": 5, "cooldown": "0s"})
    queue.push("x")
    job = queue.claim_one(lease="300ms")
    server.kill() if how == "kill" else server.terminate()
    time_passes(seconds_since_1970(job["lease_expires_at"]))
    server.start()
    queue = queue.through(server.client())
    again = eventually(queue.claim, "the expired job")[0]
    assert (again["attempts"], again["failures"]) == (2, 1)
    assert queue.client.ack(job, status=409)["error"]["code"] == "lease_lost"
    assert queue.client.ack(again)["status"] == "acked"


@pytest.mark.parametrize("how", RESTARTS)
def test_a_lease_is_kept_across_a_restart_until_its_own_deadline(server, how):
    queue = server.client().queue("q").created(retry={"attempts": 5, "cooldown": "0s"})
    queue.push("x")
    job = queue.claim_one(lease="2s")
    queue = reopened(server, queue, how)
    assert queue.claim() == []
    again = eventually(queue.claim, "the job again")[0]
    assert again["id"] == job["id"]
    assert time.time() >= seconds_since_1970(job["lease_expires_at"])


def test_ids_are_never_given_out_twice(server):
    queue = server.client().queue("q").created()
    seen = []
    for how in ("kill", "stop", "kill"):
        seen += queue.push(*range(5))
        queue.client.ack_all(queue.claim(100))
        queue = reopened(server, queue, how)
    queue.delete()
    queue = reopened(server, queue, "kill").created()
    seen += queue.push(*range(5))
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("how", RESTARTS)
def test_a_deleted_queue_stays_deleted(server, how):
    client = server.client()
    client.queue("kept").created().push(1)
    gone = client.queue("gone").created()
    gone.push(*range(100))
    gone.delete()
    server.restart(how)
    client = server.client()
    assert [each["name"] for each in client.get("/v1/queues")["queues"]] == ["kept"]
    assert client.queue("gone").created().claim() == []


class TestStopping:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_signal_ends_it_cleanly(self, server, number):
        assert server.port_file.exists()
        server.signal(number)
        assert server.wait(STOP_SECONDS_MAX) == 0
        assert not server.port_file.exists()

    def test_it_stops_in_time_under_load_and_keeps_what_it_acknowledged(self, server):
        queue = server.client().queue("q").created()
        idle = server.client().queue("idle").created()
        waiting = [claim_in_background(idle) for _ in range(20)]
        eventually(lambda: idle.stats()["waiting_claims"] == 20, "the claims to wait")
        acknowledged, stop = [], threading.Event()

        def load():
            own = queue.through(server.client())
            while not stop.is_set():
                try:
                    reply = own.client.request("POST", own.path("/push"),
                                               {"jobs": [{"payload": "x" * 500}]})
                except OSError:
                    return
                if reply.status == 200:
                    acknowledged.append(reply.json()["results"][0]["id"])
                elif reply.code != "shutting_down":
                    raise AssertionError(reply)

        loaders = [in_background(load) for _ in range(4)]
        eventually(lambda: len(acknowledged) > 50, "some load")
        code, seconds = server.terminate()
        stop.set()
        for loader in loaders:
            try:
                loader.result(10)
            except Exception as error:  # cut off in the middle of a request: neither yes nor no
                assert type(error).__name__ in ("RemoteDisconnected", "BadStatusLine",
                                                "IncompleteRead"), error
        assert code == 0 and seconds < STOP_SECONDS_MAX
        assert [claim.result(5) for claim in waiting] == [[]] * 20
        server.start()
        stored = {job["id"] for job in
                  queue.through(server.client()).all_jobs(limit=1000)}
        assert set(acknowledged) <= stored

    def test_an_open_event_stream_does_not_delay_it(self, server):
        with EventStream(server.port):
            code, seconds = server.terminate()
        assert code == 0 and seconds < STOP_SECONDS_MAX

    def test_a_connection_that_does_nothing_does_not_delay_it(self, server):
        with RawConnection(server.port) as idle, RawConnection(server.port) as begun:
            begun.send(b"POST /v1/ack HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{")
            assert idle
            code, seconds = server.terminate()
        assert code == 0 and seconds < STOP_SECONDS_MAX


    def test_requests_under_way_are_answered(self, server):
        queue = server.client().queue("q").created()
        push = push_message(queue, "under way")
        with RawConnection(server.port) as pushing, RawConnection(server.port) as asking:
            pushing.send(push[:-5])
            asking.send(b"GET /readyz HTTP/1.1\r\n")
            eventually(lambda: queue.client.get("/v1/status")["connections"] == 3, "both")
            server.signal(signal.SIGTERM)
            eventually(lambda: "stopping" in server.log(), "the stop to begin")
            asking.send(b"Host: localhost\r\n\r\n")
            reply = asking.reply()
            assert (reply.status, reply.code) == (503, "shutting_down")
            assert pushing.send(push[-5:]).reply().status == 200
        assert server.wait(STOP_SECONDS_MAX) == 0
        server.start()
        assert queue.through(server.client()).claim_one()["payload"] == "under way"

    @pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
    def test_a_second_signal_cuts_it_short_and_loses_nothing(self, server, number, code):
        queue = server.client().queue("q").created()
        queue.push("x")
        with RawConnection(server.port) as slow:
            slow.send(push_message(queue, "never whole")[:-5])
            eventually(lambda: queue.client.get("/v1/status")["connections"] == 2, "both")
            server.signal(number)
            eventually(lambda: "stopping" in server.log(), "the stop to begin")
            server.signal(number)
            assert server.wait(2) == code
        server.start()
        assert queue.through(server.client()).counts() == {"pending": 1}


class TestOneServerPerDirectory:
    def test_a_second_one_is_refused_by_name_and_the_first_goes_on(self, server, start_server):
        queue = server.client().queue("q").created()
        second = start_server(ready=False)
        second.data = server.data
        second.launch()
        assert second.wait() == 1
        assert str(server.data) in second.log()
        queue.push(1)
        assert queue.claim_one()["payload"] == 1

    def test_an_address_in_use_is_named(self, server, start_server):
        second = start_server(listen=f"127.0.0.1:{server.port}", ready=False)
        second.launch()
        assert second.wait() == 1
        assert str(server.port) in second.log()

    def test_a_directory_that_cannot_be_made_is_named(self, start_server):
        server = start_server(ready=False)
        server.data = "/proc/reprise"
        server.launch()
        assert server.wait() == 1 and "/proc/reprise" in server.log()

    def test_a_directory_of_something_else_is_left_alone(self, start_server):
        server = start_server(ready=False)
        server.data = server.folder / "not-a-directory"
        server.data.write_text("precious")
        server.launch()
        assert server.wait() == 1 and "not-a-directory" in server.log()
        assert server.data.read_text() == "precious"


def test_deleting_a_queue_takes_its_bytes_off_the_disk(server):
    queue = server.client().queue("q").created()
    marker = os.urandom(24).hex()
    for block in range(10):
        queue.push(*[f"{marker} {n} " + os.urandom(500).hex() for n in range(100)])
    queue.push_one("x", headers={"h": marker}, key=marker)
    queue.client.leases("fail", [{"token": job["token"], "final": True, "error": marker}
                                 for job in queue.claim(200)])
    keep = queue.sibling("keep").created()
    kept = json.dumps([os.urandom(16).hex()])
    keep.push(kept)
    assert folder_contains(server.data, marker.encode())
    queue.delete()
    eventually(lambda: not folder_contains(server.data, marker.encode()),
               "the bytes to leave the disk", timeout=30, every=0.25)
    server.restart()
    assert keep.through(server.client()).claim_one()["payload"] == kept
    assert not folder_contains(server.data, marker.encode())


def test_the_server_class_of_these_tests_leaves_nothing_behind():
    server = Server().start()
    pid, folder = server.pid, server.folder
    server.dispose()
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
