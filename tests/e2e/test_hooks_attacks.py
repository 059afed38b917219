"""Scripts of a stranger: whatever they try, they harm their own queue's hook and nothing else.

Each attack is the hook of a queue of its own, on one server for this file. It is called three
times; the calls end soon, its jobs are decided by on_hook_error (or by the script, where there was
nothing to break), a queue beside it is served as before, and a harmless script that follows in the
same queue finds nothing of it.
"""

import itertools
import json
import re
import time

import pytest

from hooking import (FAULTS, PATIENT_MS, calls_of, decide, decided, fail_many, fail_one, faults_of,
                     hook_processes, on_enqueue, on_failure, try_hook)
from metrics_text import read_metrics
from reprise_server import Server

SECONDS_FOR_THREE_CALLS = 2
MAX_HOSTS = 8
numbers = itertools.count(1)
SAFE = 'return { action = "dlq", reason = "safe" }'
HARMLESS = "function on_failure(msg) return {} end"

# What the three calls may end in. The end of a host by itself is in none of them: a script must not
# be able to crash it.
CUT = {"error", "timeout", "memory"}
INVALID = {"invalid_result"}


class Attack:
    """A script and how its calls may end: by faults, or (None) with the reason "safe"."""

    def __init__(self, body, *ends, whole=False):
        self.source = body if whole else on_failure(body)
        self.faults = set().union(*(end for end in ends if end))
        self.may_decide = None in ends
        # The time of a call is short where it is to run out, and long where it must not.
        self.limits = {} if "timeout" in self.faults else {"hook_timeout_ms": PATIENT_MS}


