"""The same random script against two servers of the beanstalk protocol, reply by reply.

A script is made while it runs: which connection says what next depends on the seed, and on what the
reference has answered so far, so that jobs are released by who holds them and not only by chance.
Before another connection has its say all replies have come, so the order is the same on both sides.
In a pipelined script a connection says several things at once. Jobs are named by the order of their
insertion, `<0>`, `<1>`, … Times are such that nothing happens by itself: a delay, a pause or a ttr
is over long after the script is.
"""

import itertools
import random
import re
from typing import Callable, NamedTuple

from beanstalk_client import Reply, flat_yaml
from beanstalk_lines import BAD, UNKNOWN
from waiting import eventually

CONNECTIONS = 3
TUBES = 3
LONG_SECONDS = 1000
NO_JOB = 2**62
SHOWN_STEPS = 40
AT_ONCE_MAX = 12
# Fields that a moment changes.
MOVING = {"age", "delay", "time-left", "pause-time-left"}
MOVING_BY = 5
# A job's history keeps so many attempts.
KEPT_ATTEMPTS = 10
duel_numbers = itertools.count(1)


class Mismatch(AssertionError):
    pass


class Saying(NamedTuple):
    """What a connection sends, how many replies that has, and what to make of the first."""
    text: bytes
    after: Callable[[Reply], None] | None = None
    replies: int = 1


def saying(line, after=None, body=None, replies=1):
    text = line.encode() + b"\r\n" + (b"" if body is None else body + b"\r\n")
    return Saying(text, after, replies)


class Side:
    """One server, its connections, and the ids it has given to the jobs of the script."""

    def __init__(self, server):
        self.server = server
        self.ids = []
        self.connections = [server.connect() for _ in range(CONNECTIONS)]
        # Watches all tubes, so that none vanishes (difference 1), and looks after what is left.
        self.keeper = server.connect()

    def close(self):
        for each in (*self.connections, self.keeper):
            each.close()

    def concrete(self, text):
        """The command with this side's ids."""
        return re.sub(rb"<(\d+)>", lambda match: b"%d" % self.ids[int(match[1])], text)

    def name_of(self, number):
        return f"<{self.ids.index(number)}>" if number in self.ids else f"unknown job {number}"

    def hear(self, connection):
        """The next reply, as it can be compared."""
        reply = connection.reply()
        if reply is None:
            return "closed"
        words = reply.line.split(" ")
        if words[0] == "INSERTED":
            self.ids.append(int(words[1]))
        if words[0] in ("INSERTED", "RESERVED", "FOUND"):
            words[1] = self.name_of(int(words[1]))
        if words[0] == "OK":
            return self._comparable(flat_yaml(reply.body))
        return Reply(" ".join(words), reply.body)

    def _comparable(self, found):
        if isinstance(found, list):
            return set(found)  # the protocol says nothing of the order
        if "reserves" not in found:
            return found
        found["id"] = self.name_of(found["id"])
        # Difference 6: what is left of the delay while it lasts, then 0.
        found["delay"] = found["time-left"] if found["state"] == "delayed" else 0
        # Difference 6: these are counted over the attempts that are kept.
        if found["reserves"] > KEPT_ATTEMPTS:
            for name in ("timeouts", "releases", "buries"):
                del found[name]
        return found

    def reconnect(self, index, held):
        """Closes a connection and opens it anew, once the server knows and its jobs are free."""
        self.connections[index].close()
        eventually(lambda: self.keeper.yaml("stats")["current-connections"] == CONNECTIONS,
                   "the connection to be gone")  # the keeper's counts, this one does not
        for number in held:
            eventually(lambda: self.keeper.state_of(self.ids[number]) != "reserved",
                       "the jobs of a closed connection to be released")
        self.connections[index] = self.server.connect()


def same(ours, theirs):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(
            abs(ours[name] - theirs[name]) <= MOVING_BY if name in MOVING else
            ours[name] == theirs[name] for name in ours)
    return ours == theirs


