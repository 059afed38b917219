"""Server-sent events: every change is told once, in order, to whoever asked for it."""

import time

import pytest

from raw_http import EventStream
from times import assert_close
from waiting import eventually

RING_EVENTS = 4096


@pytest.fixture
def listen(shared_server, namespace):
    """Opens streams, of this test's namespace unless told otherwise, and closes them."""
    streams = []

    def open_stream(query="", **options):
        stream = EventStream(shared_server.port, f"?namespace={namespace}{query}", **options)
        assert stream.status == 200
        streams.append(stream)
        return stream

    yield open_stream
    for stream in streams:
        stream.connection.close()


def types(events):
    return [event.type for event in events]


def test_the_stream_is_one_of_server_sent_events(listen):
    assert listen().headers["content-type"].startswith("text/event-stream")


def test_a_push_is_told_in_the_documented_shape(queue, listen):
    stream = listen()
    job_id = queue.push_one(1)
    event = stream.next()
    assert event.type == "queue:pushed" and event.id > 0
    assert_close(event.data.pop("at"), time.time())
    assert event.data == {"type": "queue:pushed", "namespace": queue.namespace, "queue": "jobs",
                          "id": job_id}


def test_the_life_of_a_job_is_told_in_order(absent_queue, listen):
    queue = absent_queue.created(retry={"attempts": 2, "cooldown": "0s"})
    stream = listen()
    job_id = queue.push_one(1)
    queue.client.release(queue.claim_one())
    queue.client.fail(queue.claim_one(), error="once")
    queue.client.fail(eventually(queue.claim)[0], error="twice")
    queue.drop(job_id)
    queue.push_one(2)
    queue.client.ack(queue.claim_one())

    events = stream.take(12)
    assert types(events) == [
        "queue:pushed", "queue:taken", "queue:released", "queue:taken", "queue:failed",
        "queue:taken", "queue:failed", "queue:dead", "queue:dropped",
        "queue:pushed", "queue:taken", "queue:completed"]
    assert {event.data["id"] for event in events[:9]} == {job_id}
    assert all(event.data["type"] == event.type for event in events)
    assert [event.data["attempts"] for event in events if event.type == "queue:taken"] == [
        1, 2, 3, 1]
    retried, last = events[4].data, events[6].data
    assert (retried["attempts"], retried["error"]) == (2, "once")
    assert_close(retried["retry_at"], time.time())
    assert (last["attempts"], last["error"], last["retry_at"]) == (3, "twice", None)
    dead = events[7].data
    assert (dead["attempts"], dead["reason"], dead["error"]) == (3, "max_attempts", "twice")
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))


def test_an_expired_lease_is_told_as_a_failure(absent_queue, listen):
    queue = absent_queue.created(retry={"attempts": 5, "cooldown": "1h"})
    queue.push(1)
    stream = listen("&type=queue:failed")
    queue.claim_one(lease="100ms")
    event = stream.next()
    assert (event.type, event.data["attempts"]) == ("queue:failed", 1)


def test_only_the_queue_asked_for_is_told(queue, listen):
    other = queue.sibling("other").created()
    stream = listen("&queue=other")
    queue.push(1)
    expected = other.push_one(2)
    assert stream.next().data["id"] == expected


@pytest.mark.parametrize("query", ["&type=queue:taken&type=queue:completed",
                                   "&type=queue:taken,queue:completed"])
def test_only_the_types_asked_for_are_told(queue, listen, query):
    stream = listen(query)
    queue.push(1)
    queue.client.release(queue.claim_one())
    queue.client.ack(queue.claim_one())
    assert types(stream.take(3)) == ["queue:taken", "queue:taken", "queue:completed"]


def test_without_a_namespace_all_are_told(api, shared_server, namespace):
    with EventStream(shared_server.port) as stream:
        expected = [api.queue("q", namespace + suffix).created().push_one(1)
                    for suffix in ("-a", "-b")]
        seen = []
        while not set(expected) <= set(seen):
            seen.append(stream.next().data["id"])


def test_a_refused_request_is_not_told(queue, listen):
    stream = listen()
    queue.client.ack("junk", status=400)
    queue.push_jobs([{"key": "x" * 513}], status=413)
    expected = queue.push_one(1, key="k")
    queue.push_jobs([{"key": "k"}])
    after = queue.push_one(2)
    assert [event.data["id"] for event in stream.take(2)] == [expected, after]


def test_a_reader_takes_up_where_it_stopped(queue, listen):
    with listen() as first:
        queue.push(*range(3))
        seen = first.take(3)
    missed = queue.push(*range(5))
    again = listen(last_event_id=seen[1].id)
    assert [event.data["id"] for event in again.take(6)] == [seen[2].data["id"], *missed]
    queue.push("live")
    assert again.next().id > seen[2].id


def test_events_that_left_the_ring_are_told_as_lost(queue, listen):
    stream = listen()
    queue.push("first")
    first = stream.next()
    for _ in range(6):
        queue.push(*range(1000))
    again = listen(last_event_id=first.id)
    lost = again.next()
    assert lost.type == "lost" and lost.data["lost"] >= 6000 - RING_EVENTS
    assert again.next().id == first.id + lost.data["lost"] + 1


def test_a_reader_of_an_earlier_run_of_the_server_misses_nothing_in_silence(server):
    queue = server.client().queue("q").created()
    with EventStream(server.port) as stream:
        queue.push(1, 2, 3)
        last = stream.take(3)[-1]
    server.restart()
    expected = queue.through(server.client()).push(4, 5, 6, 7)
    with EventStream(server.port, last_event_id=last.id) as stream:
        first = stream.next()
        assert first.type == "lost" or first.data["id"] == expected[0]


def test_a_reader_that_does_not_read_loses_events_and_is_told(server):
    queue = server.client().queue("q").created()
    batches = 60
    with EventStream(server.port, receive_buffer=4096, timeout=20) as stream:
        for _ in range(batches):
            queue.push(*range(1000))
        queue.push_one("last", key="last")
        last = queue.jobs(limit=1)[0]["id"]  # any reply: the pushes are durable and told
        assert last
        received = lost = 0
        while received + lost < batches * 1000 + 1:
            event = stream.next()
            if event.type == "lost":
                lost += event.data["lost"]
            else:
                received += 1
        assert lost > 0 and received >= 1
        assert received + lost == batches * 1000 + 1


def test_a_comment_keeps_the_connection_open(start_server):
    server = start_server("--event-keep-alive", "200ms")
    with EventStream(server.port) as stream:
        stream.next_comment()
        stream.next_comment()


def test_a_reader_that_leaves_is_forgotten(server):
    def subscribers():
        text = server.client().request("GET", "/metrics").body.decode()
        return [line for line in text.splitlines()
                if line.startswith("reprise_event_subscribers")][0].split()[-1]
    assert subscribers() == "0"
    with EventStream(server.port):
        eventually(lambda: subscribers() == "1", "a subscriber")
    eventually(lambda: subscribers() == "0", "the subscriber to be forgotten")


@pytest.mark.parametrize("query", ["type=queue:exploded", "type=", "namespace=.bad", "queue=.bad",
                                   "typ=queue:dead"])
def test_a_stream_that_could_never_tell_anything_is_refused(api, query):
    assert api.request("GET", f"/v1/events?{query}").status == 400


def test_last_event_id_must_be_a_number(shared_server):
    stream = EventStream(shared_server.port, last_event_id="yesterday")
    stream.connection.close()
    assert stream.status in (200, 400)
