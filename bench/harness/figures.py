"""The figures: their names, units and goals, and how a value is written."""

import operator
import statistics
from dataclasses import dataclass

MIB = 1 << 20
GOAL_SIZES = {"backlog": 1_000_000, "dead": 1_000_000}
QUICK_SIZES = {"backlog": 100_000, "dead": 100_000}
# Jobs per second, by jobs in a request: half of what the goal is without a limit.
HALF_RATES = {1: 20_000, 100: 100_000}
OPERATORS = {">=": operator.ge, "<": operator.lt, "<=": operator.le}


@dataclass(frozen=True)
class Figure:
    key: str
    title: str           # {name}: the run's size of that name
    unit: str
    goal: tuple = None   # (operator, value, or the key of the value)
    floor: str = None    # the floor it is compared with
    rival: str = None    # whose figure it is compared with; a goal is then one for the ratio,
    peers: tuple = ()    # several rivals, by column of the layout: the best of them counts
    absolute: bool = False  # unless this says that it is one for the value
    of_size: tuple = None  # (name, least): its goal speaks of a run at least that large
    beside: tuple = ()     # keys of values that are told in the same breath

    def best(self, values):
        """Of several servers' values."""
        return (max if self.unit.endswith("/s") else min)(values)

    def met(self, value, goal, sizes):
        """None: there is no goal, or the run was too small to say."""
        if self.goal is None or (self.of_size and sizes[self.of_size[0]] < self.of_size[1]):
            return None
        return OPERATORS[self.goal[0]](value, goal)


OF_BACKLOG = ("backlog", GOAL_SIZES["backlog"])
OF_DEAD = ("dead", GOAL_SIZES["dead"])


def _half_push(batch):
    key, rate = f"push_{batch}_half", HALF_RATES[batch]
    return [
        Figure(key, f"  offered {rate:,} jobs/s: reached", "jobs/s", (">=", rate * 0.99)),
        Figure(f"{key}_p50", f"  its latency at {rate:,} jobs/s, p50", "µs"),
        Figure(f"{key}_p99", f"  its latency at {rate:,} jobs/s, p99", "µs", ("<", 5_000)),
    ]


FIGURES = [
    Figure("push_1", "push, 1 job a request", "jobs/s", (">=", 2 * HALF_RATES[1]), "null_1"),
    Figure("push_1_p50", "  its latency, p50", "µs"),
    Figure("push_1_p99", "  its latency, p99", "µs"),
    Figure("push_1_cpu", "  the server's CPU per job", "µs"),
    *_half_push(1),
    Figure("push_100", "push, 100 jobs a request", "jobs/s", (">=", 2 * HALF_RATES[100]),
           "null_100"),
    Figure("push_100_p50", "  its latency, p50", "µs"),
    Figure("push_100_p99", "  its latency, p99", "µs"),
    Figure("push_100_cpu", "  the server's CPU per job", "µs"),
    *_half_push(100),
    Figure("claim_ack_1", "claim and ack, 1 job a request", "jobs/s"),
    Figure("claim_ack_1_cpu", "  the server's CPU per job", "µs"),
    Figure("claim_ack_100", "claim and ack, 100 jobs a request", "jobs/s"),
    Figure("claim_ack_100_cpu", "  the server's CPU per job", "µs"),
    Figure("lifecycle_1", "push, claim and ack at once, 1 job a request", "jobs/s"),
    Figure("lifecycle_1_cpu", "  the server's CPU per job", "µs"),
    Figure("lifecycle_100", "push, claim and ack at once, 100 jobs a request", "jobs/s"),
    Figure("lifecycle_100_cpu", "  the server's CPU per job", "µs"),
    Figure("fail_path_100", "failure path, 100 jobs a request", "jobs/s"),
    Figure("fail_path_100_cpu", "  the server's CPU per job", "µs"),
    Figure("latency_p50", "push to claim at 500 jobs/s, p50", "µs"),
    Figure("latency_p99", "push to claim at 500 jobs/s, p99", "µs"),
    Figure("idle_rss", "memory when idle, just started", "bytes", ("<", 40 * MIB)),
    Figure("backlog_fill", "backlog of {backlog:,} jobs: filling", "jobs/s"),
    Figure("backlog_rss", "  memory", "bytes", ("<", 300 * MIB), of_size=OF_BACKLOG),
    Figure("backlog_peak", "  most memory while filling", "bytes"),
    Figure("backlog_disk", "  disk", "bytes"),
    Figure("kill_ready", "  ready again after kill -9", "s", ("<", 3), of_size=OF_BACKLOG),
    Figure("kill_first_job", "  first job after kill -9", "s"),
    Figure("kill_rss", "  memory then", "bytes", ("<", 300 * MIB), of_size=OF_BACKLOG),
    Figure("stop", "  stopping by SIGTERM", "s"),
    Figure("restart_ready", "  ready again after SIGTERM", "s", ("<", 3), of_size=OF_BACKLOG),
    Figure("restart_first_job", "  first job after SIGTERM", "s"),
    Figure("restart_rss", "  memory then", "bytes", ("<", 300 * MIB), of_size=OF_BACKLOG),
]



