"""E4, hypotheses: readings of the paper's own words, written down before they were run.

They stand in `e4_protocol`: one choice per data set (H1), one distance of whole rows (H2), another
rbf and wider grids (H3), Algorithm 1 as printed instead of the optimum (H4), and the null-space
distance as the score of every method. A cell keeps the
validation and test AUC of every point of its grid; the choices are made when the page is written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances

from benchmarks.peers import get_method
from experiments import e4_protocol as protocol
from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._e4_hypotheses_report import report
from experiments._models import (
    Split,
    aucs,
    kernels_by_width,
    path_scores,
    printed_scores,
    split_rows,
)
from experiments.datasets import DELFT, load_delft
from experiments.e4 import GAP, problem_of
from kernull._typing import Array
from kernull.detector.calibration import Cross
from kernull.operators import DenseStack

__all__ = ["EXPERIMENT", "chosen_kernels", "scale_rows"]

#: Responses of the targets that these methods regress on.
REGRESS_ON_ONE = ("FN-Average", "FN-Product", "GP-Average", "GP-Product", protocol.MAIN,
                  protocol.PRINTED)  # fmt: skip


def settings(quick: bool) -> Settings:
    """The fixed classes; lp MK-FN on every kernel, the other methods on those of E4."""
    problems = [[name, load_delft(name).target] for name in DELFT]
    others = [m for m in protocol.PAPER_METHODS if m != protocol.MAIN]
    if quick:
        problems = [p for p in problems if p[0] in ("wine", "survival")]
        others = ["FN-Average", "MK-SVDD"]
    methods = [[protocol.MAIN, kernels] for kernels in protocol.HYPOTHESES]
    methods.append([protocol.PRINTED, "E4"])
    # The slim methods take most of the time, so they come last.
    others.sort(key=lambda m: m.startswith("Slim"))
    return {
        "problems": problems,
        "methods": methods + [[m, "E4"] for m in others],
        "kernels": {k: [*v[:2], list(v[2])] for k, v in protocol.HYPOTHESES.items()},
        "grids": {m: {k: list(v) for k, v in g.items()} for m, g in protocol.GRIDS.items()},
        "repeats": 2 if quick else protocol.REPEATS,
        "gap": GAP,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Methods on kernels x problems x repeats."""
    count = settings["repeats"] if repeats is None else repeats
    return [
        Cell(f"{name} {target}", f"{method} [{kernels}]", r)
        for method, kernels in settings["methods"]
        for name, target in settings["problems"]
        for r in range(count)
    ]


def scale_rows(X: Array, train: Any, how: str) -> Array:
    """Rows raw, min-max by the training rows, or of unit length; shape (n, d)."""
    if how == "raw":
        return X
    if how == "min-max":
        low, spread = X[train].min(axis=0), np.ptp(X[train], axis=0)
        return np.asarray((X - low) / np.where(spread > 0, spread, 1.0))
    if how == "unit length":
        length = np.linalg.norm(X, axis=1, keepdims=True)
        return np.asarray(X / np.where(length > 0, length, 1.0))
    raise ValueError(f"how: got {how!r}; expected 'raw', 'min-max' or 'unit length'.")


def chosen_kernels(
    X: Array, names: Sequence[str], split: Split, distance: str, divisor: float, widths: Any
) -> Iterator[tuple[float, DenseStack, DenseStack]]:
    """Training and cross kernels of each width, one kernel per feature that varies.

    K_j = exp(-(x_j - z_j)^2 / (c s^2)) with s = width x D; D is the feature's own mean distance,
    or that of whole rows scaled as `distance` says.
    """
    if distance == "own":
        views = dict(zip(names, X.T, strict=True))
        for width, stack, cross in kernels_by_width(widths, views, split):
            if divisor == 2.0:
                yield width, stack, cross
            else:  # powers of the same kernels; those given are reused for the next width
                power = 2.0 / divisor
                yield width, DenseStack(stack.kernels**power), DenseStack(cross.kernels**power)
        return
    Z = scale_rows(X, split.train, distance)
    A, B = Z[split.train], Z[np.concatenate([split.validation, split.test])]
    kept = np.flatnonzero(np.ptp(A, axis=0) > 0)
    n = len(A)
    D = float(pairwise_distances(A).sum()) / (n * (n - 1))
    between = np.stack([(A[:, None, j] - A[None, :, j]) ** 2 for j in kept])
    across = np.stack([(B[:, None, j] - A[None, :, j]) ** 2 for j in kept])
    for width in widths:
        unit = divisor * (width * D) ** 2
        yield width, DenseStack(np.exp(-between / unit)), DenseStack(np.exp(-across / unit))


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """AUCs of every point of the grid, by both scores; grids run by width, then as listed."""
    data = problem_of(cell.data)
    split = split_rows(data.y, generator("E4", cell.data, cell.repeat))
    method, _, kernels = cell.method.removesuffix("]").partition(" [")
    distance, divisor, widths = settings["kernels"][kernels]
    grid = settings["grids"][method]
    m = len(split.validation)
    validation, test = data.y[split.validation], data.y[split.test]
    found: dict[str, list[list[float]]] = {
        f"_{part}_{score}": [] for part in ("validation", "test") for score in protocol_scores()
    }
    for _, stack, cross in chosen_kernels(
        data.X, data.feature_names, split, distance, divisor, widths
    ):
        response, centre = _responses(method, grid, stack, cross, settings["gap"])
        for score in protocol_scores():
            S = response if score == "response" else -np.abs(response - centre[:, None])
            found[f"_validation_{score}"].append(aucs(validation, S[:, :m]).tolist())
            found[f"_test_{score}"].append(aucs(test, S[:, m:]).tolist())
    points = [
        ", ".join(f"{k}={v:.5g}" for k, v in zip(grid, point, strict=True))
        for point in itertools.product(*grid.values())
    ]
    name, target = cell.data.split()
    row = {"set": name, "target": int(target), "base": method, "kernels": kernels, **found}
    return [{**row, "_points": points, "_widths": list(widths)}]


def protocol_scores() -> tuple[str, str]:
    """The response itself, and minus its distance from that of the targets."""
    return "response", "distance"


def _responses(
    method: str, grid: dict[str, Any], stack: DenseStack, cross: DenseStack, gap: float
) -> tuple[Array, Array]:
    """Responses (points, m) of new rows at every point, and the response of targets (points,)."""
    if method in (protocol.MAIN, protocol.PRINTED):
        ps, deltas = tuple(grid["p"]), tuple(grid["delta"])
        if method == protocol.MAIN:
            scores, _ = path_scores(stack, cross, ps, deltas, gap)
        else:
            scores = printed_scores(stack, cross, ps, deltas)
        out = scores.reshape(-1, scores.shape[-1])
        return out, np.ones(len(out))
    entry = get_method(method)
    # Thresholds are not used here, so they may be cheap.
    fixed = {"calibration": Cross(2)}
    responses, centres = [], []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        model = entry.make(kernels="precomputed", **fixed, **point).fit(stack)
        responses.append(model.score_samples(cross))
        on_one = method in REGRESS_ON_ONE
        centres.append(1.0 if on_one else float(np.mean(model.score_samples(stack))))
    return np.array(responses), np.array(centres)


EXPERIMENT = Experiment("E4-hypotheses", "The Delft data, hypotheses", settings, cells, run, report)
