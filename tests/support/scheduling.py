"""Scheduling: jobs with keys, who was served in which order, throttles, and tireless claimers."""

import selectors
import time
from collections import Counter
from fractions import Fraction
from itertools import accumulate
from json import dumps
from urllib.parse import quote, urlencode

from raw_http import RawConnection, message
from times import seconds_since_1970

# A lease long enough that no slow machine ends it, from whose end the moment of the claim is known.
LONG_LEASE = "1h"
LONG_LEASE_SECONDS = 3600
# By how much the server may make up for having been late.
MADE_UP_SECONDS = 0.1
# Times are told in whole milliseconds.
ROUNDING_SECONDS = 0.002
PUSH_JOBS_MAX = 1000


# Keys.

def push_keyed(queue, key, count, weight=1, **fields):
    """So many jobs of one fairness key; the payload of each is [key, number]. Their ids."""
    ids = []
    for first in range(0, count, PUSH_JOBS_MAX):
        ids += queue.push(*[[key, n] for n in range(first, min(count, first + PUSH_JOBS_MAX))],
                          fairness_key=key, weight=weight, **fields)
    return ids


def keys_of(jobs):
    """The fairness keys of jobs of push_keyed(), in the order given."""
    return [job["payload"][0] for job in jobs]


def numbers_of(jobs, key):
    """The numbers of one key's jobs, in the order given."""
    return [job["payload"][1] for job in jobs if job["payload"][0] == key]


def claim_sizes(queue, sizes, **fields):
    """The jobs of full claims of these sizes, in the order given."""
    jobs = []
    for size in sizes:
        got = queue.claim(size, lease=LONG_LEASE, **fields)
        assert len(got) == size, f"a claim of {size} got {len(got)}"
        jobs += got
    return jobs


def assert_shares(keys, weights, off=1):
    """From the first delivery to any other each key has its share of them, at most so many off."""
    total = sum(weights.values())
    given = Counter()
    assert set(keys) <= set(weights), set(keys) - set(weights)
    for count, key in enumerate(keys, 1):
        given[key] += 1
        for each, weight in weights.items():
            share = Fraction(count * weight, total)
            assert abs(given[each] - share) <= off, (
                f"of the first {count} deliveries {each} had {given[each]}, not {float(share):.2f}")


def assert_windows(keys, weights, length, off):
    """The same of every run of this length."""
    total = sum(weights.values())
    for key, weight in weights.items():
        share = Fraction(length * weight, total)
        given = [0, *accumulate(each == key for each in keys)]
        for start in range(len(keys) - length + 1):
            had = given[start + length] - given[start]
            assert abs(had - share) <= off, (
                f"deliveries {start} to {start + length}: {key} had {had}, not {float(share):.2f}")


def top_keys(queue):
    """{key: what is told of it} of the keys that a queue shows."""
    return {entry["key"]: entry for entry in queue.stats()["keys"]["top"]}


def breaker_of(queue):
    """State and counts of the queue's own breaker."""
    return queue.show()["breaker"]


# Throttles.

class Throttles:
    """The throttles of one namespace."""

    def __init__(self, client, namespace="default"):
        self.client = client
        self.namespace = namespace

    def path(self, key=None):
        query = "" if self.namespace == "default" else "?" + urlencode(
            {"namespace": self.namespace})
        return "/v1/throttles" + ("" if key is None else "/" + quote(key, safe="")) + query

    def set(self, key, rate, burst=None):
        body = {"rate": rate} if burst is None else {"rate": rate, "burst": burst}
        return self.client.call("PUT", self.path(key), body)

    def get(self, key):
        return self.client.get(self.path(key))

    def tokens(self, key):
        return self.get(key)["tokens"]

    def unset(self, key):
        return self.client.call("DELETE", self.path(key))

    def list(self):
        return self.client.get(self.path())["throttles"]

    def settings(self):
        """{key: (rate, burst)} of all of them."""
        return {entry["key"]: (entry["rate"], entry["burst"]) for entry in self.list()}


def claimed_at(job):
    """The server's own time of a claim with LONG_LEASE, in seconds since 1970."""
    return seconds_since_1970(job["lease_expires_at"]) - LONG_LEASE_SECONDS


def assert_within_rate(jobs, rate, burst):
    """By the server's own times no stretch has more of these jobs than the throttle allows: none
    from the first job on, and no other one if the server makes up for having been late."""
    first, *_ = times = sorted(map(claimed_at, jobs))
    times = [moment - first for moment in times]

    def allowed(seconds):
        return burst + rate * (seconds + ROUNDING_SECONDS)
    for count, moment in enumerate(times, 1):
        assert count <= allowed(moment), f"{count} jobs within {moment:.3f} s"
    # Of the stretches that end with a job, the worst begins where the most is in advance of the
    # rate: one pass finds it.
    fewest = float("inf")
    for count, moment in enumerate(times):
        fewest = min(fewest, count - rate * moment)
        within = count + 1 - rate * moment - fewest
        assert within <= allowed(MADE_UP_SECONDS), f"{within:.1f} jobs at once beyond the rate"


class Claimers:
    """Many connections that wait for one job each, again and again."""

    def __init__(self, queue, count):
        body = dumps({"max": 1, "wait": "1m", "lease": LONG_LEASE}).encode()
        self.request = message("POST", queue.path("/claim"), body,
                               ["Content-Type: application/json"])
        self.selector = selectors.DefaultSelector()
        self.connections = [RawConnection(queue.client.port) for _ in range(count)]
        for connection in self.connections:
            self.selector.register(connection.socket, selectors.EVENT_READ, connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.selector.close()
        for connection in self.connections:
            connection.close()

    def run(self, seconds):
        """All jobs given out to them within this time, and how long it really was."""
        started = time.monotonic()
        for connection in self.connections:
            connection.send(self.request)
        jobs = []
        while time.monotonic() < started + seconds:
            for ready, _ in self.selector.select(timeout=0.05):
                reply = ready.data.reply()
                assert reply.status == 200, reply
                jobs += reply.json()["jobs"]
                ready.data.send(self.request)
        return jobs, time.monotonic() - started
