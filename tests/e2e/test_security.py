"""Who may talk to the server: Host and Origin, tokens, loopback, and what the log keeps quiet."""

import json
import socket

import pytest

from raw_http import RawConnection, message
from waiting import eventually

TOKENS = "# people\n\nalice:wonderland-secret\nbare-token-secret\n"


@pytest.fixture
def guarded(start_server, tmp_path):
    """A server with a token file."""
    path = tmp_path / "tokens"
    path.write_text(TOKENS)
    return start_server("--token-file", str(path), token="wonderland-secret")


def answer(port, host="localhost", headers=(), path="/v1/status", method="GET", **options):
    with RawConnection(port, **options) as connection:
        reply = connection.send(message(method, path, headers=headers, host=host)).reply()
        return reply.status, reply.json().get("error", {}).get("code")


class TestHost:
    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "[::1]",
                                      "localhost:1", "127.0.0.1:65535", "[::1]:7333"])
    def test_names_of_this_machine_are_answered(self, shared_server, host):
        assert answer(shared_server.port, host) == (200, None)

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:7333", "localhost.evil.example",
                                      "127.0.0.1.evil.example", "notlocalhost", "10.0.0.1",
                                      "127.0.0.2", "[::2]", "0.0.0.0"])
    def test_any_other_name_is_refused(self, shared_server, host):
        assert answer(shared_server.port, host) == (403, "forbidden_host")

    @pytest.mark.parametrize("host", ["", "localhost evil", "[::1", "localhost:x", "local\tho",
                                      "localhost@evil.example"])
    def test_what_is_no_name_is_refused(self, shared_server, host):
        assert answer(shared_server.port, host)[0] in (400, 403)

    def test_names_may_be_added(self, start_server):
        server = start_server("--allowed-host", "queue.example", "--allowed-host", "q2.example")
        assert answer(server.port, "queue.example:80") == (200, None)
        assert answer(server.port, "Q2.example") == (200, None)
        assert answer(server.port, "q3.example") == (403, "forbidden_host")

    def test_a_refused_name_has_no_effect(self, shared_server, absent_queue):
        assert answer(shared_server.port, "evil.example", path=absent_queue.path(),
                      method="PUT") == (403, "forbidden_host")
        assert absent_queue.client.refused("GET", absent_queue.path()) == (404, "queue_not_found")

    def test_with_tokens_any_name_is_answered(self, guarded):
        bearer = ["Authorization: Bearer wonderland-secret"]
        assert answer(guarded.port, "queue.example", bearer) == (200, None)


class TestOrigin:
    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil",
                                        "http://localhost:1", "https://localhost", "file://"])
    def test_a_web_page_of_another_origin_is_refused(self, shared_server, origin):
        for path in ("/v1/status", "/v1/queues", "/metrics"):
            assert answer(shared_server.port, headers=[f"Origin: {origin}"], path=path) == (
                403, "forbidden_origin")

    def test_the_servers_own_is_answered(self, shared_server):
        host = f"127.0.0.1:{shared_server.port}"
        assert answer(shared_server.port, host, [f"Origin: http://{host}"]) == (200, None)

    def test_another_is_refused_with_a_token_too(self, guarded):
        headers = ["Authorization: Bearer wonderland-secret", "Origin: https://evil.example"]
        assert answer(guarded.port, headers=headers) == (403, "forbidden_origin")

    def test_no_reply_invites_other_origins(self, api):
        reply = api.request("GET", "/v1/status")
        assert not [name for name in reply.headers if name.startswith("access-control")]


