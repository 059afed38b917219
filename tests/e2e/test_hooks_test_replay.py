"""Trying scripts: against samples, and against jobs that have died or failed. Nothing is changed.
"""

import json
import time

import pytest

from failing import make_cooling, make_dead, make_dead_in_turn
from hooking import (BROKEN, BURY, KEEP, PATIENT_MS, RuntimeConfig, decide, fail_one, hook_of,
                     on_enqueue, on_failure, replay, telling, try_hook, version_of)
from metrics_text import read_metrics
from times import seconds_since_1970
from waiting import eventually

WRONG = ("invalid_request", "invalid_field")
ENQUEUE = on_enqueue('return { fairness_key = "f", weight = 3, throttle_keys = { "a", "b" } }')
TELL_ALL = on_failure("""
    log(json.encode({ id = msg.id, queue = msg.queue, error = msg.error,
                      error_type = msg.error_type, attempts = msg.attempts,
                      failures = msg.failures, first = msg.first_attempt_at or json.null,
                      payload = msg.payload, size = msg.payload_size, headers = msg.headers }))
    return {}
""")


def refused(queue, route, body):
    reply = queue.client.request("POST", queue.path(f"/hooks/{route}"), body)
    return reply.status, reply.code


class TestTest:
    @pytest.fixture
    def queue(self, hooked):
        return hooked()

    def test_the_reply_has_the_documented_shape(self, queue):
        source = on_failure("""
            if msg.error == "bad card" then
                log("card 4")
                return { action = "dlq", reason = "permanent" }
            end
            if msg.error == "crash" then return msg.card.number end
            return { action = "retry", delay_ms = 1000 }
        """)
        reply = try_hook(queue, [{"error": "x"}, {"error": "bad card"}, {"error": "crash"}],
                         on_failure=source)
        message = reply["results"][2].pop("message")
        assert reply == {"hook": "on_failure", "version": version_of(source), "results": [
            {"index": 0, "status": "decided", "action": "retry", "delay_ms": 1000, "log": []},
            {"index": 1, "status": "decided", "action": "dlq", "reason": "permanent",
             "log": ["card 4"]},
            {"index": 2, "status": "hook_error", "fault": "error", "log": []}]}
        # The error is in line 7 of the text: on_failure() begins with a line of its own.
        assert message.startswith("line 7:") and "card" in message

    def test_a_sample_is_told_as_it_is(self, queue):
        sample = {"id": "7ZK3M9QAX2B4C", "payload": {"n": 1}, "headers": {"tenant": "é"},
                  "error": "no lück", "error_type": "Net", "attempts": 7, "failures": 3}
        result = decide(queue, TELL_ALL, **sample)
        seen = json.loads(result["log"][0])
        first = seen.pop("first")
        assert first is None or isinstance(first, (int, float))
        assert json.loads(seen.pop("payload")) == {"n": 1}
        assert seen.pop("size") > 0
        assert seen == {"id": "7ZK3M9QAX2B4C", "queue": "jobs", "error": "no lück",
                        "error_type": "Net", "attempts": 7, "failures": 3,
                        "headers": {"tenant": "é"}}

    def test_what_a_sample_leaves_out(self, queue):
        seen = json.loads(decide(queue, TELL_ALL)["log"][0])
        assert (seen["attempts"], seen["failures"], seen["error"], seen["error_type"],
                seen["queue"]) == (1, 1, "", "", "jobs")
        assert seen["headers"] == {}

    def test_a_payload_of_bytes(self, queue):
        result = decide(queue, on_failure("""
            return { action = "dlq", reason = msg.payload_size .. ":" .. msg.payload:byte(4) }
        """), payload_base64="AAEC/w==")
        assert result["reason"] == "4:255"

    def test_without_a_delay_or_a_reason(self, queue):
        retried = decide(queue, on_failure("return {}"))
        assert retried["status"] == "decided" and retried["action"] == "retry"
        assert retried.get("delay_ms", 0) == 0
        dead = decide(queue, on_failure('return { action = "dlq" }'))
        assert (dead["action"], dead.get("reason", "hook")) == ("dlq", "hook")

    @pytest.mark.parametrize("body, fault", [
        ('error("no")', "error"), ("return { delay_ms = -1 }", "invalid_result"),
        ("return nil", "invalid_result"), ("return ('a'):rep(60000):find('.-b')", "timeout"),
        ("local s = 'x' while true do s = s .. s end", "memory")])
    def test_every_fault(self, queue, body, fault):
        queue.patch(hook_timeout_ms=50)
        result = decide(queue, on_failure(body))
        assert (result["index"], result["status"], result["fault"]) == (0, "hook_error", fault)
        assert isinstance(result["message"], str) and result["message"]

    def test_one_sample_that_fails_does_not_stop_the_others(self, queue):
        queue.patch(hook_timeout_ms=50)
        source = on_failure("""
            if msg.error == "loop" then while true do end end
            if msg.error == "bad" then error("bad") end
            return { action = "dlq", reason = msg.error }
        """)
        errors = ["a", "loop", "b", "bad", "bad", "bad", "bad", "c", "loop", "d"]
        results = try_hook(queue, [{"error": error} for error in errors],
                           on_failure=source)["results"]
        assert [result["index"] for result in results] == list(range(len(errors)))
        # No breaker: each is tried.
        assert [result.get("reason") for result in results] == [
            error if len(error) == 1 else None for error in errors]
        assert {result["status"] for result in results if "reason" not in result} == {"hook_error"}

    def test_on_enqueue(self, queue):
        reply = try_hook(queue, [{}], on_enqueue=ENQUEUE)
        assert reply == {"hook": "on_enqueue", "version": version_of(ENQUEUE), "results": [
            {"index": 0, "status": "decided", "fairness_key": "f", "weight": 3,
             "throttle_keys": ["a", "b"], "log": []}]}

    def test_on_enqueue_tells_what_the_job_would_have(self, queue):
        source = on_enqueue("return { weight = msg.priority == 7 and 9 or nil }")
        results = try_hook(queue, [
            {}, {"priority": 7}, {"fairness_key": "mine", "weight": 5, "throttle_keys": ["x"]}],
            on_enqueue=source)["results"]
        assert [(result["fairness_key"], result["weight"], result["throttle_keys"])
                for result in results] == [("default", 1, []), ("default", 9, []),
                                           ("mine", 5, ["x"])]

    def test_on_enqueue_sees_the_sample(self, queue):
        source = on_enqueue("""
            return { reject = json.encode({ msg.queue, msg.headers.a, msg.payload_size,
                                            msg.priority, msg.fairness_key, msg.weight,
                                            msg.throttle_keys }) }
        """)
        [result] = try_hook(queue, [{
            "payload_base64": "AAEC", "headers": {"a": "b"}, "priority": 5, "fairness_key": "f",
            "weight": 2, "throttle_keys": ["t", "u"]}], on_enqueue=source)["results"]
        assert result["status"] == "decided"
        assert json.loads(result["reject"]) == ["jobs", "b", 3, 5, "f", 2, ["t", "u"]]

    def test_a_rejection(self, queue):
        result = decide(queue, on_enqueue('return { reject = "no" }'), hook="on_enqueue")
        assert (result["status"], result["reject"]) == ("decided", "no")

    def test_a_line_that_is_logged(self, queue):
        result = decide(queue, on_failure("""
            for i = 1, 20 do log("line " .. i .. (i == 2 and ("x"):rep(2000) or "")) end
            return {}
        """))
        assert len(result["log"]) == 8 and result["log"][0] == "line 1"
        assert result["log"][1].startswith("line 2xxx") and len(result["log"][1]) <= 1000

    def test_null_is_the_queues_own(self, queue):
        queue.patch(on_failure=BURY, on_enqueue=ENQUEUE)
        reply = try_hook(queue, [{}], on_failure=None)
        assert (reply["hook"], reply["version"]) == ("on_failure", version_of(BURY))
        assert reply["results"][0]["reason"] == "buried"
        reply = try_hook(queue, [{}], on_enqueue=None)
        assert (reply["hook"], reply["version"]) == ("on_enqueue", version_of(ENQUEUE))
        assert reply["results"][0]["fairness_key"] == "f"

    def test_null_of_a_queue_that_has_none(self, queue):
        queue.patch(on_failure=BURY)
        assert refused(queue, "test", {"on_enqueue": None, "samples": [{}]}) == (
            400, "invalid_request")
        queue.patch(on_failure=None)
        assert refused(queue, "test", {"on_failure": None, "samples": [{}]}) == (
            400, "invalid_request")

    @pytest.mark.parametrize("count", [1, 2, 1000])
    def test_as_many_samples_as_allowed(self, queue, count):
        source = on_failure('return { action = "dlq", reason = msg.error }')
        results = try_hook(queue, [{"error": f"e{number}"} for number in range(count)],
                           on_failure=source)["results"]
        assert [(result["index"], result["reason"]) for result in results] == [
            (number, f"e{number}") for number in range(count)]

    @pytest.mark.parametrize("count, status", [(0, (400,)), (1001, (400, 413))])
    def test_more_or_less_than_allowed(self, queue, count, status):
        assert refused(queue, "test", {"on_failure": BURY, "samples": [{}] * count})[0] in status

    @pytest.mark.parametrize("body, code", [
        ({"samples": [{}]}, WRONG), ({"on_failure": BURY}, WRONG), ({}, WRONG),
        ({"on_failure": BURY, "on_enqueue": ENQUEUE, "samples": [{}]}, WRONG),
        ({"on_failure": 5, "samples": [{}]}, WRONG), ({"on_failure": BURY, "samples": {}}, WRONG),
        ({"on_failure": BURY, "samples": [5]}, WRONG),
        ({"on_failure": BURY, "samples": [None]}, WRONG),
        ({"on_failure": BURY, "samples": [{"error": 5}]}, WRONG),
        ({"on_failure": BURY, "samples": [{"headers": {"a": 1}}]}, WRONG),
        ({"on_failure": BURY, "samples": [{"failures": "x"}]}, WRONG),
        ({"on_failure": BURY, "samples": [{"payload": 1, "payload_base64": "AA=="}]}, WRONG),
        ({"on_failure": BURY, "samples": [{"payload_base64": "!"}]}, WRONG),
        ({"on_failure": BURY, "samples": [{"eror": "x"}]}, ("unknown_field",)),
        ({"on_failure": BURY, "sample": [{}]}, ("unknown_field",)),
        ({"on_failure": "nonsense here", "samples": [{}]}, ("invalid_script",)),
        ({"on_failure": ENQUEUE, "samples": [{}]}, ("invalid_script",)),
        ({"on_enqueue": BURY, "samples": [{}]}, ("invalid_script",))],
        ids=lambda part: json.dumps(part)[:60])
    def test_a_request_that_is_none(self, queue, body, code):
        status, found = refused(queue, "test", body)
        assert status == 400 and found in code

    def test_a_script_beyond_64_kib(self, queue):
        assert refused(queue, "test", {"on_failure": " " * 65537, "samples": [{}]}) == (
            413, "script_too_large")

    def test_an_unknown_queue(self, absent_queue):
        assert refused(absent_queue, "test", {"on_failure": BURY, "samples": [{}]}) == (
            404, "queue_not_found")

    def test_it_uses_the_queues_limits(self, queue):
        source = on_failure("local s = ('x'):rep(3000000) return {}")
        assert decide(queue, source)["fault"] == "memory"
        queue.patch(hook_memory_bytes=16 << 20)
        assert decide(queue, source)["status"] == "decided"

    def test_it_uses_the_namespaces_config(self, queue):
        RuntimeConfig(queue.client, queue.namespace).set("key", "value")
        source = on_failure('return { action = "dlq", reason = config.get("key") }')
        assert decide(queue, source)["reason"] == "value"

    def test_nothing_is_changed(self, queue):
        queue.patch(on_failure=KEEP)
        fail_one(queue)
        before = queue.snapshot()
        for _ in range(2):
            try_hook(queue, [{}] * 5, on_failure=BROKEN)
            try_hook(queue, [{}] * 5, on_failure=BURY)
            try_hook(queue, [{}] * 5, on_failure=None)
        assert queue.snapshot() == before
        assert hook_of(queue)["version"] == version_of(KEEP)

    def test_the_breaker_of_the_queue_does_not_count_it(self, queue):
        queue.patch(on_failure=BROKEN)
        results = try_hook(queue, [{}] * 10, on_failure=None)["results"]
        assert [result["fault"] for result in results] == ["error"] * 10
        state = hook_of(queue)
        assert (state["breaker"], state["failures_in_a_row"], state["last_error"]) == (
            "closed", 0, None)

    def test_an_open_breaker_does_not_hinder_it(self, queue):
        queue.patch(on_failure=BROKEN, on_hook_error="dlq")
        for _ in range(3):
            fail_one(queue)
        assert hook_of(queue)["breaker"] == "open"
        assert decide(queue, BURY)["reason"] == "buried"
        assert decide(queue, None)["fault"] == "error"
        assert hook_of(queue)["breaker"] == "open"

    def test_its_processes_end_with_it(self, queue):
        before = read_metrics(queue.client).value("reprise_hook_hosts")
        for _ in range(10):
            decide(queue, BURY)
        eventually(lambda: read_metrics(queue.client).value("reprise_hook_hosts") <= before,
                   "its processes to end")


