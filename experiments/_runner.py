"""The runner: executes the cells that are not finished yet."""

from __future__ import annotations

import logging
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from joblib import Parallel, delayed, parallel_config
from sklearn import config_context
from threadpoolctl import threadpool_limits

from experiments._cells import Cell, Experiment, Settings, fingerprint, load_experiment
from experiments._store import Record, Store

__all__ = ["CellsFailedError", "run_cells"]

logger = logging.getLogger(__name__)


class CellsFailedError(RuntimeError):
    """Some cells raised; all others are finished and stored."""


class _Outcome(NamedTuple):
    cell: Cell
    record: Record | None
    error: str


def run_cells(
    experiment: Experiment,
    cells: Sequence[Cell],
    settings: Settings,
    folder: Path,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Store:
    """Execute every cell that the store does not hold yet.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    cells : sequence of Cell
        All cells, finished or not.
    settings : dict
        The experiment's settings.
    folder : path
        The experiment's folder; finished cells go to ``cells/`` below it.
    jobs : int
        Worker processes, one BLAS thread each.
    progress : callable, optional
        Called with the number of cells finished since the last call.

    Returns
    -------
    Store

    Raises
    ------
    CellsFailedError
        After all other cells are done, if some raised.
    """
    store = Store(folder / "cells", fingerprint(settings))
    store.sweep()
    report = progress or (lambda done: None)
    todo = [cell for cell in cells if store.get(cell) is None]
    report(len(cells) - len(todo))
    if not todo:
        return store
    if experiment.prepare is not None:
        experiment.prepare(settings, folder, jobs)
    failed: list[_Outcome] = []
    for outcome in _outcomes(experiment, todo, settings, folder, store, jobs):
        if outcome.record is None:
            failed.append(outcome)
            logger.error("cell %s failed:\n%s", outcome.cell, outcome.error)
        report(1)
    if failed:
        last = failed[-1]
        raise CellsFailedError(
            f"{experiment.name}: {len(failed)} of {len(cells)} cells failed, the last "
            f"{last.cell} with\n{last.error}\nThe others are stored; the same command retries "
            "only those that failed."
        )
    return store


def _outcomes(
    experiment: Experiment,
    todo: list[Cell],
    settings: Settings,
    folder: Path,
    store: Store,
    jobs: int,
) -> Iterator[_Outcome]:
    name = experiment.name
    if jobs == 1 or experiment.exclusive or len(todo) == 1:
        for cell in todo:
            yield _execute(name, cell, settings, folder, store)
    else:
        # Workers store their cells themselves: what is finished survives the death of this
        # process.
        with parallel_config(backend="loky", inner_max_num_threads=1):
            yield from Parallel(
                n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs"
            )(delayed(_execute)(name, cell, settings, folder, store) for cell in todo)


def _execute(name: str, cell: Cell, settings: Settings, folder: Path, store: Store) -> _Outcome:
    """Run one cell with one BLAS thread and store it; errors come back as text."""
    # A worker that outlived a killed run may have finished this cell in the meantime.
    known = store.get(cell)
    if known is not None:
        return _Outcome(cell, known, "")
    try:
        # Inputs are ours: checking them again at each of a million small fits doubles the time.
        trusted = config_context(assume_finite=True, skip_parameter_validation=True)
        with threadpool_limits(1), trusted, warnings.catch_warnings():
            # Dropped constant columns and what Algorithm 1 leaves are results here, not news.
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            rows = load_experiment(name).run(cell, settings, folder)
            record = Record(rows, time.perf_counter() - start)
        store.put(cell, record)
    except Exception:
        return _Outcome(cell, None, traceback.format_exc())
    return _Outcome(cell, record, "")
