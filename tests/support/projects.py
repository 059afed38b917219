"""Projects with runbooks: directories that declare queues, workers and pipelines, and a server that
works for them."""

import json
import os
from pathlib import Path
from urllib.parse import urlencode

from reprise_cli import Cli
from reprise_http import Client
from waiting import eventually


def toml_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml_value(v)}"
                                for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # of texts and numbers the two agree


def toml(declared):
    """{"queue": {"orders": {…}}, "pipeline": {"ship": {"step": […]}}, …} as TOML."""
    lines = []
    for kind, things in declared.items():
        for name, fields in things.items():
            table = f"{kind}.{json.dumps(name)}"
            steps = fields.get("step", []) if kind == "pipeline" else []
            lines.append(f"[{table}]")
            lines += [f"{field} = {toml_value(value)}" for field, value in fields.items()
                      if not (kind == "pipeline" and field == "step")]
            for step in steps:
                lines.append(f"[[{table}.step]]")
                lines += [f"{field} = {toml_value(value)}" for field, value in step.items()]
    return "\n".join(lines) + "\n"


def step(name, run, **fields):
    return {"name": name, "run": run, **fields}


def pipeline(*steps, **fields):
    """Of whole steps, or of commands, which are called s1, s2, …"""
    return {**fields, "step": [one if isinstance(one, dict) else step(f"s{number}", one)
                               for number, one in enumerate(steps, 1)]}


def stored(**config):
    return {"type": "persisted", "vars": [], **config}


def worker(queue, run, **fields):
    return {"queue": queue, "run": run, **fields}


def simple(*steps, queue=None, **fields):
    """A queue `jobs`, a pipeline `work` of these steps and a worker `w` for them."""
    return {"queue": {"jobs": stored(**(queue or {}))},
            "pipeline": {"work": pipeline(*steps)},
            "worker": {"w": worker("jobs", "work", **fields)}}


class Project:
    """A directory with .reprise/ in it, and the command line inside. Its namespace is its name."""

    def __init__(self, root, server=None, ns=None):
        self.root = Path(root)
        self.book = self.root / ".reprise"
        self.book.mkdir(parents=True)
        self.server = server
        self.ns = ns or self.root.name
        self._client = None

    # Files.

    def write(self, name, text):
        """A file of the runbook, whole from one moment to the next."""
        path = self.book / name
        fresh = self.book / f".{name}.new"
        fresh.write_text(text)
        os.replace(fresh, path)
        return path

    def declare(self, declared=None, file="book.toml", **kinds):
        """The runbook, in the format that the file's name says."""
        declared = {**(declared or {}), **kinds}
        self.write(file, json.dumps(declared) if file.endswith(".json") else toml(declared))
        return self

    def script(self, name, text):
        path = self.root / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def path(self, name):
        return self.root / name

    def touch(self, name):
        (self.root / name).touch()

    def lines(self, name):
        """What steps have left in a file; nothing when it is not there."""
        try:
            return (self.root / name).read_text().splitlines()
        except FileNotFoundError:
            return []

    def text(self, name):
        return (self.root / name).read_text()

    # The command line.

    @property
    def cli(self):
        return Cli(self.server.url if self.server else None)

    def run(self, *args, cwd=None, **options):
        return self.cli.run(*args, cwd=cwd or self.root, **options)

    def ok(self, *args, **options):
        result = self.run(*args, **options)
        assert result.code == 0, repr(result)
        return result

    def process(self, *args, **options):
        return self.cli.start(*args, cwd=self.root, **options)

    def refused(self, *args, code=1, **options):
        """What a refused command says on stderr."""
        result = self.run(*args, **options)
        assert result.code == code and result.err, repr(result)
        return result.err

    # The API.

    @property
    def client(self):
        if self._client is None or self._client.port != self.server.port:
            self._client = Client(self.server.port)
        return self._client

    def api_path(self, path, **params):
        return path + "?" + urlencode({"namespace": self.ns, **params})

    def queue(self, name="jobs"):
        return self.client.queue(name, self.ns)

    def push(self, payload=None, queue="jobs", **fields):
        return self.queue(queue).push_one({} if payload is None else payload, **fields)

    def workers(self):
        """{name: what the server says of it}"""
        return {one["name"]: one
                for one in self.client.get(self.api_path("/v1/workers"))["workers"]}

    def worker(self, name="w"):
        return self.workers()[name]

    def state(self):
        """What the server says of this project; None when it does not know it."""
        for one in self.client.get("/v1/projects")["projects"]:
            if one["name"] == self.ns:
                return one
        return None

    def add(self, status=201):
        return self.client.call("PUT", f"/v1/projects/{self.ns}", {"root": str(self.root)}, status)

    def start(self, *names):
        """Starts workers, all of them when none is named."""
        return self.ok("worker", "start", *(names or ["--all"]))

    def runs(self, **params):
        return self.client.get(self.api_path("/v1/runs", **params))["runs"]

    def run_of(self, job_id):
        """The latest run of this job; None when there is none yet."""
        return next((run for run in self.runs(limit=1000) if run["job"] == job_id), None)

    def run_log(self, run_id):
        return self.client.get(f"/v1/runs/{run_id}/log")["text"]

    def timers(self):
        return [timer["id"] for timer in
                self.client.get(self.api_path("/v1/timers"))["timers"]]

    # Waiting.

    def finished(self, job_id, queue="jobs", timeout=15):
        eventually(lambda: self.queue(queue).status_of(job_id) is None,
                   f"job {job_id} to be finished", timeout)

    def dead(self, job_id, queue="jobs", timeout=15):
        """The job, once it is dead."""
        eventually(lambda: self.queue(queue).status_of(job_id) == "dead",
                   f"job {job_id} to die", timeout)
        return self.queue(queue).job(job_id)

    def has_lines(self, name, count, timeout=15):
        """The lines of a file once it has so many."""
        eventually(lambda: len(self.lines(name)) >= count, f"{count} lines in {name}", timeout)
        return self.lines(name)

    def done(self, payload=None, **fields):
        """Pushes a job and returns its id once it has succeeded."""
        job_id = self.push(payload, **fields)
        self.finished(job_id)
        return job_id

    def forget(self):
        """The server has nothing to do for it any more."""
        if self.server and self.server.alive():
            client = Client(self.server.port)
            client.request("DELETE", f"/v1/projects/{self.ns}")
            client.close()


def marked_processes(mark):
    """The ids of processes that have this text in their environment."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.add(int(entry.name))
        except OSError:  # it has ended, or is not ours
            continue
    return found
