"""``python -m benchmarks.arena``: run, report, rules, problems."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from pathlib import Path

from benchmarks.arena import halves, protocol, rules
from benchmarks.arena.entrants import entrants
from benchmarks.arena.experiment import EXPERIMENT, cells
from benchmarks.arena.problems import catalogue
from benchmarks.arena.report import provenance, write
from experiments import CellsFailedError, Store, run_cells
from experiments._cells import fingerprint
from experiments._reproduce import _progress
from experiments._store import write_atomically
from kernull.errors import MissingDependencyError


def matching(names, patterns, what):
    """Names that one of the patterns fits; a pattern that fits none is a slip of the pen."""
    if not patterns:
        return list(names)
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise SystemExit(f"{what}: {pattern!r} fits none of {', '.join(names)}")
    return [name for name in names if any(fnmatch.fnmatchcase(name, p) for p in patterns)]


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.arena", description="Our methods and their peers, compared."
    )
    parser.add_argument(
        "what", nargs="?", default="run", choices=["run", "report", "rules", "problems"]
    )
    parser.add_argument("--families", nargs="+", choices=protocol.FAMILIES, metavar="FAMILY")
    parser.add_argument("--only", nargs="+", metavar="PROBLEM", help="names or patterns")
    parser.add_argument("--entrants", nargs="+", metavar="NAME", help="names or patterns")
    parser.add_argument("--again", nargs="+", metavar="NAME", help="forget their cells first")
    parser.add_argument("--repeats", type=int, help="repeats (default: the protocol's)")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (-1: one a core)")
    parser.add_argument("--out", default="results-cache/arena", help="folder of cells and report")
    options = parser.parse_args(argv)

    found = catalogue(options.families or protocol.FAMILIES)
    if options.what == "problems":
        for problem in found.problems:
            print(f"{problem.family:10s} {problem.name}  {problem.repeats} repeats")
        for line in found.left_out:
            print(f"left out   {line}")
        return 0
    wanted = matching([p.name for p in found.problems], options.only, "--only")
    problems = [p for p in found.problems if p.name in wanted]
    known = rules.candidates() if options.what == "rules" else entrants()
    names = matching(list(known), options.entrants, "--entrants")
    chosen = [known[name] for name in names]
    todo = cells(problems, chosen, options.repeats)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder / "cells", fingerprint(protocol.SETTINGS))
    if options.again:
        forgotten = {known[name].key for name in matching(list(known), options.again, "--again")}
        for cell in todo:
            if cell.method in forgotten:
                store.path(cell).unlink(missing_ok=True)
    try:
        if options.what != "report":
            _run(todo, folder, os.cpu_count() or 1 if options.jobs == -1 else options.jobs)
    except KeyboardInterrupt:
        print("Interrupted. Finished cells are stored; the same command resumes.")
        return 130
    except (CellsFailedError, MissingDependencyError) as error:
        print(error, file=sys.stderr)
        return 1
    given = sys.argv[1:] if argv is None else argv
    rows = store.rows(todo)
    if not rows:
        raise SystemExit(f"no cell is finished in {options.out!r} yet")
    if options.what == "rules":
        head = f"# Candidate defaults\n\n{provenance(given)}.\n\n"
        text = head + f"## Halves\n\n{halves.choice(rows)}\n\n## Families\n\n"
        text += rules.page(rules.family_means(rows))
        write_atomically(folder / "rules.md", text)
        print(text)
        return 0
    print(write(rows, folder, todo, found.left_out, given))
    return 0


def _run(todo, folder, jobs):
    with _progress() as progress:
        task = progress.add_task("arena", total=len(todo), title=EXPERIMENT.title)
        run_cells(
            EXPERIMENT,
            todo,
            dict(protocol.SETTINGS),
            folder,
            jobs=jobs,
            progress=lambda done: progress.advance(task, done),
        )


if __name__ == "__main__":
    sys.exit(main())
