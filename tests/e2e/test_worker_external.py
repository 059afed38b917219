"""External queues: listed, taken from, told the end; a directory stands for the other system."""

import json

import pytest

from outside import Outside, external
from projects import pipeline, simple, step, worker
from waiting import eventually, holds_for

WORK = "echo ${item.id} >> ran"
HOLD = "echo ${item.id} >> ran; until [ -e go ]; do sleep 0.05; done"
NO_POLL = {"poll": None}


@pytest.fixture
def outside(project):
    return Outside(project)


class TestRounds:
    def test_items_are_taken_worked_on_and_told(self, outside, project):
        outside.put("a", "b").declare(WORK)
        project.start()
        outside.wait("done", "a", "b")
        assert project.lines("ran") == ["a", "b"]  # in the order of the list
        assert outside.ids("inbox") == outside.ids("taken") == []
        eventually(lambda: project.worker("fixer")["succeeded"] == 2, "the counts")
        assert project.worker("fixer")["type"] == "external"

    def test_failures_are_told_with_the_reason(self, outside, project):
        outside.put("a").declare(step("try", "echo 'no way' >&2; exit 3"))
        project.start()
        outside.wait("failed", "a")
        assert "exit code 3: no way" in project.text("why-a")
        [run] = project.runs()
        assert (run["status"], run["job"], run["type"]) == ("failed", "a", "external")

    def test_what_appears_while_it_polls(self, outside, project):
        outside.declare(WORK)
        project.start()
        eventually(lambda: outside.polls() >= 2, "polls")
        for item_id in ("x", "y", "z"):
            outside.put(item_id)
            eventually(lambda: item_id in outside.ids("done"), f"{item_id} to be done")

    def test_polls_come_as_often_as_declared(self, outside, project):
        outside.declare(WORK)
        project.start()
        eventually(lambda: outside.polls() >= 6, "six polls", 8)

    def test_without_poll_only_on_occasion(self, outside, project):
        outside.declare(WORK, **NO_POLL)
        project.start()
        eventually(lambda: outside.polls() == 1, "the first")
        outside.put("a")
        holds_for(lambda: outside.polls() == 1, 0.5)
        project.ok("worker", "start", "fixer")  # started once more
        outside.wait("done", "a")
        eventually(lambda: outside.polls() >= 3, "the one after a run")
        seen = outside.polls()
        outside.put("b")
        assert outside.refresh() == "Refreshed external queue 'bugs'\n"
        outside.wait("done", "a", "b")
        assert outside.polls() > seen

    def test_no_more_are_taken_than_there_are_slots(self, outside, project):
        outside.put("a", "b", "c", "d").declare(HOLD, concurrency=2)
        project.start()
        project.has_lines("ran", 2)
        seen = outside.polls()
        eventually(lambda: outside.polls() >= seen + 3, "more polls")
        assert outside.ids("inbox") == ["c", "d"] and project.worker("fixer")["active"] == 2
        project.touch("go")
        outside.wait("done", "a", "b", "c", "d")
        assert project.lines("ran")[:2] in (["a", "b"], ["b", "a"])

    def test_what_others_took_is_skipped_until_the_next_poll(self, outside, project):
        project.touch("refuse-a")
        outside.put("a", "b").declare(
            WORK, take="echo try-${item.id} >> tries; [ ! -e refuse-${item.id} ]; "
                       "mv inbox/${item.id} taken/")
        project.start()
        outside.wait("done", "b")
        assert "a" not in project.lines("ran")
        tries = project.lines("tries").count("try-a")
        eventually(lambda: project.lines("tries").count("try-a") > tries + 1, "further tries")
        assert project.lines("tries").count("try-a") <= outside.polls()
        assert project.worker("fixer")["failed"] == 0
        project.path("refuse-a").unlink()
        outside.wait("done", "a", "b")

    def test_done_and_failed_are_optional(self, outside, project):
        outside.put("good", "bad").declare("[ ${item.id} = good ]", done=None, failed=None)
        project.start()
        outside.wait("taken", "good", "bad")
        eventually(lambda: [project.worker("fixer")[name] for name in ("succeeded", "failed")]
                   == [1, 1], "both to end")

    def test_a_done_that_fails_is_tried_again(self, outside, project):
        outside.put("a").declare(WORK, done="echo x >> told; [ $(wc -l < told) -ge 3 ]; "
                                            "mv taken/${item.id} done/")
        project.start()
        outside.wait("done", "a", timeout=30)
        assert (project.lines("ran"), len(project.lines("told"))) == (["a"], 3)

    def test_the_retry_is_the_next_poll(self, outside, project):
        outside.put("a").declare("echo x >> ran; [ -e ok ]", failed="mv taken/${item.id} inbox/")
        project.start()
        project.has_lines("ran", 3)
        project.touch("ok")
        outside.wait("done", "a")

    def test_one_that_is_stopped_now_is_told_failed(self, outside, project):
        outside.put("a").declare(HOLD)
        project.start()
        project.has_lines("ran", 1)
        project.ok("worker", "stop", "fixer", "--now")
        outside.wait("failed", "a")

    def test_what_commands_are_told(self, outside, project):
        outside.put("a", title="x y").declare(
            "cat > stdin; env -0 > env", take="mv inbox/${job.id} taken/; cat > take-stdin",
            done="mv taken/${item.id} done/; env -0 > done-env")
        project.start()
        outside.wait("done", "a")
        told = json.loads(project.text("stdin"))
        assert told == {"id": "a", "namespace": project.ns, "queue": "bugs", "headers": {},
                        "payload": {"id": "a", "title": "x y"}} or (
            "headers" not in told and told["payload"] == {"id": "a", "title": "x y"})
        env = dict(entry.split("=", 1) for entry in project.text("env").split("\0") if entry)
        assert [env[f"REPRISE_{name}"] for name in ("QUEUE", "WORKER", "JOB_ID", "STEP")] == [
            "bugs", "fixer", "a", "s1"]


