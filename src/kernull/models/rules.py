"""From kernels between new rows and the training rows to scores: what a method has learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from kernull._typing import Array, Mask

__all__ = ["FisherRule", "Rule", "check_score_type"]


class Rule(Protocol):
    """What a method has learned."""

    def score(self, cross: Any) -> Array:
        """Scores of the rows of a cross stack, of shape (m,); higher is more normal."""
        ...


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


def check_score_type(score_type: Any, choices: tuple[str, ...]) -> None:
    """Refuse a score that the method does not have."""
    if score_type not in choices:
        raise ValueError(f"score_type: got {score_type!r}; expected one of {choices}.")
