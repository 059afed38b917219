"""Fixtures of the end-to-end tests: the command line, and disks with troubles."""

import subprocess
from pathlib import Path

import pytest

from raw_http import EventStream
from reprise_server import clean_environment


class NamespaceCli:
    """The command line confined to the namespace of one test."""

    def __init__(self, cli, namespace):
        self.cli = cli
        self.flags = ("-n", namespace)

    def words(self, args):
        # The flag goes behind the command and before a possible `--`.
        split = 2 if args[0] in ("queue", "operation") else 1
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


@pytest.fixture(scope="session")
def disk_shim(tmp_path_factory):
    """A library to preload into a server: see disk_shim.c."""
    library = tmp_path_factory.mktemp("shim") / "disk_shim.so"
    source = Path(__file__).with_name("disk_shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True,
                   env=clean_environment())
    return library


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