ATTACKS = {
    # Loops.
    "loop": Attack("while true do end", CUT),
    "goto": Attack("::again:: goto again", CUT),
    "loop in pcall": Attack("while true do pcall(function() while true do end end) end", CUT),
    "pcall in a loop": Attack("while true do pcall(error) end", CUT),
    "loop that swallows what ends it": Attack(
        "while true do local ok = pcall(function() while true do end end) "
        "if ok then return {} end end", CUT),
    "loop after a caught loop": Attack(
        f"pcall(function() while true do end end) {SAFE}", CUT, None),
    "xpcall whose handler fails": Attack(
        "while true do xpcall(error, function() error('again') end) end", CUT),
    "xpcall whose handler loops": Attack(
        "xpcall(function() while true do end end, function() while true do end end) "
        "while true do end", CUT),
    "xpcall whose handler recurses": Attack(
        "local function handler(e) return xpcall(error, handler, e) end "
        "while true do xpcall(error, handler, 'x') end", CUT),
    "endless tail call": Attack("local function f() return f() end return f()", CUT),
    "endless for": Attack("for i = math.mininteger, math.maxinteger do end", CUT),
    "endless iterator": Attack("for _ in function() return 1 end do end", CUT),
    "loop in a comparator": Attack(
        "table.sort({3, 1, 2}, function() while true do end end)", CUT),
    "loop in a replacement": Attack("('x'):gsub('.', function() while true do end end)", CUT),
    "repeated string.rep": Attack("while true do local s = ('x'):rep(50000) end", CUT),
    "loop of json": Attack("while true do json.decode(json.encode({1, {2}, 'x'})) end", CUT),
    "loop of config": Attack("while true do config.get('nothing') end", CUT),
    "loop of backoff": Attack("while true do backoff(1, 1000, 5000, 1) end", CUT),

    # Much time, few instructions.
    "slow find": Attack("return { delay_ms = ('a'):rep(60000):find('.-b') }", CUT),
    "slow find of many parts": Attack(
        "return { delay_ms = ('a'):rep(60):find(('a-'):rep(30) .. 'b') }", CUT),
    "slow match": Attack("('a'):rep(60000):match('(.-)(.-)(.-)b')", CUT),
    "slow gsub": Attack("('a'):rep(60000):gsub('.-b', '')", CUT),
    "slow gmatch": Attack("for _ in ('a'):rep(60000):gmatch('.-b') do end", CUT),
    "slow frontier": Attack("('a '):rep(40000):find('%f[a].-%f[b]b')", CUT),
    "slow balance": Attack("('('):rep(200000):find('%b()')", CUT),
    "slow pattern in pcall": Attack(
        "while true do pcall(string.find, ('a'):rep(60000), '.-b') end", CUT),
    "slow table.move": Attack("table.move({}, 1, 1 << 40, 2)", CUT),
    "slow table.concat": Attack(
        "local t = {} for i = 1, 1000 do t[i] = '' end "
        "while true do table.concat(t, '', 1, 1000) end", CUT),
    "slow table.insert": Attack(
        "local t = {} for i = 1, 20000 do table.insert(t, 1, i) end", CUT),
    "slow utf8": Attack("local s = ('é'):rep(100000) while true do utf8.len(s) end", CUT),

    # Memory.
    "doubled text": Attack("local s = 'x' while true do s = s .. s end", CUT),
    "string.rep of a gigabyte": Attack("return { reason = ('x'):rep(1 << 30) }", CUT),
    "string.rep beyond everything": Attack("return { reason = ('x'):rep(1 << 62) }", CUT),
    "string.rep with a separator": Attack("return ('x'):rep(1 << 40, ('y'):rep(1000))", CUT),
    "memory in pcall": Attack(
        f"for i = 1, 100 do pcall(string.rep, 'x', 1 << 30) end {SAFE}", CUT, None),
    "memory in pcall for ever": Attack(
        "local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(1000) .. #t end) end",
        CUT),
    "a million globals": Attack("for i = 1, 1000000 do _ENV['g' .. i] = i end", CUT),
    "a table for ever": Attack("local t = {} while true do t = { t } end", CUT),
    "many closures": Attack(
        "local t = {} while true do t[#t + 1] = function() return t end end", CUT),
    "table.concat of much": Attack(
        "local s, t = ('x'):rep(10000), {} for i = 1, 5000 do t[i] = s end "
        "return table.concat(t)", CUT),
    "table.unpack of much": Attack("return { table.unpack({}, 1, 900000) }", CUT),
    "table.unpack of too much": Attack("return { table.unpack({}, 1, 1 << 40) }", CUT),
    "table.pack of much": Attack(
        "local t = {} for i = 1, 200 do t[i] = i end "
        "while true do t = table.pack(table.unpack(t), table.unpack(t)) t[#t + 1] = t end", CUT),
    "string.format of much": Attack(
        "local s = '%s' while true do s = string.format(s, s .. s) end", CUT),
    "string.format with a wide field": Attack("return { string.format('%9999999d', 1) }", CUT),
    "gsub that grows": Attack(
        "local s = 'x' while true do s = s:gsub('x', 'xx') end", CUT),
    "string.char of much": Attack(
        "local t = {} for i = 1, 200 do t[i] = 65 end local s = '' "
        "while true do s = s .. string.char(table.unpack(t)) end", CUT),
    "sparse tables": Attack(
        "local t = {} while true do t[#t + 1] = { [1 << 30] = 1, [1 << 50] = 2 } end", CUT),

    # Depth.
    "recursion": Attack("local function f() return 1 + f() end return f()", CUT),
    "recursion through pcall": Attack(
        f"local function f() return pcall(f) end f() {SAFE}", CUT, None),
    "recursion through gsub": Attack(
        "local function f(s) return (s:gsub('.', f)) end return f('x')", CUT),
    "recursion through sort": Attack(
        "local function f(a, b) table.sort({2, 1}, f) return a < b end return f(1, 2)", CUT),
    "recursion through xpcall": Attack(
        f"local function f() return xpcall(f, f) end f() {SAFE}", CUT, None),
    "recursion through a handler": Attack(
        f"local function h() error('x') end xpcall(error, h) {SAFE}", CUT, None),
    "recursion with many arguments": Attack(
        "local function f(...) return f(1, ...) end return f()", CUT),
    "a sort that is not one": Attack(
        f"local t = {{}} for i = 1, 200 do t[i] = i % 7 end "
        f"pcall(table.sort, t, function() return true end) {SAFE}", CUT, None),
    "deep json to read": Attack(
        f"assert(not pcall(json.decode, ('['):rep(100000))) {SAFE}", CUT, None),
    "deep json in objects": Attack(
        "assert(not pcall(json.decode, ('{\"a\":'):rep(5000) .. '1' .. ('}'):rep(5000))) "
        + SAFE, CUT, None),
    "deep json to write": Attack(
        f"local t = {{}} for i = 1, 5000 do t = {{ t }} end pcall(json.encode, t) {SAFE}",
        CUT, None),
    "endless json to write": Attack(
        f"local t = {{}} t.t = t assert(not pcall(json.encode, t)) {SAFE}", CUT, None),
    "a pattern of many captures": Attack(
        f"assert(not pcall(string.find, 'x', ('('):rep(1000))) {SAFE}", CUT, None),

    # Errors that are no text.
    "error with a table": Attack("error({ code = 5 })", {"error"}),
    "error with nil": Attack("error(nil)", {"error"}),
    "error with nothing": Attack("error()", {"error"}),
    "error with a function": Attack("error(function() end)", {"error"}),
    "error with itself": Attack("local t = {} t.t = t error(t)", {"error"}),
    "error with a long text": Attack("error(('x'):rep(300000))", {"error"}, {"memory"}),
    "error with bytes": Attack("error('\\0\\xff\\xfe\\n\\27[31m')", {"error"}),
    "error with json.null": Attack("error(json.null)", {"error"}),
    "assert with nothing": Attack("assert(false, nil)", {"error"}),

    # Answers that are none.
    "an answer of nothing": Attack("", INVALID),
    "an answer of NaN": Attack("return { delay_ms = 0/0 }", INVALID),
    "an answer of infinity": Attack("return { delay_ms = math.huge }", INVALID),
    "a negative answer": Attack("return { delay_ms = -0.001 }", INVALID),
    "an answer that holds itself": Attack(
        "local t = {} t.action = t t.reason = t return t", INVALID),
    "a huge reason": Attack(
        "return { action = 'dlq', reason = ('x'):rep(400000) }", INVALID, {"memory"}),
    "a huge answer": Attack(
        "local t = {} for i = 1, 3000 do t['k' .. i] = i end return t", INVALID),
    "an answer of bytes": Attack("return { action = 'dlq', reason = '\\xff\\0' }", INVALID),
    "an answer with a NUL in its action": Attack("return { action = 'dlq\\0retry' }", INVALID),
    "an answer that is the message": Attack("return msg", INVALID),
    "an answer that is the environment": Attack("return _ENV", INVALID),
    "a reason that is json.null": Attack(
        "return { action = 'dlq', reason = json.null }", INVALID),
    "many answers": Attack(
        "return { action = 'dlq', reason = 'safe' }, 1, 2, 3", INVALID, None),

    # Noise.
    "a flood of lines": Attack(f"for i = 1, 1000 do log('x' .. i) end {SAFE}", CUT, None),
    "an endless flood of lines": Attack("while true do log('flood') end", CUT),
    "a line of much": Attack(f"log(('x'):rep(500000)) {SAFE}", CUT, None),
    "a line of bytes": Attack(f"log('\\0\\xff\\27[2J\\r\\n') {SAFE}", CUT, None),
    "lines of other things": Attack(
        f"pcall(log, nil) pcall(log, {{}}) pcall(log) pcall(log, log) {SAFE}", None),

    # Closing.
    "a value that is closed": Attack(
        "local x <close> = function() while true do end end", {"error"}),
    "a loop with a fourth value": Attack(
        f"for _ in next, {{}}, nil, nil do end {SAFE}", None),
}

