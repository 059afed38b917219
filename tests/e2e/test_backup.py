"""`reprise backup`: a copy from a running server that another server can be started on."""

import os
import threading
from pathlib import Path

import pytest

from background import in_background
from reprise_cli import Cli
from waiting import eventually

REFUSED, UNREACHABLE = 1, 3


@pytest.fixture
def restore(start_server):
    """A function that starts a server on a copy."""
    def start(directory):
        server = start_server(ready=False)
        server.data = Path(directory)
        return server.start()
    return start


def backup(server, directory):
    return server.client(timeout=60).call("POST", "/v1/backup", {"directory": str(directory)})


class Load:
    """Pushes, claims and acks without pause, and remembers what was acknowledged."""

    def __init__(self, server):
        self.server = server
        self.pushed, self.acked = set(), set()
        self.stopping = threading.Event()
        self.thread = in_background(self.run)

    def run(self):
        queue = self.server.client().queue("load")
        while not self.stopping.is_set():
            self.pushed |= set(queue.push(*range(20)))
            jobs = queue.claim(5)
            queue.client.ack_all(jobs)
            self.acked |= {job["id"] for job in jobs}

    def stop(self):
        self.stopping.set()
        self.thread.result(30)


def test_everything_acknowledged_before_is_in_the_copy_though_work_goes_on(
        server, restore, tmp_path):
    client = server.client()
    client.queue("load").create()
    kept = client.queue("kept").created(retry={"attempts": 5}, lease="5m")
    kept.push("fresh", headers={"a": "b"}, key="k1")
    kept.push("later", delay="1h")
    kept.push("fails", "dies", "held", priority=1)
    fails, dies, held = kept.claim(3)
    client.fail(fails, error="timeout", delay="1h")
    client.fail(dies, error="no such customer", final=True)
    before = kept.snapshot()

    load = Load(server)
    eventually(lambda: len(load.acked) > 100, "some load", timeout=30)
    pushed, acked = set(load.pushed), set(load.acked)
    reply = backup(server, tmp_path / "copy")
    eventually(lambda: len(load.acked) > len(acked) + 20, "the load to go on", timeout=30)
    load.stop()
    assert reply["directory"] == str(tmp_path / "copy")
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert reply["bytes"] == sum(path.stat().st_size for path in files)
    assert reply["seconds"] > 0

    copy = restore(tmp_path / "copy").client()
    assert copy.queue("kept").snapshot() == before
    assert copy.queue("kept").push_jobs([{"payload": 1, "key": "k1"}])[0]["status"] == "duplicate"
    assert copy.ack(held)["status"] == "acked"
    there = {job["id"] for job in copy.queue("load").all_jobs(limit=1000)}
    assert pushed - load.acked <= there
    assert not acked & there

    assert kept.snapshot() == before, "the original is not touched"
    assert client.ack(held)["status"] == "acked"
    original = {job["id"] for job in client.queue("load").all_jobs(limit=1000)}
    assert original == load.pushed - load.acked


def test_backups_and_original_go_their_own_ways(server, restore, tmp_path):
    queue = server.client().queue("q").created()
    queue.push(*range(100))
    backup(server, tmp_path / "one")
    queue.push("between")
    backup(server, tmp_path / "deep" / "two")
    queue.push("after")
    one = restore(tmp_path / "one").client().queue("q")
    two = restore(tmp_path / "deep" / "two").client().queue("q")
    assert [len(each.all_jobs(limit=1000)) for each in (one, two, queue)] == [100, 101, 102]
    one.client.ack_all(one.claim(100))
    server.restart()
    queue = queue.through(server.client())
    assert [len(each.all_jobs(limit=1000)) for each in (one, two, queue)] == [0, 101, 102]
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700


def test_a_copy_of_many_checkpoints_is_whole(start_server, restore, tmp_path):
    server = start_server("--overlay-bytes", "1MiB", "--journal-bytes", "1MiB")
    queue = server.client().queue("q").created()
    for _ in range(20):
        queue.push(*["x" * 4000] * 100)
    queue.client.ack_all(queue.claim(1000))
    backup(server, tmp_path / "copy")
    copy = restore(tmp_path / "copy").client().queue("q")
    assert copy.snapshot() == queue.snapshot()


