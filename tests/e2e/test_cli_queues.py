"""The commands for queues, and what all commands have in common."""

import json
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import cli_page
from reprise_cli import Cli
from reprise_server import binary

REFUSED, USAGE, NO_SERVER = 1, 2, 3


def paths(value, path=""):
    """The path of every plain value: "config.retry.attempts"."""
    if isinstance(value, list) and value:
        value = {str(index): member for index, member in enumerate(value)}
    if not isinstance(value, dict):
        return [path]
    return [each for name, member in value.items()
            for each in paths(member, f"{path}.{name}" if path else name)]


class TestCreateAndUpdate:
    FLAGS = ["--lease", "1m", "--retry-attempts", "3", "--retry-cooldown", "10s", "--ttl", "2h",
             "--max-jobs", "100", "--max-bytes", "64KiB", "--key-window", "1h"]

    def test_every_config_flag_reaches_the_queue(self, shell, absent_queue):
        assert shell.ok("queue", "create", "jobs", *self.FLAGS).out == "created queue jobs\n"
        config = absent_queue.show()["config"]
        expected = {"lease": "1m", "retry": {"attempts": 3, "cooldown": "10s"}, "ttl": "2h",
                    "max_jobs": 100, "max_bytes": 65536, "key_window": "1h"}
        assert {name: config[name] for name in expected} == expected

    def test_without_flags_it_takes_the_defaults(self, shell, absent_queue):
        shell.ok("queue", "create", "jobs")
        assert absent_queue.show()["config"]["lease"] == "30s"

    def test_an_existing_queue_is_refused_and_left_alone(self, shell, queue):
        result = shell.run("queue", "create", "jobs", "--lease", "1m")
        assert result.code == REFUSED and "(queue_exists)" in result.err
        assert queue.show()["config"]["lease"] == "30s"

    def test_replace_may_be_run_any_number_of_times(self, shell, absent_queue):
        create = ("queue", "create", "jobs", "--replace", "--lease", "1m")
        assert shell.ok(*create).out == "created queue jobs\n"
        assert shell.ok(*create).out == "replaced config of queue jobs\n"
        shell.ok("queue", "create", "jobs", "--replace", "--ttl", "1h")
        config = absent_queue.show()["config"]
        assert (config["lease"], config["ttl"]) == ("30s", "1h")

    def test_update_changes_only_what_it_names(self, shell, absent_queue):
        shell.ok("queue", "create", "jobs", *self.FLAGS)
        assert shell.ok("queue", "update", "jobs", "--lease", "2m", "--ttl", "none",
                        "--max-jobs", "default").out == "updated queue jobs\n"
        config = absent_queue.show()["config"]
        assert (config["lease"], config["ttl"], config["max_jobs"]) == ("2m", None, None)
        assert config["retry"] == {"attempts": 3, "cooldown": "10s"}

    def test_one_half_of_the_retry_policy_may_be_changed_alone(self, shell, absent_queue):
        shell.ok("queue", "create", "jobs", *self.FLAGS)
        shell.ok("queue", "update", "jobs", "--retry-attempts", "7")
        assert absent_queue.show()["config"]["retry"] == {"attempts": 7, "cooldown": "10s"}

    def test_update_needs_something_to_change(self, shell, queue):
        assert shell.run("queue", "update", "jobs").code == USAGE

    def test_json_is_the_queue(self, shell, absent_queue):
        created = shell.ok("queue", "create", "jobs", "--json").json()
        assert created == absent_queue.show()
        assert shell.ok("queue", "update", "jobs", "--lease", "9s", "--json"
                        ).json()["config"]["lease"] == "9s"

    @pytest.mark.parametrize("flags", [["--lease", "soon"], ["--max-jobs", "many"],
                                       ["--max-bytes", "64 megs"], ["--retry-attempts", "-1"],
                                       ["--lees", "1s"], ["--lease"]])
    def test_a_value_that_cannot_be_right_is_wrong_usage(self, shell, absent_queue, flags):
        result = shell.run("queue", "create", "jobs", *flags)
        assert result.code == USAGE and result.err.startswith("reprise: ") and result.out == ""
        assert absent_queue.client.refused("GET", absent_queue.path())[0] == 404

    def test_what_the_server_refuses_is_told_with_its_code(self, shell, absent_queue):
        result = shell.run("queue", "create", "jobs", "--lease", "50ms")
        assert result.code == REFUSED and "(invalid_field)" in result.err
        assert shell.run("queue", "create", ".bad").err.rstrip().endswith("(invalid_name)")


