"""Many clients that do everything at once: afterwards all numbers agree with each other.

REPRISE_SEED=n replays the choices; STORM_SECONDS=n makes it longer.
"""

import json
import os
import random
import secrets
import time
from collections import Counter

from background import in_background
from raw_http import EventStream, RawConnection, message
from waiting import eventually

SECONDS = float(os.environ.get("STORM_SECONDS", "4"))
CLIENTS = 8
QUEUES = ["a", "b", "c"]
STATUSES = ("scheduled", "pending", "active", "failed", "dead")
# What a client may be told in such a crowd. Anything else is a fault.
EXPECTED = {200, 201, 404, 409}


class Guest:
    """A client that behaves, and now and then does not."""

    def __init__(self, server, seed):
        self.server = server
        self.choose = random.Random(seed)
        self.client = server.client()
        self.tokens = []

    def request(self, method, path, body=None):
        reply = self.client.request(method, path, body)
        assert reply.status in EXPECTED, f"{method} {path} {body}: {reply!r}"
        return reply.json() if reply.status == 200 else {}

    def queue_path(self, suffix=""):
        return f"/v1/queues/{self.choose.choice(QUEUES)}{suffix}"

    def push(self):
        jobs = []
        for _ in range(self.choose.choice([1, 1, 3, 30])):
            job = {"payload": "x" * self.choose.choice([0, 10, 500, 5000])}
            if self.choose.random() < 0.2:
                job["delay"] = self.choose.choice([0.01, 0.3, 3600])
            if self.choose.random() < 0.2:
                job["key"] = f"k{self.choose.randrange(50)}"
            if self.choose.random() < 0.1:
                job["ttl"] = self.choose.choice([0.2, 3600])
            if self.choose.random() < 0.2:
                job["priority"] = self.choose.randrange(5)
            jobs.append(job)
        self.request("POST", self.queue_path("/push"), {"jobs": jobs, "create": True})

    def claim(self):
        reply = self.request("POST", self.queue_path("/claim"), {
            "max": self.choose.choice([1, 5, 50]), "wait": self.choose.choice([0, 0.02, 0.1]),
            "lease": self.choose.choice([0.1, 1, 30]),
            "lane": self.choose.choice(["any", "fresh", "retry"])})
        self.tokens = (self.tokens + [job["token"] for job in reply.get("jobs", [])])[-300:]

    def end(self):
        if not self.tokens:
            return
        verb = self.choose.choice(["ack", "ack", "ack", "fail", "release", "extend"])
        tokens = self.choose.sample(self.tokens, min(len(self.tokens), self.choose.randint(1, 20)))
        self.request("POST", f"/v1/{verb}", {"leases": [{"token": token} for token in tokens]})

    def browse_and_drop(self):
        path = self.queue_path()
        query = self.choose.choice(["", "?status=dead", "?status=active", "?limit=3"])
        jobs = self.request("GET", path + "/jobs" + query).get("jobs", [])
        for job in self.choose.sample(jobs, min(2, len(jobs))):
            self.request(self.choose.choice(["GET", "DELETE"]), f"{path}/jobs/{job['id']}")

    def administer(self):
        kind = self.choose.randrange(12)
        if kind == 0:
            self.request("DELETE", self.queue_path())
        elif kind == 1:
            self.request("POST", self.queue_path("/pause"))
        elif kind <= 4:
            self.request("POST", self.queue_path("/resume"))
        elif kind <= 7:
            self.request("PUT", self.queue_path(), {
                "retry": {"attempts": self.choose.randint(0, 4), "cooldown": "20ms"}})
        else:
            self.request("GET", "/v1/status")

    def misbehave(self):
        """Goes away while something is on its way."""
        kind = self.choose.randrange(3)
        if kind == 0:
            with EventStream(self.server.port):
                return
        body = json.dumps({"wait": "30s", "max": 3, "lease": 0.1}).encode()
        with RawConnection(self.server.port) as connection:
            connection.send(message("POST", self.queue_path("/claim"), body)
                            if kind == 1 else b"POST /v1/ack HTTP/1.1\r\nHost: lo")

    def run(self):
        actions = [self.push, self.claim, self.end, self.browse_and_drop, self.administer,
                   self.misbehave]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            self.choose.choices(actions, [30, 30, 25, 8, 4, 3])[0]()


def assert_consistent(queue):
    """Counts, bytes and totals of a queue agree with the jobs it lists."""
    shown, jobs = queue.snapshot()
    stats, totals = shown["stats"], shown["stats"]["totals"]
    listed = Counter(job["status"] for job in jobs)
    assert {status: stats[status] for status in STATUSES} == {
        status: listed[status] for status in STATUSES}
    alive = [job for job in jobs if job["status"] != "dead"]
    assert stats["bytes"] == sum(len(json.dumps(job["payload"])) + len(job["key"] or "")
                                 for job in alive)
    assert totals["pushed"] == totals["completed"] + totals["dropped"] + len(jobs)
    eventually(lambda: queue.stats()["waiting_claims"] == 0, "those who went away to be forgotten")


def test_after_a_storm_all_numbers_agree_and_survive_a_crash(start_server):
    seed = int(os.environ.get("REPRISE_SEED", secrets.randbelow(2**32)))
    print(f"REPRISE_SEED={seed}")
    server = start_server("--overlay-bytes", "1MiB", "--cache-bytes", "1MiB")
    guests = [in_background(Guest(server, f"{seed}-{number}").run) for number in range(CLIENTS)]
    for guest in guests:
        guest.result(SECONDS + 30)
    client = server.client()
    queues = [client.queue(each["name"]) for each in client.get("/v1/queues")["queues"]]
    assert queues
    freeze(queues)
    for queue in queues:
        assert_consistent(queue)
    before = [queue.snapshot() for queue in queues]
    server.restart()
    assert [queue.through(server.client()).snapshot() for queue in queues] == before


def freeze(queues):
    """Nothing is left that time alone would move."""
    for queue in queues:
        queue.pause()
        for status in ("active", "failed", "scheduled"):
            for job in queue.all_jobs(status=status, limit=1000):
                queue.client.request("DELETE", queue.path(f"/jobs/{job['id']}"))
        for job in queue.all_jobs(limit=1000):
            if job["expires_at"] and job["status"] != "dead":
                queue.client.request("DELETE", queue.path(f"/jobs/{job['id']}"))
