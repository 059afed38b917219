"""Dead letters: why each job died, and how to find it."""

import json
import re
import time

import pytest

from failing import claim_these, make_cooling, make_dead, make_dead_in_turn
from refusals import assert_refused
from times import assert_close, seconds_since_1970
from waiting import eventually

WRONG = ("invalid_field", "invalid_request")


@pytest.fixture
def patient(absent_queue):
    """A queue whose failed jobs may be retried."""
    return absent_queue.created(retry={"attempts": "unlimited"})


def envelope(queue, job_id):
    return queue.job(job_id)["dead_letter"]


def ids_of(jobs):
    return [job["id"] for job in jobs]


class TestEnvelope:
    def test_it_has_the_documented_shape(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 2})
        job_id = queue.push_one({"id": 1}, headers={"tenant": "a"}, priority=7, key="k1")
        queue.client.fail(queue.claim_one(worker="host-1"), error="refused", error_type="Net")
        queue.client.fail(eventually(lambda: queue.claim(worker="host-2"))[0], error="timeout")
        shown = queue.job(job_id)
        first, last = shown["history"]
        assert shown["dead_letter"] == {
            "event": {"id": job_id, "queue": "jobs", "namespace": queue.namespace,
                      "payload": {"id": 1}, "headers": {"tenant": "a"}, "priority": 7,
                      "fairness_key": "default", "weight": 1, "throttle_keys": [],
                      "key": "k1", "pushed_at": shown["pushed_at"]},
            "meta": {"attempts": 2, "generation": 1, "lastError": "timeout", "lastErrorType": None,
                     "firstAttemptAt": first["at"], "deadLetteredAt": shown["ended_at"],
                     "reason": "max_attempts", "decidedBy": "policy",
                     "history": [
                         {"at": first["at"], "worker": "host-1", "error": "refused",
                          "errorType": "Net", "outcome": "failed"},
                         {"at": last["at"], "worker": "host-2", "error": "timeout",
                          "errorType": None, "outcome": "failed"}]}}
        assert shown["reason"] == "max_attempts"
        assert_close(shown["ended_at"], time.time())

    def test_bytes_are_in_base64(self, queue):
        [pushed] = queue.push_jobs([{"payload_base64": "AAEC/w=="}])
        queue.client.fail(queue.claim_one(), final=True)
        event = envelope(queue, pushed["id"])["event"]
        assert event["payload_base64"] == "AAEC/w==" and "payload" not in event
        assert event["key"] is None and event["headers"] == {}

    def die(self, queue, reason):
        """A job that died of this."""
        job_id = queue.push_one(reason, **({"ttl": "100ms"} if reason == "expired" else {}))
        if reason == "lease_expired":
            queue.claim_one(lease="100ms")
        elif reason != "expired":
            queue.client.fail(queue.claim_one(), error="x", **{
                "max_attempts": {}, "final": {"final": True},
                "worker_lost": {"outcome": "worker_lost"}}[reason])
        eventually(lambda: queue.status_of(job_id) == "dead", "the job to die")
        return job_id

    @pytest.mark.parametrize("reason, by, outcomes", [
        ("max_attempts", "policy", ["failed"]), ("final", "client", ["failed"]),
        ("lease_expired", "policy", ["lease_expired"]),
        ("worker_lost", "policy", ["worker_lost"]), ("expired", "policy", [])])
    def test_every_reason_names_who_decided(self, queue, reason, by, outcomes):
        job_id = self.die(queue, reason)
        shown = queue.job(job_id)
        meta = shown["dead_letter"]["meta"]
        assert (meta["reason"], shown["reason"], meta["decidedBy"]) == (reason, reason, by)
        assert [entry["outcome"] for entry in meta["history"]] == outcomes
        assert meta["attempts"] == len(outcomes)
        assert (meta["firstAttemptAt"] is None) == (not outcomes)
        assert meta["deadLetteredAt"] == shown["ended_at"]

    def test_it_is_told_with_its_reason(self, queue, events):
        stream = events("queue:dead")
        for reason in ("max_attempts", "final", "lease_expired", "worker_lost", "expired"):
            job_id = self.die(queue, reason)
            event = stream.next().data
            assert (event["id"], event["reason"], event["dead_letter_queue"]) == (
                job_id, reason, None)

    def test_the_history_keeps_the_first_attempt_and_the_last_nine(self, absent_queue):
        queue = absent_queue.created(retry={"attempts": 15})
        job_id = queue.push_one(1)
        for attempt in range(1, 16):
            job = eventually(lambda: queue.claim(worker=f"worker {attempt}"))[0]
            queue.client.fail(job, error=f"error {attempt}", delay="0s")
        meta = envelope(queue, job_id)["meta"]
        kept = [1, *range(7, 16)]
        assert [entry["error"] for entry in meta["history"]] == [f"error {n}" for n in kept]
        assert [entry["worker"] for entry in meta["history"]] == [f"worker {n}" for n in kept]
        assert meta["attempts"] == 15
        assert meta["firstAttemptAt"] == meta["history"][0]["at"]
        times = [seconds_since_1970(entry["at"]) for entry in meta["history"]]
        assert times == sorted(times)

    def test_only_dead_jobs_have_one(self, patient):
        [cooling] = make_cooling(patient, "x")
        for job_id in (cooling, patient.push_one(1), patient.push_one(1, delay="1h")):
            assert patient.job(job_id).get("dead_letter") is None

    def test_it_survives_a_kill(self, server):
        queue = server.client().queue("q").created()
        [job_id] = make_dead(queue, "é\n\"x\"", headers={"a": "b"})
        before = queue.job(job_id)
        server.restart("kill")
        assert queue.through(server.client()).job(job_id) == before


