"""How the beanstalk protocol is switched on, where it listens, and how it stops."""

import socket

import pytest
from metrics_text import read_metrics

FLAGS = ("--beanstalk", "127.0.0.1:0", "--beanstalk-port-file", "beanstalk-port")


class Door:
    """A client of the address in the port file."""

    def __init__(self, server):
        self.address = (server.folder / "beanstalk-port").read_text().strip()
        host, _, port = self.address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.replies = self.socket.makefile("rb")

    def ask(self, line):
        self.socket.sendall(line + b"\r\n")
        return self.replies.readline()


@pytest.fixture
def server(start_server):
    return start_server(*FLAGS)


def test_it_tells_where_it_listens(server):
    door = Door(server)
    assert door.ask(b"list-tube-used") == b"USING default\r\n"
    assert f"beanstalk on {door.address}\n" in server.log()
    assert f"\n  beanstalk   on {door.address}\n" in server.out_path.read_text()


def test_it_is_off_unless_asked_for(start_server):
    server = start_server("--beanstalk-port-file", "beanstalk-port")
    assert not (server.folder / "beanstalk-port").exists()
    assert "beanstalk" not in server.log()


def test_metrics_count_commands(server):
    door = Door(server)
    assert door.ask(b"list-tube-used") == b"USING default\r\n"
    assert door.ask(b"nonsense") == b"UNKNOWN_COMMAND\r\n"
    metrics = read_metrics(server.client())
    assert metrics.value("reprise_beanstalk_connections") == 1
    assert metrics.value("reprise_beanstalk_commands_total", command="list-tube-used") == 1
    assert metrics.sum("reprise_beanstalk_commands_total") == 1


def test_a_stop_closes_it_and_takes_the_port_file_away(server):
    door = Door(server)
    assert door.ask(b"list-tube-used") == b"USING default\r\n"
    code, _ = server.terminate()
    assert code == 0
    assert door.replies.read() == b""
    assert not (server.folder / "beanstalk-port").exists()


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_beyond_loopback_it_must_be_allowed(start_server, address):
    server = start_server("--beanstalk", address, ready=False)
    server.launch()
    assert server.wait() == 2
    assert "beanstalk_remote = true" in server.log()
    assert "(from --beanstalk)" in server.log()


def test_beyond_loopback_where_it_is_allowed(start_server):
    server = start_server("--beanstalk", "0.0.0.0:0", "--beanstalk-remote", "true",
                          "--beanstalk-port-file", "beanstalk-port")
    assert Door(server).ask(b"list-tube-used") == b"USING default\r\n"


def test_an_address_in_use_is_told(start_server, server):
    second = start_server("--beanstalk", Door(server).address, ready=False)
    second.launch()
    assert second.wait() == 1
    assert "another address is chosen with --beanstalk" in second.log()
