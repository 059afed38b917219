"""Counts and totals: after the drain each job that was ever stored has been seen, and how often it
was leased is in its last delivery or in its record as a dead job. So all numbers are known, exactly
or, where answers are missing, within bounds."""

import math


def stats_violations(history):
    for queue, final in history.finals.items():
        jobs = [job for job in history.jobs.values() if job.queue == queue]
        yield from (f"{queue}: {text}" for text in queue_violations(history, queue, final, jobs))


def queue_violations(history, queue, final, jobs):
    stats, totals = final.stats, final.stats["totals"]
    known = [job for job in jobs if job.name is not None or job.leases]
    ended = [job for job in known if not job.dead and not job.left]
    dropped = sum(job.acked != "no" and job.perhaps_dropped for job in ended)
    acked = sum(job.acked == "yes" and not job.perhaps_dropped for job in ended)
    purged = sum(job.acked == "no" for job in ended)
    doubtful = len(ended) - acked - purged
    sweeps = history.sweeps[queue]
    leases = sum(last_attempt(job) for job in known)
    unseen = sum(unseen_leases(history, job) for job in known)
    here = len(final.dead) + len(final.left)
    yield from (f"{name} is {value}, should be {low} to {high}" for name, value, low, high in (
        ("dead", stats["dead"], len(final.dead), len(final.dead)),
        ("all that is neither dead nor completed", sum(
            stats[status] for status in ("scheduled", "pending", "active", "failed")),
         len(final.left), len(final.left)),
        ("completed", stats["completed"], acked, acked + doubtful),
        ("totals.completed", totals["completed"], acked, acked + doubtful),
        ("totals.pushed", totals["pushed"], len(known), len(known)),
        ("totals.purged", totals["purged"], purged, purged + doubtful),
        ("totals.purged", totals["purged"], *told(jobs, sweeps, "purge")),
        ("totals.claimed", totals["claimed"], leases, leases + unseen),
        ("totals.retried", totals["retried"], *told(jobs, sweeps, "retry")),
        ("totals.dropped", totals["dropped"], 0, dropped),
        ("totals.expired", totals["expired"], 0, 0),
        ("pushed less completed, dropped and purged", totals["pushed"] - totals["completed"]
         - totals["dropped"] - totals["purged"], here, here),
    ) if not low <= value <= high)
    yield from (f"{sweep.count} jobs for a {sweep.kind} of {sweep.limit} at most"
                for sweep in sweeps if (sweep.count or 0) > (sweep.limit or math.inf))


def told(jobs, sweeps, kind):
    """How many were retried or purged at least and at most, by the answers."""
    done = [command.done for job in jobs for command in job.commands if command.kind == kind]
    least, most = done.count(True), len(done) - done.count(False)
    for sweep in sweeps:
        if sweep.kind == kind:
            least += sweep.count or 0
            most += sweep.count if sweep.is_finished else sweep.limit or math.inf
    return least, most


def last_attempt(job):
    listed = job.dead or job.left
    if listed:
        return listed["attempts"]
    return job.leases[-1].attempts if job.leases else 0


def unseen_leases(history, job):
    """How many more it may have had: of one that was purged nobody knows the last."""
    purges = [] if job.dead or job.left or job.acked == "yes" else history.purges(job)
    if not purges:
        return 0
    since = job.leases[-1].claim.sent if job.leases else 0.0
    until = max(command.entry.over for command in purges)
    return history.unknown_claims.between(job.queue, since, until)
