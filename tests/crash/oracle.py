"""Clients that load a server, note what they know, and go on while it is killed and restarted."""

import http.client
import json
import random
import threading
import time

from checker import Final
from journal import Journal, make_payload
from reprise_http import Client
from waiting import eventually

QUEUE = "crash"
CONFIG = {"lease": "1s", "retry": {"attempts": 4, "cooldown": "50ms"}}
LEASE_SECONDS = [0.3, 1.0, 2.0]
WORKERS = 4
BACKLOG_MAX = 1500
REQUEST_SECONDS = 10
DRAIN_SECONDS = 60
KEEP_STALE_TOKENS = 50


class Worker:
    """One client with its own connection, leases and random choices."""

    def __init__(self, oracle, number, seed):
        self.oracle = oracle
        self.number = number
        self.random = random.Random(f"{seed}-{number}")
        self.pushed = 0
        self.leases = []  # tokens it holds, or may hold
        self.stale = []  # tokens it has given up
        self.client = None
        self.port = None

    def run(self):
        while not self.oracle.stopping.is_set():
            if self.oracle.serving.wait(0.05):
                self.step()

    def step(self):
        choice = self.random.random()
        if self.leases and choice < 0.55:
            self.end_leases()
        elif choice < 0.75 and self.oracle.backlog() < BACKLOG_MAX:
            self.push()
        elif choice < 0.97:
            self.claim()
        elif self.stale:
            self.use_stale_token()

    # Requests. Each is in the journal before it is sent.

    def request(self, kind, path, body):
        entry = self.oracle.journal.begin(kind, body)
        if not self.connect():
            entry.outcome = "not_sent"
            self.oracle.stopping.wait(0.005)  # leaves the processor to the server that starts
            return None
        try:
            reply = self.client.request("POST", path, body)
            parsed = reply.json()
        except (OSError, http.client.HTTPException, AssertionError):
            self.client.close()
            self.client = None
            return None
        Journal.replied(entry, reply.status, parsed)
        return parsed if entry.outcome == "replied" else None

    def connect(self):
        """A failure here happens before anything is sent."""
        port = self.oracle.port
        if self.client and self.port == port and self.client.connection.sock:
            return True
        if self.client:
            self.client.close()
        self.client, self.port = Client(port, timeout=REQUEST_SECONDS), port
        try:
            self.client.connection.connect()
            return True
        except OSError:
            self.client = None
            return False

    def push(self):
        count = 1 if self.random.random() < 0.6 else self.random.randint(2, 40)
        reply = self.request("push", f"/v1/queues/{QUEUE}/push",
                             {"jobs": [self.make_job() for _ in range(count)]})
        if reply:
            self.oracle.count_backlog(count)

    def make_job(self):
        self.pushed += 1
        name = f"w{self.number}-{self.pushed}"
        size = self.random.choice([0, 0, 10, 100, 100, 1000, 20000])
        filler = self.random.randbytes(size // 2).hex()
        job = {"payload": make_payload(name, filler), "headers": {"name": name}}
        choice = self.random.random()
        if choice < 0.15:
            job["delay"] = self.random.choice([0.05, 0.2, 0.6])
        if self.random.random() < 0.25:
            # Few keys, shared by all workers: many pushes meet the same one, also across crashes.
            job["key"] = f"key-{self.oracle.key_epoch()}-{self.random.randint(0, 20)}"
        return job

    def claim(self):
        lease = self.random.choice(LEASE_SECONDS)
        body = {"max": self.random.choice([1, 1, 5, 25]), "lease": lease,
                "wait": self.random.choice([0, 0, 0.05]), "worker": f"w{self.number}",
                "lane": self.random.choice(["any", "any", "any", "fresh", "retry"])}
        reply = self.request("claim", f"/v1/queues/{QUEUE}/claim", body)
        if reply:
            self.leases += [job["token"] for job in reply["jobs"]]

    def end_leases(self):
        kind = self.random.choices(["ack", "fail", "release", "extend"], [60, 20, 10, 10])[0]
        count = min(len(self.leases), self.random.choice([1, 1, 5, 50]))
        tokens = [self.leases.pop(self.random.randrange(len(self.leases))) for _ in range(count)]
        items = [{"token": token} for token in tokens]
        for item in items:
            if kind == "fail":
                item["error"] = f"failed by w{self.number}"
                if self.random.random() < 0.1:
                    item["final"] = True
                elif self.random.random() < 0.3:
                    item["delay"] = 0.1
            elif kind == "extend":
                item["lease"] = self.random.choice(LEASE_SECONDS)
        reply = self.request(kind, f"/v1/{kind}", {"leases": items})
        if kind == "extend" or reply is None:
            # Without an answer the lease may still be held: it is used again, as a worker would.
            self.leases += tokens if self.random.random() < 0.8 else []
        else:
            self.oracle.count_backlog(-count)
            self.stale = (self.stale + tokens)[-KEEP_STALE_TOKENS:]
        if len(self.leases) > 200:
            self.stale = self.leases[:150][-KEEP_STALE_TOKENS:]
            self.leases = self.leases[150:]

    def use_stale_token(self):
        kind = self.random.choice(["ack", "fail", "release", "extend"])
        item = {"token": self.random.choice(self.stale)}
        if kind == "extend":
            item["lease"] = 1.0
        self.request(kind, f"/v1/{kind}", {"leases": [item]})

    def drain(self):
        """Claims and acks until nothing is left that is not dead."""
        while not self.oracle.drained.is_set():
            body = {"max": 100, "lease": 30.0, "wait": 0.1, "worker": "drain", "lane": "any"}
            reply = self.request("claim", f"/v1/queues/{QUEUE}/claim", body)
            if reply and reply["jobs"]:
                self.request("ack", "/v1/ack",
                             {"leases": [{"token": job["token"]} for job in reply["jobs"]]})


class Oracle:
    """The workers, their journal, and the server they talk to."""

    def __init__(self, server, seed):
        self.server = server
        self.journal = Journal()
        self.workers = [Worker(self, number, seed) for number in range(WORKERS)]
        self.serving = threading.Event()
        self.stopping = threading.Event()
        self.drained = threading.Event()
        self.port = None
        self.lock = threading.Lock()
        self.pending = 0
        self.cycles = 0
        self.threads = []

    def backlog(self):
        return self.pending

    def count_backlog(self, change):
        with self.lock:
            self.pending += change

    def key_epoch(self):
        """Keys change every few crashes, so that new ones are tried too."""
        return self.cycles // 5

    def start(self):
        self.server.start()
        self.server.client().queue(QUEUE).create(**CONFIG)
        self._serve()
        self.threads = [threading.Thread(target=worker.run, daemon=True)
                        for worker in self.workers]
        for thread in self.threads:
            thread.start()

    def _serve(self):
        self.port = self.server.port
        self.serving.set()

    def crash_after(self, seconds, while_down=lambda: None):
        """Load for so long, then SIGKILL in the middle of it and a new start."""
        # The length of the load is what is being varied: there is no condition to wait for.
        time.sleep(seconds)
        self.server.kill()
        self.serving.clear()
        self.cycles += 1
        while_down()
        self.server.start()
        self._serve()

    def finish(self):
        """Stops the load, drains the queue and returns what the server says then."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(REQUEST_SECONDS * 2)
            assert not thread.is_alive(), "a worker hangs"
        drains = [threading.Thread(target=worker.drain, daemon=True) for worker in self.workers]
        for thread in drains:
            thread.start()
        queue = self.server.client().queue(QUEUE)
        try:
            eventually(lambda: not set(queue.counts()) - {"dead"}, "an empty queue",
                       timeout=DRAIN_SECONDS, every=0.1)
        finally:
            self.drained.set()
            for thread in drains:
                thread.join(REQUEST_SECONDS)
        return Final(queue.stats(), queue.all_jobs(status="dead", limit=1000))

    def summary(self):
        outcomes = {}
        for entry in self.journal.entries:
            outcomes.setdefault(entry.kind, {}).setdefault(entry.outcome, 0)
            outcomes[entry.kind][entry.outcome] += 1
        return json.dumps({"cycles": self.cycles, **outcomes})
