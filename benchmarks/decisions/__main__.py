"""``python -m benchmarks.decisions``: measure, judge, write."""

from __future__ import annotations

import argparse
import fnmatch
import json
import platform
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from joblib import Parallel, delayed

from benchmarks.decisions import contaminated, faint, measures, protocol, report, together
from benchmarks.decisions.tables import TABLES
from experiments._store import write_atomically
from kernull._version import __version__

PARTS = ("tables", "far", "faint", "contamination", "together")


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decisions", description="What a default decision is worth."
    )
    parser.add_argument("--seeds", type=int, default=protocol.SEEDS)
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="names or patterns")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--out", default="docs/results", help="folder of decisions.md and .csv")
    parser.add_argument("--cache", default="results-cache/decisions", help="finished tasks")
    parser.add_argument("--again", action="store_true", help="forget finished tasks first")
    parser.add_argument("--report", action="store_true", help="write what is finished, no more")
    options = parser.parse_args(argv)
    wanted = options.only or ["*"]
    names = [n for n in TABLES if any(fnmatch.fnmatchcase(n, p) for p in wanted)]
    if not names:
        raise SystemExit(f"--only: {options.only} fits none of {', '.join(TABLES)}.")
    tasks = [
        (part, name, seed)
        for part in PARTS
        if part in options.parts
        for seed in range(protocol.FIRST_SEED, protocol.FIRST_SEED + options.seeds)
        for name in (names if part not in ("far", "faint") else [part])
    ]
    cache = Path(options.cache)
    if options.again:
        for task in tasks:
            _path(cache, *task).unlink(missing_ok=True)
    if not options.report:
        todo = [task for task in tasks if not _path(cache, *task).is_file()]
        Parallel(n_jobs=options.jobs)(delayed(_measure)(cache, *task) for task in todo)
    done = [json.loads(_path(cache, *t).read_text()) for t in tasks if _path(cache, *t).is_file()]
    if not done:
        raise SystemExit(f"nothing is measured in {options.cache!r} yet")
    rows = [row for task in done for row in task["rows"]]
    minutes = sum(task["seconds"] for task in done) / 60
    command = shlex.join(["python", "-m", "benchmarks.decisions", *(argv or sys.argv[1:])])
    provenance = (
        f"`{command}`, kernull {__version__}, {datetime.now(UTC):%Y-%m-%d}, Python "
        f"{platform.python_version()}, {options.seeds} seeds, {minutes:.1f} CPU minutes"
    )
    if len(done) < len(tasks):
        provenance += f", **{len(done)} of {len(tasks)} tasks finished**"
    text, missed = report.page(rows, provenance)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "decisions.md", text)
    write_atomically(folder / "decisions.csv", report.table(rows))
    print(text)
    return 2 if missed else 0


def _path(cache, part, name, seed):
    return cache / f"{part} {name} {seed}.json"


def _measure(cache, part, name, seed):
    """Measure one task and keep it at once: after a kill the same command resumes."""
    start = time.process_time()
    if part == "far":
        rows = measures.of_kernels(seed)
    elif part == "faint":
        rows = faint.of_seed(seed)
    else:
        modules = {"tables": measures, "contamination": contaminated, "together": together}
        rows = modules[part].of_table(name, seed)
    found = {"rows": rows, "seconds": time.process_time() - start}
    cache.mkdir(parents=True, exist_ok=True)
    write_atomically(_path(cache, part, name, seed), json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())
