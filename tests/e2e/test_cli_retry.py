"""The commands that act on failures: retry, purge, operations, and the audit of them."""

import json
import re
import signal

import pytest

from dead_jobs import bury, bury_many
from ids import colliding_ids
from metrics_text import read_metrics
from reprise_cli import Cli
from times import seconds_since_1970
from waiting import eventually

REFUSED, USAGE, NO_SERVER = 1, 2, 3
PLAIN = {"NO_COLOR": "1"}


def operation_id(text):
    return re.search(r"operation (\d+) has begun; see: reprise operation show \1", text)[1]


class TestByIds:
    def test_retry_brings_them_back(self, shell, queue):
        ids = bury(queue, "a", "b")
        result = shell.ok("queue", "retry", "jobs", ids[0], ids[1][:8].lower())
        assert result.out == "retried 2, skipped 0, not found 0\n" and result.err == ""
        assert queue.counts() == {"pending": 2} and queue.job(ids[0])["failures"] == 0

    def test_purge_deletes_them_without_asking(self, shell, queue, shown):
        ids = bury(queue, "a", "b")
        assert "purged 1, skipped 0" in shown("queue", "purge", "jobs", ids[0])
        assert queue.status_of(ids[0]) is None and queue.counts() == {"dead": 1}

    def test_each_is_judged_by_itself(self, shell, queue):
        [dead] = bury(queue, "a")
        alive = queue.push_one(1)
        result = shell.run("queue", "retry", "jobs", dead, alive, "7ZK3M9QAX2B4C")
        assert result.code == REFUSED and result.out == "retried 1, skipped 1, not found 1\n"
        assert f"job {alive[:8]} is pending" in result.err and "(wrong_status)" in result.err
        assert "7ZK3M9QA" in result.err and "(job_not_found)" in result.err

    @pytest.mark.parametrize("verb, done", [("retry", "retried"), ("purge", "purged")])
    def test_when_none_could_be_done_it_still_says_why(self, shell, queue, verb, done):
        alive = queue.push_one(1)
        result = shell.run("queue", verb, "jobs", alive)
        assert result.code == REFUSED and result.out == f"{done} 0, skipped 1, not found 0\n"
        assert f"job {alive[:8]} is pending" in result.err
        told = shell.run("queue", verb, "jobs", alive, "--json")
        assert told.code == REFUSED and told.err == ""
        assert told.json()["skipped"][0]["status"] == "pending"

    def test_a_prefix_that_fits_several_is_refused(self, shell, queue):
        first, second = colliding_ids(queue)
        result = shell.run("queue", "retry", "jobs", first[:4])
        assert result.code == REFUSED and result.out == "retried 0, skipped 1, not found 0\n"
        assert "(ambiguous_id)" in result.err and first[:4] in result.err

    def test_more_than_a_thousand(self, shell, queue):
        ids = bury_many(queue, 1200)
        lines = shell.ok("queue", "retry", "jobs", *ids, "--json").out.splitlines()
        assert [json.loads(line)["retried"] for line in lines] == [1000, 200]

    def test_ids_go_alone(self, shell, queue):
        for flags in (["--all"], ["--error", "x"], ["--limit", "3"], ["--dry-run"],
                      ["--rate", "1/s"]):
            assert shell.run("queue", "retry", "jobs", "7ZK3", *flags).code == USAGE

    def test_an_unknown_queue(self, shell, queue):
        for selection in ("7ZK3M9QAX2B4C", "--all"):
            result = shell.run("queue", "retry", "job", selection)
            assert result.code == REFUSED and "did you mean 'jobs'?" in result.err


