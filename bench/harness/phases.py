"""The phases: each starts a server of its own and returns figures by key."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from harness.dead_phase import dead
from harness.fairness_phase import fairness
from harness.figures import HALF_RATES
from harness.hooks_phase import hooks
from harness.load import (Tools, load_command, null_server_push, put_load, start_json,
                          storage_floor)
from harness.peers_phase import PeerChoice, peers
from harness.processes import BenchError
from harness.server import Server
from harness.spool_phase import spool

CONNECTIONS = 64
LATENCY_CONNECTIONS = 16
SETTLE_SECONDS = 3
POLL_SECONDS = 0.01
QUEUE = "/v1/queues/bench"
FAIL_PATH_JOBS_PER_SECOND = 10_000  # a guess, to last about as long as the other phases
# Generous guesses of what is consumed in a second, to fill queues that do not run empty.
CLAIMS_PER_SECOND = {1: 40_000, 100: 200_000}


@dataclass
class Bench:
    tools: Tools
    scratch: Path
    seconds: float
    warmup: float
    backlog: int
    dead: int = 0
    round: int = 1
    peers: PeerChoice = field(default_factory=PeerChoice)
    other_cores: float = 0.0  # the most that other processes took in any phase

    def server(self):
        return Server(self.tools.server, self.scratch)

    def load(self, server, phase, **options):
        options.setdefault("connections", CONNECTIONS)
        report = put_load(self.tools.http_load, server.address, server.process.pid, phase,
                          **options)
        self.note_others(report["other_cores"])
        return report

    def start_load(self, server, phase, **options):
        """The generator's process, to be waited for with finish_json."""
        return start_json(load_command(self.tools.http_load, server.address, phase, **options))

    def note_others(self, cores):
        self.other_cores = max(self.other_cores, cores)

    def timed(self):
        return {"seconds": self.seconds, "warmup": self.warmup}


def server_cpu_us(report):
    return report["server_cpu_seconds"] / report["all_jobs"] * 1e6


def floors(bench):
    (small, large), other_cores = storage_floor(bench.tools, bench.scratch, bench.seconds / 2)
    bench.note_others(other_cores)
    values = {"sync_1k": small["syncs_per_second"], "sync_64k": large["syncs_per_second"]}
    for batch in (1, 100):
        report = null_server_push(bench.tools, batch, connections=CONNECTIONS,
                                  seconds=bench.seconds / 2, warmup=bench.warmup)
        bench.note_others(report["other_cores"])
        values[f"null_{batch}"] = report["jobs_per_second"]
    return values


def idle(bench):
    with bench.server() as server:
        time.sleep(0.5)
        return {"idle_rss": server.resident_bytes()}


def push(bench, batch):
    with bench.server() as server:
        report = bench.load(server, "push", jobs_per_request=batch, **bench.timed())
    with bench.server() as server:
        half = bench.load(server, "paced_push", jobs_per_request=batch, rate=HALF_RATES[batch],
                          **bench.timed())
    key = f"push_{batch}"
    return {key: report["jobs_per_second"], f"{key}_cpu": server_cpu_us(report),
            f"{key}_p50": report["latency_us"]["p50"], f"{key}_p99": report["latency_us"]["p99"],
            f"{key}_half": half["jobs_per_second"],
            f"{key}_half_p50": half["latency_us"]["p50"],
            f"{key}_half_p99": half["latency_us"]["p99"]}


def claim_ack(bench, batch):
    jobs = int(CLAIMS_PER_SECOND[batch] * (bench.seconds + bench.warmup))
    with bench.server() as server:
        bench.load(server, "push", jobs=jobs, jobs_per_request=100)
        report = bench.load(server, "claim_ack", jobs=jobs, jobs_per_request=batch, **bench.timed())
    key = f"claim_ack_{batch}"
    return {key: report["jobs_per_second"], f"{key}_cpu": server_cpu_us(report)}


