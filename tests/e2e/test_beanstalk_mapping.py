"""The beanstalk door of Reprise: what docs/beanstalk.md says of queues, failures and restarts."""

import base64
import os
import signal
import socket
import time

import pytest

from background import claim_in_background, in_background
from beanstalk_client import put_text
from dead_jobs import bury, bury_many
from hooking import hook_of, meta_of, on_enqueue, on_failure
from metrics_text import read_metrics
from reprise_cli import Cli
from times import assert_close, duration_seconds
from waiting import eventually

ATTEMPTS_ONE = {"attempts": 1}
HOUR = 3600
STOP_SECONDS_MAX = 5


@pytest.fixture
def http(door):
    """The HTTP side of the server."""
    client = door.client()
    yield client
    client.close()


@pytest.fixture
def queue(http, tube):
    """The queue that the tube of this test is. Nothing has made it yet."""
    return http.queue(tube)


@pytest.fixture
def bean(door, queue, connect):
    """A connection on the tube of this test, which makes the queue unless the test has."""
    return connect(door)


def body_of(job):
    return base64.b64decode(job["payload_base64"])


def only_job(queue):
    [job] = queue.jobs()
    return queue.job(job["id"])


def waits(bean, observer, tube):
    """Lets the connection wait in a reserve."""
    bean.send("reserve\r\n")
    eventually(lambda: observer.stats_tube(tube)["current-waiting"] == 1, "it to wait")


def hold(bean, **fields):
    """The id of a new job, which the connection holds."""
    job_id = bean.put(b"x", **fields)
    assert bean.reserve().id == job_id, "another job is in the tube"
    return job_id


class TestQueues:
    def test_a_tube_is_a_queue_that_is_made_as_clients_expect_it(self, bean, queue):
        config = queue.show()["config"]
        assert duration_seconds(config["lease"]) == 60
        assert config["retry"]["attempts"] == "unlimited"
        assert duration_seconds(config["retry"]["cooldown"]) == 0

    @pytest.mark.parametrize("verb", ["use", "watch"])
    def test_made_by(self, bean, queue, verb):
        other = queue.sibling(queue.name + ".other")
        bean.tell(f"{verb} {other.name}")
        assert other.show()["config"] == queue.show()["config"]

    def test_ignore_peek_and_stats_make_none(self, bean, queue, http):
        absent = queue.name + ".absent"
        for command in (f"ignore {absent}", f"stats-tube {absent}", f"pause-tube {absent} 1"):
            bean.tell(command)
        assert http.request("GET", queue.sibling(absent).path()).status == 404

    def test_one_that_is_there_stays_as_it_is(self, door, queue, connect):
        queue.create(lease="5s", retry={"attempts": 3, "cooldown": "1s"}, max_jobs=10)
        before = queue.show()["config"]
        connect(door).put(b"x")
        assert queue.show()["config"] == before

    def test_all_are_listed_however_they_were_made(self, bean, queue, http):
        queue.sibling(queue.name + ".http").create()
        http.queue(queue.name + ".elsewhere", "another").create()
        tubes = bean.yaml("list-tubes")
        assert {queue.name, queue.name + ".http"} <= set(tubes)
        assert queue.name + ".elsewhere" not in tubes

    def test_put_makes_it_again_when_it_was_deleted(self, bean, queue):
        bean.put(b"x")
        queue.delete()
        job_id = bean.put(b"y")
        assert queue.show()["config"]["retry"]["attempts"] == "unlimited"
        assert bean.reserve() == (job_id, b"y")

    def test_a_deleted_queue_takes_its_jobs_along(self, bean, queue):
        job_id = hold(bean)
        queue.delete()
        assert bean.tell(f"delete {job_id}") == "NOT_FOUND"
        assert bean.tell("reserve-with-timeout 0") == "TIMED_OUT"

    def test_numbers_are_not_used_again(self, start_door, connect):
        server = start_door()
        ids = [connect(server).put(b"x") for _ in range(3)]
        connect(server).tell(f"delete {ids[-1]}")
        server.restart("kill")
        assert connect(server).put(b"x") > max(ids)
        server.restart("stop")
        assert connect(server).put(b"x") > max(ids) + 1


