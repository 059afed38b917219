"""What the clients of the crash test do, choice by choice.

A client is a generator: it yields requests and is given each reply, or None when none came.
"""

import random
from dataclasses import dataclass

from journal import make_payload
from hooking import PATIENT_MS

# The cap of every queue: a job dies at this failure and not before.
ATTEMPTS = 4
# Longer than the oracle is in doubt: the beanstalk protocol does not tell when a job is due again.
TUBE_COOLDOWN_SECONDS = 0.15
# Errors and headers that the hooks below look for.
BURY = "bury me"
REFUSE = {"refuse": "yes"}

ON_ENQUEUE = """
function on_enqueue(msg)
  if msg.headers.refuse then return { reject = "as it asked" } end
  return { weight = 2 }
end
"""
ON_FAILURE = f"""
function on_failure(msg)
  if msg.error == "{BURY}" then return {{ action = "dlq", reason = "buried" }} end
  return {{ action = "retry", delay_ms = 50 }}
end
"""
PLAIN_CONFIG = {"lease": "1s", "retry": {"attempts": ATTEMPTS, "cooldown": "50ms"}}
HOOKED_CONFIG = PLAIN_CONFIG | {"on_enqueue": ON_ENQUEUE, "on_failure": ON_FAILURE,
                                "on_hook_error": "policy", "hook_timeout_ms": PATIENT_MS}
# Clients of the beanstalk protocol have "tube" for themselves, and "shared" with those of HTTP.
TUBE_CONFIG = {"lease": "1s", "retry": {"attempts": ATTEMPTS,
                                        "cooldown": f"{TUBE_COOLDOWN_SECONDS}s"}}
CONFIGS = {"plain": PLAIN_CONFIG, "hooked": HOOKED_CONFIG, "shared": TUBE_CONFIG,
           "tube": TUBE_CONFIG}

LEASE_SECONDS = [0.3, 1.0, 2.0]
DRAIN_LEASE_SECONDS = 30.0
DEFAULT_PRIORITY = 1000
URGENT = 10
# What filters look for, beside errors.
GROUPS = ["a", "b", "c"]
ERROR_TYPES = ["Net", "Disk"]
CLIENTS = 32
BACKLOG_MAX = 1500
HELD_MAX = 100
REMEMBERED = 50


def queue_names(prefix):
    """{name on the server: which config it has}"""
    return {f"{prefix}{config}": config for config in CONFIGS}


@dataclass
class Request:
    kind: str
    queue: str
    path: str
    body: dict


@dataclass
class Held:
    token: str
    queue: str


class Shared:
    """What all clients of one process know."""

    def __init__(self, prefix, kicks):
        self.queues = queue_names(prefix)
        self.kicks = kicks  # whether there are any
        self.named = {config: name for name, config in self.queues.items()}
        self.backlog = 0
        self.tube_backlog = 0
        self.restarts = 0
        self.draining = False


def error_by(name):
    """A text that is not a part of that of another client."""
    return f"failed by {name}."


