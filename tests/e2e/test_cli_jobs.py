"""The commands for jobs, leases and events, and how all of it looks on a terminal."""

import json
import re
import signal

import pytest

from background import in_background
from ids import colliding_ids
from reprise_cli import Cli
from times import seconds_since_1970
from waiting import eventually

REFUSED, USAGE = 1, 2
ESCAPE = "\x1b"
NASTY = "\x1b[31mred\x1b]0;title\x07\u009b31m\x7f\n\ttab"


def next_event(process):
    """The next line of `events --json`."""
    return json.loads(in_background(process.stdout.readline).result(10))


class TestClaim:
    def test_one_line_a_job(self, shell, queue):
        first, second = queue.push({"a": 1}, "x")
        header, one, two = shell.ok("queue", "claim", "jobs", "--max", "5").rows()
        assert header == ["ID", "TOKEN", "ATTEMPTS", "PAYLOAD"]
        assert (one[0], one[2], json.loads(one[3])) == (first, "1", {"a": 1})
        assert (two[0], two[2], two[3]) == (second, "1", '"x"')
        assert queue.client.ack(one[1])["status"] == "acked"

    def test_flags_reach_the_claim(self, absent_queue, shell):
        queue = absent_queue.created(retry={"attempts": 5, "cooldown": "0s"})
        queue.push(1)
        row = shell.ok("queue", "claim", "jobs", "--lease", "1h", "--worker", "me", "--no-header"
                       ).rows()[0]
        [job] = queue.jobs()
        assert job["worker"] == "me"
        assert seconds_since_1970(job["lease_expires_at"]) - seconds_since_1970(
            job["pushed_at"]) > 3500
        queue.client.fail(row[1])
        eventually(lambda: queue.counts() == {"pending": 1})
        assert shell.ok("queue", "claim", "jobs", "--lane", "fresh").out == ""
        assert len(shell.ok("queue", "claim", "jobs", "--lane", "retry").rows()) == 2

    def test_the_worker_is_host_and_process_by_default(self, shell, queue):
        queue.push(1)
        shell.ok("queue", "claim", "jobs")
        assert re.fullmatch(r"\S+:\d+", queue.jobs()[0]["worker"])

    def test_nothing_to_claim_is_no_error(self, shell, queue):
        result = shell.ok("queue", "claim", "jobs")
        assert result.out == "" and result.err == "no job\n"
        assert shell.ok("queue", "claim", "jobs", "--json").json() == {"jobs": []}

    def test_it_waits(self, shell, queue):
        process = shell.start("queue", "claim", "jobs", "--wait", "30s", "--no-header")
        eventually(lambda: queue.stats()["waiting_claims"] == 1, "the claim to wait")
        queue.push("x")
        out, _ = process.communicate(timeout=10)
        assert process.returncode == 0 and out.endswith(b'\t"x"\n')

    def test_an_interrupt_ends_it_by_its_signal(self, shell, queue):
        process = shell.start("queue", "claim", "jobs", "--wait", "30s")
        eventually(lambda: queue.stats()["waiting_claims"] == 1, "the claim to wait")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        assert process.returncode == -signal.SIGINT
        eventually(lambda: queue.stats()["waiting_claims"] == 0, "the claim to be withdrawn")

    def test_bytes_are_shown_as_base64(self, shell, queue):
        queue.push_jobs([{"payload_base64": "AAEC"}])
        assert shell.ok("queue", "claim", "jobs", "--no-header").rows()[0][3] == "base64:AAEC"


