"""Fixtures of the end-to-end tests: the command line, the beanstalk door, disks with troubles."""

import contextlib
import itertools
import os
import subprocess
from pathlib import Path

import pytest

from beanstalk_servers import Beanstalkd, RepriseDoor
from disk_calls import DiskCalls
from hooking import PATIENT_MS
from ingest_server import IngestServer, each
from projects import Project
from raw_http import EventStream
from reprise_server import Server, clean_environment
from scheduling import Throttles
from served_run import Served
from spool_run import EVENTS, Endpoint, SpoolRun
from spooling import Spool

tube_numbers = itertools.count(1)


class NamespaceCli:
    """The command line confined to the namespace of one test."""

    def __init__(self, cli, namespace):
        self.cli = cli
        self.flags = ("-n", namespace)

    def words(self, args):
        # The flag goes behind the command and before a possible `--`.
        split = 2 if args[0] in ("queue", "operation", "hook", "config", "throttle") else 1
        return (*args[:split], *self.flags, *args[split:])

    def run(self, *args, **options):
        return self.cli.run(*self.words(args), **options)

    def ok(self, *args, **options):
        return self.cli.ok(*self.words(args), **options)

    def start(self, *args, **options):
        return self.cli.start(*self.words(args), **options)

    def terminal(self, *args, **options):
        return self.cli.terminal(*self.words(args), **options)


@pytest.fixture
def shell(cli, namespace):
    """`reprise` in the namespace of the fixture `queue`."""
    return NamespaceCli(cli, namespace)


@pytest.fixture
def shown(shell):
    """What a command shows on a terminal, without colours."""
    def show(*args, code=0, **options):
        with shell.terminal(*args, env={"NO_COLOR": "1"}, **options) as terminal:
            ended, text = terminal.finish()
        assert ended == code, text
        return text
    return show


@pytest.fixture
def hooked(absent_queue):
    """A function that makes the queue of this test with hooks: hooked(on_failure=source, …)."""
    def create(**config):
        return absent_queue.created(**{"hook_timeout_ms": PATIENT_MS, **config})
    return create


@pytest.fixture
def throttles(api, namespace):
    """The throttles of this test's namespace."""
    return Throttles(api, namespace)


@pytest.fixture
def new_project(tmp_path, namespace):
    """A function that makes projects of this test: new_project(server). They are forgotten in the
    end. Without a name each has one that no other test uses."""
    made = []

    def make(server=None, name=None, folder="."):
        name = name or (f"{namespace}-{len(made)}" if made else namespace)
        made.append(Project(tmp_path / folder / name, server))
        return made[-1]

    yield make
    for project in made:
        project.forget()


@pytest.fixture
def project(new_project, shared_server):
    """An empty project in a namespace of its own, beside the shared server."""
    return new_project(shared_server)


@pytest.fixture(scope="session")
def disk_shim(tmp_path_factory):
    """A library to preload into a server: see disk_shim.c."""
    library = tmp_path_factory.mktemp("shim") / "disk_shim.so"
    source = Path(__file__).with_name("disk_shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True,
                   env=clean_environment())
    return library


@pytest.fixture(scope="session")
def calls_of_a_run(disk_shim):
    """What a fixed run without trouble asks of the disk, one letter for each call."""
    whole = Served(lambda *args, ready: Server(*args), disk_shim)
    try:
        assert not whole.ended_by_itself and not whole.run.refusals, whole.server.log()
        kinds = whole.calls.kinds()
        whole.check_after_restart()
    finally:
        whole.close()
    assert {"w", "d", "s", "t", "n"} == set(kinds) and len(kinds) > 500, kinds
    return kinds


@pytest.fixture
def new_spool_run(tmp_path, disk_shim, start_ingest):
    """A function that makes a fixed run on a spool whose disk has one trouble: (run, its calls)."""
    numbers = itertools.count(1)
    made = []

    def make(trouble=None, at=0):
        folder = tmp_path / f"run-{next(numbers)}"
        folder.mkdir()
        calls = DiskCalls(disk_shim, folder / "calls", folder / "spool", trouble, at)
        made.append(calls)
        endpoint = Endpoint()
        url = start_ingest(otherwise=each(endpoint.judge)).url
        return SpoolRun(Spool(folder / "spool"), url, endpoint, calls.env), calls

    yield make
    for calls in made:
        calls.close()


