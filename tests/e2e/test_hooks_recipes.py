"""Every script in docs/hooks.md does what the page says.

The scripts are taken from the page, and each needs an expectation here.
"""

import re
from pathlib import Path

import pytest

from hooking import RuntimeConfig, decide, fail_one

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hooks.md"
BLOCKS = re.findall(r"^```lua\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def after(least, most=None):
    """A retry after so many milliseconds."""
    return ("retry", least, least if most is None else most)


def dlq(reason):
    return ("dlq", reason)


def attributes(fairness_key="default", weight=1, throttle_keys=()):
    return (fairness_key, weight, list(throttle_keys))


def reject(text):
    return ("reject", text)


ERROR = ("hook_error", "error")

# Each recipe by words that only it has: the runtime values it is tried with, and samples with what
# is to be decided.
RECIPES = {
    '"invalid card"': ({}, [
        ({"error": "refused: invalid card (4711)"}, dlq("permanent")),
        ({"error": "invalid-card"}, after(800, 1200)),
        ({"error": "timeout", "failures": 1}, after(800, 1200)),
        ({"error": "timeout", "failures": 4}, after(6400, 9600)),
        ({"error": "timeout", "failures": 60}, after(480000, 600000)),
        ({}, after(800, 1200)),
    ]),
    "ValidationError": ({}, [
        ({"error_type": "ValidationError", "failures": 1}, dlq("ValidationError")),
        ({"error_type": "NotFound"}, dlq("NotFound")),
        ({"error_type": "Timeout", "failures": 1}, after(800, 1200)),
        ({"error_type": "Timeout", "failures": 3}, after(3200, 4800)),
        ({"failures": 100}, after(480000, 600000)),
    ]),
    '"attempts." .. tenant': ({"attempts.acme": "10", "attempts.odd": "many"}, [
        ({"headers": {"tenant": "acme"}, "failures": 9}, after(2000)),
        ({"headers": {"tenant": "acme"}, "failures": 10}, dlq("gave up for acme")),
        ({"headers": {"tenant": "acme"}, "failures": 11}, dlq("gave up for acme")),
        ({"headers": {"tenant": "other"}, "failures": 4}, after(2000)),
        ({"headers": {"tenant": "other"}, "failures": 5}, dlq("gave up for other")),
        ({"headers": {"tenant": "odd"}, "failures": 5}, dlq("gave up for odd")),
        ({"failures": 5}, dlq("gave up for default")),
        ({"failures": 1}, after(2000)),
    ]),
    "Retry%-After": ({}, [
        ({"error": "429 Too Many Requests\nRetry-After: 30\n"}, after(30000)),
        ({"error": "Retry-After: 0"}, after(0)),
        ({"error": "Retry-After: soon", "failures": 1}, after(1000)),
        ({"error": "RetryXAfter: 30", "failures": 3}, after(4000)),
        ({"failures": 40}, after(3600000)),
    ]),
    "order.express": ({}, [
        ({"payload": {"express": True}, "failures": 1}, after(5000)),
        ({"payload": {"express": True}, "failures": 2}, dlq("too late")),
        ({"payload": {"express": False}, "failures": 9}, after(5000)),
        ({"payload": {}, "failures": 9}, after(5000)),
        ({"payload_base64": "AAEC"}, ERROR),
    ]),
    '"payments.down"': ({}, [
        ({"failures": 1}, after(500)), ({"failures": 3}, after(2000)),
        ({"failures": 30}, after(30000)),
    ]),
    'msg.headers.plan == "gold"': ({}, [
        ({"headers": {"tenant": "acme", "plan": "gold"}}, attributes("acme", 10)),
        ({"headers": {"tenant": "acme", "plan": "iron"}}, attributes("acme", 1)),
        ({"headers": {"plan": "gold"}}, attributes("default", 10)),
        ({}, attributes()),
    ]),
    '"payload beyond 64 KiB"': ({}, [
        ({"payload": {"id": 1, "customer": "c7"}},
         attributes(throttle_keys=["api", "customer:c7"])),
        ({"payload": {"id": 1, "customer": 7}}, attributes(throttle_keys=["api", "customer:7"])),
        ({"payload": {"id": 1}}, attributes(throttle_keys=["api", "customer:none"])),
        ({"payload": {"customer": "c7"}}, reject("an order needs an id")),
        ({"payload": [1]}, reject("an order needs an id")),
        ({"payload": "text"}, reject("an order needs an id")),
        ({"payload": 5}, reject("an order needs an id")),
        ({"payload": None}, reject("an order needs an id")),
        ({"payload_base64": "AAEC"}, reject("an order needs an id")),
        ({"payload": "x" * 65534}, reject("an order needs an id")),  # 65536 bytes with its quotes
        ({"payload": "x" * 65535}, reject("payload beyond 64 KiB")),
        ({"payload": {"id": 1, "text": "x" * 70000}}, reject("payload beyond 64 KiB")),
        ({"payload": "x" * 1000000}, reject("payload beyond 64 KiB")),
    ]),
}


def block_of(words):
    [block] = [block for block in BLOCKS if words in block]
    return block


def hook_in(block):
    [name] = re.findall(r"^function (on_\w+)\(", block, re.MULTILINE)
    return name


def outcome(result, expected):
    """What was decided, in the words of the expectation."""
    if result["status"] != "decided":
        return (result["status"], result["fault"])
    if "action" not in result:
        if result.get("reject") is not None:
            return reject(result["reject"])
        return (result["fairness_key"], result["weight"], result["throttle_keys"])
    if result["action"] == "dlq":
        return dlq(result["reason"])
    delay = result.get("delay_ms", 0)
    within = expected[0] == "retry" and expected[1] <= delay <= expected[2]
    return expected if within else ("retry", delay)


def in_words(part):
    return repr(part)[:50]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_every_script_of_the_page_has_an_expectation(block):
    assert [words for words in RECIPES if words in block] != [], f"nobody tests this:\n{block}"


@pytest.mark.parametrize("words", RECIPES)
def test_every_expectation_has_its_script(words):
    assert len([block for block in BLOCKS if words in block]) == 1


@pytest.mark.parametrize("words, sample, expected",
                         [(words, sample, expected) for words, (_, samples) in RECIPES.items()
                          for sample, expected in samples], ids=in_words)
def test_a_recipe(hooked, words, sample, expected):
    """With the memory that a queue has by default."""
    queue, block = hooked(), block_of(words)
    config = RuntimeConfig(queue.client, queue.namespace)
    for key, value in RECIPES[words][0].items():
        config.set(key, value)
    result = decide(queue, block, hook_in(block), **sample)
    assert outcome(result, expected) == expected, result


def test_the_switch_for_an_outage(hooked):
    queue, block = hooked(), block_of('"payments.down"')
    config = RuntimeConfig(queue.client, queue.namespace)
    for value, expected in (("yes", 60000), ("no", 500), ("yes", 60000)):
        config.set("payments.down", value)
        assert decide(queue, block)["delay_ms"] == expected
    config.unset("payments.down")
    assert decide(queue, block)["delay_ms"] == 500


@pytest.mark.parametrize("words", RECIPES)
def test_a_queue_takes_it(hooked, words):
    block = block_of(words)
    queue = hooked(**{hook_in(block): block})
    assert queue.show()["config"][hook_in(block)] == block
    if hook_in(block) == "on_failure":
        result = fail_one(queue, {"id": 1}, error="timeout")
        assert result["status"] == "retrying", result
    else:
        queue.push({"id": 1})
    state = queue.show()["hooks"][hook_in(block)]
    assert state["succeeded"] == 1 and state["last_error"] is None


def test_jitter_spreads_the_waits(hooked):
    queue, block = hooked(), block_of('"invalid card"')
    reply = queue.client.call("POST", queue.path("/hooks/test"), {
        "on_failure": block, "samples": [{"failures": 4}] * 100})
    delays = [result["delay_ms"] for result in reply["results"]]
    assert all(6400 <= delay <= 9600 for delay in delays)
    assert len(set(delays)) > 10
