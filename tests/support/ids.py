"""Ids of jobs."""


def colliding_ids(queue):
    """Two ids of jobs in the queue that share their first four characters."""
    seen = {}
    for _ in range(20):
        for job_id in queue.push(*range(1000)):
            if job_id[:4] in seen:
                return seen[job_id[:4]], job_id
            seen[job_id[:4]] = job_id
    raise AssertionError("20,000 ids and no common prefix: are they random?")
