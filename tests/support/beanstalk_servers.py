"""Two servers of the beanstalk protocol: Reprise with its door open, and Debian's beanstalkd, which
says what is right."""

import shutil
import signal
import socket
import subprocess

from beanstalk_client import Beanstalk
from reprise_server import START_SECONDS, Server, clean_environment, die_with_parent
from waiting import eventually

LISTEN_FD = 3  # where socket activation has its first socket
QUEUED_CONNECTIONS = 128


class RepriseDoor(Server):
    """`reprise serve` with the beanstalk protocol on a port of its own."""

    reference = False
    body_bytes_max = 1 << 20

    def __init__(self, *args, beanstalk="127.0.0.1:0", **options):
        super().__init__(*args, **options)
        self.door_file = self.folder / "beanstalk-port"
        self.args += ["--beanstalk", beanstalk, "--beanstalk-port-file", str(self.door_file)]

    def launch(self):
        self.door_file.unlink(missing_ok=True)
        super().launch()

    def start(self, *args, token=None):
        super().start(*args, token=token)
        self.door_port = eventually(self._read_door, "a port in its file", START_SECONDS)
        return self

    def _read_door(self):
        self._still_starting()
        try:
            text = self.door_file.read_text()
        except FileNotFoundError:
            return None
        return int(text.strip().rpartition(":")[2]) if text.endswith("\n") else None

    def connect(self, **options):
        return Beanstalk(self.door_port, **options)


class Beanstalkd:
    """Debian's beanstalkd, without a binlog."""

    reference = True
    body_bytes_max = (1 << 16) - 1

    def __init__(self, *args):
        program = shutil.which("beanstalkd", path="/usr/bin:/usr/sbin")
        assert program, "no beanstalkd: run `make setup`"
        self.process = None
        # It cannot choose a port and say which, so it gets a socket that listens already, as
        # systemd would do it.
        with socket.create_server(("127.0.0.1", 0), backlog=QUEUED_CONNECTIONS) as listener:
            self.door_port = listener.getsockname()[1]
            command = [program, *args]
            self.process = subprocess.Popen(
                ["/bin/bash", "-c", f'exec {LISTEN_FD}<&"$1"; shift; '
                 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "bash", str(listener.fileno()), *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[listener.fileno()], env=clean_environment(), preexec_fn=die_with_parent)

    def alive(self):
        return self.process.poll() is None

    def connect(self, **options):
        return Beanstalk(self.door_port, **options)

    def drain(self):
        self.process.send_signal(signal.SIGUSR1)

    def dispose(self):
        self.process.kill()
        self.process.wait()