# Each must leave no trace: the script tells what it finds before it tries, and each call must find
# the same.
POISON = {
    "a global": ("tostring(leak)", "leak = 'leaked'"),
    "a global function": ("tostring(pairs ~= nil and type ~= nil)",
                          "pairs = nil tostring = function() return 'evil' end"),
    "a local outside": ("tostring(outside)", "outside = 'evil'"),
    "a table outside": ("tostring(shared.x)", "shared.x = 'evil'"),
    "its own function": ("type(on_failure)", "on_failure = nil"),
    "a library": ("tostring(string.evil)", "string.evil = 'evil'"),
    "a function of a library": ("('x'):upper()", "string.upper = function() return 'evil' end"),
    "a library by its global": ("math.max(1, 2) .. ''", "math = { max = function() end }"),
    "a function of math": ("math.max(1, 2) .. ''", "math.max = function() return 'evil' end"),
    "a function of table": ("table.concat({1, 2})", "table.concat = function() return 'evil' end"),
    "a function of json": ("json.encode({1})", "json.encode = function() return 'evil' end"),
    "a function of config": ("tostring(config.get('x'))",
                             "config.get = function() return 'evil' end"),
    "a function of utf8": ("utf8.char(65)", "utf8.char = function() return 'evil' end"),
    "a library as a list": ("tostring(string[1])", "table.insert(string, 'evil')"),
    "a library by table.move": ("tostring(string[1])", "table.move({'evil'}, 1, 1, 1, string)"),
    "a library that is sorted": ("tostring(string[1])", "table.sort(string)"),
    "a library that is emptied": ("type(string.rep)", "table.remove(string)"),
    "a field of text": ("tostring(('x').evil)", "('x').evil = 'evil'"),
    "json.null": ("type(json.null)", "json.null = 'evil'"),
    "json.array": ("json.encode(json.array({}))", "json.array = function() return 5 end"),
    "the message": ("msg.error", "msg.error = 'evil'"),
    "its headers": ("tostring(msg.headers.x)", "msg.headers.x = 'evil'"),
}

