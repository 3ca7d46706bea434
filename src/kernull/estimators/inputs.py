"""From what users pass to values: tables, columns, weights and parameters, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from kernull._containers import as_numpy
from kernull._typing import Array, Indices
from kernull.detector.fisher import FisherMethod
from kernull.detector.scores import Evidence, read_scores
from kernull.detector.sum import Sum
from kernull.errors import MissingCapabilityError, OutlierLabelsWarning, warn
from kernull.mkl.balls import is_ball
from kernull.operators import DenseStack
from kernull.views import resolve_views
from kernull.views.columns import (
    column_names,
    date_columns,
    listed,
    not_finite,
    not_numeric,
    text_columns,
)


def read_table(estimator: Any, X: Any, *, reset: bool) -> Array:
    """A float64 table from arrays, pandas or polars, with scikit-learn's checks."""
    if isinstance(X, DenseStack):
        raise TypeError(
            "X: got a stack of kernels; pass kernels='precomputed', or a table of shape (n, d)."
        )
    # Of columns with names, only those that a view reads must be numbers.
    used = read_used_columns(estimator, X, reset=reset) if hasattr(X, "columns") else None
    if used is not None:
        return used
    plain = isinstance(X, np.ndarray) and X.dtype.kind not in ("m", "M")
    if not plain and (dates := date_columns(X)):
        raise ValueError(not_numeric(dates))
    try:
        return np.asarray(
            validate_data(
                estimator, X, reset=reset, dtype=np.float64, ensure_min_samples=3 if reset else 1
            )
        )
    except (ValueError, TypeError) as error:
        if str(error).startswith(("Input X contains NaN", "Input X contains infinity")):
            raise ValueError(
                not_finite(X, not reset and hasattr(estimator, "contributions"))
            ) from error
        text = [] if isinstance(error, TypeError) and not hasattr(X, "columns") else text_columns(X)
        if not text:
            raise
        raise ValueError(not_numeric(text)) from error


def check_labels(X: Any, y: Any, *, stacklevel: int = 1) -> None:
    """Refuse a y of another length than X; warn where it marks rows as outliers (-1).

    These are learned from like all others.
    """
    if y is None:
        return
    rows, count = _length(X), _length(y)
    if rows is not None and count is not None and rows != count:
        raise ValueError(
            "y: Found input variables with inconsistent numbers of samples: "
            f"{[rows, count]} (of X and of y)."
        )
    labels = np.asarray(as_numpy(y))
    if labels.dtype.kind not in "iuf" or not (count := int((labels == -1).sum())):
        return
    if np.array_equal(labels, np.round(labels)):
        warn(
            f"y: {count:,} of {labels.size:,} rows are marked -1, as outliers, and are learned "
            "from like all others: y is ignored. Pass the normal rows alone: fit(X[y == 1]).",
            OutlierLabelsWarning,
            stacklevel=stacklevel + 1,
        )


def _length(values: Any) -> int | None:
    """Rows of a table, labels, or kernels; None where that is not known or has another meaning."""
    shape = getattr(values, "shape", None)
    if shape is None and isinstance(values, list | tuple):
        shape = np.shape(values) if values and np.ndim(values[0]) > 1 else (len(values),)
    if not shape:
        return None
    rows = shape[1] if len(shape) == 3 else shape[0]  # kernels are (J, n, n)
    return int(rows) if isinstance(rows, int | np.integer) else None


