"""Projects: which namespace a directory stands for, and which ones a server works for."""

import os
import shutil

import pytest

from projects import Project, pipeline, simple, stored, worker
from reprise_cli import Cli
from waiting import eventually

REFUSED, USAGE = 1, 2
TELL = simple("echo \"$REPRISE_PROJECT $REPRISE_NAMESPACE\" >> ran")
RESTARTS = ["stop", "kill"]


def queues_of(client, namespace):
    return [queue["name"] for queue in
            client.get(f"/v1/queues?namespace={namespace}")["queues"]]


class TestName:
    @pytest.fixture
    def name_of(self):
        """The namespace that `runbook check` says a directory has, of the flags and settings."""
        def name(project, *flags, cwd=None, env=None):
            return project.ok("runbook", "check", "--json", *flags, cwd=cwd, env=env).json()[
                "project"]
        return name

    def test_is_the_directorys(self, new_project, name_of):
        assert name_of(new_project(name="My.shop_1").declare(TELL)) == "My.shop_1"

    @pytest.mark.parametrize("file, text", [
        ("config.toml", '[project]\nname = "named"\n'),
        ("config.json", '{"project": {"name": "named"}}')])
    def test_stands_in_the_config(self, new_project, name_of, file, text):
        project = new_project(name="shop").declare(TELL)
        project.write(file, text)
        assert name_of(project) == "named"

    def test_of_the_flag_of_the_environment(self, new_project, name_of):
        project = new_project(name="shop").declare(TELL)
        project.write("config.toml", '[project]\nname = "named"\n')
        assert name_of(project, env={"REPRISE_PROJECT": "settings"}) == "settings"
        assert name_of(project, "--project", "flag", env={"REPRISE_PROJECT": "settings"}) == "flag"

    @pytest.mark.parametrize("name", ["a b", "", "-x", "é", "x" * 201])
    def test_one_that_cannot_be_is_refused(self, new_project, name):
        project = new_project(name="shop").declare(TELL)
        project.write("config.toml", f'[project]\nname = "{name}"\n')
        result = project.run("runbook", "check")
        assert result.code == REFUSED and "config.toml" in result.out + result.err

    def test_a_directory_that_cannot_be_one_needs_a_name(self, new_project, name_of):
        project = new_project(name="my shop").declare(TELL)
        assert project.run("runbook", "check").code == REFUSED
        project.write("config.toml", '[project]\nname = "my-shop"\n')
        assert name_of(project) == "my-shop"


class TestNamespace:
    """What every command inside a project works in."""

    def push_names(self, project, *flags, **options):
        return project.ok("queue", "push", "q", "1", "--create", "--json", *flags,
                          **options).json()

    def test_inside_and_below_is_the_projects(self, project, tmp_path):
        deep = project.root / "a" / "b"
        deep.mkdir(parents=True)
        self.push_names(project)
        self.push_names(project, cwd=deep)
        assert project.queue("q").counts() == {"pending": 2}
        assert project.ok("queue", "list", "--no-header").rows()[0][0] == "q"

    def test_the_nearest_counts(self, project):
        inner = Project(project.root / "sub" / (project.ns + "-inner"), project.server)
        self.push_names(inner)
        assert queues_of(project.client, project.ns) == []
        assert inner.queue("q").counts() == {"pending": 1}

    def test_flags_and_the_environment_override_it(self, project):
        ns = project.ns
        self.push_names(project, "-n", ns + "-n")
        self.push_names(project, "--project", ns + "-p")
        self.push_names(project, env={"REPRISE_PROJECT": ns + "-e"})
        self.push_names(project, "--project", ns + "-f", env={"REPRISE_PROJECT": ns + "-x"})
        self.push_names(project, "-n", ns + "-m", env={"REPRISE_PROJECT": ns + "-x"})
        found = {suffix: queues_of(project.client, ns + suffix)
                 for suffix in ("", "-n", "-p", "-e", "-f", "-m", "-x")}
        assert found == {"": [], "-n": ["q"], "-p": ["q"], "-e": ["q"], "-f": ["q"], "-m": ["q"],
                         "-x": []}

    def test_both_flags_are_one_too_many(self, project):
        assert project.run("queue", "list", "--project", "a", "-n", "b").code == USAGE

    def test_outside_it_is_the_default(self, server, tmp_path):
        Cli(server.url).ok("queue", "push", "q", "1", "--create", cwd=tmp_path)
        assert queues_of(server.client(), "default") == ["q"]

    def test_steps_are_told_it(self, project):
        project.write("config.toml", f'[project]\nname = "{project.ns}-named"\n')
        project.declare(TELL)
        project.ns += "-named"
        project.start()
        project.done()
        assert project.lines("ran") == [f"{project.ns} {project.ns}"]

    def test_the_flag_names_the_project_that_is_started(self, project):
        project.declare(TELL)
        project.ok("worker", "start", "w", "--project", project.ns + "-other")
        project.ns += "-other"
        assert project.state()["root"] == str(project.root)
        project.done()
        assert project.lines("ran") == [f"{project.ns} {project.ns}"]


