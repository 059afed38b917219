"""Dead letters of a spool: looked at, brought back, deleted; chosen by ids, filters and people."""

import json
import os
import time

import pytest

from ingest_server import all_are
from spooling import BOOKKEEPING, FAILED, USAGE, counts, iso, ulid
from times import seconds_since_1970

HEADER = ["ID", "EVENT TYPE", "ATTEMPTS", "LAST ERROR", "DEAD-LETTERED AT"]
PLAIN = {"NO_COLOR": "1"}
HOUR = 3600


def bury_corrupt(spool, data=b"no event", at=None):
    """A dead letter of a file that was no event. Its id."""
    letter_id = ulid()
    spool.bury_bytes(f"{letter_id}.raw", data)
    spool.bury_bytes(f"{letter_id}.json", json.dumps({"event": None, "meta": {
        "attempts": 0, "lastError": "Corrupt event file: expected '{'", "firstAttemptAt": None,
        "deadLetteredAt": iso(at or time.time()), "queueFile": f"{letter_id}.json",
        "reason": "corrupt", "decidedBy": "policy", "history": [],
        "rawFile": f"{letter_id}.raw"}}).encode())
    return letter_id


def ids_of(result):
    header, *rows = result.rows()
    assert header == HEADER
    return [row[0] for row in rows]


@pytest.fixture
def graves(spool):
    """Four dead letters of different age, type, error and reason, the newest last."""
    now = time.time()
    return [spool.bury("order.created", "Timeout after 5 s", at=now - 48 * HOUR),
            spool.bury("order.refund", "no such customer", at=now - 3 * HOUR),
            spool.bury("mail.sent", "TIMEOUT", at=now - 60, reason="too_large",
                       data="x" * (1 << 20)),
            bury_corrupt(spool, at=now)]


class TestInspect:
    def test_the_newest_first(self, spool, graves):
        result = spool.ok("inspect")
        assert ids_of(result) == graves[::-1] and result.err == ""
        corrupt, large, refund, order = result.rows()[1:]
        assert order[1:4] == ["order.created", "10", "Timeout after 5 s"]
        assert seconds_since_1970(order[4]) < seconds_since_1970(refund[4])
        assert large[1:4] == ["mail.sent", "10", "TIMEOUT"]
        assert corrupt[1:3] == ["-", "0"] and corrupt[3].startswith("Corrupt event file: ")

    def test_the_order_is_that_of_death(self, spool):
        now = time.time()
        later, earlier = spool.bury(at=now), spool.bury(at=now - 100)
        assert ids_of(spool.ok("inspect")) == [later, earlier]

    def test_none(self, spool):
        assert spool.ok("inspect").rows() == [HEADER]
        spool.add()
        assert spool.ok("inspect").rows() == [HEADER]

    def test_one_whole(self, spool, graves):
        letter = spool.letters()[f"{graves[0]}.json"]
        assert spool.ok("inspect", graves[0], "--json").json() == letter
        fields = spool.ok("inspect", graves[0]).fields()
        assert fields["event.id"] == graves[0] and fields["event.type"] == "order.created"
        assert {name: fields[f"meta.{name}"] for name in ("reason", "attempts", "lastError")} == {
            "reason": "max_attempts", "attempts": "10", "lastError": "Timeout after 5 s"}
        assert spool.ok("inspect", graves[3]).fields()["meta.rawFile"] == f"{graves[3]}.raw"

    def test_by_a_prefix(self, spool, graves):
        lone = "7Q00" + "0" * 22
        spool.bury(id=lone)
        assert spool.ok("inspect", "7Q00", "--json").json()["event"]["id"] == lone
        assert spool.ok("inspect", lone[:20], "--json").json()["event"]["id"] == lone

    def test_a_prefix_that_fits_several(self, spool, graves):
        common = os.path.commonprefix(graves)
        assert len(common) >= 4
        result = spool.run("inspect", common)
        assert result.code == FAILED and result.out == "" and "(ambiguous_id)" in result.err
        assert all(letter_id in result.err for letter_id in graves)

    def test_a_prefix_that_is_too_short(self, spool):
        lone = spool.bury(id="7Q00" + "0" * 22)
        result = spool.run("inspect", lone[:3])
        assert result.code in (FAILED, USAGE) and result.out == ""

    def test_one_that_is_not_there(self, spool, graves):
        result = spool.run("inspect", ulid())
        assert result.code == FAILED and result.out == "" and result.err.startswith("reprise: ")

    def test_control_characters_do_not_reach_the_screen(self, spool):
        spool.bury("a\x1b[31m", "line\nbreak\ttab \x1b[31m")
        text = spool.ok("inspect").out
        assert "\x1b" not in text and len(text.splitlines()) == 2
        assert "line\\nbreak\\ttab \\u001b[31m" in text

    def test_on_a_terminal(self, spool, graves):
        with spool.terminal("inspect", env=PLAIN) as terminal:
            code, text = terminal.finish()
        assert code == 0 and "order.refund" in text and "no such customer" in text
        assert text.splitlines()[0].split()[0] == "ID"

    def test_json(self, spool, graves):
        text = spool.ok("inspect", "--json").out
        json.loads(text)
        places = [text.index(letter_id) for letter_id in graves]
        assert places == sorted(places, reverse=True)

    def test_what_a_drain_left(self, spool, start_ingest):
        event_id = spool.put("order.created")
        spool.put_bytes(b"{")
        spool.drain(start_ingest(all_are("rejected", "no")).url, "--max-attempts", "1")
        rows = {row[1]: row for row in spool.ok("inspect").rows()[1:]}
        assert rows["order.created"][0] == event_id and rows["order.created"][2:4] == ["1", "no"]
        assert rows["-"][2] == "0"


