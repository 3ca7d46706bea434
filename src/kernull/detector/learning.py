"""From rows to a fitted model: kernels, the method, and the scores of rows left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from kernull._typing import Array, Indices
from kernull.detector import evidence
from kernull.detector.calibration import (
    HELD_OUT,
    MOST_ROWS,
    Cross,
    LeftOut,
    Split,
    hold_out,
    lowered,
    rank_weights,
    read_groups,
    relative_weights,
)
from kernull.detector.cautions import (
    warn_of_copies,
    warn_of_views,
    warn_where_nothing_is_flagged,
)
from kernull.detector.cross_fit import common, cross_fit, folds_of, sampling_order
from kernull.detector.evidence import EvidenceRule, fit_evidence, left_out_scores, ranked_rows
from kernull.detector.fisher import KeptWeights
from kernull.detector.model import KernelModel, RuleFit, calibrate
from kernull.detector.rows import Rows, Settings, TableKernels, TableRows, Training
from kernull.detector.sum import FisherRule
from kernull.views.kernel_set import columns_read


class Method(Protocol):
    """A way to learn from kernels; its parameters are its fields."""

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from kernels of all rows; row weights are None where all are one.

        Parameters
        ----------
        training : Training
            Kernels of n rows, and their stack.
        row_weight : array of shape (n,) or None
            Weights of mean one; None: all one.

        Returns
        -------
        RuleFit
            The rule, and the solver's result.
        """
        ...


def learn(
    method: Method,
    rows: Rows,
    weight: Array | None,
    settings: Settings,
    groups: Indices | None = None,
) -> Fitted:
    """Fit a model.

    Parameters
    ----------
    method : Method
    rows : TableRows or PrecomputedRows
    weight : array of shape (n,), optional
        Weight of each row; rows of weight zero are as good as new. Only ratios matter.
    settings : Settings
    groups : integer array of shape (n,), optional
        Group of each row: rows of a group are left out, or held out, together.

    Returns
    -------
    Fitted
    """
    count, held = rows.n if weight is None else int((weight > 0).sum()), None
    split = settings.calibrator
    if isinstance(split, Cross) and settings.decision is None and not _folds_pay(settings, count):
        split = Split(HELD_OUT)
    seen = weight
    if isinstance(split, Split):  # rows held out have weight zero in the fit
        order = drawing_order(rows, weight, settings.seed)
        seen, held = hold_out(order, split.fraction, weight, groups)
    index = np.arange(rows.n) if seen is None else np.flatnonzero(seen > 0)
    counts = None if seen is None else relative_weights(seen[index])
    together = None if groups is None else read_groups(groups[index], len(index))
    fitted = Fitted.of(method, rows, index, settings, counts, together)
    if held is not None:
        fitted = fitted.calibrated_by(_held_out(fitted, weight, held, groups))
    _warn(fitted)
    return fitted


def drawing_order(rows: Rows, weight: Array | None, seed: int) -> Indices:
    """Rows of positive weight, in an order drawn from their content.

    Permuting the rows permutes what is drawn; rows of weight zero change nothing.

    Parameters
    ----------
    rows : Rows
    weight : array of shape (n,) or None
    seed : int

    Returns
    -------
    integer array of shape (k,)
    """
    present = np.arange(rows.n) if weight is None else np.flatnonzero(weight > 0)
    return np.asarray(present[sampling_order(rows.take(present).keys(seed))])


