"""vars and defaults of a queue: which payloads it takes and as what, over HTTP and by the commands."""

import json

import pytest

from hooking import PATIENT_MS, on_enqueue
from refusals import assert_refused
from reprise_cli import Cli

REFUSED, USAGE, NO_SERVER = 1, 2, 3
DEFAULTS = {"customer": "unknown"}


@pytest.fixture
def strict(absent_queue):
    """The queue `jobs`, which requires id and customer and has a default for customer."""
    return absent_queue.created(vars=["id", "customer"], defaults=DEFAULTS)


def raw_push(queue, *payloads):
    """Pushes payloads given as JSON text, which no library may rewrite."""
    jobs = ", ".join(f'{{"payload": {payload}}}' for payload in payloads)
    return queue.client.request("POST", queue.path("/push"), f'{{"jobs": [{jobs}]}}'.encode())


def payload_text(queue):
    """The bytes of the payload of the only job."""
    body = queue.client.request("GET", queue.path("/jobs")).body
    text = body if isinstance(body, str) else body.decode()
    return text.split('"payload":', 1)[1].split(',"headers":', 1)[0]


class TestConfig:
    def test_both_are_shown_as_they_were_given(self, absent_queue):
        config = absent_queue.create(vars=["b", "a.b"], defaults={"b": [1, {"c": None}]})["config"]
        assert (config["vars"], config["defaults"]) == (["b", "a.b"], {"b": [1, {"c": None}]})
        assert absent_queue.show()["config"] == config

    def test_a_patch_leaves_the_other_alone_and_null_takes_one_away(self, strict):
        assert strict.patch(vars=["x"])["config"]["defaults"] == DEFAULTS
        assert strict.patch(defaults=None)["config"]["vars"] == ["x"]
        config = strict.patch(vars=None)["config"]
        assert (config["vars"], config["defaults"]) == ([], None)

    def test_numbers_in_defaults_keep_their_text(self, absent_queue):
        body = b'{"defaults": { "a": 1.0, "b": 1e2, "c": 123456789012345678901234567890 } }'
        assert absent_queue.client.request("PUT", absent_queue.path(), body).status == 201
        assert raw_push(absent_queue, '{"x": 2.50}').status == 200
        assert payload_text(absent_queue) == (
            '{"x": 2.50,"a":1.0,"b":1e2,"c":123456789012345678901234567890}')
        absent_queue.patch(lease="1m")
        shown = absent_queue.client.request("GET", absent_queue.path()).body
        text = shown if isinstance(shown, str) else shown.decode()
        assert '"defaults":{"a":1.0,"b":1e2,"c":123456789012345678901234567890}' in text

    @pytest.mark.parametrize("field, value, code", [
        ("vars", "id", "invalid_request"), ("vars", [1], "invalid_request"),
        ("vars", [""], "invalid_field"), ("vars", ["a", "a"], "invalid_field"),
        ("vars", ["x" * 201], "invalid_field"),
        ("vars", [str(n) for n in range(65)], "invalid_field"),
        ("defaults", [], "invalid_request"), ("defaults", "{}", "invalid_request"),
        ("defaults", {"a": "x" * (64 << 10)}, "invalid_field")])
    def test_what_makes_no_sense_is_refused_by_name(self, strict, field, value, code):
        assert_refused(strict, "PATCH", strict.path(), {field: value}, code, field)

    def test_both_survive_a_restart(self, server):
        queue = server.client().queue("jobs").created(vars=["id"], defaults={"n": 1.5})
        server.restart()
        queue = queue.through(server.client())
        assert queue.show()["config"]["vars"] == ["id"]
        assert raw_push(queue, "{}").status == 400
        assert raw_push(queue, '{"id": 1}').status == 200
        assert payload_text(queue) == '{"id": 1,"n":1.5}'