class TestLeases:
    @pytest.mark.parametrize("verb, status, detail", [
        ("ack", "acked", r"-"), ("fail", "dead", r"max_attempts"), ("release", "released", r"-"),
        ("extend", "extended", r"\d{4}-\d\d-\d\dT[0-9:.]+Z")])
    def test_each_ends_or_prolongs_several(self, shell, queue, verb, status, detail):
        queue.push(1, 2)
        jobs = queue.claim(2)
        header, *rows = shell.ok("queue", verb, *[job["token"] for job in jobs]).rows()
        assert header == ["ID", "STATUS", "DETAIL"]
        assert [row[:2] for row in rows] == [[job["id"], status] for job in jobs]
        assert all(re.fullmatch(detail, row[2]) for row in rows)

    def test_flags_of_fail(self, shell, absent_queue):
        queue = absent_queue.created(retry={"attempts": 5, "cooldown": "0s"})
        queue.push(1, 2)
        one, two = queue.claim(2)
        row = shell.ok("queue", "fail", one["token"], "--error", "time out", "--delay", "1h"
                       ).rows()[1]
        assert row[1] == "retrying" and seconds_since_1970(row[2])
        assert queue.job(one["id"])["last_error"] == "time out"
        assert shell.ok("queue", "fail", two["token"], "--final").rows()[1][1:] == ["dead", "final"]

    def test_flags_of_release_and_extend(self, shell, queue):
        queue.push(1, 2)
        one, two = queue.claim(2)
        shell.ok("queue", "release", one["token"], "--delay", "1h")
        assert queue.counts() == {"scheduled": 1, "active": 1}
        until = shell.ok("queue", "extend", two["token"], "--lease", "2h").rows()[1][2]
        assert queue.job(two["id"])["lease_expires_at"] == until

    def test_a_dash_reads_tokens_from_stdin(self, shell, queue):
        queue.push(1, 2, 3)
        tokens = [job["token"] for job in queue.claim(3)]
        shell.ok("queue", "ack", "-", stdin=f"{tokens[0]} {tokens[1]}\n\t{tokens[2]}\n")
        assert queue.counts() == {}

    def test_a_refused_token_is_named_by_place_and_beginning_only(self, shell, queue):
        queue.push(1, 2)
        one, two = queue.claim(2)
        queue.client.ack(two)
        result = shell.run("queue", "ack", one["token"], two["token"], "stale-token")
        assert result.code == REFUSED
        assert [row[1] for row in result.rows()[1:]] == ["acked"]
        assert "token 2" in result.err and "(lease_lost)" in result.err
        assert "token 3 (stale-to…)" in result.err and "(invalid_lease_token)" in result.err
        assert two["token"] not in result.err and "stale-token" not in result.err

    def test_json_is_the_reply_also_when_tokens_were_refused(self, shell, queue):
        queue.push(1)
        job = queue.claim_one()
        result = shell.run("queue", "ack", job["token"], "junk", "--json")
        assert result.code == REFUSED
        statuses = [each["status"] for each in result.json()["results"]]
        assert statuses == ["acked", "rejected"]

    def test_more_than_a_thousand_tokens_are_one_reply_a_line(self, shell, queue):
        queue.push(*range(1000))
        queue.push(*range(500))
        tokens = [job["token"] for job in queue.claim(1000) + queue.claim(1000)]
        result = shell.ok("queue", "ack", "-", "--json", stdin="\n".join(tokens))
        assert [len(json.loads(line)["results"]) for line in result.out.splitlines()] == [1000, 500]
        assert queue.counts() == {}


