"""The commands that show failures: policies, dead jobs, errors, lanes."""

import json
import re

import pytest

from dead_jobs import bury
from reprise_cli import Cli

REFUSED, USAGE, NO_SERVER = 1, 2, 3
NASTY = "\x1b[31mred\x1b]0;title\x07\u009b31m\x7f\n\ttab"


class TestConfigFlags:
    def test_every_flag_of_failure_handling_reaches_the_queue(self, shell, absent_queue):
        shell.ok("queue", "create", "jobs", "--max-retries", "4", "--backoff-base", "2s",
                 "--backoff-factor", "3", "--backoff-max", "5m", "--backoff-jitter", "0.1",
                 "--retry-share", "0.5", "--retry-in-flight", "10", "--dead-letter-queue", "grave",
                 "--keep-dead", "7d", "--max-dead", "1000", "--keep-completed", "1h",
                 "--on-dead-webhook", "http://127.0.0.1:1/hook")
        config = absent_queue.show()["config"]
        assert config["retry"] == {"max_retries": 4, "backoff": {
            "base": "2s", "factor": 3, "max": "5m", "jitter": 0.1}}
        assert config["fetch"] == {"retry_share": 0.5, "retry_in_flight": 10}
        assert (config["dead_letter_queue"], config["keep_dead"], config["max_dead"]) == (
            "grave", "7d", 1000)
        assert (config["keep_completed"], config["on_dead_webhook"]) == (
            "1h", "http://127.0.0.1:1/hook")

    @pytest.mark.parametrize("flag, field", [("--retry-attempts", "attempts"),
                                             ("--max-retries", "max_retries")])
    def test_unlimited(self, shell, absent_queue, flag, field):
        shell.ok("queue", "create", "jobs", flag, "unlimited")
        assert absent_queue.show()["config"]["retry"][field] == "unlimited"

    def test_each_goes_back_to_its_default(self, shell, absent_queue):
        absent_queue.create(keep_dead="1h", max_dead=5, dead_letter_queue="grave",
                            fetch={"retry_share": 0.9, "retry_in_flight": 3})
        shell.ok("queue", "update", "jobs", "--keep-dead", "none", "--max-dead", "default",
                 "--dead-letter-queue", "none", "--retry-share", "default",
                 "--retry-in-flight", "none")
        config = absent_queue.show()["config"]
        assert config["fetch"] == {"retry_share": 0.2, "retry_in_flight": None}
        assert {config[name] for name in ("keep_dead", "max_dead", "dead_letter_queue")} == {None}

    @pytest.mark.parametrize("flags", [
        ["--retry-attempts", "3", "--max-retries", "2"],
        ["--retry-cooldown", "3s", "--backoff-base", "2s"], ["--max-retries", "many"],
        ["--backoff-factor", "fast"], ["--retry-share", "unlimited"], ["--keep-dead", "long"]])
    def test_what_cannot_be_right_is_wrong_usage(self, shell, absent_queue, flags):
        result = shell.run("queue", "create", "jobs", *flags)
        assert result.code == USAGE and flags[0] in result.err, repr(result)
        assert absent_queue.client.refused("GET", absent_queue.path())[0] == 404


class TestPolicy:
    def test_flags_alone_need_no_server(self):
        nowhere = Cli("http://127.0.0.1:1")
        header, *rows = nowhere.ok("queue", "policy", "--max-retries", "3").rows()
        assert header == ["ATTEMPT", "WAIT", "AFTER", "IF IT FAILS"]
        assert rows == [["1", "-", "0s", "retry"], ["2", "1s", "1s", "retry"],
                        ["3", "4s", "5s", "retry"], ["4", "16s", "21s", "dead"]]
        assert nowhere.run("queue", "policy", "orders").code == NO_SERVER

    def test_of_a_queue_and_what_if(self, shell, absent_queue):
        absent_queue.create(retry={"attempts": 3, "cooldown": "10s"})
        waits = [row[1] for row in shell.ok("queue", "policy", "jobs", "--no-header").rows()]
        assert waits == ["-", "10s", "10s"]
        changed = shell.ok("queue", "policy", "jobs", "--backoff-base", "2s", "--no-header").rows()
        assert [row[1] for row in changed] == ["-", "2s", "8s"]
        assert absent_queue.show()["config"]["retry"] == {"attempts": 3, "cooldown": "10s"}

    def test_jitter_is_a_range_and_no_end_is_a_line(self, shell):
        lines = shell.ok("queue", "policy", "--retry-attempts", "unlimited", "--backoff-base",
                         "10s", "--backoff-jitter", "0.2", "--limit", "2").out.splitlines()
        assert lines[1:] == ["1\t-\t0s\tretry", "2\t8s to 12s\t10s\tretry", "…"]

    def test_json(self, shell, absent_queue):
        absent_queue.create(retry={"max_retries": 1})
        told = shell.ok("queue", "policy", "jobs", "--json").json()
        assert told == {
            "queue": "jobs", "retry": absent_queue.show()["config"]["retry"], "attempts": 2,
            "schedule": [{"attempt": 1, "wait": 0, "wait_min": 0, "wait_max": 0, "after": 0,
                          "if_it_fails": "retry"},
                         {"attempt": 2, "wait": 1, "wait_min": 1, "wait_max": 1, "after": 1,
                          "if_it_fails": "dead"}], "complete": True}
        endless = shell.ok("queue", "policy", "--max-retries", "unlimited", "--json").json()
        assert (endless["queue"], endless["attempts"], endless["complete"]) == (None, None, False)

    def test_a_policy_that_cannot_be_is_wrong_usage(self, shell):
        result = shell.run("queue", "policy", "--backoff-factor", "0.5")
        assert result.code == USAGE and "factor" in result.err