class TestReplay:
    @pytest.fixture
    def dead(self, hooked):
        """A queue with jobs that died in this order, of timeouts and of bad cards; their ids."""
        queue = hooked()
        queue.ids = make_dead_in_turn(queue, "timeout 1", "bad card 2", "timeout 3",
                                      headers={"tenant": "a"})
        queue.ids += make_dead_in_turn(queue, "bad card 4", headers={"tenant": "b"})
        return queue

    SCRIPT = on_failure("""
        if msg.error:find("bad card", 1, true) then
            return { action = "dlq", reason = "permanent" }
        end
        return { action = "retry", delay_ms = 4000 }
    """)

    def test_the_reply_has_the_documented_shape(self, dead):
        reply = replay(dead, on_failure=self.SCRIPT)
        was = {"status": "dead", "reason": "final", "decided_by": "client"}
        assert reply == {
            "hook": "on_failure", "version": version_of(self.SCRIPT), "examined": 4,
            "unreadable": 0, "truncated": False, "summary": {"retry": 2, "dlq": 2, "hook_error": 0},
            "decisions": [
                {"id": dead.ids[0], "was": was, "status": "decided", "action": "retry",
                 "delay_ms": 4000},
                {"id": dead.ids[1], "was": was, "status": "decided", "action": "dlq",
                 "reason": "permanent"},
                {"id": dead.ids[2], "was": was, "status": "decided", "action": "retry",
                 "delay_ms": 4000},
                {"id": dead.ids[3], "was": was, "status": "decided", "action": "dlq",
                 "reason": "permanent"}]}

    def test_each_job_is_as_it_was_at_its_last_failure(self, hooked):
        queue = hooked(retry={"attempts": 3})
        job_id = queue.push_one({"n": 1}, headers={"tenant": "é"})
        queue.client.release(queue.claim_one())
        for error in ("first", "second", "third"):
            queue.client.fail(eventually(queue.claim)[0], error=error, error_type=f"{error} type")
        shown = queue.job(job_id)
        [decision] = replay(queue, on_failure=telling(
            '{ msg.id == "%s", msg.queue, msg.error, msg.error_type, msg.attempts, msg.failures,'
            '  msg.first_attempt_at, msg.payload, msg.headers.tenant }' % job_id))["decisions"]
        first = round(seconds_since_1970(shown["history"][0]["at"]) * 1000)
        assert json.loads(decision["reason"]) == [
            True, "jobs", "third", "third type", 4, 3, first, '{"n": 1}', "é"]
        assert decision["was"] == {"status": "dead", "reason": "max_attempts",
                                   "decided_by": "policy"}

    def test_what_a_lease_that_ran_out_looked_like(self, hooked):
        queue = hooked()
        job_id = queue.push_one(1)
        queue.claim_one(lease="100ms")
        eventually(lambda: queue.status_of(job_id) == "dead", "the job to die")
        [decision] = replay(queue, on_failure=telling("{ msg.error, msg.failures }"))["decisions"]
        assert json.loads(decision["reason"]) == ["lease expired", 1]
        assert decision["was"]["reason"] == "lease_expired"

    def test_jobs_that_a_hook_buried(self, hooked):
        queue = hooked(on_failure=BURY)
        job_id = fail_one(queue)["id"]
        [decision] = replay(queue, on_failure=KEEP)["decisions"]
        assert decision == {"id": job_id, "was": {
            "status": "dead", "reason": "buried", "decided_by": f"hook:{version_of(BURY)}"},
            "status": "decided", "action": "retry", "delay_ms": 3600000}

    def test_jobs_that_failed(self, hooked):
        queue = hooked(retry={"attempts": 9})
        [cooling] = make_cooling(queue, "cooling")
        [dead] = make_dead(queue, "dead")
        reply = replay(queue, on_failure=BURY, filter={"status": "failed"})
        assert reply["decisions"] == [{
            "id": cooling, "was": {"status": "failed", "reason": None, "decided_by": None},
            "status": "decided", "action": "dlq", "reason": "buried"}]
        assert [entry["id"] for entry in replay(queue, on_failure=BURY)["decisions"]] == [dead]

    def test_jobs_that_wait_are_left_out(self, dead):
        dead.push("pending")
        dead.push("scheduled", delay="1h")
        assert replay(dead, on_failure=BURY)["examined"] == 4

    @pytest.mark.parametrize("given, places", [
        ({}, [0, 1, 2, 3]), ({"status": "dead"}, [0, 1, 2, 3]), ({"error": "timeout"}, [0, 2]),
        ({"headers": {"tenant": "b"}}, [3]), ({"error": "nothing"}, []),
        ({"reason": "final"}, [0, 1, 2, 3]), ({"reason": "max_attempts"}, []),
        ({"newer_than": "1h"}, [0, 1, 2, 3]), ({"older_than": "1h"}, []),
        ({"error": "card", "headers": {"tenant": "a"}}, [1])], ids=json.dumps)
    def test_filters_are_those_of_retry(self, dead, given, places):
        reply = replay(dead, on_failure=self.SCRIPT, filter=given)
        assert [entry["id"] for entry in reply["decisions"]] == [
            dead.ids[place] for place in places]
        assert (reply["examined"], reply["truncated"]) == (len(places), False)
        preview = dead.retry(filter=given, dry_run=True)
        assert preview["matched"] == len(places)

    @pytest.mark.parametrize("limit, truncated", [(1, True), (3, True), (4, False), (5, False),
                                                  (10000, False)])
    def test_no_more_than_the_limit(self, dead, limit, truncated):
        reply = replay(dead, on_failure=self.SCRIPT, limit=limit)
        assert (reply["examined"], reply["truncated"]) == (min(limit, 4), truncated)
        assert [entry["id"] for entry in reply["decisions"]] == dead.ids[:limit]
        assert sum(reply["summary"].values()) == min(limit, 4)

    def test_the_limit_is_a_thousand_when_none_is_given(self, hooked):
        queue = hooked()
        make_dead(queue, *["x"] * 1000)
        make_dead(queue, "y")
        reply = replay(queue, on_failure=BURY)
        assert (reply["examined"], reply["truncated"], len(reply["decisions"])) == (
            1000, True, 1000)
        reply = replay(queue, on_failure=BURY, limit=2000)
        assert (reply["examined"], reply["truncated"], reply["summary"]) == (
            1001, False, {"retry": 0, "dlq": 1001, "hook_error": 0})

    @pytest.mark.parametrize("body, code", [
        ({"on_failure": BURY, "limit": 0}, WRONG), ({"on_failure": BURY, "limit": 10001}, WRONG),
        ({"on_failure": BURY, "limit": -1}, WRONG), ({"on_failure": BURY, "limit": "x"}, WRONG),
        ({"on_failure": BURY, "filter": {"status": "pending"}}, WRONG),
        ({"on_failure": BURY, "filter": {"eror": "x"}}, ("unknown_field",)),
        ({"on_failure": BURY, "filter": 5}, WRONG), ({}, WRONG), ({"on_failure": 5}, WRONG),
        ({"on_failure": BURY, "samples": [{}]}, ("unknown_field",)),
        ({"on_enqueue": ENQUEUE}, ("unknown_field",) + WRONG),
        ({"on_failure": "nonsense here"}, ("invalid_script",)),
        ({"on_failure": ENQUEUE}, ("invalid_script",)),
        ({"on_failure": None}, ("invalid_request",))], ids=lambda part: json.dumps(part)[:60])
    def test_a_request_that_is_none(self, dead, body, code):
        before = dead.snapshot()
        status, found = refused(dead, "replay", body)
        assert status == 400 and found in code
        assert dead.snapshot() == before

    def test_a_script_beyond_64_kib(self, dead):
        assert refused(dead, "replay", {"on_failure": " " * 65537}) == (413, "script_too_large")

    def test_an_unknown_queue(self, absent_queue):
        assert refused(absent_queue, "replay", {"on_failure": BURY}) == (404, "queue_not_found")

    def test_null_is_the_queues_own(self, dead):
        dead.patch(on_failure=BURY)
        reply = replay(dead, on_failure=None)
        assert reply["version"] == version_of(BURY)
        assert reply["summary"] == {"retry": 0, "dlq": 4, "hook_error": 0}

    def test_a_queue_without_dead_jobs(self, hooked):
        reply = replay(hooked(), on_failure=BURY)
        assert (reply["examined"], reply["decisions"], reply["truncated"]) == (0, [], False)
        assert reply["summary"] == {"retry": 0, "dlq": 0, "hook_error": 0}

    def test_a_script_that_fails_for_some(self, dead):
        dead.patch(hook_timeout_ms=50)
        source = on_failure("""
            if msg.error == "timeout 1" then while true do end end
            if msg.error == "timeout 3" then error("three") end
            return { action = "dlq" }
        """)
        reply = replay(dead, on_failure=source)
        assert reply["summary"] == {"retry": 0, "dlq": 2, "hook_error": 2}
        first, second, third, fourth = reply["decisions"]
        assert [entry["id"] for entry in reply["decisions"]] == dead.ids
        assert first["status"] == third["status"] == "hook_error"
        assert third["fault"] == "error" and "three" in third["message"]
        assert second["status"] == fourth["status"] == "decided"
        assert "was" in first

    def test_nothing_is_changed(self, dead):
        dead.patch(on_failure=KEEP)
        before = dead.snapshot()
        audit = dead.client.audit(namespace=dead.namespace)
        whole = [dead.job(job_id) for job_id in dead.ids]
        for source in (BURY, BROKEN, None):
            replay(dead, on_failure=source)
        assert dead.snapshot() == before
        assert [dead.job(job_id) for job_id in dead.ids] == whole
        assert dead.client.audit(namespace=dead.namespace) == audit

    def test_the_breaker_of_the_queue_does_not_count_it(self, dead):
        dead.patch(on_failure=BROKEN)
        assert replay(dead, on_failure=None)["summary"]["hook_error"] == 4
        state = hook_of(dead)
        assert (state["breaker"], state["failures_in_a_row"]) == ("closed", 0)

    def test_the_same_decisions_follow_when_the_script_is_set(self, hooked):
        """What a replay tells is what happens when such a job fails."""
        queue = hooked(retry={"attempts": "unlimited"})
        source = on_failure("""
            if msg.headers.kind == "bad" then return { action = "dlq", reason = msg.error } end
            return { delay_ms = 1000 * #msg.error }
        """)
        samples = [("bad", "short"), ("good", "a longer one"), ("bad", "x"), ("good", "y")]
        for kind, error in samples:
            make_dead(queue, error, headers={"kind": kind})
        told = replay(queue, on_failure=source)["decisions"]
        queue.patch(on_failure=source)
        for (kind, error), entry in zip(samples, told):
            started = time.time()
            result = fail_one(queue, error=error, push={"headers": {"kind": kind}})
            if entry["action"] == "dlq":
                assert (result["status"], result["reason"]) == ("dead", entry["reason"])
            else:
                waited = seconds_since_1970(result["retry_at"]) - started
                assert waited == pytest.approx(entry["delay_ms"] / 1000, abs=1)


def test_both_work_while_the_queues_own_hook_loops(hooked):
    queue = hooked(on_failure=on_failure("while true do end"), hook_timeout_ms=PATIENT_MS)
    make_dead(queue, "x")
    assert decide(queue, BURY)["reason"] == "buried"
    assert replay(queue, on_failure=BURY)["summary"]["dlq"] == 1
