"""Messages that a server may misread, and what HTTP/1.1 wants done about each: a table to be
checked against RFC 9112, by section. `9110 x` is a section of RFC 9110.

CLOSES: the message is answered with this status, and the connection ends: where the next message
begins is not known, or nobody may ask for another. Whatever follows is never carried out.
GOES_ON: the message is whole. It is answered with this status, and the next one is carried out.
"""

from typing import NamedTuple

CLOSES, GOES_ON = "closes", "goes on"


class Case(NamedTuple):
    section: str
    name: str
    message: object  # bytes, or a function that hides the request it is given inside a message
    status: int
    then: str


def head(*lines):
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


GET = "GET /healthz HTTP/1.1"
POST = "POST /v1/ack HTTP/1.1"
HOST = "Host: localhost"
BODY = b'{"leases":[]}'
CHUNKED = "Transfer-Encoding: chunked"
LENGTH = f"Content-Length: {len(BODY)}"


def line(request_line):
    """A request with this first line and nothing odd in its header."""
    return head(request_line, HOST)


def target(text):
    return line(f"GET {text} HTTP/1.1")


def field(*lines):
    """A request without a body and with these header lines."""
    return head(GET, HOST, *lines)


def coded(*lines, body=b"d\r\n" + BODY + b"\r\n0\r\n\r\n"):
    """A request with these header lines and a body in one chunk."""
    return head(POST, HOST, *lines) + body


def sized(*lines):
    return head(POST, HOST, *lines) + BODY


def chunks(data):
    return coded(CHUNKED, body=data)


def host(value):
    return head(GET, f"Host: {value}")


def length_of(text):
    return f"Content-Length: {len(text)}"


def hidden_in(*lines):
    """A whole request as the body of another."""
    return lambda inner: head(*lines, HOST, length_of(inner)) + inner


def rows(then, section, status, *pairs):
    return [Case(section, name, message, status, then) for name, message in pairs]


