"""Throttles: so many jobs in a time and no more, each token spent on a delivery and nothing else,
and nobody held up who needs none."""

import json
import time
from collections import Counter

import pytest

from background import claim_in_background, in_background
from hooking import on_enqueue
from metrics_text import read_metrics
from scheduling import (LONG_LEASE, Claimers, Throttles, assert_shares, assert_within_rate,
                        claim_sizes, keys_of, numbers_of, push_keyed)
from times import assert_close
from waiting import eventually, time_passes

WRONG = ("invalid_request", "invalid_field")
# So slow that no token comes while a test runs.
STILL = "1/h"
THROTTLES_MAX = 1000
METRICS_THROTTLES_MAX = 20
# What a token may have grown by since it was counted, at STILL.
NEARLY = 0.05


@pytest.fixture
def patient(absent_queue):
    """A queue whose failed jobs are retried at once and for ever."""
    return absent_queue.created(retry={"attempts": "unlimited"})


def waiting(queue, count):
    eventually(lambda: queue.stats()["waiting_claims"] == count, f"{count} waiting claims")


def payloads(jobs):
    return [job["payload"] for job in jobs]


def tokens(throttles, *keys):
    """What these buckets hold, in whole tokens; only for throttles that are STILL."""
    found = [throttles.tokens(key) for key in keys]
    assert found == pytest.approx([round(each) for each in found], abs=NEARLY)
    return [round(each) for each in found]


class TestSettings:
    def test_set_answers_in_the_documented_shape(self, throttles):
        reply = throttles.set("api", "100/s", 20)
        assert_close(reply.pop("updated_at"), time.time())
        assert reply == {"key": "api", "namespace": throttles.namespace, "rate": "100/s",
                         "burst": 20, "tokens": 20, "waiting": 0}

    def test_get_and_list_answer_the_same(self, throttles):
        assert throttles.list() == []
        replies = {key: throttles.set(key, "5/m", 3) for key in ("b", "a/b", "a", "B", "a:1")}
        for key, reply in replies.items():
            assert throttles.get(key) == reply
        assert throttles.list() == [replies[key] for key in sorted(replies)]

    def test_unset(self, throttles):
        throttles.set("api", "5/s")
        assert throttles.unset("api") == {"key": "api", "namespace": throttles.namespace,
                                          "deleted": True}
        for method in ("GET", "DELETE"):
            assert throttles.client.refused(method, throttles.path("api")) == (
                404, "throttle_not_found")
        assert throttles.list() == []

    @pytest.mark.parametrize("rate, burst", [
        ("100/s", 100), ("1/s", 1), ("30/m", 1), ("10/30s", 1), ("1/2s", 1), ("1/h", 1),
        ("600/m", 10), ("120/2m", 1), ("1000000/s", 1000000)])
    def test_without_a_burst_it_is_what_comes_in_a_second_and_at_least_1(self, throttles, rate,
                                                                         burst):
        reply = throttles.set("api", rate)
        assert (reply["rate"], reply["burst"], reply["tokens"]) == (rate, burst, burst)

    @pytest.mark.parametrize("burst", [1, 7, 1000000])
    def test_any_burst_up_to_a_million(self, throttles, burst):
        reply = throttles.set("api", STILL, burst)
        assert (reply["burst"], reply["tokens"]) == (burst, burst)

    @pytest.mark.parametrize("key", [
        "customer:42/a b", "ключ/é?#&+=", "a%2Fb", "%", "😀", " ", "a//b", "x" * 200,
        "é" * 100, "list", ";,\"'\\"], ids=lambda key: repr(key[:16]))
    def test_any_text_without_control_characters_is_a_key(self, queue, throttles, key):
        assert throttles.set(key, STILL, 1)["key"] == key
        assert throttles.get(key)["key"] == key and list(throttles.settings()) == [key]
        queue.push(1, 2, throttle_keys=[key])
        assert payloads(queue.claim(2)) == [1]
        throttles.unset(key)
        assert payloads(queue.claim(2)) == [2]

    @pytest.mark.parametrize("key", ["x" * 201, "é" * 100 + "x", "a\nb", "a\0b", "\x7f", "\x1b"],
                             ids=lambda key: repr(key[-8:]))
    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    def test_no_other_text_is(self, throttles, method, key):
        body = {"rate": "1/s"} if method == "PUT" else None
        assert throttles.client.refused(method, throttles.path(key), body) == (
            400, "invalid_field")
        assert throttles.list() == []

    def test_bytes_that_are_no_utf_8_are_no_key(self, throttles):
        path = throttles.path("KEY").replace("KEY", "a%FFb")
        reply = throttles.client.request("PUT", path, {"rate": "1/s"})
        assert reply.status == 400 and reply.code in WRONG, reply
        assert throttles.list() == []

    @pytest.mark.parametrize("method, key", [("POST", None), ("PUT", None), ("DELETE", None),
                                             ("POST", "a"), ("PATCH", "a")])
    def test_other_methods(self, throttles, method, key):
        reply = throttles.client.request(method, throttles.path(key), {"rate": "1/s"})
        assert (reply.status, reply.code) == (405, "method_not_allowed")
        assert "GET" in reply.headers["allow"]

    def test_namespaces_are_apart(self, api, namespace):
        one, two = (Throttles(api, namespace + suffix) for suffix in ("-a", "-b"))
        one.set("api", STILL, 1)
        assert two.list() == []
        two.set("api", STILL, 3)
        for throttles, given in ((one, 1), (two, 3)):
            queue = api.queue("q", throttles.namespace).created()
            queue.push(*range(5), throttle_keys=["api"])
            assert len(queue.claim(5)) == given
        two.unset("api")
        assert one.settings() == {"api": (STILL, 1)}
        assert len(api.queue("q", one.namespace).claim(5)) == 0

    def test_at_most_1000_in_a_namespace(self, server):
        def fill(first):
            throttles = Throttles(server.client(), "full")
            for number in range(first, THROTTLES_MAX, 8):
                throttles.set(f"key{number}", "1/s", number + 1)
        for filler in [in_background(fill, first) for first in range(8)]:
            filler.result(60)
        throttles = Throttles(server.client(), "full")
        assert throttles.client.refused("PUT", throttles.path("more"), {"rate": "1/s"}) == (
            429, "too_many_throttles")
        assert len(throttles.list()) == THROTTLES_MAX
        # One that is there can be changed, another namespace has room, and so has this one when
        # one goes.
        throttles.set("key7", "2/s")
        Throttles(throttles.client, "other").set("more", "1/s")
        throttles.unset("key8")
        throttles.set("more", "1/s")
        server.restart("kill")
        throttles = Throttles(server.client(), "full")
        assert len(throttles.list()) == THROTTLES_MAX
        assert throttles.client.refused("PUT", throttles.path("even.more"), {"rate": "1/s"}) == (
            429, "too_many_throttles")


