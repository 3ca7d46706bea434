"""Whitening of centred rows by a Ledoit-Wolf covariance, in the smaller of the two spaces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage

from kernull._typing import Array

__all__ = ["Whitening", "whitening"]

#: Mean variance after shrinkage, as a share of what the largest may be, from which the rounding of
#: products of the rows with themselves is below a billionth of it.
LEAST_SHARE = 1e-4
#: Directions with a smaller share of the largest variance have none but rounding.
LEAST_VARIANCE = 1e-13


class Whitening(NamedTuple):
    """The root of an inverse covariance: directions with a gain each, and a gain elsewhere."""

    directions: Array
    """Orthonormal, of shape (d, r)."""
    gains: Array
    """Extra gain along each, of shape (r,)."""
    base_gain: float
    mixing: Array | None = None
    """With more columns than rows: what to multiply the rows by, from the left, to whiten them."""


def whitening(Z: Array, sample_weight: Array | None = None, *, mix: bool = False) -> Whitening:
    """Principal directions of centred rows, the extra gain along each, and the gain elsewhere."""
    if not Z.shape[1]:
        return Whitening(np.zeros((0, 0)), np.zeros(0), 1.0)
    n, d = Z.shape
    weight = np.ones(n) if sample_weight is None else sample_weight
    # The weighted covariance is that of rescaled rows.
    rooted = Z if sample_weight is None else Z * np.sqrt(weight / np.mean(weight))[:, None]
    wide = d > n
    # The smaller of the two products of the rows with themselves: its norm is the covariance's.
    gram = (rooted @ rooted.T if wide else rooted.T @ rooted) / n
    if sample_weight is not None or wide:
        shrinkage = _weighted_shrinkage(Z, weight, gram)
    else:
        shrinkage = float(ledoit_wolf_shrinkage(Z, assume_centered=True))
    left = None
    # From that product, unless shrinkage leaves variances so small that their rounding, which is
    # that of the largest one, would be seen.
    if shrinkage * min(n, d) <= LEAST_SHARE * d:
        _, singular, Vt = np.linalg.svd(rooted, full_matrices=False)
        variances = singular**2 / n
    elif not wide:
        variances, axes = np.linalg.eigh(gram)
        variances, Vt = np.maximum(variances, 0.0), axes.T
    else:
        variances, left = np.linalg.eigh(gram)
        # What no row reaches needs no direction of its own.
        seen = variances > LEAST_VARIANCE * max(float(variances[-1]), np.finfo(float).tiny)
        variances, left = variances[seen], left[:, seen]
        Vt = (left / np.sqrt(n * variances)).T @ rooted
    floor = shrinkage * float(variances.sum()) / d
    shrunk = (1.0 - shrinkage) * variances + floor
    # Directions without any variance (duplicate columns when nothing shrinks) must not be blown
    # up: they keep the gain of the smallest real one.
    real = shrunk > 1e-10 * shrunk.max() if len(shrunk) else np.zeros(0, bool)
    gains = 1.0 / np.sqrt(shrunk[real])
    # Without any variance at all (a view that is constant in a fold) nothing is scaled.
    least = gains.max(initial=0.0) or 1.0
    base = 1.0 / np.sqrt(floor) if floor > 1e-10 * shrunk.max(initial=0.0) else least
    mixing = None
    if mix and left is not None and sample_weight is None and real.all():
        # Rows are LD' with L their left singular vectors times the singular values.
        mixing = (left * gains) @ left.T
    return Whitening(np.ascontiguousarray(Vt[real].T), gains - base, float(base), mixing)


def _weighted_shrinkage(Z: Array, weight: Array, gram: Array) -> float:
    """Ledoit-Wolf shrinkage of centred rows where a weight counts as that many copies.

    scikit-learn's function takes no weights; with whole ones this is its value for the copies.
    ``gram`` is the product of the rows, rescaled by the roots of weights of mean one, with
    themselves, over n: Z'DZ and D^(1/2) Z Z' D^(1/2) have the same Frobenius norm.
    """
    n, d = float(weight.sum()), Z.shape[1]
    squares = np.einsum("ij,ij->i", Z, Z)
    norm2 = float((gram * gram).sum())
    mean_variance = float(weight @ squares) / n / d
    distance = norm2 / d - mean_variance**2
    noise = min((float(weight @ squares**2) / n - norm2) / (d * n), distance)
    return 0.0 if noise <= 0 else noise / distance
