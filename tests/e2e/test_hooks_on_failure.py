"""on_failure: what the script is told, and that its word is kept, in its place among other rules.

A script tells what it saw through the reason of the death that it decides.
"""

import base64
import time

import pytest

from failing import fail_again
from hooking import (AT_ONCE, BURY, KEEP, PATIENT_MS, calls_in_metrics, calls_of, decision,
                     fail_many, fail_one, hook_of, meta_of, on_failure, telling, told, version_of)
from times import assert_close, seconds_since_1970
from waiting import eventually, time_passes
from webhook_receiver import Receiver

YEAR_MS = 31_536_000_000
CLOCK_SLACK_SECONDS = 1


class TestMessage:
    def seen(self, hooked, expression, payload=None, push=None, **failure):
        """What a script says of a job that failed like this."""
        queue = hooked(on_failure=telling(expression))
        result = fail_one(queue, payload, push, error="x", **failure)
        assert result["status"] == "dead", result
        return told(queue, result["id"])

    def test_who_and_where(self, hooked):
        queue = hooked(on_failure=telling("{ msg.id, msg.queue }"))
        result = fail_one(queue)
        assert told(queue, result["id"]) == [result["id"], "jobs"]

    def test_the_error_as_it_was_reported(self, hooked):
        queue = hooked(on_failure=telling("{ msg.error, msg.error_type }"))
        result = fail_one(queue, error='no\n"lück"', error_type="Net")
        assert told(queue, result["id"]) == ['no\n"lück"', "Net"]

    def test_no_error_is_empty_text(self, hooked):
        queue = hooked(on_failure=telling("{ msg.error, msg.error_type }"))
        result = fail_one(queue)
        assert told(queue, result["id"]) == ["", ""]

    def test_the_longest_error_comes_whole(self, hooked):
        queue = hooked(on_failure=telling("{ #msg.error, msg.error:sub(-3), #msg.error_type }"))
        result = fail_one(queue, error="x" * 16381 + "end", error_type="t" * 200)
        assert told(queue, result["id"]) == [16384, "end", 200]

    def test_headers_are_a_table(self, hooked):
        headers = {"tenant": "é", "Plan": "gold", "empty": ""}
        assert self.seen(hooked, "msg.headers", push={"headers": headers}) == headers

    def test_without_headers_the_table_is_empty(self, hooked):
        assert self.seen(hooked, "{ type(msg.headers), next(msg.headers) == nil }") == [
            "table", True]

    def test_as_many_headers_as_are_allowed(self, hooked):
        headers = {f"h{number}": str(number) for number in range(64)}
        expression = '{ msg.headers.h0, msg.headers.h63, msg.headers.h64 == nil }'
        assert self.seen(hooked, expression, push={"headers": headers}) == ["0", "63", True]

    @pytest.mark.parametrize("payload, text", [
        ({"n": 1}, '{"n": 1}'), ("é", '"\\u00e9"'), (None, "null"), ([], "[]"), (0.5, "0.5")],
        ids=repr)
    def test_the_payload_is_text_as_it_came(self, hooked, payload, text):
        assert self.seen(hooked, "{ msg.payload, msg.payload_size }", payload) == [
            text, len(text)]

    def test_a_payload_of_bytes(self, hooked):
        data = bytes(range(256)) * 2
        queue = hooked(on_failure=on_failure("""
            local sum = 0
            for i = 1, #msg.payload do sum = sum + i * msg.payload:byte(i) end
            return { action = "dlq", reason = json.encode({ #msg.payload, msg.payload_size, sum }) }
        """))
        [pushed] = queue.push_jobs([{"payload_base64": base64.b64encode(data).decode()}])
        queue.client.fail(queue.claim_one())
        assert told(queue, pushed["id"]) == [
            512, 512, sum(place * byte for place, byte in enumerate(data, 1))]

    def test_a_payload_can_be_decoded(self, hooked):
        assert self.seen(hooked, "{ json.decode(msg.payload).items[2].price }",
                         {"items": [{"price": 1}, {"price": 2.5}]}) == [2.5]

    def test_a_payload_as_large_as_allowed(self, hooked):
        queue = hooked(on_failure=telling("{ msg.payload_size, #msg.payload }"),
                       hook_memory_bytes=16 << 20)
        result = fail_one(queue, "x" * ((1 << 20) - 2))
        assert told(queue, result["id"]) == [1 << 20, 1 << 20]

    def test_when_it_was_first_leased(self, hooked):
        queue = hooked(on_failure=on_failure("""
            if msg.failures < 3 then return {} end
            return { action = "dlq", reason = json.encode({ msg.first_attempt_at }) }
        """))
        job_id = queue.push_one(1)
        for _ in range(3):
            queue.client.fail(eventually(queue.claim)[0])
        first = queue.job(job_id)["history"][0]
        assert told(queue, job_id) == [round(seconds_since_1970(first["at"]) * 1000)]

    def test_attempts_and_failures_grow_with_each_failure(self, hooked):
        queue = hooked(on_failure=on_failure("""
            if msg.failures < 5 then return { delay_ms = 0 } end
            return { action = "dlq", reason = json.encode({ msg.attempts, msg.failures }) }
        """))
        job_id = queue.push_one(1)
        for number in range(1, 6):
            result = queue.client.fail(eventually(queue.claim)[0])
            assert result["status"] == ("retrying" if number < 5 else "dead")
        assert told(queue, job_id) == [5, 5]

    def test_a_release_counts_as_an_attempt_and_as_no_failure(self, hooked):
        queue = hooked(on_failure=telling("{ msg.attempts, msg.failures }"))
        job_id = queue.push_one(1)
        for _ in range(3):
            queue.client.release(queue.claim_one())
        queue.client.fail(queue.claim_one())
        assert told(queue, job_id) == [4, 1]

    def test_a_manual_retry_starts_failures_anew_and_keeps_attempts(self, hooked):
        queue = hooked(on_failure=telling("{ msg.attempts, msg.failures, msg.first_attempt_at }"))
        job_id = fail_one(queue)["id"]
        first = told(queue, job_id)
        assert first[:2] == [1, 1]
        queue.retry(job_id)
        queue.client.fail(queue.claim_one())
        assert told(queue, job_id) == [2, 1, first[2]]

    def test_what_a_script_does_to_it_changes_nothing(self, hooked):
        queue = hooked(on_failure=on_failure("""
            pcall(function() msg.headers.tenant = "evil" end)
            pcall(function() msg.error = "evil" end)
            pcall(function() msg.id = "evil" end)
            return { action = "dlq" }
        """))
        result = fail_one(queue, error="mine", push={"headers": {"tenant": "a"}})
        shown = queue.job(result["id"])
        assert (shown["headers"], shown["last_error"]) == ({"tenant": "a"}, "mine")