class TestRefusals:
    def refused(self, server, directory):
        reply = server.client().request("POST", "/v1/backup", {"directory": str(directory)})
        return reply.status, reply.code

    def test_a_directory_with_something_in_it(self, shared_server, tmp_path):
        (tmp_path / "note").write_text("mine")
        assert self.refused(shared_server, tmp_path) == (409, "directory_not_empty")
        assert self.refused(shared_server, tmp_path / "note") == (409, "directory_not_empty")
        assert os.listdir(tmp_path) == ["note"]

    def test_an_empty_directory_is_fine_and_a_second_time_is_not(self, shared_server, tmp_path):
        backup(shared_server, tmp_path)
        before = sorted(tmp_path.rglob("*"))
        assert self.refused(shared_server, tmp_path) == (409, "directory_not_empty")
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize("path", ["relative", "./x", "", "/x\n/y"])
    def test_a_path_that_cannot_be_meant(self, shared_server, path):
        assert self.refused(shared_server, path) == (400, "invalid_field")

    @pytest.mark.parametrize("body", [b"", {}, {"directory": 1}, {"directory": None}])
    def test_no_path(self, api, body):
        assert api.refused("POST", "/v1/backup", body) == (400, "invalid_request")
        assert api.refused("POST", "/v1/backup", {"dir": "/x"}) == (400, "unknown_field")

    def test_inside_the_data_directory(self, server, tmp_path):
        (tmp_path / "link").symlink_to(server.data)
        for inside in (server.data, server.data / "copy", server.data / "db" / "copy",
                       f"{server.data}/../data/copy", tmp_path / "link" / "copy"):
            status, code = self.refused(server, inside)
            assert (status, code) == (400, "invalid_field"), inside
        beside = server.data.with_name("data-copy")
        assert backup(server, beside)["directory"] == str(beside)

    def test_where_the_server_cannot_write(self, server):
        assert self.refused(server, "/proc/copy") == (500, "backup_failed")
        server.client().queue("q").created().push("it goes on")
        assert "backup of" in server.log() and "/proc/copy" in server.log()

    def test_a_full_disk_leaves_nothing_behind_and_the_server_going(
            self, start_server, disk_shim, tmp_path):
        server = start_server(env={"LD_PRELOAD": str(disk_shim),
                                   "DISK_IS_FULL_BELOW": str(tmp_path / "full")})
        queue = server.client().queue("q").created()
        queue.push(*range(100))
        assert self.refused(server, tmp_path / "full") == (507, "disk_full")
        assert not (tmp_path / "full").exists()
        (tmp_path / "full").mkdir()
        assert self.refused(server, tmp_path / "full") == (507, "disk_full")
        assert os.listdir(tmp_path / "full") == []
        queue.push("it goes on")
        backup(server, tmp_path / "elsewhere")

    def test_a_second_one_at_the_same_time(self, start_server, disk_shim, tmp_path):
        slow = tmp_path / "slow"
        server = start_server(env={"LD_PRELOAD": str(disk_shim),
                                   "DISK_SYNC_WAITS_WHEN": str(slow)})
        server.client().queue("q").created().push(1)
        slow.touch()
        both = {name: in_background(server.client(timeout=60).request, "POST", "/v1/backup",
                                    {"directory": str(tmp_path / name)}) for name in "ab"}
        late = eventually(lambda: next((name for name in both if both[name].done()), None),
                          "one of them to be refused")
        reply = both.pop(late).result()
        assert (reply.status, reply.code) == (409, "backup_running")
        assert not (tmp_path / late).exists()
        slow.unlink()
        assert [each.result(30).status for each in both.values()] == [200]
        backup(server, tmp_path / late)

    def test_with_tokens_it_needs_one_and_its_name_is_in_the_log(self, start_server, tmp_path):
        tokens = tmp_path / "tokens"
        tokens.write_text("operator:s3cret\n")
        server = start_server("--token-file", str(tokens), token="s3cret")
        body = {"directory": str(tmp_path / "copy")}
        assert server.client().refused("POST", "/v1/backup", body) == (401, "unauthorized")
        assert not (tmp_path / "copy").exists()
        server.client(token="s3cret").call("POST", "/v1/backup", body)
        assert f"to {tmp_path / 'copy'} for operator" in server.log()
        assert "s3cret" not in server.log()


class TestCommand:
    def test_it_makes_the_path_absolute_and_says_how_to_restore(self, cli, tmp_path):
        result = cli.ok("backup", "copy", cwd=tmp_path)
        first, second = result.out.splitlines()
        assert first.startswith("backed up ") and f" to {tmp_path / 'copy'} in " in first
        assert second == f"start a server on it with: reprise serve --data {tmp_path / 'copy'}"
        assert (tmp_path / "copy" / "db" / "CURRENT").is_file()

    def test_paths_are_normal_and_quoted_for_a_shell(self, cli, tmp_path):
        result = cli.ok("backup", f"{tmp_path}/./x/../two words/")
        assert result.out.endswith(f"--data '{tmp_path}/two words'\n")

    def test_json_is_the_reply_of_the_api(self, cli, tmp_path):
        reply = cli.ok("backup", tmp_path / "copy", "--json").json()
        assert set(reply) == {"directory", "bytes", "seconds"}

    def test_a_refusal_has_its_code(self, cli, tmp_path):
        (tmp_path / "note").touch()
        result = cli.run("backup", tmp_path)
        assert result.code == REFUSED and result.err.rstrip().endswith("(directory_not_empty)")

    def test_wrong_usage(self, cli):
        assert cli.run("backup").code == 2
        assert cli.run("backup", "").code == 2

    def test_without_a_server(self, tmp_path):
        result = Cli("http://127.0.0.1:1").run("backup", tmp_path / "copy")
        assert result.code == UNREACHABLE
        assert not (tmp_path / "copy").exists()
