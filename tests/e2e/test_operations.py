"""Operations: retries and purges that the server works off, paced, watched, cancelled, across
restarts."""

import time

import pytest

from background import in_background
from failing import make_cooling, make_dead
from metrics_text import read_metrics
from reprise_http import Client
from times import assert_close, seconds_since_1970
from waiting import eventually, holds_for

DONE = {"retry": "retried", "purge": "purged"}
FIELDS = {"id", "kind", "namespace", "queue", "state", "filter", "limit", "rate", "total", "done",
          "skipped", "by", "started_at", "ended_at", "error"}


def begin(queue, verb="retry", rate="1/h", **fields):
    """Starts an operation that takes a while; its object."""
    reply = getattr(queue, verb)(filter=fields.pop("filter", {}), rate=rate, status=202, **fields)
    assert reply["operation"]["state"] == "running"
    return reply["operation"]


def ended(client, operation, timeout=15):
    """The operation once it does not run any more."""
    def look():
        shown = client.operation(operation["id"])
        return shown if shown["state"] != "running" else None
    return eventually(look, "the operation to end", timeout)


def most_within_a_second(moments):
    moments = sorted(moments)
    return max(sum(start <= moment < start + 1 for moment in moments) for start in moments)


@pytest.fixture
def stop(api):
    """Operations of a test on the shared server that would run on."""
    yield
    for operation in api.operations(state="running"):
        api.cancel(operation["id"])


@pytest.fixture
def dead(queue, stop):
    """A queue with 20 dead jobs, their ids in `ids`."""
    queue.ids = make_dead(queue, *["x"] * 20)
    return queue


class TestPace:
    @pytest.mark.parametrize("verb, event", [("retry", "queue:retry"), ("purge", "queue:purged")])
    def test_a_rate_is_kept_and_used(self, dead, events, verb, event):
        dead.ids += make_dead(dead, *["x"] * 80)
        stream = events(event)
        began = time.time()
        operation = begin(dead, verb, rate="50/s")
        told = stream.take(100)
        took = time.time() - began
        assert {event.data["id"] for event in told} == set(dead.ids)
        moments = [seconds_since_1970(event.data["at"]) for event in told]
        assert most_within_a_second(moments) <= 60
        assert 0.9 <= took <= 6
        shown = ended(dead.client, operation)
        assert (shown["state"], shown["done"]) == ("done", 100)

    def test_a_slow_rate_takes_one_job_at_a_time(self, dead):
        operation = begin(dead, rate="1/h")
        holds_for(lambda: dead.stats()["pending"] <= 1, 0.5, "one job at most")
        assert dead.client.operation(operation["id"])["state"] == "running"

    @pytest.mark.parametrize("rate", ["100/s", "30/m", "1000/h"])
    def test_a_rate_is_shown_as_it_was_given(self, dead, rate):
        assert begin(dead, rate=rate)["rate"] == rate

    def test_the_server_works_on_meanwhile(self, dead):
        begin(dead, "purge", rate="20/s")
        for number in range(20):
            dead.push(number)
            dead.client.ack(dead.claim_one())
        assert dead.totals()["completed"] == 20


