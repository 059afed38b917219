"""Many clients that fail, retry, purge and drop at once: no job is lost or counted twice.

REPRISE_SEED=n replays the choices; STORM_SECONDS=n makes it longer.
"""

import http.client
import json
import os
import random
import secrets
import threading
import time
from collections import Counter

import pytest

from background import in_background
from times import seconds_since_1970
from waiting import eventually

SECONDS = float(os.environ.get("STORM_SECONDS", "3"))
CLIENTS = 6
KILLS = 4
CONFIGS = {
    "plain": {"retry": {"max_retries": 3, "backoff": {"base": "10ms", "jitter": 0.5}}},
    "moving": {"dead_letter_queue": "graves", "fetch": {"retry_share": 0.5}},
    "graves": {"retry": {"attempts": 2}},
    "keeping": {"keep_dead": "300ms", "max_dead": 3, "keep_completed": "1h",
                "fetch": {"retry_in_flight": 10}, "retry": {"attempts": 2, "cooldown": "20ms"}},
}
STATUSES = ("scheduled", "pending", "active", "failed", "dead")
# Where jobs come from and where they go.
COMING = ("pushed", "moved_in")
GOING = ("completed", "dropped", "purged", "dead_expired", "dead_evicted", "moved_out")


class Guest:
    def __init__(self, server, seed):
        self.server = server
        self.choose = random.Random(seed)
        self.client = server.client()
        self.tokens = []

    def request(self, method, path, body=None):
        reply = self.client.request(method, path, body)
        assert reply.status in (200, 202, 404, 409), f"{method} {path} {body}: {reply!r}"
        return reply.json()

    def path(self, suffix=""):
        return f"/v1/queues/{self.choose.choice(list(CONFIGS))}{suffix}"

    def push(self):
        jobs = [{"payload": number, "headers": {"n": str(number % 3)}}
                for number in range(self.choose.choice([1, 5, 30]))]
        if self.choose.random() < 0.2:
            jobs[0]["ttl"] = 0.2
        self.request("POST", self.path("/push"), {"jobs": jobs})

    def claim(self):
        reply = self.request("POST", self.path("/claim"), {
            "max": self.choose.choice([1, 5, 50]), "wait": self.choose.choice([0, 0.02]),
            "lease": self.choose.choice([0.1, 30]),
            "lane": self.choose.choice(["any", "any", "fresh", "retry"])})
        self.tokens = (self.tokens + [job["token"] for job in reply["jobs"]])[-300:]

    def failure(self):
        return self.choose.choice([
            {}, {"error": f"timeout {self.choose.randrange(99)}"}, {"error": "x", "final": True},
            {"error": "y", "error_type": "Net", "delay": self.choose.choice([0, 0.05, 3600])},
            {"outcome": "worker_lost"}])

    def end(self):
        if not self.tokens:
            return
        verb = self.choose.choice(["ack", "fail", "fail", "fail", "release"])
        tokens = self.choose.sample(self.tokens, min(len(self.tokens), self.choose.randint(1, 20)))
        self.request("POST", f"/v1/{verb}", {"leases": [
            {"token": token, **(self.failure() if verb == "fail" else {})} for token in tokens]})

    def some_ids(self, path):
        query = self.choose.choice(["", "?status=dead&order=newest", "?status=failed"])
        listed = self.request("GET", path + "/jobs" + query)["jobs"]
        return [job["id"] for job in self.choose.sample(listed, min(5, len(listed)))]

    def by_ids(self):
        path = self.path()
        verb = self.choose.choice(["/retry", "/purge"])
        self.request("POST", path + verb, {"ids": self.some_ids(path)})

    def drop(self):
        path = self.path()
        for job_id in self.some_ids(path)[:2]:
            self.request("DELETE", f"{path}/jobs/{job_id}")

    def by_filter(self):
        body = {"filter": self.choose.choice([{}, {"error": "timeout"}, {"headers": {"n": "1"}}])}
        if self.choose.random() < 0.5:
            body["limit"] = self.choose.randint(1, 50)
        if self.choose.random() < 0.5:
            body |= {"rate": self.choose.choice(["30/s", "500/s"]),
                     "wait": self.choose.choice(["0s", "50ms"])}
        verb = self.choose.choice(["/retry", "/retry", "/purge"])
        operation = self.request("POST", self.path(verb), body).get("operation")
        if operation and self.choose.random() < 0.3:
            self.request("DELETE", f"/v1/operations/{operation['id']}")

    def look(self):
        for path in (self.path("/errors"), "/v1/operations", "/v1/audit", "/metrics"):
            assert self.client.request("GET", path).status == 200

    def run(self):
        actions = [self.push, self.claim, self.end, self.by_ids, self.drop, self.by_filter,
                   self.look]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                self.choose.choices(actions, [25, 30, 30, 10, 4, 5, 3])[0]()
            except (OSError, http.client.HTTPException):
                # Killed: what became of the request is not known, and does not matter here.
                assert self.server.kills, "the server went away by itself"
                eventually(lambda: self.server.up.is_set(), "the server to be up again", 30)
                self.client = self.server.client()


