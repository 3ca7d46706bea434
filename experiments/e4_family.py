"""E4, the family: methods around lp MK-FN on E4's splits, paired against it.

Grids were fixed before the run. Kernels are those of E4 (one rbf kernel per feature); every method
is tuned by validation AUC, of equal points the first.

- lp-slack SVDD on the mean of the kernels, lp-slack MK-SVDD on the simplex, and the same in an lp
  ball (`SlackSVDDProblem`): cost relative to 1/n, power of the slacks.
- (r, p) MK-FN: the table features x widths under a matrix norm (`MixedBall`); no width
  is chosen.
- robust lp MK-FN (`RobustFisherProblem`): the threshold is a quantile of the residuals of the plain
  model at the same parameters.
- localised lp MK-FN: gates around k-means centres of standardised rows (`stacks.gated`), as wide
  as the mean distance of a row to its centre.
- lp fusion of scores (`ScoreFusionProblem`): weights of the responses of one model a kernel instead
  of weights of kernels, all models with the same width and delta.
- contaminated targets: lp MK-FN and its robust version when a share of the training rows are
  outliers (taken from those of the validation rows, which lose them); p = 2, width 1/2.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from experiments import e4_protocol as protocol
from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._e4_family_report import report
from experiments._models import Split, aucs, kernels_by_width, path_scores, split_rows
from experiments.datasets import DELFT, OneClassData, load_delft
from experiments.e4 import problem_of
from experiments.family.fusion import ScoreFusionProblem, left_out_responses
from experiments.family.gated import gate, soft_memberships
from experiments.family.robust import RobustFisherProblem
from experiments.family.slack_svdd import SlackSVDDProblem
from kernull import mkl
from kernull._typing import Array
from kernull.mkl.balls import LpBall, MixedBall, Simplex
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack

__all__ = ["CONTAMINATED", "EXPERIMENT", "FAMILY"]

#: Methods on clean targets, in the order of the page.
FAMILY = (
    protocol.MAIN,
    "lp-slack SVDD",
    "lp-slack MK-SVDD",
    "lp-slack MK-SVDD, lp ball",
    "(r, p) MK-FN",
    "robust lp MK-FN",
    "localised lp MK-FN",
    "lp fusion of scores",
)
SHARES = (0.05, 0.1, 0.2, 0.3)
CONTAMINATED = tuple(
    f"{method}, {share:.0%} contaminated" for share in SHARES for method in ("plain", "robust")
)


def settings(quick: bool) -> Settings:
    """The fixed classes and every grid."""
    problems = [[name, load_delft(name).target] for name in DELFT]
    return {
        "problems": [p for p in problems if p[0] in ("wine", "survival")] if quick else problems,
        "methods": [*FAMILY, *(CONTAMINATED[2:4] if quick else CONTAMINATED)],
        "repeats": 2 if quick else protocol.REPEATS,
        "widths": list(protocol.WIDTHS),
        "p": list(protocol.PS),
        "delta": list(protocol.DELTAS),
        "slack": {"cost": [0.1, 1.0, 10.0, 100.0], "power": [1.2, 2.0, 4.0]},
        "mk_slack": {"cost": [1.0, 10.0], "power": [1.5, 3.0], "p": [4 / 3, 4.0]},
        "matrix": {"r": [1.0, 4 / 3, 8.0], "p": [1.0, 4 / 3, 2.0, 8.0], "delta": [1e-3, 1e-2, 0.1]},
        "robust": {"p": [4 / 3, 2.0, 8.0], "delta": [1e-3, 1e-2, 0.1, 1.0]},
        "quantiles": [0.5, 0.75, 0.9],
        "local": {"L": [2, 3], "r": [1.0, 2.0], "p": [4 / 3, 2.0], "delta": [1e-3, 1e-2, 0.1]},
        "fusion": {"p": [1.0, 4 / 3, 2.0, 8.0, 1e6], "delta": [1e-3, 1e-2, 0.1, 1.0],
                   "steepness": [1.0, 8.0]},
        "contaminated": {"p": 2.0, "width": 0.5, "delta": [1e-3, 1e-2, 0.1, 1.0]},
        "gap": 1e-4,
    }  # fmt: skip


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Methods x problems x repeats, repeat by repeat."""
    count = settings["repeats"] if repeats is None else repeats
    return [
        Cell(f"{name} {target}", method, r)
        for r in range(count)
        for method in settings["methods"]
        for name, target in settings["problems"]
    ]


