"""The README: its commands run as written, in order, and its links lead somewhere."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from reprise_server import ROOT, binary, clean_environment

README = (ROOT / "README.md").read_text()
DEFAULT_ADDRESS = "127.0.0.1:7333"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def console_commands():
    return [line[2:] for block in blocks("console") for line in block.splitlines()
            if line.startswith("$ ")]


def curl_commands():
    return [line for block in blocks("sh") for line in block.splitlines()
            if line.startswith("curl ")]


@pytest.fixture
def shell(server):
    """Runs a line in a shell whose `reprise` is the binary under test, and whose default server is
    this test's."""
    path = f"{Path(binary()).parent}:{os.environ['PATH']}"
    env = clean_environment(PATH=path, REPRISE_URL=server.url)

    directory = ROOT

    def run(line):
        nonlocal directory
        if line.startswith("cd "):  # holds for the lines that follow
            directory = directory / line.removeprefix("cd ")
            return subprocess.CompletedProcess(line, 0 if directory.is_dir() else 1, line, "")
        line = line.replace(DEFAULT_ADDRESS, f"127.0.0.1:{server.port}")
        return subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=directory, env=env,
                              text=True, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL)
    return run


def test_the_commands_work_as_written_in_order(shell):
    commands = console_commands()
    assert len(commands) >= 5
    for command in commands:
        done = shell(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        assert done.stdout, f"{command} printed nothing\n{done.stderr}"


def test_the_tour_ends_with_the_counts_it_tells_of(shell, server):
    for command in console_commands():
        shell(command)
    queue = server.client().queue("orders")
    counts = queue.counts()
    assert "dead" not in counts and counts["failed"] == 1
    [retried] = [job for job in queue.jobs(status="pending") if job["generation"] == 2]
    assert retried["last_error"] == "no such customer" and retried["failures"] == 0
    assert queue.jobs(status="failed")[0]["last_error"] == "card declined"


def test_the_http_calls_work_as_written(shell, server):
    push, claim, ack = curl_commands()
    queue = server.client().queue("orders").created()
    assert '"pushed"' in shell(push).stdout
    [token] = re.findall(r'"token":\s*"(\w+)"', shell(claim).stdout)
    assert '"acked"' in shell(re.sub(r"…[^\"]*…", token, ack)).stdout
    assert queue.totals() == {"pushed": 1, "claimed": 1, "completed": 1}


def test_the_examples_run(shell):
    scripts = sorted((ROOT / "examples").glob("*/run"))
    assert scripts
    for script in scripts:
        done = shell(shlex.quote(str(script.relative_to(ROOT))))
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", ["README.md", *sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))])
def test_every_link_to_a_file_leads_somewhere(page):
    folder = (ROOT / page).parent
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    missing = [target for target in targets
               if "://" not in target and not (folder / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", ["README.md", *sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))])
def test_every_link_to_a_heading_leads_to_one(page):
    def slug(heading):
        kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        return kept.replace(" ", "-")

    missing = []
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", (ROOT / page).read_text()):
        path = (ROOT / page).parent / target if target else ROOT / page
        if "://" in target or not path.is_file():
            continue
        headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
        if anchor not in map(slug, headings):
            missing.append(f"{target}#{anchor}")
    assert missing == []


def test_the_make_targets_it_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