class TestRetry:
    def wait_ms(self, queue, **fields):
        result = fail_one(queue, **fields)
        assert result["status"] == "retrying", result
        shown = queue.job(result["id"])
        assert shown["due_at"] == result["retry_at"] and shown["status"] == "failed"
        ended = seconds_since_1970(shown["history"][-1]["ended_at"])
        return (seconds_since_1970(result["retry_at"]) - ended) * 1000

    @pytest.mark.parametrize("delay", [60_000, 3_600_000, YEAR_MS])
    def test_the_job_waits_as_long_as_the_script_says(self, hooked, delay):
        queue = hooked(on_failure=on_failure(f'return {{ action = "retry", delay_ms = {delay} }}'))
        assert self.wait_ms(queue) == pytest.approx(delay, abs=CLOCK_SLACK_SECONDS * 1000)

    def test_it_is_not_given_out_before(self, hooked):
        queue = hooked(on_failure=on_failure("return { delay_ms = 400 }"))
        result = fail_one(queue)
        assert queue.claim() == []
        [again] = queue.claim(wait="10s")
        assert time.time() >= seconds_since_1970(result["retry_at"]) - 0.002
        assert (again["id"], again["failures"]) == (result["id"], 1)

    @pytest.mark.parametrize("answer", [
        '{ action = "retry", delay_ms = 0 }', '{ action = "retry" }', "{ delay_ms = 0 }", "{}",
        "{ delay_ms = 0.0 }"])
    def test_without_a_delay_it_is_due_at_once(self, hooked, answer):
        # Not after the policy's wait: that is for queues without a hook.
        queue = hooked(on_failure=on_failure(f"return {answer}"), retry={"cooldown": "1h"})
        result = fail_one(queue)
        assert_close(result["retry_at"], time.time(), slack=5)
        [again] = queue.claim(wait="10s")
        assert (again["id"], again["attempts"]) == (result["id"], 2)

    def test_each_failure_is_asked_about_anew(self, hooked):
        queue = hooked(on_failure=on_failure(
            "return { delay_ms = msg.failures == 1 and 0 or 1000 * 60 * msg.failures }"))
        job_id = queue.push_one(1)
        queue.client.fail(queue.claim_one())
        result = queue.client.fail(eventually(queue.claim)[0])
        assert_close(result["retry_at"], time.time() + 120, slack=5)
        assert queue.job(job_id)["failures"] == 2

    def test_the_hook_alone_decides_how_often(self, hooked):
        queue = hooked(on_failure=AT_ONCE)
        job_id = queue.push_one(1)
        for _ in range(30):
            assert queue.client.fail(eventually(queue.claim)[0])["status"] == "retrying"
        assert queue.job(job_id)["failures"] == 30
        assert calls_of(queue) == (30, {})

    def test_the_wait_survives_a_restart(self, server):
        queue = server.client().queue("q").created(on_failure=KEEP, hook_timeout_ms=PATIENT_MS)
        result = fail_one(queue)
        server.restart("kill")
        shown = queue.through(server.client()).job(result["id"])
        assert (shown["status"], shown["due_at"]) == ("failed", result["retry_at"])

    def test_a_ttl_that_is_over_kills_where_a_retry_would_follow(self, hooked):
        queue = hooked(on_failure=AT_ONCE)
        job_id = queue.push_one(1, ttl="100ms")
        job = queue.claim_one()
        time_passes(seconds_since_1970(queue.job(job_id)["expires_at"]) + 0.02)
        result = queue.client.fail(job)
        assert (result["status"], result["reason"]) == ("dead", "expired")
        assert decision(queue, job_id) == ("expired", "policy")


