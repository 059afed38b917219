"""Ids of jobs."""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ID_CHARS = 13
WORD = (1 << 64) - 1


def job_id_of(number):
    """The id under which HTTP shows the job that the beanstalk protocol knows by this number; as
    src/base/ids.cpp makes it."""
    mixed = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB & WORD
    mixed ^= mixed >> 31
    return "".join(ALPHABET[mixed >> shift & 31] for shift in range(5 * (ID_CHARS - 1), -1, -5))


def colliding_ids(queue):
    """Two ids of jobs in the queue that share their first four characters."""
    seen = {}
    for _ in range(20):
        for job_id in queue.push(*range(1000)):
            if job_id[:4] in seen:
                return seen[job_id[:4]], job_id
            seen[job_id[:4]] = job_id
    raise AssertionError("20,000 ids and no common prefix: are they random?")
