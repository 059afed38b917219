"""`reprise runbook check` and `show`: what a project declares, and all that is wrong with it."""

import json
import random
import re

import pytest

from projects import pipeline, simple, step, stored, toml, worker

REFUSED, USAGE = 1, 2
FINDING = re.compile(r"(\S+?):(\d+): (warning: )?([a-z_]+(?:\.[^:]+)?): (.+)")

SHOP = """\
[queue.orders]
type     = "persisted"
vars     = ["id", "customer"]                  # required fields, checked on push
defaults = { customer = "unknown" }
retry    = { attempts = 3, cooldown = "30s" }

[queue.bugs]
type = "external"
list = "gh issue list --json number,title"
take = "gh issue edit ${item.number} --add-assignee @me"
done = "gh issue close ${item.number}"
key  = "number"
poll = "30s"

[pipeline.ship]
timeout = "10m"

[[pipeline.ship.step]]
name    = "pick"
run     = "./pick.sh ${item.id}"
timeout = "2m"
on_fail = "undo"

[[pipeline.ship.step]]
name = "undo"
run  = "./undo.sh ${item.id}"

[worker.shipper]
queue       = "orders"
run         = "ship"
concurrency = 4
autostart   = true

[worker.fixer]
queue = "bugs"
run   = "ship"
"""
# The same in the other format.
SHOP_JSON = {
    "queue": {
        "orders": {"type": "persisted", "vars": ["id", "customer"],
                   "defaults": {"customer": "unknown"},
                   "retry": {"attempts": 3, "cooldown": "30s"}},
        "bugs": {"type": "external", "list": "gh issue list --json number,title",
                 "take": "gh issue edit ${item.number} --add-assignee @me",
                 "done": "gh issue close ${item.number}", "key": "number", "poll": "30s"}},
    "pipeline": {"ship": {"timeout": "10m", "step": [
        {"name": "pick", "run": "./pick.sh ${item.id}", "timeout": "2m", "on_fail": "undo"},
        {"name": "undo", "run": "./undo.sh ${item.id}"}]}},
    "worker": {"shipper": {"queue": "orders", "run": "ship", "concurrency": 4,
                           "autostart": True},
               "fixer": {"queue": "bugs", "run": "ship"}}}
EXTERNAL = {"type": "external", "list": "echo '[]'", "take": "true"}


@pytest.fixture
def place(new_project):
    """A project without a server."""
    return new_project(name="shop")


def findings(project, code=REFUSED):
    """(file, line, severity, path, message) of each finding that check prints."""
    result = project.run("runbook", "check")
    assert result.code == code, repr(result)
    found = []
    for text in (result.out + result.err).splitlines():
        match = FINDING.fullmatch(text)
        if match:
            found.append((match[1], int(match[2]), "warning" if match[3] else "error", match[4],
                          match[5]))
    return found


def errors_of(project):
    found = [one for one in findings(project) if one[2] == "error"]
    assert found, "no error is named"
    return found


def with_command(command):
    return simple(step("main", command))


