"""Runs the load generator and the floors; each answers with one line of JSON."""

import json
import subprocess
import time

from harness.processes import BenchError, cpu_seconds, end, machine_cpu_seconds, spawn


class Tools:
    """The programs of one build directory."""

    def __init__(self, build):
        self.server = build / "reprise"
        self.http_load = build / "bench" / "reprise_http_load"
        self.null_server = build / "bench" / "reprise_null_server"
        self.storage_floor = build / "bench" / "reprise_storage_floor"
        self.storage_bench = build / "bench" / "reprise_storage_bench"

    def check(self):
        for path in vars(self).values():
            if not path.is_file():
                raise BenchError(f"there is no {path}: run `make bench`, or name a build with --build")


def run_json(command, returncode=0):
    process = spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate()
    finally:
        end(process)
    if process.returncode != returncode:
        raise BenchError(err.strip() or f"{command[0]} ended with {process.returncode}")
    return json.loads(out)


def run_watched(command, pids=(), returncode=0):
    """run_json, and the processor time that neither it nor these processes took, in cores."""
    before = machine_cpu_seconds() - sum(map(cpu_seconds, pids))
    started = time.monotonic()
    report = run_json(command, returncode)
    seconds = time.monotonic() - started
    parts = report if isinstance(report, list) else [report]
    others = (machine_cpu_seconds() - sum(map(cpu_seconds, pids)) - before
              - sum(part["cpu_seconds"] for part in parts))
    # Processor time is counted in ticks and wall time is not: a quiet machine may be below zero.
    return report, max(0.0, others / seconds)


def put_load(tools, address, pid, phase, **options):
    """One run of the generator against the server with this pid. Adds to its report:
    server_cpu_seconds, and the processor time that others took meanwhile, in cores."""
    command = [tools.http_load, "--addr", address, "--phase", phase]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", value]
    before = cpu_seconds(pid)
    report, other_cores = run_watched(command, [pid])
    report["other_cores"] = other_cores
    report["server_cpu_seconds"] = cpu_seconds(pid) - before
    return report


def storage_floor(tools, folder, seconds):
    """([1 KiB a sync, 64 KiB a sync], what others took meanwhile)"""
    return run_watched([tools.storage_floor, "--dir", folder, "--seconds", seconds])


def null_server_push(tools, jobs_per_request, **options):
    """The report of a push phase against a server that does nothing."""
    process = spawn([tools.null_server, "--jobs-per-request", jobs_per_request],
                    stdout=subprocess.PIPE, text=True)
    try:
        port = process.stdout.readline().strip()
        return put_load(tools, f"127.0.0.1:{port}", process.pid, "push",
                        jobs_per_request=jobs_per_request, **options)
    finally:
        end(process)
        process.stdout.close()