class TestTwoProjects:
    @pytest.mark.parametrize("command", [("worker", "start", "w"), ("project", "add")])
    def test_with_one_name_are_refused(self, new_project, shared_server, namespace, command):
        first = new_project(shared_server, namespace, "a").declare(TELL)
        second = new_project(shared_server, namespace, "b").declare(TELL)
        first.ok(*command)
        error = second.refused(*command)
        assert "project_conflict" in error and str(first.root) in error
        assert second.client.refused("PUT", f"/v1/projects/{namespace}",
                                     {"root": str(second.root)}) == (409, "project_conflict")
        assert first.state()["root"] == str(first.root)
        first.start()
        first.done()
        assert (len(first.lines("ran")), second.lines("ran")) == (1, [])
        second.ok(*command, "--project", namespace + "-2")

    def test_with_equal_names_inside_do_not_mix(self, new_project, shared_server):
        one = new_project(shared_server).declare(TELL)
        two = new_project(shared_server).declare(TELL)
        one.start()
        for project in (one, two):
            project.add(200 if project is one else 201)
        waiting = two.push()
        for _ in range(3):
            one.done()
        assert two.queue().status_of(waiting) == "pending"
        assert two.worker()["status"] == "stopped"
        two.start()
        two.finished(waiting)
        one.ok("worker", "stop", "w")
        two.done()
        assert one.lines("ran") == [f"{one.ns} {one.ns}"] * 3
        assert two.lines("ran") == [f"{two.ns} {two.ns}"] * 2
        assert {run["namespace"] for run in two.runs()} == {two.ns}

    def test_after_the_first_is_removed_the_name_is_free(self, new_project, shared_server,
                                                         namespace):
        first = new_project(shared_server, namespace, "a").declare(TELL)
        second = new_project(shared_server, namespace, "b").declare(TELL)
        first.add()
        first.ok("project", "remove", namespace)
        second.start()
        second.done()


class TestUnsafe:
    def assert_refused(self, project, *names):
        error = project.refused("worker", "start", "w")
        assert "unsafe_project" in error
        assert all(name in error for name in names), error
        assert project.client.refused("PUT", f"/v1/projects/{project.ns}", {
            "root": str(project.root)}) == (403, "unsafe_project")
        assert project.state() is None
        assert queues_of(project.client, project.ns) == []

    @pytest.mark.parametrize("what", [".reprise", ".reprise/book.toml"])
    def test_writable_for_everybody(self, project, what):
        project.declare(TELL)
        path = project.root / what
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        self.assert_refused(project, what)
        path.chmod(mode)
        project.start()
        project.done()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    @pytest.mark.parametrize("what", [".reprise", ".reprise/book.toml"])
    def test_of_another_user(self, project, what):
        project.declare(TELL)
        os.chown(project.root / what, 12345, 12345)
        self.assert_refused(project, what)
        os.chown(project.root / what, 0, 0)
        project.start()

    def test_what_becomes_so_is_not_taken(self, project):
        """An edit that somebody else might have made does not count."""
        project.declare(TELL).start()
        project.done()
        path = project.write("book.toml", project.text(".reprise/book.toml").replace(
            "echo", "echo changed"))
        path.chmod(0o666)
        eventually(lambda: project.state()["broken"], "the project to be broken")
        project.done()
        assert not any("changed" in line for line in project.lines("ran")[-1:])
        path.chmod(0o644)
        eventually(lambda: not project.state()["broken"], "the project to be well")


