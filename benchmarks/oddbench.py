"""Tables of OddBench with their fixed splits: a plain fit beside six peers, and what was published.

    python -m benchmarks.oddbench [--tables PATTERN ...] [--methods NAME ...] [--rows 20000]
                                  [--jobs 1] [--again NAME ...] [--report] [--out FOLDER]

The protocol, fixed before the first run. OddBench (macrOData, arXiv 2602.09329) has 790 real tables
of numbers with fixed splits; those in ``oddbench/`` of the data folder are used, as they are:
``train`` (normal rows alone), ``test`` and ``outlier`` (1 = outlier). Nothing is tuned, no table is
left out, no label is seen before the scores are there.

kernull             ``MultiKernelFisherNull()`` as it is, from all training rows.
kernull, 4,000 rows the same from a random sample of 4,000: what more rows buy.
1-NN, 5-NN          mean distance to the nearest (five nearest) rows, as z-scores.
LOF, IsolationForest, OneClassSVM
                    scikit-learn's, default arguments, z-scores. OneClassSVM learns from a random
                    sample of 4,000 rows where there are more: its time grows with their square.
ECOD                minus log empirical tails, added up over columns (Li et al. 2022).

Each peer is inside `kernull.Calibrated`, which gives it the same job: a threshold at 5% by ten
folds. That leaves its scores, hence AUC and average precision, as they are. Beyond ``--rows``
training rows a random sample (seed 0) is learned from by all. Printed: AUC and average precision of
outliers among test rows, in percent; the share of normal test rows that is flagged at 5%; seconds
of fit and scoring of a process with one thread. Means are over tables.

A finished table of a method is a file, so the same command resumes. ``--again NAME`` forgets a
method first, and ``--report`` prints what is finished. Writes oddbench.md and oddbench.csv.
"""

from __future__ import annotations

import argparse
import fnmatch
import platform
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from experiments import Cell, Experiment, Store, run_cells
from experiments._cells import fingerprint, generator
from experiments._reproduce import _progress
from experiments._store import write_atomically
from experiments._tables import group, markdown, values, where, write_table
from experiments.datasets import DatasetNotFound, data_home
from kernull import Calibrated, MultiKernelFisherNull, __version__

RATE, ROWS, SAMPLE, SEED = 0.05, 20_000, 4000, 0
#: Published means over all 790 tables, in percent, at most 100,000 rows, z-scores, five seeds:
#: AUC and, where it is given, average precision (TaskBridge, 2026).
PUBLISHED = {
    "TaskBridge": (80.24, 50.43),
    "DTE-NP": (76.96, 43.63),
    "KNN": (76.25, 42.41),
    "FeatureBagging": (75.59, None),
    "TACTIC-Clean": (75.24, None),
    "LOF": (74.17, None),
    "OutFormer": (74.16, 43.00),
    "TabPFN extension": (73.62, None),
    "FoMo-0D": (72.65, None),
    "OCSVM": (71.88, None),
    "IForest": (71.26, None),
}
SIZES = {"at most 4,000": (0, 4000), "4,001 to 8,000": (4001, 8000), "above 8,000": (8001, np.inf)}
#: Points of AUC by which a peer has to be ahead for the table to be listed.
AHEAD = 5.0


class NearestRows(OutlierMixin, BaseEstimator):
    """Minus the mean distance to the k nearest training rows."""

    def __init__(self, k=5):
        self.k = k

    def fit(self, X, y=None):
        self.rows_ = NearestNeighbors(n_neighbors=min(self.k, len(X))).fit(X)
        return self

    def score_samples(self, X):
        return -self.rows_.kneighbors(X)[0].mean(axis=1)


class Ecod(OutlierMixin, BaseEstimator):
    """Minus the sum over columns of -log of the smaller empirical tail."""

    def fit(self, X, y=None):
        self.sorted_ = np.sort(X, axis=0)
        return self

    def score_samples(self, X):
        n = len(self.sorted_)
        out = np.zeros(len(X))
        for column, x in zip(self.sorted_.T, X.T, strict=True):
            low, high = column.searchsorted(x, "right"), n - column.searchsorted(x, "left")
            out += np.log(np.maximum(np.minimum(low, high), 1) / n)
        return out


METHODS = {
    "kernull": MultiKernelFisherNull,
    "kernull, 4,000 rows": MultiKernelFisherNull,
    "1-NN": lambda: NearestRows(1),
    "5-NN": lambda: NearestRows(5),
    "LOF": lambda: LocalOutlierFactor(novelty=True),
    "IsolationForest": lambda: IsolationForest(random_state=SEED),
    "OneClassSVM": OneClassSVM,
    "ECOD": Ecod,
}
OURS, SAMPLED = "kernull", ("kernull, 4,000 rows", "OneClassSVM")


