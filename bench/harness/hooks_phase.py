"""The phase `hooks`: what Lua hooks cost their queue, and what bad ones cost another."""

from harness.load import finish_json
from harness.processes import BenchError, end

QUEUE = "/v1/queues/bench"
TENANTS = 10
PUSH_CONNECTIONS = 8
FAIL_CONNECTIONS = 32
FAIL_RATE = 10_000
FAIL_BATCH = 20
FAIL_SECONDS = 5
STREAM_RATE = 100
STREAM_CONNECTIONS = 16
STREAM_SPARE_SECONDS = 1  # the stream's beyond those of what is measured beside it

TENANT = """
function on_enqueue(msg) return { fairness_key = msg.headers.tenant or "default" } end
"""
# It looks at what differs from job to job, so that it has to run for each of them.
TENANT_AND_SIZE = """
function on_enqueue(msg)
  return { fairness_key = msg.headers.tenant or "default", weight = msg.payload_size > 65536 and 2 or 1 }
end
"""
GIVE_UP = """
function on_failure(msg) return { action = "dlq", reason = "bench" } end
"""
# In a library function, where no limit of instructions ends it: its process is killed.
STUCK = """
function on_failure(msg) return { reason = string.rep("a", 50000):find(".-.-.-b") } end
"""
# Some milliseconds, and then an answer: no breaker stops that. With time to wait for a processor.
SLOW = """
function on_failure(msg)
  for _ = 1, 900000 do end
  return { action = "dlq", reason = "bench" }
end
"""
BESIDE = [("stuck", {"on_failure": STUCK}), ("slow", {"on_failure": SLOW, "hook_timeout_ms": 200}),
          ("calm", {"on_failure": GIVE_UP})]


def hooks(bench):
    return push(bench, 100) | push(bench, 32) | fail(bench) | beside(bench)


def in_turn(bench, variants):
    """Those of a round; the next one begins with the last, so that none has always the same
    moment."""
    return list(variants) if bench.round % 2 else list(reversed(variants))


def cpu_us(report):
    return (report["server_cpu_seconds"] + report["host_cpu_seconds"]) / report["all_jobs"] * 1e6


def push(bench, batch):
    key = f"hooks_push_{batch}"
    values = {}
    variants = [("", {"on_enqueue": TENANT}), ("_without", {}),
                ("_called", {"on_enqueue": TENANT_AND_SIZE})]
    for suffix, config in in_turn(bench, variants):
        with bench.server() as server:
            server.call("PUT", QUEUE, config)
            report = bench.load(server, "push", jobs_per_request=batch, tenants=TENANTS,
                                connections=PUSH_CONNECTIONS, **bench.timed())
            if config:
                expect_answers(server, "on_enqueue", report["all_jobs"],
                               remembered=suffix != "_called")
        if not suffix:
            values[f"{key}_host"] = report["host_cpu_seconds"] / report["all_jobs"] * 1e6
        values |= {f"{key}{suffix}": report["jobs_per_second"],
                   f"{key}_p50{suffix}": report["latency_us"]["p50"],
                   f"{key}_cpu{suffix}": cpu_us(report)}
    for suffix in ("", "_called"):
        values[f"{key}{suffix}_cost"] = values[f"{key}_cpu{suffix}"] - values[f"{key}_cpu_without"]
    return values


def fail(bench):
    jobs = int(FAIL_RATE * (FAIL_SECONDS + bench.warmup)) + FAIL_CONNECTIONS * FAIL_BATCH
    values = {}
    for suffix, config in in_turn(bench, [("", {"on_failure": GIVE_UP}), ("_without", {})]):
        with bench.server() as server:
            server.call("PUT", QUEUE, config)
            bench.load(server, "push", jobs=jobs, jobs_per_request=100, tenants=TENANTS)
            report = bench.load(server, "fail", jobs=jobs, jobs_per_request=FAIL_BATCH,
                                rate=FAIL_RATE, connections=FAIL_CONNECTIONS,
                                seconds=FAIL_SECONDS, warmup=bench.warmup)
            if config:
                expect_answers(server, "on_failure", report["all_jobs"])
        values |= {f"hooks_fail{suffix}": report["jobs_per_second"],
                   f"hooks_fail_p50{suffix}": report["latency_us"]["p50"],
                   f"hooks_fail_p99{suffix}": report["latency_us"]["p99"],
                   f"hooks_fail_cpu{suffix}": cpu_us(report)}
    return values


def beside(bench):
    """Lives in one queue while jobs of another fail."""
    values = {}
    for name, config in in_turn(bench, BESIDE):
        with bench.server() as server:
            server.call("PUT", "/v1/queues/failing", config | {"on_hook_error": "dlq"})
            report, stream = lives_beside_failures(bench, server)
            counts = server.call("GET", "/v1/queues/failing")["hooks"]["on_failure"]["failed"]
        if any(counts.values()) != (name == "stuck"):
            raise BenchError(f"the hook '{name}' failed too seldom or too often: {counts}")
        values |= {f"hooks_beside_{name}": report["jobs_per_second"],
                   f"hooks_beside_{name}_fails": stream["jobs_per_second"],
                   f"hooks_beside_{name}_host": report["host_cpu_seconds"] / report["wall_seconds"]}
    return values


def lives_beside_failures(bench, server):
    seconds = bench.seconds + bench.warmup + STREAM_SPARE_SECONDS
    failing = {"queue": "failing", "jobs": int(STREAM_RATE * seconds) + STREAM_CONNECTIONS}
    bench.load(server, "push", tenants=TENANTS, jobs_per_request=100, **failing)
    stream = bench.start_load(server, "fail", rate=STREAM_RATE, connections=STREAM_CONNECTIONS,
                              seconds=seconds, **failing)
    try:
        report = bench.load(server, "lifecycle", beside=[stream.pid], **bench.timed())
        return report, finish_json(stream)
    finally:
        end(stream)


def expect_answers(server, hook, least, remembered=False):
    """That it was the hook that was measured, or its answers."""
    counts = server.call("GET", QUEUE)["hooks"][hook]
    if counts["succeeded"] < least or any(counts["failed"].values()):
        raise BenchError(f"{hook} should have answered {least:,} times: {counts}")
    if (counts["remembered"] > least / 2) != remembered:
        raise BenchError(f"{hook} was called too often, or too seldom: {counts}")