FORBIDDEN = ["io", "os", "debug", "package", "require", "load", "loadstring", "loadfile", "dofile",
             "print", "collectgarbage", "coroutine", "setmetatable", "getmetatable", "rawset",
             "rawget", "rawequal", "rawlen", "_G", "warn", "unpack", "module", "newproxy", "arg",
             "string.dump", "math.randomseed"]
DOCUMENTED = {"assert", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber",
              "tostring", "type", "xpcall", "math", "string", "table", "utf8", "json", "backoff",
              "config", "log", "_VERSION"}


@pytest.fixture(scope="module")
def attacked():
    server = Server("--max-hook-hosts", str(MAX_HOSTS)).start()
    pid = server.pid
    client = server.client()
    client.queue("beside").create(
        hook_timeout_ms=PATIENT_MS, on_failure=on_failure(
            'return { action = "dlq", reason = "beside " .. msg.payload }'))
    try:
        yield server
        assert server.alive() and server.pid == pid, "a script has ended the server"
        assert client.request("GET", "/healthz").status == 200
        assert read_metrics(client).value("reprise_hook_hosts") <= MAX_HOSTS
        # One more process starts them, and each that is being replaced may still be there.
        assert len(hook_processes(server)) <= 2 * MAX_HOSTS + 2
    finally:
        server.dispose()


@pytest.fixture
def victim(attacked, request):
    """A function that makes a queue with this on_failure, all of it with default limits."""
    request.node.started_servers = [attacked]
    pid = attacked.pid

    def create(source, **config):
        queue = attacked.client().queue(f"victim-{next(numbers)}")
        return queue.created(**{"on_hook_error": "dlq", "on_failure": source, **config})

    yield create
    assert attacked.alive() and attacked.pid == pid, "this script has ended the server"


def assert_others_are_served(queue):
    """The queue beside answers as always."""
    number = next(numbers)
    assert fail_one(queue.sibling("beside"), number)["reason"] == f"beside {number}"


