"""A spool of one test: files put into it, commands run on it, what is there afterwards."""

import itertools
import json
import os
import secrets
import time
from pathlib import Path

from reprise_cli import Cli, Result

RESULT_FIELDS = {"accepted", "retried", "deadLettered", "corrupt", "duplicates", "remaining",
                 "stoppedEarly"}
BOOKKEEPING = {"_attempts", "_firstAttemptAt", "_lastError"}
FAILED, USAGE, LOCKED, UNSENT = 1, 2, 4, 5

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
milliseconds = itertools.count(int(time.time() * 1000) - 3_600_000)


def encoded(number, length):
    return "".join(CROCKFORD[number >> 5 * place & 31] for place in reversed(range(length)))


def ulid(at_ms=None):
    """A ULID that is greater than those before it, and older than what commands make."""
    at_ms = next(milliseconds) if at_ms is None else at_ms
    return encoded(at_ms, 10) + encoded(secrets.randbits(80), 16)


def ulid_seconds(text):
    """The time in a ULID, in seconds since 1970."""
    assert len(text) == 26 and set(text) <= set(CROCKFORD), f"not a ULID: {text!r}"
    number = 0
    for character in text[:10]:
        number = number * 32 + CROCKFORD.index(character)
    return number / 1000


def iso(seconds):
    whole, fraction = divmod(round(seconds * 1000), 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{fraction:03}Z"


def write_whole(path, data):
    """As a producer should write an event: there whole or not at all, and for nobody else."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    temporary.chmod(0o600)
    os.replace(temporary, path)


class Spool:
    def __init__(self, directory, cli=None):
        self.directory = Path(directory)
        self.queue = self.directory / "queue"
        self.dead_letter = self.directory / "dead-letter"
        self.cli = cli or Cli()

    # What a producer does without the command.

    def put(self, type="test.event", data=None, name=None, **fields):
        """An event of its own making. Its id."""
        event = {"id": ulid(), "type": type, "timestamp": iso(time.time()), "data": data} | fields
        self.put_bytes(json.dumps(event).encode(), name or f"{event['id']}.json")
        return event["id"]

    def put_many(self, count, **fields):
        return [self.put(data=number, **fields) for number in range(count)]

    def put_bytes(self, data, name=None):
        """A file of the queue with these bytes. Its name."""
        name = name or f"{ulid()}.json"
        write_whole(self.queue / name, data)
        return name

    def bury(self, type="test.event", error="no such customer", at=None, reason="max_attempts",
             **fields):
        """A dead letter. Its id."""
        at = time.time() if at is None else at
        event = {"id": ulid(), "type": type, "timestamp": iso(at - 100), "data": 1} | fields
        meta = {"attempts": 10, "lastError": error, "firstAttemptAt": iso(at - 90),
                "deadLetteredAt": iso(at), "queueFile": f"{event['id']}.json", "reason": reason,
                "decidedBy": "policy", "history": []}
        self.bury_bytes(f"{event['id']}.json", json.dumps({"event": event, "meta": meta}).encode())
        return event["id"]

    def bury_bytes(self, name, data):
        write_whole(self.dead_letter / name, data)

    # What is there.

    def names(self):
        """The events in the queue, by the names of their files, in their order."""
        return self.files(self.queue)

    def ids(self):
        return [name.removesuffix(".json") for name in self.names()]

    def events(self):
        return [json.loads((self.queue / name).read_bytes()) for name in self.names()]

    def event(self, event_id):
        return json.loads((self.queue / f"{event_id}.json").read_bytes())

    def temporaries(self):
        return [path.name for path in self.directory.rglob(".*.tmp")]

    def dead_names(self):
        return self.files(self.dead_letter)

    def dead_ids(self):
        return [name.removesuffix(".json") for name in self.dead_names()]

    def letters(self):
        """The envelopes, by the names of their files."""
        return {name: json.loads((self.dead_letter / name).read_bytes())
                for name in self.dead_names()}

    def letter(self):
        """The only envelope there is."""
        [letter] = self.letters().values()
        return letter

    def raw_bytes(self, letter):
        """What is kept of a file that was no event."""
        return (self.dead_letter / letter["meta"]["rawFile"]).read_bytes()

    @staticmethod
    def files(folder):
        """The names of the regular files that count, in their order."""
        entries = os.scandir(folder) if folder.is_dir() else ()
        return sorted(entry.name for entry in entries
                      if entry.name.endswith(".json") and not entry.name.startswith(".")
                      and entry.is_file(follow_symlinks=False))

    def snapshot(self):
        """All files with their bytes, except what tells who drains."""
        return {str(path.relative_to(self.directory)): path.read_bytes()
                for path in sorted(self.directory.rglob("*"))
                if path.is_file() and path.name != "lock"}

    # Commands.

    def words(self, command, args):
        return ("spool", command, "--spool", self.directory, *args)

    def run(self, command, *args, **options):
        return self.cli.run(*self.words(command, args), **options)

    def ok(self, command, *args, **options):
        return self.cli.ok(*self.words(command, args), **options)

    def start(self, command, *args, **options):
        return self.cli.start(*self.words(command, args), **options)

    def terminal(self, command, *args, **options):
        return self.cli.terminal(*self.words(command, args), **options)

    def add(self, type="test.event", *args, **options):
        """The ids that were printed."""
        return self.ok("add", type, *args, **options).out.split()

    def status(self):
        return self.ok("status", "--json").json()

    def drain(self, url, *flags, code=0, **options):
        """The result of a drain that nobody disturbs: its numbers are those of the directory."""
        found, dead = len(self.names()), len(self.dead_names())
        result = self.run("drain", "--to", url, "--json", *flags, **options)
        assert result.code == code, repr(result)
        told = read_result(result)
        assert total(told) == found, f"{found} events were there: {told}"
        assert told["remaining"] == len(self.names()), told
        assert told["deadLettered"] + told["corrupt"] == len(self.dead_names()) - dead, told
        return told


def read_result(result):
    """The result of a drain, in the shape that the page gives."""
    told = result.json() if isinstance(result, Result) else json.loads(result)
    assert set(told) == RESULT_FIELDS | ({"stopReason"} if told["stoppedEarly"] else set()), told
    assert isinstance(told["stoppedEarly"], bool)
    assert told["retried"] <= told["remaining"]
    if told["stoppedEarly"]:
        assert isinstance(told["stopReason"], str) and told["stopReason"]
    return told


def total(told):
    return sum(told[name] for name in ("accepted", "duplicates", "deadLettered", "corrupt",
                                       "remaining"))


def counts(told):
    """Only the numbers that are not 0: {"accepted": 2}."""
    return {name: value for name, value in told.items()
            if value and name not in ("stoppedEarly", "stopReason")}
