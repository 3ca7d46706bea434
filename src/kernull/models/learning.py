"""From rows to a fitted model: kernels, the method, and the scores of rows left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration import LeftOut, leaking_view, minus_rounding, refit_by_fold
from kernull.calibration.calibrators import Folds, Leak
from kernull.calibration.left_out_distances import read_groups, trust
from kernull.calibration.left_out_warnings import warn_of_copies, warn_where_nothing_is_flagged
from kernull.errors import MissingCapabilityError
from kernull.models.fisher import FisherFit, FisherMethod
from kernull.models.kernels import GivenKernels, Rows, Settings, TableKernels, TableRows, Training
from kernull.models.model import Fitted, KernelModel, RuleFit, calibrate
from kernull.models.rules import FisherRule


class Method(Protocol):
    """A way to learn from kernels; its parameters are its fields."""

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit | FisherFit:
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
    given = weight
    # Rows held out for calibration have weight zero in the fit.
    weight, held = settings.calibrator.hold_out(rows.n, weight, groups)
    weight = None if weight is None else trusted(weight, [np.flatnonzero(weight > 0)])
    index = slice(None) if weight is None else np.flatnonzero(weight > 0)
    kept = None if weight is None or (weight[index] == 1.0).all() else weight[index]
    if groups is not None or isinstance(settings.calibrator, Folds):
        settings = replace(settings, prefers_dense=True)
    if held is not None and isinstance(method, FisherMethod):
        method = replace(method, every=True)  # no sample is drawn where others give the threshold
    training = rows.training(weight, index, settings)
    together = None if groups is None else read_groups(groups[index], len(groups[index]))
    if together is None:
        fit = method.learn(training, kept)
    elif isinstance(method, FisherMethod):
        fit = method.learn(training, kept, groups=together)
    else:
        raise MissingCapabilityError(
            f"groups: {type(method).__name__} cannot leave rows out together; use "
            "MultiKernelFisherNull, or calibration='split'."
        )
    learned = _Learned(rows, settings, training, fit, kept, index, given, together)
    left_out = settings.calibrator.left_out(learned, held)
    model = KernelModel(
        training.kernels,
        fit.rule,
        **calibrate(left_out, settings.false_alarm_rate),
        certificate=fit.certificate,
        system=fit.system,
        learned=None if weight is None or weight.all() else np.asarray(index),
        n_given=rows.n,
    )
    if isinstance(training.kernels, TableKernels):
        warn_of_copies(training.kernels.set, together, model.false_alarm_rate)
    judged = model.calibration, model.false_alarm_rate
    if isinstance(training.kernels, TableKernels) and isinstance(fit.rule, FisherRule):
        warn_where_nothing_is_flagged(training.kernels.set, fit.rule, *judged)
    elif isinstance(training.kernels, GivenKernels) and isinstance(method, FisherMethod):
        warn_where_nothing_is_flagged(training.stack, fit.rule, *judged)
    own = left_out if held is None else None
    return Fitted(model, partial(_row_scores, learned, model, own))


def trusted(weight: Array, parts: Iterable[Indices]) -> Array | None:
    """Weights of mean one within each part of the rows; None where they say nothing."""
    out = np.zeros(len(weight))
    for rows in parts:
        if len(rows):
            out[rows] = trust(weight[rows], len(rows))
    return None if (out == 1.0).all() else out


def _row_scores(learned: _Learned, model: KernelModel, left_out: LeftOut | None) -> Array:
    """Scores of all rows given, those that were learned from as if they had not been."""
    scores = (learned.fit.leave_one_out() if left_out is None else left_out).of_all()
    if model.learned is None and not np.isnan(scores).any():
        return scores
    out = learned.scores()  # rows that were not learned from are as good as new
    rows = np.arange(len(out)) if model.learned is None else model.learned
    out[rows] = np.where(np.isnan(scores), out[rows], scores)
    return out


@dataclass(frozen=True, eq=False)
class _Learned:
    """What calibrators may ask of a fit."""

    rows: Rows
    settings: Settings
    training: Training
    fit: RuleFit | FisherFit
    weight: Array | None
    """Of the rows learned from."""
    index: Any
    """Which of the rows given these are."""
    given: Array | None
    """Weights of all rows given."""
    groups: Indices | None = None
    """Of the rows learned from: left out together."""

    @property
    def leaking_view(self) -> Leak | None:
        kernels = self.training.kernels
        if not isinstance(kernels, TableKernels) or self.fit.leaves_out_scaling:
            return None
        everything = isinstance(self.index, slice)
        return leaking_view(kernels.set, self.rows.n if everything else len(self.index))

    def held_out(self, rows: Indices) -> LeftOut:
        rule, cross = self.fit.rule, self._cross()
        contributions = None
        if isinstance(rule, FisherRule):
            contributions = rule.contributions(cross)
            scores = rule.of_contributions(contributions)
            contributions = contributions[rows]
        else:
            scores = np.asarray(rule.score(cross))
        weight = None if self.given is None else trust(self.given[rows], len(rows))
        return LeftOut(minus_rounding(scores[rows]), weight, contributions, smooth=False)

    def by_folds(self) -> LeftOut | None:
        rows, system = self.rows, self.fit.system
        kernels, stack, _ = self.training
        if not isinstance(rows, TableRows) or not isinstance(kernels, TableKernels):
            return None
        if (
            not hasattr(stack, "combine")
            or system is None
            or not isinstance(self.fit.rule, FisherRule)
        ):
            return None
        # The kernels must be those of the model, though a column be constant in a fold.
        own = rows.of_kernels(kernels.set)
        contributions = refit_by_fold(
            own.table[self.index],
            self.fit.rule.weights * kernels.scale,
            system.delta,
            lambda part, weight: own.fit_kernels(part, weight, self.settings, drop=False),
            self.weight,
            self.groups,
        )
        if contributions is None:
            return None
        scores = minus_rounding(self.fit.rule.of_contributions(contributions))
        return LeftOut(scores, self.weight, contributions)

    def scores(self) -> Array:
        """Scores of all rows given, as new rows."""
        return np.asarray(self.fit.rule.score(self._cross()))

    def _cross(self) -> Any:
        return self.rows.cross(self.training.kernels, self.settings)  # type: ignore[arg-type]
