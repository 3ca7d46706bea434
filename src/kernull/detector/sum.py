r"""The paper's rule, a sum over kernels: :math:`y(x) = \sum_j b_j k_j(x)'a`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernull._fields import OneOf, Range, Shape, stored
from kernull._typing import Array, Mask


@stored
@dataclass(frozen=True)
class Sum:
    """Decide by the paper's sum over kernels; what ``decision="sum"`` stands for.

    Parameters
    ----------
    score : {"projection", "distance"}, default="projection"
        ``y(x)``, or ``-|1 - y(x)|``, the score of the null-space papers. They rank alike where
        y <= 1.
    """

    score: str = "projection"

    def __post_init__(self) -> None:
        if self.score not in ("projection", "distance"):
            raise ValueError(
                f"score: got {self.score!r}; expected 'projection' (y) or 'distance' (-|1 - y|)."
            )


@stored
@dataclass(frozen=True, eq=False)
class FisherRule:
    r"""A projection that is a sum over kernels.

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

    weights: Annotated[Array, Shape("J"), Range(low=0.0)]
    coef: Annotated[Array, Shape("n"), Shape("J", "n")]
    score_type: Annotated[str, OneOf("projection", "distance")] = "projection"
    kept: Annotated[Mask | None, Shape("J")] = None
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
        """From contributions (m, J) to scores (m,).

        Parameters
        ----------
        contributions : array of shape (m, J)

        Returns
        -------
        array of shape (m,)
        """
        if self.kept is not None:
            contributions = contributions[:, self.kept]
        projection = contributions.sum(axis=1)
        if self.score_type == "projection":
            return np.asarray(projection)
        return np.asarray(-np.abs(self.centre - projection))

    def only(self, kept: Mask, typical: Array) -> FisherRule:
        """The rule over some kernels; normal rows project to 1 less what the others give.

        Parameters
        ----------
        kept : mask of shape (J,)
            Kernels that take part.
        typical : array of shape (J,)
            Mean contribution of each kernel to left-out rows.
        """
        return replace(self, kept=kept, centre=1.0 - float(typical[~kept].sum()))


def coefficients(K: Array, ridge: float, row_weight: Array | None) -> Array:
    r""":math:`(K + \rho n W^{-1})^{-1} 1` from K (n, n), which is used up; weights of mean one.

    Parameters
    ----------
    K : array of shape (n, n)
        Combined kernel, overwritten.
    ridge : float
        Ridge rho, relative to the number of rows.
    row_weight : array of shape (n,) or None
        Row weights W of mean one.

    Returns
    -------
    array of shape (n,)
    """
    n = len(K)
    spread = np.ones(n) if row_weight is None else row_weight.mean() / row_weight
    K.flat[:: n + 1] += ridge * n * spread
    try:
        return np.asarray(cho_solve(cho_factor(K, overwrite_a=True), np.ones(n)))
    except LinAlgError:  # a kernel that is positive semidefinite but for rounding
        return np.asarray(np.linalg.lstsq(K, np.ones(n), rcond=None)[0])