class TestBothDoors:
    def test_put_here_claimed_there(self, bean, queue, http):
        body = b"\0\xff\r\nbytes"
        number = bean.put(body, pri=7, ttr=90)
        job = queue.claim_one()
        assert body_of(job) == body and "payload" not in job
        assert job["priority"] == 7
        assert_close(job["lease_expires_at"], time.time() + 90)
        assert bean.state_of(number) == "reserved"
        assert bean.stats_job(number)["reserves"] == 1
        http.ack(job)
        assert bean.tell(f"peek {number}") == "NOT_FOUND"
        assert queue.totals()["completed"] == 1

    def test_pushed_there_reserved_here(self, bean, queue):
        job_id = queue.push_one({"id": 1.0, "text": "é"}, priority=3)
        job = bean.reserve_one()
        assert job.body == b'{"id": 1.0, "text": "\\u00e9"}'
        stats = bean.stats_job(job.id)
        assert (stats["pri"], stats["ttr"], stats["tube"]) == (3, 60, queue.name)
        assert queue.status_of(job_id) == "active"
        assert bean.tell(f"delete {job.id}") == "DELETED"
        assert queue.status_of(job_id) is None and queue.totals()["completed"] == 1

    def test_bytes_stay_bytes(self, bean, queue):
        queue.push_jobs([{"payload_base64": base64.b64encode(b"\r\n\0").decode()}])
        assert bean.reserve_one().body == b"\r\n\0"

    def test_one_order_for_both(self, bean, queue):
        bean.put(b"c", pri=5)
        queue.push_one("b", priority=4)
        bean.put(b"a", pri=3)
        queue.push_one("d", priority=5)
        assert [bean.reserve_one().body for _ in range(2)] == [b"a", b'"b"']
        first, second = queue.claim(2)
        assert body_of(first) == b"c" and second["payload"] == "d"

    def test_the_ttr_of_a_pushed_job_is_the_lease_of_its_queue(self, door, queue, connect):
        queue.create(lease="45s")
        queue.push_one(1)
        bean = connect(door)
        job = bean.reserve_one()
        assert bean.stats_job(job.id)["ttr"] == 45
        assert_close(only_job(queue)["lease_expires_at"], time.time() + 45)

    def test_who_holds_it_there_keeps_it(self, bean, queue, http):
        number = bean.put(b"x")
        job = queue.claim_one(lease="1h")
        for command in (f"delete {number}", f"release {number} 0 0", f"bury {number} 0",
                        f"touch {number}", f"reserve-job {number}", f"kick-job {number}"):
            assert bean.tell(command) == "NOT_FOUND", command
        assert http.ack(job)["status"] == "acked"

    def test_who_holds_it_here_keeps_it(self, bean, queue):
        number = hold(bean)
        assert queue.claim() == []
        assert only_job(queue)["status"] == "active"
        assert bean.tell(f"touch {number}") == "TOUCHED"

    def test_one_that_is_dropped_there_is_gone_here(self, bean, queue):
        number = hold(bean)
        queue.drop(only_job(queue)["id"])
        assert bean.tell(f"delete {number}") == "NOT_FOUND"
        assert bean.state_of(number) is None

    def test_who_waits_is_woken_from_the_other_side(self, door, connect, bean, queue):
        waits(bean, connect(door), queue.name)
        queue.push_one("hello")
        assert bean.reply().body == b'"hello"'
        claim = claim_in_background(queue)
        eventually(lambda: queue.stats()["waiting_claims"] == 1, "it to wait")
        bean.put(b"hello")
        [job] = claim.result(10)
        assert body_of(job) == b"hello"

    def test_scheduled_is_delayed(self, bean, queue):
        bean.put(b"x", delay=HOUR)
        job = only_job(queue)
        assert job["status"] == "scheduled"
        assert_close(job["due_at"], time.time() + HOUR)
        queue.push_one("sooner", delay="10m")
        assert bean.peek("delayed").body == b'"sooner"'
        stats = bean.stats_tube(queue.name)
        assert (stats["current-jobs-delayed"], stats["current-jobs-ready"]) == (2, 0)

    def test_a_queue_paused_there_gives_nothing_here(self, door, connect, bean, queue):
        bean.put(b"x")
        queue.pause()
        assert bean.reserve() is None
        waits(bean, connect(door), queue.name)
        queue.resume()
        assert bean.reply().word == "RESERVED"

    def test_a_tube_paused_here_gives_nothing_there(self, bean, queue):
        bean.put(b"x")
        bean.tell(f"pause-tube {queue.name} {HOUR}")
        assert queue.claim() == []
        claim = claim_in_background(queue)
        eventually(lambda: queue.stats()["waiting_claims"] == 1, "it to wait")
        bean.tell(f"pause-tube {queue.name} 0")
        assert len(claim.result(10)) == 1

    def test_a_pause_ends_by_itself_there_too(self, bean, queue):
        bean.put(b"x")
        bean.tell(f"pause-tube {queue.name} 1")
        started = time.monotonic()
        assert len(queue.claim(wait="10s")) == 1
        assert 0.8 < time.monotonic() - started < 5

    def test_deleting_what_nobody_holds_leaves_a_record(self, bean, queue, http):
        number = bean.put(b"x")
        job_id = only_job(queue)["id"]
        bean.tell(f"delete {number}")
        [record] = http.audit(namespace="default", queue=queue.name)
        assert (record["action"], record["ids"], record["done"]) == ("drop", [job_id], 1)
        assert queue.totals()["dropped"] == 1


