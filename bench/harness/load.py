"""Runs the load generator and the floors; each answers with one line of JSON."""

import json
import subprocess
import time

from harness.processes import (BenchError, cpu_seconds, end, family_cpu_seconds, machine_cpu_seconds,
                               spawn)


class Tools:
    """The programs of one build directory."""

    def __init__(self, build):
        self.server = build / "reprise"
        self.http_load = build / "bench" / "reprise_http_load"
        self.peer_load = build / "bench" / "reprise_peer_load"
        self.null_server = build / "bench" / "reprise_null_server"
        self.storage_floor = build / "bench" / "reprise_storage_floor"
        self.storage_bench = build / "bench" / "reprise_storage_bench"

    def check(self, *names):
        """That these are there, or all."""
        for name, path in vars(self).items():
            if (not names or name in names) and not path.is_file():
                raise BenchError(f"there is no {path}: run `make bench`, or name a build with --build")


def start_json(command):
    return spawn(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish_json(process, returncode=0):
    """What it printed, when it has ended."""
    try:
        out, err = process.communicate()
    finally:
        end(process)
    if process.returncode != returncode:
        raise BenchError(err.strip() or f"{process.args[0]} ended with {process.returncode}")
    return json.loads(out)


def run_json(command, returncode=0):
    return finish_json(start_json(command), returncode)


def run_watched(command, pids=(), returncode=0):
    """run_json, and the processor time, in cores, that neither it nor these processes and their
    descendants took."""
    before = machine_cpu_seconds() - sum(map(family_cpu_seconds, pids))
    started = time.monotonic()
    report = run_json(command, returncode)
    seconds = time.monotonic() - started
    parts = report if isinstance(report, list) else [report]
    others = (machine_cpu_seconds() - sum(map(family_cpu_seconds, pids)) - before
              - sum(part["cpu_seconds"] for part in parts))
    # Processor time is counted in ticks and wall time is not: a quiet machine may be below zero, and
    # a short run says little.
    return report, max(0.0, others / max(seconds, 1))


def load_command(program, address, phase, **options):
    command = [program, "--addr", address, "--phase", phase]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", value]
    return command


def put_load(program, address, pid, phase, beside=(), **options):
    """One run of a generator against the server with this pid. Adds to its report:
    server_cpu_seconds, the host_cpu_seconds of its hooks' processes, and the processor time that
    others took meanwhile, in cores. `beside`: pids that are not among these."""
    own, family = cpu_seconds(pid), family_cpu_seconds(pid)
    report, other_cores = run_watched(load_command(program, address, phase, **options),
                                      [pid, *beside])
    report["other_cores"] = other_cores
    report["server_cpu_seconds"] = cpu_seconds(pid) - own
    report["host_cpu_seconds"] = family_cpu_seconds(pid) - family - report["server_cpu_seconds"]
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
        return put_load(tools.http_load, f"127.0.0.1:{port}", process.pid, "push",
                        jobs_per_request=jobs_per_request, **options)
    finally:
        end(process)
        process.stdout.close()
