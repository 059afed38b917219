"""The directory of a spool: where it is, who may read it, what in it counts as an event, and that
events leave it byte for byte."""

import json
import os
import socket
import stat

import pytest

from ingest_server import all_are, rejecting
from reprise_cli import Cli
from spooling import BOOKKEEPING, Spool, counts, iso, ulid, write_whole

UMASKS = [0o000, 0o022, 0o077, 0o777]


def modes(directory):
    """The permissions of everything in there, by path."""
    found = {".": directory}
    found |= {str(path.relative_to(directory)): path for path in directory.rglob("*")}
    return {name: stat.S_IMODE(path.lstat().st_mode) for name, path in found.items()}


def assert_private(directory):
    for name, mode in modes(directory).items():
        wanted = 0o700 if (directory / name).is_dir() else 0o600
        assert mode == wanted, f"{name}: {mode:o}"


def finish(process, stdin=b""):
    out, err = process.communicate(stdin, timeout=20)
    return process.returncode, out.decode(), err.decode()


class TestPermissions:
    @pytest.mark.parametrize("umask", UMASKS, ids=oct)
    def test_of_what_was_added(self, spool, umask):
        process = spool.start("add", "t", "--max-events", "10", "--ndjson-stdin", umask=umask)
        code, out, err = finish(process, b"1\n2\n")
        assert code == 0, err
        assert_private(spool.directory)
        assert {"queue", "quota.json"} <= set(modes(spool.directory))

    @pytest.mark.parametrize("umask", UMASKS, ids=oct)
    def test_of_what_a_drain_leaves(self, spool, start_ingest, umask):
        counted, dying = spool.put("a"), spool.put("b", _attempts=1)
        spool.put_bytes(b"no event")
        url = start_ingest(otherwise=all_are("rejected")).url
        process = spool.start("drain", "--to", url, "--max-attempts", "2", umask=umask)
        assert finish(process)[0] == 0
        assert spool.ids() == [counted] and f"{dying}.json" in spool.dead_names()
        assert len(spool.dead_names()) == 2 and (spool.directory / "lock").exists()
        assert_private(spool.directory)

    @pytest.mark.parametrize("umask", UMASKS, ids=oct)
    def test_of_what_was_imported_and_retried(self, spool, tmp_path, umask):
        write_whole(tmp_path / "raw" / "1.json", b'{"type": "t"}')
        code, _, err = finish(spool.start("import", tmp_path / "raw", umask=umask))
        assert code == 0, err
        spool.bury()
        assert finish(spool.start("retry", "--all", umask=umask))[0] == 0
        assert len(spool.names()) == 2
        assert_private(spool.directory)


class TestWhere:
    """The first that is given: flag, REPRISE_SPOOL, XDG_DATA_HOME, HOME."""

    def add(self, *flags, **env):
        environment = {"HOME": "", "XDG_DATA_HOME": ""} | env
        unset = [name for name, value in environment.items() if not value]
        cli = Cli(env={name: str(value) for name, value in environment.items() if value})
        cli.environment = lambda extra=None, whole=cli.environment: {
            name: value for name, value in whole(extra).items() if name not in unset}
        return cli.run("spool", "add", "t", *flags)

    def test_the_flag_wins(self, tmp_path):
        result = self.add("--spool", tmp_path / "flag", REPRISE_SPOOL=tmp_path / "variable",
                          XDG_DATA_HOME=tmp_path / "data", HOME=tmp_path / "home")
        assert result.code == 0 and [path.name for path in tmp_path.iterdir()] == ["flag"]
        assert Spool(tmp_path / "flag").ids() == result.out.split()

    def test_then_the_variable(self, tmp_path):
        result = self.add(REPRISE_SPOOL=tmp_path / "variable", XDG_DATA_HOME=tmp_path / "data",
                          HOME=tmp_path / "home")
        assert result.code == 0 and [path.name for path in tmp_path.iterdir()] == ["variable"]

    def test_then_the_data_directory_of_the_user(self, tmp_path):
        result = self.add(XDG_DATA_HOME=tmp_path / "data", HOME=tmp_path / "home")
        assert Spool(tmp_path / "data" / "reprise" / "spool").ids() == result.out.split()
        assert not (tmp_path / "home").exists()

    def test_then_the_home_directory(self, tmp_path):
        result = self.add(HOME=tmp_path)
        assert Spool(tmp_path / ".local/share/reprise/spool").ids() == result.out.split()

    def test_none_is_an_error_that_names_the_flag(self):
        result = self.add()
        assert result.code != 0 and result.out == "" and "--spool" in result.err

    def test_every_command_uses_the_same(self, tmp_path, ingest):
        cli = Cli(env={"REPRISE_SPOOL": str(tmp_path / "s")})
        spool = Spool(tmp_path / "s")
        cli.ok("spool", "add", "t")
        assert cli.ok("spool", "status", "--json").json()["queued"] == 1
        cli.ok("queue", "push", "jobs", "1", "--spool", "--server", "http://127.0.0.1:1")
        assert len(spool.ids()) == 2
        cli.ok("spool", "drain", "--to", ingest.url)
        assert spool.ids() == []
        dead = spool.bury()
        assert dead in cli.ok("spool", "inspect").out
        cli.ok("spool", "retry", dead)
        assert spool.ids() == [dead]
        cli.ok("spool", "purge", "--all")

    def test_parents_are_made(self, tmp_path):
        spool = Spool(tmp_path / "a" / "b" / "c")
        assert spool.add() == spool.ids()

    def test_a_directory_that_cannot_be_made_is_told(self, tmp_path):
        (tmp_path / "file").write_text("")
        result = Spool(tmp_path / "file" / "spool").run("add", "t")
        assert result.code != 0 and result.out == "" and str(tmp_path / "file") in result.err

    @pytest.mark.parametrize("command", [["drain", "--to", "http://127.0.0.1:1/"], ["inspect"],
                                         ["status"], ["retry", "--all"], ["purge", "--all"]])
    def test_nothing_is_made_by_looking(self, spool, command):
        assert spool.run(*command).code == 0
        assert not spool.directory.exists()


