"""When the disk is full or fails: nothing is promised that is not kept, and the server says so."""

import fcntl
import http.client
import os
import tempfile
from pathlib import Path

import pytest

from background import in_background
from metrics_text import read_metrics
from raw_http import EventStream, RawConnection, push_message
from waiting import eventually, holds_for

COULD_NOT_START, STORAGE_FAILED = 1, 70
GIB = 1 << 30


class TroubledDisk:
    """A server on a disk that can be broken, slow or full for a while."""

    def __init__(self, start_server, library, folder, *args):
        self.broken, self.slow, self.full = (
            Trouble(folder / name) for name in ("broken", "slow", "full"))
        self.server = start_server(*args, env={
            "LD_PRELOAD": str(library), "DISK_SYNC_FAILS_WHEN": str(self.broken.path),
            "DISK_SYNC_WAITS_WHEN": str(self.slow.path), "DISK_IS_FULL_WHEN": str(self.full.path)})


class Trouble:
    def __init__(self, path):
        self.path = path

    def begins(self):
        self.path.touch()

    def ends(self):
        self.path.unlink()


@pytest.fixture
def breakable(start_server, disk_shim, tmp_path):
    return TroubledDisk(start_server, disk_shim, tmp_path)


def succeeded(request):
    """Whether a request got a 200. No answer is no promise either."""
    try:
        return request().status == 200
    except (OSError, http.client.HTTPException):
        return False


class TestFailedSync:
    def requests(self, queue):
        """Every call that changes something, as functions. The queue has three leases out."""
        client = queue.client
        queue.push(*range(5))
        leases = queue.claim(4)

        def end(verb, job):
            return lambda: client.request("POST", f"/v1/{verb}", {"leases": [
                {"token": job["token"]}]})
        return {
            "push": lambda: client.request("POST", queue.path("/push"), {"jobs": [{}]}),
            "claim": lambda: client.request("POST", queue.path("/claim"), {}),
            "ack": end("ack", leases[0]), "fail": end("fail", leases[1]),
            "release": end("release", leases[2]), "extend": end("extend", leases[3]),
            "create": lambda: client.request("PUT", "/v1/queues/another", {}),
            "drop": lambda: client.request("DELETE", queue.path(f"/jobs/{leases[0]['id']}")),
            "pause": lambda: client.request("POST", queue.path("/pause")),
        }

    @pytest.mark.parametrize("what", ["push", "claim", "ack", "fail", "release", "extend",
                                      "create", "drop", "pause"])
    def test_it_is_no_success_and_ends_the_server_with_a_reason(self, breakable, what):
        queue = breakable.server.client().queue("q").created()
        request = self.requests(queue)[what]
        breakable.broken.begins()
        assert not succeeded(request)
        assert breakable.server.wait(10) == STORAGE_FAILED
        log = breakable.server.log().lower()
        assert "sync" in log or "input/output error" in log, log

    def test_what_was_acknowledged_is_there_after_the_restart(self, breakable):
        server = breakable.server
        queue = server.client().queue("q").created()
        acknowledged = [queue.push_one(n, key=f"k{n}") for n in range(20)]
        finished = queue.claim(5)
        queue.client.ack_all(finished)
        held = queue.claim_one()
        breakable.broken.begins()
        assert not succeeded(lambda: queue.client.request(
            "POST", queue.path("/push"), {"jobs": [{"payload": "doubtful"}]}))
        assert server.wait(10) == STORAGE_FAILED
        breakable.broken.ends()
        server.start()
        queue = queue.through(server.client())
        stored = [job["id"] for job in queue.all_jobs()]
        gone = {job["id"] for job in finished}
        assert [job_id for job_id in stored if job_id in acknowledged] == [
            job_id for job_id in acknowledged if job_id not in gone]
        assert len(stored) in (15, 16)
        assert queue.client.ack(held)["status"] == "acked"
        queue.push("it works again")

    def test_it_is_not_retried(self, breakable):
        """A second sync may succeed although the pages of the first are lost."""
        queue = breakable.server.client().queue("q").created()
        breakable.broken.begins()
        assert not succeeded(lambda: queue.client.request(
            "POST", queue.path("/push"), {"jobs": [{}]}))
        breakable.broken.ends()
        assert breakable.server.wait(10) == STORAGE_FAILED

    def test_a_waiting_claim_is_promised_nothing(self, breakable):
        queue = breakable.server.client().queue("q").created()
        own = breakable.server.client()
        claim = in_background(own.request, "POST", queue.path("/claim"), {"wait": "30s"})
        eventually(lambda: queue.stats()["waiting_claims"] == 1, "the claim to wait")
        breakable.broken.begins()
        assert not succeeded(lambda: queue.client.request(
            "POST", queue.path("/push"), {"jobs": [{}]}))
        assert not succeeded(lambda: claim.result(10)) or claim.result().json() == {"jobs": []}
        assert breakable.server.wait(10) == STORAGE_FAILED