def make(method):
    """The estimator of a method, which flags at the rate."""
    model = METHODS[method]()
    if isinstance(model, MultiKernelFisherNull):
        return model
    return Calibrated(make_pipeline(StandardScaler(), model), false_alarm_rate=RATE)


def folder():
    return data_home() / "oddbench"


def tables(patterns=("*",)):
    """Names of the tables, the largest file first: many processes then end together."""
    files = sorted(folder().glob("*.npz"), key=lambda path: -path.stat().st_size)
    if not files:
        raise DatasetNotFound("no tables in oddbench/ of the data folder")
    names = [f.stem for f in files if any(fnmatch.fnmatchcase(f.stem, p) for p in patterns)]
    if not names:
        raise SystemExit(f"--tables: {', '.join(patterns)} fits none of {len(files)} tables.")
    return names


def load(table, rows=ROWS):
    """Training rows, at most so many, test rows, and which of them are outliers."""
    with np.load(folder() / f"{table}.npz") as file:
        train, test, outlier = (file[key] for key in ("train", "test", "outlier"))
    if len(train) > rows:
        drawn = generator("oddbench", table, SEED).permutation(len(train))[:rows]
        train = train[np.sort(drawn)]
    return train.astype(float), test.astype(float), outlier.astype(bool)


def run(cell, settings, where_to):
    """Fit a method to the training rows of a table, and score its test rows."""
    most = min(settings["rows"], SAMPLE) if cell.method in SAMPLED else settings["rows"]
    train, test, outlier = load(cell.data, most)
    start = time.perf_counter()
    model = make(cell.method).fit(train)
    fitted = time.perf_counter()
    scores = np.asarray(model.score_samples(test))
    done = time.perf_counter()
    column = [len(np.unique(x)) <= max(20, len(train) // 100) for x in train.T]
    return [
        {
            "rows": len(train),
            "columns": train.shape[1],
            "discrete": float(np.mean(column)),
            "auc": 100 * float(roc_auc_score(outlier, -scores)),
            "ap": 100 * float(average_precision_score(outlier, -scores)),
            "flagged": 100 * float((scores[~outlier] < model.threshold_).mean()),
            "time_fit": fitted - start,
            "time_score": done - fitted,
        }
    ]


EXPERIMENT = Experiment(
    "benchmarks.oddbench", "tables of OddBench",
    settings=lambda quick: {"rows": ROWS},
    cells=lambda settings, repeats: [],
    run=run,
    report=lambda rows, settings, folder: "",
)  # fmt: skip


# -- the page ------------------------------------------------------------------------------------


def means(rows, method):
    """A line of the table of means."""
    cells = where(rows, method=method)
    auc, ap, flagged = (values(cells, key) for key in ("auc", "ap", "flagged"))
    seconds = values(cells, "time_fit") + values(cells, "time_score")
    return [
        method, str(len(cells)), f"{auc.mean():.2f}", f"{ap.mean():.2f}", f"{flagged.mean():.1f}",
        f"{np.median(flagged):.1f}", f"{seconds.mean():.1f}", f"{seconds.max():.0f}",
    ]  # fmt: skip


def by_size(rows, sizes, methods):
    """Mean AUC of each method, of tables of each size."""
    lines = []
    for name, (low, high) in SIZES.items():
        cells = [row for row in rows if low <= sizes[row["data"]] <= high]
        if cells:
            count = len({row["data"] for row in cells})
            each = [values(where(cells, method=m), "auc").mean() for m in methods]
            lines.append([name, str(count), *[f"{mean:.2f}" for mean in each]])
    return lines


def ahead(rows, peers=("1-NN", "IsolationForest")):
    """Tables on which a peer is ahead by more than `AHEAD`, and what they are like."""
    lines = []
    for (table,), cells in group(rows, "data").items():
        auc = {row["method"]: row["auc"] for row in cells}
        better = [p for p in peers if OURS in auc and auc.get(p, 0.0) > auc[OURS] + AHEAD]
        if better:
            shown = [f"{auc[m]:.1f}" if m in auc else "" for m in (OURS, *peers)]
            first = cells[0]
            size = [str(first["rows"]), str(first["columns"]), f"{100 * first['discrete']:.0f}"]
            lines.append([table, *size, *shown])
    return sorted(lines)


PAGE = """# OddBench: tables with fixed splits

`{command}`, kernull {version}, scikit-learn {sklearn}, {date}, Python {python}, {minutes:.0f} CPU \
minutes. Protocol: `benchmarks/oddbench.py`. Each table: `oddbench.csv`.

{count} tables, at most {most:,} training rows of each; every method on all of them{unfinished}. \
Means over tables; AUC and average precision (AP) in percent; flagged: share of normal test rows \
at a rate of 5%, mean and median over tables; seconds of fit and scoring of one thread, peers \
inside `Calibrated`.

{means}

AUC by the number of training rows:

{sizes}

## Published averages

{published}

**Not comparable**: these are means over all 790 tables, at most 100,000 rows of each, five seeds. \
Here stand {count} of them, at most {most:,} training rows and 4,000 test rows of each, drawn at \
random. What can be compared is what ran here. IsolationForest, LOF and the nearest rows of both \
lists tell how far these tables differ from all.

## Where a peer is ahead

Tables on which 1-NN or IsolationForest is ahead of kernull by more than {ahead:g} points \
(discrete: share of columns, in percent, with at most 20 values or one in a hundred rows):

{behind}

{common}
"""


def common(rows, lines):
    """What these tables have in common, beside all."""
    each = {row["data"]: row for row in rows}
    few = [each[line[0]] for line in lines]
    shown = []
    for what, unit, times in (("rows", "", 1), ("columns", "", 1), ("discrete", "%", 100)):
        here, there = (np.median(values(some, what)) for some in (few, list(each.values())))
        shown.append(f"{what} {times * here:.0f}{unit} (all: {times * there:.0f}{unit})")
    return f"{len(few)} of {len(each)} tables. Medians: {', '.join(shown)}."


def page(rows, command, most):
    """The page of finished tables; means are over tables that each method has finished."""
    methods = [m for m in METHODS if where(rows, method=m)]
    finished = {k[0]: {row["method"] for row in cells} for k, cells in group(rows, "data").items()}
    whole = [row for row in rows if finished[row["data"]] >= set(methods)]
    left = len(finished) - len({row["data"] for row in whole})
    sizes = {row["data"]: row["rows"] for row in whole if row["method"] not in SAMPLED}
    lines = ahead(whole)
    behind_head = ["table", "rows", "columns", "discrete", OURS, "1-NN", "IsolationForest"]
    return PAGE.format(
        command=command,
        version=__version__,
        sklearn=sklearn.__version__,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        python=platform.python_version(),
        minutes=sum(values(rows, "time_fit") + values(rows, "time_score")) / 60,
        count=len(finished) - left,
        most=most,
        unfinished=f"; {left} left out that some method has not finished" if left else "",
        means=markdown(
            ["method", "tables", "AUC", "AP", "flagged", "median", "seconds", "longest"],
            [means(whole, method) for method in methods],
        ),
        sizes=markdown(["rows", "tables", *methods], by_size(whole, sizes, methods)),
        published=markdown(
            ["method", "AUC", "AP"],
            [[m, f"{a:.2f}", "" if b is None else f"{b:.2f}"] for m, (a, b) in PUBLISHED.items()],
        ),
        ahead=AHEAD,
        behind=markdown(behind_head, lines) if lines else "None.",
        common=common(whole, lines) if lines else "",
    )


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.oddbench", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--tables", nargs="+", default=["*"], metavar="PATTERN")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--rows", type=int, default=ROWS, help="training rows, at most")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (-1: one a core)")
    parser.add_argument("--again", nargs="+", default=[], choices=METHODS)
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--out", default="docs/results", help="folder of the page and the table")
    parser.add_argument("--cache", default="results-cache/oddbench", help="finished tables")
    options = parser.parse_args(argv)
    todo = [Cell(t, m, 0) for t in tables(options.tables) for m in options.methods]
    settings, cache = {"rows": options.rows}, Path(options.cache) / f"{options.rows}"
    store = Store(cache / "cells", fingerprint(settings))
    for cell in todo:
        if cell.method in options.again:
            store.path(cell).unlink(missing_ok=True)
    if not options.report:
        with _progress() as bar:
            task = bar.add_task("oddbench", total=len(todo), title=EXPERIMENT.title)

            def advance(done):
                bar.advance(task, done)

            run_cells(EXPERIMENT, todo, settings, cache, jobs=options.jobs, progress=advance)
    rows = store.rows(todo)
    if not rows:
        raise SystemExit(f"nothing is finished in {options.cache!r} yet")
    command = shlex.join(["python", "-m", "benchmarks.oddbench", *(argv or sys.argv[1:])])
    text, out = page(rows, command, options.rows), Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "oddbench.md", text)
    write_table(sorted(rows, key=lambda row: row["data"]), out / "oddbench.csv")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
