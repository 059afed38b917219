"""Jobs that have died, as many as a test needs."""


def bury(queue, *errors, **push):
    """Pushes a job for each error and lets it die of it, one after another. Returns the ids."""
    ids = []
    for error in errors:
        ids.append(queue.push_one({"for": error}, **push))
        [job] = queue.claim(1)
        queue.client.fail(job, error=error, final=True)
    return ids


def bury_many(queue, count, error="boom"):
    """The ids of so many jobs that have died."""
    ids = []
    for start in range(0, count, 1000):
        size = min(1000, count - start)
        ids += queue.push(*range(size))
        jobs = queue.claim(size)
        queue.client.leases("fail", [{"token": job["token"], "error": error, "final": True}
                                     for job in jobs])
    return ids
