"""`reprise spool add`: events that are there whole, in their order, once their ids are printed."""

import json
import os
import time

import pytest

from spooling import FAILED, USAGE, iso, ulid_seconds
from times import seconds_since_1970
from waiting import eventually

MIB = 1 << 20
ODD = '{"big": 12345678901234567890123, "n": 1.50, "e": 1E+30, "z": -0, "s": "\\u00e9\\/"}'


class TestOneEvent:
    def test_it_prints_the_id_of_what_it_stored(self, spool):
        result = spool.ok("add", "order.created", "--data", '{"id": 7}')
        event_id = result.out.removesuffix("\n")
        assert spool.names() == [f"{event_id}.json"] and result.err == ""
        event = spool.event(event_id)
        assert event == {"id": event_id, "type": "order.created", "timestamp": event["timestamp"],
                         "data": {"id": 7}}

    def test_id_and_timestamp_are_of_now(self, spool):
        before = time.time()
        [event_id] = spool.add()
        stamp = seconds_since_1970(spool.event(event_id)["timestamp"])
        for told in (ulid_seconds(event_id), stamp):
            assert before - 0.01 <= told <= time.time() + 0.01

    def test_without_data_it_is_null(self, spool):
        [event_id] = spool.add()
        assert spool.event(event_id)["data"] is None

    @pytest.mark.parametrize("text", ["null", "0", "-1.5e3", '"text"', "[]", "[1, {}]", "{}",
                                      ' {"a": 1} ', "true", "[" * 60 + "]" * 60])
    def test_data_is_any_json_value(self, spool, text):
        [event_id] = spool.add("t", "--data", text)
        assert spool.event(event_id)["data"] == json.loads(text)

    def test_numbers_and_escapes_stay_as_they_were_written(self, spool):
        [event_id] = spool.add("t", "--data", ODD)
        assert ODD.encode() in (spool.queue / f"{event_id}.json").read_bytes()

    def test_data_that_begins_with_a_dash(self, spool):
        [event_id] = spool.add("t", "--data=-5")
        assert spool.event(event_id)["data"] == -5

    @pytest.mark.parametrize("text", ['{"a":\n1}\n', "5", '"\u00fc\u20ac\U0001f600"'])
    def test_all_of_stdin_is_one_value(self, spool, text):
        [event_id] = spool.add("t", "--data-stdin", stdin=text)
        assert spool.event(event_id)["data"] == json.loads(text)

    def test_stdin_is_not_touched_unless_asked(self, spool):
        process = spool.start("add", "t")
        assert process.wait(10) == 0  # though nobody has closed its stdin
        process.communicate()

    def test_json(self, spool):
        told = spool.ok("add", "t", "--json").json()
        assert told == {"ids": spool.ids(), "rejected": 0, "dropped": 0}

    def test_no_server_is_asked(self, spool):
        spool.ok("add", "t", env={"REPRISE_URL": "http://127.0.0.1:1"})
        assert len(spool.ids()) == 1

    def test_ids_of_separate_commands_are_in_order(self, spool):
        ids = [event_id for _ in range(5) for event_id in spool.add()]
        assert ids == sorted(ids) == spool.ids()


class TestType:
    @pytest.mark.parametrize("type", ["x", "x" * 200, "ü" * 100, "order created",
                                      "a\u00a0b", '"\\'], ids=lambda type: repr(type[:3]))
    def test_up_to_200_bytes_of_text(self, spool, type):
        [event_id] = spool.add(type)
        assert spool.event(event_id)["type"] == type

    @pytest.mark.parametrize("type", ["", "x" * 201, "ü" * 101, "a\nb", "a\tb", "\x1b[m", "\x7f"],
                             ids=lambda type: repr(type[:3]))
    def test_anything_else_is_wrong_usage(self, spool, type):
        result = spool.cli.run("spool", "add", type, "--spool", spool.directory)
        assert result.code == USAGE and result.out == "" and not spool.names()

    def test_so_are_bytes_that_are_no_text(self, spool):
        code = spool.run("add", os.fsdecode(b"\xff\xfe")).code
        assert code == USAGE and not spool.names()

    def test_it_is_required(self, spool):
        assert spool.run("add").code == USAGE
        assert spool.run("add", "a", "b").code == USAGE


