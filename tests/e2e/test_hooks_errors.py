"""Scripts that cannot be used are refused; scripts that fail decide nothing, and the breaker opens.
"""

import re
import time

import pytest

from hooking import (AT_ONCE, BROKEN, BURY, KEEP, PATIENT_MS, RuntimeConfig, calls_in_metrics,
                     calls_of, decision, fail_many, fail_one, faults_of, hook_of, on_enqueue,
                     on_failure, version_of)
from metrics_text import read_metrics
from refusals import assert_refused
from times import assert_close, seconds_since_1970
from waiting import eventually, time_passes

BREAKER_SECONDS = 10
SCRIPT_BYTES_MAX = 64 * 1024

# Source, the line that is named. None: there is no line to name.
UNUSABLE = [
    ("function on_failure(msg", 1),
    ("function on_failure(msg)\n  return {\nend\n", 3),
    ("-- a comment\n\nfunction on_failure(msg) return { 5 5 } end", 3),
    ("x = = 1\nfunction on_failure(msg) return {} end", 1),
    ("local a\na.b = 1\nfunction on_failure(msg) return {} end", 2),
    ('\n\nerror("no")\nfunction on_failure(msg) return {} end', 3),
    ("\nio.open('x')\nfunction on_failure(msg) return {} end", 2),
    ("local f <const> = 1\nf = 2\nfunction on_failure(msg) return {} end", 2),
    ("goto nowhere\nfunction on_failure(msg) return {} end", 1),
    ("function on_failure(msg) return {} end\nlocal s = 'unfinished", 2),
    ("", None), ("-- nothing", None), ("return 5", None),
    ("function on_enqueue(msg) return {} end", None),
    ("function On_failure(msg) return {} end", None),
    ("local function on_failure(msg) return {} end", None),
    ("on_failure = 5", None), ('on_failure = "function"', None), ("on_failure = {}", None),
    ("on_failure = true", None), ("on_failure = nil", None),
    ("function on_failure(msg) return {} end\non_failure = nil", None),
]


def in_words(part):
    return repr(part)[:40]


