"""Hooks across restarts, and when the processes that run them are killed: no job is lost."""

import http.client
import os
import signal
import time

import pytest

from background import in_background
from hooking import (BURY, KEEP, PATIENT_MS, RuntimeConfig, calls_of, decision, fail_many,
                     fail_one, faults_of, hook_of, hook_processes, on_enqueue, on_failure, runs,
                     version_of)
from metrics_text import read_metrics
from waiting import eventually

RESTARTS = ["stop", "kill"]
STOP_SECONDS_MAX = 5
STATUSES = ("scheduled", "pending", "active", "failed", "dead")
# Takes a while, well within its time.
SLOW = on_failure('for i = 1, 2000000 do end return { action = "dlq", reason = "slow" }')
DECIDES = on_failure('return { action = "dlq", reason = "of the hook" }')


def reopened(server, queue, how):
    server.restart(how)
    return queue.through(server.client())


def kill_hosts(server):
    """Ends all processes that run hooks now. How many there were."""
    pids = hook_processes(server)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return len(pids)


def kill_hosts_again_and_again(server, call):
    """Ends them up to ten times while this call is under way. How many there were."""
    killed = 0
    for _ in range(10):
        if call.done():
            break
        killed += kill_hosts(server)
        time.sleep(0.05)
    return killed


def answer_of(call):
    """None when the connection was cut, or the server was stopping."""
    try:
        return call.result(10)
    except (OSError, http.client.HTTPException, AssertionError):
        return None


def all_of(queue):
    stats = queue.stats()
    return sum(stats[status] for status in STATUSES)


@pytest.mark.parametrize("how", RESTARTS)
class TestRestart:
    def test_scripts_and_settings_are_there_with_the_same_versions(self, server, how):
        enqueue = on_enqueue('return { fairness_key = "kept é" }')
        queue = server.client().queue("q", "ns").created(
            on_failure=BURY, on_enqueue=enqueue, on_hook_error="policy", hook_timeout_ms=777,
            hook_memory_bytes=2 << 20)
        before = queue.show()["config"]
        queue = reopened(server, queue, how)
        shown = queue.show()
        assert shown["config"] == before
        assert {name: state["version"] for name, state in shown["hooks"].items()} == {
            "on_failure": version_of(BURY), "on_enqueue": version_of(enqueue)}
        result = fail_one(queue)
        assert decision(queue, result["id"]) == ("buried", f"hook:{version_of(BURY)}")
        assert queue.job(result["id"])["fairness_key"] == "kept é"

    def test_counts_and_the_breaker_begin_anew(self, server, how):
        queue = server.client().queue("q").created(
            on_failure=on_failure('error("bad")'), hook_timeout_ms=PATIENT_MS, on_hook_error="dlq")
        for _ in range(3):
            fail_one(queue)
        assert hook_of(queue)["breaker"] == "open"
        queue = reopened(server, queue, how)
        state = hook_of(queue)
        assert (state["succeeded"], state["opened"], state["last_error"]) == (0, 0, None)
        assert faults_of(queue) == {}
        fail_one(queue)
        assert faults_of(queue) == {"error": 1}

    def test_decisions_are_kept(self, server, how):
        queue = server.client().queue("q").created(on_failure=BURY, hook_timeout_ms=PATIENT_MS)
        dead = fail_one(queue, error="x")["id"]
        queue.patch(on_failure=KEEP)
        cooling = fail_one(queue, error="y")["id"]
        before = [queue.job(job_id) for job_id in (dead, cooling)]
        queue = reopened(server, queue, how)
        assert [queue.job(job_id) for job_id in (dead, cooling)] == before
        assert [job["id"] for job in queue.jobs(status="dead", reason="hook")] == [dead]

    def test_leases_from_before_are_judged_by_the_hook(self, server, how):
        queue = server.client().queue("q").created(on_failure=BURY, hook_timeout_ms=PATIENT_MS)
        queue.push(1, 2)
        reported, silent = queue.claim(1)[0], queue.claim(1, lease="1s")[0]
        queue = reopened(server, queue, how)
        assert queue.client.fail(reported)["reason"] == "buried"
        eventually(lambda: queue.status_of(silent["id"]) == "dead", "the lease to run out", 20)
        assert decision(queue, silent["id"]) == ("buried", f"hook:{version_of(BURY)}")

    def test_many_queues_with_hooks(self, server, how):
        client = server.client()
        queues = [client.queue(f"q{number}").created(
            hook_timeout_ms=PATIENT_MS, on_failure=on_failure(
                f'return {{ action = "dlq", reason = "queue {number}" }}'))
            for number in range(20)]
        for queue in queues[:5]:
            fail_one(queue)
        server.restart(how)
        client = server.client()
        assert [fail_one(queue.through(client))["reason"] for queue in queues] == [
            f"queue {number}" for number in range(20)]

    def test_no_process_is_left_behind(self, server, how):
        client = server.client()
        for number in range(3):
            fail_one(client.queue(f"q{number}").created(on_failure=BURY))
        pids = eventually(lambda: hook_processes(server), "processes that run hooks")
        if how == "kill":
            server.kill()
        else:
            code, _ = server.terminate()
            assert code == 0
        eventually(lambda: not any(runs(pid) for pid in pids), "them to end")

    def test_with_calls_under_way(self, server, how):
        """Each job is decided, or comes back when its lease is over; none is lost."""
        queue = server.client().queue("q").created(on_failure=SLOW, hook_timeout_ms=PATIENT_MS)
        ids = queue.push(*range(300))
        jobs = queue.claim(300, lease="3s")
        own = server.client()
        calls = in_background(own.leases, "fail", [{"token": job["token"]} for job in jobs])
        watcher = queue.through(server.client())
        eventually(lambda: hook_of(watcher)["in_flight"] > 0 or calls.done(), "a call to be out")
        if how == "stop":
            code, seconds = server.terminate()
            assert code == 0 and seconds < STOP_SECONDS_MAX
        else:
            server.kill()
        answered = {result["id"]: result for result in answer_of(calls) or []}
        server.start()
        queue = queue.through(server.client())
        assert all_of(queue) == 300
        for job_id, result in answered.items():
            if result["status"] == "dead":
                assert queue.job(job_id)["status"] == "dead"
        queue.patch(on_failure=DECIDES)
        eventually(lambda: queue.counts() == {"dead": 300}, "all to be decided", 30)
        assert {job["id"] for job in queue.all_jobs(status="dead", limit=1000)} == set(ids)
        assert {job["reason"] for job in queue.all_jobs(status="dead", limit=1000)} <= {
            "slow", "of the hook", "hook_error"}

    def test_pushes_under_way(self, server, how):
        """What was answered is there; what was not is there once or not at all."""
        queue = server.client().queue("q").created(
            hook_timeout_ms=PATIENT_MS, on_enqueue=on_enqueue(
                'for i = 1, 2000000 do end return { fairness_key = "asked" }'))
        own = queue.through(server.client())
        push = in_background(own.push_jobs, [{"payload": number} for number in range(300)])
        watcher = queue.through(server.client())
        eventually(lambda: hook_of(watcher, "on_enqueue")["in_flight"] > 0 or push.done(),
                   "a call to be out")
        if how == "stop":
            code, seconds = server.terminate()
            assert code == 0 and seconds < STOP_SECONDS_MAX
        else:
            server.kill()
        results = answer_of(push)
        server.start()
        queue = queue.through(server.client())
        jobs = queue.all_jobs(limit=1000)
        if results is not None:
            assert [job["id"] for job in jobs] == [result["id"] for result in results]
        payloads = [job["payload"] for job in jobs]
        assert len(set(payloads)) == len(payloads) and set(payloads) <= set(range(300))


