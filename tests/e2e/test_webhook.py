"""Webhooks: each death is told, again until it is heard, and nobody waits for the listener."""

import json
import time

import pytest

from failing import make_dead
from metrics_text import read_metrics
from times import seconds_since_1970
from waiting import eventually, holds_for
from webhook_receiver import Receiver

SECONDS_TO_ARRIVE = 15


@pytest.fixture
def receiver():
    """A function that makes a listener: receiver(status=500, …)."""
    receivers = []

    def listen(**options):
        receivers.append(Receiver(**options))
        return receivers[-1]

    yield listen
    for each in receivers:
        each.close()


def calls(receiver, count):
    """The first calls, once there are so many."""
    eventually(lambda: len(receiver.calls) >= count, f"{count} calls", SECONDS_TO_ARRIVE)
    return receiver.calls[:count]


def pending(client):
    return client.get("/v1/status")["webhooks"]["pending"]


def unused_url():
    """An address where nobody listens."""
    listener = Receiver()
    listener.close()
    return listener.url()


class TestEvent:
    def test_a_death_is_a_cloud_event_with_the_envelope(self, absent_queue, receiver):
        listener = receiver()
        queue = absent_queue.created(on_dead_webhook=listener.url("/dead?x=1"))
        job_id = queue.push_one({"n": 1}, headers={"tenant": "é"}, key="k")
        queue.client.fail(queue.claim_one(worker="w"), error="no\nluck", error_type="Net")
        [call] = calls(listener, 1)
        assert (call.method, call.path) == ("POST", "/dead?x=1")
        assert call.headers["content-type"].startswith("application/cloudevents+json")
        assert call.headers["host"] == f"127.0.0.1:{listener.port}"
        event = call.event
        assert (event["specversion"], event["type"], event["subject"]) == (
            "1.0", "reprise.job.dead", job_id)
        assert event["source"] == f"/{queue.namespace}/jobs"
        assert isinstance(event["id"], str) and event["id"]
        shown = queue.job(job_id)
        assert event["data"] == shown["dead_letter"]
        if "time" in event:
            assert abs(seconds_since_1970(event["time"])
                       - seconds_since_1970(shown["ended_at"])) < 5

    @pytest.mark.parametrize("reason", ["final", "lease_expired", "worker_lost", "expired"])
    def test_every_way_to_die_is_told(self, absent_queue, receiver, reason):
        listener = receiver()
        queue = absent_queue.created(on_dead_webhook=listener.url())
        job_id = queue.push_one(1, **({"ttl": "100ms"} if reason == "expired" else {}))
        if reason == "lease_expired":
            queue.claim_one(lease="100ms")
        elif reason != "expired":
            queue.client.fail(queue.claim_one(), **{
                "final": {"final": True}, "worker_lost": {"outcome": "worker_lost"}}[reason])
        [call] = calls(listener, 1)
        assert (call.event["subject"], call.event["data"]["meta"]["reason"]) == (job_id, reason)

    def test_each_death_is_told_once_under_an_id_of_its_own(self, absent_queue, receiver):
        listener = receiver()
        queue = absent_queue.created(on_dead_webhook=listener.url())
        ids = make_dead(queue, *["x"] * 30)
        calls(listener, 30)
        eventually(lambda: pending(queue.client) == 0, "all to be told")
        assert len(listener.calls) == 30 and listener.subjects() == set(ids)
        assert len({event["id"] for event in listener.events()}) == 30

    def test_a_second_death_of_a_job_is_another_event(self, absent_queue, receiver):
        listener = receiver()
        queue = absent_queue.created(on_dead_webhook=listener.url())
        [job_id] = make_dead(queue, "first")
        calls(listener, 1)
        queue.retry(job_id)
        queue.client.fail(queue.claim_one(), error="second")
        first, second = (call.event for call in calls(listener, 2))
        assert first["subject"] == second["subject"] == job_id and first["id"] != second["id"]
        assert [event["data"]["meta"]["generation"] for event in (first, second)] == [1, 2]

    def test_failures_that_are_retried_and_jobs_that_end_well_are_not_told(self, absent_queue,
                                                                          receiver):
        listener = receiver()
        queue = absent_queue.created(on_dead_webhook=listener.url(), retry={"attempts": 2})
        queue.push("fails", "is acked", "is dropped")
        fails, acked, dropped = queue.claim(3)
        queue.client.fail(fails, delay="1h")
        queue.client.ack(acked)
        queue.drop(dropped["id"])
        [dead] = make_dead(queue, "x")
        [call] = calls(listener, 1)
        assert call.event["subject"] == dead
        eventually(lambda: pending(queue.client) == 0)
        assert len(listener.calls) == 1

    def test_a_death_that_leads_to_a_dead_letter_queue_is_told(self, absent_queue, receiver):
        listener = receiver()
        queue = absent_queue.created(on_dead_webhook=listener.url(), dead_letter_queue="graves")
        [job_id] = make_dead(queue, "x", headers={"a": "b"})
        [call] = calls(listener, 1)
        event = call.event["data"]["event"]
        assert (event["id"], event["queue"], event["headers"]) == (job_id, "jobs", {"a": "b"})
        assert queue.sibling("graves").status_of(job_id) == "pending"

    def test_without_an_address_nothing_is_told(self, absent_queue, receiver):
        listener = receiver()
        queue = absent_queue.created(on_dead_webhook=listener.url())
        queue.patch(on_dead_webhook=None)
        make_dead(queue, *["x"] * 3)
        told = make_dead(queue.sibling("other").created(on_dead_webhook=listener.url()), "y")
        calls(listener, 1)
        eventually(lambda: pending(queue.client) == 0, "nothing to be left")
        assert listener.subjects() == set(told)

    def test_it_is_sent_though_the_job_is_gone(self, absent_queue, receiver):
        listener = receiver(script=[500])
        queue = absent_queue.created(on_dead_webhook=listener.url())
        [job_id] = make_dead(queue, "x")
        queue.purge(job_id)
        assert {call.event["subject"] for call in calls(listener, 2)} == {job_id}


