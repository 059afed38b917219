"""Retry policies: how often a job is tried, and how long it waits before it is tried again.

Waits are read from the server (retry_at against the time of the failure), not waited for. A job is
brought to its k-th failure with retries that are due at once.
"""

import json
import time

import pytest

from background import claim_in_background
from failing import claim_these, fail_again, make_cooling, wait_before_retry
from refusals import assert_refused
from times import assert_close, seconds_since_1970
from waiting import eventually, time_passes

ROUNDING_SECONDS = 0.005


def failures_until_death(queue, most=30):
    """How often a new job of this queue can fail; the last reply."""
    job_id = queue.push_one(1)
    for failures in range(1, most + 1):
        job = eventually(queue.claim, "the job again")[0]
        assert (job["id"], job["failures"]) == (job_id, failures - 1)
        result = queue.client.fail(job, error=f"error {failures}", delay="0s")
        if result["status"] == "dead":
            return failures, result
    return None, result


class TestCap:
    @pytest.mark.parametrize("retry, deadly", [
        ({}, 1), ({"attempts": 0}, 1), ({"attempts": 1}, 1), ({"attempts": 2}, 2),
        ({"attempts": 3}, 3), ({"max_retries": 0}, 1), ({"max_retries": 1}, 2),
        ({"max_retries": 3}, 4), ({"attempts": 3, "cooldown": "30s"}, 3),
        ({"attempts": 3, "backoff": {"base": "1m"}}, 3),
        ({"max_retries": 2, "cooldown": "30s"}, 3),
    ], ids=json.dumps)
    def test_a_job_dies_at_the_last_allowed_failure(self, absent_queue, retry, deadly):
        failures, result = failures_until_death(absent_queue.created(retry=retry))
        assert (failures, result["reason"]) == (deadly, "max_attempts")
        shown = absent_queue.job(result["id"])
        assert (shown["status"], shown["attempts"], shown["failures"]) == ("dead", deadly, deadly)
        assert absent_queue.counts() == {"dead": 1}

    @pytest.mark.parametrize("retry", [{"attempts": "unlimited"}, {"max_retries": "unlimited"}],
                             ids=json.dumps)
    def test_unlimited_never_gives_up(self, absent_queue, retry):
        failures, result = failures_until_death(absent_queue.created(retry=retry), most=30)
        assert (failures, result["status"]) == (None, "retrying")
        assert "unlimited" in absent_queue.show()["config"]["retry"].values()

    def test_final_ends_an_unlimited_job(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": "unlimited"})
        queue.push(1)
        result = queue.client.fail(queue.claim_one(), final=True)
        assert (result["status"], result["reason"]) == ("dead", "final")

    @pytest.mark.parametrize("delay", ["0s", "1h"])
    def test_a_delay_retries_nothing_past_the_cap(self, absent_queue, delay):
        queue = absent_queue.created(retry={"attempts": 2})
        queue.push(1)
        fail_again(queue, 1)
        result = queue.client.fail(eventually(queue.claim)[0], delay=delay)
        assert (result["status"], result["reason"]) == ("dead", "max_attempts")


WAITS = [
    ({"max_retries": 9}, [1, 4, 16, 64, 256, 1024, 3600, 3600]),
    ({"max_retries": 9, "backoff": {}}, [1, 4, 16]),
    ({"max_retries": 9, "backoff": {"max": "10s"}}, [1, 4, 10, 10]),
    ({"attempts": 9, "backoff": {"base": "100ms", "factor": 2, "max": "300ms"}},
     [0.1, 0.2, 0.3, 0.3]),
    ({"attempts": 9, "backoff": {"base": "2s", "factor": 1.5}}, [2, 3, 4.5, 6.75]),
    ({"attempts": 9, "backoff": {"base": "7s", "factor": 1}}, [7, 7, 7]),
    ({"attempts": 9, "backoff": {"base": "5m", "max": "5m"}}, [300, 300]),
    ({"attempts": 9, "cooldown": "30s"}, [30, 30, 30]),
    ({"max_retries": 9, "cooldown": "1h30m"}, [5400, 5400]),
    ({"attempts": 9, "cooldown": 2.5}, [2.5]),
    ({"attempts": 9}, [0, 0]),
]


class TestWaits:
    @pytest.mark.parametrize("retry, number, expected",
                             [(retry, number, wait) for retry, waits in WAITS
                              for number, wait in enumerate(waits, 1)
                              if wait > 0], ids=json.dumps)
    def test_the_wait_before_each_retry(self, absent_queue, retry, number, expected):
        queue = absent_queue.created(retry=retry)
        queue.push(1)
        fail_again(queue, number - 1)
        wait = wait_before_retry(queue, eventually(queue.claim)[0])
        assert wait == pytest.approx(expected, abs=ROUNDING_SECONDS)

    def test_without_a_wait_a_retry_is_due_at_once(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 9})
        queue.push(1)
        claim = queue.claim_one()
        result = queue.client.fail(claim)
        shown = queue.job(claim["id"])
        assert result["retry_at"] == shown["history"][-1]["ended_at"]
        assert eventually(queue.claim)[0]["attempts"] == 2

    def test_a_wait_never_overflows(self, absent_queue):
        queue = absent_queue.created(
            retry={"attempts": "unlimited", "backoff": {"base": "1s", "factor": 1000, "max": "7d"}})
        queue.push(1)
        fail_again(queue, 35)
        wait = wait_before_retry(queue, eventually(queue.claim)[0])
        assert wait == pytest.approx(7 * 86400, abs=ROUNDING_SECONDS)

    @pytest.mark.parametrize("backoff, least, most", [
        ({"base": "100s", "factor": 1, "jitter": 0.5}, 50, 150),
        ({"base": "100s", "factor": 1, "jitter": 1}, 0, 200),
        ({"base": "100s", "factor": 1, "jitter": 0.01}, 99, 101)], ids=json.dumps)
    def test_jitter_spreads_the_waits_over_its_range(self, absent_queue, backoff, least, most):
        queue = absent_queue.created(retry={"attempts": 9, "backoff": backoff})
        queue.push(*range(200))
        results = queue.client.leases("fail", [{"token": job["token"]} for job in queue.claim(200)])
        # One call is one moment.
        failed_at = seconds_since_1970(queue.job(results[0]["id"])["history"][0]["ended_at"])
        waits = [seconds_since_1970(result["retry_at"]) - failed_at for result in results]
        slack = ROUNDING_SECONDS
        assert least - slack <= min(waits) and max(waits) <= most + slack
        width = most - least
        assert min(waits) < least + 0.2 * width and max(waits) > most - 0.2 * width
        assert abs(sum(waits) / len(waits) - 100) < 0.15 * width

    def test_without_jitter_all_wait_alike(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 9, "backoff": {"base": "100s"}})
        queue.push(*range(50))
        results = queue.client.leases("fail", [{"token": job["token"]} for job in queue.claim(50)])
        times = [seconds_since_1970(result["retry_at"]) for result in results]
        assert max(times) - min(times) <= ROUNDING_SECONDS

    def test_delay_takes_the_place_of_the_policys_wait_once(self, absent_queue):
        queue = absent_queue.created(retry={"max_retries": 5})
        queue.push(1)
        fail_again(queue, 1)
        result = queue.client.fail(eventually(queue.claim)[0], delay="2h")
        assert_close(result["retry_at"], time.time() + 7200)
        queue.retry(result["id"])
        assert wait_before_retry(queue, queue.claim_one()) == pytest.approx(
            1, abs=ROUNDING_SECONDS)

    def test_an_expired_lease_waits_like_any_failure(self, absent_queue):
        queue = absent_queue.created(retry={"max_retries": 5, "backoff": {"base": "1h"}})
        job_id = queue.push_one(1)
        queue.claim_one(lease="100ms")
        eventually(lambda: queue.counts() == {"failed": 1}, "the lease to expire")
        shown = queue.job(job_id)
        ended = seconds_since_1970(shown["history"][0]["ended_at"])
        assert seconds_since_1970(shown["due_at"]) - ended == pytest.approx(3600, abs=0.5)


