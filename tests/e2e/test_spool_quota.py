"""The quota of a spool: kept in the directory, held by everybody who adds, and never in the way of
what was taken once."""

import json

import pytest

from ingest_server import all_are, results
from spooling import FAILED, USAGE, counts, write_whole

NO_SERVER = "http://127.0.0.1:1"


def numbers(spool):
    return [event["data"] for event in spool.events()]


def lines(*values):
    return "".join(f"{json.dumps(value)}\n" for value in values)


def assert_full(result):
    assert result.code == FAILED and "(spool_full)" in result.err, repr(result)


class TestMaxEvents:
    def test_a_full_spool_refuses(self, spool):
        spool.add("t", "--max-events", "2", "--ndjson-stdin", stdin="1\n2\n")
        before = spool.snapshot()
        result = spool.run("add", "t", "--data", "3")
        assert_full(result)
        assert result.out == "" and spool.snapshot() == before

    def test_the_error_as_json(self, spool):
        spool.add("t", "--max-events", "1")
        result = spool.run("add", "t", "--json")
        assert result.code == FAILED
        assert json.loads(result.err.splitlines()[-1])["error"]["code"] == "spool_full"

    def test_of_many_what_fits_is_stored(self, spool):
        result = spool.run("add", "t", "--max-events", "3", "--ndjson-stdin",
                           stdin=lines(*range(5)))
        assert_full(result)
        assert result.out.split() == spool.ids() and numbers(spool) == [0, 1, 2]

    def test_it_is_kept_in_the_directory(self, spool):
        spool.add("t", "--max-events", "2")
        assert (spool.directory / "quota.json").is_file()
        assert spool.status()["quota"] == {"maxEvents": 2, "maxBytes": None, "whenFull": "refuse",
                                           "dropped": 0}
        spool.add("t")
        assert_full(spool.run("add", "t"))

    def test_without_one_there_is_no_file(self, spool):
        spool.add("t")
        assert not (spool.directory / "quota.json").exists()
        assert spool.status()["quota"] is None

    def test_none_lifts_it(self, spool):
        spool.add("t", "--max-events", "1")
        spool.add("t", "--max-events", "none")
        spool.add("t")
        assert len(spool.ids()) == 3
        assert (spool.status()["quota"] or {"maxEvents": None})["maxEvents"] is None

    def test_a_new_one_replaces_it(self, spool):
        spool.add("t", "--max-events", "1")
        spool.add("t", "--max-events", "3")
        assert spool.status()["quota"]["maxEvents"] == 3
        spool.add("t")
        assert_full(spool.run("add", "t"))

    def test_room_that_a_drain_makes_can_be_used(self, spool, ingest):
        spool.add("t", "--max-events", "2", "--ndjson-stdin", stdin="1\n2\n")
        assert counts(spool.drain(ingest.url)) == {"accepted": 2}
        spool.add("t", "--data", "3")
        assert numbers(spool) == [3]

    def test_dead_letters_do_not_count(self, spool):
        for _ in range(3):
            spool.bury()
        spool.add("t", "--max-events", "1")
        assert len(spool.ids()) == 1

    def test_files_of_others_count(self, spool):
        spool.put_many(2)
        assert_full(spool.run("add", "t", "--max-events", "2"))
        assert len(spool.ids()) == 2


class TestMaxBytes:
    def test_a_full_spool_refuses(self, spool):
        spool.add("t", "--max-bytes", "4KiB", "--data", json.dumps("x" * 3000))
        assert_full(spool.run("add", "t", "--data", json.dumps("y" * 3000)))
        assert len(spool.ids()) == 1
        spool.add("t", "--data", json.dumps("z" * 300))
        assert spool.status()["queuedBytes"] <= 4096

    @pytest.mark.parametrize("when", ["refuse", "drop-oldest"])
    def test_an_event_beyond_it_is_refused_in_any_case(self, spool, when):
        spool.add("t", "--max-bytes", "2KiB", "--when-full", when, "--data", "1")
        before = spool.ids()
        assert_full(spool.run("add", "t", "--data", json.dumps("x" * 3000)))
        assert spool.ids() == before
        assert spool.status()["quota"]["dropped"] == 0

    def test_both_hold(self, spool):
        spool.add("t", "--max-bytes", "10KiB", "--max-events", "2")
        assert spool.status()["quota"] == {"maxEvents": 2, "maxBytes": 10240,
                                           "whenFull": "refuse", "dropped": 0}
        assert_full(spool.run("add", "t", "--data", json.dumps("x" * 11000)))
        spool.add("t")
        assert_full(spool.run("add", "t"))