class TestAddListRemove:
    def test_add_tells_and_loads(self, project, tmp_path):
        project.declare(TELL)
        assert project.ok("project", "add").out == (
            f"added project {project.ns} ({project.root})\n")
        assert queues_of(project.client, project.ns) == ["jobs"]
        assert project.worker()["status"] == "stopped"

    def test_add_takes_a_directory(self, project, tmp_path):
        project.declare(TELL)
        deep = project.root / "deep"
        deep.mkdir()
        project.ok("project", "add", deep, cwd=tmp_path)
        assert project.state()["root"] == str(project.root)

    def test_reply(self, project):
        project.declare(simple("python3 -c 'print(\"${item.x}\")'"))
        reply = project.add()
        assert {name: reply[name] for name in (
            "name", "root", "broken", "files", "queues", "pipelines", "workers")} == {
            "name": project.ns, "root": str(project.root), "broken": False,
            "files": [".reprise/book.toml"], "queues": 1, "pipelines": 1, "workers": 1}
        assert [(one["severity"], one["path"]) for one in reply["findings"]] == [
            ("warning", "pipeline.work.step.0.run")]
        assert reply["loaded_at"]
        assert project.add(200)["name"] == project.ns
        assert "warning" in project.ok("project", "add").err

    def test_one_with_errors_is_refused_with_all_of_them(self, project):
        project.declare({"queue": {"q": {"type": "odd"}},
                         "worker": {"w": worker("none", "nothing")}})
        reply = project.client.request("PUT", f"/v1/projects/{project.ns}",
                                       {"root": str(project.root)})
        assert (reply.status, reply.code) == (400, "invalid_runbook")
        for path in ("queue.q.type", "worker.w.queue", "worker.w.run"):
            assert path in reply.message
        assert "invalid_runbook" in project.refused("project", "add")
        assert project.state() is None

    @pytest.mark.parametrize("root", ["relative", "/nowhere/at/all", "", 5, None, "/"])
    def test_directories_that_are_none(self, project, root):
        reply = project.client.request("PUT", f"/v1/projects/{project.ns}", {"root": root})
        assert 400 <= reply.status < 500 and reply.code, reply
        assert project.state() is None

    def test_list(self, server, new_project):
        for name in ("beta", "alpha"):
            new_project(server, name).declare(TELL).add()
        gone = new_project(server, "gone").declare(TELL)
        gone.add()
        shutil.rmtree(gone.root)
        broken = new_project(server, "hurt").declare(TELL)
        broken.add()
        broken.write("book.toml", "[[[")

        def rows():
            return Cli(server.url).ok("project", "list").rows()

        eventually(lambda: [row[2] for row in rows()[1:]] == ["ok", "ok", "missing", "broken"],
                   "all to be listed as they are")
        header, *found = rows()
        assert header == ["PROJECT", "ROOT", "STATE", "QUEUES", "PIPELINES", "WORKERS"]
        assert [row[0] for row in found] == ["alpha", "beta", "gone", "hurt"]
        assert found[0][1].endswith("/alpha") and found[0][3:] == ["1", "1", "1"]
        assert Cli(server.url).ok("project", "list", "--no-header").rows() == found

    def test_remove(self, project):
        project.declare(simple("echo x >> ran; sleep 60")).start()
        job = project.push()
        project.has_lines("ran", 1)
        waiting = project.push()
        assert project.ok("project", "remove", project.ns).out == (
            f"removed project {project.ns}\n")
        eventually(lambda: project.queue().counts() == {"pending": 2}, "the job to be given back")
        assert project.queue().job(job)["failures"] == 0
        assert project.queue().status_of(waiting) == "pending"
        assert project.state() is None
        assert "project_not_found" in project.refused("project", "remove", project.ns)
        assert "project_not_found" in project.refused("worker", "stop", "w")


