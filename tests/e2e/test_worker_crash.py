"""kill -9 of the server under workers at random moments: no process of a step is left, no job is
lost, none runs twice at the same time, and all are done in the end."""

import os
import random
import time

import pytest

from outside import Outside
from projects import marked_processes, simple
from waiting import eventually

ROUNDS = int(os.environ.get("WORKER_CYCLES", "20"))
JOBS = 120
ENDS_WITHIN_SECONDS = 5
# Whatever the step has started holds the lock too, for it has the descriptor: a second run of the
# job while anything of the first is left finds it taken.
STEP = """\
exec 9> "locks/$REPRISE_JOB_ID"
if ! flock -n 9; then echo "$REPRISE_JOB_ID" >> doubles; exit 0; fi
echo "$REPRISE_JOB_ID" >> begun
setsid sleep 300 >/dev/null 2>&1 &
nohup sleep 300 >/dev/null 2>&1 &
(setsid bash -c 'trap "" TERM HUP; sleep 300; sleep 300' >/dev/null 2>&1 &)
sleep 0.${item.tenths}
echo "$REPRISE_JOB_ID" >> ended
"""


@pytest.fixture
def chance():
    seed = int(os.environ.get("REPRISE_SEED") or time.time_ns() % 1_000_000_000)
    print(f"REPRISE_SEED={seed}")
    return random.Random(seed)


def assert_gone(mark):
    eventually(lambda: not marked_processes(mark),
               f"everything of {mark} to end (left: {marked_processes(mark)})",
               ENDS_WITHIN_SECONDS, 0.05)


def story(project, job):
    """What is known of a job that was lost on the way."""
    whole = project.queue().job(job["id"])
    begun = project.lines("begun").count(job["id"])
    return job["id"], whole["status"], whole["last_error"], f"begun {begun} times", [
        (one["at"], one["outcome"]) for one in whole["history"]]


def test_jobs_survive_and_processes_do_not(start_server, new_project, chance):
    server = start_server(ready=False)
    project = new_project(server)
    project.path("locks").mkdir()
    project.declare(simple(STEP, concurrency=4))
    mark = f"CRASH_{os.getpid()}_{time.monotonic_ns()}"
    server.env["STEP_MARK"] = f"{mark}_0_"
    server.start()
    project.start()
    ids = project.queue().push(*[{"tenths": chance.randint(0, 4)} for _ in range(JOBS)])
    for number in range(ROUNDS):
        pause = chance.choice([0.05, 0.2, 0.5, 0.8]) * chance.random()
        time.sleep(pause)  # the moment of the crash: any is right
        old = server.env["STEP_MARK"]
        server.kill()
        if chance.random() < 0.5:
            assert_gone(old)
            server.env["STEP_MARK"] = f"{mark}_{number + 1}_"
            server.start()
        else:  # the next one starts while the last one's processes may still be ending
            server.env["STEP_MARK"] = f"{mark}_{number + 1}_"
            server.start()
            assert_gone(old)
        counts = project.queue().counts()
        assert "failed" not in counts and "dead" not in counts, (number, counts)
    eventually(lambda: set(project.queue().counts()) <= {"dead"}, "all jobs to be done", 60, 0.1)
    assert [story(project, job) for job in project.queue().all_jobs()] == []
    assert project.lines("doubles") == []
    assert set(project.lines("ended")) == set(ids)
    assert project.queue().totals().get("completed", project.queue().stats()["completed"]) == JOBS
    assert {run["status"] for run in project.runs(limit=1000)} <= {"succeeded", "lost"}
    server.terminate()
    assert_gone(mark)


def test_external_items_are_told_once_for_each_take(start_server, new_project, chance):
    """Each item that was taken ends in done or failed, and none is worked on twice at once."""
    server = start_server(ready=False)
    outside = Outside(new_project(server))
    project = outside.project
    project.path("locks").mkdir()
    outside.declare(STEP, concurrency=3)
    names = [f"i{number:02}" for number in range(30)]
    for name in names:
        outside.put(name, tenths=chance.randint(0, 3))
    mark = f"CRASH_{os.getpid()}_{time.monotonic_ns()}_"
    server.env["STEP_MARK"] = mark
    server.start()
    project.start()
    for _ in range(ROUNDS // 3):
        time.sleep(0.6 * chance.random())
        server.kill()
        server.start()
    eventually(lambda: len(outside.ids("done")) + len(outside.ids("failed")) == len(names),
               "all to be told", 60, 0.1)
    assert outside.ids("inbox") == outside.ids("taken") == []
    assert project.lines("doubles") == []
    assert set(outside.ids("done")) <= set(project.lines("ended"))
    server.terminate()
    assert_gone(mark)
