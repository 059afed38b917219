"""kill -9 under load, again and again: what a client was told stays true.

CYCLES=n        crashes per run (100 by default, in each of the first two runs below)
REPRISE_SEED=n  replays the choices and the delays of a run; the seed is printed
"""

import os
import random
import secrets
import shutil

import pytest

from checker import check
from oracle import Oracle

CYCLES = int(os.environ.get("CYCLES", "100"))
LOAD_SECONDS = (0.05, 0.4)
# Small buffers make checkpoints frequent, so that crashes fall into them too.
SMALL_BUFFERS = ["--overlay-bytes", "1MiB", "--cache-bytes", "1MiB",
                 "--block-cache-bytes", "1MiB"]


def violations_of(oracle, tmp_path):
    """Drains and checks. What was found is printed, with the means to look into it."""
    final = oracle.finish()
    print(oracle.summary())
    violations = check(oracle.journal.entries, final)
    if violations:
        oracle.journal.write(tmp_path / "journal.ndjson")
        print(f"journal: {tmp_path / 'journal.ndjson'}")
        print("\n".join(f"{each.promise}: {each.text}" for each in violations[:20]))
    return violations


def choose_seed():
    seed = int(os.environ.get("REPRISE_SEED", secrets.randbelow(2**32)))
    print(f"REPRISE_SEED={seed}")
    return seed


@pytest.mark.parametrize("flags, cycles", [
    pytest.param([], CYCLES, id="defaults"),
    pytest.param(SMALL_BUFFERS, CYCLES, id="small-buffers"),
    pytest.param(["--durability", "none"], CYCLES // 4, id="unsynced"),
])
def test_nothing_a_client_was_told_is_undone_by_a_crash(start_server, tmp_path, flags, cycles):
    seed = choose_seed()
    choose = random.Random(seed)
    oracle = Oracle(start_server(*flags, ready=False), seed)
    oracle.start()
    for _ in range(cycles):
        oracle.crash_after(choose.uniform(*LOAD_SECONDS))
    assert violations_of(oracle, tmp_path) == []
    assert_the_run_proved_something(oracle)


def test_a_server_that_forgets_is_found_out(start_server, tmp_path):
    """The harness itself: a data directory from before the load takes the place of the real one."""
    oracle = Oracle(start_server(ready=False), choose_seed())
    oracle.start()
    oracle.crash_after(0.2)
    data, earlier = oracle.server.data, oracle.server.folder / "earlier"
    oracle.crash_after(0.2, while_down=lambda: shutil.copytree(data, earlier))

    def forget():
        shutil.rmtree(data)
        earlier.rename(data)

    oracle.crash_after(0.4, while_down=forget)
    promises = {violation.promise for violation in violations_of(oracle, tmp_path)}
    assert {"acknowledged push kept", "ack is final"} & promises


def assert_the_run_proved_something(oracle):
    """A run in which little happened, or nothing was in flight at the kills, proves nothing."""
    replied = [entry for entry in oracle.journal.entries if entry.outcome == "replied"]
    unknown = [entry for entry in oracle.journal.entries if entry.outcome == "unknown"]
    assert {entry.kind for entry in replied} == {"push", "claim", "ack", "fail", "release",
                                                 "extend"}
    assert len(replied) > 5 * oracle.cycles
    assert len(unknown) > oracle.cycles / 4
    delivered = [job for entry in replied if entry.kind == "claim" for job in entry.reply["jobs"]]
    assert any(job["attempts"] > 1 for job in delivered)