class TestJobs:
    HEADER = ["ID", "STATUS", "PRIORITY", "ATTEMPTS", "FAILURES", "AGE", "DUE", "ERROR", "PAYLOAD"]

    def test_columns_and_filters(self, shell, absent_queue):
        queue = absent_queue.created(retry={"attempts": 5, "cooldown": "1h"})
        ids = queue.push("failed", "dead", headers={"t": "a"}) + queue.push("pending")
        failed, dead = queue.claim(2)
        queue.client.fail(failed, error="upstream timeout")
        queue.client.fail(dead, error="gone", final=True)

        def found(*flags):
            listed = shell.ok("queue", "jobs", "jobs", "--no-header", *flags)
            return [row[0] for row in listed.rows()]

        header, *rows = shell.ok("queue", "jobs", "jobs").rows()
        assert header == self.HEADER and [row[0] for row in rows] == ids
        assert rows[0][1:5] == ["failed", "1000", "1", "1"]
        assert rows[0][7:] == ["upstream timeout", '"failed"']
        assert rows[2][6:8] == ["-", "-"] and rows[0][6] != "-"
        assert found("--status", "dead") == ids[1:2]
        assert found("--lane", "fresh") == ids[2:]
        assert found("--error", "time") == ids[:1]
        assert found("--header", "t=a") == ids[:2]
        assert found("--older-than", "1h") == []

    def test_limit_cursor_and_all(self, shell, queue):
        ids = queue.push(*range(120))
        first = shell.ok("queue", "jobs", "jobs", "--no-header")
        assert [row[0] for row in first.rows()] == ids[:50]
        cursor = re.search(r"^more: --cursor (\S+)$", first.err, re.MULTILINE)[1]
        rest = shell.ok("queue", "jobs", "jobs", "--no-header", "--cursor", cursor, "--limit", "99")
        assert [row[0] for row in rest.rows()] == ids[50:] and rest.err == ""
        whole = shell.ok("queue", "jobs", "jobs", "--all", "--no-header")
        assert [row[0] for row in whole.rows()] == ids and whole.err == ""

    def test_json_is_all_pages_in_one(self, shell, queue):
        queue.push(*range(1000))
        queue.push(*range(100))
        jobs = shell.ok("queue", "jobs", "jobs", "--all", "--json").json()
        assert jobs == {"jobs": queue.all_jobs(limit=1000), "cursor": None}
        some = shell.ok("queue", "jobs", "jobs", "--limit", "2", "--json").json()
        assert len(some["jobs"]) == 2 and some["cursor"]

    def test_one_job_whole(self, shell, queue):
        job_id = queue.push_one({"id": 1}, headers={"tenant": "a"}, key="k")
        queue.client.fail(queue.claim_one(worker="w"), error="boom")
        fields = shell.ok("queue", "job", "jobs", job_id).fields()
        assert (fields["id"], fields["status"], fields["headers.tenant"]) == (job_id, "dead", "a")
        assert (fields["history.0.error"], fields["history.0.worker"]) == ("boom", "w")
        assert fields["dead_letter.meta.reason"] == "max_attempts"
        reply = queue.client.request("GET", queue.path(f"/jobs/{job_id}"))
        assert shell.ok("queue", "job", "jobs", job_id, "--json").out == (
            reply.body.decode().rstrip("\n") + "\n")

    def test_any_unique_prefix_in_any_case_names_a_job(self, shell, queue):
        job_id = queue.push_one(1)
        for text in (job_id[:4], job_id[:8].lower(), job_id):
            assert shell.ok("queue", "job", "jobs", text).fields()["id"] == job_id

    def test_a_prefix_that_fits_several_lists_them(self, shell, queue):
        first, second = colliding_ids(queue)
        for command in ("job", "drop"):
            result = shell.run("queue", command, "jobs", first[:4])
            assert result.code == REFUSED and "(ambiguous_id)" in result.err
            lines = result.err.splitlines()
            assert f"  {first}" in lines and f"  {second}" in lines
        assert queue.status_of(first) == "pending"

    def test_an_unknown_job_is_exit_1(self, shell, queue):
        result = shell.run("queue", "job", "jobs", "7ZK3M9QAX2B4C")
        assert result.code == REFUSED and "(job_not_found)" in result.err

    def test_drop_takes_several_and_names_those_not_found(self, shell, queue):
        one, two = queue.push(1, 2)
        queue.claim_one()
        result = shell.run("queue", "drop", "jobs", one, "7ZK3M9QAX2B4C", two[:8])
        assert result.code == REFUSED and "7ZK3M9QA" in result.err
        assert result.rows() == [["ID", "WAS"], [one, "active"], [two, "pending"]]
        assert queue.counts() == {}

    def test_drop_json_is_one_reply_a_line(self, shell, queue):
        ids = queue.push(1, 2)
        lines = shell.ok("queue", "drop", "jobs", *ids, "--json").out.splitlines()
        assert [json.loads(line) for line in lines] == [
            {"dropped": True, "id": job_id, "status": "pending"} for job_id in ids]


