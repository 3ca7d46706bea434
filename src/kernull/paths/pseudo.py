"""Pseudo-outliers: rows drawn around the targets, to choose a model by where no outliers are known.

Every generator takes the targets X of shape (n, d), a count and a random generator, works in
standardised columns, and gives rows in the units of X.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernull._typing import Array
from kernull.kernels.neighbours import nearest

#: How far beyond the data boxes and spheres reach (Tax and Duin take the data's own extent).
MARGIN = 1.1


@dataclass(frozen=True)
class PseudoRows:
    """Rows that a good model rejects and, where the method makes them, rows that it accepts."""

    outliers: Array
    targets: Array | None = None


def draw_pseudo(kind: str, X: Array, count: int, rng: np.random.Generator) -> PseudoRows:
    """So many pseudo-rows of one of the kinds of `PSEUDO` around the targets X, of shape (n, d).

    ``"shift"`` gives as many as it finds edge rows.
    """
    if kind not in PSEUDO:
        raise ValueError(f"kind: got {kind!r}; expected one of {sorted(PSEUDO)}.")
    centre, spread = X.mean(axis=0), X.std(axis=0)
    # A constant column has no scale; pseudo-rows keep its value.
    unit = np.where(spread > 0, spread, 1.0)
    rows = PSEUDO[kind]((X - centre) / unit, count, rng)
    constant = spread == 0

    def back(Z: Array) -> Array:
        out = Z * unit + centre
        out[:, constant] = centre[constant]
        return np.asarray(out)

    return PseudoRows(back(rows.outliers), None if rows.targets is None else back(rows.targets))


def box(Z: Array, count: int, rng: np.random.Generator) -> PseudoRows:
    """Uniform in the bounding box of the targets (Tax and Duin 2001)."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    middle, half = (low + high) / 2, MARGIN * (high - low) / 2
    return PseudoRows(middle + half * rng.uniform(-1.0, 1.0, (count, Z.shape[1])))


def sphere(Z: Array, count: int, rng: np.random.Generator) -> PseudoRows:
    """Uniform in a sphere around the targets (Tax and Duin 2001)."""
    radius = MARGIN * float(np.linalg.norm(Z - Z.mean(axis=0), axis=1).max())
    direction = rng.standard_normal((count, Z.shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    depth = rng.uniform(size=(count, 1)) ** (1.0 / Z.shape[1])
    return PseudoRows(Z.mean(axis=0) + radius * depth * direction)


def shift(Z: Array, count: int, rng: np.random.Generator) -> PseudoRows:
    """Self-adaptive data shifting (Wang et al. 2018).

    A row lies on the edge where nearly all of its k nearest neighbours lie on one side of it, the
    side of the normal (the mean direction to them). Edge rows pushed out along the normal by the
    mean distance of neighbours are pseudo-outliers; every row pulled in along the normal, as far
    as its nearest neighbour on that side, is a pseudo-target.
    """
    n = len(Z)
    k = min(max(int(np.ceil(5 * np.log10(n))), 2), n - 1)
    distance, index = nearest(Z, Z, k + 1)
    distance, index = distance[:, 1:], index[:, 1:]
    steps = Z[index] - Z[:, None]  # (n, k, d)
    directions = steps / np.maximum(distance, 1e-12)[:, :, None]
    normal = directions.sum(axis=1)
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    inside = np.einsum("nkd,nd->nk", directions, normal)
    share = (inside >= 0).mean(axis=1)
    # The paper's share of 0.9 or more; where a small set has few such rows, its outermost tenth.
    edge = share >= min(0.9, float(np.quantile(share, 0.9)))
    outliers = Z[edge] - float(distance[edge].mean()) * normal[edge]
    depth = np.where(inside > 0, np.einsum("nkd,nd->nk", steps, normal), np.inf).min(axis=1)
    depth = np.where(np.isfinite(depth), depth, 0.0)
    return PseudoRows(outliers, Z + depth[:, None] * normal)


def mixed(Z: Array, count: int, rng: np.random.Generator) -> PseudoRows:
    """Three kinds in equal parts: columns permuted, rows jittered, pairs extrapolated.

    Jitter moves a row in a random direction by one to three times the distance to its fifth
    neighbour; extrapolation moves it away from another row by half to all of their distance.
    """
    n, d = Z.shape
    part = -(-count // 3)
    permuted = Z[rng.integers(n, size=(part, d)), np.arange(d)]
    k = min(5, n - 1)
    scale = nearest(Z, Z, k + 1)[0][:, -1]
    start = rng.integers(n, size=part)
    noise = rng.standard_normal((part, d))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    jittered = Z[start] + (scale[start] * rng.uniform(1.0, 3.0, part))[:, None] * noise
    first, second = rng.integers(n, size=(2, part))
    far = Z[first] + rng.uniform(0.5, 1.0, (part, 1)) * (Z[first] - Z[second])
    return PseudoRows(np.concatenate([permuted, jittered, far])[:count])


#: Every way to make pseudo-outliers by name.
PSEUDO = {"box": box, "sphere": sphere, "shift": shift, "mixed": mixed}