class TestKeys:
    def keyed(self, outside, project, text, **fields):
        """The keys of the runs for a list of this text; each item is taken once."""
        outside.declare("echo >> ran", list=f"cat <<'END'\n{text}\nEND\n", failed=None,
                        take="mkdir taken/$(printf %s ${job.id} | md5sum | cut -c1-32)",
                        done=None, concurrency=9, **fields)
        project.start()
        eventually(lambda: project.worker("fixer")["last_poll_at"], "a poll")
        seen = project.worker("fixer")["last_poll_at"]
        eventually(lambda: project.worker("fixer")["last_poll_at"] > seen, "another")
        eventually(lambda: project.worker("fixer")["active"] == 0, "the runs to end")
        return sorted(run["job"] for run in project.runs())

    def test_id_then_number_then_a_hash(self, outside, project):
        keys = self.keyed(outside, project, '[{"id": "a", "number": 1}, {"number": 2}, {"x": 1}]')
        assert len(keys) == 3 and {"a", "2"} <= set(keys)

    def test_the_declared_field(self, outside, project):
        listed = '[{"id": "a", "name": "n1"}, {"id": "a", "name": "n2"}]'
        assert self.keyed(outside, project, listed, key="name") == ["n1", "n2"]

    def test_a_number_and_its_text_are_one(self, outside, project):
        assert self.keyed(outside, project, '[{"id": 7}, {"id": "7"}]') == ["7"]

    def test_items_that_are_no_objects(self, outside, project):
        assert len(self.keyed(outside, project, '["a", "b", 5]')) == 3


