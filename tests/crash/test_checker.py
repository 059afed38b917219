"""The checker of the crash test, on journals that a faulty server would leave behind."""

import copy

import pytest

from checker import KINDS
from journal import Journal, make_payload, outcome_of, read_journal
from story import QUEUE, Story, honest, kinds, moment


def test_an_honest_run_has_no_violations():
    assert kinds(honest(), honest().final(1, 1)) == set()


def test_doubts_are_not_violations():
    story = (honest().push("b", answered=False).lost_claim().at(40)
             .claim("B", "b", attempts=2, failures=1).ack("B-2", None)  # unknown, and it was done
             .push("c", answered=False))  # unknown, and it was not done
    assert kinds(story, story.final(2, 3)) == set()


def test_an_ack_in_doubt_may_be_done_again():
    story = Story().push("a", "A").claim("A", "a").ack("A-1", None)
    story.at(40).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == set()


def test_a_dead_job_is_not_lost():
    story = Story().push("a", "A").claim("A", "a").die("A-1")
    assert kinds(story, story.final(1, 1, dead=[("A", "a", 1)])) == set()


def test_a_lost_push_is_named():
    story = honest().push("b", "B")
    assert "lost" in kinds(story, story.final(1, 1))


def test_a_lost_push_is_named_even_when_the_job_was_delivered_once():
    story = honest().push("b", "B").claim("B", "b")
    assert "lost" in kinds(story, story.final(2, 2))


def test_a_resurrected_ack_is_named():
    story = honest().at(40).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert "resurrected" in kinds(story, story.final(1, 2))


def test_an_acked_job_among_the_dead_is_named():
    story = honest()
    assert "resurrected" in kinds(story, story.final(1, 1, dead=[("A", "a", 1)]))


def test_a_double_lease_is_named():
    story = Story().push("a", "A").claim("A", "a").at(10)
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"double_lease"}


@pytest.mark.parametrize("kind, status", [("fail", "retrying"), ("release", "released"),
                                          ("fail", None), ("release", None)])
def test_a_lease_that_was_given_back_is_no_double_lease(kind, status):
    story = Story().push("a", "A").claim("A", "a").at(10).end(kind, "A-1", status,
                                                              retry_at=moment(10))
    failures = 1 if kind == "fail" else 0
    story.claim("A", "a", attempts=2, failures=failures).ack("A-2")
    assert kinds(story, story.final(1, 2)) == set()


def test_an_extended_lease_counts_until_its_new_end():
    story = Story().push("a", "A").claim("A", "a")
    story.end("extend", "A-1", "extended", lease_expires_at=moment(100))
    story.at(50).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"double_lease"}


def test_a_shortened_lease_may_end_early():
    story = Story().push("a", "A").claim("A", "a")
    story.end("extend", "A-1", "extended", lease_expires_at=moment(5))
    story.at(6).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == set()


def test_a_wrong_payload_is_named():
    broken = make_payload("a") | {"filler": "flipped"}
    story = Story().push("a", "A").claim("A", "a", payload=broken).ack("A-1")
    assert kinds(story, story.final(1, 1)) == {"corrupted"}


def test_a_payload_of_another_job_is_named():
    story = Story().push("a", "A").push("b", "B").claim("A", "b").ack("A-1")
    story.claim("B", "b").ack("B-1")
    assert "corrupted" in kinds(story, story.final(2, 2))


def test_a_phantom_is_named():
    story = honest().claim("X", "never-pushed").ack("X-1")
    assert "phantom" in kinds(story, story.final(2, 2))


def test_two_jobs_under_one_key_are_named():
    story = Story().push("a", "A", key="k").push("b", "B", key="k")
    for job_id, name in (("A", "a"), ("B", "b")):
        story.claim(job_id, name).ack(f"{job_id}-1")
    assert kinds(story, story.final(2, 2)) == {"duplicate"}


def test_two_jobs_under_one_key_are_named_when_one_push_had_no_answer():
    story = Story().push("a", answered=False, key="k").push("b", "B", key="k")
    for job_id, name in (("A", "a"), ("B", "b")):
        story.claim(job_id, name).ack(f"{job_id}-1")
    assert kinds(story, story.final(2, 2)) == {"duplicate"}