def assert_nothing_is_left(queue):
    """A harmless script that follows finds a clean place. A new script also closes the breaker."""
    queue.patch(hook_timeout_ms=PATIENT_MS, on_failure=on_failure("""
        local found = {}
        for name in pairs(_ENV) do
            if type(name) ~= "string" then found[#found + 1] = type(name) end
        end
        for _, name in ipairs({ "leak", "g1", "evil", "outside", "shared", "t" }) do
            if _ENV[name] ~= nil then found[#found + 1] = name end
        end
        local works = ("a"):rep(3):upper() == "AAA" and #table.concat({ 1, 2 }) == 2
            and json.decode("[1]")[1] == 1 and math.max(1, 2) == 2 and string.format("%d", 5) == "5"
            and backoff(1, 1000) == 1000 and config.get("nothing") == nil
        if not works then return { action = "dlq", reason = "broken" } end
        return { action = "dlq", reason = "clean " .. table.concat(found, " ") }
    """))
    assert [result["reason"] for result in fail_many(queue, 2)] == ["clean "] * 2


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_harms_its_own_hook_only(victim, name):
    attack = ATTACKS[name]
    queue = victim(attack.source, **attack.limits)
    queue.push(1, 2, 3)
    tokens = [{"token": job["token"], "error": "mine"} for job in queue.claim(3)]
    started = time.monotonic()
    # One alone, then two that share a call.
    results = queue.client.leases("fail", tokens[:1]) + queue.client.leases("fail", tokens[1:])
    seconds = time.monotonic() - started

    assert_others_are_served(queue)
    assert seconds < SECONDS_FOR_THREE_CALLS
    reasons = {result.get("reason") for result in results}
    allowed = ({"hook_error"} if attack.faults else set()) | (
        {"safe"} if attack.may_decide else set())
    assert reasons <= allowed, (reasons, faults_of(queue))
    assert {result["status"] for result in results} == {"dead"}
    assert {queue.job(result["id"])["last_error"] for result in results} == {"mine"}
    answered, faults = calls_of(queue)
    assert set(faults) <= attack.faults
    assert answered + sum(faults.values()) == 3
    assert_nothing_is_left(queue)


@pytest.mark.parametrize("name", [
    "loop", "slow find", "doubled text", "recursion through gsub", "error with a table",
    "a million globals", "a flood of lines"])
def test_the_same_as_on_enqueue(victim, name):
    queue = victim(HARMLESS, **ATTACKS[name].limits)
    queue.patch(on_enqueue=ATTACKS[name].source.replace("on_failure", "on_enqueue"))
    started = time.monotonic()
    results = queue.push_jobs([{"payload": number} for number in range(3)])
    assert time.monotonic() - started < SECONDS_FOR_THREE_CALLS
    assert [result["status"] for result in results] == ["pushed"] * 3
    assert [job["payload"] for job in queue.claim(3)] == [0, 1, 2]
    assert_others_are_served(queue)
    queue.patch(on_enqueue=on_enqueue('return { fairness_key = tostring(leak) }'),
                hook_timeout_ms=PATIENT_MS)
    assert queue.job(queue.push_one(1))["fairness_key"] == "nil"


@pytest.mark.parametrize("name", ["loop", "slow find", "doubled text", "recursion",
                                  "error with a table", "a huge reason"])
def test_the_same_as_a_trial(victim, name):
    queue = victim(HARMLESS, **ATTACKS[name].limits)
    started = time.monotonic()
    reply = try_hook(queue, [{}, {}, {}], on_failure=ATTACKS[name].source)
    assert time.monotonic() - started < SECONDS_FOR_THREE_CALLS
    assert {result["status"] for result in reply["results"]} == {"hook_error"}
    assert {result["fault"] for result in reply["results"]} <= ATTACKS[name].faults
    assert_others_are_served(queue)
    assert calls_of(queue) == (0, {})


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items()
                                  if "timeout" in attack.faults])
def test_ends_within_twice_its_budget(victim, name):
    budget, request = 0.5, 0.25  # so long that what a request takes on a busy machine is little
    queue = victim(HARMLESS, hook_timeout_ms=int(1000 * budget))
    try_hook(queue, [{}], on_failure=HARMLESS)  # its process is there from now on
    started = time.monotonic()
    reply = try_hook(queue, [{}], on_failure=ATTACKS[name].source)
    assert time.monotonic() - started < 2 * budget + request
    assert len(reply["results"]) == 1


