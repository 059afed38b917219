"""Retries and purges by filter: how many may run, and what is left of them when they are over."""

from dead_jobs import bury, bury_many

RUNNING_MAX = 100
SLOW = {"filter": {}, "rate": "1/h"}


def purge(queue, **body):
    return queue.client.request("POST", queue.path("/purge"), SLOW | body)


def test_so_many_run_at_once_and_no_more(server):
    queue = server.client().queue("jobs").created()
    bury(queue, "a")
    bury_many(queue, 3 * RUNNING_MAX, "b")
    started = [purge(queue, filter={"error": "b"}) for _ in range(RUNNING_MAX)]
    assert {reply.status for reply in started} == {202}
    refused = purge(queue)
    assert (refused.status, refused.code) == (429, "too_many_operations")
    assert refused.headers["retry-after"] == "1"

    # What ends by itself or by hand makes room. By ids nothing has to run.
    dead = queue.jobs(status="dead", error="a")[0]["id"]
    assert queue.client.call("POST", queue.path("/purge"), {"ids": [dead]})["purged"] == 1
    first = started[0].json()["operation"]["id"]
    assert queue.client.call("DELETE", f"/v1/operations/{first}")["state"] == "cancelled"
    assert purge(queue).status == 202
    assert purge(queue).status == 429