class TestLists:
    @pytest.mark.parametrize("command, word", [
        ("echo 'cannot reach it' >&2; exit 4", "cannot reach it"), ("echo no json", ""),
        ("echo '{}'", ""), ("echo '[1'", ""), ("true", ""),
        ("head -c 20000000 /dev/zero | tr '\\0' ' '; echo '[]'", "16 MiB"),
        ("echo '[]'; sleep 60", "")])
    def test_one_that_fails_is_shown_and_backs_off(self, outside, project, command, word):
        outside.declare(WORK, list=f"[ -e ok ] && {{ echo '[]'; exit; }}; date +%s.%N >> listed; "
                                   f"{command}", timeout="300ms" if "sleep" in command else "10s")
        project.start()
        error = eventually(lambda: project.worker("fixer")["last_error"], "the error")
        assert word in error
        assert error in outside.shown()["last_error"] or outside.shown()["last_error"] in error
        row = project.ok("worker", "list", "--no-header").rows()[0]
        assert row[0] == "fixer" and row[5] != "-"
        times = [float(line) for line in project.has_lines("listed", 4, timeout=20)]
        waits = [later - earlier for earlier, later in zip(times, times[1:])]
        assert waits[2] > 0.7 and waits[2] > waits[0] * 1.5, waits
        project.touch("ok")
        project.ok("worker", "start", "fixer")
        eventually(lambda: project.worker("fixer")["last_error"] is None, "it to be well")
        assert outside.shown()["last_error"] is None

    def test_polls_never_overlap(self, outside, project):
        outside.declare(WORK, list="mkdir listing || echo x >> overlaps; sleep 0.4; "
                                   "rmdir listing; echo x >> listed; echo '[]'")
        project.start()
        for _ in range(10):
            outside.refresh()
        eventually(lambda: outside.polls() >= 5, "polls")
        assert project.lines("overlaps") == []

    def test_one_asked_for_while_one_runs_follows_it(self, outside, project):
        outside.declare(WORK, **NO_POLL, list="echo x >> begun; until [ -e go ]; do sleep 0.05; "
                                              "done; echo x >> listed; echo '[]'")
        project.start()
        project.has_lines("begun", 1)
        outside.refresh()
        project.touch("go")
        eventually(lambda: outside.polls() == 2, "the second list")
        holds_for(lambda: outside.polls() == 2, 0.4)


class TestNoItemTwice:
    @pytest.mark.parametrize("workers, concurrency", [(("fixer",), 4), (("one", "two"), 3)])
    def test_with_many_slots_workers_and_polls(self, outside, project, workers, concurrency):
        """`take` succeeds for everybody here: it is the server that must not ask twice."""
        outside.declare(
            "echo ${item.id} >> ran; mkdir lock-${item.id} || echo ${item.id} >> doubles; "
            "sleep 0.3; rmdir lock-${item.id}", workers=workers, concurrency=concurrency,
            take="echo ${item.id} >> takes; [ -e inbox/${item.id} ]",
            done="mv inbox/${item.id} done/")
        outside.put(*[f"i{number:02}" for number in range(20)])
        project.start()
        for _ in range(10):
            outside.refresh()
            project.ok("worker", "start", "--all")
        outside.wait("done", *[f"i{number:02}" for number in range(20)], timeout=30)
        assert project.lines("doubles") == []
        assert sorted(project.lines("ran")) == [f"i{number:02}" for number in range(20)]


