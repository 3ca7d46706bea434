r"""Scores of left-out rows: coefficients without the row, kernels under a scaling without it.

With :math:`G = (\rho W^{-1} + K_b)^{-1}` (W holds the row weights) and a = Gt, leaving out the
rows g (a row, or its group) turns the coefficients into

.. math:: a^{(-g)} = a - G_{\cdot g}\, G_{gg}^{-1} a_g

which is zero on g, and the score of row i of g is
:math:`s_i = \sum_j b_j \sum_k k_j^{(-g)}(i, k)\, a^{(-g)}_k`, where :math:`k_j^{(-g)}` is the
kernel of `left_out_distances`. A row of any weight is left out whole: a weight is trust in a row,
not a number of copies that could vouch for each other.

The inverse keeps the plain kernel, so scores are those of refits only where the scaling is
``"none"``; elsewhere near.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrs

from kernull._containers import is_tensor
from kernull._lapack import inverse_diagonal, inverse_of_factor, lower_factor
from kernull._threads import in_threads
from kernull._typing import Array, Indices
from kernull.calibration.left_out_distances import LeftOutDistances, read_groups, trust

#: Kernel values that a thread holds at once: what its caches hold. With fewer, products of many
#: columns would be of too few rows to be fast.
BLOCK_VALUES = 2**19
#: Rows at a time, at most: few rows are for two threads too.
BLOCK_ROWS = 128
#: Ridge of a kernel's own projection, relative to the number of rows (MATHS 11).
OWN_DELTA = 1e-4
#: Scores that tie are lowered by so many parts in n of the spread.
TIED = 5.0
#: Relative size of differences that come from solving the same system in two ways.
ROUNDING = 1e-9
#: Distances below this share of the median distance to the nearest row count as this much.
NEAREST = 1e-3


def left_out_coefficients(inverse: Array, coef: Array, rows: Any, groups: Any = None) -> Array:
    """Coefficients (r, n) of the models without each of r rows, or without their groups.

    From G, of shape (n, n), and a = Gt; zero where a row was left out.
    """
    rows = np.asarray(rows)
    if groups is None:
        out = coef - (coef[rows] / np.diagonal(inverse)[rows])[:, None] * inverse[rows]
        out[np.arange(len(rows)), rows] = 0.0
        return np.asarray(out)
    group = read_groups(groups, len(coef))
    out = np.empty((len(rows), len(coef)))
    for g in np.unique(group[rows]):
        mine = np.flatnonzero(group == g)
        without = coef - inverse[:, mine] @ np.linalg.solve(inverse[np.ix_(mine, mine)], coef[mine])
        without[mine] = 0.0
        out[group[rows] == g] = without
    return out


def left_out_contributions(
    kernel_rows: Callable[[Indices], Iterable[Array]],
    weights: Array,
    inverse: Array,
    coef: Array,
    *,
    groups: Any = None,
) -> Array:
    r"""Contribution of each kernel to each row's left-out score.

    .. math:: c_{ij} = b_j \sum_k k_j^{(-i)}(i, k)\, (a_k - G_{ki} a_i / G_{ii})

    Parameters
    ----------
    kernel_rows : callable
        From r rows to their left-out values of each kernel, J arrays of shape (r, n).
    weights : array of shape (J,)
        Kernel weights b, with the factors of normalised kernels in them.
    inverse, coef : arrays of shape (n, n) and (n,)
        G = (rho W^-1 + K_b)^-1 and a = Gt.
    groups : array of shape (n,), optional
        Rows with equal labels are left out together.

    Returns
    -------
    array of shape (n, J)
    """
    rows = np.arange(len(coef))
    out = np.empty((len(rows), len(weights)))

    def work(part: Indices) -> None:
        for j, K in enumerate(kernel_rows(rows[part])):
            out[part, j] = _left_out_sums(K, inverse, coef, rows[part], groups)

    in_threads(work, row_blocks(len(rows), len(coef), groups, rows))
    return np.asarray(out * weights)


def _left_out_sums(K: Array, inverse: Array, coef: Array, rows: Indices, groups: Any) -> Array:
    """sum_k k(i, k) a_k^(-i) of some rows of one kernel: (r, n) -> (r,).

    A row that is left out alone drops out of k'a - k'G_i a_i / G_ii by itself.
    """
    if groups is not None:
        without = left_out_coefficients(inverse, coef, rows, groups)
        return np.asarray(np.einsum("rn,rn->r", K, without))
    ratio = coef[rows] / np.diagonal(inverse)[rows]
    return np.asarray(K @ coef - ratio * np.einsum("rn,rn->r", K, _take(inverse, rows)))


def _take(matrix: Array, rows: Indices) -> Array:
    """Some rows of a matrix, without a copy where they follow each other."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return matrix[rows[0] : rows[-1] + 1]
    return matrix[rows]


