"""How a fit finds scores of rows it did not see: chosen before learning, one call afterwards.

Leaving a row out of the fit does not leave it out of the scaling. Means and standard deviations
hardly notice a row while there are more rows than columns; a covariance of many columns fits itself
to each row, so that training rows look far more normal than new ones ever will (`leaking_view`).
`kernull.calibration.refit_by_fold` does not have that fault.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from kernull._typing import Array, Indices
from kernull.calibration.left_out_scores import lower_ties
from kernull.errors import CalibrationWarning, MissingCapabilityError
from kernull.problems import FisherProblem


class Later:
    """Scores of so many rows, or contributions: computed when first asked for, then kept."""

    def __init__(self, rows: int, compute: Callable[[], Array]) -> None:
        self._rows, self._compute = rows, compute

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def values(self) -> Array:
        """They, of shape (m,) or (m, J)."""
        values = self._compute()
        del self._compute  # what it holds is needed no longer
        return values


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores of rows by models that did not see them."""

    scores: Array
    """Of the calibration rows, of shape (m,)."""
    weight: Array | None = None
    """Their weights; None where all are one."""
    contributions: Array | Later | None = None
    """What each kernel contributed, of shape (m, J), where that is known or will be."""
    smooth: bool = True
    """Whether p-values may interpolate: rows held out have a bound to keep, others none."""
    every: Array | Later | None = None
    """Scores of all rows learned from, where the calibration rows are a sample of them."""

    def of_all(self) -> Array:
        """Scores of all rows learned from."""
        if isinstance(self.every, Later):
            return self.every.values
        return self.scores if self.every is None else self.every


class Calibrator:
    """A way to find scores of rows that a model did not see."""

    def hold_out(
        self, n: int, weight: Array | None, groups: Indices | None = None
    ) -> tuple[Array | None, Indices | None]:
        """Weights to learn with, and the rows held out of learning: none, unless it is said."""
        return weight, None

    def left_out(self, learned: Any, held: Indices | None) -> LeftOut:
        """The scores, of which something that has just been learned knows three kinds.

        ``learned.fit.leave_one_out()``, every row by a model without it; ``by_folds()``, every row
        by a model, scaling included, of other folds, None where that cannot be; ``held_out(rows)``,
        rows that took no part. Its ``leaking_view`` follows single rows too closely, or is None.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class LeaveOneOut(Calibrator):
    """Every row by a model without it: in closed form, on a sample, or as the method can."""

    folds: bool = False
    """Whether to refit by folds where leaving a row out of the model does not leave it out."""

    def left_out(self, learned: Any, held: Indices | None) -> LeftOut:
        """Leave-one-out scores; those by refits, or a warning, where the scaling remembers rows."""
        leak = learned.leaking_view
        if leak is not None:
            by_folds: LeftOut | None = learned.by_folds() if self.folds else None
            if by_folds is not None:
                return by_folds
            warn_of_leak(leak)
        found: LeftOut = learned.fit.leave_one_out()
        every = found.scores if found.every is None else found.every
        return replace(found, scores=lower_ties(found.scores), every=every)


class Folds(Calibrator):
    """Every row by a model whose scaling, widths and coefficients come from other folds."""

    def left_out(self, learned: Any, held: Indices | None) -> LeftOut:
        """Scores by refits."""
        found: LeftOut | None = learned.by_folds()
        if found is None:
            raise MissingCapabilityError(
                "calibration: got 'folds', which needs decision='sum', a table of at least three "
                "different rows, and kernels in memory; use 'loo' or 'split'."
            )
        return found


@dataclass(frozen=True)
class Split(Calibrator):
    """Rows that are held out of learning: the only scores with a bound in any finite sample."""

    fraction: Any = 0.25
    random_state: Any = 0

    def hold_out(
        self, n: int, weight: Array | None, groups: Indices | None = None
    ) -> tuple[Array | None, Indices | None]:
        """Draw the rows."""
        return hold_out(n, self.fraction, self.random_state, weight, groups)

    def left_out(self, learned: Any, held: Indices | None) -> LeftOut:
        """Scores of the rows held out."""
        found: LeftOut = learned.held_out(held)
        return found


def read_calibration(
    name: Any, fraction: Any = 0.25, random_state: Any = 0, *, refits: bool = False
) -> Calibrator:
    """The calibrator that ``calibration`` stands for; ``refits`` where a method offers folds."""
    if not (isinstance(random_state, int) and 0 <= random_state < 2**32):  # others need a look
        check_seed(random_state)
    known: dict[str, Calibrator] = {
        "auto": LeaveOneOut(folds=refits),
        "loo": LeaveOneOut(),
        "split": Split(fraction, random_state),
    }
    if refits:
        known["folds"] = Folds()
    if not isinstance(name, str) or name not in known:
        more = ", 'folds' (scores by refits)"
        raise ValueError(
            f"calibration: got {name!r}; expected 'auto', 'loo' (leave-one-out scores of all "
            f"rows), 'split' (scores of rows held out){more * refits}."
        )
    return known[name]


#: Rows a column from which whitening hardly follows a single row, of up to 50 columns and of more.
#: Of six factors, 6 to 7% of new rows are then flagged where 5% were asked for. With 20 rows for
#: each of 100 columns it is 10%, with ten 15%, with as many columns as rows nearly all.
ROWS_A_COLUMN, ROWS_A_COLUMN_OF_MANY, MANY_COLUMNS = 10, 50, 50


class Leak(NamedTuple):
    """A view, and the number of rows that its scaling was learned from."""

    view: Any
    rows: int


def leaking_view(kernels: Any, rows: int) -> Leak | None:
    """The widest view of a `KernelSet` whose scaling follows single rows too closely, or None."""
    if kernels is None:
        return None
    found = []
    for view in kernels.views:
        whitened, columns = view.scaler.kind.startswith("whiten"), len(view.columns)
        few = ROWS_A_COLUMN if columns <= MANY_COLUMNS else ROWS_A_COLUMN_OF_MANY
        follows = whitened and columns > 1 and rows < few * columns
        if follows or (view.scaler.kind == "standard" and rows < columns):
            found.append((whitened, columns, view))  # a whitened view is the worse of two
    return Leak(max(found, key=itemgetter(0, 1))[2], rows) if found else None


#: What to do about a leak in a fit.
ADVICE = "Use calibration='split' (or 'folds', where it is offered), another scaling, or more rows."


def warn_of_leak(leak: Leak | None, whose: str = "") -> None:
    """Say that a threshold by leave-one-out will not hold, where there is a leak.

    ``whose`` names the rows, where they are not all.
    """
    if leak is None:
        return
    view, rows = leak
    done = "whitened" if view.scaler.kind.startswith("whiten") else "standardised"
    warnings.warn(
        f"scaling: the view {view.name!r} of {len(view.columns)} columns was {done} by the {rows} "
        f"rows{whose} that also set the threshold, so more normal rows will be flagged than "
        f"false_alarm_rate says. {ADVICE}",
        CalibrationWarning,
        stacklevel=3,
    )


def hold_out(
    n: int,
    fraction: Any,
    random_state: Any = None,
    sample_weight: Array | None = None,
    groups: Indices | None = None,
) -> tuple[Array, Indices]:
    """Draw the rows that a fit does not see, so that their scores are those of new rows.

    ``fraction`` is a share of the n rows, or their number; rows of weight zero are neither fitted
    nor held out; of ``groups`` whole ones are drawn until there are enough rows. Gives the weights
    for the fit, zero for rows that are held out, and the positions of these, in increasing order.
    """
    weight = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=float)
    eligible = np.flatnonzero(weight > 0)
    count = _count(fraction, len(eligible))
    if not 1 <= count <= len(eligible) - 2:
        raise ValueError(
            f"calibration_fraction: got {fraction!r}, which holds out {count} rows of "
            f"n_samples = {len(eligible)}; expected at least 1 row held out and 2 left "
            "to learn from."
        )
    order = check_seed(random_state).permutation(len(eligible))
    held = np.sort(eligible[order[:count]])
    if groups is not None:
        held = _whole_groups(eligible[order], groups, count)
    weight[held] = 0.0
    return weight, held


def _whole_groups(rows: Indices, groups: Indices, count: int) -> Indices:
    """The first rows of a draw with all others of their groups, as many as were asked for."""
    drawn = groups[rows]
    first = np.sort(np.unique(drawn, return_index=True)[1])  # groups in the order of the draw
    names = drawn[first]
    total = np.cumsum([int((drawn == name).sum()) for name in names])
    taken = names[: int(np.searchsorted(total, count)) + 1]
    held = np.sort(rows[np.isin(drawn, taken)])
    if len(held) > len(rows) - 2:
        raise ValueError(
            "groups: holding out whole groups leaves fewer than 2 rows to learn from; use smaller "
            "groups, a smaller calibration_fraction, or calibration='loo'."
        )
    return held


def check_seed(random_state: Any) -> np.random.RandomState:
    """scikit-learn's check of a seed, with an error that names the parameter."""
    try:
        return check_random_state(random_state)  # type: ignore[no-any-return]
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state: got {random_state!r}; expected a whole number, a "
            "numpy.random.RandomState or None."
        ) from None