def test_a_duplicate_that_names_another_job_is_named():
    story = honest().push("b", "B", key="k").push("c", "A", status="duplicate", key="k")
    story.claim("B", "b").ack("B-1")
    assert kinds(story, story.final(2, 2)) == {"duplicate"}


def test_a_repeated_attempt_number_is_named():
    story = Story().push("a", "A").claim("A", "a").end("release", "A-1", "released")
    story.claim("A", "a", attempts=1, token="another").ack("another")
    assert "wrong_attempts" in kinds(story, story.final(1, 2))


def test_an_attempt_that_nobody_made_is_named():
    story = Story().push("a", "A").claim("A", "a", attempts=2).ack("A-2")
    assert "wrong_attempts" in kinds(story, story.final(1, 2))


def test_failures_that_were_forgotten_are_named():
    story = Story().push("a", "A").claim("A", "a").fail("A-1")
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"wrong_attempts"}


def test_a_release_counted_as_a_failure_is_named():
    story = Story().push("a", "A").claim("A", "a").end("release", "A-1", "released")
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"wrong_attempts"}


def test_a_stale_token_that_was_accepted_is_named():
    story = Story().push("a", "A").claim("A", "a").at(40)
    story.claim("A", "a", attempts=2, failures=1).end("release", "A-1", "released").ack("A-2")
    assert "stale_token" in kinds(story, story.final(1, 2))


def test_a_second_ack_that_was_accepted_is_named():
    story = honest().ack("A-1")
    assert kinds(story, story.final(1, 1)) == {"stale_token"}


def test_a_job_delivered_before_it_was_due_is_named():
    story = Story().push("a", "A", delay=10).claim("A", "a").ack("A-1")
    assert kinds(story, story.final(1, 1)) == {"early"}


def test_a_job_delivered_after_its_death_is_named():
    story = Story().push("a", "A").claim("A", "a").die("A-1")
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert "resurrected" in kinds(story, story.final(1, 2))


@pytest.mark.parametrize("path, value", [
    (["pending"], 1), (["dead"], 1), (["completed"], 2), (["totals", "pushed"], 2),
    (["totals", "claimed"], 0), (["totals", "completed"], 0)])
def test_wrong_stats_are_named(path, value):
    final = copy.deepcopy(honest().final(1, 1))
    *parents, last = path
    node = final[QUEUE].stats
    for parent in parents:
        node = node[parent]
    node[last] = value
    assert kinds(honest(), final) == {"wrong_stats"}


# What the commands of people change.

def dead_once():
    return Story().push("a", "A").claim("A", "a").die("A-1")


@pytest.mark.parametrize("answer", ["done", "unknown"])
def test_a_retried_job_may_be_delivered_again(answer):
    story = dead_once().command("retry", "A", answer)
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == set()


def test_a_job_delivered_after_a_retry_that_was_refused_is_named():
    story = dead_once().command("retry", "A", "skipped")
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"resurrected"}


def test_failures_that_a_retry_did_not_forget_are_named():
    story = dead_once().command("retry", "A")
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == {"wrong_attempts"}


def test_a_retry_before_the_time_is_not_early():
    story = Story().push("a", "A").claim("A", "a").fail("A-1", wait=60).command("retry", "A")
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == set()


@pytest.mark.parametrize("answer", ["done", "unknown"])
def test_a_purged_job_is_not_lost(answer):
    story = dead_once().command("purge", "A", answer)
    assert kinds(story, story.final(1, 1, purged=1)) == set()


def test_a_purge_that_was_refused_loses_nothing():
    story = dead_once().command("purge", "A", "skipped")
    assert "lost" in kinds(story, story.final(1, 1, purged=1))


def test_a_job_delivered_after_its_purge_is_named():
    story = dead_once().command("retry", "A", "unknown").command("purge", "A")
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert "resurrected" in kinds(story, story.final(1, 2))


