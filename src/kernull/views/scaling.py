"""Scaling of one view by its own training statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.preprocessing import StandardScaler

from kernull._typing import Array

__all__ = ["SCALINGS", "ViewScaler", "read_scalings"]

#: The scalings known by name.
SCALINGS = ("standard", "whiten", "whiten-raw", "none")
#: What ``"auto"`` stands for; docs/guide/defaults.md has the comparison behind it.
AUTO_SCALINGS = ("standard", "whiten")


def read_scalings(scaling: Any, columns: int) -> tuple[str, ...]:
    """The scalings that ``scaling`` stands for on a view of so many columns.

    One column needs no decorrelation: ``"auto"`` is then ``"standard"`` alone.
    """
    if isinstance(scaling, str) and scaling == "auto":
        return AUTO_SCALINGS if columns > 1 else ("standard",)
    kinds = tuple(scaling) if isinstance(scaling, list | tuple) else (scaling,)
    if not kinds or not all(isinstance(kind, str) and kind in SCALINGS for kind in kinds):
        raise ValueError(
            f"scaling: got {scaling!r}; expected one of {SCALINGS}, several of them, or 'auto'."
        )
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"scaling: got {scaling!r}, which names a scaling twice.")
    return kinds


@dataclass(frozen=True)
class ViewScaler:
    r"""Affine map of one view, fitted on training rows.

    - ``"none"``: :math:`x`
    - ``"standard"``: :math:`z = (x - \mu) / \sigma`, column by column
    - ``"whiten"``: :math:`S^{-1/2} z` with the Ledoit-Wolf covariance
      :math:`S = (1 - s)\,C + s\,m\,I` of the standardised columns. Directions with little
      variance count as much as those with much; without it, a few leading directions of an
      embedding drown the rest.
    - ``"whiten-raw"``: :math:`S^{-1/2} (x - \mu)` with the Ledoit-Wolf covariance of the columns
      as they are. For embeddings whose columns share one unit (a network's activations): a column
      that hardly varies among normal rows is noise there, and standardising would blow it up.

    S is kept as its principal directions plus a multiple of the identity, so that a view with
    more columns than rows costs n d^2 at most and never a d x d root.
    """

    kind: str
    mean: Array | None = None
    scale: Array | None = None
    directions: Array | None = None  # (d, r), orthonormal columns
    gains: Array | None = None  # (r,), extra gain along each direction
    base_gain: float = 1.0

    @classmethod
    def fit(cls, kind: Any, X: Array, sample_weight: Array | None = None) -> ViewScaler:
        """Learn the map from the training rows of one view."""
        if kind == "none":
            return cls("none")
        if kind not in SCALINGS:
            raise ValueError(f"scaling: got {kind!r}; expected one of {SCALINGS}.")
        scaler = StandardScaler().fit(X, sample_weight=sample_weight)
        mean, scale = np.asarray(scaler.mean_), np.asarray(scaler.scale_)
        if kind == "standard":
            return cls("standard", mean, scale)
        if kind == "whiten-raw":
            scale = np.ones_like(scale)
        Z = (X - mean) / scale
        if sample_weight is None:
            shrinkage = float(ledoit_wolf_shrinkage(Z, assume_centered=True))
        else:
            shrinkage = _weighted_shrinkage(Z, sample_weight)
            # the weighted covariance as that of rescaled rows
            Z = Z * np.sqrt(sample_weight / np.mean(sample_weight))[:, None]
        _, singular, Vt = np.linalg.svd(Z, full_matrices=False)
        variances = singular**2 / len(Z)
        floor = shrinkage * float(variances.sum()) / Z.shape[1]
        shrunk = (1.0 - shrinkage) * variances + floor
        # Directions without any variance (constant or duplicate columns when nothing shrinks)
        # must not be blown up: they keep the gain of the smallest real one.
        real = shrunk > 1e-10 * shrunk.max() if len(shrunk) else np.zeros(0, bool)
        gains = 1.0 / np.sqrt(shrunk[real])
        # Without any variance at all (a view that is constant in a fold) nothing is scaled.
        least = gains.max(initial=0.0) or 1.0
        base = 1.0 / np.sqrt(floor) if floor > 1e-10 * shrunk.max(initial=0.0) else least
        return cls(kind, mean, scale, np.ascontiguousarray(Vt[real].T), gains - base, base)

    def transform(self, X: Array) -> Array:
        """Apply the map to rows."""
        if self.kind == "none":
            return X
        assert self.mean is not None
        assert self.scale is not None
        Z = (X - self.mean) / self.scale
        if self.kind == "standard":
            return np.asarray(Z)
        assert self.directions is not None
        assert self.gains is not None
        return np.asarray(
            self.base_gain * Z + (Z @ self.directions * self.gains) @ self.directions.T
        )

    def inverse_transform(self, Z: Array) -> Array:
        """From scaled rows back to rows."""
        if self.kind == "none":
            return Z
        assert self.mean is not None
        assert self.scale is not None
        if self.directions is not None:
            assert self.gains is not None
            lost = self.gains / (self.base_gain + self.gains)
            Z = (Z - (Z @ self.directions * lost) @ self.directions.T) / self.base_gain
            # Constant columns were exactly zero, and must not come back as noise.
            Z[np.abs(Z) <= 1e-12 * np.abs(Z).max(initial=0.0)] = 0.0
        return np.asarray(Z * self.scale + self.mean)


def _weighted_shrinkage(Z: Array, weight: Array) -> float:
    """Ledoit-Wolf shrinkage of centred rows where a weight counts as that many copies.

    scikit-learn's function takes no weights; with whole ones this is its value for the copies.
    """
    n, d = float(weight.sum()), Z.shape[1]
    squares = np.einsum("ij,ij->i", Z, Z)
    # Z'DZ and D^(1/2) Z Z' D^(1/2) have the same Frobenius norm: form the smaller of the two.
    rooted = Z * np.sqrt(weight)[:, None]
    gram = rooted.T @ rooted if d <= len(Z) else rooted @ rooted.T
    norm2 = float((gram * gram).sum()) / n**2
    mean_variance = float(weight @ squares) / n / d
    distance = norm2 / d - mean_variance**2
    noise = min((float(weight @ squares**2) / n - norm2) / (d * n), distance)
    return 0.0 if noise <= 0 else noise / distance
