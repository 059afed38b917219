"""The phases of the storage benchmark: comparisons by round, and backlogs that are filled once."""

import shutil
import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import phases
from harness.load import Tools, run_watched
from harness.processes import BenchError
from harness.server import Server
from harness.storage_figures import DISK_EXTRA_MAX, DISK_SHARE_MAX, MODES

FLOORS = ["append", "overwrite", "direct"]
JOB_DISK_BYTES = 3 << 10  # of a job of 1 KiB, while tables are rewritten


@dataclass
class StorageBench:
    tools: Tools
    scratch: Path
    sizes: dict
    other_cores: float = 0.0  # the most that other processes took in any phase

    def run(self, command, folder, *flags, returncode=0, **options):
        words = [self.tools.storage_bench, command, "--dir", folder, *flags]
        for name, value in options.items():
            words += [f"--{name}", value]
        report, others = run_watched(words, returncode=returncode)
        self.note_others(others)
        return report

    def note_others(self, cores):
        self.other_cores = max(self.other_cores, cores)

    def check_space(self, only):
        """Before anything is measured: a full disk would end the run after many minutes."""
        size = "backlog" if any(name in only for name in ("backlog_1", "backlog_16")) else "jobs"
        needed = max(self.sizes[size], self.sizes["jobs"]) * JOB_DISK_BYTES
        free = shutil.disk_usage(self.scratch).free
        if free < needed:
            raise BenchError(f"{self.scratch} has {free >> 30} GiB free and {needed >> 30} GiB are "
                             f"needed: choose another place with --scratch, or a smaller --{size}")


def compare(bench, round_number, workload, batch, mode):
    key = f"{'push' if workload == 'pushes' else workload}_{batch}_{mode}"
    pair = ["reprise", "plain"]
    if round_number % 2 == 0:
        pair.reverse()  # so that neither has always the quieter disk
    # No rival for a queue, since it does not keep the order of commits, but worth knowing.
    unordered = ["plain_two"] if mode == "sync" else []
    report = bench.run("compare", bench.scratch / "compare", workload=workload, batch=batch,
                       mode=mode, jobs=bench.sizes["jobs"],
                       order=",".join(pair + unordered + FLOORS))
    values = {f"{key}_{name}": report[name]["jobs_per_second"] for name in unordered + FLOORS}
    for name, suffix in (("reprise", ""), ("plain", "_plain")):
        values |= {f"{key}{suffix}": report[name]["jobs_per_second"],
                   f"{key}_p99{suffix}": report[name]["p99_us"],
                   f"{key}_cpu{suffix}": report[name]["cpu_us_per_job"]}
    return values


def fill(bench, key, folder, queues):
    report = bench.run("fill", folder, "--kill", returncode=-signal.SIGKILL,
                       jobs=bench.sizes["backlog"], queues=queues)
    return {key: report["jobs_per_second"],
            f"{key}_jobs": report["jobs"],
            f"{key}_slowest": report["slowest_tenth_jobs_per_second"],
            f"{key}_starved": report["starved_seconds"],
            f"{key}_p99": report["p99_us"],
            f"{key}_max": report["max_us"],
            f"{key}_disk": report["disk_bytes"],
            f"{key}_disk_limit": DISK_SHARE_MAX * report["live_bytes"] + DISK_EXTRA_MAX}


def backlog_one_queue(bench):
    """Fills, kills the filler, starts a server on it, kills that, starts it again; then claims."""
    with Server(bench.tools.server, bench.scratch, start=False) as server:
        values = fill(bench, "backlog_1", server.data, queues=1)
        pending = values["backlog_1_jobs"]
        values |= phases.start_again(server, "large_filler_kill", pending)
        server.kill()
        values |= phases.start_again(server, "large_server_kill", pending - 1)
        server.kill()
        return values | cold_claims(bench, server.data)


def cold_claims(bench, folder):
    claims = bench.run("claim", folder, jobs=bench.sizes["claims"])
    acked = bench.run("claim", folder, "--ack", jobs=bench.sizes["claims"])
    return {"claim_cold": claims["jobs_per_second"], "claim_ack_cold": acked["jobs_per_second"],
            "open_cold": claims["recovery_seconds"]}


def backlog_many_queues(bench):
    folder = bench.scratch / "many-queues"
    try:
        return fill(bench, "backlog_16", folder, queues=16)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def million(bench):
    """The backlog phase of bench/run, for goals of its own."""
    http = phases.Bench(bench.tools, bench.scratch, seconds=1, warmup=0,
                        backlog=bench.sizes["million"])
    values = phases.backlog(http)
    bench.note_others(http.other_cores)
    return {"million_fill": values["backlog_fill"], "million_rss": values["backlog_rss"],
            "million_kill_ready": values["kill_ready"],
            "million_kill_first_job": values["kill_first_job"],
            "million_kill_rss": values["kill_rss"]}


# By name: (bench, round) -> figures by key.
COMPARISONS = {
    f"{name}_{batch}_{mode}": partial(compare, workload=workload, batch=batch, mode=mode)
    for mode in MODES
    for name, workload, batch in (("lives", "lives", 64), ("push", "pushes", 64),
                                  ("push", "pushes", 1000))
}

# By name: bench -> figures by key.
BACKLOGS = {"backlog_1": backlog_one_queue, "backlog_16": backlog_many_queues, "million": million}