@pytest.fixture
def graveyard(patient):
    """Dead jobs that differ in all that a filter can ask for; `names` has their payloads by id."""
    patient.names = {}
    api = patient.client

    def bury(name, error, headers=None, reason="final", **fields):
        job_id = patient.push_one(name, headers=headers or {})
        [job] = claim_these(patient, [job_id])
        if reason == "worker_lost":
            patient.patch(retry={"attempts": 1})
            api.fail(job, error=error, outcome="worker_lost", **fields)
            patient.patch(retry={"attempts": "unlimited"})
        else:
            api.fail(job, error=error, final=True, **fields)
        patient.names[job_id] = name
        return job_id

    bury("a", "timeout after 12 ms", {"tenant": "x", "kind": "1"}, error_type="Net")
    bury("b", "timeout after 345 ms", {"tenant": "y", "kind": "1"}, error_type="Net")
    bury("c", "refused: 100% é", {"tenant": "x"}, error_type="Tcp")
    bury("d", "timeout of the disk", reason="worker_lost")
    patient.push("pending", "pending too")
    return patient


def fingerprint_of(queue, part):
    [group] = [group for group in queue.errors()["groups"] if part in group["error"]]
    return group["fingerprint"]


# What each filter selects. A function stands for a value that only the server knows.
SELECTIONS = [
    ({"error": "timeout"}, "abd"), ({"error": "after 12 ms"}, "a"), ({"error": "100% é"}, "c"),
    ({"error": "nowhere"}, ""), ({"error_type": "Net"}, "ab"), ({"error_type": "Ne"}, ""),
    ({"reason": "worker_lost"}, "d"), ({"reason": "final"}, "abc"), ({"reason": "expired"}, ""),
    ({"headers": {"tenant": "x"}}, "ac"), ({"headers": {"tenant": "x", "kind": "1"}}, "a"),
    ({"headers": {"tenant": ""}}, ""),
    ({"fingerprint": lambda queue: fingerprint_of(queue, "after")}, "ab"),
    ({"fingerprint": "0123456789abcdef"}, ""),
    ({"older_than": "1h"}, ""), ({"older_than": "0s"}, "abcd"),
    ({"newer_than": "1h"}, "abcd"), ({"newer_than": "1h", "error": "refused"}, "c"),
    ({"error": "timeout", "headers": {"kind": "1"}, "reason": "final"}, "ab"), ({}, "abcd"),
]


