"""Mixed load with faults for as long as one likes, and a backlog as long as one likes. A few
seconds here; `make soak` takes an hour (SOAK_MINUTES=n for another time) and ten million jobs.

REPRISE_SEED=n replays the choices of a run; the seed is printed.
"""

import os
import random
import secrets
import time

from beanstalk_servers import RepriseDoor
from crash_run import CrashRun
from crowd import Crowd, allow_open_files

MINUTES = float(os.environ.get("SOAK_MINUTES", "0"))
FULL = MINUTES > 0
ROUND_SECONDS = min(60 * MINUTES, 120) if FULL else 5
BACKLOG_JOBS = 10_000_000 if FULL else 50_000
BACKLOG_CAP_BYTES = 512 << 20
SOAK_CAP_BYTES = 512 << 20
MIB = 1 << 20


def tell(text):
    print(f"\n  {text}", end="", flush=True)


class Round:
    """One data directory, its load, its crowd and its troubles, ending in the checks of the
    journal."""

    def __init__(self, start_server, disk_shim, folder, choose):
        self.choose = choose
        self.full_disk = folder / "the-disk-is-full"
        self.server = start_server("--header-timeout", "2s", "--write-timeout", "2s",
                                   kind=RepriseDoor, ready=False,
                                   env={"LD_PRELOAD": str(disk_shim),
                                        "DISK_IS_FULL_WHEN": str(self.full_disk)})
        self.load = CrashRun(self.server, choose.randrange(2**32))
        self.counts = {"kill": 0, "full disk": 0, "calm": 0}
        self.peak = 0

    def run(self, seconds):
        end = time.monotonic() + seconds
        self.load.start()
        # Restarts keep the port: the crowd is there before and after.
        self.server.listen = f"127.0.0.1:{self.server.port}"
        with Crowd(self.server.port, idle=40, slow=40, silent=20):
            while time.monotonic() < end:
                self.trouble()
                self.peak = max(self.peak, self.server.resident_bytes())
            # Each kind of trouble at least once, however short the round.
            for kind in [kind for kind, count in self.counts.items() if not count]:
                self.trouble(kind)
            return self.load.finish()

    def trouble(self, kind=None):
        kind = kind or self.choose.choice(list(self.counts))
        self.counts[kind] += 1
        seconds = self.choose.uniform(0.1, 1.5)
        if kind == "kill":
            return self.load.crash_after(seconds)
        if kind == "full disk":
            self.full_disk.touch()
        # The length of the load is what is being varied: there is no condition to wait for.
        time.sleep(seconds)
        self.full_disk.unlink(missing_ok=True)
        assert self.server.alive(), "the server has ended by itself"

    def dispose(self):
        self.load.dispose()
        self.server.dispose()


def test_nothing_is_lost_in_mixed_load_with_faults(start_server, disk_shim, tmp_path):
    seed = int(os.environ.get("REPRISE_SEED", secrets.randbelow(2**32)))
    print(f"REPRISE_SEED={seed}")
    choose = random.Random(seed)
    assert allow_open_files(1000)
    end = time.monotonic() + 60 * MINUTES
    rounds, counts, requests, peak = 0, {}, 0, 0
    while rounds == 0 or time.monotonic() < end:
        rounds += 1
        one = Round(start_server, disk_shim, tmp_path, choose)
        try:
            violations = one.run(ROUND_SECONDS)
            assert violations == [], f"see {one.load.journal_path}"
        finally:
            one.dispose()
        for kind, count in one.counts.items():
            counts[kind] = counts.get(kind, 0) + count
        requests += one.load.figures()["operations"]
        peak = max(peak, one.peak)
        if FULL:
            tell(f"round {rounds}: {requests} requests answered so far, {counts}, "
                 f"memory {peak / MIB:.0f} MiB")
    tell(f"{rounds} rounds, {requests} requests answered, {counts}, memory {peak / MIB:.0f} MiB "
         "at the most, no promise broken")
    assert requests > 100 * rounds
    assert peak < SOAK_CAP_BYTES


def test_a_backlog_keeps_memory_small(start_server):
    server = start_server()
    client = server.client()
    queue = client.queue("backlog").created()
    body = b'{"jobs":[' + b",".join([b'{"payload":{"order":12345,"note":"a typical small job"}}']
                                    * 1000) + b"]}"
    peak, started = 0, time.monotonic()
    for _ in range(BACKLOG_JOBS // 1000):
        assert client.request("POST", queue.path("/push"), body).status == 200
        peak = max(peak, server.resident_bytes())
    pushed = time.monotonic() - started
    assert queue.counts() == {"pending": BACKLOG_JOBS}
    started = time.monotonic()
    server.restart()
    restarted = time.monotonic() - started
    client = server.client()
    queue = queue.through(client)
    assert queue.counts() == {"pending": BACKLOG_JOBS}
    for _ in range(20):
        client.ack_all(queue.claim(1000))
    assert queue.counts() == {"pending": BACKLOG_JOBS - 20_000}
    after = server.resident_bytes()
    tell(f"a backlog of {BACKLOG_JOBS} jobs: pushed at {BACKLOG_JOBS / pushed:.0f}/s, memory "
         f"{peak / MIB:.0f} MiB at the most, restarted in {restarted:.1f} s, {after / MIB:.0f} MiB "
         "then")
    assert max(peak, after) < BACKLOG_CAP_BYTES
