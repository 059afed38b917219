"""The figures of the phase `peers`: Reprise's, its peers' and the goals for the ratio."""

from harness.figures import MIB, OF_BACKLOG, Figure
from harness.peer_servers import MODES, PEERS
from harness.peers_phase import BACKLOG, CELLS, key_of

PEER_TITLES = {"beanstalkd": "beanstalkd", "redis": "Redis"}
TITLES = {
    "enqueue_16x64": "enqueue, 16 × 64",
    "enqueue_16x1": "enqueue, 16 × 1",
    "enqueue_1x1": "enqueue, 1 × 1",
    "consume_16x64": "consume, 16 × 64",
    "lifecycle_w64": "lifecycle, 8 + 8, window 64",
    "lifecycle_w1": "lifecycle, 8 + 8, window 1",
    "fail_16x64": "failure path, 16 × 64",
    "latency_500": "put to reserve at 500 jobs/s",
}
# Reprise ÷ best peer.
GOALS = {
    ("enqueue_16x64", "fsync"): (">=", 2),
    ("enqueue_16x1", "fsync"): (">=", 1.3),
    ("enqueue_1x1", "fsync"): (">=", 1),
    ("consume_16x64", "fsync"): (">=", 2),
    ("lifecycle_w64", "fsync"): (">=", 2),
    ("lifecycle_w1", "fsync"): (">=", 1.5),
    ("lifecycle_w64", "relaxed"): (">=", 1.5),
    ("fail_16x64", "fsync"): (">=", 4),
    ("fail_16x64", "relaxed"): (">=", 2),
    ("latency_500", "fsync"): ("<=", 1),
}


def compared(title, unit, *words, **options):
    return Figure(key_of("reprise", *words), title, unit,
                  peers=tuple(key_of(peer, *words) for peer in PEERS), **options)


def _cell(name, mode):
    goal = GOALS.get((name, mode))
    title = f"{TITLES[name]}, {mode}"
    cpu = compared("  the server's CPU per job", "µs", name, mode, "cpu")
    if CELLS[name].phase == "latency":
        return [compared(f"{title}, p50", "µs", name, mode, "p50", goal=goal),
                compared("  p99", "µs", name, mode, "p99", goal=goal), cpu]
    return [compared(title, "jobs/s", name, mode, goal=goal), cpu]


def _backlog(title, unit, name, **options):
    return compared(title, unit, BACKLOG, name, **options)


PEERS_FIGURES = [
    *(figure for mode in MODES for name in CELLS for figure in _cell(name, mode)),
    _backlog("backlog of {backlog:,} jobs: filling", "jobs/s", "fill"),
    _backlog("  memory", "bytes", "rss", goal=("<=", 96 * MIB), absolute=True, of_size=OF_BACKLOG),
    _backlog("  disk", "bytes", "disk"),
    _backlog("  first job after kill -9", "s", "kill_first_job", goal=("<=", 0.3), absolute=True,
             of_size=OF_BACKLOG),
    _backlog("  memory then", "bytes", "kill_rss", goal=("<=", 96 * MIB), absolute=True,
             of_size=OF_BACKLOG),
    _backlog("  stopping by SIGTERM", "s", "stop"),
    _backlog("  first job after SIGTERM", "s", "restart_first_job"),
    _backlog("  memory then", "bytes", "restart_rss"),
]