class TestInspect:
    HEADER = ["ID", "TYPE", "ATTEMPTS", "LAST ERROR", "DIED AT"]

    def test_dead_jobs_the_latest_first(self, shell, queue):
        first, second = bury(queue, "one", "two")
        queue.push("alive")
        header, *rows = shell.ok("queue", "inspect", "jobs").rows()
        assert header == self.HEADER
        assert [row[0] for row in rows] == [second, first]
        assert [row[3] for row in rows] == ["two", "one"] and rows[0][2] == "1"
        assert rows[0][4] == queue.job(second)["ended_at"]

    def test_the_type_is_a_header_or_a_field_of_the_payload(self, shell, queue):
        queue.push({"type": "of-payload"})
        queue.push({"type": "hidden"}, headers={"type": "of-header"})
        queue.push({"type": {"no": "text"}})
        queue.push([1])
        for job in queue.claim(4):
            queue.client.fail(job, final=True)
        types = [row[1] for row in shell.ok("queue", "inspect", "jobs", "--no-header").rows()]
        assert sorted(types) == ["-", "-", "of-header", "of-payload"]

    def test_filters(self, shell, queue):
        ids = bury(queue, "timeout", headers={"t": "a"}) + bury(queue, "refused")
        queue.push("typed")
        queue.client.fail(queue.claim_one(), error="typed", error_type="Net", final=True)
        typed = queue.jobs(status="dead")[-1]["id"]

        def found(*flags):
            return [row[0] for row in
                    shell.ok("queue", "inspect", "jobs", "--no-header", *flags).rows()]
        assert found("--error", "time") == ids[:1]
        assert found("--error-type", "Net") == [typed]
        assert found("--header", "t=a") == ids[:1]
        assert found("--reason", "final") == [typed, *reversed(ids)]
        assert found("--older-than", "1h") == [] and len(found("--newer-than", "1h")) == 3
        group = shell.ok("queue", "errors", "jobs", "--json").json()["groups"][0]
        assert group["example"] in found("--fingerprint", group["fingerprint"])

    def test_limit_cursor_and_all(self, shell, queue):
        ids = list(reversed(bury(queue, *"abcde")))
        first = shell.ok("queue", "inspect", "jobs", "--limit", "2", "--no-header")
        assert [row[0] for row in first.rows()] == ids[:2]
        cursor = re.search(r"^more: --cursor (\S+)$", first.err, re.MULTILINE)[1]
        rest = shell.ok("queue", "inspect", "jobs", "--cursor", cursor, "--all", "--no-header")
        assert [row[0] for row in rest.rows()] == ids[2:] and rest.err == ""
        jobs = shell.ok("queue", "inspect", "jobs", "--json").json()
        assert jobs == {"jobs": queue.jobs(status="dead", order="newest"), "cursor": None}

    def test_one_is_the_whole_envelope(self, shell, queue):
        [job_id] = bury(queue, "boom")
        envelope = queue.job(job_id)["dead_letter"]
        laid_out = shell.ok("queue", "inspect", "jobs", job_id[:6].lower())
        assert laid_out.json() == envelope and laid_out.out.startswith('{\n  "event": {\n')
        line = shell.ok("queue", "inspect", "jobs", job_id, "--json").out
        assert json.loads(line) == envelope and line.count("\n") == 1

    def test_one_that_is_not_dead_is_refused_by_its_status(self, shell, queue):
        job_id = queue.push_one(1)
        result = shell.run("queue", "inspect", "jobs", job_id)
        assert result.code == REFUSED and result.out == ""
        assert f"{job_id[:8]} is pending" in result.err and "(wrong_status)" in result.err
        assert shell.run("queue", "inspect", "jobs", job_id, "--error", "x").code == USAGE

    def test_controls_of_others_never_reach_the_output(self, shell, queue, shown):
        [job_id] = bury(queue, NASTY, headers={"type": NASTY})
        for args in (["queue", "inspect", "jobs"], ["queue", "inspect", "jobs", job_id],
                     ["queue", "inspect", "jobs", job_id, "--json"], ["queue", "errors", "jobs"],
                     ["queue", "purge", "jobs", "--all", "--dry-run"]):
            for text in (shown(*args), shell.ok(*args).out):
                assert not set("\x1b\x07\u009b\x7f") & set(text), (args, text)