class TestGood:
    @pytest.mark.parametrize("file, text", argvalues=[
        ("shop.toml", SHOP),
        ("shop.json", json.dumps(SHOP_JSON))], ids=["toml", "json"])
    def test_one_line_a_file(self, place, file, text):
        place.write(file, text)
        assert place.ok("runbook", "check").out == (
            f".reprise/{file}: 2 queues, 1 pipeline, 2 workers\n")

    def test_json(self, place):
        place.write("shop.toml", SHOP)
        assert place.ok("runbook", "check", "--json").json() == {
            "ok": True, "project": "shop", "root": str(place.root),
            "files": [".reprise/shop.toml"], "queues": 2, "pipelines": 1, "workers": 2,
            "findings": []}

    def test_files_are_read_as_one_by_name(self, place):
        place.declare(queue={"jobs": stored()}, file="a.toml")
        place.declare(worker={"w": worker("jobs", "work")}, file="b.json")
        place.declare(pipeline={"work": pipeline("true"), "other": pipeline("true")},
                      file="c.toml")
        assert place.ok("runbook", "check").out.splitlines() == [
            ".reprise/a.toml: 1 queue, 0 pipelines, 0 workers",
            ".reprise/b.json: 0 queues, 0 pipelines, 1 worker",
            ".reprise/c.toml: 0 queues, 2 pipelines, 0 workers"]

    def test_hidden_and_other_files_are_ignored(self, place):
        place.write("shop.toml", SHOP)
        for name in (".hidden.toml", "shop.toml.bak", "notes.txt", "shop.yaml", "toml"):
            (place.book / name).write_text("this is [[[ broken")
        assert place.ok("runbook", "check", "--json").json()["files"] == [".reprise/shop.toml"]

    def test_from_a_subdirectory_and_by_name(self, place, tmp_path):
        place.write("shop.toml", SHOP)
        deep = place.root / "a" / "b"
        deep.mkdir(parents=True)
        expected = place.ok("runbook", "check", "--json").json()
        assert place.ok("runbook", "check", "--json", cwd=deep).json() == expected
        assert place.ok("runbook", "check", deep, "--json", cwd=tmp_path).json() == expected

    def test_no_project(self, place, tmp_path):
        for verb in ("check", "show"):
            assert place.run("runbook", verb, cwd=tmp_path).code == USAGE
            assert place.run("runbook", verb, tmp_path / "nowhere").code == USAGE

    def test_forms_of_toml(self, place):
        place.write("shop.toml", r"""
queue.a.type = "persisted"     # dotted keys
queue.a.vars = []
queue."b".type = 'persisted'
queue.b.vars = [
  "x",  # with a comment
  'y',
]
pipeline.p = { step = [ { name = "one", run = "echo \u00e9 \t \"x\"" } ] }

[worker]
[worker.w-1]
queue = "a"
run = "p"
concurrency = 0x10

[[pipeline.q.step]]
name = "long"
run = '''
echo 'as it is' \
  "${HOME}"
'''
[[pipeline.q.step]]
name = "folded"
run = \"\"\"\
   echo \
   folded\"\"\"
""".replace('\\"\\"\\"', '"""'))
        shown = place.ok("runbook", "show", "--json").json()
        scripts = {s["name"]: s["run"] for p in shown["pipelines"] for s in p["steps"]}
        assert scripts == {"one": 'echo é \t "x"', "folded": "echo folded",
                           "long": "echo 'as it is' \\\n  \"${HOME}\"\n"}
        assert shown["workers"][0]["concurrency"] == 16


