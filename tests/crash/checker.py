"""What the journal of a client says about the promises of the server.

check() takes the journal of a whole run, up to and including a drain after which no job is left
that is not dead, and what the server then says of itself. It returns violations, each with the name
of the promise that was broken. Where an answer is missing both outcomes are allowed; a violation is
only what no outcome explains.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from journal import payload_is_whole
from times import seconds_since_1970

# How far the clocks of client and server, and a reply on its way, may be apart.
MARGIN_SECONDS = 0.05
ENDINGS = ("ack", "fail", "release")


class Violation(NamedTuple):
    promise: str
    text: str


@dataclass
class Final:
    """What the server says after the drain."""
    stats: dict
    dead: list  # the dead jobs as listed


@dataclass
class Lease:
    job_id: str
    token: str
    attempts: int
    failures: int
    claim: object  # the journal's entry
    deadline: float
    ends: list = field(default_factory=list)  # (kind, entry, result or None when unknown)


@dataclass
class Push:
    name: str
    key: str | None
    entry: object
    job: dict  # as it was sent
    result: dict | None  # None: unknown
    not_before: float = 0.0


class Checker:
    def __init__(self, entries, final):
        self.entries = entries
        self.final = final
        self.violations = []
        self.pushes = {}  # by name of the payload
        self.leases = defaultdict(list)  # by job id, by attempts
        self.by_token = {}
        self.names = {}  # job id -> name of the payload
        self.unknown_claims = [entry for entry in entries
                               if entry.kind == "claim" and entry.outcome == "unknown"]

    def violate(self, promise, text):
        self.violations.append(Violation(promise, text))

    def run(self):
        self.read_pushes()
        self.read_claims()
        self.read_ends()
        self.read_dead()
        for leases in self.leases.values():
            leases.sort(key=lambda lease: lease.attempts)
        self.check_keys()
        for job_id, leases in self.leases.items():
            self.check_attempts(job_id, leases)
            self.check_live_leases(job_id, leases)
            self.check_ends(job_id, leases)
        self.check_nothing_lost()
        self.check_stats()
        return self.violations

    # Reading the journal.

    def read_pushes(self):
        for entry in self.entries:
            if entry.kind != "push" or entry.outcome == "not_sent":
                continue
            results = entry.reply.get("results") or [None] * len(entry.request["jobs"])
            for job, result in zip(entry.request["jobs"], results):
                push = Push(job["payload"]["name"], job.get("key"), entry, job, result)
                push.not_before = entry.sent + job.get("delay", 0)
                self.pushes[push.name] = push
                if result and result["status"] == "pushed":
                    self.learn_name(result["id"], push.name)

    def learn_name(self, job_id, name):
        known = self.names.setdefault(job_id, name)
        if known != name:
            self.violate("payload intact", f"job {job_id} is {known} and {name}")

    def read_claims(self):
        for entry in self.entries:
            if entry.kind == "claim" and entry.outcome == "replied":
                for job in entry.reply["jobs"]:
                    self.read_delivery(entry, job)

    def read_delivery(self, entry, job):
        lease = Lease(job["id"], job["token"], job["attempts"], job["failures"], entry,
                      seconds_since_1970(job["lease_expires_at"]))
        if lease.token in self.by_token:
            self.violate("secret tokens", f"token of {lease.job_id} was given out twice")
        self.by_token[lease.token] = lease
        self.leases[lease.job_id].append(lease)
        if not payload_is_whole(job["payload"]):
            self.violate("payload intact", f"job {job['id']}: {str(job['payload'])[:200]}")
            return
        name = job["payload"]["name"]
        self.learn_name(job["id"], name)
        push = self.pushes.get(name)
        if push is None:
            self.violate("no phantom", f"job {job['id']} ({name}) was never pushed")
        elif job["payload"] != push.job["payload"] or job["headers"] != push.job["headers"]:
            self.violate("payload intact", f"job {job['id']} ({name}) is not as it was pushed")
        elif entry.replied < push.not_before - MARGIN_SECONDS:
            self.violate("delays kept", f"job {job['id']} ({name}) was delivered before it was due")

    def read_ends(self):
        for entry in self.entries:
            if entry.kind not in (*ENDINGS, "extend") or entry.outcome == "not_sent":
                continue
            items = entry.request["leases"]
            results = entry.reply.get("results") or [None] * len(items)
            for item, result in zip(items, results):
                lease = self.by_token.get(item["token"])
                if lease:
                    lease.ends.append((entry.kind, entry, result))

    def read_dead(self):
        for job in self.final.dead:
            if not payload_is_whole(job["payload"]):
                self.violate("payload intact", f"dead job {job['id']}")
                continue
            name = job["payload"]["name"]
            self.learn_name(job["id"], name)
            if name not in self.pushes:
                self.violate("no phantom", f"dead job {job['id']} ({name}) was never pushed")

    # The promises.

    def check_keys(self):
        """All that was ever said about one key, and all that was stored under it, is one job."""
        ids_of_name = defaultdict(set)
        for job_id, name in self.names.items():
            ids_of_name[name].add(job_id)
        jobs = defaultdict(set)
        for push in self.pushes.values():
            if push.key is not None:
                jobs[push.key] |= ids_of_name[push.name]
                if push.result and push.result["status"] in ("pushed", "duplicate"):
                    jobs[push.key].add(push.result["id"])
            elif len(ids_of_name[push.name]) > 1:
                self.violate("pushed once", f"{push.name} is {sorted(ids_of_name[push.name])}")
        for key, ids in jobs.items():
            if len(ids) > 1:
                self.violate("one job per key", f"key {key} has the jobs {sorted(ids)}")

    def check_attempts(self, job_id, leases):
        for index, lease in enumerate(leases):
            if index and lease.attempts == leases[index - 1].attempts:
                self.violate("attempts exact", f"job {job_id}: attempt {lease.attempts} twice")
            # At least the leases known to be granted before, at most all that may have been.
            least = sum(other.claim.replied < lease.claim.sent for other in leases) + 1
            doubtful = sum(entry.sent < lease.claim.replied for entry in self.unknown_claims)
            most = index + doubtful + 1
            if not least <= lease.attempts <= most:
                self.violate("attempts exact", (
                    f"job {job_id}: attempt {lease.attempts}, should be {least} to {most}"))
            self.check_failures(job_id, leases, index)

    def check_failures(self, job_id, leases, index):
        lease = leases[index]
        failed = released = 0
        for earlier in leases[:index]:
            failed += any(kind == "fail" and result and result["status"] == "retrying"
                          for kind, _, result in earlier.ends)
            released += any(kind == "release" and result and result["status"] == "released"
                            for kind, _, result in earlier.ends)
        if not failed <= lease.failures <= lease.attempts - 1 - released:
            self.violate("failures exact", (
                f"job {job_id}: {lease.failures} failures at attempt {lease.attempts}, with "
                f"{failed} reported and {released} releases"))

    def check_live_leases(self, job_id, leases):
        for earlier, later in zip(leases, leases[1:]):
            early = self.held_until(earlier) - later.claim.replied
            if early > MARGIN_SECONDS:
                self.violate("one live lease", (
                    f"job {job_id}: attempt {later.attempts} was handed out {early:.3f} s before "
                    f"the lease of attempt {earlier.attempts} could end"))

    @staticmethod
    def held_until(lease):
        """The earliest moment at which the lease may have ended."""
        until = lease.deadline
        for kind, entry, result in sorted(lease.ends, key=lambda end: end[1].sent):
            if result and result["status"] == "rejected":
                continue
            if kind != "extend":
                until = min(until, entry.sent)
            elif result:
                until = seconds_since_1970(result["lease_expires_at"])
            else:
                until = min(until, entry.sent + min(item["lease"]
                                                    for item in entry.request["leases"]))
        return until

    def check_ends(self, job_id, leases):
        for lease in leases:
            accepted = [(kind, entry, result) for kind, entry, result in lease.ends
                        if result and result["status"] != "rejected"]
            for kind, entry, result in accepted:
                self.check_not_stale(job_id, leases, lease, kind, entry)
                ended_before = [other for other, other_entry, _ in accepted
                                if other in ENDINGS and other_entry.replied < entry.sent]
                if ended_before:
                    self.violate("stale token refused", (
                        f"job {job_id}: {kind} of attempt {lease.attempts} was accepted after "
                        f"{ended_before[0]}"))
                if kind == "ack" and leases[-1].attempts > lease.attempts:
                    self.violate("ack is final", (
                        f"job {job_id}: attempt {lease.attempts} was acked, yet attempt "
                        f"{leases[-1].attempts} was handed out"))
                if kind == "fail" and result["status"] == "dead" and (
                        leases[-1].attempts > lease.attempts):
                    self.violate("dead is final", f"job {job_id} was handed out after its death")

    def check_not_stale(self, job_id, leases, lease, kind, entry):
        newer = [other for other in leases
                 if other.attempts > lease.attempts and other.claim.replied < entry.sent]
        if newer:
            self.violate("stale token refused", (
                f"job {job_id}: {kind} of attempt {lease.attempts} was accepted although attempt "
                f"{newer[0].attempts} had been handed out"))

    def finished(self, job_id):
        """"yes", "maybe" or "no": whether an ack ended the job."""
        results = [result for lease in self.leases.get(job_id, [])
                   for kind, _, result in lease.ends if kind == "ack"]
        if any(result and result["status"] == "acked" for result in results):
            return "yes"
        return "maybe" if None in results else "no"

    def check_nothing_lost(self):
        dead = {job["id"]: job for job in self.final.dead}
        for job_id, name in self.names.items():
            finished = self.finished(job_id)
            if finished == "yes" and job_id in dead:
                self.violate("ack is final", f"job {job_id} ({name}) was acked and is dead")
            if finished == "no" and job_id not in dead:
                self.violate("acknowledged push kept", f"job {job_id} ({name}) is lost")
        self.check_promised_deaths(dead)

    def check_promised_deaths(self, dead):
        for job_id, leases in self.leases.items():
            for lease in leases:
                told = [result for kind, _, result in lease.ends
                        if kind == "fail" and result and result["status"] == "dead"]
                if told and job_id not in dead:
                    self.violate("dead is final", f"job {job_id} died and is not among the dead")

    def check_stats(self):
        """After the drain every number is known exactly: each job that was ever stored has been
        seen, and how often it was leased is in its last delivery or in its record as a dead job."""
        dead = {job["id"]: job for job in self.final.dead}
        seen = set(self.names) | set(dead)
        leases = {job_id: max(lease.attempts for lease in leases)
                  for job_id, leases in self.leases.items()}
        leases |= {job_id: job["attempts"] for job_id, job in dead.items()}
        stats = self.final.stats
        expected = {
            "scheduled": 0, "pending": 0, "active": 0, "failed": 0, "dead": len(dead),
            "completed": len(seen) - len(dead),
        }
        expected_totals = {
            "pushed": len(seen), "claimed": sum(leases.values()), "dropped": 0, "expired": 0,
            "completed": len(seen) - len(dead), "died": len(dead),
        }
        for name, count in expected.items():
            if stats[name] != count:
                self.violate("stats true", f"{name} is {stats[name]}, should be {count}")
        for name, count in expected_totals.items():
            if stats["totals"][name] != count:
                self.violate("stats true",
                             f"totals.{name} is {stats['totals'][name]}, should be {count}")


def check(entries, final):
    return Checker(entries, final).run()
