"""Requests that wait, on threads of their own, for tests that go on meanwhile."""

import threading
from concurrent.futures import Future

from reprise_http import Client


def in_background(function, *args, **kwargs):
    """Calls function on a thread of its own. The result comes from .result(timeout)."""
    future = Future()

    def run():
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:  # told to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def claim_in_background(queue, wait="30s", **fields):
    """A waiting claim over a connection of its own; its result is the list of jobs."""
    own = queue.through(Client(queue.client.port, timeout=60))
    return in_background(lambda: own.claim(wait=wait, **fields))