STEP = "pipeline.work.step.0"
BAD = {
    # what is declared: {path that is named: a word of the message}
    "unknown type": ({"queue": {"q": {"type": "persistent"}}}, "queue.q.type", "persisted"),
    "no type": ({"queue": {"q": {"vars": []}}}, "queue.q", "type"),
    "no vars": ({"queue": {"q": {"type": "persisted"}}}, "queue.q", "vars"),
    "vars no list": ({"queue": {"q": stored(vars="id")}}, "queue.q.vars", ""),
    "defaults no object": ({"queue": {"q": stored(defaults=[1])}}, "queue.q.defaults", ""),
    "bad lease": ({"queue": {"q": stored(lease="5x")}}, "queue.q.lease", ""),
    "bad cooldown": ({"queue": {"q": stored(retry={"attempts": 1, "cooldown": "soon"})}},
                     "queue.q.retry", ""),
    "both of a pair": ({"queue": {"q": stored(retry={"attempts": 1, "max_retries": 1})}},
                       "queue.q.retry", ""),
    "unknown field": ({"queue": {"q": stored(leese="5s")}}, "queue.q", "lease"),
    "no list": ({"queue": {"q": {"type": "external", "take": "true"}}}, "queue.q", "list"),
    "no take": ({"queue": {"q": {"type": "external", "list": "true"}}}, "queue.q", "take"),
    "short poll": ({"queue": {"q": {**EXTERNAL, "poll": "100ms"}}}, "queue.q.poll", "200ms"),
    "long poll": ({"queue": {"q": {**EXTERNAL, "poll": "31d"}}}, "queue.q.poll", "30d"),
    "odd poll": ({"queue": {"q": {**EXTERNAL, "poll": "5x"}}}, "queue.q.poll", ""),
    "bad timeout": ({"queue": {"q": {**EXTERNAL, "timeout": -1}}}, "queue.q.timeout", ""),
    "list with item": ({"queue": {"q": {**EXTERNAL, "list": "echo ${item.id}"}}},
                       "queue.q.list", "item"),
    "list with job": ({"queue": {"q": {**EXTERNAL, "list": "echo ${job.id}"}}},
                      "queue.q.list", "job"),
    "odd queue name": ({"queue": {"a b": stored()}}, "queue", ""),
    "long queue name": ({"queue": {"q" * 201: stored()}}, "queue", ""),
    "no steps": ({"pipeline": {"work": {"timeout": "1m"}}}, "pipeline.work", "step"),
    "empty steps": ({"pipeline": {"work": {"step": []}}}, "pipeline.work", "step"),
    "no step name": ({"pipeline": {"work": {"step": [{"run": "true"}]}}}, STEP, "name"),
    "no run": ({"pipeline": {"work": {"step": [{"name": "a"}]}}}, STEP, "run"),
    "same step twice": ({"pipeline": {"work": pipeline(step("a", "true"), step("a", "true"))}},
                        "pipeline.work.step.1", "a"),
    "on_fail to nowhere": ({"pipeline": {"work": pipeline(step("a", "true", on_fail="undo"))}},
                           STEP + ".on_fail", "undo"),
    "on_done to nowhere": ({"pipeline": {"work": pipeline(step("a", "true", on_done="z"))}},
                           STEP + ".on_done", "z"),
    "on_cancel to nowhere": ({"pipeline": {"work": pipeline("true", on_cancel="z")}},
                             "pipeline.work.on_cancel", "z"),
    "step timeout": ({"pipeline": {"work": pipeline(step("a", "true", timeout="x"))}},
                     STEP + ".timeout", ""),
    "101 steps": ({"pipeline": {"work": pipeline(*["true"] * 101)}}, "pipeline.work", "100"),
    "unknown queue": ({**simple("true"), "worker": {"w": worker("jbos", "work")}},
                      "worker.w.queue", "jobs"),
    "unknown pipeline": ({**simple("true"), "worker": {"w": worker("jobs", "wrok")}},
                         "worker.w.run", "work"),
    "no queue": ({**simple("true"), "worker": {"w": {"run": "work"}}}, "worker.w", "queue"),
    "no concurrency": (simple("true", concurrency=0), "worker.w.concurrency", "1"),
    "much concurrency": (simple("true", concurrency=1001), "worker.w.concurrency", "1000"),
    "odd concurrency": (simple("true", concurrency="four"), "worker.w.concurrency", ""),
    "odd autostart": (simple("true", autostart="yes"), "worker.w.autostart", ""),
    "unknown worker field": (simple("true", autostrt=True), "worker.w", "autostart"),
    "unknown table": ({"queues": {"q": stored()}}, "queues", "queue"),
    "numbers for commands": ({"pipeline": {"work": {"step": [{"name": "a", "run": 5}]}}},
                             STEP + ".run", ""),
    **{f"stored queue with {field}": (
        {"queue": {"q": stored(**{field: "30s" if field in ("poll", "timeout") else "true"})}},
        f"queue.q.{field}", "") for field in ("poll", "list", "take", "done", "failed", "key",
                                              "timeout")},
    **{f"external queue with {field}": ({"queue": {"q": {**EXTERNAL, field: value}}},
                                        f"queue.q.{field}", "")
       for field, value in {"retry": {"attempts": 2}, "lease": "30s", "concurrency": 2,
                            "vars": [], "defaults": {"a": 1}, "keep_dead": "1d"}.items()},
    **{f"computing in {command}": (with_command(command), STEP + ".run", "")
       for command in ("echo $((${item.n} + 1))", "(( ${item.n} > 1 ))", "echo $[${item.n}+1]",
                       "let x=${item.n}", "[[ ${item.n} -eq 1 ]]", "[[ 1 -lt ${item.n} ]]",
                       "echo \"a $(( 1 + ${item.n} ))\"")},
}


