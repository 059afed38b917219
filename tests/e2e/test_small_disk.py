"""A small file system that the server itself fills, to the last byte: pushes are refused, all else
goes on, and service is back when there is room."""

import errno
import os
import subprocess

import pytest

from waiting import eventually

MIB = 1 << 20
DISK_BYTES, BALLAST_BYTES = 48 * MIB, 24 * MIB
RECOVERY_SECONDS = 10
ACKS = 1000


@pytest.fixture
def small_disk(tmp_path):
    """A directory with a file system of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder],
        capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"file systems cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def full(small_disk, start_server):
    """A server on a disk that it has filled, its queue, and the ids that it has acknowledged. A file
    of somebody else stands in the way: server.make_room() removes it."""
    ballast = small_disk / "ballast"
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, BALLAST_BYTES)
    server = start_server("--disk-reserve", "0", ready=False)
    server.data = small_disk / "data"
    server.make_room = ballast.unlink
    queue = server.start().client().queue("q").created(lease="1h")
    acknowledged = queue.push(*range(ACKS))
    payload = os.urandom(100_000).hex()
    while True:
        reply = queue.client.request("POST", queue.path("/push"), {"jobs": [{"payload": payload}]})
        if reply.status != 200:
            break
        acknowledged.append(reply.json()["results"][0]["id"])
    assert refusal_of(reply) == (507, "disk_full")
    assert len(acknowledged) > ACKS + 20
    # What was too little for the next file of the journal goes, too.
    with open(small_disk / "rest", "wb", buffering=0) as rest:
        eventually(lambda: fill(rest) < MIB, "the disk to be full")
    yield server, queue, acknowledged
    server.kill()  # before its disk goes


def fill(file):
    """Bytes that are free after it."""
    try:
        while True:
            file.write(bytes(4096))
    except OSError as full:
        assert full.errno == errno.ENOSPC
    status = os.statvfs(file.fileno())
    return status.f_bavail * status.f_frsize


def refusal_of(reply):
    body = reply.json()
    error = body.get("error") or body["results"][0]["error"]
    return reply.status, error["code"]


def push(queue):
    return queue.client.request("POST", queue.path("/push"), {"jobs": [{"payload": "more"}]})


def stored_ids(queue):
    return {job["id"] for job in queue.all_jobs(limit=100)}


def test_a_thousand_acks_succeed_and_service_comes_back_by_itself(full):
    server, queue, acknowledged = full
    pid = server.pid
    jobs = queue.claim(ACKS)
    assert len(jobs) == ACKS
    for job in jobs:
        assert queue.client.ack(job)["status"] == "acked"
    assert refusal_of(push(queue)) == (507, "disk_full")
    assert queue.client.refused("GET", "/readyz") == (507, "disk_full")

    server.make_room()
    eventually(lambda: push(queue).status == 200, "pushes to go on", timeout=RECOVERY_SECONDS)
    eventually(lambda: queue.client.get("/readyz") == {"status": "ready"}, "the server to be ready",
               timeout=RECOVERY_SECONDS)
    assert server.alive() and server.pid == pid
    left = set(acknowledged) - {job["id"] for job in jobs}
    assert len(stored_ids(queue) - left) == 1 and left < stored_ids(queue)
    server.restart("stop")
    assert left < stored_ids(queue.through(server.client()))


def test_a_crash_on_it_loses_nothing(full):
    server, queue, acknowledged = full
    jobs = queue.claim(10)
    queue.client.ack_all(jobs)
    server.kill()
    server.make_room()
    server.start()
    left = set(acknowledged) - {job["id"] for job in jobs}
    assert stored_ids(queue.through(server.client())) == left
