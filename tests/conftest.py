"""Fixtures of the tests that run the real binary.

Most tests share one server per worker and keep apart by namespace; a test that restarts, kills or
configures a server asks for one of its own. When a test fails its servers' logs are in the report.
"""

import contextlib
import http.client
import itertools
import os
import signal

import pytest

from reprise_cli import Cli
from reprise_server import Server

# Whoever started us may have had it ignored, as shells do for what runs in the background; programs
# that we start would inherit that, and could not be interrupted.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

LOG_TAIL_CHARS = 8000
numbers = itertools.count(1)
shared_servers = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.failed:
        return
    servers = getattr(item, "started_servers", [])
    if "shared_server" in getattr(item, "fixturenames", ()):
        servers = servers + shared_servers
    for server in servers:
        report.sections.append((f"log of the server in {server.folder.name}",
                                server.log()[-LOG_TAIL_CHARS:]))


@pytest.fixture(scope="session")
def _shared_server():
    server = Server().start()
    shared_servers.append(server)
    yield server
    server.dispose()


@pytest.fixture
def shared_server(_shared_server):
    """A running server with default settings. No request may end it."""
    if not _shared_server.alive():
        _shared_server.start()
    yield _shared_server
    assert _shared_server.alive(), "this test ended the server"


@pytest.fixture
def api(shared_server):
    client = shared_server.client()
    yield client
    client.close()


@pytest.fixture
def namespace():
    """A namespace that no other test of this run uses."""
    return f"test-{os.getpid()}-{next(numbers)}"


@pytest.fixture
def absent_queue(api, namespace):
    """A queue that is not there, in a namespace of its own. It is deleted in the end: metrics name
    the first 1000 queues of a server only."""
    queue = api.queue("jobs", namespace)
    yield queue
    with contextlib.suppress(OSError, http.client.HTTPException):
        api.request("DELETE", queue.path())


@pytest.fixture
def queue(absent_queue):
    """An empty queue with default config, in a namespace of its own."""
    return absent_queue.created()


@pytest.fixture
def start_server(request):
    """A function that makes a server with a data directory of its own: start_server("--flag", …).
    With ready=False it is made and not started; a `kind` of Server has more to it."""
    servers = request.node.started_servers = []

    def start(*args, ready=True, token=None, kind=Server, **options):
        server = kind(*args, **options)
        servers.append(server)
        return server.start(token=token) if ready else server

    yield start
    for server in servers:
        server.dispose()


@pytest.fixture
def server(start_server):
    """A running server of this test's own, with default settings."""
    return start_server()


@pytest.fixture
def cli(shared_server):
    """The command line, told by REPRISE_URL where the shared server is."""
    return Cli(shared_server.url)
