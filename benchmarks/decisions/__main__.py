"""``python -m benchmarks.decisions``: measure, judge, write."""

from __future__ import annotations

import argparse
import fnmatch
import platform
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from joblib import Parallel, delayed

from benchmarks.decisions import contaminated, measures, protocol, report
from benchmarks.decisions.tables import TABLES
from experiments._store import write_atomically
from kernull._version import __version__

PARTS = ("tables", "far", "contamination")


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decisions", description="What a default decision is worth."
    )
    parser.add_argument("--seeds", type=int, default=protocol.SEEDS)
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="names or patterns")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--out", default="docs/results", help="folder of decisions.md and .csv")
    options = parser.parse_args(argv)
    wanted = options.only or ["*"]
    names = [n for n in TABLES if any(fnmatch.fnmatchcase(n, p) for p in wanted)]
    if not names:
        raise SystemExit(f"--only: {options.only} fits none of {', '.join(TABLES)}.")
    tasks = []
    for seed in range(options.seeds):
        for name in names:
            if "tables" in options.parts:
                tasks.append(delayed(measures.of_table)(name, seed))
            if "contamination" in options.parts:
                tasks.append(delayed(contaminated.of_table)(name, seed))
        if "far" in options.parts:
            tasks.append(delayed(measures.of_kernels)(seed))
    start = time.perf_counter()
    rows = [row for found in Parallel(n_jobs=options.jobs)(tasks) for row in found]
    minutes = (time.perf_counter() - start) / 60
    command = shlex.join(["python", "-m", "benchmarks.decisions", *(argv or sys.argv[1:])])
    provenance = (
        f"`{command}`, kernull {__version__}, {datetime.now(UTC):%Y-%m-%d}, Python "
        f"{platform.python_version()}, {options.seeds} seeds, {minutes:.1f} minutes"
    )
    text, missed = report.page(rows, provenance)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "decisions.md", text)
    write_atomically(folder / "decisions.csv", report.table(rows))
    print(text)
    return 2 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
