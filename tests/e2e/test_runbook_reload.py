"""Edits of a runbook count at once, and broken ones change nothing."""

import os
import time

import pytest

from projects import pipeline, simple, step, stored, worker
from waiting import eventually, holds_for

HOLD = "echo one >> ran; until [ -e go ]; do sleep 0.05; done; echo end >> ran"
POLLED = {"type": "external", "list": "echo x >> listed; echo '[]'", "take": "true"}


def broken(project):
    return project.state()["broken"]


class TestEdits:
    def test_commands(self, project):
        project.declare(simple("echo one >> ran")).start()
        project.done()
        project.declare(simple("echo two >> ran"))
        eventually(lambda: project.done() and project.lines("ran")[-1] == "two", "the edit", 5)

    def test_a_start_reads_it_at_once(self, project):
        project.declare(simple("echo one >> ran")).start()
        for number in range(5):
            project.declare(simple(f"echo edit-{number} >> ran"))
            project.ok("worker", "start", "w")
            project.done()
            assert project.lines("ran")[-1] == f"edit-{number}"

    def test_within_a_second_without_any_reason(self, project):
        project.declare(simple("true")).start()
        project.declare({**simple("true"), "queue": {"jobs": stored(), "more": stored()}})
        edited = time.monotonic()
        eventually(lambda: project.client.request("GET", project.queue("more").path()).status
                   == 200, "the new queue", 5)
        assert time.monotonic() - edited < 2

    def test_concurrency(self, project):
        project.declare(simple(HOLD)).start()
        for _ in range(4):
            project.push()
        project.has_lines("ran", 1)
        project.declare(simple(HOLD, concurrency=3))
        project.has_lines("ran", 3, timeout=5)
        assert project.worker()["active"] == 3
        project.declare(simple(HOLD, concurrency=1))
        eventually(lambda: project.worker()["concurrency"] == 1, "the second edit", 5)
        project.touch("go")
        eventually(lambda: project.queue().counts() == {}, "all to be done")

    def test_retry(self, project):
        project.declare(simple("exit 1")).start()
        project.dead(project.push())
        project.declare(simple("exit 1", queue={"retry": {"attempts": 3, "cooldown": "0s"}}))
        eventually(lambda: project.queue().show()["config"]["retry"]["attempts"] == 3, "the edit",
                   5)
        assert project.dead(project.push())["attempts"] == 3

    def test_poll(self, project):
        def declare(poll):
            project.declare({"queue": {"bugs": {**POLLED, "poll": poll}},
                             "pipeline": {"work": pipeline("true")},
                             "worker": {"w": worker("bugs", "work")}})

        declare("1h")
        project.start()
        project.has_lines("listed", 1)
        declare("200ms")
        project.has_lines("listed", 6, timeout=8)
        declare("1h")
        # Two seconds without a list: the edit has come to it.
        eventually(lambda: time.time() - project.path("listed").stat().st_mtime > 1.5, "silence")

    def test_a_run_under_way_finishes_with_the_steps_it_began_with(self, project):
        project.declare(simple(HOLD, "echo old >> ran")).start()
        first = project.push()
        project.has_lines("ran", 1)
        project.declare(simple("echo new >> ran", "echo newer >> ran"))
        project.ok("worker", "start", "w")
        project.touch("go")
        project.finished(first)
        assert project.lines("ran") == ["one", "end", "old"]
        project.done()
        assert project.lines("ran")[3:] == ["new", "newer"]

    def test_new_workers(self, project):
        project.declare(simple("true")).start()
        both = simple("echo $REPRISE_WORKER >> ran")
        both["queue"]["more"] = stored()
        both["worker"]["second"] = worker("more", "work", autostart=True)
        both["worker"]["third"] = worker("more", "work")
        project.declare(both)
        eventually(lambda: set(project.workers()) == {"w", "second", "third"}, "new workers", 5)
        assert project.workers()["third"]["status"] == "stopped"
        project.start("third")

    def test_new_files(self, project):
        project.declare(simple("true")).start()
        project.declare(queue={"more": stored()}, worker={"second": worker("more", "work")},
                        file="second.json")
        eventually(lambda: set(project.workers()) == {"w", "second"}, "the new file", 5)
        assert project.state()["files"] == [".reprise/book.toml", ".reprise/second.json"]
        (project.book / "second.json").unlink()
        eventually(lambda: set(project.workers()) == {"w"}, "it to be gone", 5)

    def test_a_worker_that_is_no_more_finishes_its_jobs(self, project):
        project.declare(simple(HOLD)).start()
        first, second = project.push(), project.push()
        project.has_lines("ran", 1)
        project.declare(queue={"jobs": stored()})
        eventually(lambda: project.state()["workers"] == 0, "the edit", 5)
        project.touch("go")
        project.finished(first)
        eventually(lambda: project.workers() == {}, "it to be gone")
        assert project.lines("ran") == ["one", "end"]
        assert project.queue().status_of(second) == "pending"

    def test_another_queue(self, project):
        two = {"queue": {"a": stored(), "b": stored()},
               "pipeline": {"work": pipeline("echo $REPRISE_QUEUE >> ran")}}
        project.declare(two, worker={"w": worker("a", "work")}).start()
        project.finished(project.push(queue="a"), "a")
        project.declare(two, worker={"w": worker("b", "work")})
        project.finished(project.push(queue="b"), "b")
        project.push(queue="a")
        holds_for(lambda: project.queue("a").counts() == {"pending": 1}, 0.3)