class TestHostsThatAreKilled:
    def test_the_next_call_finds_another(self, server):
        queue = server.client().queue("q").created(on_failure=DECIDES, hook_timeout_ms=PATIENT_MS,
                                                   on_hook_error="dlq")
        assert fail_one(queue)["reason"] == "of the hook"
        for _ in range(5):
            assert kill_hosts(server) > 0
            # A call that fell on the dead process may count as an error of the hook, none is lost.
            assert fail_one(queue)["reason"] in ("of the hook", "hook_error")
            eventually(lambda: fail_one(queue)["reason"] == "of the hook", "the hook's answer", 15)
        assert set(faults_of(queue)) <= {"host_lost", "breaker_open"}

    def test_between_calls_nothing_is_lost(self, server):
        queue = server.client().queue("q").created(on_failure=DECIDES, hook_timeout_ms=PATIENT_MS,
                                                   on_hook_error="dlq")
        fail_one(queue)
        pids = hook_processes(server)
        kill_hosts(server)
        eventually(lambda: not any(runs(pid) for pid in pids), "them to end")
        lost = read_metrics(queue.client).value("reprise_hook_hosts_lost_total")
        assert lost is not None
        results = fail_many(queue, 50)
        assert {result["reason"] for result in results} <= {"of the hook", "hook_error"}
        eventually(lambda: fail_one(queue)["reason"] == "of the hook", "the hook's answer", 15)

    @pytest.mark.parametrize("error_handling", ["dlq", "retry"])
    def test_while_200_jobs_fail(self, server, error_handling):
        queue = server.client().queue("q").created(
            on_failure=SLOW, hook_timeout_ms=PATIENT_MS, on_hook_error=error_handling)
        ids = queue.push(*range(200))
        jobs = queue.claim(200)
        own = server.client()
        calls = in_background(own.leases, "fail", [{"token": job["token"]} for job in jobs])
        eventually(lambda: hook_processes(server), "a process that runs the hook")
        assert kill_hosts_again_and_again(server, calls) > 0
        results = calls.result(30)
        assert [result["id"] for result in results] == [job["id"] for job in jobs]
        allowed = {("dead", "slow"), ("dead", "hook_error") if error_handling == "dlq"
                   else ("retrying", None)}
        assert {(result["status"], result.get("reason")) for result in results} <= allowed
        assert all_of(queue) == 200
        dead = {result["id"] for result in results if result["status"] == "dead"}
        assert {job["id"] for job in queue.all_jobs(status="dead", limit=1000)} == dead
        assert {job["id"] for job in queue.all_jobs(limit=1000)} == set(ids)
        assert set(faults_of(queue)) <= {"host_lost", "breaker_open"}
        answered, faults = calls_of(queue)
        assert answered + sum(faults.values()) == 200

    def test_while_jobs_are_pushed(self, server):
        queue = server.client().queue("q").created(
            hook_timeout_ms=PATIENT_MS, on_enqueue=on_enqueue(
                'for i = 1, 1000000 do end return { fairness_key = "asked" }'))
        own = queue.through(server.client())
        push = in_background(own.push_jobs, [{"payload": number} for number in range(200)])
        kill_hosts_again_and_again(server, push)
        results = push.result(30)
        assert [result["status"] for result in results] == ["pushed"] * 200
        jobs = queue.claim(1000)
        # Those that the hook was not asked for have another fairness key, and go beside them.
        assert sorted(job["payload"] for job in jobs) == list(range(200))
        keys = {queue.job(job["id"])["fairness_key"] for job in jobs}
        assert keys <= {"asked", "default"}

    def test_leases_that_run_out_meanwhile(self, server):
        queue = server.client().queue("q").created(
            on_failure=DECIDES, hook_timeout_ms=PATIENT_MS, on_hook_error="dlq")
        fail_one(queue)
        queue.push(*range(100))
        assert len(queue.claim(100, lease="300ms")) == 100
        for _ in range(12):
            kill_hosts(server)
            time.sleep(0.05)
        eventually(lambda: queue.counts() == {"dead": 101}, "all to be decided", 15)

    def test_other_requests_are_served_meanwhile(self, server):
        queue = server.client().queue("q").created(on_failure=SLOW, hook_timeout_ms=PATIENT_MS)
        plain = queue.sibling("plain").created()
        fail_one(queue)
        for number in range(10):
            kill_hosts(server)
            started = time.monotonic()
            plain.push(number)
            assert plain.client.ack(plain.claim_one())["status"] == "acked"
            assert time.monotonic() - started < 2

    def test_the_server_outlives_each_kill_and_keeps_few_processes(self, server):
        queue = server.client().queue("q").created(on_failure=DECIDES, hook_timeout_ms=PATIENT_MS,
                                                   on_hook_error="dlq")
        pid = server.pid
        for _ in range(20):
            fail_one(queue)
            kill_hosts(server)
        assert server.alive() and server.pid == pid
        assert queue.client.request("GET", "/healthz").status == 200
        eventually(lambda: len(hook_processes(server)) <= 4, "the dead to be gone")

    def test_a_stopped_one_is_as_good_as_a_late_one(self, server):
        """A process that neither answers nor ends holds up its own queue for the time of a call."""
        queue = server.client().queue("q").created(on_failure=DECIDES, hook_timeout_ms=100,
                                                   on_hook_error="dlq")
        other = queue.sibling("other").created()
        fail_one(queue)
        stopped = hook_processes(server)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            started = time.monotonic()
            own = queue.through(server.client())
            call = in_background(fail_one, own)
            assert fail_one(other)["reason"] == "max_attempts"
            assert time.monotonic() - started < 2
            # The one that starts them is stopped too, so that no new one comes before it goes on.
        finally:
            for pid in stopped:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        assert call.result(20)["reason"] in ("of the hook", "hook_error")


def test_a_config_that_was_set_before_a_kill_is_seen_after_it(server):
    config = RuntimeConfig(server.client())
    queue = server.client().queue("q").created(
        hook_timeout_ms=PATIENT_MS,
        on_failure=on_failure('return { action = "dlq", reason = config.get("key") or "none" }'))
    config.set("key", "one")
    assert fail_one(queue)["reason"] == "one"
    config.set("key", "two")
    queue = reopened(server, queue, "kill")
    assert fail_one(queue)["reason"] == "two"


def test_a_backup_has_the_scripts(server, start_server, tmp_path):
    queue = server.client().queue("q").created(on_failure=BURY, hook_timeout_ms=PATIENT_MS)
    before = queue.show()["config"]
    queue.client.call("POST", "/v1/backup", {"directory": str(tmp_path / "copy")})
    copy = start_server(ready=False)
    copy.data = tmp_path / "copy"
    copy.start()
    queue = queue.through(copy.client())
    assert queue.show()["config"] == before
    assert fail_one(queue)["reason"] == "buried"
