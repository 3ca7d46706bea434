"""Certify the default solver on the paper's whole grid, and show where Algorithm 1 fails.

    python -m benchmarks.delft_grid [--out docs] [--jobs 2]

Nine Delft sets (target class 1), one rbf kernel a feature, 3 widths x 7 deltas x 9 p: 1,701 cells.
The gap of every cell is recomputed here by plain NumPy that shares no code with the library.
Exits with 1 when the default solver misses a gap of 1e-6, takes more than 10 factorisations at
p > 1, or more than 15 at p = 1. Needs KERNULL_DATA.
"""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from experiments.datasets import DELFT, load_delft
from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem
from kernull.mkl.solvers import solve
from kernull.operators import DenseStack
from kernull.views import KernelSet, resolve_views

WIDTHS = (1 / 4, 1 / 2, 1.0)
DELTAS = tuple(10.0**k for k in range(-4, 3))
PS = {
    "1": 1.0,
    "32/31": 32 / 31,
    "16/15": 16 / 15,
    "8/7": 8 / 7,
    "4/3": 4 / 3,
    "2": 2.0,
    "4": 4.0,
    "8": 8.0,
    "1e6": 1e6,
}
TOL = 1e-6
PAPER_ITERATIONS = 200


class Cell(NamedTuple):
    data: str
    width: float
    p: str
    delta: float
    gap: float
    factorisations: int
    paper_gap: float
    paper_iterations: int
    paper_cycle: int
    """Period of the cycle in which Algorithm 1 ends; 0 where there is none."""
    paper_best_gap: float
    """Of the point of lowest objective that Algorithm 1 visited."""


def independent_gap(K: Any, ridge: float, p: float, b: Any, a: Any) -> float:
    """The relative duality gap of weights b and coefficients a, sharing no library code.

    With r = 1 - ridge a - K_b a: F(b) <= 2a'1 - ridge a'a - b'u + r'r/ridge for any a, and
    min F >= (a'1)^2 / (ridge a'a + ||u||_q).
    """
    norm = b.max() if np.isinf(p) else b.max() * ((b / b.max()) ** p).sum() ** (1 / p)
    if b.min() < 0 or norm > 1 + 1e-9:
        return np.inf
    Ka = np.stack([matrix @ a for matrix in K])
    u, r = Ka @ a, 1.0 - ridge * a - b @ Ka
    q = np.inf if p == 1 else p / (p - 1)
    dual_norm = u.max() if np.isinf(q) else u.max() * ((u / u.max()) ** q).sum() ** (1 / q)
    upper = 2 * a.sum() - ridge * a @ a - b @ u + r @ r / ridge
    return float((upper - a.sum() ** 2 / (ridge * a @ a + dual_norm)) / upper)


def cells(name: str, width: float) -> list[Cell]:
    data = load_delft(name, target=1)
    X = data.X[data.y == 1]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        views = resolve_views("features", X.shape[1])
        stack = DenseStack.of(KernelSet.fit(X, views, widths=width))
        out = []
        for label, p in PS.items():
            for delta in DELTAS:
                ridge, ball = delta * stack.n, LpBall(p)
                ours = solve(FisherProblem(stack, ridge), ball, tol=TOL)
                paper: Any = solve(
                    FisherProblem(stack, ridge), ball, "paper", tol=TOL, max_iter=PAPER_ITERATIONS
                )
                gap = independent_gap(stack.kernels, ridge, p, ours.weights, ours.coef)
                out.append(
                    Cell(
                        name, width, label, delta, gap, ours.n_evaluations,
                        paper.gap, paper.n_iter, paper.cycle, paper.best.gap,
                    )
                )  # fmt: skip
    return out


def run(jobs: int) -> Iterator[Cell]:
    tasks = [(name, width) for name in DELFT for width in WIDTHS]
    found = Parallel(n_jobs=jobs, return_as="generator")(delayed(cells)(*t) for t in tasks)
    for k, part in enumerate(found, 1):
        print(f"\r{k}/{len(tasks)} data sets x widths", end=" ", file=sys.stderr, flush=True)
        yield from part
    print(file=sys.stderr)


def tables(found: list[Cell]) -> str:
    """Markdown: the default solver by p, and Algorithm 1 by (p, delta)."""
    lines = [
        "# The paper's grid on the Delft sets",
        "",
        f"Default solver, {len(found)} cells, relative gap recomputed independently:",
        "",
        "| p | cells | worst gap | factorisations: mean | most |",
        "| --- | --- | --- | --- | --- |",
    ]
    for p in PS:
        part = [c for c in found if c.p == p]
        counts = [c.factorisations for c in part]
        lines.append(
            f"| {p} | {len(part)} | {max(c.gap for c in part):.1e} | {np.mean(counts):.1f} "
            f"| {max(counts)} |"
        )
    lines += [
        "",
        f"Algorithm 1 as printed, at most {PAPER_ITERATIONS} iterations: cells of "
        f"{len(DELFT) * len(WIDTHS)} (nine data sets x three widths) whose last iterate is above a "
        "relative gap of 1e-6, and the median gap of these:",
        "",
        *_failures(found, lambda c: c.paper_gap > TOL, lambda c: c.paper_gap),
        "",
        "Cells that end in a cycle, and the longest period:",
        "",
        *_failures(found, lambda c: c.paper_cycle > 0, lambda c: c.paper_cycle, np.max, "d"),
        "",
        "The point of lowest objective that Algorithm 1 visited (which is not what it returns): "
        "cells above a gap of 1e-6, and their median gap:",
        "",
        *_failures(found, lambda c: c.paper_best_gap > TOL, lambda c: c.paper_best_gap),
        "",
        _by_period(found),
    ]
    return "\n".join(lines)


