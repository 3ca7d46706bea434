"""E9-joint. A stand-in for E9: joint learning of digits and flowers, where tasks have few rows.

The faces of E9 cannot be had. What the paper says of joint learning can be asked of other data: do
tasks of few rows gain from sharing kernel weights (Algorithm 2), what does a new task cost once
weights are known, and how do the shared weights depend on p? Fixed before the run:

- Multiple Features (six views) and MNIST (pixels and their differences in the whole image and its
  quadrants, ten views): every digit is a task, learned from n = 5, 10, 20 or 40 of its images. Rows
  are drawn anew each repeat. A task sees its own rows only: standardising and widths are its own.
- Flowers17 (seven descriptors of our own, those of E1; added after the runs of the other two and
  before its own): each of the first ten kinds is a task. A kind has 80 images, of which 20 validate
  and 20 test.
- Joint lp MK-FN (the exact optimum, and Algorithm 2 as printed: 200 iterations at most, the last
  iterate) against one lp MK-FN per task, equal weights (FN-Average), and enrolment: the weights
  learned from the nine other tasks, at the parameters that joint learning chose.
- The paper's grid of p, delta and width. One choice for all tasks, by their mean AUC on validation
  rows (20 of each digit; of equal points the first); 100 other rows of each digit are the test.
- The number that decides is joint minus separate in mean AUC over the ten tasks, paired by repeat.
- Cost of enrolment, on digits: seconds of enrolling one of 20, 60 and 150 images divided by those
  of learning it alone; kernels given, and from rows with the estimators and `kernull.PAPER` (there
  learning alone is Algorithm 1). Best of five alternating runs.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments._cells import Cell, Experiment, Rows, Settings, generator
from experiments._flowers import class_features
from experiments._models import Split, aucs, kernels_by_width
from experiments._plots import COLOURS, MARKERS, new_figure, save, shared_weights
from experiments._ranks import paired
from experiments._tables import distinct, group, markdown, values, where
from experiments.datasets import load_mnist, load_multiple_features
from kernull import PAPER, JointMultiKernelFisherNull, MultiKernelFisherNull
from kernull._typing import Array, Indices
from kernull.mkl import PAPER_DELTAS, PAPER_PS, PAPER_WIDTHS
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem, JointFisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from kernull.views import join_views

__all__ = ["EXPERIMENT"]

JOINT, PRINTED, ENROLLED = "joint (exact)", "joint (Algorithm 2)", "enrolled"
SEPARATE, EQUAL = "separate", "equal weights"
METHODS = (JOINT, PRINTED, ENROLLED, SEPARATE, EQUAL)
ENROLMENT = "enrolment"
DATA = ("Multiple Features", "MNIST", "Flowers17")
#: The tasks: digits, or the first ten kinds of flowers.
DIGITS = range(10)


def settings(quick: bool) -> Settings:
    """Data, sizes and grids."""
    return {
        "data": list(DATA[:1] if quick else DATA),
        "rows": [5] if quick else [5, 10, 20, 40],
        "repeats": 2 if quick else 10,
        "validation": 20,
        "test": 100,
        "test_flowers": 20,
        "widths": [0.5] if quick else list(PAPER_WIDTHS),
        "ps": [1.0, 4 / 3, 2.0, 1e6] if quick else list(PAPER_PS),
        "deltas": [1e-3, 1e-2, 0.1] if quick else list(PAPER_DELTAS),
        "gap": 1e-4,
        "iterations": 200,
        "stop": 1e-6,
        "enrol": [20] if quick else [20, 60, 150],
        "enrol_repeats": 1 if quick else 3,
    }


def cells(settings: Settings, repeats: int | None) -> Sequence[Cell]:
    """Data x sizes x repeats, and the times of enrolment."""
    for name in settings["data"]:
        _load(name)  # a missing file should be reported before any work is done
    count = settings["repeats"] if repeats is None else repeats
    timed = settings["enrol_repeats"] if repeats is None else repeats
    found = [
        Cell(d, f"{n} rows", r)
        for r in range(count)
        for d in settings["data"]
        for n in settings["rows"]
    ]
    digits = [d for d in settings["data"] if d != "Flowers17"]  # its kinds have too few images
    return found + [Cell(d, ENROLMENT, r) for r in range(timed) for d in digits]


# -- data --------------------------------------------------------------------------------------


@lru_cache(maxsize=3)
def _load(name: str) -> tuple[dict[str, Any], Any]:
    """Views of all rows, or images under the name ``""``, and the digits."""
    if name == "Flowers17":
        kinds = [class_features(label) for label in DIGITS]
        y = np.repeat(DIGITS, [len(kind["rgb"]) for kind in kinds])
        return {key: np.concatenate([kind[key] for kind in kinds]) for key in kinds[0]}, y
    if name == "MNIST":
        images = load_mnist()
        return {"": images.train_images}, images.train_labels
    data = load_multiple_features()
    return dict(data.views), data.y


def image_views(images: Array) -> dict[str, Array]:
    """Pixels, and differences of neighbouring pixels, of the whole image and of its quadrants.

    Examples
    --------
    >>> views = image_views(np.zeros((3, 28, 28)))
    >>> len(views), views["pixels@whole"].shape, views["edges@top left"].shape
    (10, (3, 784), (3, 364))
    """
    pixels = np.asarray(images, dtype=float) / 255.0
    half = pixels.shape[1] // 2
    first, last = slice(None, half), slice(half, None)
    regions = {
        "whole": (slice(None), slice(None)),
        "top left": (first, first),
        "top right": (first, last),
        "bottom left": (last, first),
        "bottom right": (last, last),
    }
    views = {}
    for name, (rows, columns) in regions.items():
        part = pixels[:, rows, columns]
        views[f"pixels@{name}"] = part.reshape(len(part), -1)
        across, down = np.diff(part, axis=2), np.diff(part, axis=1)
        views[f"edges@{name}"] = np.concatenate(
            [across.reshape(len(part), -1), down.reshape(len(part), -1)], axis=1
        )
    return {n: views[n] for kind in ("pixels", "edges") for n in views if n.startswith(kind)}


class Draw(NamedTuple):
    """Rows of one repeat: views, and positions of training, validation and test rows."""

    views: dict[str, Array]
    train: list[Indices]
    """Of each digit."""
    validation: Indices
    test: Indices
    of_validation: Any
    """Digit of each validation row."""
    of_test: Any


def draw(name: str, n: int, settings: Settings, rng: np.random.Generator) -> Draw:
    """Rows of every digit for training, validation and test; no row is in two of them."""
    views, y = _load(name)
    tested = settings["test_flowers" if name == "Flowers17" else "test"]
    sizes = np.cumsum([n, settings["validation"], tested])
    drawn = [rng.permutation(np.flatnonzero(y == d))[: sizes[-1]] for d in DIGITS]
    rows = np.concatenate(drawn)
    kept = {key: view[rows] for key, view in views.items()}
    kept = image_views(kept[""]) if "" in kept else kept
    starts = np.cumsum([0, *(len(part) for part in drawn)])[:-1]
    cut = [np.split(start + np.arange(sizes[-1]), sizes[:-1]) for start in starts]
    train, validation, test = (list(part) for part in zip(*cut, strict=True))
    digits = np.array(DIGITS)
    return Draw(
        kept,
        train,
        np.concatenate(validation),
        np.concatenate(test),
        np.repeat(digits, settings["validation"]),
        np.repeat(digits, tested),
    )


# -- models ------------------------------------------------------------------------------------


class Learned(NamedTuple):
    """Weights of every task, (10, J), and its coefficients."""

    weights: Array
    coefs: list[Array]
    gap: float = 0.0
    iterations: int = 0


def learned(
    method: str, stacks: Sequence[DenseStack], p: float, delta: float, settings: Settings
) -> Learned:
    """The ten models of a method at one point of the grid."""
    ball = LpBall(p)
    tasks = [FisherProblem(stack, delta * stack.n) for stack in stacks]
    if method == SEPARATE:
        each = [solve(task, ball, tol=settings["gap"]) for task in tasks]
        return Learned(np.stack([r.weights for r in each]), [r.coef for r in each])
    if method == EQUAL:
        b = LpBall(1.0).uniform(tasks[0].J)
        return Learned(np.tile(b, (len(tasks), 1)), [task.evaluate(b).coef for task in tasks])
    problem = JointFisherProblem(tasks)
    if method == PRINTED:
        limit = settings["iterations"]
        found = solve(problem, ball, "paper", tol=settings["stop"], max_iter=limit)
    else:
        found = solve(problem, ball, tol=settings["gap"])
    b = np.tile(found.weights, (len(tasks), 1))
    return Learned(b, problem.split(found.coef), found.gap, found.n_iter)


def scores_of(model: Learned, crosses: Sequence[DenseStack]) -> Array:
    """Projections of validation and test rows by every task's model: (10, m)."""
    parts = zip(model.weights, model.coefs, crosses, strict=True)
    return np.stack([b @ cross.products(a) for b, a, cross in parts])


