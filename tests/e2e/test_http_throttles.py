"""Throttles over HTTP: set, shown, listed and unset, durable, and refused with nothing changed."""

import time
from urllib.parse import quote

import pytest

from times import assert_close

THROTTLES_MAX = 1000


class Throttles:
    def __init__(self, client, namespace):
        self.client = client
        self.namespace = namespace

    def path(self, key=None):
        name = "" if key is None else "/" + quote(key, safe="")
        return f"/v1/throttles{name}?namespace={self.namespace}"

    def set(self, key, rate, **fields):
        return self.client.call("PUT", self.path(key), {"rate": rate, **fields})

    def show(self, key):
        return self.client.get(self.path(key))

    def unset(self, key):
        return self.client.call("DELETE", self.path(key))

    def list(self):
        return self.client.get(self.path())["throttles"]


@pytest.fixture
def throttles(api, namespace):
    return Throttles(api, namespace)


def test_one_has_the_documented_shape(throttles):
    shown = throttles.set("api", "100/s", burst=20)
    assert_close(shown.pop("updated_at"), time.time())
    assert shown == {"key": "api", "namespace": throttles.namespace, "rate": "100/s", "burst": 20,
                     "tokens": 20, "waiting": 0}
    again = throttles.show("api")
    assert_close(again.pop("updated_at"), time.time())
    assert again == shown


@pytest.mark.parametrize("rate, shown, burst", [
    ("100/s", "100/s", 100), ("90/m", "90/m", 2), ("1/h", "1/h", 1), ("10 / 30 seconds", "10/30s", 1),
])
def test_without_a_burst_it_holds_what_comes_in_a_second(throttles, rate, shown, burst):
    throttle = throttles.set("api", rate)
    assert (throttle["rate"], throttle["burst"], throttle["tokens"]) == (shown, burst, burst)


@pytest.mark.parametrize("key", ["customer:7", "a/b c", "€", "100%", "?x=1&y#z", ".", "x" * 200])
def test_any_name_that_a_job_may_give(throttles, key):
    assert throttles.set(key, "1/s")["key"] == key
    assert throttles.show(key)["key"] == key
    assert throttles.unset(key) == {"key": key, "namespace": throttles.namespace, "deleted": True}


def test_they_are_listed_by_key_each_in_its_namespace(throttles):
    for key in ("b", "a", "c"):
        throttles.set(key, "1/s")
    other = Throttles(throttles.client, throttles.namespace + "-other")
    other.set("d", "1/s")
    assert [each["key"] for each in throttles.list()] == ["a", "b", "c"]
    assert [each["key"] for each in other.list()] == ["d"]
    other.unset("d")


def test_one_that_is_not_set_is_not_found(throttles):
    missing = (404, "throttle_not_found")
    assert throttles.client.refused("GET", throttles.path("api")) == missing
    assert throttles.client.refused("DELETE", throttles.path("api")) == missing
    throttles.set("api", "1/s")
    throttles.unset("api")
    assert throttles.client.refused("GET", throttles.path("api")) == missing
    assert throttles.list() == []


BAD = [
    ({}, "invalid_request", "rate"), ({"burst": 5}, "invalid_request", "rate"),
    ({"rate": 100}, "invalid_request", "rate"),
    *[({"rate": rate}, "invalid_field", "rate")
      for rate in ("", "NaN/s", "-1/s", "0/s", "1.5/s", "100", "1/0s", "1000001/s")],
    *[({"rate": "1/s", "burst": burst}, "invalid_field", "burst")
      for burst in (0, -1, 1.5, 1000001, 2**64)],
    *[({"rate": "1/s", "burst": burst}, "invalid_request", "burst") for burst in ("5", "NaN", [])],
    ({"rate": "1/s", "tokens": 1}, "unknown_field", "tokens"),
    (b'{"rate": "1/s", "burst": NaN}', "invalid_request", ""),
]


@pytest.mark.parametrize("body, code, names", BAD)
def test_what_cannot_be_is_refused_and_changes_nothing(throttles, body, code, names):
    before = throttles.set("api", "7/m", burst=3)
    reply = throttles.client.request("PUT", throttles.path("api"), body)
    assert (reply.status, reply.code) == (400, code)
    assert names in reply.message
    after = throttles.show("api")
    assert (after["rate"], after["burst"], after["updated_at"]) == (
        "7/m", 3, before["updated_at"])


@pytest.mark.parametrize("key", ["%FF", "a%00b", "a%0Ab", "%1B", "x" * 201])
def test_a_name_that_no_throttle_has_is_refused(throttles, key):
    path = f"/v1/throttles/{key}?namespace={throttles.namespace}"
    for method, body in (("PUT", {"rate": "1/s"}), ("GET", None), ("DELETE", None)):
        assert throttles.client.refused(method, path, body) == (400, "invalid_field")


def test_more_than_a_namespace_holds(server):
    throttles = Throttles(server.client(), "full")
    for number in range(THROTTLES_MAX):
        throttles.set(f"key{number}", "1/s")
    body = {"rate": "1/s"}
    too_many = (429, "too_many_throttles")
    assert throttles.client.refused("PUT", throttles.path("one.more"), body) == too_many
    # One that is there can still be changed, and another namespace has room.
    throttles.set("key7", "2/s")
    Throttles(throttles.client, "other").set("one.more", "1/s")
    server.restart("kill")
    throttles = Throttles(server.client(), "full")
    assert len(throttles.list()) == THROTTLES_MAX
    assert throttles.show("key7")["rate"] == "2/s"
    assert throttles.client.refused("PUT", throttles.path("one.more"), body) == too_many
    throttles.unset("key8")
    throttles.set("one.more", "1/s")
