"""`reprise queue push`: one job, or a file or a stream of them."""

import json
import re

import pytest

from memory_peak import peak_until_end_kib
from reprise_cli import Cli
from waiting import eventually

REFUSED, USAGE, NO_SERVER = 1, 2, 3


def ndjson(values):
    return "".join(json.dumps(value) + "\n" for value in values)


def payloads(queue):
    return [job["payload"] for job in queue.all_jobs(limit=1000)]


class TestOneJob:
    def test_it_prints_the_whole_id(self, shell, queue):
        result = shell.ok("queue", "push", "jobs", '{"id":1}')
        assert re.fullmatch(r"[0-9A-Z]{13}\n", result.out) and result.err == ""
        assert queue.job(result.out.strip())["payload"] == {"id": 1}

    def test_every_flag_reaches_the_job(self, shell, queue):
        job_id = shell.ok("queue", "push", "jobs", "5", "--delay", "1h", "--priority", "7",
                          "--key", "k", "--header", "tenant=a", "--header", "eq=a=b",
                          "--ttl", "2h").out.strip()
        job = queue.job(job_id)
        assert (job["status"], job["priority"], job["key"]) == ("scheduled", 7, "k")
        assert job["headers"] == {"tenant": "a", "eq": "a=b"} and job["expires_at"]

    def test_a_duplicate_prints_the_first_id(self, shell, queue):
        first = shell.ok("queue", "push", "jobs", "1", "--key", "k")
        second = shell.ok("queue", "push", "jobs", "2", "--key", "k")
        assert second.out == first.out and "duplicate of" in second.err
        assert payloads(queue) == [1]

    def test_the_payload_is_sent_as_written(self, shell, queue):
        text = '{ "a" : 1.50 , "b":"\\u00e9" }'
        shell.ok("queue", "push", "jobs", text)
        reply = queue.client.request("POST", queue.path("/claim"), {})
        assert text.encode() in reply.body

    @pytest.mark.parametrize("stdin", ['{"from":"stdin"}', '{"from":\n"stdin"}\n'])
    def test_a_dash_reads_stdin(self, shell, queue, stdin):
        shell.ok("queue", "push", "jobs", "-", stdin=stdin)
        assert payloads(queue) == [{"from": "stdin"}]

    def test_a_payload_that_begins_with_a_dash_follows_two(self, shell, queue):
        shell.ok("queue", "push", "jobs", "--", "-5")
        assert payloads(queue) == [-5]

    def test_raw_bytes(self, shell, queue):
        shell.ok("queue", "push", "jobs", "-", "--raw", stdin=b"\x00\xff\n")
        shell.ok("queue", "push", "jobs", "plain text", "--raw")
        assert [job["payload_base64"] for job in queue.jobs()] == ["AP8K", "cGxhaW4gdGV4dA=="]

    def test_base64(self, shell, queue):
        shell.ok("queue", "push", "jobs", "--payload-base64", "AAEC")
        assert queue.jobs()[0]["payload_base64"] == "AAEC"

    def test_create_makes_the_queue(self, shell, absent_queue):
        refused = shell.run("queue", "push", "jobs", "1")
        assert refused.code == REFUSED and "(queue_not_found)" in refused.err
        shell.ok("queue", "push", "jobs", "1", "--create")
        assert payloads(absent_queue) == [1]

    def test_json_is_the_reply_of_the_api(self, shell, queue):
        reply = shell.ok("queue", "push", "jobs", "1", "--json").json()
        [job] = queue.jobs()
        assert reply == {"results": [{"index": 0, "status": "pushed", "id": job["id"]}]}

    @pytest.mark.parametrize("args", [
        ["{broken"], ["plain"], [""], ["1", "--delay", "soon"], ["1", "--header", "x"],
        ["1", "--priority", "high"], ["--payload-base64", "!!!"], [], ["1", "2"],
        ["1", "--file", "x"], ["1", "--stdin"], ["--file", "/nonexistent/file"],
        ["--stdin", "--key", "k"], ["--stdin", "--envelope", "--delay", "1s"],
        ["--stdin", "--envelope", "--raw"], ["--stdin", "--envelope", "--header", "a=b"],
        ["1", "--envelope", "--priority", "3"]])
    def test_wrong_usage_pushes_nothing(self, shell, queue, args):
        result = shell.run("queue", "push", "jobs", *args, stdin="1\n")
        assert result.code == USAGE and result.out == "", repr(result)
        assert result.err.startswith("reprise: ") and queue.counts() == {}

    def test_what_the_server_refuses_is_exit_1(self, shell, absent_queue):
        absent_queue.create(max_jobs=1)
        shell.ok("queue", "push", "jobs", "1")
        result = shell.run("queue", "push", "jobs", "2")
        assert result.code == REFUSED and "(queue_full)" in result.err and result.out == ""


