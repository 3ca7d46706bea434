"""``python -m benchmarks.alarms``: run, report; resumes where it was stopped."""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.alarms import experiment, protocol, report
from benchmarks.alarms.cases import CASES
from experiments import CellsFailedError, Store, run_cells
from experiments._cells import fingerprint
from experiments._reproduce import _progress
from experiments._store import write_atomically
from kernull import __version__


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.alarms",
        description="Realised false alarms of default models on ordinary tables.",
    )
    parser.add_argument("what", nargs="?", default="run", choices=["run", "report", "cases"])
    parser.add_argument("--full", action="store_true", help="also n = 5000 and d = 2000; hours")
    parser.add_argument("--decision", help="the decision of the models (default: theirs)")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="names or patterns")
    parser.add_argument("--seeds", type=int, help="seeds (default: the protocol's)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (-1: one per core)")
    parser.add_argument("--no-extras", action="store_true", help="leave out shifts")
    parser.add_argument("--out", default="results-cache/alarms", help="folder of cells and report")
    options = parser.parse_args(argv)
    if options.what == "cases":
        for case in CASES:
            print(f"{'full ' if case.full else 'quick'} {case.key}")
        return 0

    def wanted(key):
        return options.only is None or any(fnmatch.fnmatchcase(key, p) for p in options.only)

    todo = experiment.cells(options.full, options.decision, options.seeds, wanted)
    if not todo:
        raise SystemExit(f"--only: {options.only} fits none of the cases; see 'cases'.")
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if options.what == "run":
            _run(todo, folder, os.cpu_count() or 1 if options.jobs == -1 else options.jobs)
    except KeyboardInterrupt:
        print("Interrupted. Finished cells are stored; the same command resumes.")
        return 130
    except CellsFailedError as error:
        print(error, file=sys.stderr)
        return 1
    rows = Store(folder / "cells", fingerprint(protocol.SETTINGS)).rows(todo)
    rows.sort(key=lambda row: [case.key for case in CASES].index(row["data"]))  # stable
    if not rows:
        raise SystemExit(f"no cell is finished in {options.out!r} yet")
    extras = options.what == "run" and not options.no_extras
    shifts = experiment.shifted(options.decision) if extras else []
    given = [word for word in (argv or sys.argv[1:]) if word not in ("run", "report")]
    command = shlex.join(["python", "-m", "benchmarks.alarms", *given])
    provenance = (
        f"`{command}`, kernull {__version__}, {datetime.now(UTC):%Y-%m-%d}, Python "
        f"{platform.python_version()}, {len(rows)} of {len(todo)} fits."
    )
    text = report.page(rows, shifts, provenance)
    write_atomically(folder / "alarms.md", text)
    write_atomically(folder / "alarms.csv", report.table(rows))
    report.draw(rows, folder / "alarms.png")
    print(text)
    return 0 if not any(line["misses"] for line in report.summarise(rows)) else 2


def _run(todo, folder, jobs):
    with _progress() as progress:
        task = progress.add_task("alarms", total=len(todo), title=experiment.EXPERIMENT.title)
        run_cells(
            experiment.EXPERIMENT,
            todo,
            dict(protocol.SETTINGS),
            folder,
            jobs=jobs,
            progress=lambda done: progress.advance(task, done),
        )


if __name__ == "__main__":
    sys.exit(main())
