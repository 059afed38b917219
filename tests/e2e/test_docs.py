"""docs/api.md, openapi.json and the server say the same."""

import re

import pytest

import api_page
from hooking import BURY, PATIENT_MS, on_enqueue
from metrics_text import read_metrics

# A request for every error that a client can cause on a server with default settings. The others
# have tests of their own, named here.
ELSEWHERE = {
    "unauthorized": "test_security",
    "request_timeout": "test_http_framing",
    "ambiguous_id": "test_http_jobs",
    "body_too_large": "test_http_bad_input",
    "request_header_too_large": "test_http_bad_input",
    "target_too_long": "test_http_bad_input",
    "too_many_wrong_tokens": "test_security",
    "too_many_waiting": "test_longpoll",
    "too_many_connections": "test_memory",
    "disk_full": "test_durability",
    "too_many_operations": "test_http_operations",
    "too_many_keys": "test_hooks_config",
    "too_many_throttles": "test_http_throttles",
    "backup_running": "test_backup",
    "unreachable": "test_cli",
    "shutting_down": "test_restart",
    "missing_field": "test_worker_inputs",
    "invalid_runbook": "test_runbook_projects",
    "unsafe_project": "test_runbook_projects",
    "project_conflict": "test_runbook_projects",
    "workers_disabled": "test_runbook_projects",
    "worker_not_found": "test_worker_http",
    "pipeline_not_found": "test_runs",
    "too_many_runs": "test_runs",
    "external_queue": "test_worker_external",
    "spool_full": "test_spool",
    "spool_locked": "test_spool",
    # Not reachable on purpose without a fault inside the server:
    "io": "test_durability", "overloaded": None, "hooks_unavailable": None, "corrupt": None,
    "internal": None,
}
PUSH, CLAIM = "/v1/queues/q/push", "/v1/queues/q/claim"
MIB = 1 << 20
REQUESTS = {
    "invalid_request": ("POST", PUSH, b"{"),
    "unknown_field": ("POST", CLAIM, {"maxx": 1}),
    "invalid_field": ("POST", CLAIM, {"max": 0}),
    "invalid_name": ("PUT", "/v1/queues/.q", {}),
    "invalid_lease_token": ("POST", "/v1/ack", {"leases": [{"token": "x"}]}),
    "invalid_script": ("PUT", "/v1/queues/hooked", {"on_failure": "nonsense here"}),
    "missing_var": ("POST", "/v1/queues/strict/push", {"jobs": [{"payload": {}}]}),
    "forbidden_host": ("GET", "/v1/status", None, {"Host": "evil.example"}),
    "forbidden_origin": ("GET", "/v1/status", None, {"Origin": "http://evil.example"}),
    "not_found": ("GET", "/nowhere", None),
    "queue_not_found": ("GET", "/v1/queues/absent", None),
    "job_not_found": ("GET", "/v1/queues/q/jobs/7ZK3M9QAX2B4C", None),
    "config_not_found": ("GET", "/v1/config/absent", None),
    "throttle_not_found": ("GET", "/v1/throttles/absent", None),
    "operation_not_found": ("GET", "/v1/operations/999999", None),
    "project_not_found": ("DELETE", "/v1/projects/absent", None),
    "run_not_found": ("GET", "/v1/runs/7ZK3M9QAX2B4C", None),
    "queue_not_external": ("POST", "/v1/queues/q/refresh", None),
    "method_not_allowed": ("POST", "/v1/status", None),
    "queue_exists": ("PUT", "/v1/queues/q", {}, {"If-None-Match": "*"}),
    "wrong_status": ("POST", "/v1/queues/q/retry", {"ids": ["ACTIVE"]}),
    "lease_lost": ("POST", "/v1/ack", {"leases": [{"token": "STALE"}]}),
    "hook_rejected": ("POST", "/v1/queues/refusing/push", {"jobs": [{}]}),
    "payload_too_large": ("POST", PUSH, {"jobs": [{"payload": "x" * MIB}]}),
    "batch_too_many_jobs": ("POST", PUSH, {"jobs": [{}] * 1001}),
    "batch_too_large": ("POST", PUSH, {"jobs": [{"payload": "x" * (MIB - 2)}] * 17}),
    "too_many_events": ("POST", "/api/events/ingest", {"events": [{}] * 101}),
    "too_many_headers": ("POST", PUSH, {"jobs": [{"headers": {str(n): "" for n in range(65)}}]}),
    "header_too_large": ("POST", PUSH, {"jobs": [{"headers": {"a": "x" * 4096}}]}),
    "key_too_long": ("POST", PUSH, {"jobs": [{"key": "x" * 513}]}),
    "error_too_long": ("POST", "/v1/fail", {"leases": [{"token": "HELD", "error": "x" * 16385}]}),
    "script_too_large": ("PUT", "/v1/queues/hooked", {"on_failure": " " * 65537}),
    "value_too_large": ("PUT", "/v1/config/key", {"value": "x" * 4097}),
    "directory_not_empty": ("POST", "/v1/backup", {"directory": "/"}),
    "backup_failed": ("POST", "/v1/backup", {"directory": "/proc/copy"}),
    "queue_full": ("POST", "/v1/queues/full/push", {"jobs": [{}, {}]}),
    "queue_bytes_full": ("POST", "/v1/queues/heavy/push", {"jobs": [{"payload": "x" * 50}]}),
}