@pytest.mark.parametrize("how", RESTARTS)
class TestRestart:
    def test_projects_are_remembered(self, server, new_project, how):
        kept = new_project(server, "kept").declare(TELL)
        removed = new_project(server, "removed").declare(TELL)
        for project in (kept, removed):
            project.add()
        removed.ok("project", "remove", "removed")
        server.restart(how)
        assert [one["name"] for one in kept.client.get("/v1/projects")["projects"]] == ["kept"]
        assert kept.state()["root"] == str(kept.root)
        kept.start()
        kept.done()

    def test_one_that_broke_meanwhile_comes_back_when_it_is_mended(self, server, new_project, how):
        project = new_project(server).declare(TELL)
        project.start()
        project.done()
        server.kill() if how == "kill" else server.terminate()
        good = project.text(".reprise/book.toml")
        project.write("book.toml", good + "\n[[[")
        server.start()
        assert eventually(project.state)["broken"] is True
        job = project.push()
        project.write("book.toml", good)
        project.finished(job)
        assert project.state()["broken"] is False


class TestServe:
    AUTO = simple("echo \"$REPRISE_PROJECT\" >> ran", autostart=True)

    def test_inside_a_project_loads_it(self, start_server, new_project):
        project = new_project(name="inside").declare(self.AUTO)
        below = project.root / "below"
        below.mkdir()
        project.server = start_server(cwd=below)
        eventually(lambda: project.workers()["w"]["status"] == "running", "the worker to run")
        project.done()
        assert project.lines("ran") == ["inside"]

    def test_project_dir(self, start_server, new_project):
        project = new_project(name="elsewhere").declare(self.AUTO)
        project.server = start_server("--project-dir", str(project.root), "--project", "renamed")
        project.ns = "renamed"
        eventually(lambda: project.state() and project.workers(), "the project")
        project.done()
        assert project.lines("ran") == ["renamed"]

    def test_none_loads_none(self, start_server, new_project):
        project = new_project(name="inside").declare(self.AUTO)
        project.server = start_server("--project-dir", "none", cwd=project.root)
        assert project.client.get("/v1/projects") == {"projects": []}
        project.start()
        project.done()

    def test_without_workers(self, start_server, new_project):
        project = new_project(name="inside").declare(self.AUTO)
        project.server = start_server("--workers", "false", cwd=project.root)
        root = {"root": str(project.root)}
        for method, path, body in [
                ("GET", "/v1/projects", None), ("PUT", "/v1/projects/inside", root),
                ("DELETE", "/v1/projects/inside", None), ("GET", "/v1/workers", None),
                ("POST", "/v1/workers/start", {"names": ["w"], **root}),
                ("POST", "/v1/workers/stop", {"all": True}),
                ("POST", "/v1/runs", {"pipeline": "work", **root}), ("GET", "/v1/runs", None)]:
            assert project.client.refused(method, path, body) == (503, "workers_disabled"), path
        for command in (["worker", "start", "w"], ["worker", "list"], ["project", "add"],
                        ["run", "work"]):
            assert "workers_disabled" in project.refused(*command)
        project.ok("queue", "push", "jobs", "1", "--create")
        assert project.queue().counts() == {"pending": 1}

    def test_what_is_declared_replaces_what_was_set(self, server, new_project):
        project = new_project(server)
        project.client.queue("jobs", project.ns).create(lease="7s", max_jobs=5)
        left = project.client.queue("left", project.ns).created(lease="9s")
        project.declare(simple("true", queue={"retry": {"attempts": 4, "cooldown": "1s"}})).add()
        config = project.queue().show()["config"]
        assert (config["lease"], config["max_jobs"]) == ("30s", None)
        assert config["retry"] == {"attempts": 4, "cooldown": "1s"}
        project.queue().patch(lease="8s")
        project.declare(queue={"other": stored()}, pipeline={"work": pipeline("true")},
                        worker={"w": worker("other", "work")})
        eventually(lambda: "other" in queues_of(project.client, project.ns), "the new queue")
        assert left.show()["config"]["lease"] == "9s"
        assert project.queue().show()["config"]["lease"] == "8s"  # no longer declared: as it is
        project.declare(simple("true"))
        eventually(lambda: project.queue().show()["config"]["lease"] == "30s", "the declared one")
