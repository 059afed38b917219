"""scripts/test finds a test that failed again, to give it its second try."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def runner():
    sys.path.insert(0, str(ROOT / "scripts"))
    loader = importlib.machinery.SourceFileLoader("scripts_test", str(ROOT / "scripts" / "test"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("place, name, node", [
    ("repo.test_second_try", "test_a[b.c-1]", "tests/repo/test_second_try.py::test_a[b.c-1]"),
    ("repo.test_second_try.TestIt", "test_a", "tests/repo/test_second_try.py::TestIt::test_a"),
    ("repo.test_gone", "test_a", "repo.test_gone::test_a"),
])
def test_a_report_names_a_test(runner, place, name, node):
    assert runner.node_of(place, name) == node