def real_filter(queue, given):
    return {name: value(queue) if callable(value) else value for name, value in given.items()}


def in_words(part):
    return part or "none" if isinstance(part, str) else json.dumps(part, default=lambda _: "…")


@pytest.mark.parametrize("given, selected", SELECTIONS, ids=in_words)
class TestSelection:
    def test_browse(self, graveyard, given, selected):
        wanted = real_filter(graveyard, given)
        headers = {f"header.{name}": value for name, value in wanted.pop("headers", {}).items()}
        jobs = graveyard.all_jobs(status="dead", **wanted, **headers)
        assert "".join(job["payload"] for job in jobs) == selected
        newest = graveyard.all_jobs(status="dead", order="newest", limit=1, **wanted, **headers)
        assert "".join(job["payload"] for job in newest) == selected[::-1]

    @pytest.mark.parametrize("verb", ["retry", "purge"])
    def test_retry_and_purge(self, graveyard, given, selected, verb):
        wanted = real_filter(graveyard, given)
        act, done = getattr(graveyard, verb), {"retry": "retried", "purge": "purged"}[verb]
        preview = act(filter=wanted, dry_run=True)
        assert (preview["matched"], preview[done]) == (len(selected), 0)
        assert graveyard.counts() == {"dead": 4, "pending": 2}
        reply = act(filter=wanted)
        assert (reply[done], reply["skipped"], reply["not_found"]) == (len(selected), [], [])
        left = {name for job_id, name in graveyard.names.items()
                if graveyard.status_of(job_id) == "dead"}
        assert left == set("abcd") - set(selected)
        expected = {"dead": len(left), "pending": 2 + (verb == "retry") * len(selected)}
        assert graveyard.counts() == {name: count for name, count in expected.items() if count}