BAD_RATES = ["", " ", "0/s", "-5/s", "+5/s", "1.5/s", "NaN/s", "inf/s", "1e3/s", "0x10/s", "100",
             "/s", "100/", "100/x", "100/0s", "100/-1s", "100/s/s", "100 per second", "1000001/s",
             "1001/ms", "99999999999999999999/s", "1/99999999999999999999d", "s/100"]
BAD_BURSTS = [0, -1, 1.5, 1000001, 1e300, "20", True, [], {}]


class TestRefusals:
    @pytest.fixture
    def held(self, throttles):
        throttles.set("api", STILL, 7)
        return throttles

    def assert_refused(self, held, body, codes, name):
        for key in ("api", "new"):
            before = held.list()
            reply = held.client.request("PUT", held.path(key), body)
            assert reply.status == 400 and reply.code in codes, reply
            assert name in reply.message, f"{name!r} is not named: {reply.message}"
            assert held.list() == before

    @pytest.mark.parametrize("rate", BAD_RATES, ids=repr)
    def test_a_rate_that_is_none(self, held, rate):
        self.assert_refused(held, {"rate": rate, "burst": 5}, ["invalid_field"], "rate")

    @pytest.mark.parametrize("rate", [100, None, True, ["1/s"], {}, 1.5], ids=json.dumps)
    def test_a_rate_of_another_type(self, held, rate):
        self.assert_refused(held, {"rate": rate}, WRONG, "rate")

    @pytest.mark.parametrize("burst", BAD_BURSTS, ids=json.dumps)
    def test_a_burst_that_is_none(self, held, burst):
        self.assert_refused(held, {"rate": "1/s", "burst": burst}, WRONG, "burst")

    @pytest.mark.parametrize("body, codes, name", [
        ({}, WRONG, "rate"), ({"burst": 5}, WRONG, "rate"), ([], WRONG, ""), (b"", WRONG, ""),
        (b"{", WRONG, ""), (b'{"rate": "1/s", "burst": NaN}', WRONG, ""),
        ({"rate": "1/s", "brust": 5}, ["unknown_field"], "brust"),
        ({"rate": "1/s", "tokens": 5}, ["unknown_field"], "tokens")], ids=repr)
    def test_a_body_that_is_none(self, held, body, codes, name):
        self.assert_refused(held, body, codes, name)


