"""HTTP on the wire: what is ambiguous is refused, and no second request hides inside a first."""

import json
import threading

import pytest

from background import in_background
from http_wire_cases import CASES, CLOSES, line
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


PIECES = {"whole": 1 << 20, "byte by byte": 1}
LONG = 3000  # longer ones are not sent byte by byte


def send_all(connection, data, piece):
    """As far as the server wants it."""
    piece = piece if len(data) < LONG else max(piece, 1000)
    try:
        for start in range(0, len(data), piece):
            connection.send(data[start:start + piece])
    except (ConnectionResetError, BrokenPipeError):
        pass


def test_the_table_has_no_case_twice():
    names = [(case.section, case.name) for case in CASES]
    assert len(names) == len(set(names)) and len(names) >= 120


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.section}: {case.name}")
def test_a_message_ends_as_the_standard_wants_and_hides_no_other(connect, queue, case, piece):
    data = case.message
    if callable(data):
        data = data(push_message(queue, "hidden"))
    connection = connect()
    send_all(connection, data + push_message(queue, "next"), piece)
    if case.then == CLOSES:
        replies = connection.replies()
        assert [reply.status for reply in replies] == [case.status], replies
        assert replies[0].headers["connection"] == "close"
        assert connection.closed_by_peer()
        assert queue.counts() == {}
        return
    replies = [connection.reply(), connection.reply()]
    assert [reply.status for reply in replies] == [case.status, 200], replies
    # Exactly one job: nothing else was carried out, and nothing is left of the connection's input.
    assert connection.send(line("GET /healthz HTTP/1.1")).reply().json() == {"status": "ok"}
    assert [job["payload"] for job in queue.claim(10)] == ["next"]


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
