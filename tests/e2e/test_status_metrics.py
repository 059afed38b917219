"""Status, health and metrics tell what is, in the documented shapes."""

import json
import time

import pytest

from dead_jobs import bury
from metrics_text import read_metrics
from raw_http import RawConnection, message
from times import assert_close, seconds_since_1970
from waiting import eventually


@pytest.fixture
def busy(server):
    """A server of its own whose queue `q` has gone through everything once."""
    client = server.client()
    queue = client.queue("q", "ns").created(retry={"attempts": 5, "cooldown": "1h"})
    queue.push(*range(6))
    queue.push_one("later", delay="1h")
    queue.push_jobs([{"key": "k"}, {"key": "k"}])
    acked, failed, dead, released, dropped = queue.claim(5)
    client.ack(acked)
    client.fail(failed)
    client.fail(dead, final=True)
    client.release(released)
    queue.drop(dropped["id"])
    queue.claim_one()
    server.queue = queue
    return server


def test_health_and_readiness(api):
    assert api.get("/healthz") == {"status": "ok"}
    assert api.get("/readyz") == {"status": "ready"}


def test_the_root_says_where_to_go(api):
    reply = api.request("GET", "/")
    assert reply.status == 200 and b"/openapi.json" in reply.body


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/",
                                  "/v1/status", "/v1/queues"])
def test_head_answers_like_get_without_a_body(shared_server, path):
    with RawConnection(shared_server.port) as connection:
        connection.send(message("HEAD", path))
        head = connection.reply("HEAD")
        assert head.status == 200
        # If a body followed, it would be read as the beginning of this reply.
        assert connection.send(message("GET", "/healthz")).reply().json() == {"status": "ok"}


def test_status_has_the_documented_shape(busy):
    status = busy.client().get("/v1/status")
    assert set(status) == {"version", "started_at", "uptime", "durability", "storage",
                           "data_bytes", "disk_free_bytes", "disk_low", "queues", "jobs",
                           "waiting_claims", "connections", "operations", "webhooks", "workers"}
    assert status["workers"] == {"projects": 0, "running": 0, "active": 0}
    assert status["jobs"] == {"scheduled": 1, "pending": 2, "active": 1, "failed": 1, "dead": 1}
    assert (status["queues"], status["waiting_claims"], status["disk_low"]) == (1, 0, False)
    assert (status["operations"], status["webhooks"]) == ([], {"pending": 0})
    assert (status["durability"], status["storage"]) == ("sync", "rocksdb")
    assert status["data_bytes"] > 0 and status["disk_free_bytes"] > 0
    assert status["connections"] >= 1
    assert_close(status["started_at"], time.time() - status["uptime"])


def test_uptime_grows_and_the_start_stays(api):
    first = api.get("/v1/status")
    second = eventually(lambda: (lambda s: s["uptime"] > first["uptime"] and s)(
        api.get("/v1/status")))
    assert second["started_at"] == first["started_at"]
    assert seconds_since_1970(first["started_at"]) < time.time()


@pytest.mark.parametrize("mode", ["sync", "interval", "none"])
def test_the_durability_mode_shows(start_server, mode):
    server = start_server("--durability", mode)
    client = server.client()
    assert client.get("/v1/status")["durability"] == mode
    assert read_metrics(client).value("reprise_storage_info", storage="rocksdb",
                                      durability=mode) == 1


def test_jobs_are_counted_by_status(busy):
    metrics = read_metrics(busy.client())
    counts = {status: metrics.value("reprise_jobs", namespace="ns", queue="q", status=status)
              for status in ("scheduled", "pending", "active", "failed", "dead")}
    assert counts == {"scheduled": 1, "pending": 2, "active": 1, "failed": 1, "dead": 1}