class TestDeath:
    def test_the_envelope_names_reason_and_script(self, hooked):
        queue = hooked(on_failure=BURY)
        result = fail_one(queue, {"n": 1}, error="boom", error_type="Net")
        assert (result["status"], result["reason"]) == ("dead", "buried")
        meta = meta_of(queue, result["id"])
        assert (meta["reason"], meta["decidedBy"]) == ("buried", f"hook:{version_of(BURY)}")
        assert (meta["lastError"], meta["lastErrorType"]) == ("boom", "Net")
        assert meta["attempts"] == 1
        assert [entry["outcome"] for entry in meta["history"]] == ["failed"]
        assert queue.job(result["id"])["reason"] == "buried"
        assert queue.counts() == {"dead": 1}

    def test_the_version_is_that_of_the_text_to_the_byte(self, hooked):
        queue = hooked(on_failure=BURY)
        versions = []
        for source in (BURY, BURY + "\n", BURY + " -- é", "\r\n" + BURY):
            queue.patch(on_failure=source)
            assert hook_of(queue)["version"] == version_of(source)
            assert queue.show()["config"]["on_failure"] == source
            _, by = decision(queue, fail_one(queue)["id"])
            assert by == f"hook:{version_of(source)}"
            versions.append(by)
        assert len(set(versions)) == 4

    def test_the_reason_is_hook_when_none_is_given(self, hooked):
        source = on_failure('return { action = "dlq" }')
        queue = hooked(on_failure=source)
        result = fail_one(queue)
        assert result["reason"] == "hook"
        assert decision(queue, result["id"]) == ("hook", f"hook:{version_of(source)}")

    @pytest.mark.parametrize("reason", ["x", "é" * 100, "x" * 200, 'a "b"\\c', "max_attempts"],
                             ids=lambda reason: reason[:12])
    def test_any_text_of_200_bytes_is_a_reason(self, hooked, reason):
        source = on_failure('return { action = "dlq", reason = msg.error }')
        queue = hooked(on_failure=source)
        result = fail_one(queue, error=reason)
        assert result["reason"] == reason
        assert decision(queue, result["id"]) == (reason, f"hook:{version_of(source)}")

    def test_the_filter_hook_finds_them_whatever_their_reason(self, hooked):
        queue = hooked(on_failure=on_failure(
            'return { action = "dlq", reason = msg.error ~= "" and msg.error or nil }'))
        by_hook = [fail_one(queue, error=error)["id"]
                   for error in ("permanent", "", "max_attempts", "final")]
        by_client = fail_one(queue, error="permanent", final=True)["id"]
        queue.patch(on_failure=None)
        by_policy = fail_one(queue, error="permanent")["id"]
        assert [job["id"] for job in queue.all_jobs(status="dead", reason="hook")] == by_hook
        for reason, job_id in (("final", by_client), ("max_attempts", by_policy)):
            found = [job["id"] for job in queue.all_jobs(status="dead", reason=reason)]
            assert job_id in found
        assert queue.retry(filter={"reason": "hook"})["retried"] == 4
        assert queue.counts() == {"pending": 4, "dead": 2}

    def test_it_is_told_to_who_listens_to_events(self, hooked, events):
        queue = hooked(on_failure=BURY)
        stream = events("queue:dead")
        job_id = fail_one(queue, error="boom")["id"]
        event = stream.next().data
        assert (event["id"], event["reason"], event["error"], event["attempts"]) == (
            job_id, "buried", "boom", 1)

    def test_a_dead_letter_queue_takes_it(self, hooked):
        queue = hooked(on_failure=BURY, dead_letter_queue="graves")
        result = fail_one(queue, {"n": 1}, error="boom")
        assert (result["status"], result["reason"]) == ("dead", "buried")
        moved = queue.sibling("graves").job(result["id"])
        assert moved["status"] == "pending" and moved["payload"] == {"n": 1}
        marks = {name: moved["headers"][f"reprise-{name}"]
                 for name in ("origin-queue", "death-reason", "error", "attempts")}
        assert marks == {"origin-queue": "jobs", "death-reason": "buried", "error": "boom",
                         "attempts": "1"}
        assert queue.counts() == {} and queue.totals()["moved_out"] == 1

    def test_a_webhook_is_told(self, hooked):
        receiver = Receiver()
        try:
            queue = hooked(on_failure=BURY, on_dead_webhook=receiver.url())
            job_id = fail_one(queue, error="boom")["id"]
            eventually(lambda: receiver.calls, "the webhook", 15)
            event = receiver.calls[0].event
            assert event["subject"] == job_id
            assert event["data"] == queue.job(job_id)["dead_letter"]
            assert event["data"]["meta"]["decidedBy"] == f"hook:{version_of(BURY)}"
        finally:
            receiver.close()

    def test_one_that_is_brought_back_and_dies_again(self, hooked):
        queue = hooked(on_failure=BURY)
        job_id = fail_one(queue)["id"]
        queue.retry(job_id)
        other = on_failure('return { action = "dlq", reason = "again" }')
        queue.patch(on_failure=other)
        queue.client.fail(queue.claim_one())
        assert decision(queue, job_id) == ("again", f"hook:{version_of(other)}")
        assert meta_of(queue, job_id)["generation"] == 2


