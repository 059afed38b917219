"""The phase `dead`: a queue full of jobs that were given up, and what people do with them."""

import math
import time
from contextlib import contextmanager

from harness.processes import BenchError, machine_cpu_seconds

QUEUE = "/v1/queues/bench"
INSPECT = f"{QUEUE}/jobs?status=dead&order=newest"
CONNECTIONS = 8
BATCH = 1000
CALLS = 50             # of each kind of page
PAGE = 50
WALK_PAGE = 1000       # on the way to the middle
ERROR_KINDS = 20       # of bench/error_texts.cpp; jobs take them in turns
ERROR_PART = "timeout after"  # of one kind
LEAST_JOBS = 10_000    # for all these pages
POLL_SECONDS = 0.05
SETTLE_SECONDS = 3
GAP_SECONDS = 2        # between the older half's deaths and the others'


def dead(bench):
    with bench.server() as server:
        phase = DeadPhase(bench, server)
        phase.fill()
        phase.kill_and_start()
        phase.look()
        phase.bring_back()
        phase.purge()
        return phase.all_values()


class DeadPhase:
    def __init__(self, bench, server):
        self.bench = bench
        self.server = server
        self.jobs = bench.dead
        self.values = {}

    def all_values(self):
        peaks = {key: value for key, value in self.values.items() if key.endswith("_peak")}
        reading = ("dead_first", "dead_walk", "dead_middle", "dead_print", "dead_group", "dead_dry")
        return self.values | {"dead_peak": max(peaks.values()),
                              "dead_read_peak": max(peaks[f"{key}_peak"] for key in reading)}

    def fill(self):
        with self._memory("dead_push"):
            report = self.bench.load(self.server, "push", jobs=self.jobs, jobs_per_request=BATCH,
                                     connections=CONNECTIONS)
        self.values["dead_push"] = report["jobs_per_second"]
        with self._memory("dead_fail"):
            self.values["dead_fail"] = self._fail(self.jobs)
        time.sleep(SETTLE_SECONDS)
        self.values |= {"dead_rss": self.server.resident_bytes(),
                        "dead_disk": self.server.disk_bytes()}

    def kill_and_start(self):
        self.server.kill()
        self.values["dead_ready"] = self.server.start()
        self._expect(dead=self.jobs)
        time.sleep(SETTLE_SECONDS)
        self.values["dead_ready_rss"] = self.server.resident_bytes()

    def look(self):
        self._time_pages("dead_first", INSPECT)
        self._time_pages("dead_middle", INSPECT, self._walk(self.jobs // 2), follow=True)
        fingerprint = self._group()
        self._time_pages("dead_print", f"{INSPECT}&fingerprint={fingerprint}")
        self._dry_run()

    def bring_back(self):
        self._operate("dead_retry", "retry", {}, self.jobs)
        self._expect(pending=self.jobs)

    def purge(self):
        older = self.jobs // 2
        between = self._fail_in_halves(older)
        age = f"{int((time.monotonic() - between) * 1000)}ms"
        self._operate("dead_purge_old", "purge", {"older_than": age}, older)
        self._expect(dead=self.jobs - older)
        self._time_pages("dead_left", INSPECT)
        self._operate("dead_purge", "purge", {}, self.jobs - older)
        self._expect()
        time.sleep(SETTLE_SECONDS)
        self.values |= {"dead_end_rss": self.server.resident_bytes(),
                        "dead_end_disk": self.server.disk_bytes()}

    def _fail(self, jobs):
        report = self.bench.load(self.server, "claim_fail", jobs=jobs, jobs_per_request=BATCH,
                                 connections=CONNECTIONS)
        return report["jobs_per_second"]

    def _fail_in_halves(self, older):
        """All die again. Returns a moment, of time.monotonic(), between those of the two halves."""
        with self._memory("dead_again"):
            self._fail(older)
            time.sleep(GAP_SECONDS / 2)
            between = time.monotonic()
            time.sleep(GAP_SECONDS / 2)
            self._fail(self.jobs - older)
        self._expect(dead=self.jobs)
        return between

    def _time_pages(self, key, path, cursor="", follow=False):
        """CALLS pages, each the same or one after another."""
        times = []
        with self._watched(key):
            for _ in range(CALLS):
                started = time.monotonic()
                page = self.server.call("GET", f"{path}&limit={PAGE}&cursor={cursor}")
                times.append(time.monotonic() - started)
                if len(page["jobs"]) != PAGE:
                    raise BenchError(f"{path}: {len(page['jobs'])} jobs, not {PAGE}")
                if follow:
                    cursor = page["cursor"]
        times.sort()
        for name, share in (("p50", 0.50), ("p99", 0.99)):
            self.values[f"{key}_{name}"] = times[math.ceil(share * CALLS) - 1] * 1e6

    def _walk(self, jobs):
        """Pages through the newest `jobs` jobs and returns the cursor then."""
        cursor, walked = "", 0
        with self._watched("dead_walk"):
            while walked < jobs:
                page = self.server.call("GET", f"{INSPECT}&limit={WALK_PAGE}&cursor={cursor}")
                cursor = page["cursor"]
                walked += len(page["jobs"])
        self.values["dead_walk"] = walked / self.values["dead_walk_seconds"]
        return cursor

    def _group(self):
        """Returns the fingerprint of a group."""
        with self._watched("dead_group"):
            reply = self.server.call("GET", f"{QUEUE}/errors")
        groups = reply["groups"]
        if len(groups) != ERROR_KINDS or sum(group["dead"] for group in groups) != self.jobs:
            raise BenchError(f"{self.jobs:,} jobs in {ERROR_KINDS} groups were wanted: {reply}")
        self.values["dead_group"] = self.jobs / self.values["dead_group_seconds"]
        return groups[0]["fingerprint"]

    def _dry_run(self):
        with self._watched("dead_dry"):
            reply = self.server.call("POST", f"{QUEUE}/retry",
                                     {"filter": {"error": ERROR_PART}, "dry_run": True})
        wanted = math.ceil(self.jobs / ERROR_KINDS)
        if reply["matched"] != wanted:
            raise BenchError(f"the dry run should find {wanted:,} jobs: {reply}")
        self.values["dead_dry"] = self.jobs / self.values["dead_dry_seconds"]

    def _operate(self, key, action, selection, jobs):
        """Starts an operation and looks at it until it has ended."""
        with self._watched(key):
            status, reply = self.server.request("POST", f"{QUEUE}/{action}",
                                                {"filter": selection, "wait": "0s"})
            if status not in (200, 202) or not reply["operation"]:
                raise BenchError(f"{action}: {status} {reply}")
            operation = reply["operation"]
            while operation["state"] == "running":
                time.sleep(POLL_SECONDS)
                operation = self.server.call("GET", f"/v1/operations/{operation['id']}")
        if operation["state"] != "done" or operation["done"] != jobs:
            raise BenchError(f"{action} should do {jobs:,} jobs: {operation}")
        self.values[key] = jobs / self.values[f"{key}_seconds"]

    @contextmanager
    def _memory(self, key):
        """Adds the server's memory before, at most meanwhile, and after."""
        self.server.reset_peak_resident_bytes()
        self.values[f"{key}_before"] = self.server.resident_bytes()
        yield
        self.values |= {f"{key}_peak": self.server.peak_resident_bytes(),
                        f"{key}_after": self.server.resident_bytes()}

    @contextmanager
    def _watched(self, key):
        """Adds the time and the memory, and notes what others took of the processors."""
        cpu_before = self._cpu_of_others()
        started = time.monotonic()
        with self._memory(key):
            yield
        seconds = time.monotonic() - started
        self.bench.note_others(max(0.0, (self._cpu_of_others() - cpu_before) / max(seconds, 1)))
        self.values[f"{key}_seconds"] = seconds

    def _cpu_of_others(self):
        return machine_cpu_seconds() - self.server.cpu_seconds() - time.process_time()

    def _expect(self, dead=0, pending=0):
        stats = self.server.call("GET", QUEUE)["stats"]
        if (stats["dead"], stats["pending"], stats["active"]) != (dead, pending, 0):
            raise BenchError(f"{dead:,} jobs should be dead and {pending:,} pending: {stats}")