class TestListAndShow:
    HEADER = ["QUEUE", "STATE", "PENDING", "ACTIVE", "SCHEDULED", "FAILED", "DEAD", "OLDEST",
              "PUSH/S", "DONE/S"]

    def test_no_queue_is_the_header_alone(self, shell):
        assert shell.ok("queue", "list").rows() == [self.HEADER]
        assert shell.ok("queue", "list", "--no-header").out == ""

    def test_one_row_a_queue_with_its_counts(self, shell, queue):
        queue.push(1, 2, 3)
        queue.claim_one()
        paused = queue.sibling("another").created()
        paused.pause()
        header, another, jobs = shell.ok("queue", "list").rows()
        assert header == self.HEADER
        assert another[:8] == ["another", "paused", "0", "0", "0", "0", "0", "-"]
        assert jobs[:7] == ["jobs", "running", "2", "1", "0", "0", "0"] and jobs[7] != "-"
        assert shell.ok("queue", "list", "--no-header").rows()[0][0] == "another"

    @pytest.mark.parametrize("flag", ["-A", "--all-namespaces"])
    def test_of_all_namespaces(self, cli, queue, flag):
        header, *rows = cli.ok("queue", "list", flag).rows()
        assert header == ["NAMESPACE", *self.HEADER]
        assert [queue.namespace, "jobs"] in [row[:2] for row in rows]

    def test_json_is_the_reply_of_the_api(self, shell, queue):
        reply = queue.client.request("GET", f"/v1/queues?namespace={queue.namespace}")
        assert shell.ok("queue", "list", "--json").out == reply.body.decode().rstrip("\n") + "\n"

    def test_show_has_every_field_of_the_reply(self, shell, queue):
        queue.push(1, 2)
        shown = queue.show()
        fields = shell.ok("queue", "show", "jobs").fields()
        assert fields["stats.pending"] == "2" and fields["config.retry.attempts"] == "0"
        expected = set(paths(shown))
        assert set(fields) == expected

    def test_show_json_is_the_reply_of_the_api(self, shell, queue):
        reply = queue.client.request("GET", queue.path())
        assert shell.ok("queue", "show", "jobs", "--json").out == (
            reply.body.decode().rstrip("\n") + "\n")


class TestPauseAndDelete:
    def test_pause_and_resume_may_be_repeated(self, shell, queue):
        for _ in range(2):
            assert shell.ok("queue", "pause", "jobs").out == "paused queue jobs\n"
            assert queue.show()["paused"] is True
        for _ in range(2):
            assert shell.ok("queue", "resume", "jobs").out == "resumed queue jobs\n"
            assert queue.show()["paused"] is False

    @pytest.mark.parametrize("flag", ["--yes", "-y"])
    def test_delete_with_yes(self, shell, queue, flag):
        queue.push(*range(12))
        assert shell.ok("queue", "delete", "jobs", flag).out == (
            "deleted queue jobs and its 12 jobs\n")
        assert queue.client.refused("GET", queue.path())[0] == 404

    def test_delete_without_yes_is_refused_where_nobody_can_be_asked(self, shell, queue):
        result = shell.run("queue", "delete", "jobs", stdin="y\n")
        assert result.code == USAGE and "--yes" in result.err
        assert queue.show()

    @pytest.mark.parametrize("answer, code", [("y", 0), ("Y", 0), ("yes", 0), ("n", 1), ("", 1),
                                              ("x", 1)])
    def test_delete_asks_on_a_terminal(self, shell, queue, answer, code):
        queue.push(1, 2)
        with shell.terminal("queue", "delete", "jobs") as terminal:
            terminal.expect("Delete queue jobs and its 2 jobs? [y/N]").type(answer + "\n")
            assert terminal.finish()[0] == code
        gone = queue.client.request("GET", queue.path()).status == 404
        assert gone == (code == 0)

    def test_an_unknown_queue_is_not_asked_about(self, shell, absent_queue):
        with shell.terminal("queue", "delete", "jobs") as terminal:
            code, shown = terminal.finish()
        assert code == REFUSED and "queue_not_found" in shown and "[y/N]" not in shown


