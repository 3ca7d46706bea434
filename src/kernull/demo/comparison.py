"""The default and what people would pick instead, on data that ship with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from kernull._typing import Array
from kernull.datasets import load_breast_cancer_views, load_digits_views, load_wine_views
from kernull.estimators import MultiKernelFisherNull
from kernull.metrics import auc
from kernull.views import join_views

REPEATS = 3
#: Share of normal rows that everyone is asked to flag.
RATE = 0.05
OURS = "kernull"


@dataclass(frozen=True, eq=False)
class Problem:
    """One class as normal: half of it to learn from, the rest and all others to judge."""

    title: str
    table: Array
    views: dict[str, list[int]]
    y: Any

    def split(self, seed: int) -> tuple[Array, Array, Any]:
        """Training rows, test rows and the labels of the test rows."""
        targets = np.random.default_rng(seed).permutation(np.flatnonzero(self.y == 1))
        half = len(targets) // 2
        test = np.concatenate([targets[half:], np.flatnonzero(self.y == -1)])
        return self.table[targets[:half]], self.table[test], self.y[test]


def problems() -> list[Problem]:
    """Wine (one grower), breast cancer (benign) and digits (the eights), as several views."""
    sets = ((load_wine_views(), 0), (load_breast_cancer_views(), 1), (load_digits_views(), 8))
    return [
        Problem(data.name, *join_views(data.views), data.one_class(target)) for data, target in sets
    ]


def entrants(views: Any, seed: int) -> dict[str, Any]:
    """Detectors as their documentation calls them, each told the share of false alarms.

    All but ours get standardised columns.
    """
    others: dict[str, Any] = {
        "OneClassSVM": OneClassSVM(nu=RATE),
        "IsolationForest": IsolationForest(contamination=RATE, random_state=seed),
        "LocalOutlierFactor": LocalOutlierFactor(novelty=True, contamination=RATE),
    }
    scaled = {name: make_pipeline(StandardScaler(), other) for name, other in others.items()}
    return {OURS: MultiKernelFisherNull(views=views, false_alarm_rate=RATE), **scaled}


def comparison(
    step: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """AUC and share of normal rows flagged, by problem and entrant, over some random halves.

    ``step`` is called with the number of halves that are done, and of all.
    """
    out: dict[str, dict[str, list[tuple[float, float]]]] = {}
    todo = problems()
    for k, problem in enumerate(todo):
        found = out.setdefault(problem.title, {})
        for seed in range(REPEATS):
            train, test, y = problem.split(seed)
            for name, detector in entrants(problem.views, seed).items():
                model = detector.fit(train)
                false = (model.predict(test[y == 1]) == -1).mean()
                found.setdefault(name, []).append((auc(y, model.score_samples(test)), false))
            step(k * REPEATS + seed + 1, len(todo) * REPEATS)
    return out


def comparison_grid(results: dict[str, dict[str, list[tuple[float, float]]]]) -> Grid:
    """Mean AUC by entrant and problem, and the false alarms of all problems; best first."""
    title = f"scikit-learn's data: AUC in %, mean of {REPEATS} random halves; nothing tuned"
    grid = Grid(title=title, box=SIMPLE_HEAD)
    grid.add_column("method")
    for title in results:
        grid.add_column(title, justify="right")
    grid.add_column(f"false alarms\n(asked: {RATE:.0%})", justify="right")
    means = {
        name: {title: np.mean([a for a, _ in by[name]]) for title, by in results.items()}
        for name in next(iter(results.values()))
    }
    best = {title: max(mean[title] for mean in means.values()) for title in results}
    for name in sorted(means, key=lambda n: -sum(means[n].values())):
        cells = [
            f"[bold]{100 * mean:.1f}[/bold]" if mean == best[problem] else f"{100 * mean:.1f}"
            for problem, mean in means[name].items()
        ]
        alarms = [f"{100 * np.mean([f for _, f in by[name]]):.0f}" for by in results.values()]
        label = f"[cyan]{name}[/cyan]" if name == OURS else name
        grid.add_row(label, *cells, " / ".join(alarms) + " %")
    return grid
