"""`reprise worker`: starting, stopping, resizing, listing and reading the logs of workers."""

import signal
import time

import pytest

from background import in_background
from projects import marked_processes, pipeline, simple, step, stored, worker
from raw_http import EventStream
from waiting import eventually, holds_for

REFUSED, USAGE = 1, 2
RESTARTS = ["stop", "kill"]
HEADER = ["WORKER", "QUEUE", "STATUS", "ACTIVE", "LAST POLL", "LAST ERROR"]
# Runs until the file `go` is there.
HOLD = "echo $REPRISE_JOB_ID >> ran; until [ -e go ]; do sleep 0.05; done"
TWO = {"queue": {"a": stored(), "b": stored()},
       "pipeline": {"work": pipeline("echo $REPRISE_WORKER >> ran")},
       "worker": {"one": worker("a", "work"), "two": worker("b", "work")}}


def statuses(project):
    return {name: one["status"] for name, one in project.workers().items()}


def holding(project, jobs=1, **fields):
    """Ids of jobs that a worker has in hand, until the file `go` is there."""
    project.declare(simple(HOLD, **fields)).start()
    ids = [project.push() for _ in range(jobs)]
    project.has_lines("ran", min(jobs, fields.get("concurrency", 1)))
    return ids


class TestStart:
    def test_says_so_and_again_wakes_it(self, project):
        project.declare(simple("true"))
        assert project.ok("worker", "start", "w").out == "started w\n"
        assert project.ok("worker", "start", "w").out == "w was running; woken\n"
        assert statuses(project) == {"w": "running"}

    def test_json(self, project):
        project.declare(simple("true", concurrency=4))
        reply = project.ok("worker", "start", "w", "--json").json()
        [result] = reply["results"]
        assert (result["name"], result["status"], result["was_running"]) == ("w", "running", False)
        assert result["worker"] == project.worker()
        shown = project.worker()
        assert {name: shown[name] for name in (
            "name", "namespace", "queue", "type", "pipeline", "status", "active", "concurrency",
            "autostart", "last_poll_at", "next_poll_at", "succeeded", "failed", "last_error",
            "last_error_at")} == {
            "name": "w", "namespace": project.ns, "queue": "jobs", "type": "persisted",
            "pipeline": "work", "status": "running", "active": 0, "concurrency": 4,
            "autostart": False, "last_poll_at": None, "next_poll_at": None, "succeeded": 0,
            "failed": 0, "last_error": None, "last_error_at": None}
        [again] = project.ok("worker", "start", "w", "--json").json()["results"]
        assert again["was_running"] is True

    def test_several_and_all(self, project):
        project.declare(TWO)
        assert project.ok("worker", "start", "one", "two").out == "started one\nstarted two\n"
        assert project.ok("worker", "stop", "--all").out == "stopped one\nstopped two\n"
        assert project.ok("worker", "start", "--all").out == "started one\nstarted two\n"
        assert statuses(project) == {"one": "running", "two": "running"}

    def test_only_what_is_named(self, project):
        project.declare(TWO).start("one")
        assert statuses(project) == {"one": "running", "two": "stopped"}
        project.queue("b").push_one({})
        project.finished(project.push(queue="a"), "a")
        assert project.queue("b").counts() == {"pending": 1}

    def test_unknown_ones(self, project):
        project.declare({**TWO, "worker": {"shipper": worker("a", "work"),
                                           "other": worker("b", "work")}})
        result = project.run("worker", "start", "shiper", "other")
        assert result.code == REFUSED and "started other" in result.out
        assert "worker_not_found" in result.err and "did you mean 'shipper'" in result.err
        assert statuses(project)["other"] == "running"
        assert project.client.refused("POST", project.api_path("/v1/workers/stop"),
                                      {"names": ["none"]})[0] == 404
        for verb in (["stop"], ["restart"]):
            assert "worker_not_found" in project.refused("worker", *verb, "shiper")
        assert "worker_not_found" in project.refused("worker", "resize", "shiper", "2")
        assert "worker_not_found" in project.refused("worker", "logs", "shiper")

    def test_wrong_usage(self, project):
        project.declare(TWO)
        for args in (["start"], ["start", "one", "--all"], ["stop"], ["resize", "one"],
                     ["resize", "one", "x"], ["strat", "one"]):
            assert project.run("worker", *args).code == USAGE, args

    def test_no_project(self, shared_server, project, tmp_path):
        result = project.cli.run("worker", "start", "w", "-n", project.ns, cwd=tmp_path)
        assert result.code == REFUSED and "project_not_found" in result.err

    def test_autostart(self, project):
        project.declare({**TWO, "worker": {"one": worker("a", "work", autostart=True),
                                           "two": worker("b", "work")}}).add()
        eventually(lambda: statuses(project) == {"one": "running", "two": "stopped"},
                   "one of them to run")
        project.finished(project.push(queue="a"), "a")

    def test_events(self, project):
        project.declare(simple("exit 3"))
        with EventStream(project.server.port, f"?namespace={project.ns}&type="
                         "worker:started,worker:stopped,worker:run_started,worker:run_ended"
                         ) as stream:
            project.start()
            job_id = project.push()
            project.dead(job_id)
            project.ok("worker", "stop", "w")
            told = [event.data for event in stream.take(4)]
        assert [one["type"] for one in told] == [
            "worker:started", "worker:run_started", "worker:run_ended", "worker:stopped"]
        assert all((one["worker"], one["queue"]) == ("w", "jobs") for one in told)
        assert told[1]["job"] == told[2]["job"] == job_id and told[1]["run"] == told[2]["run"]
        assert told[2]["status"] == "failed" and "exit code 3" in told[2]["error"]


