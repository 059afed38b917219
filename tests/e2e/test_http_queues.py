"""Queues over HTTP: their config, their limits, their counts, pause and deletion."""

import time

import pytest

from background import in_background
from reprise_http import Client
from times import assert_close, duration_seconds
from waiting import eventually

DEFAULT_CONFIG = {"lease": "30s", "ttl": None, "retry": {"attempts": 0, "cooldown": "0s"},
                  "fetch": {"retry_share": 0.2, "retry_in_flight": None},
                  "concurrency": None, "concurrency_per_key": None, "breaker": None,
                  "max_jobs": None, "max_bytes": None, "key_window": "1d",
                  "dead_letter_queue": None, "keep_dead": None, "max_dead": None,
                  "keep_completed": None, "on_dead_webhook": None, "on_enqueue": None,
                  "on_failure": None, "on_hook_error": "retry", "hook_timeout_ms": None,
                  "hook_memory_bytes": None, "vars": [], "defaults": None}
ZERO_TOTALS = dict.fromkeys(["pushed", "duplicates", "claimed", "completed", "failed", "released",
                             "lease_expired", "expired", "died", "dropped", "corrupt", "moved_in",
                             "moved_out", "claimed_retry", "retried", "purged", "dead_expired",
                             "dead_evicted"], 0)
ZERO_LANES = {"fresh": 0, "retry": 0, "retry_in_flight": 0, "retry_credit": 0,
              "retries_by_failures": dict.fromkeys([*map(str, range(1, 10)), "10+"], 0)}
ZERO_KEYS = {"active": 0, "top": [],
             "other": {"pending": 0, "active": 0, "delivered": 0, "share": 0}}
ZERO_STATS = {"scheduled": 0, "pending": 0, "active": 0, "failed": 0, "dead": 0, "completed": 0,
              "bytes": 0, "oldest_pending_age": None, "waiting_claims": 0,
              "completed_kept": 0, "lanes": ZERO_LANES, "keys": ZERO_KEYS,
              "rates": {"push": 0.0, "claim": 0.0, "completion": 0.0, "failure": 0.0},
              "totals": ZERO_TOTALS}


def test_a_new_queue_has_the_documented_shape_and_defaults(absent_queue):
    shown = absent_queue.create()
    assert_close(shown.pop("created_at"), time.time())
    assert shown == {"name": "jobs", "namespace": absent_queue.namespace, "paused": False,
                     "config": DEFAULT_CONFIG, "hooks": {}, "breaker": None,
                     "stats": ZERO_STATS}


@pytest.mark.parametrize("body", [None, b"", b"{}"])
def test_put_without_a_config_takes_all_defaults(absent_queue, body):
    assert absent_queue.client.request("PUT", absent_queue.path(), body).status == 201
    assert absent_queue.show()["config"] == DEFAULT_CONFIG


def test_put_on_an_existing_queue_replaces_the_config_as_a_whole(absent_queue):
    first = absent_queue.create(lease="5s", max_jobs=7)
    absent_queue.push(1, 2)
    second = absent_queue.create(status=200, ttl="1h")
    assert second["config"] == DEFAULT_CONFIG | {"ttl": "1h"}
    assert second["created_at"] == first["created_at"]
    assert absent_queue.counts() == {"pending": 2}


def test_if_none_match_refuses_an_existing_queue_and_leaves_it_alone(absent_queue):
    def put(config):
        return absent_queue.client.request("PUT", absent_queue.path(), config,
                                           {"If-None-Match": "*"})
    assert put({"lease": "5s"}).status == 201
    reply = put({"lease": "9s"})
    assert (reply.status, reply.code) == (409, "queue_exists")
    assert absent_queue.show()["config"]["lease"] == "5s"


def test_of_many_at_once_only_one_makes_the_queue(absent_queue):
    def put():
        own = Client(absent_queue.client.port)
        return own.request("PUT", absent_queue.path(), {}, {"If-None-Match": "*"}).status
    statuses = [future.result(10) for future in [in_background(put) for _ in range(10)]]
    assert sorted(statuses) == [201] + [409] * 9


def test_pushes_that_create_the_queue_at_once_all_succeed(absent_queue):
    def push():
        own = absent_queue.through(Client(absent_queue.client.port))
        return own.push_jobs([{"payload": 1}], create=True)[0]["status"]
    statuses = [future.result(10) for future in [in_background(push) for _ in range(10)]]
    assert statuses == ["pushed"] * 10 and absent_queue.counts() == {"pending": 10}