class Client:
    """One client with its own leases and random choices."""

    def __init__(self, shared, number, seed):
        self.shared = shared
        self.number = number
        self.name = f"c{number}"
        self.random = random.Random(f"{seed}-{number}")
        self.pushed = 0
        self.held = []  # leases that it has, or may have
        self.stale = []  # those that it has given up
        self.dead = []  # (queue, id) of jobs that it saw die
        self.failed = []

    def requests(self):
        while True:
            yield from (self.drain() if self.shared.draining else self.step())

    def step(self):
        choice = self.random.random()
        if self.held and choice < 0.55:
            return self.end_leases()
        if choice < 0.75 and self.shared.backlog < BACKLOG_MAX:
            return self.push()
        if choice < 0.79 and self.stale:
            return self.use_stale_token()
        if choice < 0.805:
            return self.sweep()
        if choice < 0.82 and (self.dead or self.failed):
            return self.command()
        return self.claim()

    def pick_queue(self):
        config = self.random.choices(["plain", "hooked", "shared"], [55, 30, 15])[0]
        return self.shared.named[config]

    def push(self):
        queue = self.pick_queue()
        count = 1 if self.random.random() < 0.6 else self.random.randint(2, 40)
        reply = yield Request("push", queue, f"/v1/queues/{queue}/push",
                              {"jobs": [self.make_job(queue) for _ in range(count)]})
        if reply:
            self.shared.backlog += count

    def make_job(self, queue):
        self.pushed += 1
        name = f"{self.name}-{self.pushed}"
        size = self.random.choice([0, 0, 10, 100, 100, 1000, 1000, 10000])
        filler = self.random.randbytes(size // 2).hex()
        job = {"payload": make_payload(name, filler), "headers": {"name": name}}
        if self.random.random() < 0.4:
            job["headers"]["group"] = self.random.choice(GROUPS)
        if self.random.random() < 0.15:
            job["delay"] = self.random.choice([0.05, 0.2, 0.6])
        if self.random.random() < 0.1:
            job["priority"] = URGENT
        if self.random.random() < 0.25:
            # Few keys, shared by all clients: many pushes meet the same one, also across crashes.
            job["key"] = f"key-{self.shared.restarts // 5}-{self.random.randint(0, 40)}"
        if self.shared.queues[queue] == "hooked":
            job["fairness_key"] = self.random.choice(["acme", "zeta"])
            if self.random.random() < 0.1:
                job["headers"] |= REFUSE
        return job

    def claim(self):
        queue = self.pick_queue()
        body = {"max": self.random.choice([1, 1, 5, 25]),
                "lease": self.random.choice(LEASE_SECONDS),
                "wait": self.random.choice([0, 0, 0.05]), "worker": self.name,
                "lane": self.random.choice(["any", "any", "any", "fresh", "retry"])}
        reply = yield Request("claim", queue, f"/v1/queues/{queue}/claim", body)
        if not reply:
            return
        leases = [Held(job["token"], queue) for job in reply["jobs"]]
        # Sometimes it goes away with what it has, and its leases expire.
        if self.random.random() < 0.03:
            self.give_up(leases)
        else:
            self.held += leases
        if len(self.held) > HELD_MAX:
            self.give_up(self.held[:HELD_MAX // 2])
            self.held = self.held[HELD_MAX // 2:]

    def give_up(self, leases):
        self.stale = (self.stale + leases)[-REMEMBERED:]

    def end_leases(self):
        kind = self.random.choices(["ack", "fail", "release", "extend"], [58, 22, 10, 10])[0]
        count = min(len(self.held), self.random.choice([1, 1, 5, 50]))
        leases = [self.held.pop(self.random.randrange(len(self.held))) for _ in range(count)]
        items = [self.item(kind, lease) for lease in leases]
        reply = yield Request(kind, "", f"/v1/{kind}", {"leases": items})
        if kind == "extend" or reply is None:
            # Without an answer the lease may still be held: it is used again, as a worker would.
            if self.random.random() < 0.8:
                self.held += leases
            return
        if kind in ("ack", "fail"):
            self.shared.backlog -= count
        self.give_up(leases)
        for lease, result in zip(leases, reply["results"]):
            if result["status"] == "dead":
                self.dead = (self.dead + [(lease.queue, result["id"])])[-REMEMBERED:]
            elif result["status"] == "retrying":
                self.failed = (self.failed + [(lease.queue, result["id"])])[-REMEMBERED:]

    def item(self, kind, lease):
        item = {"token": lease.token}
        if kind == "fail":
            item["error"] = error_by(self.name)
            if self.random.random() < 0.3:
                item["error_type"] = self.random.choice(ERROR_TYPES)
            choice = self.random.random()
            if choice < 0.1:
                item["final"] = True
            elif choice < 0.3:
                item["delay"] = 0.1
            elif choice < 0.4 and self.shared.queues[lease.queue] == "hooked":
                item["error"] = BURY
        elif kind == "release" and self.random.random() < 0.3:
            item["delay"] = 0.2
        elif kind == "extend":
            item["lease"] = self.random.choice(LEASE_SECONDS)
        return item

    def use_stale_token(self):
        kind = self.random.choice(["ack", "fail", "release", "extend"])
        lease = self.random.choice(self.stale)
        yield Request(kind, "", f"/v1/{kind}", {"leases": [self.item(kind, lease)]})

    def command(self):
        """Retry or purge of jobs that it saw fail or die, whatever has become of them since."""
        kind = self.random.choice(["retry", "retry", "purge"])
        known = self.dead if self.dead and self.random.random() < 0.8 else self.failed or self.dead
        queue = self.random.choice(known)[0]
        ids = list(dict.fromkeys(job_id for its_queue, job_id in known if its_queue == queue))
        ids = self.random.sample(ids, min(len(ids), self.random.choice([1, 3, 20])))
        yield Request(kind, queue, f"/v1/queues/{queue}/{kind}", {"ids": ids})

    def sweep(self):
        """Retry or purge of whatever fits, in any queue."""
        kind = self.random.choice(["retry", "retry", "purge"])
        queue = self.random.choice(list(self.shared.queues))
        wanted = self.random.choice([
            {"headers": {"group": self.random.choice(GROUPS)}},
            {"error": error_by(f"c{self.random.randrange(CLIENTS)}")},
            {"error_type": self.random.choice(ERROR_TYPES), "status": "dead"},
            {"reason": self.random.choice(["final", "buried"])}])
        if kind == "retry" and self.random.random() < 0.2:
            wanted = {"headers": {"group": self.random.choice(GROUPS)}, "status": "failed"}
        body = {"filter": wanted}
        if self.random.random() < 0.3:
            body["limit"] = self.random.choice([1, 5])
        yield Request(kind, queue, f"/v1/queues/{queue}/{kind}", body)

    def drain(self):
        """Claims and acks, until nothing is left that is not dead."""
        queue = self.random.choice(list(self.shared.queues))
        body = {"max": 100, "lease": DRAIN_LEASE_SECONDS, "wait": 0.1, "worker": "drain",
                "lane": "any"}
        reply = yield Request("claim", queue, f"/v1/queues/{queue}/claim", body)
        if reply and reply["jobs"]:
            yield Request("ack", "", "/v1/ack",
                          {"leases": [{"token": job["token"]} for job in reply["jobs"]]})
