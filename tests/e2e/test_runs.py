"""Runs: trials of pipelines, what is kept of them, and their logs."""

import json
import re
import signal

import pytest

from background import in_background
from projects import marked_processes, pipeline, simple, step
from times import seconds_since_1970
from waiting import eventually

SUCCEEDED, FAILED, USAGE, CANCELLED, STILL_RUNNING = 0, 1, 2, 4, 6
HEADER = ["ID", "STATUS", "PIPELINE", "WORKER", "JOB", "STARTED", "TOOK", "ERROR"]
ID = re.compile(r"[0-9A-Z]{13}")
HOLD = "echo begun >> ran; until [ -e go ]; do sleep 0.05; done"


@pytest.fixture
def trial(project):
    """A project with pipelines to try."""
    project.declare({"pipeline": {
        "hello": pipeline("echo hello ${item.name}", "echo again >&2"),
        "fails": pipeline(step("pick", "echo working; echo 'no luck' >&2; exit 3")),
        "hold": pipeline(HOLD),
        "env": pipeline("cat > stdin; env -0 > env"),
        "tidy": pipeline(step("main", HOLD, on_cancel="clean"), step("clean", "echo tidy >> ran")),
    }})
    return project


def detached(project, name, *args):
    return project.ok("run", name, "--detach", *args).out.strip()


class TestTrial:
    def test_prints_what_the_steps_print(self, trial):
        result = trial.run("run", "hello", "--item", '{"name": "a b"}')
        assert result.code == SUCCEEDED, repr(result)
        assert "hello a b\n" in result.out and "again" in result.out

    def test_the_item_from_standard_input(self, trial):
        assert "hello me\n" in trial.ok("run", "hello", "--item-stdin",
                                        stdin='{"name": "me"}').out

    def test_the_exit_code_tells_of_a_failure(self, trial):
        result = trial.run("run", "fails")
        assert result.code == FAILED
        assert "working" in result.out and "no luck" in result.out + result.err
        assert "exit code 3" in result.out + result.err

    def test_json_is_the_run(self, trial):
        result = trial.run("run", "fails", "--json")
        assert result.code == FAILED
        run = result.json()
        assert {name: run[name] for name in ("namespace", "pipeline", "worker", "queue", "type",
                                             "job", "status", "error", "error_type")} == {
            "namespace": trial.ns, "pipeline": "fails", "worker": None, "queue": None,
            "type": None, "job": None, "status": "failed",
            "error": "step pick: exit code 3: no luck", "error_type": "exit_3"}
        assert ID.fullmatch(run["id"]) and run["log_left_out"] == 0
        assert run["log_bytes"] == len(trial.run_log(run["id"]).encode())

    def test_a_missing_field(self, trial):
        result = trial.run("run", "hello")
        assert result.code == FAILED and "item.name" in result.out + result.err

    @pytest.mark.parametrize("args", [["hello", "--item", "{bad"], ["hello", "--item"], [],
                                      ["hello", "--item", "{}", "--item-stdin"]])
    def test_wrong_usage(self, trial, args):
        assert trial.run("run", *args).code == USAGE

    def test_unknown_pipelines(self, trial):
        error = trial.refused("run", "helo", "--item", "{}")
        assert "pipeline_not_found" in error

    def test_what_a_step_is_told(self, trial):
        trial.ok("run", "env", "--item", '{"id": 7}')
        told = json.loads(trial.text("stdin"))
        assert told["payload"] == {"id": 7} and "queue" not in told
        env = dict(entry.split("=", 1) for entry in trial.text("env").split("\0") if entry)
        assert env["REPRISE_PIPELINE"] == "env" and env["REPRISE_PROJECT"] == trial.ns

    def test_an_interrupt_cancels_it(self, trial):
        process = trial.process("run", "tidy")
        trial.has_lines("ran", 1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=15)
        assert trial.has_lines("ran", 2) == ["begun", "tidy"]
        [run] = trial.runs(pipeline="tidy")
        eventually(lambda: trial.client.get(f"/v1/runs/{run['id']}")["status"] == "cancelled",
                   "the run to be cancelled")

    def test_output_comes_as_it_is_printed(self, trial):
        trial.declare({"pipeline": {"slow": pipeline(
            "echo first; until [ -e go ]; do sleep 0.05; done; echo second")}})
        process = trial.process("run", "slow")
        while b"first" not in in_background(process.stdout.readline).result(10):
            pass
        trial.touch("go")
        out, _ = process.communicate(timeout=10)
        assert b"second\n" in out and process.returncode == 0

    def test_sixteen_at_once(self, server, new_project):
        trial = new_project(server).declare({"pipeline": {"hold": pipeline(HOLD)}})
        ids = {detached(trial, "hold") for _ in range(16)}
        assert len(ids) == 16
        assert "too_many_runs" in trial.refused("run", "hold", "--detach")
        trial.touch("go")
        for run_id in ids:
            assert trial.run("run", "wait", run_id).code == SUCCEEDED
        detached(trial, "hold")


