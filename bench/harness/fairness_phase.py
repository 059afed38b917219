"""The phase `fairness`: the same jobs with one fairness key and with a hundred thousand."""

import time

KEYS = 100_000
JOBS_OF_A_KEY = 5
KEYS_IN_MEMORY = 500_000  # what else moves the resident set is then a tenth of theirs
SETTLE_SECONDS = 2


def fairness(bench):
    return speed(bench) | memory(bench)


def in_turn(bench, variants):
    return list(variants) if bench.round % 2 else list(reversed(variants))


def cpu_us(report):
    return report["server_cpu_seconds"] / report["all_jobs"] * 1e6


def speed(bench):
    """A backlog is pushed, then worked off. Both are measured from the first job to the last, so
    that the number of keys is what it says."""
    jobs = KEYS * JOBS_OF_A_KEY
    values = {}
    for suffix, keys in in_turn(bench, [("", KEYS), ("_one", 1)]):
        with bench.server() as server:
            for phase in ("push", "claim_ack"):
                report = bench.load(server, phase, jobs=jobs, jobs_per_request=100,
                                    fairness_keys=keys)
                values |= {f"fairness_{phase}{suffix}": report["jobs_per_second"],
                           f"fairness_{phase}_cpu{suffix}": cpu_us(report)}
    return values


def memory(bench):
    """One job for each key, and as many with one."""
    resident = {}
    for keys in in_turn(bench, [KEYS_IN_MEMORY, 1]):
        with bench.server() as server:
            bench.load(server, "push", jobs=KEYS_IN_MEMORY, jobs_per_request=100, payload_bytes=64,
                       fairness_keys=keys)
            time.sleep(SETTLE_SECONDS)
            resident[keys] = server.resident_bytes()
    return {"fairness_key_bytes": (resident[KEYS_IN_MEMORY] - resident[1]) / KEYS_IN_MEMORY}
