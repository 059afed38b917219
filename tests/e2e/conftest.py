"""Fixtures of the end-to-end tests: the command line, and disks with troubles."""

import subprocess
from pathlib import Path

import pytest

from reprise_server import clean_environment


class NamespaceCli:
    """The command line confined to the namespace of one test."""

    def __init__(self, cli, namespace):
        self.cli = cli
        self.flags = ("-n", namespace)

    def words(self, args):
        # The flag goes behind the command and before a possible `--`.
        split = 2 if args[0] == "queue" else 1
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


@pytest.fixture(scope="session")
def disk_shim(tmp_path_factory):
    """A library to preload into a server: see disk_shim.c."""
    library = tmp_path_factory.mktemp("shim") / "disk_shim.so"
    source = Path(__file__).with_name("disk_shim.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True,
                   env=clean_environment())
    return library