class TestOddFiles:
    def test_an_event_without_an_envelope_is_listed_and_retried(self, spool, ingest):
        event = {"id": ulid(), "type": "bare", "timestamp": iso(1), "data": 7, "_attempts": 4}
        spool.bury_bytes(f"{event['id']}.json", json.dumps(event).encode())
        [row] = spool.ok("inspect").rows()[1:]
        assert row[:2] == [event["id"], "bare"]
        assert event["id"] in spool.ok("inspect", event["id"]).out
        assert spool.ok("retry", event["id"], "--json").json()["retried"] == 1
        assert spool.dead_names() == [] and "_attempts" not in spool.event(event["id"])
        assert counts(spool.drain(ingest.url)) == {"accepted": 1}
        del event["_attempts"]
        assert ingest.requests[0].events == [event]

    def test_its_bytes_stay(self, spool, ingest):
        event = b'{"id": "%s", "n": 1.50, "big": 123456789012345678901234567890}' % ulid().encode()
        spool.bury_bytes("x.json", event)
        spool.ok("retry", "--all")
        spool.drain(ingest.url)
        assert event in ingest.requests[0].body

    BAD = {"empty": b"", "broken": b"{", "a number": b"42", "null": b"null", "zeros": bytes(100),
           "not utf-8": b'{"event": "\xff"}', "an envelope of nothing": b'{"event": 5, "meta": 7}',
           "an envelope without an event": b'{"meta": {"reason": "max_attempts"}}',
           "no id": b'{"event": {"type": "t"}, "meta": {"attempts": 1}}'}

    @pytest.mark.parametrize("what", BAD)
    def test_a_damaged_letter_stops_nobody(self, spool, what):
        good = spool.bury()
        bad = ulid()
        spool.bury_bytes(f"{bad}.json", self.BAD[what])
        assert set(ids_of(spool.ok("inspect"))) >= {good}
        told = spool.run("retry", "--all", "--json").json()
        assert told["retried"] == 1 and spool.ids() == [good]
        assert (spool.dead_letter / f"{bad}.json").read_bytes() == self.BAD[what]
        assert spool.ok("purge", bad, "--json").json()["purged"] == 1
        assert spool.dead_names() == []

    def test_links_and_other_things_are_left_alone(self, spool, tmp_path):
        good = spool.bury()
        (tmp_path / "secret").write_text(json.dumps({"id": ulid(), "type": "secret"}))
        (spool.dead_letter / f"{ulid()}.json").symlink_to(tmp_path / "secret")
        os.mkfifo(spool.dead_letter / "pipe.json")
        (spool.dead_letter / "folder.json").mkdir()
        assert ids_of(spool.ok("inspect")) == [good]
        spool.run("retry", "--all")
        assert spool.ids() == [good] and (tmp_path / "secret").exists()


