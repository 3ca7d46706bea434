"""From rows to a fitted model: kernels, the method, and the scores of rows left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from kernull._typing import Array, Indices
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
    warn_of_few_that_count,
    warn_of_views,
    warn_where_nothing_is_flagged,
)
from kernull.detector.cross_fit import cross_fit, folds_of, has_copies, row_keys
from kernull.detector.evidence import EvidenceRule, fit_given_evidence, fit_table_evidence
from kernull.detector.model import Fitted, KernelModel, RidgeSystem, RuleFit, calibrate
from kernull.detector.rows import GivenKernels, Rows, Settings, TableKernels, Training
from kernull.detector.sum import (
    FisherRule,
    fit_normalised,
    given_contributions,
    table_contributions,
)
from kernull.detector.tails import lowered
from kernull.operators.normalise import read_normalisation
from kernull.views.kernel_set import columns_read


class Method(Protocol):
    """A way to learn from kernels; its parameters are its fields."""

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from kernels of all rows; row weights are None where all are one."""
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
        Trust in each row; rows of weight zero are as good as new. Only ratios matter.
    settings : Settings
    groups : integer array of shape (n,), optional
        Group of each row: rows of a group are left out, or held out, together.

    Returns
    -------
    Fitted
    """
    given, held = weight, None
    split = _split(settings, rows.n if weight is None else int((weight > 0).sum()))
    if split is not None:  # rows held out have weight zero in the fit
        weight, held = hold_out(rows.n, split.fraction, settings.seed, weight, groups)
    weight = None if weight is None else trusted(weight, [np.flatnonzero(weight > 0)])
    index = np.arange(rows.n) if weight is None else np.flatnonzero(weight > 0)
    kept = None if weight is None or (weight[index] == 1.0).all() else weight[index]
    together = None if groups is None else read_groups(groups[index], len(index))
    training = rows.training(weight, slice(None) if weight is None else index, settings)
    fit = method.learn(training, kept)
    learned = Learned(rows, settings, method, training, fit, index, kept, together)
    left_out = learned.left_out if held is None else _held_out(learned, given, held, groups)
    model = KernelModel(
        training.kernels,
        learned.rule,
        **calibrate(left_out, settings.false_alarm_rate),
        certificate=fit.certificate,
        system=fit.system,
        learned=None if weight is None or weight.all() else index,
        n_given=rows.n,
    )
    _warn(model, training, together)
    return Fitted(model, partial(_row_scores, learned))


def _split(settings: Settings, n: int) -> Split | None:
    """The rows to hold out, if any: beyond many rows, folds of a sum would take long."""
    if isinstance(settings.calibrator, Split):
        return settings.calibrator
    folds_pay = settings.decision is not None or n <= MOST_ROWS or settings.storage == "dense"
    return None if folds_pay else Split(HELD_OUT)


@dataclass(frozen=True, eq=False)
class Learned:
    """A fit, and what its rule and left-out scores are made of."""

    rows: Rows
    settings: Settings
    method: Method
    training: Training
    fit: RuleFit
    index: Indices
    """Which of the rows given were learned from."""
    weight: Array | None
    """Of these rows; None where all are one."""
    groups: Indices | None
    """Of these rows: left out together."""

    @cached_property
    def rule(self) -> Any:
        """What scores rows."""
        if self.settings.decision is None:
            return self.fit.rule
        return learn_evidence(
            self.training,
            self.fit.rule,
            self.settings,
            row_weight=self.weight,
            groups=self.groups,
            folds=self.folds,
        )

    @property
    def folds(self) -> int:
        """Number of folds; the usual one where rows are held out."""
        how = self.settings.calibrator
        return (how if isinstance(how, Cross) else Cross()).count(len(self.index))

    @cached_property
    def left_out(self) -> LeftOut:
        """Scores of the rows learned from, each by a model without its fold."""
        if isinstance(self.rule, EvidenceRule):
            return LeftOut(self.rule.calibration_scores, self.rule.rank_weight)
        weight = rank_weights(self.weight, self.groups, len(self.index))
        fold = folds_of(self.rows.keys(self.settings.seed, self.index), self.folds, self.groups)
        if isinstance(self.rule, FisherRule) and (
            len(self.index) <= MOST_ROWS or self.settings.storage == "dense"
        ):
            parts = sum_contributions(
                self.training, self.rule, self.fit.system, self.weight, fold, self.settings
            )
            return LeftOut(lowered(self.rule.of_contributions(parts)), weight, parts)
        return LeftOut(lowered(self._refit(fold)), weight)

    def _refit(self, fold: Indices) -> Array:
        """Scores by what the method learns anew from the other folds."""
        again: Method = self.fit.again or self.method
        rows: Any = self.rows.of_kernels(self.training.kernels)  # type: ignore[arg-type]
        settings = replace(self.settings, drop_constant=False)

        def fit(seen: Indices) -> tuple[Any, Any]:
            weight = np.zeros(rows.n)
            own = None if self.weight is None else trust(self.weight[seen], len(seen))
            weight[self.index[seen]] = 1.0 if own is None else own
            training = rows.training(weight, self.index[seen], settings)
            return training.kernels, again.learn(training, own).rule

        def score(model: tuple[Any, Any], held: Indices) -> Array:
            kernels, rule = model
            return np.asarray(rule.score(rows.cross(kernels, settings, self.index[held])))

        left_out = cross_fit(fit, score, fold)
        if isinstance(self.training.kernels, TableKernels):
            copies = has_copies(self.rows.keys(self.settings.seed, self.index), fold)
            if copies.any():  # as new copies
                left_out[copies] = self.rule.score(self.cross(self.index[copies]))
        return left_out

    def cross(self, rows: Any = slice(None)) -> Any:
        """Kernels between rows given and those of the model."""
        kernels: Any = self.training.kernels
        return self.rows.cross(kernels, self.settings, rows)


def learn_evidence(
    training: Training,
    projection: FisherRule,
    settings: Settings,
    *,
    row_weight: Array | None = None,
    groups: Indices | None = None,
    folds: int,
) -> EvidenceRule:
    """Evidence of each view under learned weights."""
    kernels, stack, table = training.kernels, training.stack, training.table
    fit: Callable[..., EvidenceRule]
    if isinstance(kernels, TableKernels):
        assert table is not None
        fit = partial(fit_table_evidence, kernels.recipe(settings), table)
    else:
        fit = partial(fit_given_evidence, stack)
    return fit(
        projection,
        settings.decision,
        row_weight=row_weight,
        groups=groups,
        folds=folds,
        random_state=settings.seed,
    )


def sum_contributions(
    training: Training,
    rule: FisherRule,
    system: RidgeSystem | None,
    row_weight: Array | None,
    fold: Indices,
    settings: Settings,
) -> Array:
    """Contributions (n, J) of kernels to the paper's sum for rows left out, at its weights b."""
    assert system is not None
    kernels, stack, table = training.kernels, training.stack, training.table
    per_row = system.ridge / len(fold)
    if isinstance(kernels, GivenKernels) or table is None:
        return given_contributions(stack, rule.weights, per_row, row_weight, fold)
    fit = fit_normalised(kernels.recipe(settings), read_normalisation(settings.normalize))
    parts = table_contributions(fit, table, rule.weights, per_row, row_weight, fold)
    copies = has_copies(row_keys(table[:, columns_read(kernels.columns)]), fold)
    if copies.any():  # as of new copies
        parts[copies] = rule.contributions(kernels.cross(table[copies]))
    return parts