class TestWait:
    def test_with_a_rate_the_call_does_not_wait(self, dead):
        reply = dead.retry(filter={}, rate="1/h", status=202)
        assert reply["retried"] in (0, 1) and reply["skipped"] == reply["not_found"] == []

    def test_with_a_rate_it_waits_when_asked_to(self, dead):
        reply = dead.retry(filter={}, rate="100/s", wait="20s")
        assert reply["retried"] == 20 and dead.counts() == {"pending": 20}

    def test_what_does_not_end_in_time_goes_on_by_itself(self, dead):
        began = time.monotonic()
        reply = dead.purge(filter={}, rate="20/s", wait="300ms", status=202)
        assert 0.3 <= time.monotonic() - began < 5
        shown = ended(dead.client, reply["operation"])
        assert (shown["state"], shown["done"]) == ("done", 20) and dead.counts() == {}

    def test_without_a_rate_the_call_waits_for_the_end(self, dead):
        assert dead.retry(filter={})["retried"] == 20

    @pytest.mark.parametrize("how, state", [("cancel", "cancelled"), ("delete", "failed")])
    def test_a_call_that_waits_is_answered_when_its_operation_ends(self, dead, how, state):
        own = dead.through(Client(dead.client.port))
        call = in_background(own.client.request, "POST", own.path("/retry"),
                             {"filter": {}, "rate": "1/h", "wait": "8s"})
        [operation] = eventually(lambda: dead.client.operations(state="running"))
        began = time.monotonic()
        dead.client.cancel(operation["id"]) if how == "cancel" else dead.delete()
        reply = call.result(15).json()
        assert reply["operation"]["state"] == state
        assert time.monotonic() - began < 5

    def test_a_client_that_leaves_stops_nothing(self, dead):
        own = Client(dead.client.port)
        call = in_background(dead.through(own).retry, filter={}, rate="40/s", wait="1m")
        [operation] = eventually(lambda: dead.client.operations(state="running"))
        own.connection.sock.shutdown(2)
        assert ended(dead.client, operation)["done"] == 20
        assert call.exception(10) is not None and dead.counts() == {"pending": 20}


class TestShown:
    def test_an_operation_has_the_documented_shape(self, dead):
        wanted = {"error": "x", "newer_than": "7d"}
        shown = begin(dead, filter=wanted, limit=15)
        assert set(shown) == FIELDS
        assert_close(shown["started_at"], time.time())
        assert (shown["kind"], shown["namespace"], shown["queue"], shown["filter"]) == (
            "retry", dead.namespace, "jobs", wanted)
        assert (shown["limit"], shown["rate"], shown["skipped"]) == (15, "1/h", 0)
        assert (shown["by"], shown["ended_at"], shown["error"]) == (None, None, None)
        assert shown["total"] in (15, 20, None)
        again = dead.client.operation(shown["id"])
        assert again | {"done": 0} == shown | {"done": 0}
        assert shown in [each | {"done": shown["done"]} for each in dead.client.operations()]

    def test_one_that_has_ended_says_when_and_how_much(self, dead):
        operation = begin(dead, "purge", rate="100/s")
        shown = ended(dead.client, operation)
        assert (shown["state"], shown["done"], shown["skipped"], shown["error"]) == (
            "done", 20, 0, None)
        assert seconds_since_1970(shown["ended_at"]) >= seconds_since_1970(shown["started_at"])
        assert shown["total"] in (20, None)

    def test_what_runs_is_listed_and_in_status_and_metrics(self, server):
        client = server.client()
        queue = client.queue("q").created()
        make_dead(queue, *["x"] * 3)
        assert client.get("/v1/status")["operations"] == client.operations() == []
        assert read_metrics(client).value("reprise_operations_running") == 0
        first = begin(queue)
        queue.purge(filter={"error": "nothing like it"})
        [second] = client.operations(state="done")
        third = begin(queue, "purge")

        def numbers(operations):
            return [operation["id"] for operation in operations]
        assert numbers(client.operations()) == [third["id"], second["id"], first["id"]]
        running = [third["id"], first["id"]]
        assert numbers(client.operations(state="running")) == running
        assert numbers(client.operations(state="done")) == [second["id"]]
        assert sorted(numbers(client.get("/v1/status")["operations"])) == sorted(running)
        assert read_metrics(client).value("reprise_operations_running") == 2
        for number in running:
            client.cancel(number)
        assert client.get("/v1/status")["operations"] == []
        assert read_metrics(client).value("reprise_operations_running") == 0
        assert numbers(client.operations(state="cancelled")) == running

    def test_the_last_hundred_that_ended_are_remembered(self, server):
        client = server.client()
        queue = client.queue("q").created()
        for _ in range(104):
            queue.purge(filter={"error": "nothing like it"})
        shown = eventually(lambda: (lambda found: len(found) <= 100 and found)(client.operations()))
        numbers = [operation["id"] for operation in shown]
        assert len(numbers) == 100 and numbers == sorted(numbers, reverse=True)
        assert client.refused("GET", f"/v1/operations/{numbers[-1] - 1}") == (
            404, "operation_not_found")

    def test_a_hundred_run_at_once_and_no_more(self, server):
        queue = server.client().queue("q").created()
        make_dead(queue, *["x"] * 300)
        running = [begin(queue, limit=2) for _ in range(100)]
        reply = queue.client.request("POST", queue.path("/retry"), {"filter": {}, "rate": "1/h"})
        assert (reply.status, reply.code) == (429, "too_many_operations")
        assert len(queue.client.operations(state="running")) == 100
        assert queue.retry(queue.jobs(status="dead")[0]["id"])["retried"] == 1
        queue.client.cancel(running[0]["id"])
        begin(queue)

    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    @pytest.mark.parametrize("number", ["999999999", "0", "18446744073709551615"])
    def test_an_unknown_one_is_not_found(self, api, method, number):
        assert api.refused(method, f"/v1/operations/{number}") == (404, "operation_not_found")

    @pytest.mark.parametrize("query", ["state=walking", "stat=running"])
    def test_a_bad_parameter_is_refused(self, api, query):
        assert api.request("GET", f"/v1/operations?{query}").status == 400