class TestReplies:
    """A reply is a promise: in sync mode it leaves after the sync and not before."""

    def push(self, queue):
        own = queue.through(type(queue.client)(queue.client.port))
        return in_background(own.push_one, "x")

    def test_no_reply_and_no_event_leave_before_the_sync(self, breakable):
        queue = breakable.server.client().queue("q").created()
        with EventStream(breakable.server.port) as stream:
            told = in_background(stream.next)
            breakable.slow.begins()
            pushed = self.push(queue)
            holds_for(lambda: not pushed.done() and not told.done(), 0.3, "the silence")
            breakable.slow.ends()
            assert told.result(5).data["id"] == pushed.result(5)

    def test_the_process_shows_that_it_lives_while_a_sync_takes_its_time(self, breakable):
        queue = breakable.server.client().queue("q").created()
        breakable.slow.begins()
        pushed = self.push(queue)
        assert breakable.server.client().get("/healthz") == {"status": "ok"}
        breakable.slow.ends()
        assert pushed.result(5)

    def test_many_pushes_share_one_sync(self, breakable):
        client = breakable.server.client()
        queue = client.queue("q").created()
        before = read_metrics(client).value("reprise_commit_seconds_count")
        connections = [RawConnection(breakable.server.port) for _ in range(20)]
        breakable.slow.begins()
        for connection in connections:
            connection.send(push_message(queue, "x"))
            assert client.get("/healthz")  # by then the push has been read
        breakable.slow.ends()
        assert all(connection.reply().status == 200 for connection in connections)
        assert read_metrics(client).value("reprise_commit_seconds_count") - before <= 10
        for connection in connections:
            connection.close()

    def test_without_durability_no_reply_waits_for_a_sync(self, start_server, disk_shim,
                                                           tmp_path):
        disk = TroubledDisk(start_server, disk_shim, tmp_path, "--durability", "none")
        queue = disk.server.client().queue("q").created()
        disk.slow.begins()
        try:
            assert self.push(queue).result(5)
        finally:
            disk.slow.ends()


