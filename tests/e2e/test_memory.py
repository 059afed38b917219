"""Memory stays bounded: whatever the backlog, and whatever clients do not read."""

import os
from pathlib import Path

import pytest

from metrics_text import read_metrics
from raw_http import EventStream, RawConnection, message
from waiting import eventually

MIB = 1 << 20
SMALL = ["--cache-bytes", "8MiB", "--block-cache-bytes", "8MiB", "--overlay-bytes", "4MiB"]


@pytest.fixture
def small(start_server):
    """A server with little memory for caches."""
    return start_server(*SMALL)


def push_backlog(queue, jobs, payload_bytes):
    payload = "x" * (payload_bytes - 2)
    for _ in range(jobs // 1000):
        queue.push(*[payload] * 1000)


def test_a_backlog_of_a_hundred_thousand_jobs_stays_on_disk(small):
    queue = small.client().queue("q").created()
    push_backlog(queue, 2_000, 2048)
    before = small.resident_bytes()
    push_backlog(queue, 100_000, 2048)  # 200 MiB
    assert queue.counts() == {"pending": 102_000}
    assert small.resident_bytes() < before + 100 * MIB
    assert small.resident_bytes() < 200 * MIB

    small.restart()
    queue = queue.through(small.client())
    assert queue.counts() == {"pending": 102_000}
    assert small.resident_bytes() < 200 * MIB
    for _ in range(10):
        queue.client.ack_all(queue.claim(1000))
    assert queue.counts() == {"pending": 92_000}
    assert small.resident_bytes() < 200 * MIB


def test_what_a_flood_needed_goes_back_to_the_system(start_server):
    server = start_server()
    queue = server.client().queue("q").created()
    push_backlog(queue, 2_000, 1024)
    before = server.resident_bytes()
    push_backlog(queue, 150_000, 1024)
    # The caches stay, 32 MiB; what the flood's batches and checkpoints took besides does not.
    eventually(lambda: server.resident_bytes() < before + 45 * MIB, timeout=20)


def test_readers_of_events_that_do_not_read_cost_little(small):
    queue = small.client().queue("q").created()
    push_backlog(queue, 5_000, 10)
    streams = [EventStream(small.port, receive_buffer=4096) for _ in range(50)]
    before = small.resident_bytes()
    push_backlog(queue, 60_000, 10)
    assert small.resident_bytes() < before + 64 * MIB
    for stream in streams:
        stream.connection.close()


def test_a_client_that_asks_and_does_not_read_is_not_answered_ahead(small):
    queue = small.client().queue("q").created()
    push_backlog(queue, 2_000, 1000)
    client = small.client()
    client.get(queue.path("/jobs", limit=1000))
    before = small.resident_bytes()
    ask = message("GET", queue.path("/jobs", limit=1000))
    connections = [RawConnection(small.port, receive_buffer=4096) for _ in range(10)]
    for connection in connections:
        connection.socket.settimeout(0.5)
        try:
            connection.send(ask * 2000)  # 2 GiB of replies, if they were made
        except TimeoutError:
            pass  # the server stopped reading: as it should
    assert client.get("/healthz")
    assert small.resident_bytes() < before + 100 * MIB
    for connection in connections:
        connection.close()


def test_a_client_that_does_not_read_its_reply_is_left(start_server):
    server = start_server("--write-timeout", "300ms")
    queue = server.client().queue("q").created()
    for _ in range(2):
        queue.push(*["x" * (MIB - 2)] * 8)
    with RawConnection(server.port, receive_buffer=4096) as connection:
        connection.send(message("GET", queue.path("/jobs", limit=16)))
        eventually(lambda: queue.client.get("/v1/status")["connections"] == 1,
                   "the connection to be closed")


class TestConnectionLimit:
    @pytest.fixture
    def limited(self, start_server):
        return start_server("--max-connections", "10")

    def test_one_too_many_is_told_so_and_closed(self, limited):
        connections = [RawConnection(limited.port) for _ in range(10)]
        for connection in connections:
            assert connection.send(message("GET", "/healthz")).reply().status == 200
        with RawConnection(limited.port) as extra:
            try:
                extra.send(message("GET", "/healthz"))
            except OSError:
                pass
            reply = extra.reply()
            assert (reply.status, reply.code) == (503, "too_many_connections")
            assert extra.closed_by_peer()
        assert connections[0].send(message("GET", "/healthz")).reply().status == 200

        for connection in connections[1:]:
            connection.close()
        eventually(lambda: self.answers(limited), "room again")
        assert read_metrics(limited.client()).value("reprise_connections_refused_total") >= 1
        connections[0].close()

    def answers(self, server):
        try:
            return server.client().request("GET", "/healthz").status == 200
        except OSError:
            return False


def test_a_thousand_idle_connections_cost_little(small):
    before = small.resident_bytes()
    connections = [RawConnection(small.port) for _ in range(1000)]
    for connection in connections:
        connection.send(message("GET", "/healthz"))
    assert all(connection.reply().status == 200 for connection in connections)
    assert small.resident_bytes() < before + 64 * MIB
    assert open_files(small) > 1000
    for connection in connections:
        connection.close()
    eventually(lambda: open_files(small) < 100, "the connections to be closed here too")


def open_files(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def test_the_limit_of_open_files_is_raised_to_the_hard_limit(server):
    [line] = [line for line in Path(f"/proc/{server.pid}/limits").read_text().splitlines()
              if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard


def test_the_disk_space_of_finished_jobs_is_used_again(small):
    queue = small.client().queue("q").created()

    def disk_bytes():
        return sum(path.stat().st_size for path in small.data.rglob("*") if path.is_file())

    for _ in range(150):  # 150 MiB in all
        queue.push(*["x" * 1022] * 1000)
        queue.client.ack_all(queue.claim(1000))
    eventually(lambda: disk_bytes() < 100 * MIB, "the disk space", timeout=20, every=0.2)