BACKOFF = "retry.backoff"
WRONG = ("invalid_field", "invalid_request")
REFUSED = [
    # Durations that are none.
    *[({"cooldown": text}, WRONG, ["retry.cooldown"])
      for text in ("5 parsecs", "10x", "30sec5", "-1s", "", "unlimited", "1y", "NaN")],
    *[({"backoff": {"base": text}}, WRONG, [f"{BACKOFF}.base"])
      for text in ("1 fortnight", "10x", "-1s", "")],
    *[({"backoff": {"max": text}}, WRONG, [f"{BACKOFF}.max"])
      for text in ("3 moons", "-1s", "")],
    ({"cooldown": -1}, "invalid_field", ["retry.cooldown"]),
    ({"backoff": {"base": -0.5}}, "invalid_field", [f"{BACKOFF}.base"]),
    ({"backoff": {"max": -1}}, "invalid_field", [f"{BACKOFF}.max"]),
    # Two that exclude each other.
    ({"attempts": 3, "max_retries": 2}, WRONG, ["attempts", "max_retries"]),
    ({"attempts": "unlimited", "max_retries": 2}, WRONG, ["attempts", "max_retries"]),
    ({"cooldown": "1s", "backoff": {"base": "1s"}}, WRONG, ["cooldown", "backoff"]),
    ({"cooldown": "0s", "backoff": {}}, WRONG, ["cooldown", "backoff"]),
    # Out of range.
    ({"backoff": {"base": "2h", "max": "1h"}}, "invalid_field", [BACKOFF]),
    ({"backoff": {"base": "1s", "max": "999ms"}}, "invalid_field", [BACKOFF]),
    *[({"backoff": {"factor": factor}}, "invalid_field", [f"{BACKOFF}.factor"])
      for factor in (0.99, 0, -4)],
    *[({"backoff": {"jitter": jitter}}, "invalid_field", [f"{BACKOFF}.jitter"])
      for jitter in (-0.1, 1.1, 100, -1)],
    ({"attempts": -1}, "invalid_field", ["retry.attempts"]),
    ({"max_retries": -1}, "invalid_field", ["retry.max_retries"]),
    ({"attempts": 10**30}, WRONG, ["retry.attempts"]),
    ({"max_retries": 10**30}, WRONG, ["retry.max_retries"]),
    ({"attempts": "many"}, WRONG, ["retry.attempts"]),
    ({"max_retries": "forever"}, WRONG, ["retry.max_retries"]),
    # Another type.
    ({"attempts": 1.5}, WRONG, ["retry.attempts"]),
    ({"max_retries": 2.5}, WRONG, ["retry.max_retries"]),
    ({"attempts": True}, "invalid_request", ["retry.attempts"]),
    ({"max_retries": []}, "invalid_request", ["retry.max_retries"]),
    ({"cooldown": True}, "invalid_request", ["retry.cooldown"]),
    ({"backoff": 3}, "invalid_request", [BACKOFF]),
    ({"backoff": "1s"}, "invalid_request", [BACKOFF]),
    ({"backoff": []}, "invalid_request", [BACKOFF]),
    ({"backoff": {"base": {}}}, "invalid_request", [f"{BACKOFF}.base"]),
    ({"backoff": {"factor": "4"}}, "invalid_request", [f"{BACKOFF}.factor"]),
    ({"backoff": {"jitter": "0.5"}}, "invalid_request", [f"{BACKOFF}.jitter"]),
    ({"backoff": {"jitter": False}}, "invalid_request", [f"{BACKOFF}.jitter"]),
    # Nobody reads it.
    ({"attemts": 3}, "unknown_field", ["retry.attemts", "attempts"]),
    ({"max_retry": 3}, "unknown_field", ["retry.max_retry", "max_retries"]),
    ({"backoff": {"fator": 3}}, "unknown_field", [f"{BACKOFF}.fator", "factor"]),
    ({"base": "1s"}, "unknown_field", ["retry.base"]),
]


