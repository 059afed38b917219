"""The commands for scheduling: throttles, keys of jobs, limits, breakers, and what is shown."""

import json
import os
import re

import pytest

from scheduling import Throttles, breaker_of, push_keyed, top_keys
from waiting import eventually

REFUSED, USAGE = 1, 2
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
NASTY = "red\u009b31m\u202e"
STILL = "1/h"


def ndjson(values):
    return "".join(json.dumps(value) + "\n" for value in values)


class TestThrottleCommands:
    HEADER = ["KEY", "RATE", "BURST", "TOKENS", "WAITING", "UPDATED"]

    def test_set_list_and_unset(self, shell, throttles):
        assert shell.ok("throttle", "list").rows() == [self.HEADER]
        assert shell.ok("throttle", "set", "api", "100/s", "--burst", "20").out == (
            "set api: 100/s, burst 20\n")
        shell.ok("throttle", "set", "a", STILL)
        assert throttles.settings() == {"a": (STILL, 1), "api": ("100/s", 20)}
        header, first, second = shell.ok("throttle", "list").rows()
        assert header == self.HEADER
        assert first[:3] == ["a", STILL, "1"]
        assert second[:5] == ["api", "100/s", "20", "20.0", "0"]
        assert re.fullmatch(TIME, second[5])
        assert shell.ok("throttle", "list", "--no-header").rows() == [first, second]
        assert shell.ok("throttle", "unset", "api").out == "unset api\n"
        assert throttles.settings() == {"a": (STILL, 1)}

    def test_the_default_burst_is_told(self, shell):
        assert shell.ok("throttle", "set", "api", "30/m").out == "set api: 30/m, burst 1\n"
        assert shell.ok("throttle", "set", "api", "50/s").out == "set api: 50/s, burst 50\n"

    def test_json_is_the_reply_of_the_api(self, shell, throttles):
        put = shell.ok("throttle", "set", "k", STILL, "--burst", "3", "--json").json()
        assert put == throttles.get("k")
        listed = throttles.client.request("GET", throttles.path()).body.decode()
        assert shell.ok("throttle", "list", "--json").out == listed.rstrip("\n") + "\n"
        gone = shell.ok("throttle", "unset", "k", "--json").json()
        assert gone == {"key": "k", "namespace": throttles.namespace, "deleted": True}

    def test_a_key_that_is_not_set_is_exit_1(self, shell):
        result = shell.run("throttle", "unset", "absent")
        assert result.code == REFUSED and "(throttle_not_found)" in result.err
        assert result.out == ""
        told = shell.run("throttle", "unset", "absent", "--json")
        assert json.loads(told.err)["error"]["code"] == "throttle_not_found"

    @pytest.mark.parametrize("key", ["customer:42/a b", "ключ/é", "a?b#c%d", "100%"])
    def test_odd_keys(self, shell, throttles, key):
        assert shell.ok("throttle", "set", key, STILL).out == f"set {key}: {STILL}, burst 1\n"
        assert list(throttles.settings()) == [key]
        assert shell.ok("throttle", "list", "--no-header").rows()[0][0] == key
        assert shell.ok("throttle", "unset", key).out == f"unset {key}\n"
        assert throttles.list() == []

    def test_a_key_that_looks_like_a_flag(self, shell, throttles):
        shell.ok("throttle", "set", "--", "--burst", STILL)
        assert list(throttles.settings()) == ["--burst"]

    @pytest.mark.parametrize("rate", ["0/s", "-5/s", "1.5/s", "NaN", "100", "fast", "", "1000001/s",
                                      "100/0s"])
    def test_a_bad_rate_is_refused_and_nothing_is_changed(self, shell, throttles, rate):
        throttles.set("api", STILL, 7)
        result = shell.run("throttle", "set", "api", "--", rate)
        assert result.code in (REFUSED, USAGE) and result.out == "", repr(result)
        assert "rate" in result.err.lower(), result.err
        assert throttles.settings() == {"api": (STILL, 7)}

    @pytest.mark.parametrize("burst", ["0", "-1", "1.5", "many", "1000001", "", "NaN"])
    def test_a_bad_burst_is_refused_and_nothing_is_changed(self, shell, throttles, burst):
        throttles.set("api", STILL, 7)
        result = shell.run("throttle", "set", "api", "5/s", f"--burst={burst}")
        assert result.code in (REFUSED, USAGE) and result.out == "", repr(result)
        assert "burst" in result.err, result.err
        assert throttles.settings() == {"api": (STILL, 7)}

    @pytest.mark.parametrize("args", [["set", "k"], ["set"], ["set", "", "1/s"], ["unset"],
                                      ["unset", ""], ["list", "k"], [], ["stop", "k"],
                                      ["set", "k", "1/s", "2/s"], ["set", "k", "1/s", "--brust=1"]])
    def test_wrong_usage(self, shell, throttles, args):
        result = shell.cli.run("throttle", *args)
        assert result.code == USAGE and result.out == "", repr(result)
        assert throttles.list() == []

    def test_namespaces_are_apart(self, shell, cli, namespace):
        shell.ok("throttle", "set", "k", STILL)
        assert cli.run("throttle", "unset", "k", "-n", namespace + "-other").code == REFUSED
        assert cli.ok("throttle", "list", "--no-header", "-n", namespace + "-other").out == ""

    def test_what_it_has_and_who_waits_is_listed(self, shell, queue, throttles):
        throttles.set("api", STILL, 3)
        for key in ("a", "b"):
            push_keyed(queue, key, 5, throttle_keys=["api"])
        assert len(queue.claim(10)) == 3
        eventually(lambda: queue.claim() == [] and throttles.get("api")["waiting"] == 2, "waiting")
        [row] = shell.ok("throttle", "list", "--no-header").rows()
        assert row[:5] == ["api", STILL, "3", "0.0", "2"]

    def test_a_terminal_is_not_driven_by_a_key(self, shell, shown, throttles):
        throttles.client.request("PUT", throttles.path(NASTY), {"rate": STILL})
        text = shown("throttle", "list")
        assert not set("\x1b\x07\u009b") & set(text), text

    def test_people_see_a_table(self, shown, throttles):
        throttles.set("api", "100/s", 20)
        header, row = shown("throttle", "list").splitlines()
        assert header.split() == self.HEADER
        assert row.split()[:5] == ["api", "100/s", "20", "20.0", "0"]

    def test_the_help_lists_the_commands(self, cli):
        shown = cli.ok("throttle", "--help").out
        assert all(word in shown for word in ("set", "list", "unset"))
        assert "throttle" in cli.ok("--help").out


