"""A disk that returns other bytes than were written: the server says so and serves none of them."""

import hashlib
import os
import shutil

import pytest

COULD_NOT_START = 1
JOBS = 500
# Not data: a diary, a lock, a name, a copy of the settings; which batch was the last to be synced.
HARMLESS = ("LOG", "LOCK", "IDENTITY", "OPTIONS", "synced")


def make_payload(number):
    filler = os.urandom(4000).hex()
    return {"n": number, "filler": filler, "hash": hashlib.sha256(filler.encode()).hexdigest()}


def is_whole(job):
    payload = job["payload"]
    return hashlib.sha256(payload["filler"].encode()).hexdigest() == payload["hash"]


def data_files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*")
                  if path.is_file() and path.stat().st_size
                  and not path.name.startswith(HARMLESS))


def flip_a_bit(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


@pytest.fixture(params=["stop", "kill"])
def stored(start_server, request):
    """A server that has been stopped, or killed, with jobs on disk: both leave different files.
    The overlay is small, so that the jobs are in the journal and in tables."""
    server = start_server("--overlay-bytes", "1MiB")
    queue = server.client().queue("q").created()
    for start in range(0, JOBS, 50):
        queue.push(*[make_payload(number) for number in range(start, start + 50)])
    server.ids = {job["id"] for job in queue.all_jobs(limit=1000)}
    server.terminate() if request.param == "stop" else server.kill()
    server.whole = server.folder / "whole"
    server.data.rename(server.whole)
    return server


def fault_with(server, damage):
    """What is wrong with how the server deals with damage to its files; None when it is honest: it
    refuses to start and says why, or it serves everything as it was, or it tells of the damage
    and what it does serve is right."""
    shutil.copytree(server.whole, server.data)
    try:
        damage()
        return fault_of(server)
    finally:
        server.kill()
        shutil.rmtree(server.data)


def fault_of(server):
    log_before = len(server.log())
    try:
        server.start()
    except AssertionError:
        code, log = server.process.returncode, server.log()[log_before:]
        named = "cannot start" in log and str(server.data) in log
        return None if code == COULD_NOT_START and named else f"it ended with {code}: {log}"
    queue = server.client().queue("q")
    listed = queue.client.request("GET", queue.path("/jobs", limit=1000))
    claimed = queue.client.request("POST", queue.path("/claim"), {"max": 1000})
    served = [job for reply in (listed, claimed) if reply.status == 200
              for job in reply.json()["jobs"]]
    if not all(is_whole(job) for job in served):
        return "it served damaged bytes"
    if 500 in (listed.status, claimed.status):
        return None
    missing = len(server.ids - {job["id"] for job in served})
    return f"{missing} jobs are gone without a word" if missing else None


def test_a_flipped_bit_anywhere_is_found_or_harmless(stored):
    assert {".seg", ".sst"} <= {path.suffix for path in data_files(stored.whole)}
    faults = []
    for path in data_files(stored.whole):
        for share in (0.02, 0.5, 0.98):
            position = int((stored.whole / path).stat().st_size * share)
            if fault := fault_with(stored, lambda: flip_a_bit(stored.data / path, position)):
                faults.append(f"{path} at byte {position}: {fault}")
    assert faults == []


def test_a_missing_file_is_found(stored):
    faults = []
    for path in data_files(stored.whole):
        if fault := fault_with(stored, lambda: (stored.data / path).unlink()):
            faults.append(f"{path}: {fault}")
    assert faults == []


BATCH_MARK = (0xB17C4A91).to_bytes(4, "little")


def last_batch(journal):
    """The segment with the last batch, and the place of its first byte."""
    for path in sorted(journal.glob("*.seg"), reverse=True):
        place = path.read_bytes().rfind(BATCH_MARK)
        if place >= 0:
            return path, place - 4
    raise AssertionError("the journal has no batch")


@pytest.mark.parametrize("marked_as_synced", [True, False])
def test_a_last_write_that_is_not_whole(server, marked_as_synced):
    """What a power cut leaves, which nobody was promised, is left out, and the log tells of it. What
    is known to have been synced is damage."""
    queue = server.client().queue("q").created()
    kept = queue.push("kept")
    queue.push("torn")
    server.kill()
    path, place = last_batch(server.data / "journal")
    flip_a_bit(path, place + 40)
    if not marked_as_synced:
        (server.data / "journal" / "synced").unlink()
    if marked_as_synced:
        server.launch()
        assert server.wait(10) == COULD_NOT_START
        assert f"{path} is damaged at byte {place}" in server.log()
        assert "reprise salvage" in server.log()
        return
    server.start()
    assert f"{path}: left out an unfinished write at byte {place}" in server.log()
    assert [job["id"] for job in queue.through(server.client()).all_jobs()] == kept
