"""on_enqueue: the attributes a job gets, the jobs that are refused, and all that stays as it was.

A script tells what it saw in the text of a rejection.
"""

import base64
import json
import time

import pytest

from background import in_background
from hooking import (BURY, PATIENT_MS, RuntimeConfig, calls_in_metrics, calls_of, fail_one,
                     faults_of, on_enqueue, version_of)
from times import assert_close
from waiting import eventually

PLAIN = ("default", 1, [])
REFUSE = on_enqueue('return { reject = "nobody wants it" }')
REFUSE_ODD = on_enqueue("""
    local number = json.decode(msg.payload)
    if number % 2 == 1 then return { reject = "odd: " .. number } end
    return { fairness_key = "even", weight = 2 }
""")


def attributes(queue, job_id):
    shown = queue.job(job_id)
    return shown["fairness_key"], shown["weight"], shown["throttle_keys"]


def rejecting(expression):
    """An on_enqueue that refuses each job with the JSON of this expression."""
    return on_enqueue(f"return {{ reject = json.encode({expression}) }}")


def rejection(queue, **job):
    """What such a script said of this job."""
    [result] = queue.push_jobs([job], status=422)
    assert (result["status"], result["error"]["code"]) == ("rejected", "hook_rejected")
    return json.loads(result["error"]["message"])


class TestMessage:
    def test_queue_and_priority(self, hooked):
        queue = hooked(on_enqueue=rejecting("{ msg.queue, msg.priority }"))
        assert rejection(queue, payload=1) == ["jobs", 1000]
        assert rejection(queue, payload=1, priority=7) == ["jobs", 7]
        assert rejection(queue, payload=1, priority=4294967295) == ["jobs", 4294967295]

    def test_headers(self, hooked):
        queue = hooked(on_enqueue=rejecting("msg.headers"))
        assert rejection(queue, headers={"tenant": "é", "x": ""}) == {"tenant": "é", "x": ""}

    def test_without_headers_the_table_is_empty(self, hooked):
        queue = hooked(on_enqueue=rejecting("{ type(msg.headers), next(msg.headers) == nil }"))
        assert rejection(queue, payload=1) == ["table", True]

    @pytest.mark.parametrize("payload, text", [
        ({"n": 1}, '{"n": 1}'), ("x", '"x"'), (None, "null"), ([1, 2], "[1, 2]")], ids=repr)
    def test_the_payload_is_text_as_it_came(self, hooked, payload, text):
        queue = hooked(on_enqueue=rejecting("{ msg.payload, msg.payload_size }"))
        assert rejection(queue, payload=payload) == [text, len(text)]

    def test_the_attributes_it_was_pushed_with(self, hooked):
        queue = hooked(on_enqueue=rejecting(
            "{ msg.fairness_key, msg.weight, type(msg.throttle_keys), #msg.throttle_keys }"))
        assert rejection(queue, payload=1) == ["default", 1, "table", 0]

    def test_a_payload_of_bytes(self, hooked):
        data = bytes(range(256))
        queue = hooked(on_enqueue=on_enqueue("""
            local parts = {}
            for i = 1, #msg.payload do parts[i] = string.format("%02x", msg.payload:byte(i)) end
            return { reject = table.concat(parts) .. "." .. msg.payload_size }
        """))
        [result] = queue.push_jobs(
            [{"payload_base64": base64.b64encode(data).decode()}], status=422)
        assert result["error"]["message"] == data.hex() + ".256"

    def test_the_size_of_a_payload_is_known_whatever_the_memory(self, hooked):
        # The largest payload does not fit into the memory of a hook that does not look at it.
        queue = hooked(on_enqueue=on_enqueue(
            "return { fairness_key = tostring(msg.payload_size) }"))
        job_id = queue.push_one("x" * ((1 << 20) - 2))
        assert attributes(queue, job_id)[0] == str(1 << 20)
        assert faults_of(queue, "on_enqueue") == {}

    def test_the_largest_payload_can_be_read_with_memory_for_it(self, hooked):
        queue = hooked(hook_memory_bytes=16 << 20, on_enqueue=on_enqueue(
            'return { fairness_key = msg.payload:sub(-4, -2) .. #msg.payload }'))
        job_id = queue.push_one("x" * ((1 << 20) - 5) + "end")
        assert attributes(queue, job_id)[0] == f"end{1 << 20}"

    def test_the_payload_stays_as_it_was(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("""
            pcall(function() msg.payload = "evil" end)
            pcall(function() msg.headers.a = "evil" end)
            pcall(function() msg.priority = 0 end)
            return { weight = 3 }
        """))
        job_id = queue.push_one({"n": 1.50}, headers={"a": "b"}, priority=9)
        shown = queue.job(job_id)
        assert (shown["payload"], shown["headers"], shown["priority"]) == (
            {"n": 1.50}, {"a": "b"}, 9)
        assert attributes(queue, job_id) == ("default", 3, [])


