"""The arithmetic of bench/run --only peers: pilots, turns, and who is the best peer."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from harness.figures import Figure  # noqa: E402
from harness.peer_servers import PEERS, Beanstalkd  # noqa: E402
from harness.peers_figures import GOALS, PEER_TITLES, PEERS_FIGURES, TITLES  # noqa: E402
from harness.peers_phase import (CELLS, MOST_JOBS, PeerChoice, in_turn, jobs_for,  # noqa: E402
                                 key_of, pilot_rate)
from harness.report import Layout, Result, markdown_block, rewrite_docs, terminal_text  # noqa: E402

MACHINE = {"cores": 2, "cpu": "some", "memory_gib": 8, "kernel": "6.1", "file_system": "ext4"}
SPEED = Figure("speed", "speed", "jobs/s", (">=", 2), peers=("speed_a", "speed_b"))
DELAY = Figure("delay", "  delay", "µs", ("<=", 1), peers=("delay_a", "delay_b"))
MEMORY = Figure("memory", "memory", "bytes", ("<=", 100), peers=("memory_a", "memory_b"),
                absolute=True)


def result(*rounds):
    layout = Layout([SPEED, DELAY, MEMORY], [], "<!-- begin -->", "<!-- end -->", peers=("A", "B"),
                    value="Reprise")
    return Result(layout, list(rounds), MACHINE, {}, 0.0, "bench/run")


def test_pilots_grow_until_they_last_long_enough():
    asked = []

    def run(jobs):
        asked.append(jobs)
        return {"jobs_per_second": 100_000, "seconds": jobs / 100_000}

    assert pilot_rate(run, 1000, MOST_JOBS["push"]) == 100_000
    assert asked == [1000, 50_000]


def test_pilots_end_though_no_run_is_long_enough():
    asked = []

    def run(jobs):
        asked.append(jobs)
        return {"jobs_per_second": 1e9, "seconds": 0.0}

    assert pilot_rate(run, 1000, 2000) == 1e9
    assert asked == [1000, 2000]


def test_a_cell_has_as_many_jobs_as_its_time_takes():
    assert jobs_for(20_000, 3, "push") == 60_000
    assert jobs_for(1, 3, "push") == 1000
    assert jobs_for(10_000_000, 3, "fail") == MOST_JOBS["fail"]


def test_each_round_begins_with_another_server():
    servers = ["reprise", "beanstalkd", "redis"]
    assert in_turn(servers, 1) == servers
    assert in_turn(servers, 2) == ["beanstalkd", "redis", "reprise"]
    assert in_turn(servers, 4) == servers


def test_the_best_peer_has_the_most_jobs_or_the_least_time():
    told = result({"speed": 100, "speed_a": 20, "speed_b": 50,
                   "delay": 10, "delay_a": 20, "delay_b": 40})
    assert told.ratio(SPEED) == 2
    assert told.ratio(DELAY) == 0.5
    assert not told.missed()


def test_the_best_peer_is_the_same_one_in_all_rounds():
    # B is best by its median of 30, though A is ahead in one round.
    told = result({"speed": 60, "speed_a": 40, "speed_b": 20},
                  {"speed": 60, "speed_a": 10, "speed_b": 30},
                  {"speed": 60, "speed_a": 10, "speed_b": 40})
    assert told.rival_of(SPEED) == "speed_b"
    assert told.ratio(SPEED) == 2


def test_a_goal_may_be_for_the_value_itself():
    told = result({"memory": 99, "memory_a": 1, "memory_b": 2})
    assert not told.missed()
    assert result({"memory": 101, "memory_a": 1000, "memory_b": 2000}).missed() == [MEMORY]


@pytest.mark.parametrize("values", [{"speed_a": 20}, {"speed": 100}])
def test_a_run_without_reprise_or_without_peers_meets_and_misses_nothing(values):
    told = result(values)
    (row,) = told.rows()
    assert told.ratio(SPEED) is None and not told.missed()
    assert len(row) == len(told.layout.headings())
    assert row[-1] == "?"
    assert terminal_text(told)


def test_the_table_has_a_column_for_each_peer():
    told = result({"speed": 100, "speed_a": 20, "speed_b": 50})
    row = "| speed | 100 jobs/s | 20 jobs/s | 50 jobs/s | 2x | >= 2x | yes |"
    assert row in markdown_block(told)


def test_the_docs_have_a_place_for_the_figures(tmp_path):
    # As bench/run --write-docs will do it.
    text = (ROOT / "docs" / "performance.md").read_text()
    begin = "<!-- figures: written by bench/run --only peers --write-docs -->"
    end = "<!-- end of peers figures -->"
    copy = tmp_path / "performance.md"
    copy.write_text(text)
    layout = Layout(PEERS_FIGURES, [], begin, end, peers=tuple(PEER_TITLES.values()))
    values = {key_of("reprise", "enqueue_16x64", "fsync"): 12_345}
    rewrite_docs(copy, Result(layout, [values], MACHINE, {"backlog": 10}, 0.0, "bench/run"))
    assert "12,345 jobs/s" in copy.read_text()
    assert copy.read_text().partition(end)[2] == text.partition(end)[2]


def test_every_cell_has_figures_and_every_goal_a_cell():
    assert set(TITLES) == set(CELLS)
    assert {name for name, _ in GOALS} <= set(CELLS)
    assert set(PEER_TITLES) == set(PEERS)
    keys = [figure.key for figure in PEERS_FIGURES]
    assert len(keys) == len(set(keys))


def test_a_choice_is_whole_only_with_everything():
    assert PeerChoice().is_whole()
    assert not PeerChoice(cells=("enqueue_1x1",)).is_whole()


def test_peers_sync_as_the_mode_says(tmp_path):
    last = {mode: Beanstalkd(tmp_path, mode).command(port=1)[-1] for mode in ("fsync", "relaxed")}
    assert last == {"fsync": "-f0", "relaxed": "-f50"}
