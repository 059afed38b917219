"""What a browser could be made to do with this server: pages of other origins change nothing, and
no reply is ever taken for a page, whatever text it repeats."""

import json
from urllib.parse import quote

import pytest

import api_page
from hooking import BURY
from projects import simple, step
from raw_http import EventStream, RawConnection, message
from reprise_http import Client

SCRIPT = "<script>alert(1)</script>"
ENCODED = quote(SCRIPT, safe="")
TYPES = {"application/json", "text/plain; charset=utf-8", "text/event-stream",
         "text/plain; version=0.0.4; charset=utf-8"}


def assert_no_page(reply, where):
    """A browser shows this reply as text, if at all."""
    assert reply.headers.get("x-content-type-options") == "nosniff", (where, reply.headers)
    kind = reply.headers.get("content-type")
    assert kind in TYPES, (where, kind)
    if kind == "application/json" and reply.body:
        json.loads(reply.body)
    for name, value in reply.headers.items():
        assert "<" not in name + value, (where, name, value)


class WatchfulClient(Client):
    """Looks at every reply, and counts those that repeat the script."""

    repeated = 0

    def request(self, method, path, body=None, headers=None):
        reply = super().request(method, path, body, headers)
        assert_no_page(reply, f"{method} {path}")
        self.repeated += SCRIPT.encode() in reply.body
        return reply


@pytest.fixture
def watchful(shared_server):
    client = WatchfulClient(shared_server.port)
    yield client
    client.close()


def path_of(route, name):
    for placeholder in ("{queue}", "{id}", "{key}", "{name}"):
        route = route.replace(placeholder, name)
    return route


def resolved(document, schema):
    while "$ref" in schema:
        found = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def scripted(document, schema, depth=0):
    """Values for a schema with the script wherever a text may stand, valid or not: one field at a
    time, so that each has its own refusal or its own echo."""
    schema = resolved(document, schema)
    kinds = [schema, *schema.get("allOf", []), *schema.get("oneOf", []), *schema.get("anyOf", [])]
    yield SCRIPT
    if depth > 3:
        return
    for kind in kinds:
        kind = resolved(document, kind)
        if "items" in kind:
            for value in scripted(document, kind["items"], depth + 1):
                yield [value]
        properties = kind.get("properties", {})
        if properties:
            yield {SCRIPT: SCRIPT}
        for name, field in properties.items():
            for value in scripted(document, field, depth + 1):
                yield {name: value}
    if isinstance(schema.get("additionalProperties"), dict):
        yield {SCRIPT: SCRIPT}


@pytest.fixture(scope="module")
def document(_shared_server):
    return _shared_server.client().get("/openapi.json")


@pytest.mark.parametrize("route", api_page.routes(), ids=" ".join)
class TestEveryRoute:
    def test_no_reply_is_a_page(self, watchful, namespace, document, route):
        """The script in the path, in parameters, in header fields and in each field of the body."""
        query = f"?namespace={namespace}"
        stream = "&type=none" if route.path == "/v1/events" else ""
        plain = path_of(route.path, "absent-queue")
        paths = {path_of(route.path, ENCODED) + query, plain + query,
                 plain + f"?namespace={ENCODED}", plain + f"?{ENCODED}={ENCODED}",
                 plain + query + f"&limit={ENCODED}&cursor={ENCODED}&status={ENCODED}"}
        for path in sorted(paths) if not stream else [plain + f"?{ENCODED}=1"]:
            watchful.request(route.method, path)
        watchful.request("BREW", plain)
        if not stream and route.method == "GET":
            watchful.request("GET", plain)
            watchful.request("HEAD", plain)
        for name in ("Origin", "Host", "Authorization", "Last-Event-ID", "If-None-Match",
                     "Reprise-Project-Root", "Expect", "Content-Encoding", "Transfer-Encoding"):
            headers = {name: SCRIPT}
            if stream:
                headers["Origin"] = SCRIPT
            watchful.request(route.method, plain + query, headers=headers)
            watchful.close()  # some of these end the connection
        item = document["paths"][route.path][route.method.lower()]
        if "requestBody" not in item:
            return
        schema = item["requestBody"]["content"]["application/json"]["schema"]
        bodies = list(scripted(document, schema))
        assert len(bodies) > 1
        for body in bodies:
            watchful.request(route.method, plain + query, body)
        watchful.request(route.method, plain + query, b"<script>")

    def test_another_origin_or_name_is_refused_before_anything_else(self, shared_server, api, queue,
                                                                    route):
        """With names that are there: what is refused would have been done."""
        queue.push("kept")
        before = queue.snapshot()
        path = path_of(route.path, queue.name) + f"?namespace={queue.namespace}"
        for host, fields, code in (("evil.example", [], "forbidden_host"),
                                   ("localhost", ["Origin: http://evil.example"],
                                    "forbidden_origin"),
                                   ("localhost", ["Origin: null"], "forbidden_origin")):
            with RawConnection(shared_server.port) as connection:
                # As a page would send it without asking first: a form's type.
                connection.send(message(route.method, path, b"{}", host=host, headers=[
                    "Content-Type: text/plain", *fields]))
                reply = connection.reply()
            assert (reply.status, reply.code) == (403, code)
            assert_no_page(reply, path)
        assert queue.snapshot() == before


