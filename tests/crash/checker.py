"""What the journal of the clients says about the promises of the server.

check() takes the journal of a whole run, up to and including a drain, and what the server then says
of itself. It returns violations, each of one of the KINDS. Where an answer is missing both outcomes
are allowed; a violation is only what no outcome explains.
"""

from collections import defaultdict
from typing import NamedTuple

from commands import ANY_STATUS
from history import ENDINGS, Final, History
from order import order_violations
from stats import stats_violations
from times import seconds_since_1970
from workload import ATTEMPTS, BURY, TUBE_COOLDOWN_SECONDS

__all__ = ["KINDS", "Final", "Violation", "check"]

# How far the clocks of client and server, and a reply on its way, may be apart.
MARGIN_SECONDS = 0.05

# Each by the name that it always has; planted_bug.h knows them by the same.
KINDS = {
    "lost": "an acknowledged job is neither finished, nor dead, nor purged, nor there",
    "phantom": "a job is there that nobody pushed, or whose push was refused",
    "resurrected": "a job comes back after its ack, its death or its purge",
    "double_lease": "a job is handed out, or a token refused, while a lease of it lasts",
    "stale_token": "a token is accepted after its lease has ended",
    "wrong_attempts": "attempts or failures are repeated, skipped, forgotten or invented",
    "stuck": "a job is there and nobody can get it",
    "corrupted": "a payload, a header or a priority is not as it was pushed",
    "duplicate": "two jobs are stored under one key, or for one push",
    "wrong_death": "a job dies before its last failure, or outlives it",
    "wrong_order": "a job is handed out before one that was ahead of it",
    "wrong_stats": "counts and totals are not what happened",
    "early": "a job is handed out before it is due",
}


class Violation(NamedTuple):
    kind: str
    text: str