class Point(NamedTuple):
    """Scores of validation and test rows by one point of a grid."""

    choice: str
    scores: Array
    gap: float | None = None
    """Certified relative gap of the weights, where the cell keeps the largest of its grid."""


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """Test AUC at the best validation AUC."""
    data = problem_of(cell.data)
    split = split_rows(data.y, generator("E4", cell.data, cell.repeat))
    more: dict[str, Any] = {}
    if cell.method in CONTAMINATED:
        kind, _, share = cell.method.removesuffix(" contaminated").partition(", ")
        share_of = float(share.removesuffix("%")) / 100
        split, added = contaminate(data, split, share_of, cell)
        points = _contaminated(kind, data, split, settings)
        more = {"added": added}
    else:
        points = METHODS[cell.method](data, split, settings, cell)
    m = len(split.validation)
    validation, test = data.y[split.validation], data.y[split.test]
    best: dict[str, Any] = {}
    for point in points:
        reached = float(aucs(validation, point.scores[:m]))
        if point.gap is not None:
            more["largest_gap"] = max(point.gap, more.get("largest_gap", 0.0))
        if not best or reached > best["validation_auc"]:
            auc = float(aucs(test, point.scores[m:]))
            best = {"auc": auc, "validation_auc": reached, "choice": point.choice}
    name, target = cell.data.split()
    return [{"set": name, "target": int(target), **best, **more}]


def contaminate(data: OneClassData, split: Split, share: float, cell: Cell) -> tuple[Split, int]:
    """Outliers of the validation rows join the training rows until they are that share of them.

    At least one outlier stays for validation.
    """
    rng = generator("E4-family", cell.data, cell.repeat)
    outliers = rng.permutation(split.validation[data.y[split.validation] != 1])
    wanted = round(share / (1 - share) * len(split.train))
    moved = outliers[: min(wanted, len(outliers) - 1)]
    rest = split.validation[~np.isin(split.validation, moved)]
    return Split(np.concatenate([split.train, moved]), rest, split.test), len(moved)


def _stacks(data: OneClassData, split: Split, widths: Sequence[float]) -> Iterator[Any]:
    views = dict(zip(data.feature_names, data.X.T, strict=True))
    yield from kernels_by_width(widths, views, split)


def _scores(cross: DenseStack, weights: Array, coef: Array) -> Array:
    return np.asarray(weights @ cross.products(coef))


def _main(data: Any, split: Split, settings: Settings, cell: Cell) -> Iterator[Point]:
    for width, stack, cross in _stacks(data, split, settings["widths"]):
        ps, deltas = tuple(settings["p"]), tuple(settings["delta"])
        scores, _ = path_scores(stack, cross, ps, deltas, settings["gap"])
        for (i, p), (k, d) in itertools.product(enumerate(ps), enumerate(deltas)):
            yield Point(f"width={width:g}, p={p:.4g}, delta={d:g}", scores[i, k])


def _slack(data: Any, split: Split, settings: Settings, cell: Cell) -> Iterator[Point]:
    grid = settings["slack"]
    for width, stack, cross in _stacks(data, split, settings["widths"]):
        one = DenseStack(stack.kernels.mean(axis=0)[None])
        C = cross.kernels.mean(axis=0)
        for cost, power in itertools.product(grid["cost"], grid["power"]):
            a = SlackSVDDProblem(one, cost / stack.n, power).inner(np.ones(1))
            # rbf kernels: the distance to the centre falls with the similarity to it.
            yield Point(f"width={width:g}, cost={cost:g}/n, power={power:g}", C @ a)


def _mk_slack(ball: bool) -> Callable[..., Iterator[Point]]:
    def points(data: Any, split: Split, settings: Settings, cell: Cell) -> Iterator[Point]:
        grid = settings["mk_slack"]
        for width, stack, cross in _stacks(data, split, settings["widths"]):
            for cost, power in itertools.product(grid["cost"], grid["power"]):
                problem = SlackSVDDProblem(stack, cost / stack.n, power, diagonal=not ball)
                sets: list[Any] = [LpBall(p) for p in grid["p"]] if ball else [Simplex()]
                for weights in sets:
                    found = solve(problem, weights, tol=settings["gap"])
                    choice = f"width={width:g}, cost={cost:g}/n, power={power:g}, {weights!r}"
                    yield Point(choice, _scores(cross, found.weights, found.coef))

    return points


