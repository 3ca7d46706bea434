"""A fitted model as a value: nothing in it changes; whatever changes a model makes a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.calibration import Calibration, LeftOut, minus_rounding
from kernull.calibration.calibrators import Later
from kernull.calibration.parts import leave_one_out_contributions
from kernull.mkl import RidgeInverse
from kernull.models.explanation import Explanation
from kernull.models.kernels import ModelKernels
from kernull.models.misfit import ViewMisfit
from kernull.models.rules import EvidenceRule, FisherRule
from kernull.solvers import Record, Result


@dataclass(frozen=True, eq=False)
class Certificate:
    """How good the weights are, and how they were found."""

    gap: float
    n_iter: int
    solver: str
    history: tuple[Record, ...] = ()

    @classmethod
    def of(cls, result: Result) -> Certificate:
        """That of a solver's result."""
        return cls(result.gap, result.n_iter, result.solver, result.history)


@dataclass(frozen=True, eq=False)
class RidgeSystem:
    r"""The system (rho W^-1 + K_b) a = t that the coefficients solve."""

    p: float
    delta: float
    """The ridge relative to the number of rows."""
    ridge: float
    """rho itself."""
    row_weight: Array | None = None
    """Of the training rows; None where all are one."""

    def inverse(self, kernel: Array) -> RidgeInverse:
        """(rho W^-1 + K_b)^-1 from K_b, which is used up."""
        return RidgeInverse.of(kernel, self.ridge, self.row_weight, overwrite=True)