class TestStop:
    def test_lets_running_jobs_finish(self, project):
        first, second = holding(project, 2)
        assert project.ok("worker", "stop", "w").out.startswith("stopping w: 1 job ")
        assert statuses(project) == {"w": "stopping"}
        project.touch("go")
        project.finished(first)
        eventually(lambda: statuses(project) == {"w": "stopped"}, "it to stop")
        assert project.queue().status_of(second) == "pending"
        assert project.ok("worker", "stop", "w").out == "stopped w\n"

    def test_several_that_still_run(self, project):
        holding(project, 2, concurrency=2)
        assert project.ok("worker", "stop", "w").out == "stopping w: 2 jobs still run\n"
        project.ok("worker", "start", "w")
        assert statuses(project) == {"w": "running"}

    def test_now_gives_them_back_unharmed(self, project):
        [job_id] = holding(project)
        assert project.ok("worker", "stop", "w", "--now").code == 0
        eventually(lambda: project.queue().status_of(job_id) == "pending", "it to be given back")
        assert project.queue().job(job_id)["failures"] == 0
        eventually(lambda: statuses(project) == {"w": "stopped"}, "it to stop")
        assert project.run_of(job_id)["status"] == "lost"
        project.touch("go")
        project.start()
        project.finished(job_id)
        assert project.lines("ran") == [job_id, job_id]

    def test_now_ends_all_processes(self, project):
        mark = f"mark-{project.ns}"
        project.declare(simple(f"export MARK={mark}; (setsid nohup sleep 300 &); echo >> ran; "
                               "trap '' TERM; sleep 300; sleep 300")).start()
        project.push()
        project.has_lines("ran", 1)
        project.ok("worker", "stop", "w", "--now")
        eventually(lambda: not marked_processes(f"MARK={mark}\0"), "all of it to end", 6)


class TestRestart:
    def test_waits_for_running_jobs(self, project):
        first, second = holding(project, 2)
        assert project.ok("worker", "restart", "w").out == "restarting w\n"
        assert statuses(project) == {"w": "restarting"}
        project.touch("go")
        project.finished(first)
        project.finished(second)
        eventually(lambda: statuses(project) == {"w": "running"}, "it to run")

    def test_now(self, project):
        [job_id] = holding(project)
        project.ok("worker", "restart", "w", "--now")
        assert project.has_lines("ran", 2) == [job_id, job_id]
        assert project.queue().job(job_id)["failures"] == 0
        project.touch("go")
        project.finished(job_id)

    def test_of_one_that_is_stopped_starts_it(self, project):
        project.declare(simple("true")).add()
        project.ok("worker", "restart", "w")
        project.done()


class TestResize:
    def test_more_and_fewer(self, project):
        holding(project, 5)
        assert project.ok("worker", "resize", "w", "3").out == "resized w to 3\n"
        project.has_lines("ran", 3)
        assert (project.worker()["active"], project.worker()["concurrency"]) == (3, 3)
        project.ok("worker", "resize", "w", "1")
        assert project.worker()["concurrency"] == 1
        project.touch("go")
        eventually(lambda: project.queue().counts() == {}, "all to be done")

    def test_a_restart_brings_the_runbooks_own_back(self, project):
        project.declare(simple("true", concurrency=2)).start()
        project.ok("worker", "resize", "w", "7")
        project.ok("worker", "restart", "w")
        eventually(lambda: project.worker()["concurrency"] == 2, "its own")

    def test_so_does_an_edit_of_it(self, project):
        project.declare(simple("true", concurrency=2)).start()
        project.ok("worker", "resize", "w", "7")
        project.declare(simple("true; true", concurrency=2))
        project.ok("worker", "start", "w")
        assert project.worker()["concurrency"] == 7
        project.declare(simple("true", concurrency=3))
        eventually(lambda: project.worker()["concurrency"] == 3, "the edit")

    @pytest.mark.parametrize("size", [0, 1001, -1])
    def test_bounds(self, project, size):
        project.declare(simple("true")).start()
        assert project.run("worker", "resize", "w", "--", size).code in (REFUSED, USAGE)
        assert project.client.request("POST", project.api_path("/v1/workers/resize"), {
            "names": ["w"], "concurrency": size}).status == 400
        assert project.worker()["concurrency"] == 1