def _held_out(
    learned: Learned, given: Array | None, held: Indices, groups: Indices | None
) -> LeftOut:
    """Scores of the rows held out; together with others, so that a row scores what it always does.

    A group counts as one row.
    """
    rule, cross, parts = learned.rule, learned.cross(held), None
    if isinstance(rule, FisherRule):
        parts = rule.contributions(cross)
        scores = rule.of_contributions(parts)
    else:
        scores = np.asarray(rule.score(cross))
    weight = None if given is None else trust(given[held], len(held))
    together = None if groups is None else np.unique(groups[held], return_inverse=True)[1].ravel()
    if together is not None:
        weight = rank_weights(weight, together, len(held))
    return LeftOut(minus_rounding(scores), weight, parts, smooth=False)


def _row_scores(learned: Learned) -> Array:
    """Scores of all rows given, those that were learned from as if they had not been."""
    rule, index = learned.rule, learned.index
    if isinstance(rule, EvidenceRule) and rule.rows is not None:
        index = index[rule.rows]
    known = learned.left_out.scores
    if len(index) == learned.rows.n:
        return known
    out = np.asarray(rule.score(learned.cross()), dtype=float)
    out[index] = known
    return out


def _warn(model: KernelModel, training: Training, groups: Indices | None) -> None:
    """Say what a threshold cannot promise, and what views hardly say."""
    kernels, rule = model.kernels, model.rule
    judged = model.calibration, model.false_alarm_rate
    if model.calibration_weight is not None and groups is None:
        warn_of_few_that_count(model.calibration_weight, model.false_alarm_rate)
    if isinstance(kernels, TableKernels):
        if groups is None and training.table is not None:
            warn_of_copies(training.table[:, columns_read(kernels.columns)])
        if isinstance(rule, EvidenceRule):
            warn_of_views(rule, kernels.views)
        elif isinstance(rule, FisherRule):
            warn_where_nothing_is_flagged(kernels.set, rule, *judged)
    elif isinstance(rule, FisherRule | EvidenceRule):
        warn_where_nothing_is_flagged(training.stack, rule, *judged)
