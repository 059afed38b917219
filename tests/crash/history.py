"""What a journal says about each job: pushes, leases and their ends, retries and purges."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from commands import ANY_STATUS, Command, Sweep
from times import seconds_since_1970
from workload import ATTEMPTS, DEFAULT_PRIORITY

ENDINGS = ("ack", "fail", "release")


@dataclass
class Final:
    """What the server says of a queue after the drain."""
    stats: dict
    dead: list  # the dead jobs as listed
    left: list = field(default_factory=list)  # all others


@dataclass
class Push:
    entry: object  # the journal's
    index: int
    job: dict  # as it was sent
    result: dict | None  # None: unknown

    @property
    def name(self):
        return self.job["payload"]["name"]

    @property
    def queue(self):
        return self.entry.queue

    @property
    def key(self):
        return self.job.get("key")

    @property
    def status(self):
        return self.result["status"] if self.result else "unknown"

    @property
    def line(self):
        """Jobs of one line are served by priority, then in push order."""
        return self.queue, self.job.get("fairness_key", "default")

    @property
    def priority(self):
        return self.job.get("priority", DEFAULT_PRIORITY)

    @property
    def not_before(self):
        return self.entry.sent + self.job.get("delay", 0)


class End(NamedTuple):
    """A use of a lease's token."""
    kind: str
    entry: object
    item: dict
    result: dict | None  # None: unknown

    @property
    def status(self):
        return self.result["status"] if self.result else "unknown"

    @property
    def refused(self):
        return self.status == "rejected"

    @property
    def accepted(self):
        return self.result is not None and not self.refused

    @property
    def deadline(self):
        """Of an extension, the earliest that it may have set."""
        if self.result and "lease_expires_at" in self.result:
            return seconds_since_1970(self.result["lease_expires_at"])
        return self.entry.sent + self.item["lease"]

    @property
    def latest_deadline(self):
        if self.result and "lease_expires_at" in self.result:
            return seconds_since_1970(self.result["lease_expires_at"])
        return self.entry.over + self.item["lease"]


@dataclass
class Lease:
    job_id: str
    token: str
    attempts: int
    failures: int | None  # None: it was not told
    priority: int
    claim: object  # the journal's entry
    deadline: float  # the earliest and the latest that it may have begun with
    last_deadline: float
    ends: list = field(default_factory=list)

    def held_until(self, before=float("inf")):
        """The earliest moment at which it may have ended, by what was sent before a moment."""
        until = self.deadline
        for end in sorted(self.ends, key=lambda end: end.entry.sent):
            if end.refused or end.entry.sent >= before:
                continue
            if end.kind != "extend":
                until = min(until, end.entry.sent)
            elif end.result:
                until = end.deadline
            else:
                until = min(until, end.deadline)
        return until

    @cached_property
    def latest_deadline(self):
        """The last moment at which its token may be good."""
        return max([self.last_deadline, *(end.latest_deadline for end in self.ends
                                          if end.kind == "extend" and not end.refused)])

    @cached_property
    def hung_up(self):
        """When the connection that had it was gone; None: it was not, or the lease needs none."""
        return min((end.entry.sent for end in self.ends if end.kind == "hang_up"), default=None)

    def may_be_over_at(self, end):
        """Whether a delete over the beanstalk protocol may have come after its end: then the job
        was anybody's who knew its number, and no lease counts."""
        return end.entry.door == "tube" and self.held_until(end.entry.sent) < end.entry.over

    def counts_no_failure(self, later):
        """Whether it certainly ended as no failure, by what is known of a later lease."""
        if any(end.accepted and (end.kind == "release" or end.item.get("bury"))
               for end in self.ends):
            return True
        may_have_failed = any(end.kind == "fail" and not end.refused for end in self.ends)
        return (self.hung_up is not None and not may_have_failed
                and later.claim.replied < self.deadline)


