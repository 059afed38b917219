"""What a worker does with a job: steps in their order, failures, retries, handlers, timeouts."""

import time

import pytest

from projects import marked_processes, pipeline, simple, step
from times import seconds_since_1970
from waiting import eventually


def failing(project, *steps, queue=None, **fields):
    """The job of a worker with these steps, once it is dead."""
    project.declare(simple(*steps, queue=queue, **fields)).start()
    return project.dead(project.push({"id": 7}))


class TestFailures:
    def test_the_whole_road(self, project):
        """Failure, cooldown, retry, death, brought back by hand, success."""
        project.declare(simple("echo $REPRISE_FAILURES >> ran; [ -e ok ]",
                               queue={"retry": {"attempts": 2, "cooldown": "400ms"}})).start()
        job_id = project.push({"id": 7})
        eventually(lambda: project.queue().status_of(job_id) == "failed", "the first failure")
        cooling = project.queue().job(job_id)
        assert cooling["failures"] == 1 and cooling["due_at"]
        waited = seconds_since_1970(cooling["due_at"]) - seconds_since_1970(
            cooling["history"][0]["ended_at"])
        assert 0.35 < waited < 0.6
        dead = project.dead(job_id)
        assert (dead["attempts"], dead["failures"], dead["reason"]) == (2, 2, "max_attempts")
        assert project.lines("ran") == ["0", "1"]
        project.touch("ok")
        project.ok("queue", "retry", "jobs", job_id)
        project.finished(job_id)
        assert project.lines("ran") == ["0", "1", "0"]
        assert [run["status"] for run in project.runs()] == ["succeeded", "failed", "failed"]
        eventually(lambda: (project.worker()["succeeded"], project.worker()["failed"]) == (1, 2),
                   "the counts")

    def test_without_a_policy_it_is_dead_at_once(self, project):
        job = failing(project, "exit 3")
        assert (job["attempts"], job["failures"]) == (1, 1)

    def test_the_error_tells_step_code_and_end_of_stderr(self, project):
        job = failing(project, step("look", "true"),
                      step("pick", "echo fine; echo 'no such order' >&2; exit 3"))
        assert job["last_error"] == "step pick: exit code 3: no such order"
        assert job["last_error_type"] == "exit_3"

    def test_a_long_stderr_is_cut_to_its_end(self, project):
        job = failing(project, "for i in $(seq 20000); do echo \"line $i\"; done >&2; "
                               "echo 'the last words' >&2; exit 1")
        assert job["last_error"].endswith("the last words")
        assert "line 1\n" not in job["last_error"] and len(job["last_error"]) < 20000

    @pytest.mark.parametrize("command, error_type, word", [
        ("kill -9 $$", "signal_9", "9"), ("kill -TERM $$", "signal_15", "15"),
        ("exit 255", "exit_255", "255"), ("no-such-command", "exit_127", "not found"),
        ("false | true", "exit_1", ""), ("echo $unset_thing", "exit_1", "unset_thing"),
        ("false; true", "exit_1", ""), ("if then", "exit_2", "syntax")])
    def test_types(self, project, command, error_type, word):
        job = failing(project, step("main", command))
        assert job["last_error_type"] == error_type
        assert job["last_error"].startswith("step main: ") and word in job["last_error"]

    def test_bytes_in_stderr(self, project):
        job = failing(project, "printf 'a\\xff\\xfe\\0b\\n' >&2; exit 1")
        assert job["last_error_type"] == "exit_1" and "a" in job["last_error"]

    def test_history_names_the_worker(self, project):
        job = failing(project, "exit 1")
        [attempt] = job["history"]
        assert attempt["outcome"] == "failed" and attempt["error_type"] == "exit_1"
        assert "w" in attempt["worker"].split("/")[-1].split(":")

    def test_hooks_of_the_queue_decide(self, project):
        job = failing(project, "echo broken >&2; exit 9", queue={
            "retry": {"attempts": 5, "cooldown": "1h"}, "hook_timeout_ms": 1000,
            "on_failure": "function on_failure(msg) return "
                          "{ action = 'dlq', reason = 'hook saw ' .. tostring(msg.error_type) } "
                          "end"})
        assert job["reason"].startswith("hook saw ")

    def test_a_run_tells_its_story(self, project):
        job = failing(project, step("a", "true"), step("b", "echo oh >&2; exit 4"))
        run = project.run_of(job["id"])
        assert {name: run[name] for name in ("namespace", "pipeline", "worker", "queue", "type",
                                             "status", "error", "error_type")} == {
            "namespace": project.ns, "pipeline": "work", "worker": "w", "queue": "jobs",
            "type": "persisted", "status": "failed", "error": "step b: exit code 4: oh",
            "error_type": "exit_4"}
        assert [(one["name"], one["visit"], one["status"], one["exit_code"])
                for one in run["steps"]] == [("a", 1, "succeeded", 0), ("b", 1, "failed", 4)]
        assert run["steps"][1]["error"] == "exit code 4: oh"