class Duel:
    """One script, from a seed, against the reference and against another server."""

    def __init__(self, reference, other, seed, steps, pipelined=False):
        self.dice = random.Random(seed)
        self.seed = seed
        self.steps = steps
        self.pipelined = pipelined
        # One that was broken off leaves jobs behind.
        number = next(duel_numbers)
        self.tubes = [f"duel-{number}-{seed}-{letter}" for letter in "abcdef"[:TUBES]]
        self.sides = Side(reference), Side(other)
        self.transcript = []
        self.jobs = 0
        self.live = []      # numbers of jobs that are there
        self.held = {}      # number of a job -> connection that holds it
        self.delays = iter(self.dice.sample(range(LONG_SECONDS, 100 * LONG_SECONDS, 10), 1000))

    def run(self):
        try:
            for tube in self.tubes:
                self.say(None, saying(f"watch {tube}"))
            for index in range(CONNECTIONS):
                self.begin(index)
            for _ in range(self.steps):
                self.step()
            self.finish()
        finally:
            for side in self.sides:
                side.close()
        return self

    # What is said, and what it brings.

    def say(self, index, *sayings):
        """All at once, and then all replies. Index None is the keeper."""
        pairs = [(side, side.keeper if index is None else side.connections[index])
                 for side in self.sides]
        for side, connection in pairs:
            connection.send(b"".join(side.concrete(each.text) for each in sayings))
        for each in sayings:
            for number in range(each.replies):
                replies = [side.hear(connection) for side, connection in pairs]
                self.compare(index, each.text if number == 0 else b"(more)", *replies)
                if number == 0 and each.after:
                    each.after(replies[0])

    def compare(self, index, text, expected, got):
        who = "keeper" if index is None else index
        shown = text if len(text) < 200 else text[:200] + b"..."
        self.transcript.append(f"{who}: {shown!r}\n     -> {expected}")
        if not same(expected, got):
            raise Mismatch(f"seed {self.seed}{' pipelined' if self.pipelined else ''}, "
                           f"step {len(self.transcript)}:\n"
                           + "\n".join(self.transcript[-SHOWN_STEPS:])
                           + f"\nbut from the other server:\n     -> {got}")

    def begin(self, index):
        """A new connection leaves the tube `default`, which other scripts have too."""
        tube = self.dice.choice(self.tubes)
        self.say(index, *map(saying, (f"use {tube}", f"watch {tube}", "ignore default")))

    def finish(self):
        for index in range(CONNECTIONS):
            self.reconnect(index)
        for number in range(self.jobs):
            self.say(None, saying(f"stats-job <{number}>"), saying(f"delete <{number}>"))
        for tube in self.tubes:
            self.say(None, saying(f"pause-tube {tube} 0"), saying(f"stats-tube {tube}"))

    def reconnect(self, index):
        held = [number for number, holder in self.held.items() if holder == index]
        self.transcript.append(f"{index}: closes, holding {held}")
        for side in self.sides:
            side.reconnect(index, held)
        for number in held:
            del self.held[number]

    # What to say next.

    def step(self):
        index = self.dice.randrange(CONNECTIONS)
        if self.dice.random() < CLOSE_SHARE:
            self.reconnect(index)
            self.begin(index)
            return
        count = self.dice.randint(1, AT_ONCE_MAX) if self.pipelined else 1
        verbs = self.dice.choices(list(WEIGHTS), WEIGHTS.values(), k=count)
        if self.dice.random() < 0.5:  # neighbours of one kind may well be dealt with together
            verbs = verbs[:1] * count
        self.say(index, *[getattr(self, verb)(index) for verb in verbs])

    def tube(self):
        return self.dice.choice(self.tubes)

    def pri(self):
        return self.dice.choice((0, 1, 1, 2, 1023, 1024, 2**32 - 1))

    def delay(self):
        # All different: who is due first must not depend on what a clock can tell apart.
        return next(self.delays) if self.dice.random() < 0.3 else 0

    def body(self):
        return bytes(self.dice.choice(b"ab\r\n\0\xff") for _ in range(self.dice.randrange(12)))

    def any_job(self):
        if not self.jobs or self.dice.random() < 0.05:
            return self.dice.choice((0, NO_JOB))
        if self.live and self.dice.random() < 0.9:
            return f"<{self.dice.choice(self.live)}>"
        return f"<{self.dice.randrange(self.jobs)}>"

    def held_job(self, index):
        """A job that this connection holds, mostly."""
        mine = [number for number, holder in self.held.items() if holder == index]
        if mine and self.dice.random() < 0.85:
            return f"<{self.dice.choice(mine)}>"
        return self.any_job()

    def put(self, index):
        body = self.body()
        return saying(f"put {self.pri()} {self.delay()} {LONG_SECONDS} {len(body)}",
                      self.inserted, body)

    def inserted(self, reply):
        if reply.word == "INSERTED":
            self.live.append(self.jobs)
            self.jobs += 1

    def put_without_end(self, index):
        # Two bytes stand where the end of the body should be; what follows is a line again.
        return saying("put 1 0 100 3\r\nabcde" + "list-tube-used", replies=2)

    def put_too_big(self, index):
        size = self.sides[0].server.body_bytes_max + self.dice.choice((1, 2, 500))
        return saying(f"put 1 0 100 {size}", body=b"x" * size)

    def reserve(self, index):
        return self.taking(index, "reserve-with-timeout 0")

    def reserve_job(self, index):
        return self.taking(index, f"reserve-job {self.any_job()}")

    def taking(self, index, line):
        def after(reply):
            if reply.word == "RESERVED":
                self.held[int(re.search(r"<(\d+)>", reply.line)[1])] = index
        return saying(line, after)

    def delete(self, index):
        return self.giving(f"delete {self.held_job(index)}", "DELETED")

    def release(self, index):
        return self.giving(f"release {self.held_job(index)} {self.pri()} {self.delay()}", "RELEASED")

    def bury(self, index):
        return self.giving(f"bury {self.held_job(index)} {self.pri()}", "BURIED")

    def giving(self, line, word):
        def after(reply):
            if reply.line == word:
                number = int(re.search(r"<(\d+)>", line)[1])
                self.held.pop(number, None)
                if word == "DELETED":
                    self.live.remove(number)
        return saying(line, after)

    def touch(self, index):
        return saying(f"touch {self.held_job(index)}")

    def kick(self, index):
        return saying(f"kick {self.dice.choice((0, 1, 1, 2, 100))}")

    def kick_job(self, index):
        return saying(f"kick-job {self.any_job()}")

    def peek(self, index):
        return saying(f"peek {self.any_job()}")

    def peek_next(self, index):
        return saying(f"peek-{self.dice.choice(('ready', 'delayed', 'buried'))}")

    def use(self, index):
        return saying(f"use {self.tube()}")

    def watch(self, index):
        return saying(f"watch {self.tube()}")

    def ignore(self, index):
        return saying(f"ignore {self.tube()}")

    def tubes_of(self, index):
        return saying(self.dice.choice(("list-tube-used", "list-tubes-watched")))

    def stats_job(self, index):
        return saying(f"stats-job {self.any_job()}")

    def stats_tube(self, index):
        return saying(f"stats-tube {self.dice.choice((*self.tubes, 'no-such-tube'))}")

    def pause(self, index):
        return saying(f"pause-tube {self.tube()} {self.dice.choice((0, 0, LONG_SECONDS))}")

    def nonsense(self, index):
        return saying(self.dice.choice((*BAD, *UNKNOWN)))


CLOSE_SHARE = 0.02
WEIGHTS = {"put": 22, "put_without_end": 1, "put_too_big": 0.3, "reserve": 20, "reserve_job": 4,
           "delete": 5, "release": 9, "bury": 9, "touch": 3, "kick": 6, "kick_job": 4, "peek": 2,
           "peek_next": 7, "use": 4, "watch": 4, "ignore": 4, "tubes_of": 3, "stats_job": 10,
           "stats_tube": 6, "pause": 3, "nonsense": 4}