def test_claims_after_a_purge_in_doubt_say_nothing_about_it():
    story = dead_once().command("purge", "A", "unknown").lost_claim().command("retry", "A")
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == set()


# Leases and their time.

def test_a_token_refused_while_its_lease_lasts_is_named():
    story = Story().push("a", "A").claim("A", "a").end("ack", "A-1", "rejected")
    story.at(40).claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"double_lease"}


def test_a_token_accepted_after_its_lease_has_expired_is_named():
    story = Story().push("a", "A").claim("A", "a").at(40).ack("A-1")
    assert kinds(story, story.final(1, 1)) == {"stale_token"}


def test_a_retry_before_its_time_is_named():
    story = Story().push("a", "A").claim("A", "a").fail("A-1", wait=60)
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"early"}


def test_a_released_job_delivered_before_its_delay_is_over_is_named():
    story = Story().push("a", "A").claim("A", "a").end("release", "A-1", "released", {"delay": 5})
    story.claim("A", "a", attempts=2).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"early"}


# Deaths. The cap is four failures.

def failed_times(count):
    story = Story().push("a", "A")
    for attempt in range(1, count + 1):
        story.claim("A", "a", attempts=attempt, failures=attempt - 1)
        story.fail(f"A-{attempt}", "dead" if attempt == count else "retrying")
    return story


@pytest.mark.parametrize("failures, expected", [(3, {"wrong_death"}), (4, set())])
def test_a_job_that_dies_too_early_is_named(failures, expected):
    story = failed_times(failures)
    dead = [("A", "a", failures, failures, "max_attempts")]
    assert kinds(story, story.final(1, failures, dead)) == expected


def test_a_job_that_outlives_its_last_failure_is_named():
    story = failed_times(5)
    assert kinds(story, story.final(1, 5, [("A", "a", 5, 5, "max_attempts")])) == {"wrong_death"}


def test_a_dead_job_whose_reason_nobody_gave_is_named():
    story = Story().push("a", "A").claim("A", "a").fail("A-1", None)
    assert kinds(story, story.final(1, 1, [("A", "a", 1, 1, "final")])) == {"wrong_death"}


def test_a_final_failure_that_is_retried_is_named():
    story = Story().push("a", "A").claim("A", "a").fail("A-1", final=True)
    story.claim("A", "a", attempts=2, failures=1).ack("A-2")
    assert kinds(story, story.final(1, 2)) == {"wrong_death"}


def test_a_job_that_died_as_corrupt_is_named():
    story = Story().push("a", "A").claim("A", "a").die("A-1")
    assert kinds(story, story.final(1, 1, [("A", "a", 1, 1, "corrupt")])) == {"corrupted"}


# What is there and cannot be had, and what should not be there.

def test_a_job_that_is_never_handed_out_is_named():
    story = honest().push("b", "B")
    assert kinds(story, story.final(2, 1, left=[("B", "b", 0)])) == {"stuck"}


def test_a_job_whose_push_was_refused_is_named():
    story = honest().push("b", status="rejected").claim("B", "b").ack("B-1")
    assert kinds(story, story.final(2, 2)) == {"phantom"}


def test_a_priority_that_changed_is_named():
    story = Story().push("a", "A", priority=10).claim("A", "a", priority=11).ack("A-1")
    assert kinds(story, story.final(1, 1)) == {"corrupted"}


# Order.

def two_jobs(**second):
    return Story().push("a", "A").push("b", "B", **second)


def test_jobs_in_their_order_are_no_violation():
    story = two_jobs().claim("A", "a").claim("B", "b").ack("A-1").ack("B-1")
    assert kinds(story, story.final(2, 2)) == set()


def test_a_job_that_overtakes_an_earlier_one_is_named():
    story = two_jobs().claim("B", "b").claim("A", "a").ack("A-1").ack("B-1")
    assert kinds(story, story.final(2, 2)) == {"wrong_order"}