class TestByFilter:
    def test_all(self, shell, queue):
        bury(queue, "a", "b")
        assert shell.ok("queue", "retry", "jobs", "--all").out == (
            "retried 2, skipped 0, not found 0\n")
        assert queue.counts() == {"pending": 2}

    def test_a_filter_and_a_limit_take_the_longest_dead(self, shell, queue):
        ids = bury(queue, "timeout", "refused", "timeout")
        assert shell.ok("queue", "purge", "jobs", "--error", "timeout", "--limit", "1"
                        ).out.startswith("purged 1,")
        assert [job["id"] for job in queue.jobs(status="dead")] == ids[1:]

    def test_status_failed_ends_the_wait(self, shell, absent_queue):
        queue = absent_queue.created(retry={"attempts": 5, "cooldown": "1h"})
        bury(queue, "dead")
        queue.push(1)
        queue.client.fail(queue.claim_one(), error="cooling")
        shell.ok("queue", "retry", "jobs", "--all", "--status", "failed")
        assert queue.counts() == {"pending": 1, "dead": 1}

    def test_a_dry_run_changes_nothing(self, shell, queue):
        ids = bury(queue, "timeout", "refused")
        before = queue.snapshot()
        first, header, *rows = shell.ok("queue", "purge", "jobs", "--all", "--dry-run"
                                        ).out.splitlines()
        assert first == "would purge 2 jobs, for example:"
        assert header.split("\t") == ["ID", "DIED AT", "LAST ERROR"]
        assert [row.split("\t")[0] for row in rows] == ids
        assert rows[0].split("\t")[2] == "timeout"
        assert shell.ok("queue", "retry", "jobs", "--error", "none such", "--dry-run").out == (
            "would retry 0 jobs\n")
        assert shell.ok("queue", "retry", "jobs", "--all", "--dry-run", "--json"
                        ).json()["matched"] == 2
        assert queue.snapshot() == before

    def test_jobs_of_a_dead_letter_queue_go_back_to_where_they_came_from(self, shell, absent_queue):
        queue = absent_queue.created(dead_letter_queue="grave")
        [job_id] = bury(queue, "boom")
        grave = queue.sibling("grave")
        assert grave.job(job_id)["origin_queue"] == "jobs"
        assert shell.ok("queue", "job", "grave", job_id).fields()["origin_queue"] == "jobs"
        assert shell.ok("queue", "retry", "grave", job_id).out.startswith("retried 1,")
        assert queue.counts() == {"pending": 1} and grave.counts() == {}

    def test_nothing_selected_is_wrong_usage_where_nobody_can_choose(self, shell, queue):
        bury(queue, "a")
        for verb in ("retry", "purge"):
            result = shell.run("queue", verb, "jobs", stdin="all\n")
            assert result.code == USAGE and "--all" in result.err
        assert shell.run("queue", "retry", "jobs", "--all", "--error", "x").code == USAGE
        assert queue.counts() == {"dead": 1}

    def test_json_is_the_reply(self, shell, queue):
        bury(queue, "a")
        told = shell.ok("queue", "retry", "jobs", "--all", "--json").json()
        assert told["retried"] == 1 and told["skipped"] == []

    def test_a_large_one_shows_a_bar_on_a_terminal_only(self, shell, queue, shown):
        bury_many(queue, 60)
        text = shown("queue", "retry", "jobs", "--all", "--rate", "60/s", "--wait")
        assert "%  " in text and text.endswith("retried 60, skipped 0, not found 0\n")
        bury_many(queue, 60)
        result = shell.ok("queue", "purge", "jobs", "--all", "--rate", "120/s", "--wait")
        assert result.out == "purged 60, skipped 0, not found 0\n" and result.err == ""


class TestChoosing:
    """Without ids, on a terminal."""

    def test_numbers_and_ranges(self, shell, queue):
        ids = list(reversed(bury(queue, "one", "two", "three", "four")))
        with shell.terminal("queue", "retry", "jobs", env=PLAIN) as terminal:
            terminal.expect("Which to retry?").type("1 3-4\n")
            code, text = terminal.finish()
        assert code == 0 and "retried 3, skipped 0, not found 0" in text
        shown = re.findall(r"^ *\d+ +(\w{8}) .* (\w+)$", text, re.MULTILINE)
        assert shown == [(job_id[:8], error) for job_id, error in
                         zip(ids, ("four", "three", "two", "one"))]
        assert [job["id"] for job in queue.jobs(status="dead")] == [ids[1]]

    def test_an_answer_that_makes_no_sense_is_asked_again(self, shell, queue):
        bury(queue, "a", "b")
        with shell.terminal("queue", "purge", "jobs", env=PLAIN) as terminal:
            terminal.expect("Which to purge?").type("3\n").expect("'3' is none of 1 to 2")
            terminal.type("some\n").expect("'some' is none of 1 to 2").type("2\n")
            code, text = terminal.finish()
        assert code == 0 and "purged 1" in text and queue.counts() == {"dead": 1}

    @pytest.mark.parametrize("answer", ["\n", "\x04"])
    def test_nothing_leaves(self, shell, queue, answer):
        bury(queue, "a")
        with shell.terminal("queue", "retry", "jobs", env=PLAIN) as terminal:
            terminal.expect("Which to retry?").type(answer)
            assert terminal.finish()[0] == REFUSED
        assert queue.counts() == {"dead": 1}

    def test_all_is_more_than_what_is_shown(self, shell, queue):
        bury_many(queue, 25)
        with shell.terminal("queue", "retry", "jobs", env=PLAIN) as terminal:
            terminal.expect("Which to retry?").type("all\n")
            code, text = terminal.finish()
        assert code == 0 and "retried 25" in text and "\n20  " in text and "\n21  " not in text
        assert queue.counts() == {"pending": 25}

    def test_no_dead_job_is_no_question(self, queue, shown):
        assert shown("queue", "retry", "jobs") == "no dead jobs in queue jobs\n"
        queue.push(1)
        assert "(queue_not_found)" in shown("queue", "retry", "absent", code=REFUSED)

    @pytest.mark.parametrize("answer, code", [("y", 0), ("n", REFUSED), ("", REFUSED)])
    def test_purge_asks_before_all_and_by_filter(self, shell, queue, answer, code):
        bury(queue, "a", "a", "b")
        for flags, count in ((["--error", "a"], 2), (["--all"], 1 if code == 0 else 3)):
            with shell.terminal("queue", "purge", "jobs", *flags, env=PLAIN) as terminal:
                question = f"Purge {count} job{'' if count == 1 else 's'} of queue jobs for good?"
                terminal.expect(question + " [y/N]").type(answer + "\n")
                assert terminal.finish()[0] == code
        assert queue.counts() == ({} if code == 0 else {"dead": 3})

    def test_purge_all_from_the_list_asks_too(self, shell, queue):
        bury(queue, "a", "b")
        with shell.terminal("queue", "purge", "jobs", env=PLAIN) as terminal:
            terminal.expect("Which to purge?").type("all\n").expect("[y/N]").type("n\n")
            assert terminal.finish()[0] == REFUSED
        assert queue.counts() == {"dead": 2}

    @pytest.mark.parametrize("flag", ["--yes", "-y"])
    def test_yes_does_not_ask(self, queue, shown, flag):
        bury(queue, "a")
        assert shown("queue", "purge", "jobs", "--all", flag) == (
            "purged 1, skipped 0, not found 0\n")

    def test_nothing_to_purge_is_no_question(self, queue, shown):
        assert shown("queue", "purge", "jobs", "--all") == "purged 0, skipped 0, not found 0\n"


