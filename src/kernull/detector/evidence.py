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

Rows that `kernull.TableViews` encoded have a score more, of their cells (`tables.never_seen`): what
was never seen, or is empty and never was, need not lie far from anything. Its evidence counts as
the length that is as rare among left-out rows. Each fold encodes the rows anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from kernull._fields import POSITIVE, Checked, Range, Shape, stored
from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import Calibration, rank_weights
from kernull.detector.cross_fit import aligned, cross_fit, folds_of, sampling_order
from kernull.detector.gate import factors_by_odds
from kernull.detector.precomputed import PrecomputedScores
from kernull.detector.scores import Evidence, TableScores
from kernull.detector.sum import FisherRule
from kernull.detector.tails import Tails, left_out_evidence

if TYPE_CHECKING:
    from kernull.detector.rows import Rows

#: Rows that are left out and ranked, and that weights come from: of more, a random sample.
EVIDENCE_ROWS = 4000


@stored
@dataclass(frozen=True, eq=False)
class EvidenceRule(Checked):
    """What a model that decides by evidence has learned.

    Parameters
    ----------
    projection : FisherRule
        The paper's rule, whose kernel weights are taken.
    scores : TableScores or PrecomputedScores
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
    kept : boolean array of shape (J,), optional
        Kernels that take part; all by default.
    """

    projection: FisherRule
    scores: TableScores | PrecomputedScores
    left_out: Annotated[Array, Shape("_rows", "_kinds")]
    fold: Annotated[Indices, Shape("_rows"), Range(low=0)]
    rank_weight: Annotated[Array, Shape("_rows"), Range(low=POSITIVE)]
    member: Annotated[Mask, Shape("_kinds", "J")]
    extrapolates: Annotated[Mask, Shape("_kinds")]
    factors: Annotated[Array, Shape("_kinds"), Range(low=0.0)]
    kept: Annotated[Mask | None, Shape("J")] = None

    def contradiction(self) -> str | None:
        """What does not fit together."""
        if self.scores.width != len(self.member) or not self.member.any():
            return "scores of other kernels"
        one = len(np.unique(self.fold)) < 2 or self.fold.max() >= len(self.fold)
        return "rows of one fold, or folds that no row has" if one else None

    def restored(self) -> EvidenceRule:
        """The rule of a file, with the scaled rows."""
        if isinstance(self.scores, PrecomputedScores):
            return self
        return replace(self, scores=self.scores.restored())

    @property
    def weights(self) -> Array:
        """Kernel weights b."""
        return self.projection.weights

    @property
    def coef(self) -> Array:
        """Coefficients of the projection of lp MK-FN."""
        return self.projection.coef

    def contributions(self, cross: Any) -> Array:
        """Contribution of each kernel to the projection of lp MK-FN, of shape (m, J).

        Parameters
        ----------
        cross : Stack
            Kernels between m new rows and the training rows.

        Returns
        -------
        array of shape (m, J)
        """
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
        # The whole and cells see the views that are left out too, so they go with them.
        complete = self.kept is None or bool(self.kept.all())
        return np.where(self.member.any(axis=1), weights, self.factors * complete)

    @property
    def by_kernel_weights(self) -> Array:
        """Kernel weights times the factors of their views, (J,), not yet divided by the largest."""
        b = self.weights * np.where(self.member, self.factors[:, None], 0.0).max(axis=0)
        return b if self.kept is None else np.where(self.kept, b, 0.0)

    @property
    def is_whole(self) -> Mask:
        """Scores of the whole, of shape (C,)."""
        before_cells = np.arange(len(self.member)) < len(self.member) - len(self.scores.cells)
        return np.asarray(~self.member.any(axis=1) & before_cells)

    def evidence(self, cross: Any) -> Array:
        """Evidence of each score against the rows of a cross stack, of shape (m, C).

        Parameters
        ----------
        cross : Stack
            Kernels between m new rows and the training rows.

        Returns
        -------
        array of shape (m, C)
        """
        new = (cross.X, cross.device) if isinstance(self.scores, TableScores) else (cross.kernels,)
        return self.tails.evidence(self.scores.of(*new))

    def by_kernel(self, evidence: Array) -> Array:
        """Squared weighted evidence of each kernel, of shape (m, J), from that of scores.

        A score of several kernels counts for the one with the largest weight.

        Parameters
        ----------
        evidence : array of shape (m, C)
            Evidence of each score.

        Returns
        -------
        array of shape (m, J)
        """
        b = self.by_kernel_weights
        kernel = np.where(self.member, b, -1.0).argmax(axis=1)
        squares = (self.score_weights * evidence) ** 2
        out = np.zeros((len(evidence), len(b)))
        for c in np.flatnonzero(self.member.any(axis=1)):
            out[:, kernel[c]] += squares[:, c]
        return out

    def score(self, cross: Any) -> Array:
        """Scores of new rows: minus the length of the evidence.

        Parameters
        ----------
        cross : Stack or TableCross
            Kernels between m new rows and the training rows.

        Returns
        -------
        array of shape (m,)
            Higher is more normal.
        """
        return self.of_evidence(self.evidence(cross))

    def of_evidence(self, evidence: Array, *, whole: bool = True) -> Array:
        """Scores from the evidence of each score (m, C); those of the views alone, if asked for.

        Parameters
        ----------
        evidence : array of shape (m, C)
            Evidence of each score, in nats.
        whole : bool
            Whether scores of the whole take part.

        Returns
        -------
        array of shape (m,)
        """
        weights = self.score_weights if whole else np.where(self.is_whole, 0, self.score_weights)
        weighted = weights * evidence
        for c in range(len(weights) - len(self.scores.cells), len(weights)):
            weighted[:, c] = weights[c] * np.interp(evidence[:, c], *self._lengths)
        return np.asarray(-np.linalg.norm(weighted, axis=1))

    @cached_property
    def _lengths(self) -> tuple[Array, Array]:
        """Evidence of cells, and the length that it counts as: one that is as rare."""
        weights = np.where(self.is_whole | self.member.any(axis=1), self.score_weights, 0.0)
        length = np.linalg.norm(weights * self.left_out_evidence, axis=1)
        order = np.argsort(length, kind="stable")
        below = np.cumsum(self.rank_weight[order]) / (self.rank_weight.sum() + 1.0)
        return np.append(0.0, -np.log1p(-below)), np.append(0.0, length[order])

    @cached_property
    def calibration_scores(self) -> Array:
        """Scores of the rows learned from, each by the other folds: what a threshold comes from."""
        return self.of_evidence(self.left_out_evidence)

    def usual_by_views(self, evidence: Array, rate: float) -> Mask:
        """Rows that the views without the whole would not flag at a rate.

        Parameters
        ----------
        evidence : array of shape (m, C)
            Evidence of each score.
        rate : float

        Returns
        -------
        mask of shape (m,)
        """
        left_out = self.of_evidence(self.left_out_evidence, whole=False)
        views = Calibration.of(left_out, self.rank_weight, smooth=True)
        return np.asarray(views.p_values(self.of_evidence(evidence, whole=False)) > rate)

    def only(self, kept: Mask, typical: Any = None) -> EvidenceRule:
        """The rule over some kernels; what is ``typical`` of the others does not matter to it.

        Parameters
        ----------
        kept : mask of shape (J,)
            Kernels that take part.
        typical : ignored
            For the protocol of rules.
        """
        return replace(self, kept=kept)


