"""The checker of the crash test, on journals that a faulty server would leave behind."""

import copy
import time

import pytest

from checker import Final, check
from journal import Entry, make_payload

START = 1_700_000_000.0
LEASE_SECONDS = 30.0


def moment(seconds):
    """START + seconds as the API writes it."""
    at = START + seconds
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{whole}.{round(at % 1 * 1000) % 1000:03}Z"


class Story:
    """A journal written by hand. Each request takes 10 ms of its time."""

    def __init__(self):
        self.entries = []
        self.now = 0.0

    def at(self, seconds):
        self.now = seconds
        return self

    def add(self, kind, request, reply):
        entry = Entry(kind, request, START + self.now)
        if reply is not None:
            entry.outcome, entry.status, entry.reply = "replied", 200, reply
            entry.replied = START + self.now + 0.01
        self.entries.append(entry)
        self.now += 0.02
        return self

    def push(self, name, job_id=None, answered=True, status="pushed", **fields):
        job = {"payload": make_payload(name), "headers": {"name": name}, **fields}
        reply = {"results": [{"index": 0, "status": status, "id": job_id}]} if answered else None
        return self.add("push", {"jobs": [job]}, reply)

    def claim(self, job_id, name, attempts=1, failures=0, token=None, payload=None):
        job = {"id": job_id, "token": token or f"{job_id}-{attempts}", "attempts": attempts,
               "failures": failures, "payload": payload or make_payload(name),
               "headers": {"name": name},
               "lease_expires_at": moment(self.now + LEASE_SECONDS)}
        return self.add("claim", {"max": 1}, {"jobs": [job]})

    def lost_claim(self):
        return self.add("claim", {"max": 1}, None)

    def end(self, kind, token, status=None, **fields):
        reply = {"results": [{"index": 0, "status": status, **fields}]} if status else None
        return self.add(kind, {"leases": [{"token": token, "lease": 1.0}]}, reply)

    def ack(self, token, status="acked"):
        return self.end("ack", token, status)

    def final(self, pushed, claimed, dead=()):
        """What an honest server would say at the end."""
        done = pushed - len(dead)
        stats = {"scheduled": 0, "pending": 0, "active": 0, "failed": 0, "dead": len(dead),
                 "completed": done,
                 "totals": {"pushed": pushed, "claimed": claimed, "completed": done,
                            "died": len(dead), "dropped": 0, "expired": 0}}
        listed = [{"id": job_id, "attempts": attempts, "payload": make_payload(name)}
                  for job_id, name, attempts in dead]
        return Final(stats, listed)


def promises(story, final):
    return {violation.promise for violation in check(story.entries, final)}


def honest():
    return Story().push("a", "A").claim("A", "a").ack("A-1")


def test_an_honest_run_has_no_violations():
    assert promises(honest(), honest().final(1, 1)) == set()


def test_doubts_are_not_violations():
    story = (honest().push("b", answered=False).lost_claim().at(40)
             .claim("B", "b", attempts=2, failures=1).ack("B-2", None)  # unknown, and it was done
             .push("c", answered=False))  # unknown, and it was not done
    assert promises(story, story.final(2, 3)) == set()


def test_an_ack_in_doubt_may_be_done_again():
    story = Story().push("a", "A").claim("A", "a").ack("A-1", None)
    story.at(40).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert promises(story, story.final(1, 2)) == set()


def test_a_dead_job_is_not_lost():
    story = Story().push("a", "A").claim("A", "a").end("fail", "A-1", "dead")
    assert promises(story, story.final(1, 1, dead=[("A", "a", 1)])) == set()


def test_a_lost_push_is_named():
    story = honest().push("b", "B")
    assert "acknowledged push kept" in promises(story, story.final(1, 1))


def test_a_lost_push_is_named_even_when_the_job_was_delivered_once():
    story = honest().push("b", "B").claim("B", "b")
    assert "acknowledged push kept" in promises(story, story.final(2, 2))


def test_a_resurrected_ack_is_named():
    story = honest().at(40).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert "ack is final" in promises(story, story.final(1, 2))


def test_an_acked_job_among_the_dead_is_named():
    story = honest()
    assert "ack is final" in promises(story, story.final(1, 1, dead=[("A", "a", 1)]))


def test_a_double_lease_is_named():
    story = Story().push("a", "A").claim("A", "a").at(10)
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert promises(story, story.final(1, 2)) == {"one live lease"}


@pytest.mark.parametrize("kind, status", [("fail", "retrying"), ("release", "released"),
                                          ("fail", None), ("release", None)])
