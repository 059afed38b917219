"""What is kept and for how long: dead jobs by age and number, finished ones for a while."""

import json
import time

import pytest

from failing import make_dead, make_dead_in_turn
from metrics_text import read_metrics
from refusals import assert_refused
from times import assert_close, seconds_since_1970
from waiting import eventually, holds_for

WRONG = ("invalid_field", "invalid_request")


def ids_of(jobs):
    return [job["id"] for job in jobs]


def total_and_metric(queue, name):
    value = read_metrics(queue.client).value(f"reprise_{name}_total", queue=queue.name,
                                             namespace=queue.namespace)
    return queue.totals().get(name, 0), value


class TestDead:
    def test_keep_dead_deletes_what_has_been_dead_for_so_long(self, absent_queue, events):
        queue = absent_queue.created(keep_dead="300ms")
        stream = events("queue:purged")
        ids = make_dead(queue, "a", "b")
        died = seconds_since_1970(queue.job(ids[0])["ended_at"])
        told = stream.take(2)
        assert {event.data["id"] for event in told} == set(ids)
        assert {event.data["cause"] for event in told} == {"keep_dead"}
        assert all(seconds_since_1970(event.data["at"]) >= died + 0.3 for event in told)
        eventually(lambda: queue.counts() == {}, "the dead to be deleted")
        assert total_and_metric(queue, "dead_expired") == (2, 2)
        assert total_and_metric(queue, "purged") == (0, 0)
        assert [queue.status_of(job_id) for job_id in ids] == [None, None]

    def test_max_dead_deletes_the_longest_dead(self, absent_queue, events):
        queue = absent_queue.created(max_dead=2)
        stream = events("queue:purged")
        ids = make_dead_in_turn(queue, *"abcde")
        told = stream.take(3)
        assert [event.data["id"] for event in told] == ids[:3]
        assert {event.data["cause"] for event in told} == {"max_dead"}
        eventually(lambda: queue.counts() == {"dead": 2}, "the oldest to be deleted")
        assert ids_of(queue.jobs(status="dead")) == ids[3:]
        assert total_and_metric(queue, "dead_evicted") == (3, 3)
        assert total_and_metric(queue, "dead_expired") == (0, 0)

    def test_they_count_for_jobs_that_were_dead_before(self, queue):
        ids = make_dead_in_turn(queue, *"abc")
        queue.patch(max_dead=1)
        eventually(lambda: queue.counts() == {"dead": 1}, "two to be deleted")
        assert queue.status_of(ids[2]) == "dead"
        queue.patch(keep_dead="1ms")
        eventually(lambda: queue.counts() == {}, "the last to be deleted")

    def test_a_job_that_was_brought_back_is_safe(self, absent_queue):
        queue = absent_queue.created(keep_dead="1500ms")
        kept, gone = make_dead(queue, "kept", "gone")
        queue.retry(kept)
        eventually(lambda: queue.status_of(gone) is None, "the other to be deleted")
        assert queue.status_of(kept) == "pending"
        assert queue.totals()["dead_expired"] == 1

    def test_without_them_the_dead_stay(self, queue):
        other = queue.sibling("other").created(keep_dead="1ms")
        make_dead(queue, "x")
        make_dead(other, "x")
        eventually(lambda: other.counts() == {}, "those of the other queue to be deleted")
        assert queue.counts() == {"dead": 1}

    def test_nothing_of_a_dead_job_is_deleted_early(self, absent_queue):
        queue = absent_queue.created(keep_dead="10m", max_dead=2)
        make_dead(queue, "a", "b")
        holds_for(lambda: queue.counts() == {"dead": 2}, 1.5, "two dead jobs", every=0.1)


