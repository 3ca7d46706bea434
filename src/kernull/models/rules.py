"""From kernels between new rows and the training rows to scores: what a method has learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.calibration.evidence import Tails, combine, rarity
from kernull.calibration.left_out_scores import log_nearest
from kernull.stacks import KernelSet


@dataclass(frozen=True, eq=False)
class FisherRule:
    r"""A projection that is a sum over kernels.

    .. math:: y(x) = \sum_j b_j k_j(x)'a

    Parameters
    ----------
    weights : array of shape (J,)
        Kernel weights b.
    coef : array of shape (n,), or (J, landmarks)
        Coefficients a; of low-rank models, those of the landmarks for each kernel.
    score_type : {"projection", "distance"}
        y(x), or -|centre - y(x)|.
    kept : boolean array of shape (J,), optional
        Kernels that the score is the sum of; all by default.
    centre : float
        Where normal rows lie: 1, or less where kernels are left out.
    """

    weights: Array
    coef: Array
    score_type: str = "projection"
    kept: Mask | None = None
    centre: float = 1.0

    def contributions(self, cross: Any) -> Array:
        """Contribution of each kernel to each row, of shape (m, J); zero for those left out."""
        out = np.zeros((len(cross), len(self.weights)))
        used = self.weights > 0  # kernels without weight need not be evaluated
        used = used if self.kept is None else used & self.kept
        part = cross.select(used)
        coef = self.coef
        values = part.products(coef) if coef.ndim == 1 else part.products_each(coef[used])
        out[:, used] = values.T * self.weights[used]
        return out

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        return self.of_contributions(self.contributions(cross))

    def of_contributions(self, contributions: Array) -> Array:
        """From contributions (m, J) to scores (m,)."""
        if self.kept is not None:
            contributions = contributions[:, self.kept]
        return self.projection_to_score(contributions.sum(axis=1))

    def projection_to_score(self, projection: Array) -> Array:
        """From the sum over kernels to the score."""
        if self.score_type == "projection":
            return projection
        return np.asarray(-np.abs(self.centre - projection))

    def without(self, kept: Mask, typical: Array) -> FisherRule:
        """The rule over some kernels; normal rows project to 1 less what the others give."""
        return replace(self, kept=kept, centre=1.0 - float(typical[~kept].sum()))


#: Nats beyond log(n + 1), which the oddest of n rows has: from the second on views are equal.
BEYOND = (2.0, 4.0)


@dataclass(frozen=True, eq=False)
class EvidenceRule:
    """What a model that decides by evidence has learned.

    Parameters
    ----------
    projection : FisherRule
        lp MK-FN itself: its weights are those of the evidence.
    own_coef : array of shape (J, r)
        Coefficients a_j of each kernel alone, on r of the model's rows.
    floors : array of shape (J,)
        Distances below which two rows are one; infinite for kernels that know no distance.
    tails : Tails
        Of the left-out values of the J projections, then of the J distances.
    total : Tails
        Of minus the left-out E.
    rows : integer array of shape (r,), optional
        Which of the model's rows these are; None: all.
    sample : KernelSet, optional
        Kernels on these rows of a table, with scaling and widths by them alone; None where the
        model's own kernels serve.
    diagonal : array of shape (J,), optional
        k_j(x, x) of given kernels, where it is constant.
    structure : array of shape (J,), optional
        Of the view of each kernel, where there are several views: those that say little have
        little say; see `kernull.models.structure`.
    member : integer array of shape (J,), optional
        The view of each kernel, where its structure is known.
    kept : boolean array of shape (J,), optional
        Kernels that take part; all by default.
    """

    projection: FisherRule
    own_coef: Array
    floors: Array
    tails: Tails
    total: Tails
    rows: Indices | None = None
    diagonal: Array | None = None
    sample: KernelSet | None = None
    structure: Array | None = None
    member: Indices | None = None
    kept: Mask | None = None

    @property
    def weights(self) -> Array:
        """Kernel weights b."""
        return self.projection.weights

    @property
    def coef(self) -> Array:
        """Coefficients of the projection of lp MK-FN."""
        return self.projection.coef

    @property
    def score_type(self) -> str:
        """That of the projection."""
        return self.projection.score_type

    def contributions(self, cross: Any) -> Array:
        """Contribution of each kernel to the projection of lp MK-FN, of shape (m, J)."""
        return self.projection.contributions(cross)

    def score(self, cross: Any) -> Array:
        """Minus the evidence of new rows."""
        return -self.of_parts(self.parts(cross))

    def parts(self, cross: Any) -> Array:
        """Squared evidence of each kernel times its weight, of shape (m, J); E^2 is their sum."""
        return self.parts_of(self.tails.evidence(self.own_scores(cross)))

    def own_scores(self, cross: Any) -> Array:
        """Both scores of each kernel, of shape (m, 2J): projections, then distances."""
        if self.sample is not None:
            some: Any = cross.against(self.sample)
        else:
            some = cross if self.rows is None else cross.columns(self.rows)
        return self.scores_of(*some.own_scores(self.own_coef, self.diagonal))

    def scores_of(self, projected: Array, nearest2: Array) -> Array:
        """From projections and squared distances to the nearest row, (J, m) both, to (m, 2J)."""
        # Where no distance is known, a projection far beyond those of normal rows counts as well.
        distances = -np.abs(1.0 - projected)
        known = np.isfinite(self.floors)
        for j in np.flatnonzero(known):
            distances[j] = log_nearest(nearest2[j], self.floors[j])
        return np.vstack([projected, distances]).T

    def parts_of(self, evidence: Array) -> Array:
        """From evidence of both scores (m, 2J) to squared weighted evidence of kernels (m, J).

        The say of a view is about what normal rows have. Beyond that each view has the same: a
        broken column is heard wherever it is.
        """
        J, b = len(self.weights), self.relative_weights()
        equal = b
        if self.member is not None:  # over the largest weight in the view of each kernel
            most = np.full(int(self.member.max()) + 1, np.finfo(float).tiny)
            np.maximum.at(most, self.member, b)
            equal = b / most[self.member]
        start, end = np.log(self.tails.n + 1.0) + np.array(BEYOND)
        beyond = np.clip((evidence - start) / (end - start), 0.0, 1.0)
        with np.errstate(over="ignore"):
            squares = ((np.tile(b, 2) + np.tile(equal - b, 2) * beyond) * evidence) ** 2
            return np.asarray(squares[:, :J] + squares[:, J:])

    def relative_weights(self) -> Array:
        """What the evidence of each kernel is multiplied by, the largest one: (J,)."""
        b = self.weights
        if self.structure is not None and self.member is not None:
            share = np.maximum(np.bincount(self.member, b), np.finfo(float).tiny)
            b = b * np.sqrt(self.structure / share[self.member])
        b = b if self.kept is None else np.where(self.kept, b, 0.0)
        return b / max(float(b.max()), np.finfo(float).tiny)

    def of_parts(self, parts: Array) -> Array:
        """From squared evidence of kernels to E."""
        return combine(np.sqrt(parts), np.ones(parts.shape[1]))

    def left_out(self) -> Array:
        """E of the rows that it was learned from, each left out."""
        return self.of_parts(self.parts_of(self.tails.own))

    def with_total(self, row_weight: Array | None = None) -> EvidenceRule:
        """The rule with the tail of its left-out E."""
        return replace(self, total=Tails.fit(-self.left_out(), row_weight))

    def rarity(self, combined: Array) -> tuple[Array, Mask]:
        """One in so many normal rows has as much evidence; and where that is extrapolated."""
        return rarity(combined, self.total)

    def without(self, kept: Mask, typical: Any = None) -> EvidenceRule:
        """The rule over some kernels."""
        return replace(self, kept=kept).with_total()


def check_score_type(score_type: Any, choices: tuple[str, ...]) -> None:
    """Refuse a score that the method does not have."""
    if score_type not in choices:
        raise ValueError(f"score_type: got {score_type!r}; expected one of {choices}.")
