"""Localised weights and coupled tasks: do they beat lp MK-FN where they should? A plain answer.

Grids and problems were fixed before the run; everything is tuned by validation AUC.

Localised weights (`stacks.gated`) against lp MK-FN:

- "two rooms", made for them: targets in two clusters; in each, one view is tight and the other says
  nothing; outliers are tight in the wrong view.
- Multiple Features with three digits (0, 4, 8) as one target class, 60 rows of each; vehicle with
  classes 1 and 2 as one target class.

Tasks with a learned covariance (`stacks.coupled`) against its two ends, uncoupled tasks with shared
weights (Joint lp MK-FN with one ridge) and one model for all:

- "relatives", made for them: six tasks with ten training rows each, whose centres differ a little.
- diabetes and survival by age: the rows of three age groups are three tasks, each with its own
  outliers; twelve training rows per task, the column age left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._models import Split, aucs, kernels_by_width, split_rows
from experiments._ranks import paired
from experiments._tables import distinct, group, markdown, mean_std, values
from experiments.datasets import load_delft, load_multiple_features
from experiments.family.coupled import couple, task_kernels
from experiments.family.gated import gate, soft_memberships
from kernull import mkl
from kernull._typing import Array
from kernull.mkl.balls import MixedBall
from kernull.operators import DenseStack

__all__ = ["EXPERIMENT", "sentences"]

LOCAL = ("two rooms", "digits 0, 4, 8", "vehicle 1, 2")
TASKS = ("relatives", "diabetes by age", "survival by age")
#: Why there is a control.
CAVEAT = (
    "Gates are made from all columns at once, while a kernel sees one view, so part of a gain may "
    "be theirs and not the weights': hence the control with the same gates and equal weights. It "
    "was added after the first results."
)
PLAIN, LOCALISED = "lp MK-FN", "localised lp MK-FN"
#: The control: the same gates, nothing learned.
EQUAL = "gates and equal weights"
UNCOUPLED, SHARED, LEARNED = "uncoupled tasks", "one model for all", "learned coupling"


def settings(quick: bool) -> Settings:
    """Problems, methods and grids."""
    return {
        "local": list(LOCAL[:1] if quick else LOCAL),
        "tasks": list(TASKS[:1] if quick else TASKS),
        "repeats": 2 if quick else 10,
        "widths": [1.0, 0.5, 0.25],
        "p": [1.0, 4 / 3, 2.0, 8.0],
        "delta": [1e-3, 1e-2, 0.1, 1.0],
        "r": [1.0, 2.0],
        "clusters": [2, 3],
        "gap": 1e-4,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Problems x methods x repeats; the largest problem, vehicle, comes last."""
    count = settings["repeats"] if repeats is None else repeats
    pairs = [(d, m) for d in settings["local"] for m in (PLAIN, LOCALISED, EQUAL)]
    pairs += [(d, m) for d in settings["tasks"] for m in (UNCOUPLED, SHARED, LEARNED)]
    pairs.sort(key=lambda pair: pair[0].startswith("vehicle"))
    return [Cell(d, m, r) for d, m in pairs for r in range(count)]


class Problem(NamedTuple):
    """Views of rows, labels, the task of each row, and the split."""

    views: dict[str, Array]
    y: Any
    task: Any
    split: Split


def two_rooms(rng: np.random.Generator) -> Problem:
    """60 training targets; see the module."""

    def targets(n: int) -> Array:
        room = rng.integers(0, 2, n)
        X = rng.normal(0, 2.0, (n, 2))
        X[np.arange(n), room] = rng.normal(0, 0.3, n)
        return np.column_stack([X, 6.0 * room + rng.normal(0, 0.5, n)])

    inside = targets(180)
    outliers = targets(120)
    outliers[:, :2] = outliers[:, 1::-1]  # tight where the other room is
    table = np.vstack([inside, outliers])
    y = np.repeat([1, -1], [180, 120])
    split = Split(np.arange(60), np.r_[60:120, 180:240], np.r_[120:180, 240:300])
    views = {"first": table[:, :1], "second": table[:, 1:2], "room": table[:, 2:]}
    return Problem(views, y, np.zeros(300, dtype=int), split)