class TestOperations:
    HEADER = ["ID", "KIND", "NAMESPACE", "QUEUE", "STATE", "DONE", "TOTAL", "SKIPPED", "RATE",
              "STARTED", "BY"]

    @pytest.fixture
    def slow(self, shell, queue):
        """The number of a retry that takes for ever."""
        bury(queue, "a", "b", "c")
        begun = shell.ok("queue", "retry", "jobs", "--all", "--rate", "1/h")
        number = operation_id(begun.out)
        yield number
        shell.run("operation", "cancel", number)

    def rows(self, shell, queue, *flags):
        listed = shell.ok("operation", "list", "--no-header", *flags).rows()
        return [row for row in listed if row[2] == queue.namespace]

    def test_list(self, shell, queue, slow):
        assert shell.ok("operation", "list").rows()[0] == self.HEADER
        [row] = self.rows(shell, queue, "--running")
        assert row[0] == slow and row[1:5] == ["retry", queue.namespace, "jobs", "running"]
        assert row[8] == "1/h" and seconds_since_1970(row[9])
        shell.ok("operation", "cancel", slow)
        assert self.rows(shell, queue, "--running") == []
        assert [row[4] for row in self.rows(shell, queue)] == ["cancelled"]

    def test_show(self, shell, queue, slow):
        shown = queue.client.get(f"/v1/operations/{slow}")
        fields = shell.ok("operation", "show", slow).fields()
        plain = {name for name, value in shown.items() if name != "filter"}
        assert plain <= set(fields) and fields["state"] == "running" and fields["queue"] == "jobs"
        assert shell.ok("operation", "show", slow, "--json").json() == shown

    def test_cancel_keeps_what_was_done(self, shell, queue, slow):
        eventually(lambda: queue.counts().get("pending", 0) == 1, "the first to be retried")
        result = shell.ok("operation", "cancel", slow)
        assert result.out == f"cancelled operation {slow}; 1 done, which stays\n"
        assert queue.counts() == {"pending": 1, "dead": 2}

    def test_one_that_is_not_there_is_exit_1(self, shell, queue):
        for command in ("show", "cancel"):
            result = shell.run("operation", command, "999999999")
            assert result.code == REFUSED and "(operation_not_found)" in result.err
            assert shell.run("operation", command, "seven").code == USAGE

    def test_status_tells_those_that_run(self, cli, queue, slow):
        fields = cli.ok("status").fields()
        running = {fields[name]: name for name in fields
                   if re.fullmatch(r"operations\.\d+\.id", name)}
        assert fields[running[slow].replace(".id", ".kind")] == "retry"
        assert fields["webhooks.pending"] == "0"
        with cli.terminal("status", env=PLAIN) as terminal:
            _, text = terminal.finish()
        assert re.search(rf"operation {slow} +retry of queue jobs", text)

    def test_rate_ends_at_once_with_the_number(self, shell, queue, slow):
        told = queue.client.get(f"/v1/operations/{slow}")
        assert (told["state"], told["rate"]) == ("running", "1/h")

    def test_an_interrupted_command_leaves_it_running(self, shell, queue):
        bury(queue, "a", "b")
        process = shell.start("queue", "retry", "jobs", "--all", "--rate", "1/h", "--wait")
        eventually(lambda: self.rows(shell, queue, "--running"), "the operation to begin")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        assert process.returncode == -signal.SIGINT
        [row] = self.rows(shell, queue, "--running")
        shell.ok("operation", "cancel", row[0])

    def test_a_cancelled_operation_is_no_success_for_who_waits(self, shell, queue):
        bury(queue, "a", "b")
        process = shell.start("queue", "purge", "jobs", "--all", "--rate", "1/h", "--wait")
        [row] = eventually(lambda: self.rows(shell, queue, "--running"), "the operation to begin")
        shell.ok("operation", "cancel", row[0])
        out, err = process.communicate(timeout=10)
        assert process.returncode == REFUSED and b"cancelled" in err and out.startswith(b"purged ")


    def test_when_the_server_goes_away_it_says_that_the_operation_goes_on(self, server):
        queue = server.client().queue("jobs").created()
        bury(queue, "a", "b")
        cli = Cli(server.url)
        process = cli.start("queue", "retry", "jobs", "--all", "--rate", "1/h", "--wait")
        # Once the command has been told of the operation; to have begun it is not enough.
        eventually(lambda: read_metrics(server.client()).value(
            "reprise_http_requests_total", route="POST /v1/queues/{queue}/retry", status="202"),
            "the operation to be told")
        server.kill()
        _, err = process.communicate(timeout=10)
        assert process.returncode == NO_SERVER
        assert b"(unreachable)" in err and b"operation 1 goes on without this command" in err
        server.start()
        assert Cli(server.url).ok("operation", "show", "1").fields()["state"] == "running"