class TestBad:
    @pytest.mark.parametrize("name", BAD)
    @pytest.mark.parametrize("file", ["book.toml", "book.json"])
    def test_is_named_with_file_line_and_path(self, place, name, file):
        declared, path, word = BAD[name]
        place.declare(declared, file=file)
        fitting = [one for one in errors_of(place) if one[3].startswith(path)]
        assert fitting, (path, errors_of(place))
        assert all(one[0] == f".reprise/{file}" and one[1] >= 1 for one in fitting)
        assert any(word in one[4] for one in fitting), fitting

    @pytest.mark.parametrize("command", [
        "[ ${item.n} -eq 1 ]", 'test "${item.n}" -lt 5', "[[ ${item.n} == 5 ]]",
        "[[ -n ${item.n} ]]", "echo \"${item.n}\" $((1 + 1))", "bash -c 'deploy ${item.n}'",
        "echo ${HOME} ${x:-y} ${#x} \"${arr[@]}\" ${x//a/b}",
        "cat <<END\n${item.n}\nEND\n", "ssh host bash -s <<'END'\n${item.n}\nEND\n"])
    def test_a_good_command_is_none(self, place, command):
        place.declare(with_command(command))
        assert [one for one in findings(place, code=0) if one[2] == "error"] == []

    def test_a_value_in_single_quotes_for_another_language_is_warned_of(self, place):
        place.declare(with_command("python3 -c 'print(\"${item.n}\")'"))
        [found] = findings(place, code=0)
        assert found[2] == "warning" and found[3] == STEP + ".run"
        report = place.ok("runbook", "check", "--json").json()
        assert report["ok"] is True
        assert [one["severity"] for one in report["findings"]] == ["warning"]

    def test_all_at_once_with_the_lines(self, place):
        place.write("a.toml", '[queue.one]\ntype = "persisted"\nvars = []\npoll = "1s"\n\n'
                              '[worker.w]\nqueue = "nowhere"\nrun = "nothing"\nconcurrency = 0\n')
        place.write("b.json", '{"queue": {\n  "two": {"type": "external",\n   "list": "true"}},\n'
                              ' "pipeline": {"p": {\n  "timeout": "never", "step": []}}}')
        found = errors_of(place)
        assert [(file, line, path) for file, line, _, path, _ in found
                if file == ".reprise/a.toml"] == [
            (".reprise/a.toml", 4, "queue.one.poll"), (".reprise/a.toml", 7, "worker.w.queue"),
            (".reprise/a.toml", 8, "worker.w.run"), (".reprise/a.toml", 9, "worker.w.concurrency")]
        second = {path: line for file, line, _, path, _ in found if file == ".reprise/b.json"}
        assert second["pipeline.p.timeout"] == 5
        assert any(path.startswith("queue.two") and line in (2, 3)
                   for path, line in second.items()), second
        assert [one[:2] for one in found] == sorted(one[:2] for one in found)

        report = place.run("runbook", "check", "--json")
        assert report.code == REFUSED
        report = report.json()
        assert report["ok"] is False
        assert [(one["file"], one["line"], one["severity"], one["path"], one["message"])
                for one in report["findings"]] == findings(place)
        assert all(one["column"] >= 1 for one in report["findings"])

    @pytest.mark.parametrize("file, text, line", [
        ("a.toml", '[queue.q]\ntype = "persisted"\nvars = [\n', None),
        ("a.toml", '[queue.q]\ntype = \nvars = []\n', 2),
        ("a.toml", '[queue.q]\ntype = "persisted"\nvars = []\n[queue.q]\nlease = "5s"\n', 4),
        ("a.toml", '[queue.q]\nvars = []\nvars = []\ntype = "persisted"\n', 3),
        ("a.toml", "\n\n@", 3), ("a.toml", 'x = "never closed', 1),
        ("a.json", '{"queue": {\n "q": {"type": "persisted" "vars": []}}}', 2),
        ("a.json", '{"queue": {"q": {"type": "persisted", "vars": []}}', None),
        ("a.json", "[]", 1), ("a.json", "", None), ("a.json", '{"queue": 5}', 1),
        ("a.toml", "queue = 5\n", 1), ("a.toml", "[[queue]]\ntype = 1\n", 1)])
    def test_what_cannot_be_read(self, place, file, text, line):
        place.write(file, text)
        found = findings(place)
        if not found:  # of the file as a whole, without a path
            out = place.run("runbook", "check")
            match = re.search(rf"^\.reprise/{file}:(\d+): ", out.out + out.err, re.MULTILINE)
            assert match, repr(out)
            at = int(match[1])
        else:
            at = found[0][1]
        assert line is None or at == line

    def test_one_name_in_two_files(self, place):
        place.declare(queue={"jobs": stored()}, file="a.toml")
        place.declare(queue={"jobs": stored(lease="5s")}, file="b.toml")
        [found] = errors_of(place)
        assert found[0] == ".reprise/b.toml" and found[3] == "queue.jobs"

    def test_too_large(self, place):
        place.write("a.toml", "# " + "x" * (1 << 20) + "\n")
        assert place.run("runbook", "check").code == REFUSED
        place.write("a.toml", toml({"queue": {f"q{n}": stored() for n in range(1001)}}))
        assert any("1000" in one[4] for one in errors_of(place))

    def test_nothing_that_stands_in_a_file_ends_it_badly(self, place):
        """Damaged files, the same ones each time: an answer, never a signal."""
        choose = random.Random(7)
        sources = {"book.toml": SHOP.encode(), "book.json": json.dumps(SHOP_JSON).encode()}
        for number in range(120):
            name = choose.choice(sorted(sources))
            text = bytearray(sources[name])
            for _ in range(choose.randint(1, 6)):
                at = choose.randrange(len(text))
                text[at:at + choose.randint(0, 8)] = choose.choice(
                    [b"", b'"', b"'''", b"[", b"]", b"${", b"}", b"\n", b"\xff", b"\0", b"<<END\n",
                     b"$((", b"[[", b"=", b"1979-05-27", b"9" * 30, b"\\u0000", b"a.b.c"])
            path = place.book / name
            path.write_bytes(text)
            result = place.cli.run("runbook", "check", "--json", cwd=place.root)
            assert result.code in (0, REFUSED), (number, bytes(text), result)
            assert result.json()["ok"] is (result.code == 0)
            path.unlink()


