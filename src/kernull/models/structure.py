r"""How much a view can tell: whether its columns hang together.

No label says which view is noise. But columns of noise are independent of each other, so a row
whose cells are drawn from different training rows is as good as any other in that view; where
columns hang together, such a row stands out. With A the share of pairs in which a drawn row has
more evidence against it than a training row left out (an AUC), the structure of a view is
:math:`r = 2A - 1`, no lower than `LEAST`. A view of one column, or of one category, has none that
could be seen. From few rows, A is known within two of its standard errors only, and correlations
show more: there r is what they show, no lower than 2A - 1 and no higher than these allow.

The learned weights b favour views that hardly vary; structure favours those that say something. A
view's say is the geometric mean of both: its kernels share :math:`\sqrt{r \sum_j b_j}` in
proportion to b. One view alone decides by b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from kernull._typing import Array, Indices
from kernull.models.rules import EvidenceRule
from kernull.stacks import CrossKernels, KernelSet
from kernull.stacks.cross import own_scores_of
from kernull.stacks.kernel_set import ScaledView
from kernull.views.quantile import ranked_columns

#: Structure is never taken for less.
LEAST = 0.15
#: Fewest and most rows that are mixed.
MIXED_ROWS = (500, 1000)
#: Two standard errors of 2A - 1 under independence, times the root of the number of rows.
CHANCE = 4.0 / np.sqrt(12.0)
#: Rows up to which correlations may show more: two standard errors are 0.05 there.
FEW_ROWS = 500
#: Training rows lie within their principal directions, up to this share of their size.
OUTSIDE = 1e-6
#: Mixed rows that are put into principal axes at a time.
AT_ONCE = 128


def with_structure(
    rule: EvidenceRule, kernels: KernelSet, table: Array, *, own: bool = False
) -> EvidenceRule:
    """The rule with the structure of its views, as the rows of a table show it.

    The rule was learned from these rows; ``own`` says that it compares new ones with them, too.
    """
    names = [view.name for view in kernels.views for _ in view.kernels]
    known, member = np.unique(np.asarray(names, dtype=str), return_inverse=True)
    if member.max() == 0:  # one view alone
        return rule
    columns = {view.name: np.asarray(view.columns) for view in kernels.views}
    drawn, category = mixed_cells(table, list(columns.values()))
    if own and len(drawn) >= len(table):
        views = kernels.views if rule.sample is None else rule.sample.views
        cells = {name: _cells(drawn, some) for name, some in columns.items()}
        axes = {(v.name, v.scaler.kind): _in_axes(v, table, cells[v.name]) for v in views}
        pairs = [_mixed_pair(view, table, cells[view.name], axes) for view in views]
        scores = rule.scores_of(*own_scores_of(pairs, len(drawn), rule.own_coef))
    else:
        rows = table.ravel().take(_cells(drawn, np.arange(table.shape[1])))
        scores = rule.own_scores(CrossKernels(kernels, rows))
    shown = np.zeros(len(known))
    if len(table) <= FEW_ROWS:
        shown = np.array([_correlated(table[:, columns[v]], category[columns[v]]) for v in known])
    structure = view_structure(rule.tails.own, rule.tails.evidence(scores), member, shown)
    return replace(rule, structure=structure[member], member=member)


def _cells(drawn: Indices, columns: Indices) -> Indices:
    """Where the cells of mixed rows lie in a table of some of the columns: (m, d)."""
    places = drawn.take(columns, axis=1)
    places *= len(columns)
    places += np.arange(len(columns))
    return places


def _in_axes(view: ScaledView, table: Array, cells: Indices) -> tuple[Array, ...] | None:
    """Whitened mixed and training rows in principal axes, and the gain along each.

    None where there are no fewer axes than columns.
    """
    scaler = view.scaler
    only_rbf = all(kernel.kind == "rbf" for kernel in view.kernels)
    if scaler.directions is None or len(view.columns) <= len(table) or not only_rbf:
        return None
    Z = scaler.by_column(table[:, view.columns])
    train, flat = scaler.principal(Z), Z.ravel()
    if train[:, -1].max() > OUTSIDE * np.abs(train).max():
        return None
    train[:, -1] = 0.0  # the root of rounding
    starts = range(0, len(cells), AT_ONCE)
    mixed = [scaler.principal(flat.take(cells[start : start + AT_ONCE])) for start in starts]
    gains = np.append(scaler.base_gain + np.asarray(scaler.gains), scaler.base_gain)
    return np.concatenate(mixed), train, gains


def _mixed_pair(
    view: ScaledView, table: Array, cells: Indices, axes: Any
) -> tuple[Any, Any, Array]:
    """Kernels of a view, mixed rows and training rows, both scaled.

    Scalings that take columns one by one give mixed rows the cells of the scaled training rows.
    Standardised rows lie in the same principal axes as whitened ones, without their gains.
    """
    scaler, kind = view.scaler, view.scaler.kind
    found = axes.get((view.name, "whiten" if kind == "standard" else kind))
    if found is not None:
        mixed, train, gains = found
        if kind == "standard":
            mixed, train = mixed / gains, train / gains
        return view.kernels, mixed.__getitem__, train
    Z = view.train if scaler.directions is None else scaler.by_column(table[:, view.columns])
    flat = Z.ravel()

    def new_rows(rows: slice) -> Array:
        cut = flat.take(cells[rows])
        return cut if scaler.directions is None else scaler.rotated(cut)

    return view.kernels, new_rows, view.train


def view_structure(left_out: Array, mixed: Array, member: Indices, shown: Array) -> Array:
    """Structure of each view, between `LEAST` and 1.

    From the evidence of training rows left out, (n, 2J), projections before distances, and of mixed
    rows, (m, 2J); ``member`` is the view of each kernel, ``shown`` what correlations show of each.
    """
    n, m = len(left_out), len(mixed)
    ranks = rankdata(np.vstack([left_out, mixed]), axis=0)
    areas = (ranks[n:].sum(axis=0) - 0.5 * m * (m + 1)) / (n * m)
    best = areas.reshape(2, -1).max(axis=0)
    seen = np.array([2.0 * best[member == v].max() - 1.0 for v in range(len(shown))])
    return np.asarray(np.clip(np.clip(shown, seen, seen + CHANCE / np.sqrt(n)), LEAST, 1.0))


def _correlated(X: Array, category: Indices) -> float:
    r"""Structure that correlations of columns show: those of their normal scores, (n, d).

    Normal rows with correlations :math:`\rho_{kl}` differ from independent ones by the divergence
    :math:`D = \sum_{k<l} \rho_{kl}^2` (both ways together, to second order), and then :math:`2A - 1
    = 2 \Phi(\sqrt{D/2}) - 1`. Of n independent rows squared correlations have mean 1/(n - 1) and
    standard deviation :math:`\sqrt 2/(n - 1)`: of their sum, what is beyond two standard errors
    counts. Columns of one category say nothing about each other.
    """
    scores = (ranks.of_rows(ndtri(ranks.middle / len(X))) for _, ranks in ranked_columns(X))
    Z = np.vstack(list(scores))
    Z -= Z.mean(axis=1, keepdims=True)
    size = np.linalg.norm(Z, axis=1)
    Z, category = Z[size > 0] / size[size > 0, None], category[size > 0]
    squares, pairs = _sum_of_squares(Z), len(Z) ** 2
    values, counts = np.unique(category, return_counts=True)
    for c in values[counts > 1]:
        squares -= _sum_of_squares(Z[category == c])
    squares, pairs = squares - (counts == 1).sum(), pairs - (counts**2).sum()
    expected = (0.5 * pairs + 2.0 * np.sqrt(pairs)) / max(len(X) - 1.0, 1.0)
    return float(2.0 * ndtr(np.sqrt(max(0.5 * squares - expected, 0.0) / 2.0)) - 1.0)


def _sum_of_squares(Z: Array) -> float:
    """Of all products of two columns, (d, n)."""
    gram = Z.T @ Z if len(Z) > Z.shape[1] else Z @ Z.T
    return float(np.vdot(gram, gram))


def mixed_cells(table: Array, columns: Sequence[Indices]) -> tuple[Indices, Indices]:
    """Which row each cell of m mixed rows comes from, (m, d), columns of one category together.

    And the first column of the category that each belongs to, or itself, (d,).

    Examples
    --------
    >>> import numpy as np
    >>> table = np.repeat(np.arange(50.0)[:, None], 2, axis=1)
    >>> rows, _ = mixed_cells(table, [np.array([0, 1])])
    >>> rows.shape, bool((rows[:, 0] == rows[:, 1]).mean() < 0.1)
    ((500, 2), True)
    """
    n, d = table.shape
    rng = np.random.default_rng(0)  # the same rows give the same model
    drawn = rng.integers(n, size=(int(np.clip(n, *MIXED_ROWS)), d))
    by_column = np.ascontiguousarray(table.T)
    order = np.argsort(by_column, axis=1)  # in whichever order rows come
    values = np.take_along_axis(by_column, order, axis=1)
    counts = 1 + (values[:, 1:] != values[:, :-1]).sum(axis=1)
    category = np.arange(d)
    for view in columns:
        for block in _inseparable(table[:, view], counts[view]):
            mine = view[block]
            order[mine], drawn[:, mine] = np.lexsort(table[:, mine].T), drawn[:, mine[:1]]
            category[mine] = mine[0]
    drawn += n * np.arange(d)
    return order.ravel().take(drawn), category


def _inseparable(X: Array, counts: Indices) -> list[Indices]:
    """Runs of columns that are codes of one category: one-hot, or with as many pairs as values.

    ``counts`` is the number of different values of each column.
    """
    n = len(X)
    blocks: list[Indices] = []
    end = 0
    few = (counts <= 2) | (counts <= n // 4)  # no other column begins such a run
    for start in np.flatnonzero(few[:-1]).tolist():
        if start < end:
            continue
        end = max(_one_hot(X, start), _one_code(X, start, counts))
        if end > start + 1:
            blocks.append(np.arange(start, end))
    return blocks


def _one_hot(X: Array, start: int) -> int:
    """End of the run of 0/1 columns from ``start`` of which each row has exactly one on."""
    on = np.zeros(len(X))
    for end in range(start, X.shape[1]):
        column = X[:, end]
        if not ((column == 0) | (column == 1)).all():
            return start
        on += column
        if (on > 1).any():
            return start
        if (on == 1).all():
            return end + 1
    return start


def _one_code(X: Array, start: int, counts: Indices) -> int:
    """End of the run of columns whose values go together, few of them for the number of rows."""
    n, end, values = len(X), start + 1, int(counts[start])
    while end < X.shape[1] and 2 < values <= n // 4:
        if len(np.unique(X[:, start : end + 1], axis=0)) > max(values, int(counts[end])):
            break
        end += 1
    return end if end > start + 1 else start