def _matrix(data: Any, split: Split, settings: Settings, cell: Cell) -> Iterator[Point]:
    grid = settings["matrix"]
    found = [
        (stack.kernels.copy(), cross.kernels.copy())
        for _, stack, cross in _stacks(data, split, settings["widths"])
    ]
    # Features by rows, widths by columns of the table.
    K, C = (np.concatenate(np.stack(part, axis=1)) for part in zip(*found, strict=True))
    stack, cross = DenseStack(K), DenseStack(C)
    shape = (stack.J // len(found), len(found))
    for r in grid["r"]:
        yield from _path(stack, cross, grid, settings, r, shape, f"r={r:.4g}")


def _path(
    stack: DenseStack,
    cross: DenseStack,
    grid: dict[str, Any],
    settings: Settings,
    r: float,
    shape: tuple[int, int],
    label: str,
) -> Iterator[Point]:
    path = mkl.path(
        stack,
        grid["p"],
        grid["delta"],
        tol=settings["gap"],
        ball=lambda p: MixedBall(p, r, np.repeat(np.arange(shape[0]), shape[1]).tolist()),
    )
    scores = path.scores(cross)
    for (i, p), (k, d) in itertools.product(enumerate(grid["p"]), enumerate(grid["delta"])):
        yield Point(f"{label}, p={p:.4g}, delta={d:g}", scores[i, k])


def _robust(data: Any, split: Split, settings: Settings, cell: Cell) -> Iterator[Point]:
    grid = settings["robust"]
    for width, stack, cross in _stacks(data, split, settings["widths"]):
        for p, delta in itertools.product(grid["p"], grid["delta"]):
            label = f"width={width:g}, p={p:.4g}, delta={delta:g}"
            yield from robust_points(stack, cross, p, delta, label, settings)


def robust_points(
    stack: DenseStack, cross: DenseStack, p: float, delta: float, label: str, settings: Settings
) -> Iterator[Point]:
    """The robust models whose thresholds are quantiles of the plain model's residuals."""
    ridge, ball = delta * stack.n, LpBall(p)
    plain = solve(FisherProblem(stack, ridge), ball, tol=settings["gap"])
    residual = 1.0 - plain.weights @ stack.products(plain.coef)
    for quantile in settings["quantiles"]:
        k = max(float(np.quantile(residual, quantile)), 1e-6)
        problem = RobustFisherProblem(stack, ridge, k)
        found = solve(problem, ball, tol=settings["gap"], init=np.maximum(plain.weights, 1e-12))
        yield Point(f"{label}, quantile={quantile:g}", _scores(cross, found.weights, found.coef))


def _local(data: Any, split: Split, settings: Settings, cell: Cell) -> Iterator[Point]:
    grid = settings["local"]
    scaler = StandardScaler().fit(data.X[split.train])
    Z = scaler.transform(data.X)
    train, rest = Z[split.train], Z[np.concatenate([split.validation, split.test])]
    for width, stack, cross in _stacks(data, split, settings["widths"]):
        for L in grid["L"]:
            clusters = KMeans(L, n_init=5, random_state=0).fit(train)
            near = np.linalg.norm(train - clusters.cluster_centers_[clusters.labels_], axis=1)
            gates, new = (
                soft_memberships(part, clusters.cluster_centers_, max(float(near.mean()), 1e-9))
                for part in (train, rest)
            )
            K, C = gate(stack, gates), gate(cross, new, gates)
            for r in grid["r"]:
                label = f"width={width:g}, L={L}, r={r:.4g}"
                yield from _path(K, C, grid, settings, r, (stack.J, L), label)


def _fusion(data: Any, split: Split, settings: Settings, cell: Cell) -> Iterator[Point]:
    grid = settings["fusion"]
    for width, stack, cross in _stacks(data, split, settings["widths"]):
        for delta in grid["delta"]:
            left_out, coef = left_out_responses(stack, delta * stack.n)
            new = np.einsum("jmi,ji->mj", cross.kernels, coef)
            for steepness, p in itertools.product(grid["steepness"], grid["p"]):
                problem = ScoreFusionProblem(left_out, steepness)
                found = solve(problem, LpBall(p), tol=settings["gap"])
                choice = f"width={width:g}, delta={delta:g}, steepness={steepness:g}, p={p:.4g}"
                yield Point(choice, new @ found.weights, found.gap)


def _contaminated(kind: str, data: Any, split: Split, settings: Settings) -> Iterator[Point]:
    grid = settings["contaminated"]
    for _, stack, cross in _stacks(data, split, [grid["width"]]):
        for delta in grid["delta"]:
            label = f"delta={delta:g}"
            if kind == "robust":
                yield from robust_points(stack, cross, grid["p"], delta, label, settings)
                continue
            problem = FisherProblem(stack, delta * stack.n)
            found = solve(problem, LpBall(grid["p"]), tol=settings["gap"])
            yield Point(label, _scores(cross, found.weights, found.coef))


METHODS: dict[str, Callable[..., Iterator[Point]]] = {
    protocol.MAIN: _main,
    "lp-slack SVDD": _slack,
    "lp-slack MK-SVDD": _mk_slack(ball=False),
    "lp-slack MK-SVDD, lp ball": _mk_slack(ball=True),
    "(r, p) MK-FN": _matrix,
    "robust lp MK-FN": _robust,
    "localised lp MK-FN": _local,
    "lp fusion of scores": _fusion,
}

EXPERIMENT = Experiment(
    "E4-family", "The Delft data, methods around lp MK-FN", settings, cells, run, report
)