@pytest.mark.parametrize("name", POISON)
def test_poison_reaches_no_other_call(victim, name):
    look, poison = POISON[name]
    queue = victim("local outside local shared = {}\n" + on_failure(f"""
        local before = {look}
        pcall(function() {poison} end)
        return {{ action = "dlq", reason = "found " .. before }}
    """), hook_timeout_ms=PATIENT_MS)
    results = [fail_one(queue, error="x")["reason"] for _ in range(2)]
    results += [result["reason"] for result in fail_many(queue, 3, error="x")]
    assert len(set(results)) == 1 and results[0].startswith("found "), results
    assert "evil" not in results[0] and "leaked" not in results[0]
    assert_others_are_served(queue)
    assert_nothing_is_left(queue)


@pytest.mark.parametrize("name", [name for name in POISON if " of " in name and "text" not in name])
def test_a_library_cannot_be_changed_within_a_call_either(victim, name):
    look, poison = POISON[name]
    queue = victim("local outside local shared = {}\n" + on_failure(f"""
        local before = {look}
        pcall(function() {poison} end)
        return {{ action = "dlq", reason = tostring(before == {look}) }}
    """), hook_timeout_ms=PATIENT_MS)
    assert fail_one(queue)["reason"] == "true"


class TestWhatIsNotThere:
    @pytest.mark.parametrize("name", FORBIDDEN)
    def test_it_is_nil(self, victim, name):
        queue = victim(on_failure(f"return {{ action = 'dlq', reason = type({name}) }}"),
                       hook_timeout_ms=PATIENT_MS)
        assert fail_one(queue)["reason"] == "nil"

    @pytest.mark.parametrize("name", FORBIDDEN)
    def test_it_is_nil_while_a_script_is_loaded(self, victim, name):
        queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
        result = decide(queue, f"local kind = type({name})\n" + on_failure(
            "return { action = 'dlq', reason = kind }"))
        assert result["reason"] == "nil"

    def test_nothing_else_is_there(self, victim):
        queue = victim(on_failure("""
            local names = {}
            for name in pairs(_ENV) do names[#names + 1] = tostring(name) end
            for i = 1, #names, 8 do log(table.concat(names, " ", i, math.min(i + 7, #names))) end
            return {}
        """), hook_timeout_ms=PATIENT_MS)
        result = decide(queue, queue.show()["config"]["on_failure"])
        found = set(" ".join(result["log"]).split())
        assert found <= DOCUMENTED | {"on_failure"}

    @pytest.mark.parametrize("expression", [
        "{}", "function() end", "print", "pcall", "string.rep", "json.null", "msg", "string"])
    def test_no_address_is_told(self, victim, expression):
        queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
        result = decide(queue, on_failure(
            f"return {{ action = 'dlq', reason = '=' .. tostring({expression}) }}"))
        assert result["status"] == "decided" and "0x" not in result["reason"], result

    @pytest.mark.parametrize("body", [
        "string.format('%p', {})", "string.format('%s', load('return 1'))",
        "string.dump(on_failure)", "('x').dump(on_failure)", "math.randomseed(5)"])
    def test_it_is_an_error(self, victim, body):
        queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
        result = decide(queue, on_failure(f"{body} return {{}}"))
        assert (result["status"], result["fault"]) == ("hook_error", "error")

    def test_no_address_in_the_text_of_errors(self, victim):
        queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
        for body in ("error({})", "error(function() end)", "string.rep({})", "({})()", "msg.x.y()"):
            result = decide(queue, on_failure(body))
            assert result["status"] == "hook_error" and "0x" not in result["message"], result