class TestPush:
    def attributes(self, queue):
        return [(job["fairness_key"], job["weight"], job["throttle_keys"])
                for job in queue.all_jobs(limit=100)]

    def test_one_job(self, shell, queue):
        shell.ok("queue", "push", "jobs", "1", "--fairness-key", "acme", "--weight", "3",
                 "--throttle-key", "api", "--throttle-key", "customer:42/a b")
        assert self.attributes(queue) == [("acme", 3, ["api", "customer:42/a b"])]

    def test_without_flags_it_takes_the_defaults(self, shell, queue):
        shell.ok("queue", "push", "jobs", "1")
        assert self.attributes(queue) == [("default", 1, [])]

    def test_flags_are_for_every_line(self, shell, queue):
        shell.ok("queue", "push", "jobs", "--stdin", "--fairness-key", "acme", "--weight", "3",
                 "--throttle-key", "api", stdin="1\n2\n")
        assert self.attributes(queue) == [("acme", 3, ["api"])] * 2

    def test_envelopes_have_their_own(self, shell, queue):
        jobs = [{"payload": 1, "fairness_key": "acme", "weight": 3, "throttle_keys": ["api"]},
                {"payload": 2}]
        shell.ok("queue", "push", "jobs", "--stdin", "--envelope", stdin=ndjson(jobs))
        assert self.attributes(queue) == [("acme", 3, ["api"]), ("default", 1, [])]

    @pytest.mark.parametrize("flags", [["--fairness-key", "a"], ["--weight", "3"],
                                       ["--throttle-key", "a"]])
    def test_envelopes_and_flags_exclude_each_other(self, shell, queue, flags):
        result = shell.run("queue", "push", "jobs", "--stdin", "--envelope", *flags,
                           stdin=ndjson([{"payload": 1}]))
        assert result.code == USAGE and flags[0] in result.err, repr(result)
        assert queue.counts() == {}

    @pytest.mark.parametrize("flags, name", [
        (["--weight", "0"], "weight"), (["--weight", "1001"], "weight"),
        (["--weight", "1.5"], "weight"), (["--weight", "x"], "weight"),
        (["--weight=-1"], "weight"), (["--fairness-key", ""], "fairness"),
        (["--fairness-key", "x" * 201], "fairness"), (["--throttle-key", ""], "throttle"),
        (["--throttle-key", "x" * 201], "throttle"),
        ([word for n in range(17) for word in ("--throttle-key", f"t{n}")], "throttle")],
        ids=lambda value: str(value)[:30])
    def test_what_cannot_be_is_refused_by_name(self, shell, queue, flags, name):
        result = shell.run("queue", "push", "jobs", "1", *flags)
        assert result.code in (REFUSED, USAGE) and result.out == "", repr(result)
        assert name in result.err and queue.counts() == {}

    def test_text_that_is_no_utf_8_is_refused(self, shell, queue):
        for flag in ("--fairness-key", "--throttle-key"):
            result = shell.run("queue", "push", "jobs", "1", flag, os.fsdecode(b"caf\xe9"))
            assert result.code in (REFUSED, USAGE) and queue.counts() == {}


