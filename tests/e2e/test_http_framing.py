"""HTTP on the wire: what is ambiguous is refused, and no second request hides inside a first."""

import json
import threading

import pytest

from background import in_background
from raw_http import RawConnection, message, push_message
from waiting import eventually

OK_PATH = "/healthz"


@pytest.fixture
def connect(shared_server):
    opened = []

    def open_connection(**options):
        opened.append(RawConnection(shared_server.port, **options))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()


def head(*lines):
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


GET = f"GET {OK_PATH} HTTP/1.1"
POST = "POST /v1/ack HTTP/1.1"
HOST = "Host: localhost"

MALFORMED = {
    "no host": head(GET),
    "two hosts": head(GET, HOST, HOST),
    "two different hosts": head(GET, HOST, "Host: 127.0.0.1"),
    "two lengths": head(POST, HOST, "Content-Length: 2", "Content-Length: 3") + b"{}",
    "the same length twice": head(POST, HOST, "Content-Length: 2", "Content-Length: 2") + b"{}",
    "a list of lengths": head(POST, HOST, "Content-Length: 2, 2") + b"{}",
    "a negative length": head(POST, HOST, "Content-Length: -1"),
    "a signed length": head(POST, HOST, "Content-Length: +2") + b"{}",
    "a hexadecimal length": head(POST, HOST, "Content-Length: 0x2") + b"{}",
    "an endless length": head(POST, HOST, "Content-Length: 99999999999999999999999"),
    "a length with a space": head(POST, HOST, "Content-Length: 2 2") + b"{}",
    "length and chunks": head(POST, HOST, "Content-Length: 2", "Transfer-Encoding: chunked")
    + b"2\r\n{}\r\n0\r\n\r\n",
    "chunks and length": head(POST, HOST, "Transfer-Encoding: chunked", "Content-Length: 2")
    + b"2\r\n{}\r\n0\r\n\r\n",
    "chunks twice": head(POST, HOST, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked")
    + b"0\r\n\r\n",
    "chunked, chunked": head(POST, HOST, "Transfer-Encoding: chunked, chunked") + b"0\r\n\r\n",
    "another coding": head(POST, HOST, "Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n",
    "identity": head(POST, HOST, "Transfer-Encoding: identity") + b"{}",
    "a misspelt coding": head(POST, HOST, "Transfer-Encoding: xchunked") + b"0\r\n\r\n",
    "a folded header": head(GET, HOST, "X-A: 1", " folded"),
    "a folded coding": head(POST, HOST, "Transfer-Encoding:", " chunked") + b"0\r\n\r\n",
    "a space before the colon": head(GET, HOST, "X-A : 1"),
    "a space before the coding's colon": head(POST, HOST, "Transfer-Encoding : chunked")
    + b"0\r\n\r\n",
    "a header without a name": head(GET, HOST, ": 1"),
    "a header without a colon": head(GET, HOST, "X-A"),
    "a space before the first header": head(GET, " X-A: 1", HOST),
    "a nul in a header": head(GET, HOST, "X-A: a\0b"),
    "a carriage return in a header": head(GET, HOST, "X-A: a\rb"),
    "bare line feeds": f"{GET}\n{HOST}\n\n".encode(),
    "a bare line feed between headers": f"{GET}\r\n{HOST}\nX-A: 1\r\n\r\n".encode(),
    "no version": head(f"GET {OK_PATH}", HOST),
    "another version": head(f"GET {OK_PATH} HTTP/3.0", HOST),
    "a lower-case version": head(f"GET {OK_PATH} http/1.1", HOST),
    "a space in the path": head("GET /heal thz HTTP/1.1", HOST),
    "no path": head("GET  HTTP/1.1", HOST),
    "a path without a slash": head("GET healthz HTTP/1.1", HOST),
    "a control character in the path": head("GET /heal\x01thz HTTP/1.1", HOST),
    "not http at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
    "an odd method": head(f"G(E)T {OK_PATH} HTTP/1.1", HOST),
}


def assert_refused_and_closed(connection):
    """One refusal at most, then the end: whatever else was sent is not read as a request."""
    replies = connection.replies()
    assert len(replies) <= 1, f"the bytes behind it were read as requests too: {replies}"
    for reply in replies:
        assert reply.status in (400, 501, 505), reply
        assert reply.code == "invalid_request"
    assert connection.closed_by_peer()


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_request_is_refused_and_hides_no_other(connect, queue, request_bytes):
    connection = connect()
    try:
        connection.send(request_bytes + push_message(queue, "smuggled"))
    except (ConnectionResetError, BrokenPipeError):
        pass
    assert_refused_and_closed(connection)
    assert queue.counts() == {}


BAD_CHUNKS = {
    "no size": b"\r\n{}\r\n0\r\n\r\n",
    "a size that is no number": b"zz\r\n{}\r\n0\r\n\r\n",
    "a negative size": b"-2\r\n{}\r\n0\r\n\r\n",
    "a size with 0x": b"0x2\r\n{}\r\n0\r\n\r\n",
    "a size beyond 64 bits": b"10000000000000002\r\n{}\r\n0\r\n\r\n",
    "a space before the size": b" 2\r\n{}\r\n0\r\n\r\n",
    "more data than the size": b"2\r\n{}XX\r\n0\r\n\r\n",
    "bare line feeds": b"2\n{}\n0\n\n",
    "a bare line feed after the size": b"2\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS.keys())
def test_a_malformed_chunk_is_refused_and_hides_no_request(connect, queue, body):
    connection = connect()
    try:
        connection.send(head(POST, HOST, "Transfer-Encoding: chunked") + body
                        + push_message(queue, "smuggled"))
    except (ConnectionResetError, BrokenPipeError):
        pass
    assert_refused_and_closed(connection)
    assert queue.counts() == {}


def chunked(body, sizes):
    parts, rest = b"", body
    for size in sizes:
        parts += b"%x\r\n" % len(rest[:size]) + rest[:size] + b"\r\n"
        rest = rest[size:]
    assert not rest
    return parts + b"0\r\n\r\n"


def test_a_chunked_body_is_read_whole(connect, queue):
    body = json.dumps({"jobs": [{"payload": "in chunks"}]}).encode()
    connection = connect().send(
        message("POST", queue.path("/push"), headers=["Transfer-Encoding: chunked"])
        + chunked(body, [1, 5, 1, 1000]) + message("GET", OK_PATH))
    assert [reply.status for reply in (connection.reply(), connection.reply())] == [200, 200]
    assert queue.claim_one()["payload"] == "in chunks"


def test_pipelined_requests_are_answered_in_order(connect, queue):
    count = 50
    connection = connect().send(b"".join(push_message(queue, n) for n in range(count)))
    ids = [connection.reply().json()["results"][0]["id"] for _ in range(count)]
    jobs = queue.claim(count)
    assert [job["payload"] for job in jobs] == list(range(count))
    assert [job["id"] for job in jobs] == ids


def test_a_pipelined_request_waits_for_a_slow_one_before_it(connect, queue):
    claim = json.dumps({"wait": "10s"}).encode()
    connection = connect().send(message("POST", queue.path("/claim"), claim)
                                + message("GET", OK_PATH))
    eventually(lambda: queue.stats()["waiting_claims"] == 1, "the claim to wait")
    job_id = queue.push_one("x")
    assert connection.reply().json()["jobs"][0]["id"] == job_id
    assert connection.reply().json() == {"status": "ok"}


def test_a_request_may_arrive_byte_by_byte(connect, queue):
    connection = connect()
    for byte in push_message(queue, "slow but sure"):
        connection.send(bytes([byte]))
    assert connection.reply().status == 200
    assert queue.claim_one()["payload"] == "slow but sure"


def test_a_request_cut_off_in_its_body_has_no_effect(connect, queue):
    connection = connect().send(push_message(queue, "never whole")[:-1])
    connection.close()
    follower = connect().send(message("GET", OK_PATH))
    assert follower.reply().status == 200
    assert queue.counts() == {}


def test_a_connection_may_be_closed_on_request(connect):
    connection = connect().send(message("GET", OK_PATH, headers=["Connection: close"]))
    assert connection.reply().status == 200
    assert connection.closed_by_peer()


def test_an_empty_line_before_a_request_is_overlooked_or_refused(connect):
    reply = connect().send(b"\r\n" + message("GET", OK_PATH)).reply()
    assert reply.status in (200, 400)


def test_expect_continue_is_answered(connect, queue):
    body = json.dumps({"jobs": [{"payload": "asked first"}]}).encode()
    connection = connect().send(message(
        "POST", queue.path("/push"),
        headers=["Expect: 100-continue", f"Content-Length: {len(body)}"]))
    status, _ = connection.head()
    assert status == 100
    assert connection.send(body).reply().status == 200


def test_expect_continue_of_a_body_too_large_is_refused_at_once(connect, queue):
    connection = connect().send(message(
        "POST", queue.path("/push"),
        headers=["Expect: 100-continue", f"Content-Length: {25 << 20}"]))
    status, _ = connection.head()
    assert status == 413


def test_names_of_headers_have_no_case(connect, queue):
    body = json.dumps({"jobs": [{"payload": 1}]}).encode()
    raw = head(f"POST {queue.path('/push')} HTTP/1.1", "hOST: localhost",
               f"CONTENT-length: {len(body)}") + body
    assert connect().send(raw).reply().status == 200


def test_a_body_on_a_get_is_not_read_as_a_request(connect, queue):
    hidden = push_message(queue, "hidden")
    connection = connect().send(message("GET", OK_PATH, hidden) + message("GET", OK_PATH))
    replies = [connection.reply()]
    if replies[0].status == 200:
        replies.append(connection.reply())
    assert all(reply is None or reply.status in (200, 400) for reply in replies)
    assert queue.counts() == {}


class TestSlowRequests:
    @pytest.fixture
    def impatient(self, start_server):
        return start_server("--header-timeout", "300ms", "--body-timeout", "300ms",
                            "--idle-timeout", "300ms")

    @pytest.mark.parametrize("begun", [
        b"GET", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
        message("POST", "/v1/ack", headers=["Content-Length: 10"]) + b"{",
        message("POST", "/v1/ack", headers=["Transfer-Encoding: chunked"]) + b"5\r\n{",
    ])
    def test_a_request_that_does_not_arrive_whole_is_given_up(self, impatient, begun):
        with RawConnection(impatient.port) as connection:
            connection.send(begun)
            reply = connection.reply()
            assert reply is None or (reply.status, reply.code) == (408, "request_timeout")
            assert connection.closed_by_peer()

    def test_a_header_that_drips_is_given_up(self, impatient):
        given_up = threading.Event()

        def drip(connection):
            try:
                while not given_up.wait(0.02):
                    connection.send(b"x")
            except OSError:
                pass

        with RawConnection(impatient.port, timeout=5) as connection:
            connection.send(b"GET /healthz HTTP/1.1\r\nX: ")
            dripping = in_background(drip, connection)
            reply = connection.reply()
            given_up.set()
            dripping.result(5)
        assert reply is None or (reply.status, reply.code) == (408, "request_timeout")

    def test_an_idle_connection_is_closed(self, impatient):
        with RawConnection(impatient.port) as connection:
            assert connection.send(message("GET", OK_PATH)).reply().status == 200
            assert connection.closed_by_peer()

    def test_a_waiting_claim_is_not_idle(self, impatient):
        client = impatient.client()
        client.queue("q").create()
        assert client.queue("q").claim(wait="1s") == []
