"""Random scripts in the beanstalk protocol: Reprise answers as Debian's beanstalkd does.

Differences that docs/beanstalk.md lists are taken out in one place: support/beanstalk_duel.py.
A failure shows the seed and what was said last; DUEL_SEED=N runs that seed alone, DUELS=N more.
"""

import os

import pytest

from beanstalk_client import Reply
from beanstalk_duel import Duel, Mismatch, same
from beanstalk_servers import Beanstalkd, RepriseDoor

STEPS = {False: 120, True: 40}  # by whether several commands make a step
GROUP = 8
SEEDS = int(os.environ.get("DUELS", "64"))
ONE_SEED = os.environ.get("DUEL_SEED")


@pytest.fixture(scope="module")
def beanstalkd():
    server = Beanstalkd()
    yield server
    server.dispose()


@pytest.fixture(scope="module")
def second_beanstalkd():
    server = Beanstalkd()
    yield server
    server.dispose()


@pytest.fixture(scope="module")
def reprise():
    # Difference 4: bodies of the same size at most. Nothing is killed here, so nothing is synced.
    server = RepriseDoor("--durability", "none", "--max-payload-bytes",
                         str(Beanstalkd.body_bytes_max)).start()
    yield server
    server.dispose()


def seeds():
    if ONE_SEED:
        return [[int(ONE_SEED)]]
    return [range(first, min(first + GROUP, SEEDS)) for first in range(0, SEEDS, GROUP)]


@pytest.mark.parametrize("pipelined", [False, True], ids=["one-by-one", "pipelined"])
@pytest.mark.parametrize("group", seeds(), ids=lambda group: f"from-{group[0]}")
def test_the_same_script_brings_the_same_replies(beanstalkd, reprise, group, pipelined):
    for seed in group:
        Duel(beanstalkd, reprise, seed, STEPS[pipelined], pipelined).run()


class TestTheTestItself:
    def test_it_finds_beanstalkd_equal_to_itself(self, beanstalkd, second_beanstalkd):
        words = set()
        for seed in range(1000, 1020):
            pipelined = seed % 2 == 1
            duel = Duel(beanstalkd, second_beanstalkd, seed, STEPS[pipelined], pipelined).run()
            words |= {word for word in WORDS if any(word in line for line in duel.transcript)}
        assert words == set(WORDS), "scripts that leave out a reply prove nothing of it"

    @pytest.mark.parametrize("word, lie", [
        ("INSERTED", lambda reply: Reply("BURIED" + reply.line[8:])),
        ("RESERVED", lambda reply: Reply("TIMED_OUT")),
        ("RESERVED", lambda reply: reply._replace(body=reply.body[:-1] + b"?")),
        ("FOUND", lambda reply: Reply("NOT_FOUND")),
        ("NOT_FOUND", lambda reply: Reply("DELETED")),
        ("TIMED_OUT", lambda reply: Reply("DEADLINE_SOON")),
        ("KICKED", lambda reply: Reply(f"KICKED {int(reply.line.split()[-1]) + 1}")),
        ("WATCHING", lambda reply: Reply(f"WATCHING {reply.number + 1}")),
        ("USING", lambda reply: Reply("USING default")),
        ("RELEASED", lambda reply: Reply("BURIED")),
        ("TOUCHED", lambda reply: Reply("NOT_FOUND")),
        ("BAD_FORMAT", lambda reply: Reply("UNKNOWN_COMMAND")),
        ("UNKNOWN_COMMAND", lambda reply: Reply("BAD_FORMAT")),
        ("JOB_TOO_BIG", lambda reply: Reply("BAD_FORMAT")),
        ("EXPECTED_CRLF", lambda reply: Reply("INSERTED 1")),
        ("state: ready", lambda reply: changed(reply, b"ready", b"delayed")),
        ("reserves: 1", lambda reply: changed(reply, b"reserves: 1", b"reserves: 2")),
        ("buries: 1", lambda reply: changed(reply, b"buries: 1", b"buries: 0")),
        ("current-jobs-ready", lambda reply: changed(reply, b"-ready: ", b"-ready: 1")),
    ])
    def test_one_wrong_reply_is_noticed(self, beanstalkd, second_beanstalkd, word, lie):
        liar = Liar(second_beanstalkd, word, lie)
        with pytest.raises(Mismatch, match="seed 2[0-9]{3}, step"):
            for seed in range(2000, 2020):
                Duel(beanstalkd, liar, seed, STEPS[False]).run()
        assert liar.lied

    def test_another_job_of_the_same_body_is_noticed(self, beanstalkd, second_beanstalkd):
        def next_one(reply):
            return reply._replace(line=f"RESERVED {reply.number + 1} {len(reply.body)}")
        with pytest.raises(Mismatch):
            Duel(beanstalkd, Liar(second_beanstalkd, "RESERVED", next_one), 3000,
                 STEPS[False]).run()

    def test_times_may_differ_by_a_little(self):
        assert same({"time-left": 99, "pri": 1}, {"time-left": 98, "pri": 1})
        assert not same({"time-left": 99, "pri": 1}, {"time-left": 0, "pri": 1})
        assert not same({"time-left": 99, "pri": 1}, {"time-left": 99, "pri": 2})
        assert not same({"time-left": 99, "pri": 1}, {"time-left": 99})


WORDS = ["INSERTED", "RESERVED", "TIMED_OUT", "FOUND", "NOT_FOUND", "DELETED", "RELEASED", "BURIED",
         "TOUCHED", "KICKED", "WATCHING", "NOT_IGNORED", "USING", "PAUSED", "BAD_FORMAT",
         "UNKNOWN_COMMAND", "JOB_TOO_BIG", "EXPECTED_CRLF", "'state': 'reserved'",
         "'state': 'ready'", "'state': 'delayed'", "'state': 'buried'", "closes, holding"]


def changed(reply, before, after):
    return reply._replace(body=reply.body.replace(before, after))


class Liar:
    """A server whose replies with this word are changed on their way."""

    def __init__(self, server, word, lie):
        self.server, self.word, self.lie = server, word, lie
        self.reference, self.body_bytes_max = server.reference, server.body_bytes_max
        self.lied = False

    def fits(self, reply):
        return reply.word == self.word or reply.word == "OK" and self.word.encode() in reply.body

    def connect(self):
        connection = self.server.connect()
        honest = connection.reply

        def reply():
            found = honest()
            if not (found and self.fits(found)):
                return found
            self.lied = True
            return self.lie(found)

        connection.reply = reply
        return connection