class TestErrors:
    def test_a_refusal_is_one_line_with_the_code(self, shell, queue):
        result = shell.run("queue", "show", "job")
        assert result.code == REFUSED and result.out == ""
        assert result.err == (f"reprise: no queue 'job' in namespace '{queue.namespace}'; "
                              "did you mean 'jobs'? (queue_not_found)\n")

    def test_with_json_it_is_the_object_of_the_api_on_stderr(self, shell, queue):
        result = shell.run("queue", "show", "absent", "--json")
        assert result.code == REFUSED and result.out == ""
        reply = queue.client.request("GET", queue.sibling("absent").path())
        assert json.loads(result.err) == reply.json() and result.err.count("\n") == 1

    @pytest.mark.parametrize("args, named", [
        (["queue", "psuh", "jobs", "1"], ["psuh", "did you mean 'push'"]),
        (["quue", "list"], ["quue", "did you mean 'queue'"]),
        (["sttus"], ["sttus", "did you mean 'status'"]),
        (["queue", "list", "--jsno"], ["--jsno", "--json"]),
        (["queue", "claim", "jobs", "--wiat", "1s"], ["--wiat", "--wait"]),
        (["queue", "show"], []), (["queue", "show", "a", "b"], []), (["queue"], []), ([], []),
        (["queue", "claim", "jobs", "--max", "x"], ["--max"]),
        (["queue", "claim", "jobs", "--wait", "soon"], ["soon"]),
        (["queue", "claim", "jobs", "--lane", "middle"], ["--lane"]),
        (["queue", "jobs", "jobs", "--status", "zombie"], ["--status"]),
        (["queue", "jobs", "jobs", "--limit", "5", "--all"], []),
        (["queue", "jobs", "jobs", "--header", "no-equals-sign"], ["no-equals-sign"]),
        (["queue", "ack"], []), (["queue", "drop", "jobs"], []),
        (["completion", "tcsh"], ["tcsh"]),
    ])
    def test_wrong_usage_is_plain_text_and_exit_2(self, cli, args, named):
        result = cli.run(*args)
        assert result.code == USAGE and result.out == "", repr(result)
        assert result.err.startswith("reprise") or "reprise" in result.err
        assert all(text in result.err for text in named), result.err

    def test_no_server_is_exit_3_and_says_what_to_do(self, cli):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{unused.getsockname()[1]}"
            for args in (["status"], ["queue", "list"], ["queue", "push", "q", "1"], ["events"],
                         ["queue", "ack", "token"]):
                result = cli.run(*args, "--server", url)
                assert result.code == NO_SERVER and result.out == "", repr(result)
                assert url in result.err and "(unreachable)" in result.err
            told = cli.run("status", "--server", url).err
            assert "`reprise serve`" in told and "--server" in told and "REPRISE_URL" in told
            as_json = cli.run("status", "--server", url, "--json")
            assert json.loads(as_json.err)["error"]["code"] == "unreachable"

    @pytest.mark.parametrize("answer", [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"SSH-2.0-OpenSSH_9.2\r\n", b"",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"])
    def test_what_is_not_reprise_is_exit_3(self, answer):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve():
                peer, _ = listener.accept()
                with peer:
                    peer.settimeout(5)
                    peer.recv(65536)
                    peer.sendall(answer)
            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            result = Cli(f"http://127.0.0.1:{listener.getsockname()[1]}").run("queue", "list")
            thread.join(5)
        assert result.code == NO_SERVER and result.out == "", repr(result)

    @pytest.mark.parametrize("url", ["nonsense://x", "http://", "http://[::1", "localhost:x"])
    def test_a_url_that_cannot_be_right_is_refused(self, cli, url):
        result = cli.run("status", "--server", url)
        assert result.code in (USAGE, NO_SERVER) and result.out == ""


class TestServerAndToken:
    def test_the_flag_wins_over_the_environment(self, cli, shared_server):
        wrong = {"REPRISE_URL": "http://127.0.0.1:1"}
        assert cli.run("status", env=wrong).code == NO_SERVER
        assert cli.run("status", "--server", shared_server.url, env=wrong).code == 0
        assert cli.run("status", "--server", shared_server.url + "/").code == 0

    def test_the_token_comes_from_the_environment_or_a_file(self, start_server, tmp_path):
        tokens = tmp_path / "tokens"
        tokens.write_text("# ours\nalice:first-secret\nsecond-secret\n")
        server = start_server("--token-file", str(tokens), token="second-secret")
        cli = Cli(server.url)
        refused = cli.run("status")
        assert refused.code == REFUSED and "(unauthorized)" in refused.err
        assert cli.run("status", env={"REPRISE_TOKEN": "wrong"}).code == REFUSED
        cli.ok("status", env={"REPRISE_TOKEN": "second-secret"})
        cli.ok("status", "--token-file", str(tokens))
        cli.ok("status", "--token-file", str(tokens), env={"REPRISE_TOKEN": "wrong"})
        absent = cli.run("status", "--token-file", str(tmp_path / "absent"))
        assert absent.code == USAGE and "absent" in absent.err

    def test_status_tells_the_server(self, cli, api):
        fields = cli.ok("status").fields()
        status = api.get("/v1/status")
        running = status.pop("operations")
        told = {name for name in fields if not name.startswith("operations.")}
        assert told == set(paths(status)) and isinstance(running, list)
        assert fields["version"] == status["version"]
        assert set(cli.ok("status", "--json").json()) == set(status) | {"operations"}


class TestHelp:
    @pytest.mark.parametrize("command", [*cli_page.commands(), "serve"])
    def test_every_command_explains_itself_with_an_example(self, cli, command):
        for flag in ("--help", "-h"):
            result = cli.ok(*command.split(" "), flag)
            assert result.err == ""
        assert "xample" in result.out and f"reprise {command}" in result.out

    def test_the_help_of_all_lists_the_commands(self, cli):
        shown = cli.ok("--help").out
        assert all(name.split(" ")[0] in shown for name in cli_page.commands())

    @pytest.mark.parametrize("group", ["queue", "operation", "hook", "config"])
    def test_the_help_of_a_group_lists_its_commands(self, cli, group):
        shown = cli.ok(group, "--help").out
        names = [name.split(" ")[1] for name in cli_page.commands() if name.startswith(group + " ")]
        assert names and all(name in shown for name in names)

    def test_version(self, cli, api):
        assert cli.ok("--version").out == f"reprise {api.get('/v1/status')['version']}\n"


class TestCompletionAndManual:
    def test_bash_accepts_the_completion_and_it_knows_every_command(self, cli):
        script = cli.ok("completion", "bash").out
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)
        words = {word for name in cli_page.commands() for word in name.split(" ")}
        assert all(word in script for word in words)

    def test_bash_completes_commands_and_queues(self, cli, shared_server, api, namespace):
        api.queue(namespace).create()
        script = cli.ok("completion", "bash").out

        def complete(*words):
            line = " ".join(words)
            probe = script + f"""
COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}
COMP_LINE={line!r}; COMP_POINT={len(line)}
spec=$(complete -p reprise); spec=${{spec##*-F }}; ${{spec%% *}} reprise "${{COMP_WORDS[-1]}}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
            env = cli.environment({"PATH": f"{Path(binary()).parent}:/usr/bin:/bin"})
            done = subprocess.run(["bash", "-c", probe], capture_output=True, text=True, env=env)
            return {word.strip() for word in done.stdout.split("\n")}
        assert "push" in complete("reprise", "queue", "pu")
        assert "--json" in complete("reprise", "status", "--js")
        assert namespace in complete("reprise", "queue", "show", namespace[:-1])

    def test_zsh_completion(self, cli):
        assert cli.ok("completion", "zsh").out.startswith("#compdef reprise")

    def test_the_manual_is_a_man_page_of_every_command(self, cli):
        page = cli.ok("manpage").out
        assert page.startswith((".TH", ".\\\"", "'\\\"")) and ".SH" in page
        plain = page.replace("\\-", "-").replace("\\", "")
        assert all(name.split(" ")[-1] in plain for name in cli_page.commands())