class TestBrowse:
    def test_status_and_lane(self, patient):
        dead = make_dead(patient, "x")
        cooling = make_cooling(patient, "y")
        pending = patient.push("p")
        later = patient.push("l", delay="1h")
        for status, ids in (("dead", dead), ("failed", cooling), ("pending", pending),
                            ("scheduled", later), ("active", []), ("completed", [])):
            assert ids_of(patient.all_jobs(status=status)) == ids
        assert ids_of(patient.all_jobs(lane="retry", status="failed")) == cooling
        assert ids_of(patient.all_jobs(lane="fresh", status="pending")) == pending
        assert ids_of(patient.all_jobs(lane="retry", status="pending")) == []

    def test_filters_find_failed_jobs_too(self, patient):
        one, two = make_cooling(patient, "timeout", "refused")
        assert ids_of(patient.all_jobs(status="failed", error="timeout")) == [one]
        assert ids_of(patient.all_jobs(error="e", newer_than="1h")) == [one, two]

    def test_ages_of_dead_jobs_count_from_their_death(self, patient):
        ids = patient.push("early", "late")
        jobs = claim_these(patient, ids)
        died = []
        for job in jobs:
            patient.client.fail(job, final=True)
            died.append(seconds_since_1970(patient.job(job["id"])["ended_at"]))
            if len(died) == 1:
                eventually(lambda: time.time() > died[0] + 1, "a second")
        # The early one is just old enough now, the late one will be in a second.
        age = f"{(time.time() - died[0]) * 1000 - 10:.0f}ms"
        assert ids_of(patient.jobs(status="dead", older_than=age)) == ids[:1]
        assert ids_of(patient.jobs(status="dead", newer_than="1h")) == ids
        age = f"{(time.time() - died[0]) * 1000 - 10:.0f}ms"
        assert ids_of(patient.jobs(status="dead", newer_than=age)) == ids[1:]
        age = f"{(time.time() - died[0]) * 1000 - 10:.0f}ms"
        assert patient.purge(filter={"older_than": age})["purged"] == 1
        assert ids_of(patient.jobs(status="dead")) == ids[1:]

    @pytest.mark.parametrize("limit", [1, 3, 50])
    def test_the_newest_death_comes_first(self, patient, limit):
        ids = patient.push(*range(8))
        jobs = claim_these(patient, ids)
        order = [3, 0, 7, 5, 1, 2, 6, 4]
        for number in order:
            patient.client.fail(jobs[number], final=True)
        listed = patient.all_jobs(status="dead", order="newest", limit=limit)
        assert [job["payload"] for job in listed] == order[::-1]
        assert ids_of(patient.all_jobs(status="dead", limit=limit)) == ids
        assert ids_of(patient.all_jobs(status="dead", order="push", limit=limit)) == ids

    def test_those_of_one_moment_are_all_listed_once(self, queue):
        ids = make_dead(queue, *["x"] * 100)
        listed = ids_of(queue.all_jobs(status="dead", order="newest", limit=7))
        assert len(listed) == 100 and set(listed) == set(ids)

    def test_a_cursor_of_the_newest_stays_valid_while_jobs_come_and_go(self, queue):
        ids = make_dead_in_turn(queue, *"abcdefgh")
        page = queue.client.get(queue.path("/jobs", status="dead", order="newest", limit=3))
        assert ids_of(page["jobs"]) == ids[:4:-1]
        make_dead(queue, "new")
        queue.purge(ids[5], ids[3])
        rest, cursor = [], page["cursor"]
        while cursor:
            page = queue.client.get(queue.path("/jobs", status="dead", order="newest", limit=2,
                                               cursor=cursor))
            rest += ids_of(page["jobs"])
            cursor = page["cursor"]
        assert rest == [ids[4], ids[2], ids[1], ids[0]]

    def test_the_newest_survive_a_kill(self, server):
        queue = server.client().queue("q").created()
        ids = make_dead_in_turn(queue, *"abcde")
        server.restart("kill")
        listed = queue.through(server.client()).all_jobs(status="dead", order="newest", limit=2)
        assert ids_of(listed) == ids[::-1]

    @pytest.mark.parametrize("params, name", [
        ({"order": "newest"}, "order"), ({"order": "newest", "status": "pending"}, "order"),
        ({"order": "oldest", "status": "dead"}, "order"), ({"status": "deadd"}, "status"),
        ({"lane": "slow"}, "lane"), ({"older_than": "7 parsecs"}, "older_than"),
        ({"newer_than": "-1s"}, "newer_than"), ({"reason": "boredom"}, "reason"),
        ({"limit": "0"}, "limit"), ({"limit": "1001"}, "limit"), ({"eror": "x"}, "eror"),
        ({"status": "dead", "cursor": "junk"}, "cursor")], ids=json.dumps)
    def test_a_bad_parameter_is_refused_by_its_name(self, queue, params, name):
        make_dead(queue, "x")
        assert_refused(queue, "GET", queue.path("/jobs", **params), None,
                       "unknown_field" if name in ("eror", "lim") else WRONG, name)


