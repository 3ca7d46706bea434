"""ADBench under the protocol of its published one-class figures, and those figures.

    python -m benchmarks.published [--seeds 5] [--jobs 1] [--out docs/results/published.md]

The protocol is that of Livernoche et al. (2024, github.com/vicliv/DTE), as their code has it. Sets
of fewer than 1,000 rows are drawn up to 1,000 with replacement before the split, so that half of
their test rows and more have copies among the training rows. The first half of the normal rows, in
the order of the file (that of the draw where rows are drawn), is learned from; the other half and
all anomalies are the test. Columns become z-scores of the training rows. AUC in percent, means of
five seeds.

What differs: the tables here have at most 10,000 rows of a file, drawn at random once; there, each
seed draws 10,000 anew. Peers are scikit-learn's, default arguments; "at random" is the same with
rows split at random and none drawn twice.
"""

from __future__ import annotations

import argparse
import platform
import warnings
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import sklearn
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from benchmarks.arena import adbench
from benchmarks.oddbench import METHODS
from experiments._cells import generator
from experiments._tables import markdown
from kernull import __version__

FEWEST_ROWS = 1000
NAMES = ("kernull", "1-NN", "5-NN", "IsolationForest", "LOF", "OneClassSVM")
PUBLISHED = ("KNN", "IForest", "LOF", "OCSVM", "ICL", "DDPM", "DTE-NP")
SPLITS = ("as published", "at random")


def split(name, way, seed):
    """Training rows, test rows, and which of these are anomalies."""
    X, y = adbench.load(name)
    rng = generator("published", name, way, seed)
    if way == "at random":
        drawn = rng.permutation(len(y))
    elif len(y) < FEWEST_ROWS:
        drawn = rng.integers(0, len(y), FEWEST_ROWS)
    else:
        drawn = np.arange(len(y))
    X, y = X[drawn], y[drawn]
    normal = np.flatnonzero(y == 0)
    half = round(0.5 * len(normal))
    test = np.concatenate([normal[half:], np.flatnonzero(y == 1)])
    scaler = StandardScaler().fit(X[normal[:half]])
    return scaler.transform(X[normal[:half]]), scaler.transform(X[test]), y[test]


def aucs(name, way, seed):
    """AUC of each method."""
    train, test, y = split(name, way, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = (METHODS[method]().fit(train) for method in NAMES)
        return [100 * roc_auc_score(y, -model.score_samples(test)) for model in fitted]


PAGE = """# ADBench as its figures were published

`python -m benchmarks.published`, kernull {version}, scikit-learn {sklearn}, {date}, Python \
{python}. Protocol: `benchmarks/published.py`.

Twenty tables, AUC in percent, {seeds}. The published figures are those of \
Livernoche et al. (2024). Under their protocol sets of fewer than 1,000 rows are drawn up to 1,000 \
with replacement before the split, so that test rows have copies among the training rows: methods \
that know copies gain there. Larger sets are split in the order of the file.

{tables}
"""


def page(found, seeds):
    """The page, from AUCs by way of splitting and table."""
    known, blocks = adbench.published(), []
    for way in SPLITS:
        lines = []
        for name in adbench.TABLES:
            of_name = [f"{value:.2f}" for value in found[way, name]]
            there = [f"{known[name][m]:.2f}" for m in PUBLISHED] if way == SPLITS[0] else []
            lines.append([name, f"{len(adbench.load(name)[1]):,}", *of_name, *there])
        means = np.array([line[2:] for line in lines], dtype=float).mean(axis=0)
        lines.append(["mean", "", *(f"**{value:.2f}**" for value in means)])
        more = [f"{m}, published" for m in PUBLISHED] if way == SPLITS[0] else []
        blocks.append(f"## Split {way}\n\n" + markdown(["table", "rows", *NAMES, *more], lines))
    return PAGE.format(
        version=__version__, sklearn=sklearn.__version__, date=f"{datetime.now(UTC):%Y-%m-%d}",
        python=platform.python_version(), tables="\n\n".join(blocks),
        seeds=f"means of {seeds} seeds" if seeds > 1 else "one seed"
    )  # fmt: skip


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (-1: one a core)")
    parser.add_argument("--out", default="docs/results/published.md")
    options = parser.parse_args(argv)
    cells = [(name, way) for way in SPLITS for name in adbench.TABLES]
    runs = [(name, way, seed) for name, way in cells for seed in range(options.seeds)]
    values = Parallel(options.jobs)(delayed(aucs)(*run) for run in runs)
    by_cell = np.reshape(values, (len(cells), options.seeds, len(NAMES))).mean(axis=1)
    found = {(way, name): v for (name, way), v in zip(cells, by_cell, strict=True)}
    text = page(found, options.seeds)
    Path(options.out).write_text(text)
    print(text)


if __name__ == "__main__":
    main()