class TestAttributes:
    def test_they_are_shown_with_the_job(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("""
            return { fairness_key = msg.headers.tenant, weight = 10,
                     throttle_keys = { "api", "tenant:" .. msg.headers.tenant } }
        """))
        job_id = queue.push_one(1, headers={"tenant": "acmé"})
        assert attributes(queue, job_id) == ("acmé", 10, ["api", "tenant:acmé"])
        [listed] = queue.jobs()
        assert (listed["fairness_key"], listed["weight"], listed["throttle_keys"]) == (
            "acmé", 10, ["api", "tenant:acmé"])

    def test_a_queue_without_a_hook_has_the_defaults(self, queue):
        assert attributes(queue, queue.push_one(1)) == PLAIN

    @pytest.mark.parametrize("answer, expected", [
        ("{}", PLAIN),
        ('{ fairness_key = "a" }', ("a", 1, [])),
        ("{ weight = 1 }", ("default", 1, [])),
        ("{ weight = 1000 }", ("default", 1000, [])),
        ('{ throttle_keys = { "a" } }', ("default", 1, ["a"])),
        ("{ throttle_keys = {} }", PLAIN),
        ('{ fairness_key = ("x"):rep(200) }', ("x" * 200, 1, [])),
        ('{ throttle_keys = { ("k"):rep(200) } }', ("default", 1, ["k" * 200])),
        ('{ throttle_keys = { "z", "b", "a" } }', ("default", 1, ["z", "b", "a"])),
    ], ids=lambda part: part if isinstance(part, str) else "")
    def test_what_is_missing_stays(self, hooked, answer, expected):
        queue = hooked(on_enqueue=on_enqueue(f"return {answer}"))
        assert attributes(queue, queue.push_one(1)) == expected
        assert calls_of(queue, "on_enqueue") == (1, {})

    def test_sixteen_throttle_keys(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("""
            local keys = {}
            for i = 1, 16 do keys[i] = "key " .. i end
            return { throttle_keys = keys }
        """))
        assert attributes(queue, queue.push_one(1))[2] == [f"key {n}" for n in range(1, 17)]

    def test_they_last_through_failures_and_a_manual_retry(self, hooked):
        queue = hooked(on_failure=BURY, on_enqueue=on_enqueue(
            'return { fairness_key = "a", weight = 5, throttle_keys = { "t" } }'))
        job_id = fail_one(queue)["id"]
        assert attributes(queue, job_id) == ("a", 5, ["t"])
        queue.retry(job_id)
        assert attributes(queue, job_id) == ("a", 5, ["t"])
        # Nobody has pushed it again.
        assert calls_of(queue, "on_enqueue") == (1, {})

    def test_they_survive_a_kill(self, server):
        queue = server.client().queue("q").created(
            hook_timeout_ms=PATIENT_MS, on_enqueue=on_enqueue(
                'return { fairness_key = "a", weight = 5, throttle_keys = { "t", "u" } }'))
        ids = queue.push(*range(50))
        server.restart("kill")
        queue = queue.through(server.client())
        assert {json.dumps(attributes(queue, job_id)) for job_id in ids} == {
            json.dumps(("a", 5, ["t", "u"]))}

    def test_a_new_script_counts_from_the_next_push_on(self, hooked):
        queue = hooked(on_enqueue=on_enqueue('return { fairness_key = "old" }'))
        old = queue.push_one(1)
        queue.patch(on_enqueue=on_enqueue('return { fairness_key = "new" }'))
        new = queue.push_one(1)
        queue.patch(on_enqueue=None)
        none = queue.push_one(1)
        assert [attributes(queue, job_id)[0] for job_id in (old, new, none)] == [
            "old", "new", "default"]

    def test_runtime_values_reach_it(self, hooked):
        queue = hooked(on_enqueue=on_enqueue(
            'return { weight = tonumber(config.get("weight." .. msg.headers.plan)) or 1 }'))
        config = RuntimeConfig(queue.client, queue.namespace)
        config.set("weight.gold", "10")
        gold = queue.push_one(1, headers={"plan": "gold"})
        config.set("weight.gold", "20")
        more = queue.push_one(1, headers={"plan": "gold"})
        iron = queue.push_one(1, headers={"plan": "iron"})
        assert [attributes(queue, job_id)[1] for job_id in (gold, more, iron)] == [10, 20, 1]


