"""A spool on a disk that is full or fails: nothing that was there is lost, nothing is promised that
is not kept, and the message says what is wrong. A preloaded library plays the disk."""

import json

import pytest

from ingest_server import accept_all, all_are, rejecting
from spooling import FAILED, counts, read_result, total, write_whole


class Disk:
    """The environment of commands whose disk can be full or broken for a while."""

    def __init__(self, library, folder):
        folder.mkdir()
        self.full, self.broken = folder / "full", folder / "broken"
        self.env = {"LD_PRELOAD": str(library), "DISK_IS_FULL_WHEN": str(self.full),
                    "DISK_SYNC_FAILS_WHEN": str(self.broken)}

    def mend(self):
        self.full.unlink(missing_ok=True)
        self.broken.unlink(missing_ok=True)


@pytest.fixture
def disk(disk_shim, tmp_path):
    return Disk(disk_shim, tmp_path / "disk")


def assert_told(result, *words):
    assert result.code == FAILED, repr(result)
    for word in words:
        assert word.lower() in result.err.lower(), repr(result)


NO_SPACE = "No space left on device"


class TestAdding:
    def test_nothing_is_stored_or_promised(self, spool, disk):
        spool.put_many(2)
        before = spool.snapshot()
        disk.full.touch()
        result = spool.run("add", "t", "--data", "1", env=disk.env)
        assert_told(result, NO_SPACE)
        assert result.out == "" and spool.snapshot() == before

    def test_nothing_is_left_behind(self, spool, disk):
        spool.add()
        disk.full.touch()
        spool.run("add", "t", env=disk.env)
        assert spool.temporaries() == []

    def test_of_a_stream_the_printed_ids_are_there(self, spool, disk):
        spool.add()
        disk.full.touch()
        result = spool.run("add", "t", "--ndjson-stdin", stdin="1\n2\n3\n", env=disk.env)
        assert_told(result, NO_SPACE)
        assert result.out == "" and len(spool.ids()) == 1

    def test_it_goes_on_when_there_is_room(self, spool, disk):
        disk.full.touch()
        assert_told(spool.run("add", "t", env=disk.env), NO_SPACE)
        disk.mend()
        assert spool.ok("add", "t", env=disk.env).out.split() == spool.ids()

    def test_a_sync_that_fails_is_no_promise(self, spool, disk):
        spool.add()
        disk.broken.touch()
        result = spool.run("add", "t", env=disk.env)
        assert_told(result, "Input/output error")
        assert result.out == ""

    def test_as_json(self, spool, disk):
        spool.add()
        disk.full.touch()
        result = spool.run("add", "t", "--json", env=disk.env)
        assert result.code == FAILED
        assert NO_SPACE in json.loads(result.err.splitlines()[-1])["error"]["message"]

    def test_a_quota_that_cannot_be_kept(self, spool, disk):
        spool.add("t", "--max-events", "5")
        before = spool.snapshot()
        disk.full.touch()
        assert spool.run("add", "t", "--max-events", "1000", env=disk.env).code == FAILED
        assert spool.snapshot() == before

    def test_an_import_removes_nothing(self, spool, disk, tmp_path):
        folder = tmp_path / "raw"
        write_whole(folder / "a.json", b'{"type": "t"}')
        disk.full.touch()
        result = spool.run("import", folder, "--remove", env=disk.env)
        assert result.code == FAILED and NO_SPACE in result.err
        assert (folder / "a.json").exists() and spool.names() == []

    def test_a_push_that_cannot_be_spooled_is_told(self, spool, disk):
        spool.add()
        disk.full.touch()
        result = spool.cli.run("queue", "push", "jobs", "1", "--spool", "--server",
                               "http://127.0.0.1:1",
                               env=disk.env | {"REPRISE_SPOOL": str(spool.directory)})
        assert result.code != 0 and result.out == "" and NO_SPACE in result.err
        assert len(spool.ids()) == 1


