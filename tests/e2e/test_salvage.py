"""`reprise salvage`: a damaged directory is refused by the server, and what can be read is kept."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from reprise_cli import Cli

ALL_KEPT, LOST, USAGE, IMPOSSIBLE = 0, 1, 2, 3
COULD_NOT_START = 1
JOBS = 1200


def hashes(folder):
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The data of a server that was killed: jobs in tables and in the journal, finished ones, failed
    ones and dead ones. (its folder, the jobs that are there by queue)."""
    from reprise_server import Server
    server = Server("--overlay-bytes", "1MiB", "--journal-bytes", "1MiB")
    try:
        client = server.start().client()
        for name in ("orders", "mail"):
            client.queue(name).create(retry={"attempts": 3, "cooldown": "1h"}, lease="1h")
        orders, mail = client.queue("orders"), client.queue("mail")
        for start in range(0, JOBS, 50):
            orders.push(*[{"n": n, "filler": hashlib.sha256(str(n).encode()).hexdigest() * 40}
                          for n in range(start, start + 50)])
            mail.push(*range(5), key=None)
            if start >= 200:
                jobs = orders.claim(40)
                client.ack_all(jobs[:30])
                client.fail(jobs[30], error="timeout")
                client.fail(jobs[31], error="no such customer", final=True)
                for job in jobs[32:]:
                    client.release(job)
        there = {queue.name: {job["id"]: job for job in queue.all_jobs(limit=1000)}
                 for queue in (orders, mail)}
        server.kill()
        folder = tmp_path_factory.mktemp("filled") / "data"
        shutil.copytree(server.data, folder)
        yield folder, there
    finally:
        server.dispose()


@pytest.fixture
def damaged(filled, start_server):
    """A server that is not started, with a copy of the data."""
    server = start_server("--overlay-bytes", "1MiB", ready=False)
    shutil.copytree(filled[0], server.data)
    server.there = filled[1]
    server.new = server.folder / "new"
    return server


def salvage(server, *flags):
    """Runs it; the old directory must not change."""
    before = hashes(server.data)
    result = Cli().run("salvage", "--data", server.data, "--to", server.new, *flags, timeout=120)
    assert hashes(server.data) == before, "the damaged directory has changed"
    return result


def refuses_to_start(server):
    server.launch()
    assert server.wait(30) == COULD_NOT_START
    assert "cannot start" in server.log() and "reprise salvage" in server.log(), server.log()


def start_on_new(server, start_server):
    """A server on what was salvaged, and its jobs by queue."""
    new = start_server(ready=False)
    new.data = server.new
    client = new.start().client()
    return client, {name: {job["id"]: job for job in client.queue(name).all_jobs(limit=1000)}
                    for name in server.there}


def tables(server):
    return sorted((server.data / "db").glob("*.sst"), key=lambda path: path.stat().st_size)


def segments(server):
    """Those that hold batches that are not in the tables, most likely: the newest ones written to."""
    begun = [path for path in sorted((server.data / "journal").glob("*.seg"))
             if path.read_bytes()[:8] == b"REPRISEJ"]
    return [path for path in begun
            if int.from_bytes(path.read_bytes()[32:40], "little") == int(path.stem)]


def without_moving(job):
    """What of a job does not depend on the time it is looked at."""
    return {name: value for name, value in job.items() if name != "status"}


class TestUndamaged:
    def test_everything_is_kept_as_it_was(self, damaged, start_server):
        result = salvage(damaged, "--json")
        assert result.code == ALL_KEPT, repr(result)
        report = result.json()
        assert report["lost_anything"] is False and report["damage"] == []
        client, kept = start_on_new(damaged, start_server)
        for name, jobs in damaged.there.items():
            assert {i: without_moving(j) for i, j in kept[name].items()} == {
                i: without_moving(j) for i, j in jobs.items()}
        new_id = client.queue("orders").push_one("new")
        assert all(new_id not in jobs for jobs in damaged.there.values())

    def test_the_table_and_the_notes(self, damaged):
        result = salvage(damaged)
        assert result.code == ALL_KEPT
        header, mail, orders = result.rows()
        assert header == ["NAMESPACE", "QUEUE", "KEPT", "LOST", "RESET", "DEAD", "DEAD LOST"]
        live = [job for job in damaged.there["orders"].values() if job["status"] != "dead"]
        dead = len(damaged.there["orders"]) - len(live)
        assert orders == ["default", "orders", str(len(live)), "0", "0", str(dead), "0"]
        assert mail[:4] == ["default", "mail", str(len(damaged.there["mail"])), "0"]
        assert "nothing was lost" in result.err
        assert f"reprise serve --data {damaged.new}" in result.err
        shutil.rmtree(damaged.new)
        assert len(salvage(damaged, "--no-header").rows()) == 2

    def test_on_a_terminal(self, damaged):
        with Cli().terminal("salvage", "--data", damaged.data, "--to", damaged.new) as terminal:
            code, shown = terminal.finish()
        assert code == ALL_KEPT
        assert "reading the journal" in shown and "NAMESPACE  QUEUE" in shown