class TestConfigFlags:
    def test_limits(self, shell, absent_queue):
        shell.ok("queue", "create", "jobs", "--concurrency", "50", "--concurrency-per-key", "5")
        config = absent_queue.show()["config"]
        assert (config["concurrency"], config["concurrency_per_key"]) == (50, 5)
        shell.ok("queue", "update", "jobs", "--concurrency", "none")
        config = absent_queue.show()["config"]
        assert (config["concurrency"], config["concurrency_per_key"]) == (None, 5)
        shell.ok("queue", "update", "jobs", "--concurrency-per-key", "default")
        assert absent_queue.show()["config"]["concurrency_per_key"] is None

    @pytest.mark.parametrize("text, expected", [
        ("on", {"failure_rate": 0.5, "window": "1m", "min": 20, "pause": "30s", "canaries": 1}),
        ("pause=5s", {"failure_rate": 0.5, "window": "1m", "min": 20, "pause": "5s",
                      "canaries": 1}),
        ("failure_rate=0.25,window=10s,min=3,pause=200ms,canaries=2",
         {"failure_rate": 0.25, "window": "10s", "min": 3, "pause": "200ms", "canaries": 2})])
    def test_a_breaker(self, shell, absent_queue, text, expected):
        shell.ok("queue", "create", "jobs", "--breaker", text)
        assert absent_queue.show()["config"]["breaker"] == expected
        shell.ok("queue", "update", "jobs", "--breaker", "none")
        assert absent_queue.show()["config"]["breaker"] is None
        shell.ok("queue", "update", "jobs", "--breaker", text)
        assert absent_queue.show()["config"]["breaker"] == expected

    @pytest.mark.parametrize("flags", [
        ["--concurrency", "0"], ["--concurrency", "x"], ["--concurrency=-1"],
        ["--concurrency-per-key", "1.5"], ["--breaker", "yes"], ["--breaker", "min"],
        ["--breaker", "min=x"], ["--breaker", "min=0"], ["--breaker", "failure_rate=2"],
        ["--breaker", "pause=soon"], ["--breaker", "mni=5"], ["--breaker", "min=5,min=6"],
        ["--breaker", "min=5,"], ["--breaker", ""]], ids=" ".join)
    def test_what_cannot_be_is_refused_and_changes_nothing(self, shell, absent_queue, flags):
        absent_queue.create(concurrency=7, breaker={"pause": "7s"})
        before = absent_queue.show()["config"]
        result = shell.run("queue", "update", "jobs", *flags)
        assert result.code in (REFUSED, USAGE) and result.out == "", repr(result)
        assert absent_queue.show()["config"] == before