class TestAudit:
    HEADER = ["NUMBER", "AT", "BY", "ACTION", "NAMESPACE", "QUEUE", "WHAT", "DONE", "SKIPPED",
              "NOT FOUND", "OPERATION"]

    @pytest.fixture
    def history(self, shell, queue):
        """A retry of ids, a purge by filter, a drop."""
        ids = bury(queue, "a", "b")
        shell.run("queue", "retry", "jobs", ids[0], "7ZK3M9QAX2B4C")
        shell.ok("queue", "purge", "jobs", "--error", "b")
        shell.ok("queue", "drop", "jobs", ids[0])
        return ids

    def test_the_newest_first(self, shell, queue, history):
        header, drop, purge, retry = shell.ok("audit").rows()
        assert header == self.HEADER
        assert [row[3] for row in (drop, purge, retry)] == ["drop", "purge", "retry"]
        assert int(drop[0]) > int(purge[0]) > int(retry[0]) and seconds_since_1970(drop[1])
        assert all(row[2] == "-" and row[4:6] == [queue.namespace, "jobs"]
                   for row in (drop, purge, retry))
        assert drop[6] == history[0] and json.loads(purge[6])["error"] == "b"
        assert history[0] in retry[6] and retry[7:10] == ["1", "0", "1"]
        assert purge[7] == "1" and purge[10] != "-"

    def test_filters_and_pages(self, shell, queue, history):
        assert [row[3] for row in shell.ok("audit", "--action", "purge", "--no-header").rows()] == [
            "purge"]
        assert shell.ok("audit", "--queue", "absent", "--no-header").out == ""
        first = shell.ok("audit", "--limit", "1", "--no-header")
        before = re.search(r"^more: --before (\d+)$", first.err, re.MULTILINE)[1]
        rest = shell.ok("audit", "--before", before, "--no-header")
        assert [row[3] for row in first.rows() + rest.rows()] == ["drop", "purge", "retry"]

    def test_without_a_namespace_all_are_told(self, cli, queue, history):
        rows = cli.ok("audit", "--no-header", "--limit", "200").rows()
        assert queue.namespace in {row[4] for row in rows}

    def test_who_it_was(self, start_server, tmp_path):
        tokens = tmp_path / "tokens"
        tokens.write_text("ops:secret\n")
        server = start_server("--token-file", str(tokens), token="secret")
        cli = Cli(server.url, env={"REPRISE_TOKEN": "secret"})
        job_id = cli.ok("queue", "push", "jobs", "1", "--create").out.strip()
        cli.ok("queue", "drop", "jobs", job_id)
        assert cli.ok("audit", "--no-header").rows()[0][2:4] == ["ops", "drop"]

    def test_json_is_the_reply(self, shell, queue, history):
        reply = queue.client.request("GET", f"/v1/audit?namespace={queue.namespace}")
        assert shell.ok("audit", "--json").out == reply.body.decode().rstrip("\n") + "\n"
