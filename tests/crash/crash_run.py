"""A server under the load of the oracle, killed and started again, and what is found afterwards."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from checker import Final, check
from journal import briefly, read_journal
from reprise_server import clean_environment, die_with_parent
from waiting import eventually
from workload import CLIENTS, CONFIGS, queue_names

TUBE_CLIENTS = 8  # of them, where the server speaks the beanstalk protocol
LOAD_SECONDS = (0.05, 0.4)  # before a kill
# Some servers are killed again before they serve: in the middle of their recovery.
START_SECONDS = (0.0, 0.2)
START_SHARE = 0.1
# Small buffers make checkpoints frequent, so that kills fall into them and what follows them too.
SMALL_BUFFERS = ["--overlay-bytes", "1MiB", "--journal-bytes", "1MiB", "--cache-bytes", "1MiB",
                 "--block-cache-bytes", "1MiB"]
PATIENCE_SECONDS = 30  # without any change while there is work left: then it is stuck
SETTLED_SECONDS = 0.3  # without any change when all is empty: then it is drained
DRAIN_SECONDS = 120
END_SECONDS = 40
ORACLE = Path(__file__).with_name("oracle.py")


class CrashRun:
    """One oracle and the server that it loads. The server may have served other runs before; this
    one has queues of its own, whose names begin with `prefix`."""

    def __init__(self, server, seed, prefix="", clients=CLIENTS, tube_clients=TUBE_CLIENTS,
                 kicks=True, patience=PATIENCE_SECONDS):
        self.server = server
        self.seed = seed
        self.prefix = prefix
        self.clients = clients
        self.tube_clients = tube_clients
        self.kicks = kicks
        self.patience = patience
        self.journal_path = server.folder / f"{prefix}journal.ndjson"
        self.oracle_log = server.folder / f"{prefix}oracle.log"
        self.oracle = None
        self.cycles = 0
        self.in_checkpoint = 0
        self.in_start = 0
        self.entries = []

    def start(self):
        if not self.server.alive():
            self.server.start()
        client = self.server.client()
        for name, config in queue_names(self.prefix).items():
            client.queue(name).create(**CONFIGS[config])
        client.close()
        tube_clients = self.tube_clients if self.server.door_port else 0
        with open(self.oracle_log, "wb") as log:
            self.oracle = subprocess.Popen(
                [sys.executable, str(ORACLE), "--journal", str(self.journal_path), "--prefix",
                 self.prefix, "--clients", str(self.clients), "--tube-clients", str(tube_clients),
                 "--seed", str(self.seed), *([] if self.kicks else ["--no-kicks"])],
                stdin=subprocess.PIPE, stderr=log, env=clean_environment(),
                preexec_fn=die_with_parent)
        self._tell_ports()

    def _tell_ports(self):
        self._tell(f"up {self.server.port} {self.server.door_port or ''}")

    def _tell(self, order):
        assert self.oracle.poll() is None, f"the oracle has ended: {self.oracle_log.read_text()}"
        self.oracle.stdin.write(order.encode() + b"\n")
        self.oracle.stdin.flush()

    @staticmethod
    def load_for(seconds):
        # The length of the load is what is being varied: there is no condition to wait for.
        time.sleep(seconds)

    def load_until(self, lines):
        """Load until the journal has so many more lines, two for each request that is answered."""
        wanted = self._journal_lines() + lines
        eventually(lambda: self._journal_lines() >= wanted, f"{lines} lines in the journal",
                   timeout=60, every=0.1)

    def _journal_lines(self):
        assert self.oracle.poll() is None, f"the oracle has ended: {self.oracle_log.read_text()}"
        return self.journal_path.read_bytes().count(b"\n") if self.journal_path.exists() else 0

    def crash_after(self, seconds, while_down=lambda: None):
        """Load for so long, then SIGKILL in the middle of it and a new start."""
        self.load_for(seconds)
        assert self.server.alive(), "the server has ended by itself"
        self.server.kill()
        self.cycles += 1
        # Where a checkpoint writes its tables before they become part of the base.
        self.in_checkpoint += any(self.server.data.glob("checkpoint/*"))
        while_down()
        self.server.start()
        self._tell_ports()

    def crash_at_random(self, choose):
        self.crash_after(choose.uniform(*LOAD_SECONDS),
                         while_down=lambda: self._crash_in_start(choose))

    def _crash_in_start(self, choose):
        if choose.random() < START_SHARE:
            self.server.launch()
            time.sleep(choose.uniform(*START_SECONDS))
            self.server.kill()
            self.in_start += 1

    def finish(self):
        """Ends the load, drains the queues, and returns the violations that are found."""
        self._tell("drain")
        client = self.server.client()
        queues = [client.queue(name) for name in queue_names(self.prefix)]
        self._wait_until_drained(queues)
        self.oracle.stdin.close()
        code = self.oracle.wait(END_SECONDS)
        assert code == 0, f"the oracle ended with {code}: {self.oracle_log.read_text()}"
        final = {queue.name: final_of(queue) for queue in queues}
        client.close()
        self.entries = read_journal(self.journal_path)
        return check(self.entries, final)

    def _wait_until_drained(self, queues):
        """Until only dead jobs are left, or nothing has changed for a long time: what is left then
        is stuck, which is for the checker to say."""
        deadline = time.monotonic() + DRAIN_SECONDS
        changed, before = time.monotonic(), None
        while time.monotonic() < deadline:
            stats = [queue.stats() for queue in queues]
            now = [(each["totals"], waiting(each)) for each in stats]
            if now != before:
                changed, before = time.monotonic(), now
            is_empty = not any(left for _, left in now)
            # What was under way when the load ended may still bring jobs back.
            if time.monotonic() - changed > (SETTLED_SECONDS if is_empty else self.patience):
                return
            time.sleep(0.05)
        raise AssertionError(f"not drained within {DRAIN_SECONDS} s: {now}")

    def dispose(self):
        if self.oracle is not None and self.oracle.poll() is None:
            self.oracle.kill()
            self.oracle.wait()

    def figures(self):
        """How much happened: what a run without violations is worth."""
        replied = [entry for entry in self.entries if entry.outcome == "replied"]
        unknown = [entry for entry in self.entries
                   if entry.outcome == "unknown" and entry.kind != "hang_up"]
        delivered = sum(len(entry.reply["jobs"]) for entry in replied if entry.kind == "claim")
        return {"kills": self.cycles, "in_checkpoint": self.in_checkpoint,
                "in_start": self.in_start, "in_flight": len(unknown), "operations": len(replied),
                "deliveries": delivered, **Counter(entry.kind for entry in replied),
                **Counter(f"tube {entry.kind}" for entry in replied if entry.door == "tube"),
                **Counter(f"{entry.kind} by filter" for entry in replied
                          if "filter" in entry.request)}


def waiting(stats):
    return sum(stats[status] for status in ("scheduled", "pending", "active", "failed"))


def final_of(queue):
    jobs = briefly(queue.all_jobs(limit=1000))
    return Final(queue.stats(), [job for job in jobs if job["status"] == "dead"],
                 [job for job in jobs if job["status"] != "dead"])


def describe(figures):
    kills = max(figures["kills"], 1)
    return (f"{figures['kills']:,} kills, {figures['in_checkpoint']:,} of them in a checkpoint, "
            f"{figures['in_flight'] / kills:.1f} requests in flight at each, and "
            f"{figures['in_start']:,} in a recovery; "
            f"{figures['operations']:,} operations answered, {figures['operations'] / kills:,.0f} "
            f"a cycle, and {figures['deliveries']:,} deliveries")
