"""What steps are given: templates, standard input, variables; and what pushes must have."""

import base64
import json

import pytest

from projects import simple, step, stored
from waiting import eventually

SAVE_STDIN = "cat > got.new; mv got.new got"


def given(project, command, payload=None, **push):
    """The lines of the file `got` after a job with this payload has been through the command."""
    project.declare(simple(step("main", command), **push.pop("declared", {}))).start()
    project.done(payload, **push)
    return project.lines("got")


class TestTemplates:
    def test_fields_of_the_payload(self, project):
        payload = {"text": "a b", "n": 7, "yes": True, "list": [1, "x"], "empty": "",
                   "deep": {"er": {"est": "gold"}}}
        lines = given(project, "printf '%s\\n' ${item.text} ${item.n} ${item.yes} ${item.list} "
                               "${item.empty} ${item.deep.er.est} ${item.deep.er} > got", payload)
        assert lines[:3] == ["a b", "7", "true"]
        assert json.loads(lines[3]) == [1, "x"]
        assert lines[4:6] == ["", "gold"]
        assert json.loads(lines[6]) == {"est": "gold"}

    def test_the_whole_payload(self, project):
        [line] = given(project, "printf '%s\\n' ${item} > got", {"a": [1, {"b": "c d"}]})
        assert json.loads(line) == {"a": [1, {"b": "c d"}]}

    @pytest.mark.parametrize("payload", ["just a text", 5, [1, 2], True])
    def test_a_payload_that_is_no_object(self, project, payload):
        [line] = given(project, "printf '%s\\n' ${item} > got", payload)
        assert line == (payload if isinstance(payload, str) else line)
        assert isinstance(payload, str) or json.loads(line) == payload

    def test_of_the_job(self, project):
        lines = given(project, "printf '%s\\n' ${job.id} ${job.attempts} ${job.failures} "
                               "${job.headers.tenant} ${queue} ${worker} ${run.id} "
                               "${project.root} > got", {}, headers={"tenant": "a b"})
        run = project.runs()[0]
        assert lines == [run["job"], "1", "0", "a b", "jobs", "w", run["id"], str(project.root)]

    def test_fallbacks(self, project):
        assert given(project, "printf '%s\\n' ${item.none:-a text} ${item.nil:-nil} "
                              "${item.there:-not} ${env.NO_SUCH_THING:-unset} "
                              "\"${item.none:-in quotes}\" ${job.headers.x:-} > got",
                     {"nil": None, "there": "here"}) == [
            "a text", "nil", "here", "unset", "in quotes", ""]

    def test_the_shells_own_are_left_alone(self, project):
        assert given(project, "x=abc; a=(1 2); printf '%s\\n' ${x} ${#x} ${x:1} ${x/b/B} "
                              "\"${a[@]}\" ${y:-z} $((1+1)) > got") == [
            "abc", "3", "bc", "aBc", "1", "2", "z", "2"]

    @pytest.mark.parametrize("payload, template", [
        ({}, "item.gone"), ({"gone": None}, "item.gone"), ({"a": "text"}, "item.a.b"),
        ({"a": [1]}, "item.a.b"), ("text", "item.a"), ({}, "job.headers.gone"),
        ({}, "env.NO_SUCH_THING"), ({"a": "x\0y"}, "item.a"), ({"a": "x" * 140_000}, "item.a")])
    def test_a_missing_field_is_a_failure(self, project, payload, template):
        project.declare(simple(step("main", f"touch ran; echo ${{{template}}}"))).start()
        job = project.dead(project.push(payload))
        assert job["last_error_type"] == "missing_field"
        assert template in job["last_error"]
        assert not project.path("ran").exists()

    def test_large_values_fit_on_standard_input(self, project):
        given(project, SAVE_STDIN, {"a": "x\0y" * 100_000})
        assert json.loads(project.text("got"))["payload"] == {"a": "x\0y" * 100_000}

    def test_a_value_of_nearly_the_limit(self, project):
        given(project, "printf %s ${item.a} > got", {"a": "y" * 120_000})
        assert project.text("got") == "y" * 120_000