class TestRejection:
    def test_a_single_job(self, hooked):
        queue = hooked(on_enqueue=REFUSE)
        [result] = queue.push_jobs([{"payload": 1}], status=422)
        assert (result["index"], result["status"]) == (0, "rejected")
        assert result["error"] == {"code": "hook_rejected", "message": "nobody wants it"}
        assert queue.counts() == {} and queue.jobs() == []
        assert queue.totals() == {}

    def test_the_others_of_the_push_go_on(self, hooked):
        queue = hooked(on_enqueue=REFUSE_ODD)
        results = queue.push_jobs([{"payload": number} for number in range(6)])
        assert [result["index"] for result in results] == list(range(6))
        assert [result["status"] for result in results] == ["pushed", "rejected"] * 3
        assert [result["error"]["message"] for result in results[1::2]] == [
            "odd: 1", "odd: 3", "odd: 5"]
        assert [job["payload"] for job in queue.claim(10)] == [0, 2, 4]
        assert queue.totals()["pushed"] == 3

    def test_a_push_of_which_nothing_is_left(self, hooked):
        queue = hooked(on_enqueue=REFUSE_ODD)
        results = queue.push_jobs([{"payload": number} for number in (1, 3, 5)], status=422)
        assert [result["error"]["code"] for result in results] == ["hook_rejected"] * 3

    def test_the_first_error_gives_the_status(self, hooked):
        queue = hooked(on_enqueue=REFUSE)
        too_long = {"payload": 1, "key": "k" * 513}
        results = queue.push_jobs([too_long, {"payload": 1}], status=413)
        assert [result["error"]["code"] for result in results] == ["key_too_long", "hook_rejected"]
        results = queue.push_jobs([{"payload": 1}, too_long], status=422)
        assert [result["error"]["code"] for result in results] == ["hook_rejected", "key_too_long"]

    def test_a_push_of_nothing(self, hooked):
        queue = hooked(on_enqueue=REFUSE)
        assert queue.push_jobs([]) == []
        assert calls_of(queue, "on_enqueue") == (0, {})

    def test_a_text_of_1000_bytes_comes_whole(self, hooked):
        queue = hooked(on_enqueue=on_enqueue('return { reject = ("é"):rep(500) }'))
        [result] = queue.push_jobs([{"payload": 1}], status=422)
        assert result["error"]["message"] == "é" * 500

    def test_a_rejection_is_an_answer_and_no_error_of_the_hook(self, hooked):
        queue = hooked(on_enqueue=REFUSE)
        for _ in range(5):
            queue.push_jobs([{"payload": 1}], status=422)
        assert calls_of(queue, "on_enqueue") == (5, {})
        assert calls_in_metrics(queue, "on_enqueue") == {"ok": 5}
        assert queue.show()["hooks"]["on_enqueue"]["breaker"] == "closed"

    def test_it_takes_no_room(self, hooked):
        queue = hooked(on_enqueue=REFUSE_ODD, max_jobs=2)
        results = queue.push_jobs([{"payload": number} for number in (1, 3, 2, 5, 4)])
        assert [result["status"] for result in results] == [
            "rejected", "rejected", "pushed", "rejected", "pushed"]
        assert queue.counts() == {"pending": 2}

    def test_no_event_tells_of_it(self, hooked, events):
        queue = hooked(on_enqueue=REFUSE_ODD)
        stream = events("queue:pushed")
        results = queue.push_jobs([{"payload": number} for number in (1, 2, 3, 4)])
        pushed = [result["id"] for result in results if result["status"] == "pushed"]
        assert [event.data["id"] for event in stream.take(2)] == pushed