# Sources that must be refused, quickly.
BAD_SOURCES = {
    "bytecode": "\x1bLua\x54\x00\x19\x93\r\n\x1a\n",
    "bytecode after a comment": "# \n\x1bLua\x54\x00",
    "a NUL in the text": "function on_failure(msg) \0 return {} end",
    "a loop": "while true do end function on_failure(msg) return {} end",
    "a loop in pcall": "pcall(function() while true do end end) while true do end",
    "a slow pattern": "('a'):rep(60000):find('.-b') ('a'):rep(60000):find('.-b') "
                      "function on_failure(msg) return {} end while true do end",
    "a gigabyte": "local s = ('x'):rep(1 << 30) function on_failure(msg) return {} end",
    "deep brackets": "function on_failure(msg) return " + "(" * 20000 + ")" * 20000 + " end",
    "deep tables": "function on_failure(msg) return " + "{" * 20000 + "}" * 20000 + " end",
    "deep blocks": "function on_failure(msg) " + "do " * 8000 + "end " * 8000 + "end",
    "deep functions": "x = " + "function() return " * 3000,
    "too many locals": "function on_failure(msg) " + "".join(
        f"local a{n} " for n in range(300)) + "end",
    "a long text without an end": "x = [[" + "y" * 60000,
    "an error that is a table": "error({}) function on_failure(msg) return {} end",
    "an error that is nil": "error(nil) function on_failure(msg) return {} end",
    "recursion": "local function f() return 1 + f() end f() "
                 "function on_failure(msg) return {} end",
}


@pytest.mark.parametrize("name", BAD_SOURCES)
def test_a_bad_source_is_refused_and_changes_nothing(victim, name):
    queue = victim(HARMLESS)
    before = queue.snapshot()
    started = time.monotonic()
    reply = queue.client.request("PATCH", queue.path(), {"on_failure": BAD_SOURCES[name]})
    assert time.monotonic() - started < SECONDS_FOR_THREE_CALLS
    assert reply.status == 400 and reply.code in ("invalid_script", "invalid_field"), reply
    assert queue.snapshot() == before
    assert_others_are_served(queue)


@pytest.mark.parametrize("source", [
    "function on_failure(msg) return {} end --" + "x" * 60000,
    "local t = {" + "1," * 20000 + "} function on_failure(msg) return {} end",
    "function on_failure(msg) return {} end " + ";" * 60000,
    "local x = 1" + "+1" * 20000 + " function on_failure(msg) return {} end",
    "local x = ''" + "..''" * 10000 + " function on_failure(msg) return {} end",
    "local x = " + "- " * 15000 + "1 function on_failure(msg) return {} end",
    "function on_failure(msg) return {} end " + "".join(f"g{n}=1 " for n in range(6000)),
], ids=lambda source: source[:20])
def test_an_odd_source_is_taken_or_refused(victim, source):
    queue = victim(HARMLESS)
    reply = queue.client.request("PATCH", queue.path(), {"on_failure": source})
    assert reply.status == 200 or (reply.status, reply.code) == (400, "invalid_script"), reply
    fail_one(queue)
    assert_others_are_served(queue)


def test_a_script_that_turns_bad_after_it_was_taken(victim):
    """Its text runs for each call, so it may do then what it did not do when it was checked."""
    queue = victim("if config.get('armed') then while true do end end\n" + on_failure(
        'return { action = "dlq", reason = "safe" }'), hook_timeout_ms=50)
    assert fail_one(queue)["reason"] == "safe"
    client = queue.client
    client.call("PUT", "/v1/config/armed", {"value": "yes"})
    try:
        started = time.monotonic()
        assert [result["reason"] for result in fail_many(queue, 3)] == ["hook_error"] * 3
        assert time.monotonic() - started < SECONDS_FOR_THREE_CALLS
        assert_others_are_served(queue)
    finally:
        client.call("DELETE", "/v1/config/armed")


def test_all_queues_under_attack_at_once(victim):
    """More of them than there are processes, in one call with jobs of the queue beside."""
    names = ["loop", "slow find", "doubled text", "recursion", "error with nil", "loop in pcall",
             "slow balance", "a million globals", "a huge reason", "recursion through pcall",
             "slow table.move", "an answer of nothing"]
    leases = []
    for name in names:
        queue = victim(ATTACKS[name].source)
        queue.push(1, 2)
        leases += [{"token": job["token"]} for job in queue.claim(2)]
        beside = queue.sibling("beside")
        beside.push("x")
        leases.append({"token": beside.claim_one()["token"]})
    started = time.monotonic()
    results = beside.client.leases("fail", leases)
    assert time.monotonic() - started < 10
    assert [result["reason"] for result in results[2::3]] == ['beside "x"'] * len(names)
    rest = {result["reason"] for index, result in enumerate(results) if index % 3 != 2}
    assert rest <= {"hook_error", "safe"}