class TestTokens:
    @pytest.mark.parametrize("token", ["wonderland-secret", "bare-token-secret"])
    def test_each_token_of_the_file_works(self, guarded, token):
        assert guarded.client(token=token).get("/v1/status")["queues"] == 0

    @pytest.mark.parametrize("header", [
        None, "Bearer", "Bearer ", "Bearer wrong", "Bearer wonderland-secre",
        "Bearer wonderland-secretx", "Bearer alice:wonderland-secret", "Bearer alice",
        "Basic wonderland-secret", "wonderland-secret", "Bearer # people",
        "Bearer WONDERLAND-SECRET", "Bearer wonderland-secret bare-token-secret"])
    def test_anything_else_is_unauthorized(self, guarded, header):
        headers = [f"Authorization: {header}"] if header else []
        for path in ("/v1/status", "/v1/queues", "/metrics", "/openapi.json", "/", "/nowhere",
                     "/v1/events"):
            assert answer(guarded.port, headers=headers, path=path) == (401, "unauthorized"), path

    def test_two_tokens_in_one_request_are_refused(self, guarded):
        headers = ["Authorization: Bearer wrong", "Authorization: Bearer wonderland-secret"]
        assert answer(guarded.port, headers=headers)[0] in (400, 401)

    def test_health_and_readiness_are_open(self, guarded):
        assert answer(guarded.port, path="/healthz") == (200, None)
        assert answer(guarded.port, path="/readyz") == (200, None)

    def test_an_unauthorized_request_has_no_effect(self, guarded):
        assert guarded.client().refused("PUT", "/v1/queues/q", {}) == (401, "unauthorized")
        assert guarded.client(token="bare-token-secret").get("/v1/queues")["queues"] == []

    def test_a_missing_token_file_stops_the_start(self, start_server, tmp_path):
        server = start_server("--token-file", str(tmp_path / "absent"), ready=False)
        server.launch()
        assert server.wait() in (1, 2)
        assert "absent" in server.log()

    def test_a_token_file_without_a_token_stops_the_start(self, start_server, tmp_path):
        path = tmp_path / "tokens"
        path.write_text("# nobody\n\n")
        server = start_server("--token-file", str(path), ready=False)
        server.launch()
        assert server.wait() in (1, 2)


class TestGuessing:
    RIGHT = ["Authorization: Bearer wonderland-secret"]
    WRONG = ["Authorization: Bearer wrong-secret"]
    LOCKED = (429, "too_many_wrong_tokens")

    @pytest.fixture
    def locked(self, guarded):
        """A server that has had enough of 127.0.0.1, and how many guesses that took."""
        with RawConnection(guarded.port) as connection:
            for guesses in range(1, 1000):
                connection.send(message("GET", "/v1/status", headers=self.WRONG))
                if connection.reply().status == 429:
                    return guarded, guesses
        raise AssertionError("nobody minds how often a token is guessed")

    def test_a_few_mistakes_are_forgiven_and_no_more(self, locked):
        server, guesses = locked
        # 30 at once, and one for each second that it took.
        assert 30 < guesses <= 45
        reply = RawConnection(server.port).send(
            message("GET", "/v1/status", headers=self.WRONG)).reply()
        if (reply.status, reply.code) == self.LOCKED:
            assert reply.headers["retry-after"] == "1"
        else:
            assert reply.status == 401  # a second has passed meanwhile

    def test_a_right_token_is_not_looked_at_either_until_time_has_passed(self, locked):
        server, _ = locked
        # Nothing is known of the token as long as the answer is not 200.
        statuses = set()

        def tried():
            statuses.add(answer(server.port, headers=self.RIGHT))
            return (200, None) in statuses
        eventually(tried, "the right token to be looked at again")
        assert statuses <= {(200, None), self.LOCKED}

    def test_another_address_is_not_concerned(self, locked):
        server, _ = locked
        for _ in range(5):
            assert answer(server.port, headers=self.RIGHT, source="127.0.0.2") == (200, None)
        assert answer(server.port, headers=self.WRONG, source="127.0.0.2") == (401, "unauthorized")

    def test_a_connection_that_has_shown_its_token_goes_on(self, guarded):
        with RawConnection(guarded.port) as proven, RawConnection(guarded.port) as guessing:
            right = message("GET", "/v1/status", headers=self.RIGHT)
            assert proven.send(right).reply().status == 200
            statuses = []
            while len(statuses) < 200:
                guessing.send(message("GET", "/v1/status", headers=self.WRONG))
                statuses.append(guessing.reply().status)
                assert proven.send(right).reply().status == 200
            assert 429 in statuses
            # And only as long as it shows the right one.
            wrong = message("GET", "/v1/status", headers=self.WRONG)
            assert proven.send(wrong).reply().status == 401
            assert 429 in [proven.send(wrong).reply().status for _ in range(3)]

    def test_a_missing_token_and_open_doors_have_nothing_to_do_with_it(self, locked):
        server, _ = locked
        assert answer(server.port) == (401, "unauthorized")
        assert answer(server.port, headers=self.WRONG, path="/healthz") == (200, None)
        assert answer(server.port, headers=self.WRONG, path="/readyz") == (200, None)

    def test_nothing_is_guessed_without_tokens(self, shared_server):
        for _ in range(60):
            assert answer(shared_server.port, headers=self.WRONG) == (200, None)

    def test_many_addresses_cost_no_memory(self, guarded):
        def guess_from(first, last):
            for number in range(first, last):
                source = f"127.1.{number >> 8}.{number & 255}"
                assert answer(guarded.port, headers=self.WRONG, source=source)[0] == 401
        guess_from(0, 500)
        before = guarded.resident_bytes()
        guess_from(500, 5500)
        assert guarded.resident_bytes() - before < 4 << 20
        assert answer(guarded.port, headers=self.RIGHT) == (200, None)