class TestEvents:
    HEADER = ["AT", "TYPE", "NAMESPACE", "QUEUE", "ID", "DETAIL"]

    def test_the_remembered_ones_are_told_and_it_ends(self, shell, queue):
        job_id = queue.push_one(1)
        queue.client.fail(queue.claim_one(), error="boom")
        header, *rows = shell.ok("events", "--queue", "jobs").rows()
        assert header == self.HEADER
        assert [row[1] for row in rows] == ["queue:pushed", "queue:taken", "queue:failed",
                                            "queue:dead"]
        assert {tuple(row[2:5]) for row in rows} == {(queue.namespace, "jobs", job_id)}
        assert "reason=max_attempts" in rows[3][5] and "error=boom" in rows[3][5]

    @pytest.mark.parametrize("flags", [["--type", "pushed,dead"], ["--type", "queue:pushed",
                                                                   "--type", "dead"]])
    def test_by_type(self, shell, queue, flags):
        queue.push(1)
        queue.client.fail(queue.claim_one())
        rows = shell.ok("events", "--no-header", *flags).rows()
        assert [row[1] for row in rows] == ["queue:pushed", "queue:dead"]

    def test_limit_and_json(self, shell, queue):
        ids = queue.push(1, 2, 3)
        lines = shell.ok("events", "--limit", "2", "--json").out.splitlines()
        assert [json.loads(line)["id"] for line in lines] == ids[:2]

    def test_an_unknown_type_is_refused(self, shell):
        assert shell.run("events", "--type", "exploded").code in (REFUSED, USAGE)

    def test_follow_tells_new_ones_until_interrupted(self, shell, queue):
        queue.push("before")
        process = shell.start("events", "--follow", "--json")
        try:
            # Until the stream is open an event may be missed, so push until one is told.
            told = in_background(next_event, process)
            pushed = []
            eventually(lambda: pushed.append(queue.push_one("during")) or told.done(), "an event")
            assert told.result()["id"] in pushed
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=10)
        assert process.returncode == 0

    def test_replay_begins_with_the_remembered_ones(self, shell, queue):
        ids = queue.push(1, 2)
        process = shell.start("events", "--follow", "--replay", "--json")
        try:
            told = [next_event(process)["id"] for _ in ids]
            after = queue.push_one(3)
            assert [*told, next_event(process)["id"]] == [*ids, after]
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=10)


    def test_a_broken_connection_is_taken_up_again(self, server):
        queue = server.client().queue("q").created()
        server.listen = f"127.0.0.1:{server.port}"  # the same again after the restart
        process = Cli(server.url).start("events", "--follow", "--replay", "--json")
        try:
            first = queue.push_one(1)
            assert next_event(process)["id"] == first
            server.restart("kill")
            second = queue.through(server.client()).push_one(2)
            assert next_event(process)["id"] == second
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=10)


def test_a_reader_that_stops_reading_ends_the_command_quietly(shell, queue):
    for _ in range(5):
        queue.push(*["x" * 500] * 1000)
    process = shell.start("queue", "jobs", "jobs", "--all")
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stdin.close()
    process.stderr.close()
    assert process.wait(10) in (0, -signal.SIGPIPE, 128 + signal.SIGPIPE) and err == b""