class TestOrderOfDecision:
    @pytest.mark.parametrize("script", [KEEP, AT_ONCE, BURY], ids=["later", "at once", "dlq"])
    def test_the_clients_final_comes_first(self, hooked, script):
        queue = hooked(on_failure=script)
        result = fail_one(queue, final=True)
        assert (result["status"], result["reason"]) == ("dead", "final")
        assert decision(queue, result["id"]) == ("final", "client")
        assert calls_of(queue) == (0, {})

    @pytest.mark.parametrize("retry", [{"attempts": 9}, {"attempts": "unlimited"}, {}], ids=repr)
    def test_the_clients_delay_comes_before_the_hook(self, hooked, retry):
        queue = hooked(on_failure=BURY, retry=retry)
        result = fail_one(queue, delay="2h")
        assert result["status"] == "retrying"
        assert_close(result["retry_at"], time.time() + 7200, slack=5)
        assert calls_of(queue) == (0, {})

    @pytest.mark.parametrize("retry, deadly", [
        ({"attempts": 1}, 1), ({"attempts": 3}, 3), ({"max_retries": 1}, 2),
        ({"attempts": 2, "cooldown": "1h"}, 2)], ids=repr)
    def test_a_configured_cap_comes_before_the_hook(self, hooked, retry, deadly):
        queue = hooked(on_failure=AT_ONCE, retry=retry)
        job_id = queue.push_one(1)
        for number in range(1, deadly + 1):
            result = queue.client.fail(eventually(queue.claim)[0])
            assert result["status"] == ("dead" if number == deadly else "retrying")
        assert decision(queue, job_id) == ("max_attempts", "policy")
        assert calls_of(queue) == (deadly - 1, {})

    def test_below_the_cap_the_hook_may_end_it(self, hooked):
        queue = hooked(on_failure=BURY, retry={"attempts": 9})
        assert fail_one(queue)["reason"] == "buried"

    def test_without_a_cap_there_is_none(self, hooked):
        queue = hooked(on_failure=AT_ONCE, retry={"attempts": "unlimited", "cooldown": "1h"})
        queue.push(1)
        for _ in range(5):
            assert queue.client.fail(eventually(queue.claim)[0])["status"] == "retrying"

    def test_a_queue_without_a_hook_dies_by_its_policy(self, hooked):
        queue = hooked(on_enqueue="function on_enqueue(msg) return {} end")
        assert fail_one(queue)["reason"] == "max_attempts"
        assert "on_failure" not in queue.show()["hooks"]