class TestDraining:
    def test_what_is_accepted_goes_all_the_same(self, spool, disk, ingest):
        spool.put_many(3)
        (spool.directory / "lock").touch()
        disk.full.touch()
        result = spool.run("drain", "--to", ingest.url, "--json", env=disk.env)
        # Whether or not its name could be written into the lock, nothing is lost.
        if result.code == 0:
            assert counts(read_result(result)) == {"accepted": 3} and spool.names() == []
        else:
            assert NO_SPACE in result.err and len(spool.names()) == 3

    def fill_up(self, disk, judge):
        """Answers as ever; the disk is full from then on."""
        def answer(request):
            disk.full.touch()
            return judge(request)
        return answer

    def test_an_attempt_that_cannot_be_counted(self, spool, disk, start_ingest):
        first, bad, last = spool.put_many(3)
        before = spool.snapshot()
        server = start_ingest(self.fill_up(disk, rejecting(bad)))
        result = spool.run("drain", "--to", server.url, "--json", env=disk.env)
        assert_told(result, NO_SPACE, bad)
        told = read_result(result)
        assert told["accepted"] == 2 and told["remaining"] == 1 and total(told) == 3
        assert spool.snapshot() == {f"queue/{bad}.json": before[f"queue/{bad}.json"]}
        disk.mend()
        assert counts(spool.drain(server.url)) == {"accepted": 1}

    def test_a_letter_that_cannot_be_written(self, spool, disk, start_ingest):
        first, bad, last = spool.put_many(3)
        server = start_ingest(self.fill_up(disk, rejecting(bad)))
        result = spool.run("drain", "--to", server.url, "--max-attempts", "1", "--json",
                           env=disk.env)
        assert_told(result, NO_SPACE, bad)
        assert counts(read_result(result)) == {"accepted": 2, "remaining": 1}
        assert spool.ids() == [bad] and spool.dead_names() == []
        disk.mend()
        told = spool.drain(start_ingest(all_are("rejected")).url, "--max-attempts", "1")
        assert counts(told) == {"deadLettered": 1}

    def test_a_corrupt_file_that_cannot_be_moved(self, spool, disk, start_ingest):
        spool.put()
        name = spool.put_bytes(b"no event")
        spool.put()
        server = start_ingest()
        (spool.directory / "lock").write_text(" " * 500)
        disk.full.touch()
        result = spool.run("drain", "--to", server.url, "--json", env=disk.env)
        assert result.code == FAILED and NO_SPACE in result.err, repr(result)
        assert (spool.queue / name).read_bytes() == b"no event" and spool.dead_names() == []
        disk.mend()
        told = spool.drain(server.url)
        assert told["corrupt"] == 1 and spool.raw_bytes(spool.letter()) == b"no event"

    def test_a_letter_that_cannot_be_synced(self, spool, disk, start_ingest):
        bad = spool.put()

        def break_it(request):
            disk.broken.touch()
            return all_are("rejected")(request)
        server = start_ingest(break_it)
        result = spool.run("drain", "--to", server.url, "--max-attempts", "1", "--json",
                           env=disk.env)
        assert_told(result, "Input/output error", bad)
        assert spool.ids() == [bad]

    def test_batches_behind_it_go_on(self, spool, disk, start_ingest):
        ids = spool.put_many(4)
        server = start_ingest(self.fill_up(disk, rejecting(ids[0])), accept_all, accept_all)
        result = spool.run("drain", "--to", server.url, "--batch", "2", "--json", env=disk.env)
        assert result.code == FAILED
        assert counts(read_result(result)) == {"accepted": 3, "remaining": 1}


class TestDeadLetters:
    def test_a_retry_that_fails_keeps_the_letter(self, spool, disk):
        dead = spool.bury()
        before = spool.snapshot()
        disk.full.touch()
        result = spool.run("retry", dead, env=disk.env)
        assert_told(result, NO_SPACE)
        assert spool.snapshot() == before
        disk.mend()
        assert spool.ok("retry", dead, "--json", env=disk.env).json()["retried"] == 1

    def test_a_purge_needs_no_room(self, spool, disk):
        spool.bury()
        disk.full.touch()
        assert spool.ok("purge", "--all", "--json", env=disk.env).json()["purged"] == 1