class TestCrash:
    @pytest.fixture
    def outside(self, server, new_project):
        return Outside(new_project(server))

    def test_failed_is_told_of_what_was_in_work(self, outside, server):
        project = outside.project
        outside.put("a").declare(HOLD, failed=(
            "printf %s \"$REPRISE_ERROR\" > why; echo ${item.id} >> told; "
            "mv taken/${item.id} failed/"))
        project.start()
        project.has_lines("ran", 1)
        assert outside.ids("taken") == ["a"]
        server.restart("kill")
        outside.wait("failed", "a")
        assert project.lines("told") == ["a"] and project.text("why")
        assert project.lines("ran") == ["a"]
        outside.put("b")
        project.touch("go")
        outside.wait("done", "b")

    def test_done_is_told_of_what_had_succeeded(self, outside, server):
        project = outside.project
        outside.put("a").declare("echo ran >> ran", done=(
            "echo x >> telling; until [ -e go ]; do sleep 0.05; done; mv taken/${item.id} done/"))
        project.start()
        project.has_lines("telling", 1)
        server.kill()
        project.touch("go")
        server.start()
        outside.wait("done", "a")
        assert project.lines("ran") == ["ran"]
        assert outside.ids("failed") == []

    def test_a_take_that_was_cut_off(self, outside, server):
        """Nobody knows whether it was taken: `failed` is told."""
        project = outside.project
        outside.put("a").declare("echo ran >> ran", take=(
            "mv inbox/${item.id} taken/; echo x >> taking; until [ -e go ]; do sleep 0.05; done"))
        project.start()
        project.has_lines("taking", 1)
        server.restart("kill")
        outside.wait("failed", "a")
        assert project.lines("ran") == []

    def test_a_stop_of_the_server(self, outside, server):
        project = outside.project
        outside.put("a").declare(HOLD)
        project.start()
        project.has_lines("ran", 1)
        server.restart("stop")
        outside.wait("failed", "a")


class TestCommands:
    def test_refresh_and_show(self, outside, project):
        outside.put("a").declare(HOLD, poll="30s")
        project.start()
        project.has_lines("ran", 1)
        reply = project.ok("queue", "push", "bugs", "--json").json()
        assert {name: reply[name] for name in ("name", "namespace", "type", "workers", "poll")} == {
            "name": "bugs", "namespace": project.ns, "type": "external", "workers": ["fixer"],
            "poll": "30s"}
        assert reply["in_hand"] == 1
        shown = project.client.get(f"/v1/queues?namespace={project.ns}")
        assert [one["name"] for one in shown["external"]] == ["bugs"] and shown["queues"] == []
        assert outside.shown()["type"] == "external" and outside.shown()["last_poll_at"]

    def test_it_takes_no_jobs(self, outside, project):
        outside.declare(WORK)
        project.start()
        assert "external_queue" in project.refused("queue", "push", "bugs", '{"id": 1}')
        assert project.client.refused("POST", project.queue("bugs").path("/push"),
                                      {"jobs": [{"payload": 1}]}) == (409, "external_queue")

    def test_a_stored_one_cannot_be_refreshed(self, project):
        project.declare(simple("true")).add()
        assert project.client.refused("POST", project.queue().path("/refresh")) == (
            409, "queue_not_external")
        assert project.run("queue", "push", "jobs").code != 0

    def test_its_timer_comes_and_goes(self, outside, project):
        name = f"queue-poll:{project.ns}/fixer"
        outside.declare(WORK, poll="30s")
        project.add()
        assert name not in project.timers()
        project.start()
        eventually(lambda: name in project.timers(), "the timer")
        header, *rows = project.ok("timers").rows()
        assert header == ["TIMER", "DUE"] and [row[0] for row in rows] == [name]
        project.ok("worker", "stop", "fixer")
        eventually(lambda: project.timers() == [], "the timer to be gone")

    def test_a_retry_has_a_timer_too(self, project):
        project.declare(simple("exit 1", queue={"retry": {"attempts": 3, "cooldown": "1h"}}))
        project.start()
        job_id = project.push()
        name = f"queue-retry:{project.ns}/jobs:{job_id}"
        eventually(lambda: project.timers() == [name], "the timer")
        assert project.ok("timers", "--no-header").rows()[0][0] == name
        project.queue().drop(job_id)
        eventually(lambda: project.timers() == [], "the timer to be gone")

    def test_a_stored_and_an_external_queue_of_one_project(self, outside, project):
        declared = simple("echo job >> ran")
        declared["queue"]["bugs"] = external()
        declared["pipeline"]["fix"] = pipeline("echo bug >> ran")
        declared["worker"]["fixer"] = worker("bugs", "fix")
        project.declare(declared).start()
        outside.put("a")
        project.done()
        outside.wait("done", "a")
        assert sorted(project.lines("ran")) == ["bug", "job"]