def test_patch_changes_only_what_it_names_and_null_restores_the_default(absent_queue):
    absent_queue.create(lease="5s", ttl="1h", max_jobs=7, retry={"attempts": 3, "cooldown": "2s"})
    changed = absent_queue.patch(max_jobs=9, ttl=None)["config"]
    assert changed == DEFAULT_CONFIG | {"lease": "5s", "max_jobs": 9,
                                        "retry": {"attempts": 3, "cooldown": "2s"}}
    assert absent_queue.patch(lease=None, retry=None, max_jobs=None)["config"] == DEFAULT_CONFIG


FAILURE_CONFIG = {"retry": {"max_retries": 4, "backoff": {"base": "1s", "factor": 2, "max": "10m",
                                                          "jitter": 0.5}},
                  "fetch": {"retry_share": 0.5, "retry_in_flight": 3}, "dead_letter_queue": "graves",
                  "keep_dead": "7d", "max_dead": 1000, "keep_completed": "1h",
                  "on_dead_webhook": "http://127.0.0.1:9/hook"}


def test_what_becomes_of_failures_is_kept_as_it_was_given(absent_queue):
    assert absent_queue.create(**FAILURE_CONFIG)["config"] == DEFAULT_CONFIG | FAILURE_CONFIG
    assert absent_queue.create(status=200, **FAILURE_CONFIG)["config"] == (
        DEFAULT_CONFIG | FAILURE_CONFIG), "a config can be given back as it was shown"


@pytest.mark.parametrize("field", FAILURE_CONFIG)
def test_null_restores_each_default_and_leaves_the_others(absent_queue, field):
    absent_queue.create(**FAILURE_CONFIG)
    assert absent_queue.patch(**{field: None})["config"] == (
        DEFAULT_CONFIG | FAILURE_CONFIG | {field: DEFAULT_CONFIG[field]})


DEFAULT_BREAKER = {"failure_rate": 0.5, "window": "1m", "min": 20, "pause": "30s", "canaries": 1}


def test_concurrency_is_kept_as_it_was_given(absent_queue):
    given = {"concurrency": 50, "concurrency_per_key": 5}
    assert absent_queue.create(**given)["config"] == DEFAULT_CONFIG | given
    assert absent_queue.patch(concurrency=None)["config"] == DEFAULT_CONFIG | {
        "concurrency_per_key": 5}


def test_a_breaker_is_replaced_as_a_whole(absent_queue):
    given = {"failure_rate": 0.9, "window": "5m", "min": 7, "pause": "10s", "canaries": 3}
    assert absent_queue.create(breaker=given)["config"]["breaker"] == given
    assert absent_queue.patch(lease="1s")["config"]["breaker"] == given
    assert absent_queue.patch(breaker={"min": 8})["config"]["breaker"] == (
        DEFAULT_BREAKER | {"min": 8})
    assert absent_queue.patch(breaker={})["config"]["breaker"] == DEFAULT_BREAKER
    assert absent_queue.patch(breaker=None)["config"]["breaker"] is None


def test_a_queue_with_a_breaker_tells_its_state(absent_queue):
    shown = absent_queue.create(breaker={"min": 1000})
    closed = {"state": "closed", "open_until": None, "opened": 0, "spared": 0, "failure_rate": 0,
              "ended": 0, "canaries_out": 0}
    assert shown["breaker"] == closed
    absent_queue.push(1, 2)
    absent_queue.client.ack(absent_queue.claim_one())
    absent_queue.client.fail(absent_queue.claim_one())
    assert absent_queue.show()["breaker"] == closed | {"failure_rate": 0.5, "ended": 2}
    assert absent_queue.patch(breaker=None)["breaker"] is None


def test_the_keys_that_have_jobs_are_listed(queue):
    queue.push_jobs([{"fairness_key": "acme", "weight": 3}] * 3 + [{}])
    keys = queue.stats()["keys"]
    assert keys["active"] == 2 and keys["other"] == ZERO_KEYS["other"]
    idle = {"active": 0, "delivered": 0, "share": 0}
    assert keys["top"] == [{"key": "acme", "pending": 3, "weight": 3} | idle,
                           {"key": "default", "pending": 1, "weight": 1} | idle]
    for job in queue.claim(4):
        queue.client.ack(job)
    keys = queue.stats()["keys"]
    assert keys["active"] == 0
    gone = {"pending": 0, "active": 0, "weight": None}
    assert keys["top"] == [{"key": "acme", "delivered": 3, "share": 0.75} | gone,
                           {"key": "default", "delivered": 1, "share": 0.25} | gone]


@pytest.mark.parametrize("method, suffix, body", [
    ("GET", "", None), ("PATCH", "", {"lease": "1s"}), ("DELETE", "", None),
    ("POST", "/pause", None), ("POST", "/resume", None),
    ("POST", "/push", {"jobs": [{"payload": 1}]}), ("POST", "/claim", {}),
    ("GET", "/jobs", None), ("GET", "/jobs/7ZK3M9QAX2B4C", None),
    ("DELETE", "/jobs/7ZK3M9QAX2B4C", None),
])
def test_an_unknown_queue_is_not_found_and_is_not_made(absent_queue, method, suffix, body):
    refused = absent_queue.client.refused(method, absent_queue.path(suffix), body)
    assert refused == (404, "queue_not_found")
    assert absent_queue.client.refused("GET", absent_queue.path()) == (404, "queue_not_found")


