r"""Training rows that are not clean: learn twice, the second time without those that stand out.

A narrow kernel explains a cluster of outliers by itself, and so does the distance to the nearest
row. A wide kernel and a large ridge do not: `WIDE` holds what serves here. With them a model is
fitted to all rows; the given share of rows with the lowest left-out scores

.. math:: s_i = \sum_{k \ne i} k^{(-i)}(x_i, x_k)\, a^{(-i)}_k

are suspects, which keep a hundredth of their weight in a second fit. Suspects that are no farther
off than the tail of the other rows explains have a say in the threshold, so that clean rows keep
their false-alarm rate; those beyond it have none, so that outliers do not hide others.
Outliers that form a dense cluster of their own look like one more kind of normal rows, and stay.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from scipy.stats import rankdata

from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import MOST_ROWS, LeftOut, Split, rank_weights
from kernull.detector.cautions import warn_where_nothing_is_flagged
from kernull.detector.learning import Fitted, Method, drawing_order, learn
from kernull.detector.rows import Rows, Settings, TableKernels, TableRows
from kernull.detector.sum import FisherRule
from kernull.errors import CannotFlagWarning, MissingCapabilityError, collected

#: What defaults stand for where rows are not clean: one standardised kernel per view with a quarter
#: of the mean distance as width, as it is, a ridge of a tenth of the number of rows, and the sum.
WIDE: dict[str, Any] = {
    "decision": "sum",
    "scaling": "standard",
    "widths": 0.25,
    "normalize": "none",
    "delta": 0.1,
}
#: Weight that a suspect keeps.
LEAST = 0.01
#: Share of suspects without a say in the threshold that may be normal rows.
FALSE_SHARE = 0.001
#: Rows of the others, at least, before those that their tail is known from.
FEWEST_OUTSIDE = 10

_logger = logging.getLogger("kernull")


def read_contamination(contamination: Any) -> float:
    """The share of rows that may be outliers, checked.

    Parameters
    ----------
    contamination : float
        Above 0, at most 0.5.
    """
    wrong = isinstance(contamination, bool) or not isinstance(contamination, (int, float))
    if wrong or not 0.0 < contamination <= 0.5:
        raise ValueError(
            f"contamination: got {contamination!r}; expected None (all rows are normal) or the "
            "share of rows that may not be, above 0 and at most 0.5."
        )
    return float(contamination)


def suspects(scores: Array, contamination: float) -> Indices:
    """Positions of the rows with the lowest left-out scores, as many as the share allows, sorted.

    Parameters
    ----------
    scores : array of shape (n,)
        Left-out scores; higher is more normal.
    contamination : float
        Largest share of outliers.

    Examples
    --------
    >>> import numpy as np
    >>> suspects(np.array([0.9, 0.1, 0.8, 0.7, 0.2]), 0.4)
    array([1, 4])
    """
    count = int(contamination * len(scores) * (1 + 1e-12))
    return np.sort(np.argsort(scores, kind="stable")[:count])


def beyond_tail(scores: Array, positions: Indices) -> Mask:
    r"""Which of the k suspects lie below the other rows by more than the tail of these explains.

    If all rows were normal, suspects would continue the tail of the others: where that is
    exponential, :math:`m e^{-e}` rows lie more than e of its scales below the m-th lowest. The
    scale is known from rows beyond the lowest of the others, which may be outliers too. Scores that
    are sums of kernels end at zero; it is their logarithms that have such a tail. Found are those
    suspects among which no more than `FALSE_SHARE` are expected to be normal (the rule of Benjamini
    and Hochberg): so few, as some tails are heavier.

    Parameters
    ----------
    scores : array of shape (n,)
    positions : integer array of shape (k,)
        The suspects, lowest score first.

    Returns
    -------
    mask of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.random.default_rng(0).exponential(size=200)
    >>> scores[:4] = -19.0, -18.0, -0.1, -0.1
    >>> beyond_tail(np.exp(scores), np.arange(4))
    array([ True,  True, False, False])
    """
    k, others, low = len(positions), np.sort(np.delete(scores, positions)), scores[positions]
    first = k + min(max(k, FEWEST_OUTSIDE), len(others) // 4)  # rows up to where the tail begins
    last = first + min(first, len(others) // 2)
    if not k < first < last:
        return np.zeros(k, dtype=bool)
    if others[first - k] > 0:
        tiny = np.finfo(float).tiny
        others, low = np.log(np.maximum(others, tiny)), np.log(np.maximum(low, tiny))
    begin = others[first - k]
    scale = max(float(others[last - k] - begin) / np.log(last / first), np.finfo(float).tiny)
    expected = first * np.exp(np.minimum((low - begin) / scale, 0.0))
    passed = expected[expected <= FALSE_SHARE * rankdata(expected, method="max")]
    return np.asarray(expected <= passed.max(initial=-1.0))


def learn_contaminated(
    method: Method, rows: Rows, weight: Array | None, settings: Settings, contamination: Any
) -> tuple[Fitted, Indices]:
    """A model of rows, a share of which may be outliers, and the positions of these; see `learn`.

    Of more than 4,000 rows a random sample of so many is learned from.

    Parameters
    ----------
    method : Method
        How rules are learned.
    rows : Rows
        Training rows, some of which may be outliers.
    weight : array of shape (n,) or None
    settings : Settings
    contamination : float
        Largest share of outliers.

    Returns
    -------
    fitted : Fitted
        The model.
    suspects : integer array
        Rows that lost their weight.
    """
    share = read_contamination(contamination)
    if isinstance(settings.calibrator, Split):
        raise MissingCapabilityError(
            "contamination: rows held out may be outliers too; use calibration='cross'."
        )
    given, counts = weight, np.ones(rows.n) if weight is None else weight.astype(float)
    present = np.flatnonzero(counts > 0)  # rows of weight zero are neither suspects nor others
    if len(present) > MOST_ROWS and settings.storage != "dense":
        counts[drawing_order(rows, given, settings.seed)[MOST_ROWS:]] = 0.0
        given = counts.copy()
    # Whether a model of a table can flag is known in the end, and warned of.
    later = (CannotFlagWarning,) if isinstance(rows, TableRows) else ()
    with collected(*later):
        low = suspects(learn(method, rows, given, settings).row_scores()[present], share)
        odd = present[low]
        counts[odd] *= LEAST
        fitted = learn(method, rows, counts, settings)
    _logger.info("contamination: %d of %d rows lost their weight: %s", len(odd), rows.n, odd)
    scores, model = fitted.row_scores(), fitted.model
    learned = np.arange(rows.n) if model.learned is None else model.learned
    # Of the suspects, those that may well be normal rows count as they came.
    kept = ~np.isin(learned, odd[beyond_tail(scores[present], low)])
    counted, parts = learned[kept], model.left_out
    left_out = LeftOut(
        scores[counted],
        None if given is None else rank_weights(given[counted], None, len(counted)),
        None if parts is None else parts[kept],
    )
    fitted = fitted.calibrated_by(left_out)
    model = fitted.model
    if isinstance(model.kernels, TableKernels) and isinstance(model.rule, FisherRule):
        judged = model.calibration, model.false_alarm_rate
        warn_where_nothing_is_flagged(model.kernels.set, model.rule, *judged)
    return fitted, odd
