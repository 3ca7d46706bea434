"""What do the rules behind ``"auto"`` cost, and do they choose the same again?

    python -m benchmarks.auto                 # n = 2000
    python -m benchmarks.auto --rows 500 2000 --repeats 5

A plain fit has fixed arguments: one scaling, one width, p = 2, delta = 0.01. Both fit the same rows
in turn, so that whatever else the machine does befalls both.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from kernull import MultiKernelFisherNull, join_views

PLAIN = {"scaling": "standard", "widths": 0.5, "p": 2.0, "delta": 1e-2}
#: Columns of each view, by problem.
PROBLEMS = {"one table, 20 columns": (20,), "three views, 20 columns each": (20, 20, 20)}
#: Plain fits that the default may cost.
ASKED = 5.0


def rows_of(columns, n, seed=0):
    """Correlated Gaussian views."""
    rng = np.random.default_rng(seed)
    return {
        f"view {i}": rng.standard_normal((n, d)) @ rng.uniform(0, 1, (d, d))
        for i, d in enumerate(columns)
    }


def seconds(model, X):
    """Wall and processor time of one fit."""
    start, used = time.perf_counter(), time.process_time()
    model.fit(X)
    return time.perf_counter() - start, time.process_time() - used


def measure(columns, n, repeats):
    """Medians of the times of both fits, and whether the default chose the same each time."""
    X, views = join_views(rows_of(columns, n))
    default, plain = MultiKernelFisherNull(views=views), MultiKernelFisherNull(views=views, **PLAIN)
    for model in (default, plain):
        model.fit(X[:100])  # imports and first calls
    times = {"default": [], "plain": []}
    weights, scores = [], []
    for _ in range(repeats):
        times["plain"].append(seconds(plain, X))
        times["default"].append(seconds(default, X))
        weights.append(default.weights_.copy())
        scores.append(default.score_samples(X[:50]))
    same = all(np.array_equal(w, weights[0]) for w in weights)
    same &= all(np.array_equal(s, scores[0]) for s in scores)
    return {name: np.median(found, axis=0) for name, found in times.items()}, same


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(argv)
    fine = True
    print(
        f"{'problem':32} {'n':>6} {'plain':>9} {'default':>9} {'ratio':>7} {'CPU':>7}  same again"
    )
    for name, columns in PROBLEMS.items():
        for n in options.rows:
            times, same = measure(columns, n, options.repeats)
            (wall, used), (base, base_used) = times["default"], times["plain"]
            fine &= wall / base <= ASKED and same
            print(
                f"{name:32} {n:6d} {base:8.2f}s {wall:8.2f}s {wall / base:7.2f} "
                f"{used / base_used:7.2f}  {'yes' if same else 'NO'}"
            )
    print(f"at most {ASKED:g} plain fits, and the same again: {'met' if fine else 'MISSED'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