class Checker:
    def __init__(self, entries, finals):
        self.violations = []
        self.history = History(entries, finals, self.violate)

    def violate(self, kind, text):
        assert kind in KINDS
        self.violations.append(Violation(kind, text))

    def run(self):
        self.check_keys()
        for job in self.history.jobs.values():
            self.check_attempts(job)
            self.check_priorities(job)
            self.check_due_times(job)
            self.check_live_leases(job)
            self.check_tokens(job)
            self.check_endings(job)
            self.check_commands(job)
            self.check_deaths(job)
            self.check_there(job)
        for text in order_violations(self.history):
            self.violate("wrong_order", text)
        for text in stats_violations(self.history):
            self.violate("wrong_stats", text)
        return self.violations

    def check_keys(self):
        """All that was ever said about one key, and all that was stored under it, is one job; and
        what has no key is stored once."""
        ids_of_name = defaultdict(set)
        for job in self.history.jobs.values():
            ids_of_name[job.name].add(job.id)
        jobs = defaultdict(set)
        for push in self.history.pushes.values():
            if push.key is not None:
                jobs[push.queue, push.key] |= ids_of_name[push.name]
                if push.status in ("pushed", "duplicate"):
                    jobs[push.queue, push.key].add(push.result["id"])
            elif len(ids_of_name[push.name]) > 1:
                self.violate("duplicate", f"{push.name} is {sorted(ids_of_name[push.name])}")
        for (_, key), ids in jobs.items():
            if len(ids) > 1:
                self.violate("duplicate", f"key {key} has the jobs {sorted(ids)}")

    # Attempts and failures.

    def check_attempts(self, job):
        push = self.history.pushes.get(job.name)
        before = (0, push.entry.sent if push else 0.0)
        for index, lease in enumerate(job.leases):
            # Each lease that is skipped is one of a claim without an answer.
            attempts, since = before
            most = attempts + 1 + self.history.unknown_claims.between(
                job.queue, since, lease.claim.replied)
            if not attempts < lease.attempts <= most:
                self.violate("wrong_attempts", (
                    f"job {job.id}: attempt {lease.attempts}, should be {attempts + 1} to {most}"))
            if any(other.claim.replied < lease.claim.sent for other in job.leases[index + 1:]):
                self.violate("wrong_attempts",
                             f"job {job.id}: attempt {lease.attempts} comes after later ones")
            before = lease.attempts, lease.claim.sent
            self.check_failures(job, index)
        listed = job.dead or job.left
        if listed:
            most = before[0] + self.history.unknown_claims.between(
                job.queue, before[1], float("inf"))
            if not before[0] <= listed["attempts"] <= most:
                self.violate("wrong_attempts", (
                    f"job {job.id} ended with attempt {listed['attempts']}, should be {before[0]} "
                    f"to {most}"))

    def check_failures(self, job, index):
        lease = job.leases[index]
        least, most = self.failure_bounds(job, index)
        if lease.failures is not None and not least <= lease.failures <= most:
            self.violate("wrong_attempts", (
                f"job {job.id}: {lease.failures} failures at attempt {lease.attempts}, should be "
                f"{least} to {most}"))

    def failure_bounds(self, job, index):
        """At least those that were reported since the last retry by hand, at most all attempts
        since then that did not end without one."""
        lease = job.leases[index]
        least, most = 0, lease.attempts - 1
        for place, earlier in enumerate(job.leases[:index]):
            for end in earlier.ends:
                if end.kind == "fail" and end.status == "retrying" and not (
                        self.history.may_have_been(job, "retry", end.entry.sent,
                                                   lease.claim.replied)):
                    least += 1
            most -= earlier.counts_no_failure(job.leases[place + 1])
        for command in job.commands:
            if command.kind == "retry" and command.done and command.entry.over < lease.claim.sent:
                known = [other for other in job.leases[:index]
                         if other.claim.replied < command.entry.sent]
                if known:
                    most = min(most, lease.attempts - 1 - known[-1].attempts)
        return least, most

    def check_priorities(self, job):
        """As it was pushed, or as the last release or burial has set it."""
        push = self.history.pushes.get(job.name)
        if not push:
            return
        possible = {push.priority}
        for lease in job.leases:
            if lease.priority not in possible:
                self.violate("corrupted", (
                    f"job {job.id} ({job.name}) has priority {lease.priority} at attempt "
                    f"{lease.attempts}, should be one of {sorted(possible)}"))
            for end in lease.ends:
                if "priority" in end.item and not end.refused:
                    kept = set() if end.accepted else possible
                    possible = kept | {end.item["priority"]}

    # Time.

    def check_due_times(self, job):
        push = self.history.pushes.get(job.name)
        if push and job.leases:
            self.check_not_early(job, job.leases[0], push.entry.sent, push.not_before, "its delay",
                                 {"scheduled"})
        for earlier, later in zip(job.leases, job.leases[1:]):
            # It can only have died between them by a lease that nobody knows.
            was = {"failed", "scheduled"} if later.attempts == earlier.attempts + 1 else ANY_STATUS
            for end in earlier.ends:
                if end.status == "retrying":
                    self.check_not_early(job, later, end.entry.sent, retry_time(end),
                                         "its retry time", was)
                elif end.status == "released":
                    self.check_not_early(job, later, end.entry.sent,
                                         end.entry.sent + end.item.get("delay", 0),
                                         "the delay of its release", was)

    def check_not_early(self, job, lease, since, due, what, was):
        """Unless a retry may have ended the wait since then, of a job of these statuses."""
        early = due - lease.claim.replied
        if early > MARGIN_SECONDS and not self.history.may_have_been(
                job, "retry", since, lease.claim.replied, was):
            self.violate("early", (
                f"job {job.id} ({job.name}): attempt {lease.attempts} was handed out {early:.3f} s "
                f"before {what} was over"))

    # Leases.

    def check_live_leases(self, job):
        for earlier, later in zip(job.leases, job.leases[1:]):
            early = earlier.held_until() - later.claim.replied
            if early > MARGIN_SECONDS:
                self.violate("double_lease", (
                    f"job {job.id}: attempt {later.attempts} was handed out {early:.3f} s before "
                    f"the lease of attempt {earlier.attempts} could end"))

    def check_tokens(self, job):
        for lease in job.leases:
            accepted = [end for end in lease.ends if end.accepted]
            for end in accepted:
                self.check_not_stale(job, lease, end, accepted)
            for end in lease.ends:
                left = lease.held_until(end.entry.sent) - end.entry.replied
                if end.refused and left > MARGIN_SECONDS:
                    self.violate("double_lease", (
                        f"job {job.id}: {end.kind} of attempt {lease.attempts} was refused "
                        f"{left:.3f} s before its lease could end"))

    def check_not_stale(self, job, lease, end, accepted):
        what = f"job {job.id}: {end.kind} of attempt {lease.attempts} was accepted"
        if end.entry.door == "tube" and end.kind == "ack":
            return self.check_not_taken_away(job, lease, end, what)
        if lease.hung_up is not None and lease.hung_up < end.entry.sent:
            self.violate("stale_token", f"{what} after its connection had ended")
        for newer in job.leases:
            if newer.attempts > lease.attempts and newer.claim.replied < end.entry.sent:
                self.violate("stale_token", (
                    f"{what} although attempt {newer.attempts} had been handed out"))
                break
        for other in accepted:
            if other.kind in ENDINGS and other.entry.replied < end.entry.sent:
                self.violate("stale_token", f"{what} after {other.kind}")
                break
        late = end.entry.sent - lease.latest_deadline
        if late > MARGIN_SECONDS:
            self.violate("stale_token", f"{what} {late:.3f} s after the lease had expired")

    def check_not_taken_away(self, job, lease, end, what):
        """A delete after the lease's end takes what is nobody's, and nothing that somebody holds or
        that is gone."""
        for newer in job.leases:
            if (newer.attempts > lease.attempts and newer.claim.replied < end.entry.sent
                    and newer.held_until() - end.entry.replied > MARGIN_SECONDS):
                self.violate("stale_token", f"{what} while attempt {newer.attempts} was held")
        for other in (other for each in job.leases for other in each.ends):
            if other.status == "acked" and other.entry.replied < end.entry.sent:
                self.violate("stale_token", f"{what} after ack")

    # Ends.

    def check_endings(self, job):
        """After an ack, a death or a purge there are no more leases, unless a retry came between."""
        if not job.leases:
            return
        last = job.leases[-1]
        for lease in job.leases[:-1]:
            for end in lease.ends:
                if end.status == "acked" and not (
                        lease.may_be_over_at(end) and last.claim.sent < end.entry.replied):
                    self.violate("resurrected", (
                        f"job {job.id} ({job.name}): attempt {lease.attempts} was acked, yet "
                        f"attempt {last.attempts} was handed out"))
                elif end.status == "dead" and not self.history.may_have_been(
                        job, "retry", end.entry.sent, last.claim.replied, {"dead"}):
                    self.violate("resurrected",
                                 f"job {job.id} ({job.name}) was handed out after its death")
        for command in job.commands:
            if command.kind == "purge" and command.done and command.entry.over < last.claim.sent:
                self.violate("resurrected",
                             f"job {job.id} ({job.name}) was handed out after it was purged")
        if job.acked == "yes" and (job.dead or job.left):
            self.violate("resurrected", (
                f"job {job.id} ({job.name}) was acked and is "
                f"{(job.dead or job.left)['status']} at the end"))

    def check_commands(self, job):
        """What was answered as retried is not as dead as before; what was purged is gone. So is
        what a filter took for certain, of which nobody was told the id."""
        push = self.history.pushes.get(job.name)
        for lease in job.leases:
            for end in lease.ends:
                if end.status != "dead":
                    continue
                taken = [command for command in job.commands
                         if command.done and end.entry.replied < command.entry.sent]
                taken += [sweep for sweep in self.history.sweeps[job.queue]
                          if sweep.certainly_takes(end, push)]
                for command in taken:
                    self.check_taken(job, lease, end, command)

    def check_taken(self, job, lease, death, command):
        if command.kind == "retry":
            if job.dead and job.dead["attempts"] == lease.attempts:
                self.violate("stuck",
                             f"job {job.id} ({job.name}) was retried and is dead as before")
        elif not self.history.may_have_been(job, "retry", death.entry.sent, command.entry.over):
            later = [each for each in job.leases if each.claim.sent > command.entry.over]
            if later or job.dead:
                self.violate("resurrected", f"job {job.id} ({job.name}) was purged and is there")

    def check_deaths(self, job):
        for index, lease in enumerate(job.leases):
            if (lease.failures or 0) >= ATTEMPTS:
                self.violate("wrong_death", (
                    f"job {job.id} was handed out with {lease.failures} failures"))
            for end in lease.ends:
                if end.kind == "fail" and end.accepted:
                    self.check_decision(job, index, end)
        if job.dead:
            self.check_reason(job)

    def check_decision(self, job, index, end):
        lease = job.leases[index]
        least, most = self.failure_bounds(job, index) if lease.failures is None else (
            lease.failures, lease.failures)
        for_good = end.item.get("final") or end.item.get("bury")
        may_die = most + 1 >= ATTEMPTS or for_good or end.item.get("error") == BURY
        must_die = least + 1 >= ATTEMPTS or for_good
        if end.status == "dead" and not may_die:
            self.violate("wrong_death",
                         f"job {job.id} died at its failure {most + 1}: {end.result}")
        if end.status == "retrying" and must_die:
            self.violate("wrong_death", f"job {job.id} outlived its failure {least + 1}")

    def check_reason(self, job):
        reason, failures = job.dead["reason"], job.dead["failures"]
        fails = [end for lease in job.leases for end in lease.ends
                 if end.kind == "fail" and not end.refused]
        if reason == "corrupt":
            self.violate("corrupted", f"job {job.id} died as corrupt")
        elif reason == "final":
            explained = any(end.item.get("final") for end in fails)
        elif reason == "buried":
            explained = any(end.item.get("bury") or end.item.get("error") == BURY for end in fails)
            self.check_burial(job)
        else:
            explained = failures == ATTEMPTS
        if reason != "corrupt" and not explained:
            self.violate("wrong_death",
                         f"job {job.id} is dead with {failures} failures and reason {reason}")

    def check_burial(self, job):
        """That of a client is no failure."""
        last = len(job.leases) - 1
        if last < 0 or job.leases[last].attempts != job.dead["attempts"] or not any(
                end.accepted and end.item.get("bury") for end in job.leases[last].ends):
            return
        least, most = self.failure_bounds(job, last)
        if not least <= job.dead["failures"] <= most:
            self.violate("wrong_attempts", (
                f"job {job.id} was buried with {job.dead['failures']} failures, should be "
                f"{least} to {most}"))

    def check_there(self, job):
        if job.left and job.acked != "yes":
            self.violate("stuck", (
                f"job {job.id} ({job.name}) is {job.left['status']} at the end, due "
                f"{job.left['due_at']}, and was not handed out"))
        known = job.leases or job.name is not None
        if not known or job.dead or job.left:
            return
        if job.acked == "no" and not self.history.purges(job):
            self.violate("lost", f"job {job.id} ({job.name}) is gone")


def retry_time(end):
    """The earliest that it may be: over the beanstalk protocol it is told in whole seconds, rounded
    up, and no hook has a say there."""
    if "retry_at" in end.result:
        return seconds_since_1970(end.result["retry_at"])
    return end.entry.sent + TUBE_COOLDOWN_SECONDS


def check(entries, finals):
    return Checker(entries, finals).run()
