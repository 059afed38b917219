"""The journal of a client: every request before it is sent, every reply after it came.

An entry says what the client knows for sure. `outcome` is
  "replied"   the server answered: `reply` holds the JSON, `status` the HTTP status;
  "unknown"   the request may or may not have been carried out: no answer came;
  "not_sent"  it never left: no connection, or refused before any work (503).
Times are wall-clock seconds of the client, which runs on the server's machine.
"""

import hashlib
import json
import threading
import time
from dataclasses import asdict, dataclass, field

CHANGED_NOTHING = {503, 507}


@dataclass
class Entry:
    kind: str  # push claim ack fail release extend
    request: dict
    sent: float
    outcome: str = "unknown"
    status: int = 0
    reply: dict = field(default_factory=dict)
    replied: float = 0.0


class Journal:
    def __init__(self):
        self.entries = []
        self.lock = threading.Lock()

    def begin(self, kind, request):
        entry = Entry(kind, request, time.time())
        with self.lock:
            self.entries.append(entry)
        return entry

    @staticmethod
    def replied(entry, status, reply):
        entry.replied = time.time()
        entry.status, entry.reply = status, reply
        if status in CHANGED_NOTHING:
            entry.outcome = "not_sent"
        elif "results" in reply or "jobs" in reply:
            entry.outcome = "replied"
        elif 400 <= status < 500:
            entry.outcome = "not_sent"
        # 500: the server itself does not know.

    def write(self, path):
        """For a look at it after a failure."""
        with open(path, "w") as file:
            for entry in self.entries:
                file.write(json.dumps(asdict(entry)) + "\n")


def make_payload(name, filler=""):
    """A payload that tells its name and proves that it is whole."""
    return {"name": name, "filler": filler, "hash": payload_hash(name, filler)}


def payload_hash(name, filler):
    return hashlib.sha256(f"{name} {filler}".encode()).hexdigest()


def payload_is_whole(payload):
    return (isinstance(payload, dict) and set(payload) == {"name", "filler", "hash"}
            and payload["hash"] == payload_hash(payload["name"], payload["filler"]))
