r"""Deciding by evidence: each kernel speaks for itself, in nats, and the learned weights combine.

Two scores of kernel j alone, higher is more normal: its own Fisher projection
:math:`m_j(x) = k_j(x)'a_j` with :math:`a_j = (K_j + 10^{-4} n I)^{-1} 1`, which sees density, and
:math:`n_j(x)`, minus the logarithm of the distance to the nearest training row in its view and
scaling, which never saturates. `kernull.calibration.evidence` turns each into evidence against the
row, by ranks among the training rows' left-out values and a tail below the lowest.

.. math:: E(x) = \Big\| \frac{b_j}{\max b} \big(e_{m_j}(x), e_{n_j}(x)\big)_j \Big\|_2,
   \qquad s(x) = -E(x)

b are the weights of lp MK-FN on normalised kernels. A kernel that hardly varies fits the targets
best and may take most of the weight, so that with several views the say of each depends on its
structure as well (`kernull.models.structure`). A view that is broken speaks as loudly as it is
broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from kernull._quiet import warn
from kernull._threads import blas_threads, in_threads, instead_of_blas
from kernull._typing import Array, Indices
from kernull.calibration import LeftOut
from kernull.calibration.evidence import FEWEST_VALUES, Tails
from kernull.calibration.left_out_distances import trust
from kernull.calibration.left_out_scores import log_nearest, nearest_floor
from kernull.errors import DominantViewWarning, MissingCapabilityError
from kernull.kernels.functions import BLOCK_ROWS
from kernull.models.fisher import FisherMethod
from kernull.models.kernels import TableKernels, Training
from kernull.models.model import RuleFit
from kernull.models.own_scores import (
    FEWEST_ROWS,
    own_of_view,
    own_projection,
    plain_left_out,
    refitted,
)
from kernull.models.rules import EvidenceRule, FisherRule
from kernull.models.structure import with_structure
from kernull.stacks import CrossKernels, DenseStack, KernelSet

#: Rows that new ones are compared with: beyond, a sample of so many stands for all. The weights
#: are learned from all rows whatever their number.
EVIDENCE_ROWS = 4000
#: Bytes for each pair of these rows: a kernel, its inverse, distances, and room to work in.
MATRIX_BYTES = 256
#: Diagonals of given kernels that differ by less than this are taken for constant.
CONSTANT = 1e-6
#: Rows beyond which threads gain by working on one view together.
MANY_ROWS = 1500


@dataclass(frozen=True)
class EvidenceMethod(FisherMethod):
    """lp MK-FN for the weights, evidence for the decision; from so many rows at most."""

    max_rows: int = EVIDENCE_ROWS

    def learn(  # type: ignore[override]  # a fit of another kind, which answers the same
        self,
        training: Training,
        row_weight: Array | None,
        groups: Indices | None = None,
    ) -> RuleFit:
        """Learn the weights from all rows, then each kernel's own evidence."""
        fit = super().learn(training, row_weight)
        rule = evidence_of(training, lambda: fit.rule, row_weight, self.max_rows, groups)
        if isinstance(training.kernels, TableKernels):
            warn_of_views(rule, training.kernels.views)
        left_out = partial(left_out_evidence, rule, training.stack.n, row_weight)
        return RuleFit(rule, left_out, fit.certificate, fit.system, leaves_out_scaling=True)


def evidence_of(
    training: Training,
    projection: Callable[[], FisherRule],
    row_weight: Array | None,
    max_rows: int = EVIDENCE_ROWS,
    groups: Indices | None = None,
) -> EvidenceRule:
    """Each kernel's own evidence, beside the weights that are learned.

    ``projection`` is asked for the rule of these, whose coefficients may still have to be found.
    """
    kernels, stack, table = training
    if not isinstance(kernels, TableKernels) or table is None:
        if groups is not None:
            raise MissingCapabilityError(
                "groups: evidence of precomputed kernels leaves rows out one by one; use "
                "decision='sum', or calibration='split'."
            )
        return _of_stack(stack, projection(), row_weight, max_rows)
    if not isinstance(stack, DenseStack) and projection().coef.ndim != 1:
        # The model keeps landmarks: other rows calibrate it.
        return evidence_of_landmarks(kernels.set, projection(), table)
    device = getattr(stack, "device", None)
    rows = _sample(len(table), max_rows)
    some = slice(None) if rows is None else rows
    own = None if row_weight is None else row_weight[some]
    together = None if groups is None else groups[some]
    if rows is None:
        whole = isinstance(stack, DenseStack) and stack.dtype == np.float64
        known = stack.kernels if whole else None
        rule = _of_table(kernels.set, projection, table, own, None, together, known, device)
    else:
        # A scaling by more rows than are left out would not be the one that they are left out of:
        # the sample has scaling and widths of its own.
        views = (refitted(v, table[rows][:, v.columns], own) for v in kernels.set.views)
        sample = replace(kernels.set, views=tuple(views))
        rule = _of_table(sample, projection, table[rows], own, rows, together, device=device)
        rule = replace(rule, sample=sample)
    return with_structure(rule, kernels.set, table[some], own=True).with_total(own)


