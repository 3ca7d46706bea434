"""E4, the Gaussian process: which of its scores comes below chance, as GP-Product does in print.

GP-Average and GP-Product with each of Kemmler's four scores (mean, minus variance, log density of
1, and mean over standard deviation), on the splits, kernels and grids of E4: the test AUC at the
best validation AUC, and the AUC of every point of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import get_method
from experiments import e4_protocol as protocol
from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._models import aucs, kernels_by_width, split_rows
from experiments._tables import distinct, group, markdown, mean_std, values, where
from experiments.datasets import DELFT, load_delft
from experiments.e4 import problem_of
from experiments.published import DELFT_AUC

__all__ = ["EXPERIMENT", "findings"]

METHODS = ("GP-Average", "GP-Product")
SCORES = ("mean", "variance", "log_density", "ratio")
#: How the scores are called in the text.
WORDS = {
    "mean": "the mean",
    "variance": "minus the variance",
    "log_density": "the log density of 1",
    "ratio": "mean over standard deviation",
}


def settings(quick: bool) -> Settings:
    """The fixed classes and the grid of E4."""
    problems = [[name, load_delft(name).target] for name in DELFT]
    return {
        "problems": [p for p in problems if p[0] in ("wine", "survival")] if quick else problems,
        "methods": list(METHODS),
        "scores": list(SCORES),
        "repeats": 2 if quick else protocol.REPEATS,
        "widths": list(protocol.WIDTHS),
        "noise": list(protocol.GRIDS["GP-Product"]["noise"]),
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Methods x problems x repeats; a cell has all scores."""
    count = settings["repeats"] if repeats is None else repeats
    return [
        Cell(f"{name} {target}", method, r)
        for method in settings["methods"]
        for name, target in settings["problems"]
        for r in range(count)
    ]


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """One row per score and point of the grid."""
    data = problem_of(cell.data)
    split = split_rows(data.y, generator("E4", cell.data, cell.repeat))
    m = len(split.validation)
    validation, test = data.y[split.validation], data.y[split.test]
    views = dict(zip(data.feature_names, data.X.T, strict=True))
    name, target = cell.data.split()
    rows: Rows = []
    for width, stack, cross in kernels_by_width(settings["widths"], views, split):
        for noise in settings["noise"]:
            for score in settings["scores"]:
                model = get_method(cell.method).make(
                    kernels="precomputed", noise=noise, score_type=score
                )
                found = model.fit(stack).score_samples(cross)
                rows.append(
                    {
                        "set": name,
                        "target": int(target),
                        "score": score,
                        "width": width,
                        "noise": noise,
                        "auc": float(aucs(test, found[m:])),
                        "validation_auc": float(aucs(validation, found[:m])),
                    }
                )
    return rows


def tuned(rows: Rows) -> dict[tuple[str, str, str], Any]:
    """Test AUC in percent at the best validation AUC, by method, score and set."""
    out: dict[tuple[str, str, str], Any] = {}
    for (method, score, name), part in group(rows, "method", "score", "set").items():
        found = []
        for repeat in group(part, "repeat").values():
            best = int(np.argmax(values(repeat, "validation_auc")))
            found.append(100 * float(repeat[best]["auc"]))
        out[method, score, name] = np.array(found)
    return out


def over_the_grid(rows: Rows, method: str, score: str, name: str) -> Any:
    """Mean test AUC in percent of every point of the grid."""
    part = where(rows, method=method, score=score, set=name)
    return np.array([100 * values(p, "auc").mean() for p in group(part, "width", "noise").values()])


def findings(rows: Rows) -> list[str]:
    """Sentences about GP-Product that follow from the table."""
    sets = distinct(rows, "set")
    best = tuned(rows)
    below = [
        f"{WORDS[score]} on {name} ({best['GP-Product', score, name].mean():.1f})"
        for score in distinct(rows, "score")
        for name in sets
        if best["GP-Product", score, name].mean() < 50
    ]
    lowest = []
    for score in distinct(rows, "score"):
        for name in sets:
            grid = over_the_grid(rows, "GP-Product", score, name)
            if grid.min() < 50:
                lowest.append(f"{WORDS[score]} on {name} ({grid.min():.1f} to {grid.max():.1f})")
    known = DELFT_AUC["GP-Product"]
    printed = [name for name in sets if known[name][0] < 50]
    near = [
        f"{WORDS[score]} on {name}"
        for score in distinct(rows, "score")
        for name in printed
        if abs(best["GP-Product", score, name].mean() - known[name][0]) <= known[name][1]
    ]
    return [
        f"The paper prints GP-Product below 50 on {len(printed)} of {len(sets)} sets "
        f"({', '.join(printed)}).",
        "Ours, tuned by validation, is below 50 with " + (", ".join(below) or "none") + ".",
        "Somewhere on the grid of widths and noises the mean over the repeats is below 50 with "
        + (", ".join(lowest) or "none")
        + ".",
        "Within one published standard deviation of a figure below 50: "
        + (", ".join(near) or "none")
        + ".",
    ]


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """A table of tuned AUCs, and one of the whole grid."""
    sets, best = distinct(rows, "set"), tuned(rows)
    lines, ranges = [], []
    for method in distinct(rows, "method"):
        known = DELFT_AUC[method]
        lines.append([method, "published", *(f"{known[s][0]} ± {known[s][1]}" for s in sets)])
        for score in distinct(rows, "score"):
            lines.append([method, score, *(mean_std(best[method, score, s]) for s in sets)])
            found = [over_the_grid(rows, method, score, s) for s in sets]
            ranges.append([method, score, *(f"{g.min():.1f} to {g.max():.1f}" for g in found)])
    return "\n\n".join(
        [
            "AUC in percent on the target classes fixed beforehand, mean ± std over "
            f"{len(distinct(rows, 'repeat'))} repeats, at the best validation AUC:",
            markdown(["method", "score", *sets], lines),
            "\n".join(f"- {sentence}" for sentence in findings(rows)),
            "Mean over the repeats at every point of the grid, lowest to highest:",
            markdown(["method", "score", *sets], ranges),
        ]
    )


EXPERIMENT = Experiment(
    "E4-gp", "The Delft data, scores of the Gaussian process", settings, cells, run, report
)
