"""Steps that misbehave, and what happens to the processes that run them."""

import os
import signal
import time

import pytest

from hooking import command_of, descendants, runs
from projects import marked_processes, pipeline, simple, step, stored, worker
from waiting import eventually

STOP_SECONDS_MAX = 5


def ended(project, command, **fields):
    """(status, error type) of the run of a job with this step."""
    project.declare(simple(step("main", command, **fields))).start()
    job_id = project.push()
    run = eventually(lambda: project.run_of(job_id), "a run")
    run = project.client.get(f"/v1/runs/{run['id']}?wait=20s")
    return run["status"], run["error_type"]


def step_hosts(server):
    return {pid for pid in descendants(server.pid) if b"step-host" in b" ".join(command_of(pid))}


class TestWhatAStepIsGiven:
    def test_no_file_of_the_server(self, project):
        assert ended(project, "ls -l /proc/$$/fd > fds") == ("succeeded", None)
        targets = [line.split(" -> ")[1] for line in project.lines("fds") if " -> " in line]
        assert targets and not any(str(project.server.data) in one or "socket:" in one
                                   for one in targets), targets

    def test_signals_as_a_shell_has_them(self, project):
        ended(project, "cat /proc/self/status > status")
        masks = dict(line.split(":\t") for line in project.lines("status") if line[:3] == "Sig")
        assert int(masks["SigIgn"], 16) == int(masks["SigBlk"], 16) == 0

    def test_no_terminal_and_a_group_of_its_own(self, project):
        ended(project, "cut -d' ' -f1,5,7 /proc/$$/stat > stat")
        pid, group, terminal = project.text("stat").split()
        assert (pid, terminal) == (group, "0")


class TestMisbehaviour:
    def test_one_that_closes_its_output(self, project):
        assert ended(project, "exec >&- 2>&-; sleep 0.1; exit 5") == ("failed", "exit_5")

    def test_one_whose_child_keeps_the_output_open(self, project):
        started = time.monotonic()
        assert ended(project, "(sleep 50; echo late) & true") == ("succeeded", None)
        assert time.monotonic() - started < 10

    def test_one_that_ends_its_group(self, project):
        assert ended(project, "kill -TERM 0; sleep 30") == ("failed", "signal_15")

    def test_one_that_kills_its_supervisor_leaves_nothing(self, project):
        mark = f"mark-{project.ns}-{time.monotonic_ns()}"
        status, _ = ended(project, f"export MARK={mark}; (setsid sleep 300 &); kill -9 $PPID; "
                                   "sleep 300")
        assert status in ("failed", "lost")
        eventually(lambda: not marked_processes(mark), "all of it to end", 5)

    def test_one_that_stops_its_supervisor_times_out(self, project):
        mark = f"mark-{project.ns}-{time.monotonic_ns()}"
        assert ended(project, f"export MARK={mark}; kill -STOP $PPID; sleep 300",
                     timeout="300ms") == ("failed", "timeout")
        eventually(lambda: not marked_processes(mark), "all of it to end", 5)

    def test_one_that_stops_its_supervisor_does_not_keep_the_server(self, server, new_project):
        project = new_project(server).declare(simple("echo >> ran; kill -STOP $PPID; sleep 300"))
        project.start()
        project.push()
        project.has_lines("ran", 1)
        code, seconds = server.terminate(20)
        assert code == 0 and seconds < STOP_SECONDS_MAX

    def test_many_short_ones(self, project):
        project.declare(simple("echo $REPRISE_JOB_ID >> ran", concurrency=20)).start()
        ids = project.queue().push(*[{"n": number} for number in range(300)])
        eventually(lambda: project.queue().counts() == {}, "all to be done", 60)
        assert sorted(project.lines("ran")) == sorted(ids)


class TestStepHost:
    def test_when_it_is_killed_jobs_are_given_back(self, server, new_project):
        mark = f"mark-{time.monotonic_ns()}"
        project = new_project(server).declare(simple(
            f"export MARK={mark}; echo x >> ran; (setsid sleep 300 &); "
            "until [ -e go ]; do sleep 0.05; done", concurrency=2))
        project.start()
        ids = [project.push(), project.push()]
        project.has_lines("ran", 2)
        hosts = step_hosts(server)
        assert hosts
        for pid in hosts:
            os.kill(pid, signal.SIGKILL)
        project.has_lines("ran", 4)
        assert [project.queue().job(job_id)["failures"] for job_id in ids] == [0, 0]
        assert [run["status"] for run in project.runs()][2:] == ["lost", "lost"]
        project.touch("go")
        for job_id in ids:
            project.finished(job_id)
        eventually(lambda: not marked_processes(mark), "all of it to end", 5)

    def test_a_job_after_it_was_killed(self, server, new_project):
        project = new_project(server).declare(simple("true"))
        project.start()
        project.done()
        for _ in range(3):
            for pid in step_hosts(server):
                os.kill(pid, signal.SIGKILL)
                eventually(lambda: not runs(pid), "it to end")
            project.done()

    @pytest.mark.parametrize("how", ["stop", "kill"])
    def test_it_ends_with_the_server(self, server, new_project, how):
        project = new_project(server).declare(simple("true"))
        project.start()
        project.done()
        hosts = step_hosts(server)
        server.kill() if how == "kill" else server.terminate()
        eventually(lambda: not any(runs(pid) for pid in hosts), "it to end", 5)


@pytest.mark.parametrize("command", ["list", "take", "done"])
def test_a_stop_of_the_server_waits_for_no_command_of_an_external_queue(server, new_project,
                                                                        command):
    queue = {"type": "external", "list": "echo '[{\"id\": 1}]'", "take": "true", "done": "true",
             command: "echo x >> ran; trap '' TERM; sleep 300; sleep 300"}
    project = new_project(server).declare(
        queue={"bugs": queue, "jobs": stored()}, pipeline={"fix": pipeline("true")},
        worker={"w": worker("bugs", "fix")})
    project.start()
    project.has_lines("ran", 1)
    code, seconds = server.terminate()
    assert code == 0 and seconds < STOP_SECONDS_MAX


def test_a_take_is_ended_by_a_stop_now(project):
    project.declare(queue={"bugs": {"type": "external", "list": "echo '[{\"id\": 1}]'",
                                    "take": "echo x >> ran; sleep 50"}},
                    pipeline={"fix": pipeline("true")}, worker={"w": worker("bugs", "fix")})
    project.start()
    project.has_lines("ran", 1)
    project.ok("worker", "stop", "w", "--now")
    eventually(lambda: project.worker()["status"] == "stopped", "it to stop", 6)