@dataclass
class Job:
    id: str
    queue: str
    name: str | None = None
    leases: list = field(default_factory=list)  # by attempts, when all is read
    commands: list = field(default_factory=list)
    dead: dict | None = None  # as listed at the end
    left: dict | None = None

    @cached_property
    def acked(self):
        """"yes", "maybe" or "no"."""
        acks = [end for lease in self.leases for end in lease.ends if end.kind == "ack"]
        if any(end.accepted for end in acks):
            return "yes"
        return "maybe" if any(end.result is None for end in acks) else "no"

    @cached_property
    def perhaps_dropped(self):
        """Whether it may not have been finished but dropped."""
        return any(lease.may_be_over_at(end) for lease in self.leases for end in lease.ends
                   if end.kind == "ack" and not end.refused)


class UnknownClaims:
    """Claims without an answer, any of which may have leased a job."""

    def __init__(self, entries):
        self.sent = defaultdict(list)
        self.over = defaultdict(list)
        for entry in entries:
            if entry.kind == "claim" and entry.outcome == "unknown":
                for queue in entry.request.get("queues", [entry.queue]):
                    self.sent[queue].append(entry.sent)
                    self.over[queue].append(entry.over)
        for times in (*self.sent.values(), *self.over.values()):
            times.sort()

    def between(self, queue, after, before):
        """How many may have been carried out between two moments."""
        if before <= after:
            return 0
        return (bisect_left(self.sent[queue], before)
                - bisect_right(self.over[queue], after))


def make_lease(entry, delivered):
    if entry.door == "tube":
        # It does not say when it ends, nor how often the job has failed.
        deadlines = entry.sent + delivered["ttr"], entry.replied + delivered["ttr"]
        failures = 0 if delivered["attempts"] == 1 else None
    else:
        deadlines = (seconds_since_1970(delivered["lease_expires_at"]),) * 2
        failures = delivered["failures"]
    return Lease(delivered["id"], delivered["token"], delivered["attempts"], failures,
                 delivered.get("priority", DEFAULT_PRIORITY), entry, *deadlines)


def is_as_pushed(delivered, pushed):
    """All but the priority, which a release may change."""
    return (delivered["payload"] == pushed["payload"]
            and delivered.get("headers", pushed["headers"]) == pushed["headers"]
            # Of a job that has none, the queue says how long it is.
            and ("ttr" not in delivered or delivered["ttr"] == pushed.get("ttr", delivered["ttr"])))


