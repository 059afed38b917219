"""The journal of the clients: every request before it is sent, every reply after it came.

A line of JSON for each, and none of them is acted upon before it is on disk: a request leaves after
the sync that follows its line, and so does whatever a client does next after a reply. So the
journal never knows less than the clients did, whatever ends them.

An entry is a request and what became of it. `outcome` is
  "replied"   the server answered: `reply` holds the JSON, `status` the HTTP status;
  "unknown"   the request may or may not have been carried out: no answer came;
  "not_sent"  it changed nothing: refused before any work (503).
Replies of the beanstalk protocol are written as HTTP would have said it, as far as they say it. A
"hang_up" is no request: from then on a connection is gone, and with it the leases that it had.
Times are wall-clock seconds of the client, which runs on the server's machine.
"""

import base64
import hashlib
import json
import math
import os
import time
from dataclasses import dataclass, field

CHANGED_NOTHING = {503, 507}
# What a reply has that says what became of the items of its request.
ANSWERS = ("results", "jobs", "retried", "purged")


@dataclass
class Entry:
    kind: str  # push claim ack fail release extend retry purge hang_up
    request: dict
    sent: float
    queue: str = ""  # of push, claim, retry and purge; of a claim over several: in the request
    door: str = "http"  # or "tube": by the beanstalk protocol
    outcome: str = "unknown"
    status: int = 0
    reply: dict = field(default_factory=dict)
    replied: float = 0.0
    # When the connection was seen to be gone. The server had ended by then.
    lost: float = math.inf

    @property
    def over(self):
        """The moment at which the server had done it, or would never do it."""
        return self.replied if self.outcome == "replied" else self.lost


def outcome_of(status, reply):
    if status in CHANGED_NOTHING:
        return "not_sent"
    if any(answer in reply for answer in ANSWERS):
        return "replied"
    # 500: the server itself does not know.
    return "not_sent" if 400 <= status < 500 else "unknown"


class Journal:
    """Written by the clients' process."""

    def __init__(self, path):
        self.file = open(path, "ab", buffering=1 << 20)
        self.number = 0
        self.clean = True

    def _write(self, line):
        self.file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.clean = False

    def begin(self, kind, queue, request, door="http"):
        """The number of the request."""
        self.number += 1
        self._write({"n": self.number, "kind": kind, "queue": queue, "sent": time.time(),
                     "request": request, "door": door})
        return self.number

    def replied(self, number, status, reply):
        self._write({"n": number, "replied": time.time(), "status": status, "reply": reply})

    def lost(self, number):
        self._write({"n": number, "lost": time.time()})

    def sync(self):
        if not self.clean:
            self.file.flush()
            os.fdatasync(self.file.fileno())
            self.clean = True


def read_journal(path):
    """Its entries, in the order in which they were begun."""
    entries = {}
    with open(path, "rb") as file:
        for line in file:
            parsed = json.loads(line)
            number = parsed.pop("n")
            if "kind" in parsed:
                entries[number] = Entry(**parsed)
                continue
            entry = entries[number]
            for name, value in parsed.items():
                setattr(entry, name, value)
            if "reply" in parsed:
                entry.outcome = outcome_of(entry.status, entry.reply)
    return list(entries.values())


def make_payload(name, filler=""):
    """A payload that tells its name and proves that it is whole."""
    return {"name": name, "filler": filler, "hash": payload_hash(name, filler)}


def payload_hash(name, filler):
    return hashlib.sha256(f"{name} {filler}".encode()).hexdigest()


def payload_is_whole(payload):
    return (isinstance(payload, dict) and set(payload) == {"name", "filler", "hash"}
            and payload["hash"] == payload_hash(payload["name"], payload["filler"]))


def brief(payload):
    """What the journal keeps of a payload: its name and hash, which stand for all of it, or that it
    was damaged, and how."""
    if payload_is_whole(payload):
        return {"name": payload["name"], "hash": payload["hash"]}
    return {"damaged": str(payload)[:300]}


def payload_in(body):
    """The payload that came as bytes; what is no JSON stays as it is, and is not whole then."""
    try:
        return json.loads(body)
    except ValueError:
        return repr(body)


def payload_of(job):
    if "payload_base64" in job:
        return payload_in(base64.b64decode(job["payload_base64"]))
    return job.get("payload")


def briefly(jobs):
    """Jobs as they are sent or delivered, as the journal has them."""
    return [{**{name: value for name, value in job.items() if name != "payload_base64"},
             "payload": brief(payload_of(job))} for job in jobs]