class TestCancel:
    @pytest.mark.parametrize("verb", DONE)
    def test_what_is_done_stays_done_and_no_more_is(self, dead, verb):
        operation = begin(dead, verb, rate="20/s")
        eventually(lambda: dead.client.operation(operation["id"])["done"] >= 3, "some progress")
        cancelled = dead.client.cancel(operation["id"])
        assert (cancelled["state"], cancelled["id"]) == ("cancelled", operation["id"])
        left = dead.counts()["dead"]
        assert left == 20 - cancelled["done"] and 3 <= cancelled["done"] < 20
        holds_for(lambda: dead.counts()["dead"] == left, 0.4, "the rest")
        shown = dead.client.operation(operation["id"])
        assert shown == cancelled and shown["ended_at"] is not None

    def test_one_that_has_ended_stays_as_it_was(self, dead):
        operation = begin(dead, rate="200/s")
        before = ended(dead.client, operation)
        assert dead.client.refused("DELETE", f"/v1/operations/{operation['id']}") == (
            409, "wrong_status")
        assert dead.client.operation(operation["id"]) == before

    def test_a_cancelled_one_stays_so_after_a_kill(self, server):
        client = server.client()
        queue = client.queue("q").created()
        make_dead(queue, *["x"] * 5)
        operation = begin(queue)
        cancelled = client.cancel(operation["id"])
        before = queue.counts()
        server.restart("kill")
        client = server.client()
        assert client.operation(operation["id"]) == cancelled
        assert queue.through(client).counts() == before


