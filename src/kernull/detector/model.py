"""A fitted model as a value: nothing in it changes; whatever changes a model makes a new one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from kernull._fields import ANY, DERIVED, POSITIVE, Checked, Range, Shape, stored
from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import Calibration, LeftOut, lowered
from kernull.detector.evidence import EvidenceRule
from kernull.detector.rows import ModelKernels, TableKernels
from kernull.detector.scores import SCALING_ROWS, TableScores
from kernull.detector.sum import FisherRule
from kernull.detector.usual import UsualValues, ViewMisfit
from kernull.mkl.solvers import Record, Result


@stored
@dataclass(frozen=True, eq=False)
class Certificate:
    """How good the weights are, and the solver that gave them."""

    gap: Annotated[float, ANY]
    n_iter: Annotated[int, Range(low=0)]
    solver: str
    history: tuple[Record, ...] = ()

    @classmethod
    def of(cls, result: Result) -> Certificate:
        """That of a solver's result."""
        return cls(result.gap, result.n_iter, result.solver, result.history)


@stored
@dataclass(frozen=True, eq=False)
class RidgeSystem:
    r"""The system (rho W^-1 + K_b) a = t that the coefficients solve."""

    p: Annotated[float, Range(1.0, np.inf, nan=True)]
    delta: Annotated[float, Range(low=0.0)]
    """The ridge relative to the number of rows."""
    ridge: Annotated[float, Range(low=0.0)]
    """rho itself."""
    row_weight: Annotated[Array | None, Shape("n"), Shape("_rows"), Range(low=0.0)] = None
    """Of the training rows; None where all are one."""


