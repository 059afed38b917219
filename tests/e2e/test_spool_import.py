"""`reprise spool import`: a directory of raw event files becomes events of the queue."""

import json
import os

import pytest

from spooling import BOOKKEEPING, FAILED, USAGE, counts, iso, ulid, write_whole
from times import seconds_since_1970


class RawFiles:
    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def put(self, name, content, mtime=None):
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        write_whole(self.folder / name, data)
        if mtime:
            os.utime(self.folder / name, (mtime, mtime))

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def raw(tmp_path):
    return RawFiles(tmp_path / "raw")


def run(spool, raw, *flags, code=0):
    """What `--json` tells."""
    result = spool.run("import", raw.folder, "--json", *flags)
    assert result.code == code, repr(result)
    told = result.json()
    assert set(told) == {"imported", "alreadyQueued", "skipped", "dropped"}
    return told


class TestWhatIsMadeOfAFile:
    def test_an_event_is_taken_as_it_is(self, spool, raw):
        event = {"id": ulid(), "type": "t", "timestamp": iso(1_700_000_000.25), "data": {"n": 1},
                 "tenant": "acme"}
        raw.put("any name.json", event)
        told = run(spool, raw)
        assert told == {"imported": 1, "alreadyQueued": 0, "skipped": [], "dropped": 0}
        assert spool.names() == [f"{event['id']}.json"] and spool.events() == [event]

    def test_bytes_of_other_fields_stay(self, spool, raw):
        fields = b'"n": 1.50, "big":123456789012345678901234567890, "x" : "\\u00e9"'
        raw.put("a.json", b'{"type": "t", %s}' % fields)
        run(spool, raw)
        assert fields in (spool.queue / spool.names()[0]).read_bytes()

    def test_without_id_it_gets_a_new_one(self, spool, raw):
        raw.put("a.json", {"type": "t", "data": 1})
        raw.put("b.json", {"type": "t", "data": 2})
        run(spool, raw)
        assert len(set(spool.ids())) == 2
        assert [(event["id"], event["data"]) for event in spool.events()] == list(
            zip(spool.ids(), (1, 2)))

    def test_without_timestamp_it_gets_that_of_the_last_change(self, spool, raw):
        raw.put("a.json", {"type": "t"}, mtime=1_700_000_000.5)
        run(spool, raw)
        [event] = spool.events()
        assert seconds_since_1970(event["timestamp"]) == 1_700_000_000.5

    def test_bookkeeping_is_dropped(self, spool, raw):
        raw.put("a.json", {"id": ulid(), "type": "t", "_attempts": 9, "_firstAttemptAt": iso(1),
                           "_lastError": "x", "data": {"_attempts": 1}})
        run(spool, raw)
        [event] = spool.events()
        assert not BOOKKEEPING & set(event) and event["data"] == {"_attempts": 1}

    def test_in_the_order_of_their_names(self, spool, raw):
        for name in ("b.json", "c.json", "a.json", "10.json", "9.json"):
            raw.put(name, {"type": "t", "data": name})
        run(spool, raw)
        assert [event["data"] for event in spool.events()] == ["10.json", "9.json", "a.json",
                                                               "b.json", "c.json"]

    def test_it_can_be_drained(self, spool, raw, ingest):
        raw.put("a.json", {"type": "t"})
        run(spool, raw)
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}

    def test_many(self, spool, raw):
        for number in range(500):
            raw.put(f"{number:03}.json", {"type": "t", "data": number})
        assert run(spool, raw, "--remove")["imported"] == 500
        assert [event["data"] for event in spool.events()] == list(range(500))
        assert raw.names() == [] and spool.temporaries() == []