def read_weights(sample_weight: Any, X: Any) -> Array | None:
    """Row weights, or None where all are one."""
    if sample_weight is None:
        return None
    rows = _num_samples(X)
    if len(getattr(X, "shape", ())) == 3:  # an array of kernels, (J, n, n)
        rows = X.shape[1]
    placeholder = np.empty((rows, 1))
    try:
        weight = np.asarray(
            _check_sample_weight(
                sample_weight, placeholder, dtype=np.float64, ensure_non_negative=True
            )
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight: {error}") from error
    if np.count_nonzero(weight) < 3:
        raise ValueError(
            "sample_weight: fewer than 3 rows have a positive weight; expected at least 3."
        )
    return None if (weight == 1.0).all() else weight


def read_partial_table(estimator: Any, X: Any, ignore: Indices) -> Array:
    """A table of which some columns may hold anything, NaN included; they are set to zero.

    Columns with names may be absent altogether.
    """
    used = read_used_columns(estimator, X, reset=False, ignore=ignore)
    if used is not None:
        return used
    table = np.array(
        validate_data(estimator, X, reset=False, dtype=np.float64, ensure_all_finite=False)
    )
    table[:, ignore] = 0.0
    if not np.isfinite(table).all():
        raise ValueError(not_finite(table, scoring=True))
    return table


def read_used_columns(
    estimator: Any, X: Any, *, reset: bool, ignore: Indices | None = None
) -> Array | None:
    """A table of which columns that no view reads may hold anything, or be absent when scoring.

    They are zero in what is returned. None where every column counts, or has no name: then
    scikit-learn's own checks apply to all of them. What is read say the ``views`` of the estimator,
    and its ``bank_`` once it is fitted; ``ignore`` are columns of the fit that need not be there.
    """
    names = column_names(X)
    if names is None:
        return None
    if reset:
        if not isinstance(estimator.views, Mapping):
            return None
        views = resolve_views(estimator.views, len(names), names)
        used = np.unique(np.concatenate(list(views.values())))
        if len(used) == len(names):
            return None
        validate_data(estimator, X, reset=True, skip_check_array=True)  # remembers the names
        return _fill(estimator, X, names, used, len(names), rows=3)
    known = getattr(estimator, "feature_names_in_", None)
    by_name = isinstance(estimator.views, Mapping) or ignore is not None
    if known is None or not by_name:
        return None
    used = np.unique(np.concatenate([view.columns for view in estimator.bank_.views]))
    if ignore is not None:
        used = np.setdiff1d(used, ignore)
    wanted = [str(known[i]) for i in used]
    absent = [name for name in wanted if name not in set(names)]
    if absent:
        raise ValueError(
            f"X: lacks the columns {listed(absent)}, which the model reads. Columns that no view "
            "reads may be absent; so may those of missing_views, where the model takes them."
        )
    return _fill(estimator, X, wanted, used, len(known), rows=1)


def _fill(estimator: Any, X: Any, names: list[str], used: Indices, width: int, rows: int) -> Array:
    wanted = names if len(names) == len(used) else [names[i] for i in used]
    text = text_columns(X[wanted])
    if text:
        raise ValueError(f"{not_numeric(text)} Columns that no view reads may stay.")
    checks: dict[str, Any] = {"ensure_min_samples": rows, "ensure_all_finite": False}
    values = check_array(X[wanted], dtype=np.float64, estimator=estimator, input_name="X", **checks)
    if not np.isfinite(values).all():
        raise ValueError(not_finite(X[wanted], rows == 1 and hasattr(estimator, "contributions")))
    table = np.zeros((len(values), width))
    table[:, used] = values
    return table


#: The norm of the weights of a sum under ``p="auto"``, and the relative ridge under
#: ``delta="auto"``; see docs/results/defaults.md for what they were compared with.
AUTO_P = 1.5
AUTO_DELTA = 1e-2
SCORE_TYPES = ("projection", "distance")
#: Parameters that the method takes as they are.
AS_THEY_ARE = ("r", "kernel_groups", "solver", "max_iter", "score_type")
_DTYPES = {"float64": np.float64, "float32": np.float32}


def read_dtype(dtype: Any) -> Any:
    """The floating type that ``dtype`` stands for."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in _DTYPES:
        raise ValueError(f"dtype: got {dtype!r}; expected 'float64' or 'float32'.")
    return _DTYPES[name]


def check_number(name: str, value: Any, expected: str, low: float, *, strict: bool = True) -> float:
    """A finite number above (or at) ``low``, or an error that names the parameter."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or (value <= low if strict else value < low):
        raise ValueError(f"{name}: got {value!r}; expected {expected}.")
    return float(value)


def by_evidence(estimator: Any) -> bool:
    """Whether the model decides, or once fitted will decide, by evidence."""
    model = vars(estimator).get("model_")
    unclean = getattr(estimator, "contamination", None) is not None
    if unclean and model is not None and not model.decides_by_evidence:
        raise AttributeError("with contamination, the sum of the kernels decides: no evidence.")
    if model is not None:
        return bool(model.decides_by_evidence)
    return estimator.decision == "evidence" or isinstance(estimator.decision, Evidence)


def read_decision(estimator: Any) -> Evidence | None:
    """How the model decides: by evidence, or by the sum over kernels (None)."""
    decision = estimator.decision
    known: dict[str, Evidence | Sum] = {"evidence": Evidence(), "sum": Sum()}
    if isinstance(decision, str) and decision in known:
        decision = known[decision]
    if isinstance(decision, Sum):
        return None
    if not isinstance(decision, Evidence):
        raise ValueError(
            f"decision: got {decision!r}; expected 'evidence' (each view calibrated by itself), "
            "'sum' (the paper's projection), Evidence(...) or Sum()."
        )
    read_scores(decision.scores)
    if estimator.score_type != "projection":
        raise MissingCapabilityError(
            f"score_type: got {estimator.score_type!r}, which is about the projection of the "
            "paper; use decision='sum', or score_type='projection'."
        )
    return decision


def read_method(estimator: Any) -> FisherMethod:
    """How weights are learned, from checked parameters."""
    if estimator.score_type not in SCORE_TYPES:
        raise ValueError(
            f"score_type: got {estimator.score_type!r}; expected one of {SCORE_TYPES}."
        )
    p, delta = estimator.p, estimator.delta
    if isinstance(p, str):
        if p != "auto":
            raise _not_a_norm(p)
        p = AUTO_P if read_decision(estimator) is None else p
    elif isinstance(p, bool) or not (isinstance(p, int | float | np.number) or is_ball(p)):
        raise _not_a_norm(p)
    automatic = isinstance(delta, str) and delta == "auto"
    expected = "'auto', or a positive number (relative to n)"
    return FisherMethod(
        p=p,
        delta=AUTO_DELTA if automatic else check_number("delta", delta, expected, 0.0),
        tol=check_number("tol", estimator.tol, "a positive number", 0.0),
        verbose=getattr(estimator, "verbose", 0),
        **{name: getattr(estimator, name) for name in AS_THEY_ARE},
    )


def _not_a_norm(p: Any) -> ValueError:
    return ValueError(f"p: got {p!r}; expected a number of at least 1, a ball, or 'auto'.")


@contextmanager
def rollback_on_error(estimator: Any) -> Iterator[None]:
    """Put all attributes back when the block raises.

    Attributes must be replaced in the block, never changed in place.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:  # an interrupted update is a failed one
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