def left_out_evidence(rule: EvidenceRule, n: int, row_weight: Array | None) -> LeftOut:
    """Minus the left-out evidence; rows outside the sample, of n, are as good as new (NaN)."""
    E = rule.left_out()
    every = None
    if len(E) != n:
        every = np.full(n, np.nan)
        if rule.rows is not None:
            every[rule.rows] = -E
    weight = row_weight if row_weight is None or rule.rows is None else row_weight[rule.rows]
    weight = None if weight is None or len(weight) != len(E) else weight
    return LeftOut(-E, weight, every=every)


def warn_of_views(rule: EvidenceRule, views: Sequence[str]) -> None:
    """Name views that take most of the weight, or hardly tell one row from another.

    Of V views, most is more than half and more than 1.5 / V. One view alone is not judged.
    """
    names, member = np.unique(np.asarray(views, dtype=str), return_inverse=True)
    if len(names) < 2:
        return
    share = np.bincount(member, rule.weights) / rule.weights.sum()
    distinct = rule.tails.distinct.reshape(2, -1).max(axis=0)  # of its better score
    found = []
    for v, name in enumerate(names.tolist()):
        if share[v] > max(0.5, 1.5 / len(names)):
            found.append(f"view {name!r} takes {100 * share[v]:.0f}% of the weight")
        values = int(distinct[member == v].max())
        if rule.tails.n >= 2 * FEWEST_VALUES and values < FEWEST_VALUES:
            found.append(f"view {name!r} gives normal rows {values} different scores only")
    if found:
        warn(
            f"views: {'; '.join(found)}. A view of noise, or one that hardly varies, looks like "
            "this: compare with a model without it.",
            DominantViewWarning,
            stacklevel=2,
        )


def rows_that_fit(limit: int) -> int:
    """How many rows evidence may be learned from in so many bytes."""
    return max(FEWEST_ROWS, min(EVIDENCE_ROWS, int((limit / MATRIX_BYTES) ** 0.5)))


