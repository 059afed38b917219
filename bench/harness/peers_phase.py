"""The phase `peers`: the same work for Reprise, over the beanstalk protocol, and for its peers.

A cell is one kind of load in one mode of durability. Every run of a cell has a server of its own;
servers take turns within a round, and each round begins with another one."""

import os
import time
from dataclasses import dataclass, field

from harness.cli import progress
from harness.load import put_load
from harness.peer_servers import MODES, SERVERS, make_server
from harness.processes import BenchError

QUEUE = "bench"
BACKLOG = "backlog"
FILL = {"connections": 16, "window": 64}
FIRST_PILOT_JOBS = {"push": 1000, "claim_ack": 1000, "fail": 300}
MOST_JOBS = {"push": 2_000_000, "claim_ack": 1_000_000, "fail": 400_000}
PILOT_SECONDS = 0.25      # a shorter run says little of the rate
PILOTS = 4                # at most
LIMIT = {"push": 5, "claim_ack": 5, "fail": 100}  # of the time that was aimed at
SETTLE_SECONDS = 3
LATENCY_RATE = 500


@dataclass(frozen=True)
class Cell:
    phase: str  # of reprise_peer_load
    connections: int
    window: int


CELLS = {
    "enqueue_16x64": Cell("push", 16, 64),
    "enqueue_16x1": Cell("push", 16, 1),
    "enqueue_1x1": Cell("push", 1, 1),
    "consume_16x64": Cell("claim_ack", 16, 64),
    "lifecycle_w64": Cell("lifecycle", 16, 64),
    "lifecycle_w1": Cell("lifecycle", 16, 1),
    "fail_16x64": Cell("fail", 16, 64),
    "latency_500": Cell("latency", 16, 1),
}
CELL_NAMES = (*CELLS, BACKLOG)


@dataclass
class PeerChoice:
    """What is measured of all there is, and what the first round has found out."""

    cells: tuple = CELL_NAMES
    modes: tuple = MODES
    servers: tuple = SERVERS
    jobs: dict = field(default_factory=dict)  # by cell, mode and server: so many take the time

    def is_whole(self):
        return all(set(chosen) == set(all_of) for chosen, all_of in (
            (self.cells, CELL_NAMES), (self.modes, MODES), (self.servers, SERVERS)))


def peers(bench):
    values = {}
    for cell in bench.peers.cells:
        if cell == BACKLOG:
            continue
        for mode in bench.peers.modes:
            for server in in_turn(bench.peers.servers, bench.round):
                values |= measure(bench, cell, mode, server)
    if BACKLOG in bench.peers.cells and bench.round == 1:
        for server in bench.peers.servers:
            values |= backlog(bench, server)
    return values


def in_turn(servers, round_number):
    first = (round_number - 1) % len(servers)
    return [*servers[first:], *servers[:first]]


def key_of(server, *words):
    """Those of Reprise are the figures, the others' their rivals."""
    return "_".join(["peers", *words] + ([] if server == "reprise" else [server]))


def measure(bench, name, mode, server):
    progress(f"round {bench.round}: {name}, {mode}, {server}")
    cell = CELLS[name]
    if cell.phase in MOST_JOBS:
        report = counted_run(bench, (name, mode, server), cell)
    else:
        report = one_run(bench, server, mode, cell, warmup=min(1, bench.seconds),
                         seconds=bench.seconds,
                         **({"rate": LATENCY_RATE} if cell.phase == "latency" else {}))
    values = {key_of(server, name, mode, "cpu"): cpu_us(report)}
    if cell.phase == "latency":
        for share in ("p50", "p99"):
            values[key_of(server, name, mode, share)] = report["delivery_us"][share]
            values[key_of(server, name, mode, "stored", share)] = report["latency_us"][share]
    else:
        values[key_of(server, name, mode)] = report["jobs_per_second"]
        values[key_of(server, name, mode, "generator")] = (report["cpu_seconds"]
                                                           / report["wall_seconds"])
    return values


def cpu_us(report):
    """Redis rewrites its log in a child."""
    return (report["server_cpu_seconds"] + report["host_cpu_seconds"]) / report["all_jobs"] * 1e6


def counted_run(bench, key, cell):
    _, mode, server = key
    if key not in bench.peers.jobs:
        rate = pilot_rate(lambda jobs: one_run(bench, server, mode, cell, jobs=jobs),
                          FIRST_PILOT_JOBS[cell.phase], MOST_JOBS[cell.phase])
        bench.peers.jobs[key] = jobs_for(rate, bench.seconds, cell.phase)
    return one_run(bench, server, mode, cell, jobs=bench.peers.jobs[key],
                   seconds=bench.seconds * LIMIT[cell.phase])


def pilot_rate(run, jobs, most):
    """Jobs per second of a run that is long enough to tell, or of the last of some."""
    for _ in range(PILOTS):
        report = run(jobs)
        rate = report["jobs_per_second"]
        if report["seconds"] >= PILOT_SECONDS or jobs >= most:
            break
        jobs = min(most, max(2 * jobs, int(rate * 2 * PILOT_SECONDS)))
    return rate


def jobs_for(rate, seconds, phase):
    return max(FIRST_PILOT_JOBS[phase], min(MOST_JOBS[phase], int(rate * seconds)))


def one_run(bench, server_name, mode, cell, **options):
    os.sync()  # what the run before has left to write is none of this one's
    with make_server(server_name, bench.tools, bench.scratch, mode) as server:
        protocol = server.fail_protocol if cell.phase == "fail" else server.protocol
        if cell.phase in ("claim_ack", "fail"):
            fill(bench, server, protocol, options["jobs"])
        return load(bench, server, cell.phase, protocol=protocol, connections=cell.connections,
                    window=cell.window, **options)


def fill(bench, server, protocol, jobs):
    return load(bench, server, "push", protocol=protocol, jobs=jobs, **FILL)


def load(bench, server, phase, **options):
    report = put_load(bench.tools.peer_load, server.peer_address, server.process.pid, phase,
                      queue=QUEUE, **options)
    bench.note_others(report["other_cores"])
    if report["duplicates"]:
        raise BenchError(f"{report['duplicates']:,} jobs were delivered twice")
    return report


def backlog(bench, server_name):
    """Memory, disk and restarts do not depend on when beanstalkd syncs, but filling it does, by
    minutes."""
    progress(f"{BACKLOG} of {bench.backlog:,} jobs, {server_name}")
    mode = "relaxed" if server_name == "beanstalkd" else "fsync"
    with make_server(server_name, bench.tools, bench.scratch, mode) as server:
        report = fill(bench, server, server.protocol, bench.backlog)
        time.sleep(SETTLE_SECONDS)
        values = {"fill": report["jobs_per_second"], "rss": server.resident_bytes(),
                  "disk": server.disk_bytes()}
        server.kill()
        values |= start_again(bench, server, "kill")
        values["stop"] = server.terminate()
        values |= start_again(bench, server, "restart")
    return {key_of(server_name, BACKLOG, name): value for name, value in values.items()}


def start_again(bench, server, key):
    seconds = server.start_and_claim(QUEUE)
    stored = server.stored(QUEUE)
    if stored != bench.backlog:
        raise BenchError(f"{bench.backlog:,} jobs should be there after the start, not {stored:,}")
    time.sleep(SETTLE_SECONDS)
    return {f"{key}_first_job": seconds, f"{key}_rss": server.resident_bytes()}