class TestTerminal:
    COMMANDS = [["queue", "list"], ["queue", "show", "jobs"], ["queue", "jobs", "jobs"],
                ["status"], ["events"]]

    def shown(self, shell, *args, **options):
        with shell.terminal(*args, **options) as terminal:
            code, text = terminal.finish()
        assert code == 0, text
        return text

    @pytest.fixture
    def busy(self, absent_queue):
        """A queue with something of every colour."""
        queue = absent_queue.created(retry={"attempts": 5, "cooldown": "1h"})
        queue.push(1, 2, 3, 4)
        queue.client.fail(queue.claim_one(), error="x", final=True)
        queue.client.fail(queue.claim_one(), error="y")
        return queue

    def test_colours_are_for_terminals_only(self, shell, busy):
        assert any(ESCAPE in self.shown(shell, *args) for args in self.COMMANDS)
        for args in self.COMMANDS:
            assert ESCAPE not in self.shown(shell, *args, env={"NO_COLOR": "1"})
            assert ESCAPE not in self.shown(shell, *args, env={"TERM": "dumb"})
            assert ESCAPE not in shell.ok(*args).out

    def test_ids_are_short_on_a_terminal_and_whole_in_a_pipe(self, shell, queue):
        job_id = queue.push_one(1)
        text = self.shown(shell, "queue", "jobs", "jobs")
        assert job_id[:8] in text and job_id[:9] not in text
        assert job_id in shell.ok("queue", "jobs", "jobs").out

    def test_long_payloads_are_cut_to_the_width(self, shell, queue):
        queue.push_one("x" * 1000)
        for columns in (60, 100):
            text = self.shown(shell, "queue", "jobs", "jobs", columns=columns,
                              env={"NO_COLOR": "1"})
            assert all(len(line) <= columns for line in text.splitlines()), text
        assert "x" * 1000 in shell.ok("queue", "jobs", "jobs").out

    def test_columns_are_aligned_on_a_terminal(self, shell, queue):
        queue.sibling("a-much-longer-name").create()
        lines = self.shown(shell, "queue", "list", env={"NO_COLOR": "1"}).splitlines()
        assert len({line.index(word) for line, word in zip(lines, ("STATE", "running", "running"))
                    }) == 1

    @pytest.mark.parametrize("terminal", [True, False])
    def test_control_characters_of_others_never_reach_the_output(self, shell, queue, terminal):
        raw = b'{"jobs":[{"payload":"\xc2\x9b31m\x7f","headers":{"h":"v"}}]}'
        assert queue.client.request("POST", queue.path("/push"), raw).status == 200
        queue.push_one(NASTY, headers={NASTY: NASTY}, key=NASTY, priority=1)
        queue.client.fail(queue.claim_one(worker=NASTY), error=NASTY, final=True)
        dead, = queue.jobs(status="dead")
        for args in (["queue", "jobs", "jobs"], ["queue", "job", "jobs", dead["id"]], ["events"],
                     ["queue", "job", "jobs", queue.jobs(status="pending")[0]["id"]],
                     ["queue", "claim", "jobs"]):
            text = (self.shown(shell, *args, env={"NO_COLOR": "1"}) if terminal
                    else shell.ok(*args).out)
            for character in "\x1b\x07\u009b\x7f":
                assert character not in text, (args, text)

    def test_a_json_payload_stays_valid_json_on_one_line(self, shell, queue):
        body = b'{"jobs":[{"payload":{"a":\n\t[1,\r\n2],\n"b":"x\\ny"}}]}'
        assert queue.client.request("POST", queue.path("/push"), body).status == 200
        [row] = shell.ok("queue", "jobs", "jobs", "--no-header").rows()
        assert json.loads(row[-1]) == {"a": [1, 2], "b": "x\ny"}

    def test_one_thing_has_titled_sections_on_a_terminal(self, shell, busy):
        text = self.shown(shell, "queue", "show", "jobs", env={"NO_COLOR": "1"})
        first = text.splitlines()[0]
        assert first.startswith(f"jobs (namespace {busy.namespace}), running, created")
        assert "FIELD" not in text
