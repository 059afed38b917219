"""Order: fresh jobs of a queue and fairness key go by priority, then in push order.

With many clients at once nobody knows the exact order of pushes, nor that of claims. What is known is
enough: when a job was answered as pushed, and was not claimed before another claim, sent later, gave
it out for the first time, then it was waiting all the while between; and what was behind it must not
have been handed out in that time.
"""

from bisect import bisect_left
from collections import defaultdict


class Waiting:
    """Jobs of one line and priority, by the moment from which they certainly waited, with the moment
    until which they certainly did."""

    def __init__(self):
        self.jobs = []

    def add(self, since, until, job):
        self.jobs.append((since, until, job))

    def finish(self):
        self.jobs.sort(key=lambda waiting: waiting[0])
        self.since = [since for since, _, _ in self.jobs]
        self.longest = []  # of the first n: the one that waited until the latest moment
        for _, until, job in self.jobs:
            if self.longest and self.longest[-1][0] >= until:
                self.longest.append(self.longest[-1])
            else:
                self.longest.append((until, job))

    def since_before(self, since, until):
        """A job that waited before `since` and still did after `until`."""
        index = bisect_left(self.since, since)
        if index and self.longest[index - 1][0] > until:
            return self.longest[index - 1][1]
        return None


def certain_waits(history):
    """{line: {priority: Waiting}} of the jobs of which both ends of the wait are known."""
    waits = defaultdict(lambda: defaultdict(Waiting))
    for job in history.jobs.values():
        push = history.pushes.get(job.name)
        if not push or push.status != "pushed" or "delay" in push.job or not job.leases:
            continue
        first = job.leases[0]
        if first.attempts == 1:
            waits[push.line][push.priority].add(push.entry.replied, first.claim.sent, job)
    for line in waits.values():
        for waiting in line.values():
            waiting.finish()
    return waits


def order_violations(history):
    waits = certain_waits(history)
    for job in history.jobs.values():
        push = history.pushes.get(job.name)
        if not push:
            continue
        for lease in job.leases:
            if lease.failures == 0:  # from the fresh lane
                ahead = overtaken(waits[push.line], push, lease)
                if ahead:
                    yield (f"job {job.id} ({job.name}) was handed out before {ahead.id} "
                           f"({ahead.name}), which was waiting ahead of it")
    yield from batch_violations(history)


def overtaken(line, push, lease):
    """A job that was ahead of this one, and was waiting before, during and after its claim."""
    claim = lease.claim
    for priority, waiting in line.items():
        if priority > lease.priority:
            continue
        # Of the same priority it is ahead when it was pushed before.
        since = claim.sent if priority < lease.priority else min(claim.sent, push.entry.sent)
        found = waiting.since_before(since, claim.replied)
        if found:
            return found
    return None


def batch_violations(history):
    """The jobs of one push are there at the same moment, in their order; those of one reply were
    taken in the order in which they are in it."""
    first_leases = {job.name: job.leases[0] for job in history.jobs.values() if job.leases}
    batches = defaultdict(list)
    for push in history.pushes.values():
        lease = first_leases.get(push.name)
        if lease and lease.attempts == 1 and "delay" not in push.job:
            batches[id(push.entry), push.line, push.priority].append((push.index, push.name, lease))
    places = {id(lease): place for place, lease in enumerate(history.leases.values())}
    for jobs in batches.values():
        jobs.sort(key=lambda job: job[0])
        latest, latest_name = None, None
        for _, name, lease in jobs:
            if latest is not None and overtakes(lease, latest, places):
                yield f"{name} was handed out before {latest_name}, which is ahead of it in one push"
            if latest is None or lease.claim.sent > latest.claim.sent:
                latest, latest_name = lease, name


def overtakes(lease, ahead, places):
    if lease.claim is ahead.claim:
        return places[id(lease)] < places[id(ahead)]
    return lease.claim.replied < ahead.claim.sent
