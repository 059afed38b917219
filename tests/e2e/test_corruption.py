"""A disk that returns other bytes than were written: the server says so and serves none of them, and
`reprise salvage` keeps what can be read and tells what is lost.

Blocks are damaged at random, others each time: DAMAGED_BLOCKS=500 for more, DAMAGED_BLOCKS=all for
every block of every file; REPRISE_SEED for the same again.
"""

import hashlib
import os
import random
import shutil

import pytest

from reprise_cli import Cli

COULD_NOT_START = 1
ALL_KEPT, LOST = 0, 1
BLOCK = 4096
DAMAGED_BLOCKS = os.environ.get("DAMAGED_BLOCKS", "6")
SEED = int(os.environ.get("REPRISE_SEED", random.SystemRandom().randrange(1 << 32)))
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
    server.salvages = False
    server.whole = server.folder / "whole"
    server.data.rename(server.whole)
    return server


def fault_with(server, path, damage):
    """What is wrong with how the server deals with damage to its files; None when it is honest: it
    refuses to start and says why, or it serves everything as it was, or it tells of the damage
    and what it does serve is right."""
    shutil.copytree(server.whole, server.data)
    try:
        damage()
        return fault_of(server, path)
    finally:
        server.kill()
        shutil.rmtree(server.data)


def digests(folder):
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).digest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def fault_of_salvage(server):
    """What is wrong with what `reprise salvage` makes of a directory that a start has refused."""
    before, damaged, new = digests(server.data), server.data, server.folder / "new"
    result = Cli().run("salvage", "--data", damaged, "--to", new, "--json")
    if digests(damaged) != before:
        return "salvage has changed the directory"
    if result.code not in (ALL_KEPT, LOST):
        return f"salvage ended with {result.code}: {result.err}"
    report = result.json()
    if not report["damage"] or report["lost_anything"] is not (result.code == LOST):
        return f"salvage does not tell of the damage: {report}"
    server.data = new
    try:
        client = server.start().client()
        jobs = [job for queue in report["queues"]
                for job in client.queue(queue["name"]).all_jobs(limit=1000)]
    except AssertionError as wrong:
        return f"what was salvaged cannot be served: {wrong}"
    finally:
        server.kill()
        server.data = damaged
        shutil.rmtree(new)
    kept = {job["id"] for job in jobs}
    if not kept <= server.ids or not all(is_whole(job) for job in jobs):
        return "salvage has kept what was not there"
    if len(kept) != report["jobs"]["kept"] + report["dead"]["kept"]:
        return f"salvage has kept {len(kept)} jobs and reports {report['jobs']}"
    if kept != server.ids and result.code == ALL_KEPT:
        return f"{len(server.ids - kept)} jobs are gone, and salvage says that all are kept"
    return None


def is_named(path, log):
    """Where nothing tells which file there was, its directory is named: a manifest without anything in
    it leaves nothing of the base, a segment that is gone leaves a gap."""
    if "cannot start" not in log:
        return False
    if path.name in log:
        return True
    if path.name.startswith("MANIFEST-"):
        return "db is missing" in log
    return path.suffix == ".seg" and not path.exists() and "journal is damaged" in log


def fault_of(server, path):
    log_before = len(server.log())
    try:
        server.start()
    except AssertionError:
        code, log = server.process.returncode, server.log()[log_before:]
        if code != COULD_NOT_START or not is_named(server.data / path, log):
            return f"it ended with {code}: {log}"
        return fault_of_salvage(server) if server.salvages else None
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
            if fault := fault_with(stored, path, lambda: flip_a_bit(stored.data / path, position)):
                faults.append(f"{path} at byte {position}: {fault}")
    assert faults == []


def test_a_missing_file_is_found(stored):
    faults = []
    for path in data_files(stored.whole):
        if fault := fault_with(stored, path, lambda: (stored.data / path).unlink()):
            faults.append(f"{path}: {fault}")
    assert faults == []


def zero_a_block(path, position):
    data = bytearray(path.read_bytes())
    data[position:position + BLOCK] = bytes(len(data[position:position + BLOCK]))
    path.write_bytes(data)


def cut_short(path, position):
    os.truncate(path, position)


def delete(path, _):
    path.unlink()


def test_a_damaged_block_of_any_file_is_found_and_the_rest_salvaged(stored):
    print(f"REPRISE_SEED={SEED}")
    stored.salvages = True
    places = [(damage, path, position) for path in data_files(stored.whole)
              for position in range(0, (stored.whole / path).stat().st_size, BLOCK)
              for damage in (flip_a_bit, zero_a_block, cut_short, delete)
              if damage is not delete or position == 0]
    if DAMAGED_BLOCKS != "all":
        # Each file as often as the others: most of the blocks are in the journal.
        dice = random.Random(SEED)
        files = data_files(stored.whole)
        chosen = [dice.choice(files) for _ in range(int(DAMAGED_BLOCKS))]
        places = [dice.choice([place for place in places if place[1] == path]) for path in chosen]
    faults = []
    for damage, path, position in places:
        within = position
        if damage is flip_a_bit:
            within += random.Random(SEED + position).randrange(BLOCK)
            within = min(within, (stored.whole / path).stat().st_size - 1)
        if fault := fault_with(stored, path, lambda: damage(stored.data / path, within)):
            faults.append(f"{damage.__name__} of {path} at byte {within}: {fault}")
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
