"""The figures of the storage benchmark, their goals and the sizes that the goals speak of."""

from harness.figures import MIB, Figure

GOAL_SIZES = {"jobs": 300_000, "backlog": 10_000_000, "million": 1_000_000, "claims": 500_000}
QUICK_SIZES = {"jobs": 64_000, "backlog": 200_000, "million": 50_000, "claims": 50_000}

DISK_SHARE_MAX = 2.2          # of the live data
DISK_EXTRA_MAX = 256 * MIB    # and what a storage may need whatever it holds
MODES = {"sync": "synced", "interval": "synced every 100 ms"}


def _of(size):
    return (size, GOAL_SIZES[size])


def _comparison(key, title, floor, goal=None, unordered=False):
    two_writers = Figure(f"{key}_plain_two", "  RocksDB with two writers, which keep no order",
                         "jobs/s")
    return [
        Figure(key, title, "jobs/s", goal and (">=", goal), rival=f"{key}_plain",
               floor=f"{key}_{floor}", of_size=_of("jobs")),
        *([two_writers] if unordered else []),
        Figure(f"{key}_p99", "  its commits, p99", "µs", rival=f"{key}_p99_plain"),
        Figure(f"{key}_cpu", "  CPU per job", "µs", rival=f"{key}_cpu_plain"),
    ]


def _comparisons():
    for mode, words in MODES.items():
        floor = "direct" if mode == "sync" else "overwrite"
        for key, title, goal in (("lives_64", "job lives, 64 a commit", 3),
                                 ("push_64", "pushes, 64 a commit", 2),
                                 ("push_1000", "pushes, 1,000 a commit", None)):
            yield from _comparison(f"{key}_{mode}", f"{title}, {words}", floor, goal,
                                   unordered=mode == "sync")


def _growth(key, title):
    return [
        Figure(key, title, "jobs/s", (">=", 120_000), of_size=_of("backlog")),
        Figure(f"{key}_slowest", "  its slowest tenth", "jobs/s"),
        Figure(f"{key}_p99", "  its commits, p99", "µs", ("<", 20_000), of_size=_of("backlog")),
        Figure(f"{key}_max", "  its slowest commit", "µs"),
        Figure(f"{key}_disk", "  disk at its end", "bytes", ("<", f"{key}_disk_limit"),
               of_size=_of("backlog")),
    ]


def _starts(key, size, ready_max, rss_max, title="  ready after kill -9"):
    return [
        Figure(f"{key}_ready", title, "s", ("<=", ready_max), of_size=_of(size)),
        Figure(f"{key}_first_job", "  first job then", "s"),
        Figure(f"{key}_rss", "  memory then", "bytes", ("<=", rss_max), of_size=_of(size)),
    ]


FIGURES = [
    *_comparisons(),
    *_growth("backlog_1", "backlog growing to {backlog:,} jobs in one queue"),
    *_growth("backlog_16", "backlog growing to {backlog:,} jobs in 16 queues"),
    Figure("claim_cold", "claims from {backlog:,} jobs, just opened", "jobs/s", (">=", 100_000),
           of_size=_of("backlog")),
    Figure("claim_ack_cold", "claims and acks from them, just opened", "jobs/s"),
    Figure("open_cold", "  opening them, nothing in the page cache", "s"),
    Figure("million_fill", "server with {million:,} jobs: filling over HTTP", "jobs/s"),
    Figure("million_rss", "  memory", "bytes", ("<=", 96 * MIB), of_size=_of("million")),
    *_starts("million_kill", "million", 0.3, 96 * MIB),
    *_starts("large_filler_kill", "backlog", 1, 256 * MIB,
             "server with {backlog:,} jobs: ready after kill -9 of their filler"),
    *_starts("large_server_kill", "backlog", 1, 256 * MIB, "  ready after its own kill -9"),
]

FLOORS = [
    Figure(f"{workload}_64_{mode}_{floor}", f"{title}, 64 a commit, {words}: {how}", "jobs/s")
    for mode, words in MODES.items()
    for workload, title in (("lives", "job lives"), ("push", "pushes"))
    for floor, how in (("append", "appended to a file"),
                       ("overwrite", "written over an old file"),
                       ("direct", "the same past the page cache"))
]