class TestRetry:
    def test_it_goes_back_with_its_attempts_reset(self, spool, start_ingest):
        event_id = spool.put("order.created", {"id": 7})
        event = spool.event(event_id)
        server = start_ingest(otherwise=all_are("rejected"))
        spool.drain(server.url, "--max-attempts", "1")
        told = spool.ok("retry", event_id, "--json").json()
        assert told == {"retried": 1, "skipped": [], "notFound": []}
        assert spool.dead_names() == [] and spool.names() == [f"{event_id}.json"]
        assert spool.event(event_id) == event and not BOOKKEEPING & set(event)
        assert counts(spool.drain(server.url, "--max-attempts", "2")) == {"retried": 1,
                                                                          "remaining": 1}

    def test_several_by_id_and_prefix(self, spool):
        lone = spool.bury(id="7Q00" + "0" * 22)
        ids = [spool.bury() for _ in range(3)]
        told = spool.ok("retry", ids[0], "7Q00", ids[2], "--json").json()
        assert told == {"retried": 3, "skipped": [], "notFound": []}
        assert set(spool.ids()) == {lone, ids[0], ids[2]} and spool.dead_ids() == [ids[1]]

    def test_all_but_what_cannot_be_sent(self, spool, graves):
        result = spool.run("retry", "--all", "--json")
        told = result.json()
        assert result.code == FAILED and told["retried"] == 2 and told["notFound"] == []
        assert {entry["id"] for entry in told["skipped"]} == set(graves[2:])
        assert all(set(entry) == {"id", "reason"} and entry["reason"]
                   for entry in told["skipped"])
        assert spool.ids() == graves[:2] and spool.dead_ids() == graves[2:]
        assert (spool.dead_letter / f"{graves[3]}.raw").exists()

    def test_a_corrupt_one_is_skipped_with_the_reason(self, spool, graves):
        before = spool.snapshot()
        result = spool.run("retry", graves[3])
        assert result.code == FAILED and spool.snapshot() == before
        assert "corrupt" in (result.out + result.err).lower()

    def test_an_id_that_is_not_there_is_told(self, spool, graves):
        absent = ulid()
        result = spool.run("retry", graves[0], absent, "--json")
        assert result.code == FAILED
        assert result.json() == {"retried": 1, "skipped": [], "notFound": [absent]}
        plain = spool.run("retry", absent)
        assert plain.code == FAILED and absent in plain.err

    def test_an_ambiguous_prefix_changes_nothing(self, spool, graves):
        before = spool.snapshot()
        for command in ("retry", "purge"):
            result = spool.run(command, os.path.commonprefix(graves))
            assert result.code == FAILED and "ambiguous_id" in result.err
        assert spool.snapshot() == before

    def test_one_that_is_in_the_queue_already_overwrites_nothing(self, spool, ingest):
        event_id = spool.put(data="queue")
        spool.bury(id=event_id)
        spool.run("retry", event_id)
        assert spool.event(event_id)["data"] == "queue"
        spool.drain(ingest.url)
        assert set(ingest.ids()) == {event_id} and spool.names() == []

    def test_hundreds(self, spool):
        ids = [spool.bury() for _ in range(300)]
        assert spool.ok("retry", "--all", "--json").json()["retried"] == 300
        assert spool.ids() == ids and spool.dead_names() == []

    def test_for_people(self, spool, graves):
        assert spool.ok("retry", graves[0]).out == "retried 1, skipped 0, not found 0\n"
        assert spool.ok("purge", graves[1]).out == "purged 1, skipped 0, not found 0\n"


