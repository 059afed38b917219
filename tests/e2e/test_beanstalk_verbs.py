"""The beanstalk protocol: every verb with every reply, however the bytes come.

Each test runs against Debian's beanstalkd first, so what is said here of the protocol is known to
be so, and then against Reprise. Where docs/beanstalk.md lists a difference, the test says which.
"""

import os
import time

import pytest

from background import in_background
from beanstalk_client import flat_yaml, put_text
from beanstalk_lines import BAD, MAX, UNKNOWN
from beanstalk_servers import Beanstalkd
from waiting import eventually

MIB = 1 << 20


def in_step(client):
    """The connection is usable, and no reply is left over."""
    return client.tell("list-tube-used").startswith("USING ")


def in_turn(client, *commands):
    """The lines of the replies to these commands, each sent after the reply to the one before."""
    return [client.tell(command) for command in commands]


def reserve_until(client, count):
    return [client.reserve_one() for _ in range(count)]


class TestPut:
    def test_a_job_comes_back_as_it_was_put(self, client):
        first, second = client.put(b"hello"), client.put(b"again")
        assert second > first > 0
        assert client.reserve() == (first, b"hello")
        assert client.reserve() == (second, b"again")

    @pytest.mark.parametrize("body", [
        b"", b"\r\n", b"\r", b"\n\r\n", b"delete 1\r\n", b"\0", bytes(range(256)), b"a\r\n" * 1000,
        "é€😀".encode(), b"\xff\xfe\x80"], ids=repr)
    def test_bodies_are_bytes(self, client, body):
        job_id = client.put(body)
        assert client.peek(job_id) == (job_id, body)
        assert client.reserve() == (job_id, body)
        assert in_step(client)

    @pytest.mark.parametrize("spare", [0, 1, 1000])
    def test_large_bodies(self, client, peer, spare):
        body = os.urandom(peer.body_bytes_max - spare)
        job_id = client.put(body)
        assert client.reserve() == (job_id, body)

    def test_the_extremes_of_every_number(self, client):
        job_id = client.put(b"x", pri=MAX, delay=MAX, ttr=MAX)
        stats = client.stats_job(job_id)
        assert (stats["pri"], stats["ttr"], stats["state"]) == (MAX, MAX, "delayed")
        # Difference 6: what is left of the delay, and a moment of it may have passed.
        assert MAX - 60 <= stats["delay"] <= MAX and MAX - 60 <= stats["time-left"] <= MAX
        least = client.put(b"x", pri=0, delay=0, ttr=0)
        stats = client.stats_job(least)
        assert (stats["pri"], stats["ttr"], stats["state"]) == (0, 1, "ready")
        assert client.tell(f"delete {job_id}") == "DELETED"

    def test_blanks_and_zeros_before_numbers_are_fine(self, client):
        assert client.ask("put  007   00  60 0001", b"x").word == "INSERTED"
        job_id, body = client.reserve()
        assert client.stats_job(job_id)["pri"] == 7 and body == b"x"
        assert client.tell(f"delete  0{job_id}") == "DELETED"

    @pytest.mark.parametrize("excess", [1, 2, 100_000])
    def test_a_body_that_is_too_big_is_skipped(self, client, peer, excess):
        size = peer.body_bytes_max + excess
        client.send(b"put 1 0 60 %d\r\n" % size)
        client.send(b"x" * size + b"\r\n")
        assert client.line() == "JOB_TOO_BIG"
        assert in_step(client)
        assert client.put(b"small") and client.reserve().body == b"small"

    def test_a_body_that_is_too_big_is_skipped_among_others(self, client, peer):
        big = put_text(b"delete 1\r\n" * (peer.body_bytes_max // 10 + 1))
        sending = in_background(client.send, put_text(b"a") + big + put_text(b"b") + big)
        words = [client.reply().word for _ in range(4)]
        sending.result(10)
        assert words == ["INSERTED", "JOB_TOO_BIG", "INSERTED", "JOB_TOO_BIG"]
        assert [job.body for job in reserve_until(client, 2)] == [b"a", b"b"]

    @pytest.mark.parametrize("after", [b"ab", b"\r\r", b"\n\r", b"\rx", b"x\n", b"\0\0"])
    def test_a_body_must_end_with_crlf(self, client, tube, after):
        # As many bytes are taken as the body and its end should have; then comes the next command.
        client.send(b"put 1 0 60 3\r\nabc" + after + b"list-tube-used\r\n")
        assert client.lines(2) == ["EXPECTED_CRLF", f"USING {tube}"]
        assert client.reserve() is None

    def test_the_body_of_a_line_that_cannot_be_read_is_the_next_line(self, client, tube):
        client.send(b"put 1 0 60 x\r\nlist-tube-used\r\nlist-tube-used\r\n")
        assert client.lines(3) == ["BAD_FORMAT", f"USING {tube}", f"USING {tube}"]

    def test_a_client_that_leaves_within_a_body_has_put_nothing(self, peer, connect, client, tube):
        other = connect(peer)
        other.send(b"put 1 0 60 10\r\nhalf").read_by_peer()
        other.close()
        eventually(lambda: client.stats_tube(tube)["current-using"] == 1, "the client to be gone")
        assert client.stats_tube(tube)["total-jobs"] == 0

    def test_priorities_then_age(self, client):
        for name, pri in (("c", 7), ("a", 0), ("d", 7), ("b", 3), ("e", MAX)):
            client.put(name.encode(), pri=pri)
        assert [job.body for job in reserve_until(client, 5)] == [b"a", b"b", b"c", b"d", b"e"]


class TestUse:
    def test_jobs_go_to_the_tube_in_use(self, client, tube):
        assert in_turn(client, f"use {tube}.2", "list-tube-used") == [f"USING {tube}.2"] * 2
        job_id = client.put(b"x")
        assert client.stats_job(job_id)["tube"] == f"{tube}.2"
        assert client.reserve() is None
        assert client.tell(f"watch {tube}.2") == "WATCHING 2"
        assert client.reserve() == (job_id, b"x")

    def test_default_is_used_and_watched_at_first(self, peer):
        with peer.connect() as fresh:
            assert fresh.tell("list-tube-used") == "USING default"
            assert fresh.yaml("list-tubes-watched") == ["default"]

    def test_names(self, client, tube):
        longest = tube + "a" * (200 - len(tube))
        for name in (longest, f"{tube}.-_Az09", "0"):
            assert in_turn(client, f"use {name}", f"watch {name}", f"ignore {name}") == [
                f"USING {name}", "WATCHING 2", "WATCHING 1"]
        for name in (longest + "a", "-a", "a!", "a:b", "a*", "é", "a\0", "a\tb", "a,b", "", "a b"):
            for verb in ("use", "watch", "ignore", "stats-tube"):
                assert client.tell(f"{verb} {name}") == "BAD_FORMAT", (verb, name)
            assert client.tell(f"pause-tube {name} 0") == "BAD_FORMAT", name
        assert client.tell("list-tube-used") == "USING 0"

    def test_names_that_no_queue_can_have(self, client, peer):
        # Difference 2.
        for name in ("a+b", "a/b", "a;b", "a$b", "a(b)", ".a", "_a"):
            expected = f"USING {name}" if peer.reference else "BAD_FORMAT"
            assert client.tell(f"use {name}") == expected


class TestReserve:
    def test_nothing_there(self, client):
        assert client.tell("reserve-with-timeout 0") == "TIMED_OUT"

    def test_it_times_out(self, client):
        started = time.monotonic()
        assert client.tell("reserve-with-timeout 1") == "TIMED_OUT"
        assert 0.9 < time.monotonic() - started < 5

    @pytest.mark.parametrize("command", ["reserve", "reserve-with-timeout 60",
                                         f"reserve-with-timeout {MAX}"])
    def test_it_waits_for_a_put(self, client, peer, connect, tube, command):
        producer = connect(peer)
        client.send(command + "\r\n")
        eventually(lambda: producer.stats_tube(tube)["current-waiting"] == 1, "it to wait")
        job_id = producer.put(b"late")
        reply = client.reply()
        assert reply == (f"RESERVED {job_id} 4", b"late")
        assert producer.stats_tube(tube)["current-waiting"] == 0

    def test_it_waits_for_a_delay_and_for_a_release(self, client, peer, connect):
        other = connect(peer)
        job_id = other.put(b"x", delay=1)
        assert client.reserve() is None
        assert client.peek("delayed") == (job_id, b"x") and client.peek("ready") is None
        assert client.reserve(10) == (job_id, b"x")
        other.send("reserve\r\n").read_by_peer()
        assert client.tell(f"release {job_id} 1 0") == "RELEASED"
        assert other.reply() == (f"RESERVED {job_id} 1", b"x")

    def test_commands_behind_one_that_waits_wait_too(self, client, peer, connect, tube):
        producer = connect(peer)
        client.send("reserve\r\nlist-tube-used\r\n")
        assert client.quiet(0.1)
        producer.put(b"x")
        assert [reply.word for reply in client.replies(2)] == ["RESERVED", "USING"]

    def test_the_most_urgent_of_all_watched_tubes_then_the_oldest(self, client, tube):
        for name, pri in (("a", 3), ("b", 1), ("c", 1), ("a", 1), ("b", 0), ("a", 2)):
            client.tell(f"use {tube}.{name}")
            client.tell(f"watch {tube}.{name}")
            client.put(f"{name}{pri}".encode(), pri=pri)
        assert [job.body for job in reserve_until(client, 6)] == [
            b"b0", b"b1", b"c1", b"a1", b"a2", b"a3"]

    def test_of_a_tube_that_is_not_watched_nothing_comes(self, client, tube):
        assert in_turn(client, f"watch {tube}.b", f"ignore {tube}") == ["WATCHING 2", "WATCHING 1"]
        client.put(b"x")
        assert client.reserve() is None

    def test_a_job_is_given_to_one_only(self, client, peer, connect):
        other = connect(peer)
        client.put(b"x")
        assert client.reserve() and not other.reserve()

    def test_half_closed_while_it_waits(self, client):
        client.send("reserve\r\n")
        client.read_by_peer()
        client.end_sending()
        assert client.line() == "TIMED_OUT"
        assert client.closed_by_peer()

    def test_what_was_sent_before_a_half_close_is_answered(self, client, tube):
        client.send(put_text(b"x") + b"reserve\r\nlist-tube-used\r\n").end_sending()
        assert [reply.word for reply in client.replies(3)] == ["INSERTED", "RESERVED", "USING"]
        assert client.closed_by_peer()


class TestReserveJob:
    def test_a_ready_a_delayed_and_a_buried_one(self, client, peer, connect):
        ready, delayed, buried = (client.put(body) for body in (b"r", b"d", b"b"))
        for job_id in (ready, delayed, buried):
            assert client.reserve().id == job_id
        assert in_turn(client, f"release {ready} 1 0", f"release {delayed} 1 100",
                       f"bury {buried} 1") == ["RELEASED", "RELEASED", "BURIED"]
        other = connect(peer)
        for job_id, body in ((ready, b"r"), (delayed, b"d"), (buried, b"b")):
            assert other.ask(f"reserve-job {job_id}") == (f"RESERVED {job_id} 1", body)
            assert other.state_of(job_id) == "reserved"
            assert other.tell(f"reserve-job {job_id}") == "NOT_FOUND"
            assert client.tell(f"reserve-job {job_id}") == "NOT_FOUND"
            assert other.tell(f"delete {job_id}") == "DELETED"

    def test_it_needs_no_watching_and_no_turn(self, client, tube):
        client.put(b"first", pri=0)
        client.tell(f"use {tube}.other")
        job_id = client.put(b"second", pri=9)
        assert client.ask(f"reserve-job {job_id}") == (f"RESERVED {job_id} 6", b"second")

    def test_no_such_job(self, client):
        for job_id in (0, 2**63, 2**64 - 1):
            assert client.tell(f"reserve-job {job_id}") == "NOT_FOUND"


class TestDelete:
    def test_in_every_state(self, client):
        reserved, buried, ready = (client.put(b"x") for _ in range(3))
        delayed = client.put(b"x", delay=100)
        assert client.reserve().id == reserved and client.reserve().id == buried
        client.tell(f"bury {buried} 0")
        for job_id in (reserved, buried, ready, delayed):
            assert client.peek(job_id)
            assert in_turn(client, f"delete {job_id}", f"delete {job_id}", f"peek {job_id}",
                           f"stats-job {job_id}") == ["DELETED"] + ["NOT_FOUND"] * 3
        assert client.reserve() is None

    def test_not_what_another_one_holds(self, client, peer, connect):
        other = connect(peer)
        job_id = client.put(b"x")
        other.reserve_one()
        assert client.tell(f"delete {job_id}") == "NOT_FOUND"
        assert other.tell(f"delete {job_id}") == "DELETED"

    def test_no_such_job(self, client):
        for job_id in (0, 2**63, 2**64 - 1):
            assert client.tell(f"delete {job_id}") == "NOT_FOUND"


class TestRelease:
    def test_it_is_ready_again_with_its_new_priority(self, client):
        first, second = client.put(b"1", pri=5), client.put(b"2", pri=5)
        reserve_until(client, 2)
        assert client.tell(f"release {second} 4 0") == "RELEASED"
        assert client.tell(f"release {first} 6 0") == "RELEASED"
        stats = client.stats_job(first)
        assert (stats["state"], stats["pri"], stats["releases"], stats["reserves"]) == (
            "ready", 6, 1, 1)
        assert [job.id for job in reserve_until(client, 2)] == [second, first]

    def test_it_takes_its_place_by_age(self, client):
        ids = [client.put(b"x", pri=5) for _ in range(3)]
        first = client.reserve_one().id
        client.tell(f"release {first} 5 0")
        assert [job.id for job in reserve_until(client, 3)] == ids

    def test_with_a_delay(self, client):
        job_id = client.put(b"x")
        client.reserve_one()
        assert client.tell(f"release {job_id} 9 100") == "RELEASED"
        stats = client.stats_job(job_id)
        assert (stats["state"], stats["pri"]) == ("delayed", 9)
        assert 90 <= stats["time-left"] <= 100 and 90 <= stats["delay"] <= 100
        assert client.reserve() is None and client.peek("delayed").id == job_id

    def test_only_what_one_holds(self, client, peer, connect):
        job_id = client.put(b"x")
        assert client.tell(f"release {job_id} 1 0") == "NOT_FOUND"
        connect(peer).reserve_one()
        assert client.tell(f"release {job_id} 1 0") == "NOT_FOUND"
        assert client.tell(f"release {2**64 - 1} 1 0") == "NOT_FOUND"
        assert client.state_of(job_id) == "reserved"


class TestBuryAndKick:
    def bury(self, client, *pris):
        ids = [client.put(b"x", pri=5) for _ in pris]
        reserve_until(client, len(ids))
        for job_id, pri in zip(ids, pris):
            assert client.tell(f"bury {job_id} {pri}") == "BURIED"
        return ids

    def test_buried_until_kicked(self, client):
        [job_id] = self.bury(client, 8)
        stats = client.stats_job(job_id)
        assert (stats["state"], stats["pri"], stats["buries"]) == ("buried", 8, 1)
        assert client.reserve() is None and client.peek("buried") == (job_id, b"x")
        assert client.tell("kick 10") == "KICKED 1"
        stats = client.stats_job(job_id)
        assert (stats["state"], stats["pri"], stats["kicks"]) == ("ready", 8, 1)
        assert client.reserve().id == job_id

    def test_only_what_one_holds(self, client, peer, connect):
        job_id = client.put(b"x")
        assert client.tell(f"bury {job_id} 1") == "NOT_FOUND"
        connect(peer).reserve_one()
        assert client.tell(f"bury {job_id} 1") == "NOT_FOUND"
        assert client.tell(f"bury {2**64 - 1} 1") == "NOT_FOUND"

    def test_the_longest_buried_first_and_no_more_than_asked_for(self, client):
        ids = [client.put(b"x") for _ in range(4)]
        reserve_until(client, 4)
        order = [ids[2], ids[0], ids[3], ids[1]]
        for job_id in order:
            client.tell(f"bury {job_id} 1")
        assert client.peek("buried").id == order[0]
        assert in_turn(client, "kick 0", "kick 1") == ["KICKED 0", "KICKED 1"]
        assert client.peek("buried").id == order[1] and client.state_of(order[0]) == "ready"
        assert client.tell("kick 2") == "KICKED 2"
        assert client.peek("buried").id == order[3]
        assert in_turn(client, f"kick {MAX}", "kick 1") == ["KICKED 1", "KICKED 0"]
        assert [job.id for job in reserve_until(client, 4)] == ids

    def test_delayed_jobs_only_when_none_is_buried(self, client):
        [buried] = self.bury(client, 1)
        late, soon = client.put(b"late", delay=200), client.put(b"soon", delay=100)
        assert client.tell("kick 10") == "KICKED 1"
        assert client.state_of(buried) == "ready"
        assert client.state_of(late) == client.state_of(soon) == "delayed"
        assert client.peek("delayed").id == soon
        assert client.tell("kick 1") == "KICKED 1"
        assert (client.state_of(soon), client.state_of(late)) == ("ready", "delayed")
        assert client.tell("kick 10") == "KICKED 1"
        assert client.stats_job(late)["kicks"] == 1
        assert client.tell("kick 10") == "KICKED 0"

    def test_only_in_the_tube_in_use(self, client, tube):
        [job_id] = self.bury(client, 1)
        client.tell(f"use {tube}.other")
        assert client.tell("kick 10") == "KICKED 0"
        assert client.peek("buried") is None
        assert client.tell(f"kick-job {job_id}") == "KICKED"

    def test_kick_job(self, client):
        [buried] = self.bury(client, 7)
        delayed = client.put(b"x", delay=100)
        for job_id in (buried, delayed):
            assert client.tell(f"kick-job {job_id}") == "KICKED"
            stats = client.stats_job(job_id)
            assert (stats["state"], stats["kicks"]) == ("ready", 1)
            assert client.tell(f"kick-job {job_id}") == "NOT_FOUND"
        reserved = client.reserve_one().id
        assert client.tell(f"kick-job {reserved}") == "NOT_FOUND"
        assert client.tell(f"kick-job {2**64 - 1}") == "NOT_FOUND"

    def test_a_kick_wakes_who_waits(self, client, peer, connect, tube):
        [job_id] = self.bury(client, 1)
        other = connect(peer)
        other.send("reserve\r\n")
        eventually(lambda: client.stats_tube(tube)["current-waiting"] == 1, "it to wait")
        client.tell("kick 1")
        assert other.reply() == (f"RESERVED {job_id} 1", b"x")


class TestTimeToRun:
    def test_a_job_comes_back_when_its_time_is_over(self, client, peer, connect):
        job_id = client.put(b"x", ttr=1, pri=6)
        assert client.reserve().id == job_id
        other = connect(peer)
        # beanstalkd may overlook the moment while nothing comes from who holds it.
        job = eventually(lambda: in_step(client) and other.reserve(), "its time to be over")
        assert job == (job_id, b"x")
        assert in_turn(client, f"delete {job_id}", f"release {job_id} 1 0", f"bury {job_id} 1",
                       f"touch {job_id}") == ["NOT_FOUND"] * 4
        stats = other.stats_job(job_id)
        assert (stats["timeouts"], stats["reserves"], stats["pri"]) == (1, 2, 6)
        assert other.tell(f"delete {job_id}") == "DELETED"

    def test_touch_begins_it_anew(self, client):
        job_id = client.put(b"x", ttr=5)
        client.reserve_one()
        eventually(lambda: client.stats_job(job_id)["time-left"] <= 3, "its time to pass")
        assert client.tell(f"touch {job_id}") == "TOUCHED"
        assert client.stats_job(job_id)["time-left"] >= 4

    def test_touched_again_and_again_it_stays(self, client, peer, connect):
        job_id = client.put(b"x", ttr=1)
        client.reserve_one()
        other = connect(peer)
        started = time.monotonic()
        while time.monotonic() - started < 1.5:
            assert client.tell(f"touch {job_id}") == "TOUCHED"
            assert other.reserve() is None
            time.sleep(0.02)
        assert client.tell(f"delete {job_id}") == "DELETED"

    def test_touch_only_what_one_holds(self, client, peer, connect):
        job_id = client.put(b"x")
        assert client.tell(f"touch {job_id}") == "NOT_FOUND"
        connect(peer).reserve_one()
        assert client.tell(f"touch {job_id}") == "NOT_FOUND"
        assert client.tell(f"touch {2**64 - 1}") == "NOT_FOUND"

    def test_deadline_soon_when_there_is_nothing_else(self, client):
        job_id = client.put(b"x", ttr=1)
        client.reserve_one()
        started = time.monotonic()
        client.send("reserve\r\nreserve-with-timeout 0\r\nreserve-with-timeout 30\r\n")
        assert client.lines(3) == ["DEADLINE_SOON"] * 3
        assert time.monotonic() - started < 0.9
        client.put(b"more")
        assert client.reserve().body == b"more"
        client.tell(f"delete {job_id}")
        assert client.tell("reserve-with-timeout 0") == "TIMED_OUT"


class TestClosing:
    @pytest.mark.parametrize("how", ["quit", "close"])
    def test_what_it_holds_is_ready_at_once(self, client, peer, connect, how):
        leaving = connect(peer)
        ids = [client.put(b"x", pri=5) for _ in range(3)]
        reserve_until(leaving, 3)
        leaving.tell(f"bury {ids[2]} 1")
        if how == "quit":
            assert leaving.tell("quit") is None
        leaving.close()
        assert {client.reserve_one().id for _ in range(2)} == set(ids[:2])
        stats = client.stats_job(ids[0])
        assert (stats["reserves"], stats["releases"], stats["timeouts"], stats["pri"]) == (
            2, 0, 0, 5)
        assert client.state_of(ids[2]) == "buried"

    def test_what_comes_behind_quit_is_not_read(self, client, tube):
        client.send(b"list-tube-used\r\nquit\r\n" + put_text(b"x"))
        assert client.line() == f"USING {tube}"
        assert client.closed_by_peer()

    @pytest.mark.parametrize("line", ["quit ", "quit x", "quitx"])
    def test_quit_with_more_on_its_line(self, client, line):
        assert client.tell(line) is None


class TestWatch:
    def test_the_list(self, client, tube):
        assert in_turn(client, f"watch {tube}.a", f"watch {tube}.b", f"watch {tube}.a") == [
            "WATCHING 2", "WATCHING 3", "WATCHING 3"]
        assert set(client.yaml("list-tubes-watched")) == {tube, f"{tube}.a", f"{tube}.b"}
        assert in_turn(client, f"ignore {tube}.c", f"ignore {tube}", f"ignore {tube}",
                       f"ignore {tube}.a", f"ignore {tube}.b") == [
            "WATCHING 3", "WATCHING 2", "WATCHING 2", "WATCHING 1", "NOT_IGNORED"]
        assert client.yaml("list-tubes-watched") == [f"{tube}.b"]

    def test_tubes_come_with_use_and_watch_and_not_with_ignore(self, client, tube):
        in_turn(client, f"use {tube}.used", f"watch {tube}.watched", f"ignore {tube}.ignored")
        tubes = client.yaml("list-tubes")
        assert {"default", tube, f"{tube}.used", f"{tube}.watched"} <= set(tubes)
        assert f"{tube}.ignored" not in tubes and len(set(tubes)) == len(tubes)

    def test_a_tube_that_nobody_needs(self, client, peer, tube):
        in_turn(client, f"use {tube}.gone", f"use {tube}")
        # Difference 1.
        assert (f"{tube}.gone" in client.yaml("list-tubes")) == (not peer.reference)


class TestPeek:
    def test_nothing_there(self, client):
        assert in_turn(client, "peek-ready", "peek-delayed", "peek-buried", "peek 0",
                       f"peek {2**64 - 1}") == ["NOT_FOUND"] * 5

    def test_each_in_its_state(self, client, peer, connect):
        ready = client.put(b"ready", pri=3)
        delayed = client.put(b"delayed", delay=100)
        reserved = client.put(b"reserved", pri=0)
        assert client.reserve().id == reserved
        other = connect(peer)
        assert other.peek("ready") == (ready, b"ready")
        assert other.peek("delayed") == (delayed, b"delayed")
        assert other.peek("buried") is None
        for job_id, body in ((ready, b"ready"), (delayed, b"delayed"), (reserved, b"reserved")):
            assert other.peek(job_id) == (job_id, body)
        client.tell(f"bury {reserved} 1")
        assert other.peek("buried") == (reserved, b"reserved")
        more = client.put(b"more", pri=2)
        assert other.peek("ready").id == more
        sooner = client.put(b"sooner", delay=50)
        assert other.peek("delayed").id == sooner

    def test_of_the_tube_in_use_unless_by_id(self, client, tube):
        job_id = client.put(b"x")
        client.tell(f"use {tube}.other")
        assert client.peek("ready") is None and client.peek(job_id)


class TestPause:
    def test_nothing_is_given_out_for_so_long(self, client, peer, connect, tube):
        job_id = client.put(b"x")
        assert client.tell(f"pause-tube {tube} 1") == "PAUSED"
        started = time.monotonic()
        assert client.reserve() is None
        assert client.peek("ready").id == job_id
        stats = client.stats_tube(tube)
        assert (stats["pause"], stats["cmd-pause-tube"]) == (1, 1)
        assert stats["pause-time-left"] in (0, 1)
        assert client.reserve(10).id == job_id
        assert time.monotonic() - started > 0.9
        assert client.stats_tube(tube)["pause"] == 0

    def test_it_can_be_ended(self, client, peer, connect, tube):
        job_id = client.put(b"x")
        client.tell(f"pause-tube {tube} 100")
        assert 90 <= client.stats_tube(tube)["pause-time-left"] <= 100
        other = connect(peer)
        other.send("reserve\r\n")
        eventually(lambda: client.stats_tube(tube)["current-waiting"] == 1, "it to wait")
        assert client.tell(f"pause-tube {tube} 0") == "PAUSED"
        assert other.reply() == (f"RESERVED {job_id} 1", b"x")
        assert client.stats_tube(tube)["pause-time-left"] == 0

    def test_other_tubes_go_on(self, client, tube):
        client.put(b"paused")
        in_turn(client, f"pause-tube {tube} 100", f"use {tube}.b", f"watch {tube}.b")
        client.put(b"open", pri=2000)
        assert client.reserve().body == b"open"
        assert client.reserve() is None

    def test_what_is_held_is_not_touched(self, client, tube):
        job_id = client.put(b"x")
        client.reserve_one()
        assert in_turn(client, f"pause-tube {tube} 100", f"touch {job_id}", f"delete {job_id}") == [
            "PAUSED", "TOUCHED", "DELETED"]

    def test_no_such_tube(self, client):
        assert client.tell("pause-tube no-such-tube 1") == "NOT_FOUND"


JOB_STATS = {"id", "tube", "state", "pri", "age", "delay", "ttr", "time-left", "file", "reserves",
             "timeouts", "releases", "buries", "kicks"}
TUBE_STATS = {"name", "current-jobs-urgent", "current-jobs-ready", "current-jobs-reserved",
              "current-jobs-delayed", "current-jobs-buried", "total-jobs", "current-using",
              "current-watching", "current-waiting", "cmd-delete", "cmd-pause-tube", "pause",
              "pause-time-left"}
COUNTED = {"put", "peek", "peek-ready", "peek-delayed", "peek-buried", "reserve",
           "reserve-with-timeout", "delete", "release", "use", "watch", "ignore", "bury", "kick",
           "touch", "stats", "stats-job", "stats-tube", "list-tubes", "list-tube-used",
           "list-tubes-watched", "pause-tube"}
SERVER_STATS = {f"cmd-{verb}" for verb in COUNTED} | {
    "current-jobs-urgent", "current-jobs-ready", "current-jobs-reserved", "current-jobs-delayed",
    "current-jobs-buried", "job-timeouts", "total-jobs", "max-job-size", "current-tubes",
    "current-connections", "current-producers", "current-workers", "current-waiting",
    "total-connections", "pid", "version", "rusage-utime", "rusage-stime", "uptime",
    "binlog-oldest-index", "binlog-current-index", "binlog-records-migrated",
    "binlog-records-written", "binlog-max-size", "draining", "id", "hostname", "os", "platform"}


class TestStats:
    def test_of_a_job(self, client, tube):
        job_id = client.put(b"x", pri=7, ttr=50)
        assert set(client.stats_job(job_id)) == JOB_STATS
        client.reserve_one()
        client.tell(f"release {job_id} 7 0")
        client.reserve_one()
        client.tell(f"bury {job_id} 7")
        client.tell(f"kick-job {job_id}")
        client.reserve_one()
        stats = client.stats_job(job_id)
        assert 40 <= stats.pop("time-left") <= 50 and stats.pop("age") < 30
        assert stats == {"id": job_id, "tube": tube, "state": "reserved", "pri": 7, "delay": 0,
                         "ttr": 50, "file": 0, "reserves": 3, "timeouts": 0, "releases": 1,
                         "buries": 1, "kicks": 1}

    def test_of_a_tube(self, client, peer, connect, tube):
        for pri in (1023, 1024, 0):
            client.put(b"x", pri=pri)
        client.put(b"x", delay=100)
        client.tell(f"bury {client.reserve_one().id} 1")
        client.tell(f"delete {client.reserve_one().id}")
        client.put(b"x", pri=0)
        client.put(b"x", pri=1)
        client.reserve_one()
        connect(peer)
        assert client.stats_tube(tube) == {
            "name": tube, "current-jobs-urgent": 1, "current-jobs-ready": 2,
            "current-jobs-reserved": 1, "current-jobs-delayed": 1, "current-jobs-buried": 1,
            "total-jobs": 6, "current-using": 2, "current-watching": 2, "current-waiting": 0,
            "cmd-delete": 1, "cmd-pause-tube": 0, "pause": 0, "pause-time-left": 0}
        assert client.tell("stats-tube no-such-tube") == "NOT_FOUND"

    def test_of_the_server(self, client, peer):
        stats = client.yaml("stats")
        assert set(stats) == SERVER_STATS
        assert stats["max-job-size"] == peer.body_bytes_max
        assert stats["draining"] == "false" and stats["pid"] == peer.process.pid
        assert stats["current-tubes"] == len(client.yaml("list-tubes"))

    def test_commands_are_counted_whether_they_succeed_or_not(self, client, tube):
        # `use` and the reserves are all of their own; the others are counted as they are asked.
        asked = {"put": 2, "use": 1, "reserve": 1, "reserve-with-timeout": 1, "watch": 1,
                 "ignore": 2, "delete": 1, "release": 1, "bury": 1, "touch": 1, "kick": 1,
                 "peek": 1, "peek-ready": 1, "peek-delayed": 1, "peek-buried": 1, "stats-job": 1,
                 "stats-tube": 1, "list-tubes": 1, "list-tube-used": 1, "list-tubes-watched": 1,
                 "pause-tube": 1, "stats": 1}
        before = client.yaml("stats")
        client.send(put_text(b"x") * 2)
        client.send(f"use {tube}\r\nreserve\r\nreserve-with-timeout 0\r\nwatch {tube}.b\r\n"
                    f"ignore {tube}.b\r\nignore {tube}\r\ndelete 0\r\nrelease 0 0 0\r\nbury 0 0\r\n"
                    "touch 0\r\nkick 0\r\npeek 0\r\npeek-ready\r\npeek-delayed\r\npeek-buried\r\n"
                    f"stats-job 0\r\nstats-tube {tube}\r\nlist-tubes\r\nlist-tube-used\r\n"
                    f"list-tubes-watched\r\npause-tube {tube} 0\r\n")
        client.replies(23)
        after = client.yaml("stats")
        assert {verb: after[f"cmd-{verb}"] - before[f"cmd-{verb}"] for verb in asked} == asked
        assert after["total-jobs"] - before["total-jobs"] == 2

    def test_connections_are_counted_by_what_they_do(self, client, peer, connect, tube):
        eventually(lambda: client.yaml("stats")["current-connections"] == 1,
                   "those of other tests to be gone")
        before = client.yaml("stats")
        producer, worker, waiting = (connect(peer) for _ in range(3))
        producer.put(b"x")
        worker.reserve_one()
        waiting.send("reserve\r\n")
        eventually(lambda: client.yaml("stats")["current-waiting"] > before["current-waiting"],
                   "it to wait")
        after = client.yaml("stats")
        grown = {name: after[name] - before[name] for name in (
            "total-connections", "current-connections", "current-producers", "current-workers",
            "current-waiting", "current-jobs-reserved")}
        assert grown == {"total-connections": 3, "current-connections": 3, "current-producers": 1,
                         "current-workers": 2, "current-waiting": 1, "current-jobs-reserved": 1}
        for each in (producer, worker, waiting):
            each.close()
        eventually(lambda: client.yaml("stats")["current-connections"]
                   == before["current-connections"], "them to be gone")


# These two take what begins with a number for that number, and a timeout that is none for 0.
LENIENT = {"kick 1x": "KICKED 0", "kick 1 1": "KICKED 0", "kick 1 ": "KICKED 0",
           "kick -1": "KICKED 0", "reserve-with-timeout x": "TIMED_OUT",
           "reserve-with-timeout ": "TIMED_OUT", "reserve-with-timeout 0x": "TIMED_OUT",
           "reserve-with-timeout 0 1": "TIMED_OUT"}


class TestBadInput:
    @pytest.mark.parametrize("lines, reply", [(UNKNOWN, "UNKNOWN_COMMAND"), (BAD, "BAD_FORMAT")],
                             ids=["unknown", "bad"])
    def test_every_wrong_line_has_its_reply_and_no_effect(self, client, tube, lines, reply):
        job_id = client.put(b"x")
        before = client.stats_tube(tube), client.stats_job(job_id)["state"]
        got = {line: (client.tell(line), in_step(client)) for line in lines}
        wrong = {line: found for line, found in got.items() if found != (reply, True)}
        assert not wrong
        assert (client.stats_tube(tube), client.stats_job(job_id)["state"]) == before

    def test_all_of_them_at_once(self, client):
        lines = [(line, "UNKNOWN_COMMAND") for line in UNKNOWN] + [(b, "BAD_FORMAT") for b in BAD]
        client.send("".join(line + "\r\n" for line, _ in lines))
        assert client.lines(len(lines)) == [reply for _, reply in lines]
        assert in_step(client)

    def test_numbers_with_something_behind(self, client):
        assert {line: client.tell(line) for line in LENIENT} == LENIENT
        assert in_step(client)

    def test_bytes_that_are_no_text(self, client):
        for line in (b"\x80\xff", bytes(range(128, 256)), "dél 1".encode()):
            client.send(line + b"\r\n")
            assert client.line() == "UNKNOWN_COMMAND"
        client.send(b"use \xc3\xa9\r\n")
        assert client.line() == "BAD_FORMAT"

    def test_lines_that_are_too_long_are_skipped(self, client, peer, tube):
        # A line has at most 224 bytes with its end. beanstalkd overlooks an end that is split by
        # its buffer, as of one of 225, and loses the line that follows.
        sizes = (224, 5000) if peer.reference else (223, 224, 225, 446, 447, 448, 5000, 65_535, MIB)
        for size in sizes:
            client.send(b"x" * size + b"\r\nlist-tube-used\r\n")
            assert client.lines(2) == ["BAD_FORMAT", f"USING {tube}"], size
            assert in_step(client)

    def test_the_longest_line(self, client, tube):
        client.send(b"list-tube-used" + b" " * 208 + b"\r\nput " + b"0" * 211 + b" 0 60 0\r\n\r\n")
        assert client.reply().line == "BAD_FORMAT"
        assert client.reply().word == "INSERTED"

    def test_a_body_that_looks_like_a_long_line(self, client):
        body = b"y" * 3000
        client.send(put_text(body) + b"x" * 3000 + b"\r\n" + put_text(body))
        assert [reply.word for reply in client.replies(3)] == ["INSERTED", "BAD_FORMAT", "INSERTED"]


def script_of(tube, job_id):
    """Commands of every shape, about a job that the connection holds, and the lines they bring."""
    steps = [
        (f"use {tube}\r\n", f"USING {tube}"),
        ("put 3 0 60 7\r\na\r\nb\r\nc\r\n", "INSERTED"), ("put 4 0 60 0\r\n\r\n", "INSERTED"),
        (f"touch {job_id}\r\n", "TOUCHED"), (f"release {job_id} 9 0\r\n", "RELEASED"),
        (f"delete {job_id}\r\n", "DELETED"), ("bogus\r\n", "UNKNOWN_COMMAND"),
        ("put 1 0 60 2\r\nabcd", "EXPECTED_CRLF"), ("reserve-with-timeout 0\r\n", "RESERVED"),
        ("peek-ready\r\n", "FOUND"), ("bury x 1\r\n", "BAD_FORMAT"),
        ("list-tubes-watched\r\n", "OK"), ("list-tube-used\r\n", f"USING {tube}")]
    return "".join(step[0] for step in steps).encode(), [step[1] for step in steps]


class TestStream:
    def fresh(self, client, tube):
        """The script for a new job that the client holds; nothing else is in the tube."""
        job_id = client.put(b"x", pri=0)
        assert client.reserve().id == job_id
        return script_of(tube, job_id)

    def check(self, client, expected):
        replies = client.replies(len(expected))
        assert [reply.line if " " in wanted else reply.word
                for reply, wanted in zip(replies, expected)] == expected
        assert [reply.body for reply in replies if reply.word in ("RESERVED", "FOUND")] == [
            b"a\r\nb\r\nc", b""]
        for reply in replies:
            if reply.word == "INSERTED":
                assert client.tell(f"delete {reply.number}") == "DELETED"

    def test_split_at_every_position(self, client, tube):
        position, size = 1, 2
        while position < size:
            script, expected = self.fresh(client, tube)
            client.send(script[:position])
            client.read_by_peer()
            client.send(script[position:])
            self.check(client, expected)
            position, size = position + 1, len(script)

    def test_byte_by_byte(self, client, tube):
        script, expected = self.fresh(client, tube)
        for byte in script:
            client.send(bytes([byte]))
            client.read_by_peer()
        self.check(client, expected)

    def test_all_at_once(self, client, tube):
        script, expected = self.fresh(client, tube)
        client.send(script)
        self.check(client, expected)


class TestPipelining:
    def test_hundreds_of_mixed_commands(self, client, tube):
        text, expected = b"", []
        for number in range(200):
            body = b"job %d\r\n" % number
            text += put_text(body, pri=number % 7)
            text += b"peek-ready\r\npeek 0\r\nlist-tube-used\r\nnonsense\r\nkick 0\r\n"
            expected += ["INSERTED", "FOUND", "NOT_FOUND", "USING", "UNKNOWN_COMMAND", "KICKED"]
        sending = in_background(client.send, text)
        assert [client.reply().word for _ in expected] == expected
        sending.result(10)
        client.send("reserve-with-timeout 0\r\n" * 201)
        *replies, last = client.replies(201)
        assert last.line == "TIMED_OUT"
        assert [reply.body for reply in replies] == [
            b"job %d\r\n" % number for pri in range(7) for number in range(pri, 200, 7)]
        client.send("".join(f"delete {reply.number}\r\n" for reply in replies))
        assert set(client.lines(200)) == {"DELETED"}
        assert client.stats_tube(tube)["current-jobs-reserved"] == 0

    def test_a_whole_life_without_waiting(self, client):
        first = client.put(b"x")
        client.send(f"reserve\r\ntouch {first}\r\nrelease {first} 0 0\r\nreserve\r\n"
                    f"bury {first} 5\r\nkick 1\r\nreserve\r\ndelete {first}\r\ndelete {first}\r\n")
        assert [reply.word for reply in client.replies(9)] == [
            "RESERVED", "TOUCHED", "RELEASED", "RESERVED", "BURIED", "KICKED", "RESERVED",
            "DELETED", "NOT_FOUND"]

    def test_a_client_that_reads_late(self, client):
        body = os.urandom(50_000)
        job_id = client.put(body)
        sending = in_background(client.send, f"peek {job_id}\r\nlist-tube-used\r\n" * 200)
        for _ in range(200):
            assert client.reply().body == body
            assert client.reply().word == "USING"
        sending.result(10)

    def test_several_connections_at_once(self, peer, connect):
        clients = [connect(peer) for _ in range(4)]
        for number, each in enumerate(clients):
            each.send(b"".join(put_text(b"%d-%d" % (number, n)) for n in range(100)))
        ids = [reply.number for each in clients for reply in each.replies(100)]
        assert len(set(ids)) == 400
        for each in clients:
            each.send("reserve-with-timeout 0\r\n" * 100)
        bodies = [reply.body for each in clients for reply in each.replies(100)]
        assert sorted(bodies) == sorted(b"%d-%d" % (c, n) for c in range(4) for n in range(100))
        for number in range(4):
            own = [body for body in bodies if body.startswith(b"%d-" % number)]
            assert len(own) == 100


def test_a_draining_beanstalkd_refuses_puts_and_nothing_else(tube):
    """What DRAINING means; how Reprise comes to say it is in test_beanstalk_mapping.py."""
    server = Beanstalkd()
    try:
        with server.connect() as client:
            client.only(tube)
            job_id = client.put(b"x")
            server.drain()
            eventually(lambda: client.yaml("stats")["draining"] == "true", "the drain mode")
            assert client.send(put_text(b"refused")).line() == "DRAINING"
            assert client.reserve().id == job_id
            assert client.tell(f"delete {job_id}") == "DELETED"
    finally:
        server.dispose()


def test_yaml_is_what_the_protocol_says(client):
    for command in ("stats", "list-tubes", "list-tubes-watched", "stats-tube default"):
        assert flat_yaml(client.ask(command).body)