def _count(fraction: Any, rows: int) -> int:
    is_number = isinstance(fraction, int | float | np.number) and not isinstance(fraction, bool)
    if is_number and isinstance(fraction, int | np.integer) and fraction >= 1:
        return int(fraction)
    if is_number and 0 < fraction < 1:
        return max(1, round(float(fraction) * rows))
    raise ValueError(
        f"calibration_fraction: got {fraction!r}; expected a share in (0, 1) or a number of rows."
    )


def leave_one_out(
    problem: FisherProblem,
    weights: Array,
    coef: Array,
    row_weight: Array | None = None,
    inverse_diagonal: Array | None = None,
) -> Array:
    r"""Projection of each training row by the model fitted without it, at fixed kernel weights.

    .. math:: y_i^{-i} = 1 - a_i / [(\rho I + K_b)^{-1}]_{ii}

    With row weights it is the same with :math:`(\rho W^{-1} + K_b)^{-1}`: a row is left out whole,
    whatever its weight. ``coef`` are the exact a at b, for errors in them are not damped here;
    ``row_weight`` those of the problem, ones by default; ``inverse_diagonal`` what
    ``problem.inverse_diagonal(weights)`` gives, where it is known.
    """
    inverse = problem.inverse_diagonal(weights) if inverse_diagonal is None else inverse_diagonal
    if row_weight is not None:  # from the scaled coordinates of the problem to those of the rows
        inverse = np.asarray(row_weight, dtype=float) * inverse
    return left_out_projections(inverse, coef)


def left_out_projections(inverse_diagonal: Array, coef: Array) -> Array:
    """What `leave_one_out` returns, from the diagonal of (rho W^-1 + K_b)^-1, W the row weights."""
    return np.asarray(1.0 - coef / inverse_diagonal)