def task_aucs(scores: Array, digits: Any) -> Array:
    """AUC of every task, its own digit against the nine others."""
    labels = (np.where(digits == d, 1, -1) for d in DIGITS)
    return np.array([float(aucs(y, s)) for y, s in zip(labels, scores, strict=True)])


class Best(NamedTuple):
    """A point of the grid and what it reached."""

    validation: float
    test: Array
    width: float
    p: float
    delta: float
    model: Learned


def run(cell: Cell, settings: Settings, folder: Path) -> Rows:
    """Test AUC of every method and task, and by p; or the times of enrolment."""
    if cell.method == ENROLMENT:
        return [row for n in settings["enrol"] for row in _times(cell, n, settings)]
    n = int(cell.method.removesuffix(" rows"))
    data = draw(cell.data, n, settings, generator("E9-joint", cell.data, n, cell.repeat))
    best: dict[tuple[str, float], Best] = {}
    enrolled: dict[tuple[float, float, float], Array] = {}
    splits = [Split(train, data.validation, data.test) for train in data.train]
    grids = [kernels_by_width(settings["widths"], data.views, split) for split in splits]
    for parts in zip(*grids, strict=True):
        width, stacks, crosses = parts[0][0], [s for _, s, _ in parts], [c for _, _, c in parts]
        reached: dict[str, Best] = {}
        points = itertools.product(settings["ps"], settings["deltas"])
        for (p, delta), method in itertools.product(points, METHODS):
            if method == ENROLLED or (method == EQUAL and p != settings["ps"][0]):
                continue
            model = learned(method, stacks, p, delta, settings)
            scores = scores_of(model, crosses)
            cut = len(data.validation)
            found = Best(
                float(task_aucs(scores[:, :cut], data.of_validation).mean()),
                task_aucs(scores[:, cut:], data.of_test),
                width,
                p,
                delta,
                model,
            )
            for key in ((method, p), (method, 0.0)):  # 0: whatever p
                if key not in best or found.validation > best[key].validation:
                    best[key] = found
            if method not in reached or found.validation > reached[method].validation:
                reached[method] = found
        # The point that joint learning would choose at this width; kernels are gone afterwards.
        at = reached[JOINT]
        model = _enrolled(stacks, at.p, at.delta, settings)
        scores = scores_of(model, crosses)[:, len(data.validation) :]
        enrolled[width, at.p, at.delta] = task_aucs(scores, data.of_test)
    chosen = best[JOINT, 0.0]
    best[ENROLLED, 0.0] = chosen._replace(test=enrolled[chosen.width, chosen.p, chosen.delta])
    return _rows(n, best, data)


