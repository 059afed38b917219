"""A `reprise serve` process of one test: started, watched, killed, restarted, never left behind."""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from reprise_http import Client
from waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def binary():
    path = Path(os.environ.get("REPRISE_BIN", ROOT / "build" / "release" / "reprise"))
    assert path.is_file(), f"no binary at {path}: run `make build`, or set REPRISE_BIN"
    return str(path)


def clean_environment(**extra):
    """This environment without settings of the user that would reach the binary."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith("REPRISE_") and name not in ("NO_COLOR", "LD_PRELOAD")}
    return env | extra


def die_with_parent():
    """Runs in the child: if the test run itself is killed, the kernel ends the child."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # A test run under nohup ignores it, and a child would inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Server:
    """One data directory and the process that serves it, if one runs now."""

    door_port = None  # of the beanstalk protocol

    def __init__(self, *args, env=None, listen="127.0.0.1:0", cwd=None, program=None):
        self.folder = Path(tempfile.mkdtemp(prefix="reprise-test-"))
        self.data = self.folder / "data"
        self.log_path = self.folder / "server.log"
        self.out_path = self.folder / "stdout"
        self.port_file = self.folder / "port"
        self.args = list(args)
        self.env = dict(env or {})
        self.listen = listen
        self.cwd = cwd or self.folder
        self.program = program or binary()
        self.process = None
        self.port = None

    def command(self):
        return [self.program, "serve", "--data", str(self.data), "--listen", self.listen,
                "--port-file", str(self.port_file), *self.args]

    def launch(self):
        """Starts the process and waits for nothing."""
        assert not self.alive(), "it is running already"
        self.port_file.unlink(missing_ok=True)
        with open(self.log_path, "ab") as log, open(self.out_path, "ab") as out:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=out, stderr=log, cwd=self.cwd,
                env=clean_environment(**self.env), preexec_fn=die_with_parent)

    def start(self, *args, token=None):
        """Starts it and returns when it takes work. `args` are added to those it has."""
        self.args += args
        self.launch()
        self.port = eventually(self._read_port, "a port in the port file", START_SECONDS)
        client = self.client(token=token)
        eventually(lambda: self._still_starting() and client.request("GET", "/readyz").status
                   in (200, 507), "/readyz", START_SECONDS)
        client.close()
        return self

    def _still_starting(self):
        code = self.process.poll()
        assert code is None, f"the server ended with {code} while starting:\n{self.log()}"
        return True

    def _read_port(self):
        self._still_starting()
        try:
            text = self.port_file.read_text()
        except FileNotFoundError:
            return None
        host, colon, port = text.strip().rpartition(":")
        return int(port) if colon and host and text.endswith("\n") else None

    @property
    def pid(self):
        return self.process.pid

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options):
        return Client(self.port, **options)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        try:
            return self.log_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def wait(self, timeout=10):
        """The exit code; a negative one names a signal."""
        return self.process.wait(timeout)

    def signal(self, number):
        self.process.send_signal(number)

    def terminate(self, timeout=10):
        """SIGTERM. Returns the exit code and the seconds it took."""
        started = time.monotonic()
        self.signal(signal.SIGTERM)
        return self.wait(timeout), time.monotonic() - started

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def restart(self, how="kill", token=None):
        if how == "kill":
            self.kill()
        else:
            code, _ = self.terminate()
            assert code == 0, f"SIGTERM ended it with {code}"
        return self.start(token=token)

    def resident_bytes(self):
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def dispose(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def folder_contains(folder, needle):
    """Whether any file below holds these bytes. Files may vanish meanwhile."""
    for path in Path(folder).rglob("*"):
        try:
            if path.is_file() and needle in path.read_bytes():
                return True
        except FileNotFoundError:
            continue
    return False