def test_refusals_of_the_wire_are_no_pages(shared_server):
    for data in (b"<script>\r\n\r\n", b"GET /<script> HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: <script>\r\n\r\n",
                 b"GET / HTTP/1.1\r\nHost: localhost\r\n<script>: 1\r\n\r\n",
                 b"GET / <script>/1.1\r\nHost: localhost\r\n\r\n",
                 b"<script> / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"GET /" + b"<script>" * 3000, message("GET", "/", headers=["X: <"] * 200),
                 message("POST", "/v1/ack", headers=["Transfer-Encoding: chunked"]) + b"<script>"):
        with RawConnection(shared_server.port) as connection:
            reply = connection.send(data).reply()
            assert reply.status >= 400
            assert_no_page(reply, data[:60])


def test_text_that_is_kept_comes_back_as_text_and_nothing_else(watchful, shared_server, namespace):
    """A script in every text that the server stores: payload, headers, keys, worker, error, hooks,
    runtime values, throttles; through every route that shows one of them."""
    queue = watchful.queue("jobs", namespace).created(
        retry={"attempts": 1}, defaults={SCRIPT: SCRIPT}, breaker={},
        on_failure=f"-- {SCRIPT}\n" + BURY)
    query = f"?namespace={namespace}"
    with EventStream(shared_server.port, query) as events:
        assert events.headers["content-type"] == "text/event-stream"
        assert events.headers["x-content-type-options"] == "nosniff"
        job = {"payload": {SCRIPT: SCRIPT}, "headers": {SCRIPT: SCRIPT}, "key": SCRIPT,
               "fairness_key": SCRIPT}
        [pushed] = queue.push_jobs([job])
        queue.push_jobs([job])  # a duplicate
        claimed = queue.claim_one(worker=SCRIPT)
        assert claimed["payload"][SCRIPT] == SCRIPT and claimed["headers"][SCRIPT] == SCRIPT
        watchful.fail(claimed, error=SCRIPT, final=True)
        assert SCRIPT in json.dumps([event.data for event in events.take(4)])
    for path in ("", "/jobs", f"/jobs/{pushed['id']}", "/errors"):
        watchful.get(queue.path(path))
    watchful.get(queue.path("/jobs", status="dead", error=SCRIPT))
    watchful.call("PUT", f"/v1/config/text{query}", {"value": SCRIPT})
    watchful.get(f"/v1/config{query}")
    watchful.call("PUT", f"/v1/throttles/{ENCODED}{query}", {"rate": "1/s"})
    watchful.get(f"/v1/throttles{query}")
    watchful.call("POST", queue.path("/hooks/test"),
                  {"on_failure": f'function on_failure() error("{SCRIPT}") end',
                   "samples": [{"payload": SCRIPT, "error": SCRIPT}]})
    watchful.call("POST", queue.path("/hooks/replay"), {})
    watchful.call("POST", queue.path("/retry"),
                  {"filter": {"status": "dead", "error": SCRIPT}, "dry_run": True})
    assert watchful.request("POST", queue.path("/retry"), {
        "filter": {"status": "dead", "error": SCRIPT}}).status in (200, 202)
    watchful.operations()
    watchful.audit(namespace=namespace)
    watchful.call("POST", f"/api/events/ingest{query}&queue=jobs", {"events": [
        {"id": SCRIPT, "type": SCRIPT, "timestamp": SCRIPT, "data": SCRIPT}]}, status=202)
    watchful.request("GET", "/metrics")
    assert watchful.repeated >= 12, watchful.repeated


def test_a_projects_text_comes_back_as_text(watchful, project):
    project.declare(simple(step("say", f"echo '{SCRIPT}'; echo '{SCRIPT}' >&2; exit 3")))
    project._client = watchful
    project.add()
    project.start()
    job = project.dead(project.push({"text": SCRIPT}))
    run = project.run_of(job["id"])
    for path in ("/v1/projects", project.api_path("/v1/workers"), project.api_path("/v1/runs"),
                 f"/v1/runs/{run['id']}", f"/v1/runs/{run['id']}/log",
                 project.api_path("/v1/workers/w/log"), project.api_path("/v1/timers")):
        watchful.get(path)
    project.write("book.toml", f"{SCRIPT} = [")
    reply = watchful.request("PUT", f"/v1/projects/{project.ns}", {"root": str(project.root)})
    assert reply.code == "invalid_runbook"
    assert watchful.repeated >= 3