def _enrolled(stacks: Sequence[DenseStack], p: float, delta: float, settings: Settings) -> Learned:
    """Every task with the weights learned from the nine others."""
    weights, coefs = [], []
    for k, stack in enumerate(stacks):
        others = [s for i, s in enumerate(stacks) if i != k]
        b = learned(JOINT, others, p, delta, settings).weights[0]
        weights.append(b)
        coefs.append(FisherProblem(stack, delta * stack.n).evaluate(b).coef)
    return Learned(np.stack(weights), coefs)


def _rows(n: int, best: dict[tuple[str, float], Best], data: Draw) -> Rows:
    """One row per method and choice; of the chosen p also every task's AUC."""
    rows: Rows = []
    for (method, p), found in sorted(best.items()):
        row: dict[str, Any] = {
            "method": method,
            "n": n,
            "by": "any p" if p == 0 else "p",
            "p": found.p,
            "auc": float(found.test.mean()),
            "validation_auc": found.validation,
            "width": found.width,
            "delta": found.delta,
            "gap": found.model.gap,
            "iterations": found.model.iterations,
        }
        if p == 0:
            row |= {f"auc_{d}": float(v) for d, v in zip(DIGITS, found.test, strict=True)}
        if method == JOINT and p > 0:
            b = found.model.weights[0] / found.model.weights[0].sum()
            row |= {f"share {name}": float(v) for name, v in zip(data.views, b, strict=True)}
        rows.append(row)
    return rows


# -- the cost of enrolment -----------------------------------------------------------------------


