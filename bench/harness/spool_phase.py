"""The phase `spool`: events into an outbox, and out of it to a server on this machine."""

import fcntl
import json
import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from harness.processes import BenchError, clean_environment

ADDED = 10_000
DRAINED = 100_000
DATA_BYTES = 900  # an event is then 1 KiB
# <linux/fs.h>
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, FS_TOPDIR_FL = 0x80086601, 0x40086602, 0x00020000


def spool(bench):
    folder = Path(tempfile.mkdtemp(prefix="reprise-bench-spool-", dir=bench.scratch))
    spread_subfolders(folder)
    return add(bench, folder / "added") | drain(bench, folder / "drained")


def spread_subfolders(folder):
    """ext4 takes no inode that was in use within the last minutes, and passes over all of them for each
    file it makes: after a mass deletion that takes fifty times as long. Folders with this flag have
    their subfolders, and so the files in these, each in another part of the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        flags = struct.unpack("i", fcntl.ioctl(descriptor, FS_IOC_GETFLAGS, bytes(4)))[0]
        fcntl.ioctl(descriptor, FS_IOC_SETFLAGS, struct.pack("i", flags | FS_TOPDIR_FL))
    except OSError:
        pass  # not a file system with such a flag
    finally:
        os.close(descriptor)


def lines(count):
    return "".join(json.dumps({"n": n, "text": os.urandom(DATA_BYTES // 2).hex()}) + "\n"
                   for n in range(count))


def command(bench, spool_folder, arguments, text=None):
    """(seconds, stdout)"""
    started = time.monotonic()
    done = subprocess.run(
        [bench.tools.server, "spool", *arguments, "--spool", spool_folder], input=text,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment())
    seconds = time.monotonic() - started
    if done.returncode != 0:
        raise BenchError(f"spool {arguments[0]} ended with {done.returncode}: {done.stderr}")
    return seconds, done.stdout


def fill(bench, spool_folder, count):
    seconds, ids = command(bench, spool_folder, ["add", "bench.event", "--ndjson-stdin"],
                           lines(count))
    if len(ids.splitlines()) != count:
        raise BenchError(f"{count:,} events should have been added, not {len(ids.splitlines()):,}")
    return seconds


def add(bench, spool_folder):
    return {"spool_add": ADDED / fill(bench, spool_folder, ADDED)}


def drain(bench, spool_folder):
    fill(bench, spool_folder, DRAINED)
    with bench.server() as server:
        before = server.cpu_seconds()
        seconds, text = command(bench, spool_folder,
                                ["drain", "--json", "--server", f"http://{server.address}"])
        cpu = server.cpu_seconds() - before
        result = json.loads(text)
        stored = server.call("GET", "/v1/queues/events")["stats"]["pending"]
    if result["accepted"] != DRAINED or stored != DRAINED:
        raise BenchError(f"{DRAINED:,} events should have arrived, not {stored:,}: {result}")
    return {"spool_drain": DRAINED / seconds, "spool_drain_cpu": cpu / DRAINED * 1e6}