class TestPush:
    def test_a_missing_field_is_named_with_all_that_are_required(self, strict):
        reply = raw_push(strict, "{}")
        assert reply.status == 400
        error = reply.json()["results"][0]["error"]
        assert error == {"code": "missing_var", "message":
                         "field 'id' is missing: queue 'jobs' requires id, customer"}
        assert strict.counts() == {}

    def test_others_of_the_batch_go_on(self, strict):
        reply = raw_push(strict, '{"id": 1}', "{}", "7", '{"id": 2, "customer": null}',
                         '{"\\u0069d": 3}')
        assert reply.status == 200
        assert [each["status"] for each in reply.json()["results"]] == [
            "pushed", "rejected", "rejected", "rejected", "pushed"]
        assert "null" in reply.json()["results"][3]["error"]["message"]
        assert [job["payload"] for job in strict.jobs()] == [
            {"id": 1, "customer": "unknown"}, {"id": 3, "customer": "unknown"}]

    def test_bytes_are_no_object(self, strict):
        reply = strict.client.request("POST", strict.path("/push"),
                                      {"jobs": [{"payload_base64": "e30="}]})
        assert (reply.status, reply.json()["results"][0]["error"]["code"]) == (400, "missing_var")

    def test_defaults_alone_leave_other_payloads_alone(self, absent_queue):
        absent_queue.create(defaults={"a": 1})
        absent_queue.push({}, [1], None, {"a": 2})
        assert [job["payload"] for job in absent_queue.jobs()] == [{"a": 1}, [1], None, {"a": 2}]

    def test_a_payload_that_grows_too_large_is_refused(self, strict):
        fits = json.dumps({"id": "x" * ((1 << 20) - 20)})
        reply = raw_push(strict, fits, '{"id": 1}')
        first, second = reply.json()["results"]
        assert (first["error"]["code"], second["status"]) == ("payload_too_large", "pushed")

    def test_a_duplicate_must_be_acceptable_too(self, strict):
        strict.push_one({"id": 1}, key="k")
        bad = strict.client.request("POST", strict.path("/push"),
                                    {"jobs": [{"payload": {}, "key": "k"}]})
        assert bad.json()["results"][0]["error"]["code"] == "missing_var"

    def test_a_hook_sees_the_defaults(self, absent_queue):
        absent_queue.create(vars=["id"], defaults={"tenant": "nobody"}, hook_timeout_ms=PATIENT_MS,
                            on_enqueue=on_enqueue(
                                "return { fairness_key = json.decode(msg.payload).tenant }"))
        absent_queue.push({"id": 1})
        assert absent_queue.jobs()[0]["fairness_key"] == "nobody"

    def test_what_was_taken_once_is_not_asked_again(self, absent_queue):
        absent_queue.create()
        absent_queue.push("old")
        absent_queue.patch(vars=["id"])
        job = absent_queue.claim_one()
        absent_queue.client.fail(job, final=True)
        assert absent_queue.retry(job["id"])["retried"] == 1
        assert absent_queue.claim_one()["payload"] == "old"


class TestCommands:
    def test_create_and_update_set_both_and_show_tells_them(self, shell, absent_queue):
        shell.ok("queue", "create", "jobs", "--vars", "id,customer", "--vars", "a.b",
                 "--defaults", '{"customer": "x", "n": 1.0}')
        config = absent_queue.show()["config"]
        assert config["vars"] == ["id", "customer", "a.b"]
        fields = shell.ok("queue", "show", "jobs").fields()
        assert fields["config.vars"] == "id, customer, a.b"
        assert fields["config.defaults"] == '{"customer":"x","n":1.0}'
        shell.ok("queue", "update", "jobs", "--vars", "none", "--defaults", "none")
        config = absent_queue.show()["config"]
        assert (config["vars"], config["defaults"]) == ([], None)
        fields = shell.ok("queue", "show", "jobs").fields()
        assert (fields["config.vars"], fields["config.defaults"]) == ("-", "-")

    @pytest.mark.parametrize("flags", [("--vars", "a,,b"), ("--vars", ""), ("--defaults", "[]"),
                                       ("--defaults", "{")])
    def test_flags_that_no_server_could_take_are_usage_errors(self, shell, flags):
        result = shell.run("queue", "create", "jobs", *flags)
        assert result.code == USAGE and flags[0] in result.err, result

    def test_fields_become_the_payload(self, shell, strict):
        pushed = shell.ok("queue", "push", "jobs", "--var", "id:=7", "--var", "note=a=b",
                          "--var", "x.y:={\"z\": 1.0}", "--priority", "5")
        job = strict.job(pushed.out.strip())
        assert job["priority"] == 5
        assert payload_text(strict) == (
            '{"id":7,"note":"a=b","x.y":{"z": 1.0},"customer":"unknown"}')

    def test_a_missing_field_is_refused(self, shell, strict):
        result = shell.run("queue", "push", "jobs", "--var", "customer=a")
        assert result.code == REFUSED
        assert "field 'id' is missing" in result.err and "missing_var" in result.err, result
        many = shell.run("queue", "push", "jobs", "--stdin", stdin='{"id": 1}\n{}\n')
        assert many.code == REFUSED and "line 2: field 'id' is missing" in many.err, many
        assert strict.counts() == {"pending": 1}

    @pytest.mark.parametrize("flags", [
        ("--var", "id"), ("--var", "=1"), ("--var", "id:=x"), ("--var", "id=1", "--var", "id=2"),
        ("--var", "id=1", "{}"), ("--var", "id=1", "--stdin"), ("--var", "id=1", "--raw"),
        ("--var", "id=1", "--file", "/dev/null"), ("--var", "id=1", "--payload-base64", "AA==")])
    def test_fields_that_make_no_payload_are_usage_errors(self, shell, strict, flags):
        result = shell.run("queue", "push", "jobs", *flags)
        assert result.code == USAGE and "--var" in result.err, result
        assert strict.counts() == {}

    @pytest.mark.parametrize("flags", [(), ("--key", "k"), ("--raw",), ("--create",)])
    def test_nothing_to_push_to_a_stored_queue_is_a_usage_error(self, shell, strict, flags):
        result = shell.run("queue", "push", "jobs", *flags)
        assert result.code == USAGE, result
        for word in ("PAYLOAD", "--var", "--file", "--stdin"):
            assert word in result.err
        assert strict.counts() == {}

    def test_nothing_to_push_to_nobody_is_no_answer(self):
        result = Cli("http://127.0.0.1:1").run("queue", "push", "jobs")
        assert result.code == NO_SERVER, result
