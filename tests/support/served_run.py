"""A fixed run on a server whose disk has one trouble."""

import http.client
import time

from disk_calls import DiskCalls
from fixed_run import RESTART, SETTINGS, FixedRun

END_SECONDS = 5  # for a server that cannot go on


class Served:
    """A fixed run on a server of its own, as far as it comes."""

    def __init__(self, start_server, library, trouble=None, at=0):
        self.server = start_server(*SETTINGS, ready=False)
        self.calls = DiskCalls(library, self.server.folder / "calls", self.server.data, trouble, at)
        self.server.env = self.calls.env
        self.run = FixedRun()
        self.ended_by_itself = not self.serve()
        self.ended_at = time.monotonic()
        self.code = self.server.process.returncode

    def starts(self):
        """False: it ended meanwhile."""
        try:
            self.server.start()
        except (AssertionError, OSError, http.client.HTTPException):
            self.server.wait(END_SECONDS)
            return False
        return True

    def serve(self):
        """Whether the server lived to the end of the run, and was stopped then."""
        if not self.starts():
            return False
        queue = self.server.client().queue("q")
        for step in self.run.steps():
            if step == RESTART:
                if not self.stops() or not self.starts():
                    return False
                queue = queue.through(self.server.client())
                continue
            try:
                step(queue)
            except (OSError, http.client.HTTPException):
                self.server.wait(END_SECONDS)
                return False
        return self.stops()

    def stops(self):
        return self.server.terminate()[0] == 0

    def check_after_restart(self):
        self.server.env = {}
        self.server.start()
        self.run.check(self.server.client().queue("q"))

    def close(self):
        self.calls.close()
        self.server.dispose()
