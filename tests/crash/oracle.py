"""The clients of the crash test: a process of its own that loads a server, notes all that it knows
in a journal, and goes on while the server is killed and started again.

It is told on its standard input, a line each:
  up HTTP_PORT [BEANSTALK_PORT]  a server serves there; once a connection to it breaks, it is gone
  drain                          no more load: claim and ack what there is
and ends at the end of its input, when the requests that are under way are answered.
"""

import argparse
import os
import selectors
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from journal import Journal  # noqa: E402
from links import HttpLink, TubeLink  # noqa: E402
from tube_workload import TubeClient  # noqa: E402
from workload import Client, Shared  # noqa: E402

ANSWER_SECONDS = 30  # a server that lives answers sooner, whatever else goes on
TURN_SECONDS = 0.02


class Oracle:
    def __init__(self, journal, shared, clients, tube_clients, seed):
        self.journal = journal
        self.shared = shared
        self.links = [HttpLink(Client(shared, number, seed), journal)
                      for number in range(clients - tube_clients)]
        self.links += [TubeLink(TubeClient(shared, number, seed), journal)
                       for number in range(clients - tube_clients, clients)]
        self.ports = {}  # by door; none: it is down
        self.server = 0
        self.ending = False
        self.selector = selectors.DefaultSelector()
        os.set_blocking(sys.stdin.fileno(), False)
        self.selector.register(sys.stdin, selectors.EVENT_READ, None)
        self.orders = b""

    def run(self):
        while not (self.ending and not any(link.is_busy for link in self.links)):
            if not self.ending:
                self.send_next_requests()
            for key, events in self.selector.select(TURN_SECONDS):
                if key.data is None:
                    self.read_orders()
                elif key.data.socket is not None:
                    self.serve(key.data, events)
            self.check_answers_come()
        self.journal.sync()

    def read_orders(self):
        data = os.read(sys.stdin.fileno(), 4096)
        if not data:
            self.ending = True
            self.selector.unregister(sys.stdin)
        self.orders += data
        *lines, self.orders = self.orders.split(b"\n")
        for line in lines:
            order, *words = line.decode().split()
            if order == "up":
                self.server += 1
                self.ports = dict(zip(("http", "tube"), map(int, words)))
                self.shared.restarts += 1
            elif order == "drain":
                self.shared.draining = True

    def send_next_requests(self):
        """One sync for all of them."""
        ready = [link for link in self.links if link.is_ready() and self.connected(link)]
        for link in ready:
            link.begin() if link.next else link.hang_up()
        self.journal.sync()
        for link in ready:
            if not link.is_busy:
                self.hang_up(link)
                continue
            link.sent_at = time.monotonic()
            self.write(link)

    def connected(self, link):
        if link.socket is None and self.ports:
            try:
                link.connect(self.ports[link.door], self.server)
            except OSError:
                self.ports = {}
                return False
            self.selector.register(link.socket, selectors.EVENT_READ, link)
        return link.socket is not None

    def serve(self, link, events):
        if events & selectors.EVENT_WRITE:
            self.write(link)
        if events & selectors.EVENT_READ and link.socket is not None:
            self.read(link)

    def write(self, link):
        try:
            link.outgoing = link.outgoing[link.socket.send(link.outgoing):]
        except BlockingIOError:
            pass
        except OSError:
            return self.gone(link)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.outgoing else 0)
        self.selector.modify(link.socket, wanted, link)

    def read(self, link):
        try:
            data = link.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            return self.gone(link)
        if not link.receive(data):
            self.disconnect(link)
        elif link.outgoing:
            self.write(link)

    def gone(self, link):
        """The server has ended."""
        if link.server == self.server:
            self.ports = {}
        self.disconnect(link)
        link.gone()

    def hang_up(self, link):
        """Leaves a server that is there."""
        self.disconnect(link)
        link.next = link.requests.send(None)

    def disconnect(self, link):
        self.selector.unregister(link.socket)
        link.close()

    def check_answers_come(self):
        now = time.monotonic()
        for link in self.links:
            if link.is_busy and now - link.sent_at > ANSWER_SECONDS:
                sys.exit(f"no answer to {link.client.name} within {ANSWER_SECONDS} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--journal", required=True)
    parser.add_argument("--prefix", default="", help="of the names of the queues")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--tube-clients", type=int, default=0,
                        help="how many of them speak the beanstalk protocol")
    parser.add_argument("--no-kicks", action="store_true")
    parser.add_argument("--seed", required=True)
    args = parser.parse_args()
    Oracle(Journal(args.journal), Shared(args.prefix, not args.no_kicks), args.clients,
           args.tube_clients, args.seed).run()


if __name__ == "__main__":
    main()