def test_a_lease_that_was_given_back_is_no_double_lease(kind, status):
    story = Story().push("a", "A").claim("A", "a").at(10).end(kind, "A-1", status)
    failures = 1 if kind == "fail" else 0
    story.claim("A", "a", attempts=2, failures=failures).ack("A-2")
    assert promises(story, story.final(1, 2)) == set()


def test_an_extended_lease_counts_until_its_new_end():
    story = Story().push("a", "A").claim("A", "a")
    story.end("extend", "A-1", "extended", lease_expires_at=moment(100))
    story.at(50).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert promises(story, story.final(1, 2)) == {"one live lease"}


def test_a_shortened_lease_may_end_early():
    story = Story().push("a", "A").claim("A", "a")
    story.end("extend", "A-1", "extended", lease_expires_at=moment(5))
    story.at(6).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert promises(story, story.final(1, 2)) == set()


def test_a_wrong_payload_is_named():
    broken = make_payload("a") | {"filler": "flipped"}
    story = Story().push("a", "A").claim("A", "a", payload=broken).ack("A-1")
    assert promises(story, story.final(1, 1)) == {"payload intact"}


def test_a_payload_of_another_job_is_named():
    story = Story().push("a", "A").push("b", "B").claim("A", "b").ack("A-1")
    story.claim("B", "b").ack("B-1")
    assert "payload intact" in promises(story, story.final(2, 2))


def test_a_phantom_is_named():
    story = honest().claim("X", "never-pushed").ack("X-1")
    assert "no phantom" in promises(story, story.final(2, 2))


def test_two_jobs_under_one_key_are_named():
    story = Story().push("a", "A", key="k").push("b", "B", key="k")
    for job_id, name in (("A", "a"), ("B", "b")):
        story.claim(job_id, name).ack(f"{job_id}-1")
    assert promises(story, story.final(2, 2)) == {"one job per key"}


def test_two_jobs_under_one_key_are_named_when_one_push_had_no_answer():
    story = Story().push("a", answered=False, key="k").push("b", "B", key="k")
    for job_id, name in (("A", "a"), ("B", "b")):
        story.claim(job_id, name).ack(f"{job_id}-1")
    assert promises(story, story.final(2, 2)) == {"one job per key"}


def test_a_duplicate_that_names_another_job_is_named():
    story = honest().push("b", "B", key="k").push("c", "A", status="duplicate", key="k")
    story.claim("B", "b").ack("B-1")
    assert promises(story, story.final(2, 2)) == {"one job per key"}


def test_a_repeated_attempt_number_is_named():
    story = Story().push("a", "A").claim("A", "a").end("release", "A-1", "released")
    story.claim("A", "a", attempts=1, token="another").ack("another")
    assert "attempts exact" in promises(story, story.final(1, 2))


def test_an_attempt_that_nobody_made_is_named():
    story = Story().push("a", "A").claim("A", "a", attempts=2).ack("A-2")
    assert "attempts exact" in promises(story, story.final(1, 2))


def test_failures_that_were_forgotten_are_named():
    story = Story().push("a", "A").claim("A", "a").end("fail", "A-1", "retrying")
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert promises(story, story.final(1, 2)) == {"failures exact"}


def test_a_release_counted_as_a_failure_is_named():
    story = Story().push("a", "A").claim("A", "a").end("release", "A-1", "released")
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert promises(story, story.final(1, 2)) == {"failures exact"}


def test_a_stale_token_that_was_accepted_is_named():
    story = Story().push("a", "A").claim("A", "a").at(40)
    story.claim("A", "a", attempts=2, failures=1).end("release", "A-1", "released").ack("A-2")
    assert "stale token refused" in promises(story, story.final(1, 2))


def test_a_second_ack_that_was_accepted_is_named():
    story = honest().ack("A-1")
    assert promises(story, story.final(1, 1)) == {"stale token refused"}


def test_a_job_delivered_before_it_was_due_is_named():
    story = Story().push("a", "A", delay=10).claim("A", "a").ack("A-1")
    assert promises(story, story.final(1, 1)) == {"delays kept"}


def test_a_job_delivered_after_its_death_is_named():
    story = Story().push("a", "A").claim("A", "a").end("fail", "A-1", "dead")
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert "dead is final" in promises(story, story.final(1, 2))


@pytest.mark.parametrize("path, value", [
    (["pending"], 1), (["dead"], 1), (["completed"], 2), (["totals", "pushed"], 2),
    (["totals", "claimed"], 0), (["totals", "completed"], 0)])
def test_wrong_stats_are_named(path, value):
    final = copy.deepcopy(honest().final(1, 1))
    *parents, last = path
    node = final.stats
    for parent in parents:
        node = node[parent]
    node[last] = value
    assert promises(honest(), final) == {"stats true"}