def tell(name, then="", **fields):
    return step(name, f"echo {name} >> ran; {then}", **fields)


class TestOrder:
    def order(self, project, *steps, **fields):
        """The steps of a job that succeeds."""
        project.declare({**simple(), "pipeline": {"work": pipeline(*steps, **fields)}}).start()
        project.done()
        return project.lines("ran")

    def test_one_after_the_other_in_the_projects_directory(self, project):
        assert self.order(project, tell("a"), tell("b", "pwd >> ran"), tell("c")) == [
            "a", "b", str(project.root), "c"]

    def test_on_done_leads_on(self, project):
        assert self.order(project, tell("a", on_done="c"), tell("b"), tell("c", on_fail="b")) == [
            "a", "c"]

    def test_handlers_are_passed_over(self, project):
        assert self.order(project, tell("a", on_fail="undo"), tell("undo"), tell("b")) == ["a", "b"]

    def test_a_step_that_a_later_one_names_is_no_handler(self, project):
        assert self.order(project, tell("a"), tell("b", "[ -e again ] || { touch again; false; }",
                                                   on_fail="a")) == ["a", "b", "a", "b"]

    def test_fix_and_test(self, project):
        assert self.order(project, tell("test", "[ -e mended ]", on_fail="fix"),
                          tell("fix", "touch mended", on_done="test"), tell("ship")) == [
            "test", "fix", "test", "ship"]

    def test_cleaning_up_does_not_make_it_good(self, project):
        job = failing(project, tell("pick", "echo first >&2; exit 3", on_fail="undo"),
                      tell("undo", "echo \"$REPRISE_ERROR\" >> why"), tell("ship"))
        assert project.lines("ran") == ["pick", "undo"]
        assert job["last_error"] == "step pick: exit code 3: first"
        assert "exit code 3: first" in project.text("why")

    def test_a_failing_handler_leaves_the_first_error(self, project):
        job = failing(project, tell("pick", "exit 3", on_fail="undo"), tell("undo", "exit 4"))
        assert job["last_error_type"] == "exit_3"
        assert project.lines("ran") == ["pick", "undo"]

    def test_the_pipelines_handler_is_that_of_steps_without_one(self, project):
        project.declare({**simple(), "pipeline": {"work": pipeline(
            tell("a"), tell("b", "exit 5"), tell("clean"), on_fail="clean")}}).start()
        assert project.dead(project.push())["last_error_type"] == "exit_5"
        assert project.lines("ran") == ["a", "b", "clean"]

    def test_a_step_runs_five_times_at_most(self, project):
        job = failing(project, tell("a", on_done="a"))
        assert project.lines("ran") == ["a"] * 5
        assert job["last_error_type"] == "visits"

    def test_a_loop_that_never_mends_ends(self, project):
        job = failing(project, tell("test", "exit 1", on_fail="fix"),
                      tell("fix", on_done="test"))
        assert project.lines("ran") == ["test", "fix"] * 5
        assert job["last_error_type"] in ("visits", "exit_1")


class TestCancel:
    def test_runs_the_handler_and_buries_the_job(self, project):
        project.declare(simple(
            tell("work", "sleep 60", on_cancel="tidy", on_fail="other"),
            tell("tidy", "echo \"$REPRISE_ERROR\" >> why"), tell("other"),
            queue={"retry": {"attempts": 9, "cooldown": "0s"}})).start()
        job_id = project.push()
        project.has_lines("ran", 1)
        run = project.run_of(job_id)
        assert project.ok("run", "cancel", run["id"]).out == f"cancelling {run['id']}\n"
        job = project.dead(job_id)
        assert job["last_error_type"] == "cancelled" and "cancelled" in job["last_error"]
        assert project.lines("ran") == ["work", "tidy"] and "cancel" in project.text("why")
        assert project.run_of(job_id)["status"] == "cancelled"
        assert "wrong_status" in project.refused("run", "cancel", run["id"])
        project.declare(simple("true"))
        eventually(lambda: project.state()["broken"] is False)
        project.ok("queue", "retry", "jobs", job_id)

    def test_without_a_handler(self, project):
        project.declare(simple(tell("work", "sleep 60"))).start()
        job_id = project.push()
        project.has_lines("ran", 1)
        project.client.call("POST", f"/v1/runs/{project.run_of(job_id)['id']}/cancel")
        assert project.dead(job_id)["last_error_type"] == "cancelled"
        assert project.worker()["active"] == 0


