"""Two hundred operations on one server, always the same, and what must be there afterwards.

One client, one request at a time: what was answered has happened, and at most one request, the last,
may have happened or not. Jobs are known by the number in their payload, as an answer that never came
would have told their ids.
"""

import hashlib
import random
import time
from dataclasses import dataclass, field

OPERATIONS = 200
# So many that the journal goes through several segments and checkpoints.
FILLER_BYTES = (10, 30_000, 80_000)
SETTINGS = ("--overlay-bytes", "1MiB", "--journal-bytes", "1MiB")
RESTART = "restart"


def payload_of(number):
    filler = hashlib.sha256(str(number).encode()).hexdigest()
    length = FILLER_BYTES[number % len(FILLER_BYTES)]
    return {"n": number, "filler": (filler * (length // len(filler) + 1))[:length]}


@dataclass(frozen=True)
class Job:
    """What is compared of a job."""
    status: str = "pending"
    attempts: int = 0
    failures: int = 0


@dataclass
class Operation:
    verb: str
    path: str
    body: dict
    before: dict  # jobs by number
    after: dict  # None: a claim, whose jobs the server chooses
    ends: list = field(default_factory=list)  # numbers of jobs whose tokens it uses up
    claims: int = 0

    def explains(self, found):
        """Whether what is there is what this leaves when it has been carried out."""
        if self.after is not None:
            return found == self.after
        changed = [n for n in self.before if found.get(n) != self.before[n]]
        pending = sum(job.status == "pending" for job in self.before.values())
        return (found.keys() == self.before.keys()
                and len(changed) == min(self.claims, pending)
                and all(self.before[n].status == "pending"
                        and found[n] == claimed(self.before[n]) for n in changed))


def claimed(job):
    return Job("active", job.attempts + 1, job.failures)


class FixedRun:
    """The state after what was answered: `jobs`, and `doubtful`, which was not."""

    def __init__(self):
        self.dice = random.Random(20260201)
        self.jobs = {}
        self.ids = {}
        self.tokens = {}
        self.pushed = 0
        self.queue_made = False
        self.doubtful = None
        self.refusals = []
        self.answered_at = []  # when each answer came, by time.monotonic()

    def steps(self):
        """Operations as functions of a queue, with a restart in their midst."""
        yield self.create
        for number in range(1, OPERATIONS):
            if number == OPERATIONS // 2:
                yield RESTART
            yield self.step

    # What is done.

    def create(self, queue):
        operation = Operation("PUT", queue.path(), {
            "lease": "1h", "retry": {"attempts": 5, "cooldown": "1h"}}, {}, {})
        if self.send(queue, operation, 201) is not None:
            self.queue_made = True

    def step(self, queue):
        active = [n for n, job in self.jobs.items() if job.status == "active"]
        dead = [n for n, job in self.jobs.items() if job.status == "dead"]
        choices = [(self.push, 7), (self.claim, 4)]
        if active:
            choices += [(self.ack, 5), (self.fail, 2), (self.bury, 2), (self.release, 1),
                        (self.extend, 1)]
        if dead:
            choices += [(self.retry, 1), (self.purge, 1)]
        if len(self.jobs) > 20:
            choices.append((self.drop, 1))
        [action] = self.dice.choices(*zip(*choices))
        action(queue, active, dead)

    def send(self, queue, operation, status=200):
        """The JSON of the answer, None when it was refused; then nothing has changed."""
        self.doubtful = operation
        reply = queue.client.request(operation.verb, operation.path, operation.body)
        self.doubtful = None
        if reply.status != status:
            self.refusals.append(reply)
            return None
        self.answered_at.append(time.monotonic())
        if operation.after is not None:
            self.jobs = operation.after
        for number in operation.ends:
            self.tokens.pop(number, None)
        return reply.json()

    def push(self, queue, *_):
        numbers = range(self.pushed, self.pushed + self.dice.choice([1, 1, 1, 4]))
        self.pushed += len(numbers)
        answer = self.send(queue, Operation(
            "POST", queue.path("/push"),
            {"jobs": [{"payload": payload_of(n), "key": f"key-{n}"} for n in numbers]},
            self.jobs, self.jobs | {n: Job() for n in numbers}))
        if answer is None:
            return
        for number, result in zip(numbers, answer["results"]):
            assert result["status"] == "pushed", answer
            self.ids[number] = result["id"]

    def claim(self, queue, *_):
        count = self.dice.choice([1, 3])
        answer = self.send(queue, Operation("POST", queue.path("/claim"), {"max": count},
                                            self.jobs, None, claims=count))
        for job in answer["jobs"] if answer else ():
            number = job["payload"]["n"]
            assert job["payload"] == payload_of(number)
            assert self.jobs[number].status == "pending", f"{number} was given out, and is again"
            self.jobs = self.jobs | {number: claimed(self.jobs[number])}
            self.tokens[number] = job["token"]

    def lease_call(self, queue, verb, number, becomes, ends=True, **fields):
        jobs = dict(self.jobs)
        if becomes is None:
            del jobs[number]
        else:
            jobs[number] = becomes
        self.send(queue, Operation(
            "POST", f"/v1/{verb}", {"leases": [{"token": self.tokens[number], **fields}]},
            self.jobs, jobs, [number] if ends else []))

    def ack(self, queue, active, _):
        self.lease_call(queue, "ack", self.dice.choice(active), None)

    def fail(self, queue, active, _):
        number = self.dice.choice(active)
        job = self.jobs[number]
        self.lease_call(queue, "fail", number, Job("failed", job.attempts, job.failures + 1),
                        error="no such customer")

    def bury(self, queue, active, _):
        number = self.dice.choice(active)
        job = self.jobs[number]
        self.lease_call(queue, "fail", number, Job("dead", job.attempts, job.failures + 1),
                        error="never", final=True)

    def release(self, queue, active, _):
        number = self.dice.choice(active)
        job = self.jobs[number]
        self.lease_call(queue, "release", number, Job("pending", job.attempts, job.failures))

    def extend(self, queue, active, _):
        number = self.dice.choice(active)
        self.lease_call(queue, "extend", number, self.jobs[number], ends=False)

    def selected(self, queue, verb, number, becomes):
        jobs = {n: job for n, job in self.jobs.items() if n != number}
        if becomes is not None:
            jobs[number] = becomes
        self.send(queue, Operation("POST", queue.path(verb), {"ids": [self.ids[number]]},
                                   self.jobs, jobs))

    def retry(self, queue, _, dead):
        number = self.dice.choice(dead)
        self.selected(queue, "/retry", number, Job(attempts=self.jobs[number].attempts))

    def purge(self, queue, _, dead):
        self.selected(queue, "/purge", self.dice.choice(dead), None)

    def drop(self, queue, *_):
        number = self.dice.choice([n for n, job in self.jobs.items()
                                   if job.status in ("pending", "failed")])
        jobs = {n: job for n, job in self.jobs.items() if n != number}
        self.send(queue, Operation("DELETE", queue.path(f"/jobs/{self.ids[number]}"), None,
                                   self.jobs, jobs))

    # What must be there.

    def check(self, queue):
        """Everything that was answered is there, nothing twice, and all of it can be worked on."""
        if not self.queue_made:
            if queue.client.request("GET", queue.path()).status == 404:
                return
        listed = queue.all_jobs(limit=1000)
        found = {job["payload"]["n"]: Job(job["status"], job["attempts"], job["failures"])
                 for job in listed}
        assert len(found) == len(listed), "a job is there twice"
        assert all(job["payload"] == payload_of(job["payload"]["n"]) for job in listed)
        known = found == self.jobs
        if not known:
            assert self.doubtful and self.doubtful.explains(found), self.difference(found)
        self.finish_all(queue, found)

    def difference(self, found):
        lines = [f"the last request was {self.doubtful}"[:400] if self.doubtful
                 else "every request was answered"]
        for number in sorted(self.jobs.keys() | found.keys()):
            if self.jobs.get(number) != found.get(number):
                lines.append(f"job {number}: {self.jobs.get(number)} became {found.get(number)}")
        return "\n".join(lines)

    def finish_all(self, queue, found):
        """Leases that were held are held still; each job that waits is given out once."""
        in_doubt = set(self.doubtful.ends) if self.doubtful else set()
        for number, token in self.tokens.items():
            if number not in in_doubt and found[number].status == "active":
                assert queue.client.ack({"token": token})["status"] == "acked"
        waiting = {n for n, job in found.items() if job.status == "pending"}
        given = []
        while jobs := queue.claim(100):
            given += [job["payload"]["n"] for job in jobs]
            assert all(job["payload"] == payload_of(job["payload"]["n"]) for job in jobs)
            queue.client.ack_all(jobs)
        assert sorted(given) == sorted(waiting)
