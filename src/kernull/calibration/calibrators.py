"""How a fit finds scores of rows it did not see: chosen before learning, one call afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from kernull._typing import Array, Indices
from kernull.calibration.leaks import warn_of_leak
from kernull.calibration.split import check_seed, hold_out
from kernull.errors import MissingCapabilityError

__all__ = ["Auto", "Calibrator", "Folds", "LeaveOneOut", "LeftOut", "Split", "read_calibration"]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores of rows by models that did not see them."""

    scores: Array
    """Of the calibration rows, of shape (m,)."""
    weight: Array | None = None
    """Their weights; None where all are one."""
    contributions: Array | None = None
    """What each kernel contributed, of shape (m, J), where that is known already."""
    smooth: bool = True
    """Whether p-values may interpolate: rows held out have a bound to keep, others none."""
    every: Array | None = None
    """Scores of all rows learned from, where the calibration rows are a sample of them."""


class Learned(Protocol):
    """What a calibrator may ask of something that has just been learned."""

    def leave_one_out(self) -> LeftOut:
        """Every row by a model without it."""
        ...

    def by_folds(self) -> LeftOut | None:
        """Every row by a model, scaling included, of other folds; None where that cannot be."""
        ...

    def held_out(self, rows: Indices) -> LeftOut:
        """Rows that took no part, as new rows."""
        ...

    @property
    def leaking_view(self) -> Any:
        """A view whose scaling follows single rows too closely, or None."""
        ...


class Calibrator(Protocol):
    """A way to find scores of rows that a model did not see."""

    def hold_out(self, n: int, weight: Array | None) -> tuple[Array | None, Indices | None]:
        """Weights to learn with, and the rows held out of learning, if any."""
        ...

    def left_out(self, learned: Learned, held: Indices | None) -> LeftOut:
        """The scores."""
        ...


@dataclass(frozen=True)
class LeaveOneOut:
    """Every row by a model without it: in closed form, on a sample, or as the method can."""

    def hold_out(self, n: int, weight: Array | None) -> tuple[Array | None, Indices | None]:
        """Nothing is held out."""
        return weight, None

    def left_out(self, learned: Learned, held: Indices | None) -> LeftOut:
        """Leave-one-out scores; warns where the scaling remembers rows."""
        warn_of_leak(learned.leaking_view)
        return learned.leave_one_out()


@dataclass(frozen=True)
class Folds(LeaveOneOut):
    """Every row by a model whose scaling, widths and coefficients come from other folds."""

    def left_out(self, learned: Learned, held: Indices | None) -> LeftOut:
        """Scores by refits."""
        found = learned.by_folds()
        if found is None:
            raise MissingCapabilityError(
                "calibration: got 'folds', which needs a table of at least three different "
                "rows, kernels in memory and no reference; use 'loo' or 'split'."
            )
        return found


@dataclass(frozen=True)
class Auto(LeaveOneOut):
    """Leave-one-out, or folds where leaving a row out of the model does not leave it out."""

    def left_out(self, learned: Learned, held: Indices | None) -> LeftOut:
        """Leave-one-out scores, or scores by refits."""
        found = None if learned.leaking_view is None else learned.by_folds()
        return super().left_out(learned, held) if found is None else found


@dataclass(frozen=True)
class Split:
    """Rows that are held out of learning: the only scores with a bound in any finite sample."""

    fraction: Any = 0.25
    random_state: Any = 0

    def hold_out(self, n: int, weight: Array | None) -> tuple[Array | None, Indices | None]:
        """Draw the rows."""
        return hold_out(n, self.fraction, self.random_state, weight)

    def left_out(self, learned: Learned, held: Indices | None) -> LeftOut:
        """Scores of the rows held out."""
        assert held is not None
        return learned.held_out(held)


def read_calibration(
    name: Any, fraction: Any = 0.25, random_state: Any = 0, *, refits: bool = False
) -> Calibrator:
    """The calibrator that ``calibration`` stands for; ``refits`` where a method offers folds."""
    check_seed(random_state)
    known: dict[str, Calibrator] = {"loo": LeaveOneOut(), "split": Split(fraction, random_state)}
    if refits:
        known |= {"folds": Folds(), "auto": Auto()}
    if not isinstance(name, str) or name not in known:
        more = ", 'folds' (scores by refits), 'auto' (the first or the last)"
        raise ValueError(
            f"calibration: got {name!r}; expected 'loo' (leave-one-out scores of all rows), "
            f"'split' (scores of rows held out){more * refits}."
        )
    return known[name]