class TestWhatIsLeftOut:
    BAD = {
        "empty": b"", "broken": b"{", "a number": b"42", "an array": b"[]", "null": b"null",
        "no type": b'{"data": 1}', "a type of another kind": b'{"type": 5}',
        "an empty type": b'{"type": ""}', "a long type": b'{"type": "%s"}' % (b"x" * 201),
        "a type with a line break": b'{"type": "a\\nb"}', "not utf-8": b'{"type": "\xff"}',
        "an id that is none": b'{"type": "t", "id": "abc"}', "an id of another kind":
        b'{"type": "t", "id": 5}', "too large": b'{"type": "t", "data": "%s"}' % (b"x" * (1 << 20)),
    }

    @pytest.mark.parametrize("what", BAD)
    def test_it_is_told_with_its_reason_and_the_others_go_on(self, spool, raw, what):
        raw.put("a.json", {"type": "t", "data": "a"})
        raw.put("b.json", self.BAD[what])
        raw.put("c.json", {"type": "t", "data": "c"})
        told = run(spool, raw, "--remove", code=FAILED)
        [skipped] = told["skipped"]
        assert set(skipped) == {"file", "reason"} and skipped["reason"]
        assert os.path.basename(skipped["file"]) == "b.json"
        assert told["imported"] == 2 and [event["data"] for event in spool.events()] == ["a", "c"]
        assert raw.names() == ["b.json"]

    def test_for_people_it_is_on_stderr(self, spool, raw):
        raw.put("a.json", {"type": "t"})
        raw.put("bad.json", b"{")
        result = spool.run("import", raw.folder)
        assert result.code == FAILED and "bad.json" in result.err and "JSON" in result.err

    def test_only_json_files_are_looked_at(self, spool, raw):
        for name in ("a.txt", "b.json.bak", "json", ".hidden.json.tmp"):
            raw.put(name, {"type": "t"})
        before = raw.names()
        assert run(spool, raw, "--remove") == {"imported": 0, "alreadyQueued": 0, "skipped": [],
                                               "dropped": 0}
        assert raw.names() == before and not spool.names()

    def test_what_is_no_regular_file_is_not_read(self, spool, raw, tmp_path):
        os.mkfifo(raw.folder / "pipe.json")
        (raw.folder / "folder.json").mkdir()
        raw.put("z.json", {"type": "t"})
        assert spool.run("import", raw.folder, "--json").json()["imported"] == 1
        assert len(spool.names()) == 1 and "pipe.json" in raw.names()


class TestAgain:
    def test_an_id_in_the_queue_is_skipped(self, spool, raw):
        event_id = spool.put(data="first")
        raw.put("a.json", {"id": event_id, "type": "t", "data": "second"})
        told = run(spool, raw)
        assert (told["imported"], told["alreadyQueued"], told["skipped"]) == (0, 1, [])
        assert spool.event(event_id)["data"] == "first" and raw.names() == ["a.json"]

    def test_remove_deletes_it_then_too(self, spool, raw):
        raw.put("a.json", {"id": spool.put(), "type": "t"})
        run(spool, raw, "--remove")
        assert raw.names() == []

    def test_one_id_in_two_files(self, spool, raw):
        event_id = ulid()
        raw.put("a.json", {"id": event_id, "type": "t", "data": "a"})
        raw.put("b.json", {"id": event_id, "type": "t", "data": "b"})
        told = run(spool, raw)
        assert (told["imported"], told["alreadyQueued"]) == (1, 1)
        assert spool.event(event_id)["data"] == "a"

    def test_twice_with_ids_is_once(self, spool, raw):
        for number in range(3):
            raw.put(f"{number}.json", {"id": ulid(), "type": "t"})
        assert run(spool, raw)["imported"] == 3
        assert run(spool, raw)["alreadyQueued"] == 3
        assert len(spool.names()) == 3

    def test_without_remove_nothing_is_deleted(self, spool, raw):
        raw.put("a.json", {"type": "t"})
        run(spool, raw)
        assert raw.names() == ["a.json"]


class TestWrongUsage:
    def test_a_directory_that_is_none(self, spool, raw, tmp_path):
        raw.put("a.json", {"type": "t"})
        for path in (tmp_path / "absent", raw.folder / "a.json"):
            result = spool.run("import", path)
            assert result.code == USAGE and str(path) in result.err and not spool.names()

    def test_one_directory_is_required(self, spool, raw):
        assert spool.run("import").code == USAGE
        assert spool.run("import", raw.folder, raw.folder).code == USAGE