def _folds_pay(settings: Settings, n: int) -> bool:
    """Whether a sum is solved once a fold: of many rows, that would take long."""
    return n <= MOST_ROWS or settings.storage == "dense"


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a method learned: the model, and scores of its training rows by models without them."""

    method: Method
    settings: Settings
    training: Training
    fit: RuleFit
    given: Rows
    """The rows given."""
    index: Indices
    """Which of these were learned from."""
    rows: Rows
    """The rows learned from."""
    weight: Array | None = None
    """Of these rows, of mean one; None where all are one."""
    groups: Indices | None = None
    """Of these rows: left out together."""
    sample: Indices | None = None
    """Which of these rows kernels and their weights come from; None: all."""
    calibration_rows: LeftOut | None = None
    """What the threshold comes from; None: the rows learned from, each left out with its fold."""

    @classmethod
    def of(
        cls,
        method: Method,
        given: Rows,
        index: Indices,
        settings: Settings,
        weight: Array | None,
        groups: Indices | None,
    ) -> Fitted:
        """Learn kernel weights from the rows, or from those of many that are ranked.

        Distances see all rows whatever weights come from, and weights from more rows are no better:
        a storage asks for them.

        Parameters
        ----------
        method : Method
            How rules are learned.
        given : Rows
        index : integer array of shape (n,)
            Which rows to learn from.
        settings : Settings
        weight : array of shape (n,) or None
        groups : integer array of shape (n,) or None
            Rows of a group are left out together.
        """
        rows = given if len(index) == given.n else given.take(index)
        sampled, counts, sample = rows, weight, None
        by_evidence = settings.decision is not None and isinstance(rows, TableRows)
        if by_evidence and settings.storage == "auto" and rows.n > evidence.EVIDENCE_ROWS:
            sample = ranked_rows(rows.keys(settings.seed))
            sampled = rows.take(sample)
            counts = None if weight is None else relative_weights(weight[sample])
        training = sampled.training(counts, settings)
        learned: Any = training.rows
        if sample is not None:
            learned = replace(rows, recipe=learned.recipe)
        fit = method.learn(training, counts)
        return cls(method, settings, training, fit, given, index, learned, weight, groups, sample)

    @cached_property
    def keys(self) -> Array:
        """Keys of the rows learned from."""
        return self.rows.keys(self.settings.seed)

    @property
    def folds(self) -> int:
        """Number of folds; the usual one where rows are held out."""
        how = self.settings.calibrator
        return (how if isinstance(how, Cross) else Cross()).count(self.rows.n, self.rows.columns)

    @cached_property
    def rule(self) -> Any:
        """What scores rows."""
        if self.settings.decision is None:
            return self.fit.rule
        return fit_evidence(
            self.rows,
            self.fit.rule,
            self.settings.decision,
            self.keys,
            weight=self.weight,
            groups=self.groups,
            folds=self.folds,
        )

    @cached_property
    def left_out(self) -> LeftOut:
        """Scores of the rows learned from, each by a model without its fold."""
        if isinstance(self.rule, EvidenceRule):
            return LeftOut(self.rule.calibration_scores, self.rule.rank_weight)
        left_out = self._refitted(folds_of(self.keys, self.folds, self.groups))
        scores, parts = left_out, None
        if isinstance(self.rule, FisherRule):
            scores, parts = self.rule.of_contributions(left_out), left_out
        weight = rank_weights(self.weight, self.groups, self.rows.n)
        return LeftOut(lowered(scores), weight, parts)

    def _refitted(self, fold: Indices) -> Array:
        """Scores, or contributions, by what the method learns again from the other folds."""
        rows, settings, rule = self.rows, replace(self.settings, drop_constant=False), self.rule
        again: Method = self.fit.again or self.method
        if isinstance(rule, FisherRule) and _folds_pay(settings, rows.n):
            assert self.fit.system is not None
            again = KeptWeights(rule.weights, self.fit.system.delta, rule.score_type)
            settings = replace(settings, storage="tiled", dtype=np.float64, client=None)
            rows = replace(rows, on_device=None) if isinstance(rows, TableRows) else rows

        def fit(index: Indices) -> tuple[Any, Any]:
            weight = None if self.weight is None else relative_weights(self.weight[index])
            training = rows.take(index).training(weight, settings)
            return training.kernels, again.learn(training, weight).rule

        def score(model: tuple[Any, Any], index: Indices) -> Array:
            kernels, rule = model
            cross = rows.take(index).cross(kernels, settings)
            is_sum = isinstance(rule, FisherRule)
            return np.asarray(rule.contributions(cross) if is_sum else rule.score(cross))

        left_out, as_new = cross_fit(fit, score, fold), np.flatnonzero(common(self.keys))
        if len(as_new) and isinstance(rows, TableRows):
            left_out[as_new] = score((self.training.kernels, self.rule), as_new)
        return left_out

    @cached_property
    def model(self) -> KernelModel:
        """The model, calibrated by scores of rows left out, or held out."""
        learned = self.index if self.sample is None else self.index[self.sample]
        return KernelModel(
            self.training.kernels,
            self.rule,
            **calibrate(self.calibration_rows or self.left_out, self.settings.false_alarm_rate),
            certificate=self.fit.certificate,
            system=self.fit.system,
            learned=None if len(learned) == self.given.n else learned,
            n_given=self.given.n,
        )

    def calibrated_by(self, rows: LeftOut) -> Fitted:
        """The same with a threshold by the scores of other rows.

        Parameters
        ----------
        rows : LeftOut
        """
        out = replace(self, calibration_rows=rows)
        vars(out).update({k: v for k, v in vars(self).items() if k in ("rule", "left_out", "keys")})
        return out

    def row_scores(self) -> Array:
        """Scores of the rows given, of those learned from by models that did not see them."""
        index, rule, out = self.index, self.rule, np.full(self.given.n, np.nan)
        all_rows = np.arange(len(index))
        ranked = ranked_rows(self.keys) if isinstance(rule, EvidenceRule) else all_rows
        out[index[ranked]] = self.left_out.scores
        others = np.setdiff1d(all_rows, ranked)
        if len(others):  # of evidence, beyond the rows that are ranked
            assert self.settings.decision is not None
            how = (self.settings.decision, self.weight, self.groups, self.folds, self.keys)
            left_out = left_out_scores(self.rows, *how, others)[2]
            out[index[others]] = rule.of_evidence(rule.tails.evidence(left_out))
        new = np.flatnonzero(np.isnan(out))
        if len(new):
            kernels: Any = self.training.kernels
            out[new] = rule.score(self.given.take(new).cross(kernels, self.settings))
        return out


def _held_out(
    fitted: Fitted, weight: Array | None, held: Indices, groups: Indices | None
) -> LeftOut:
    """Scores of the rows held out; together with others, so that a row scores what it always does.

    A group counts as one row.
    """
    kernels: Any = fitted.training.kernels
    rule, cross = fitted.rule, fitted.given.take(held).cross(kernels, fitted.settings)
    parts = evidence = None
    if isinstance(rule, EvidenceRule):
        evidence = rule.evidence(cross)
        scores = rule.of_evidence(evidence)
    elif isinstance(rule, FisherRule):
        parts = rule.contributions(cross)
        scores = rule.of_contributions(parts)
    else:
        scores = np.asarray(rule.score(cross))
    counts = None if weight is None else relative_weights(weight[held])
    together = None if groups is None else np.unique(groups[held], return_inverse=True)[1].ravel()
    if weight is not None or together is not None:
        counts = rank_weights(counts, together, len(held))
    return LeftOut.held_out(scores, counts, contributions=parts, evidence=evidence)


def _warn(fitted: Fitted) -> None:
    """Warn of what a threshold cannot promise, and of views that hardly vary."""
    model, training = fitted.model, fitted.training
    kernels, rule = model.kernels, model.rule
    judged = model.calibration, model.false_alarm_rate
    if isinstance(kernels, TableKernels):
        if fitted.groups is None and isinstance(training.rows, TableRows):
            warn_of_copies(training.rows.values[:, columns_read(kernels.columns)])
        if isinstance(rule, EvidenceRule):
            warn_of_views(rule, kernels.views)
        elif isinstance(rule, FisherRule):
            warn_where_nothing_is_flagged(kernels.set, rule, *judged)
    elif isinstance(rule, FisherRule | EvidenceRule):
        warn_where_nothing_is_flagged(training.stack, rule, *judged)
