"""Runtime values: set, got, listed, unset, kept apart by namespace, durable, and seen by hooks."""

import time

import pytest

from hooking import (PATIENT_MS, RuntimeConfig, decided, fail_many, fail_one, on_enqueue,
                     on_failure)
from times import assert_close, seconds_since_1970

WRONG = ("invalid_request", "invalid_field")
VALUE_BYTES_MAX = 4096
KEYS_MAX = 1000
READS = on_failure('return { action = "dlq", reason = config.get("key") or "not set" }')


@pytest.fixture
def config(api, namespace):
    """The values of this test's namespace."""
    return RuntimeConfig(api, namespace)


class TestValues:
    def test_set_answers_with_the_value(self, config):
        reply = config.set("card.retry_ms", "5000")
        assert set(reply) == {"key", "value", "namespace", "updated_at"}
        assert (reply["key"], reply["value"], reply["namespace"]) == (
            "card.retry_ms", "5000", config.namespace)
        assert_close(reply["updated_at"], time.time())

    def test_get_answers_the_same(self, config):
        reply = config.set("a", "1")
        assert config.get("a") == reply

    def test_one_that_is_not_set(self, config):
        assert config.client.refused("GET", config.path("absent")) == (404, "config_not_found")
        assert config.client.refused("DELETE", config.path("absent")) == (404, "config_not_found")

    def test_setting_again_replaces_it(self, config):
        first = config.set("a", "1")
        second = config.set("a", "2")
        assert config.get("a") == second and second["value"] == "2"
        assert seconds_since_1970(second["updated_at"]) >= seconds_since_1970(first["updated_at"])
        assert config.values() == {"a": "2"}

    def test_unset(self, config):
        config.set("a", "1")
        assert config.unset("a") == {"key": "a", "namespace": config.namespace, "deleted": True}
        assert config.client.refused("GET", config.path("a")) == (404, "config_not_found")
        assert config.client.refused("DELETE", config.path("a")) == (404, "config_not_found")
        assert config.list() == []

    def test_the_list_is_by_key(self, config):
        assert config.list() == []
        replies = {key: config.set(key, f"value of {key}") for key in ("b", "a.b", "a", "B", "a-1")}
        listed = config.list()
        assert [entry["key"] for entry in listed] == sorted(replies)
        assert listed == [replies[key] for key in sorted(replies)]

    @pytest.mark.parametrize("value", ["", " ", "0", "null", "é\n\t\"\\", "x" * VALUE_BYTES_MAX,
                                       "é" * (VALUE_BYTES_MAX // 2), "{\"a\": [1]}", "\u2028😀"],
                             ids=lambda value: repr(value[:8]))
    def test_any_text_is_a_value(self, config, value):
        assert config.set("a", value)["value"] == value
        assert config.get("a")["value"] == value
        assert config.values() == {"a": value}

    @pytest.mark.parametrize("key", ["a", "0", "A.b_c-d", "x" * 200, "card.retry_ms"])
    def test_any_name_is_a_key(self, config, key):
        assert config.set(key, "v")["key"] == key
        assert config.get(key)["value"] == "v"

    def test_head_works_where_get_does(self, config):
        config.set("a", "1")
        assert config.client.request("HEAD", config.path("a")).status == 200
        assert config.client.request("HEAD", config.path()).status == 200

    @pytest.mark.parametrize("method, key", [("POST", None), ("PUT", None), ("DELETE", None),
                                             ("POST", "a"), ("PATCH", "a")])
    def test_other_methods(self, config, method, key):
        reply = config.client.request(method, config.path(key), {"value": "1"})
        assert (reply.status, reply.code) == (405, "method_not_allowed")
        assert "GET" in reply.headers["allow"]


class TestRefusals:
    @pytest.fixture
    def filled(self, config):
        config.set("a", "before")
        return config

    @pytest.mark.parametrize("value", ["x" * (VALUE_BYTES_MAX + 1),
                                       "é" * (VALUE_BYTES_MAX // 2) + "x", "x" * 100000],
                             ids=lambda value: str(len(value)))
    def test_a_value_beyond_4_kib(self, filled, value):
        assert filled.client.refused("PUT", filled.path("a"), {"value": value}) == (
            413, "value_too_large")
        assert filled.values() == {"a": "before"}

    @pytest.mark.parametrize("body, code", [
        ({"value": "a\0b"}, WRONG), ({"value": 5}, WRONG), ({"value": None}, WRONG),
        ({"value": True}, WRONG), ({"value": ["x"]}, WRONG), ({"value": {}}, WRONG), ({}, WRONG),
        (b"", WRONG), (b"{", WRONG), ("text", WRONG), ([], WRONG), (b'{"value": "\xff"}', WRONG),
        (b'{"value": "a", "value": "b"}', WRONG + ("unknown_field",)),
        ({"value": "x", "valu": "y"}, ("unknown_field",)), ({"vlaue": "y"}, ("unknown_field",))],
        ids=repr)
    def test_a_body_that_is_none(self, filled, body, code):
        reply = filled.client.request("PUT", filled.path("a"), body)
        assert reply.status == 400 and reply.code in code, reply
        assert filled.values() == {"a": "before"}

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    @pytest.mark.parametrize("key", [".a", "-a", "_a", "a b", "é", "x" * 201],
                             ids=repr)
    def test_a_key_that_is_no_name(self, filled, method, key):
        body = {"value": "x"} if method == "PUT" else None
        assert filled.client.refused(method, filled.path(key), body) == (400, "invalid_name")
        assert filled.values() == {"a": "before"}

    def test_a_namespace_that_is_none(self, api):
        config = RuntimeConfig(api, ".bad")
        assert api.refused("GET", config.path()) == (400, "invalid_name")
        assert api.refused("PUT", config.path("a"), {"value": "x"}) == (400, "invalid_name")

    def test_an_unknown_parameter(self, filled):
        path = filled.path("a") + "&nonsense=1"
        assert filled.client.refused("GET", path) == (400, "unknown_field")

    def test_more_keys_than_a_namespace_holds(self, server):
        config = RuntimeConfig(server.client(), "full")
        for number in range(KEYS_MAX):
            config.set(f"key{number}", str(number))
        refused = config.client.refused("PUT", config.path("one.more"), {"value": "x"})
        assert refused == (429, "too_many_keys")
        assert len(config.list()) == KEYS_MAX
        # One that is there can still be changed, another namespace has room, and so has this one
        # when a key goes.
        config.set("key7", "changed")
        RuntimeConfig(config.client, "other").set("one.more", "x")
        config.unset("key8")
        config.set("one.more", "x")
        assert len(config.list()) == KEYS_MAX
        server.restart("kill")
        config = RuntimeConfig(server.client(), "full")
        assert len(config.list()) == KEYS_MAX and config.values()["key7"] == "changed"
        refused = config.client.refused("PUT", config.path("and.more"), {"value": "x"})
        assert refused == (429, "too_many_keys")


class TestNamespaces:
    def test_each_has_its_own(self, api, namespace):
        one, two = (RuntimeConfig(api, namespace + suffix) for suffix in ("-a", "-b"))
        one.set("key", "of one")
        assert two.list() == []
        two.set("key", "of two")
        assert (one.values(), two.values()) == ({"key": "of one"}, {"key": "of two"})
        one.unset("key")
        assert two.values() == {"key": "of two"}

    def test_without_one_it_is_the_default(self, server):
        client = server.client()
        assert RuntimeConfig(client).set("key", "x")["namespace"] == "default"
        named = client.get("/v1/config?namespace=default")["config"]
        assert named == RuntimeConfig(client).list() and len(named) == 1

    def test_a_hook_sees_its_queues_own(self, api, namespace):
        for suffix in ("-a", "-b"):
            RuntimeConfig(api, namespace + suffix).set("key", f"of {suffix}")
        queues = [api.queue("q", namespace + suffix).created(on_failure=READS,
                                                            hook_timeout_ms=PATIENT_MS)
                  for suffix in ("-a", "-b", "-c")]
        assert [fail_one(queue)["reason"] for queue in queues] == ["of -a", "of -b", "not set"]


class TestHooks:
    def test_each_change_is_seen_by_the_next_call(self, hooked, config):
        queue = hooked(on_failure=READS)
        assert fail_one(queue)["reason"] == "not set"
        for number in range(50):
            config.set("key", str(number))
            assert fail_one(queue)["reason"] == str(number)
        config.unset("key")
        assert fail_one(queue)["reason"] == "not set"

    def test_on_enqueue_too(self, hooked, config):
        queue = hooked(on_enqueue=on_enqueue(
            'return { fairness_key = config.get("key") or "not set" }'))
        for value in ("a", "b", None, "c"):
            if value:
                config.set("key", value)
            else:
                config.unset("key")
            job_id = queue.push_one(1)
            assert queue.job(job_id)["fairness_key"] == (value or "not set")

    def test_every_queue_of_the_namespace_sees_it(self, hooked, config):
        queues = [hooked(on_failure=READS)]
        queues += [queues[0].sibling(f"q{number}").created(on_failure=READS,
                                                          hook_timeout_ms=PATIENT_MS)
                   for number in range(5)]
        for value in ("first", "second"):
            config.set("key", value)
            assert {fail_one(queue)["reason"] for queue in queues} == {value}

    def test_it_is_text(self, hooked, config):
        queue = hooked(on_failure=on_failure(
            'return { action = "dlq", reason = type(config.get("key")) .. config.get("key") }'))
        config.set("key", "5")
        assert fail_one(queue)["reason"] == "string5"

    def test_one_that_is_not_set_is_nil(self, hooked):
        queue = hooked(on_failure=on_failure(
            'return { action = "dlq", reason = tostring(config.get("absent")) }'))
        assert fail_one(queue)["reason"] == "nil"

    def test_an_empty_value_is_not_nil(self, hooked, config):
        queue = hooked(on_failure=on_failure(
            'return { action = "dlq", reason = "<" .. config.get("key") .. ">" }'))
        config.set("key", "")
        assert fail_one(queue)["reason"] == "<>"

    def test_the_longest_value_comes_whole(self, hooked, config):
        queue = hooked(on_failure=on_failure(
            'local v = config.get("key") return { action = "dlq", reason = #v .. v:sub(-3) }'))
        config.set("key", "x" * (VALUE_BYTES_MAX - 3) + "end")
        assert fail_one(queue)["reason"] == f"{VALUE_BYTES_MAX}end"

    def test_many_keys(self, hooked, config):
        queue = hooked(on_failure=on_failure(
            'return { action = "dlq", reason = config.get("key." .. msg.payload) }'))
        for number in range(100):
            config.set(f"key.{number}", f"value {number}")
        reasons = [result["reason"] for result in fail_many(queue, 100)]
        assert reasons == [f"value {number}" for number in range(100)]

    @pytest.mark.parametrize("key", ["", "no such key", "x\\0y", "é", ("x" * 5000)],
                             ids=lambda key: repr(key[:12]))
    def test_a_key_that_cannot_be_set_is_nil_or_an_error(self, hooked, key):
        queue = hooked(on_failure=on_failure(f"""
            local ok, value = pcall(config.get, "{key}")
            return {{ action = "dlq", reason = tostring(not ok or value == nil) }}
        """))
        assert fail_one(queue)["reason"] == "true"

    def test_a_trial_sees_it(self, hooked, config):
        queue = hooked()
        config.set("key", "for trials")
        assert decided(queue, READS) == ("dlq", "for trials")

    def test_a_script_cannot_change_it(self, hooked, config):
        queue = hooked(on_failure=on_failure("""
            pcall(function() config.key = "evil" end)
            pcall(function() config.set("key", "evil") end)
            return { action = "dlq", reason = config.get("key") }
        """))
        config.set("key", "good")
        assert {result["reason"] for result in fail_many(queue, 3)} == {"good"}
        assert config.values() == {"key": "good"}


class TestDurability:
    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_it_survives(self, server, how):
        config = RuntimeConfig(server.client(), "ns")
        for number in range(20):
            config.set(f"k{number}", f"é {number}")
        config.set("k3", "changed")
        config.unset("k4")
        config.set("empty", "")
        before = config.list()
        queue = server.client().queue("q", "ns").created(
            hook_timeout_ms=PATIENT_MS,
            on_failure=on_failure('return { action = "dlq", reason = config.get("k3") }'))
        server.restart(how)
        client = server.client()
        assert RuntimeConfig(client, "ns").list() == before
        assert fail_one(queue.through(client))["reason"] == "changed"

    def test_each_set_is_durable_when_it_returns(self, server):
        for number in range(5):
            RuntimeConfig(server.client()).set("key", str(number))
            server.restart("kill")
            config = RuntimeConfig(server.client())
            assert config.values() == {"key": str(number)}
        config.unset("key")
        server.restart("kill")
        assert RuntimeConfig(server.client()).list() == []

    def test_a_backup_has_it(self, server, start_server, tmp_path):
        client = server.client()
        RuntimeConfig(client).set("key", "kept")
        client.call("POST", "/v1/backup", {"directory": str(tmp_path / "copy")})
        copy = start_server(ready=False)
        copy.data = tmp_path / "copy"
        copy.start()
        assert RuntimeConfig(copy.client()).values() == {"key": "kept"}

    def test_a_namespace_keeps_it_when_its_queues_go(self, api, namespace):
        config = RuntimeConfig(api, namespace)
        queue = api.queue("q", namespace).created()
        config.set("key", "x")
        queue.delete()
        assert config.values() == {"key": "x"}