class TestWrongUsage:
    @pytest.mark.parametrize("text", ["", "{", "nonsense", "1 2", "[1,]", "'a'", "NaN", "{1:2}"])
    def test_data_that_is_no_json(self, spool, text):
        result = spool.run("add", "t", "--data", text)
        assert result.code == USAGE and "JSON" in result.err and not spool.names()

    @pytest.mark.parametrize("data", [b"", b"{", b'"\xff"', b"1 2"])
    def test_stdin_that_is_no_json(self, spool, data):
        result = spool.run("add", "t", "--data-stdin", stdin=data)
        assert result.code == USAGE and "JSON" in result.err and not spool.names()

    @pytest.mark.parametrize("flags", [["--data", "1", "--data-stdin"],
                                       ["--data", "1", "--ndjson-stdin"],
                                       ["--data-stdin", "--ndjson-stdin"]])
    def test_one_source_of_data(self, spool, flags):
        assert spool.run("add", "t", *flags, stdin="1\n").code == USAGE
        assert not spool.names()

    def test_unknown_flags(self, spool):
        result = spool.run("add", "t", "--dta", "1")
        assert result.code == USAGE and "did you mean" in result.err and "--data" in result.err


class TestSize:
    def test_an_event_may_have_1_mib(self, spool):
        [event_id] = spool.add("t", "--data-stdin", stdin=json.dumps("x" * (MIB - 200)))
        assert len(spool.event(event_id)["data"]) == MIB - 200

    def test_a_larger_one_is_refused(self, spool):
        result = spool.run("add", "t", "--data-stdin", stdin=json.dumps("x" * MIB))
        assert result.code in (FAILED, USAGE) and result.out == "" and not spool.names()
        assert "large" in result.err or "at most" in result.err, result.err


class TestManyEvents:
    def test_one_of_each_line(self, spool):
        ids = spool.add("t", "--ndjson-stdin", stdin='1\n{"a": 2}\n"three"')
        assert ids == spool.ids() and [event["data"] for event in spool.events()] == [
            1, {"a": 2}, "three"]
        assert {event["type"] for event in spool.events()} == {"t"}

    def test_thousands_keep_the_order_of_their_lines(self, spool):
        lines = "".join(f"{number}\n" for number in range(2000))
        ids = spool.add("t", "--ndjson-stdin", stdin=lines)
        assert ids == sorted(set(ids)) == spool.ids()
        assert [event["data"] for event in spool.events()] == list(range(2000))
        assert spool.temporaries() == []

    def test_empty_lines_are_skipped(self, spool):
        spool.add("t", "--ndjson-stdin", stdin="\n1\n\n\n2\n\n")
        assert [event["data"] for event in spool.events()] == [1, 2]

    @pytest.mark.parametrize("stdin", ["", "\n\n"])
    def test_no_line_is_no_event(self, spool, stdin):
        assert spool.add("t", "--ndjson-stdin", stdin=stdin) == []
        told = spool.ok("add", "t", "--ndjson-stdin", "--json", stdin=stdin).json()
        assert told == {"ids": [], "rejected": 0, "dropped": 0}

    def test_a_line_that_is_no_json_is_told_and_left_out(self, spool):
        result = spool.run("add", "t", "--ndjson-stdin", stdin=b'1\n\n{broken\n2\n"\xff"\n3\n')
        assert result.code == FAILED
        assert "line 3" in result.err and "line 5" in result.err and "line 4" not in result.err
        assert result.out.split() == spool.ids()
        assert [event["data"] for event in spool.events()] == [1, 2, 3]

    def test_so_is_one_that_is_too_large(self, spool):
        lines = "\n".join(["1", json.dumps("x" * MIB), "2"])
        result = spool.run("add", "t", "--ndjson-stdin", stdin=lines)
        assert result.code == FAILED and "line 2" in result.err
        assert [event["data"] for event in spool.events()] == [1, 2]

    def test_rejected_lines_are_counted(self, spool):
        result = spool.run("add", "t", "--ndjson-stdin", "--json", stdin="x\n1\ny\n")
        assert result.code == FAILED
        assert result.json() == {"ids": spool.ids(), "rejected": 2, "dropped": 0}
        assert len(spool.ids()) == 1

    def test_numbers_and_escapes_stay_as_they_were_written(self, spool):
        [event_id] = spool.add("t", "--ndjson-stdin", stdin=ODD + "\n")
        assert ODD.encode() in (spool.queue / f"{event_id}.json").read_bytes()

    def test_ids_come_group_by_group(self, spool):
        with spool.start("add", "t", "--ndjson-stdin") as process:
            process.stdin.write(b"".join(b"%d\n" % number for number in range(5000)))
            process.stdin.flush()
            os.set_blocking(process.stdout.fileno(), False)
            printed = eventually(process.stdout.read, "ids while the stream goes on").split()
            assert set(map(bytes.decode, printed[:-1])) <= set(spool.ids())
            os.set_blocking(process.stdout.fileno(), True)
            process.stdin.close()
            process.stdout.read()
        assert process.returncode == 0 and len(spool.ids()) == 5000

    def test_several_at_once(self, spool):
        stream = "".join(f"{number}\n" for number in range(300))
        processes = [spool.start("add", f"t{number}", "--ndjson-stdin") for number in range(4)]
        for process in processes:
            process.stdin.write(stream.encode())
            process.stdin.close()
        printed = [event_id.decode() for process in processes
                   for event_id in process.stdout.read().split()]
        assert [process.wait(10) for process in processes] == [0] * 4
        for process in processes:
            process.stdout.close()
            process.stderr.close()
        assert sorted(printed) == spool.ids() and len(set(printed)) == 1200