class TestList:
    def test_table(self, project):
        project.declare(simple("echo no >&2; exit 1", concurrency=4)).start()
        project.dead(project.push())
        header, row = project.ok("worker", "list").rows()
        assert header == HEADER
        assert row[:5] == ["w", "jobs", "running", "0/4", "-"]
        assert project.ok("worker", "list", "--no-header").rows()[0][0] == "w"

    def test_of_all_namespaces(self, project):
        project.declare(simple("true")).add()
        header, *rows = project.ok("worker", "list", "-A").rows()
        assert header == ["NAMESPACE", *HEADER]
        assert [row[:3] for row in rows if row[0] == project.ns] == [[project.ns, "w", "jobs"]]
        everything = project.client.get("/v1/workers?namespace=*")
        assert (project.ns, "w") in [(one["namespace"], one["name"])
                                     for one in everything["workers"]]

    def test_json_has_the_projects(self, project):
        project.declare(simple("true")).add()
        reply = project.ok("worker", "list", "--json").json()
        assert [one["name"] for one in reply["workers"]] == ["w"]
        assert [one["name"] for one in reply["projects"]] == [project.ns]


class TestLogs:
    def test_what_it_did_and_its_steps_printed(self, project):
        project.declare(simple("echo hello from ${item.id}; echo oops >&2")).start()
        project.done({"id": "seven"})
        out = eventually(lambda: (lambda text: "hello from seven" in text and text)(
            project.ok("worker", "logs", "w").out), "the output")
        assert "oops" in out

    def test_tail(self, project):
        project.declare(simple("seq 100000")).start()
        project.done()
        eventually(lambda: "100000" in project.ok("worker", "logs", "w", "--tail", "4096").out,
                   "its end")
        assert len(project.ok("worker", "logs", "w").out) <= 70_000
        assert len(project.ok("worker", "logs", "w", "--tail", "1000").out) <= 1100

    def test_follows_until_interrupted(self, project):
        project.declare(simple("echo told ${item.n}")).start()
        process = project.process("worker", "logs", "w", "-f")
        try:
            for number in range(3):
                project.done({"n": number})
                self.read_until(process, f"told {number}")
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        finally:
            process.kill()
            process.communicate()

    def read_until(self, process, text):
        while text not in in_background(process.stdout.readline).result(10).decode():
            pass


@pytest.mark.parametrize("how", RESTARTS)
class TestServerRestarts:
    def test_what_was_started_stays_started(self, server, new_project, how):
        project = new_project(server).declare(TWO)
        project.start("one", "two")
        project.ok("worker", "stop", "two")
        server.restart(how)
        eventually(lambda: statuses(project) == {"one": "running", "two": "stopped"}, "the same")
        project.finished(project.push(queue="a"), "a")
        project.push(queue="b")
        holds_for(lambda: project.queue("b").counts() == {"pending": 1}, 0.3)

    def test_autostart(self, server, new_project, how):
        project = new_project(server).declare(simple("true", autostart=True))
        project.add()
        server.restart(how)
        eventually(lambda: statuses(project) == {"w": "running"}, "it to run")
        project.done()

    def test_jobs_in_work_are_given_back_unharmed(self, server, new_project, how):
        project = new_project(server)
        [job_id] = holding(project)
        started = time.monotonic()
        server.restart(how)
        project.has_lines("ran", 2, timeout=10)
        assert time.monotonic() - started < 12  # the lease is of 30 s
        assert project.queue().job(job_id)["failures"] == 0
        project.touch("go")
        project.finished(job_id)
        assert [run["status"] for run in project.runs()] == ["succeeded", "lost"]


def test_a_stop_of_the_server_does_not_wait_for_steps(server, new_project):
    project = new_project(server).declare(simple("echo >> ran; trap '' TERM; sleep 300; sleep 300"))
    project.start()
    project.push()
    project.has_lines("ran", 1)
    code, seconds = server.terminate()
    assert code == 0 and seconds < 5


def test_a_step_that_is_stopped_does_not_hold_up_the_others(project):
    project.declare({"queue": {"a": stored(), "b": stored()},
                     "pipeline": {"stuck": pipeline("kill -STOP $$"),
                                  "work": pipeline(step("main", "true"))},
                     "worker": {"one": worker("a", "stuck"), "two": worker("b", "work")}}).start()
    project.push(queue="a")
    eventually(lambda: project.workers()["one"]["active"] == 1, "it to be taken")
    project.finished(project.push(queue="b"), "b")
    project.ok("worker", "stop", "one", "--now")
    eventually(lambda: statuses(project)["one"] == "stopped", "it to end", 10)
