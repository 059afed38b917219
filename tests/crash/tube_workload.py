"""What the clients of the crash test do that speak the beanstalk protocol, choice by choice.

A client is a generator: it yields lists of commands that are sent at once, or an empty list when it
hangs up, and is given the list of their replies, with None for each that did not come.
"""

import json
import random
from dataclasses import dataclass, field

from ids import job_id_of
from journal import brief, make_payload
from workload import DEFAULT_PRIORITY, URGENT, error_by

TTR_SECONDS = [1, 2, 60]
PRIORITIES = [DEFAULT_PRIORITY, DEFAULT_PRIORITY, DEFAULT_PRIORITY, URGENT]
BACKLOG_MAX = 300
HELD_MAX = 20
REMEMBERED = 50
REST_SECONDS = 0.1  # when there is nothing to drain

# What replies say, as HTTP would have said it.
STATUSES = {"DELETED": "acked", "RELEASED": "released", "BURIED": "dead", "DEAD": "dead",
            "TOUCHED": "extended", "RETRYING": "retrying", "NOT_FOUND": "rejected"}
PUT_REFUSALS = {"BAD_FORMAT", "OUT_OF_MEMORY", "DRAINING", "JOB_TOO_BIG"}
NOTHING_RESERVED = {"TIMED_OUT", "DEADLINE_SOON", "OUT_OF_MEMORY"}


@dataclass
class Command:
    """`read` makes of a reply's words what the journal says of it; None: the server does not know.
    A `tube` is used before."""
    kind: str
    queue: str
    body: dict
    text: bytes
    read: object
    tube: str = ""


@dataclass
class TubeLease:
    job: int
    token: str
    ttr: int
    priority: int = field(default=DEFAULT_PRIORITY)


def read_put(word, words):
    if word == "INSERTED":
        return {"results": [{"status": "pushed", "id": job_id_of(int(words[0]))}]}
    return {"results": [{"status": "rejected"}]} if word in PUT_REFUSALS else None


def read_nothing_reserved(word, _):
    return {"jobs": []} if word in NOTHING_RESERVED else None


def read_end(word, _):
    return {"results": [{"status": STATUSES[word]}]} if word in STATUSES else None


def read_kick(word, words):
    return {"retried": int(words[0])} if word == "KICKED" else None