class TestStatus:
    FIELDS = {"directory", "queued", "queuedBytes", "oldest", "oldestAt", "dead", "deadBytes",
              "temporaries", "ignored", "quota", "drainer"}

    def test_of_a_spool_that_is_not_there(self, spool):
        assert spool.status() == {
            "directory": str(spool.directory), "queued": 0, "queuedBytes": 0, "oldest": None,
            "oldestAt": None, "dead": 0, "deadBytes": 0, "temporaries": 0, "ignored": 0,
            "quota": None, "drainer": None}
        assert not spool.directory.exists()

    def test_counts_bytes_and_the_oldest(self, spool):
        first, *_ = spool.put_many(3)
        spool.bury()
        (spool.queue / ".x.json.tmp").write_bytes(b"{}")
        (spool.queue / "note.txt").write_bytes(b"hello")
        (spool.queue / "folder.json").mkdir()
        told = spool.status()
        assert set(told) == self.FIELDS
        assert (told["queued"], told["dead"], told["temporaries"], told["ignored"]) == (3, 1, 1, 2)
        assert told["queuedBytes"] == sum((spool.queue / name).stat().st_size
                                          for name in spool.names())
        assert told["deadBytes"] == sum(path.stat().st_size
                                        for path in spool.dead_letter.iterdir())
        assert told["oldest"] == first and told["oldestAt"] == iso(ulid_seconds(first))

    def test_piped_it_is_a_table_of_fields(self, spool):
        spool.put_many(2)
        fields = spool.ok("status").fields()
        assert fields["queued"] == "2" and fields["directory"] == str(spool.directory)
        assert fields["oldest"] == spool.ids()[0] and fields["drainer"] == "-"

    def test_on_a_terminal_it_says_where_and_how_many(self, spool):
        spool.put_many(2)
        with spool.terminal("status", env={"NO_COLOR": "1"}) as terminal:
            code, text = terminal.finish()
        assert code == 0 and str(spool.directory) in text and "queued" in text.lower()
        assert "\x1b[" not in text


class TestHelp:
    COMMANDS = ("add", "import", "drain", "inspect", "retry", "purge", "status")

    @pytest.mark.parametrize("command", COMMANDS)
    def test_each_command_shows_flags_and_examples(self, spool, command):
        result = spool.cli.ok("spool", command, "--help")
        assert "--spool" in result.out and "--json" in result.out
        assert f"reprise spool {command}" in result.out.partition("Examples:")[2]

    def test_the_group_lists_its_commands(self, spool):
        shown = spool.cli.ok("spool", "--help").out
        assert all(command in shown for command in self.COMMANDS)
        assert "spool" in spool.cli.ok("--help").out

    def test_push_knows_the_spool(self, spool):
        assert "--spool" in spool.cli.ok("queue", "push", "--help").out

    def test_a_command_that_is_close_is_suggested(self, spool):
        result = spool.cli.run("spool", "drian")
        assert result.code == USAGE and "did you mean 'drain'?" in result.err
        assert spool.cli.run("spool").code == USAGE
