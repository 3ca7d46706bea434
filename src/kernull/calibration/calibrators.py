"""Which scores a threshold comes from: of rows left out by folds, or of rows held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernull._typing import Array, Indices

#: Folds of ``calibration="cross"``. To a model of a tenth less of few rows, rows left out look
#: odder than new rows do to the model of all: on five kinds of tables of 100 rows, ten folds flag
#: 4.0% of new rows at 5%, and twenty 4.8%.
FOLDS, FOLDS_OF_FEW, FEW = 10, 20, 200
#: Rows up to which folds of a sum over kernels are solved, and rows held out beyond.
MOST_ROWS, HELD_OUT = 4000, 2000
#: Share of the rows that ``calibration="split"`` holds out.
HELD_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Scores of rows by models that did not see them.

    Parameters
    ----------
    scores : array of shape (m,)
        Of the calibration rows.
    weight : array of shape (m,), optional
        What each row counts; None where all are one.
    contributions : array of shape (m, J), optional
        What each kernel contributed, of scores that are sums over kernels.
    smooth : bool, default=True
        Whether p-values interpolate: those of rows held out count, for their bound to hold.
    """

    scores: Array
    weight: Array | None = None
    contributions: Array | None = None
    smooth: bool = True


@dataclass(frozen=True)
class Cross:
    """Every row is scored by a model fitted without its fold; all rows are learned from.

    Parameters
    ----------
    folds : int, optional
        Number of folds, at least 2; by default 10, and 20 of up to 200 rows. Where rows (or groups)
        are fewer, each is a fold of its own.

    Notes
    -----
    A model that decides by the sum of its kernels is solved once a fold. Beyond 4,000 rows that
    would take long: 2,000 rows are then held out instead, as by `Split`.
    """

    folds: int | None = None

    def __post_init__(self) -> None:
        if self.folds is None:
            return
        whole = isinstance(self.folds, int | np.integer) and not isinstance(self.folds, bool)
        if not whole or self.folds < 2:
            raise ValueError(f"folds: got {self.folds!r}; expected a whole number, at least 2.")

    def count(self, n: int) -> int:
        """Number of folds of so many rows."""
        if self.folds is not None:
            return int(self.folds)
        return FOLDS_OF_FEW if n <= FEW else FOLDS


@dataclass(frozen=True)
class Split:
    """Rows held out of learning set the threshold: it has a bound in any finite sample.

    Parameters
    ----------
    fraction : float in (0, 1) or int, default=0.25
        Share, or number, of the rows that are held out.
    """

    fraction: float | int = HELD_SHARE

    def __post_init__(self) -> None:
        count_of(self.fraction, 100)


def read_calibration(calibration: Any) -> Cross | Split:
    """What ``calibration`` stands for."""
    if isinstance(calibration, Cross | Split):
        return calibration
    known: dict[str, type[Cross] | type[Split]] = {"cross": Cross, "split": Split}
    if not isinstance(calibration, str) or calibration not in known:
        raise ValueError(
            f"calibration: got {calibration!r}; expected 'cross' (scores of all rows, each by a "
            "model fitted without its fold), 'split' (scores of rows held out), Cross(folds=20) or "
            "Split(0.3)."
        )
    return known[calibration]()


def hold_out(
    n: int,
    fraction: float | int,
    random_state: Any = None,
    sample_weight: Array | None = None,
    groups: Indices | None = None,
) -> tuple[Array, Indices]:
    """Draw the rows that a fit does not see, so that their scores are those of new rows.

    Parameters
    ----------
    n : int
        Number of rows.
    fraction : float in (0, 1) or int
        Share or number of the rows to hold out.
    random_state : int, RandomState instance or None
    sample_weight : array of shape (n,), optional
        Rows of weight zero are neither fitted nor held out.
    groups : array of shape (n,), optional
        Whole groups are drawn until there are enough rows.

    Returns
    -------
    weight : array of shape (n,)
        Weights for the fit: zero for rows that are held out.
    held : integer array
        Positions of these rows, in increasing order.
    """
    weight = np.ones(n) if sample_weight is None else np.array(sample_weight, dtype=float)
    eligible = np.flatnonzero(weight > 0)
    count = count_of(fraction, len(eligible))
    if not 1 <= count <= len(eligible) - 2:
        raise ValueError(
            f"calibration: Split({fraction!r}) holds out {count} rows of n_samples = "
            f"{len(eligible)}; expected at least 1 row held out and 2 left to learn from."
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
            "groups, a smaller share in Split, or calibration='cross'."
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


def count_of(fraction: Any, rows: int) -> int:
    """Number of rows that a share of them, or a number, stands for."""
    is_number = isinstance(fraction, int | float | np.number) and not isinstance(fraction, bool)
    if is_number and isinstance(fraction, int | np.integer) and fraction >= 1:
        return int(fraction)
    if is_number and 0 < fraction < 1:
        return max(1, round(float(fraction) * rows))
    raise ValueError(
        f"calibration: got Split({fraction!r}); expected a share of the rows in (0, 1), or a "
        "number of rows."
    )