class TestRefusals:
    @pytest.mark.parametrize("method", ["PUT", "PATCH"])
    @pytest.mark.parametrize("retry, codes, names", REFUSED, ids=lambda part: json.dumps(part)[:50])
    def test_a_bad_policy_is_refused_by_its_fields_path(self, absent_queue, method, retry, codes,
                                                        names):
        queue = absent_queue.created(lease="1m", retry={"attempts": 7, "cooldown": "7s"})
        assert_refused(queue, method, queue.path(), {"lease": "2m", "retry": retry}, codes, *names)

    def test_a_bad_policy_makes_no_queue(self, absent_queue):
        refused = absent_queue.client.refused("PUT", absent_queue.path(),
                                              {"retry": {"backoff": {"factor": 0.5}}})
        assert refused == (400, "invalid_field")
        assert absent_queue.client.refused("GET", absent_queue.path()) == (404, "queue_not_found")

    def test_a_patch_is_judged_with_what_is_there(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3,
                                            "backoff": {"base": "10m", "max": "1h"}})
        assert_refused(queue, "PATCH", queue.path(), {"retry": {"backoff": {"max": "1m"}}},
                       "invalid_field", BACKOFF)

    @pytest.mark.parametrize("lease, name", [
        ({"outcome": "exploded"}, "outcome"), ({"outcome": 1}, "outcome"),
        ({"error_type": 5}, "error_type"), ({"delay": "1 fortnight"}, "delay"),
        ({"delay": "-1s"}, "delay"), ({"final": "yes"}, "final"), ({"finall": True}, "finall")],
        ids=json.dumps)
    def test_a_bad_fail_is_refused_and_the_lease_goes_on(self, absent_queue, lease, name):
        queue = absent_queue.created(retry={"attempts": 2})
        queue.push(1)
        job = queue.claim_one()
        assert_refused(queue, "POST", "/v1/fail", {"leases": [{"token": job["token"]} | lease]},
                       "unknown_field" if name == "finall" else WRONG, name)
        assert queue.client.ack(job)["status"] == "acked"