def have_some_deleted(queue):
    """The dead are looked at once a second; one more time, so that it has happened for sure."""
    queue.push(*["x"] * 10, priority=0)
    queue.client.leases("fail", [{"token": job["token"], "final": True}
                                 for job in queue.claim(10, lane="fresh")])
    eventually(lambda: queue.stats()["dead"] == 0, "the dead to be deleted")


def calm_down(client, queues):
    """Nothing is left that time alone would move."""
    for operation in client.operations(state="running"):
        client.request("DELETE", f"/v1/operations/{operation['id']}")
    for queue in queues:
        queue.pause()
        queue.patch(keep_dead=None, max_dead=None, dead_letter_queue=None)
    for queue in queues:
        for job in queue.all_jobs(limit=1000):
            if job["status"] in ("active", "scheduled", "failed") or (
                    job["expires_at"] and job["status"] != "dead"):
                client.request("DELETE", queue.path(f"/jobs/{job['id']}"))


def size(job):
    headers = sum(len(name.encode()) + len(value.encode())
                  for name, value in job["headers"].items())
    return len(json.dumps(job["payload"])) + headers


def assert_consistent(queue):
    shown, jobs = queue.snapshot()
    stats, totals = shown["stats"], shown["stats"]["totals"]
    listed = Counter(job["status"] for job in jobs)
    assert {status: stats[status] for status in STATUSES} == {
        status: listed[status] for status in STATUSES}
    assert sum(totals[name] for name in COMING) == (
        sum(totals[name] for name in GOING) + len(jobs)), totals
    assert stats["bytes"] == sum(size(job) for job in jobs if job["status"] != "dead")

    lanes = stats["lanes"]
    pending = Counter(job["lane"] for job in jobs if job["status"] == "pending")
    assert (lanes["fresh"], lanes["retry"]) == (pending["fresh"], pending["retry"])
    assert sum(lanes["retries_by_failures"].values()) == pending["retry"]
    assert lanes["retry_in_flight"] == 0
    assert 0 <= queue.stats()["lanes"]["retry_credit"] < 1
    kept = queue.all_jobs(status="completed", limit=1000)
    assert stats["completed_kept"] == len(kept)

    newest = queue.all_jobs(status="dead", order="newest", limit=7)
    assert {job["id"] for job in newest} == {job["id"] for job in jobs if job["status"] == "dead"}
    ends = [seconds_since_1970(job["ended_at"]) for job in newest]
    assert len(ends) == listed["dead"] and ends == sorted(ends, reverse=True)
    assert sum(group["count"] for group in queue.errors(limit=1000)["groups"]) == listed["dead"]


def picture(queues):
    """All that must survive."""
    return [(queue.snapshot(), queue.all_jobs(status="completed", limit=1000))
            for queue in queues]


def kill_now_and_then(server, choose):
    for _ in range(KILLS):
        time.sleep(choose.uniform(0.3, 0.9) * SECONDS / KILLS)
        server.up.clear()
        server.kills += 1
        server.restart("kill")
        server.up.set()


@pytest.mark.parametrize("kills", [False, True], ids=["calm", "killed"])
def test_after_a_storm_no_job_is_lost_or_counted_twice(start_server, request, kills):
    seed = int(os.environ.get("REPRISE_SEED", secrets.randbelow(2**32)))
    request.node.add_report_section("call", "seed", f"REPRISE_SEED={seed}")
    server = start_server("--overlay-bytes", "1MiB", "--cache-bytes", "1MiB")
    server.kills, server.up = 0, threading.Event()
    server.up.set()
    for name, config in CONFIGS.items():
        server.client().queue(name).create(**config)
    guests = [in_background(Guest(server, f"{seed}-{number}").run) for number in range(CLIENTS)]
    if kills:
        kill_now_and_then(server, random.Random(seed))
    for guest in guests:
        guest.result(SECONDS + 30)

    client = server.client()
    queues = [client.queue(name) for name in CONFIGS]
    have_some_deleted(client.queue("keeping"))
    calm_down(client, queues)
    eventually(lambda: client.operations(state="running") == [], "operations to end")
    ids = Counter(job["id"] for queue in queues for job in queue.all_jobs(limit=1000))
    assert [job_id for job_id, count in ids.items() if count > 1] == []
    for queue in queues:
        assert_consistent(queue)
    happened = sum((Counter(queue.totals()) for queue in queues), Counter())
    for name in ("moved_in", "completed", "purged", "retried", "claimed_retry"):
        assert happened[name], f"{name} never happened: {happened}"
    assert happened["dead_expired"] + happened["dead_evicted"], happened
    before = picture(queues), client.operations(), client.audit(limit=1000)
    server.restart("kill")
    client = server.client()
    queues = [queue.through(client) for queue in queues]
    assert (picture(queues), client.operations(), client.audit(limit=1000)) == before