class TestManyJobs:
    @pytest.mark.parametrize("source", ["file", "stdin"])
    def test_one_job_a_line_in_order(self, shell, queue, tmp_path, source):
        values = [{"n": n} for n in range(2500)]
        if source == "file":
            path = tmp_path / "jobs.ndjson"
            path.write_text(ndjson(values))
            result = shell.ok("queue", "push", "jobs", "--file", path)
        else:
            result = shell.ok("queue", "push", "jobs", "--stdin", stdin=ndjson(values))
        assert result.out == "pushed 2500, duplicate 0, rejected 0\n"
        assert payloads(queue) == values

    @pytest.mark.parametrize("text, expected", [
        ("1\n2\n3", [1, 2, 3]), ("1\n\n\n2\n", [1, 2]), ("1\r\n2\r\n", [1, 2]), ("", []),
        ('null\n"x"\n[]\n{}\n', [None, "x", [], {}])])
    def test_lines(self, shell, queue, text, expected):
        result = shell.ok("queue", "push", "jobs", "--stdin", stdin=text)
        assert result.out == f"pushed {len(expected)}, duplicate 0, rejected 0\n"
        assert payloads(queue) == expected

    def test_flags_count_for_every_line(self, shell, queue):
        shell.ok("queue", "push", "jobs", "--stdin", "--delay", "1h", "--priority", "3",
                 "--header", "a=b", stdin="1\n2\n")
        assert {(j["status"], j["priority"], j["headers"]["a"]) for j in queue.jobs()} == {
            ("scheduled", 3, "b")}

    def test_raw_lines(self, shell, queue):
        shell.ok("queue", "push", "jobs", "--stdin", "--raw", stdin="not json\nabc\n")
        assert [job["payload_base64"] for job in queue.jobs()] == ["bm90IGpzb24=", "YWJj"]

    def test_envelopes_are_whole_jobs(self, shell, queue):
        jobs = [{"payload": {"n": 1}, "headers": {"a": "b"}, "delay": "1h", "priority": 3,
                 "key": "k1", "ttl": "2h"}, {"payload": 2}, {"payload": 3, "key": "k1"}]
        result = shell.ok("queue", "push", "jobs", "--stdin", "--envelope", stdin=ndjson(jobs))
        assert result.out == "pushed 2, duplicate 1, rejected 0\n"
        first, second = queue.jobs()
        assert (first["payload"], first["priority"], first["key"]) == ({"n": 1}, 3, "k1")
        assert second["payload"] == 2

    def test_a_bad_line_is_named_and_does_not_stop_the_others(self, shell, queue):
        result = shell.run("queue", "push", "jobs", "--stdin", stdin="1\n2\n{oops\n\n4\n")
        assert result.code == REFUSED
        assert result.out == "pushed 3, duplicate 0, rejected 1\n"
        assert re.search(r"^reprise: line 3: .*\(invalid_request\)$", result.err, re.MULTILINE)
        assert payloads(queue) == [1, 2, 4]

    def test_a_line_that_the_server_refuses_is_named_too(self, shell, queue):
        jobs = [{"payload": 1}, {"payload": 2, "key": "k" * 513}, {"payload": 3}]
        result = shell.run("queue", "push", "jobs", "--stdin", "--envelope", stdin=ndjson(jobs))
        assert result.code == REFUSED and "line 2:" in result.err and "key_too_long" in result.err
        assert payloads(queue) == [1, 3]

    def test_an_envelope_with_an_unknown_field_refuses_that_line_alone(self, shell, queue):
        jobs = [{"payload": 1}, {"payload": 2, "dely": "1s"}, {"payload": 3}]
        result = shell.run("queue", "push", "jobs", "--stdin", "--envelope", stdin=ndjson(jobs))
        assert result.code == REFUSED and "line 2:" in result.err and "dely" in result.err
        assert payloads(queue) == [1, 3]

    def test_only_the_first_twenty_bad_lines_are_printed(self, shell, queue):
        result = shell.run("queue", "push", "jobs", "--stdin", stdin="{\n" * 100 + "1\n")
        assert result.code == REFUSED and result.out == "pushed 1, duplicate 0, rejected 100\n"
        assert len(re.findall(r"^reprise: line \d+:", result.err, re.MULTILINE)) == 20

    def test_json_counts_and_names_bad_lines(self, shell, queue):
        result = shell.run("queue", "push", "jobs", "--stdin", "--json", stdin="1\n{\n3\n")
        assert result.code == REFUSED
        assert result.json() == {"pushed": 2, "duplicates": 0, "rejected": 1, "lines": 3}
        [error] = [json.loads(line) for line in result.err.splitlines()]
        assert error["line"] == 2 and error["error"]["code"] == "invalid_request"

    def test_a_missing_queue_stops_it(self, shell, absent_queue):
        result = shell.run("queue", "push", "jobs", "--stdin", stdin=ndjson(range(3000)))
        assert result.code == REFUSED and "(queue_not_found)" in result.err
        assert "pushed 0, duplicate 0, rejected 0" in result.out

    def test_large_lines_go_in_batches_that_the_server_takes(self, shell, queue):
        line = json.dumps("x" * 500_000)
        result = shell.ok("queue", "push", "jobs", "--stdin", stdin=f"{line}\n" * 60)
        assert result.out == "pushed 60, duplicate 0, rejected 0\n"
        assert queue.counts() == {"pending": 60}

    def test_a_payload_too_large_is_refused_alone(self, shell, queue):
        lines = ["1", json.dumps("x" * (1 << 20)), "3"]
        result = shell.run("queue", "push", "jobs", "--stdin", stdin="\n".join(lines))
        assert result.code == REFUSED
        assert "line 2:" in result.err and "payload_too_large" in result.err
        assert payloads(queue) == [1, 3]

    def test_jobs_are_pushed_as_they_arrive(self, shell, queue):
        process = shell.start("queue", "push", "jobs", "--stdin")
        try:
            process.stdin.write(ndjson(range(1000)).encode())
            process.stdin.flush()
            eventually(lambda: queue.counts() == {"pending": 1000}, "the first batch")
        finally:
            out, _ = process.communicate(timeout=10)
        assert out == b"pushed 1000, duplicate 0, rejected 0\n"

    def test_when_the_server_goes_away_it_says_where_to_go_on(self, server):
        queue = server.client().queue("q").created()
        process = Cli(server.url).start("queue", "push", "q", "--stdin")
        process.stdin.write(ndjson(range(1000)).encode())
        process.stdin.flush()
        eventually(lambda: queue.counts() == {"pending": 1000}, "the first batch")
        server.kill()
        out, err = process.communicate(ndjson(range(5000)).encode(), timeout=20)
        assert process.returncode == NO_SERVER
        assert out.startswith(b"pushed 1000, ")
        assert b"stopped after line 1000" in err and b"tail -n +1001" in err
        assert b"(unreachable)" in err

    def test_a_terminal_shows_progress_on_stderr_only(self, shell, queue, tmp_path):
        path = tmp_path / "jobs.ndjson"
        path.write_text(ndjson(range(5000)))
        with shell.terminal("queue", "push", "jobs", "--file", path) as terminal:
            code, shown = terminal.finish()
        assert code == 0 and "pushed 5000, duplicate 0, rejected 0" in shown

    def test_a_stream_of_any_size_takes_little_memory(self, shell, queue):
        line = json.dumps("x" * 10_000).encode() + b"\n"
        process = shell.start("queue", "push", "jobs", "--stdin", "--delay", "1h")
        for _ in range(100):
            process.stdin.write(line * 100)  # 100 MB in all
        process.stdin.close()
        peak = peak_until_end_kib(process)
        assert process.returncode == 0
        assert process.stdout.read() == b"pushed 10000, duplicate 0, rejected 0\n"
        assert 0 < peak < 100 * 1024
        process.stdout.close()
        process.stderr.close()
