"""The checker of the crash test, on journals of clients that speak the beanstalk protocol."""

import base64
import json

import pytest

from ids import job_id_of
from journal import brief, briefly, make_payload
from story import LEASE_SECONDS, QUEUE, Story, kinds
from workload import DEFAULT_PRIORITY


def test_a_number_is_an_id():
    assert [job_id_of(number) for number in (1, 2)] == ["5D4GP3M80P1F5", "DQMHRJWX2P54A"]


def test_payloads_that_came_as_bytes_are_read():
    body = base64.b64encode(json.dumps(make_payload("a")).encode()).decode()
    [job, damaged] = briefly([{"id": "A", "payload_base64": body}, {"payload_base64": "AAAA"}])
    assert job == {"id": "A", "payload": brief(make_payload("a"))}
    assert "damaged" in damaged["payload"]


def reserved(**fields):
    return Story().push("a", "A", ttr=LEASE_SECONDS).reserve("A", "a", **fields)


def test_an_honest_run_through_tubes_has_no_violations():
    story = reserved().touch("A-1").delete("A-1").push("b", "B").reserve("B", "b")
    story.settle("fail", "B-1", "retrying", error="boom").at(10).reserve("B", "b", 2)
    story.settle("release", "B-2", "released", priority=5, delay=1).at(20)
    story.reserve("B", "b", 3, priority=5).bury("B-3").kick(1).claim("B", "b", 4, priority=1000)
    story.ack("B-4")
    assert kinds(story, story.final(2, 5, retried=1)) == set()


def test_a_job_is_anybodys_when_the_connection_has_ended():
    story = reserved().hang_up("A-1").claim("A", "a", 2).ack("A-2")
    assert kinds(story, story.final(1, 2)) == set()


def test_a_job_reserved_before_its_time_to_run_is_over_is_named():
    story = reserved().at(10).reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2)) == {"double_lease"}


def test_a_touched_job_is_held_for_its_whole_time_again():
    story = reserved().at(20).touch("A-1").at(40).reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2)) == {"double_lease"}


@pytest.mark.parametrize("at, expected", [(49, set()), (51, {"stale_token"})])
def test_how_long_a_touched_job_may_be_used(at, expected):
    story = reserved().at(20).touch("A-1").at(at).settle("release", "A-1", "released")
    story.reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2)) == expected


@pytest.mark.parametrize("at, expected", [(1, {"wrong_attempts"}), (40, set())])
def test_a_connection_that_ends_counted_as_a_failure_is_named(at, expected):
    story = reserved().hang_up("A-1").at(at).claim("A", "a", 2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == expected


def test_a_failure_in_doubt_may_count_though_the_connection_ended():
    story = reserved().settle("fail", "A-1").hang_up("A-1").at(1)
    story.claim("A", "a", 2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == set()


@pytest.mark.parametrize("kind, status", [("extend", "extended"), ("release", "released"),
                                          ("fail", "retrying")])
def test_a_number_that_is_good_on_another_connection_is_named(kind, status):
    story = reserved().hang_up("A-1").settle(kind, "A-1", status, lease=LEASE_SECONDS)
    story.at(40).claim("A", "a", 2, failures=1 if kind == "fail" else 0).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"stale_token"}


def test_a_reserved_job_that_is_not_held_is_named():
    story = reserved(held=False)
    assert "double_lease" in kinds(story, story.final(1, 1, left=[("A", "a", 1)]))


def test_a_time_to_run_that_changed_is_named():
    story = reserved(ttr=31).delete("A-1")
    assert kinds(story, story.final(1, 1)) == {"corrupted"}


def test_a_job_from_another_tube_is_named():
    story = reserved(queue="shared").delete("A-1")
    assert "phantom" in kinds(story, story.final(1, 1))


@pytest.mark.parametrize("queues, expected", [
    (["shared", QUEUE], set()), (["shared"], {"wrong_attempts"})])
def test_a_reserve_in_doubt_may_have_been_of_any_tube_it_watched(queues, expected):
    story = Story().push("a", "A").lost_reserve(*queues).reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2)) == expected


# A delete of a job that nobody holds is a drop.

def test_a_delete_after_the_end_of_the_lease_may_be_a_drop():
    story = reserved().at(40).delete("A-1")
    assert kinds(story, story.final(1, 1, dropped=1)) == set()


def test_a_drop_of_a_job_that_was_held_is_named():
    story = reserved().at(10).delete("A-1")
    assert kinds(story, story.final(1, 1, dropped=1)) == {"wrong_stats"}


@pytest.mark.parametrize("at, expected", [(41, {"stale_token", "double_lease"}), (80, set())])
def test_a_delete_of_what_another_holds_is_named(at, expected):
    story = reserved().at(40).reserve("A", "a", 2).at(at).delete("A-1").delete("A-2", "rejected")
    assert kinds(story, story.final(1, 2, dropped=1)) == expected


def test_a_job_reserved_after_its_drop_is_named():
    story = reserved().at(40).delete("A-1").reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2, dropped=1)) == {"resurrected", "stale_token"}