def _memory(key):
    return Figure(f"{key}_before", "  memory before, at most, after", "bytes",
                  beside=(f"{key}_peak", f"{key}_after"))


def _pages(key, title):
    return [
        Figure(f"{key}_p50", f"{title}, p50", "µs", ("<", 50_000), of_size=OF_DEAD),
        Figure(f"{key}_p99", "  p99", "µs", ("<", 50_000), of_size=OF_DEAD),
        _memory(key),
    ]


def _operation(key, title, goal=None):
    return [
        Figure(key, title, "jobs/s", goal, of_size=OF_DEAD),
        Figure(f"{key}_seconds", "  time", "s"),
        _memory(key),
    ]


DEAD_FIGURES = [
    Figure("dead_push", "push of {dead:,} jobs, 1,000 a request", "jobs/s"),
    _memory("dead_push"),
    Figure("dead_fail", "claim, and fail for good, 1,000 a request", "jobs/s"),
    _memory("dead_fail"),
    Figure("dead_rss", "  memory 3 s later", "bytes", ("<", 300 * MIB), of_size=OF_DEAD),
    Figure("dead_disk", "  disk", "bytes"),
    Figure("dead_ready", "  ready again after kill -9", "s", ("<", 3), of_size=OF_DEAD),
    Figure("dead_ready_rss", "  memory then", "bytes", ("<", 300 * MIB), of_size=OF_DEAD),
    *_pages("dead_first", "page of 50, the newest"),
    *_operation("dead_walk", "from there to the middle, 1,000 a page"),
    *_pages("dead_middle", "page of 50, from the middle on"),
    *_pages("dead_print", "page of 50, by fingerprint"),
    *_operation("dead_group", "grouping by error"),
    *_operation("dead_dry", "dry run of a filter by error text"),
    *_operation("dead_retry", "retry of all", (">=", 50_000)),
    Figure("dead_again_before", "all dead again: memory before, at most, after", "bytes",
           beside=("dead_again_peak", "dead_again_after")),
    *_operation("dead_purge_old", "purge of the older half"),
    *_pages("dead_left", "page of 50, the newest of the rest"),
    *_operation("dead_purge", "purge of the rest"),
    Figure("dead_end_rss", "  memory 3 s later", "bytes"),
    Figure("dead_end_disk", "  disk", "bytes"),
    Figure("dead_read_peak", "most memory of pages, grouping and dry run", "bytes", ("<", 300 * MIB),
           of_size=OF_DEAD),
    Figure("dead_peak", "most memory of all the above", "bytes", ("<", 300 * MIB), of_size=OF_DEAD),
]



