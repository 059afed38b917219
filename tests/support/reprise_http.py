"""A client of the HTTP API for tests: it hides no status and repeats no request."""

import http.client
import json
from urllib.parse import quote, urlencode

TIMEOUT_SECONDS = 30


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            raise AssertionError(f"not JSON: {self!r}") from None

    @property
    def code(self):
        """The code of the error that this reply is, None when it is none."""
        return self.json().get("error", {}).get("code")

    @property
    def message(self):
        return self.json()["error"]["message"]

    def __repr__(self):
        return f"<{self.status} {self.body[:600]!r}>"


def encode_body(body):
    return body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()


class Client:
    """One kept-alive connection. Not for several threads at once."""

    def __init__(self, port, host="127.0.0.1", token=None, timeout=TIMEOUT_SECONDS):
        self.port = port
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.connection = http.client.HTTPConnection(host, port, timeout=timeout)

    def close(self):
        self.connection.close()

    def request(self, method, path, body=None, headers=None):
        data = encode_body(body)
        sent = dict(self.headers)
        if data is not None:
            sent["Content-Type"] = "application/json"
        sent |= headers or {}
        try:
            self.connection.request(method, path, data, sent)
            response = self.connection.getresponse()
            if response.getheader("Content-Type") == "text/event-stream" and method != "HEAD":
                self.connection.close()
                raise AssertionError(f"{method} {path}: a stream has no end to wait for")
            return Reply(response.status, response.getheaders(), response.read())
        except (OSError, http.client.HTTPException):
            self.connection.close()
            raise

    def call(self, method, path, body=None, status=200, headers=None):
        """The JSON of a reply whose status is as expected."""
        reply = self.request(method, path, body, headers)
        assert reply.status == status, f"{method} {path}: {reply!r}, expected {status}"
        return reply.json()

    def get(self, path, status=200):
        return self.call("GET", path, status=status)

    def refused(self, method, path, body=None, headers=None):
        """(status, code) of a request, to compare with the one expected."""
        reply = self.request(method, path, body, headers)
        return reply.status, reply.code

    def queue(self, name, namespace="default"):
        return Queue(self, name, namespace)

    # Leases. Those of several items return the list of results, those of one its result.

    def leases(self, verb, items, status=200):
        return self.call("POST", f"/v1/{verb}", {"leases": items}, status)["results"]

    def one_lease(self, verb, job_or_token, status=200, **fields):
        token = job_or_token if isinstance(job_or_token, str) else job_or_token["token"]
        [result] = self.leases(verb, [{"token": token, **fields}], status)
        return result

    def ack(self, job, status=200):
        return self.one_lease("ack", job, status)

    def ack_all(self, jobs, status=200):
        return self.leases("ack", [{"token": job["token"]} for job in jobs], status)

    def fail(self, job, status=200, **fields):
        return self.one_lease("fail", job, status, **fields)

    def release(self, job, status=200, **fields):
        return self.one_lease("release", job, status, **fields)

    def extend(self, job, status=200, **fields):
        return self.one_lease("extend", job, status, **fields)

    # Operations and audit.

    def operation(self, number):
        return self.get(f"/v1/operations/{number}")

    def operations(self, **params):
        return self.get("/v1/operations?" + urlencode(params))["operations"]

    def cancel(self, number):
        return self.call("DELETE", f"/v1/operations/{number}")

    def audit(self, **params):
        """One page of the records."""
        return self.get("/v1/audit?" + urlencode(params))["records"]


