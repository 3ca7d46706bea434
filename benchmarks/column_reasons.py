"""Do reasons by column name the right column? Against ECOD's column scores and SHAP.

    python -m benchmarks.column_reasons [--rows 200] [--shap] [--coverage]

Tables of ten correlated columns, one view. In normal rows that the model did not see, one column is
replaced by that of another row, or shifted by four standard deviations. Of the rows that are then
flagged: in how many is that column the first reason? Some were flagged before the change, for
reasons of their own; "if newly" leaves them out. SHAP's kernel explainer is asked about the
first 20 rows only (it takes a minute or more), and where it is installed.

``--coverage``: do ranges that are usual for rows like this (5% to 95%) hold 90% of new normal
cells, and how often is it said of a new normal cell that no training row is as far off, by how
often that should be said, 1 / (n + 1)? Twelve cells, up to as many columns as rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from kernull import MultiKernelFisherNull
from kernull.detector.usual import UsualValues
from kernull.explain.columns import column_reasons


def tables(seed: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    for factors, noise in ((2, 0.3), (3, 0.3), (3, 0.5)):
        mix = rng.normal(size=(factors, 10))
        X = rng.normal(size=(1500, factors)) @ mix + noise * rng.normal(size=(1500, 10))
        yield f"{factors} factors, noise {noise}", X
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer, benign, means", X[y == 1][:, :10]


def corrupt(X: np.ndarray, kind: str, rng: Any) -> tuple[np.ndarray, np.ndarray]:
    out, columns = X.copy(), rng.integers(X.shape[1], size=len(X))
    rows = np.arange(len(X))
    if kind == "swapped":
        out[rows, columns] = X[rng.permutation(len(X)), columns]
    else:
        out[rows, columns] += 4.0 * X.std(axis=0)[columns] * rng.choice([-1, 1], size=len(X))
    return out, columns


def run(X: np.ndarray, kind: str, rows: int, shap: bool) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    order = rng.permutation(len(X))
    half = len(X) // 2
    train = X[order[:half]]
    whole = X[order[half : half + rows]]
    odd, columns = corrupt(whole, kind, rng)
    model = MultiKernelFisherNull().fit(train)
    flagged = model.predict(odd) == -1
    newly = model.predict(whole[: len(odd)])[flagged] == 1  # not for a reason of its own
    odd, columns = odd[flagged], columns[flagged]
    started = time.perf_counter()
    usual = UsualValues.fit(train)
    reasons = column_reasons(model.score_samples, odd, usual, most=1)
    ours = time.perf_counter() - started
    first = np.array([int(found[0].column[1:]) for found in reasons])
    out = {"flagged": flagged.mean(), "right": (first == columns).mean(), "seconds": ours}
    out["newly"] = (first == columns)[newly].mean()
    out |= ecod(train, odd, columns)
    return out | (kernel_shap(model, train, odd, columns) if shap else {})


def ecod(train: np.ndarray, odd: np.ndarray, columns: np.ndarray) -> dict[str, float]:
    from pyod.models.ecod import ECOD

    started = time.perf_counter()
    detector = ECOD().fit(train)
    detector.decision_function(odd)
    scores = np.asarray(detector.O)[-len(odd) :]  # one per column, the new rows last
    right = (scores.argmax(axis=1) == columns).mean()
    return {"ecod": right, "ecod seconds": time.perf_counter() - started}


def kernel_shap(model: Any, train: np.ndarray, odd: np.ndarray, columns: Any) -> dict[str, float]:
    import shap

    started = time.perf_counter()
    explainer = shap.KernelExplainer(model.score_samples, shap.kmeans(train, 20))
    values = np.asarray(explainer.shap_values(odd[:20], silent=True))
    right = (values.argmin(axis=1) == columns[:20]).mean()
    return {"shap": right, "shap seconds": time.perf_counter() - started}


def main(rows: int = 200, shap: bool = False) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    print(
        f"{'table':30s} {'change':8s} flagged  right first  if newly (s)  ECOD (s)"
        + "   SHAP (s)" * shap
    )
    for name, X in tables():
        for kind in ("swapped", "shifted"):
            r = found[name, kind] = run(X, kind, rows, shap)
            line = f"{name:30s} {kind:8s} {r['flagged']:6.0%} {r['right']:11.1%} {r['newly']:9.1%}"
            line += f" ({r['seconds']:.2f})"
            line += f" {r['ecod']:8.1%} ({r['ecod seconds']:.2f})"
            if shap:
                line += f" {r['shap']:8.1%} ({r['shap seconds']:.1f})"
            print(line, flush=True)
    return found


CELLS = ((60, 10), (100, 60), (100, 100), (300, 100))


def drawn(kind: str, n: int, mix: np.ndarray, rng: Any) -> np.ndarray:
    """Rows of correlated columns, of independent ones, or of skewed ones."""
    factors, d = mix.shape
    if kind == "independent":
        return rng.normal(size=(n, d))
    X = rng.normal(size=(n, factors)) @ mix + 0.3 * rng.normal(size=(n, d))
    return X if kind == "factors" else np.exp(0.7 * X / np.sqrt(factors))


def coverage(seeds: int = 5) -> dict[tuple[str, int, int], tuple[float, float]]:
    """Share of new normal cells in their range, and how often none is as far, by 1 / (n + 1)."""
    found = {}
    print(f"{'table':12s} {'rows':>5s} {'columns':>8s} {'in range':>9s} {'none as far':>12s}")
    for kind in ("factors", "independent", "skewed"):
        for n, d in CELLS:
            results = []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                mix = rng.normal(size=(max(2, d // 5), d))
                usual = UsualValues.fit(drawn(kind, n, mix, rng))
                new = drawn(kind, 500, mix, rng)
                expected = usual.predict(new)
                low = np.maximum(expected + usual.residuals[5], usual.quantiles[0])
                high = np.minimum(expected + usual.residuals[95], usual.quantiles[-1])
                farthest = np.abs(usual.residuals[[0, -1]]).max(axis=0)
                none = (np.abs(new - expected) > farthest).mean() * (n + 1)
                results.append((((new >= low) & (new <= high)).mean(), none))
            inside, none = found[kind, n, d] = tuple(np.mean(results, axis=0).tolist())
            print(f"{kind:12s} {n:5d} {d:8d} {inside:9.1%} {none:12.2f}", flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--shap", action="store_true")
    parser.add_argument("--coverage", action="store_true")
    given = parser.parse_args()
    if given.coverage:
        coverage()
    else:
        main(given.rows, given.shap)