class TestDropOldest:
    FLAGS = ("--max-events", "3", "--when-full", "drop-oldest")

    def test_the_oldest_go(self, spool):
        spool.add("t", *self.FLAGS, "--ndjson-stdin", stdin=lines(1, 2, 3))
        told = spool.ok("add", "t", "--data", "4", "--json").json()
        assert told["dropped"] == 1 and told["rejected"] == 0 and len(told["ids"]) == 1
        assert numbers(spool) == [2, 3, 4]

    def test_they_are_counted_for_ever(self, spool):
        spool.add("t", *self.FLAGS, "--ndjson-stdin", stdin=lines(*range(5)))
        assert numbers(spool) == [2, 3, 4]
        assert spool.status()["quota"] == {"maxEvents": 3, "maxBytes": None,
                                           "whenFull": "drop-oldest", "dropped": 2}
        spool.add("t", "--data", "5")
        assert spool.status()["quota"]["dropped"] == 3

    def test_more_lines_than_there_is_room(self, spool):
        told = spool.ok("add", "t", *self.FLAGS, "--ndjson-stdin", "--json",
                        stdin=lines(*range(10))).json()
        assert numbers(spool) == [7, 8, 9] and told["dropped"] == 7

    def test_as_many_as_bytes_need(self, spool):
        small = [json.dumps("x" * 700)] * 5
        spool.add("t", "--max-bytes", "5KiB", "--when-full", "drop-oldest", "--ndjson-stdin",
                  stdin="\n".join(small))
        told = spool.ok("add", "t", "--json", "--data", json.dumps("y" * 2500)).json()
        assert told["dropped"] >= 2 and told["ids"] == spool.ids()[-1:]
        assert spool.status()["queuedBytes"] <= 5120
        assert spool.status()["quota"]["dropped"] == told["dropped"]

    def test_refuse_can_be_set_again(self, spool):
        spool.add("t", "--max-events", "1", "--when-full", "drop-oldest")
        spool.add("t", "--max-events", "2", "--when-full", "refuse")
        assert_full(spool.run("add", "t"))
        assert spool.status()["quota"]["whenFull"] == "refuse"

    def test_what_a_drain_has_in_hand_may_go_too(self, spool, start_ingest):
        spool.add("t", *self.FLAGS, "--ndjson-stdin", stdin=lines(1, 2, 3))

        def add_more(request):
            spool.add("t", "--ndjson-stdin", stdin=lines(4, 5))
            return results("accepted", ("rejected", "no"), ("rejected", "no"))
        result = spool.run("drain", "--to", start_ingest(add_more).url, "--json")
        assert result.code == 0, repr(result)
        assert numbers(spool) == [3, 4, 5] and spool.status()["quota"]["dropped"] == 2
        assert [event.get("_attempts") for event in spool.events()] == [1, None, None]

    def test_dead_letters_are_safe(self, spool):
        dead = spool.bury()
        spool.add("t", *self.FLAGS, "--ndjson-stdin", stdin=lines(*range(10)))
        assert spool.dead_ids() == [dead]


class TestWhoItHoldsFor:
    def test_import(self, spool, tmp_path):
        for name in "abc":
            write_whole(tmp_path / "raw" / f"{name}.json",
                        json.dumps({"type": "t", "data": name}).encode())
        result = spool.run("import", tmp_path / "raw", "--max-events", "2", "--remove")
        assert_full(result)
        assert numbers(spool) == ["a", "b"]
        assert [path.name for path in (tmp_path / "raw").iterdir()] == ["c.json"]

    def test_import_that_drops(self, spool, tmp_path):
        for name in "abc":
            write_whole(tmp_path / "raw" / f"{name}.json",
                        json.dumps({"type": "t", "data": name}).encode())
        told = spool.ok("import", tmp_path / "raw", "--max-events", "2", "--when-full",
                        "drop-oldest", "--json").json()
        assert told == {"imported": 3, "alreadyQueued": 0, "skipped": [], "dropped": 1}
        assert numbers(spool) == ["b", "c"]

    def test_push(self, spool):
        spool.add("t", "--max-events", "1")
        result = spool.cli.run("queue", "push", "jobs", "1", "--spool", "--server", NO_SERVER,
                               env={"REPRISE_SPOOL": str(spool.directory)})
        assert result.code != 0 and "spool_full" in result.err and result.out == ""
        assert len(spool.ids()) == 1

    def test_retried_events_are_never_refused(self, spool):
        spool.add("t", "--max-events", "1")
        dead = [spool.bury(), spool.bury()]
        assert spool.ok("retry", "--all", "--json").json()["retried"] == 2
        assert len(spool.ids()) == 3 and set(dead) < set(spool.ids())

    def test_nor_are_those_that_a_drain_counts(self, spool, start_ingest):
        spool.add("t", "--max-events", "2", "--ndjson-stdin", stdin="1\n2\n")
        spool.put()
        told = spool.drain(start_ingest(all_are("rejected", "no, " * 500)).url)
        assert counts(told) == {"retried": 3, "remaining": 3}
        assert all(event["_attempts"] == 1 for event in spool.events())


class TestWrongUsage:
    @pytest.mark.parametrize("flags", [
        ["--max-events", "x"], ["--max-events", "-1"], ["--max-events", "1.5"],
        ["--max-events", ""], ["--max-bytes", "x"], ["--max-bytes", "-1"],
        ["--max-bytes", "1 parsec"], ["--when-full", "panic"]])
    def test_it_stores_nothing(self, spool, flags):
        result = spool.run("add", "t", *flags)
        assert result.code == USAGE and result.out == "" and not spool.names()
        assert flags[0] in result.err

    def test_a_quota_that_cannot_be_read_is_told(self, spool):
        spool.add("t", "--max-events", "5")
        (spool.directory / "quota.json").write_text("{broken")
        result = spool.run("add", "t")
        assert result.code == FAILED and "quota.json" in result.err and len(spool.ids()) == 1