class TestOtherFailures:
    def test_a_lease_that_runs_out_is_asked_about(self, hooked):
        source = telling("{ msg.error, msg.error_type, msg.attempts, msg.failures }")
        queue = hooked(on_failure=source)
        job_id = queue.push_one(1)
        queue.claim_one(lease="100ms")
        eventually(lambda: queue.status_of(job_id) == "dead", "the lease to run out")
        assert told(queue, job_id) == ["lease expired", "", 1, 1]
        assert meta_of(queue, job_id)["decidedBy"] == f"hook:{version_of(source)}"
        assert queue.job(job_id)["history"][0]["outcome"] == "lease_expired"

    def test_a_lease_that_runs_out_can_be_retried(self, hooked):
        queue = hooked(on_failure=KEEP)
        job_id = queue.push_one(1)
        queue.claim_one(lease="100ms")
        eventually(lambda: queue.status_of(job_id) == "failed", "the lease to run out")
        assert_close(queue.job(job_id)["due_at"], time.time() + 3600, slack=10)
        assert calls_of(queue) == (1, {})

    def test_many_leases_that_run_out_at_once(self, hooked):
        queue = hooked(on_failure=BURY)
        queue.push(*range(300))
        assert len(queue.claim(300, lease="100ms")) == 300
        eventually(lambda: queue.counts() == {"dead": 300}, "all to be buried", 20)
        assert len(queue.all_jobs(status="dead", reason="hook", limit=1000)) == 300

    @pytest.mark.parametrize("error", [None, "host is gone"])
    def test_a_lost_worker_is_asked_about(self, hooked, error):
        queue = hooked(on_failure=telling("{ msg.error, msg.failures }"))
        fields = {} if error is None else {"error": error}
        result = fail_one(queue, outcome="worker_lost", **fields)
        assert told(queue, result["id"]) == [error or "", 1]
        assert queue.job(result["id"])["history"][0]["outcome"] == "worker_lost"

    def test_a_release_is_not(self, hooked):
        queue = hooked(on_failure=BURY)
        queue.push(1)
        queue.client.release(queue.claim_one())
        assert queue.counts() == {"pending": 1} and calls_of(queue) == (0, {})

    def test_nor_is_an_ack_or_a_drop(self, hooked):
        queue = hooked(on_failure=BURY)
        queue.push(1, 2)
        acked, dropped = queue.claim(2)
        queue.client.ack(acked)
        queue.drop(dropped["id"])
        assert queue.counts() == {} and calls_of(queue) == (0, {})


