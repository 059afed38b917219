"""Somebody who listens to webhooks: an HTTP server of the test, on a port of its own."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Call(NamedTuple):
    method: str
    path: str
    headers: dict  # by lower-case name
    body: bytes
    at: float  # seconds since 1970

    @property
    def event(self):
        return json.loads(self.body)


def handler_of(receiver):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            fields = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.answer(
                Call(self.command, self.path, fields, body, time.time()))
            receiver.free.wait()
            if status is None:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = answer

        def log_message(self, *_):
            pass

        def handle(self):
            try:
                super().handle()
            except ConnectionError:  # the server under test was killed
                pass
    return Handler


class Receiver:
    """Keeps what it is told. Answers with `status`, or with the next of `script` while there is
    one; None closes the connection without an answer. While `held` it answers nobody."""

    def __init__(self, status=200, script=(), headers=(), port=0):
        self.status = status
        self.script = list(script)
        self.headers = dict(headers)
        self.calls = []
        self.lock = threading.Lock()
        self.free = threading.Event()
        self.free.set()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler_of(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def url(self, path="/dead"):
        return f"http://127.0.0.1:{self.port}{path}"

    def hold(self):
        self.free.clear()

    def release(self):
        self.free.set()

    def close(self):
        self.free.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def events(self):
        return [call.event for call in list(self.calls)]

    def subjects(self):
        """The ids of the jobs it was told of."""
        return {event["subject"] for event in self.events()}

    def answer(self, call):
        with self.lock:
            self.calls.append(call)
            return self.script.pop(0) if self.script else self.status
