"""An ingest endpoint of the test's own, which answers as it is told: well, badly or not at all.

Each request is answered by the next entry of the script, by `otherwise` when none is left.
An entry is
    an Answer                    this status, body and headers, after a delay, cut short, …
    a number                     this status, with an error as Reprise words it
    a dict or a list             202 with this as JSON
    CLOSE, HANG                  the connection is closed, or nothing happens on it
    bytes                        these and nothing else, then the connection is closed
    a function of the request    what it returns, one of the above
"""

import json
import socket
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLOSE = object()
HANG = object()


@dataclass
class Answer:
    status: int = 202
    body: object = None  # bytes as they are, anything else as JSON
    headers: dict = field(default_factory=dict)
    delay: float = 0  # seconds
    cut: int | None = None  # so many bytes of the body, then the connection is closed
    chunked: bool = False

    def encoded(self):
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class Request:
    index: int
    path: str
    headers: dict  # by lower-case name
    body: bytes
    at: float  # of the monotonic clock

    @cached_property
    def events(self):
        return json.loads(self.body)["events"]

    @property
    def ids(self):
        return [event["id"] for event in self.events]


def results(*entries):
    """A reply of these results: "accepted", or ("rejected", "why"), in the order of the events."""
    pairs = [(entry, None) if isinstance(entry, str) else entry for entry in entries]
    return {"results": [{"index": index, "status": status} | ({"error": error} if error else {})
                        for index, (status, error) in enumerate(pairs)]}


def each(judge):
    """Answers with what judge(event) says of each event: a status, or (status, error)."""
    return lambda request: results(*map(judge, request.events))


def rejecting(*ids, error="no such customer"):
    """Accepts all events but these."""
    return each(lambda event: ("rejected", error) if event["id"] in ids else "accepted")


def all_are(status, error=None):
    return each(lambda event: (status, error))


accept_all = all_are("accepted")


def refusal(status, message="as the test said", **fields):
    """What a server says that refuses the request as a whole."""
    return Answer(status, {"error": {"code": "refused", "message": message}} | fields)


def as_answer(entry, request):
    while callable(entry):
        entry = entry(request)
    if isinstance(entry, int):
        return refusal(entry)
    return Answer(body=entry) if isinstance(entry, (dict, list)) else entry


def handler_of(endpoint):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # a reply leaves whole

        def setup(self):
            super().setup()
            endpoint.connections.append(self.connection)

        def body(self):
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def respond(self):
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = endpoint.answer_to(self.path, headers, self.body())
            if answer is HANG:
                endpoint.closed.wait()
            if answer in (HANG, CLOSE):
                self.close_connection = True
            elif isinstance(answer, bytes):
                self.close_connection = True
                self.wfile.write(answer)
            else:
                self.send(answer)

        do_GET = do_PUT = do_POST = respond

        def send(self, answer):
            endpoint.closed.wait(answer.delay)
            body = answer.encoded()
            self.send_response(answer.status)
            for name, value in ({"Content-Type": "application/json"} | answer.headers).items():
                self.send_header(name, value)
            if answer.chunked:
                self.send_header("Transfer-Encoding", "chunked")
                body = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
            else:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:answer.cut])
            self.close_connection = self.close_connection or answer.cut is not None

        def log_message(self, *_):
            pass

        def handle(self):
            try:
                super().handle()
            except (ConnectionError, ValueError):  # the one who asked is gone
                pass

        def finish(self):
            try:
                super().finish()
            except (ConnectionError, ValueError):
                pass
    return Handler


class IngestServer:
    def __init__(self, *script, otherwise=accept_all, port=0):
        self.script = list(script)
        self.otherwise = otherwise
        self.requests = []
        self.connections = []
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler_of(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self):
        return self.base + "/ingest"

    def answer_to(self, path, headers, body):
        with self.lock:
            request = Request(len(self.requests), path, headers, body, time.monotonic())
            self.requests.append(request)
            entry = self.script.pop(0) if self.script else self.otherwise
        return as_answer(entry, request)

    def batches(self):
        """The ids of each request."""
        return [request.ids for request in list(self.requests)]

    def ids(self):
        """All ids that were sent, in their order, those sent again too."""
        return [event_id for batch in self.batches() for event_id in batch]

    def gaps(self):
        """Seconds from each request to the next."""
        times = [request.at for request in list(self.requests)]
        return [after - before for before, after in zip(times, times[1:])]

    def close(self):
        """The end of it: its port refuses, its connections are cut."""
        if self.closed.is_set():
            return
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