@stored
@dataclass(frozen=True, eq=False)
class KernelModel(Checked):
    """All that a fit has learned.

    Parameters
    ----------
    kernels : TableKernels or PrecomputedKernels
    rule : FisherRule, EvidenceRule or that of another method
        From kernels of new rows to scores, ``score(cross)``; higher is more normal.
    calibration : Calibration
        Scores of rows that the model did not see.
    threshold, false_alarm_rate : float
        Score below which rows are flagged, and the rate that it stands for.
    calibration_weight : array of shape (m,), optional
        Weights of the calibration rows; None where all are one.
    left_out : array of shape (m, J), optional
        Contributions of the kernels to the calibration scores, of sums over kernels.
    held_out : array of shape (m, C), optional
        Evidence against the calibration rows, where these were held out and are judged by it.
    certificate, system : optional
        Of models whose weights were learned; whose coefficients solve a ridge system.
    learned : integer array, optional
        Rows that kernels and weights come from among those given; None: all. Of more than 4,000
        rows it is a sample; distances look among all.
    n_given : int
        Rows given to fit.
    device : str, optional
        Where the training rows were tensors: learned arrays are shown as tensors there.
    usual : UsualValues, optional
        Regressions of the columns that explanations compare with, once they are learned.
    usual_misfit : array of shape (w, V), optional
        Misfit of left-out rows by view, once it is learned.
    """

    kernels: ModelKernels
    rule: Any
    calibration: Calibration
    threshold: Annotated[float, DERIVED]
    false_alarm_rate: Annotated[float, Range(POSITIVE, 1.0)]
    calibration_weight: Annotated[Array | None, Shape("m"), Range(low=0.0)] = None
    left_out: Annotated[Array | None, Shape("m", "J")] = None
    held_out: Annotated[Array | None, Shape("m", "_kinds"), Range(low=0.0)] = None
    certificate: Certificate | None = None
    system: RidgeSystem | None = None
    learned: Annotated[Indices | None, Shape("_learned"), Range(low=0)] = None
    n_given: Annotated[int, Range(low=0)] = 0
    device: Annotated[str | None, DERIVED] = None
    usual: UsualValues | None = None
    usual_misfit: Annotated[Array | None, Shape("_w", "_v"), Range()] = None

    def contradiction(self) -> str | None:
        """What does not fit together."""
        weight, learned, n = self.calibration_weight, self.learned, self.kernels.n
        if weight is not None and not weight.sum() > 0:
            return "weights without a mean"
        of_sum = isinstance(self.rule, FisherRule) and not self.can_explain
        if weight is not None and len(weight) != n and of_sum:
            return "weights of other rows, which explanations need"
        there = learned is None or (n <= len(learned) and learned.max() < self.n_given)
        return None if there else "rows that were not given"

    def restored(self) -> KernelModel:
        """The model of a file, with what is derived."""
        rule = self.rule.restored() if isinstance(self.rule, EvidenceRule) else self.rule
        kernels = self.kernels
        if isinstance(kernels, TableKernels):
            kernels = replace(kernels, set=kernels.set.restored())
        threshold = self.calibration.threshold(self.false_alarm_rate)[0]
        return replace(self, kernels=kernels, rule=rule, threshold=threshold)

    # -- scores ------------------------------------------------------------------------------

    def score(self, cross: Any) -> Array:
        """Scores of the rows of a cross stack; higher is more normal."""
        return np.asarray(self.rule.score(cross))

    def evidence(self, cross: Any, by: str = "kernel") -> Array:
        """Evidence against each row, in nats: a column per kernel, or per view.

        Parameters
        ----------
        cross : Stack
            Kernels between m new rows and the training rows.
        by : {"kernel", "view"}
            What a column stands for.

        Returns
        -------
        array of shape (m, J) or (m, V)
            In nats, times the weights.
        """
        if by not in ("kernel", "view"):
            raise ValueError(f"by: got {by!r}; expected 'kernel' or 'view'.")
        squared = self.rule.by_kernel(self.rule.evidence(cross))
        if by == "view":
            names = list(dict.fromkeys(self.kernels.views))
            member = [[view == name for name in names] for view in self.kernels.views]
            squared = squared @ np.array(member, dtype=float)
        return np.asarray(np.sqrt(squared))

    @property
    def decides_by_evidence(self) -> bool:
        """Whether each view is calibrated by itself."""
        return isinstance(self.rule, EvidenceRule)

    @property
    def learned_from(self) -> dict[str, int]:
        """Number of rows that each part was learned from."""
        out = {"weights": self.kernels.n, "threshold": len(self.calibration.scores)}
        if isinstance(self.rule, EvidenceRule) and isinstance(self.rule.scores, TableScores):
            n = len(self.rule.scores.parts[0].view.train)
            out |= {"scalings": min(n, SCALING_ROWS), "distances": n}
        return out

    @property
    def can_explain(self) -> bool:
        """Whether it is known what is usual, by kernel."""
        return self.decides_by_evidence or self.left_out is not None

    @cached_property
    def typical_contributions(self) -> Any:
        """Mean contribution of each kernel to a normal row that the model did not see, if known."""
        if self.left_out is None:
            return None
        return np.average(self.left_out, axis=0, weights=self.calibration_weight)

    @property
    def kept(self) -> Mask:
        """Mask of the kernels that it scores by, of shape (J,)."""
        kept = self.rule.kept if isinstance(self.rule, EvidenceRule | FisherRule) else None
        return np.ones(len(self.kernels.names), bool) if kept is None else kept

    # -- some views only -----------------------------------------------------------------------

    def kept_kernels(self, missing: Iterable[str]) -> Mask:
        """Mask of the kernels whose view is there.

        Parameters
        ----------
        missing : iterable of str

        Returns
        -------
        mask of shape (J,)
        """
        views, missing = self.kernels.views, tuple(missing)
        unknown = [name for name in missing if name not in views]
        if unknown:
            raise ValueError(
                f"missing_views: no view {unknown[0]!r}; the model has {sorted(set(views))}."
            )
        kept = np.array([view not in missing for view in views])
        if not kept.any():
            raise ValueError(
                f"missing_views: got {sorted(missing)}, all views of the model; at least one must "
                "be there."
            )
        return kept

    def without(self, missing: Iterable[str]) -> KernelModel:
        """The model that scores by the other views: same rows, same rate, another threshold.

        Parameters
        ----------
        missing : iterable of str
        """
        missing = tuple(missing)
        if not missing:
            return self
        kept = self.kept_kernels(missing)
        rate, parts = self.false_alarm_rate, self.left_out
        if self.decides_by_evidence:
            rule = self.rule.only(kept)
            left_out = LeftOut(rule.calibration_scores, rule.rank_weight)
            if self.held_out is not None:
                scores, weight = rule.of_evidence(self.held_out), self.calibration_weight
                left_out = LeftOut.held_out(scores, weight, evidence=self.held_out)
        else:
            assert parts is not None
            rule = self.rule.only(kept, self.typical_contributions)
            scores, smooth = lowered(rule.of_contributions(parts)), self.calibration.smooth
            left_out = LeftOut(scores, self.calibration_weight, parts, smooth=smooth)
        decided = calibrate(left_out, rate)
        left = {**decided, "false_alarm_rate": rate, "usual_misfit": None}
        return replace(self, rule=rule, **left)

    def at_rate(self, rate: float) -> KernelModel:
        """The same model with the threshold of another false-alarm rate.

        Parameters
        ----------
        rate : float in (0, 1)
            Share of new normal rows to be flagged.
        """
        threshold, kept = self.calibration.threshold(rate)
        return replace(self, threshold=threshold, false_alarm_rate=kept)

    # -- reasons -----------------------------------------------------------------------------

    @cached_property
    def view_misfit(self) -> ViewMisfit | None:
        """Distance of each view from what the others predict."""
        return ViewMisfit.of(self, self.kept, self.usual_misfit)

    @cached_property
    def usual_values(self) -> UsualValues | None:
        """Regressions of each column on the others; None where the rows cannot be had."""
        return self.usual if self.usual is not None else UsualValues.of(self)

    def with_usual(self) -> KernelModel:
        """The model with all that explanations learn from the training rows, for a file."""
        misfit = self.view_misfit if self.can_explain else None
        usual = None if misfit is None else misfit.usual
        return replace(self, usual=self.usual_values, usual_misfit=usual)