class TestErrors:
    @pytest.mark.parametrize("one, other", [
        ("timeout after 12 ms", "timeout after 34567 ms"),
        ("bad address 0x7f3a12", "bad address 0xdeadbeef"),
        ("order 3fa85f64-5717-4562-b3fc-2c963f66afa6 is gone",
         "order 11111111-aaaa-4bbb-8ccc-2c963f66afa7 is gone"),
        ("no file 'a.txt'", "no file 'some other.txt'"),
        ('no file "a.txt"', 'no file "b"'),
        ("status 500 after 1.25 s", "status 503 after 17.5 s"),
    ])
    def test_numbers_hex_ids_and_quoted_parts_count_as_equal(self, queue, one, other):
        make_dead(queue, one, other)
        [group] = queue.errors()["groups"]
        assert group["count"] == 2

    @pytest.mark.parametrize("one, other", [
        ("timeout", "refused"), ("cannot read 5", "cannot write 5"), ("a b", "a c"),
        ("timeout after 5 ms", "timeout after 5 s")])
    def test_what_differs_in_words_is_apart(self, queue, one, other):
        make_dead(queue, one, other)
        assert [group["count"] for group in queue.errors()["groups"]] == [1, 1]

    def test_a_group_has_the_documented_shape(self, patient):
        first, second, _ = make_dead_in_turn(
            patient, "timeout after 1 ms on host 'a'", "timeout after 2 ms on host 'b'", "other")
        [cooling] = make_cooling(patient, "timeout after 3 ms on host 'c'")
        reply = patient.errors()
        assert reply["other"] == 0 and len(reply["groups"]) == 2
        group = reply["groups"][0]
        assert set(group) == {"fingerprint", "count", "dead", "failed", "error", "error_type",
                              "first_seen", "last_seen", "example"}
        assert (group["count"], group["dead"], group["failed"]) == (3, 2, 1)
        assert re.fullmatch("[0-9a-f]{16}", group["fingerprint"])
        assert group["error"] == "timeout after <n> ms on host '<…>'"
        assert group["example"] in (first, second, cooling)
        assert group["first_seen"] == patient.job(first)["ended_at"]
        assert group["last_seen"] == patient.job(cooling)["history"][0]["ended_at"]

    def test_one_status_alone(self, patient):
        make_dead(patient, "a 1", "a 2", "b")
        make_cooling(patient, "a 3", "c")

        def counts(**params):
            groups = patient.errors(**params)["groups"]
            return {group["error"][0]: (group["count"], group["dead"], group["failed"])
                    for group in groups}
        assert counts() == {"a": (3, 2, 1), "b": (1, 1, 0), "c": (1, 0, 1)}
        assert counts(status="dead") == {"a": (2, 2, 0), "b": (1, 1, 0)}
        assert counts(status="failed") == {"a": (1, 0, 1), "c": (1, 0, 1)}

    def test_the_largest_come_first_and_the_rest_is_counted(self, queue):
        make_dead(queue, *["rare"] * 2, *["common"] * 5, *["single"], *["usual"] * 3)
        groups = queue.errors()["groups"]
        assert [group["error"] for group in groups] == ["common", "usual", "rare", "single"]
        reply = queue.errors(limit=2)
        assert [group["count"] for group in reply["groups"]] == [5, 3] and reply["other"] == 3

    def test_jobs_without_an_error_are_one_group(self, queue):
        queue.push(1, 2)
        for job in queue.claim(2):
            queue.client.fail(job)
        make_dead(queue, "x")
        assert sorted(group["count"] for group in queue.errors()["groups"]) == [1, 2]

    def test_a_fingerprint_is_the_same_everywhere(self, queue):
        other = queue.sibling("other").created()
        make_dead(queue, "timeout after 1 ms")
        make_dead(other, "timeout after 99 ms")
        assert (queue.errors()["groups"][0]["fingerprint"]
                == other.errors()["groups"][0]["fingerprint"])

    def test_retried_and_purged_jobs_leave_their_group(self, queue):
        ids = make_dead(queue, *["x"] * 3)
        queue.retry(ids[0])
        queue.purge(ids[1])
        assert [group["count"] for group in queue.errors()["groups"]] == [1]
        queue.drop(ids[2])
        assert queue.errors() == {"groups": [], "other": 0}

    @pytest.mark.parametrize("params, name", [({"status": "pending"}, "status"),
                                              ({"limit": 0}, "limit"), ({"limit": 1001}, "limit"),
                                              ({"lim": 1}, "lim")], ids=json.dumps)
    def test_a_bad_parameter_is_refused_by_its_name(self, queue, params, name):
        assert_refused(queue, "GET", queue.path("/errors", **params), None,
                       "unknown_field" if name in ("eror", "lim") else WRONG, name)