class TestLimits:
    def test_a_full_queue(self, bean, queue):
        queue.patch(max_jobs=2)
        first = bean.put(b"1")
        bean.put(b"2")
        assert bean.send(put_text(b"3")).line() == "OUT_OF_MEMORY"
        bean.tell(f"delete {first}")
        assert bean.put(b"3")
        queue.patch(max_jobs=None, max_bytes=1000)
        assert bean.send(put_text(b"x" * 1001)).line() == "OUT_OF_MEMORY"
        assert queue.counts() == {"pending": 2}

    def test_each_put_of_many_has_its_own_reply(self, bean, queue):
        queue.patch(max_jobs=3)
        bean.send(put_text(b"x") * 5)
        assert [bean.reply().word for _ in range(5)] == ["INSERTED"] * 3 + ["OUT_OF_MEMORY"] * 2

    def test_vars_ask_for_json_and_a_body_is_bytes(self, bean, queue):
        queue.patch(vars=["id"])
        for body in (b'{"id":1}', b"{}", b"no json", b"\xff", b""):
            assert bean.send(put_text(body)).line() == "BAD_FORMAT"
        assert queue.counts() == {}
        queue.patch(vars=None, defaults={"kind": "x"})
        bean.put(b'{"id":1}')
        assert bean.reserve_one().body == b'{"id":1}'

    def test_on_enqueue(self, bean, queue):
        queue.patch(on_enqueue=on_enqueue(
            'if msg.priority == 13 then return { reject = "unlucky" } end return {}'),
            hook_timeout_ms=1000)
        bean.send(put_text(b"a") + put_text(b"b", pri=13) + put_text(b"c"))
        assert [bean.reply().word for _ in range(3)] == ["INSERTED", "BAD_FORMAT", "INSERTED"]
        assert [bean.reserve_one().body for _ in range(2)] == [b"a", b"c"]

    def test_concurrency(self, bean, queue):
        queue.patch(concurrency=1)
        first, second = bean.put(b"1"), bean.put(b"2")
        assert bean.reserve().id == first
        assert bean.reserve() is None
        bean.send(f"delete {first}\r\nreserve\r\n")
        assert [reply.line for reply in bean.replies(2)] == ["DELETED", f"RESERVED {second} 1"]

    def test_too_many_that_wait(self, start_door, connect):
        server = start_door("--max-waiting-claims", "2")
        for _ in range(2):
            connect(server).send("reserve\r\n")
        last = connect(server)
        eventually(lambda: last.yaml("stats")["current-waiting"] == 2, "them to wait")
        assert last.tell("reserve") == "OUT_OF_MEMORY"
        last.put(b"x")
        eventually(lambda: last.yaml("stats")["current-waiting"] == 1, "one to be served")


class TestRelease:
    @pytest.mark.parametrize("delay, status", [(0, "pending"), (HOUR, "scheduled")])
    def test_it_counts_no_failure(self, bean, queue, delay, status):
        number = hold(bean)
        assert bean.tell(f"release {number} 9 {delay}") == "RELEASED"
        job = only_job(queue)
        assert (job["status"], job["failures"], job["priority"], job["lane"]) == (
            status, 0, 9, "fresh")
        assert job["history"][-1]["outcome"] == "released"
        if delay:
            assert_close(job["due_at"], time.time() + delay)
        assert queue.totals()["released"] == 1 and "failed" not in queue.totals()

    def test_the_new_priority_survives_a_kill(self, start_door, connect, tube):
        server = start_door()
        bean = connect(server)
        ids = [bean.put(b"x", pri=5) for _ in range(3)]
        for _ in ids:
            bean.reserve_one()
        for number, pri in zip(ids, (7, 6, 8)):
            bean.tell(f"release {number} {pri} 0")
        server.restart("kill")
        bean = connect(server)
        assert [bean.reserve_one().id for _ in ids] == [ids[1], ids[0], ids[2]]