def test_a_job_that_comes_back_to_its_place_is_no_violation():
    story = two_jobs().claim("A", "a").end("release", "A-1", "released").claim("B", "b")
    story.claim("A", "a", attempts=2).ack("A-2").ack("B-1")
    assert kinds(story, story.final(2, 3)) == set()


def test_an_urgent_job_may_overtake():
    story = two_jobs(priority=10).claim("B", "b", priority=10).claim("A", "a")
    story.ack("A-1").ack("B-1")
    assert kinds(story, story.final(2, 2)) == set()


def test_an_urgent_job_that_has_to_wait_is_named():
    story = two_jobs(priority=10).claim("A", "a").claim("B", "b", priority=10)
    story.ack("A-1").ack("B-1")
    assert kinds(story, story.final(2, 2)) == {"wrong_order"}


def test_jobs_of_different_fairness_keys_have_no_order():
    story = two_jobs(fairness_key="acme").claim("B", "b").claim("A", "a").ack("A-1").ack("B-1")
    assert kinds(story, story.final(2, 2)) == set()


def test_pushes_at_the_same_time_have_no_order():
    story = two_jobs().claim("B", "b").claim("A", "a").ack("A-1").ack("B-1")
    story.entries[0].replied = story.entries[1].replied
    assert kinds(story, story.final(2, 2)) == set()


def test_claims_at_the_same_time_have_no_order():
    story = two_jobs().claim("B", "b").claim("A", "a").ack("A-1").ack("B-1")
    story.entries[2].replied = story.entries[3].replied
    assert kinds(story, story.final(2, 2)) == set()


def test_a_delayed_job_keeps_nobody_waiting():
    story = Story().push("a", "A", delay=1).push("b", "B").claim("B", "b").ack("B-1").at(2)
    story.claim("A", "a").ack("A-1")
    assert kinds(story, story.final(2, 2)) == set()


@pytest.mark.parametrize("order, expected", [("AB", set()), ("BA", {"wrong_order"})])
def test_jobs_of_one_push_have_their_order_in_one_claim(order, expected):
    story = Story().push_all([("a", "A"), ("b", "B")])
    story.claim_all(*((job_id, job_id.lower()) for job_id in order)).ack("A-1").ack("B-1")
    assert kinds(story, story.final(2, 2)) == expected


def test_jobs_of_one_push_have_their_order_across_claims():
    story = Story().push_all([("a", "A"), ("b", "B")]).claim("B", "b").claim("A", "a")
    story.ack("A-1").ack("B-1")
    assert kinds(story, story.final(2, 2)) == {"wrong_order"}


# Retries and purges by filter: what fits may be changed, what does not must not.

GROUP = {"name": "a", "group": "a"}


def dead_in_group(**failure):
    return Story().push("a", "A", headers=GROUP).claim("A", "a", headers=GROUP).fail(
        "A-1", "dead", final=True, error="boom", **failure)


FITTING = [{}, {"headers": {"group": "a"}}, {"error": "oo"}, {"reason": "final"},
           {"error_type": "Net"}, {"status": "dead"}]
NOT_FITTING = [{"headers": {"group": "b"}}, {"error": "bang"}, {"reason": "buried"},
               {"error_type": "Disk"}, {"headers": {"group": "a"}, "error": "bang"}]


@pytest.mark.parametrize("wanted, expected", [
    *((wanted, set()) for wanted in FITTING),
    *((wanted, {"resurrected"}) for wanted in (*NOT_FITTING, {"status": "failed"}))])
@pytest.mark.parametrize("count", [1, None])
def test_what_a_retry_by_filter_may_bring_back(wanted, expected, count):
    story = dead_in_group(error_type="Net").sweep("retry", wanted, count)
    story.claim("A", "a", attempts=2, failures=0, headers=GROUP).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == expected


@pytest.mark.parametrize("wanted, expected", [
    *((wanted, set()) for wanted in FITTING), *((wanted, {"lost"}) for wanted in NOT_FITTING)])
@pytest.mark.parametrize("count", [1, None])
def test_what_a_purge_by_filter_may_take(wanted, expected, count):
    story = dead_in_group(error_type="Net").sweep("purge", wanted, count)
    assert kinds(story, story.final(1, 1, purged=1)) == expected


