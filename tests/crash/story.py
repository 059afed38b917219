"""Journals written by hand, for the tests of the checker."""

import time

from checker import Final, check
from journal import Entry, brief, make_payload
from workload import DEFAULT_PRIORITY

START = 1_700_000_000.0
LEASE_SECONDS = 30.0
QUEUE = "plain"


def moment(seconds):
    """START + seconds as the API writes it."""
    at = START + seconds
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{whole}.{round(at % 1 * 1000) % 1000:03}Z"


class Story:
    """A journal written by hand. Each request takes 10 ms of its time."""

    def __init__(self):
        self.entries = []
        self.now = 0.0

    def at(self, seconds):
        self.now = seconds
        return self

    def add(self, kind, request, reply, door="http"):
        entry = Entry(kind, request, START + self.now, QUEUE, door)
        if reply is not None:
            entry.outcome, entry.status, entry.reply = "replied", 200, reply
            entry.replied = START + self.now + 0.01
        else:
            entry.lost = START + self.now + 0.01
        self.entries.append(entry)
        self.now += 0.02
        return self

    def push(self, name, job_id=None, answered=True, status="pushed", **fields):
        return self.push_all([(name, job_id)], answered, status, **fields)

    def push_all(self, jobs, answered=True, status="pushed", **fields):
        """One push of several (name, id), all with the same fields."""
        sent = [{"payload": brief(make_payload(name)), "headers": {"name": name}, **fields}
                for name, _ in jobs]
        results = [{"index": index, "status": status, "id": job_id}
                   for index, (_, job_id) in enumerate(jobs)]
        return self.add("push", {"jobs": sent}, {"results": results} if answered else None)

    def delivery(self, job_id, name, attempts=1, failures=0, token=None, payload=None, **fields):
        return {"id": job_id, "token": token or f"{job_id}-{attempts}", "attempts": attempts,
                "failures": failures, "payload": brief(payload or make_payload(name)),
                **{"headers": {"name": name}, **fields},
                "lease_expires_at": moment(self.now + LEASE_SECONDS)}

    def claim(self, job_id, name, *details, **fields):
        return self.add("claim", {"max": 1},
                        {"jobs": [self.delivery(job_id, name, *details, **fields)]})

    def claim_all(self, *jobs):
        """One claim that gave several (id, name)."""
        return self.add("claim", {"max": len(jobs)},
                        {"jobs": [self.delivery(*job) for job in jobs]})

    def lost_claim(self):
        return self.add("claim", {"max": 1}, None)

    def end(self, kind, token, status=None, item=None, **fields):
        reply = {"results": [{"index": 0, "status": status, **fields}]} if status else None
        return self.add(kind, {"leases": [{"token": token, "lease": 1.0, **(item or {})}]}, reply)

    def ack(self, token, status="acked"):
        return self.end("ack", token, status)

    def fail(self, token, status="retrying", wait=0.0, **item):
        """A failure that is retried after so long, or is its last."""
        fields = {"retry_at": moment(self.now + wait)} if status == "retrying" else {}
        return self.end("fail", token, status, item, **fields)

    def die(self, token, status="dead"):
        return self.fail(token, status, final=True)

    def command(self, kind, job_id, answer="done"):
        """A retry or purge: "done", "skipped" or "unknown"."""
        skipped = [{"id": job_id, "status": "pending"}] if answer == "skipped" else []
        reply = {"retried" if kind == "retry" else "purged": 1 - len(skipped), "skipped": skipped,
                 "not_found": []}
        return self.add(kind, {"ids": [job_id]}, None if answer == "unknown" else reply)

    # What clients of the beanstalk protocol do. The time to run of their jobs is that of leases.

    def reserve(self, job_id, name, attempts=1, priority=DEFAULT_PRIORITY, queue=QUEUE,
                ttr=LEASE_SECONDS, held=True):
        delivered = {"id": job_id, "token": f"{job_id}-{attempts}", "attempts": attempts,
                     "priority": priority, "queue": queue, "ttr": ttr, "held": held,
                     "payload": brief(make_payload(name))}
        return self.add("claim", {"max": 1}, {"jobs": [delivered]}, "tube")

    def lost_reserve(self, *queues):
        return self.add("claim", {"max": 1, "queues": queues}, None, "tube")

    def settle(self, kind, token, status=None, **item):
        reply = {"results": [{"status": status}]} if status else None
        return self.add(kind, {"leases": [{"token": token, **item}]}, reply, "tube")

    def delete(self, token, status="acked"):
        return self.settle("ack", token, status)

    def touch(self, token, status="extended", lease=LEASE_SECONDS):
        return self.settle("extend", token, status, lease=lease)

    def bury(self, token, status="dead", priority=DEFAULT_PRIORITY):
        return self.settle("fail", token, status, bury=True, priority=priority)

    def hang_up(self, *tokens):
        return self.add("hang_up", {"leases": [{"token": token} for token in tokens]}, None, "tube")

    def kick(self, count, most=1):
        return self.add("retry", {"kick": most}, {"retried": count}, "tube")

    def sweep(self, kind, wanted, count=1, state="done", **fields):
        """A retry or purge by filter; without a count it had no answer."""
        reply = {"retried" if kind == "retry" else "purged": count, "operation": {"state": state}}
        return self.add(kind, {"filter": wanted, **fields}, None if count is None else reply)

    def final(self, pushed, claimed, dead=(), left=(), **totals):
        """What an honest server would say at the end. `dead` are (id, name, attempts), or with
        failures and reason."""
        done = (pushed - len(dead) - len(left) - totals.get("purged", 0)
                - totals.get("dropped", 0))
        stats = {"scheduled": 0, "pending": len(left), "active": 0, "failed": 0,
                 "dead": len(dead), "completed": done,
                 "totals": {"pushed": pushed, "claimed": claimed, "completed": done,
                            "died": len(dead), "dropped": 0, "expired": 0, "purged": 0,
                            "retried": 0, **totals}}
        return {QUEUE: Final(stats, [self.listed("dead", *job) for job in dead],
                             [self.listed("pending", *job) for job in left])}

    @staticmethod
    def listed(status, job_id, name, attempts, failures=1, reason="final"):
        return {"id": job_id, "status": status, "attempts": attempts, "failures": failures,
                "reason": reason if status == "dead" else None, "due_at": None,
                "payload": brief(make_payload(name))}


def kinds(story, final):
    return {violation.kind for violation in check(story.entries, final)}


def honest():
    return Story().push("a", "A").claim("A", "a").ack("A-1")