class TestNoSpaceLeft:
    """The reserve is there so that this does not happen. When it does, what was set aside for the
    journal is enough to go on with what frees space, and nothing is lost."""

    def test_pushes_are_refused_acks_succeed_and_service_comes_back(self, breakable):
        queue = breakable.server.client().queue("q").created()
        acknowledged = queue.push(*range(1000))
        breakable.full.begins()
        kilobytes = "x" * 100_000
        for _ in range(500):
            reply = queue.client.request("POST", queue.path("/push"),
                                         {"jobs": [{"payload": kilobytes}]})
            if reply.status != 200:
                break
            acknowledged.append(reply.json()["results"][0]["id"])
        assert reply.status == 507, reply.json()
        finished = queue.claim(1000)
        for start in range(0, 1000, 10):
            queue.client.ack_all(finished[start:start + 10])
        assert queue.client.refused("GET", "/readyz") == (507, "disk_full")
        breakable.full.ends()
        eventually(lambda: queue.client.request(
            "POST", queue.path("/push"), {"jobs": [{"payload": "room again"}]}).status == 200,
            "pushes to go on", timeout=10)
        gone = {job["id"] for job in finished}
        stored = [job["id"] for job in queue.all_jobs(limit=1000)]
        assert stored[:-1] == [job_id for job_id in acknowledged if job_id not in gone]

    def test_a_crash_on_a_full_disk_loses_nothing(self, breakable):
        server = breakable.server
        queue = server.client().queue("q").created()
        breakable.full.begins()
        acknowledged = queue.push(*range(100))
        server.kill()
        breakable.full.ends()
        server.start()
        stored = [job["id"] for job in queue.through(server.client()).all_jobs(limit=1000)]
        assert stored == acknowledged

    @pytest.mark.parametrize("how", ["stop", "kill"])
    def test_a_server_that_cannot_start_for_it_says_so(self, breakable, how):
        server = breakable.server
        acknowledged = server.client().queue("q").created().push(*range(100))
        server.terminate() if how == "stop" else server.kill()
        breakable.full.begins()
        server.launch()
        assert server.wait(10) == COULD_NOT_START
        assert "no space left" in server.log().lower()
        breakable.full.ends()
        server.start()
        stored = server.client().queue("q").all_jobs(limit=1000)
        assert [job["id"] for job in stored] == acknowledged


class TestDiskReserve:
    @pytest.fixture
    def disk_to_itself(self):
        """One test at a time fills the disk, whoever runs tests on this machine."""
        with open(Path(tempfile.gettempdir()) / "reprise-test-disk.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @pytest.fixture
    def filled(self, disk_to_itself, start_server):
        """A server and a function that fills the disk up to its reserve, and one that undoes it."""
        server = start_server(ready=False)
        stat = os.statvfs(server.folder)
        free = stat.f_bavail * stat.f_frsize
        room = min(2 * GIB, free // 8)
        server.start("--disk-reserve", str(free - room))
        big = server.folder / "big"

        def fill():
            with open(big, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 2 * room)

        return server, fill, big.unlink

    def refused(self, queue):
        reply = queue.client.request("POST", queue.path("/push"), {"jobs": [{"payload": "no"}]})
        if reply.status == 200:
            return False
        error = reply.json().get("error") or reply.json()["results"][0]["error"]
        assert (reply.status, error["code"]) == (507, "disk_full")
        return True

    def test_pushes_stop_at_the_reserve_and_go_on_by_themselves(self, filled):
        server, fill, empty = filled
        client = server.client()
        queue = client.queue("q").created(retry={"attempts": 9, "cooldown": "0s"})
        queue.push(*range(10))
        fill()
        eventually(lambda: self.refused(queue), "pushes to be refused", timeout=15)
        stored = queue.stats()["totals"]["pushed"]

        jobs = queue.claim(4)
        assert len(jobs) == 4
        assert client.ack(jobs[0])["status"] == "acked"
        assert client.fail(jobs[1], error="x")["status"] == "retrying"
        assert client.release(jobs[2])["status"] == "released"
        assert client.extend(jobs[3])["status"] == "extended"
        queue.drop(jobs[3]["id"])
        assert self.refused(queue) and queue.stats()["totals"]["pushed"] == stored

        assert client.get("/v1/status")["disk_low"] is True
        assert read_metrics(client).value("reprise_disk_low") == 1
        assert client.refused("GET", "/readyz") == (507, "disk_full")

        empty()
        eventually(lambda: not self.refused(queue), "pushes to go on", timeout=15)
        assert client.get("/v1/status")["disk_low"] is False
        assert client.get("/readyz") == {"status": "ready"}

    def test_a_server_starts_on_a_full_disk_and_serves_what_it_has(self, filled):
        server, fill, _ = filled
        server.client().queue("q").created().push("x")
        server.terminate()
        fill()
        server.start()
        queue = server.client().queue("q")
        eventually(lambda: self.refused(queue), "pushes to be refused", timeout=15)
        assert queue.client.ack(queue.claim_one())["status"] == "acked"