class TestRefusedScripts:
    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    @pytest.mark.parametrize("source, line", UNUSABLE, ids=in_words)
    def test_a_script_that_cannot_be_used(self, hooked, method, source, line):
        queue = hooked(on_failure=BURY, lease="1m")
        fail_one(queue)
        before = queue.snapshot()
        reply = queue.client.request(method, queue.path(), {"lease": "2m", "on_failure": source})
        assert (reply.status, reply.code) == (400, "invalid_script"), reply
        assert "on_failure" in reply.message
        if line is not None:
            assert re.search(rf"\b{line}\b", reply.message), reply.message
        assert queue.snapshot() == before
        assert fail_one(queue)["reason"] == "buried"

    @pytest.mark.parametrize("source, line", UNUSABLE, ids=in_words)
    def test_it_makes_no_queue(self, absent_queue, source, line):
        refused = absent_queue.client.refused("PUT", absent_queue.path(), {"on_failure": source})
        assert refused == (400, "invalid_script")
        assert absent_queue.client.refused("GET", absent_queue.path()) == (404, "queue_not_found")

    @pytest.mark.parametrize("source, line", [
        ("function on_enqueue(msg\n", 2), (BURY, None), ("on_enqueue = {}", None),
        ("\nerror()\nfunction on_enqueue(msg) return {} end", None)], ids=in_words)
    def test_on_enqueue_is_checked_alike(self, hooked, source, line):
        queue = hooked(on_enqueue=on_enqueue('return { fairness_key = "old" }'))
        reply = queue.client.request("PATCH", queue.path(), {"on_enqueue": source})
        assert (reply.status, reply.code) == (400, "invalid_script")
        assert "on_enqueue" in reply.message
        assert queue.job(queue.push_one(1))["fairness_key"] == "old"

    def test_one_good_and_one_bad_change_nothing(self, hooked):
        queue = hooked(on_failure=BURY)
        assert_refused(queue, "PATCH", queue.path(), {
            "on_failure": KEEP, "on_enqueue": "nonsense here"}, "invalid_script", "on_enqueue")
        assert_refused(queue, "PATCH", queue.path(), {
            "on_failure": "nonsense here", "on_enqueue": on_enqueue("return {}")},
            "invalid_script", "on_failure")
        assert fail_one(queue)["reason"] == "buried"

    @pytest.mark.parametrize("body", [
        "while true do end", "local function f() return f() end f()",
        'local s = "x" while true do s = s .. s end', "local t = {} while true do t[#t+1] = {} end",
        "while true do pcall(function() while true do end end) end"], ids=in_words)
    def test_one_that_does_not_end_its_loading(self, hooked, body):
        queue = hooked(on_failure=BURY, hook_timeout_ms=50)
        before = queue.snapshot()
        started = time.monotonic()
        reply = queue.client.request("PATCH", queue.path(), {
            "on_failure": f"{body}\nfunction on_failure(msg) return {{}} end"})
        assert time.monotonic() - started < 2
        assert (reply.status, reply.code) == (400, "invalid_script"), reply
        assert queue.snapshot() == before

    def test_a_script_beyond_64_kib(self, hooked):
        queue = hooked(on_failure=BURY)
        before = queue.snapshot()
        body = {"on_failure": BURY + " " * (SCRIPT_BYTES_MAX + 1 - len(BURY))}
        assert queue.client.refused("PATCH", queue.path(), body) == (413, "script_too_large")
        assert queue.client.refused("PUT", queue.path(), body) == (413, "script_too_large")
        assert queue.client.refused("PATCH", queue.path(), {
            "on_enqueue": "-" * (SCRIPT_BYTES_MAX + 1)}) == (413, "script_too_large")
        assert queue.snapshot() == before

    def test_a_script_of_64_kib(self, hooked):
        source = BURY + "\n--" + "é" * ((SCRIPT_BYTES_MAX - len(BURY) - 3) // 2)
        source += "x" * (SCRIPT_BYTES_MAX - len(source.encode()))
        queue = hooked(on_failure=source)
        assert queue.show()["config"]["on_failure"] == source
        assert hook_of(queue)["version"] == version_of(source)
        assert fail_one(queue)["reason"] == "buried"

    @pytest.mark.parametrize("source", [5, True, {}, [], ["function"]], ids=in_words)
    def test_a_script_is_text(self, hooked, source):
        queue = hooked(on_failure=BURY)
        assert_refused(queue, "PATCH", queue.path(), {"on_failure": source},
                       ("invalid_request", "invalid_field"), "on_failure")


class TestRefusedSettings:
    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    @pytest.mark.parametrize("field, value", [
        ("hook_timeout_ms", 0), ("hook_timeout_ms", 1001), ("hook_timeout_ms", -1),
        ("hook_timeout_ms", 10**20), ("hook_timeout_ms", 1.5), ("hook_timeout_ms", "fast"),
        ("hook_timeout_ms", True),
        ("hook_memory_bytes", 131071), ("hook_memory_bytes", 67108865), ("hook_memory_bytes", 0),
        ("hook_memory_bytes", -1), ("hook_memory_bytes", 10**30), ("hook_memory_bytes", []),
        ("on_hook_error", "explode"), ("on_hook_error", ""), ("on_hook_error", "RETRY"),
        ("on_hook_error", 5), ("on_hook_error", {}), ("on_hook_error", "dead")], ids=in_words)
    def test_a_value_out_of_range(self, hooked, method, field, value):
        queue = hooked(on_failure=BURY, on_hook_error="policy", hook_memory_bytes=1 << 20)
        assert_refused(queue, method, queue.path(), {"lease": "2m", field: value},
                       ("invalid_field", "invalid_request"), field)

    def test_a_misspelt_field(self, hooked):
        queue = hooked(on_failure=BURY)
        assert_refused(queue, "PATCH", queue.path(), {"on_failur": BURY}, "unknown_field",
                       "on_failur", "on_failure")

    @pytest.mark.parametrize("field, value", [
        ("hook_timeout_ms", 1), ("hook_timeout_ms", 1000), ("hook_memory_bytes", 131072),
        ("hook_memory_bytes", 67108864), ("on_hook_error", "retry"), ("on_hook_error", "policy"),
        ("on_hook_error", "dlq")], ids=in_words)
    def test_a_value_at_the_edge(self, hooked, field, value):
        queue = hooked()
        assert queue.patch(**{field: value})["config"][field] == value
        shown = queue.patch(**{field: None})["config"][field]
        assert shown == ("retry" if field == "on_hook_error" else None)


# A script for each fault that a script can cause, with settings that make it quick.
MEMORY_HOG = on_failure("local t = {} for i = 1, 1000000 do t[i] = ('x'):rep(1000) .. i end")
# Few instructions, much time.
SLOW_PATTERN = on_failure("return { reason = (('a'):rep(60000)):find('.-b') }")
FAULTY = {
    "error": (BROKEN, {}),
    "timeout": (SLOW_PATTERN, {"hook_timeout_ms": 5}),
    "memory": (MEMORY_HOG, {}),
    "invalid_result": (on_failure('return { action = "bury" }'), {}),
}


@pytest.fixture(params=FAULTY)
def fault(request):
    return request.param


@pytest.fixture
def faulty(hooked, fault):
    """A function that makes a queue whose on_failure always fails in this way."""
    def create(**config):
        source, settings = FAULTY[fault]
        return hooked(on_failure=source, **settings, **config)
    return create


class TestOnHookError:
    @pytest.mark.parametrize("config", [{}, {"on_hook_error": "retry"}], ids=["default", "named"])
    def test_retry_is_at_once(self, faulty, fault, config):
        queue = faulty(retry={"cooldown": "1h"}, **config)
        result = fail_one(queue, error="mine")
        assert result["status"] == "retrying"
        assert_close(result["retry_at"], time.time(), slack=5)
        assert calls_of(queue) == (0, {fault: 1})
        assert calls_in_metrics(queue) == {fault: 1}
        [again] = queue.claim(wait="10s")
        assert (again["id"], again["last_error"]) == (result["id"], "mine")

    def test_policy_is_as_if_there_were_no_hook(self, faulty, fault):
        queue = faulty(on_hook_error="policy", retry={"attempts": 3, "cooldown": "1h"})
        result = fail_one(queue)
        assert result["status"] == "retrying"
        assert_close(result["retry_at"], time.time() + 3600, slack=5)
        assert calls_of(queue) == (0, {fault: 1})

    def test_policy_without_a_cap_is_death_at_the_first_failure(self, faulty, fault):
        queue = faulty(on_hook_error="policy")
        result = fail_one(queue)
        assert (result["status"], result["reason"]) == ("dead", "max_attempts")
        assert decision(queue, result["id"]) == ("max_attempts", "policy")
        assert calls_of(queue) == (0, {fault: 1})

    def test_dlq_is_death_with_the_jobs_own_error(self, faulty, fault):
        queue = faulty(on_hook_error="dlq")
        result = fail_one(queue, error="mine", error_type="Net")
        assert (result["status"], result["reason"]) == ("dead", "hook_error")
        shown = queue.job(result["id"])
        meta = shown["dead_letter"]["meta"]
        assert (meta["reason"], meta["lastError"], meta["lastErrorType"]) == (
            "hook_error", "mine", "Net")
        assert (shown["last_error"], shown["history"][0]["error"]) == ("mine", "mine")
        assert [job["id"] for job in queue.all_jobs(status="dead", reason="hook_error")] == [
            result["id"]]

    @pytest.mark.parametrize("what", ["retry", "policy", "dlq"])
    def test_the_policys_cap_still_ends_it(self, faulty, fault, what):
        queue = faulty(on_hook_error=what, retry={"attempts": 1})
        result = fail_one(queue)
        assert (result["status"], result["reason"]) == ("dead", "max_attempts")
        assert calls_of(queue) == (0, {})

    def test_retries_end_at_the_cap(self, faulty, fault):
        queue = faulty(retry={"attempts": 3})
        job_id = queue.push_one(1)
        statuses = [queue.client.fail(eventually(queue.claim)[0])["status"] for _ in range(3)]
        assert statuses == ["retrying", "retrying", "dead"]
        assert decision(queue, job_id) == ("max_attempts", "policy")
        assert calls_of(queue) == (0, {fault: 2})

    def test_a_lease_that_runs_out(self, faulty, fault):
        queue = faulty(on_hook_error="dlq")
        job_id = queue.push_one(1)
        queue.claim_one(lease="100ms")
        eventually(lambda: queue.status_of(job_id) == "dead", "the job to die")
        assert queue.job(job_id)["reason"] == "hook_error"

    def test_an_edit_counts_from_the_next_failure_on(self, faulty, fault):
        queue = faulty(on_hook_error="dlq")
        assert fail_one(queue)["reason"] == "hook_error"
        queue.patch(on_hook_error="retry")
        assert fail_one(queue)["status"] == "retrying"

    def test_the_state_tells_the_last_error(self, faulty, fault):
        queue = faulty(on_hook_error="dlq")
        fail_one(queue)
        state = hook_of(queue)
        assert isinstance(state["last_error"], str) and state["last_error"]
        assert_close(state["last_error_at"], time.time(), slack=5)
        assert (state["failures_in_a_row"], state["breaker"]) == (1, "closed")


INVALID = [
    "return nil", "return", 'return "retry"', "return 5", "return true", "return msg.id, {}",
    'return { action = "retry", dealy_ms = 5 }', 'return { action = "Retry" }',
    'return { action = "" }', "return { action = 1 }", "return { action = {} }",
    "return { delay_ms = -1 }", "return { delay_ms = 0/0 }", "return { delay_ms = 1/0 }",
    "return { delay_ms = -1/0 }", "return { delay_ms = 31536000001 }",
    "return { delay_ms = math.maxinteger }", "return { delay_ms = math.mininteger }",
    "return { delay_ms = 1e300 }", 'return { delay_ms = "soon" }', "return { delay_ms = {} }",
    "return { delay_ms = true }",
    'return { action = "dlq", reason = 5 }', 'return { action = "dlq", reason = {} }',
    'return { action = "dlq", reason = true }',
    'return { action = "dlq", reason = ("x"):rep(201) }',
    'return { action = "dlq", reason = ("é"):rep(101) }',
    'return { action = "dlq", reason = "\\xff\\xfe" }',
    'return { action = "dlq", reason = "\\u{D800}" }',
    'return { "dlq" }', "return { [1] = 1, [2] = 2 }", "return { [true] = 1 }",
    "return function() end", "return on_failure", "return { [msg] = msg }",
    'return { action = "dlq", reject = "x" }', "return { weight = 5 }",
]


class TestInvalidResults:
    @pytest.mark.parametrize("body", INVALID)
    def test_an_answer_that_is_none_is_an_error_of_the_hook(self, hooked, body):
        queue = hooked(on_failure=on_failure(body), on_hook_error="dlq")
        result = fail_one(queue)
        assert (result["status"], result["reason"]) == ("dead", "hook_error")
        assert calls_of(queue) == (0, {"invalid_result": 1})

    def test_a_script_whose_function_is_gone_when_it_is_called(self, hooked):
        # Loaded anew for each call, so the name still leads to the function.
        queue = hooked(on_failure=on_failure('on_failure = nil return { action = "dlq" }'))
        assert [result["reason"] for result in fail_many(queue, 3)] == ["hook"] * 3


class TestBreaker:
    def test_three_errors_in_a_row_open_it(self, hooked):
        queue = hooked(on_failure=BROKEN, on_hook_error="dlq")
        for number in range(1, 4):
            assert hook_of(queue)["breaker"] == "closed"
            fail_one(queue)
            assert hook_of(queue)["failures_in_a_row"] == number
        opened = time.time()
        state = hook_of(queue)
        assert (state["breaker"], state["opened"]) == ("open", 1)
        assert_close(state["open_until"], opened + BREAKER_SECONDS)
        assert fail_one(queue)["reason"] == "hook_error"
        assert [result["reason"] for result in fail_many(queue, 5)] == ["hook_error"] * 5
        assert calls_of(queue) == (0, {"error": 3, "breaker_open": 6})
        assert calls_in_metrics(queue) == {"error": 3, "breaker_open": 6}
        assert self.metric(queue) == 1

    def metric(self, queue, hook="on_failure"):
        return read_metrics(queue.client).value(
            "reprise_hook_breaker", namespace=queue.namespace, queue=queue.name, hook=hook)

    def test_an_answer_in_between_starts_the_count_anew(self, hooked):
        queue = hooked(on_hook_error="dlq", on_failure=on_failure("""
            if msg.error == "bad" then error("bad") end
            return { action = "dlq", reason = "good" }
        """))
        for error in ("bad", "bad", "good", "bad", "bad", "good", "bad", "bad"):
            assert fail_one(queue, error=error)["reason"] == (
                "good" if error == "good" else "hook_error")
        state = hook_of(queue)
        assert (state["breaker"], state["failures_in_a_row"], state["opened"]) == ("closed", 2, 0)
        assert calls_of(queue) == (2, {"error": 6})
        assert self.metric(queue) == 0

    @pytest.mark.parametrize("what, status", [("retry", "retrying"), ("policy", "retrying"),
                                              ("dlq", "dead")])
    def test_while_it_is_open_the_error_handling_applies(self, hooked, what, status):
        queue = hooked(on_failure=BROKEN, on_hook_error=what,
                       retry={"attempts": 9, "cooldown": "1h"})
        for _ in range(3):
            fail_one(queue)
        result = fail_one(queue)
        assert result["status"] == status
        if what == "policy":
            assert_close(result["retry_at"], time.time() + 3600, slack=5)
        assert faults_of(queue) == {"error": 3, "breaker_open": 1}

    def test_a_new_script_closes_it(self, hooked):
        queue = hooked(on_failure=BROKEN, on_hook_error="dlq")
        for _ in range(4):
            fail_one(queue)
        queue.patch(on_failure=BURY)
        state = hook_of(queue)
        assert (state["breaker"], state["open_until"], state["failures_in_a_row"]) == (
            "closed", None, 0)
        assert fail_one(queue)["reason"] == "buried"
        assert self.metric(queue) == 0

    def test_it_is_one_for_each_queue(self, hooked):
        broken = hooked(on_failure=BROKEN)
        other = broken.sibling("other").created(on_failure=BROKEN, hook_timeout_ms=PATIENT_MS)
        for _ in range(3):
            fail_one(broken)
        assert hook_of(broken)["breaker"] == "open"
        fail_one(other)
        assert (hook_of(other)["breaker"], faults_of(other)) == ("closed", {"error": 1})

    def test_it_is_one_for_each_hook(self, hooked):
        queue = hooked(on_failure=BURY, on_enqueue=on_enqueue('error("bad")'))
        for _ in range(5):
            assert fail_one(queue)["reason"] == "buried"
        assert hook_of(queue, "on_enqueue")["breaker"] == "open"
        assert hook_of(queue)["breaker"] == "closed"
        assert faults_of(queue, "on_enqueue") == {"error": 3, "breaker_open": 2}
        assert (self.metric(queue, "on_enqueue"), self.metric(queue)) == (1, 0)

    def test_an_open_one_accepts_pushes_as_they_are(self, hooked):
        queue = hooked(on_enqueue=on_enqueue('error("bad")'))
        ids = [queue.push_one(number) for number in range(6)]
        assert [job["id"] for job in queue.claim(10)] == ids
        assert hook_of(queue, "on_enqueue")["breaker"] == "open"

    def test_after_ten_seconds_one_call_is_tried(self, hooked):
        """Of two queues one has been mended meanwhile: its breaker closes, the other opens again.
        """
        script = on_failure("""
            if config.get("broken." .. msg.queue) then error("still broken") end
            return { action = "dlq", reason = "mended" }
        """)
        mended = hooked(on_failure=script, on_hook_error="dlq")
        broken = mended.sibling("broken").created(on_failure=script, on_hook_error="dlq",
                                                  hook_timeout_ms=PATIENT_MS)
        config = RuntimeConfig(mended.client, mended.namespace)
        for queue in (mended, broken):
            config.set(f"broken.{queue.name}", "yes")
            for _ in range(3):
                assert fail_one(queue)["reason"] == "hook_error"
        config.unset(f"broken.{mended.name}")
        # A change of the config is no new script.
        assert fail_one(mended)["reason"] == "hook_error"
        assert faults_of(mended) == {"error": 3, "breaker_open": 1}

        both_tried = max(seconds_since_1970(hook_of(queue)["open_until"])
                         for queue in (mended, broken))
        time_passes(both_tried + 0.05)
        assert fail_one(mended)["reason"] == "mended"
        state = hook_of(mended)
        assert (state["breaker"], state["open_until"], state["failures_in_a_row"],
                state["opened"]) == ("closed", None, 0, 1)
        assert fail_one(mended)["reason"] == "mended"

        assert {result["reason"] for result in fail_many(broken, 5)} == {"hook_error"}
        assert faults_of(broken) == {"error": 4, "breaker_open": 4}
        state = hook_of(broken)
        assert (state["breaker"], state["opened"]) == ("open", 2)
        assert_close(state["open_until"], time.time() + BREAKER_SECONDS)


class TestMessages:
    def last_error(self, queue):
        fail_one(queue)
        return hook_of(queue)["last_error"]

    def test_an_error_is_told_with_its_line(self, hooked):
        queue = hooked(on_failure="-- one\n-- two\nfunction on_failure(msg)\n"
                                  "  return msg.card.number\nend")
        message = self.last_error(queue)
        assert "card" in message and re.search(r"\b4\b", message), message

    def test_the_text_of_an_error_is_told(self, hooked):
        queue = hooked(on_failure=BROKEN)
        assert "the script is broken" in self.last_error(queue)

    def test_an_unknown_field_is_named(self, hooked):
        queue = hooked(on_failure=on_failure("return { dealy_ms = 5 }"))
        assert "dealy_ms" in self.last_error(queue)


class TestLog:
    """Lines of a server of its own, so that no other test's scripts are in them."""

    @pytest.fixture
    def logging(self, server):
        def create(name, **config):
            return server.client().queue(name).created(
                **{"hook_timeout_ms": PATIENT_MS, **config})
        return create

    def lines(self, server, *parts):
        return [line for line in server.log().splitlines() if all(part in line for part in parts)]

    def test_what_a_script_says_is_a_line_with_queue_and_hook(self, server, logging):
        queue = logging("talking", on_failure=on_failure(
            'log("job " .. msg.payload .. " fäils") return { action = "dlq" }'))
        fail_one(queue, 4711)
        eventually(lambda: self.lines(server, "job 4711 fäils", "talking", "on_failure"),
                   "the line")

    def test_a_line_stays_one_line(self, server, logging):
        queue = logging("forging", on_failure=on_failure(
            'log("first\\nFORGED\\r\\nFORGED too\\0 end") return { action = "dlq" }'))
        fail_one(queue)
        eventually(lambda: self.lines(server, "first", "forging"), "the line")
        assert [line for line in server.log().splitlines() if line.startswith("FORGED")] == []

    def test_at_most_eight_lines_a_call(self, server, logging):
        queue = logging("talkative", on_failure=on_failure(
            'for i = 1, 100 do log("line " .. i .. ".") end return { action = "dlq" }'))
        fail_one(queue)
        eventually(lambda: self.lines(server, "line 8.", "talkative"), "the eighth line")
        fail_one(queue)
        eventually(lambda: len(self.lines(server, "line 8.", "talkative")) == 2, "the next call")
        assert self.lines(server, "line 9.", "talkative") == []

    def test_a_line_is_cut_at_1000_bytes(self, server, logging):
        queue = logging("long", on_failure=on_failure(
            'log("begin" .. ("x"):rep(5000)) return { action = "dlq" }'))
        fail_one(queue)
        [line] = eventually(lambda: self.lines(server, "begin"), "the line")
        assert 900 <= line.count("x") < 1010

    def test_at_most_twenty_lines_a_second(self, server, logging):
        queue = logging("chatty", on_failure=on_failure(
            'for i = 1, 8 do log("gossip") end return { action = "dlq" }'))
        started = time.monotonic()
        fail_many(queue, 50)
        eventually(lambda: self.lines(server, "gossip", "chatty", "on_failure"), "a line")
        seconds = int(time.monotonic() - started) + 2
        assert len(self.lines(server, "gossip")) <= 20 * seconds

    def test_an_error_of_a_hook_is_logged_with_queue_and_hook(self, server, logging):
        queue = logging("failing", on_failure=BROKEN)
        fail_one(queue)
        eventually(lambda: self.lines(server, "the script is broken", "failing", "on_failure"),
                   "the line")

    def test_many_errors_are_few_lines(self, server, logging):
        script = on_failure("""
            if json.decode(msg.payload) % 2 == 0 then error("it is even") end
            return { action = "dlq" }
        """)
        queue = logging("even", on_failure=script, on_hook_error="dlq")
        started = time.monotonic()
        fail_many(queue, 400)
        assert calls_of(queue) == (200, {"error": 200})
        eventually(lambda: self.lines(server, "it is even"), "a line")
        assert len(self.lines(server, "it is even")) <= time.monotonic() - started + 2

    def test_secrets_of_payloads_are_not_in_it(self, server, logging):
        queue = logging("secret", on_failure=BROKEN, on_enqueue=on_enqueue('error("bad")'))
        fail_one(queue, {"card": "4111-1111"}, error="not this either: 4222-2222")
        eventually(lambda: self.lines(server, "the script is broken"), "the line")
        assert "4111-1111" not in server.log()


class TestServersSettings:
    def test_a_queue_that_says_nothing_takes_the_servers(self, start_server):
        server = start_server("--hook-timeout-ms", "1000", "--hook-memory-bytes", "8MiB")
        source = on_failure('local s = ("x"):rep(3000000) return { action = "dlq", reason = "ok" }')
        queue = server.client().queue("q").created(on_failure=source)
        shown = queue.show()["config"]
        assert (shown["hook_timeout_ms"], shown["hook_memory_bytes"]) == (None, None)
        assert fail_one(queue)["reason"] == "ok"
        queue.patch(hook_memory_bytes=1 << 20)
        fail_one(queue)
        assert faults_of(queue) == {"memory": 1}

    @pytest.mark.parametrize("flag, value", [
        ("--hook-timeout-ms", "0"), ("--hook-timeout-ms", "1001"),
        ("--hook-memory-bytes", "1KiB"), ("--hook-memory-bytes", "65MiB"),
        ("--max-hook-hosts", "0"), ("--max-hook-hosts", "1001")])
    def test_a_setting_out_of_range_starts_nothing(self, start_server, flag, value):
        server = start_server(flag, value, ready=False)
        server.launch()
        assert server.wait() == 2 and flag in server.log()

    def test_no_more_processes_than_allowed(self, start_server):
        server = start_server("--max-hook-hosts", "2", "--hook-timeout-ms", "1000")
        client = server.client()
        queues = [client.queue(f"q{number}").created(on_failure=on_failure(
            f'return {{ action = "dlq", reason = "queue {number}" }}')) for number in range(6)]
        for _ in range(3):
            for number, queue in enumerate(queues):
                assert fail_one(queue)["reason"] == f"queue {number}"
                assert read_metrics(client).value("reprise_hook_hosts") <= 2
        for queue in queues:
            assert calls_of(queue) == (3, {})

    def test_one_call_for_more_queues_than_processes(self, start_server):
        server = start_server("--max-hook-hosts", "2", "--hook-timeout-ms", "1000")
        client = server.client()
        leases = []
        for number in range(10):
            queue = client.queue(f"q{number}").created(on_failure=on_failure(
                f'return {{ action = "dlq", reason = "queue {number}" }}'))
            queue.push(1, 2, 3)
            leases += [(number, {"token": job["token"]}) for job in queue.claim(3)]
        results = client.leases("fail", [lease for _, lease in leases])
        assert [result["reason"] for result in results] == [
            f"queue {number}" for number, _ in leases]


def test_a_mended_script_decides_jobs_that_were_retried_meanwhile(hooked):
    queue = hooked(on_failure=BROKEN)
    job_id = queue.push_one(1)
    for _ in range(5):
        assert queue.client.fail(eventually(queue.claim)[0])["status"] == "retrying"
    queue.patch(on_failure=BURY)
    assert queue.client.fail(eventually(queue.claim)[0])["reason"] == "buried"
    assert queue.job(job_id)["failures"] == 6
    queue.patch(on_failure=AT_ONCE)
    assert fail_one(queue)["status"] == "retrying"