def _failures(
    found: list[Cell], failed: Any, measure: Any, statistic: Any = np.median, form: str = ".0e"
) -> list[str]:
    """Lines of a table by (p, delta): how many cells failed, and a statistic of these."""
    lines = [
        "| p | " + " | ".join(f"delta = {d:g}" for d in DELTAS) + " |",
        "| --- |" + " --- |" * len(DELTAS),
    ]
    for p in PS:
        row = []
        for delta in DELTAS:
            part = [measure(c) for c in found if (c.p, c.delta) == (p, delta) and failed(c)]
            row.append(f"{len(part)} ({statistic(part):{form}})" if part else "0")
        lines.append(f"| {p} | " + " | ".join(row) + " |")
    return lines


def _by_period(found: list[Cell]) -> str:
    """One sentence: what becomes of the cells whose last iterate is above the gap."""
    left = [c for c in found if c.paper_gap > TOL]
    cycles = [c.paper_cycle for c in left if c.paper_cycle]
    two = sum(period == 2 for period in cycles)
    return (
        f"Of the {len(found)} cells {len(left)} end above a gap of 1e-6. {len(cycles)} of these "
        f"end in a cycle, {two} of period 2 and {len(cycles) - two} of a longer one (up to "
        f"{max(cycles)}); in the other {len(left) - len(cycles)} the iterates had not repeated "
        f"after {PAPER_ITERATIONS} steps."
    )


def plot(found: list[Cell], path: Path) -> None:
    """Heat map of the share of cells where Algorithm 1 fails, with the median gap left."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    share = np.zeros((len(PS), len(DELTAS)))
    gaps = np.zeros_like(share)
    for i, p in enumerate(PS):
        for k, delta in enumerate(DELTAS):
            left = np.array([c.paper_gap for c in found if (c.p, c.delta) == (p, delta)])
            share[i, k] = (left > TOL).mean()
            gaps[i, k] = np.median(left[left > TOL]) if (left > TOL).any() else np.nan
    fig, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    image = axes[0].imshow(share, cmap="cividis", vmin=0, vmax=1, aspect="auto")
    fig.colorbar(image, ax=axes[0], label="share of cells not converged in 200 steps")
    for i in range(len(PS)):
        for k in range(len(DELTAS)):
            if share[i, k] > 0:
                colour = "black" if share[i, k] > 0.6 else "white"
                axes[0].text(
                    k, i, f"{gaps[i, k]:.0e}", ha="center", va="center", color=colour, fontsize=8
                )
    axes[0].set_xticks(range(len(DELTAS)), [f"$10^{{{int(np.log10(d))}}}$" for d in DELTAS])
    axes[0].set_yticks(range(len(PS)), list(PS))
    axes[0].set(xlabel="delta (relative to n)", ylabel="p", title="Algorithm 1: where it fails")
    for p, marker in zip(PS, "osv^<>DPX", strict=True):
        part = [c for c in found if c.p == p]
        axes[1].scatter(
            [c.factorisations for c in part],
            [max(c.gap, 1e-16) for c in part],
            s=14,
            marker=marker,
            alpha=0.6,
            label=f"p = {p}",
        )
    axes[1].axhline(TOL, color="black", lw=1, ls="--")
    axes[1].set(
        yscale="log",
        xlabel="factorisations",
        ylabel="relative duality gap at the end",
        title="The default solver: every cell below 1e-6",
    )
    axes[1].legend(fontsize=7, ncols=2)
    fig.savefig(path, dpi=130)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder for delft_grid.csv, .md and .png")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    found = list(run(arguments.jobs))
    text = tables(found)
    print(text)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "delft_grid.md").write_text(text + "\n")
        with (arguments.out / "delft_grid.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Cell._fields)
            writer.writerows(found)
        plot(found, arguments.out / "delft_grid.png")
    missed = [c for c in found if c.gap > TOL or c.factorisations > (15 if c.p == "1" else 10)]
    print(f"\n{len(found)} cells, {len(missed)} missed")
    for c in missed:
        print("missed:", c)
    return 1 if missed or len(found) != 1701 else 0


if __name__ == "__main__":
    sys.exit(main())
