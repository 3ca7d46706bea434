r"""Training rows that are not clean: learn twice, the second time without those that stand out.

A narrow kernel explains a cluster of outliers by itself, and so does the distance to the nearest
row. A wide kernel and a large ridge do not: `WIDE` holds what serves here. With them a model is
fitted to all rows; the given share of rows with the lowest left-out scores

.. math:: s_i = \sum_{k \ne i} k^{(-i)}(x_i, x_k)\, a^{(-i)}_k

are suspects, which keep a hundredth of their weight in a second fit. All rows, suspects included,
decide the threshold: on clean rows the false-alarm rate holds, on others there are fewer alarms.
Outliers that form a dense cluster of their own look like one more kind of normal rows, and stay.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration import LeftOut
from kernull.errors import MissingCapabilityError
from kernull.models.kernels import Rows, Settings
from kernull.models.learning import Method, learn
from kernull.models.model import Fitted, calibrate

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

_logger = logging.getLogger("kernull")


def read_contamination(contamination: Any) -> float:
    """The share of rows that may be outliers, checked."""
    wrong = isinstance(contamination, bool) or not isinstance(contamination, (int, float))
    if wrong or not 0.0 < contamination <= 0.5:
        raise ValueError(
            f"contamination: got {contamination!r}; expected None (all rows are normal) or the "
            "share of rows that may not be, above 0 and at most 0.5."
        )
    return float(contamination)


def suspects(scores: Array, contamination: float) -> Indices:
    """Rows with the lowest left-out scores, as many as the share allows, in increasing order.

    Examples
    --------
    >>> import numpy as np
    >>> suspects(np.array([0.9, 0.1, 0.8, 0.7, 0.2]), 0.4)
    array([1, 4])
    """
    count = int(contamination * len(scores) * (1 + 1e-12))
    return np.sort(np.argsort(scores, kind="stable")[:count])


def learn_contaminated(
    method: Method, rows: Rows, weight: Array | None, settings: Settings, contamination: Any
) -> tuple[Fitted, Indices]:
    """Fit a model to rows a share of which may be outliers; see `learn`. With the rows so found."""
    share = read_contamination(contamination)
    held = settings.calibrator.hold_out(rows.n, weight)[1]
    if held is not None:
        raise MissingCapabilityError(
            "contamination: rows held out may be outliers too; use calibration='auto' or 'loo'."
        )
    found = suspects(learn(method, rows, weight, settings).row_scores(), share)
    trust = np.ones(rows.n) if weight is None else weight.astype(float)
    trust[found] *= LEAST
    fitted = learn(method, rows, trust, settings)
    _logger.info("contamination: %d of %d rows lost their weight: %s", len(found), rows.n, found)
    # As they came, since normal rows may be among the suspects.
    scores, model = fitted.row_scores(), fitted.model
    learned = slice(None) if model.learned is None else model.learned
    known = model.left_out
    if known is not None and len(known) != len(scores[learned]):
        known = None
    left_out = LeftOut(scores[learned], None if weight is None else weight[learned], known)
    model = replace(model, **calibrate(left_out, settings.false_alarm_rate))
    return replace(fitted, model=model), found
