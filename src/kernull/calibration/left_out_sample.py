r"""Scores of a sample of left-out rows, without the inverse of the whole system.

With :math:`\kappa_i = a_i / G_{ii}`, a left-out score is
:math:`\sum_k \tilde k_{ik} (a_k - \kappa_i G_{ik})`, where the kernel values
:math:`\tilde k_{ik}` are those of row i under a scaling that never saw it. The row
:math:`G_{i\cdot}` is split: a part in the span of the solver's basis Q, which is known from small
matrices, meets those values; what is beyond it is taken to meet the plain kernel :math:`k_{ik}`, as
:math:`\sum_{k \ne i} k_{ik} G_{ik} = 1 - (\rho / w_i + k_{ii}) G_{ii}` is known as a whole. As it
is about the row's neighbours, its entries are taken to be as :math:`w_k k_{ik} |k_{ik}|`: that says
how much of it each kernel has, and how much of that the scaling without the row leaves.

Scores are as near to those of refits as with the whole inverse, which has the plain kernel in it
anyway; what is needed is :math:`G_{ii}`, of the sample alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from kernull._threads import in_threads
from kernull._typing import Array, Indices
from kernull.calibration.left_out_scores import ROUNDING, row_blocks
from kernull.calibration.sampled import Span
from kernull.problems import FisherProblem
from kernull.solvers.subspace import Basis
from kernull.stacks import DenseStack

#: Rows from which kernels that are not stored leave rows out of their scaling too.
TILED_ROWS = 600
#: Rows of a sample, at least, and its share of the rows.
SAMPLE_ROWS, SAMPLE_SHARE = 750, 0.5


def drawn_sample(n: int) -> Indices:
    """The rows of n that are left out one by one, increasing; all, where n is small."""
    count = min(n, max(SAMPLE_ROWS, int(SAMPLE_SHARE * n)))
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))


def sampled_contributions(
    problem: FisherProblem,
    weights: Array,
    coef: Array,
    basis: Basis,
    rows: Indices,
    diagonal: Array,
    kernel_rows: Callable[[Indices], Iterable[Array]],
    kernel_weights: Array,
) -> Array:
    """Contribution of each kernel to the left-out score of some rows: (r, J).

    ``diagonal`` are their G_ii, in the coordinates of the rows; ``kernel_rows`` gives their
    left-out values of each kernel, J arrays of shape (r, n), and ``kernel_weights`` what these are
    multiplied by: the weights, and the factors of normalised kernels.
    """
    ridge, span = problem.ridge, Span(problem, weights, basis)
    scale = np.ones(problem.n) if problem.row_scale is None else problem.row_scale
    total, kappa = weights @ problem.stack.diagonal()[:, rows], coef[rows] / diagonal
    # From the scaled coordinates of the problem to those of the rows.
    y = scale[rows] * span.best(rows, ridge + total * scale[rows] ** 2)[1]
    Q, KQ = scale * basis.Q, (span.AQ - ridge * basis.Q)[:, rows] / scale[rows]
    right = np.column_stack([coef, Q.T])
    out, near = np.empty((2, len(rows), len(weights)))

    stack: Any = problem.stack
    kernels, scaled = stack.rows, weights
    if isinstance(stack, DenseStack):  # without a copy for their factors
        kernels, scaled = stack.raw_rows, weights * stack.scale

    def work(part: Indices) -> None:
        plain = np.matmul(scaled, kernels(rows[part]).swapaxes(0, 1))
        plain[np.arange(len(part)), rows[part]] = 0.0
        beside = np.abs(plain)
        beside *= plain
        if problem.row_scale is not None:
            beside *= scale**2
        size = np.maximum(np.einsum("rn,rn->r", plain, beside), np.finfo(float).tiny)
        for j, K in enumerate(kernel_rows(rows[part])):
            found = K @ right
            out[part, j] = found[:, 0] - kappa[part] * np.einsum(
                "rq,qr->r", found[:, 1:], y[:, part]
            )
            near[part, j] = np.einsum("rn,rn->r", K, beside) / size

    in_threads(work, row_blocks(len(rows), problem.n, None, rows))
    inside = np.einsum("qr,qr->r", KQ - total * Q[:, rows], y)
    beyond = 1.0 - (ridge / scale[rows] ** 2 + total) * diagonal - inside
    beyond[np.abs(beyond) <= ROUNDING] = 0.0  # no score is made of rounding
    return np.asarray((out - (kappa * beyond)[:, None] * near) * kernel_weights)