class TestAgain:
    """What waits for a second time waits with others, so that a second is spent once."""

    @pytest.fixture
    def deaths(self, api, namespace):
        """A function that has a job die for each listener, in a queue of its own."""
        def die(listeners):
            queues = [api.queue(f"q{number}", namespace).created(on_dead_webhook=listener.url())
                      for number, listener in enumerate(listeners)]
            for queue in queues:
                make_dead(queue, "x")
        return die

    def test_what_is_not_heard_is_told_again_after_a_second(self, api, deaths, receiver):
        answers = [500, 503, 404, 400, 302, 304, None]
        listeners = [receiver(script=[answer]) for answer in answers]
        deaths(listeners)
        for answer, listener in zip(answers, listeners):
            first, second = calls(listener, 2)
            assert 0.9 <= second.at - first.at < 4, answer
            assert first.event == second.event
        eventually(lambda: pending(api) == 0, "all to be heard")
        assert [len(listener.calls) for listener in listeners] == [2] * len(answers)

    def test_any_2xx_is_heard(self, api, deaths, receiver):
        listeners = [receiver(status=answer) for answer in (200, 201, 202, 204, 299)]
        deaths(listeners)
        for listener in listeners:
            calls(listener, 1)
        eventually(lambda: pending(api) == 0, "all to be heard")
        assert [len(listener.calls) for listener in listeners] == [1] * 5

    def test_the_waits_grow(self, deaths, receiver):
        listener = receiver(script=[500, 500])
        deaths([listener])
        first, second, third = calls(listener, 3)
        assert 0.9 <= second.at - first.at < 3 and 1.9 <= third.at - second.at < 6
        assert first.event["id"] == second.event["id"] == third.event["id"]

    def test_redirects_are_not_followed(self, deaths, receiver):
        elsewhere = receiver()
        listeners = [receiver(script=[status], headers={"Location": elsewhere.url("/elsewhere")})
                     for status in (301, 302, 303, 307, 308)]
        deaths(listeners)
        for listener in listeners:
            calls(listener, 2)
            assert {(call.method, call.path) for call in listener.calls} == {("POST", "/dead")}
        assert elsewhere.calls == []

    def test_one_that_fails_does_not_hold_up_the_others(self, server, receiver):
        client = server.client()
        silent = client.queue("silent").created(on_dead_webhook=unused_url())
        listener = receiver()
        heard = client.queue("heard").created(on_dead_webhook=listener.url())
        make_dead(silent, *["x"] * 3)
        ids = make_dead(heard, "y")
        calls(listener, 1)
        assert listener.subjects() == set(ids)
        eventually(lambda: pending(client) == 3, "three to be left")