@dataclass(frozen=True, eq=False)
class KernelModel:
    """All that a fit has learned.

    Parameters
    ----------
    kernels : TableKernels or GivenKernels
    rule : FisherRule, EvidenceRule or that of another method
        From kernels of new rows to scores, ``score(cross)``; higher is more normal.
    calibration : Calibration
        Scores of rows that the model did not see.
    threshold, false_alarm_rate : float
        Score below which rows are flagged, and the rate that it stands for.
    calibration_weight : array of shape (m,), optional
        Weights of the calibration rows; None where all are one.
    left_out : array of shape (m, J), optional
        Contributions of the kernels to the calibration scores, where they are known; see
        `left_out_contributions`.
    certificate, system : optional
        Of models whose weights were learned; whose coefficients solve a ridge system.
    learned : integer array, optional
        Rows that were learned from among those given; None: all.
    n_given : int
        Rows given to fit.
    device : str, optional
        Where the training rows were tensors: learned arrays are shown as tensors there.
    """

    kernels: ModelKernels
    rule: Any
    calibration: Calibration
    threshold: float
    false_alarm_rate: float
    calibration_weight: Array | None = None
    left_out: Array | Later | None = None
    certificate: Certificate | None = None
    system: RidgeSystem | None = None
    learned: Indices | None = None
    n_given: int = 0
    device: str | None = None

    # -- scores ------------------------------------------------------------------------------

    def score(self, cross: Any) -> Array:
        """Scores of the rows of a cross stack; higher is more normal."""
        return np.asarray(self.rule.score(cross))

    def evidence(self, cross: Any, by: str = "kernel") -> Array:
        """Evidence against each row, in nats: a column per kernel, or per view."""
        if by not in ("kernel", "view"):
            raise ValueError(f"by: got {by!r}; expected 'kernel' or 'view'.")
        squared = np.asarray(self.rule.parts(cross))
        if by == "view":
            names = list(dict.fromkeys(self.kernels.views))
            member = [[view == name for name in names] for view in self.kernels.views]
            squared = squared @ np.array(member, dtype=float)
        return np.asarray(np.sqrt(squared))

    @property
    def decides_by_evidence(self) -> bool:
        """Whether scores are minus the evidence against a row."""
        return isinstance(self.rule, EvidenceRule)

    @property
    def can_explain(self) -> bool:
        """Whether it is known what is usual, by kernel."""
        return self.decides_by_evidence or self.knows_contributions

    @property
    def knows_contributions(self) -> bool:
        """Whether it is known, or can be computed, what kernels usually contribute."""
        if not isinstance(self.rule, FisherRule | EvidenceRule):
            return False  # no sum over kernels
        if self.left_out is not None:
            return True
        has_rows = self.rule.coef.ndim == 1 and self.kernels.training_stack() is not None
        return self.system is not None and has_rows

    @cached_property
    def left_out_contributions(self) -> Array | None:
        """Contributions of the kernels to the calibration scores, of shape (m, J).

        Computed when first asked for: it costs about as much as a factorisation.
        """
        if isinstance(self.left_out, Later):
            return self.left_out.values
        if self.left_out is not None or not self.knows_contributions:
            return self.left_out
        stack = self.kernels.training_stack()
        assert self.system is not None
        inverse = self.system.inverse(self.kernels.combined(self.rule.weights))
        return leave_one_out_contributions(stack, self.rule.weights, inverse)

    @cached_property
    def typical_contributions(self) -> Any:
        """Mean contribution of each kernel to a normal row that the model did not see, if known."""
        parts: Any = self.left_out_contributions
        if parts is not None:
            parts = np.average(parts, axis=0, weights=self.calibration_weight)
        return parts

    # -- some views only -----------------------------------------------------------------------

    def kept_kernels(self, missing: Iterable[str]) -> Mask:
        """Mask of the kernels whose view is there."""
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
        """The model that scores by the other views: same rows, same rate, its own threshold."""
        missing = tuple(missing)
        if not missing:
            return self
        kept = self.kept_kernels(missing)
        if self.decides_by_evidence:
            rule, parts = self.rule.without(kept), self.left_out
            scores = -rule.left_out()
        else:
            parts = self.left_out_contributions
            assert parts is not None
            rule = self.rule.without(kept, self.typical_contributions)
            scores = minus_rounding(rule.of_contributions(parts))
        rate, smooth = self.false_alarm_rate, self.calibration.smooth
        decided = calibrate(LeftOut(scores, self.calibration_weight, parts, smooth), rate)
        return replace(self, rule=rule, **{**decided, "false_alarm_rate": rate})

    # -- reasons -----------------------------------------------------------------------------

    @cached_property
    def view_misfit(self) -> ViewMisfit | None:
        """How far each view lies from what the others say it should be, once it is learned."""
        kept = getattr(self.rule, "kept", None)
        return ViewMisfit.of(self, np.ones(len(self.kernels.names), bool) if kept is None else kept)

    def explain(self, cross: Any, table: Array | None) -> Explanation:
        """Scores of rows, taken apart; ``table`` holds them where kernels are on a table."""
        kept = self.rule.kept if self.rule.kept is not None else slice(None)
        rarity = extrapolated = None
        if self.decides_by_evidence:
            squared, reference = self.rule.parts(cross), -self.rule.parts_of(self.rule.tails.own)
            E = self.rule.of_parts(squared)
            contributions, scores = -squared, -E
            typical = np.average(reference, axis=0)
            rarity, extrapolated = self.rule.rarity(E)
        else:
            contributions = self.rule.contributions(cross)
            scores = self.rule.of_contributions(contributions)
            reference, typical = self.left_out_contributions, self.typical_contributions
        misfit = None if table is None or self.view_misfit is None else self.view_misfit(table)
        return Explanation(
            contributions=contributions[:, kept],
            typical=typical[kept],
            reference=reference[:, kept],
            kernel_names=tuple(np.array(self.kernels.names, dtype=object)[kept]),
            kernel_views=tuple(np.array(self.kernels.views, dtype=object)[kept]),
            scores=scores,
            p_values=self.calibration.p_values(scores),
            threshold=self.threshold,
            misfit=None if misfit is None else misfit[0],
            usual_misfit=None if misfit is None else misfit[1],
            rarity=rarity,
            extrapolated=extrapolated,
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if isinstance(self.left_out, Later):  # from kernels that no copy will have
            state["left_out"] = self.left_out.values
        state.pop("view_misfit", None)  # quick to learn again
        return state


@dataclass(frozen=True, eq=False)
class RuleFit:
    """What a method makes of a stack: its rule, and the scores of rows left out, when asked for."""

    rule: Any
    leave_one_out: Callable[[], LeftOut]
    certificate: Certificate | None = None
    system: RidgeSystem | None = None
    leaves_out_scaling: bool = False
    """Whether rows are left out of their own scaling too, so that nothing leaks."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model fresh from learning, and what only its training rows can still tell."""

    model: KernelModel
    row_scores: Callable[[], Array]
    """Score of each row given, by a model that did not see it."""


def calibrate(left_out: LeftOut, rate: float) -> dict[str, Any]:
    """What left-out scores decide of a `KernelModel`, by field: the only maker of thresholds."""
    calibration = Calibration.of(left_out.scores, left_out.weight, smooth=left_out.smooth)
    threshold, certified = calibration.threshold(rate)
    return {
        "calibration": calibration,
        "threshold": threshold,
        "false_alarm_rate": certified,
        "calibration_weight": left_out.weight,
        "left_out": left_out.contributions,
    }


def view_names(missing_views: Any) -> tuple[str, ...]:
    """Names of views from what a user passed as ``missing_views``."""
    if missing_views is None:
        return ()
    if isinstance(missing_views, str):
        return (missing_views,)
    if isinstance(missing_views, Iterable):
        return tuple(str(name) for name in missing_views)
    raise ValueError(
        f"missing_views: got {missing_views!r}; expected the name of a view, or a list of names."
    )