class TestBury:
    def test_it_is_dead_and_nothing_failed(self, bean, queue):
        queue.patch(on_failure=on_failure("return {}"), hook_timeout_ms=1000)
        number = hold(bean)
        bean.tell(f"bury {number} 17")
        job = only_job(queue)
        assert (job["status"], job["reason"], job["failures"], job["priority"]) == (
            "dead", "buried", 0, 17)
        meta = meta_of(queue, job["id"])
        assert (meta["reason"], meta["attempts"], meta["lastError"]) == ("buried", 1, None)
        assert base64.b64decode(job["dead_letter"]["event"]["payload_base64"]) == b"x"
        assert hook_of(queue)["succeeded"] == 0
        assert queue.totals()["died"] == 1 and "failed" not in queue.totals()
        assert [each["id"] for each in queue.jobs(reason="buried")] == [job["id"]]
        assert queue.jobs(reason="max_attempts") == []

    def test_it_can_be_brought_back_over_http(self, bean, queue):
        number = hold(bean)
        bean.tell(f"bury {number} 1")
        queue.retry(only_job(queue)["id"])
        assert bean.state_of(number) == "ready" and bean.reserve().id == number

    def test_a_queue_with_a_dead_letter_queue_sends_it_there(self, bean, queue):
        morgue = queue.sibling(queue.name + ".morgue").created()
        queue.patch(dead_letter_queue=morgue.name)
        number = hold(bean)
        assert bean.tell(f"bury {number} 1") == "BURIED"
        [job] = morgue.jobs()
        assert job["headers"]["reprise-death-reason"] == "buried"
        assert queue.counts() == {} and bean.peek("buried") is None

    def test_it_survives_a_kill(self, start_door, connect, tube):
        server = start_door()
        bean = connect(server)
        number = hold(bean)
        bean.tell(f"bury {number} 3")
        server.restart("kill")
        bean = connect(server)
        stats = bean.stats_job(number)
        assert (stats["state"], stats["pri"], stats["buries"]) == ("buried", 3, 1)
        assert bean.tell("kick 1") == "KICKED 1"


class TestKick:
    def test_it_is_a_retry(self, bean, queue):
        number = hold(bean)
        bean.tell(f"bury {number} 1")
        assert bean.tell("kick 1") == "KICKED 1"
        job = only_job(queue)
        assert (job["status"], job["generation"], job["failures"], job["lane"]) == (
            "pending", 2, 0, "fresh")
        assert queue.totals()["retried"] == 1
        assert bean.reserve().id == number
        stats = bean.stats_job(number)
        assert (stats["reserves"], stats["kicks"], stats["buries"]) == (2, 1, 1)

    def test_whatever_they_died_of_the_longest_dead_first(self, bean, queue):
        queue.patch(retry=ATTEMPTS_ONE)
        [first] = bury(queue, "boom")
        number = hold(bean)
        bean.tell(f"bury {number} 1")
        [third] = bury(queue, "bang")
        assert bean.stats_tube(queue.name)["current-jobs-buried"] == 3
        assert bean.peek("buried").body == b'{"for": "boom"}'
        assert bean.tell("kick 1") == "KICKED 1"
        assert queue.status_of(first) == "pending" and queue.status_of(third) == "dead"
        assert bean.tell("kick 5") == "KICKED 2"
        assert queue.counts() == {"pending": 3}

    def test_those_that_cool_down_when_none_is_dead(self, bean, queue):
        queue.patch(retry={"attempts": "unlimited", "cooldown": "1h"})
        number = hold(bean)
        assert bean.ask(f"fail {number} 4", b"boom").line == f"RETRYING {HOUR}"
        assert bean.state_of(number) == "delayed" and bean.peek("delayed").id == number
        later = bean.put(b"later", delay=2 * HOUR)
        assert bean.tell("kick 1") == "KICKED 1"
        assert bean.state_of(number) == "ready" and bean.state_of(later) == "delayed"
        assert bean.tell(f"kick-job {later}") == "KICKED"
        assert sorted(bean.reserve_one().id for _ in range(2)) == [number, later]

    def test_many(self, bean, queue):
        bury_many(queue, 2500)
        assert bean.tell("kick 2200") == "KICKED 2200"
        assert queue.counts() == {"pending": 2200, "dead": 300}
        assert bean.tell("kick 1000000") == "KICKED 300"