def test_a_second_delete_that_was_accepted_is_named():
    story = reserved().delete("A-1").at(40).delete("A-1")
    assert kinds(story, story.final(1, 1)) == {"stale_token"}


# Failures, of which the protocol does not tell how many there were.

def test_a_failed_job_reserved_before_its_cooldown_is_over_is_named():
    story = reserved().settle("fail", "A-1", "retrying").reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2)) == {"early"}


def failed_through_tubes(count, last):
    story = Story().push("a", "A")
    for attempt in range(1, count + 1):
        story.at(attempt).reserve("A", "a", attempt)
        story.settle("fail", f"A-{attempt}", last if attempt == count else "retrying")
    return story


@pytest.mark.parametrize("failures, expected", [(2, {"wrong_death"}), (4, set())])
def test_a_job_that_dies_too_early_through_tubes_is_named(failures, expected):
    story = failed_through_tubes(failures, "dead")
    final = story.final(1, failures, [("A", "a", failures, 4, "max_attempts")])
    assert kinds(story, final) == expected


@pytest.mark.parametrize("failures, expected", [(4, {"wrong_death"}), (3, set())])
def test_a_job_that_outlives_its_last_failure_through_tubes_is_named(failures, expected):
    story = failed_through_tubes(failures, "retrying").at(10).reserve("A", "a", failures + 1)
    story.delete(f"A-{failures + 1}")
    assert kinds(story, story.final(1, failures + 1)) == expected


# Burials, kicks and priorities.

@pytest.mark.parametrize("failures, expected", [(0, set()), (1, {"wrong_attempts"})])
def test_a_burial_that_counts_as_a_failure_is_named(failures, expected):
    story = reserved().bury("A-1")
    assert kinds(story, story.final(1, 1, [("A", "a", 1, failures, "buried")])) == expected


@pytest.mark.parametrize("failures, expected", [(0, set()), (1, {"wrong_attempts"})])
def test_a_kicked_job_that_has_failures_of_its_burial_is_named(failures, expected):
    story = reserved().bury("A-1").kick(1).claim("A", "a", 2, failures).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == expected


def test_a_job_that_nobody_buried_is_named():
    story = reserved().settle("fail", "A-1")
    assert kinds(story, story.final(1, 1, [("A", "a", 1, 1, "buried")])) == {"wrong_death"}


def test_a_buried_job_reserved_without_a_kick_is_named():
    story = reserved().bury("A-1").reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2)) == {"resurrected"}


def test_a_buried_job_that_is_retried_by_itself_is_named():
    story = reserved().bury("A-1", "retrying").at(5).reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2)) == {"wrong_death"}


def test_more_jobs_than_were_to_be_kicked_are_named():
    story = reserved().bury("A-1").kick(2, most=1).reserve("A", "a", 2).delete("A-2")
    assert kinds(story, story.final(1, 2, retried=2)) == {"wrong_stats"}


@pytest.mark.parametrize("kicked, expected", [(1, set()), (None, {"early"})])
def test_a_kick_ends_a_delay(kicked, expected):
    story = Story().push("a", "A", delay=60)
    story = story.kick(kicked) if kicked else story
    story.reserve("A", "a").settle("release", "A-1", "released", delay=0).reserve("A", "a", 2)
    story.delete("A-2")
    assert kinds(story, story.final(1, 2, retried=kicked or 0)) == expected


@pytest.mark.parametrize("how", ["release", "fail"])
@pytest.mark.parametrize("status, priority, expected", [
    ("done", 5, set()), ("done", DEFAULT_PRIORITY, {"corrupted"}), (None, 5, set()),
    (None, DEFAULT_PRIORITY, set()), (None, 6, {"corrupted"})])
def test_the_priority_that_a_job_was_given_back_with(how, status, priority, expected):
    done = {"release": "released", "fail": "dead"}[how]
    story = reserved().settle(how, "A-1", status and done, priority=5, bury=how == "fail")
    story.hang_up("A-1").kick(int(how == "fail")).reserve("A", "a", 2, priority).delete("A-2")
    assert kinds(story, story.final(1, 2, retried=int(how == "fail"))) == expected


@pytest.mark.parametrize("priority, expected", [(5, set()), (9, {"wrong_order"})])
def test_a_job_has_its_place_by_the_priority_that_it_was_given_back_with(priority, expected):
    story = Story().push("a", "A", priority=3).push("b", "B", priority=7)
    story.claim("A", "a", priority=3).settle("release", "A-1", "released", priority=priority)
    story.claim("A", "a", 2, priority=priority).claim("B", "b", priority=7).ack("A-2").ack("B-1")
    assert kinds(story, story.final(2, 3)) == expected


def test_a_job_reserved_before_an_earlier_one_is_named():
    story = Story().push("a", "A").push("b", "B").reserve("B", "b").reserve("A", "a")
    story.delete("A-1").delete("B-1")
    assert kinds(story, story.final(2, 2)) == {"wrong_order"}