LINES = [
    *rows(CLOSES, "2.2", 400,
          ("line feeds alone", f"{GET}\n{HOST}\n\n".encode()),
          ("a bare line feed after the request line", f"{GET}\n{HOST}\r\n\r\n".encode()),
          ("a bare line feed between fields", f"{GET}\r\n{HOST}\nX: 1\r\n\r\n".encode()),
          ("a bare line feed at the end", f"{GET}\r\n{HOST}\r\n\n".encode()),
          ("a bare carriage return in the request line", target("/heal\rthz")),
          ("a bare carriage return in a value", field("X: a\rb")),
          ("a bare carriage return in a name", field("X\rY: a")),
          ("a bare carriage return for a line end", field("X: a\rTransfer-Encoding: chunked")),
          ("two carriage returns", field("X: a\r")),
          ("a blank before the first field", head(GET, " X: 1", HOST)),
          ("a tab before the first field", head(GET, "\tX: 1", HOST)),
          ("a byte order mark first", b"\xef\xbb\xbf" + line(GET)),
          ("a line feed first", b"\n" + line(GET)),
          ("a handshake of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64)
           + b"\r\n\r\n")),
    *rows(CLOSES, "5", 400,
          ("a nul in a value", field("X: a\0b")),
          ("a nul in a name", field("X\0: a")),
          ("a nul in the method", line("G\0T /healthz HTTP/1.1")),
          ("a nul in the target", target("/healthz\0")),
          ("a nul in the version", line("GET /healthz HTTP/1.1\0"))),
    *rows(GOES_ON, "2.2", 200,
          ("an empty line first", b"\r\n" + line(GET)),
          ("three empty lines first", b"\r\n\r\n\r\n" + line(GET))),
    *rows(CLOSES, "2.3", 505,
          ("HTTP/2.0", line("GET /healthz HTTP/2.0")),
          ("HTTP/3.0", line("GET /healthz HTTP/3.0")),
          ("HTTP/0.9", line("GET /healthz HTTP/0.9")),
          ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
    *rows(CLOSES, "2.3", 400,
          ("a lower-case version", line("GET /healthz http/1.1")),
          ("a version without a minor part", line("GET /healthz HTTP/1")),
          ("a version of two digits", line("GET /healthz HTTP/1.10")),
          ("a version with a comma", line("GET /healthz HTTP/1,1")),
          ("another protocol", line("GET /healthz HTTQ/1.1"))),
    *rows(GOES_ON, "2.3", 200, ("a later HTTP/1", line("GET /healthz HTTP/1.2"))),
    *rows(CLOSES, "3", 400,
          ("no version", line("GET /healthz")),
          ("only a version", line("HTTP/1.1")),
          ("no target", line("GET  HTTP/1.1")),
          ("no method", line(" /healthz HTTP/1.1")),
          ("a blank too many before the target", line("GET  /healthz HTTP/1.1")),
          ("a blank too many before the version", line("GET /healthz  HTTP/1.1")),
          ("a blank behind the version", line("GET /healthz HTTP/1.1 ")),
          ("tabs for blanks", line("GET\t/healthz\tHTTP/1.1")),
          ("four words", line("GET /heal thz HTTP/1.1"))),
    *rows(CLOSES, "3.1", 400,
          ("a method in parentheses", line("G(E)T /healthz HTTP/1.1")),
          ("a method with a colon", line("GET: /healthz HTTP/1.1")),
          ("a method beyond ASCII", line("G\xc9T /healthz HTTP/1.1"))),
    *rows(GOES_ON, "9110 9.1", 501,
          ("a lower-case method", line("get /healthz HTTP/1.1")),
          ("a method nobody knows", line("BREW /healthz HTTP/1.1")),
          ("a long method", line("X" * 300 + " /healthz HTTP/1.1"))),
    *rows(GOES_ON, "9110 9.1", 405,
          ("a method that this path has not", line("DELETE /healthz HTTP/1.1"))),
    *rows(CLOSES, "3", 414,
          ("a target beyond all limits", target("/" + "x" * 20000)),
          ("a query beyond all limits", target("/healthz?" + "x" * 20000)),
          ("a method beyond all limits", line("X" * 20000 + " /healthz HTTP/1.1"))),
]

TARGETS = [
    *rows(CLOSES, "3.2", 400,
          ("a target without a slash", target("healthz")),
          ("a fragment", target("/healthz#x")),
          ("a quote", target('/heal"thz')),
          ("angle brackets", target("/<script>")),
          ("braces", target("/{queue}")),
          ("a backslash", target("/v1\\queues")),
          ("a bar", target("/a|b")),
          ("a byte beyond ASCII", target("/\xe9")),
          ("a control character", target("/heal\x01thz")),
          ("a delete character", target("/heal\x7fthz"))),
    *rows(CLOSES, "3.2.3", 400, ("the target of a tunnel", line("CONNECT localhost:80 HTTP/1.1"))),
    *rows(CLOSES, "3.2.4", 400, ("an asterisk for another method", target("*"))),
    *rows(GOES_ON, "3.2.2", 200,
          ("an absolute target", target("http://localhost/healthz")),
          ("an absolute target in capitals", target("HTTP://LOCALHOST/healthz")),
          ("an absolute target with a port", target("http://localhost:80/healthz")),
          ("an absolute target and another Host",
           head("GET http://localhost/healthz HTTP/1.1", "Host: evil.example"))),
    *rows(GOES_ON, "3.2.2", 403,
          ("an absolute target of another host", target("http://evil.example/healthz")),
          ("a target of another host for a change",
           lambda inner: inner.replace(b"POST /", b"POST http://evil.example/"))),
    *rows(CLOSES, "3.2.2", 400,
          ("an absolute target with a user", target("http://me@localhost/healthz")),
          ("an absolute target without a host", target("http:///healthz")),
          ("an absolute target with a word for a port", target("http://localhost:x/healthz")),
          ("an absolute target and no Host", head("GET http://localhost/healthz HTTP/1.1")),
          ("an absolute target of another scheme", target("ftp://localhost/healthz"))),
    *rows(GOES_ON, "9110 4.2.3", 404,
          ("dots in a path", target("/v1/../healthz")),
          ("dots before a path", target("/../healthz")),
          ("encoded dots in a path", target("/%2e%2e/healthz")),
          ("an encoded slash in a path", target("/..%2fhealthz")),
          ("two slashes", target("//healthz")),
          ("a slash too many", target("/healthz/")),
          ("an encoded nul behind a path", target("/healthz%00")),
          ("encoded line ends", target("/healthz%0d%0aHost:%20evil.example"))),
    *rows(GOES_ON, "9110 4.2.3", 400,
          ("an encoded nul in a name", target("/v1/queues/a%00b")),
          ("an encoded way up in a name", target("/v1/queues/..%2f..%2fetc")),
          ("an encoded slash in a name", target("/v1/queues/a%2fb")),
          ("an encoded line end in a name", target("/v1/queues/a%0ab")),
          ("an encoding that is too long", target("/v1/queues/%c0%af")),
          ("an encoding that is no number", target("/v1/queues/%zz")),
          ("half an encoding", target("/v1/queues/a%4")),
          ("an encoded nul in a parameter", target("/v1/queues?namespace=%00")),
          ("an encoding that is no number in a parameter", target("/v1/queues?namespace=%zz")),
          ("a parameter twice", target("/v1/queues?namespace=a&namespace=b"))),
    *rows(CLOSES, "3.2", 400,
          ("no Host", head(GET)),
          ("two Hosts", head(GET, HOST, HOST)),
          ("two Hosts that differ", head(GET, HOST, "Host: evil.example")),
          ("two Hosts in other letters", head(GET, HOST, "hOsT: localhost")),
          ("a list of Hosts", host("localhost, evil.example")),
          ("an empty Host", host("")),
          ("a Host with a user", host("me@localhost")),
          ("a Host with a path", host("localhost/healthz")),
          ("a Host with a blank", host("local host")),
          ("a Host with a word for a port", host("localhost:x")),
          ("a Host with a port beyond all ports", host("localhost:123456")),
          ("a Host with half a bracket", host("[::1")),
          ("a Host with a scheme", host("http://localhost"))),
    *rows(GOES_ON, "9110 7.4", 403,
          ("a Host of others", host("evil.example")),
          ("a Host that only begins right", host("localhost.evil.example"))),
]

FIELDS = [
    *rows(CLOSES, "5", 400,
          ("a field without a colon", field("X")),
          ("a field without a name", field(": 1")),
          ("a name with a slash", field("X/Y: 1")),
          ("a name in parentheses", field("(X): 1")),
          ("a name beyond ASCII", field("X\xe9: 1")),
          ("a name with a blank", field("X Y: 1")),
          ("an escape in a value", field("X: \x1b[31m")),
          ("a delete character in a value", field("X: \x7f")),
          ("a vertical tab in a value", field("X: \x0b"))),
    *rows(CLOSES, "5.1", 400,
          ("a blank before the colon", field("X : 1")),
          ("a tab before the colon", field("X\t: 1")),
          ("a blank before the colon of a length", sized(f"Content-Length : {len(BODY)}")),
          ("a blank before the colon of a coding", coded("Transfer-Encoding : chunked")),
          ("a blank before the colon of Host", head(GET, "Host : localhost"))),
    *rows(CLOSES, "5.2", 400,
          ("a folded value", field("X: 1", " 2")),
          ("a value folded by a tab", field("X: 1", "\t2")),
          ("a folded coding", coded("Transfer-Encoding:", " chunked")),
          ("a folded length", sized("Content-Length:", f" {len(BODY)}")),
          ("a folded Host", head(GET, "Host:", " localhost")),
          ("an empty fold", field("X: 1", " "))),
    *rows(GOES_ON, "5", 200,
          ("an empty value", field("X:")),
          ("no blank behind the colon", field("X:1")),
          ("bytes beyond ASCII in a value", field("X: \xe9")),
          ("a field twice that may come twice", field("X: 1", "X: 2")),
          ("a hundred fields", head(GET, HOST, *[f"X-{n}: y" for n in range(99)]))),
    *rows(CLOSES, "9110 5.4", 431,
          ("a hundred and one fields", head(GET, HOST, *[f"X-{n}: y" for n in range(100)])),
          ("a field beyond all limits", field("X: " + "y" * 20000)),
          ("a name beyond all limits", field("X" * 20000 + ": y")),
          ("fields beyond all limits together", field(*[f"X-{n}: {'y' * 300}"
                                                        for n in range(90)]))),
    *rows(CLOSES, "9110 5.3", 400,
          ("two tokens", field("Authorization: Bearer a", "Authorization: Bearer b")),
          ("two origins", field("Origin: http://localhost", "Origin: http://evil.example"))),
    *rows(CLOSES, "9110 10.1.1", 417,
          ("an expectation nobody knows", sized("Expect: 200-ok", LENGTH))),
    *rows(CLOSES, "9110 10.1.1", 400,
          ("two expectations", sized("Expect: 100-continue", "Expect: 100-continue", LENGTH))),
    *rows(GOES_ON, "9110 10.1.1", 200,
          ("an expectation with the body at once", sized("Expect: 100-continue", LENGTH))),
    *rows(GOES_ON, "9110 8.4", 400,
          ("a compressed body", sized("Content-Encoding: gzip", LENGTH))),
    *rows(GOES_ON, "9110 7.8", 200,
          ("an offer of HTTP/2", field("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                                       "HTTP2-Settings: AAMAAABkAAQAAP__"))),
]

LENGTHS = [
    *rows(CLOSES, "6.3", 400,
          ("two lengths", sized(LENGTH, "Content-Length: 0")),
          ("two lengths, the smaller first", sized("Content-Length: 0", LENGTH)),
          ("the same length twice", sized(LENGTH, LENGTH)),
          ("a list of lengths", sized(f"{LENGTH}, {len(BODY)}")),
          ("a list of lengths that differ", sized(f"{LENGTH}, 0")),
          ("a negative length", sized("Content-Length: -1")),
          ("a length with a sign", sized(f"Content-Length: +{len(BODY)}")),
          ("a hexadecimal length", sized("Content-Length: 0xd")),
          ("a length with an exponent", sized("Content-Length: 1e1")),
          ("a length with a fraction", sized("Content-Length: 13.0")),
          ("a length with a blank", sized("Content-Length: 1 3")),
          ("a length with an underscore", sized("Content-Length: 1_3")),
          ("a length in quotes", sized('Content-Length: "13"')),
          ("a length that is a word", sized("Content-Length: none")),
          ("an empty length", sized("Content-Length:")),
          ("digits beyond ASCII", sized("Content-Length: \xb9\xb3"))),
    *rows(CLOSES, "9110 8.6", 413,
          ("a length beyond the limit", sized(f"Content-Length: {(24 << 20) + 1}")),
          ("the largest length of 63 bits", sized(f"Content-Length: {2**63 - 1}")),
          ("2^63", sized(f"Content-Length: {2**63}")),
          ("2^64", sized(f"Content-Length: {2**64}")),
          ("2^64 and the true length", sized(f"Content-Length: {2**64 + len(BODY)}")),
          ("a length of a hundred digits", sized("Content-Length: 1" + "0" * 99))),
    *rows(GOES_ON, "9110 8.6", 200,
          ("a length", sized(LENGTH)),
          ("a length behind zeros", sized(f"Content-Length: 00000000000000000000{len(BODY)}")),
          ("a length between blanks", sized(f"Content-Length: \t {len(BODY)} \t")),
          ("a length in other letters", sized(f"CONTENT-length: {len(BODY)}")),
          ("no body where one may be", field("Content-Length: 0"))),
    *rows(GOES_ON, "6.3", 400,
          ("a request in the body of a GET", hidden_in(GET)),
          ("a request in the body of a POST", hidden_in(POST))),
    *rows(GOES_ON, "6.3", 404,
          ("a request in the body for no route", hidden_in("POST /nowhere HTTP/1.1"))),
    *rows(GOES_ON, "6.3", 405,
          ("a request in the body of no method", hidden_in("DELETE /v1/ack HTTP/1.1"))),
    *rows(GOES_ON, "6.3", 403,
          ("a request in the body from elsewhere",
           hidden_in(POST, "Origin: http://evil.example"))),
]

CODINGS = [
    *rows(CLOSES, "6.3", 400,
          ("a length and a coding", coded(LENGTH, CHUNKED)),
          ("a coding and a length", coded(CHUNKED, LENGTH)),
          ("a length of none and a coding", coded("Content-Length: 0", CHUNKED)),
          ("a length and no coding of ours", sized(LENGTH, "Transfer-Encoding: identity")),
          ("xchunked", coded("Transfer-Encoding: xchunked")),
          ("chunkedx", coded("Transfer-Encoding: chunkedx")),
          ("identity", coded("Transfer-Encoding: identity")),
          ("gzip", coded("Transfer-Encoding: gzip")),
          ("chunked, identity", coded("Transfer-Encoding: chunked, identity")),
          ("chunked, gzip", coded("Transfer-Encoding: chunked, gzip")),
          ("chunked and no more", coded("Transfer-Encoding: chunked,")),
          ("nothing and chunked", coded("Transfer-Encoding: ,chunked")),
          ("no coding at all", coded("Transfer-Encoding:")),
          ("chunked in quotes", coded('Transfer-Encoding: "chunked"')),
          ("chunked behind a vertical tab", coded("Transfer-Encoding: \x0bchunked")),
          ("chunked behind a nul", coded("Transfer-Encoding: \0chunked")),
          ("chunk ed", coded("Transfer-Encoding: chunk ed"))),
    *rows(CLOSES, "7.1", 400,
          ("chunked, chunked", coded("Transfer-Encoding: chunked, chunked")),
          ("chunked twice", coded(CHUNKED, CHUNKED)),
          ("chunked and another line", coded(CHUNKED, "Transfer-Encoding: identity")),
          ("chunked with a parameter", coded("Transfer-Encoding: chunked;q=1"))),
    *rows(CLOSES, "6.1", 501,
          ("gzip, chunked", coded("Transfer-Encoding: gzip, chunked")),
          ("a coding nobody knows, chunked", coded("Transfer-Encoding: brew, chunked")),
          ("three codings", coded("Transfer-Encoding: deflate, gzip, Chunked"))),
    *rows(CLOSES, "6.1", 400,
          ("a coding in HTTP/1.0", head("POST /v1/ack HTTP/1.0", HOST, CHUNKED)
           + b"d\r\n" + BODY + b"\r\n0\r\n\r\n"),
          ("a coding and a length in HTTP/1.0",
           head("POST /v1/ack HTTP/1.0", HOST, "Connection: keep-alive", CHUNKED, LENGTH) + BODY)),
    *rows(GOES_ON, "6.1", 200,
          ("chunked", coded(CHUNKED)),
          ("CHUNKED", coded("TRANSFER-ENCODING: CHUNKED")),
          ("chunked between blanks", coded("Transfer-Encoding: \tchunked ")),
          ("chunked on a GET", head(GET, HOST, CHUNKED) + b"2\r\n{}\r\n0\r\n\r\n")),
]

ONE = b"d\r\n" + BODY + b"\r\n"  # one chunk, the last not yet
CHUNKS = [
    *rows(CLOSES, "7.1", 400,
          ("no size", chunks(b"\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a size that is no number", chunks(b"g\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a negative size", chunks(b"-d\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a size with a sign", chunks(b"+d\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a size with 0x", chunks(b"0xd\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a blank before a size", chunks(b" d\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a blank behind a size", chunks(b"d \r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a tab behind a size", chunks(b"d\t\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a nul behind a size", chunks(b"d\0\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a size of two numbers", chunks(b"d,d\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a size beyond 64 bits that wraps around",
           chunks(b"1000000000000000d\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a size of 64 bits", chunks(b"ffffffffffffffff\r\n" + BODY)),
          ("a size of 63 bits", chunks(b"7fffffffffffffff\r\n" + BODY)),
          ("a size that wraps around twice", chunks(b"f" * 40 + b"\r\n" + BODY)),
          ("a size behind many zeros", chunks(b"0" * 100 + b"d\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("more data than the size", chunks(b"d\r\n" + BODY + b"XX\r\n0\r\n\r\n")),
          ("less data than the size", chunks(b"10\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("no line end behind the data", chunks(b"d\r\n" + BODY + b"0\r\n\r\n")),
          ("a bare line feed behind a size", chunks(b"d\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a bare line feed behind the data", chunks(b"d\r\n" + BODY + b"\n0\r\n\r\n")),
          ("a bare line feed behind the last size", chunks(ONE + b"0\n\r\n")),
          ("a bare line feed at the end", chunks(ONE + b"0\r\n\n")),
          ("a bare carriage return behind a size", chunks(b"d\r" + BODY + b"\r\n0\r\n\r\n")),
          ("a bare carriage return at the end", chunks(ONE + b"0\r\n\rX")),
          ("line feeds alone", chunks(b"d\n" + BODY + b"\n0\n\n")),
          ("a last chunk with a sign", chunks(ONE + b"-0\r\n\r\n"))),
    *rows(CLOSES, "7.1", 413,
          ("a size of fifteen digits", chunks(b"fffffffffffffff\r\n" + BODY)),
          ("a size one beyond the limit", chunks(b"1800001\r\n" + BODY)),
          ("a second chunk beyond the limit", chunks(ONE + b"1800000\r\n" + BODY))),
    *rows(CLOSES, "7.1.1", 400,
          ("a bare line feed in an extension", chunks(b"d;a=\n1\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a nul in an extension", chunks(b"d;a=\0\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a blank before an extension", chunks(b"d ;a=1\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("an extension without end", chunks(b"d;" + b"a" * 9000 + b"\r\n" + BODY
                                              + b"\r\n0\r\n\r\n")),
          ("many small extensions", chunks((b"1;" + b"a" * 1000 + b"\r\n \r\n") * 10
                                           + ONE + b"0\r\n\r\n"))),
    *rows(CLOSES, "7.1.2", 400,
          ("a trailer without a colon", chunks(ONE + b"0\r\nX\r\n\r\n")),
          ("a trailer without a name", chunks(ONE + b"0\r\n: 1\r\n\r\n")),
          ("a trailer with a blank before its colon", chunks(ONE + b"0\r\nX : 1\r\n\r\n")),
          ("a folded trailer", chunks(ONE + b"0\r\nX: 1\r\n 2\r\n\r\n")),
          ("a nul in a trailer", chunks(ONE + b"0\r\nX: \0\r\n\r\n")),
          ("a bare line feed in the trailers", chunks(ONE + b"0\r\nX: 1\nY: 2\r\n\r\n")),
          ("trailers without end", chunks(ONE + b"0\r\nX: " + b"y" * 9000 + b"\r\n\r\n")),
          ("a request for a trailer", lambda inner: chunks(ONE + b"0\r\n" + inner))),
    *rows(GOES_ON, "7.1", 200,
          ("two chunks", chunks(b"1\r\n{\r\nC\r\n" + BODY[1:] + b"\r\n0\r\n\r\n")),
          ("a size in capitals", chunks(b"D\r\n" + BODY + b"\r\n0\r\n\r\n")),
          ("a size behind zeros", chunks(b"000d\r\n" + BODY + b"\r\n000\r\n\r\n")),
          ("an extension", chunks(b'd;a=1;b="2"\r\n' + BODY + b"\r\n0;c\r\n\r\n")),
          ("a trailer", chunks(ONE + b"0\r\nX: 1\r\nY:\r\n\r\n")),
          ("trailers that would frame a message",
           chunks(ONE + b"0\r\nContent-Length: 1000\r\nTransfer-Encoding: gzip\r\n"
                  b"Host: evil.example\r\nConnection: close\r\n\r\n"))),
    *rows(GOES_ON, "7.1", 400,
          ("a request in a chunk",
           lambda inner: chunks(b"%x\r\n" % len(inner) + inner + b"\r\n0\r\n\r\n")),
          ("an end and a request in a chunk",
           lambda inner: chunks(b"%x\r\n0\r\n\r\n" % (len(inner) + 5) + inner
                                + b"\r\n0\r\n\r\n"))),
    # Chunks are not read past for nobody.
    *rows(CLOSES, "9.6", 404,
          ("chunks for no route", head("POST /nowhere HTTP/1.1", HOST, CHUNKED)
           + ONE + b"0\r\n\r\n")),
]

ENDS = [
    *rows(CLOSES, "9.6", 200,
          ("close", field("Connection: close")),
          ("close in capitals", field("Connection: CLOSE")),
          ("close among others", field("Connection: keep-alive, x, close")),
          ("close in the second line", field("Connection: keep-alive", "Connection: close")),
          ("close behind a body", sized("Connection: close", LENGTH))),
    *rows(CLOSES, "9.3", 200,
          ("HTTP/1.0", head("GET /healthz HTTP/1.0", HOST)),
          ("HTTP/1.0 with a body", head("POST /v1/ack HTTP/1.0", HOST, LENGTH) + BODY)),
    *rows(CLOSES, "9110 7.4", 403, ("HTTP/1.0 without a Host", head("GET /healthz HTTP/1.0"))),
    *rows(GOES_ON, "9.3", 200,
          ("HTTP/1.0 that asks to go on",
           head("GET /healthz HTTP/1.0", HOST, "Connection: keep-alive")),
          ("keep-alive", field("Connection: keep-alive")),
          ("a word that only begins like close", field("Connection: closed"))),
]

CASES = LINES + TARGETS + FIELDS + LENGTHS + CODINGS + CHUNKS + ENDS