def best_of(runs: int, **calls: Callable[[], Any]) -> dict[str, float]:
    """Least seconds of each call over alternating runs."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(runs):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def _times(cell: Cell, n: int, settings: Settings) -> Rows:
    """Seconds of enrolling the last digit and of learning it alone."""
    rng = generator("E9-joint", ENROLMENT, cell.data, n, cell.repeat)
    few = {**settings, "validation": 1, "test": 1}
    data = draw(cell.data, n, few, rng)
    old, new = data.train[:-1], data.train[-1]
    table, columns = join_views(data.views)
    paper = PAPER | {"views": columns}
    joint = JointMultiKernelFisherNull(**paper)
    joint.fit(table[np.concatenate(old)], groups=np.repeat(range(len(old)), n))
    b = joint.weights_

    def enrol() -> None:
        joint.enroll(table[new], "new")
        joint.forget("new")

    split = Split(new, new[:1], new[:0])
    ((_, stack, _),) = kernels_by_width([PAPER["widths"]], data.views, split)
    ball, ridge = LpBall(PAPER["p"]), PAPER["delta"] * n
    seconds = best_of(
        5,
        enrol=enrol,
        alone=lambda: MultiKernelFisherNull(**paper).fit(table[new]),
        given_enrol=lambda: FisherProblem(stack, ridge).evaluate(b),
        given_alone=lambda: solve(FisherProblem(stack, ridge), ball, "paper"),
    )
    return [
        {
            "method": ENROLMENT,
            "n": n,
            "time_rows": seconds["enrol"] / seconds["alone"],
            "time_kernels": seconds["given_enrol"] / seconds["given_alone"],
        }
    ]


# -- the page ------------------------------------------------------------------------------------


def report(rows: Rows, settings: Settings, folder: Path) -> str:
    """AUC by size, the paired difference, AUC by p, and the shared weights."""
    chosen = [row for row in rows if row.get("by") == "any p"]
    by_p = [row for row in rows if row.get("by") == "p"]
    timed = [row for row in rows if row["method"] == ENROLMENT]
    repeats = len(distinct(chosen, "repeat"))
    parts = [
        "The faces of E9 (OULU-NPU) are not at hand. This asks of ten digits, and of ten kinds "
        "of flowers, what the paper says of faces; the protocol was fixed before the run "
        "(`experiments.e9_joint`). "
        f"{repeats} repeats; mean AUC over the ten tasks in percent, p, delta and width by "
        "validation.",
        _table(chosen),
        _verdict(chosen),
        "The same with p held fixed, delta and width by validation: joint (exact) / joint "
        "(Algorithm 2) / separate.",
        _by_p(by_p),
        "![joint minus separate by size, and by p](joint.png)",
        _printed(by_p, settings),
    ]
    _draw(chosen, by_p, folder / "joint.png")
    if timed:
        parts += [
            "Seconds of enrolling a digit over seconds of learning it alone by Algorithm 1 "
            "(`kernull.PAPER`, p = 2; median over repeats):",
            _enrolment_table(timed),
        ]
    for data in distinct(by_p, "data"):
        file = f"weights_{data.lower().replace(' ', '_')}.png"
        _draw_weights(where(by_p, data=data), folder / file)
        parts += [
            f"The weights that the ten tasks of {data} share, for each p, as shares of their sum "
            "(the paper's figure for OULU-NPU; mean over repeats and sizes, at the width and delta "
            "chosen for that p):",
            f"![shared weights for each p, {data}]({file})",
        ]
    return "\n\n".join(parts)


def _table(chosen: Rows) -> str:
    lines = []
    for (data, n), part in group(chosen, "data", "n").items():
        found = {m: 100 * values(where(part, method=m), "auc") for m in METHODS}
        spread = {m: f"{v.mean():.2f} ± {_error(v):.2f}" for m, v in found.items()}
        lines.append([data, n, *spread.values()])
    return markdown(["data", "rows a task", *METHODS], lines) + (
        "\n\n± is the standard error over repeats."
    )


def _error(numbers: Any) -> float:
    """Standard error of the mean."""
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else 0.0


def _verdict(chosen: Rows) -> str:
    """Joint against each other method, paired by repeat."""
    lines = []
    for other in (SEPARATE, EQUAL, ENROLLED, PRINTED):
        for (data, n), part in group(chosen, "data", "n").items():
            ours, theirs = (100 * values(where(part, method=m), "auc") for m in (JOINT, other))
            mean, wins, losses, p_value = paired(ours, theirs)
            error = _error(ours - theirs)
            lines.append(
                [
                    other,
                    data,
                    n,
                    f"{mean:+.3f} ± {error:.3f}",
                    f"{wins} / {losses}",
                    f"{p_value:.2g}",
                ]
            )
    head = ["joint (exact) minus", "data", "rows", "mean difference", "wins / losses", "p-value"]
    text = "Paired by repeat (Wilcoxon's signed-rank test):"
    return f"{text}\n\n{markdown(head, lines)}"


def _by_p(by_p: Rows) -> str:
    methods = (JOINT, PRINTED, SEPARATE)
    sizes = distinct(by_p, "n")
    lines = []
    for (data, p), part in group(by_p, "data", "p").items():
        cells = [
            " / ".join(
                f"{100 * values(where(part, method=m, n=n), 'auc').mean():.2f}" for m in methods
            )
            for n in sizes
        ]
        lines.append([data, f"{p:.4g}", *cells])
    return markdown(["data", "p", *(f"{n} rows" for n in sizes)], lines)


def _printed(by_p: Rows, settings: Settings) -> str:
    """Where Algorithm 2 stops, at the points that validation chose for each p."""
    part = where(by_p, method=PRINTED)
    lines = []
    for (p,), found in group(part, "p").items():
        gaps, counts = values(found, "gap"), values(found, "iterations")
        stopped = int((counts < settings["iterations"]).sum())
        lines.append(
            [f"{p:.4g}", f"{stopped} of {len(found)}", f"{np.median(counts):.0f}",
             f"{np.median(gaps):.1e}", f"{gaps.max():.1e}"]
        )  # fmt: skip
    head = ["p", "stopped before the limit", "iterations (median)", "gap (median)", "gap (largest)"]
    return "Algorithm 2 as printed, at the points chosen for each p:\n\n" + markdown(head, lines)


def _enrolment_table(timed: Rows) -> str:
    lines = [
        [data, n, *(f"{np.median(values(part, c)):.2f}" for c in ("time_kernels", "time_rows"))]
        for (data, n), part in group(timed, "data", "n").items()
    ]
    return markdown(["data", "rows", "kernels given", "from rows, with its threshold"], lines)


def _draw(chosen: Rows, by_p: Rows, path: Path) -> None:
    figure, (left, right) = new_figure(1, 2, figsize=(10, 4.2))
    sizes, ps = distinct(chosen, "n"), distinct(by_p, "p")

    def gain(rows: Rows) -> Any:
        ours, theirs = (100 * values(where(rows, method=m), "auc") for m in (JOINT, SEPARATE))
        return ours - theirs

    for data, colour in zip(distinct(chosen, "data"), COLOURS, strict=False):
        found = [gain(where(chosen, data=data, n=n)) for n in sizes]
        means, errors = [float(v.mean()) for v in found], [_error(v) for v in found]
        left.errorbar(sizes, means, errors, color=colour, marker="o", capsize=3, label=data)
        for n, marker in zip(sizes, MARKERS, strict=False):
            line = [float(gain(where(by_p, data=data, n=n, p=p)).mean()) for p in ps]
            label = f"{data}, {n} rows"
            right.plot(range(len(ps)), line, color=colour, marker=marker, label=label)
    left.set(xlabel="rows a task", ylabel="AUC, points (bars: standard error)", xscale="log")
    left.set_title("Joint minus separate, p by validation", fontsize=10)
    left.set_xticks(sizes, [str(n) for n in sizes])
    left.minorticks_off()
    right.set_xticks(range(len(ps)), [f"{p:.3g}" for p in ps], fontsize=8)
    right.set(xlabel="p", ylabel="AUC, points")
    right.set_title("Joint minus separate at each p", fontsize=10)
    for axis in (left, right):
        axis.axhline(0, color="grey", lw=1, ls=":")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    save(figure, path)


def _draw_weights(part: Rows, path: Path) -> None:
    joint = where(part, method=JOINT)
    names = [key.removeprefix("share ") for key in joint[0] if key.startswith("share ")]
    names = [n for n in names if joint[0][f"share {n}"] != ""]  # a table has those of all data
    ps = distinct(joint, "p")
    table = [[values(where(joint, p=p), f"share {n}").mean() for n in names] for p in ps]
    labels = [n.replace("@", "\n") for n in names]
    shared_weights(np.array(table), ps, labels, path, "Shared kernel weights of the ten tasks")


EXPERIMENT = Experiment(
    "E9-joint",
    "Joint learning of tasks with few rows: digits in place of faces",
    settings,
    cells,
    run,
    report,
    exclusive=True,
)
