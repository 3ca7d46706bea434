"""Scores of rows by kernels that users give as matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kernull._fields import POSITIVE, Checked, Range, Shape, stored
from kernull._typing import Array, Indices, Mask
from kernull.detector.scores import (
    LEAST_NEIGHBOUR_WEIGHT,
    NEAREST_SHARE,
    Projection,
)

#: Diagonals that differ by less than this share are taken for constant.
CONSTANT = 1e-6


@stored
@dataclass(frozen=True, eq=False)
class PrecomputedScores(Checked):
    r"""Projection and distance of each given kernel, and of their product.

    Kernels are divided by the mean of their diagonals. Where that is constant, kernels are
    distances, :math:`d^2 = 2 - 2k`, and their product is the kernel of the whole. Elsewhere
    :math:`-|1 - y(x)|` stands for the distance, and there is no whole.

    Parameters
    ----------
    rows : integer array of shape (n,)
        Indices of the rows learned from among those given to fit, in a random order.
    size : array of shape (J,)
        Mean of the diagonal of each kernel.
    constant : boolean array of shape (J,)
        Kernels with a constant diagonal.
    coef : array of shape (J or J + 1, m)
        Coefficients of the projections, on the first m of the rows, those of one sample after the
        other; of the product last.
    floor : array of shape (J or J + 1,)
        Added to distances before the logarithm.
    neighbours : integer array, optional
        Rows that may be neighbours; None: all.
    """

    rows: Annotated[Indices, Shape("_r"), Range(low=0)]
    size: Annotated[Array, Shape("J"), Range(low=POSITIVE)]
    constant: Annotated[Mask, Shape("J")]
    coef: Annotated[Array, Shape("_k", "_first")]
    floor: Annotated[Array, Shape("_k"), Range(low=POSITIVE)]
    neighbours: Annotated[Indices | None, Shape("_near"), Range(low=0)] = None

    def contradiction(self) -> str | None:
        """What does not fit together."""
        fits = len(self.coef) - len(self.size) in (0, 1) and self.coef.shape[1] > 0
        return None if fits else "scores of other kernels"

    @property
    def width(self) -> int:
        """Number of scores."""
        return 2 * len(self.coef)

    cells = ()

    @classmethod
    def fit(
        cls,
        K: Array,
        rows: Indices,
        weight: Array | None,
        whole: bool,
        projection: Projection,
        full: PrecomputedScores | None = None,
    ) -> PrecomputedScores:
        """From kernels (J, n, n) of all rows, learning from some with these weights.

        ``full`` is the fit to all that are learned from, where ``rows`` lack a fold.
        """
        if full is not None:
            size, constant = full.size, full.constant
        else:
            diagonal = np.einsum("jii->ji", K)[:, rows].astype(float)
            size = np.maximum(diagonal.mean(axis=1), np.finfo(float).tiny)
            constant = np.ptp(diagonal, axis=1) <= CONSTANT * size
        product = whole and bool(constant.all()) and len(K) > 1
        blank = np.zeros((len(K) + product, 0))
        fitted = cls(rows, size, constant, blank, np.ones(len(blank)))
        first = rows[: projection.samples * projection.max_rows]
        square = fitted._kernels(K[:, first[:, None], first])
        of_all = len(rows if full is None else full.rows)

        def of_kernel(Kj: Array) -> Array:
            return projection.coef(lambda part: Kj[part, part].copy(), len(rows), weight, of_all)

        neighbours = None
        if weight is not None:
            kept = weight >= LEAST_NEIGHBOUR_WEIGHT * weight.mean()
            neighbours = None if kept.all() else rows[kept]
        fitted = replace(
            fitted, coef=np.stack([of_kernel(Kj) for Kj in square]), neighbours=neighbours
        )
        if full is not None:
            return replace(fitted, floor=full.floor)
        means = np.array([Kj.mean() for Kj in fitted._kernels(K[:, rows[:, None], rows])])
        usual_distance = np.sqrt(2.0 * np.maximum(1.0 - means, 0.0))
        floor = NEAREST_SHARE * np.where(usual_distance > 0, usual_distance, 1.0)
        return replace(fitted, floor=floor)

    @property
    def has_whole(self) -> bool:
        """Whether the product of the kernels is judged too."""
        return len(self.coef) > len(self.size)

    def columns(self, J: int) -> tuple[Mask, Mask]:
        """Kernels of each score (C, J), and which scores extrapolate (C,).

        Parameters
        ----------
        J : int

        Returns
        -------
        member : mask of shape (C, J)
            Kernels of each score.
        extrapolates : mask of shape (C,)
            Scores that go on falling outside the rows.
        """
        member = np.repeat(np.eye(J, dtype=bool), 2, axis=0)
        whole = np.zeros((2 * self.has_whole, J), dtype=bool)
        return np.vstack([member, whole]), np.tile([False, True], J + self.has_whole)

    def of(self, K: Array, device: None = None) -> Array:
        """Scores (m, C) of rows from their kernels (J, m, n) with the rows given to fit.

        Parameters
        ----------
        K : array of shape (J, m, n)
            Kernels between new rows and training rows.

        Returns
        -------
        array of shape (m, C)
        """
        first = self.rows[: self.coef.shape[1]]
        near = self.rows if self.neighbours is None else self.neighbours
        projections = self._kernels(K[:, :, first])
        distances = self._kernels(K[:, :, near])
        out = []
        for j, (P, D) in enumerate(zip(projections, distances, strict=True)):
            projected = P @ self.coef[j]
            if j < len(self.size) and not self.constant[j]:
                out += [projected, -np.abs(1.0 - projected)]
                continue
            nearest = np.sqrt(np.maximum(2.0 - 2.0 * D.max(axis=1), 0.0))
            out += [projected, -np.log(nearest + self.floor[j])]
        return np.stack(out, axis=1)

    def _kernels(self, K: Array) -> Array:
        """Kernels divided by their sizes, and their product where it is judged."""
        K = np.asarray(K, dtype=float) / self.size[:, None, None]
        if not self.has_whole:
            return K
        return np.concatenate([K, np.prod(K, axis=0)[None]])
