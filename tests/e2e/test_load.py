"""Many clients, queues, jobs and bytes at once. Small here; `make load` runs the same at full size
(LOAD=full) and prints the figures."""

import base64
import os
import time

import pytest

from crowd import Crowd, allow_open_files, percentile
from waiting import eventually

FULL = os.environ.get("LOAD") == "full"
MIB = 1 << 20
# Whatever the size: docs/configuration.md, "Memory".
BASE_BYTES = 192 * MIB
CONNECTION_BYTES = 100 << 10
LARGE_BYTES = 256 * MIB


def tell(text):
    print(f"\n  {text}", end="", flush=True)


def latencies(action, seconds):
    """Seconds of each call, one after the other, for this long."""
    found = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.monotonic()
        action()
        found.append(time.monotonic() - started)
    return found


class TestCrowd:
    SIZES = dict(idle=10_000, active=1_000, slow=5_000, silent=200) if FULL else dict(
        idle=400, active=50, slow=200, silent=20)
    SECONDS = 60 if FULL else 4
    PATIENCE = 40 if FULL else 3
    # So that the slow are turned out, and come back, within the time.
    TIMEOUTS = [] if FULL else ["--header-timeout", "2s", "--write-timeout", "2s"]
    # Beside other tests a p99 of a few hundred calls is a matter of luck below this.
    NOISE_SECONDS = 0.005 if FULL else 0.250

    def test_a_healthy_client_is_hardly_slowed_and_memory_keeps_its_cap(self, start_server):
        connections = sum(self.SIZES.values())
        assert allow_open_files(connections + 1000), "the limit of open files is too low"
        server = start_server("--max-connections", str(connections + 500), *self.TIMEOUTS)
        client = server.client()
        client.queue("busy").create()
        healthy = client.queue("healthy").created()

        def work():
            healthy.push("x")
            client.ack(healthy.claim_one())
        alone = latencies(work, self.SECONDS / 2)
        with Crowd(server.port, **self.SIZES, patience=self.PATIENCE) as crowd:
            peak, connected, watcher, next_look = 0, [], server.client(), time.monotonic()

            def watched_work():
                nonlocal peak, next_look
                work()
                peak = max(peak, server.resident_bytes())
                if time.monotonic() > next_look:
                    connected.append(watcher.get("/v1/status")["connections"])
                    next_look += 0.5
            among = latencies(watched_work, self.SECONDS)
            seen = crowd.end()
        before, after = percentile(alone, 0.99), percentile(among, 0.99)
        cap = BASE_BYTES + CONNECTION_BYTES * connections + LARGE_BYTES
        # They came together, so those that are turned out are, and are away for a moment.
        usual = percentile(connected, 0.5)
        tell(f"{connections} clients, {usual} connected most of the time: p99 of push, claim and ack "
             f"{1000 * before:.1f} ms alone, {1000 * after:.1f} ms among them; "
             f"memory {peak / MIB:.0f} MiB of {cap / MIB:.0f}; {seen}")
        assert usual > 0.9 * connections and max(connected) > 0.95 * connections
        assert seen["idle"]["200"] >= self.SIZES["idle"]
        assert seen["active"]["200"] >= self.SIZES["active"] and set(seen["active"]) == {"200"}
        assert seen["slow"]["408"] > 0 and seen["silent"]["gone"] > 0
        assert after < 3 * max(before, self.NOISE_SECONDS)
        assert peak < cap
        # All of them leave at once, and nothing of them is left.
        eventually(lambda: client.get("/v1/status")["connections"] < 10, "them to be gone", 30)


