"""Left-out distances and scores against refits of everything, by generator."""

from __future__ import annotations

import warnings

import numpy as np
from kernull.calibration.left_out_distances import left_out_distances
from kernull.calibration.left_out_kernels import left_out_kernel_rows
from kernull.calibration.left_out_scores import left_out_contributions

from benchmarks.alarms.cases import CASES
from experiments._cells import generator
from kernull.mkl import RidgeInverse
from kernull.stacks import KernelSet
from kernull.views import ViewScaler

KINDS = ("standard", "whiten-raw", "whiten", "quantile")
ROWS, COLUMNS, DELTA = 80, 40, 1e-2


def samples():
    """One small table of every generator, by name."""
    known = {}
    for case in CASES:
        if case.make.__name__ not in known:
            rng = generator("alarms", "refits", case.make.__name__)
            draw = case.make(rng, min(case.d, COLUMNS), **case.options)
            known[case.make.__name__] = draw(ROWS)
    return known


def distance_error(kind, X):
    """Largest relative error of squared distances, tiny ones against a millionth of the row's."""
    found, worst = left_out_distances(kind, X).rows(), 0.0
    for i in range(len(X)):
        others = np.arange(len(X)) != i
        Z = ViewScaler.fit(kind, X[others]).transform(X)
        truth = ((Z - Z[i]) ** 2).sum(axis=1)[others]
        size = np.maximum(truth, 1e-6 * truth.max(initial=0.0))
        error = np.abs(found[i, others] - truth) / np.where(size > 0, size, 1.0)
        worst = max(worst, float(error.max()))
    return worst


def score_error(X):
    """Correlation and largest error of left-out scores of the sum at equal weights."""
    n, views = len(X), {"all": np.arange(X.shape[1])}

    def kernels_of(rows):
        return KernelSet.fit(rows, views, widths="auto", scaling="auto", drop_constant=False)

    kernels = kernels_of(X)
    b = np.full(kernels.J, 1.0 / kernels.J)
    inverse = RidgeInverse.of(kernels.combine(b), DELTA * n)
    rows = left_out_kernel_rows(kernels, X)
    found = left_out_contributions(rows, b, inverse.inverse, inverse.coef()).sum(axis=1)
    truth = np.empty(n)
    for i in range(n):
        others = np.arange(n) != i
        refit = kernels_of(X[others])
        A = refit.combine(b) + DELTA * n * np.eye(n - 1)
        truth[i] = (refit.combine(b, X[i : i + 1]) @ np.linalg.solve(A, np.ones(n - 1)))[0]
    same = np.ptp(found) < 1e-12 or np.ptp(truth) < 1e-12
    return (1.0 if same else float(np.corrcoef(found, truth)[0, 1])), float(
        np.abs(found - truth).max()
    )


def page(tables=None):
    """The comparison in Markdown."""
    lines = [
        f"# Rows left out in closed form against {ROWS} refits",
        "",
        "Largest relative error of squared distances under each scaling; correlation and largest "
        "error of left-out scores of the sum (three scalings, equal weights, automatic widths).",
        "",
        "| generator | " + " | ".join(KINDS) + " | score: correlation | largest error |",
        "| --- " * (len(KINDS) + 3) + "|",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, X in (samples() if tables is None else tables).items():
            errors = [f"{distance_error(kind, X):.0e}" for kind in KINDS]
            correlation, largest = score_error(X)
            lines.append(f"| {name} | {' | '.join(errors)} | {correlation:.4f} | {largest:.3f} |")
    return "\n".join(lines) + "\n"
