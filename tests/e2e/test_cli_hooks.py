"""The commands for hooks: their files, trying them, printing them, and the values they look up."""

import hashlib
import json
import os

import pytest

from dead_jobs import bury
from reprise_cli import Cli

REFUSED, USAGE, NO_SERVER = 1, 2, 3
NASTY = "\x1b[31mred\x1b]0;title\x07\u009b31m\x7f"

FAILURE = """\
-- é decides what becomes of a failure
function on_failure(msg)
  if msg.error == "permanent" then return { action = "dlq", reason = "permanent" } end
  if msg.error == "broken" then error("no idea") end
  if msg.error == "chatty" then log("about " .. msg.id) end
  return { action = "retry", delay_ms = 1000 * msg.failures }
end
"""
ENQUEUE = """\
function on_enqueue(msg)
  if msg.headers.bad then return { reject = "bad header" } end
  return { fairness_key = msg.headers.tenant or "nobody", weight = 7, throttle_keys = { "a", "b" } }
end
"""


def version(source):
    return hashlib.sha256(source.encode()).hexdigest()[:12]


@pytest.fixture
def failure_file(tmp_path):
    path = tmp_path / "failure.lua"
    path.write_text(FAILURE)
    return path


@pytest.fixture
def enqueue_file(tmp_path):
    path = tmp_path / "enqueue.lua"
    path.write_text(ENQUEUE)
    return path