class TestPatch:
    """Whatever the form of the answer, what counts is what happens at the next failure."""

    @pytest.fixture
    def patched(self, absent_queue):
        def patch(before, change):
            absent_queue.create(retry=before)
            absent_queue.patch(retry=change)
            return absent_queue
        return patch

    def wait(self, queue, number=1):
        queue.push(1)
        fail_again(queue, number - 1)
        return pytest.approx(wait_before_retry(queue, eventually(queue.claim)[0]),
                             abs=ROUNDING_SECONDS)

    def test_backoff_replaces_cooldown(self, patched):
        queue = patched({"attempts": 9, "cooldown": "30s"},
                        {"backoff": {"base": "2s", "factor": 3}})
        assert "cooldown" not in queue.show()["config"]["retry"]
        assert self.wait(queue, 2) == 6

    def test_cooldown_replaces_backoff(self, patched):
        queue = patched({"attempts": 9, "backoff": {"base": "2s"}}, {"cooldown": "9s"})
        assert "backoff" not in queue.show()["config"]["retry"]
        assert self.wait(queue, 2) == 9

    @pytest.mark.parametrize("before, change, deadly", [
        ({"attempts": 9}, {"max_retries": 1}, 2), ({"max_retries": 9}, {"attempts": 2}, 2),
        ({"attempts": "unlimited"}, {"max_retries": 0}, 1)], ids=json.dumps)
    def test_one_cap_replaces_the_other(self, patched, before, change, deadly):
        assert failures_until_death(patched(before, change))[0] == deadly

    def test_what_is_not_named_stays(self, patched):
        queue = patched({"attempts": 2, "cooldown": "30s"}, {"cooldown": "40s"})
        assert self.wait(queue) == 40
        queue.patch(retry={"attempts": 9})
        queue.drop(queue.jobs()[0]["id"])
        assert self.wait(queue) == 40

    def test_a_field_of_the_backoff_may_be_changed_alone(self, patched):
        queue = patched({"attempts": 9, "backoff": {"base": "2s", "factor": 3}},
                        {"backoff": {"factor": 5}})
        assert self.wait(queue, 2) == 10

    def test_null_restores_the_default(self, patched):
        queue = patched({"attempts": 9, "cooldown": "30s"}, None)
        assert queue.show()["config"]["retry"] == {"attempts": 0, "cooldown": "0s"}
        assert failures_until_death(queue)[0] == 1

    def test_what_a_queue_shows_it_also_takes(self, absent_queue):
        for retry, waits in WAITS:
            shown = absent_queue.client.call("PUT", absent_queue.path(), {"retry": retry},
                                             201 if retry is WAITS[0][0] else 200)
            again = absent_queue.create(status=200, **shown["config"])
            assert again["config"] == shown["config"]


