"""The servers that are compared: Reprise over the beanstalk protocol, beanstalkd and Redis.

Each is started on a free port of 127.0.0.1, in a directory of its own, in one of two modes:
`fsync` (what is acknowledged is on disk) and `relaxed` (it is a moment later)."""

import shutil
import signal
import socket
import time

from harness.processes import BenchError
from harness.queue_clients import BeanstalkClient, RedisClient
from harness.server import Server, read_port_file
from harness.server_process import ServerProcess

MODES = ("fsync", "relaxed")
PORT_TRIES = 5


class PeerMixin:
    """What the phases ask of all of them."""

    protocol = "beanstalk"       # of reprise_peer_load
    fail_protocol = "beanstalk"  # for the failure path
    client = BeanstalkClient

    def peer_is_ready(self):
        try:
            with self.client(self.peer_address) as client:
                return client.is_ready()
        except OSError:
            return False

    def start_and_claim(self, queue):
        """Starts it; seconds until a first job was received, which is then claimed."""
        started = time.monotonic()
        self.start()
        self.poll(lambda: self._claim_one(queue), started)
        return time.monotonic() - started

    def _claim_one(self, queue):
        with self.client(self.peer_address) as client:
            return client.claim(queue)

    def stored(self, queue):
        with self.client(self.peer_address) as client:
            return client.stored(queue)


class RepriseServer(PeerMixin, Server):
    OPTIONS = {"fsync": ["--durability", "sync"],
               "relaxed": ["--durability", "interval", "--sync-interval", "50ms"]}

    def __init__(self, tools, scratch, mode):
        super().__init__(tools.server, scratch)
        self.beanstalk_port_file = self.folder / "beanstalk-port"
        self.options = [*self.OPTIONS[mode], "--beanstalk", "127.0.0.1:0",
                        "--beanstalk-port-file", self.beanstalk_port_file]
        self.peer_address = None

    def start(self):
        self.beanstalk_port_file.unlink(missing_ok=True)
        started = time.monotonic()
        super().start()
        self.peer_address = self.poll(lambda: read_port_file(self.beanstalk_port_file), started)
        self.poll(self.peer_is_ready, started)
        return time.monotonic() - started


class PeerServer(PeerMixin, ServerProcess):
    """One that is told its port."""

    program = None

    def __init__(self, scratch, mode):
        super().__init__(scratch)
        self.mode = mode
        self.data.mkdir()
        self.peer_address = None

    @classmethod
    def is_installed(cls):
        return shutil.which(cls.program) is not None

    def command(self, port):
        raise NotImplementedError

    def start(self):
        for attempt in range(PORT_TRIES):
            started = time.monotonic()
            port = free_port()
            self.peer_address = f"127.0.0.1:{port}"
            self.spawn([self.program, *self.command(port)])
            try:
                self.poll(self.peer_is_ready, started)
                return time.monotonic() - started
            except BenchError:
                # Another process may have taken the port meanwhile.
                if attempt + 1 == PORT_TRIES or not self._port_was_taken():
                    raise

    def _port_was_taken(self):
        return "in use" in self.log_path.read_text(errors="replace")

    def terminate(self, codes=(0, -signal.SIGTERM)):
        return super().terminate(codes)


class Beanstalkd(PeerServer):
    program = "beanstalkd"
    FSYNC_MS = {"fsync": 0, "relaxed": 50}

    def command(self, port):
        return ["-l", "127.0.0.1", "-p", port, "-b", self.data, f"-f{self.FSYNC_MS[self.mode]}"]


class Redis(PeerServer):
    program = "redis-server"
    protocol = "redis-stream"
    fail_protocol = "redis-lua"
    client = RedisClient
    FSYNC = {"fsync": "always", "relaxed": "everysec"}

    def command(self, port):
        return ["--port", port, "--bind", "127.0.0.1", "--dir", self.data, "--daemonize", "no",
                "--save", "", "--appendonly", "yes", "--appendfsync", self.FSYNC[self.mode]]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


PEERS = {"beanstalkd": Beanstalkd, "redis": Redis}
SERVERS = ("reprise", *PEERS)


def make_server(name, tools, scratch, mode):
    if name == "reprise":
        return RepriseServer(tools, scratch, mode)
    if not PEERS[name].is_installed():
        raise BenchError(f"there is no {PEERS[name].program}: run `make bench`, or leave it out "
                         "with --servers")
    return PEERS[name](scratch, mode)