def relatives(rng: np.random.Generator) -> Problem:
    """Six tasks in four views; a task's outliers lie off its centre in two of them."""
    rows, labels, tasks, parts = [], [], [], []
    for c in range(6):
        centre = 0.5 * rng.normal(size=4)
        good, bad = centre + rng.normal(size=(50, 4)), centre + rng.normal(size=(40, 4))
        bad[:, :2] += 2.0 * rng.choice([-1, 1], size=(40, 2))
        rows += [good, bad]
        labels += [1] * 50 + [-1] * 40
        tasks += [c] * 90
        parts += [0] * 10 + [1] * 20 + [2] * 20 + [1] * 20 + [2] * 20
    table, part = np.vstack(rows), np.array(parts)
    split = Split(*(np.flatnonzero(part == k) for k in range(3)))
    return Problem(
        {f"x{j}": table[:, [j]] for j in range(4)}, np.array(labels), np.array(tasks), split
    )


@lru_cache(maxsize=4)
def _digits() -> Any:
    return load_multiple_features()


def by_age(name: str, rng: np.random.Generator) -> Problem:
    """Three age groups with equal numbers of targets as tasks."""
    data = load_delft(name)
    age = data.X[:, data.feature_names.index("age")]
    edges = np.quantile(age[data.y == 1], [1 / 3, 2 / 3])
    task = np.searchsorted(edges, age, side="left")
    train, validation, test = [], [], []
    for c in range(3):
        good = rng.permutation(np.flatnonzero((task == c) & (data.y == 1)))
        bad = rng.permutation(np.flatnonzero((task == c) & (data.y != 1)))
        half = 12 + (len(good) - 12) // 2
        train.append(good[:12])
        validation += [good[12:half], bad[: len(bad) // 2]]
        test += [good[half:], bad[len(bad) // 2 :]]
    split = Split(np.concatenate(train), np.concatenate(validation), np.concatenate(test))
    views = {n: data.X[:, [j]] for j, n in enumerate(data.feature_names) if n != "age"}
    return Problem(views, data.y, task, split)


def problem_of(cell: Cell) -> Problem:
    """The problem of a cell; the same for every method."""
    rng = generator("local and tasks", cell.data, cell.repeat)
    if cell.data == "two rooms":
        return two_rooms(rng)
    if cell.data == "relatives":
        return relatives(rng)
    if cell.data.endswith("by age"):
        return by_age(cell.data.split()[0], rng)
    if cell.data.startswith("digits"):
        data = _digits()
        kept = np.concatenate(
            [rng.permutation(np.flatnonzero(data.y == d))[:60] for d in range(10)]
        )
        y = np.where(np.isin(data.y[kept], (0, 4, 8)), 1, -1)
        views = {name: view[kept] for name, view in data.views.items()}
        return Problem(views, y, np.zeros(len(y), dtype=int), split_rows(y, rng))
    parts = [load_delft("vehicle", c) for c in (1, 2)]
    y = np.where((parts[0].y == 1) | (parts[1].y == 1), 1, -1)
    columns = zip(parts[0].feature_names, parts[0].X.T, strict=True)
    views = {name: column[:, None] for name, column in columns}
    return Problem(views, y, np.zeros(len(y), dtype=int), split_rows(y, rng))


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """Test AUC at the best validation AUC; over tasks, the mean of the tasks' own AUCs."""
    problem = problem_of(cell)
    split = problem.split
    m = len(split.validation)
    best: dict[str, Any] = {}
    for choice, scores in _points(cell.method, problem, settings):
        reached = _auc(problem, split.validation, scores[:m])
        if not best or reached > best["validation_auc"]:
            auc = _auc(problem, split.test, scores[m:])
            best = {"auc": auc, "validation_auc": reached, "choice": choice}
    return [best]


def _auc(problem: Problem, rows: Any, scores: Array) -> float:
    found = []
    for c in np.unique(problem.task[rows]):
        own = problem.task[rows] == c
        found.append(float(aucs(problem.y[rows][own], scores[own])))
    return float(np.mean(found))


def _points(method: str, problem: Problem, settings: Settings) -> Iterator[tuple[str, Array]]:
    split, J = problem.split, len(problem.views)
    rest = np.concatenate([split.validation, split.test])
    for width, stack, cross in kernels_by_width(settings["widths"], problem.views, split):
        if method == PLAIN:
            yield from _path(stack, cross, settings, 2.0, (J, 1), f"width={width:g}")
        elif method in (LOCALISED, EQUAL):
            table = np.column_stack(list(problem.views.values()))
            Z = StandardScaler().fit(table[split.train]).transform(table)
            for L in settings["clusters"]:
                fit = KMeans(L, n_init=5, random_state=0).fit(Z[split.train])
                centres = fit.cluster_centers_
                near = float(np.linalg.norm(Z[split.train] - centres[fit.labels_], axis=1).mean())
                gates, new = (
                    soft_memberships(Z[part], centres, near) for part in (split.train, rest)
                )
                K, C = gate(stack, gates), gate(cross, new, gates)
                if method == EQUAL:
                    equal = {**settings, "p": [np.inf]}
                    yield from _path(K, C, equal, np.inf, (J, L), f"width={width:g}, L={L}")
                    continue
                for r in settings["r"]:
                    label = f"width={width:g}, L={L}, r={r:g}"
                    yield from _path(K, C, settings, r, (J, L), label)
        else:
            T = task_kernels(int(problem.task.max()) + 1)
            T = {UNCOUPLED: T[:1], SHARED: T[1:], LEARNED: T}[method]
            own, new_own = problem.task[split.train], problem.task[rest]
            K, C = couple(stack, T, own), couple(cross, T, new_own, own)
            for r in settings["r"] if method == LEARNED else [2.0]:
                label = f"width={width:g}, r={r:g}"
                yield from _path(K, C, settings, r, (J, len(T)), label)


def _path(
    stack: DenseStack,
    cross: DenseStack,
    settings: Settings,
    r: float,
    shape: tuple[int, int],
    label: str,
) -> Iterator[tuple[str, Array]]:
    ps, deltas = settings["p"], settings["delta"]
    groups = np.repeat(np.arange(shape[0]), shape[1]).tolist()
    path = mkl.path(stack, ps, deltas, tol=settings["gap"], ball=lambda p: MixedBall(p, r, groups))
    scores = path.scores(cross)
    for (i, p), (k, d) in itertools.product(enumerate(ps), enumerate(deltas)):
        yield f"{label}, p={p:.4g}, delta={d:g}", scores[i, k]


def sentences(rows: Rows) -> list[str]:
    """A plain answer for each problem, from the table alone."""
    by = {key: 100 * values(part, "auc") for key, part in group(rows, "data", "method").items()}
    out = []
    for data in distinct(rows, "data"):
        of_tasks = [(LEARNED, UNCOUPLED), (LEARNED, SHARED)]
        of_gates = [(LOCALISED, PLAIN), (LOCALISED, EQUAL)]
        for ours, theirs in of_gates if data in LOCAL else of_tasks:
            n = min(len(by[data, ours]), len(by[data, theirs]))
            a, b = by[data, ours][:n], by[data, theirs][:n]
            shift, up, down, p_value = paired(a, b)
            word = "no clear difference" if p_value > 0.05 else ("better" if shift > 0 else "worse")
            out.append(
                f"{data}: {ours} {a.mean():.1f}, {theirs} {b.mean():.1f} ({shift:+.1f}; of {n} "
                f"repeats {up} up, {down} down, p = {p_value:.2g}): {word}."
            )
    return out


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """One line per problem and method, and the answers."""
    lines = [
        [data, method, mean_std(100 * values(part, "auc")), len(part)]
        for (data, method), part in group(rows, "data", "method").items()
    ]
    return "\n\n".join(
        [
            "AUC in percent, mean ± std over repeats; of several tasks, the mean of their AUCs. "
            "Every method tuned by validation AUC; problems and grids were fixed before the run "
            "(`experiments.local_and_tasks`).",
            markdown(["problem", "method", "AUC", "repeats"], lines),
            "Paired by repeat (Wilcoxon's signed-rank test):",
            "\n".join(f"- {sentence}" for sentence in sentences(rows)),
            CAVEAT,
        ]
    )


EXPERIMENT = Experiment(
    "local-and-tasks",
    "Localised weights and coupled tasks where they should help",
    settings,
    cells,
    run,
    report,
)
