"""Settings of the server: where a value comes from, and that a mistake is named, not served."""

import json

import pytest

import settings_page
from reprise_cli import Cli

WRONG_USAGE = 2


@pytest.fixture
def serve(tmp_path):
    """Runs `reprise serve` in an empty directory, for what ends by itself."""
    def run(*args, env=None, file=None, name="reprise.toml"):
        if file is not None:
            (tmp_path / name).write_text(file)
        return Cli().run("serve", *args, env=env, cwd=tmp_path)
    return run


def printed(result):
    assert result.code == 0, repr(result)
    return json.loads(result.out)


def value_of(shown, name):
    """(value, where it comes from) of a setting in --print-config --json."""
    entry = shown[name] if name in shown else shown["settings"][name]
    value = entry["value"]
    value = json.dumps(value) if isinstance(value, bool) else str(value)
    return value, entry["origin"] if "origin" in entry else entry["from"]


class TestWhereAValueComesFrom:
    FLAG = ["--max-batch-jobs", "3"]
    VARIABLE = {"REPRISE_MAX_BATCH_JOBS": "5"}
    FILE = "\nmax_batch_jobs = 7\n"

    @pytest.mark.parametrize("flag, variable, file, value, origin", [
        (True, True, True, "3", "--max-batch-jobs"),
        (False, True, True, "5", "REPRISE_MAX_BATCH_JOBS"),
        (False, False, True, "7", "reprise.toml:2"),
        (False, False, False, "1000", "default"),
    ])
    def test_the_flag_wins_over_the_environment_over_the_file(self, serve, flag, variable, file,
                                                              value, origin):
        result = serve("--print-config", "--json", *(self.FLAG if flag else []),
                       env=self.VARIABLE if variable else None, file=self.FILE if file else None)
        assert value_of(printed(result), "max_batch_jobs") == (value, origin)

    def test_the_text_form_tells_value_and_origin_too(self, serve):
        result = serve("--print-config", env=self.VARIABLE)
        [line] = [line for line in result.out.splitlines() if "max_batch_jobs" in line]
        assert "5" in line and "REPRISE_MAX_BATCH_JOBS" in line

    def test_an_empty_variable_counts_as_absent(self, serve):
        result = serve("--print-config", "--json", env={"REPRISE_MAX_BATCH_JOBS": ""})
        assert value_of(printed(result), "max_batch_jobs") == ("1000", "default")

    def test_the_file_may_be_named_by_flag_or_variable(self, serve, tmp_path):
        serve("--print-config", file="max_batch_jobs = 11", name="a.toml")
        serve("--print-config", file="max_batch_jobs = 12", name="b.toml")
        by_variable = serve("--print-config", "--json", env={"REPRISE_CONFIG": "b.toml"})
        assert value_of(printed(by_variable), "max_batch_jobs")[0] == "12"
        by_flag = serve("--print-config", "--json", "--config", str(tmp_path / "a.toml"),
                        env={"REPRISE_CONFIG": "b.toml"})
        assert value_of(printed(by_flag), "max_batch_jobs")[0] == "11"

    def test_a_list_is_an_array_or_separated_by_commas_or_a_repeated_flag(self, serve):
        ways = [dict(file='allowed_hosts = ["a.example", "b.example"]'),
                dict(env={"REPRISE_ALLOWED_HOSTS": "a.example,b.example"})]
        for way in ways:
            assert "a.example" in serve("--print-config", **way).out
            assert "b.example" in serve("--print-config", **way).out
        flags = ["--allowed-host", "c.example", "--allowed-host", "d.example"]
        shown = serve("--print-config", *flags).out
        assert "c.example" in shown and "d.example" in shown and "a.example" not in shown

    def test_routes_of_events_are_a_table_or_separated_by_commas_or_a_repeated_flag(self, serve):
        routes = {"order.*": "orders", "*.failed": "alarms"}
        ways = [dict(file='[ingest.routes]\n"order.*" = "orders"\n"*.failed" = "alarms"\n'),
                dict(env={"REPRISE_INGEST_ROUTES": "order.*=orders,*.failed=alarms"})]
        flags = ["--ingest-route", "order.*=orders", "--ingest-route", "*.failed=alarms"]
        for args, way in [([], ways[0]), ([], ways[1]), (flags, {})]:
            shown = printed(serve("--print-config", "--json", *args, **way))
            assert shown["ingest_routes"]["value"] == routes
        other = printed(serve("--print-config", "--json", "--ingest-route", "x=y", **ways[1]))
        assert other["ingest_routes"] == {"value": {"x": "y"}, "origin": "--ingest-route"}

    def test_what_is_printed_is_a_file_that_says_the_same(self, serve):
        flags = ["--ingest-route", "order.*=orders", "--ingest-route", 'a="b"\\=odd',
                 "--max-headers", "5"]
        file = serve("--print-config", *flags).out
        shown, again = (printed(serve("--print-config", "--json", *args, file=text))
                        for args, text in ((flags, None), ([], file)))
        assert {name: entry["value"] for name, entry in again.items()} == {
            name: entry["value"] for name, entry in shown.items()}

    def test_the_values_take_effect(self, start_server):
        server = start_server(env={"REPRISE_MAX_BATCH_JOBS": "2", "REPRISE_MAX_KEY_BYTES": "3"})
        queue = server.client().queue("q").created()
        queue.push(1, 2)
        body = {"jobs": [{}, {}, {}]}
        assert queue.client.refused("POST", queue.path("/push"), body) == (
            413, "batch_too_many_jobs")
        [refused] = queue.push_jobs([{"key": "four"}], status=413)
        assert refused["error"]["code"] == "key_too_long"

    def test_a_file_in_the_directory_of_the_start_takes_effect(self, start_server):
        server = start_server(ready=False)
        (server.folder / "reprise.toml").write_text('max_payload_bytes = "10"\n')
        queue = server.start().client().queue("q").created()
        [refused] = queue.push_jobs([{"payload": "x" * 20}], status=413)
        assert refused["error"]["code"] == "payload_too_large"