@pytest.fixture(scope="session")
def calls_of_a_spool_run(tmp_path_factory, disk_shim):
    """What a fixed run on a spool asks of the disk, one letter for each call."""
    folder = tmp_path_factory.mktemp("spool-run")
    calls = DiskCalls(disk_shim, folder / "calls", folder / "spool")
    endpoint = Endpoint()
    server = IngestServer(otherwise=each(endpoint.judge))
    run = SpoolRun(Spool(folder / "spool"), server.url, endpoint, calls.env)
    try:
        run.run()
        assert all(result.code == 0 for result in run.results) and len(run.printed) == EVENTS
        kinds = calls.kinds()
        run.check()
    finally:
        server.close()
        calls.close()
    assert {"w", "s", "t", "n"} == set(kinds) and len(kinds) > 800, kinds
    return kinds


@pytest.fixture
def events(shared_server, namespace):
    """Opens streams of the events of this test's namespace: events("queue:dead")."""
    streams = []

    def listen(*types):
        stream = EventStream(shared_server.port,
                             f"?namespace={namespace}&type={','.join(types)}")
        assert stream.status == 200
        streams.append(stream)
        return stream

    yield listen
    for stream in streams:
        stream.connection.close()


@pytest.fixture
def spool(tmp_path):
    """A spool of this test's own; its directory is not there yet. No server is known to it."""
    return Spool(tmp_path / "spool")


@pytest.fixture
def start_ingest():
    """A function that starts an ingest endpoint: start_ingest(*script, otherwise=…)."""
    servers = []

    def start(*script, **options):
        servers.append(IngestServer(*script, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def ingest(start_ingest):
    """An ingest endpoint that accepts everything."""
    return start_ingest()


@pytest.fixture(scope="session")
def _shared_door():
    server = RepriseDoor().start()
    yield server
    server.dispose()


@pytest.fixture(scope="session")
def _shared_beanstalkd():
    server = Beanstalkd()
    yield server
    server.dispose()


def logging_servers(request):
    """Those whose logs are in the report of this test."""
    if not hasattr(request.node, "started_servers"):
        request.node.started_servers = []
    return request.node.started_servers


def watched(request, server):
    """A server that this test may not end."""
    if not server.reference:  # that one has no log
        logging_servers(request).append(server)
    yield server
    assert server.alive(), "this test ended the server"


@pytest.fixture
def door(request, _shared_door):
    """A running server with the beanstalk door, shared by many tests: they keep apart by tube."""
    yield from watched(request, _shared_door)


@pytest.fixture(params=["beanstalkd", "reprise"])
def peer(request):
    """Debian's beanstalkd, then Reprise: what a test says of the protocol holds for both."""
    name = "_shared_beanstalkd" if request.param == "beanstalkd" else "_shared_door"
    yield from watched(request, request.getfixturevalue(name))


@pytest.fixture
def start_door(request):
    """A function that makes a server with the beanstalk door and data of its own."""
    servers = []

    def start(*args, ready=True, **options):
        server = RepriseDoor(*args, **options)
        servers.append(server)
        logging_servers(request).append(server)
        return server.start() if ready else server

    yield start
    for server in servers:
        server.dispose()


@pytest.fixture
def tube():
    """A tube that no other test of this run uses."""
    return f"tube-{os.getpid()}-{next(tube_numbers)}"


@pytest.fixture
def connect(tube):
    """Opens connections that use and watch the tube of this test and no other: connect(server)."""
    with contextlib.ExitStack() as opened:
        yield lambda server, **options: opened.enter_context(server.connect(**options)).only(tube)


@pytest.fixture
def client(peer, connect):
    """A connection to the peer, on the tube of this test."""
    return connect(peer)
