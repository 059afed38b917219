"""Fairness keys: each is given its exact share, at every moment, whatever the others have."""

import json
from collections import Counter
from fractions import Fraction
from itertools import cycle, islice

import pytest

from failing import make_dead
from hooking import on_enqueue
from metrics_text import read_metrics
from refusals import assert_refused
from scheduling import (assert_shares, assert_windows, claim_sizes, keys_of, numbers_of,
                        push_keyed, top_keys)
from waiting import eventually

WEIGHTS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
WINDOW = 150
# 1512 jobs, and single, small and large claims next to each other.
MIXED_SIZES = [size for ones, sevens, hundreds in [(30, 6, 2)] * 5 + [(10, 6, 1)]
               for size in [1] * ones + [7] * sevens + [100] * hundreds]
WRONG = ("invalid_request", "invalid_field")
TOP_KEYS_MAX = 20


@pytest.fixture
def patient(absent_queue):
    """A queue whose failed jobs are retried at once and for ever."""
    return absent_queue.created(retry={"attempts": "unlimited"})


def fill(queue, weights, count, **fields):
    """So many jobs of each key, pushed one key after the other."""
    for key, weight in weights.items():
        push_keyed(queue, key, count, weight, **fields)


def single_claims(queue, count):
    return keys_of(claim_sizes(queue, [1] * count))