def test_totals_equal_those_of_the_queue(busy):
    metrics = read_metrics(busy.client())
    totals = busy.queue.stats()["totals"]
    assert totals == {"pushed": 8, "duplicates": 1, "claimed": 6, "completed": 1, "failed": 2,
                      "released": 1, "lease_expired": 0, "expired": 0, "died": 1, "dropped": 1,
                      "corrupt": 0, "moved_in": 0, "moved_out": 0, "claimed_retry": 0, "retried": 0,
                      "purged": 0, "dead_expired": 0, "dead_evicted": 0}
    by_lane = {lane: metrics.value("reprise_claimed_by_lane_total", namespace="ns", queue="q",
                                   lane=lane) for lane in ("fresh", "retry")}
    assert by_lane == {"fresh": 6, "retry": totals.pop("claimed_retry")}
    for name, count in totals.items():
        assert metrics.value(f"reprise_{name}_total", namespace="ns", queue="q") == count, name


def test_what_is_done_to_the_dead_is_counted(server):
    client = server.client()
    graves = client.queue("graves", "ns").created()
    queue = client.queue("q", "ns").created()
    retried, purged, _ = bury(queue, "a", "b", "c")
    client.call("POST", queue.path("/retry"), {"ids": [retried]})
    client.call("POST", queue.path("/purge"), {"ids": [purged]})
    queue.patch(max_dead=0)
    eventually(lambda: queue.counts() == {"pending": 1}, "the last dead job to be deleted")
    queue.patch(keep_dead="50ms", max_dead=None)
    client.fail(queue.claim_one(), final=True)
    eventually(lambda: queue.counts() == {}, "that job too")
    queue.patch(dead_letter_queue="graves", keep_dead=None)
    bury(queue, "d")

    totals, metrics = queue.stats()["totals"], read_metrics(client)
    assert {name: totals[name] for name in ("died", "retried", "purged", "dead_evicted",
                                            "dead_expired", "moved_out")} == {
        "died": 5, "retried": 1, "purged": 1, "dead_evicted": 1, "dead_expired": 1, "moved_out": 1}
    for name in ("died", "retried", "purged", "dead_evicted", "dead_expired", "moved_out"):
        assert metrics.value(f"reprise_{name}_total", namespace="ns", queue="q") == totals[name]
    assert metrics.value("reprise_moved_in_total", namespace="ns", queue="graves") == 1
    assert graves.counts() == {"pending": 1}


def test_the_retry_lane_shows(server):
    client = server.client()
    queue = client.queue("q", "ns").created(retry={"attempts": 3, "cooldown": "0s"},
                                            fetch={"retry_share": 0.25})
    queue.push(1, 2, 3)
    client.fail(queue.claim_one())
    eventually(lambda: queue.counts() == {"pending": 3}, "the failed job to be due")
    fresh, cooling = queue.claim(2)
    queue.patch(retry={"attempts": 3, "cooldown": "1h"})
    client.fail(cooling)
    [retry] = queue.claim(lane="retry")
    assert (fresh["failures"], cooling["failures"], retry["failures"]) == (0, 0, 1)

    lanes, metrics = queue.stats()["lanes"], read_metrics(client)
    assert lanes["retries_by_failures"] == dict.fromkeys(lanes["retries_by_failures"], 0) | {"1": 1}
    assert (lanes["fresh"], lanes["retry"], lanes["retry_in_flight"]) == (0, 0, 1)
    assert lanes["retry_credit"] == 0.5
    labels = {"namespace": "ns", "queue": "q"}
    assert metrics.value("reprise_retry_backlog", failures="1", **labels) == 1
    assert metrics.value("reprise_retry_backlog", failures="10+", **labels) == 0
    assert metrics.value("reprise_retry_in_flight", **labels) == 1
    assert metrics.value("reprise_retry_credit", **labels) == 0.5
    assert metrics.value("reprise_claimed_by_lane_total", lane="fresh", **labels) == 3
    assert metrics.value("reprise_claimed_by_lane_total", lane="retry", **labels) == 1


