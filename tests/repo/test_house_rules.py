"""Small rules that keep the tree readable, checked so that nobody has to remember them."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CXX = {".h", ".cpp"}
CODE = CXX | {".py", ".cmake"}
FILE_LINES_MAX = 900


def files(*folders, suffixes):
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))
            if path.suffix in suffixes and path.is_file()]


def names(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


def lines_matching(pattern, paths):
    return [f"{path.relative_to(ROOT)}:{number}"
            for path in paths
            for number, line in enumerate(path.read_text().split("\n"), 1)
            if re.search(pattern, line)]


def assert_none(found):
    assert not found, "\n" + "\n".join(found)


def test_no_tabs_and_no_trailing_whitespace():
    paths = files("src", "tests", "bench", "cmake", suffixes=CODE)
    assert_none(lines_matching(r"\t|\s$", paths))


def test_no_source_file_grows_too_long():
    paths = files("src", suffixes=CODE)
    assert_none(names(p for p in paths if p.read_text().count("\n") > FILE_LINES_MAX))


def test_headers_open_with_their_contract():
    headers = files("src", suffixes={".h"})
    assert_none(names(p for p in headers if not p.read_text().startswith("//")))
    assert_none(names(p for p in headers if "\n#pragma once\n" not in p.read_text()))


def test_no_unfinished_work_is_left_in_comments():
    assert_none(lines_matching(r"\b(TODO|FIXME|XXX)\b", files("src", suffixes=CODE)))


def test_make_format_would_change_nothing():
    result = subprocess.run(
        ["clang-format-14", "--dry-run", *files("src", "tests", "bench", suffixes=CXX)],
        capture_output=True, text=True, check=True)
    wrong = re.findall(r"^(.+?):\d+:\d+: warning", result.stderr, re.MULTILINE)
    assert_none(names(sorted(map(Path, set(wrong)))))