class TestBuckets:
    def test_a_new_throttle_gives_its_burst_and_then_nothing(self, queue, throttles):
        throttles.set("api", STILL, 5)
        queue.push(*range(10), throttle_keys=["api"])
        assert payloads(queue.claim(3)) == [0, 1, 2]
        assert tokens(throttles, "api") == [2]
        assert payloads(queue.claim(10)) == [3, 4]
        assert queue.claim(10) == [] and tokens(throttles, "api") == [0]

    def test_a_key_without_a_throttle_holds_nothing_back(self, queue):
        queue.push(*range(10), throttle_keys=["nobody", "set", "these"])
        assert len(queue.claim(10)) == 10

    def test_it_holds_for_jobs_that_were_there_before_it(self, queue, throttles):
        queue.push(*range(10), throttle_keys=["api"])
        assert len(queue.claim(2)) == 2
        throttles.set("api", STILL, 3)
        assert len(queue.claim(10)) == 3

    def test_the_burst_and_then_the_rate_and_never_more(self, queue, throttles):
        throttles.set("api", "50/s", 10)
        queue.push(*range(60), throttle_keys=["api"])
        started = time.monotonic()
        jobs = []
        while len(jobs) < 60:
            jobs += queue.claim(100, wait="5s", lease=LONG_LEASE)
            assert len(jobs) <= 10 + 50 * (time.monotonic() - started)
        assert payloads(jobs) == list(range(60))
        assert_within_rate(jobs, rate=50, burst=10)
        # 50 tokens had to come, and came when they should.
        assert 1.0 <= time.monotonic() - started < 5

    def test_1000_a_second_with_a_burst_of_1_are_1000_and_no_more(self, server):
        """A busy machine may hold up the claimers; then they try again. No run has more."""
        throttles, queue = Throttles(server.client()), server.client().queue("q").created()
        throttles.set("api", "1000/s", 1)
        rates = []
        while max(rates, default=0) < 700 and len(rates) < 3:
            for _ in range(3):
                queue.push(*range(1000), throttle_keys=["api"])
            with Claimers(queue, 128) as claimers:
                jobs, seconds = claimers.run(2)
            assert len({job["id"] for job in jobs}) == len(jobs) <= 1 + 1000 * seconds
            assert_within_rate(jobs, rate=1000, burst=1)
            rates.append(len(jobs) / seconds)
        assert max(rates) >= 700, rates

    def test_time_without_claims_is_not_saved_up_beyond_the_burst(self, queue, throttles):
        throttles.set("api", "1000/s", 2)
        queue.push(*range(900), throttle_keys=["api"])
        for _ in range(3):
            time_passes(time.time() + 0.12)
            started = time.monotonic()
            given = len(queue.claim(900))
            assert 2 <= given <= 2 + 1000 * (time.monotonic() - started)

    def test_tokens_grow_with_the_time_up_to_the_burst(self, queue, throttles):
        throttles.set("api", "4/s", 3)
        queue.push(*range(5), throttle_keys=["api"])
        assert len(queue.claim(3)) == 3
        seen = []
        eventually(lambda: seen.append(throttles.tokens("api")) or seen[-1] == 3, "a full bucket")
        assert seen == sorted(seen) and len(set(seen)) > 2

    def test_another_rate_keeps_the_tokens_up_to_the_new_burst(self, queue, throttles):
        throttles.set("api", STILL, 10)
        queue.push(*range(20), throttle_keys=["api"])
        queue.claim(4)
        throttles.set("api", "2/h", 10)
        assert tokens(throttles, "api") == [6]
        throttles.set("api", STILL, 3)
        assert tokens(throttles, "api") == [3]
        throttles.set("api", STILL, 10)
        assert tokens(throttles, "api") == [3]
        assert len(queue.claim(20)) == 3


