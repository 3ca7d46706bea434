"""One broken column in a view that has little say, or one among many: how far off it must be."""

from __future__ import annotations

import numpy as np

from benchmarks.decisions import protocol
from benchmarks.decisions.measures import fitted, flagged
from experiments._cells import generator

NEW = 50


def _related(rng, n, d=6):
    """Rows of three factors and noise; the same factors whatever the seed."""
    factors = np.random.default_rng(1).normal(size=(3, d))
    return rng.normal(size=(n, 3)) @ factors + 0.5 * rng.normal(size=(n, d))


def _views_and_column(rng, n):
    return np.column_stack([*(_related(rng, n) for _ in range(3)), rng.normal(size=n)])


def _view_and_count(rng, n):
    return np.column_stack([_related(rng, n), rng.poisson(2, n)])


def _independent(rng, n):
    return rng.normal(size=(n, 10))


#: How rows are drawn, their views, and the column that breaks.
CASES = {
    "a Gaussian column beside three views of six": (
        _views_and_column,
        {"a": range(6), "b": range(6, 12), "c": range(12, 18), "one": [18]},
        18,
    ),
    "a count beside a view of six": (_view_and_count, {"a": range(6), "one": [6]}, 6),
    "one of ten independent columns, each a view": (
        _independent,
        {f"x{j}": [j] for j in range(10)},
        3,
    ),
}


def of_seed(seed):
    """Share of rows flagged whose column is so many standard deviations off, and of normal ones."""
    out = []
    for name, (draw, views, column) in CASES.items():
        views = {view: list(columns) for view, columns in views.items()}
        for n in protocol.FAINT_ROWS:
            rng = generator("decisions", "faint", name, n, seed)
            train = draw(rng, n)
            model = fitted(train, views)
            alarms = float(flagged(model, draw(rng, 8 * NEW)).mean())
            for size in protocol.FAINT:
                broken = draw(rng, NEW)
                broken[:, column] = train[:, column].mean() + size * train[:, column].std()
                row = {"what": "faint", "table": f"{name}, n = {n}", "seed": seed}
                value = float(flagged(model, broken).mean())
                out.append({**row, "kind": f"{size:g}", "value": value, "alarms": alarms})
    return out