class TestWhatIsNoEvent:
    def warned(self, spool, ingest):
        """What stderr says when a drain goes over it; the one real event is delivered."""
        event_id = spool.put()
        result = spool.run("drain", "--to", ingest.url, "--json")
        assert result.code == 0 and result.json()["accepted"] == 1, repr(result)
        assert result.json()["remaining"] == result.json()["corrupt"] == 0
        assert ingest.ids() == [event_id] and spool.dead_names() == []
        return result.err

    def test_a_symbolic_link(self, spool, ingest, tmp_path):
        elsewhere = tmp_path / "secret.json"
        elsewhere.write_text(json.dumps({"id": ulid(), "type": "t"}))
        link = f"{ulid()}.json"
        spool.put_bytes(b"", "x.json")
        (spool.queue / "x.json").unlink()
        (spool.queue / link).symlink_to(elsewhere)
        (spool.queue / "dangling.json").symlink_to(tmp_path / "nowhere")
        warning = self.warned(spool, ingest)
        assert link in warning and "dangling.json" in warning
        assert (spool.queue / link).is_symlink() and elsewhere.exists()

    def test_a_fifo_is_not_waited_for(self, spool, ingest):
        spool.queue.mkdir(parents=True)
        os.mkfifo(spool.queue / "pipe.json")
        assert "pipe.json" in self.warned(spool, ingest)
        assert (spool.queue / "pipe.json").exists()

    def test_directories_sockets_and_other_names(self, spool, ingest, monkeypatch):
        (spool.queue / "folder.json").mkdir(parents=True)
        (spool.queue / "note.txt").write_text(json.dumps({"id": ulid()}))
        (spool.queue / f"{ulid()}.json.bak").write_text(json.dumps({"id": ulid()}))
        monkeypatch.chdir(spool.queue)  # paths of sockets are short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket.json")
        left = set(os.listdir(spool.queue))
        warning = self.warned(spool, ingest)
        assert all(name in warning for name in left), warning
        assert set(os.listdir(spool.queue)) == left
        assert spool.status()["ignored"] == len(left)

    def test_temporaries_are_swept_and_never_sent(self, spool, ingest):
        spool.queue.mkdir(parents=True)
        spool.dead_letter.mkdir()
        whole = json.dumps({"id": ulid(), "type": "t", "data": 1})
        for folder in (spool.queue, spool.dead_letter):
            for text in (whole, whole[:20], ""):
                path = folder / f".{ulid()}.json.tmp"
                path.write_text(text)
                os.utime(path, (1, 1))
        assert spool.status()["temporaries"] >= 3
        self.warned(spool, ingest)
        assert spool.temporaries() == [] and spool.status()["temporaries"] == 0

    def test_a_temporary_of_just_now_is_never_sent(self, spool, ingest):
        spool.queue.mkdir(parents=True)
        (spool.queue / f".{ulid()}.json.tmp").write_text(json.dumps({"id": ulid()}))
        self.warned(spool, ingest)

    def test_a_file_of_any_name_is_an_event(self, spool, ingest):
        ids = [spool.put(name=name) for name in ("a.json", "b c.json", "ü.json", "z'$(x).json")]
        assert counts(spool.drain(ingest.url)) == {"accepted": 4}
        assert sorted(ingest.ids()) == sorted(ids)

    def test_the_order_is_that_of_the_names(self, spool, ingest):
        late = spool.put(name="zzz.json")
        early = spool.put()
        spool.drain(ingest.url, "--batch", "1")
        assert ingest.batches() == [[early], [late]]


