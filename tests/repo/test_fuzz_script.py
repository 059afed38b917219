"""scripts/fuzz counts each target as one test, and a failed one tells the input that broke it."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Behaves like a target that is linked with libFuzzer; what becomes of it is in its name.
PROGRAM = r'''#!/usr/bin/python3
import os, sys, time
if sys.argv[1] == "--write-seeds":
    open(os.path.join(sys.argv[2], "seed1"), "w").close()
    sys.exit(0)
options = dict(word[1:].split("=", 1) for word in sys.argv[1:] if word.startswith("-"))
folders = [word for word in sys.argv[1:] if not word.startswith("-")]
assert all(os.path.isdir(folder) for folder in folders), folders
if "broken" in sys.argv[0]:
    with open(options["artifact_prefix"] + "crash-1", "wb") as file:
        file.write(b"\x00put 1")
    print("==1== ERROR: libFuzzer: deadly signal")
    sys.exit(77)
if "stuck" in sys.argv[0]:
    time.sleep(60)
print("#9 DONE cov: 41 ft: 90")
print("stat::number_of_executed_units: 1234")
'''


@pytest.fixture
def fuzz(tmp_path, monkeypatch):
    loader = importlib.machinery.SourceFileLoader("fuzz", str(ROOT / "scripts" / "fuzz"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fuzz", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "FOUND", tmp_path / "build" / "fuzz-found")
    monkeypatch.setattr(module, "CORPUS", tmp_path / "corpus")
    monkeypatch.setattr(module, "GRACE_SECONDS", 1)
    programs = tmp_path / "build" / "fuzz" / "tests" / "fuzz"
    programs.mkdir(parents=True)
    sources = tmp_path / "tests" / "fuzz"
    sources.mkdir(parents=True)

    def run(*names):
        for name in names:
            (sources / f"{name}_fuzz.cpp").touch()
            if name != "missing":
                (programs / f"{name}_fuzz").write_text(PROGRAM)
                (programs / f"{name}_fuzz").chmod(0o755)
        monkeypatch.setattr(sys, "argv", ["fuzz", "--seconds", "1"])
        return module.main()

    return run


def test_targets_that_find_nothing_pass(fuzz, capsys):
    assert fuzz("one", "two") == 0
    told = capsys.readouterr().out
    assert "one_fuzz: 1234 inputs, 41 edges" in told
    assert told.endswith("2 passed, 0 failed, 0 skipped\n")


def test_a_target_that_breaks_tells_its_input(fuzz, capsys):
    assert fuzz("broken", "one") == 1
    told = capsys.readouterr().out
    assert r"b'\x00put 1'" in told and "AHB1dCAx" in told and "deadly signal" in told
    assert told.endswith("1 passed, 1 failed, 0 skipped\n")


def test_a_target_that_does_not_end_or_is_not_there_has_failed(fuzz, capsys):
    assert fuzz("stuck", "missing") == 1
    told = capsys.readouterr().out
    assert "there is no build/fuzz/tests/fuzz/missing_fuzz" in told
    assert told.endswith("0 passed, 2 failed, 0 skipped\n")


def test_every_target_is_built():
    declared = (ROOT / "tests" / "fuzz" / "CMakeLists.txt").read_text()
    for source in (ROOT / "tests" / "fuzz").glob("*_fuzz.cpp"):
        assert f"reprise_fuzz({source.stem} " in declared
