"""The binary as a person or a script runs it: piped, or on a terminal."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

from reprise_server import binary, clean_environment, die_with_parent

TIMEOUT_SECONDS = 30


class Result:
    def __init__(self, args, code, out, err):
        self.args = args
        self.code = code
        self.out = out
        self.err = err

    def json(self):
        return json.loads(self.out)

    def rows(self):
        """The lines of a piped table as lists of cells, header first."""
        return [line.split("\t") for line in self.out.splitlines()]

    def fields(self):
        """A piped FIELD / VALUE table as a dict."""
        header, *rows = self.rows()
        assert header == ["FIELD", "VALUE"], header
        return {name: value for name, value in rows}

    def __repr__(self):
        return f"reprise {' '.join(self.args)}: exit {self.code}\n{self.out}\n{self.err}"


class Cli:
    def __init__(self, url=None, env=None):
        self.env = ({"REPRISE_URL": url} if url else {}) | (env or {})

    def environment(self, extra=None):
        return clean_environment(**self.env) | (extra or {})

    def run(self, *args, stdin=b"", env=None, timeout=TIMEOUT_SECONDS, cwd=None):
        """Runs it with pipes for stdin, stdout and stderr."""
        args = [str(arg) for arg in args]
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run([binary(), *args], input=data, capture_output=True, timeout=timeout,
                              env=self.environment(env), cwd=cwd, preexec_fn=die_with_parent)
        return Result(args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *args, **options):
        result = self.run(*args, **options)
        assert result.code == 0, repr(result)
        return result

    def start(self, *args, env=None, **options):
        """Starts it with pipes and returns the process; the caller ends it."""
        return subprocess.Popen([binary(), *map(str, args)], env=self.environment(env),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=die_with_parent, **options)

    def terminal(self, *args, env=None, columns=120):
        return Terminal([binary(), *map(str, args)],
                        self.environment({"TERM": "xterm-256color", **(env or {})}), columns)


class Terminal:
    """A command on a terminal of its own, which shows what a person would see."""

    def __init__(self, command, env, columns):
        self.screen, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(command, env=env, stdin=terminal, stdout=terminal,
                                        stderr=terminal, start_new_session=True,
                                        preexec_fn=die_with_parent)
        os.close(terminal)
        self.output = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.screen)

    def _read(self, deadline):
        """False when the command has closed the terminal."""
        ready, _, _ = select.select([self.screen], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"nothing more came; so far: {self.output!r}"
        try:
            data = os.read(self.screen, 65536)
        except OSError:  # how Linux tells that the other side is gone
            return False
        self.output += data
        return bool(data)

    def expect(self, text, timeout=10):
        deadline = time.monotonic() + timeout
        while text.encode() not in self.output:
            assert self._read(deadline), f"ended without {text!r}: {self.output!r}"
        return self

    def type(self, text):
        os.write(self.screen, text.encode())
        return self

    def finish(self, timeout=TIMEOUT_SECONDS):
        """(exit code, everything that was shown, with plain line ends)."""
        deadline = time.monotonic() + timeout
        while self._read(deadline):
            pass
        return self.process.wait(timeout), self.output.decode().replace("\r\n", "\n")