class TestCompleted:
    def test_keep_completed_shows_finished_jobs(self, absent_queue):
        queue = absent_queue.created(keep_completed="1h")
        first, second, _ = queue.push("first", "second", "waiting")
        jobs = queue.claim(2, worker="w")
        for job in reversed(jobs):
            queue.client.ack(job)
        shown = queue.job(first)
        assert (shown["status"], shown["payload"], shown["worker"]) == ("completed", "first", None)
        assert_close(shown["ended_at"], time.time())
        [entry] = shown["history"]
        assert (entry["outcome"], entry["worker"]) == ("completed", "w")
        assert [job["payload"] for job in queue.all_jobs()] == ["waiting"]
        assert ids_of(queue.all_jobs(status="completed")) == [first, second]
        assert ids_of(queue.all_jobs(status="completed", order="newest", limit=1)) == [
            first, second]
        assert ids_of(queue.all_jobs(status="completed", older_than="1h")) == []
        stats = queue.stats()
        assert (stats["completed"], stats["completed_kept"]) == (2, 2)
        assert queue.counts() == {"pending": 1}
        assert queue.claim_one()["payload"] == "waiting" and queue.claim() == []

    def test_finished_jobs_take_no_room_and_can_be_dropped(self, absent_queue):
        queue = absent_queue.created(keep_completed="1h", max_jobs=1)
        job_id = queue.push_one("x" * 50)
        queue.client.ack(queue.claim_one())
        assert queue.stats()["bytes"] == 0
        queue.push("y")
        assert queue.drop(job_id)["status"] == "completed"
        assert queue.stats()["completed_kept"] == 0 and queue.status_of(job_id) is None

    def test_keep_completed_ends(self, absent_queue):
        queue = absent_queue.created(keep_completed="300ms")
        job_id = queue.push_one(1)
        queue.client.ack(queue.claim_one())
        assert queue.stats()["completed"] == 1
        eventually(lambda: queue.status_of(job_id) is None, "the finished job to go")
        eventually(lambda: queue.stats()["completed_kept"] == 0, "nothing to be kept")
        assert queue.stats()["completed"] == 1

    def test_without_it_nothing_is_kept(self, queue):
        job_id = queue.push_one(1)
        queue.client.ack(queue.claim_one())
        assert queue.status_of(job_id) is None and queue.stats()["completed_kept"] == 0


def test_the_clocks_go_on_after_a_kill(server):
    client = server.client()
    ends = client.queue("ends").created(keep_dead="1200ms", keep_completed="1200ms")
    stays = client.queue("stays").created(keep_dead="1h", keep_completed="1h", max_dead=5)
    for queue in (ends, stays):
        make_dead(queue, "x")
        queue.push(1)
        client.ack(queue.claim_one())
    kept = ids_of(stays.jobs(status="completed"))
    server.restart("kill")
    ends, stays = (queue.through(server.client()) for queue in (ends, stays))
    eventually(lambda: ends.counts() == {} and ends.stats()["completed_kept"] == 0,
               "the dead and the finished to go")
    assert ends.totals()["dead_expired"] == 1
    assert stays.counts() == {"dead": 1} and ids_of(stays.jobs(status="completed")) == kept
    assert stays.stats()["completed_kept"] == 1


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("config, name", [
    ({"keep_dead": "7 parsecs"}, "keep_dead"), ({"keep_dead": -1}, "keep_dead"),
    ({"keep_dead": True}, "keep_dead"), ({"max_dead": -1}, "max_dead"),
    ({"max_dead": "5"}, "max_dead"), ({"max_dead": 1.5}, "max_dead"),
    ({"keep_completed": "soon"}, "keep_completed"), ({"keep_completed": {}},
                                                     "keep_completed"),
    ({"keep_completed": "-1s"}, "keep_completed"), ({"keepdead": "1d"}, "keepdead")],
    ids=json.dumps)
def test_a_bad_value_is_refused_by_its_name_and_deletes_nothing(absent_queue, method,
                                                                config, name):
    queue = absent_queue.created(keep_dead="1h", max_dead=10)
    make_dead(queue, "x")
    assert_refused(queue, method, queue.path(), config,
                   "unknown_field" if name == "keepdead" else WRONG, name)