class TestBatches:
    def test_results_stand_at_their_index_whatever_their_queue(self, hooked):
        buries = hooked(on_failure=on_failure(
            'return { action = "dlq", reason = "n" .. json.decode(msg.payload) }'))
        keeps = buries.sibling("keeps").created(on_failure=KEEP, hook_timeout_ms=PATIENT_MS)
        plain = buries.sibling("plain").created()
        retries = buries.sibling("retries").created(retry={"attempts": 2, "cooldown": "1h"})
        leases, expected = [], []
        for number in range(40):
            for queue, status, reason in ((plain, "dead", "max_attempts"),
                                          (buries, "dead", f"n{number}"),
                                          (retries, "retrying", None), (keeps, "retrying", None)):
                job_id = queue.push_one(number)
                leases.append({"token": queue.claim_one()["token"], "error": f"e{number}"})
                expected.append((len(expected), job_id, status, reason))
        results = buries.client.leases("fail", leases)
        assert [(result["index"], result["id"], result["status"], result.get("reason"))
                for result in results] == expected
        assert calls_of(buries) == calls_of(keeps) == (40, {})

    def test_bad_items_among_them(self, hooked):
        queue = hooked(on_failure=BURY)
        queue.push(*range(4))
        first, acked, third, fourth = queue.claim(4)
        queue.client.ack(acked)
        results = queue.client.leases("fail", [
            {"token": first["token"]}, {"token": acked["token"]}, {"token": "never one"},
            {"token": third["token"], "final": True}, {"token": fourth["token"], "delay": "1h"},
            {"token": first["token"]}])
        told_status = [(result["status"], result.get("reason") or
                        result.get("error", {}).get("code")) for result in results]
        assert told_status == [("dead", "buried"), ("rejected", "lease_lost"),
                               ("rejected", "invalid_lease_token"), ("dead", "final"),
                               ("retrying", None), ("rejected", "lease_lost")]
        assert queue.counts() == {"dead": 2, "failed": 1}

    def test_a_thousand_in_one_call(self, hooked):
        queue = hooked(on_failure=on_failure("""
            if json.decode(msg.payload) % 2 == 0 then return { delay_ms = 3600000 } end
            return { action = "dlq", reason = msg.payload }
        """))
        results = fail_many(queue, 1000)
        assert [result["index"] for result in results] == list(range(1000))
        for number, result in enumerate(results):
            wanted = ("dead", str(number)) if number % 2 else ("retrying", None)
            assert (result["status"], result.get("reason")) == wanted
        assert queue.counts() == {"failed": 500, "dead": 500}
        assert calls_of(queue) == (1000, {})
        assert calls_in_metrics(queue) == {"ok": 1000}

    def test_while_it_is_decided_the_lease_is_not_given_away(self, hooked):
        queue = hooked(on_failure=BURY)
        for _ in range(20):
            job_id = queue.push_one(1)
            job = queue.claim_one()
            assert queue.client.fail(job)["status"] == "dead"
            # The answer is the decision: it is settled and the token is spent.
            assert queue.status_of(job_id) == "dead"
            assert queue.client.fail(job, status=409)["error"]["code"] == "lease_lost"


