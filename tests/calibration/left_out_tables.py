"""Tables that are hard to scale, and the slow truth about rows left out of a scaling."""

from __future__ import annotations

import numpy as np

from kernull.views import ViewScaler


def tables(n, d, seed=0):
    rng = np.random.default_rng(seed)
    one_hot = np.zeros((n, d))
    one_hot[np.arange(n), rng.integers(0, d, n)] = 1.0
    skewed = np.zeros((n, d))
    skewed[np.arange(n), np.minimum(rng.geometric(0.3, n) - 1, d - 1)] = 1.0
    factors = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(n, d))
    switch = rng.normal(size=(n, d))
    switch[:, 0] = 0.0
    switch[3, 0] = 1e-9  # one row alone
    return {
        "gauss": rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, d) + 5.0,
        "one-hot": one_hot,
        "skewed": skewed,
        "factors": factors,
        "copies": np.repeat(rng.normal(size=(n // 2, d)), 2, axis=0),
        "lognormal": rng.lognormal(0.0, 2.0, (n, d)),
        "integers": rng.poisson(1.0, (n, d)).astype(float),
        "switch": switch,
    }


def refitted(kind, X, weight=None, groups=None):
    """Squared distances of each row under the scaling fitted without its group; inf within it."""
    groups = np.arange(len(X)) if groups is None else np.asarray(groups)
    out = np.empty((len(X), len(X)))
    for i in range(len(X)):
        others = groups != groups[i]
        w = None if weight is None else weight[others] / weight[others].mean()
        Z = ViewScaler.fit(kind, X[others], w).transform(X)
        out[i] = ((Z - Z[i]) ** 2).sum(axis=1)
        out[i, ~others] = np.inf
    return out


def relative_error(found, truth):
    """Largest error against the true entry, or a millionth of the largest of its row."""
    finite = np.isfinite(truth)
    assert (np.isfinite(found) == finite).all()
    rows = np.where(finite, truth, 0.0).max(axis=1, keepdims=True)
    size = np.maximum(np.where(finite, truth, 0.0), 1e-6 * rows)
    size = np.where(size > 0, size, 1.0)  # rows that all others equal
    error = np.abs(np.subtract(found, truth, out=np.zeros(size.shape), where=finite))
    return float((error / size).max())