class TestDamage:
    def check(self, server, start_server, code):
        refuses_to_start(server)
        result = salvage(server, "--json")
        assert result.code == code, repr(result)
        report = result.json()
        assert report["damage"] and report["lost_anything"] is (code == LOST)
        client, kept = start_on_new(server, start_server)
        for queue in report["queues"]:
            jobs = kept[queue["name"]]
            dead = sum(job["status"] == "dead" for job in jobs.values())
            assert queue["jobs"]["kept"] == len(jobs) - dead and queue["dead"]["kept"] == dead
        payloads = {i: job["payload"] for jobs in server.there.values() for i, job in jobs.items()}
        waiting = {i for job in kept.values() for i in job if job[i]["status"] == "pending"}
        claimed = [job for name in kept for _ in range(3) for job in client.queue(name).claim(1000)]
        assert {job["id"] for job in claimed} == waiting
        assert all(payloads[job["id"]] == job["payload"] for job in claimed
                   if job["id"] in payloads)
        client.ack_all(claimed[:1000])
        return report, kept

    def test_a_flipped_bit_in_a_table(self, damaged, start_server):
        table = tables(damaged)[-1]
        flip(table, table.stat().st_size // 3)
        report, kept = self.check(damaged, start_server, LOST)
        assert any(table.name in line for line in report["damage"])
        missing = sum(len(damaged.there[name].keys() - kept[name].keys()) for name in kept)
        assert 0 < missing == report["jobs"]["lost"] + report["dead"]["lost"] < JOBS // 2
        assert all(kept[name].keys() <= damaged.there[name].keys() for name in kept)

    def test_no_current(self, damaged, start_server):
        (damaged.data / "db" / "CURRENT").unlink()
        _, kept = self.check(damaged, start_server, ALL_KEPT)
        assert {name: jobs.keys() for name, jobs in kept.items()} == {
            name: jobs.keys() for name, jobs in damaged.there.items()}

    @pytest.mark.parametrize("damage", ["garbled", "missing"])
    def test_no_manifest(self, damaged, start_server, damage):
        for manifest in (damaged.data / "db").glob("MANIFEST-*"):
            manifest.write_bytes(b"x" * 3000) if damage == "garbled" else manifest.unlink()
        _, kept = self.check(damaged, start_server, ALL_KEPT)
        assert {name: jobs.keys() for name, jobs in kept.items()} == {
            name: jobs.keys() for name, jobs in damaged.there.items()}

    def test_a_missing_table(self, damaged, start_server):
        table = tables(damaged)[-1]
        table.unlink()
        report, _ = self.check(damaged, start_server, LOST)
        assert any(table.name in line for line in report["damage"])

    def test_a_flipped_bit_in_the_journal(self, damaged, start_server):
        # In the batch that was written last: the tables do not have it.
        last = segments(damaged)[-1]
        flip(last, len(last.read_bytes().rstrip(b"\0")) - 100)
        report, kept = self.check(damaged, start_server, LOST)
        assert report["journal"]["batches_lost"] == 1
        assert any(last.name in line for line in report["damage"])
        assert kept["orders"].keys() == damaged.there["orders"].keys()  # it was a release

    def test_no_journal(self, damaged, start_server):
        shutil.rmtree(damaged.data / "journal")
        self.check(damaged, start_server, LOST)

    def test_no_base(self, damaged):
        shutil.rmtree(damaged.data / "db")
        refuses_to_start(damaged)
        result = salvage(damaged, "--json")
        assert result.code == LOST
        assert all(queue["recovered"] for queue in result.json()["queues"])


class TestRefusals:
    def test_a_running_server(self, server):
        new = server.folder / "new"
        result = Cli().run("salvage", "--data", server.data, "--to", new)
        assert result.code == IMPOSSIBLE
        assert "in use" in result.err and str(server.pid) in result.err
        assert result.err.rstrip().endswith("(io)") and not new.exists()
        server.client().queue("q").created().push("it goes on")

    def test_nothing_that_can_be_read(self, damaged):
        for path in [*damaged.data.rglob("*")]:
            if path.is_file():
                path.write_bytes(b"?" * 10_000)
        result = salvage(damaged, "--json")
        assert result.code == IMPOSSIBLE and not damaged.new.exists()
        assert json.loads(result.err)["error"]["code"] == "corrupt"

    def test_wrong_directories(self, damaged, tmp_path):
        (tmp_path / "note").touch()
        for old, new in ((tmp_path / "absent", damaged.new), (tmp_path, damaged.new),
                         (damaged.data, tmp_path), (damaged.data, damaged.data / "new"),
                         (damaged.data, damaged.data)):
            result = Cli().run("salvage", "--data", old, "--to", new)
            assert result.code == USAGE and result.err.rstrip().endswith("(invalid_field)"), new
        assert not damaged.new.exists()

    def test_wrong_usage(self, damaged):
        assert Cli().run("salvage").code == USAGE
        assert Cli().run("salvage", "--data", damaged.data).code == USAGE
        assert Cli().run("salvage", "--to", damaged.new).code == USAGE

    def test_where_it_cannot_write(self, damaged):
        result = Cli().run("salvage", "--data", damaged.data, "--to", "/proc/new")
        assert result.code == IMPOSSIBLE and "/proc/new" in result.err

    def test_a_full_disk_leaves_nothing(self, damaged, disk_shim):
        result = Cli(env={"LD_PRELOAD": str(disk_shim),
                          "DISK_IS_FULL_BELOW": str(damaged.new)}).run(
            "salvage", "--data", damaged.data, "--to", damaged.new, timeout=120)
        assert result.code == IMPOSSIBLE and not damaged.new.exists(), repr(result)

    def test_what_is_unfinished_is_never_started_on(self, damaged):
        (damaged.new / "salvage-unfinished").mkdir(parents=True)
        damaged.data = Path(damaged.new)
        damaged.launch()
        assert damaged.wait(30) == COULD_NOT_START
        assert "salvage-unfinished" in damaged.log()
