"""Objects that a user could write: kernull knows none of them."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances


class Matern:
    """Matern kernel with smoothness 3/2; its length scale comes from the rows it is fitted to."""

    def __repr__(self):
        return "Matern()"

    def fit(self, X, sample_weight=None):
        self.length = np.median(euclidean_distances(X)[np.triu_indices(len(X), 1)])
        return self

    def __call__(self, X, Y):
        r = np.sqrt(3.0) * euclidean_distances(X, Y) / self.length
        return (1.0 + r) * np.exp(-r)

    def diagonal(self, X):
        return np.ones(len(X))


class Ellipsoid:
    r"""Weights with :math:`\|b / s\|_2 \le 1`, where :math:`s_j` falls with j."""

    polyhedral = False

    def __init__(self, fall=0.7):
        self.fall = fall

    def __repr__(self):
        return f"Ellipsoid({self.fall})"

    def size(self, u):
        """The half-axes s."""
        return self.fall ** np.arange(len(u))

    def oracle(self, u):
        """A maximiser of b'u."""
        up = np.maximum(u, 0.0)
        return self.normalise(self.size(u) ** 2 * up) if up.any() else np.zeros(len(u))

    def support(self, u):
        """The largest b'u."""
        return float(np.linalg.norm(self.size(u) * np.maximum(u, 0.0)))

    def uniform(self, J):
        """Equal weights."""
        return self.normalise(np.ones(J))

    def normalise(self, b):
        """Weights on the boundary in these ratios."""
        return b / np.linalg.norm(b / self.size(b))