class TestWaiting:
    def test_a_waiting_claim_is_answered_when_the_token_comes(self, queue, throttles):
        throttles.set("api", "4/s", 1)
        queue.push(*range(4), throttle_keys=["api"])
        started = time.monotonic()
        assert len(queue.claim(4)) == 1
        for number in (1, 2, 3):
            assert payloads(queue.claim(4, wait="30s")) == [number]
            assert number * 0.25 <= time.monotonic() - started < number * 0.25 + 2

    def test_unset_lets_all_go_at_once(self, queue, throttles):
        throttles.set("api", STILL, 1)
        queue.push(*range(50), throttle_keys=["api"])
        assert len(queue.claim(50)) == 1
        claim = claim_in_background(queue, max=100)
        waiting(queue, 1)
        throttles.unset("api")
        jobs = claim.result(5)
        assert jobs and len(jobs + queue.claim(100)) == 49

    def test_a_higher_rate_counts_at_once(self, queue, throttles):
        throttles.set("api", STILL, 1)
        queue.push(*range(10), throttle_keys=["api"])
        queue.claim(1)
        claim = claim_in_background(queue)
        waiting(queue, 1)
        throttles.set("api", "100/s", 1)
        assert payloads(claim.result(5)) == [1]

    def test_a_lower_rate_counts_at_once(self, queue, throttles):
        throttles.set("api", "1000/s", 5)
        queue.push(*range(50), throttle_keys=["api"])
        queue.claim(5)
        throttles.set("api", STILL, 5)
        queue.claim(50)
        assert queue.claim(50) == []

    def test_a_claim_that_waits_for_a_token_is_woken_by_a_job_that_needs_none(self, queue,
                                                                              throttles):
        throttles.set("api", STILL, 1)
        queue.push(1, 2, throttle_keys=["api"])
        queue.claim(2)
        claim = claim_in_background(queue)
        waiting(queue, 1)
        queue.push("free")
        assert payloads(claim.result(5)) == ["free"]

    def test_how_many_fairness_keys_wait_is_told(self, queue, throttles):
        throttles.set("api", STILL, 1)
        for key in ("a", "b", "c"):
            push_keyed(queue, key, 4, throttle_keys=["api"] if key != "c" else [])
        claim = claim_in_background(queue, max=1000)
        assert len(claim.result(5)) == 5
        claim = claim_in_background(queue)
        waiting(queue, 1)
        eventually(lambda: throttles.get("api")["waiting"] == 2, "two keys to wait")
        [listed] = throttles.list()
        assert (listed["waiting"], tokens(throttles, "api")) == (2, [0])
        throttles.set("api", "1000/s", 100)
        claim.result(5)
        eventually(lambda: (queue.claim(100), queue.counts())[1] == {"active": 12},
                   "all jobs to be given out")
        assert throttles.get("api")["waiting"] == 0


