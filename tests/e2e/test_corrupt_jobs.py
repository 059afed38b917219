"""A job whose stored record was damaged: it dies, is never delivered, and does not come back."""

import pytest

from metrics_text import read_metrics
from waiting import eventually

MARK = "damage me here"


def damage(server):
    """Changes a byte of every record on disk that has the mark."""
    found = 0
    for path in (server.data / "journal").rglob("*.seg"):
        place = path.read_bytes().find(MARK.encode())
        while place >= 0:
            found += 1
            with open(path, "r+b") as file:
                file.seek(place)
                file.write(b"D")
            place = path.read_bytes().find(MARK.encode())
    assert found, "no record has the mark: where are the payloads kept?"


@pytest.fixture
def damaged(start_server):
    """A queue with a damaged job, `bad`, before a whole one, `good`. Its server has a small cache,
    so that both have to be read from the disk."""
    server = start_server("--cache-bytes", "1MiB")
    queue = server.client().queue("q").created(retry={"attempts": "unlimited"})
    server.bad, server.good = queue.push(MARK, "whole")
    # Of other queues: what is pushed behind them in theirs would leave the cache first.
    for number in range(4):
        server.client().queue(f"other-{number}").created().push(*["x" * 100_000] * 10)
    damage(server)
    server.queue = queue
    return server


def die(server):
    assert server.queue.claim_one()["id"] == server.good
    eventually(lambda: server.queue.status_of(server.bad) == "dead", "the damaged job to die")


def test_it_dies_undelivered_and_the_next_is_served(damaged):
    die(damaged)
    queue = damaged.queue
    meta = queue.job(damaged.bad)["dead_letter"]["meta"]
    assert (meta["reason"], meta["decidedBy"], meta["attempts"], meta["history"]) == (
        "corrupt", "policy", 0, [])
    totals = queue.totals()
    assert (totals["corrupt"], totals["died"]) == (1, 1)
    assert read_metrics(queue.client).value("reprise_corrupt_total", queue="q",
                                            namespace="default") == 1
    assert [job["id"] for job in queue.jobs(status="dead", reason="corrupt")] == [damaged.bad]


def test_it_cannot_be_brought_back(damaged):
    die(damaged)
    queue = damaged.queue
    before = queue.job(damaged.bad)
    reply = queue.retry(damaged.bad, status=409)
    assert (reply["retried"], reply["error"]["code"]) == (0, "wrong_status")
    [skipped] = reply["skipped"]
    assert (skipped["id"], skipped["status"]) == (damaged.bad, "dead")
    assert skipped["code"] == "wrong_status" and "corrupt" in skipped["reason"]
    reply = queue.retry(filter={})
    assert reply["retried"] == 0
    assert [each["id"] for each in reply["skipped"]] in ([], [damaged.bad])
    assert queue.job(damaged.bad) == before


@pytest.mark.parametrize("how", ["purge by id", "purge by filter", "drop"])
def test_it_can_be_deleted(damaged, how):
    die(damaged)
    queue = damaged.queue
    if how == "purge by id":
        assert queue.purge(damaged.bad)["purged"] == 1
    elif how == "purge by filter":
        assert queue.purge(filter={"reason": "corrupt"})["purged"] == 1
    else:
        assert queue.drop(damaged.bad)["status"] == "dead"
    assert queue.status_of(damaged.bad) is None and "dead" not in queue.counts()


def test_it_stays_with_its_queue_though_there_is_a_dead_letter_queue(damaged):
    queue = damaged.queue
    queue.patch(dead_letter_queue="graves")
    die(damaged)
    graves = queue.client.request("GET", queue.sibling("graves").path())
    assert graves.status == 404 or graves.json()["stats"]["pending"] == 0
    assert queue.counts()["dead"] == 1
