r"""Deciding by evidence: each score of each view is calibrated by itself; weights combine them.

A part is one view in one scaling. Its scores are the projection of each of its kernels, and minus
the log distance to the nearest row. With several views, all columns together are one view more, the
whole: it alone sees rows whose views are each usual and do not belong together.

    rows -> parts -> scores -> left-out scores by `cross_fit` -> evidence by `tails`
         -> weights, length -> score (p-value, threshold: `calibration`)

The score of a row is minus the length of its weighted evidence, :math:`\sqrt{\sum_c (w_c e_c)^2}`.
Kernel weights are those that the paper's method learns (lp MK-FN, see `sum`), times the factor that
`gate` gives to the view. A score has the weight of its heaviest kernel, divided by the largest of
all; scores of the whole have the factor that `gate` gives to the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kernull._runtime import in_threads
from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import Calibration, rank_weights
from kernull.detector.cross_fit import (
    aligned,
    cross_fit,
    dense_ranks,
    folds_of,
    has_copies,
    row_keys,
    sampling_order,
)
from kernull.detector.gate import MOST, draw_parts, factors_by_odds, mixed_rows
from kernull.detector.given import GivenScores
from kernull.detector.scores import (
    LEAST_NEIGHBOUR_WEIGHT,
    Nearest,
    NewRows,
    Projection,
    read_scores,
)
from kernull.detector.sum import FisherRule
from kernull.detector.tails import Tails, left_out_evidence
from kernull.errors import MissingCapabilityError
from kernull.operators import DenseStack
from kernull.views.kernel_set import WHOLE, Recipe, ScaledView, columns_read

#: Most rows learned from: of more, a random sample of so many.
EVIDENCE_ROWS = 4000
#: Widths of a part come from so many of its rows.
WIDTH_ROWS = 1000
#: Distances that a thread works on at a time: what its cache holds.
DISTANCES_AT_ONCE = 2**18


@dataclass(frozen=True)
class Evidence:
    """Decide by evidence; what ``decision="evidence"`` stands for.

    Parameters
    ----------
    scores : sequence, default=(Projection(), Nearest())
        Scores of each view in each scaling: these, or any detector with ``fit`` and
        ``score_samples``, such as ``IsolationForest()``, which sees the scaled rows.
    whole : bool, default=True
        Whether all columns together are judged as one view more.
    """

    scores: Sequence[Any] = field(default_factory=lambda: (Projection(), Nearest()))
    whole: bool = True


@dataclass(frozen=True, eq=False)
class Part:
    """A view in one scaling, and its fitted scores."""

    view: ScaledView
    scores: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class TableScores:
    """Parts with their scores, fitted to rows of a table."""

    parts: tuple[Part, ...]

    @classmethod
    def fit(
        cls,
        recipe: Recipe,
        scores: Sequence[Any],
        X: Array,
        weight: Array | None,
        full: TableScores | None = None,
    ) -> TableScores:
        """Fit every part to rows in sampling order; ``full``: to all, where X lacks a fold."""
        weight = None if weight is None else weight / weight.mean()
        parts = list[Part]()
        for view, pairs in recipe.fit_views(X, weight, WIDTH_ROWS):
            known = [None] * len(scores) if full is None else full.parts[len(parts)].scores
            fitted = (s.fit(view, weight, k, pairs) for s, k in zip(scores, known, strict=True))
            parts.append(Part(view, tuple(fitted)))
        return cls(tuple(parts))

    def of(self, X: Array) -> Array:
        """All scores of rows, of shape (m, C)."""
        step = max(1, DISTANCES_AT_ONCE // len(self.parts[0].view.train))
        found = in_threads(self._of, [X[i : i + step] for i in range(0, len(X), step)])
        return np.concatenate(found) if found else self._of(X)

    def _of(self, X: Array) -> Array:
        rows = ((part, NewRows(part.view, X)) for part in self.parts)
        return np.hstack([score.score(new) for part, new in rows for score in part.scores])

    def of_cross(self, cross: Any) -> Array:
        """All scores of the rows of a cross stack."""
        return self.of(cross.X)


@dataclass(frozen=True, eq=False)
class EvidenceRule:
    """What a model that decides by evidence has learned.

    Parameters
    ----------
    projection : FisherRule
        The paper's own rule, whose kernel weights are taken.
    scores : TableScores or GivenScores
        From new rows to C scores.
    left_out : array of shape (n, C)
        Scores of the rows learned from, each row by a fit without its fold.
    fold : integer array of shape (n,)
        Fold of each row.
    rank_weight : array of shape (n,)
        What each row counts in ranks; a group of rows counts as one.
    member : boolean array of shape (C, J)
        Kernels that each score reads; its weight is the largest of theirs. Scores of the whole have
        none.
    extrapolates : boolean array of shape (C,)
        Scores that go on falling outside the rows.
    factors : array of shape (C,)
        What `gate` multiplies the weight of each score by.
    rows : integer array of shape (n,), optional
        Indices of the sample among the rows given; None: all.
    kept : boolean array of shape (J,), optional
        Kernels that take part; all by default.
    """

    projection: FisherRule
    scores: TableScores | GivenScores
    left_out: Array
    fold: Indices
    rank_weight: Array
    member: Mask
    extrapolates: Mask
    factors: Array
    rows: Indices | None = None
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

    # -- scores to evidence --------------------------------------------------------------------

    @cached_property
    def tails(self) -> Tails:
        """What the scores of new rows are ranked among."""
        return Tails.fit(self.left_out, self.rank_weight, self.extrapolates)

    @cached_property
    def left_out_evidence(self) -> Array:
        """Evidence against the rows learned from, of shape (n, C)."""
        return left_out_evidence(self.left_out, self.rank_weight, self.extrapolates, self.fold)

    @cached_property
    def score_weights(self) -> Array:
        """What the evidence of each score is multiplied by, of shape (C,); the largest is one."""
        b = self.by_kernel_weights
        weights = np.where(self.member, b / max(b.max(), np.finfo(float).tiny), 0.0).max(axis=1)
        # The whole sees the views that are left out too, so it goes with them.
        complete = self.kept is None or bool(self.kept.all())
        return np.where(self.is_whole, self.factors * complete, weights)

    @property
    def by_kernel_weights(self) -> Array:
        """What the evidence of each kernel is multiplied by, of shape (J,)."""
        b = self.weights * np.where(self.member, self.factors[:, None], 0.0).max(axis=0)
        return b if self.kept is None else np.where(self.kept, b, 0.0)

    @property
    def is_whole(self) -> Mask:
        """Scores of the whole, of shape (C,)."""
        return np.asarray(~self.member.any(axis=1))

    def evidence(self, cross: Any) -> Array:
        """Evidence of each score against the rows of a cross stack, of shape (m, C)."""
        return self.tails.evidence(self.scores.of_cross(cross))

    def by_kernel(self, evidence: Array) -> Array:
        """Squared weighted evidence of each kernel, of shape (m, J), from that of scores.

        A score of several kernels counts for the one with the largest weight.
        """
        b = self.by_kernel_weights
        kernel = np.where(self.member, b, -1.0).argmax(axis=1)
        squares = (self.score_weights * evidence) ** 2
        out = np.zeros((len(evidence), len(b)))
        for c in np.flatnonzero(~self.is_whole):
            out[:, kernel[c]] += squares[:, c]
        return out

    def score(self, cross: Any) -> Array:
        """Scores of new rows: minus the length of the evidence."""
        return self.of_evidence(self.evidence(cross))

    def of_evidence(self, evidence: Array, *, whole: bool = True) -> Array:
        """Scores from the evidence of each score (m, C); those of the views alone, if asked for."""
        weights = self.score_weights if whole else np.where(self.is_whole, 0, self.score_weights)
        return np.asarray(-np.linalg.norm(weights * evidence, axis=1))

    @cached_property
    def calibration_scores(self) -> Array:
        """Scores of the rows learned from, each by the other folds: what a threshold comes from."""
        return self.of_evidence(self.left_out_evidence)

    def usual_by_views(self, evidence: Array, rate: float) -> Mask:
        """Rows that the views without the whole would not flag at a rate."""
        left_out = self.of_evidence(self.left_out_evidence, whole=False)
        views = Calibration.of(left_out, self.rank_weight, smooth=True)
        return np.asarray(views.p_values(self.of_evidence(evidence, whole=False)) > rate)

    def only(self, kept: Mask, typical: Any = None) -> EvidenceRule:
        """The rule over some kernels; what is ``typical`` of the others does not matter to it."""
        return replace(self, kept=kept)

    def with_weights(self, projection: FisherRule) -> EvidenceRule:
        """The same evidence under other weights."""
        return replace(self, projection=projection)


def fit_table_evidence(
    recipe: Recipe,
    X: Array,
    projection: FisherRule,
    decision: Evidence,
    *,
    row_weight: Array | None = None,
    groups: Indices | None = None,
    folds: int = 10,
    random_state: Any = 0,
    max_rows: int = EVIDENCE_ROWS,
) -> EvidenceRule:
    """Evidence of the views of a table under learned weights.

    Parameters
    ----------
    recipe : Recipe
        Views, scalings and kernels; the kernels in the order of the weights.
    X : array of shape (n, d)
        Rows to learn from; beyond ``max_rows`` of them a random sample.
    projection : FisherRule
        With the weights.
    decision : Evidence
    row_weight : array of shape (n,), optional
        Positive weights.
    groups : integer array of shape (n,), optional
        Rows of a group are left out together.
    folds : int
    random_state : int
        Seed of the hash that draws folds and samples.
    """
    rows, read = None, columns_read(recipe.views)
    if len(X) > max_rows:
        rows = np.sort(sampling_order(row_keys(X[:, read], random_state))[:max_rows])
        X = X[rows]
        row_weight = None if row_weight is None else row_weight[rows]
        groups = None if groups is None else np.unique(groups[rows], return_inverse=True)[1].ravel()
    keys = row_keys(dense_ranks(X[:, read]), random_state)
    order, fold = sampling_order(keys), folds_of(keys, folds, groups)
    # In sampling order, the first m rows of any fold are a random sample.
    X, weight = X[order], None if row_weight is None else row_weight[order]
    every = recipe.with_whole() if decision.whole else recipe
    scores = read_scores(decision.scores)

    full = TableScores.fit(every, scores, X, weight)

    def fit(rows: Indices) -> TableScores:
        own = None if weight is None else weight[rows]
        return TableScores.fit(every, scores, X[rows], own, full)

    left_out = cross_fit(fit, lambda parts, rows: parts.of(X[rows]), fold[order])
    if groups is None:  # folds of few groups may well differ
        left_out = aligned(left_out, fold[order])
    _score_copies(left_out, full, X, weight, fold[order])
    member, extrapolates = _columns(full, scores, len(projection.weights))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rule = EvidenceRule(
        projection,
        full,
        left_out[place],
        fold,
        rank_weights(row_weight, groups, len(X)),
        member,
        extrapolates,
        np.ones(len(member)),
        rows,
    )
    if len(recipe.views) < 2:
        return rule
    return replace(rule, factors=_gate(full, rule, recipe, X))


def _score_copies(
    left_out: Array, full: TableScores, X: Array, weight: Array | None, fold: Indices
) -> None:
    """Give rows that have copies in other folds the scores that new copies of them will have.

    By the models of their folds, copies of one row would score a little differently from each other
    and from new copies: one category of five is then flagged as a whole.
    """
    start, trusted = 0, None
    if weight is not None:
        trusted = weight >= LEAST_NEIGHBOUR_WEIGHT * weight.mean()
    for part in full.parts:
        alone = TableScores((part,))
        copies = has_copies(row_keys(X[:, part.view.columns]), fold, trusted)
        columns = slice(start, start + alone.of(X[:1]).shape[1])
        if copies.any():
            left_out[copies, columns] = alone.of(X[copies])
        start = columns.stop


def _columns(full: TableScores, scores: Sequence[Any], J: int) -> tuple[Mask, Mask]:
    """Kernels of each score (C, J), and which scores extrapolate (C,)."""
    member, extrapolates, start = [], [], 0
    for view in (part.view for part in full.parts):
        own = np.arange(start, start + len(view.kernels))  # from J on, those of the whole
        start += len(view.kernels)
        for score in scores:
            for kernels in own[:, None] if score.per_kernel else own[None]:
                member.append(np.isin(np.arange(J), kernels))
                extrapolates.append(score.extrapolates)
    return np.array(member).reshape(-1, J), np.array(extrapolates, dtype=bool)


def _gate(full: TableScores, rule: EvidenceRule, recipe: Recipe, X: Array) -> Array:
    """Factor of each score: of views by mixed cells, of the whole by mixed views.

    The order of X is that of contents, so a fixed seed will do.
    """
    single, first = np.arange(X.shape[1]), np.full(X.shape[1], X.shape[1] - 1)
    for columns in recipe.views.values():  # a view by its first column, whatever the order of views
        first[columns] = np.minimum(first[columns], columns.min())
    cells, joined = mixed_rows(X, single), mixed_rows(X, first)
    scores = [TableScores((p,)).of(joined if p.view.name == WHOLE else cells) for p in full.parts]
    view = np.repeat([part.view.name for part in full.parts], [s.shape[1] for s in scores])
    mixed = rule.tails.evidence(np.hstack(scores))
    factors = factors_by_odds(rule.left_out_evidence, mixed, view)
    for name, columns in recipe.views.items():
        if (np.ptp(X[:, columns], axis=0) > 0).sum() < 2:  # of one column nothing can be mixed
            factors[view == name] = MOST
    return factors


def fit_given_evidence(
    stack: DenseStack,
    projection: FisherRule,
    decision: Evidence,
    *,
    row_weight: Array | None = None,
    groups: Indices | None = None,
    folds: int = 10,
    random_state: Any = 0,
    max_rows: int = EVIDENCE_ROWS,
) -> EvidenceRule:
    """Evidence of given kernels, each a view by itself, under learned weights.

    There are no cells that could be mixed: the whole alone has a factor, by mixed views.
    """
    scores = read_scores(decision.scores)
    if tuple(map(type, scores)) != (Projection, Nearest):
        raise MissingCapabilityError(
            f"decision: got scores={decision.scores!r}; given kernels have no rows that other "
            "scores could see, and are judged by scores=(Projection(...), Nearest())."
        )
    rows, n = np.arange(stack.n), stack.n
    if n > max_rows:
        rows = np.sort(sampling_order(kernel_keys(stack.kernels, random_state))[:max_rows])
    K = stack.kernels if n <= max_rows else stack.kernels[:, rows[:, None], rows]
    weight = None if row_weight is None else row_weight[rows]
    groups = None if groups is None else np.unique(groups[rows], return_inverse=True)[1].ravel()
    keys = kernel_keys(K, random_state)
    order, fold = sampling_order(keys), folds_of(keys, folds, groups)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    full = GivenScores.fit(K, order, weight, decision.whole, scores[0])

    def fit(seen: Indices) -> GivenScores:
        seen = seen[np.argsort(place[seen])]
        return GivenScores.fit(K, seen, weight, decision.whole, scores[0], full)

    left_out = cross_fit(fit, lambda model, held: model.of(K[:, held]), fold)
    J = stack.J
    whole = np.zeros((2 * full.has_whole, J), dtype=bool)
    rule = EvidenceRule(
        projection,
        full if n <= max_rows else full.among(rows),
        left_out,
        fold,
        rank_weights(weight, groups, len(rows)),
        np.vstack([np.repeat(np.eye(J, dtype=bool), 2, axis=0), whole]),
        np.tile([False, True], J + full.has_whole),
        np.ones(2 * (J + full.has_whole)),
        None if n <= max_rows else rows,
    )
    if not full.has_whole:
        return rule
    drawn = order[draw_parts(len(rows), J)]
    mixed = full.of(np.stack([Kj[i] for Kj, i in zip(K, drawn.T, strict=True)]))
    factors = factors_by_odds(rule.left_out_evidence, rule.tails.evidence(mixed), rule.is_whole)
    return replace(rule, factors=np.where(rule.is_whole, factors, 1.0))


def kernel_keys(K: Array, random_state: Any) -> Array:
    """A key for each row of given kernels, whatever the order of the rows and the scale."""
    extremes = [K.min(axis=2).T]
    for Kj in K:
        off = np.array(Kj, dtype=float)
        np.fill_diagonal(off, -np.inf)
        extremes.append(off.max(axis=1)[:, None])
    return row_keys(dense_ranks(np.hstack(extremes)), random_state)
