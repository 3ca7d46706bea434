"""Tables of normal rows and outliers, and views of noise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from benchmarks.decisions import protocol
from experiments._cells import generator

BUNDLED = {
    "breast cancer": (load_breast_cancer, 1),
    "wine 0": (load_wine, 0),
    "wine 1": (load_wine, 1),
    "digits 3": (load_digits, 3),
    "digits 8": (load_digits, 8),
}
#: Rows of synthetic tables: normal, outliers.
SIZE, OUTLIERS = 400, 200
CATEGORIES, SWITCHED, COLUMNS, DEGREES = 3, 0.005, 4, 2.0


class Split(NamedTuple):
    """Rows to learn from, new normal rows, outliers, and outliers apart from these."""

    train: np.ndarray
    normal: np.ndarray
    outliers: np.ndarray
    spare: np.ndarray


def _factors(rng):
    """Eight columns from three factors; outliers break the correlations."""
    loadings = rng.normal(size=(3, 8))
    X = rng.normal(size=(SIZE, 3)) @ loadings + 0.3 * rng.normal(size=(SIZE, 8))
    other = 1.5 * rng.normal(size=(OUTLIERS, 3)) @ rng.normal(size=(3, 8))
    return X, other


def _clusters(rng):
    """Three clusters in six columns; outliers lie between them."""
    centres = 4.0 * rng.normal(size=(3, 6))
    X = centres[rng.integers(3, size=SIZE)] + rng.normal(size=(SIZE, 6))
    return X, 3.0 * rng.normal(size=(OUTLIERS, 6))


def _lognormal(rng):
    """Ten skewed columns with a common size; outliers have other ratios."""
    X = np.exp(0.7 * rng.normal(size=(SIZE, 1)) + 0.4 * rng.normal(size=(SIZE, 10)))
    return X, np.exp(0.7 * rng.normal(size=(OUTLIERS, 1)) + 0.9 * rng.normal(size=(OUTLIERS, 10)))


SYNTHETIC = {"factors": _factors, "clusters": _clusters, "lognormal": _lognormal}
TABLES = (*BUNDLED, *SYNTHETIC)


def split(name, seed):
    """The rows of a table for one seed."""
    rng = generator("decisions", name, seed)
    if name in BUNDLED:
        load, target = BUNDLED[name]
        X, y = load(return_X_y=True)
        normal, outliers = X[y == target], X[y != target]
    else:
        normal, outliers = SYNTHETIC[name](rng)
    normal, outliers = rng.permutation(normal), rng.permutation(outliers)
    half = len(normal) // 2
    new = min(protocol.OUTLIERS, len(outliers) * 2 // 3)
    return Split(normal[:half], normal[half:], outliers[:new], outliers[new:])


def halves(d):
    """Two views of a table of d columns."""
    return {"first": list(range(d // 2)), "second": list(range(d // 2, d))}


# -- noise: columns of training rows and of new rows, which are all alike ------------------------


def _category(rng, n, m):
    return rng.integers(CATEGORIES, size=(n + m, 1)).astype(float)


def _three_rows(rng, n, m):
    out = np.full((n + m, 1), 5.0)
    left = np.r_[rng.permutation(n)[:3], n + np.flatnonzero(rng.random(m) < 3 / n)]
    out[left, 0] += rng.normal(size=len(left))
    return out


def _switches(rng, n, m):
    return (rng.random((n + m, 2)) < SWITCHED).astype(float)


def _gaussian(rng, n, m):
    return rng.normal(size=(n + m, COLUMNS))


def _heavy(rng, n, m):
    return rng.standard_t(DEGREES, size=(n + m, COLUMNS))


NOISE = {
    "category": _category,
    "three rows": _three_rows,
    "rare switches": _switches,
    "Gaussian": _gaussian,
    "heavy-tailed": _heavy,
}


def with_noise(kind, rows, name, seed):
    """The same rows with a view of noise behind; its columns."""
    d = rows.train.shape[1]
    rng = generator("decisions", "noise", kind, name, seed)
    new = [rows.normal, rows.outliers]
    noise = NOISE[kind](rng, len(rows.train), sum(map(len, new)))
    parts = np.split(noise, np.cumsum([len(rows.train), len(rows.normal)]))
    joined = [np.hstack([a, b]) for a, b in zip([rows.train, *new], parts, strict=True)]
    return Split(*joined, rows.spare), list(range(d, d + noise.shape[1]))