def test_many_queues(start_server):
    count = 10_000 if FULL else 500
    server = start_server()
    client = server.client()
    before = server.resident_bytes()
    started = time.monotonic()
    for number in range(count):
        client.call("PUT", f"/v1/queues/q{number}", {}, status=201)
    made = time.monotonic() - started
    for number in range(0, count, 10):
        client.queue(f"q{number}").push(number)
    listed = client.get("/v1/queues")["queues"]
    assert len(listed) == count
    assert sum(queue["stats"]["pending"] for queue in listed) == count // 10
    started = time.monotonic()
    assert client.request("GET", "/metrics").status == 200
    told = time.monotonic() - started
    grown = server.resident_bytes() - before
    started = time.monotonic()
    server.restart()
    restarted = time.monotonic() - started
    client = server.client()
    assert client.get("/v1/status")["queues"] == count
    for number in (0, count - 10):
        assert client.queue(f"q{number}").claim_one()["payload"] == number
    tell(f"{count} queues: made at {count / made:.0f}/s, metrics in {1000 * told:.0f} ms, "
         f"{grown / count / 1024:.1f} KiB each, restarted in {restarted:.2f} s")
    assert grown < 16 * MIB + count * (16 << 10)
    assert told < 5


def test_many_jobs_due_in_the_same_second(start_server):
    count = 1_000_000 if FULL else 10_000
    server = start_server()
    client = server.client()
    queue = client.queue("due").created()
    body = '{"payload":1,"delay":"%dms"}'
    started = time.monotonic()
    # Long enough to push them all: tried on a slow machine.
    due = time.monotonic() + (90 if FULL else 5)
    for _ in range(count // 1000):
        left = due - time.monotonic()
        assert left > 0, "too slow to push them before they are due"
        job = body % (1000 * left)
        reply = client.request("POST", queue.path("/push"),
                               f'{{"jobs":[{",".join([job] * 1000)}]}}'.encode())
        assert reply.status == 200
    pushed = time.monotonic() - started
    assert queue.counts() == {"scheduled": count}
    held = server.resident_bytes()
    other = client.queue("other").created()

    def work():
        other.push("x")
        client.ack(other.claim_one())
    calls = []

    def all_due():
        started = time.monotonic()
        work()
        calls.append(time.monotonic() - started)
        return queue.stats()["scheduled"] == 0
    eventually(all_due, "all to be due", 300)
    late = time.monotonic() - due
    assert queue.counts() == {"pending": count}
    ids = set()
    started = time.monotonic()
    while jobs := queue.claim(1000):
        ids.update(job["id"] for job in jobs)
        client.ack_all(jobs)
    took = time.monotonic() - started
    tell(f"{count} jobs due at once: pushed in {pushed:.0f} s, all pending {late:.2f} s after "
         f"their time, memory {held / MIB:.0f} MiB; another queue's work took "
         f"{1000 * max(calls):.0f} ms at the most; served in {took:.0f} s")
    assert len(ids) == count and queue.counts() == {}
    assert late < (15 if FULL else 5) and max(calls) < (10 if FULL else 3)
    assert held < BASE_BYTES + 32 * count


class TestPayloads:
    """Of no byte, and of as many as there may be."""

    @pytest.mark.parametrize("most", [MIB, 64 * MIB] if FULL else [MIB])
    def test_none_and_the_most(self, start_server, most):
        server = start_server("--max-payload-bytes", str(most), "--max-batch-bytes", str(most),
                              "--max-body-bytes", str(2 * most))
        queue = server.client().queue("q").created()
        sizes = [0, 1, most - 1, most]
        for size in sizes:
            data = base64.b64encode(b"\xff" * size).decode()
            [result] = queue.push_jobs([{"payload_base64": data}])
            assert result["status"] == "pushed"
        too_large = base64.b64encode(bytes(most + 1)).decode()
        reply = queue.client.request("POST", queue.path("/push"),
                                     {"jobs": [{"payload_base64": too_large}]})
        assert reply.status == 413
        server.restart()
        queue = queue.through(server.client())
        for size in sizes:
            job = queue.claim_one()
            assert base64.b64decode(job["payload_base64"]) == b"\xff" * size
            queue.client.ack(job)
        tell(f"payloads up to {most / MIB:.0f} MiB: memory {server.resident_bytes() / MIB:.0f} MiB")