class TestStandardInput:
    def test_is_the_job(self, project):
        given(project, SAVE_STDIN, {"id": 7, "list": [1.0, None]}, headers={"a": "b"})
        told = json.loads(project.text("got"))
        assert set(told) == {"id", "namespace", "queue", "attempts", "failures", "pushed_at",
                             "headers", "payload"}
        pushed_at = told.pop("pushed_at")
        assert pushed_at.endswith("Z")
        assert told == {"id": project.runs()[0]["job"], "namespace": project.ns, "queue": "jobs",
                        "attempts": 1, "failures": 0, "headers": {"a": "b"},
                        "payload": {"id": 7, "list": [1.0, None]}}

    def test_bytes_are_base64(self, project):
        project.declare(simple(SAVE_STDIN)).start()
        [result] = project.queue().push_jobs(
            [{"payload_base64": base64.b64encode(b"\0\xff\n").decode()}])
        project.finished(result["id"])
        told = json.loads(project.text("got"))
        assert base64.b64decode(told["payload_base64"]) == b"\0\xff\n" and "payload" not in told

    def test_each_step_has_it(self, project):
        project.declare(simple("cat > one", "cat > two")).start()
        project.done({"id": 7})
        assert project.text("one") == project.text("two") != ""

    def test_nobody_needs_to_read_it(self, project):
        project.declare(simple("true", "exec <&-; true")).start()
        project.done({"a": "x" * 1_000_000})


class TestVariables:
    NAMES = ["NAMESPACE", "QUEUE", "WORKER", "PIPELINE", "STEP", "RUN_ID", "JOB_ID", "ATTEMPTS",
             "FAILURES", "PROJECT", "PROJECT_ROOT", "URL"]

    def test_what_they_hold(self, project):
        given(project, "env -0 > got.new; mv got.new got", {"id": 7})
        env = dict(entry.split("=", 1) for entry in project.text("got").split("\0") if entry)
        run = project.runs()[0]
        assert [env[f"REPRISE_{name}"] for name in self.NAMES] == [
            project.ns, "jobs", "w", "work", "main", run["id"], run["job"], "1", "0", project.ns,
            str(project.root), project.server.url]
        assert "REPRISE_ERROR" not in env

    def test_the_servers_own_are_there_less_its_settings(self, start_server, new_project):
        server = start_server(env={"OUTSIDE": "yes", "REPRISE_SECRET": "hidden",
                                   "REPRISE_KEEP_RUNS": "77"})
        project = new_project(server)
        lines = given(project, "echo ${env.OUTSIDE} $OUTSIDE > got; env | grep ^REPRISE_ >> got")
        assert lines[0] == "yes yes"
        names = {line.split("=")[0] for line in lines[1:]}
        assert not names & {"REPRISE_SECRET", "REPRISE_KEEP_RUNS", "REPRISE_DATA"}

    def test_the_url_leads_back(self, project):
        project.declare(simple("address=${REPRISE_URL#http://}; "
                               "exec 3<>/dev/tcp/${address/:/\\/}; echo up > got")).start()
        project.done()
        assert project.lines("got") == ["up"]

    def test_a_retry_counts(self, project):
        project.declare(simple("echo $REPRISE_ATTEMPTS $REPRISE_FAILURES >> got; "
                               "[ $REPRISE_ATTEMPTS = 3 ]",
                               queue={"retry": {"attempts": 3, "cooldown": "0s"}})).start()
        project.done()
        assert project.lines("got") == ["1 0", "2 1", "3 2"]


ORDERS = {"queue": {"orders": stored(vars=["id", "customer"], defaults={"customer": "unknown",
                                                                        "size": 1})}}


