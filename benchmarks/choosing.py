"""How good is the choice of p, delta and width: with outliers, without, by default, by an oracle?

    KERNULL_DATA=... python -m benchmarks.choosing [--repeats 10] [--jobs 2]

The nine Delft sets (one kernel a feature) and Multiple Features (one kernel per view; the target of
repeat r is digit r mod 10, or each digit in each repeat with --all-digits). Targets are
split 60/20/20, outliers in halves for validation and test; every choice is made among the same 189
models (the paper's grid), trained on the same 60 percent, and judged by AUC on the same test rows:

- defaults: `MultiKernelFisherNull()` as it is;
- without: five folds of the training targets, a criterion that needs no outliers;
- with: AUC on the validation targets and outliers, as the paper does;
- oracle: the best on the test rows themselves (an upper bound, no method).
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed

import kernull
from benchmarks.peers.registry import PLAIN
from experiments.datasets import DELFT, load_delft, load_multiple_features
from kernull.errors import ConstantViewWarning, TooFewRowsWarning
from kernull.estimators import MultiKernelFisherNull
from kernull.paths import shared_path
from kernull.selection import PAPER_DELTAS, PAPER_PS, PAPER_WIDTHS, TARGETS_ONLY, OneClassKFold
from kernull.selection.criteria import DEFAULT_CRITERION, Criterion, auc_of, read_scoring
from kernull.selection.folds import FoldTask, Rows, evaluate
from kernull.selection.results import best_index
from kernull.views import join_views, resolve_views

MFEAT = "mfeat"
#: Criteria by themselves; their combination follows from their scores.
SINGLE = tuple(name for name in TARGETS_ONLY if "+" not in name)
#: Leave-one-out in place of folds, for the parts of the combination.
LOO = ("shift", "box")
BOTH = "shift+box"


class _All:
    """Several criteria on the same folds."""

    needs_outliers = False
    needs_table = True

    def __init__(self, names: tuple[str, ...]) -> None:
        self.parts: list[Criterion] = [read_scoring(n, has_outliers=False)[1] for n in names]

    def of_fold(self, view: Any) -> Any:
        found = [part.of_fold(view) for part in self.parts]
        self.sizes = [f.shape[-1] for f in found]
        return np.concatenate(found, axis=-1)

    def finish_each(self, folds: list[Any], sizes: list[int]) -> list[Any]:
        cuts = np.cumsum(sizes)[:-1]
        pieces = [np.split(fold, cuts, axis=-1) for fold in folds]
        return [
            part.finish([piece[i] for piece in pieces]).mean(axis=0)
            for i, part in enumerate(self.parts)
        ]


@cache
def digits() -> Any:
    """Multiple Features, read once a process."""
    return load_multiple_features()


def load(name: str) -> tuple[Any, Any, Any]:
    """Table, labels and views; a digit of Multiple Features is named mfeat-0 to mfeat-9."""
    if name.startswith(MFEAT):
        data = digits()
        X, views = join_views(data.views)
        return X, data.one_class(int(name[-1])), views
    delft = load_delft(name)
    return delft.X, delft.y, "features"


def kept(folder: str, name: str, repeat: int) -> tuple[str, int, dict[str, float]]:
    """`one_repeat`, read from a file where a run before this one has been through it."""
    file = Path(folder) / f"{name}-{repeat}.json"
    if not file.exists():
        # Without scikit-learn's checks of every call, a third of the time here.
        with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
            found = one_repeat(name, repeat)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
    set_name, number, out = json.loads(file.read_text())
    return set_name, number, out


def one_repeat(name: str, repeat: int) -> tuple[str, int, dict[str, float]]:
    """AUC on the test rows by every way of choosing."""
    warnings.simplefilter("ignore", ConstantViewWarning)
    warnings.simplefilter("ignore", TooFewRowsWarning)
    X, y, views = load(name)
    rng = np.random.default_rng(repeat)
    targets, outliers = (rng.permutation(np.flatnonzero(y == label)) for label in (1, -1))
    train, valid, test = np.split(targets, [int(0.6 * len(targets)), int(0.8 * len(targets))])
    valid_out, test_out = np.array_split(outliers, 2)

    def both(scores: Any, inner: Any, outer: Any) -> Any:
        return auc_of(scores(X[inner]), scores(X[outer]))

    on_test, on_valid = [], []
    for width in PAPER_WIDTHS:
        model = MultiKernelFisherNull(views=views, **(PLAIN | {"widths": width}))
        stack = model._training_stack(X[train], None, slice(None))
        models = shared_path(stack, PAPER_PS, PAPER_DELTAS)

        def scores(rows: Any, models: Any = models, model: Any = model) -> Any:
            return models.scores(model._cross(rows))

        on_test.append(both(scores, test, test_out))
        on_valid.append(both(scores, valid, valid_out))
    grid = np.stack(on_test)
    default = MultiKernelFisherNull(views=views).fit(X[train])
    out = {
        "defaults": float(both(default.score_samples, test, test_out)),
        "with": float(grid[best_index(np.stack(on_valid))]),
        "oracle": float(grid.max()),
    }
    for names, loo in ((SINGLE, False), (LOO, True)):
        for criterion, table in without_outliers(X[train], views, names, repeat, loo).items():
            out[f"{criterion} (loo)" if loo else criterion] = float(grid[best_index(table)])
    return (MFEAT if name.startswith(MFEAT) else name), repeat, out


def without_outliers(
    X: Any, views: Any, names: tuple[str, ...], seed: int, loo: bool
) -> dict[str, Any]:
    """Scores of all models by criteria that see the training targets only."""
    labels = np.ones(len(X), dtype=np.intp)
    rows = Rows(X, None, resolve_views(views, X.shape[1], None))
    everything, nothing = np.arange(len(X)), np.arange(0)
    folds = list(OneClassKFold(5, random_state=seed).split(X, labels))
    splits = [(everything, nothing)] if loo else folds
    criteria = _All(names)
    tables: list[list[Any]] = []
    for width in PAPER_WIDTHS:
        estimator = MultiKernelFisherNull(views=rows.views, **(PLAIN | {"widths": width}))
        folds_found = []
        for k, (train, test) in enumerate(splits):
            task = FoldTask(
                estimator, train, test, labels, 1000 * seed + k, PAPER_PS, PAPER_DELTAS, 1e-4, loo
            )
            folds_found.append(evaluate(task, rows, criteria)[0])
        tables.append(criteria.finish_each(folds_found, criteria.sizes))
    found = {name: np.stack([table[i] for table in tables]) for i, name in enumerate(names)}
    found[BOTH] = np.mean([found[kind] for kind in LOO], axis=0)
    return found


def mean_and_error(values: dict[int, list[float]]) -> tuple[float, float]:
    """Mean in percent and its standard error over repeats (digits averaged first)."""
    by_repeat = 100 * np.array([np.mean(values[r]) for r in sorted(values)])
    spread = by_repeat.std(ddof=1) if len(by_repeat) > 1 else np.nan
    return float(by_repeat.mean()), float(spread / np.sqrt(len(by_repeat)))


def collect(found: list[Any], name: str, way: str, minus: str | None = None) -> Any:
    values: dict[int, list[float]] = {}
    for row_name, repeat, out in found:
        if row_name == name:
            less = out[minus] if minus else 0.0
            values.setdefault(repeat, []).append(out[way] - less)
    return mean_and_error(values)


def report(found: list[Any], names: list[str]) -> None:
    chosen = DEFAULT_CRITERION
    print(
        f"\n| set | defaults | without ({chosen}) | with outliers | oracle | without - defaults | |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in names:
        cells = [collect(found, name, way) for way in ("defaults", chosen, "with", "oracle")]
        gain, error = collect(found, name, chosen, minus="defaults")
        clear = abs(gain) > 2 * error
        verdict = ("better" if gain > 0 else "worse") if clear else "no clear difference"
        line = " | ".join(f"{mean:.1f} ± {err:.1f}" for mean, err in cells)
        print(f"| {name} | {line} | {gain:+.1f} ± {error:.1f} | {verdict} |")
    ways = [
        "defaults",
        *TARGETS_ONLY,
        *(f"{n} (loo)" for n in LOO),
        "with",
        "oracle",
    ]
    means = {way: [collect(found, name, way)[0] for name in names] for way in ways}
    line = " | ".join(f"{np.mean(means[w]):.1f}" for w in ("defaults", chosen, "with", "oracle"))
    gain = float(np.mean(means[chosen]) - np.mean(means["defaults"]))
    print(f"| mean | {line} | {gain:+.1f} | |")
    print("\nEvery criterion (mean AUC in percent over repeats):\n")
    print("| choice | " + " | ".join(names) + " | mean |")
    print("| --- |" + " --- |" * (len(names) + 1))
    for way in ways:
        cells = " | ".join(f"{m:.1f}" for m in means[way])
        print(f"| {way} | {cells} | {np.mean(means[way]):.2f} |")


def problems(name: str, repeat: int, all_digits: bool) -> list[str]:
    """What is solved for a set in one repeat."""
    if name != MFEAT:
        return [name]
    return [f"{MFEAT}-{d}" for d in (range(10) if all_digits else [repeat % 10])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sets", nargs="*", default=[*DELFT, MFEAT])
    parser.add_argument("--all-digits", action="store_true", help="ten times as many digits")
    parser.add_argument("--cache", default="results-cache/choosing", help="remove to start anew")
    options = parser.parse_args()
    start, known = time.perf_counter(), len(list(Path(options.cache).glob("*.json")))
    tasks = [
        (problem, repeat)
        for name in options.sets
        for repeat in range(options.repeats)
        for problem in problems(name, repeat, options.all_digits)
    ]
    # By its module, not as part of __main__: processes then share its cache between tasks.
    from benchmarks.choosing import kept as work

    jobs = (delayed(work)(options.cache, *task) for task in tasks)
    found = Parallel(n_jobs=options.jobs)(jobs)
    print(
        f"{datetime.date.today()}, kernull {kernull.__version__}, numpy {np.__version__}, "
        f"scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}; {options.repeats} repeats, mean ± standard error of "
        f"the AUC in percent; {time.perf_counter() - start:.0f} s with {options.jobs} processes"
        + (f", {known} results kept from before" if known else "")
    )
    report(list(found), options.sets)


if __name__ == "__main__":
    main()