@dataclass(frozen=True, eq=False)
class RuleFit:
    """What a method makes of kernels.

    Parameters
    ----------
    rule : object with score(cross)
        From kernels of new rows to scores.
    certificate : Certificate, optional
        Of weights that were learned.
    system : RidgeSystem, optional
        That the coefficients solve.
    again : Method, optional
        What learns all but the choices of the fit (weights, number of directions) from other rows;
        the method itself by default.
    """

    rule: Any
    certificate: Certificate | None = None
    system: RidgeSystem | None = None
    again: Any = None


def calibrate(left_out: LeftOut, rate: float) -> dict[str, Any]:
    """What left-out scores decide of a `KernelModel`, by field: the only maker of thresholds.

    Parameters
    ----------
    left_out : LeftOut
        Scores of rows that models did not see.
    rate : float

    Returns
    -------
    dict
        Fields of a `KernelModel`: threshold, rate, calibration and left-out scores.
    """
    calibration = Calibration.of(left_out.scores, left_out.weight, smooth=left_out.smooth)
    threshold, certified = calibration.threshold(rate)
    return {
        "calibration": calibration,
        "threshold": threshold,
        "false_alarm_rate": certified,
        "calibration_weight": left_out.weight,
        "left_out": left_out.contributions,
        "held_out": left_out.evidence,
    }


def view_names(missing_views: Any) -> tuple[str, ...]:
    """Names of views from what a user passed as ``missing_views``.

    Parameters
    ----------
    missing_views : None, str or sequence of str
        As passed to a method of an estimator.

    Returns
    -------
    tuple of str
    """
    if missing_views is None:
        return ()
    if isinstance(missing_views, str):
        return (missing_views,)
    if isinstance(missing_views, Iterable):
        return tuple(str(name) for name in missing_views)
    raise ValueError(
        f"missing_views: got {missing_views!r}; expected the name of a view, or a list of names."
    )
