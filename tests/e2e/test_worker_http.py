"""The routes of projects, workers and runs: requests that must be refused, with the documented
code and without any effect."""

import json

import pytest

from projects import simple

LONG = "x" * 201


@pytest.fixture
def known(project):
    """A project that the server knows, with a worker that runs."""
    project.declare(simple("true")).start()
    return project


def refusal(reply):
    """(status, code) of a request or of the first of its items."""
    body = reply.json()
    error = body["error"] if "error" in body else body["results"][0]["error"]
    assert isinstance(error["message"], str) and error["message"]
    return reply.status, error["code"]


def case(verb, body, code, status=400):
    return pytest.param(verb, body, code, status, id=f"{verb}-{json.dumps(body)[:50]}-{code}")


@pytest.mark.parametrize("verb, body, code, status", [
    case("start", {}, "invalid_request", 400),
    case("start", {"names": "w"}, "invalid_request"),
    case("start", {"names": [5]}, "invalid_request"),
    case("start", {"names": ["w"], "all": True}, "invalid_request"),
    case("start", {"names": ["w"], "force": True}, "unknown_field"),
    case("start", {"names": ["w"], "root": 5}, "invalid_request"),
    case("start", {"names": ["w"], "run": "rm -rf /"}, "unknown_field"),
    case("stop", {"names": ["w"], "root": "/tmp"}, "unknown_field"),
    case("stop", {"names": ["w"], "now": "yes"}, "invalid_request"),
    case("resize", {"names": ["w"]}, "invalid_request"),
    case("resize", {"names": ["w"], "concurrency": 0}, "invalid_field"),
    case("resize", {"names": ["w"], "concurrency": 1001}, "invalid_field"),
    case("resize", {"names": ["w"], "concurrency": "2"}, "invalid_request"),
    case("start", {"names": ["W"]}, "worker_not_found", 404),
    case("stop", {"names": [LONG]}, "invalid_name"),
])
def test_workers(known, verb, body, code, status):
    before = known.workers()
    reply = known.client.request("POST", known.api_path(f"/v1/workers/{verb}"), body)
    got_status, got_code = refusal(reply)
    assert got_status == status, reply
    # A body may be wrong in more than one way.
    assert got_code == code or {got_code, code} <= {"invalid_request", "invalid_field"}, reply
    assert known.workers() == before


@pytest.mark.parametrize("method, path, body, status, code", [
    ("POST", "/v1/workers/start", {"names": ["w"]}, 404, "project_not_found"),
    ("POST", "/v1/workers/stop", {"all": True}, 404, "project_not_found"),
    ("GET", "/v1/workers/w/log", None, 404, None),
    ("POST", "/v1/runs", {"pipeline": "p"}, 404, "project_not_found"),
    ("POST", "/v1/runs", {}, 400, None),
    ("POST", "/v1/runs", {"pipeline": 5}, 400, None),
    ("POST", "/v1/runs", {"pipeline": "p", "command": "true"}, 400, "unknown_field"),
    ("GET", "/v1/runs/0000000000000", None, 404, "run_not_found"),
    ("GET", "/v1/runs/0000000000000/log", None, 404, "run_not_found"),
    ("POST", "/v1/runs/0000000000000/cancel", None, 404, "run_not_found"),
    ("GET", "/v1/runs/000", None, None, None),
    ("GET", "/v1/timers?limit=0", None, 400, None),
    ("GET", "/v1/timers?limit=1001", None, 400, None),
    ("GET", "/v1/runs/0000000000000?wait=2m", None, 400, None),
    ("POST", "/v1/queues/none/refresh", None, 404, "queue_not_found"),
    ("DELETE", "/v1/projects/none", None, 404, "project_not_found"),
    ("PUT", "/v1/projects/a%20b", {"root": "/tmp"}, 400, "invalid_name"),
    ("PUT", "/v1/projects/x", {}, 400, None),
    ("PUT", "/v1/projects/x", {"root": "/tmp", "files": []}, 400, "unknown_field"),
])
def test_of_what_is_not_there(api, namespace, method, path, body, status, code):
    if not path.startswith(("/v1/runs/", "/v1/projects/")):
        path += ("&" if "?" in path else "?") + f"namespace={namespace}"
    reply = api.request(method, path, body)
    assert 400 <= reply.status < 500 and reply.code, reply
    assert status in (None, reply.status) and code in (None, reply.code), reply


@pytest.mark.parametrize("method, path", [
    ("POST", "/v1/projects"), ("POST", "/v1/projects/x"), ("PUT", "/v1/workers"),
    ("GET", "/v1/workers/start"), ("DELETE", "/v1/runs"), ("PUT", "/v1/runs/0000"),
    ("POST", "/v1/timers"), ("GET", "/v1/queues/q/refresh"), ("DELETE", "/v1/runs/0000/log")])
def test_other_methods(api, method, path):
    reply = api.request(method, path)
    assert (reply.status, reply.code) == (405, "method_not_allowed"), reply
    assert reply.headers["allow"]


def test_status_of_several(known):
    reply = known.client.call("POST", known.api_path("/v1/workers/start"),
                              {"names": ["none", "w"]})
    assert [result["status"] for result in reply["results"]] == ["error", "running"]
    assert reply["results"][0]["error"]["code"] == "worker_not_found"


def test_a_log_of_a_worker_in_parts(known):
    known.done()
    log = known.client.get(known.api_path("/v1/workers/w/log"))
    assert set(log) == {"text", "next", "ended"}
    rest = known.client.get(known.api_path("/v1/workers/w/log", offset=log["next"], wait="100ms"))
    assert rest["text"] == "" and rest["next"] == log["next"]
    for query in ("offset=x", "limit=0", "tail=x", "wait=soon"):
        assert known.client.request("GET", known.api_path("/v1/workers/w/log") + "&" + query
                                    ).status == 400, query


def test_a_web_page_cannot_add_a_project(project):
    project.declare(simple("touch ran", autostart=True))
    reply = project.client.request("PUT", f"/v1/projects/{project.ns}",
                                   {"root": str(project.root)},
                                   {"Origin": "http://evil.example"})
    assert (reply.status, reply.code) == (403, "forbidden_origin")
    assert project.state() is None
