"""Two hundred events through a spool, always the same: added, sent, refused, given up, retried."""

EVENTS = 200
HALF = EVENTS // 2
ATTEMPTS = 2


class Endpoint:
    """Takes each event once, but some only in the end."""

    def __init__(self):
        self.taken = {}  # the number in the event, by its id
        self.patient = False  # from then on it takes them all

    def judge(self, event):
        if event["id"] in self.taken:
            return "duplicate"
        if event["data"] % 9 == 0 and not self.patient:
            return "rejected", "no such customer"
        self.taken[event["id"]] = event["data"]
        return "accepted"


class SpoolRun:
    """`url` is where the endpoint listens; `env` is for commands until check()."""

    def __init__(self, spool, url, endpoint, env):
        self.spool = spool
        self.url = url
        self.endpoint = endpoint
        self.env = env
        self.printed = []  # ids: what was promised
        self.results = []

    def run(self, until=lambda result: False):
        """All commands, or up to one after which to end."""
        for command, args, stdin in self.commands():
            result = self.spool.run(command, *args, stdin=stdin, env=self.env)
            self.results.append(result)
            if command == "add":
                # The last line may be cut: an id that was not printed whole was not promised.
                self.printed += result.out.rpartition("\n")[0].split()
            if until(result):
                return

    def commands(self):
        drain = ("drain", ("--to", self.url, "--batch", "10", "--max-attempts", str(ATTEMPTS)), b"")
        yield "add", ("t", "--ndjson-stdin"), lines(range(HALF))
        yield drain
        yield "add", ("t", "--ndjson-stdin"), lines(range(HALF, EVENTS))
        yield drain
        yield drain
        yield "retry", ("--all",), b""
        yield drain

    def check(self):
        """On a disk without troubles: all that was promised arrives, and nothing twice."""
        self.endpoint.patient = True
        assert set(self.printed) <= (set(self.spool.ids()) | set(self.spool.dead_ids())
                                     | self.endpoint.taken.keys()), "lost"
        for command in (("drain", "--to", self.url), ("retry", "--all"),
                        ("drain", "--to", self.url)):
            self.spool.ok(*command)
        assert set(self.printed) <= self.endpoint.taken.keys()
        numbers = sorted(self.endpoint.taken.values())
        assert numbers == sorted(set(numbers)), "an event has arrived twice"
        assert set(numbers) <= set(range(EVENTS))
        assert self.spool.names() == [] and self.spool.dead_names() == []
        assert self.spool.temporaries() == []


def lines(numbers):
    return b"".join(b"%d\n" % number for number in numbers)
