"""The demo: ``python -m kernull.demo`` (or ``make demo``).

Learns from data that ships with scikit-learn, compares every method of the paper and what a user
would pick instead, prints tables, saves plots and writes a report. Needs no file and no network.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from kernull._typing import Array
from kernull.datasets import (
    MultiViewData,
    load_breast_cancer_views,
    load_digits_views,
    load_wine_views,
)
from kernull.estimators import MultiKernelFisherNull
from kernull.io import save
from kernull.methods import compare as run_methods
from kernull.models.explanation import in_words
from kernull.report import save_report
from kernull.views import join_views

__all__ = ["main"]

REPEATS = 5
OUT = Path("demo")
#: The method of the library, as the registry names it.
OURS = "lp MK-FN"


@dataclass(frozen=True)
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
    """Wine (one cultivar), breast cancer (benign) and digits (the eights), as several views."""

    def problem(title: str, data: MultiViewData, target: int) -> Problem:
        table, views = join_views(data.views)
        return Problem(title, table, views, data.one_class(target))

    return [
        problem("wine", load_wine_views(), 0),
        problem("breast cancer", load_breast_cancer_views(), 1),
        problem("digits", load_digits_views(), 8),
    ]


def compare(
    problem: Problem, step: Callable[[], None] = lambda: None
) -> dict[str, tuple[list[float], float]]:
    """AUC of every method over repeats, and its mean seconds; nothing is tuned.

    A method whose extra is not installed is left out.
    """
    out: dict[str, tuple[list[float], float]] = {}
    for seed in range(REPEATS):
        train, test, y = problem.split(seed)
        for row in run_methods(train, test, y, views=problem.views):
            if row.auc is not None:
                aucs, seconds = out.get(row.method, ([], 0.0))
                out[row.method] = [*aucs, 100 * row.auc], seconds + row.seconds / REPEATS
        step()
    return out


def comparison_table(results: dict[str, dict[str, tuple[list[float], float]]]) -> Table:
    """Mean AUC by method and problem."""
    table = Table(title=f"AUC in %, mean and spread of {REPEATS} random halves (higher is better)")
    table.add_column("method")
    for title in results:
        table.add_column(title, justify="right")
    table.add_column("s / fit", justify="right")
    best = {t: max(np.mean(aucs) for aucs, _ in by.values()) for t, by in results.items()}
    first = next(iter(results.values()))
    for name in sorted(first, key=lambda n: -np.mean([by[n][0] for by in results.values()])):
        cells = []
        for title, by_method in results.items():
            mean, spread = np.mean(by_method[name][0]), np.std(by_method[name][0])
            text = f"{mean:.1f} ± {spread:.1f}"
            cells.append(f"[bold]{text}[/bold]" if mean == best[title] else text)
        seconds = np.mean([by[name][1] for by in results.values()])
        label = f"[cyan]{name}[/cyan]" if name == OURS else name
        table.add_row(label, *cells, f"{seconds:.3f}")
    return table


def certificate_table(fitted: dict[str, MultiKernelFisherNull]) -> Table:
    """What was learned, and the proof that it is optimal."""
    table = Table(title="What kernull learned, with its certificate")
    for column in ("problem", "weights by view", "duality gap", "iterations"):
        table.add_column(column, justify="left" if column.startswith(("pro", "wei")) else "right")
    for title, model in fitted.items():
        table.add_row(
            title,
            ", ".join(f"{view} {weight:.2f}" for view, weight in weights_by_view(model).items()),
            f"{model.gap_:.0e}",
            str(model.n_iter_),
        )
    return table


def weights_by_view(model: MultiKernelFisherNull) -> dict[str, float]:
    """Weight of each view: the sum over its kernels."""
    assert model.bank_ is not None
    weights: dict[str, float] = {}
    for view, weight in zip(model.bank_.kernel_views, model.weights_, strict=True):
        weights[view] = weights.get(view, 0.0) + float(weight)
    return weights


def save_plots(problem: Problem, model: MultiKernelFisherNull, folder: Path) -> Path | None:
    """Scores with the threshold, weights, and the contributions of one flagged row."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return None
    _, test, y = problem.split(0)
    scores, weights = model.score_samples(test), weights_by_view(model)
    normal, odd = scores[y == 1], scores[y == -1]
    flagged = int(np.flatnonzero(y == -1)[np.argsort(odd)[len(odd) // 2]])
    fig, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    bins = np.linspace(scores.min(), scores.max(), 40).tolist()
    axes[0].hist(normal, bins, color="#0072B2", alpha=0.75, density=True, label="normal (new rows)")
    axes[0].hist(odd, bins, color="#D55E00", alpha=0.65, density=True, label="not normal")
    axes[0].axvline(model.threshold_, color="black", ls="--", label="threshold (5% false alarms)")
    axes[0].set(title=f"Scores, {problem.title}", xlabel="score", ylabel="density")
    axes[0].legend(fontsize=8)
    axes[1].barh(list(weights), list(weights.values()), 0.6, color="#009E73")
    axes[1].set(title="Learned weight of each view", xlabel="weight")
    axes[1].invert_yaxis()
    why = model.explain(test[[flagged]])
    order = why.ranking(0)  # the view that is most out of line with the others first
    names = [f"{why.view_names[v]}\n({in_words(why.surprise[0, v])})" for v in order]
    axes[2].barh(names, why.differences[0, order], 0.6, color="#CC79A7")
    axes[2].axvline(0, color="black", lw=0.8)
    axes[2].set(title="Why one row was flagged", xlabel="contribution against a typical row")
    axes[2].invert_yaxis()
    axes[2].locator_params(axis="x", nbins=5)
    folder.mkdir(exist_ok=True)
    path = folder / "demo.png"
    fig.savefig(path, dpi=130)
    plt.close(fig)
    return path


def write_report(problem: Problem, model: MultiKernelFisherNull, folder: Path) -> Path:
    """The model and the report page on the rows that it did not see."""
    _, test, y = problem.split(0)
    folder.mkdir(parents=True, exist_ok=True)
    save(model, folder / "model.kernull")
    return save_report(
        model,
        test,
        folder / "report.html",
        y=y,
        title=f"kernull demo: {problem.title}",
        subtitle="Half of the normal rows to learn from; the rest and all others to judge.",
        model_path=str(folder / "model.kernull"),
    )


def main(folder: str | Path = OUT, *, quiet: bool = False) -> int:
    """Run the demo.

    Parameters
    ----------
    folder : path-like
        Where to put plots, model and report.
    quiet : bool
        Whether to leave out the progress bar.

    Returns
    -------
    int
        The exit status.
    """
    console = Console()
    results: dict[str, dict[str, tuple[list[float], float]]] = {}
    fitted: dict[str, MultiKernelFisherNull] = {}
    todo = problems()
    with (
        warnings.catch_warnings(),
        Progress(console=console, transient=True, disable=quiet) as bar,
    ):
        warnings.simplefilter("ignore")
        task = bar.add_task("Learning", total=REPEATS * len(todo))
        for problem in todo:
            results[problem.title] = compare(problem, lambda: bar.advance(task))
            fitted[problem.title] = MultiKernelFisherNull(views=problem.views).fit(
                problem.split(0)[0]
            )
    console.print(comparison_table(results))
    console.print(certificate_table(fitted))
    shown, out = fitted[todo[1].title], Path(folder)
    page = write_report(todo[1], shown, out)
    path = save_plots(todo[1], shown, out)
    console.print(
        f"Plots: {path}" if path else "Plots need matplotlib: pip install 'kernull[plot]'"
    )
    console.print(f"Report: {page}", markup=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
