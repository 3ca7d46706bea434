"""Do reasons by column name the right column? Against ECOD's column scores and SHAP.

    python -m benchmarks.column_reasons [--rows 200] [--shap]

Tables of ten correlated columns, one view. In normal rows that the model did not see, one column is
replaced by that of another row, or shifted by four standard deviations. Of the rows that are then
flagged: in how many is that column the first reason? Some were flagged before the change, for
reasons of their own; "if newly" leaves them out. SHAP's kernel explainer is asked about the
first 20 rows only (it takes a minute or more), and where it is installed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from kernull import MultiKernelFisherNull
from kernull.explain.columns import column_reasons
from kernull.tables import GapFiller


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
    filler = GapFiller.fit(train)
    reasons = column_reasons(model.score_samples, odd, filler, most=1)
    ours = time.perf_counter() - started
    first = np.array([found[0].column for found in reasons])
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--shap", action="store_true")
    given = parser.parse_args()
    main(given.rows, given.shap)
