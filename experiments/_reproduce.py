"""From names of experiments to tables, figures and pages."""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from experiments._cells import (
    EXPERIMENTS,
    Cell,
    Experiment,
    Settings,
    fingerprint,
    load_experiment,
)
from experiments._runner import CellsFailedError, run_cells
from experiments._store import Store, write_atomically
from experiments._tables import write_results
from experiments.datasets import DatasetNotFound
from kernull._version import __version__
from kernull.errors import MissingDependencyError

__all__ = ["Outcome", "main", "reproduce"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What became of one experiment.

    Attributes
    ----------
    name : str
    page : pathlib.Path or None
        The page with tables and figures; None where the experiment was skipped.
    seconds : float
        Wall time of this call (stored cells cost nothing).
    skipped : str
        Why it was skipped; empty otherwise.
    """

    name: str
    page: Path | None
    seconds: float
    skipped: str = ""


def reproduce(
    names: str | Sequence[str],
    quick: bool = False,
    repeats: int | None = None,
    jobs: int = 1,
    out: str | os.PathLike[str] = "results",
    report_only: bool = False,
) -> list[Outcome]:
    """Run experiments of the paper and write their results.

    Finished cells are stored in ``out`` at once; after Ctrl-C or a kill, the same call resumes.

    Parameters
    ----------
    names : str or sequence of str
        Names of `EXPERIMENTS`, or ``"all"``. With ``"all"``, an experiment whose data cannot be
        had is skipped and says so; one asked for by name raises.
    quick : bool
        Small versions that take minutes in all and show the shape, not the figures.
    repeats : int, optional
        Number of repeats; the paper's by default.
    jobs : int
        Worker processes, one BLAS thread each; -1 means one a core. Results do not depend on it.
    out : path-like
        Folder of the results, one folder an experiment.
    report_only : bool
        Run nothing; write tables and figures of the cells that are finished.

    Returns
    -------
    list of Outcome
    """
    chosen = _resolve(names)
    if repeats is not None and repeats < 1:
        raise ValueError(f"repeats: got {repeats!r}; expected a positive number.")
    workers = (os.cpu_count() or 1) if jobs == -1 else jobs
    if workers < 1:
        raise ValueError(f"jobs: got {jobs!r}; expected a positive number, or -1 for all cores.")
    outcomes = []
    for name in chosen:
        start = time.perf_counter()
        experiment = load_experiment(name)
        folder = Path(out) / (f"{name}-quick" if quick else name)
        try:
            page = _run_one(experiment, quick, repeats, workers, folder, report_only)
            outcomes.append(Outcome(name, page, time.perf_counter() - start))
        except (DatasetNotFound, MissingDependencyError) as error:
            if not _asked_for_all(names):
                raise
            outcomes.append(Outcome(name, None, time.perf_counter() - start, str(error)))
    return outcomes


def _asked_for_all(names: str | Sequence[str]) -> bool:
    return names == "all" or (not isinstance(names, str) and "all" in names)


def _resolve(names: str | Sequence[str]) -> list[str]:
    if _asked_for_all(names):
        return list(EXPERIMENTS)
    asked = [names] if isinstance(names, str) else list(names)
    for name in asked:
        load_experiment(name)  # a wrong name should cost no time
    return list(dict.fromkeys(asked))


def _run_one(
    experiment: Experiment,
    quick: bool,
    repeats: int | None,
    jobs: int,
    folder: Path,
    report_only: bool,
) -> Path:
    settings = experiment.settings(quick)
    cells = list(experiment.cells(settings, repeats))
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder / "cells", fingerprint(settings))
    if not report_only:
        _run_cells(experiment, cells, settings, folder, jobs)
    finished = sum(store.get(cell) is not None for cell in cells)
    if not finished:
        raise ValueError(f"{experiment.name}: no cell is finished in {str(folder)!r} yet.")
    rows = store.rows(cells)
    write_results(rows, folder)
    body = experiment.report(rows, settings, folder)
    command = f"python -m experiments {experiment.name}"
    command += " --quick" if quick else ""
    command += f" --repeats {repeats}" if repeats is not None else ""
    progress = f"{len(cells)} cells"
    if finished < len(cells):
        progress = f"**unfinished: {finished} of {len(cells)} cells**"
    head = (
        f"# {experiment.name}. {experiment.title}\n\n"
        f"`{command}`, kernull {__version__}, {datetime.now(UTC):%Y-%m-%d}, {machine()}; "
        f"{progress}.\n\n"
    )
    page = folder / "page.md"
    write_atomically(page, head + body.rstrip() + "\n")
    return page


def _run_cells(
    experiment: Experiment,
    cells: list[Cell],
    settings: Settings,
    folder: Path,
    jobs: int,
) -> None:
    """Run the cells under a live progress display."""
    with _progress() as progress:
        task = progress.add_task(experiment.name, total=len(cells), title=experiment.title)
        run_cells(
            experiment,
            cells,
            settings,
            folder,
            jobs=jobs,
            progress=lambda done: progress.advance(task, done),
        )


def machine() -> str:
    """The class of this machine: cores and memory, nothing else."""
    memory = round(psutil.virtual_memory().total / 2**30)
    return f"{os.cpu_count()} cores, {memory} GB of memory"


def _progress() -> Progress:
    return Progress(
        TextColumn("[bold]{task.description}[/] {task.fields[title]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """``python -m experiments``: returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Reproduce the paper's experiments."
    )
    parser.add_argument("names", nargs="+", help=f"{', '.join(EXPERIMENTS)}, or all")
    parser.add_argument("--quick", action="store_true", help="small versions, minutes in all")
    parser.add_argument("--repeats", type=int, help="number of repeats (default: the paper's)")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (-1: one a core)")
    parser.add_argument(
        "--report-only", action="store_true", help="run nothing; report the finished cells"
    )
    parser.add_argument("--out", default="results", help="folder of the results")
    arguments = parser.parse_args(argv)
    console = Console()
    try:
        outcomes = reproduce(
            arguments.names,
            quick=arguments.quick,
            repeats=arguments.repeats,
            jobs=arguments.jobs,
            out=arguments.out,
            report_only=arguments.report_only,
        )
    except KeyboardInterrupt:
        console.print("Interrupted. Finished cells are stored; the same command resumes.")
        return 130
    except (CellsFailedError, DatasetNotFound, MissingDependencyError, ValueError) as error:
        console.print(str(error), style="red", markup=False)
        return 1
    for outcome in outcomes:
        if outcome.page is None:
            console.print(f"{outcome.name}: skipped. {outcome.skipped}", markup=False)
        else:
            console.print(f"{outcome.name}: {outcome.seconds:.0f} s, {outcome.page}", markup=False)
    return 0