class TestDetached:
    def test_prints_the_id_and_returns(self, trial):
        run_id = detached(trial, "hold")
        assert ID.fullmatch(run_id)
        assert trial.ok("run", "show", run_id, "--json").json()["status"] == "running"
        assert trial.run("run", "wait", run_id, "--timeout", "100ms").code == STILL_RUNNING
        trial.touch("go")
        assert trial.run("run", "wait", run_id).code == SUCCEEDED
        assert trial.run("run", "wait", run_id).code == SUCCEEDED

    def test_wait_tells_how_it_ended(self, trial):
        assert trial.run("run", "wait", detached(trial, "fails")).code == FAILED
        run_id = detached(trial, "hold")
        assert trial.ok("run", "cancel", run_id).out == f"cancelling {run_id}\n"
        assert trial.run("run", "wait", run_id).code == CANCELLED
        assert "wrong_status" in trial.refused("run", "cancel", run_id)

    def test_prefixes_and_unknown_ids(self, trial):
        run_id = detached(trial, "hello", "--item", '{"name": 1}')
        assert trial.ok("run", "show", run_id[:8].lower(), "--json").json()["id"] == run_id
        for verb in ("show", "logs", "cancel", "wait"):
            assert "run_not_found" in trial.refused("run", verb, "0000000000000")

    def test_the_api_waits(self, trial):
        run_id = detached(trial, "hold")
        client = trial.server.client()
        waiting = in_background(client.get, f"/v1/runs/{run_id}?wait=20s")
        trial.touch("go")
        assert waiting.result(15)["status"] == "succeeded"
        assert client.get(f"/v1/runs/{run_id}?wait=100ms")["status"] == "succeeded"

    def test_a_cancelled_one_leaves_no_process(self, trial):
        mark = f"mark-{trial.ns}"
        trial.declare({"pipeline": {"p": pipeline(
            f"export MARK={mark}; trap '' TERM; (setsid sleep 300 &); echo >> ran; sleep 300; "
            "sleep 300")}})
        run_id = detached(trial, "p")
        trial.has_lines("ran", 1)
        trial.ok("run", "cancel", run_id)
        assert trial.run("run", "wait", run_id).code == CANCELLED
        eventually(lambda: not marked_processes(f"MARK={mark}\0"), "all to end", 5)


