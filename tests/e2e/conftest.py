"""Fixtures of the tests of the command line."""

import pytest


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