class TestByteForByte:
    FIELDS = [
        b'"n": 1.50', b'"big":123456789012345678901234567890', b'"exp" : 1E+400', b'"zero": -0.0',
        b'"tiny": 1e-999', b'"text": "\\u00e9\\/\\ud83d\\ude00\xc3\xa9"', b'"twice": 1, "twice": 2',
        b'"": null', b'"nested": {"_attempts": 5, "_lastError": "mine", "a": [1.0, {"b": 2e0}]}',
        b'"nul": "\\u0000"']

    def text(self, event_id, extra=b""):
        head = b'{"id": "%s", "type": "t", ' % event_id.encode()
        return head + b", ".join(self.FIELDS) + extra + b"}"

    def test_an_event_is_sent_as_it_is(self, spool, ingest):
        event = self.text(ulid())
        spool.put_bytes(event)
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}
        assert event in ingest.requests[0].body

    @pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.decode()[:12])
    def test_a_field_survives_counting(self, spool, start_ingest, field):
        event_id = ulid()
        spool.put_bytes(b'{%s, "id": "%s"}' % (field, event_id.encode()), f"{event_id}.json")
        server = start_ingest(all_are("rejected"))
        assert counts(spool.drain(server.url)) == {"retried": 1, "remaining": 1}
        assert spool.event(event_id)["_attempts"] == 1
        assert counts(spool.drain(server.url)) == {"accepted": 1}
        for request in server.requests:
            assert field in request.body
            assert not BOOKKEEPING & set(request.events[0])

    def test_dead_letters_and_retries_keep_it_too(self, spool, start_ingest):
        event_id = ulid()
        spool.put_bytes(self.text(event_id), f"{event_id}.json")
        server = start_ingest(all_are("rejected"))
        spool.drain(server.url, "--max-attempts", "1")
        raw = (spool.dead_letter / f"{event_id}.json").read_bytes()
        assert all(field in raw for field in self.FIELDS)
        spool.ok("retry", event_id)
        spool.drain(server.url)
        assert all(field in server.requests[1].body for field in self.FIELDS)

    def test_bookkeeping_is_never_sent(self, spool, ingest):
        spool.put(_attempts=3, _firstAttemptAt=iso(1), _lastError="once", other="_attempts")
        event_id = ulid()
        spool.put_bytes(b'{"_attempts": 1, "id": "%s", "_\\u0061ttempts": 2,\n"_lastError" :null}'
                        % event_id.encode())
        assert counts(spool.drain(ingest.url)) == {"accepted": 2}
        for event in ingest.requests[0].events:
            assert not BOOKKEEPING & set(event), event

    def test_only_an_id_is_needed(self, spool, ingest):
        event = b'{"id":"%s"}' % ulid().encode()
        spool.put_bytes(event)
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}
        assert event in ingest.requests[0].body

    def test_line_breaks_and_spaces_do_no_harm(self, spool, ingest):
        event_id = ulid()
        spool.put_bytes(b'\n\t {\r\n "id":\n"%s" ,"data" : [ 1 ,\n2 ] }\n\n' % event_id.encode())
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}
        assert ingest.requests[0].events == [{"id": event_id, "data": [1, 2]}]

    def test_deep_ones(self, spool, ingest):
        event = b'{"id": "%s", "data": %s}' % (ulid().encode(), b"[" * 60 + b"]" * 60)
        spool.put_bytes(event)
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}
        assert event in ingest.requests[0].body

    def test_what_a_rejected_event_has_on_record(self, spool, start_ingest):
        event_id = spool.put()
        spool.drain(start_ingest(rejecting(event_id, error="no")).url)
        event = spool.event(event_id)
        assert set(event) == {"id", "type", "timestamp", "data"} | BOOKKEEPING
        assert (event["_attempts"], event["_lastError"]) == (1, "no")