class Queue:
    """One queue as a test uses it."""

    def __init__(self, client, name, namespace):
        self.client = client
        self.name = name
        self.namespace = namespace

    def path(self, suffix="", **params):
        if self.namespace != "default":
            params["namespace"] = self.namespace
        query = "?" + urlencode(params, doseq=True) if params else ""
        return f"/v1/queues/{quote(self.name, safe='')}{suffix}{query}"

    def sibling(self, name):
        return Queue(self.client, name, self.namespace)

    def through(self, client):
        """The same queue over another connection, as a second thread or a restart needs."""
        return Queue(client, self.name, self.namespace)

    def create(self, status=201, **config):
        return self.client.call("PUT", self.path(), config, status)

    def created(self, **config):
        self.create(**config)
        return self

    def patch(self, **config):
        return self.client.call("PATCH", self.path(), config)

    def show(self):
        return self.client.get(self.path())

    def stats(self):
        return self.show()["stats"]

    def counts(self):
        """Only the statuses that have jobs: {"pending": 2}."""
        stats = self.stats()
        return {name: stats[name] for name in ("scheduled", "pending", "active", "failed", "dead")
                if stats[name]}

    def totals(self):
        """Only the totals that are not 0."""
        return {name: count for name, count in self.stats()["totals"].items() if count}

    def pause(self):
        return self.client.call("POST", self.path("/pause"))

    def resume(self):
        return self.client.call("POST", self.path("/resume"))

    def delete(self):
        return self.client.call("DELETE", self.path())

    def push_jobs(self, jobs, status=200, **fields):
        """The results of a push of these job objects."""
        body = {"jobs": jobs, **fields}
        return self.client.call("POST", self.path("/push"), body, status)["results"]

    def push(self, *payloads, **fields):
        """The ids of jobs with these payloads and the same other fields."""
        results = self.push_jobs([{"payload": payload, **fields} for payload in payloads])
        assert all(result["status"] == "pushed" for result in results), results
        return [result["id"] for result in results]

    def push_one(self, payload=None, **fields):
        [job_id] = self.push(payload, **fields)
        return job_id

    def claim(self, max=1, status=200, **fields):
        body = {"max": max, **fields}
        return self.client.call("POST", self.path("/claim"), body, status)["jobs"]

    def claim_one(self, **fields):
        jobs = self.claim(**fields)
        assert len(jobs) == 1, f"expected one job, got {jobs}"
        return jobs[0]

    def jobs(self, **params):
        """One page of the list."""
        return self.client.get(self.path("/jobs", **params))["jobs"]

    def all_jobs(self, **params):
        """Every page of the list."""
        found, cursor = [], None
        while True:
            page = self.client.get(
                self.path("/jobs", **params, **({"cursor": cursor} if cursor else {})))
            found += page["jobs"]
            cursor = page["cursor"]
            if not cursor:
                return found

    def job(self, job_id):
        return self.client.get(self.path(f"/jobs/{job_id}"))

    def status_of(self, job_id):
        """Its status, or None when there is no such job."""
        reply = self.client.request("GET", self.path(f"/jobs/{job_id}"))
        return None if reply.status == 404 else reply.json()["status"]

    def drop(self, job_id, status=200):
        return self.client.call("DELETE", self.path(f"/jobs/{job_id}"), status=status)

    def retry(self, *ids, status=200, **fields):
        """The reply to a retry of these ids, or of a filter."""
        return self._selected("/retry", ids, fields, status)

    def purge(self, *ids, status=200, **fields):
        """The reply to a purge of these ids, or of a filter."""
        return self._selected("/purge", ids, fields, status)

    def _selected(self, verb, ids, fields, status):
        body = fields if "filter" in fields else {"ids": list(ids), **fields}
        return self.client.call("POST", self.path(verb), body, status)

    def errors(self, **params):
        return self.client.get(self.path("/errors", **params))

    def snapshot(self):
        """All that a refused request must leave alone."""
        shown = self.show()
        for moving in ("oldest_pending_age", "rates"):
            del shown["stats"][moving]
        del shown["stats"]["lanes"]["retry_credit"]  # in memory only
        # What was delivered in the last minute moves by itself, and with it who is at the top.
        shown["stats"]["keys"] = {
            entry["key"]: (entry["pending"], entry["active"], entry["weight"])
            for entry in shown["stats"]["keys"]["top"] if entry["weight"] is not None}
        return shown, self.all_jobs(limit=1000)