class TestPurge:
    def test_it_is_gone_for_good(self, spool, graves):
        told = spool.ok("purge", graves[1], graves[3], "--json").json()
        assert told == {"purged": 2, "skipped": [], "notFound": []}
        assert spool.dead_ids() == [graves[0], graves[2]] and spool.names() == []
        assert not list(spool.dead_letter.glob("*.raw"))

    def test_all(self, spool, graves):
        queued = spool.put()
        assert spool.ok("purge", "--all", "--json").json()["purged"] == 4
        assert list(spool.dead_letter.iterdir()) == [] and spool.ids() == [queued]

    def test_what_a_drain_found_corrupt(self, spool, ingest):
        spool.put_bytes(b"{")
        spool.drain(ingest.url)
        spool.ok("purge", "--reason", "corrupt")
        assert list(spool.dead_letter.iterdir()) == []

    def test_an_id_that_is_not_there_is_told(self, spool, graves):
        absent = ulid()
        result = spool.run("purge", absent, graves[0], "--json")
        assert result.code == FAILED
        assert result.json() == {"purged": 1, "skipped": [], "notFound": [absent]}

    def test_only_dead_letters(self, spool):
        queued = spool.put()
        assert spool.run("purge", queued).code == FAILED and spool.ids() == [queued]

    @pytest.mark.parametrize("name", ["../queue/x", "..", "/etc/passwd", "../../x.json", "*"])
    def test_an_id_is_no_path(self, spool, name):
        spool.bury()
        spool.put(name="x.json")
        before = spool.snapshot()
        for command in ("purge", "retry", "inspect"):
            assert spool.run(command, name).code in (FAILED, USAGE)
        assert spool.snapshot() == before

    def test_a_raw_file_elsewhere_is_not_touched(self, spool, tmp_path):
        (tmp_path / "treasure").write_text("gold")
        letter_id = bury_corrupt(spool)
        path = spool.dead_letter / f"{letter_id}.json"
        letter = json.loads(path.read_text())
        letter["meta"]["rawFile"] = "../../treasure"
        path.write_text(json.dumps(letter))
        spool.run("purge", letter_id)
        spool.run("inspect", letter_id)
        assert (tmp_path / "treasure").read_text() == "gold"


class TestFilters:
    FILTERS = [
        (["--type", "order.*"], [0, 1]), (["--type", "*.refund"], [1]),
        (["--type", "order"], []), (["--type", "order.created"], [0]),
        (["--type", "*e*t*"], [0, 2]),
        (["--type", "ORDER.*"], []),
        (["--error", "timeout"], [0, 2]), (["--error", "CUSTOMER"], [1]), (["--error", "5 s"], [0]),
        (["--error", "*"], []), (["--error", "corrupt event"], [3]),
        (["--reason", "too_large"], [2]), (["--reason", "corrupt"], [3]),
        (["--reason", "max_attempts"], [0, 1]),
        (["--older-than", "1h"], [0, 1]), (["--older-than", "1d"], [0]),
        (["--older-than", "3d"], []),
        (["--newer-than", "1h"], [2, 3]), (["--newer-than", "30s"], [3]),
        (["--newer-than", "3d"], [0, 1, 2, 3]),
        (["--older-than", "1h", "--newer-than", "1d"], [1]),
        (["--type", "order.*", "--error", "timeout"], [0]),
        (["--error", "timeout", "--older-than", "1h", "--reason", "too_large"], []),
    ]

    @pytest.mark.parametrize("flags, chosen", FILTERS, ids=lambda value: " ".join(map(str, value)))
    def test_all_must_hold(self, spool, graves, flags, chosen):
        told = spool.ok("purge", *flags, "--dry-run", "--json").json()
        assert told == {"purged": len(chosen), "skipped": [], "notFound": [], "dryRun": True}
        assert spool.dead_ids() == graves
        assert spool.ok("purge", *flags, "--json").json()["purged"] == len(chosen)
        assert spool.dead_ids() == [letter_id for place, letter_id in enumerate(graves)
                                    if place not in chosen]

    def test_retry_takes_the_same(self, spool, graves):
        assert spool.ok("retry", "--type", "order.*", "--older-than", "1d", "--json"
                        ).json()["retried"] == 1
        assert spool.ids() == graves[:1]

    def test_a_dry_run_of_a_retry(self, spool, graves):
        before = spool.snapshot()
        told = spool.run("retry", "--all", "--dry-run", "--json").json()
        assert told["retried"] == 2 and told["dryRun"] is True and len(told["skipped"]) == 2
        assert told["notFound"] == [] and spool.snapshot() == before

    def test_a_dry_run_of_ids(self, spool, graves):
        before = spool.snapshot()
        told = spool.ok("purge", graves[0], "--dry-run", "--json").json()
        assert (told["purged"], told["dryRun"]) == (1, True) and spool.snapshot() == before

    @pytest.mark.parametrize("command", ["retry", "purge"])
    @pytest.mark.parametrize("flags", [
        ["ID", "--all"], ["ID", "--type", "x"], ["ID", "--error", "x"],
        ["ID", "--older-than", "1h"],
        ["--older-than", "soon"], ["--newer-than", "-1s"], ["--typ", "x"]])
    def test_wrong_usage_changes_nothing(self, spool, graves, command, flags):
        before = spool.snapshot()
        words = [graves[0] if flag == "ID" else flag for flag in flags]
        assert spool.run(command, *words).code == USAGE
        assert spool.snapshot() == before

    @pytest.mark.parametrize("command", ["retry", "purge"])
    def test_nothing_selected_is_wrong_usage_where_nobody_can_choose(self, spool, graves, command):
        before = spool.snapshot()
        for flags in ([], ["--dry-run"], ["--json"]):
            result = spool.run(command, *flags, stdin="all\n1\ny\n")
            assert result.code == USAGE and "--all" in result.err
        assert spool.snapshot() == before