def test_operations_that_run_show(server):
    client = server.client()
    queue = client.queue("q", "ns").created()
    bury(queue, "a", "b")
    reply = client.request("POST", queue.path("/purge"), {"filter": {}, "rate": "1/h"})
    assert reply.status == 202
    [running] = client.get("/v1/status")["operations"]
    assert (running["id"], running["state"]) == (reply.json()["operation"]["id"], "running")
    assert read_metrics(client).value("reprise_operations_running") == 1
    client.request("DELETE", f"/v1/operations/{running['id']}")
    assert client.get("/v1/status")["operations"] == []
    assert read_metrics(client).value("reprise_operations_running") == 0
    assert read_metrics(client).value("reprise_http_requests_total", status="202",
                                      route="POST /v1/queues/{queue}/purge") == 1


def test_gauges_equal_those_of_the_queue(busy):
    metrics, stats = read_metrics(busy.client()), busy.queue.stats()
    assert metrics.value("reprise_queue_bytes", namespace="ns", queue="q") == stats["bytes"]
    assert metrics.value("reprise_waiting_claims", namespace="ns", queue="q") == 0
    age = metrics.value("reprise_oldest_pending_age_seconds", namespace="ns", queue="q")
    assert 0 <= age <= stats["oldest_pending_age"]
    assert metrics.value("reprise_push_rate", namespace="ns", queue="q") >= 0


def test_the_age_is_zero_when_nothing_is_pending(server):
    client = server.client()
    client.queue("q").create()
    assert read_metrics(client).value("reprise_oldest_pending_age_seconds", namespace="default",
                                      queue="q") == 0


@pytest.mark.parametrize("name", ["reprise_commit_seconds", "reprise_commit_batch_commands",
                                  "reprise_commit_batch_bytes"])
def test_histograms_add_up(busy, name):
    metrics = read_metrics(busy.client())
    assert metrics.types[name] == "histogram"
    buckets = sorted((float(dict(labels)["le"]), value)
                     for (sample, labels), value in metrics.samples.items()
                     if sample == f"{name}_bucket")
    counts = [count for _, count in buckets]
    assert counts == sorted(counts) and buckets[-1][0] == float("inf")
    assert counts[-1] == metrics.value(f"{name}_count") > 0
    assert metrics.value(f"{name}_sum") > 0


def test_requests_are_counted_by_route_and_status(server):
    client = server.client()
    client.queue("q").create()
    for _ in range(3):
        client.get("/v1/queues/q")
    client.request("GET", "/v1/queues/absent")
    metrics = read_metrics(client)
    routes = {dict(labels)["route"] for name, labels in metrics.samples
              if name == "reprise_http_requests_total"}
    assert not any("absent" in route or "/q" == route[-2:] for route in routes), routes
    assert metrics.sum("reprise_http_requests_total", status="404") == 1
    assert metrics.sum("reprise_http_requests_total", status="201") == 1


def test_requests_for_random_paths_make_no_new_series(server):
    client = server.client()
    for n in range(50):
        client.request("GET", f"/nowhere/{n}")
    metrics = read_metrics(client)
    series = [key for key in metrics.samples if key[0] == "reprise_http_requests_total"]
    assert len(series) < 10


def test_process_metrics_are_true(server):
    metrics = read_metrics(server.client())
    resident = metrics.value("process_resident_memory_bytes")
    assert 0.5 < resident / server.resident_bytes() < 2
    assert abs(metrics.value("process_start_time_seconds") - time.time()) < 60
    version = server.client().get("/v1/status")["version"]
    assert metrics.value("reprise_build_info", version=version) == 1


def test_queues_beyond_a_thousand_are_summed_under_other(server):
    client = server.client()
    for n in range(1010):
        client.queue(f"q{n:04}").push_jobs([{"payload": n}], create=True)
    metrics = read_metrics(client)
    assert metrics.value("reprise_jobs", namespace="default", queue="q0999", status="pending") == 1
    assert metrics.value("reprise_jobs", namespace="default", queue="q1000",
                         status="pending") is None
    assert metrics.sum("reprise_jobs", queue="_other", status="pending") == 10
    assert metrics.sum("reprise_pushed_total") == 1010


def test_openapi_is_json(api):
    reply = api.request("GET", "/openapi.json")
    assert reply.headers["content-type"].startswith("application/json")
    assert json.loads(reply.body)["openapi"].startswith("3.1")