class TestTimeToRun:
    def test_the_queue_decides_what_becomes_of_it(self, bean, queue):
        """Four queues at once, since each takes a second."""
        again, dead, cooling, hooked = (queue.sibling(f"{queue.name}.{name}") for name in (
            "again", "dead", "cooling", "hooked"))
        numbers = {}
        for each in (again, dead, cooling, hooked):
            bean.tell(f"use {each.name}")
            bean.tell(f"watch {each.name}")
            numbers[each.name] = bean.put(b"x", ttr=1)
        dead.patch(retry=ATTEMPTS_ONE)
        cooling.patch(retry={"attempts": 5, "cooldown": "1h"})
        hooked.patch(retry=None, hook_timeout_ms=1000,
                     on_failure=on_failure('return { action = "dlq", reason = "too slow" }'))
        for _ in numbers:
            bean.reserve_one()
        eventually(lambda: all(each.counts() != {"active": 1}
                               for each in (again, dead, cooling, hooked)), "them to expire")

        job = only_job(again)
        assert (job["status"], job["failures"], job["lane"]) == ("pending", 1, "retry")
        assert job["history"][-1]["outcome"] == "lease_expired"
        assert again.totals()["lease_expired"] == 1
        assert bean.stats_job(numbers[again.name])["timeouts"] == 1
        assert bean.reserve().id == numbers[again.name]

        job = only_job(dead)
        assert (job["status"], job["reason"]) == ("dead", "lease_expired")
        assert bean.state_of(numbers[dead.name]) == "buried"

        job = only_job(cooling)
        assert (job["status"], job["failures"]) == ("failed", 1)
        assert_close(job["due_at"], time.time() + HOUR, slack=5)
        assert bean.state_of(numbers[cooling.name]) == "delayed"

        eventually(lambda: only_job(hooked)["status"] == "dead", "the hook's decision")
        assert only_job(hooked)["reason"] == "too slow"

    def test_who_waits_gets_what_expires_and_who_holds_it_is_warned(self, door, connect, bean):
        """Of these two moments beanstalkd overlooks one at times, so it is not asked."""
        number = hold(bean, ttr=2)
        started = time.monotonic()
        other = connect(door)
        bean.send("reserve\r\n")
        other.send("reserve\r\n")
        assert bean.line() == "DEADLINE_SOON"
        assert 0.9 < time.monotonic() - started < 1.9
        assert other.reply() == (f"RESERVED {number} 1", b"x")
        assert 1.9 < time.monotonic() - started < 5
        assert bean.tell(f"touch {number}") == "NOT_FOUND"

    def test_touch_is_an_extension_by_the_ttr(self, bean, queue):
        number = hold(bean, ttr=HOUR)
        assert_close(only_job(queue)["lease_expires_at"], time.time() + HOUR)
        assert bean.tell(f"touch {number}") == "TOUCHED"
        assert_close(only_job(queue)["lease_expires_at"], time.time() + HOUR)


