"""A crowd of clients in one process of its own, so that whoever measures meanwhile is not slowed
by it. Run as a program: it opens all connections, says `ready` with their number, and goes on until
its input ends; then it prints what happened as JSON.

idle: one request, then nothing. active: a push, a claim or an ack about once a second. slow: a
header that never ends, one byte a second. silent: asks for long replies and reads none of them.
Whoever is turned out comes back.
"""

import argparse
import collections
import ctypes
import heapq
import json
import os
import random
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
HEAD = b"%s HTTP/1.1\r\nHost: localhost\r\n"
TOKEN = re.compile(rb'"token":"([^"]+)"')
SILENT_RECEIVE_BYTES = 4096


def allow_open_files(count):
    """Raises the limit of this process as far as it may be raised; whether that is enough."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, count), max(most, count)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= count


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Crowd:
    """The crowd as its owner sees it: a process that is ready once all are connected."""

    def __init__(self, port, **counts):
        words = [word for kind, count in counts.items() for word in (f"--{kind}", str(count))]
        libc = ctypes.CDLL(None)
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(port), *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        line = self.process.stdout.readline()
        assert line.startswith("ready"), f"the crowd said {line!r}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def end(self):
        """What happened, by kind."""
        out, _ = self.process.communicate(timeout=60)
        return json.loads(out)


class Client:
    """One of the crowd. `kind` has its name in `seen`, where everything is counted."""

    kind = ""
    receive_buffer = None
    reads = True

    def __init__(self, loop):
        self.loop = loop
        self.socket = None
        self.data = b""

    def open(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        if self.receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        self.socket.connect_ex(("127.0.0.1", self.loop.port))
        self.data = b""
        self.loop.watch(self, select.EPOLLOUT)

    def connected(self):
        self.loop.watch(self, select.EPOLLIN if self.reads else select.EPOLLRDHUP)
        self.loop.opened(self)
        self.begin()

    def send(self, data):
        try:
            self.socket.send(data)
        except OSError:
            self.lost()

    def readable(self):
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.lost()
        self.data += data
        head, end, body = self.data.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        if end and length and len(body) >= int(length[1]):
            self.data = b""
            self.loop.seen[self.kind, int(head.split(b" ", 2)[1])] += 1
            self.answered(body)

    def lost(self, why="turned out"):
        if self.socket is None:
            return
        self.loop.seen[self.kind, why] += 1
        self.loop.forget(self)
        self.socket.close()
        self.socket = None
        self.loop.at(random.uniform(0.05, 0.5), self.open)

    def begin(self):
        pass

    def answered(self, body):
        pass


class Idle(Client):
    kind = "idle"

    def begin(self):
        self.send(HEAD % b"GET /healthz" + b"\r\n")


class Active(Client):
    kind = "active"
    token = None
    sent_at = 0.0
    turn = 0

    def begin(self):
        self.loop.at(random.random(), self.ask)

    def post(self, path, body):
        self.sent_at = time.monotonic()
        self.send(HEAD % (b"POST " + path) + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def ask(self):
        if self.socket is None:
            return
        if self.token:
            self.post(b"/v1/ack", b'{"leases":[{"token":"%s"}]}' % self.token)
            self.token = None
        elif self.turn % 2 == 0:
            self.turn += 1
            self.post(b"/v1/queues/busy/push", b'{"jobs":[{"payload":"x"}]}')
        else:
            self.turn += 1
            self.post(b"/v1/queues/busy/claim", b'{"max":1}')

    def answered(self, body):
        self.loop.latencies.append(time.monotonic() - self.sent_at)
        token = TOKEN.search(body)
        self.token = token[1] if token else None
        self.loop.at(random.uniform(0.8, 1.2), self.ask)


class Slow(Client):
    kind = "slow"

    def begin(self):
        self.send(HEAD % b"GET /healthz" + b"X: ")
        self.loop.at(random.random(), self.drip)

    def drip(self):
        if self.socket is None:
            return
        self.send(b"x")
        if self.socket is not None:
            self.loop.at(1.0, self.drip)


class Silent(Client):
    kind = "silent"
    receive_buffer = SILENT_RECEIVE_BYTES
    reads = False

    def begin(self):
        path = random.choice([b"/openapi.json", b"/metrics", b"/v1/events"])
        self.send((HEAD % (b"GET " + path) + b"\r\n") * 3)
        # It would not notice that it is turned out: what it has not read is before that.
        self.loop.at(random.uniform(1, self.loop.patience), self.give_up)

    def give_up(self):
        if self.socket is not None:
            self.lost("gone")


class Loop:
    def __init__(self, port, patience):
        self.port = port
        self.patience = patience
        self.poll = select.epoll()
        self.clients = {}
        self.timers = []
        self.numbers = iter(range(1 << 62))
        self.seen = collections.Counter()
        self.latencies = []
        self.arrived = set()

    def watch(self, client, events):
        number = client.socket.fileno()
        if number in self.clients:
            self.poll.modify(number, events)
        else:
            self.clients[number] = client
            self.poll.register(number, events)

    def forget(self, client):
        number = client.socket.fileno()
        self.poll.unregister(number)
        del self.clients[number]

    def at(self, seconds, action):
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.numbers), action))

    def opened(self, client):
        self.arrived.add(client)

    def run_once(self, longest=0.1):
        now = time.monotonic()
        while self.timers and self.timers[0][0] <= now:
            heapq.heappop(self.timers)[2]()
        wait = min(longest, max(0.0, self.timers[0][0] - now) if self.timers else longest)
        for number, events in self.poll.poll(wait, 1000):
            client = self.clients.get(number)
            if client is None:
                continue
            if events & select.EPOLLOUT and not events & (select.EPOLLERR | select.EPOLLHUP):
                client.connected()
            elif client.reads and events & select.EPOLLIN:
                client.readable()
            else:
                client.lost()

    def summary(self):
        found = {}
        for (kind, what), count in sorted(self.seen.items(), key=str):
            found.setdefault(kind, {})[str(what)] = count
        if self.latencies:
            found["active p99 ms"] = round(1000 * percentile(self.latencies, 0.99), 1)
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    kinds = {kind.kind: kind for kind in (Idle, Active, Slow, Silent)}
    for kind in kinds:
        parser.add_argument(f"--{kind}", type=int, default=0)
    parser.add_argument("--patience", type=float, default=40,
                        help="seconds that a silent client stays at most")
    args = parser.parse_args()
    members = [kinds[kind] for kind in kinds for _ in range(getattr(args, kind))]
    assert allow_open_files(len(members) + 100), "the limit of open files is too low"
    loop = Loop(args.port, args.patience)
    for start in range(0, len(members), 200):
        expected = start + len(members[start:start + 200])
        for member in members[start:start + 200]:
            member(loop).open()
        while len(loop.arrived) < expected:
            loop.run_once()
    loop.latencies.clear()  # those of the arrival are about this process
    print("ready", len(loop.arrived), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        loop.run_once()
    print(json.dumps(loop.summary()))
    sys.stdout.flush()
    os._exit(0)  # thousands of sockets need no farewell


if __name__ == "__main__":
    main()
