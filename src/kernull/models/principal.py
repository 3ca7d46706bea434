"""Principal directions of a centred kernel, and distances from them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from kernull._typing import Array


def principal_directions(K: Array) -> tuple[Array, Array]:
    """Positive eigenvalues of the centred kernel, largest first, and their eigenvectors."""
    means = K.mean(axis=0)
    centred = K - means[:, None] - means[None, :] + means.mean()
    values, vectors = eigh(centred, check_finite=False, overwrite_a=True)
    values, vectors = values[::-1], vectors[:, ::-1]
    real = values > len(K) * np.finfo(float).eps * max(float(values[0]), np.finfo(float).tiny)
    return values[real], vectors[:, real]


def reconstruction(K: Array, own: Array, means: Array, coef: Array) -> Array:
    """Minus the squared distance of each row of K from the subspace of the directions."""
    level = K.mean(axis=1)
    grand = float(means.mean())
    distance = own - 2.0 * level + grand
    centred = K - level[:, None] - means + grand
    projections = centred @ coef
    return np.asarray(np.einsum("ij,ij->i", projections, projections) - distance)