def ranked_rows(keys: Array) -> Indices:
    """Rows that are left out and ranked, by the keys of all, in increasing order."""
    return np.sort(sampling_order(keys)[:EVIDENCE_ROWS])


def fit_evidence(
    rows: Rows,
    projection: FisherRule,
    decision: Evidence,
    keys: Array,
    *,
    weight: Array | None,
    groups: Indices | None,
    folds: int,
) -> EvidenceRule:
    """Evidence of the views under learned weights.

    Parameters
    ----------
    rows : TableRows or PrecomputedRows
        Rows to learn from; beyond `EVIDENCE_ROWS` of them a random sample.
    projection : FisherRule
        With the weights of the kernels of these rows.
    decision : Evidence
    keys : array of shape (n,)
        Keys of the rows, which draw folds and samples.
    weight : array of shape (n,) or None
        Positive weights.
    groups : integer array of shape (n,) or None
        Rows of a group are left out together.
    folds : int
    """
    ranked = ranked_rows(keys)
    full, drawn, left_out, fold = left_out_scores(
        rows, decision, weight, groups, folds, keys, ranked
    )
    member, extrapolates = full.columns(len(projection.weights))
    rank_weight = rank_weights(
        None if weight is None else weight[ranked],
        None if groups is None else groups[ranked],
        len(ranked),
    )
    tails = Tails.fit(left_out, rank_weight, extrapolates)
    evidence = left_out_evidence(left_out, rank_weight, extrapolates, fold)
    mixed, view, factors = drawn.take(np.arange(len(ranked))).mixed_scores(full)
    by_odds = np.isnan(factors)
    if by_odds.any():
        odds = factors_by_odds(evidence, tails.evidence(mixed), view)
        factors = np.where(by_odds, odds, factors)
    rule = EvidenceRule(
        projection, full, left_out, fold, rank_weight, member, extrapolates, factors
    )
    vars(rule).update(tails=tails, left_out_evidence=evidence)
    return rule


