"""Retries and purges: those that name their jobs, and those that take whatever fits."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

ANY_STATUS = frozenset({"dead", "failed", "scheduled"})


class Command(NamedTuple):
    """A retry or purge that named the job."""
    kind: str
    entry: object
    done: bool | None  # None: unknown
    takes: frozenset = frozenset({"dead", "failed"})

    def may_fit(self, _job, _push):
        return True


@dataclass(frozen=True)
class Sweep:
    """A retry or purge by a filter, or a kick, which takes the dead whatever they died of, or those
    that wait for a time. Nobody is told which jobs it took, only how many."""
    entry: object
    done = None  # of any one job

    @cached_property
    def kind(self):
        return self.entry.kind

    @cached_property
    def filter(self):
        return self.entry.request.get("filter", {})

    @cached_property
    def is_kick(self):
        return "kick" in self.entry.request

    @cached_property
    def takes(self):
        if self.is_kick:
            return ANY_STATUS
        return frozenset({self.filter.get("status", "dead")})

    @cached_property
    def limit(self):
        return self.entry.request.get("kick", self.entry.request.get("limit"))

    @cached_property
    def count(self):
        """Of the jobs that it took; None: not known."""
        return self.entry.reply.get("purged" if self.kind == "purge" else "retried")

    @cached_property
    def is_finished(self):
        """One that is not is gone on with after a restart, but for a kick. Whenever it takes a job,
        it takes none that died or failed after it came."""
        operation = self.entry.reply.get("operation")
        return self.count is not None and (self.is_kick or operation["state"] == "done")

    def may_fit(self, job, push):
        """Whether the job may ever have been as the filter wants it."""
        wanted = self.filter
        if push and not wanted.get("headers", {}).items() <= push.job["headers"].items():
            return False
        fails = [end.item for lease in job.leases for end in lease.ends
                 if end.kind == "fail" and not end.refused and end.entry.sent < self.entry.over]
        return all(any(has(item, value) for item in fails) for has, value in (
            (lambda item, value: value in item.get("error", ""), wanted.get("error")),
            (lambda item, value: value == item.get("error_type"), wanted.get("error_type")),
            (is_reason, wanted.get("reason"))) if value is not None)

    def certainly_takes(self, death, push):
        """Whether it took a job that was dead since then, unless another command was first."""
        return (self.is_finished and self.limit is None and "dead" in self.takes
                and self.filter.keys() <= {"headers", "status"}
                and push is not None and death.entry.replied < self.entry.sent
                and self.filter.get("headers", {}).items() <= push.job["headers"].items())


def is_reason(item, reason):
    """Whether a job may die for this reason by such a failure."""
    if reason == "final":
        return item.get("final", False)
    return item.get("bury", False) == (reason == "buried")