def test_a_queue_of_a_similar_name_is_suggested(queue):
    queue.sibling("orders").create()
    reply = queue.client.request("GET", queue.sibling("ordrs").path())
    assert reply.code == "queue_not_found" and "orders" in reply.message


@pytest.mark.parametrize("given, seconds", [
    ("1500ms", 1.5), ("90s", 90), ("1h30m", 5400), ("2h", 7200), ("7d", 604800),
    ("30 seconds", 30), ("45", 45), (45, 45), (0.5, 0.5)])
def test_durations_are_read_in_every_form(absent_queue, given, seconds):
    shown = absent_queue.create(lease=given)["config"]["lease"]
    assert duration_seconds(shown) == seconds


def test_the_list_is_sorted_by_name_and_confined_to_its_namespace(api, namespace):
    for name in ("zebra", "Apple", "m.1", "m-2", "10"):
        api.queue(name, namespace).create()
    api.queue("elsewhere", namespace + "-other").create()
    listed = api.get(f"/v1/queues?namespace={namespace}")["queues"]
    names = [each["name"] for each in listed]
    assert names == sorted(names) and set(names) == {"zebra", "Apple", "m.1", "m-2", "10"}
    assert listed[names.index("zebra")] == api.queue("zebra", namespace).show()


def test_the_list_of_all_namespaces_and_the_default_one(api, namespace):
    # Other tests share this server and its default namespace: the names must be this test's own.
    here, elsewhere = namespace + "-here", namespace + "-elsewhere"
    api.queue(here).create()
    api.queue(elsewhere, namespace).create()
    everywhere = {(each["namespace"], each["name"])
                  for each in api.get("/v1/queues?namespace=*")["queues"]}
    assert {("default", here), (namespace, elsewhere)} <= everywhere
    default = {each["name"] for each in api.get("/v1/queues")["queues"]}
    assert here in default and elsewhere not in default


def test_queues_of_one_name_in_two_namespaces_share_nothing(api, namespace):
    here, there = api.queue("q", namespace).created(), api.queue("q", namespace + "-2").created()
    job_id = here.push_one("mine", key="k")
    assert there.claim() == [] and there.status_of(job_id) is None
    assert there.push_one("yours", key="k") != job_id
    there.delete()
    assert here.claim_one()["payload"] == "mine"


def test_deletion_takes_jobs_leases_and_keys_with_it(queue):
    queue.push(1, 2, 3)
    queue.push_one(4, key="once")
    leased = queue.claim_one()
    queue.client.fail(queue.claim_one(), final=True)
    assert queue.delete() == {"deleted": True, "name": "jobs", "namespace": queue.namespace,
                              "jobs": 4}
    assert queue.client.refused("GET", queue.path()) == (404, "queue_not_found")
    assert queue.client.ack(leased, status=409)["error"]["code"] == "lease_lost"

    queue.create()
    assert queue.stats() == ZERO_STATS and queue.jobs() == []
    [again] = queue.push_jobs([{"payload": 5, "key": "once"}])
    assert again["status"] == "pushed"


def test_a_paused_queue_takes_pushes_and_acks_and_hands_out_nothing(queue):
    queue.push(1)
    leased = queue.claim_one()
    assert queue.pause()["paused"] is True
    queue.push(2)
    assert queue.claim() == []
    assert queue.client.ack(leased)["status"] == "acked"
    assert queue.resume()["paused"] is False
    assert queue.claim_one()["payload"] == 2


def test_pause_and_resume_may_be_repeated(queue):
    assert queue.pause() == queue.pause() and queue.show()["paused"] is True
    assert queue.resume() == queue.resume() and queue.show()["paused"] is False


def test_a_full_queue_refuses_pushes_until_a_job_is_gone(absent_queue):
    queue = absent_queue.created(max_jobs=2)
    statuses = [r["status"] for r in queue.push_jobs([{"payload": n} for n in range(3)])]
    assert statuses == ["pushed", "pushed", "rejected"]
    [refused] = queue.push_jobs([{"payload": 9}], status=429)
    assert refused["error"]["code"] == "queue_full"
    queue.client.ack(queue.claim_one())
    queue.push(10)
    assert queue.counts() == {"pending": 2}


def test_dead_jobs_leave_room_in_a_full_queue(absent_queue):
    queue = absent_queue.created(max_jobs=1)
    queue.push(1)
    queue.client.fail(queue.claim_one(), final=True)
    queue.push(2)
    assert queue.counts() == {"pending": 1, "dead": 1}