class TubeClient:
    """One client with its own leases and random choices."""

    def __init__(self, shared, number, seed):
        self.shared = shared
        self.name = f"c{number}"
        self.random = random.Random(f"{seed}-{number}")
        own, both = shared.named["tube"], shared.named["shared"]
        self.watched = [[own], [both], [own, both]][number % 3]
        self.pushed = 0
        self.held = {}  # leases of this connection, by the number of the job
        self.stale = []  # those that it has lost or given up
        self.doubts = False  # it may hold more than it knows
        self.rests = 0

    # What the connection tells.

    def greeting(self):
        return [f"watch {tube}" for tube in self.watched] + ["ignore default"]

    def connected(self):
        self.doubts = False

    def holds(self, job, delivered):
        if job in self.held:
            self.give_up(self.held.pop(job))
        self.held[job] = TubeLease(job, delivered["token"], delivered["ttr"],
                                   delivered["priority"])

    def leave(self):
        """What it held until now."""
        leases = list(self.held.values())
        self.held.clear()
        self.give_up(*leases)
        return leases

    def give_up(self, *leases):
        self.stale = (self.stale + list(leases))[-REMEMBERED:]

    # What it does.

    def requests(self):
        drains = False
        while True:
            if self.doubts or (self.shared.draining and not drains):
                drains = self.shared.draining
                yield []
            yield from (self.drain() if self.shared.draining else self.step())

    def step(self):
        choice = self.random.random()
        if self.held and (choice < 0.5 or len(self.held) > HELD_MAX):
            return self.end_leases()
        if choice < 0.53 and self.stale:
            return self.use_lost_number()
        if choice < 0.55 and self.shared.kicks:
            return self.kick()
        if choice < 0.56:
            return self.hang_up()
        if choice < 0.75 and self.shared.tube_backlog < BACKLOG_MAX:
            return self.put()
        return self.reserve()

    def hang_up(self):
        yield []

    def put(self):
        tube = self.random.choice(self.watched)
        count = self.random.choice([1, 1, 1, 6])
        replies = yield [self.put_command(tube) for _ in range(count)]
        self.shared.tube_backlog += sum(reply is not None for reply in replies)

    def put_command(self, tube):
        self.pushed += 1
        filler = self.random.randbytes(self.random.choice([0, 10, 100, 1000])).hex()
        payload = make_payload(f"{self.name}-{self.pushed}", filler)
        job = {"payload": brief(payload), "headers": {},
               "priority": self.random.choice(PRIORITIES), "ttr": self.random.choice(TTR_SECONDS)}
        if self.random.random() < 0.1:
            job["delay"] = 1
        body = json.dumps(payload).encode()
        text = b"put %d %d %d %d\r\n%s\r\n" % (job["priority"], job.get("delay", 0), job["ttr"],
                                               len(body), body)
        return Command("push", tube, {"jobs": [job]}, text, read_put, tube)

    def reserve_commands(self, count, wait=0):
        # One over several tubes has its job from any of them.
        queue = self.watched[0] if len(self.watched) == 1 else ""
        return [Command("claim", queue, {"max": 1, "wait": wait, "queues": self.watched},
                        f"reserve-with-timeout {wait}\r\n".encode(), read_nothing_reserved)
                for _ in range(count)]

    def reserve(self):
        if self.random.random() < 0.05:
            replies = yield self.reserve_commands(1, wait=1)
        else:
            replies = yield self.reserve_commands(self.random.choice([1, 1, 6]))
        if any(reply and not reply["jobs"] for reply in replies):
            # Whatever was thought to wait is not there: others take jobs too.
            self.shared.tube_backlog = 0

    def end_leases(self):
        """Several that it holds, all in one way or each in its own."""
        count = min(len(self.held), self.random.choice([1, 1, 4]))
        leases = self.random.sample(list(self.held.values()), count)
        verbs = self.random.choices(["delete", "fail", "release", "bury", "touch"],
                                    [54, 18, 10, 6, 12], k=count)
        if self.random.random() < 0.5:
            verbs = verbs[:1] * count
        replies = yield [self.end_command(verb, lease) for verb, lease in zip(verbs, leases)]
        for verb, lease, reply in zip(verbs, leases, replies):
            # Without an answer there is no connection any more, and nothing held.
            if reply is None or verb == "touch":
                continue
            if lease.job in self.held:
                self.give_up(self.held.pop(lease.job))
            if verb in ("delete", "bury"):
                self.shared.tube_backlog -= 1

    def end_command(self, verb, lease):
        item = {"token": lease.token}
        if verb in ("release", "bury"):
            item["priority"] = self.random.choice([lease.priority, *PRIORITIES])
        if verb == "delete":
            return self.on_lease("ack", item, f"delete {lease.job}")
        if verb == "touch":
            return self.on_lease("extend", item | {"lease": lease.ttr}, f"touch {lease.job}")
        if verb == "fail":
            error = error_by(self.name)
            return self.on_lease("fail", item | {"error": error},
                                 f"fail {lease.job} {len(error)}\r\n{error}")
        if verb == "bury":
            return self.on_lease("fail", item | {"bury": True},
                                 f"bury {lease.job} {item['priority']}")
        delay = int(self.random.random() < 0.2)
        return self.on_lease("release", item | {"delay": delay},
                             f"release {lease.job} {item['priority']} {delay}")

    @staticmethod
    def on_lease(kind, item, text):
        return Command(kind, "", {"leases": [item]}, text.encode() + b"\r\n", read_end)

    def use_lost_number(self):
        """Of a job that it had once. A delete is not among them: it is open to all when nobody has
        the job."""
        lost = [lease for lease in self.stale if lease.job not in self.held]
        if lost:
            verb = self.random.choice(["fail", "release", "bury", "touch"])
            yield [self.end_command(verb, self.random.choice(lost))]

    def kick(self):
        tube = self.random.choice(self.watched)
        most = self.random.choice([1, 1, 5])
        yield [Command("retry", tube, {"kick": most}, f"kick {most}\r\n".encode(), read_kick, tube)]

    def drain(self):
        """Reserves and deletes, until nothing is left that is not dead."""
        replies = yield self.reserve_commands(8)
        if not any(reply and reply["jobs"] for reply in replies):
            self.rests = REST_SECONDS
        leases = list(self.held.values())
        if leases:
            replies = yield [self.end_command("delete", lease) for lease in leases]
            for lease, reply in zip(leases, replies):
                if reply:
                    self.held.pop(lease.job, None)