def lifecycle(bench, batch):
    with bench.server() as server:
        report = bench.load(server, "lifecycle", jobs_per_request=batch, **bench.timed())
    key = f"lifecycle_{batch}"
    return {key: report["jobs_per_second"], f"{key}_cpu": server_cpu_us(report)}


def latency(bench):
    with bench.server() as server:
        report = bench.load(server, "latency", connections=LATENCY_CONNECTIONS, **bench.timed())
    return {"latency_p50": report["delivery_us"]["p50"], "latency_p99": report["delivery_us"]["p99"]}


def fail_path(bench, batch):
    """Every job fails three times and once more, and is dead; all are retried; all are acked."""
    jobs = int(FAIL_PATH_JOBS_PER_SECOND * bench.seconds)
    with bench.server() as server:
        server.call("PUT", QUEUE, {"retry": {"attempts": 4, "cooldown": "0s"}})
        bench.load(server, "push", jobs=jobs, jobs_per_request=100)
        started, cpu_before = time.monotonic(), server.cpu_seconds()
        bench.load(server, "exhaust", jobs=jobs, jobs_per_request=batch)
        retry_all(server, jobs)
        bench.load(server, "claim_ack", jobs=jobs, jobs_per_request=batch)
        key = f"fail_path_{batch}"
        return {key: jobs / (time.monotonic() - started),
                f"{key}_cpu": (server.cpu_seconds() - cpu_before) / jobs * 1e6}


def retry_all(server, jobs):
    status, reply = server.request("POST", f"{QUEUE}/retry", {"filter": {}, "wait": "10s"})
    operation = reply.get("operation")
    while operation and operation["state"] == "running":
        time.sleep(POLL_SECONDS)
        operation = server.call("GET", f"/v1/operations/{operation['id']}")
    if status not in (200, 202) or not operation or operation["done"] != jobs:
        raise BenchError(f"{jobs:,} jobs should be retried: {status} {operation or reply}")


def backlog(bench):
    with bench.server() as server:
        report = bench.load(server, "push", jobs=bench.backlog, jobs_per_request=100)
        time.sleep(SETTLE_SECONDS)
        values = {"backlog_fill": report["jobs_per_second"],
                  "backlog_rss": server.resident_bytes(),
                  "backlog_peak": server.peak_resident_bytes(),
                  "backlog_disk": server.disk_bytes()}
        server.kill()
        values |= start_again(server, "kill", pending=bench.backlog)
        values["stop"] = server.terminate()
        values |= start_again(server, "restart", pending=bench.backlog - 1)
    return values


def start_again(server, key, pending):
    """Starts it, and claims a job: times and memory."""
    started = time.monotonic()
    ready = server.start()
    jobs = server.call("POST", f"{QUEUE}/claim", {"lease": "1h"})["jobs"]
    first_job = time.monotonic() - started
    stats = server.call("GET", QUEUE)["stats"]
    if len(jobs) != 1 or stats["pending"] != pending - 1:
        raise BenchError(f"{pending:,} jobs should be pending after the restart, not "
                         f"{stats['pending'] + len(jobs):,}")
    time.sleep(SETTLE_SECONDS)
    return {f"{key}_ready": ready, f"{key}_first_job": first_job,
            f"{key}_rss": server.resident_bytes()}


PHASES = {
    "floors": floors,
    "idle": idle,
    "push_1": lambda bench: push(bench, 1),
    "push_100": lambda bench: push(bench, 100),
    "claim_ack_1": lambda bench: claim_ack(bench, 1),
    "claim_ack_100": lambda bench: claim_ack(bench, 100),
    "lifecycle_1": lambda bench: lifecycle(bench, 1),
    "lifecycle_100": lambda bench: lifecycle(bench, 100),
    "fail_path_100": lambda bench: fail_path(bench, 100),
    "latency": latency,
    "backlog": backlog,
    "dead": dead,
    "hooks": hooks,
    "fairness": fairness,
    "spool": spool,
    "peers": peers,
}

# What takes minutes is measured once, not in each round.
IN_FIRST_ROUND_ONLY = {"dead"}