class TestShow:
    def test_tells_what_is_declared(self, place):
        place.write("shop.toml", SHOP)
        out = place.ok("runbook", "show").out
        for word in ("orders", "persisted", "bugs", "external", "ship", "pick", "undo", "shipper"):
            assert word in out

    def test_json(self, place):
        place.write("shop.toml", SHOP)
        shown = place.ok("runbook", "show", "--json").json()
        assert (shown["project"], shown["root"]) == ("shop", str(place.root))
        queues = {queue["name"]: queue for queue in shown["queues"]}
        assert queues["orders"]["type"] == "persisted"
        assert queues["orders"]["config"]["vars"] == ["id", "customer"]
        assert queues["orders"]["config"]["retry"] == {"attempts": 3, "cooldown": "30s"}
        assert queues["bugs"]["type"] == "external" and queues["bugs"]["key"] == "number"
        [ship] = shown["pipelines"]
        assert (ship["name"], ship["timeout"]) == ("ship", "10m")
        pick, undo = ship["steps"]
        assert pick["run"] == "./pick.sh ${item.id}"
        assert pick["script"] == './pick.sh "${REPRISE_ITEM_id}"'
        assert (pick["timeout"], pick["on_fail"], pick["handler"]) == ("2m", "undo", False)
        assert (undo["on_fail"], undo["handler"]) == (None, True)
        [shipper] = [one for one in shown["workers"] if one["name"] == "shipper"]
        assert {name: shipper[name] for name in ("name", "queue", "concurrency", "autostart")} == {
            "name": "shipper", "queue": "orders", "concurrency": 4, "autostart": True}

    def test_both_formats_are_one(self, place):
        place.write("shop.toml", SHOP)
        one = place.ok("runbook", "show", "--json").json()
        (place.book / "shop.toml").unlink()
        place.write("shop.json", json.dumps(SHOP_JSON))
        assert place.ok("runbook", "show", "--json").json() == one

    def test_errors_are_printed_instead(self, place):
        place.write("shop.toml", SHOP.replace('"persisted"', '"stored"'))
        result = place.run("runbook", "show")
        assert result.code == REFUSED
        assert ".reprise/shop.toml:2: queue.orders.type: " in result.out + result.err
