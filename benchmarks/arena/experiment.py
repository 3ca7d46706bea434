"""The arena as an experiment of the runner: cells, and what one cell does."""

from __future__ import annotations

import contextlib
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.arena import problems as problems_module
from benchmarks.arena import protocol
from benchmarks.arena.entrants import entrants
from benchmarks.arena.problems import named, seed, split
from benchmarks.arena.rules import candidates
from experiments import Cell, Experiment

NAME = "benchmarks.arena.experiment"
ORACLE = "OneClassSVM, oracle"


def cells(problems, chosen, repeats=None):
    """Cells of some problems and entrants: the first repeat of all, then the second, and so on."""
    most = max((p.repeats for p in problems), default=0) if repeats is None else repeats
    return [
        Cell(problem.name, entrant.key, repeat)
        for repeat in range(most)
        for problem in problems
        if repeats is not None or repeat < problem.repeats
        for entrant in chosen
        if entrant.group != "views" or problem.family != "tables"  # a table is one view
    ]


@lru_cache(maxsize=1)
def _by_key():
    known = [*entrants().values(), *candidates().values()]
    return {entrant.key: entrant for entrant in known}


def run(cell, settings, folder):
    """Fit an entrant on the training rows of a problem and score its test rows."""
    start = time.process_time()
    rows = _run(cell)
    rows[0]["time_cell"] = time.process_time() - start
    return rows


def _run(cell):
    entrant = _by_key()[cell.method]
    problem = named(cell.data)
    data, train, test, labels = split(problem, cell.repeat)
    X, X_test = data.X[train], data.X[test]
    key = {
        "family": problem.family,
        "entrant": entrant.name,
        "n_train": len(train),
        "n_targets": int((labels == 1).sum()),
        "n_outliers": int((labels == -1).sum()),
        "n_columns": X.shape[1],
    }
    random_state = seed(problem, cell.repeat)
    if entrant.group == "views":
        return [
            {
                **key,
                "view": view,
                **_measure(entrant.make(None, random_state), X[:, c], X_test[:, c], labels)[0],
            }
            for view, c in data.views.items()
        ]
    model = entrant.make(data.views, random_state)
    measured, model = _measure(model, X, X_test, labels)
    rows = [{**key, **measured}]
    detector = getattr(model, "detector", None)
    if hasattr(detector, "grid_scores"):
        Z = model.scaler_.transform(X_test)
        grid = [_quality(labels, scores) for scores in detector.grid_scores(Z)]
        rows.append({**key, "entrant": ORACLE, **max(grid, key=lambda found: found["auc"])})
    return rows


def _measure(model, X, X_test, labels):
    before = _reset_peak()
    # Processor time: with one BLAS thread, other work on the machine does not count.
    start = time.process_time()
    model.fit(X)
    fitted = time.process_time()
    scores = model.score_samples(X_test)
    done = time.process_time()
    out = {**_quality(labels, scores), "time_fit": fitted - start, "time_score": done - fitted}
    if before is not None:
        out["memory_mb"] = max(_memory("VmHWM") - before, 0.0)
    if hasattr(model, "threshold_"):
        targets = np.asarray(scores)[labels == 1]
        out["false_alarms"] = float((targets < model.threshold_).mean())
    for name, value in (
        ("gap", getattr(model, "gap_", None)),
        ("chosen", _chosen(model)),
    ):
        if value is not None:
            out[name] = value
    return out, model


def _chosen(model):
    """What a search decided, for readers of the table."""
    found = getattr(model, "best_params_", None)
    return None if found is None else str(found)


def _quality(labels, scores):
    scores = np.asarray(scores, dtype=float)
    return {
        "auc": float(roc_auc_score(labels, scores)),
        "auprc": float(average_precision_score(labels == -1, -scores)),
    }


def _reset_peak():
    """Start a new peak of the resident set (Linux); its present size in MB, or None elsewhere."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _memory("VmRSS")
    return None


def _memory(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return float(line.split()[1]) / 1024
    return float("nan")


def _all_cells(settings, repeats):
    known = problems_module.catalogue().problems
    return cells(known, list(entrants().values()), repeats)


def _report(rows, settings, folder):
    from benchmarks.arena.report import body

    return body(rows, folder)


EXPERIMENT = Experiment(
    NAME,
    "our methods and their peers",
    settings=lambda quick: dict(protocol.SETTINGS),
    cells=_all_cells,
    run=run,
    report=_report,
)