class TestList:
    def test_newest_first_with_filters(self, project):
        declared = simple("exit ${item.code}")
        declared["pipeline"]["other"] = pipeline("true")
        project.declare(declared).start()
        good, bad = project.push({"code": 0}), None
        project.finished(good)
        bad = project.push({"code": 5})
        project.dead(bad)
        project.ok("run", "other")
        header, *rows = project.ok("run", "list").rows()
        assert header == HEADER
        assert [(row[1], row[2], row[3], row[4]) for row in rows] == [
            ("succeeded", "other", "-", "-"), ("failed", "work", "w", bad),
            ("succeeded", "work", "w", good)]
        assert "exit code 5" in rows[1][7] and rows[0][7] == "-"

        def found(*flags):
            return [row[4] for row in project.ok("run", "list", "--no-header", *flags).rows()]

        assert found("--worker", "w") == [bad, good]
        assert found("--queue", "jobs", "--status", "failed") == [bad]
        assert found("--pipeline", "other") == ["-"]
        assert found("--limit", "2") == ["-", bad]
        assert found("--worker", "nobody") == []
        assert bad in [row[5] if len(row) > 8 else row[4]
                       for row in project.ok("run", "list", "-A", "--no-header").rows()]
        assert [run["job"] for run in project.runs(status="failed")] == [bad]

    @pytest.mark.parametrize("query", ["limit=0", "limit=1001", "status=odd"])
    def test_bad_queries(self, api, query):
        assert api.request("GET", f"/v1/runs?{query}").status == 400

    def test_show(self, trial):
        run_id = trial.run("run", "fails", "--json").json()["id"]
        out = trial.ok("run", "show", run_id).out
        assert run_id in out and "exit code 3" in out and "pick" in out
        run = trial.ok("run", "show", run_id, "--json").json()
        [only] = run["steps"]
        assert seconds_since_1970(run["started_at"]) <= seconds_since_1970(only["started_at"])
        assert seconds_since_1970(only["ended_at"]) <= seconds_since_1970(run["ended_at"]) + 0.001

    @pytest.mark.parametrize("how", ["stop", "kill"])
    def test_they_are_there_after_a_restart(self, server, new_project, how):
        project = new_project(server).declare(simple("echo kept; exit ${item.code}"))
        project.start()
        project.finished(project.push({"code": 0}))
        project.dead(project.push({"code": 5}))
        before = project.runs()
        server.restart(how)
        assert project.runs() == before
        assert "kept\n" in project.run_log(before[0]["id"])

    def test_only_the_latest_are_kept(self, start_server, new_project):
        server = start_server("--keep-runs", "3")
        project = new_project(server).declare(simple("echo ${item.n}"))
        project.start()
        ids = [project.done({"n": number}) for number in range(8)]
        eventually(lambda: [run["job"] for run in project.runs()] == ids[:4:-1], "the last three")
        server.restart()
        assert [run["job"] for run in project.runs()] == ids[:4:-1]


class TestLogs:
    def test_logs(self, trial):
        run_id = detached(trial, "hello", "--item", '{"name": "x"}')
        trial.run("run", "wait", run_id)
        out = trial.ok("run", "logs", run_id).out
        assert "hello x\n" in out and "again\n" in out

    def test_follow_until_the_end(self, trial):
        trial.declare({"pipeline": {"slow": pipeline(
            "echo first; until [ -e go ]; do sleep 0.05; done; echo second")}})
        run_id = detached(trial, "slow")
        process = trial.process("run", "logs", run_id, "-f")
        while b"first" not in in_background(process.stdout.readline).result(10):
            pass
        trial.touch("go")
        out, _ = process.communicate(timeout=10)
        assert b"second\n" in out and process.returncode == 0

    def test_parts(self, trial):
        trial.declare({"pipeline": {"count": pipeline("seq 10000")}})
        run_id = trial.run("run", "count", "--json").json()["id"]
        path = f"/v1/runs/{run_id}/log"
        text, offset = "", 0
        while True:
            part = trial.client.get(f"{path}?offset={offset}&limit=5000")
            assert len(part["text"].encode()) <= 5000
            text, offset = text + part["text"], part["next"]
            if part["ended"] and not part["text"]:
                break
            assert part["text"] or part["ended"]
        assert "\n".join(map(str, range(1, 10001))) in text
        assert trial.client.get(f"{path}?tail=12")["text"] == text[-12:]

    def test_bytes_that_are_no_text(self, trial):
        trial.declare({"pipeline": {"p": pipeline("printf 'a\\xffb\\n'")}})
        run_id = trial.run("run", "p", "--json").json()["id"]
        assert "a\ufffdb\n" in trial.run_log(run_id)

    def test_what_is_beyond_the_limit_is_counted(self, start_server, new_project):
        server = start_server("--run-log-bytes", "4KiB")
        project = new_project(server).declare({"pipeline": {"p": pipeline(
            "head -c 100000 /dev/zero | tr '\\0' x; echo; echo the end")}})
        run = project.run("run", "p", "--json").json()
        assert run["status"] == "succeeded"
        assert 3000 < run["log_bytes"] <= 4096 + 200
        assert 95_000 < run["log_left_out"] < 100_100
        assert len(project.run_log(run["id"])) <= 4096 + 200
