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
    minus_rounding,
    rank_weights,
    read_groups,
    trust,
    trusted,
)
from kernull.detector.cautions import (
    warn_of_copies,
    warn_of_views,
    warn_where_nothing_is_flagged,
)
from kernull.detector.cross_fit import cross_fit, folds_of, mean_of_copies, sampling_order
from kernull.detector.evidence import EvidenceRule, fit_evidence, left_out_scores
from kernull.detector.fisher import KeptWeights
from kernull.detector.model import KernelModel, RuleFit, calibrate
from kernull.detector.rows import Rows, Settings, TableKernels, TableRows, Training
from kernull.detector.sum import FisherRule
from kernull.detector.tails import lowered
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
    rows : TableRows or GivenRows
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
    learned_weight = weight
    if isinstance(split, Split):  # rows held out have weight zero in the fit
        order = drawing_order(rows, weight, settings.seed)
        learned_weight, held = hold_out(order, split.fraction, weight, groups)
    index, together = np.arange(rows.n), groups
    if learned_weight is not None:
        index = np.flatnonzero(learned_weight > 0)
        learned_weight = trusted(learned_weight[index], [np.arange(len(index))])
    if together is not None:
        together = read_groups(together[index], len(index))
    some = rows if len(index) == rows.n else rows.take(index)
    learned = Learned.of(method, some, settings, learned_weight, together)
    left_out = None
    if held is not None:
        left_out = _held_out(learned, rows.take(held), weight, held, groups)
    fitted = learned.fitted(left_out)
    in_kernels = index if learned.sample is None else index[learned.sample]
    if len(in_kernels) < rows.n:
        model = replace(fitted.model, learned=in_kernels, n_given=rows.n)
        fitted = Fitted(model, learned, rows, index)
    _warn(fitted.model, learned.training, together)
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
class Learned:
    """What a method learned, with all that its rule and its left-out scores are made of."""

    method: Method
    settings: Settings
    training: Training
    fit: RuleFit
    rows: Rows
    """The rows learned from."""
    weight: Array | None = None
    """Of these rows, of mean one; None where all are one."""
    groups: Indices | None = None
    """Of these rows: left out together."""
    sample: Indices | None = None
    """Which of these rows kernels and their weights come from; None: all."""
    keys: Array | None = None
    """Of these rows, where they are known."""

    @classmethod
    def of(
        cls,
        method: Method,
        rows: Rows,
        settings: Settings,
        weight: Array | None,
        groups: Indices | None,
    ) -> Learned:
        """Learn kernel weights from the rows, or from those of many that are ranked.

        Distances see all rows whatever weights come from, and weights from more rows are no better:
        a storage asks for them.

        Parameters
        ----------
        method : Method
            How rules are learned.
        rows : Rows
        settings : Settings
        weight : array of shape (n,) or None
        groups : integer array of shape (n,) or None
            Rows of a group are left out together.
        """
        few = rows.n <= evidence.EVIDENCE_ROWS or settings.storage != "auto"
        if few or settings.decision is None or not isinstance(rows, TableRows):
            training = rows.training(weight, settings)
            fit = method.learn(training, weight)
            return cls(method, settings, training, fit, training.rows, weight, groups)
        keys = rows.keys(settings.seed)
        sample = np.sort(sampling_order(keys)[: evidence.EVIDENCE_ROWS])
        counts = None if weight is None else trust(weight[sample], len(sample))
        training = rows.take(sample).training(counts, settings)
        every = replace(rows, recipe=training.rows.recipe)  # type: ignore[union-attr]
        fit = method.learn(training, counts)
        return cls(method, settings, training, fit, every, weight, groups, sample, keys)

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
        rule = fit_evidence(
            self.rows,
            self.fit.rule,
            self.settings.decision,
            weight=self.weight,
            groups=self.groups,
            folds=self.folds,
            seed=self.settings.seed,
            keys=self.keys,
        )
        return rule if self.sample is None else replace(rule, rows=None)

    @cached_property
    def left_out(self) -> LeftOut:
        """Scores of the rows learned from, each by a model without its fold."""
        if isinstance(self.rule, EvidenceRule):
            return LeftOut(self.rule.calibration_scores, self.rule.rank_weight)
        rows, rule = self.rows, self.rule
        keys = rows.keys(self.settings.seed)
        left_out = self._refitted(folds_of(keys, self.folds, self.groups))
        left_out = mean_of_copies(left_out, keys)
        scores, parts = left_out, None
        if isinstance(rule, FisherRule):
            scores, parts = rule.of_contributions(left_out), left_out
        return LeftOut(lowered(scores), rank_weights(self.weight, self.groups, rows.n), parts)

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
            weight = None if self.weight is None else trust(self.weight[index], len(index))
            training = rows.take(index).training(weight, settings)
            return training.kernels, again.learn(training, weight).rule

        def score(model: tuple[Any, Any], index: Indices) -> Array:
            kernels, rule = model
            cross = rows.take(index).cross(kernels, settings)
            is_sum = isinstance(rule, FisherRule)
            return np.asarray(rule.contributions(cross) if is_sum else rule.score(cross))

        return cross_fit(fit, score, fold)

    def scores_of(self, rows: Indices) -> Array:
        """Scores by evidence of rows learned from, each by a fit without it.

        Parameters
        ----------
        rows : integer array of shape (k,)

        Returns
        -------
        array of shape (k,)
        """
        assert self.settings.decision is not None
        _, _, left_out, _ = left_out_scores(
            self.rows,
            self.settings.decision,
            self.weight,
            self.groups,
            self.folds,
            self.rows.keys(self.settings.seed) if self.keys is None else self.keys,
            rows,
        )
        return np.asarray(self.rule.of_evidence(self.rule.tails.evidence(left_out)))

    def fitted(self, left_out: LeftOut | None = None) -> Fitted:
        """The model, calibrated by scores of rows left out, or held out.

        Parameters
        ----------
        left_out : LeftOut, optional
            Scores of rows left out; those of ``settings`` by default.
        """
        model = KernelModel(
            self.training.kernels,
            self.rule,
            **calibrate(left_out or self.left_out, self.settings.false_alarm_rate),
            certificate=self.fit.certificate,
            system=self.fit.system,
            learned=self.sample,
            n_given=self.rows.n,
        )
        return Fitted(model, self, self.rows, np.arange(self.rows.n))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model fresh from learning, and what only its training rows can still tell."""

    model: KernelModel
    learned: Learned
    rows: Rows
    """The rows given."""
    index: Indices
    """Which of these were learned from."""

    def row_scores(self) -> Array:
        """Scores of the rows given, of those learned from by models that did not see them."""
        learned, rule, out = self.learned, self.learned.rule, np.full(self.rows.n, np.nan)
        ranked = rule.rows if isinstance(rule, EvidenceRule) else None
        ranked = learned.sample if learned.sample is not None else ranked
        ranked = np.arange(len(self.index)) if ranked is None else ranked
        out[self.index[ranked]] = learned.left_out.scores
        others = np.setdiff1d(np.arange(len(self.index)), ranked)
        if len(others):  # of evidence, beyond the rows that are ranked
            out[self.index[others]] = learned.scores_of(others)
        new = np.flatnonzero(np.isnan(out))
        if len(new):
            kernels: Any = self.model.kernels
            out[new] = rule.score(self.rows.take(new).cross(kernels, learned.settings))
        return out


def _held_out(
    learned: Learned, held_rows: Rows, weight: Array | None, held: Indices, groups: Indices | None
) -> LeftOut:
    """Scores of the rows held out; together with others, so that a row scores what it always does.

    A group counts as one row.
    """
    kernels: Any = learned.training.kernels
    rule, cross, parts = learned.rule, held_rows.cross(kernels, learned.settings), None
    if isinstance(rule, FisherRule):
        parts = rule.contributions(cross)
        scores = rule.of_contributions(parts)
    else:
        scores = np.asarray(rule.score(cross))
    counts = None if weight is None else trust(weight[held], len(held))
    together = None if groups is None else np.unique(groups[held], return_inverse=True)[1].ravel()
    if counts is not None or together is not None:
        counts = rank_weights(counts, together, len(held))
    return LeftOut(minus_rounding(scores), counts, parts, smooth=False)


def _warn(model: KernelModel, training: Training, groups: Indices | None) -> None:
    """Say what a threshold cannot promise, and what views hardly say."""
    kernels, rule = model.kernels, model.rule
    judged = model.calibration, model.false_alarm_rate
    if isinstance(kernels, TableKernels):
        if groups is None and isinstance(training.rows, TableRows):
            warn_of_copies(training.rows.values[:, columns_read(kernels.columns)])
        if isinstance(rule, EvidenceRule):
            warn_of_views(rule, kernels.views)
        elif isinstance(rule, FisherRule):
            warn_where_nothing_is_flagged(kernels.set, rule, *judged)
    elif isinstance(rule, FisherRule | EvidenceRule):
        warn_where_nothing_is_flagged(training.stack, rule, *judged)