class TestErrors:
    def test_groups_the_largest_first(self, shell, queue):
        ids = bury(queue, "timeout after 12 ms", "refused", "timeout after 99 ms")
        header, *rows = shell.ok("queue", "errors", "jobs").rows()
        assert header == ["FINGERPRINT", "COUNT", "FIRST SEEN", "LAST SEEN", "EXAMPLE", "ERROR"]
        assert [row[1] for row in rows] == ["2", "1"]
        assert rows[0][4] in (ids[0], ids[2]) and rows[0][5].startswith("timeout after ")
        assert all(row[2].endswith(" ago") and row[3].endswith(" ago") for row in rows)

    def test_by_status_and_limit(self, shell, absent_queue):
        queue = absent_queue.created(retry={"attempts": 5, "cooldown": "1h"})
        bury(queue, "dead of a", "dead of b")
        queue.push(1)
        queue.client.fail(queue.claim_one(), error="cooling")
        errors = ("queue", "errors", "jobs", "--no-header")
        assert [row[5] for row in shell.ok(*errors, "--status", "failed").rows()] == ["cooling"]
        assert len(shell.ok(*errors, "--status", "dead").rows()) == 2
        cut = shell.ok(*errors, "--limit", "1")
        assert len(cut.rows()) == 1 and "2 jobs" in cut.err

    def test_json_is_the_reply(self, shell, queue):
        bury(queue, "x")
        reply = queue.client.request("GET", queue.path("/errors"))
        assert shell.ok("queue", "errors", "jobs", "--json").out == (
            reply.body.decode().rstrip("\n") + "\n")


class TestJobs:
    def test_fail_takes_an_error_type(self, shell, queue):
        job_id = queue.push_one(1)
        token = queue.claim_one()["token"]
        shell.ok("queue", "fail", token, "--error", "timeout", "--error-type", "Net")
        fields = shell.ok("queue", "job", "jobs", job_id).fields()
        assert (fields["last_error"], fields["last_error_type"]) == ("timeout", "Net")
        assert (fields["reason"], fields["generation"]) == ("max_attempts", "1")

    def test_completed_jobs_can_be_listed(self, shell, absent_queue):
        queue = absent_queue.created(keep_completed="1h")
        job_id = queue.push_one(1)
        queue.client.ack(queue.claim_one())
        listed = shell.ok("queue", "jobs", "jobs", "--status", "completed", "--no-header").rows()
        assert [row[:2] for row in listed] == [[job_id, "completed"]]
        assert shell.ok("queue", "jobs", "jobs", "--no-header").out == ""

    def test_filters(self, shell, queue):
        ids = bury(queue, "timeout", "refused")

        def found(*flags):
            listed = shell.ok("queue", "jobs", "jobs", "--no-header", *flags)
            return [row[0] for row in listed.rows()]
        assert found("--reason", "final", "--error", "time") == ids[:1]
        assert found("--newer-than", "1h") == ids and found("--error-type", "Net") == []


def test_queue_show_tells_the_lanes(shell, absent_queue, shown):
    queue = absent_queue.created(retry={"attempts": 5, "cooldown": "0s"})
    queue.push(1, 2, 3)
    queue.client.fail(queue.claim_one())
    fields = shell.ok("queue", "show", "jobs").fields()
    assert (fields["stats.lanes.fresh"], fields["stats.lanes.retry"]) == ("2", "1")
    assert fields["stats.lanes.retries_by_failures.1"] == "1"
    assert fields["config.fetch.retry_share"] == "0.2"
    assert re.search(r"retries by failures +1: 1\n", shown("queue", "show", "jobs"))