def other_addresses():
    """Addresses of this machine beyond loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            return [probe.getsockname()[0]]
        except OSError:
            return []


class TestListening:
    @pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", *[f"{a}:0" for a in
                                                                 other_addresses()]])
    def test_beyond_loopback_a_token_is_required(self, start_server, listen):
        server = start_server(listen=listen, ready=False)
        server.launch()
        assert server.wait() in (1, 2)
        assert "token" in server.log()

    def test_with_a_token_it_listens_anywhere(self, start_server, tmp_path):
        path = tmp_path / "tokens"
        path.write_text(TOKENS)
        server = start_server("--token-file", str(path), listen="0.0.0.0:0",
                              token="wonderland-secret")
        assert answer(server.port) == (401, "unauthorized")
        assert server.client(token="bare-token-secret").get("/v1/status")

    @pytest.mark.parametrize("listen, host", [("127.0.0.2:0", "127.0.0.2"), ("[::1]:0", "::1")])
    def test_any_loopback_address_needs_none(self, start_server, listen, host):
        server = start_server(listen=listen, ready=False)
        server.launch()
        port = eventually(server._read_port, "a port", 30)
        with RawConnection(port, host=host) as connection:
            name = f"[{host}]" if ":" in host else host
            connection.send(message("GET", "/healthz", host=f"{name}:{port}"))
            assert connection.reply().status == 200


class TestLog:
    def test_neither_access_tokens_nor_lease_tokens_nor_payloads_are_in_it(self, start_server,
                                                                           tmp_path):
        path = tmp_path / "tokens"
        path.write_text(TOKENS)
        server = start_server("--token-file", str(path), "--log-level", "debug",
                              token="wonderland-secret")
        client = server.client(token="wonderland-secret")
        queue = client.queue("q").created()
        queue.push("payload-secret", "payload-secret-2")
        one, two = queue.claim(2)
        client.ack(one)
        client.ack(one, status=409)
        client.fail(two, error="x", final=True)
        server.client(token="wrong-secret").request("GET", "/v1/status")
        client.request("POST", "/v1/ack", b'{"leases":[{"token":"' + two["token"].encode())
        server.terminate()
        log = server.log() + server.out_path.read_text()
        assert log
        for secret in ("wonderland-secret", "bare-token-secret", "wrong-secret", "payload-secret",
                       one["token"], two["token"]):
            assert secret not in log

    def test_text_of_a_request_cannot_forge_a_line_of_it(self, start_server):
        server = start_server("--log-level", "debug")
        server.client().request("GET", "/v1/queues/x%0A2099-01-01%20forged%1B%5B31m")
        server.terminate()
        assert "\n2099" not in server.log() and "\x1b[31m" not in server.log()

    def test_json_lines_are_json(self, start_server):
        server = start_server("--log-format", "json", "--log-level", "debug")
        server.client().request("GET", "/v1/queues/%22%0A")
        server.terminate()
        lines = server.log().splitlines()
        assert lines and all(isinstance(json.loads(line), dict) for line in lines)