class TestShares:
    def test_weights_1_to_5_hold_over_every_150_deliveries_and_from_the_start(self, queue):
        fill(queue, WEIGHTS, 600)
        keys = keys_of(claim_sizes(queue, MIXED_SIZES))
        assert len(keys) > 1500
        assert_windows(keys, WEIGHTS, WINDOW, off=2)
        assert_shares(keys, WEIGHTS)

    @pytest.mark.parametrize("weights", [
        {"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1000}, {"a": 7, "b": 5, "c": 3},
        {"a": 999, "b": 1000}, {f"k{n}": 1 for n in range(40)}], ids=lambda w: str(len(w)))
    def test_each_key_is_never_more_than_one_job_off(self, queue, weights):
        fill(queue, weights, 210)
        assert_shares(keys_of(claim_sizes(queue, [1, 7, 1, 100, 1, 1, 7, 50, 42])), weights)

    def test_acking_makes_no_difference(self, queue):
        fill(queue, WEIGHTS, 120)
        keys = []
        for size in islice(cycle([1, 7, 30]), 24):
            jobs = queue.claim(size)
            keys += keys_of(jobs)
            queue.client.ack_all(jobs)
        assert len(keys) == 304
        assert_shares(keys, WEIGHTS)

    def test_a_key_that_has_no_more_leaves_its_share_to_the_others_by_their_weights(self, queue):
        push_keyed(queue, "brief", 10, weight=3)
        fill(queue, {"a": 1, "b": 2}, 120)
        keys = single_claims(queue, 100)
        end = len(keys) - keys[::-1].index("brief")
        assert keys.count("brief") == 10 and end <= 22
        assert_shares(keys[end:], {"a": 1, "b": 2}, off=2)

    def test_the_weight_is_that_of_the_job_pushed_last(self, queue):
        fill(queue, {"a": 1, "b": 1}, 100)
        assert_shares(single_claims(queue, 20), {"a": 1, "b": 1})
        push_keyed(queue, "a", 1, weight=3)
        assert_shares(single_claims(queue, 80), {"a": 3, "b": 1}, off=2)
        push_keyed(queue, "b", 1, weight=1000)
        assert Counter(single_claims(queue, 40))["b"] >= 35

    def test_a_delayed_job_takes_the_turns_of_its_key(self, queue):
        push_keyed(queue, "late", 3, delay="200ms")
        push_keyed(queue, "busy", 30)
        eventually(lambda: queue.stats()["scheduled"] == 0, "the delayed jobs to be due")
        assert Counter(single_claims(queue, 7))["late"] == 3

    def test_a_noisy_tenant_does_not_hold_up_a_small_one(self, queue):
        push_keyed(queue, "noisy", 5000)
        claim_sizes(queue, [100])
        push_keyed(queue, "small", 10)
        jobs = claim_sizes(queue, [1, 7, 1, 7, 1, 7])
        assert numbers_of(jobs, "small") == list(range(10))
        assert keys_of(jobs[:21]).count("small") == 10

    def test_released_jobs_go_back_to_their_key(self, queue):
        fill(queue, {"a": 1, "b": 1}, 10)
        for job in queue.claim(4):
            queue.client.release(job)
        jobs = claim_sizes(queue, [20])
        assert_shares(keys_of(jobs), {"a": 1, "b": 1}, off=2)
        assert numbers_of(jobs, "a") == numbers_of(jobs, "b") == list(range(10))


class TestComingAndGoing:
    @pytest.mark.parametrize("others, weight, turn", [
        ({"a": 1, "b": 1, "c": 1}, 1, 3), ({"a": 2, "b": 3}, 1, 5), ({"a": 1, "b": 1}, 5, 2),
        ({"a": 4, "b": 2}, 2, 3)], ids=str)
    @pytest.mark.parametrize("served", [1, 10, 37])
    def test_a_newcomer_waits_for_one_turn_of_each_of_the_others(self, queue, others, weight, turn,
                                                                 served):
        """As many jobs as their weight is times its own, at least one."""
        fill(queue, others, 150)
        single_claims(queue, served)
        push_keyed(queue, "new", 100, weight)
        keys = single_claims(queue, 100)
        assert keys.index("new") <= turn
        assert_shares(keys, {**others, "new": weight}, off=2)

    def test_a_newcomer_is_owed_nothing_for_the_time_before(self, queue):
        push_keyed(queue, "old", 400)
        claim_sizes(queue, [200])
        push_keyed(queue, "new", 100)
        assert_shares(single_claims(queue, 60), {"old": 1, "new": 1}, off=2)

    @pytest.mark.parametrize("weight", [1, 3])
    @pytest.mark.parametrize("acked", [True, False])
    def test_a_key_that_comes_and_goes_gets_no_more_than_its_share(self, queue, weight, acked):
        """It always has one job at most: gone with each delivery, back at once."""
        others = {"a": 1, "b": 2}
        fill(queue, others, 120)
        share = Fraction(weight, weight + 3)
        guests = 0
        push_keyed(queue, "guest", 1, weight)
        for served in range(1, 101):
            job = queue.claim_one(lease="1h")
            if acked:
                queue.client.ack(job)
            if keys_of([job]) == ["guest"]:
                guests += 1
                push_keyed(queue, "guest", 1, weight)
            assert guests <= served * share + 2, f"{guests} of the first {served}"
        assert guests >= 10

    def test_a_key_that_comes_back_after_a_pause_starts_with_the_others(self, queue):
        fill(queue, {"steady": 1, "guest": 1}, 20)
        push_keyed(queue, "steady", 200)
        single_claims(queue, 100)
        push_keyed(queue, "guest", 100)
        assert_shares(single_claims(queue, 60), {"steady": 1, "guest": 1}, off=2)

    def test_a_key_without_jobs_is_forgotten(self, queue):
        for number in range(5):
            push_keyed(queue, f"guest-{number}", 2)
        queue.client.ack_all(queue.claim(10))
        push_keyed(queue, "dead", 1)
        queue.client.fail(queue.claim_one(), final=True)
        assert queue.stats()["keys"]["active"] == 0
        push_keyed(queue, "here", 1)
        assert queue.stats()["keys"]["active"] == 1


class TestOrderWithinAKey:
    def test_jobs_of_a_key_go_by_priority_and_then_in_push_order(self, queue):
        pushed = [("a", 5), ("b", 1000), ("a", 1000), ("a", 0), ("b", 7), ("a", 5), ("b", 7)]
        for number, (key, priority) in enumerate(pushed):
            queue.push([key, number], fairness_key=key, priority=priority)
        jobs = claim_sizes(queue, [1, 3, 3])
        assert numbers_of(jobs, "a") == [3, 0, 5, 2]
        assert numbers_of(jobs, "b") == [4, 6, 1]

    def test_an_urgent_job_does_not_go_before_the_turns_of_others(self, queue):
        fill(queue, {"a": 1, "b": 1, "c": 1}, 30)
        single_claims(queue, 9)
        for number in range(10):
            queue.push(["a", f"urgent {number}"], fairness_key="a", priority=0)
        jobs = claim_sizes(queue, [1] * 60)
        assert numbers_of(jobs, "a")[:10] == [f"urgent {number}" for number in range(10)]
        assert_shares(keys_of(jobs), {"a": 1, "b": 1, "c": 1}, off=2)

    def test_where_nobody_names_keys_priorities_hold_for_the_whole_queue(self, queue):
        for number in range(20):
            queue.push(number, priority=19 - number)
        jobs = claim_sizes(queue, [1, 7, 12])
        assert [job["payload"] for job in jobs] == list(range(19, -1, -1))

    def test_the_default_key_is_one_like_any_other(self, queue):
        job_id = queue.push_one(["default", 0])
        job = queue.job(job_id)
        assert (job["fairness_key"], job["weight"], job["throttle_keys"]) == ("default", 1, [])
        queue.push(*[["default", n] for n in range(1, 30)])
        push_keyed(queue, "default", 20)
        push_keyed(queue, "named", 50)
        assert_shares(single_claims(queue, 60), {"default": 1, "named": 1})


class TestLanes:
    def make_retries(self, queue, weights, count):
        fill(queue, weights, count)
        jobs = queue.claim(count * len(weights))
        queue.client.leases("fail", [{"token": job["token"], "delay": "0s"} for job in jobs])
        eventually(lambda: queue.stats()["lanes"]["retry"] == len(jobs), "the retries to be due")

    def test_the_retry_lane_is_fair_by_itself(self, patient):
        weights = {"a": 1, "b": 2, "c": 3}
        self.make_retries(patient, weights, 100)
        keys = keys_of(claim_sizes(patient, [1] * 30 + [7] * 5 + [100], lane="retry"))
        assert_shares(keys, weights)

    @pytest.mark.parametrize("share", [0.2, 0.5])
    def test_each_lane_is_fair_and_the_lanes_have_their_shares(self, patient, share):
        """The weight of a key, that of its latest job, is the same in both."""
        patient.patch(fetch={"retry_share": share})
        self.make_retries(patient, {"a": 1, "b": 2, "c": 3}, 60)
        weights = {"a": 3, "b": 1, "c": 2}
        fill(patient, weights, 90)
        jobs = claim_sizes(patient, [1] * 20 + [7] * 5 + [45])
        for retries in (False, True):
            keys = keys_of([job for job in jobs if bool(job["failures"]) == retries])
            assert len(keys) == len(jobs) * (share if retries else 1 - share)
            assert_shares(keys, weights, off=2)

    def test_what_a_key_had_of_one_lane_is_not_held_against_it_in_the_other(self, patient):
        self.make_retries(patient, {"a": 1, "b": 1}, 40)
        push_keyed(patient, "a", 40)
        claim_sizes(patient, [1] * 30, lane="fresh")
        keys = keys_of(claim_sizes(patient, [1] * 30, lane="retry"))
        assert_shares(keys, {"a": 1, "b": 1})


class TestHooks:
    SCRIPT = on_enqueue("""
        return { fairness_key = msg.headers.tenant, weight = tonumber(msg.headers.weight) }""")

    def push(self, queue, key, weight, count):
        queue.push(*[[key, n] for n in range(count)],
                   headers={"tenant": key, "weight": str(weight)})

    def test_keys_and_weights_of_on_enqueue_work_the_same(self, hooked):
        queue = hooked(on_enqueue=self.SCRIPT)
        for key, weight in WEIGHTS.items():
            self.push(queue, key, weight, 100)
        keys = keys_of(claim_sizes(queue, [1] * 30 + [7] * 10 + [100]))
        assert_shares(keys, WEIGHTS)
        assert_windows(keys, WEIGHTS, WINDOW, off=2)

    def test_it_is_told_what_the_push_says_and_may_leave_it(self, hooked):
        queue = hooked(on_enqueue=on_enqueue("""
            assert(msg.fairness_key == "acme" and msg.weight == 3 and msg.throttle_keys[2] == "b")
            return { weight = msg.weight + 4 }"""))
        job = queue.job(queue.push_one(1, fairness_key="acme", weight=3, throttle_keys=["a", "b"]))
        assert (job["fairness_key"], job["weight"], job["throttle_keys"]) == (
            "acme", 7, ["a", "b"])


class TestJobs:
    @pytest.mark.parametrize("key", ["a", "x" * 200, "é" * 100, "a b/c:42", "😀", "other", "-"],
                             ids=lambda key: repr(key[:8]))
    def test_any_text_of_1_to_200_bytes_is_a_key(self, queue, key):
        job_id = queue.push_one(1, fairness_key=key, weight=1000, throttle_keys=[key])
        job = queue.job(job_id)
        assert (job["fairness_key"], job["weight"], job["throttle_keys"]) == (key, 1000, [key])
        [listed] = queue.jobs()
        assert (listed["fairness_key"], listed["weight"], listed["throttle_keys"]) == (
            key, 1000, [key])
        assert queue.claim_one()["id"] == job_id
        assert top_keys(queue)[key]["active"] == 1

    def test_16_throttle_keys(self, queue):
        names = [f"t{number}" for number in range(16)]
        assert queue.job(queue.push_one(1, throttle_keys=names))["throttle_keys"] == names

    def test_a_dead_job_brought_back_has_its_key(self, absent_queue):
        queue = absent_queue.created()
        [job_id] = make_dead(queue, "x", fairness_key="acme", weight=5, throttle_keys=["t"])
        queue.retry(job_id)
        job = queue.job(job_id)
        assert (job["fairness_key"], job["weight"], job["throttle_keys"]) == ("acme", 5, ["t"])
        assert top_keys(queue)["acme"]["pending"] == 1

    @pytest.mark.parametrize("fields, name", [
        ({"weight": 0}, "weight"), ({"weight": 1001}, "weight"), ({"weight": -1}, "weight"),
        ({"weight": 1.5}, "weight"), ({"weight": "x"}, "weight"), ({"weight": True}, "weight"),
        ({"weight": 2**70}, "weight"), ({"weight": []}, "weight"),
        ({"fairness_key": ""}, "fairness_key"), ({"fairness_key": "x" * 201}, "fairness_key"),
        ({"fairness_key": "é" * 101}, "fairness_key"), ({"fairness_key": 5}, "fairness_key"),
        ({"fairness_key": ["a"]}, "fairness_key"), ({"fairness_key": {}}, "fairness_key"),
        ({"throttle_keys": [f"t{n}" for n in range(17)]}, "throttle_keys"),
        ({"throttle_keys": [""]}, "throttle_keys"),
        ({"throttle_keys": ["a", "x" * 201]}, "throttle_keys"),
        ({"throttle_keys": "api"}, "throttle_keys"), ({"throttle_keys": [5]}, "throttle_keys"),
        ({"throttle_keys": {"api": 1}}, "throttle_keys")],
        ids=lambda value: json.dumps(value)[:40])
    def test_what_cannot_be_is_refused_by_name_and_changes_nothing(self, queue, fields, name):
        push_keyed(queue, "acme", 2, weight=3)
        before = queue.snapshot()
        reply = queue.client.request("POST", queue.path("/push"),
                                     {"jobs": [{"payload": 1, "fairness_key": "acme", **fields}]})
        body = reply.json()
        error = body["error"] if "error" in body else body["results"][0]["error"]
        assert reply.status == 400 and error["code"] in WRONG, reply
        assert name in error["message"], error
        assert queue.snapshot() == before

    def test_a_value_out_of_range_does_not_stop_the_others(self, queue):
        results = queue.push_jobs([{"weight": 0}, {"weight": 2}, {"fairness_key": ""},
                                   {"fairness_key": "x"}])
        assert [result["status"] for result in results] == [
            "rejected", "pushed", "rejected", "pushed"]
        assert queue.counts() == {"pending": 2}

    def test_a_misspelt_field_refuses_the_push(self, queue):
        assert_refused(queue, "POST", queue.path("/push"),
                       {"jobs": [{"payload": 1, "fairnes_key": "x"}]}, "unknown_field",
                       "fairnes_key")


class TestWhatIsTold:
    def test_each_key_with_its_counts_weight_deliveries_and_share(self, queue):
        push_keyed(queue, "acme", 30, weight=3)
        push_keyed(queue, "zeta", 5)
        acked = claim_sizes(queue, [8])
        queue.client.ack_all(acked)
        held = claim_sizes(queue, [4])
        keys = queue.stats()["keys"]
        assert set(keys) == {"active", "top", "other"} and keys["active"] == 2
        given, active = Counter(keys_of(acked + held)), Counter(keys_of(held))
        assert sorted(keys["top"], key=lambda entry: entry["key"]) == [
            {"key": key, "pending": pushed - given[key], "active": active[key], "weight": weight,
             "delivered": given[key], "share": pytest.approx(given[key] / 12, abs=0.001)}
            for key, pushed, weight in (("acme", 30, 3), ("zeta", 5, 1))]
        assert keys["other"] == {"pending": 0, "active": 0, "delivered": 0, "share": 0}

    def test_a_key_that_was_served_and_has_no_jobs_left_has_no_weight(self, queue):
        push_keyed(queue, "gone", 2, weight=3)
        queue.client.ack_all(queue.claim(2))
        assert top_keys(queue)["gone"] == {"key": "gone", "pending": 0, "active": 0,
                                           "weight": None, "delivered": 2, "share": 1}
        assert queue.stats()["keys"]["active"] == 0

    def test_of_many_keys_the_20_with_the_most_and_the_sum_of_the_others(self, queue):
        for number in range(1, 31):
            push_keyed(queue, f"k{number}", number)
        keys = queue.stats()["keys"]
        assert keys["active"] == 30
        assert {entry["key"] for entry in keys["top"]} == {f"k{n}" for n in range(11, 31)}
        assert keys["other"]["pending"] == sum(range(1, 11))

        queue.claim(200)
        stats = queue.stats()
        keys = stats["keys"]
        assert len(keys["top"]) == TOP_KEYS_MAX
        everything = keys["top"] + [keys["other"]]
        for name, total in (("pending", stats["pending"]), ("active", 200), ("delivered", 200)):
            assert sum(entry[name] for entry in everything) == total, name
        assert sum(entry["share"] for entry in everything) == pytest.approx(1, abs=0.02)

    def test_an_empty_queue_has_none(self, queue):
        assert queue.stats()["keys"] == {
            "active": 0, "top": [], "other": {"pending": 0, "active": 0, "delivered": 0,
                                              "share": 0}}

    def test_metrics_tell_the_same(self, queue):
        push_keyed(queue, "acme", 30, weight=3)
        push_keyed(queue, 'ze"ta\\\n', 10)
        queue.claim(12)
        metrics, labels = read_metrics(queue.client), {"namespace": queue.namespace,
                                                       "queue": queue.name}
        assert metrics.value("reprise_queue_keys", **labels) == 2
        for key, written in (("acme", "acme"), ('ze"ta\\\n', r'ze\"ta\\\n')):
            told = top_keys(queue)[key]
            for name in ("pending", "active", "delivered"):
                assert metrics.value(f"reprise_key_{name}", key=written, **labels) == told[name]

    def test_the_number_of_series_does_not_grow_with_the_keys(self, queue):
        keys = 300
        queue.push_jobs([{"payload": n, "fairness_key": f"k{n % keys}"} for n in range(2 * keys)])
        queue.claim(keys)
        metrics = read_metrics(queue.client)
        labels = {"namespace": queue.namespace, "queue": queue.name}
        assert metrics.value("reprise_queue_keys", **labels) == keys
        for name, total in (("pending", keys), ("active", keys), ("delivered", keys)):
            series = [dict(found) for sample, found in metrics.samples
                      if sample == f"reprise_key_{name}" and set(labels.items()) <= set(found)]
            assert len(series) <= TOP_KEYS_MAX + 1
            assert "other" in [found["key"] for found in series]
            assert metrics.sum(f"reprise_key_{name}", **labels) == total
        assert len(queue.stats()["keys"]["top"]) == TOP_KEYS_MAX

    def test_a_key_that_is_named_like_the_sum_makes_no_series_twice(self, queue):
        push_keyed(queue, "other", 5)
        push_keyed(queue, "acme", 5)
        queue.claim(4)
        metrics = read_metrics(queue.client)  # notices a series that is there twice
        labels = {"namespace": queue.namespace, "queue": queue.name}
        assert metrics.sum("reprise_key_pending", **labels) == 6
        assert metrics.sum("reprise_key_delivered", **labels) == 4

    def test_a_queue_without_named_keys_has_no_series_of_keys(self, queue):
        queue.push(1, 2)
        queue.claim_one()
        metrics = read_metrics(queue.client)
        labels = {"namespace": queue.namespace, "queue": queue.name}
        assert metrics.value("reprise_queue_keys", **labels) == 1
        assert not [found for sample, found in metrics.samples
                    if sample.startswith("reprise_key_") and set(labels.items()) <= set(found)]