class TestConnectionsThatEnd:
    @pytest.mark.parametrize("how", ["close", "reset", "quit", "half close"])
    def test_their_jobs_are_released_at_once(self, door, connect, bean, queue, how):
        leaving = connect(door)
        ids = [leaving.put(b"x", ttr=HOUR) for _ in range(5)]
        for _ in ids:
            leaving.reserve_one()
        if how == "quit":
            leaving.tell("quit")
        elif how == "half close":
            leaving.end_sending()
        elif how == "reset":
            leaving.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            leaving.close()
        else:
            leaving.close()
        eventually(lambda: queue.counts() == {"pending": 5}, "the jobs to be released")
        job = queue.job(queue.jobs()[0]["id"])
        assert (job["failures"], job["history"][-1]["outcome"]) == (0, "worker_lost")
        assert [bean.reserve_one().id for _ in ids] == ids

    def test_what_is_on_its_way_to_one_that_is_gone_comes_back(self, door, connect, bean, queue):
        leaving = connect(door)
        leaving.send("reserve\r\n" * 19)
        waits(leaving, bean, queue.name)
        leaving.close()
        bean.send(put_text(b"x" * 1000) * 20)
        bean.replies(20)
        eventually(lambda: queue.counts() == {"pending": 20}, "all to be there again")
        assert sum(1 for _ in range(20) if bean.reserve()) == 20

    @pytest.mark.parametrize("how", ["kill", "stop"])
    def test_a_restart_releases_what_was_held_here(self, start_door, connect, tube, how):
        server = start_door()
        bean = connect(server)
        ids = [bean.put(b"x", ttr=HOUR) for _ in range(3)]
        for _ in ids:
            bean.reserve_one()
        bean.tell(f"bury {ids[2]} 1")
        queue = server.client().queue(tube)
        queue.push_one("held over HTTP", priority=0)
        token = queue.claim_one(lease="1h")["token"]
        server.restart(how)
        queue = queue.through(server.client())
        eventually(lambda: queue.counts() == {"pending": 2, "active": 1, "dead": 1},
                   "what was held here to be released, and nothing else")
        bean = connect(server)
        assert [bean.reserve_one().id for _ in range(2)] == ids[:2]
        assert queue.job(queue.jobs(status="active")[0]["id"])["failures"] == 0
        assert queue.client.ack(token)["status"] == "acked"


class TestFail:
    def fail(self, bean, number, error=b"boom"):
        return bean.ask(f"fail {number} {len(error)}", error).line

    def test_a_tube_as_it_is_made_retries_at_once(self, bean, queue):
        number = hold(bean)
        assert self.fail(bean, number, "no route é\r\n".encode()) == "RETRYING 0"
        job = only_job(queue)
        assert (job["failures"], job["last_error"], job["lane"]) == (1, "no route é\r\n", "retry")
        assert job["history"][-1]["outcome"] == "failed"
        assert bean.reserve_one().id == number
        assert self.fail(bean, number, b"") == "RETRYING 0"
        assert only_job(queue)["failures"] == 2

    @pytest.mark.parametrize("cooldown, seconds", [("1h", HOUR), ("1500ms", 2), ("100s", 100)])
    def test_the_policy_says_when(self, bean, queue, cooldown, seconds):
        queue.patch(retry={"attempts": 2, "cooldown": cooldown})
        number = hold(bean)
        assert self.fail(bean, number) == f"RETRYING {seconds}"
        assert bean.state_of(number) == "delayed"
        bean.ask(f"reserve-job {number}")
        assert self.fail(bean, number) == "DEAD"

    def test_the_last_failure(self, bean, queue):
        queue.patch(retry=ATTEMPTS_ONE)
        number = hold(bean)
        assert self.fail(bean, number, b"out of luck") == "DEAD"
        meta = meta_of(queue, only_job(queue)["id"])
        assert (meta["reason"], meta["lastError"]) == ("max_attempts", "out of luck")
        assert bean.peek("buried").id == number and bean.tell("kick 1") == "KICKED 1"
        assert only_job(queue)["failures"] == 0

    def test_the_hook_decides(self, bean, queue):
        queue.patch(hook_timeout_ms=1000, on_failure=on_failure(
            'if msg.error == "fatal" then return { action = "dlq", reason = "said so" } end\n'
            'return { action = "retry", delay_ms = 2500 }'))
        number = hold(bean)
        assert self.fail(bean, number, b"mild") == "RETRYING 3"
        bean.ask(f"reserve-job {number}")
        assert self.fail(bean, number, b"fatal") == "DEAD"
        assert only_job(queue)["reason"] == "said so"

    def test_only_what_one_holds(self, door, connect, bean, queue):
        assert self.fail(bean, 0) == "NOT_FOUND"
        number = hold(bean)
        assert self.fail(connect(door), number) == "NOT_FOUND"
        bean.tell(f"release {number} 1 0")
        assert self.fail(bean, number) == "NOT_FOUND"
        assert only_job(queue)["failures"] == 0

    def test_many_in_a_row(self, bean, queue):
        queue.patch(retry={"attempts": 2, "cooldown": "1h"})
        bean.send(put_text(b"x") * 100 + b"reserve\r\n" * 100)
        ids = [reply.number for reply in bean.replies(200)[:100]]
        bean.send(b"".join(b"fail %d 4\r\nboom\r\nlist-tube-used\r\n" % number for number in ids))
        assert bean.lines(200) == [f"RETRYING {HOUR}", f"USING {queue.name}"] * 100

    def test_bad_input(self, bean, queue):
        number = hold(bean)
        for line in (f"fail {number}", f"fail {number} ", f"fail {number} x", "fail x 1", "fail ",
                     f"fail {number} -1", f"fail {number} {2**32}", f"fail {2**64} 1"):
            assert bean.tell(line) == "BAD_FORMAT", line
        bean.send(f"fail {number} 3\r\nabcdelist-tube-used\r\n")
        assert bean.lines(2) == ["EXPECTED_CRLF", f"USING {queue.name}"]
        assert only_job(queue)["failures"] == 0 and bean.tell(f"touch {number}") == "TOUCHED"

    def test_an_error_that_is_too_long(self, bean, queue):
        number = hold(bean)
        assert self.fail(bean, number, b"x" * (16 * 1024 + 1)) in ("JOB_TOO_BIG", "BAD_FORMAT")
        assert bean.tell("list-tube-used") == f"USING {queue.name}"
        assert only_job(queue)["failures"] == 0
        assert self.fail(bean, number, b"x" * 16 * 1024) == "RETRYING 0"