def test_json_is_read_at_most_100_levels_deep(victim):
    queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
    source = on_failure("""
        local ok, why = pcall(json.decode, ("["):rep(msg.failures) .. ("]"):rep(msg.failures))
        return { action = "dlq", reason = tostring(ok) }
    """)
    results = try_hook(queue, [{"failures": levels} for levels in (1, 100, 101, 1000)],
                       on_failure=source)["results"]
    assert [result["reason"] for result in results] == ["true", "true", "false", "false"]


@pytest.mark.parametrize("text", ["[1,", '{"a" 1}', "nul", '"\\x"', "[1] 2", "[1,]", "'a'"])
def test_errors_of_json_name_a_byte(victim, text):
    queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
    result = decide(queue, on_failure("json.decode(msg.error) return {}"), error=text)
    assert (result["status"], result["fault"]) == ("hook_error", "error")
    # After the line of the script.
    assert re.search(r"\d", result["message"].partition(":")[2]), result


@pytest.mark.parametrize("value, text", [
    ("{1, 2, 3}", "[1,2,3]"), ("{}", "{}"), ("json.array({})", "[]"), ("{a = 1}", '{"a":1}'),
    ("json.null", "null"), ("{json.null}", "[null]"), ("true", "true"), ("'é\\n'", '"é\\n"'),
    ("{{1}, {a = {}}}", '[[1],{"a":{}}]'), ("1.5", "1.5"), ("7", "7"),
    ("json.decode('{\"a\": [1, null]}').a[1]", "1"),
    ("json.decode('null') == json.null", "true")])
def test_json_is_written(victim, value, text):
    queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
    reason = decided(queue, on_failure(
        f"return {{ action = 'dlq', reason = json.encode({value}) }}"))[1]
    assert json.loads(reason) == json.loads(text)


@pytest.mark.parametrize("value", ["0/0", "1/0", "function() end", "{[1.5] = 1}", "string.rep"])
def test_what_json_cannot_say_is_an_error(victim, value):
    queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
    result = decide(queue, on_failure(f"json.encode({value}) return {{}}"))
    assert result["status"] == "hook_error"


@pytest.mark.parametrize("call, least, most", [
    ("backoff(1)", 1000, 1000), ("backoff(2)", 2000, 2000), ("backoff(5, 100)", 1600, 1600),
    ("backoff(100)", 3600000, 3600000), ("backoff(1000000, 1, 500)", 500, 500),
    ("backoff(3, 1000, 2500)", 2500, 2500), ("backoff(1, 5000, 600000, 0.2)", 4000, 6000),
    ("backoff(9, 1000, 1000, 1)", 0, 1000), ("backoff(1, 1000, 3600000, 0)", 1000, 1000)])
def test_backoff(victim, call, least, most):
    queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
    source = on_failure(f"local n = {call} assert(n == math.floor(n)) return {{ delay_ms = n }}")
    results = try_hook(queue, [{}] * 20, on_failure=source)["results"]
    for result in results:
        assert result["status"] == "decided" and least <= result["delay_ms"] <= most, result


@pytest.mark.parametrize("call", [
    "backoff(0/0)", "backoff(-5)", "backoff(1, -1)", "backoff(1, 1, 1, 5)", "backoff('x')",
    "backoff()", "backoff(math.huge)", "backoff(1, math.huge, math.huge)", "backoff({})"])
def test_a_backoff_of_nonsense_is_an_error_or_a_number(victim, call):
    queue = victim(HARMLESS, hook_timeout_ms=PATIENT_MS)
    result = decide(queue, on_failure(f"return {{ delay_ms = {call} }}"))
    assert result["status"] in ("decided", "hook_error")
    assert result.get("fault") in FAULTS | {None}