class TestTimeouts:
    def test_of_a_step(self, project):
        job = failing(project, tell("slow", "sleep 60", timeout="300ms", on_fail="undo"),
                      tell("undo"))
        assert job["last_error_type"] == "timeout" and "slow" in job["last_error"]
        assert project.lines("ran") == ["slow", "undo"]

    def test_of_a_pipeline(self, project):
        project.declare({**simple(), "pipeline": {"work": pipeline(
            tell("a"), tell("b", "sleep 60"), tell("c"), timeout="600ms")}}).start()
        assert project.dead(project.push())["last_error_type"] == "timeout"
        assert project.lines("ran") == ["a", "b"]

    def test_everything_that_was_started_ends(self, project):
        mark = f"mark-{project.ns}-{time.monotonic_ns()}"
        project.declare(simple(step(
            "main", f"export MARK={mark}; trap '' TERM; (setsid sleep 300 &); "
                    "nohup sleep 300 >/dev/null 2>&1 & "
                    "setsid bash -c 'trap \"\" TERM; sleep 300; sleep 300' & echo up >> ran; "
                    "sleep 300 || true; sleep 300", timeout="500ms"))).start()
        job_id = project.push()
        project.has_lines("ran", 1)
        assert marked_processes(mark)
        assert project.dead(job_id)["last_error_type"] == "timeout"
        eventually(lambda: not marked_processes(mark), "all of it to end", 5)

    def test_what_a_step_leaves_behind_ends_with_it(self, project):
        mark = f"mark-{project.ns}-{time.monotonic_ns()}"
        project.declare(simple(f"export MARK={mark}; setsid nohup sleep 300 >/dev/null 2>&1 & "
                               "sleep 300 & (setsid bash -c 'sleep 300 & disown' &); true")).start()
        project.done()
        eventually(lambda: not marked_processes(mark), "all of it to end", 5)


def test_a_push_wakes_the_worker_at_once(project):
    project.declare(simple("date +%s.%N >> ran")).start()
    waits = []
    for number in range(5):
        pushed = time.time()
        project.done()
        waits.append(float(project.lines("ran")[-1]) - pushed)
    assert min(waits) < 0.5, waits


def test_a_worker_takes_as_many_as_it_has_slots(project):
    project.declare(simple("echo $REPRISE_JOB_ID >> ran; until [ -e go ]; do sleep 0.05; done",
                           concurrency=3)).start()
    for _ in range(5):
        project.push()
    project.has_lines("ran", 3)
    assert project.queue().counts() == {"active": 3, "pending": 2}
    assert project.worker()["active"] == 3
    project.touch("go")
    eventually(lambda: project.queue().counts() == {}, "all to be done", 15)
    assert len(set(project.lines("ran"))) == 5


def test_a_lease_is_held_as_long_as_it_takes(project):
    project.declare(simple("echo x >> ran; sleep 2.5", queue={"lease": "600ms"})).start()
    job_id = project.push()
    project.finished(job_id)
    assert project.lines("ran") == ["x"]
    assert project.run_of(job_id)["status"] == "succeeded"


def test_a_job_that_is_dropped_ends_its_run(project):
    mark = f"mark-{project.ns}"
    project.declare(simple(f"export MARK={mark}; echo x >> ran; sleep 300",
                           queue={"lease": "900ms"})).start()
    job_id = project.push()
    project.has_lines("ran", 1)
    run = project.run_of(job_id)
    project.queue().drop(job_id)
    eventually(lambda: project.client.get(f"/v1/runs/{run['id']}")["status"] == "lost",
               "the run to be lost")
    eventually(lambda: not [pid for pid in marked_processes(f"MARK={mark}\0")], "it to end", 5)
    eventually(lambda: project.worker()["active"] == 0, "the slot to be free")


def test_a_run_whose_job_is_gone_in_the_end_has_not_succeeded(project):
    project.declare(simple("echo x >> ran; until [ -e go ]; do sleep 0.05; done")).start()
    job_id = project.push()
    project.has_lines("ran", 1)
    run_id = project.run_of(job_id)["id"]
    project.queue().drop(job_id)
    project.touch("go")
    ended = eventually(lambda: (lambda run: run["ended_at"] and run)(
        project.client.get(f"/v1/runs/{run_id}")), "the run to end", 20)
    assert ended["status"] == "lost"
    assert project.worker()["succeeded"] == 0