def row_blocks(count: int, per_row: int, groups: Any, rows: Indices) -> list[Indices]:
    """Positions of rows in blocks that stay in cache; rows of a group stay together."""
    step = max(8, min(BLOCK_ROWS, BLOCK_VALUES // max(per_row, 1)))
    order = np.arange(count)
    if groups is not None:
        order = np.argsort(np.unique(groups, return_inverse=True)[1].ravel()[rows], kind="stable")
    return [order[start : start + step] for start in range(0, count, step)]


def not_above_own(contributions: Array, own: Array) -> Array:
    """Left-out contributions whose sum is at most the row's score as a new row.

    A copy of a training row is scored by the whole model. Where the model overshoots (a row in
    a crowd projects beyond its target) leaving the row out raises its score, and a new row equal
    to hundreds of training rows would rank below every one of them. Lowered to what that new row
    gets, they tie, and a copy never ranks below its own kind. Rows below their target, those that
    thresholds are about, keep their scores.

    Parameters
    ----------
    contributions : array of shape (n, J)
    own : array of shape (n,)
        Score of each row by the whole model: t - (rho/w) a.

    Returns
    -------
    array of shape (n, J)
        What is too much is taken in proportion to the size of the contributions.
    """
    own = own - ROUNDING * np.abs(own)
    excess = np.maximum(contributions.sum(axis=1) - own, 0.0)
    size = np.abs(contributions)
    total = np.maximum(size.sum(axis=1), np.finfo(float).tiny)
    return np.asarray(contributions - (excess / total)[:, None] * size)


def lower_ties(scores: Array, rows: float = TIED) -> Array:
    """Left-out scores, those that tie with others lowered by what one row more may change.

    In discrete data many rows are equally odd: their left-out scores tie. A new row that is odd in
    the same way is scored by a model of n rows, not n - 1, and its score differs by about one part
    in n: if it is lower, all such rows are flagged at once, however many there are. Scores that
    another row has too are therefore lowered by 5/n of the spread of all scores. Where scores are
    continuous nothing ties and nothing changes.

    Parameters
    ----------
    scores : array of shape (n,) or (n, J)
    rows : float
        How many n-ths of the spread.

    Returns
    -------
    array of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> lower_ties(np.array([0.0, 1.0, 3.0, 3.0, 4.0]), 1.0).round(1)
    array([0. , 1. , 2.3, 2.3, 4. ])
    """
    if scores.ndim == 2:
        return np.column_stack([lower_ties(column, rows) for column in scores.T])
    n = len(scores)
    if n < 2 or not np.isfinite(scores).any():
        return scores
    order = np.argsort(scores, kind="stable")
    c = scores[order]
    known = c[np.isfinite(c)]
    last = len(known) - 1.0
    low, high = np.interp([0.05 * last, 0.95 * last], np.arange(len(known)), known)  # quantiles
    spread = high - low or float(known[-1] - known[0])
    with np.errstate(invalid="ignore"):  # infinities tie
        near = np.diff(c) <= ROUNDING * (np.abs(c[1:]) + spread)
    near |= c[1:] == c[:-1]
    tied = np.zeros(n, dtype=bool)
    tied[1:] |= near
    tied[:-1] |= near
    out = scores.copy()
    out[order[tied]] -= min(rows / n, 1.0) * spread + ROUNDING * np.abs(c[tied])
    return out


# -- a kernel's own scores -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KernelProjection:
    r"""The Fisher projection of one kernel alone, :math:`m(x) = k(x)'a`.

    .. math:: a = (\delta n W^{-1} + K)^{-1} 1

    Parameters
    ----------
    coef : array of shape (n,)
        All that new rows need: m(x) is a product with it.
    own : array of shape (n,)
        m of the training rows themselves, 1 - (rho/w) a.
    diagonal : array of shape (n,)
        That of G.
    inverse : array of shape (n, n) or None
        G, for left-out scores of rows that leave their scaling too.
    """

    coef: Array
    own: Array
    diagonal: Array
    inverse: Array | None = None

    @classmethod
    def fit(
        cls,
        kernel: Any,
        sample_weight: Any = None,
        delta: float = OWN_DELTA,
        *,
        whole: bool = True,
    ) -> KernelProjection:
        """From the n x n kernel, by one factorisation, where it is if it is a torch tensor.

        ``whole`` says whether the whole of G will be needed, not its diagonal alone.
        """
        n = len(kernel)
        ridge = delta * n / trust(sample_weight, n)
        if is_tensor(kernel):
            inverse = _inverse_on_device(kernel, ridge)
        else:
            A = np.array(kernel, dtype=float)
            A.flat[:: n + 1] += ridge
            factor = lower_factor(A)
            if not whole:
                coef = np.asarray(dpotrs(factor, np.ones(n), lower=1)[0])
                return cls(coef, 1.0 - ridge * coef, inverse_diagonal(factor))
            inverse = inverse_of_factor(factor)
        coef = inverse @ np.ones(n)
        return cls(coef, 1.0 - ridge * coef, np.diagonal(inverse), inverse)


def _inverse_on_device(kernel: Any, ridge: Array) -> Array:
    import torch

    A = kernel + torch.diag(torch.as_tensor(ridge, device=kernel.device))
    try:
        factor = torch.linalg.cholesky(A)
    except torch.linalg.LinAlgError as error:
        raise LinAlgError(str(error)) from None
    return np.asarray(torch.cholesky_inverse(factor).cpu().numpy())


def left_out_view(
    distances: LeftOutDistances,
    widths: Array,
    projections: Sequence[KernelProjection],
) -> tuple[Array, Array]:
    """Left-out values of both scores of each kernel of one view and scaling, in one pass.

    From the left-out widths (n, F) of its F rbf kernels and their projections, with inverses, to

    - m of each row by the kernel that never saw it, (n, F), no higher than its own as a new row;
    - the squared distance (n,) to the nearest row outside its group, of which `log_nearest` makes
      a score.
    """
    n = distances.n
    groups = None if distances.single else distances.group
    projected, nearest2 = np.empty((n, len(projections))), np.empty(n)

    def work(part: Indices) -> None:
        squared = distances.rows(part)
        nearest2[part] = squared.min(axis=1)
        for j, projection in enumerate(projections):
            assert projection.inverse is not None
            gain = (-0.5 / widths[part, j] ** 2)[:, None]
            # The last kernel takes the place of the distances.
            K = np.multiply(squared, gain, out=squared if j == len(projections) - 1 else None)
            np.exp(K, out=K)
            inverse, coef = projection.inverse, projection.coef
            projected[part, j] = _left_out_sums(K, inverse, coef, part, groups)

    in_threads(work, row_blocks(n, n, groups, np.arange(n)))
    own = np.column_stack([projection.own for projection in projections])
    return np.minimum(projected, own - ROUNDING * np.abs(own)), nearest2


def beside_the_lowest(own: KernelProjection, left_out: Array) -> Array:
    r"""Left-out projections of all rows where the lowest is gone as well, at fixed scaling: (n,).

    The row farthest out has a neighbour that looks less far out than it is, as long as that row is
    there to be near to. A new row out there has no such effect. With i the lowest row and G the
    inverse, the projection of row k without both is
    :math:`1 - (G_{ii} a_k - G_{ik} a_i) / (G_{ii} G_{kk} - G_{ik}^2)`.
    """
    assert own.inverse is not None
    G, a, d = own.inverse, own.coef, own.diagonal
    i = int(np.argmin(left_out))
    both = np.maximum(d[i] * d - G[i] ** 2, np.finfo(float).tiny)
    change = a / d - (d[i] * a - G[i] * a[i]) / both
    return np.asarray(left_out + np.minimum(change, 0.0))


def nearest_floor(nearest2: Array) -> float:
    """The distance below which two rows are one: a share of the median left-out distance.

    Copies have distance zero, whose logarithm is no number; and how close a row is to a copy of
    it says nothing. 1.0 where every row has a copy.
    """
    # Beyond 17 digits below the largest there is nothing but rounding.
    positive = nearest2[nearest2 > 1e-17 * nearest2.max(initial=0.0)]
    return float(NEAREST * np.sqrt(np.median(positive))) if len(positive) else 1.0


def log_nearest(nearest2: Array, floor: float) -> Array:
    """-log of the distance to the nearest row, from its square: higher is more normal."""
    return np.asarray(-0.5 * np.log(np.maximum(nearest2, floor * floor)))