class TestShownQueue:
    TABLE = ["KEY", "PENDING", "ACTIVE", "WEIGHT", "DELIVERED", "SHARE"]

    def table(self, text):
        """The rows of the table of keys."""
        lines = [line.split() for line in text.splitlines()]
        start = lines.index(self.TABLE)
        rows = lines[start + 1:]
        return rows[:rows.index([])] if [] in rows else rows

    def test_people_see_the_keys_in_a_table(self, shown, queue):
        push_keyed(queue, "acme", 30, weight=3)
        push_keyed(queue, "zeta", 10)
        queue.claim(8)
        rows = {row[0]: row for row in self.table(shown("queue", "show", "jobs")) if len(row) == 6}
        for key, told in top_keys(queue).items():
            assert rows[key] == [key, *[str(told[name]) for name in (
                "pending", "active", "weight", "delivered")], f"{100 * told['share']:.0f}%"]
        assert set(rows) >= {"acme", "zeta"}

    def test_with_many_keys_the_others_are_summed_up(self, shown, queue):
        queue.push_jobs([{"payload": n, "fairness_key": f"k{n % 30}"} for n in range(300)])
        text = shown("queue", "show", "jobs")
        assert len([row for row in self.table(text) if re.match(r"k\d+$", row[0])]) == 20
        assert "other" in text

    def test_where_nobody_names_keys_there_is_no_table(self, shown, queue):
        queue.push(1, 2)
        assert "WEIGHT" not in shown("queue", "show", "jobs")

    def test_piped_it_is_as_deep_as_the_reply(self, shell, queue):
        push_keyed(queue, "acme", 5, weight=3)
        queue.patch(breaker={"min": 3})
        fields = shell.ok("queue", "show", "jobs").fields()
        assert (fields["stats.keys.active"], fields["stats.keys.top.0.key"],
                fields["stats.keys.top.0.pending"], fields["stats.keys.top.0.weight"],
                fields["stats.keys.other.pending"]) == ("1", "acme", "5", "3", "0")
        assert (fields["breaker.state"], fields["breaker.opened"]) == ("closed", "0")
        assert fields["config.breaker.min"] == "3"
        assert fields["config.concurrency"] == fields["config.concurrency_per_key"] == "-"

    def test_people_see_the_state_of_the_breaker(self, shown, absent_queue):
        queue = absent_queue.created(breaker={"min": 1, "pause": "1h"})
        assert "closed" in shown("queue", "show", "jobs")
        queue.push(1)
        queue.client.fail(queue.claim_one())
        assert breaker_of(queue)["state"] == "open"
        assert "open" in shown("queue", "show", "jobs")

    def test_a_terminal_is_not_driven_by_a_key(self, shown, queue):
        queue.push(1, fairness_key="\x1b[31m" + NASTY)
        assert top_keys(queue)["\x1b[31m" + NASTY]["pending"] == 1
        text = shown("queue", "show", "jobs")
        assert not set("\x1b\x07\u009b") & set(text), text

    def test_json_is_the_reply_of_the_api(self, shell, queue):
        push_keyed(queue, "acme", 5)
        assert shell.ok("queue", "show", "jobs", "--json").json()["stats"]["keys"] == (
            queue.stats()["keys"])


def test_the_example_of_the_page(shell, queue, api, namespace):
    """A throttle that is set by hand holds back a job that was pushed by hand."""
    shell.ok("throttle", "set", "api", STILL, "--burst", "1")
    for _ in range(2):
        shell.ok("queue", "push", "jobs", "1", "--throttle-key", "api")
    assert len(shell.ok("queue", "claim", "jobs", "--max", "5", "--json").json()["jobs"]) == 1
    shell.ok("throttle", "unset", "api")
    assert len(queue.claim(5)) == 1 and Throttles(api, namespace).list() == []