class TestRestart:
    @pytest.mark.parametrize("how", ["kill", "stop"])
    @pytest.mark.parametrize("verb", DONE)
    def test_an_operation_goes_on_after_it(self, server, verb, how):
        client = server.client()
        queue = client.queue("q").created()
        ids = make_dead(queue, *["x"] * 40)
        operation = begin(queue, verb, rate="40/s")
        seen = eventually(lambda: client.operation(operation["id"])["done"])
        server.restart(how)
        client = server.client()
        queue = queue.through(client)
        shown = client.operation(operation["id"])
        assert shown["done"] >= seen and shown["started_at"] == operation["started_at"]
        shown = ended(client, operation)
        assert (shown["state"], shown["done"], shown["skipped"]) == ("done", 40, 0)
        assert queue.counts() == ({"pending": 40} if verb == "retry" else {})
        assert queue.totals()[DONE[verb]] == 40
        if verb == "retry":
            assert [job["id"] for job in queue.all_jobs()] == ids
            assert {job["generation"] for job in queue.all_jobs()} == {2}

    def test_it_keeps_its_pace_after_it(self, server):
        client = server.client()
        queue = client.queue("q").created()
        make_dead(queue, *["x"] * 30)
        operation = begin(queue, rate="10/h")
        for _ in range(3):
            server.restart("kill")
        client = server.client()
        shown = client.operation(operation["id"])
        assert shown["state"] == "running" and shown["done"] <= 4

    def test_a_stop_does_not_wait_for_it(self, server):
        queue = server.client().queue("q").created()
        make_dead(queue, *["x"] * 10)
        begin(queue)
        call = in_background(lambda: queue.through(server.client()).purge(
            filter={}, rate="1/h", wait="5m", status=202))
        eventually(lambda: len(queue.client.operations(state="running")) == 2)
        code, seconds = server.terminate()
        assert code == 0 and seconds < 5
        call.exception(10)


class TestWhatIsSelected:
    def test_jobs_that_die_again_are_not_taken_twice(self, dead):
        operation = begin(dead, rate="40/s")
        deaths = 0

        def work():
            nonlocal deaths
            for job in dead.claim(100):
                deaths += dead.client.fail(job, error="x")["status"] == "dead"
            return dead.client.operation(operation["id"])["state"] != "running"
        eventually(work, "the operation to end", timeout=15)
        work()
        assert ended(dead.client, operation)["done"] == 20 and deaths == 20
        assert {job["generation"] for job in dead.all_jobs(status="dead")} == {2}

    def test_jobs_that_die_later_are_not_taken(self, dead):
        operation = begin(dead, "purge", rate="40/s")
        later = make_dead(dead, "later")
        assert ended(dead.client, operation)["done"] == 20
        assert [job["id"] for job in dead.all_jobs(status="dead")] == later

    def test_what_others_took_meanwhile_is_not_taken_again(self, dead):
        operation = begin(dead, rate="40/s")
        dead.purge(*dead.ids[-5:])
        shown = ended(dead.client, operation)
        assert shown["state"] == "done" and shown["done"] == 15
        assert dead.counts() == {"pending": 15}

    def test_two_at_once_share_the_work(self, dead):
        both = [begin(dead, verb, rate="30/s") for verb in DONE]
        retried, purged = (ended(dead.client, operation)["done"] for operation in both)
        assert retried + purged == 20
        assert dead.totals()["retried"] == retried and dead.totals()["purged"] == purged
        assert dead.counts() == {"pending": retried}

    def test_failed_jobs_can_be_paced_too(self, absent_queue, stop):
        queue = absent_queue.created(retry={"attempts": 5})
        make_cooling(queue, *["x"] * 10)
        operation = begin(queue, filter={"status": "failed"}, rate="50/s")
        assert ended(queue.client, operation)["done"] == 10
        assert queue.counts() == {"pending": 10}

    def test_a_limit_ends_it(self, dead):
        operation = begin(dead, "purge", rate="50/s", limit=7)
        assert ended(dead.client, operation)["done"] == 7
        assert [job["id"] for job in dead.all_jobs(status="dead")] == dead.ids[7:]

    def test_a_deleted_queue_fails_it(self, dead):
        operation = begin(dead)
        dead.delete()
        shown = ended(dead.client, operation)
        assert shown["state"] == "failed" and shown["error"] and shown["ended_at"]

    def test_a_queue_made_again_is_another(self, dead):
        operation = begin(dead, "purge", rate="20/s")
        dead.delete()
        dead.create()
        make_dead(dead, "new")
        assert ended(dead.client, operation)["state"] == "failed"
        assert dead.counts() == {"dead": 1}
