"""Jobs brought to where failures lead: cooling down, due again, dead."""

from times import seconds_since_1970
from waiting import eventually


def claim_these(queue, ids):
    """Leases of these jobs, which must be the next fresh ones, in this order."""
    jobs = {job["id"]: job for job in queue.claim(len(ids), lane="fresh")}
    assert set(jobs) == set(ids), "other jobs are waiting in this queue"
    return [jobs[job_id] for job_id in ids]


def make_dead(queue, *errors, **fields):
    """A job for each error, dead of it, all in one call. Their ids."""
    ids = queue.push(*errors, **fields)
    queue.client.leases("fail", [{"token": job["token"], "error": error, "final": True}
                                 for job, error in zip(claim_these(queue, ids), errors)])
    return ids


def make_dead_in_turn(queue, *errors, **fields):
    """The same, but they die one after the other."""
    return [job_id for error in errors for job_id in make_dead(queue, error, **fields)]


def make_cooling(queue, *errors, delay="1h", **fields):
    """A job for each error, cooling down. The queue's policy must allow a retry."""
    ids = queue.push(*errors, **fields)
    results = queue.client.leases("fail", [{"token": job["token"], "error": error, "delay": delay}
                                           for job, error in zip(claim_these(queue, ids), errors)])
    assert {result["status"] for result in results} == {"retrying"}, results
    return ids


def make_retries(queue, count, first=0):
    """So many jobs pending in the retry lane, with numbers as payloads. Their ids."""
    before = queue.stats()["lanes"]["retry"]
    ids = make_cooling(queue, *[f"error {first + n}" for n in range(count)], delay="0s")
    eventually(lambda: queue.stats()["lanes"]["retry"] == before + count, "the retries to be due")
    return ids


def fail_again(queue, times, **fields):
    """Fails the only job of the queue so often, each retry due at once."""
    for _ in range(times):
        job = eventually(queue.claim, "the job")[0]
        result = queue.client.fail(job, delay="0s", **fields)
        assert result["status"] == "retrying", result


def wait_before_retry(queue, job):
    """How many seconds from this failure of a leased job to its retry."""
    result = queue.client.fail(job, error="no luck")
    assert result["status"] == "retrying", result
    shown = queue.job(job["id"])
    assert (shown["status"], shown["due_at"]) == ("failed", result["retry_at"])
    failed_at = seconds_since_1970(shown["history"][-1]["ended_at"])
    return seconds_since_1970(result["retry_at"]) - failed_at