class TestDurability:
    def test_what_was_answered_survives_a_kill(self, start_door, connect, tube):
        server = start_door()
        bean, worker = connect(server), connect(server)
        inserted, deleted, asked = [], [], []  # asked: to be deleted, so they may be gone

        def produce():
            try:
                while True:
                    bean.send(put_text(os.urandom(200)) * 50)
                    for _ in range(50):
                        reply = bean.reply()
                        if reply is None:
                            return
                        inserted.append(reply.number)
            except (OSError, AssertionError):
                return  # the server was killed within a reply

        def consume():
            try:
                while True:
                    worker.send("reserve\r\n" * 20)
                    numbers = [reply.number for reply in worker.replies(20)]
                    asked.extend(numbers)
                    worker.send("".join(f"delete {number}\r\n" for number in numbers))
                    for number in numbers:
                        if worker.line() == "DELETED":
                            deleted.append(number)
            except (OSError, AssertionError, AttributeError):
                return

        producing, consuming = in_background(produce), in_background(consume)
        eventually(lambda: len(inserted) > 2000 and len(deleted) > 500, "some work", timeout=30)
        server.kill()
        producing.result(10), consuming.result(10)
        server.start()
        after = connect(server)
        numbers = sorted({*inserted, *asked})
        present = set()
        for start in range(0, len(numbers), 200):
            some = numbers[start:start + 200]
            after.send("".join(f"peek {number}\r\n" for number in some))
            present |= {number for number, reply in zip(some, after.replies(len(some)))
                        if reply.word == "FOUND"}
        assert not set(deleted) & present, "answered DELETED, and there again"
        lost = set(inserted) - set(asked) - present
        assert not lost, f"{len(lost)} answered INSERTED, and gone"

    def test_every_state_survives_a_kill(self, start_door, connect, tube):
        server = start_door()
        bean = connect(server)
        script = {
            "ready": [], "delayed": ["release {} 4 5000"], "buried": ["bury {} 5"],
            "released": ["release {} 6 0"],
            "kicked": ["bury {} 7", "kick-job {}"], "woken": ["release {} 8 5000", "kick-job {}"]}
        numbers = {}
        for name, commands in script.items():
            numbers[name] = bean.put(name.encode(), pri=3, ttr=77)
            if commands:
                bean.ask(f"reserve-job {numbers[name]}")
            for command in commands:
                assert bean.tell(command.format(numbers[name])) in ("RELEASED", "BURIED", "KICKED")
        waiting = bean.put(b"put with a delay", pri=9, delay=5000)

        def facts(client):
            return {name: {field: stats[field] for field in (
                "tube", "state", "pri", "ttr", "reserves", "releases", "buries", "kicks")}
                for name, stats in ((name, client.stats_job(number))
                                    for name, number in {**numbers, "waiting": waiting}.items())}

        before = facts(bean)
        server.restart("kill")
        assert facts(connect(server)) == before

    def test_a_pause_does_not(self, start_door, connect, tube):
        server = start_door()
        bean = connect(server)
        bean.put(b"x")
        bean.tell(f"pause-tube {tube} {HOUR}")
        server.restart("kill")
        bean = connect(server)
        assert bean.stats_tube(tube)["pause-time-left"] == 0 and bean.reserve()