class TestSeveral:
    def test_a_job_takes_a_token_of_each_of_its_throttles_or_none_at_all(self, queue, throttles):
        throttles.set("wide", STILL, 5)
        throttles.set("narrow", STILL, 2)
        queue.push(*range(5), throttle_keys=["wide", "narrow"])
        assert payloads(queue.claim(10)) == [0, 1]
        assert queue.claim(10) == [] and queue.claim(10) == []
        assert tokens(throttles, "wide", "narrow") == [3, 0]
        queue.push(*"abcd", throttle_keys=["wide"])
        assert payloads(queue.claim(10)) == ["a", "b", "c"]
        assert tokens(throttles, "wide", "narrow") == [0, 0]

    def test_it_is_given_out_when_the_last_of_them_has_one(self, queue, throttles):
        for number in range(16):
            throttles.set(f"t{number}", STILL, 1 if number == 11 else 2)
        queue.push(1, 2, throttle_keys=[f"t{number}" for number in range(16)])
        assert payloads(queue.claim(2)) == [1]
        claim = claim_in_background(queue)
        waiting(queue, 1)
        throttles.set("t11", "20/s", 1)
        assert payloads(claim.result(5)) == [2]
        assert tokens(throttles, "t0", "t15") == [0, 0]

    def test_two_queues_share_a_throttle(self, queue, throttles):
        other = queue.sibling("other").created()
        throttles.set("api", STILL, 5)
        for each in (queue, other):
            each.push(*range(10), throttle_keys=["api"])
        assert len(queue.claim(3)) == 3 and len(other.claim(10)) == 2
        assert queue.claim(10) == other.claim(10) == []

    def test_queues_that_wait_for_the_same_one_take_turns(self, queue, throttles):
        queues = [queue, queue.sibling("other").created()]
        throttles.set("api", "40/s", 1)
        for each in queues:
            each.push(*range(60), throttle_keys=["api"])
        with Claimers(queues[0], 4) as first, Claimers(queues[1], 4) as second:
            running = [in_background(claimers.run, 1) for claimers in (first, second)]
            (one, _), (two, _) = [each.result(30) for each in running]
        assert_within_rate(one + two, rate=40, burst=1)
        assert min(len(one), len(two)) >= 0.3 * (len(one) + len(two)) > 5

    def test_fairness_keys_that_wait_for_one_get_its_tokens_by_their_weights(self, queue,
                                                                             throttles):
        throttles.set("api", "200/s", 1)
        weights = {"a": 1, "b": 3}
        for key, weight in weights.items():
            push_keyed(queue, key, 100, weight, throttle_keys=["api"])
        jobs = [queue.claim_one(wait="5s", lease=LONG_LEASE) for _ in range(100)]
        assert_shares(keys_of(jobs), weights, off=2)
        assert_within_rate(jobs, rate=200, burst=1)


class TestWhoIsNotHeldUp:
    def test_other_fairness_keys_are_not(self, queue, throttles):
        throttles.set("api", STILL, 2)
        push_keyed(queue, "held", 10, throttle_keys=["api"])
        push_keyed(queue, "a", 10)
        push_keyed(queue, "b", 10)
        jobs = claim_sizes(queue, [1] * 5 + [7, 10])
        assert Counter(keys_of(jobs)) == {"held": 2, "a": 10, "b": 10}
        assert_shares([key for key in keys_of(jobs) if key != "held"], {"a": 1, "b": 1}, off=2)
        assert queue.claim(10) == []

    def test_jobs_of_the_same_key_with_other_throttles_or_none_are_not(self, queue, throttles):
        throttles.set("slow", STILL, 1)
        throttles.set("quick", STILL, 100)
        for number in range(10):
            queue.push(["slow", number], fairness_key="acme", throttle_keys=["slow"])
            queue.push(["quick", number], fairness_key="acme", throttle_keys=["quick"])
            queue.push(["free", number], fairness_key="acme")
            queue.push(["both", number], fairness_key="acme", throttle_keys=["slow", "quick"])
        jobs = queue.claim(100)
        assert numbers_of(jobs, "slow") + numbers_of(jobs, "both") == [0]
        assert numbers_of(jobs, "quick") == numbers_of(jobs, "free") == list(range(10))
        throttles.unset("slow")
        jobs += queue.claim(100)
        assert numbers_of(jobs, "slow") == numbers_of(jobs, "both") == list(range(10))

    def test_jobs_with_the_same_throttles_and_the_same_key_stay_in_order(self, queue, throttles):
        throttles.set("api", "200/s", 3)
        expected = []
        for number in range(40):
            priority = number % 4
            queue.push(number, priority=priority, throttle_keys=["api"])
            expected.append((priority, number))
        jobs = []
        while len(jobs) < 40:
            jobs += queue.claim(5, wait="5s")
        assert payloads(jobs) == [number for _, number in sorted(expected)]

    def test_a_job_without_a_token_is_passed_over_whatever_its_priority(self, queue, throttles):
        throttles.set("api", STILL, 1)
        queue.push("first", "held", priority=0, throttle_keys=["api"])
        queue.push("free", priority=9)
        assert payloads(queue.claim(1)) == ["first"]
        assert payloads(queue.claim(1)) == ["free"]

    def test_neither_lane_holds_up_the_other(self, patient, throttles):
        patient.push(1, 2, throttle_keys=["api"])
        for job in patient.claim(2):
            patient.client.fail(job, delay="0s")
        eventually(lambda: patient.stats()["lanes"]["retry"] == 2, "the retries to be due")
        throttles.set("api", STILL, 1)
        patient.push(*"abc")
        assert sorted(map(str, payloads(patient.claim(10)))) == ["1", "a", "b", "c"]

    def test_a_key_that_was_held_up_is_owed_no_more_than_others(self, queue, throttles):
        """While it waited for tokens it was not served; it does not catch up afterwards."""
        throttles.set("api", STILL, 1)
        push_keyed(queue, "held", 100, throttle_keys=["api"])
        push_keyed(queue, "free", 200)
        claim_sizes(queue, [1] * 60)
        throttles.unset("api")
        assert_shares(keys_of(claim_sizes(queue, [1] * 60)), {"held": 1, "free": 1}, off=2)