class TestNewScripts:
    def test_a_new_script_counts_from_the_next_failure_on(self, hooked):
        queue = hooked(on_failure=BURY)
        queue.push(1, 2, 3)
        first, second, third = queue.claim(3)
        assert queue.client.fail(first)["reason"] == "buried"
        queue.patch(on_failure=on_failure('return { action = "dlq", reason = "new" }'))
        assert queue.client.fail(second)["reason"] == "new"
        queue.patch(on_failure=None)
        assert queue.client.fail(third)["reason"] == "max_attempts"
        assert "on_failure" not in queue.show()["hooks"]

    def test_a_job_that_cools_down_is_judged_by_the_script_of_its_next_failure(self, hooked):
        queue = hooked(on_failure=AT_ONCE)
        job_id = queue.push_one(1)
        queue.client.fail(queue.claim_one())
        queue.patch(on_failure=BURY)
        assert queue.client.fail(eventually(queue.claim)[0])["reason"] == "buried"
        assert decision(queue, job_id) == ("buried", f"hook:{version_of(BURY)}")

    def test_a_put_without_the_script_takes_it_away(self, hooked):
        queue = hooked(on_failure=BURY)
        queue.create(status=200)
        assert queue.show()["hooks"] == {} and queue.show()["config"]["on_failure"] is None
        assert fail_one(queue)["reason"] == "max_attempts"

    def test_a_patch_of_something_else_keeps_it(self, hooked):
        queue = hooked(on_failure=BURY)
        queue.patch(lease="1m")
        assert queue.show()["config"]["on_failure"] == BURY
        assert fail_one(queue)["reason"] == "buried"

    def test_after_many_changes_the_last_one_counts(self, hooked):
        queue = hooked(on_failure=BURY)
        for number in range(25):
            source = on_failure(f'return {{ action = "dlq", reason = "number {number}" }}')
            queue.patch(on_failure=source)
            result = fail_one(queue)
            assert result["reason"] == f"number {number}"
            assert decision(queue, result["id"])[1] == f"hook:{version_of(source)}"

    def test_a_queue_that_is_made_again_has_no_hook_of_its_past(self, hooked):
        queue = hooked(on_failure=BURY)
        fail_one(queue)
        queue.delete()
        queue.create()
        assert queue.show()["hooks"] == {}
        assert fail_one(queue)["reason"] == "max_attempts"

    def test_a_policy_that_is_set_later_caps_the_hook(self, hooked):
        queue = hooked(on_failure=AT_ONCE)
        queue.push(1)
        fail_again(queue, 3)
        queue.patch(retry={"attempts": 4})
        assert queue.client.fail(eventually(queue.claim)[0])["reason"] == "max_attempts"


class TestState:
    def test_a_new_hook_is_closed_and_has_counted_nothing(self, hooked):
        queue = hooked(on_failure=BURY)
        assert queue.show()["hooks"] == {"on_failure": {
            "version": version_of(BURY), "breaker": "closed", "open_until": None,
            "failures_in_a_row": 0, "opened": 0, "in_flight": 0, "succeeded": 0, "remembered": 0,
            "failed": {"error": 0, "timeout": 0, "memory": 0, "invalid_result": 0, "host_lost": 0,
                       "breaker_open": 0}, "last_error": None, "last_error_at": None}}

    def test_a_queue_without_hooks_has_no_entry(self, queue):
        shown = queue.show()
        assert shown["hooks"] == {}
        assert {name: shown["config"][name] for name in (
            "on_enqueue", "on_failure", "on_hook_error", "hook_timeout_ms", "hook_memory_bytes")
        } == {"on_enqueue": None, "on_failure": None, "on_hook_error": "retry",
              "hook_timeout_ms": None, "hook_memory_bytes": None}

    def test_answers_are_counted(self, hooked):
        queue = hooked(on_failure=BURY)
        fail_many(queue, 7)
        state = hook_of(queue)
        assert (state["succeeded"], state["breaker"], state["in_flight"]) == (7, "closed", 0)
        assert calls_in_metrics(queue) == {"ok": 7}

    def test_both_hooks_have_an_entry(self, hooked):
        enqueue = "function on_enqueue(msg) return {} end"
        queue = hooked(on_failure=BURY, on_enqueue=enqueue)
        fail_one(queue)
        hooks = queue.show()["hooks"]
        assert {name: (state["version"], state["succeeded"]) for name, state in hooks.items()} == {
            "on_failure": (version_of(BURY), 1), "on_enqueue": (version_of(enqueue), 1)}

    def test_one_source_may_hold_both_functions(self, hooked):
        source = BURY + '\nfunction on_enqueue(msg) return { fairness_key = "both" } end'
        queue = hooked(on_failure=source, on_enqueue=source)
        result = fail_one(queue)
        assert result["reason"] == "buried"
        assert queue.job(result["id"])["fairness_key"] == "both"

    def test_the_list_of_queues_has_them_too(self, hooked):
        queue = hooked(on_failure=BURY)
        [listed] = queue.client.get(f"/v1/queues?namespace={queue.namespace}")["queues"]
        assert listed["hooks"] == queue.show()["hooks"]