class TestChoosing:
    """Without ids and filters, on a terminal."""

    @pytest.fixture
    def three(self, spool):
        now = time.time()
        return [spool.bury("t", error, at=now - ago)
                for ago, error in ((3, "oldest"), (2, "middle"), (1, "newest"))]

    def choose(self, spool, command, *answers):
        with spool.terminal(command, env=PLAIN) as terminal:
            terminal.expect(f"Which to {command}?")
            for answer in answers:
                terminal.type(answer)
            return terminal.finish()

    def test_numbers_of_the_list(self, spool, three):
        code, text = self.choose(spool, "retry", "1 3\n")
        assert code == 0 and spool.dead_ids() == [three[1]]
        assert text.index("newest") < text.index("middle") < text.index("oldest")
        assert set(spool.ids()) == {three[0], three[2]}

    def test_a_range(self, spool, three):
        code, _ = self.choose(spool, "purge", "2-3\n")
        assert code == 0 and spool.dead_ids() == [three[2]]

    def test_all(self, spool, three):
        code, _ = self.choose(spool, "retry", "all\n")
        assert code == 0 and spool.dead_ids() == [] and spool.ids() == three

    @pytest.mark.parametrize("answer", ["\n", "\x04"])
    def test_nothing_leaves(self, spool, three, answer):
        code, _ = self.choose(spool, "purge", answer)
        assert code == FAILED and spool.dead_ids() == three

    def test_nonsense_is_asked_again(self, spool, three):
        with spool.terminal("retry", env=PLAIN) as terminal:
            terminal.expect("Which to retry?").type("9\n").expect("'9' is none of 1 to 3")
            terminal.type("1\n")
            code, _ = terminal.finish()
        assert code == 0 and spool.ids() == [three[2]]

    def test_no_dead_letter_is_no_question(self, spool):
        spool.add()
        with spool.terminal("retry", env=PLAIN) as terminal:
            code, text = terminal.finish()
        assert code == 0 and "no dead letters" in text.lower()


class TestTogether:
    def test_a_retry_is_never_half_done(self, spool):
        """Several at once: each letter goes back once, whoever wins."""
        ids = [spool.bury() for _ in range(200)]
        processes = [spool.start("retry", "--all", "--json") for _ in range(3)]
        for process in processes:
            process.communicate(timeout=20)
        assert spool.ids() == ids and spool.dead_names() == [] and spool.temporaries() == []