class TestKeys:
    def test_a_known_key_is_a_duplicate_whatever_the_hook_says(self, hooked):
        queue = hooked()
        first = queue.push_one(1, key="k")
        queue.patch(on_enqueue=REFUSE)
        [result] = queue.push_jobs([{"payload": 2, "key": "k"}])
        assert (result["status"], result["id"]) == ("duplicate", first)
        assert attributes(queue, first) == PLAIN and queue.job(first)["payload"] == 1

    def test_a_duplicate_among_rejections_is_a_success(self, hooked):
        queue = hooked()
        first = queue.push_one(1, key="k")
        queue.patch(on_enqueue=REFUSE)
        results = queue.push_jobs([{"payload": 1}, {"payload": 1, "key": "k"}, {"payload": 1}])
        assert [result["status"] for result in results] == ["rejected", "duplicate", "rejected"]
        assert results[1]["id"] == first

    def test_twice_the_same_key_in_one_push(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("return { weight = 2 }"))
        first, second = queue.push_jobs([{"payload": 1, "key": "k"}, {"payload": 2, "key": "k"}])
        assert (first["status"], second["status"]) == ("pushed", "duplicate")
        assert second["id"] == first["id"]
        assert queue.counts() == {"pending": 1} and queue.totals()["duplicates"] == 1

    def test_the_key_of_a_refused_job_is_not_taken(self, hooked):
        queue = hooked(on_enqueue=REFUSE)
        queue.push_jobs([{"payload": 1, "key": "k"}], status=422)
        queue.patch(on_enqueue=on_enqueue("return {}"))
        [result] = queue.push_jobs([{"payload": 1, "key": "k"}])
        assert result["status"] == "pushed"


class TestOrder:
    @pytest.mark.parametrize("count", [100, 1000])
    def test_a_batch_keeps_its_order(self, hooked, count):
        queue = hooked(on_enqueue=on_enqueue(
            'return { fairness_key = "k" .. json.decode(msg.payload) % 7 }'))
        ids = queue.push(*range(count))
        jobs = queue.claim(count)
        assert [job["id"] for job in jobs] == ids
        assert [job["payload"] for job in jobs] == list(range(count))
        assert calls_of(queue, "on_enqueue") == (count, {})
        assert calls_in_metrics(queue, "on_enqueue") == {"ok": count}

    def test_one_push_after_another_keeps_its_order(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("return { weight = 2 }"))
        ids = [job_id for start in range(0, 60, 3)
               for job_id in queue.push(start, start + 1, start + 2)]
        assert [job["id"] for job in queue.claim(100)] == ids

    def test_a_big_batch_with_rejections(self, hooked):
        queue = hooked(on_enqueue=REFUSE_ODD)
        results = queue.push_jobs([{"payload": number} for number in range(1000)])
        assert [result["index"] for result in results] == list(range(1000))
        for number, result in enumerate(results):
            assert result["status"] == ("rejected" if number % 2 else "pushed")
            if number % 2:
                assert result["error"]["message"] == f"odd: {number}"
        assert [job["payload"] for job in queue.claim(1000)] == list(range(0, 1000, 2))

    def test_pushes_of_many_clients_each_keep_their_order(self, hooked, shared_server):
        queue = hooked(on_enqueue=on_enqueue("return { weight = 2 }"))

        def push(name):
            own = queue.through(shared_server.client())
            return [job_id for number in range(10)
                    for job_id in own.push(f"{name} {number} a", f"{name} {number} b")]

        pushed = [in_background(push, name) for name in "abcd"]
        expected = [future.result(30) for future in pushed]
        served = [job["id"] for job in queue.claim(100)]
        assert len(served) == 80
        for ids in expected:
            assert [job_id for job_id in served if job_id in ids] == ids

    def test_priorities_are_kept(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("return { weight = 2 }"))
        queue.push_jobs([{"payload": priority, "priority": priority} for priority in (5, 1, 3)])
        assert [job["priority"] for job in queue.claim(3)] == [1, 3, 5]

    def test_delay_ttl_headers_and_key_are_kept(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("return { weight = 2 }"))
        job_id = queue.push_one({"a": 1}, delay="1h", ttl="2h", headers={"a": "b"}, key="k",
                                priority=7)
        shown = queue.job(job_id)
        assert (shown["status"], shown["payload"], shown["headers"], shown["key"],
                shown["priority"], shown["weight"]) == (
                    "scheduled", {"a": 1}, {"a": "b"}, "k", 7, 2)
        assert_close(shown["due_at"], time.time() + 3600, slack=5)
        assert_close(shown["expires_at"], time.time() + 7200, slack=5)

    def test_bytes_come_back_byte_for_byte(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("return { weight = #msg.payload }"))
        queue.push_jobs([{"payload_base64": "AAEC/w=="}])
        job = queue.claim_one()
        assert job["payload_base64"] == "AAEC/w=="

    def test_a_waiting_claim_is_woken(self, hooked, shared_server):
        queue = hooked(on_enqueue=on_enqueue("return { weight = 2 }"))
        own = queue.through(shared_server.client())
        claim = in_background(lambda: own.claim(wait="30s"))
        eventually(lambda: queue.stats()["waiting_claims"] == 1, "the claim to wait")
        job_id = queue.push_one(1)
        assert [job["id"] for job in claim.result(10)] == [job_id]

    def test_a_delayed_job_is_asked_about_when_it_is_pushed(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("return { weight = 2 }"))
        queue.push(1, delay="200ms")
        assert calls_of(queue, "on_enqueue") == (1, {})
        assert len(queue.claim(wait="10s")) == 1
        assert calls_of(queue, "on_enqueue") == (1, {})


