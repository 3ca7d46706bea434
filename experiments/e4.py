"""E4. The Delft data: eleven methods of the paper and five peers (Table DOC).

The protocol stands in `e4_protocol` and was fixed before the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import get_method
from experiments import e4_protocol as protocol
from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._e4_report import report
from experiments._models import (
    Split,
    aucs,
    kernels_by_width,
    path_scores,
    printed_scores,
    split_rows,
)
from experiments.datasets import (
    DELFT,
    OneClassData,
    delft_classes,
    load_delft,
)
from experiments.pseudo import pseudo_outliers
from kernull._typing import Array
from kernull.detector.calibration import Cross

__all__ = ["EXPERIMENT", "problem_of", "run_lp"]

GAP = 1e-6
SCORES = ("projection", "distance")


def settings(quick: bool) -> Settings:
    """Problems, methods and grids of the protocol; a few of each when quick."""
    chosen = {name: load_delft(name).target for name in DELFT}
    problems = [[name, target] for name, target in chosen.items()]
    if quick:
        problems = [p for p in problems if p[0] in ("wine", "glass", "survival")]
    else:
        problems += [[name, c] for name in DELFT for c in delft_classes(name) if c != chosen[name]]
    grids = {m: {k: list(v) for k, v in g.items()} for m, g in protocol.GRIDS.items()}
    if quick:  # the SVM methods take most of the time
        for method, grid in grids.items():
            grids[method] = {k: [0.05, 0.2] if k == "nu" else v for k, v in grid.items()}
    return {
        "problems": problems,
        "chosen": chosen,
        "methods": [*protocol.PAPER_METHODS, *protocol.PEERS],
        "repeats": 2 if quick else protocol.REPEATS,
        "widths": list(protocol.WIDTHS),
        "grids": grids,
        "pseudo": [protocol.PSEUDO_KIND, protocol.PSEUDO_ROWS],
        "gap": GAP,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Problems (set and target class) x methods x repeats.

    What is finished of an interrupted run should say most: lp MK-FN on the fixed classes comes
    first, then the other methods there, the other classes, and last the slim methods, which take
    most of the time; repeat by repeat. Algorithm 1 as printed runs on the fixed classes only.
    """
    count = settings["repeats"] if repeats is None else repeats

    def place(name: str, target: int, method: str) -> int:
        if method.startswith("Slim"):
            return 3
        if settings["chosen"][name] != target:
            return 2
        return 0 if method == protocol.MAIN else 1

    found = [
        (place(name, target, method), r, Cell(f"{name} {target}", method, r))
        for name, target in settings["problems"]
        for method in settings["methods"]
        for r in range(count)
    ]
    found += [
        (1, r, Cell(f"{name} {target}", protocol.PRINTED, r))
        for name, target in settings["problems"]
        if settings["chosen"][name] == target
        for r in range(count)
    ]
    return [cell for _, _, cell in sorted(found, key=lambda item: item[:2])]


@lru_cache(maxsize=32)
def problem_of(data: str) -> OneClassData:
    """The data of ``"name class"``."""
    name, target = data.split()
    return load_delft(name, int(target))


def _split(cell: Cell) -> Split:
    """The split of a repeat, the same for every method."""
    data = problem_of(cell.data)
    return split_rows(data.y, generator("E4", cell.data, cell.repeat))


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """Test AUC of one method at its best validation AUC."""
    if cell.method == protocol.MAIN:
        return run_lp(cell, settings)
    if cell.method == protocol.PRINTED:
        return _run_printed(cell, settings)
    best: dict[str, Any] = {}
    for width, parameters, validation, test in _candidates(cell, settings):
        if not best or validation > best["validation_auc"]:
            best = {
                "auc": test,
                "validation_auc": validation,
                "width": "" if width is None else width,
                "choice": ", ".join(f"{k}={v:g}" for k, v in parameters.items()),
            }
    return [_with_problem(cell, best)]


def _with_problem(cell: Cell, row: dict[str, Any]) -> dict[str, Any]:
    name, target = cell.data.split()
    return {"set": name, "target": int(target), **row}


class _Candidate(NamedTuple):
    width: float | None
    parameters: dict[str, float]
    validation: float
    test: float