class TestStopping:
    def test_connections_of_every_kind_do_not_hold_it_up(self, start_door, connect):
        server = start_door()
        idle, waiting, within, holding = (connect(server) for _ in range(4))
        holding.put(b"x")
        holding.reserve_one()
        waiting.send("reserve\r\n").read_by_peer()
        within.send("put 1 0 60 1000\r\nhalf").read_by_peer()
        code, seconds = server.terminate()
        assert code == 0 and seconds < STOP_SECONDS_MAX, server.log()
        assert waiting.line() in ("TIMED_OUT", None)
        assert idle.closed_by_peer() and holding.closed_by_peer()

    def test_puts_are_stored_or_refused(self, start_door, connect):
        server = start_door()
        bean = connect(server)
        inserted, others = [], []

        def produce():
            try:
                while reply := bean.send(put_text(b"x") * 10).reply():
                    for each in (reply, *bean.replies(9)):
                        if each and each.word == "INSERTED":
                            inserted.append(each.number)
                        elif each:
                            others.append(each.line)
            except (OSError, AssertionError):
                return  # closed

        producing = in_background(produce)
        eventually(lambda: len(inserted) > 100, "some work")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        producing.result(10)
        assert set(others) <= {"DRAINING"}
        server.start()
        after = connect(server)
        after.send("".join(f"delete {number}\r\n" for number in inserted))
        assert set(after.lines(len(inserted))) == {"DELETED"}


class TestListening:
    @pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
    def test_beyond_loopback_only_when_the_network_is_trusted(self, start_door, address):
        server = start_door(beanstalk=address, ready=False)
        server.launch()
        assert server.wait() in (1, 2)
        assert "beanstalk_remote" in server.log() or "beanstalk-remote" in server.log()

    def test_it_is_when_the_setting_says_so(self, start_door, connect):
        server = start_door(beanstalk="0.0.0.0:0", env={"REPRISE_BEANSTALK_REMOTE": "true"})
        assert connect(server).put(b"x")

    def test_loopback_of_the_other_family(self, start_door, connect):
        server = start_door(beanstalk="[::1]:0")
        assert connect(server, host="::1").put(b"x")

    @pytest.mark.parametrize("address", ["nonsense", "127.0.0.1", "127.0.0.1:99999"])
    def test_addresses_that_are_none(self, start_door, address):
        server = start_door(beanstalk=address, ready=False)
        server.launch()
        assert server.wait() in (1, 2)
        assert "beanstalk" in server.log()

    def test_an_address_that_is_taken(self, start_door, door):
        server = start_door(beanstalk=f"127.0.0.1:{door.door_port}", ready=False)
        server.launch()
        assert server.wait() in (1, 2)
        assert str(door.door_port) in server.log()

    def test_it_does_not_answer_http_and_http_does_not_answer_it(self, door, connect):
        with door.connect() as confused:
            confused.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert confused.lines(3) == ["UNKNOWN_COMMAND"] * 3


class TestMetrics:
    def commands(self, http):
        """{verb: count} of all that were answered."""
        return {verb: count for (name, labels), count in read_metrics(http).samples.items()
                if name == "reprise_beanstalk_commands_total" for _, verb in labels}

    def connections(self, http):
        return read_metrics(http).value("reprise_beanstalk_connections")

    def test_commands_are_counted_by_verb(self, bean, http):
        before = self.commands(http)
        bean.send(put_text(b"x") * 3 + b"delete 0\r\nfail 0 1\r\nx\r\n")
        bean.replies(5)
        after = self.commands(http)
        assert {verb: count - before.get(verb, 0) for verb, count in after.items()
                if count != before.get(verb, 0)} == {"put": 3, "delete": 1, "fail": 1}

    def test_connections_are_counted(self, door, connect, http):
        eventually(lambda: self.connections(http) == 0, "those of other tests to be gone")
        extra = connect(door)
        assert self.connections(http) == 1
        extra.close()
        eventually(lambda: self.connections(http) == 0, "the connection to be gone")


def test_the_command_line_shows_what_is_buried(door, bean, queue):
    number = hold(bean)
    bean.tell(f"bury {number} 1")
    job_id = only_job(queue)["id"]
    cli = Cli(door.url)
    assert job_id in cli.ok("queue", "inspect", queue.name).out
    assert cli.ok("queue", "inspect", queue.name, job_id).json()["meta"]["reason"] == "buried"
    cli.ok("queue", "retry", queue.name, job_id)
    assert bean.reserve().id == number