BROKEN = {
    "syntax": "[[[ nothing",
    "a mistake": '[queue.jobs]\ntype = "persisted"\nvars = []\n[worker.w]\nqueue = "jobs"\n'
                 'run = "nowhere"\n',
    "bytes": "\x01\x02",
}


class TestBrokenEdits:
    @pytest.mark.parametrize("kind", BROKEN)
    def test_change_nothing_and_are_told(self, project, kind):
        project.declare(simple("echo one >> ran", concurrency=2)).start()
        loaded = project.state()["loaded_at"]
        project.write("book.toml", BROKEN[kind])
        eventually(lambda: broken(project), "it to be noticed", 5)
        project.done()
        assert project.lines("ran") == ["one"]
        state = project.state()
        assert state["loaded_at"] == loaded
        assert any(one["severity"] == "error" and one["file"] == ".reprise/book.toml"
                   for one in state["findings"])
        listed = project.ok("worker", "list")
        assert listed.rows()[1][:4] == ["w", "jobs", "running", "0/2"]
        assert f"runbook of {project.ns} is broken" in listed.err
        assert ".reprise/book.toml:" in listed.err
        assert ".reprise/book.toml" in project.server.log()

    def test_a_mended_one_counts(self, project):
        project.declare(simple("echo one >> ran")).start()
        project.write("book.toml", BROKEN["syntax"])
        eventually(lambda: broken(project), "it to be noticed", 5)
        project.declare(simple("echo two >> ran"))
        eventually(lambda: not broken(project), "it to be mended", 5)
        project.done()
        assert project.lines("ran") == ["two"]
        assert "broken" not in project.ok("worker", "list").err

    @pytest.mark.parametrize("ends, expected", [("true", None), ("exit 3", "dead")])
    def test_results_of_running_jobs_are_recorded(self, project, ends, expected):
        project.declare(simple(step("main", HOLD + f"; {ends}"))).start()
        job_id = project.push()
        project.has_lines("ran", 1)
        project.write("book.toml", BROKEN["syntax"])
        eventually(lambda: broken(project), "it to be noticed", 5)
        project.touch("go")
        eventually(lambda: project.queue().status_of(job_id) == expected, "the result")
        if expected:
            assert project.queue().job(job_id)["last_error_type"] == "exit_3"

    def test_the_retry_policy_stays(self, project):
        retry = {"attempts": 2, "cooldown": "0s"}
        project.declare(simple("exit 1", queue={"retry": retry})).start()
        project.write("book.toml", BROKEN["a mistake"])
        eventually(lambda: broken(project), "it to be noticed", 5)
        assert project.queue().show()["config"]["retry"] == retry
        assert project.dead(project.push())["attempts"] == 2

    def test_starts_use_the_last_good_version(self, project):
        project.declare(simple("echo one >> ran")).add()
        project.write("book.toml", BROKEN["syntax"])
        eventually(lambda: broken(project), "it to be noticed", 5)
        project.run("worker", "start", "w")
        eventually(lambda: project.worker()["status"] == "running", "it to start")
        project.done()

    @pytest.mark.parametrize("kind", ["fifo", "directory", "device", "dangling link"])
    def test_a_file_that_is_none(self, project, kind):
        """Nothing that stands in the directory holds the server up."""
        project.declare(simple("echo one >> ran")).start()
        odd = project.book / "odd.toml"
        if kind == "fifo":
            os.mkfifo(odd)
        elif kind == "directory":
            odd.mkdir()
        else:
            odd.symlink_to("/dev/zero" if kind == "device" else "/nowhere")
        eventually(lambda: broken(project), "it to be noticed", 5)
        assert any("odd.toml" in one["file"] + one["message"]
                   for one in project.state()["findings"])
        project.done()
        odd.rmdir() if kind == "directory" else odd.unlink()
        eventually(lambda: not broken(project), "it to be well", 5)

    def test_a_directory_that_is_gone(self, project):
        project.declare(simple("echo one >> ran")).start()
        project.done()
        hidden = project.book.rename(project.root / "hidden")
        eventually(lambda: broken(project), "it to be noticed", 5)
        project.done()
        hidden.rename(project.book)
        eventually(lambda: not broken(project), "it to be well", 5)
        project.done()
        assert project.lines("ran") == ["one"] * 3