def test_a_queue_full_of_bytes_refuses_pushes(absent_queue):
    queue = absent_queue.created(max_bytes=1000)
    queue.push("x" * 600)
    [refused] = queue.push_jobs([{"payload": "y" * 600}], status=429)
    assert refused["error"]["code"] == "queue_bytes_full"
    queue.push("z" * 100)
    assert queue.counts() == {"pending": 2}


def test_bytes_counts_payloads_headers_and_keys_of_jobs_that_are_not_dead(queue):
    queue.push_jobs([{"payload_base64": "AAECAwQ=", "headers": {"ab": "cde"}, "key": "four"}])
    assert queue.stats()["bytes"] == 5 + 5 + 4
    queue.push("x" * 8)
    assert queue.stats()["bytes"] == 14 + len('"xxxxxxxx"')
    queue.client.fail(queue.claim_one(), final=True)
    assert queue.stats()["bytes"] == 10
    queue.client.ack(queue.claim_one())
    assert queue.stats()["bytes"] == 0


def test_a_changed_limit_counts_from_the_next_push_on(queue):
    queue.push(1, 2, 3)
    queue.patch(max_jobs=2)
    assert queue.counts() == {"pending": 3}
    assert queue.push_jobs([{"payload": 4}], status=429)[0]["error"]["code"] == "queue_full"
    queue.patch(max_jobs=None)
    queue.push(4)


def test_a_changed_retry_policy_counts_from_the_next_failure_on(queue):
    queue.push(1)
    leased = queue.claim_one()
    queue.patch(retry={"attempts": 2, "cooldown": "0s"})
    assert queue.client.fail(leased)["status"] == "retrying"
    again = eventually(queue.claim)[0]
    queue.patch(retry={"attempts": 3, "cooldown": "0s"})
    assert queue.client.fail(again)["status"] == "retrying"


def test_a_changed_lease_counts_from_the_next_claim_on(queue):
    queue.push(1, 2)
    before = queue.claim_one()
    queue.patch(lease="1h")
    assert_close(before["lease_expires_at"], time.time() + 30)
    assert queue.job(before["id"])["lease_expires_at"] == before["lease_expires_at"]
    assert_close(queue.claim_one()["lease_expires_at"], time.time() + 3600)


def test_every_status_and_total_is_counted(absent_queue):
    queue = absent_queue.created(retry={"attempts": 5, "cooldown": "1h"})
    queue.push_one("later", delay="1h")
    queue.push_jobs([{"payload": n, "key": "dup"} for n in range(2)])
    queue.push(1, 2, 3, 4, 5)
    acked, failed, dead, released, held = queue.claim(5)
    api = queue.client
    api.ack(acked)
    api.fail(failed)
    api.fail(dead, final=True)
    api.release(released, delay="1h")
    queue.drop(queue.jobs(status="pending")[0]["id"])
    assert held and queue.counts() == {"scheduled": 2, "active": 1, "failed": 1, "dead": 1}
    assert queue.stats()["completed"] == 1
    assert queue.totals() == {"pushed": 7, "duplicates": 1, "claimed": 5, "completed": 1,
                              "failed": 2, "released": 1, "died": 1, "dropped": 1}


def test_expired_leases_and_expired_jobs_are_counted(absent_queue):
    queue = absent_queue.created(retry={"attempts": 9, "cooldown": "1h"})
    queue.push(1)
    queue.claim_one(lease="100ms")
    queue.push_one(2, ttl="100ms", delay="1h")
    eventually(lambda: queue.counts() == {"failed": 1, "dead": 1}, "both to expire")
    totals = queue.totals()
    assert (totals["lease_expired"], totals["expired"], totals["died"]) == (1, 1, 1)


def test_the_age_of_the_oldest_pending_job_grows_and_ends_with_it(queue):
    queue.push(1)
    first = queue.stats()["oldest_pending_age"]
    assert 0 <= first < 5
    eventually(lambda: queue.stats()["oldest_pending_age"] > first, "a greater age")
    queue.claim_one()
    assert queue.stats()["oldest_pending_age"] is None


def test_rates_rise_with_work(absent_queue):
    queue = absent_queue.created(retry={"attempts": 9, "cooldown": "0s"})
    queue.push(*range(120))
    jobs = queue.claim(80)
    queue.client.ack_all(jobs[:60])
    queue.client.leases("fail", [{"token": job["token"]} for job in jobs[60:]])
    rates = eventually(lambda: (lambda r: all(r.values()) and r)(queue.stats()["rates"]))
    assert rates["push"] > rates["failure"] > 0


def test_waiting_claims_are_none_without_any(queue):
    assert queue.stats()["waiting_claims"] == 0
