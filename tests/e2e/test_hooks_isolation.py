"""One queue's hooks delay nobody but that queue."""

import threading
import time

import pytest

from background import in_background
from hooking import (BURY, PATIENT_MS, calls_in_metrics, calls_of, fail_many, fail_one,
                     hook_processes, on_enqueue, on_failure)
from metrics_text import read_metrics
from reprise_http import Client
from reprise_server import Server
from waiting import eventually

SECONDS_FOR_200_CALLS = 5
LOOP = "while true do pcall(function() while true do end end) end"
LOOPERS = 3


class Looper:
    """A queue whose script never ends, with somebody who goes on using it. Its script is set anew
    again and again, so that its breaker does not save the others."""

    def __init__(self, server, number, stop):
        self.queue = server.client().queue(f"looper-{number}")
        self.queue.create(on_hook_error="dlq", hook_timeout_ms=200)
        self.stop = stop
        self.calls = 0
        self.done = in_background(self.run)

    def run(self):
        while not self.stop.is_set():
            self.queue.patch(on_failure=on_failure(f"-- {self.calls}\n{LOOP}"))
            results = fail_many(self.queue, 3)
            assert {result["reason"] for result in results} == {"hook_error"}
            self.calls += 3


@pytest.fixture(scope="module")
def busy():
    """A server some of whose queues have scripts that loop, all the time."""
    server = Server().start()
    stop = threading.Event()
    loopers = [Looper(server, number, stop) for number in range(LOOPERS)]
    try:
        eventually(lambda: all(looper.calls for looper in loopers), "the loops to turn", 20)
        yield server
        before = [looper.calls for looper in loopers]
        eventually(lambda: all(looper.calls > calls for looper, calls in zip(loopers, before)),
                   "the loops to go on", 20)
        stop.set()
        for looper in loopers:
            looper.done.result(20)
        assert server.alive()
    finally:
        stop.set()
        server.dispose()


@pytest.fixture
def client(busy, request):
    request.node.started_servers = [busy]
    client = busy.client()
    yield client
    client.close()


def test_failures_of_another_hook_are_decided_in_time(client):
    queue = client.queue("healthy").created(on_failure=BURY, hook_timeout_ms=PATIENT_MS)
    started = time.monotonic()
    for _ in range(4):
        assert {result["reason"] for result in fail_many(queue, 50)} == {"buried"}
    assert time.monotonic() - started < SECONDS_FOR_200_CALLS
    assert calls_of(queue) == (200, {})


def test_single_failures_of_another_hook_are_decided_in_time(client):
    queue = client.queue("single").created(on_failure=BURY, hook_timeout_ms=PATIENT_MS)
    slowest = 0
    for _ in range(20):
        started = time.monotonic()
        assert fail_one(queue)["reason"] == "buried"
        slowest = max(slowest, time.monotonic() - started)
    assert slowest < 2


def test_pushes_of_another_hook_are_accepted_in_time(client):
    queue = client.queue("pushes").created(
        hook_timeout_ms=PATIENT_MS, on_enqueue=on_enqueue('return { fairness_key = "mine" }'))
    started = time.monotonic()
    for start in range(0, 200, 20):
        queue.push(*range(start, start + 20))
    assert time.monotonic() - started < SECONDS_FOR_200_CALLS
    assert [job["payload"] for job in queue.claim(1000)] == list(range(200))
    assert calls_of(queue, "on_enqueue") == (200, {})


def test_a_queue_without_hooks_is_never_touched(client):
    queue = client.queue("plain").created(retry={"attempts": 2, "cooldown": "1h"})
    started = time.monotonic()
    for start in range(0, 200, 20):
        queue.push(*range(start, start + 20))
        jobs = queue.claim(20)
        client.ack_all(jobs[:10])
        results = client.leases("fail", [{"token": job["token"]} for job in jobs[10:]])
        assert {result["status"] for result in results} == {"retrying"}
    assert time.monotonic() - started < SECONDS_FOR_200_CALLS
    assert queue.show()["hooks"] == {}
    assert calls_in_metrics(queue) == calls_in_metrics(queue, "on_enqueue") == {}


def test_other_requests_of_the_looping_queue_itself_are_answered(client):
    """Its failures wait for its script; everything else of it does not."""
    queue = client.queue("looper-own").created(
        on_failure=on_failure(LOOP), on_hook_error="dlq", hook_timeout_ms=1000)
    queue.push(*range(5))
    jobs = queue.claim(3)
    other = Client(client.port)
    failing = in_background(other.fail, jobs[0])
    eventually(lambda: queue.show()["hooks"]["on_failure"]["in_flight"] > 0 or failing.done(),
               "the call to be out")
    started = time.monotonic()
    queue.push("more")
    assert client.ack(jobs[1])["status"] == "acked"
    assert client.release(jobs[2])["status"] == "released"
    assert client.ack(queue.claim_one())["status"] == "acked"
    assert client.fail(queue.claim_one(), final=True)["reason"] == "final"
    queue.jobs()
    assert time.monotonic() - started < 2
    result = failing.result(20)
    assert (result["status"], result["reason"]) == ("dead", "hook_error")


def test_the_servers_own_pages_are_served(client):
    for path in ("/healthz", "/readyz", "/metrics", "/v1/status", "/v1/queues"):
        started = time.monotonic()
        assert client.request("GET", path).status == 200
        assert time.monotonic() - started < 2


def test_hosts_are_killed_and_do_not_pile_up(busy, client):
    before = read_metrics(client).value("reprise_hook_hosts_started_total")
    eventually(lambda: read_metrics(client).value("reprise_hook_hosts_started_total") > before + 5,
               "more hosts", 20)
    # The loops above end by themselves, at the end of their instructions; a pattern does not.
    stuck = client.queue("stuck").created(on_hook_error="dlq", on_failure=on_failure(
        'return { reason = ("a"):rep(30000):find(".-.-.-.-.-b") }'))
    stuck.push("a job")
    assert client.fail(stuck.claim_one())["reason"] == "hook_error"
    metrics = read_metrics(client)
    # One for each queue that uses hooks: those that loop and those of these tests.
    assert metrics.value("reprise_hook_hosts") <= LOOPERS + 5
    assert metrics.value("reprise_hook_hosts_killed_total") > 0
    assert len(hook_processes(busy)) <= 2 * (LOOPERS + 5) + 2


def test_the_server_itself_does_not_grow(busy, client):
    queue = client.queue("steady").created(on_failure=BURY, hook_timeout_ms=PATIENT_MS)
    fail_many(queue, 100)
    before = busy.resident_bytes()
    for _ in range(10):
        fail_many(queue, 100)
    assert busy.resident_bytes() - before < 32 << 20