class TestMistakes:
    @pytest.mark.parametrize("file, named", [
        ("sync_intervall = \"5ms\"", ["reprise.toml:1", "sync_intervall", "sync_interval"]),
        ("\n\n# x\nnonsense = 1", ["reprise.toml:4", "nonsense"]),
        ("data = 5", ["reprise.toml:1", "data"]),
        ("\nsync_interval = \"soon\"", ["reprise.toml:2", "sync_interval", "soon"]),
        ("cache_bytes = \"32 megs\"", ["reprise.toml:1", "cache_bytes", "32 megs"]),
        ("durability = \"maybe\"", ["reprise.toml:1", "durability", "sync"]),
        ("max_batch_jobs = -1", ["reprise.toml:1", "max_batch_jobs"]),
        ("max_batch_jobs = 0", ["reprise.toml:1", "max_batch_jobs"]),
        ("allowed_hosts = \"a\"\nlog_level = \"loud\"", ["reprise.toml:2", "log_level"]),
        ("data = ", ["reprise.toml:1"]),
        ("data = \"a\"\ndata = \"b\"", ["reprise.toml"]),
        ("[server]\ndata = \"x\"", ["reprise.toml:1", "server"]),
        ("[ingest.routes]\na = 1", ["reprise.toml:2", "ingest.routes", "text"]),
        ("[ingest.routes]\na = \"my queue\"", ["reprise.toml:1", "'a=my queue'", "letters"]),
        ("[ingest]\nroute = \"x\"", ["reprise.toml:2", "ingest.route"]),
        ("ingest_routes = [\"a=b\"]", ["reprise.toml:1", "[ingest.routes]"]),
    ])
    def test_one_in_the_file_is_named_with_file_and_line(self, serve, file, named):
        result = serve("--print-config", file=file)
        assert result.code == WRONG_USAGE and result.out == ""
        assert all(text in result.err for text in named), result.err
        assert serve(file=file).code == WRONG_USAGE

    @pytest.mark.parametrize("args, named", [
        (["--cache-bytes", "32 megs"], ["--cache-bytes", "32 megs"]),
        (["--sync-interval", "soon"], ["--sync-interval", "soon"]),
        (["--durability", "maybe"], ["--durability"]),
        (["--listen", "nowhere"], ["nowhere"]),
        (["--listen", "127.0.0.1:99999"], ["99999"]),
        (["--dta", "x"], ["--dta", "--data"]),
        (["--max-connections", "0"], ["--max-connections"]),
        (["--io-threads", "many"], ["--io-threads", "many"]),
        (["--data", ""], ["--data"]),
        (["--ingest-route", "order.*"], ["--ingest-route", "'order.*'", "PATTERN=QUEUE"]),
        (["stray"], ["stray"]),
        (["--config", "absent.toml"], ["absent.toml"]),
        (["--max-payload-bytes", "8MiB", "--max-batch-bytes", "4MiB"],
         ["max_payload_bytes", "max_batch_bytes"]),
    ])
    def test_one_on_the_command_line_is_named(self, serve, args, named):
        result = serve(*args)
        assert result.code == WRONG_USAGE, repr(result)
        told = result.err.replace("-", "_")
        assert all(text.replace("-", "_") in told for text in named), result.err

    def test_one_in_the_environment_is_named(self, serve):
        result = serve(env={"REPRISE_SYNC_INTERVAL": "soon"})
        assert result.code == WRONG_USAGE and "REPRISE_SYNC_INTERVAL" in result.err

    def test_one_that_a_stronger_source_hides_is_named_all_the_same(self, serve):
        result = serve("--sync-interval", "5ms", env={"REPRISE_SYNC_INTERVAL": "soon"})
        assert result.code == WRONG_USAGE and "REPRISE_SYNC_INTERVAL" in result.err

    def test_all_are_named_at_once(self, serve):
        result = serve("--durability", "maybe", env={"REPRISE_SYNC_INTERVAL": "soon"},
                       file="nonsense = 1")
        assert result.code == WRONG_USAGE
        assert all(text in result.err for text in ("--durability", "REPRISE_SYNC_INTERVAL",
                                                   "reprise.toml:1"))

    def test_an_unknown_variable_is_only_warned_of(self, serve):
        result = serve("--print-config", env={"REPRISE_SYNC_INTERVALL": "5ms"})
        assert result.code == 0 and "REPRISE_SYNC_INTERVALL" in result.err

    def test_the_variables_of_the_command_line_are_not_warned_of(self, serve):
        result = serve("--print-config", env={"REPRISE_URL": "http://127.0.0.1:1",
                                              "REPRISE_TOKEN": "x", "REPRISE_SPOOL": "/x"})
        assert result.code == 0 and result.err == ""

    def test_nothing_is_made_on_disk_by_a_wrong_start(self, serve, tmp_path):
        serve("--durability", "maybe", "--data", "made")
        assert list(tmp_path.iterdir()) == []


class TestTheTable:
    @pytest.mark.parametrize("setting", settings_page.settings(), ids=lambda s: s.name)
    def test_every_documented_setting_exists_with_its_default(self, serve, setting):
        shown = printed(serve("--print-config", "--json"))
        value, origin = value_of(shown, setting.name)
        assert origin == "default"
        # An empty value stands for what the page says in words.
        if setting.name != "io_threads" and setting.default not in ("none", "") and value:
            assert value == setting.default
        assert setting.flag.split(" ")[0] in serve("--help").out
        assert setting.variable == "REPRISE_" + setting.name.upper()

    def test_every_setting_is_documented(self, serve):
        shown = printed(serve("--print-config", "--json"))
        names = set(shown.get("settings", shown))
        assert names == {setting.name for setting in settings_page.settings()}

    def test_help_has_an_example(self, serve):
        result = serve("--help")
        assert result.code == 0 and "reprise serve" in result.out