class History:
    """`report(kind, text)` is called with what is wrong by itself, whatever else is known."""

    def __init__(self, entries, finals, report):
        self.report = report
        self.entries = [entry for entry in entries if entry.outcome != "not_sent"]
        self.finals = finals
        self.pushes = {}  # by name of the payload
        self.jobs = {}  # by id
        self.leases = {}  # by token
        self.sweeps = defaultdict(list)  # by queue
        self.unknown_claims = UnknownClaims(self.entries)
        self._read_pushes()
        self._read_claims()
        self._read_ends()
        self._read_commands()
        self._read_finals()
        for job in self.jobs.values():
            job.leases.sort(key=lambda lease: lease.attempts)

    def _job(self, job_id, queue):
        return self.jobs.setdefault(job_id, Job(job_id, queue))

    def learn_name(self, job, name):
        if job.name is None:
            job.name = name
        elif job.name != name:
            self.report("corrupted", f"job {job.id} is {job.name} and {name}")

    def _read_pushes(self):
        for entry in self.entries:
            if entry.kind != "push":
                continue
            results = entry.reply.get("results") or [None] * len(entry.request["jobs"])
            for index, (job, result) in enumerate(zip(entry.request["jobs"], results)):
                push = Push(entry, index, job, result)
                self.pushes[push.name] = push
                if push.status == "pushed":
                    self.learn_name(self._job(result["id"], entry.queue), push.name)

    def _read_claims(self):
        for entry in self.entries:
            if entry.kind == "claim" and entry.outcome == "replied":
                for job in entry.reply["jobs"]:
                    self._read_delivery(entry, job)

    def _read_delivery(self, entry, delivered):
        queue = delivered.get("queue", entry.queue)
        job = self._job(delivered["id"], queue)
        if delivered.get("held", True):
            lease = make_lease(entry, delivered)
            if lease.token in self.leases:
                self.report("double_lease", f"the token of {lease.job_id} was given out twice")
            self.leases[lease.token] = lease
            job.leases.append(lease)
        else:
            self.report("double_lease", f"job {job.id} was given out, and was not held then")
        payload = delivered["payload"]
        if "damaged" in payload:
            self.report("corrupted", f"job {job.id}: {payload['damaged']}")
            return
        self.learn_name(job, payload["name"])
        push = self.pushes.get(payload["name"])
        what = f"job {job.id} ({payload['name']})"
        if push is None:
            self.report("phantom", f"{what} was never pushed")
        elif push.status == "rejected":
            self.report("phantom", f"{what} was delivered although its push was refused")
        elif push.queue != queue:
            self.report("phantom", f"{what} was pushed to {push.queue}, not to {queue}")
        elif not is_as_pushed(delivered, push.job):
            self.report("corrupted", f"{what} is not as it was pushed")

    def _read_ends(self):
        for entry in self.entries:
            if entry.kind not in (*ENDINGS, "extend", "hang_up"):
                continue
            items = entry.request["leases"]
            results = entry.reply.get("results") or [None] * len(items)
            for item, result in zip(items, results):
                lease = self.leases.get(item["token"])
                if lease:
                    lease.ends.append(End(entry.kind, entry, item, result))

    def _read_commands(self):
        for entry in self.entries:
            if entry.kind not in ("retry", "purge"):
                continue
            if "ids" not in entry.request:
                self.sweeps[entry.queue].append(Sweep(entry))
                continue
            undone = {skipped["id"] for skipped in entry.reply.get("skipped", ())}
            undone |= set(entry.reply.get("not_found", ()))
            for job_id in entry.request["ids"]:
                done = None if entry.outcome == "unknown" else job_id not in undone
                self._job(job_id, entry.queue).commands.append(Command(entry.kind, entry, done))

    def may_have_been(self, job, kind, after, before, was=ANY_STATUS):
        """Whether a command of this kind may have been carried out on the job between two moments,
        when it had one of these statuses."""
        return any(command.kind == kind and command.done is not False
                   and command.entry.over > after and command.entry.sent < before
                   and command.takes & was and command.may_fit(job, self.pushes.get(job.name))
                   for command in (*job.commands, *self.sweeps[job.queue]))

    def purges(self, job):
        """Those that may have been carried out on the job: it may have been dead then."""
        return [command for command in (*job.commands, *self.sweeps[job.queue])
                if command.kind == "purge" and command.done is not False
                and command.may_fit(job, self.pushes.get(job.name))
                and self.may_be_dead(job, command.entry.over)]

    def may_be_dead(self, job, before):
        if any(end.kind == "fail" and not end.refused and end.status != "retrying"
               and end.entry.sent < before for lease in job.leases for end in lease.ends):
            return True
        # By leases that expired.
        known = [lease for lease in job.leases if lease.claim.sent < before]
        attempts, since = (known[-1].attempts, known[-1].claim.sent) if known else (0, 0.0)
        return attempts + self.unknown_claims.between(job.queue, since, before) >= ATTEMPTS

    def _read_finals(self):
        for queue, final in self.finals.items():
            for listed in final.dead:
                job = self._job(listed["id"], queue)
                job.dead = listed
                self._read_listed(job, listed)
            for listed in final.left:
                job = self._job(listed["id"], queue)
                job.left = listed
                self._read_listed(job, listed)

    def _read_listed(self, job, listed):
        payload = listed["payload"]
        if "damaged" in payload:
            self.report("corrupted", f"the {listed['status']} job {job.id} is damaged")
            return
        self.learn_name(job, payload["name"])
        push = self.pushes.get(payload["name"])
        if push is None or push.status == "rejected":
            self.report("phantom",
                        f"the {listed['status']} job {job.id} ({payload['name']}) was never pushed")
