"""Requests that were damaged at random: every answer is HTTP, and the server goes on.

REPRISE_SEED=n replays a run; FUZZ_REQUESTS=n makes it longer.
"""

import json
import os
import random
import secrets

from raw_http import RawConnection, message

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "1500"))
NASTY = [b"\r\n", b"\n", b"\0", b" ", b":", b"%", b"\\", b'"', b"{", b"[", b"]", b"}", b",", b"-",
         b"\xff", b"\xc3\x28", b"\\u", b"\\ud800", b"1e999", b"99999999999999999999", b"/..",
         b"?&=", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: x\r\n",
         b"\x1b[2J"]


def whole_requests(queue, token):
    """One good request of every kind."""
    def post(path, body):
        return message("POST", path, json.dumps(body).encode())
    job = {"payload": {"a": [1, 2.5, None, "x"]}, "headers": {"h": "v"}, "delay": "1s",
           "priority": 5, "key": "k", "ttl": "1h"}
    return [
        message("PUT", queue.path(), b'{"lease":"1m","retry":{"attempts":3,"cooldown":"1s"}}'),
        message("PATCH", queue.path(), b'{"max_jobs":100000,"ttl":null}'),
        post(queue.path("/push"), {"jobs": [job, {"payload_base64": "AAEC"}], "create": False}),
        post(queue.path("/claim"), {"max": 2, "wait": 0, "lease": "1m", "lane": "any",
                                    "worker": "w"}),
        post("/api/events/ingest?queue=fuzzed", {"events": [
            {"id": "01A", "type": "t", "timestamp": "2026-01-31T08:15:00Z", "data": [1, "x"]},
            {"id": "01B", "type": "reprise.push", "data": {
                "namespace": queue.namespace, "queue": queue.name, "create": True, "job": job}}]}),
        post("/v1/ack", {"leases": [{"token": token}]}),
        post("/v1/fail", {"leases": [{"token": token, "error": "e", "delay": 1, "final": False}]}),
        post("/v1/release", {"leases": [{"token": token, "delay": "1s"}]}),
        post("/v1/extend", {"leases": [{"token": token, "lease": "1m"}]}),
        message("GET", queue.path("/jobs", status="pending", limit=3, error="x",
                                  **{"header.h": "v"})),
        message("GET", queue.path("/jobs/7ZK3M9QA")),
        message("DELETE", queue.path("/jobs/7ZK3M9QAX2B4C")),
        message("GET", queue.path()), message("GET", "/v1/queues?namespace=*"),
        message("GET", "/v1/status"), message("GET", "/metrics"), message("HEAD", "/"),
        message("POST", queue.path("/push"), headers=["Transfer-Encoding: chunked"])
        + b'b\r\n{"jobs":[]}\r\n0\r\n\r\n',
    ]


def damage(choose, data):
    data = bytearray(data)
    for _ in range(choose.choice([1, 1, 1, 2, 5])):
        at = choose.randrange(len(data) + 1)
        kind = choose.randrange(6)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << choose.randrange(8)
        elif kind == 1:
            data[at:at] = choose.choice(NASTY)
        elif kind == 2:
            del data[at:at + choose.randint(1, 20)]
        elif kind == 3:
            data[at:at] = data[at:at + choose.randint(1, 60)]
        elif kind == 4:
            data[at:at + 1] = bytes([choose.randrange(256)])
        elif len(data) > 1:
            del data[choose.randrange(1, len(data)):]
    return bytes(data)


def test_damaged_requests_get_proper_answers_and_hurt_nobody(start_server):
    seed = int(os.environ.get("REPRISE_SEED", secrets.randbelow(2**32)))
    print(f"REPRISE_SEED={seed}")
    choose = random.Random(seed)
    # A cut-off request is not waited for.
    server = start_server("--header-timeout", "200ms", "--body-timeout", "200ms")
    client = server.client()
    untouched = client.queue("untouched", "elsewhere").created()
    untouched.push(*range(10))
    before = untouched.snapshot()
    queue = client.queue("fuzzed").created()
    queue.push(1)
    requests = whole_requests(queue, queue.claim_one()["token"])

    statuses = set()
    for _ in range(REQUESTS):
        data = damage(choose, choose.choice(requests))
        with RawConnection(server.port, timeout=10) as connection:
            try:
                # The second request ends what the first has left open, or is part of it.
                connection.send(data + message("GET", "/healthz", headers=["Connection: close"]))
            except OSError:
                pass
            method = "HEAD" if data.startswith(b"HEAD") else "GET"
            head = connection.reply(method)
            if head:
                statuses.add(head.status)
                assert head.status < 500 or head.status in (501, 505), f"{data!r}: {head!r}"
        assert server.alive(), f"ended by {data!r}"
    assert client.get("/healthz") and untouched.snapshot() == before
    assert {200, 400, 404} <= statuses