def left_out_scores(
    rows: Rows,
    decision: Evidence,
    weight: Array | None,
    groups: Indices | None,
    folds: int,
    keys: Array,
    judged: Indices,
) -> tuple[Any, Rows, Array, Indices]:
    """Scores learned from all rows, and scores of some of them by fits without them.

    A fit leaves out a tenth of all rows at most (with ten folds): the more rows there are beyond
    those that are judged, the more folds share a fit.

    Parameters
    ----------
    rows, decision, weight, groups, folds, keys
        As in `fit_evidence`.
    judged : integer array of shape (m,)
        Rows that are left out and scored, in increasing order.

    Returns
    -------
    full : TableScores or PrecomputedScores
        Learned from all rows.
    drawn : TableRows or PrecomputedRows
        The rows in sampling order: the first m of any fit are a random sample.
    left_out : array of shape (m, C)
        Scores of the rows that are judged, each by a fit without it.
    fold : integer array of shape (m,)
        Their folds.
    """
    order = sampling_order(keys)
    fold = folds_of(keys[judged], folds, None if groups is None else groups[judged])
    apart, is_judged = np.full(rows.n, -1), np.isin(order, judged)
    if groups is None:
        apart[judged] = fold % int(np.ceil((fold.max() + 1) * len(judged) / rows.n))
    else:  # with all others of their groups
        of_group = np.full(groups.max() + 1, -1)
        of_group[groups[judged]] = fold
        apart = of_group[groups]
    drawn, apart = rows.take(order), apart[order]
    counts = None if weight is None else weight[order]
    full: Any = drawn.fit_scores(decision, counts)

    def fit(index: Indices) -> Any:
        seen = None if counts is None else counts[index]
        return drawn.take(index).fit_scores(decision, seen, full)

    there = None if drawn.on_device is None else drawn.on_device.device
    scores = cross_fit(
        fit, lambda fitted, i: fitted.of(drawn.take(i).values, there), apart, judged=is_judged
    )[is_judged]
    if groups is None and apart.max() > 0:  # folds of few groups may well differ
        scores = aligned(scores, apart[is_judged])
    if isinstance(full, TableScores):
        scores = full.tied(scores, np.asarray(drawn.values)[is_judged])
        counts = None if counts is None else counts / counts.mean()
        full = replace(full, table=np.asarray(rows.values), order=order, weight=counts)
    return full, drawn, scores[np.argsort(order[is_judged])], fold
