"""Hooks: queues that carry scripts, what the scripts saw, and the processes that run them."""

import hashlib
import json
from pathlib import Path
from urllib.parse import quote, urlencode

from metrics_text import read_metrics

# For scripts that do no harm: a busy machine must not make them late.
PATIENT_MS = 1000
FAULTS = {"error", "timeout", "memory", "invalid_result", "host_lost", "breaker_open"}

# Refuses a job that has failed, and nothing else can give this reason.
BURY = 'function on_failure(msg) return { action = "dlq", reason = "buried" } end'
# Keeps a job that has failed for later.
KEEP = 'function on_failure(msg) return { action = "retry", delay_ms = 3600000 } end'
AT_ONCE = "function on_failure(msg) return {} end"
BROKEN = 'function on_failure(msg) error("the script is broken") end'


def on_failure(body):
    return f"function on_failure(msg)\n{body}\nend\n"


def on_enqueue(body):
    return f"function on_enqueue(msg)\n{body}\nend\n"


def version_of(source):
    return hashlib.sha256(source.encode()).hexdigest()[:12]


def telling(expression):
    """An on_failure whose reason is the JSON of this expression; see told()."""
    return on_failure(f'return {{ action = "dlq", reason = json.encode({expression}) }}')


def told(queue, job_id):
    """What a script made by telling() said of this job."""
    return json.loads(queue.job(job_id)["reason"])


def fail_one(queue, payload=None, push=None, **fields):
    """The result of a failure of a new job, which must be the next fresh one."""
    job_id = queue.push_one(payload, **(push or {}))
    [job] = queue.claim(lane="fresh")
    assert job["id"] == job_id, "another job is waiting in this queue"
    return queue.client.fail(job, **fields)


def fail_many(queue, count, **fields):
    """The results of one call that fails so many new jobs."""
    queue.push(*range(count))
    jobs = queue.claim(count, lane="fresh")
    assert len(jobs) == count
    return queue.client.leases("fail", [{"token": job["token"], **fields} for job in jobs])


def meta_of(queue, job_id):
    """The second part of a dead job's envelope."""
    return queue.job(job_id)["dead_letter"]["meta"]


def decision(queue, job_id):
    """(reason, decided by) of a dead job."""
    meta = meta_of(queue, job_id)
    return meta["reason"], meta["decidedBy"]


def hook_of(queue, hook="on_failure"):
    """State and counts of one of its hooks."""
    return queue.show()["hooks"][hook]


def faults_of(queue, hook="on_failure"):
    """How often it failed, only the faults that occurred: {"error": 2}."""
    failed = hook_of(queue, hook)["failed"]
    assert set(failed) == FAULTS
    return {fault: count for fault, count in failed.items() if count}


def calls_of(queue, hook="on_failure"):
    """(answers, faults) of a hook so far."""
    return hook_of(queue, hook)["succeeded"], faults_of(queue, hook)


def calls_in_metrics(queue, hook="on_failure"):
    """{result: count} of the answers of this hook, only those that occurred."""
    wanted = {("namespace", queue.namespace), ("queue", queue.name), ("hook", hook)}
    return {dict(labels)["result"]: count
            for (name, labels), count in read_metrics(queue.client).samples.items()
            if name == "reprise_hook_calls_total" and wanted <= set(labels) and count}


def try_hook(queue, samples=None, status=200, **script):
    """The reply of the test route: try_hook(queue, [{…}], on_failure=source)."""
    body = dict(script) if samples is None else {**script, "samples": samples}
    return queue.client.call("POST", queue.path("/hooks/test"), body, status)


def decide(queue, source, hook="on_failure", **sample):
    """The result of a script for one sample."""
    [result] = try_hook(queue, [sample], **{hook: source})["results"]
    return result


def decided(queue, source, **sample):
    """(action, delay or reason) of an on_failure for one sample."""
    result = decide(queue, source, **sample)
    assert result["status"] == "decided", result
    if result["action"] == "dlq":
        return "dlq", result["reason"]
    return result["action"], result.get("delay_ms", 0)


def replay(queue, status=200, **body):
    return queue.client.call("POST", queue.path("/hooks/replay"), body, status)


class RuntimeConfig:
    """The runtime values of one namespace."""

    def __init__(self, client, namespace="default"):
        self.client = client
        self.namespace = namespace

    def path(self, key=None):
        query = "" if self.namespace == "default" else "?" + urlencode(
            {"namespace": self.namespace})
        return "/v1/config" + ("" if key is None else "/" + quote(key, safe="")) + query

    def set(self, key, value, status=200):
        return self.client.call("PUT", self.path(key), {"value": value}, status)

    def get(self, key):
        return self.client.get(self.path(key))

    def unset(self, key):
        return self.client.call("DELETE", self.path(key))

    def list(self):
        return self.client.get(self.path())["config"]

    def values(self):
        return {entry["key"]: entry["value"] for entry in self.list()}


# Processes.

def parent_of(pid):
    """None when the process is gone, or has ended and nobody has asked how."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] == "Z" else int(fields[1])


def command_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def runs(pid):
    return parent_of(pid) is not None


def descendants(pid):
    """The ids of all processes below this one."""
    parents = {int(path.name): parent_of(path.name)
               for path in Path("/proc").iterdir() if path.name.isdigit()}
    found, more = set(), {pid}
    while more:
        more = {child for child, parent in parents.items() if parent in more} - found
        found |= more
    return found


def hook_processes(server):
    """The ids of the processes that this server has for its hooks."""
    return {pid for pid in descendants(server.pid) if b"hook-host" in command_of(pid)}