@pytest.fixture(scope="module")
def prepared(_shared_server):
    """What the requests above need: queues in the default namespace, two tokens and an id."""
    client = _shared_server.client()
    queue = client.queue("q")
    if client.request("GET", queue.path()).status == 404:
        queue.create()
        client.queue("full").create(max_jobs=1)
        client.queue("full").push(1)
        client.queue("heavy").create(max_bytes=20)
        client.queue("strict").create(vars=["id"])
        client.queue("refusing").create(on_enqueue=on_enqueue('return { reject = "no" }'),
                                        hook_timeout_ms=PATIENT_MS)
    queue.push("held", "stale")
    held, stale = queue.claim(2)
    client.ack(stale)
    return client, {"HELD": held["token"], "STALE": stale["token"], "ACTIVE": held["id"]}


@pytest.mark.parametrize("code", REQUESTS)
def test_every_error_is_produced_as_documented(prepared, code):
    client, tokens = prepared
    method, path, body, *headers = REQUESTS[code]
    if isinstance(body, dict) and "leases" in body:
        body = {"leases": [item | {"token": tokens.get(item["token"], item["token"])}
                           for item in body["leases"]]}
    if isinstance(body, dict) and "ids" in body:
        body = {"ids": [tokens[each] for each in body["ids"]]}
    reply = client.request(method, path, body, *headers)
    answer = reply.json()
    error = answer["error"] if "error" in answer else answer["results"][0]["error"]
    documented = {line.code: line.status for line in api_page.errors()}
    assert (error["code"], reply.status) == (code, documented[code])
    assert error["message"]


def test_every_documented_error_has_a_request_or_a_test():
    documented = {line.code for line in api_page.errors()}
    assert documented == set(REQUESTS) | set(ELSEWHERE)


@pytest.mark.parametrize("route", api_page.routes(), ids=" ".join)
def test_every_documented_route_is_there(prepared, route):
    client, _ = prepared
    path = route.path.replace("{queue}", "absent-queue").replace("{id}", "7ZK3M9QAX2B4C")
    path = path.replace("{key}", "absent.key").replace("{name}", "absent")
    if route.path == "/v1/events":
        path += "?type=none-such"  # a stream has no end to read
    reply = client.request(route.method, path)
    if route.method == "PUT":
        client.request("DELETE", path)
    assert reply.status != 405
    assert reply.status != 404 or reply.code in ("queue_not_found", "job_not_found",
                                                 "operation_not_found", "config_not_found",
                                                 "throttle_not_found", "project_not_found",
                                                 "worker_not_found", "run_not_found")