class TestTokens:
    """A token is spent on a delivery and on nothing else."""

    def test_a_job_over_its_ttl_costs_none(self, queue, throttles):
        throttles.set("api", STILL, 2)
        queue.pause()
        ids = queue.push(*range(10), ttl="150ms", throttle_keys=["api"])
        queue.push("good", "better", "too many", throttle_keys=["api"])
        time_passes(time.time() + 0.2)
        queue.resume()
        jobs = []
        eventually(lambda: jobs.extend(queue.claim(10)) or len(jobs) >= 2, "the good jobs")
        assert payloads(jobs) == ["good", "better"] and queue.claim(10) == []
        eventually(lambda: {queue.status_of(job_id) for job_id in ids} == {"dead"}, "their deaths")
        assert tokens(throttles, "api") == [0]

    @pytest.mark.parametrize("end", ["release", "fail"])
    def test_one_that_was_started_does_not_give_it_back(self, patient, throttles, end):
        throttles.set("api", STILL, 3)
        patient.push(1, throttle_keys=["api"])
        for left in (2, 1, 0):
            [job] = eventually(patient.claim, "the job")
            getattr(patient.client, end)(job)
            assert tokens(throttles, "api") == [left]
        eventually(lambda: patient.counts() == {"pending": 1}, "the job to be due")
        assert patient.claim() == []

    def test_a_dropped_job_costs_none(self, queue, throttles):
        throttles.set("api", STILL, 1)
        dropped, _ = queue.push(1, 2, throttle_keys=["api"])
        queue.drop(dropped)
        assert payloads(queue.claim(2)) == [2]

    def test_what_a_paused_queue_or_a_full_one_keeps_costs_none(self, queue, throttles):
        throttles.set("api", STILL, 5)
        queue.push(*range(5), throttle_keys=["api"])
        queue.pause()
        assert queue.claim(5) == [] and tokens(throttles, "api") == [5]
        queue.resume()
        queue.patch(concurrency=2)
        assert len(queue.claim(5)) == 2 and queue.claim(5) == []
        assert tokens(throttles, "api") == [3]

    def test_throttle_keys_of_on_enqueue_count_the_same(self, hooked, throttles):
        queue = hooked(on_enqueue=on_enqueue(
            'return { throttle_keys = { "customer:" .. msg.headers.customer } }'))
        throttles.set("customer:a", STILL, 1)
        throttles.set("customer:b", STILL, 2)
        for customer in "abc":
            queue.push(*[[customer, n] for n in range(5)], headers={"customer": customer})
        assert Counter(keys_of(queue.claim(20))) == {"a": 1, "b": 2, "c": 5}


class TestMetrics:
    def test_tokens_and_waiting_keys(self, server):
        throttles, queue = Throttles(server.client()), server.client().queue("q").created()
        for number in range(30):
            throttles.set(f"idle{number}", STILL, 1)
        throttles.set('wan"ted', STILL, 5)
        for key in ("a", "b"):
            push_keyed(queue, key, 4, throttle_keys=['wan"ted'])
        assert len(queue.claim(10)) == 5
        claim_in_background(queue, wait="10s")
        waiting(queue, 1)
        labels = {"namespace": "default", "throttle": r'wan\"ted'}
        metrics = read_metrics(queue.client)
        assert metrics.value("reprise_throttle_tokens", **labels) == pytest.approx(0, abs=NEARLY)
        assert metrics.value("reprise_throttle_waiting", **labels) >= 1
        for name in ("tokens", "waiting"):
            assert len([1 for sample, _ in metrics.samples
                        if sample == f"reprise_throttle_{name}"]) == METRICS_THROTTLES_MAX