INVALID = [
    "return nil", "return", 'return "a"', "return 5", "return true",
    'return { fairness_key = "" }', 'return { fairness_key = ("x"):rep(201) }',
    "return { fairness_key = 5 }", "return { fairness_key = {} }",
    "return { weight = 0 }", "return { weight = 1001 }", "return { weight = -1 }",
    "return { weight = 1.5 }", 'return { weight = "many" }', "return { weight = 0/0 }",
    "return { weight = 1/0 }", "return { weight = math.maxinteger }",
    'return { throttle_keys = "a" }', "return { throttle_keys = { 5 } }",
    'return { throttle_keys = { "" } }', 'return { throttle_keys = { ("x"):rep(201) } }',
    'local keys = {} for i = 1, 17 do keys[i] = "k" .. i end return { throttle_keys = keys }',
    'return { throttle_keys = { a = "b" } }',
    "return { reject = 5 }", "return { reject = true }", 'return { reject = ("x"):rep(1001) }',
    'return { wieght = 5 }', 'return { action = "dlq" }', 'return { "a" }',
]


class TestErrors:
    @pytest.mark.parametrize("body", INVALID)
    def test_an_answer_that_is_none_accepts_the_job_as_it_was_pushed(self, hooked, body):
        queue = hooked(on_enqueue=on_enqueue(body))
        job_id = queue.push_one({"n": 1}, headers={"a": "b"}, priority=9)
        shown = queue.job(job_id)
        assert attributes(queue, job_id) == PLAIN
        assert (shown["payload"], shown["headers"], shown["priority"]) == (
            {"n": 1}, {"a": "b"}, 9)
        assert calls_of(queue, "on_enqueue") == (0, {"invalid_result": 1})
        assert calls_in_metrics(queue, "on_enqueue") == {"invalid_result": 1}

    def test_a_script_that_fails_now_and_then(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("""
            if msg.headers.bad then error("bad") end
            return { fairness_key = "good" }
        """))
        jobs = [{"payload": number, "headers": {"bad": "1"} if number % 3 == 0 else {}}
                for number in range(30)]
        results = queue.push_jobs(jobs)
        assert {result["status"] for result in results} == {"pushed"}
        keys = [attributes(queue, result["id"])[0] for result in results]
        assert keys == ["default" if number % 3 == 0 else "good" for number in range(30)]
        assert calls_of(queue, "on_enqueue") == (20, {"error": 10})

    def test_the_setting_for_failures_does_not_concern_it(self, hooked):
        queue = hooked(on_enqueue=on_enqueue('error("bad")'), on_hook_error="dlq")
        job_id = queue.push_one(1)
        assert queue.job(job_id)["status"] == "pending"


def test_the_version_is_shown(hooked):
    queue = hooked(on_enqueue=REFUSE)
    assert queue.show()["hooks"]["on_enqueue"]["version"] == version_of(REFUSE)


def test_a_queue_that_the_push_makes_has_no_hook(absent_queue):
    [result] = absent_queue.push_jobs([{"payload": 1}], create=True)
    assert result["status"] == "pushed" and absent_queue.show()["hooks"] == {}