class TestOpenApi:
    @pytest.fixture(scope="class")
    def document(self, _shared_server):
        return _shared_server.client().get("/openapi.json")

    def operations(self, document):
        for path, item in document["paths"].items():
            for method in ("get", "put", "post", "patch", "delete", "head", "options"):
                if method in item:
                    yield path, method, item, item[method]

    def test_it_has_the_documented_routes_and_no_other(self, document):
        described = {(method.upper(), path) for path, method, _, _ in self.operations(document)}
        assert described == {tuple(route) for route in api_page.routes()}

    def test_it_is_openapi_3_1(self, document, _shared_server):
        assert re.fullmatch(r"3\.1\.\d+", document["openapi"])
        assert document["info"]["title"]
        assert document["info"]["version"] == _shared_server.client().get("/v1/status")["version"]
        allowed = {"openapi", "info", "jsonSchemaDialect", "servers", "paths", "webhooks",
                   "components", "security", "tags", "externalDocs"}
        assert set(document) <= allowed

    def test_every_operation_is_complete(self, document):
        ids = []
        for path, method, item, operation in self.operations(document):
            where = f"{method} {path}"
            ids.append(operation["operationId"])
            assert operation.get("summary") or operation.get("description"), where
            assert operation["responses"], where
            for status, response in operation["responses"].items():
                assert re.fullmatch(r"[1-5](\d\d|XX)|default", status), where
                assert "$ref" in response or response["description"], where
            named = {parameter["name"]
                     for parameter in self.parameters(document, item, operation)
                     if parameter["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path)), where
        assert len(ids) == len(set(ids))

    def parameters(self, document, item, operation):
        for parameter in item.get("parameters", []) + operation.get("parameters", []):
            parameter = self.resolve(document, parameter)
            assert parameter["in"] in ("path", "query", "header", "cookie")
            assert parameter["in"] != "path" or parameter["required"] is True
            assert "schema" in parameter or "content" in parameter
            yield parameter

    def resolve(self, document, node):
        if "$ref" not in node:
            return node
        assert node["$ref"].startswith("#/")
        for part in node["$ref"][2:].split("/"):
            document = document[part.replace("~1", "/").replace("~0", "~")]
        return document

    def test_every_reference_leads_somewhere(self, document):
        def walk(node):
            if isinstance(node, dict):
                if isinstance(node.get("$ref"), str):
                    self.resolve(document, node)
                node = list(node.values())
            if isinstance(node, list):
                for each in node:
                    walk(each)
        walk(document)

    def test_it_names_every_error(self, document):
        text = str(document)
        missing = [line.code for line in api_page.errors()
                   if line.code not in text and line.code != "unreachable"]
        assert missing == []


class TestMetrics:
    @pytest.fixture(scope="class")
    def metrics(self, _shared_server):
        client = _shared_server.client()
        queue = client.queue("metrics-probe")
        client.request("PUT", queue.path(), {"on_failure": BURY, "breaker": {}})
        client.call("PUT", "/v1/throttles/metrics-probe", {"rate": "1000/s"})
        queue.push_one(1, fairness_key="acme")
        client.fail(queue.claim_one())
        return read_metrics(client)

    def test_every_documented_metric_is_there_and_no_other(self, metrics):
        assert metrics.families() == set(api_page.metrics())

    def test_each_has_the_documented_labels(self, metrics):
        for name, labels in api_page.metrics().items():
            if metrics.types[name] != "histogram":
                assert metrics.label_names(name) == {frozenset(labels)}, name

    def test_each_has_a_type_that_fits_its_name(self, metrics):
        for name in api_page.metrics():
            kind = metrics.types[name]
            assert (kind == "counter") == name.endswith("_total"), name
            assert kind in ("counter", "gauge", "histogram"), name