class TestVars:
    @pytest.fixture
    def orders(self, project):
        project.declare(ORDERS).add()
        return project.queue("orders")

    def payload_of(self, queue, result):
        return queue.job(result["id"])["payload"]

    def test_defaults_are_added(self, orders):
        [result] = orders.push_jobs([{"payload": {"id": 7}}])
        assert self.payload_of(orders, result) == {"id": 7, "customer": "unknown", "size": 1}
        [result] = orders.push_jobs([{"payload": {"id": 7, "customer": "me", "size": 0}}])
        assert self.payload_of(orders, result) == {"id": 7, "customer": "me", "size": 0}

    @pytest.mark.parametrize("payload, name", [
        ({"customer": "me"}, "id"), ({}, "id"), ({"id": None}, "id"), ("text", "id"), ([1], "id"),
        (None, "id"), ({"id": 1, "customer": None}, "customer")])
    def test_a_payload_without_one_is_refused(self, orders, payload, name):
        reply = orders.client.request("POST", orders.path("/push"),
                                      {"jobs": [{"payload": payload}]})
        assert reply.status == 400, reply
        [result] = reply.json()["results"]
        assert result["error"]["code"] == "missing_var"
        assert name in result["error"]["message"]
        assert orders.counts() == {}

    def test_bytes_are_refused(self, orders):
        [result] = orders.push_jobs([{"payload_base64": "AAEC"}], status=400)
        assert result["error"]["code"] == "missing_var"

    def test_of_several_the_good_ones_are_taken(self, orders):
        results = orders.push_jobs([{"payload": {"id": 1}}, {"payload": {}},
                                    {"payload": {"id": 2}}])
        assert [result["status"] for result in results] == ["pushed", "rejected", "pushed"]
        assert orders.counts() == {"pending": 2}

    def test_hooks_see_the_defaults(self, absent_queue):
        queue = absent_queue.created(
            defaults={"tenant": "none"}, vars=["tenant"], hook_timeout_ms=1000,
            on_enqueue="function on_enqueue(msg) return "
                       "{ fairness_key = json.decode(msg.payload).tenant } end")
        job = queue.job(queue.push_one({"a": 1}))
        assert job["fairness_key"] == "none"

    def test_of_the_api(self, absent_queue):
        queue = absent_queue
        config = queue.create(vars=["a"], defaults={"b": [1]})["config"]
        assert (config["vars"], config["defaults"]) == (["a"], {"b": [1]})
        assert queue.job(queue.push_one({"a": 1}))["payload"] == {"a": 1, "b": [1]}
        config = queue.patch(vars=[], defaults=None)["config"]
        assert (config["vars"], config["defaults"]) == ([], None)
        assert queue.job(queue.push_one(5))["payload"] == 5

    @pytest.mark.parametrize("config", [
        {"vars": "a"}, {"vars": [1]}, {"vars": [f"v{n}" for n in range(65)]}, {"defaults": []},
        {"defaults": 5}, {"defaults": {"a": "x" * 70_000}}])
    def test_configs_that_cannot_be(self, absent_queue, config):
        reply = absent_queue.client.request("PUT", absent_queue.path(), config)
        assert reply.status == 400, reply
        assert next(iter(config)) in reply.message

    def test_the_command_line(self, project, orders):
        job_id = project.ok("queue", "push", "orders", "--var", "id=7", "--var", "size:=[1, null]",
                            "--var", "note=a=b c").out.strip()
        assert orders.job(job_id)["payload"] == {"id": "7", "customer": "unknown",
                                                 "size": [1, None], "note": "a=b c"}
        error = project.refused("queue", "push", "orders", "--var", "customer=me")
        assert "missing_var" in error and "id" in error
        assert project.refused("queue", "push", "orders", "--var", "noequals", code=2)
        assert project.refused("queue", "push", "orders", "--var", "x:={bad", code=2)
        assert project.refused("queue", "push", "orders", "{}", "--var", "id=1", code=2)

    def test_a_retry_of_one_that_was_there_before_still_runs(self, project):
        """Vars are checked on push; what is stored is stored."""
        project.declare(simple("echo $REPRISE_JOB_ID >> got; [ -e ok ]")).start()
        job_id = project.push({"old": 1})
        project.dead(job_id)
        project.touch("ok")
        project.declare(simple("echo $REPRISE_JOB_ID >> got; [ -e ok ]",
                               queue={"vars": ["id"]}))
        eventually(lambda: project.queue().show()["config"]["vars"] == ["id"], "the edit")
        project.ok("queue", "retry", "jobs", job_id)
        project.finished(job_id)