@pytest.fixture
def sample(tmp_path):
    """Writes a file of samples: sample({"error": "x"}) gives its path."""
    def write(content, name="sample.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path
    return write


@pytest.fixture
def hooked(absent_queue):
    """The queue `jobs` with both hooks."""
    return absent_queue.created(on_failure=FAILURE, on_enqueue=ENQUEUE)


class TestConfigFlags:
    def test_every_flag_reaches_the_queue(self, shell, absent_queue, failure_file, enqueue_file):
        shell.ok("queue", "create", "jobs", "--on-failure-file", failure_file, "--on-enqueue-file",
                 enqueue_file, "--on-hook-error", "dlq", "--hook-timeout-ms", "50",
                 "--hook-memory", "2MiB")
        config = absent_queue.show()["config"]
        assert (config["on_failure"], config["on_enqueue"]) == (FAILURE, ENQUEUE)
        assert (config["on_hook_error"], config["hook_timeout_ms"],
                config["hook_memory_bytes"]) == ("dlq", 50, 2 << 20)

    @pytest.mark.parametrize("word", ["none", "default"])
    def test_each_goes_back_to_its_default(self, shell, absent_queue, word):
        absent_queue.create(on_failure=FAILURE, on_enqueue=ENQUEUE, on_hook_error="policy",
                            hook_timeout_ms=99, hook_memory_bytes=1 << 20)
        shell.ok("queue", "update", "jobs", "--on-failure-file", word)
        config = absent_queue.show()["config"]
        assert (config["on_failure"], config["on_enqueue"]) == (None, ENQUEUE)
        shell.ok("queue", "update", "jobs", "--on-enqueue-file", word, "--on-hook-error", word,
                 "--hook-timeout-ms", word, "--hook-memory", word)
        config = absent_queue.show()["config"]
        assert (config["on_enqueue"], config["on_hook_error"]) == (None, "retry")
        assert (config["hook_timeout_ms"], config["hook_memory_bytes"]) == (None, None)

    def test_standard_input(self, shell, absent_queue):
        shell.ok("queue", "create", "jobs", "--on-failure-file", "-", stdin=FAILURE)
        assert absent_queue.show()["config"]["on_failure"] == FAILURE

    def test_a_file_that_is_named_like_a_reset_has_a_path(self, shell, absent_queue, tmp_path):
        (tmp_path / "none").write_text(FAILURE)
        shell.ok("queue", "create", "jobs", "--on-failure-file", "./none", cwd=tmp_path)
        assert absent_queue.show()["config"]["on_failure"] == FAILURE

    @pytest.mark.parametrize("content, problem", [
        (None, "No such file"), (b"caf\xe9", "not UTF-8"), (b"a\0b", "not UTF-8"), (b"", "empty")])
    @pytest.mark.parametrize("flag", ["--on-failure-file", "--on-enqueue-file"])
    def test_a_file_that_cannot_be_a_script_is_wrong_usage(self, shell, queue, tmp_path, content,
                                                           problem, flag):
        path = tmp_path / "script.lua"
        if content is not None:
            path.write_bytes(content)
        result = shell.run("queue", "update", "jobs", flag, path)
        assert result.code == USAGE and result.out == "", repr(result)
        assert flag in result.err and str(path) in result.err and problem in result.err

    @pytest.mark.parametrize("flags", [
        ["--on-failure-file", "-", "--on-enqueue-file", "-"], ["--on-failure-file", "/"],
        ["--on-hook-error", "panic"], ["--hook-timeout-ms", "10ms"], ["--hook-memory", "much"]])
    def test_what_cannot_be_right_is_wrong_usage(self, shell, absent_queue, flags):
        assert shell.run("queue", "create", "jobs", *flags).code == USAGE
        assert absent_queue.client.refused("GET", absent_queue.path())[0] == 404

    def test_a_script_that_does_not_compile_is_refused_with_its_line(self, shell, queue, tmp_path):
        path = tmp_path / "wrong.lua"
        path.write_text("function on_failure(msg)\n  return {\nend\n")
        result = shell.run("queue", "update", "jobs", "--on-failure-file", path)
        assert result.code == REFUSED and "(invalid_script)" in result.err, repr(result)
        assert "on_failure" in result.err and "3" in result.err
        assert queue.show()["config"]["on_failure"] is None

    def test_a_script_that_is_too_large_is_refused_by_the_server(self, shell, queue, tmp_path):
        path = tmp_path / "large.lua"
        path.write_text(FAILURE + "--" + "x" * 65536)
        result = shell.run("queue", "update", "jobs", "--on-failure-file", path)
        assert result.code == REFUSED and "(script_too_large)" in result.err


class TestShownQueue:
    def test_piped_fields_are_as_deep_as_the_reply_and_hold_no_source(self, shell, hooked):
        fields = shell.ok("queue", "show", "jobs").fields()
        assert fields["config.on_failure"] == version(FAILURE)
        assert fields["config.on_enqueue"] == version(ENQUEUE)
        for hook, told in hooked.show()["hooks"].items():
            assert fields[f"hooks.{hook}.version"] == told["version"]
            assert fields[f"hooks.{hook}.breaker"] == "closed"
            for fault in told["failed"]:
                assert fields[f"hooks.{hook}.failed.{fault}"] == "0"
        assert "function" not in str(fields)

    def test_a_queue_without_hooks_has_no_such_fields(self, shell, queue):
        fields = shell.ok("queue", "show", "jobs").fields()
        assert fields["config.on_failure"] == "-"
        assert not [name for name in fields if name.startswith("hooks")]

    def test_people_see_versions_and_the_state_of_the_hooks(self, shown, hooked):
        hooked.push("x")
        hooked.client.fail(hooked.claim_one(), error="broken")
        text = shown("queue", "show", "jobs")
        assert f"{version(FAILURE)} (7 lines)" in text and "function" not in text
        assert "Hook on_failure" in text and "Hook on_enqueue" in text
        assert "closed" in text and "error 1" in text and "no idea" in text

    def test_policy_names_the_hook_that_decides_before_it(self, shell, hooked):
        result = shell.ok("queue", "policy", "jobs")
        assert version(FAILURE) in result.err and "hook show jobs" in result.err
        assert result.rows()[0][0] == "ATTEMPT"
        told = shell.ok("queue", "policy", "jobs", "--json")
        assert told.json()["on_failure"] == version(FAILURE) and told.err == ""
        hooked.patch(on_failure=None)
        result = shell.ok("queue", "policy", "jobs")
        assert result.err == ""
        assert "on_failure" not in shell.ok("queue", "policy", "jobs", "--json").json()

    def test_a_job_shows_what_on_enqueue_has_given_it(self, shell, shown, hooked):
        job_id = hooked.push_one(1, headers={"tenant": "acme"})
        fields = shell.ok("queue", "job", "jobs", job_id).fields()
        assert (fields["fairness_key"], fields["weight"]) == ("acme", "7")
        assert (fields["throttle_keys.0"], fields["throttle_keys.1"]) == ("a", "b")
        text = shown("queue", "job", "jobs", job_id)
        assert "acme" in text and "a, b" in text

    def test_people_do_not_see_attributes_that_are_the_defaults(self, shell, shown, queue):
        job_id = queue.push_one(1)
        text = shown("queue", "job", "jobs", job_id)
        assert "fairness" not in text and "weight" not in text and "throttle" not in text
        assert shell.ok("queue", "job", "jobs", job_id).fields()["fairness_key"] == "default"

    def test_a_push_that_the_hook_refuses_is_exit_1(self, shell, hooked):
        result = shell.run("queue", "push", "jobs", "1", "--header", "bad=yes")
        assert result.code == REFUSED and "bad header (hook_rejected)" in result.err


class TestHookTest:
    def test_on_failure_from_a_file(self, shell, queue, failure_file, sample):
        samples = sample([{"error": "permanent"}, {"error": "x", "failures": 3},
                          {"id": "7ZK3M9QAX2B4C", "error": "chatty"}])
        fields = shell.ok("hook", "test", "jobs", "--on-failure-file", failure_file, "--sample",
                          samples).fields()
        assert (fields["hook"], fields["version"]) == ("on_failure", version(FAILURE))
        assert (fields["results.0.action"], fields["results.0.reason"]) == ("dlq", "permanent")
        assert (fields["results.1.action"], fields["results.1.delay_ms"]) == ("retry", "3000")
        assert fields["results.2.log.0"] == "about 7ZK3M9QAX2B4C"

    def test_on_enqueue_from_a_file(self, shell, queue, enqueue_file, sample):
        samples = sample('{"headers":{"tenant":"acme"}}\n\n{"headers":{"bad":"yes"}}\n')
        told = shell.ok("hook", "test", "jobs", "--on-enqueue-file", enqueue_file, "--sample",
                        samples, "--json").json()
        first, second = told["results"]
        assert (first["fairness_key"], first["weight"], first["throttle_keys"]) == (
            "acme", 7, ["a", "b"])
        assert second["reject"] == "bad header"

    def test_people_read_a_table(self, shown, queue, failure_file, enqueue_file, sample):
        text = shown("hook", "test", "jobs", "--on-failure-file", failure_file, "--sample",
                     sample([{"error": "x"}, {"error": "permanent"}, {"error": "chatty"},
                             {"error": "broken"}]), code=REFUSED)
        lines = [line.split(None, 2) for line in text.splitlines()]
        assert lines[0] == ["INDEX", "DECISION", "DETAIL"]
        assert lines[1:3] == [["0", "retry", "after 1s"], ["1", "dlq", "permanent"]]
        assert lines[3][:2] == ["2", "retry"] and lines[4][:2] == ["2", "log"]
        assert lines[5][:2] == ["3", "hook_error"] and "no idea" in lines[5][2]
        text = shown("hook", "test", "jobs", "--on-enqueue-file", enqueue_file, "--sample",
                     sample([{}, {"headers": {"bad": "yes"}}]))
        lines = [line.split(None, 2) for line in text.splitlines()[1:]]
        assert lines == [["0", "accept", "fairness_key=nobody weight=7 throttle_keys=a,b"],
                         ["1", "reject", "bad header"]]

    def test_one_that_failed_is_exit_1_in_every_form(self, shell, queue, failure_file, sample):
        args = ["hook", "test", "jobs", "--on-failure-file", failure_file, "--sample",
                sample([{"error": "broken"}, {}])]
        piped = shell.run(*args)
        assert piped.code == REFUSED and piped.err == ""
        assert piped.fields()["results.0.status"] == "hook_error"
        told = shell.run(*args, "--json")
        assert told.code == REFUSED
        first, second = told.json()["results"]
        assert (first["fault"], second["status"]) == ("error", "decided")

    def test_the_queues_own_on_failure_comes_first(self, shell, hooked, sample):
        path = sample({})
        def tried(*flags):
            return shell.ok("hook", "test", "jobs", *flags, "--sample", path).fields()["hook"]
        assert tried() == "on_failure" and tried("--on-failure") == "on_failure"
        assert tried("--on-enqueue") == "on_enqueue"
        hooked.patch(on_failure=None)
        assert tried() == "on_enqueue"

    def test_a_queue_without_a_hook_has_none_to_test(self, shell, queue, sample):
        for flags in ([], ["--on-failure"], ["--on-enqueue"]):
            result = shell.run("hook", "test", "jobs", *flags, "--sample", sample({}))
            assert result.code == REFUSED and "(invalid_request)" in result.err, repr(result)

    def test_samples_from_several_files_and_standard_input(self, shell, queue, failure_file,
                                                           sample):
        one, two = sample({"failures": 1}, "1.json"), sample([{"failures": 2}], "2.json")
        fields = shell.ok("hook", "test", "jobs", "--on-failure-file", failure_file, "--sample",
                          one, two, "--sample", "-", stdin='{"failures":3}\n{"failures":4}'
                          ).fields()
        assert [fields[f"results.{i}.delay_ms"] for i in range(4)] == [
            "1000", "2000", "3000", "4000"]
        fields = shell.ok("hook", "test", "jobs", "--on-failure-file", "-", "--sample", one,
                          stdin=FAILURE).fields()
        assert fields["version"] == version(FAILURE)

    def test_what_other_commands_print_is_a_sample(self, shell, queue, failure_file):
        [dead] = bury(queue, "permanent", headers={"a": "b"}, priority=7)
        queue.push({"deep": [1.0, {"x": None}]})

        def tried(*source):
            printed = shell.ok("queue", *source, "--json").out
            return shell.ok("hook", "test", "jobs", "--on-failure-file", failure_file, "--sample",
                            "-", stdin=printed).fields()
        assert tried("job", "jobs", dead)["results.0.action"] == "dlq"
        fields = tried("jobs", "jobs")
        assert fields["results.0.action"] == "dlq" and fields["results.1.delay_ms"] == "1000"
        assert tried("claim", "jobs")["results.0.delay_ms"] == "1000"

    def test_what_other_commands_print_is_a_sample_of_on_enqueue_too(self, shell, hooked,
                                                                    enqueue_file):
        job_id = hooked.push_one(1, headers={"tenant": "acme"})
        printed = shell.ok("queue", "job", "jobs", job_id, "--json").out
        fields = shell.ok("hook", "test", "jobs", "--on-enqueue-file", enqueue_file, "--sample",
                          "-", stdin=printed).fields()
        assert fields["results.0.fairness_key"] == "acme"

    def test_a_field_that_nobody_knows_is_named(self, shell, queue, failure_file, sample):
        result = shell.run("hook", "test", "jobs", "--on-failure-file", failure_file, "--sample",
                           sample({"eror": "x"}))
        assert result.code == REFUSED and "(unknown_field)" in result.err and "eror" in result.err

    @pytest.mark.parametrize("content", ["", "[]", "{", '{"a":1}\n{"a" 1}', "[1]", "plain text"])
    def test_what_is_no_sample_is_wrong_usage(self, shell, queue, failure_file, sample, content):
        path = sample(content)
        result = shell.run("hook", "test", "jobs", "--on-failure-file", failure_file, "--sample",
                           path)
        assert result.code == USAGE and result.out == ""
        assert "--sample" in result.err and str(path) in result.err

    @pytest.mark.parametrize("flags", [
        [], ["--sample", "/absent"], ["--on-failure-file", "-", "--sample", "-"],
        ["--sample", "-", "-"], ["--on-failure-file", "/absent", "--sample", "-"],
        ["--on-failure-file", "-", "--on-enqueue-file", "x", "--sample", "y"],
        ["--on-failure", "--on-enqueue", "--sample", "-"],
        ["--on-failure-file", "x", "--on-failure", "--sample", "-"]])
    def test_wrong_usage(self, shell, hooked, flags):
        result = shell.run("hook", "test", "jobs", *flags)
        assert result.code == USAGE and result.out == "", repr(result)

    def test_a_script_that_cannot_be_used_is_refused(self, shell, queue, tmp_path, sample):
        path = tmp_path / "wrong.lua"
        path.write_text("return 1")
        result = shell.run("hook", "test", "jobs", "--on-failure-file", path, "--sample",
                           sample({}))
        assert result.code == REFUSED and "(invalid_script)" in result.err

    def test_an_unknown_queue_and_no_server(self, shell, failure_file, sample):
        args = ["--on-failure-file", failure_file, "--sample", sample({})]
        result = shell.run("hook", "test", "absent", *args)
        assert result.code == REFUSED and "(queue_not_found)" in result.err
        assert Cli("http://127.0.0.1:1").run("hook", "test", "jobs", *args).code == NO_SERVER

    def test_what_a_script_says_cannot_drive_a_terminal(self, shell, shown, queue, tmp_path,
                                                        sample):
        path = tmp_path / "nasty.lua"
        text = "".join(f"\\{byte}" for byte in NASTY.encode())
        path.write_text(f'function on_failure(msg)\n  log("{text}")\n'
                        f'  return {{ action = "dlq", reason = "{text}" }}\nend\n')
        args = ["hook", "test", "jobs", "--on-failure-file", path, "--sample", sample({})]
        for printed in (shown(*args), shell.ok(*args).out):
            assert not set("\x1b\x07\u009b\x7f") & set(printed), printed


class TestReplay:
    @pytest.fixture
    def dead(self, queue):
        return bury(queue, "permanent", "x", "permanent", headers={"tenant": "acme"})

    def test_piped_fields_and_json(self, shell, queue, dead, failure_file):
        args = ["hook", "replay", "jobs", "--on-failure-file", failure_file]
        fields = shell.ok(*args).fields()
        assert (fields["examined"], fields["unreadable"], fields["truncated"]) == (
            "3", "0", "false")
        assert (fields["summary.retry"], fields["summary.dlq"], fields["summary.hook_error"]) == (
            "1", "2", "0")
        assert [fields[f"decisions.{i}.id"] for i in range(3)] == dead
        assert fields["decisions.0.was.reason"] == "final"
        assert (fields["decisions.1.action"], fields["decisions.1.delay_ms"]) == ("retry", "1000")
        told = shell.ok(*args, "--json").json()
        assert [each["action"] for each in told["decisions"]] == ["dlq", "retry", "dlq"]
        assert queue.counts() == {"dead": 3}

    def test_verbose_is_a_line_for_each_job(self, shell, queue, dead, failure_file):
        header, *rows = shell.ok("hook", "replay", "jobs", "--on-failure-file", failure_file,
                                 "--verbose").rows()
        assert header == ["ID", "WAS", "DECISION", "DETAIL"]
        assert rows == [[dead[0], "dead: final", "dlq", "permanent"],
                        [dead[1], "dead: final", "retry", "after 1s"],
                        [dead[2], "dead: final", "dlq", "permanent"]]
        assert shell.ok("hook", "replay", "jobs", "--on-failure-file", failure_file, "--verbose",
                        "--no-header").rows() == rows

    def test_people_see_what_would_have_become_of_how_many(self, shown, queue, dead, failure_file):
        text = shown("hook", "replay", "jobs", "--on-failure-file", failure_file)
        title, header, *rows = text.splitlines()
        assert title == f"on_failure {version(FAILURE)} would have decided for 3 jobs:"
        assert header.split() == ["DECISION", "JOBS", "EXAMPLE", "DETAIL"]
        assert [row.split(None, 3) for row in rows] == [
            ["retry", "1", dead[1][:8], "after 1s"], ["dlq", "2", dead[0][:8], "permanent"]]
        text = shown("hook", "replay", "jobs", "--on-failure-file", failure_file, "--verbose")
        assert all(job_id[:8] in text for job_id in dead)

    def test_the_queues_own_script(self, shell, queue, dead):
        result = shell.run("hook", "replay", "jobs")
        assert result.code == REFUSED and "(invalid_request)" in result.err
        queue.patch(on_failure=FAILURE)
        assert shell.ok("hook", "replay", "jobs").fields()["version"] == version(FAILURE)

    def test_filter_status_and_limit(self, shell, queue, dead, failure_file):
        queue.patch(retry={"attempts": 9, "cooldown": "1h"})
        queue.push("cooling")
        queue.client.fail(queue.claim_one(), error="x")
        queue.push("other", headers={"tenant": "other"})
        queue.client.fail(queue.claim_one(), error="x", final=True)

        def replayed(*flags):
            rows = shell.run("hook", "replay", "jobs", "--on-failure-file", failure_file,
                             "--verbose", "--no-header", *flags).rows()
            return [row[0] for row in rows]
        assert replayed("--error", "perm") == [dead[0], dead[2]]
        assert replayed("--header", "tenant=acme") == dead
        assert replayed("--reason", "expired") == [] and replayed("--older-than", "1h") == []
        [cooling] = replayed("--status", "failed")
        assert queue.status_of(cooling) == "failed"
        limited = shell.ok("hook", "replay", "jobs", "--on-failure-file", failure_file, "--limit",
                           "2")
        assert limited.fields()["truncated"] == "true" and "--limit" in limited.err

    def test_one_that_failed_is_exit_1(self, shell, queue, failure_file):
        bury(queue, "broken", "x")
        args = ["hook", "replay", "jobs", "--on-failure-file", failure_file]
        result = shell.run(*args)
        assert result.code == REFUSED and result.fields()["summary.hook_error"] == "1"
        assert shell.run(*args, "--json").code == REFUSED

    def test_no_job_is_no_error(self, shell, queue, failure_file):
        result = shell.ok("hook", "replay", "jobs", "--on-failure-file", failure_file)
        assert result.fields()["examined"] == "0" and result.err

    @pytest.mark.parametrize("flags", [["--limit", "0"], ["--limit", "10001"],
                                       ["--status", "active"], ["--on-failure-file", "/absent"],
                                       ["--on-enqueue-file", "x"]])
    def test_wrong_usage(self, shell, hooked, flags):
        assert shell.run("hook", "replay", "jobs", *flags).code == USAGE


class TestHookShow:
    def test_piped_it_is_the_source_byte_for_byte(self, shell, hooked):
        assert shell.ok("hook", "show", "jobs").out == FAILURE
        assert shell.ok("hook", "show", "jobs", "--on-failure").out == FAILURE
        assert shell.ok("hook", "show", "jobs", "--on-enqueue").out == ENQUEUE
        source = FAILURE.rstrip("\n") + "\r\n-- \t" + NASTY
        hooked.patch(on_failure=source)
        result = shell.ok("hook", "show", "jobs", "--json").json()
        assert result == {"hook": "on_failure", "version": version(source), "source": source}
        assert shell.ok("hook", "show", "jobs").out == source

    def test_what_is_printed_can_be_given_back(self, shell, hooked):
        printed = shell.ok("hook", "show", "jobs").out
        shell.ok("queue", "update", "jobs", "--on-failure-file", "-", stdin=printed)
        assert hooked.show()["hooks"]["on_failure"]["version"] == version(FAILURE)

    def test_on_a_terminal_the_version_stands_first_and_nothing_is_raw(self, shown, hooked):
        hooked.patch(on_failure=FAILURE + "\t-- " + NASTY)
        text = shown("hook", "show", "jobs")
        first, *rest = text.splitlines()
        assert first == f"-- on_failure {version(FAILURE + chr(9) + '-- ' + NASTY)}"
        assert rest[:7] == FAILURE.splitlines() and "\\u001b[31m" in rest[-1]
        assert not set("\x1b\x07\u009b\x7f") & set(text)

    def test_the_only_one_needs_no_flag(self, shell, absent_queue):
        absent_queue.create(on_enqueue=ENQUEUE)
        assert shell.ok("hook", "show", "jobs", "--json").json()["hook"] == "on_enqueue"

    def test_none_is_exit_1(self, shell, queue):
        result = shell.run("hook", "show", "jobs")
        assert result.code == REFUSED and "'jobs' has no hook" in result.err and result.out == ""
        result = shell.run("hook", "show", "jobs", "--on-enqueue", "--json")
        assert result.code == REFUSED and "on_enqueue" in json.loads(
            result.err)["error"]["message"]
        absent = shell.run("hook", "show", "absent")
        assert absent.code == REFUSED and "(queue_not_found)" in absent.err


class TestRuntimeConfig:
    def test_set_get_list_unset(self, shell, api, namespace):
        assert shell.ok("config", "set", "card.retry_ms", "5000").out == "set card.retry_ms\n"
        shell.ok("config", "set", "a", "x")
        assert shell.ok("config", "get", "card.retry_ms").out == "5000\n"
        header, *rows = shell.ok("config", "list").rows()
        assert header == ["KEY", "VALUE", "UPDATED"]
        assert [row[:2] for row in rows] == [["a", "x"], ["card.retry_ms", "5000"]]
        assert shell.ok("config", "list", "--no-header").rows() == rows
        assert api.get(f"/v1/config/a?namespace={namespace}")["value"] == "x"
        assert shell.ok("config", "unset", "a").out == "unset a\n"
        assert [row[0] for row in shell.ok("config", "list", "--no-header").rows()] == [
            "card.retry_ms"]

    def test_json_is_the_reply_of_the_api(self, shell, api, namespace):
        put = shell.ok("config", "set", "k", "v", "--json").json()
        assert (put["key"], put["value"], put["namespace"]) == ("k", "v", namespace)
        assert shell.ok("config", "get", "k", "--json").json() == put
        listed = api.request("GET", f"/v1/config?namespace={namespace}").body.decode()
        assert shell.ok("config", "list", "--json").out == listed.rstrip("\n") + "\n"
        gone = shell.ok("config", "unset", "k", "--json").json()
        assert gone == {"key": "k", "namespace": namespace, "deleted": True}

    def test_a_key_that_is_not_set_is_exit_1(self, shell):
        for verb in ("get", "unset"):
            result = shell.run("config", verb, "absent")
            assert result.code == REFUSED and "(config_not_found)" in result.err
            assert result.out == ""
        told = shell.run("config", "get", "absent", "--json")
        assert json.loads(told.err)["error"]["code"] == "config_not_found"

    @pytest.mark.parametrize("given, kept", [
        ("one\n", "one"), ("one\n\n", "one\n"), ("no end", "no end"), ("\n", ""), ("", ""),
        ("two\nlines\n", "two\nlines"), ("é\t", "é\t")])
    def test_a_value_from_standard_input(self, shell, given, kept):
        shell.ok("config", "set", "k", "-", stdin=given)
        assert shell.ok("config", "get", "k").out == kept + "\n"
        assert shell.ok("config", "get", "k", "--json").json()["value"] == kept

    def test_values_that_look_like_flags_and_empty_ones(self, shell):
        shell.ok("config", "set", "k", "--", "-x")
        assert shell.ok("config", "get", "k").out == "-x\n"
        shell.ok("config", "set", "k", "")
        assert shell.ok("config", "get", "k").out == "\n"
        assert shell.ok("config", "list", "--no-header").rows()[0][:2] == ["k", "-"]

    def test_a_terminal_is_not_driven_by_a_value(self, shell, shown):
        shell.ok("config", "set", "k", NASTY)
        for text in (shown("config", "get", "k"), shown("config", "list")):
            assert not set("\x1b\x07\u009b\x7f") & set(text), text
        assert shell.ok("config", "get", "k").out == NASTY + "\n"

    def test_namespaces_are_apart(self, shell, cli, namespace):
        shell.ok("config", "set", "k", "here")
        other = cli.run("config", "get", "k", "-n", namespace + "-other")
        assert other.code == REFUSED

    def test_what_the_server_refuses_has_its_code(self, shell):
        assert "(invalid_name)" in shell.run("config", "set", ".bad", "v").err
        assert "(value_too_large)" in shell.run("config", "set", "k", "x" * 4097).err
        shell.ok("config", "set", "k", "x" * 4096)

    def test_bytes_that_are_no_text_are_wrong_usage(self, shell):
        assert shell.run("config", "set", "k", "-", stdin=b"caf\xe9").code == USAGE
        assert shell.run("config", "set", "k", os.fsdecode(b"caf\xe9")).code == USAGE
        assert shell.run("config", "get", "k").code == REFUSED

    @pytest.mark.parametrize("args", [["set", "k"], ["set", "", "v"], ["get"], ["unset"],
                                      ["get", ""], ["list", "k"], []])
    def test_wrong_usage(self, cli, args):
        assert cli.run("config", *args).code == USAGE

    def test_a_hook_sees_it(self, shell, queue, tmp_path, sample):
        path = tmp_path / "hook.lua"
        path.write_text('function on_failure() return { delay_ms = '
                        'tonumber(config.get("wait")) or 1 } end')
        args = ["hook", "test", "jobs", "--on-failure-file", path, "--sample", sample({})]
        assert shell.ok(*args).fields()["results.0.delay_ms"] == "1"
        shell.ok("config", "set", "wait", "5000")
        assert shell.ok(*args).fields()["results.0.delay_ms"] == "5000"