def test_a_purge_by_filter_of_a_job_that_cannot_be_dead_is_named():
    story = Story().push("a", "A").claim("A", "a").fail("A-1").sweep("purge", {})
    assert kinds(story, story.final(1, 1, purged=1)) == {"lost"}


def test_a_purge_by_filter_may_take_what_died_by_leases_that_expired():
    story = Story().push("a", "A")
    for attempt in range(1, 5):
        story.at(40 * attempt).claim("A", "a", attempt, attempt - 1)
    story.at(200).sweep("purge", {})
    assert kinds(story, story.final(1, 4, purged=1)) == set()


def test_a_filter_takes_nothing_that_died_after_it():
    story = Story().push("a", "A").claim("A", "a").sweep("retry", {}, None).die("A-1")
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == {"resurrected"}


@pytest.mark.parametrize("limit, dead, expected", [
    (None, [("A", "a", 1)], {"resurrected"}), (None, [], set()), (1, [("A", "a", 1)], set())])
def test_what_a_purge_by_filter_must_have_taken_and_is_there_is_named(limit, dead, expected):
    purged = 1 - len(dead)
    story = dead_in_group().sweep("purge", {"headers": {"group": "a"}}, purged, limit=limit)
    assert kinds(story, story.final(1, 1, dead, purged=purged)) == expected


def test_a_job_that_may_have_been_retried_before_a_purge_may_be_dead_again():
    story = dead_in_group().sweep("retry", {}, None).lost_claim().sweep("purge", {}, 0)
    story.claim("A", "a", attempts=3, headers=GROUP).ack("A-3")
    assert kinds(story, story.final(1, 3, retried=1)) == set()


@pytest.mark.parametrize("filtered", [True, False])
def test_a_job_that_is_as_dead_as_before_its_retry_is_named(filtered):
    story = dead_once()
    story = story.sweep("retry", {}) if filtered else story.command("retry", "A")
    assert kinds(story, story.final(1, 1, [("A", "a", 1)], retried=1)) == {"stuck"}


def test_a_job_that_is_dead_after_its_purge_is_named():
    story = dead_once().command("purge", "A")
    assert "resurrected" in kinds(story, story.final(1, 1, [("A", "a", 1)]))


def test_more_jobs_than_a_filter_was_to_take_are_named():
    story = dead_once().sweep("retry", {}, 2, limit=1)
    story.claim("A", "a", attempts=2).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=2)) == {"wrong_stats"}


@pytest.mark.parametrize("kind, total", [("retry", "retried"), ("purge", "purged")])
@pytest.mark.parametrize("count, state, counted, expected", [
    (1, "done", 1, set()), (1, "done", 0, {"wrong_stats"}), (0, "done", 1, {"wrong_stats"}),
    (0, "running", 1, set()), (None, "", 1, set())])
def test_what_filters_took_is_counted(kind, total, count, state, counted, expected):
    story = dead_once().sweep(kind, {"error": ""}, count, state)
    story.entries[2].request["leases"][0]["error"] = "boom"
    if kind == "retry":
        story.claim("A", "a", attempts=2).ack("A-2")
    final = story.final(1, 2 if kind == "retry" else 1, **{total: 1})
    final[QUEUE].stats["totals"][total] = counted
    assert kinds(story, final) == expected


@pytest.mark.parametrize("kind", ["retry", "purge"])
@pytest.mark.parametrize("wanted, options", [
    ({"error": "bang"}, {}), ({"reason": "buried"}, {}), ({"headers": {"group": "b"}}, {}),
    ({"status": "failed"}, {}), ({}, {"state": "running"}), ({}, {"count": None}),
    ({}, {"limit": 1})])
def test_what_a_filter_need_not_have_taken_may_be_there(kind, wanted, options):
    story = dead_in_group().sweep(kind, wanted, **{"count": 0, **options})
    assert kinds(story, story.final(1, 1, [("A", "a", 1)])) == set()


