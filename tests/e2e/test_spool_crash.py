"""kill -9 of those who write and those who drain: what was promised is there, and stored once.

SPOOL_CRASHES=300 for more kills.
"""

import json
import os
import random
import signal
import time

import pytest

from spooling import LOCKED, UNSENT, counts, read_result
from waiting import eventually

CRASHES = int(os.environ.get("SPOOL_CRASHES", 30))
SEED = int(os.environ.get("REPRISE_SEED", random.SystemRandom().randrange(1 << 32)))


@pytest.fixture
def dice():
    print(f"REPRISE_SEED={SEED}")
    return random.Random(SEED)


@pytest.fixture
def events_queue(api, namespace):
    return api.queue("events", namespace)


@pytest.fixture
def url(shared_server, namespace):
    return f"{shared_server.url}/api/events/ingest?namespace={namespace}"


def kill(process):
    """What it had printed."""
    process.kill()
    out, _ = process.communicate()
    return out.decode()


def stored(queue):
    """How often each id is there."""
    found = {}
    for job in queue.all_jobs(limit=1000):
        event_id = job["payload"]["id"]
        found[event_id] = found.get(event_id, 0) + 1
    return found


class TestKilledDrains:
    def test_every_event_is_stored_exactly_once(self, spool, url, events_queue, dice):
        ids = spool.put_many(600)
        killed = 0
        while killed < CRASHES:
            process = spool.start("drain", "--to", url, "--batch", str(dice.choice([1, 3, 10])))
            time.sleep(dice.uniform(0.005, 0.05))
            killed += process.poll() is None
            kill(process)
            if len(spool.names()) < 100:
                ids += spool.put_many(200)
        told = read_result(spool.ok("drain", "--to", url, "--json"))
        assert told["remaining"] == 0
        assert stored(events_queue) == dict.fromkeys(ids, 1)
        assert spool.snapshot() == {} and spool.temporaries() == []

    def test_refused_ones_are_counted_and_die(self, spool, start_ingest, dice):
        """No kill loses a refused event, and each is a dead letter in the end."""
        ids = spool.put_many(60)
        server = start_ingest(otherwise=lambda request: {"results": [
            {"index": index, "status": "rejected", "error": "no"}
            for index in range(len(request.events))]})
        for _ in range(CRASHES // 2):
            process = spool.start("drain", "--to", server.url, "--batch", "2",
                                  "--max-attempts", "4")
            time.sleep(dice.uniform(0.005, 0.06))
            kill(process)
            dead = {letter["event"]["id"] for letter in spool.letters().values()}
            assert dead | set(spool.ids()) == set(ids)
        for _ in range(5):
            spool.ok("drain", "--to", server.url, "--max-attempts", "4")
        letters = spool.letters().values()
        assert spool.names() == [] and {letter["event"]["id"] for letter in letters} == set(ids)
        assert all(letter["meta"]["reason"] == "max_attempts" and letter["meta"]["attempts"] == 4
                   for letter in letters)
        assert spool.temporaries() == []

    def test_a_killed_drainers_lock_is_free(self, spool, url, events_queue):
        ids = spool.put_many(100)
        process = spool.start("drain", "--to", url, "--follow")
        eventually(lambda: spool.status()["drainer"], "the drainer")
        kill(process)
        assert spool.status()["drainer"] is None
        spool.ok("drain", "--to", url)
        assert stored(events_queue) == dict.fromkeys(ids, 1)

    def test_two_at_once(self, spool, url, events_queue):
        for _ in range(5):
            spool.put_many(60)
            processes = [spool.start("drain", "--to", url, "--batch", "5", "--json")
                         for _ in range(2)]
            ended = [(process.communicate(timeout=30), process.returncode)
                     for process in processes]
            codes = sorted(code for _, code in ended)
            assert codes in ([0, 0], [0, LOCKED])
            for (out, err), code in ended:
                if code == LOCKED:
                    assert out == b"" and json.loads(err)["error"]["code"] == "spool_locked"
        assert spool.names() == []
        assert set(stored(events_queue).values()) == {1} and len(stored(events_queue)) == 300
        assert events_queue.totals().get("duplicates", 0) == 0

    def test_the_server_is_killed_too(self, spool, start_server, dice):
        server = start_server()
        server.listen = f"127.0.0.1:{server.port}"
        ids = spool.put_many(300)
        target = f"{server.url}/api/events/ingest"
        for _ in range(4):
            process = spool.start("drain", "--to", target, "--batch", "5")
            time.sleep(dice.uniform(0.01, 0.1))
            server.kill()
            time.sleep(dice.uniform(0, 0.05))
            kill(process)
            server.start()
        spool.ok("drain", "--to", target)
        assert stored(server.client().queue("events")) == dict.fromkeys(ids, 1)


class TestKilledAdds:
    def test_every_printed_id_is_there(self, spool, url, events_queue, dice):
        printed = []
        for _ in range(CRASHES // 5):
            process = spool.start("add", "t", "--ndjson-stdin")
            os.set_blocking(process.stdout.fileno(), False)
            deadline, ids = None, b""
            while deadline is None or time.monotonic() < deadline:
                for _ in range(dice.randrange(50)):
                    process.stdin.write(b"%d\n" % dice.randrange(1000))
                process.stdin.flush()
                # A stream that falls silent for a moment is stored so far.
                time.sleep(dice.choice([0, 0.01, 0.25]))
                ids += process.stdout.read() or b""
                if ids and deadline is None:
                    deadline = time.monotonic() + dice.uniform(0, 0.08)
            process.send_signal(signal.SIGKILL)
            process.wait()
            # The last line may be cut: an id that was not printed whole was not promised.
            ids += process.stdout.read() or b""
            printed += ids.decode().rpartition("\n")[0].split()
            process.stdout.close()
            process.stderr.close()
            try:
                process.stdin.close()
            except OSError:
                pass
        assert printed and set(printed) <= set(spool.ids())
        for event in spool.events():  # whole, all of them
            assert event["type"] == "t" and isinstance(event["data"], int)
        total = len(spool.ids())
        assert counts(spool.drain(url)) == {"accepted": total}
        assert spool.temporaries() == []

    def test_a_killed_retry_loses_nothing(self, spool, dice):
        ids = [spool.bury() for _ in range(400)]
        for _ in range(5):
            process = spool.start("retry", "--all")
            time.sleep(dice.uniform(0.003, 0.03))
            kill(process)
            assert set(spool.ids()) | set(spool.dead_ids()) == set(ids)
        spool.ok("retry", "--all")
        assert spool.ids() == ids and spool.dead_names() == []

    def test_a_killed_import_loses_nothing(self, spool, tmp_path, dice):
        folder = tmp_path / "raw"
        folder.mkdir()
        ids = []
        for number in range(400):
            event = {"id": f"01ARZ3NDEKTSV4RRFFQ69G5{number:03}", "type": "t"}
            ids.append(event["id"])
            (folder / f"{number:03}.json").write_text(json.dumps(event))
        for _ in range(5):
            process = spool.start("import", folder, "--remove")
            time.sleep(dice.uniform(0.003, 0.03))
            kill(process)
            left = {json.loads(path.read_text())["id"] for path in folder.glob("*.json")}
            assert left | set(spool.ids()) == set(ids)
        spool.ok("import", folder, "--remove")
        assert spool.ids() == ids and list(folder.iterdir()) == []


class TestTogether:
    def test_adders_and_a_drainer(self, spool, url, events_queue):
        """No temporary of a living adder is swept, nothing is sent twice, nothing is lost."""
        follower = spool.start("drain", "--to", url, "--follow", "--json")
        adders = [spool.start("add", f"t{number}", "--ndjson-stdin") for number in range(3)]
        for adder in adders:
            adder.stdin.write(b"".join(b"%d\n" % n for n in range(300)))
            adder.stdin.close()
        printed = []
        for adder in adders:
            printed += adder.stdout.read().decode().split()
            error = adder.stderr.read().decode()
            assert adder.wait(20) == 0, error
            adder.stdout.close()
            adder.stderr.close()
        eventually(lambda: spool.names() == [], "all to be sent", timeout=20)
        follower.send_signal(signal.SIGTERM)
        out, _ = follower.communicate(timeout=10)
        assert follower.returncode == 0 and json.loads(out)["accepted"] == 900
        assert stored(events_queue) == dict.fromkeys(printed, 1) and len(printed) == 900

    def test_repeated_drains_beside_an_adder(self, spool, url, events_queue):
        adder = spool.start("add", "t", "--ndjson-stdin")
        os.set_blocking(adder.stdin.fileno(), False)
        sent = 0
        for _ in range(8):
            for _ in range(40):
                adder.stdin.write(b"%d\n" % sent)
                sent += 1
            adder.stdin.flush()
            result = spool.run("drain", "--to", url)
            assert result.code in (0, UNSENT), repr(result)
        out, err = adder.communicate(timeout=20)
        assert adder.returncode == 0, err
        spool.ok("drain", "--to", url)
        assert stored(events_queue) == dict.fromkeys(out.decode().split(), 1)
        assert len(out.split()) == sent