class TestNobodyWaits:
    def work(self, queue, count=30):
        """Goes through the lives of some jobs; the seconds it took."""
        began = time.monotonic()
        for number in range(count):
            queue.push(number)
            queue.client.fail(queue.claim_one(), error="x")
            queue.push(number)
            queue.client.ack(queue.claim_one())
        return time.monotonic() - began

    def test_a_listener_that_does_not_answer_holds_nothing_up(self, server, receiver):
        listener = receiver()
        listener.hold()
        client = server.client()
        queue = client.queue("q").created(on_dead_webhook=listener.url())
        ids = make_dead(queue, "first")
        calls(listener, 1)
        assert self.work(queue) < 8
        assert queue.counts() == {"dead": 31}
        eventually(lambda: pending(client) == 31, "all to be in line")
        assert read_metrics(client).value("reprise_webhooks_pending") == 31
        listener.release()
        eventually(lambda: pending(client) == 0, "all to be told", SECONDS_TO_ARRIVE)
        assert set(ids) < listener.subjects() and len(listener.subjects()) == 31

    def test_a_listener_gets_four_requests_at_a_time_and_one_while_it_fails(self, server, receiver):
        slow, failing = receiver(), receiver(status=500)
        slow.hold()
        client = server.client()
        make_dead(client.queue("slow").created(on_dead_webhook=slow.url()), *["x"] * 12)
        calls(slow, 4)
        holds_for(lambda: len(slow.calls) == 4, 0.3, "four calls")
        slow.release()
        failing_queue = client.queue("failing").created(on_dead_webhook=failing.url())
        make_dead(failing_queue, "first")
        calls(failing, 1)
        failing.hold()
        make_dead(failing_queue, *["x"] * 8)
        calls(failing, 2)
        holds_for(lambda: len(failing.calls) == 2, 0.3, "one call that waits")

    def test_the_log_names_addresses_without_their_secrets(self, server, receiver):
        listener = receiver(status=500)
        queue = server.client().queue("q").created(
            on_dead_webhook=listener.url("/secret-path?key=secret-key"))
        make_dead(queue, "x")
        calls(listener, 2)
        eventually(lambda: f"127.0.0.1:{listener.port}" in server.log(), "the address in the log")
        assert "secret" not in server.log()

    def test_an_address_where_nobody_listens_holds_nothing_up(self, server):
        client = server.client()
        queue = client.queue("q").created(on_dead_webhook=unused_url())
        assert self.work(queue) < 8
        make_dead(queue, *["x"] * 970)
        eventually(lambda: pending(client) == 1000, "all to be in line")

    def test_a_stop_does_not_wait_for_a_listener(self, server, receiver):
        listener = receiver()
        listener.hold()
        queue = server.client().queue("q").created(on_dead_webhook=listener.url())
        make_dead(queue, *["x"] * 5)
        calls(listener, 1)
        code, seconds = server.terminate()
        assert code == 0 and seconds < 5

    def test_what_became_of_them_is_counted(self, server, receiver):
        client = server.client()
        listener = receiver(script=[500])
        queue = client.queue("q").created(on_dead_webhook=listener.url())

        def counted(result):
            return read_metrics(client).value("reprise_webhooks_total", result=result)
        assert [counted(result) for result in ("delivered", "failed", "given_up")] == [0, 0, 0]
        make_dead(queue, "x", "y")
        eventually(lambda: counted("delivered") == 2, "both to be told", SECONDS_TO_ARRIVE)
        assert (counted("failed"), counted("given_up")) == (1, 0)
        assert read_metrics(client).value("reprise_webhooks_pending") == 0


class TestRestart:
    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_what_was_not_heard_is_told_after_it(self, server, receiver, how):
        listener = receiver(status=500)
        queue = server.client().queue("q").created(on_dead_webhook=listener.url())
        ids = make_dead(queue, "a", "b", "c")
        earlier = {call.event["subject"]: call.event for call in calls(listener, 3)}
        server.kill() if how == "kill" else server.terminate()
        heard = len(listener.calls)
        listener.status = 200
        server.start()

        def later():
            return {call.event["subject"]: call.event for call in listener.calls[heard:]}
        eventually(lambda: set(later()) == set(ids), "all to be told", SECONDS_TO_ARRIVE)
        for job_id, event in earlier.items():
            assert later()[job_id] == event

    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_what_is_still_to_be_told_is_known_after_it(self, server, how):
        queue = server.client().queue("q").created(on_dead_webhook=unused_url())
        make_dead(queue, *["x"] * 400)
        eventually(lambda: pending(queue.client) == 400, "all to be in line")
        server.restart(how)
        eventually(lambda: pending(server.client()) == 400, "all to be in line again")

    def test_a_death_that_was_answered_is_told_though_nothing_was_sent_before_the_kill(
            self, server, receiver):
        listener = receiver()
        listener.hold()
        queue = server.client().queue("q").created(on_dead_webhook=listener.url())
        ids = make_dead(queue, *["x"] * 20)
        server.kill()
        listener.release()
        server.start()
        eventually(lambda: listener.subjects() == set(ids), "all to be told", SECONDS_TO_ARRIVE)

    def test_what_was_heard_is_not_told_again_after_it(self, server, receiver):
        listener = receiver()
        queue = server.client().queue("q").created(on_dead_webhook=listener.url())
        make_dead(queue, *["x"] * 5)
        calls(listener, 5)
        eventually(lambda: pending(queue.client) == 0, "all to be told", SECONDS_TO_ARRIVE)
        server.restart("stop")
        [last] = make_dead(queue.through(server.client()), "last")
        eventually(lambda: last in listener.subjects(), "the last to be told", SECONDS_TO_ARRIVE)
        assert len(listener.calls) == 6


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("url", ["", "x", "ftp://a.example/", "//a.example", "http://", "https://",
                                 "http:///path", "http://a.example:99999/", "http://a b/",
                                 "http://a.example/\r\nX: y", "file:///etc/passwd", 5, True, [],
                                 "http://a.example:port/"], ids=json.dumps)
def test_what_is_no_address_is_refused(absent_queue, method, url):
    queue = absent_queue.created(on_dead_webhook="https://a.example/dead", lease="1m")
    before = queue.snapshot()
    reply = queue.client.request(method, queue.path(), {"lease": "2m", "on_dead_webhook": url})
    assert reply.status == 400 and reply.code != "unknown_field", reply
    assert "on_dead_webhook" in reply.message
    assert queue.snapshot() == before