def test_what_died_after_a_purge_by_filter_may_be_there():
    story = Story().push("a", "A").claim("A", "a").sweep("purge", {}, 0).die("A-1")
    assert kinds(story, story.final(1, 1, [("A", "a", 1)])) == set()


def test_an_error_that_came_after_a_filter_does_not_fit_it():
    story = dead_in_group().sweep("retry", {"error": "bang"}).claim("A", "a", 2, headers=GROUP)
    story.fail("A-2", "dead", final=True, error="bang")
    final = story.final(1, 2, [("A", "a", 2)], retried=1)
    assert kinds(story, final) == {"resurrected"}


def test_a_job_that_nobody_failed_for_good_does_not_fit_this_reason():
    story = failed_times(4).sweep("retry", {"reason": "final"}).claim("A", "a", 5, 0).ack("A-5")
    assert "resurrected" in kinds(story, story.final(1, 5, retried=1))


def test_claims_after_the_last_attempt_of_an_acked_job_are_not_its_own():
    story = dead_once().command("retry", "A").claim("A", "a", 2).lost_claim()
    story.sweep("purge", {}, None).ack("A-2")
    assert kinds(story, story.final(1, 3, retried=1)) == {"wrong_stats"}


def test_no_filter_ends_the_delay_of_a_push():
    story = Story().push("a", "A", delay=60).sweep("retry", {"status": "failed"}).claim("A", "a")
    assert kinds(story.ack("A-1"), story.final(1, 1, retried=1)) == {"early"}


def test_a_job_that_may_have_died_while_it_waited_may_be_brought_back():
    story = Story().push("a", "A").claim("A", "a").fail("A-1", wait=60).lost_claim()
    story.sweep("retry", {}).claim("A", "a", attempts=3, failures=0).ack("A-3")
    assert kinds(story, story.final(1, 3, retried=1)) == set()


# Failures may have been forgotten with any retry that fits; how long it waited may not.
@pytest.mark.parametrize("wanted, expected", [
    ({"status": "failed"}, set()), ({}, {"early"}),
    ({"status": "failed", "headers": {"group": "b"}}, {"early", "wrong_attempts"})])
def test_only_a_filter_for_failed_jobs_ends_their_wait(wanted, expected):
    story = Story().push("a", "A").claim("A", "a").fail("A-1", wait=60).sweep("retry", wanted)
    story.claim("A", "a", attempts=2, failures=0).ack("A-2")
    assert kinds(story, story.final(1, 2, retried=1)) == expected


# The journal.

def test_a_journal_is_read_as_it_was_written(tmp_path):
    journal = Journal(tmp_path / "journal")
    answered = journal.begin("push", QUEUE, {"jobs": []})
    unanswered = journal.begin("claim", QUEUE, {"max": 1})
    refused = journal.begin("claim", QUEUE, {"max": 1})
    cut_off = journal.begin("ack", "", {"leases": []})
    journal.lost(unanswered)
    journal.replied(answered, 200, {"results": []})
    journal.replied(refused, 503, {"error": {}})
    journal.sync()
    entries = read_journal(tmp_path / "journal")
    assert cut_off == len(entries)
    assert [entry.outcome for entry in entries] == ["replied", "unknown", "not_sent", "unknown"]
    assert [entry.kind for entry in entries] == ["push", "claim", "claim", "ack"]
    assert entries[0].sent <= entries[1].sent <= entries[1].lost <= entries[0].replied
    assert entries[3].over == float("inf")


@pytest.mark.parametrize("status, reply, outcome", [
    (200, {"results": []}, "replied"), (409, {"results": [], "error": {}}, "replied"),
    (404, {"purged": 0}, "replied"), (400, {"error": {}}, "not_sent"),
    (503, {"error": {}}, "not_sent"), (500, {"error": {}}, "unknown")])
def test_what_a_reply_says_about_its_request(status, reply, outcome):
    assert outcome_of(status, reply) == outcome


def test_every_kind_of_violation_is_tested_here():
    with open(__file__) as file:
        text = file.read()
    assert not [kind for kind in KINDS if f'"{kind}"' not in text]