def _candidates(cell: Cell, settings: Settings) -> Iterator[_Candidate]:
    """Validation and test AUC of every point of a method's grid."""
    data, split = problem_of(cell.data), _split(cell)
    method, grid = get_method(cell.method), settings["grids"][cell.method]
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    labels = data.y[np.concatenate([split.validation, split.test])]
    m = len(split.validation)
    # Thresholds are not used here, so they may be cheap.
    fixed = {"calibration_folds": 2} if method.kind == "table" else {"calibration": Cross(2)}

    def judge(width: float | None, point: dict[str, float], model: Any, rows: Any) -> _Candidate:
        scores = model.score_samples(rows)
        validation, test = aucs(labels[:m], scores[:m]), aucs(labels[m:], scores[m:])
        return _Candidate(width, point, float(validation), float(test))

    if method.kind == "table":
        seed = int(generator("E4", cell.data, cell.method, cell.repeat).integers(2**31))
        rows = data.X[np.concatenate([split.validation, split.test])]
        for point in points:
            model = method.make(**fixed, random_state=seed, **point)
            yield judge(None, point, model.fit(data.X[split.train]), rows)
        return
    views = dict(zip(data.feature_names, data.X.T, strict=True))
    for width, stack, cross in kernels_by_width(settings["widths"], views, split):
        for point in points:
            model = method.make(kernels="precomputed", **fixed, **point)
            yield judge(width, point, model.fit(stack), cross)


def run_lp(cell: Cell, settings: Settings) -> Rows:
    """All (p, delta) of all widths from shared paths; three ways to score and choose."""
    data, split = problem_of(cell.data), _split(cell)
    rng = generator("E4", cell.data, cell.repeat, "pseudo")
    _, count = settings["pseudo"]  # the kind only names the cells
    pseudo = pseudo_outliers(data.X[split.train], count, rng)
    table = np.concatenate([data.X, pseudo])
    views = dict(zip(data.feature_names, table.T, strict=True))
    extra = np.arange(len(data.X), len(table))
    wide = Split(split.train, split.validation, np.concatenate([split.test, extra]))
    grid = settings["grids"][protocol.MAIN]
    ps, deltas = tuple(grid["p"]), tuple(grid["delta"])
    m, t = len(split.validation), len(split.test)
    validation, test = data.y[split.validation], data.y[split.test]
    best: dict[str, dict[str, Any]] = {}

    def offer(name: str, criterion: Array, scores: Array, width: float, weights: Array) -> None:
        i, k = np.unravel_index(int(np.argmax(criterion)), criterion.shape)
        reached = float(criterion[i, k])
        if name not in best or reached > best[name]["validation_auc"]:
            best[name] = {
                "method": name,
                "auc": float(aucs(test, scores[i, k, m : m + t])),
                "validation_auc": reached,
                "width": width,
                "choice": f"p={ps[i]:.5g}, delta={deltas[k]:g}",
                "kernels_used": int((weights[i, k] > 1e-3 * weights[i, k].max()).sum()),
            }

    for width, stack, cross in kernels_by_width(settings["widths"], views, wide):
        projection, path = path_scores(stack, cross, ps, deltas, settings["gap"])
        for score in SCORES:
            scores = projection if score == "projection" else -np.abs(1.0 - projection)
            name = protocol.MAIN + ("" if score == "projection" else " (score -|1 - y|)")
            offer(name, aucs(validation, scores[..., :m]), scores, width, path.weights)
        # Without outliers: validation targets against the pseudo-outliers.
        targets = np.flatnonzero(validation == 1)
        judged = np.concatenate([projection[..., targets], projection[..., m + t :]], axis=-1)
        labels = np.concatenate([np.ones(len(targets)), -np.ones(len(pseudo))])
        name = protocol.MAIN + " (chosen without outliers)"
        offer(name, aucs(labels, judged), projection, width, path.weights)
    return [_with_problem(cell, row) for row in best.values()]


def _run_printed(cell: Cell, settings: Settings) -> Rows:
    """Test AUC of the last iterate of Algorithm 1 at its best validation AUC."""
    data, split = problem_of(cell.data), _split(cell)
    views = dict(zip(data.feature_names, data.X.T, strict=True))
    grid = settings["grids"][protocol.PRINTED]
    m = len(split.validation)
    best: dict[str, Any] = {}
    for width, stack, cross in kernels_by_width(settings["widths"], views, split):
        scores = printed_scores(stack, cross, grid["p"], grid["delta"])
        reached = aucs(data.y[split.validation], scores[..., :m])
        i, k = np.unravel_index(int(np.argmax(reached)), reached.shape)
        if not best or reached[i, k] > best["validation_auc"]:
            best = {
                "auc": float(aucs(data.y[split.test], scores[i, k, m:])),
                "validation_auc": float(reached[i, k]),
                "width": width,
                "choice": f"p={grid['p'][i]:.5g}, delta={grid['delta'][k]:g}",
            }
    return [_with_problem(cell, best)]


EXPERIMENT = Experiment(
    "E4", "The Delft data: eleven methods and five peers", settings, cells, run, report
)
