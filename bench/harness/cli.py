"""What the programs bench/run and bench/run-storage have in common: arguments, progress, exit codes."""

import argparse
import json
import os
import shlex
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from harness.processes import BenchError
from harness.report import rewrite_docs, terminal_text

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "performance.md"


def make_parser(prog, description, phases, rounds):
    parser = argparse.ArgumentParser(prog=prog, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="PHASE", choices=phases, default=list(phases),
                        help=" ".join(phases))
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("BENCH_ROUNDS") or rounds),
                        help="take the median of so many (or BENCH_ROUNDS)")
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release",
                        help="the build directory to measure")
    parser.add_argument("--scratch", type=Path,
                        help="where the data is kept meanwhile; the build directory by default, "
                             "since a /tmp in memory would make every sync free")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures of all rounds")
    parser.add_argument("--write-docs", action="store_true", help="rewrite docs/performance.md")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a goal is missed")
    return parser


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def command_line(prog):
    rounds = os.environ.get("BENCH_ROUNDS")
    # Where the reader keeps files is nobody's business.
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return (f"BENCH_ROUNDS={rounds} " if rounds else "") + shlex.join([prog, *words])


@contextmanager
def scratch_folder(args):
    folder = Path(tempfile.mkdtemp(prefix="reprise-bench-", dir=args.scratch or args.build)).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_main(prog, args, measure):
    """Measures, reports, and returns the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        result = measure(args)
        progress("")
        print(terminal_text(result))
        if args.json:
            args.json.write_text(json.dumps(result.as_json(), indent=2) + "\n")
        if args.write_docs:
            rewrite_docs(DOCS, result)
    except (BenchError, OSError, ValueError) as error:
        progress("")
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        progress("")
        return 130
    return 1 if args.strict and result.missed() else 0