def _hooked_push(batch):
    key = f"hooks_push_{batch}"
    return [
        Figure(key, f"push with on_enqueue, {batch} jobs a request", "jobs/s", (">=", 0.85),
               rival=f"{key}_without"),
        Figure(f"{key}_p50", "  its latency, p50", "µs", rival=f"{key}_p50_without"),
        Figure(f"{key}_cpu", "  CPU per job, of the server and of the hook's process", "µs",
               rival=f"{key}_cpu_without"),
        Figure(f"{key}_cost", "  that is, for the hook", "µs", ("<", 5)),
        Figure(f"{key}_host", "    of which its process took", "µs"),
        Figure(f"{key}_called", "  if no answer can be remembered", "jobs/s",
               rival=f"{key}_without"),
        Figure(f"{key}_called_cost", "    that is, for the hook", "µs"),
    ]


def _beside(name, title, goal=None):
    key = f"hooks_beside_{name}"
    return [
        Figure(key, title, "jobs/s", goal, rival="hooks_beside_calm"),
        Figure(f"{key}_fails", "  jobs that fail meanwhile", "jobs/s",
               rival="hooks_beside_calm_fails"),
        Figure(f"{key}_host", "  processor that their hook's process takes", "cores"),
    ]


HOOKS_FIGURES = [
    *_hooked_push(100),
    *_hooked_push(32),
    Figure("hooks_fail", "10,000 failing jobs/s with on_failure, 20 a request: reached", "jobs/s",
           (">=", 9_900), rival="hooks_fail_without", absolute=True),
    Figure("hooks_fail_p50", "  until it is decided and durable, p50", "µs",
           rival="hooks_fail_p50_without"),
    Figure("hooks_fail_p99", "  until it is decided and durable, p99", "µs", ("<", 5_000),
           rival="hooks_fail_p99_without", absolute=True),
    Figure("hooks_fail_cpu", "  CPU per job, of the server and of the hook's process", "µs",
           rival="hooks_fail_cpu_without"),
    *_beside("stuck", "lives in another queue while every on_failure hangs", (">=", 0.9)),
    *_beside("slow", "lives in another queue while on_failure counts to 900,000"),
]

FAIRNESS_FIGURES = [
    Figure("fairness_push", "push, 100 jobs a request, 100,000 fairness keys", "jobs/s",
           (">=", 0.7), rival="fairness_push_one"),
    Figure("fairness_push_cpu", "  the server's CPU per job", "µs", rival="fairness_push_cpu_one"),
    Figure("fairness_claim_ack", "claim and ack, 100 jobs a request, 100,000 fairness keys", "jobs/s",
           (">=", 0.7), rival="fairness_claim_ack_one"),
    Figure("fairness_claim_ack_cpu", "  the server's CPU per job", "µs",
           rival="fairness_claim_ack_cpu_one"),
    Figure("fairness_key_bytes", "memory for each key with a job", "B", ("<", 200)),
]

SPOOL_FIGURES = [
    Figure("spool_add", "spool add of 10,000 events, as lines of stdin", "events/s", (">=", 20_000)),
    Figure("spool_drain", "spool drain of 100,000 events, 50 a request", "events/s",
           (">=", 10_000)),
    Figure("spool_drain_cpu", "  the server's CPU per event", "µs"),
]

FLOORS = [
    Figure("sync_1k", "append of 1 KiB and fdatasync, one after another", "syncs/s"),
    Figure("sync_64k", "append of 64 KiB and fdatasync, one after another", "syncs/s"),
    Figure("null_1", "push to a server that does nothing, 1 job a request", "jobs/s"),
    Figure("null_100", "push to a server that does nothing, 100 jobs a request", "jobs/s"),
]


def format_value(value, unit):
    if unit == "bytes":
        return f"{value / MIB:,.0f} MiB"
    if unit == "s":
        return f"{value:.3g} s"
    if unit == "x":
        return f"{value:.3g}x"
    if unit == "cores":
        return f"{value:.2f} cores"
    if unit == "µs" and value < 100:
        return f"{value:.1f} µs"
    return f"{value:,.0f} {unit}"


def median_of(rounds, key):
    """The median over the rounds that have this figure, or None."""
    values = [values[key] for values in rounds if key in values]
    return statistics.median(values) if values else None
