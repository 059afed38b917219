"""Waiting for a condition, never for a length of time."""

import time

POLL_SECONDS = 0.01


def eventually(check, what="the condition", timeout=10.0, every=POLL_SECONDS):
    """The first true value of check(). AssertionError when there is none before the deadline."""
    deadline = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout:g} s; the last value was {value!r}")
        time.sleep(every)


def holds_for(check, seconds, what="the condition", every=POLL_SECONDS):
    """Asserts that check() stays true for this long."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = check()
        assert value, f"{what} ended before {seconds:g} s were over: {value!r}"
        time.sleep(every)


def time_passes(moment):
    """Returns once the wall clock is past `moment` (seconds since 1970), for deadlines that the
    server itself has told: in milliseconds, and it counts in smaller parts."""
    moment += 0.005
    eventually(lambda: time.time() > moment, f"the clock to reach {moment}", timeout=60)
