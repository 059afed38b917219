"""The bugs that are planted for the oracle (src/base/planted_bug.h) stay out of the product."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = Path(os.environ.get("REPRISE_BIN", ROOT / "build" / "release" / "reprise"))
PLANTED = PRODUCT.with_name("reprise_planted")
TRACES = [b"PLANTED_BUG", b"wrong_death", b"double_lease"]


def traces_in(program, scratch):
    """What is left without the debugging information, which names all source files."""
    stripped = scratch / program.name
    subprocess.run(["strip", "-o", stripped, program], check=True)
    data = stripped.read_bytes()
    return [trace for trace in TRACES if trace in data]


def test_the_product_has_no_trace_of_them(tmp_path):
    assert traces_in(PRODUCT, tmp_path) == []
    assert traces_in(PLANTED, tmp_path) == TRACES  # or the search finds nothing


def test_the_product_calls_no_plant():
    symbols = subprocess.run(["nm", "-C", PRODUCT], capture_output=True, text=True, check=True)
    assert "main" in symbols.stdout
    assert "planted" not in symbols.stdout


def test_only_one_program_is_built_with_them():
    defining = [path.relative_to(ROOT) for path in ROOT.rglob("CMakeLists.txt")
                if "build" not in path.relative_to(ROOT).parts
                and "REPRISE_PLANTED_BUGS" in path.read_text()]
    assert defining == [Path("tests/crash/CMakeLists.txt")]


def test_that_program_has_every_file_that_plants_one():
    planting = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.cpp")
                if '#include "base/planted_bug.h"' in path.read_text()}
    listed = re.search(r"set\(reprise_planted_sources\n(.*?)\)",
                       (ROOT / "cmake/unity.cmake").read_text(), re.DOTALL)[1].split()
    assert set(listed) == planting