class TestPolicyInForce:
    def test_it_is_the_one_at_the_moment_of_the_failure(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 1})
        queue.push(1)
        job = queue.claim_one()
        queue.patch(retry={"attempts": 2, "cooldown": "50s"})
        assert wait_before_retry(queue, job) == pytest.approx(50, abs=ROUNDING_SECONDS)

    def test_an_edit_leaves_the_retry_time_of_a_cooling_job_and_counts_for_its_next_failure(
            self, absent_queue):
        queue = absent_queue.created(retry={"attempts": "unlimited"})
        [job_id] = make_cooling(queue, "first", delay="300ms")
        due = queue.job(job_id)["due_at"]
        queue.patch(retry={"attempts": 2, "cooldown": "1h"})
        assert queue.job(job_id)["due_at"] == due
        job = eventually(queue.claim, "the retry")[0]
        assert queue.client.fail(job)["reason"] == "max_attempts"

    def test_a_lower_cap_kills_at_the_next_failure_not_before(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": "unlimited"})
        job_id = queue.push_one(1)
        fail_again(queue, 5)
        eventually(lambda: queue.status_of(job_id) == "pending", "the retry to be due")
        queue.patch(retry={"attempts": 3})
        assert queue.status_of(job_id) == "pending"
        assert queue.client.fail(queue.claim_one(), delay="1h")["status"] == "dead"
        assert queue.job(job_id)["failures"] == 6

    def test_a_higher_cap_gives_more_attempts(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 2})
        queue.push(1)
        fail_again(queue, 1)
        job = eventually(queue.claim)[0]
        queue.patch(retry={"attempts": 3})
        assert queue.client.fail(job)["status"] == "retrying"


class TestHowItEnded:
    @pytest.fixture
    def patient(self, absent_queue):
        return absent_queue.created(retry={"attempts": 2})

    def test_the_type_of_an_error_is_kept(self, patient):
        job_id = patient.push_one(1)
        patient.client.fail(patient.claim_one(), error="timeout", error_type="Net é")
        shown = patient.job(job_id)
        assert (shown["last_error"], shown["last_error_type"]) == ("timeout", "Net é")
        assert shown["history"][0]["error_type"] == "Net é"
        patient.client.fail(eventually(patient.claim)[0], error="other")
        shown = patient.job(job_id)
        assert shown["last_error_type"] is None
        assert [entry["error_type"] for entry in shown["history"]] == ["Net é", None]
        meta = shown["dead_letter"]["meta"]
        assert (meta["lastError"], meta["lastErrorType"]) == ("other", None)
        assert [entry["errorType"] for entry in meta["history"]] == ["Net é", None]

    def test_a_type_holds_200_bytes(self, patient):
        job_id = patient.push_one(1)
        job = patient.claim_one()
        reply = patient.client.request(
            "POST", "/v1/fail", {"leases": [{"token": job["token"], "error_type": "x" * 201}]})
        assert reply.status == 400 and b"invalid_field" in reply.body
        assert b"error_type" in reply.body
        assert patient.status_of(job_id) == "active"
        patient.client.fail(job, error_type="x" * 200)
        assert patient.job(job_id)["last_error_type"] == "x" * 200

    def test_a_lost_worker_is_a_failure_with_its_own_outcome_and_reason(self, patient):
        job_id = patient.push_one(1)
        result = patient.client.fail(patient.claim_one(worker="w"), outcome="worker_lost")
        assert result["status"] == "retrying"
        [entry] = patient.job(job_id)["history"]
        assert (entry["outcome"], entry["worker"]) == ("worker_lost", "w")
        result = patient.client.fail(eventually(patient.claim)[0], outcome="worker_lost")
        assert (result["status"], result["reason"]) == ("dead", "worker_lost")
        meta = patient.job(job_id)["dead_letter"]["meta"]
        assert (meta["reason"], meta["decidedBy"]) == ("worker_lost", "policy")

    def test_the_reason_is_how_the_last_attempt_ended(self, patient):
        job_id = patient.push_one(1)
        patient.client.fail(patient.claim_one(), outcome="worker_lost")
        assert patient.client.fail(eventually(patient.claim)[0])["reason"] == "max_attempts"
        outcomes = [entry["outcome"] for entry in patient.job(job_id)["history"]]
        assert outcomes == ["worker_lost", "failed"]

    @pytest.mark.parametrize("retry, fields, reason", [
        ({"attempts": 9}, {}, "expired"), ({"attempts": 9}, {"delay": "1h"}, "expired"),
        ({"attempts": 9}, {"final": True}, "final"), ({"attempts": 1}, {}, "max_attempts"),
        ({"attempts": 1}, {"outcome": "worker_lost"}, "worker_lost")], ids=json.dumps)
    def test_a_ttl_that_is_over_kills_where_a_retry_would_follow(self, absent_queue, retry, fields,
                                                                 reason):
        queue = absent_queue.created(retry=retry)
        job_id = queue.push_one(1, ttl="100ms")
        job = queue.claim_one()
        time_passes(seconds_since_1970(queue.job(job_id)["expires_at"]) + 0.02)
        result = queue.client.fail(job, error="late", **fields)
        assert (result["status"], result["reason"]) == ("dead", reason)
        assert queue.job(job_id)["dead_letter"]["meta"]["reason"] == reason