def _sample(n: int, most: int = EVIDENCE_ROWS) -> Indices | None:
    """Rows that stand for all where there are more than ``most``."""
    if n <= most:
        return None
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _of_table(
    kernels: KernelSet,
    projection: Callable[[], FisherRule],
    table: Array,
    row_weight: Array | None,
    rows: Indices | None,
    groups: Indices | None = None,
    matrices: Array | None = None,
    device: Any = None,
) -> EvidenceRule:
    """The rule but for structure and total.

    ``matrices`` are the kernels of the rows, (J, n, n), where they are in memory already.
    """
    J, n = kernels.J, kernels.n
    weight = trust(row_weight, n)
    coef, floors = np.empty((J, n)), np.empty(J)
    left_out = np.empty((n, 2 * J))
    beside = np.full((2 * J, n), np.nan)
    ends = np.cumsum([len(view.kernels) for view in kernels.views])

    def work(v: int) -> None:
        view, here = kernels.views[v], slice(ends[v] - len(kernels.views[v].kernels), ends[v])
        known = None if matrices is None else matrices[here]
        coef[here], left_out[:, here], nearest2, beside[here] = own_of_view(
            view, table, weight, groups, known, device
        )
        floors[here] = nearest_floor(nearest2)
        distances = slice(J + here.start, J + here.stop)
        left_out[:, distances] = log_nearest(nearest2, floors[here.start])[:, None]

    tasks: list[Callable[[], Any]] = [partial(work, v) for v in range(len(ends))]
    # A thread for each view, and one for the coefficients; of many rows, views that would leave
    # other threads idle are shared out within. A GPU works on one at a time.
    shared = device is None and blas_threads() == 1
    with instead_of_blas(shared) as limit, limit:
        threads = limit.threads
        if n <= MANY_ROWS:
            together = [*tasks, projection] if threads > 1 else []
        else:
            together = tasks[: len(tasks) // threads * threads] if threads > 1 else []
        in_threads(lambda task: task(), together)
        for task in tasks[len(together) :]:
            task()
    edges = np.concatenate([np.full(J, -np.inf), _edges(kernels)])
    own_weight = None if row_weight is None else weight
    tails = Tails.fit(left_out, own_weight, groups, edges=edges, beside=beside)
    return EvidenceRule(projection(), coef, floors, tails, tails, rows)


def _edges(kernels: KernelSet) -> Array:
    """Minus the logarithm of the size of the training rows, as each kernel sees them: (J,)."""
    edges = []
    for view in kernels.views:
        from_middle = np.linalg.norm(view.train - view.train.mean(axis=0), axis=1)
        size = 2.0 * float(from_middle.max(initial=0.0))
        edges += [-np.log(size) if size > 0 else -np.inf] * len(view.kernels)
    return np.array(edges)


def with_weights(
    rule: EvidenceRule, projection: FisherRule, row_weight: Array | None
) -> EvidenceRule:
    """The same evidence of each kernel under other weights."""
    some = row_weight if row_weight is None or rule.rows is None else row_weight[rule.rows]
    return replace(rule, projection=projection).with_total(some)


def evidence_of_landmarks(kernels: KernelSet, projection: FisherRule, table: Array) -> EvidenceRule:
    """Evidence from landmarks; what is usual comes from other rows, which are as good as new."""
    J, n = kernels.J, kernels.n
    coef = np.stack(
        [
            own_projection(kernel(v.train), whole=False).coef
            for v in kernels.views
            for kernel in v.kernels
        ]
    )
    draw = np.random.default_rng(1).permutation(len(table))[: EVIDENCE_ROWS + n]
    projected, nearest2 = CrossKernels(kernels, table[draw]).own_scores(coef)
    new = np.flatnonzero((nearest2 > 0).any(axis=0))[:EVIDENCE_ROWS]  # landmarks are no new rows
    new = new if len(new) >= 2 else np.arange(len(draw))
    floors = np.array([nearest_floor(row) for row in nearest2[:, new]])
    distances = np.stack([log_nearest(nearest2[j, new], floors[j]) for j in range(J)])
    edges = np.concatenate([np.full(J, -np.inf), _edges(kernels)])
    left_out = np.vstack([projected[:, new], distances]).T
    tails = Tails.fit(left_out, edges=edges)
    rule = EvidenceRule(projection, coef, floors, tails, tails)
    return with_structure(rule, kernels, table[draw[new]]).with_total()


def _largest_of_others(K: Array) -> Array:
    """The largest entry of each row off the diagonal."""

    def work(start: int) -> Array:
        block = np.array(K[start : start + BLOCK_ROWS], dtype=float)
        np.fill_diagonal(block[:, start:], -np.inf)
        return np.asarray(block.max(axis=1))

    return np.concatenate(in_threads(work, range(0, len(K), BLOCK_ROWS)))


def _of_stack(
    stack: Any, projection: FisherRule, row_weight: Array | None, most: int = EVIDENCE_ROWS
) -> EvidenceRule:
    """Evidence from given kernels; distances where diagonals are constant: d^2 = 2c - 2k."""
    J, n = stack.J, stack.n
    rows = _sample(n, most)
    index = np.arange(n) if rows is None else rows
    some = None if row_weight is None else row_weight[index]
    weight = trust(some, len(index))
    coef, floors = np.empty((J, len(index))), np.full(J, np.inf)
    left_out = np.zeros((len(index), 2 * J))
    diagonal = np.einsum("jii->ji", stack.kernels).astype(float)
    for j in range(J):
        K = stack.kernels[j] if rows is None else stack.kernels[j][np.ix_(index, index)]
        own = own_projection(K, weight, whole=False)
        coef[j], left_out[:, j] = own.coef, plain_left_out(own)
        if np.ptp(diagonal[j]) <= CONSTANT * np.abs(diagonal[j]).max(initial=0.0):
            nearest2 = np.maximum(2.0 * (diagonal[j].mean() - _largest_of_others(K)), 0.0)
            floors[j] = nearest_floor(nearest2)
            left_out[:, J + j] = log_nearest(nearest2, floors[j])
        else:
            left_out[:, J + j] = -np.abs(1.0 - left_out[:, j])
    tails = Tails.fit(left_out, some)
    constant = diagonal.mean(axis=1)
    rule = EvidenceRule(projection, coef, floors, tails, tails, rows, constant)
    return rule.with_total(some)
