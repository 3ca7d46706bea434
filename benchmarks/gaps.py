"""What empty cells cost: AUC and false alarms with 10% of the cells missing.

    python -m benchmarks.gaps [--share 0.1] [--repeats 5]

Half of the normal rows are learned from, with cells missing at random that `kernull.TableViews`
fills in; the other half and the outliers are judged, once whole and once with gaps.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics import roc_auc_score

from kernull import MultiKernelFisherNull, TableViews


def tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", X, y == 1
    X, y = load_digits(return_X_y=True)
    yield "digits (0 to 4 normal)", X, y < 5
    X, y = load_wine(return_X_y=True)
    yield "wine (first two kinds normal)", X, y < 2


def run(X: np.ndarray, normal: np.ndarray, share: float, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(normal))
    train, rest = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    test = np.concatenate([rest, np.flatnonzero(~normal)])
    y = normal[test]
    learned = X[train].astype(float)
    learned[rng.random(learned.shape) < share] = np.nan
    table = TableViews().fit(learned)
    model = MultiKernelFisherNull().fit(table.transform(learned))
    gappy = X[test].astype(float)
    gappy[rng.random(gappy.shape) < share] = np.nan
    out = []
    for new in (X[test], gappy):
        scores = model.score_samples(table.transform(new))
        out += [100 * roc_auc_score(y, scores), 100 * (scores[y] < model.threshold_).mean()]
    return out


def main(share: float = 0.1, repeats: int = 5) -> dict[str, np.ndarray]:
    found = {}
    print(f"{share:.0%} of cells missing in new rows; means of {repeats} splits")
    print(f"{'table':32s} AUC whole  AUC gaps  alarms whole  alarms gaps")
    for name, X, normal in tables():
        means = np.mean([run(X, normal, share, seed) for seed in range(repeats)], axis=0)
        found[name] = means
        print(f"{name:32s} {means[0]:8.2f} {means[2]:9.2f} {means[1]:12.2f}% {means[3]:11.2f}%")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    main(given.share, given.repeats)