class TestRelease:
    def test_it_burns_no_attempt_however_often(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 2})
        job_id = queue.push_one(1)
        for _ in range(12):
            queue.client.release(queue.claim_one())
        shown = queue.job(job_id)
        assert (shown["status"], shown["lane"], shown["failures"], shown["attempts"]) == (
            "pending", "fresh", 0, 12)
        assert {entry["outcome"] for entry in shown["history"]} == {"released"}
        assert queue.client.fail(queue.claim_one())["status"] == "retrying"

    def test_a_released_retry_keeps_its_failures_and_its_lane(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3})
        job_id = queue.push_one(1)
        fail_again(queue, 2, error="x")
        for _ in range(3):
            queue.client.release(eventually(queue.claim)[0])
        shown = queue.job(job_id)
        assert (shown["status"], shown["lane"], shown["failures"]) == ("pending", "retry", 2)
        assert shown["last_error"] == "x"
        assert queue.client.fail(queue.claim_one())["reason"] == "max_attempts"


class TestCooling:
    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_a_cooling_job_survives_a_restart_and_is_due_on_time(self, server, how):
        queue = server.client().queue("q").created(retry={"attempts": 3, "cooldown": "1s"})
        queue.push("short", "long")
        short, long = queue.claim(2)
        due = seconds_since_1970(queue.client.fail(short, error="x")["retry_at"])
        later = queue.client.fail(long, error="y", delay="1h")["retry_at"]
        server.restart(how)
        queue = queue.through(server.client())
        assert queue.job(long["id"])["due_at"] == later
        [job] = queue.claim(wait="20s", max=2)
        assert (job["id"], job["failures"], job["last_error"]) == (short["id"], 1, "x")
        assert due <= time.time() < due + 3
        assert queue.client.fail(job, delay="0s")["status"] == "retrying"
        job = eventually(queue.claim)[0]
        assert queue.client.fail(job)["status"] == "dead"

    def test_a_job_that_came_due_while_the_server_was_down_is_due_at_once(self, server):
        queue = server.client().queue("q").created(retry={"attempts": 3})
        [job_id] = make_cooling(queue, "x", delay="200ms")
        due = seconds_since_1970(queue.job(job_id)["due_at"])
        server.kill()
        time_passes(due)
        server.start()
        assert queue.through(server.client()).claim_one(wait="5s")["id"] == job_id

    def test_a_waiting_claim_is_woken_when_a_job_has_cooled_down(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3, "cooldown": "400ms"})
        queue.push(1)
        job = queue.claim_one()
        claim = claim_in_background(queue)
        due = seconds_since_1970(queue.client.fail(job)["retry_at"])
        [again] = claim.result(10)
        assert again["id"] == job["id"] and due <= time.time() < due + 2

    def test_a_dropped_one_does_not_come_back(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3})
        [job_id] = make_cooling(queue, "x", delay="300ms")
        due = seconds_since_1970(queue.job(job_id)["due_at"])
        assert queue.drop(job_id) == {"dropped": True, "id": job_id, "status": "failed"}
        time_passes(due + 0.1)
        assert queue.counts() == {} and queue.claim() == [] and queue.status_of(job_id) is None
        assert sum(queue.stats()["lanes"]["retries_by_failures"].values()) == 0

    def test_one_retried_by_hand_is_pending_at_once_and_its_timer_is_gone(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 3})
        [job_id] = make_cooling(queue, "x", delay="300ms")
        due = seconds_since_1970(queue.job(job_id)["due_at"])
        assert queue.retry(job_id)["retried"] == 1
        shown = queue.job(job_id)
        assert (shown["status"], shown["lane"], shown["failures"], shown["due_at"],
                shown["generation"]) == ("pending", "fresh", 0, None, 2)
        [job] = claim_these(queue, [job_id])
        time_passes(due + 0.1)
        assert queue.counts() == {"active": 1} and queue.claim() == []
        assert queue.client.ack(job)["status"] == "acked"
        assert queue.counts() == {}

    def test_one_retried_by_hand_has_all_its_attempts_again(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 2})
        [job_id] = make_cooling(queue, "x")
        queue.retry(job_id)
        assert queue.client.fail(queue.claim_one(), delay="0s")["status"] == "retrying"
        assert queue.client.fail(eventually(queue.claim)[0])["status"] == "dead"
        assert queue.job(job_id)["attempts"] == 3
