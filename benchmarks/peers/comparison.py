"""Many methods on the same rows, one line each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from benchmarks.peers.registry import KERNEL_SETTINGS, Method, get_method, method_names
from kernull.errors import MissingDependencyError, collected


class Row(NamedTuple):
    """One method's line of a comparison."""

    method: str
    auc: float | None  #: Area under the ROC curve on the test rows; None where it could not run.
    gap: float | None  #: Relative duality gap of the kernel weights, where they are learned.
    iterations: int | None  #: Of the solver, where there is one.
    seconds: float  #: Time of fit and scoring.
    note: str = ""  #: What a reader must know: not converged, not installed.


def compare(
    X_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    methods: Iterable[str] | None = None,
    callback: Callable[[Row], None] | None = None,
    **settings: Any,
) -> list[Row]:
    """Fit methods to the same rows of one class, and score the same test rows.

    Every method runs with its default parameters and the settings given; nothing is tuned.

    Parameters
    ----------
    X_train : table of shape (n, d), or kernels of shape (J, n, n)
        Rows of the target class.
    X_test : table of shape (m, d), or kernels of shape (J, m, n)
    y_test : array of shape (m,)
        +1 for targets, -1 for outliers.
    methods : iterable of str, optional
        Names as `get_method` takes them; by default all that can run on these inputs.
    callback : callable, optional
        Called with each row as soon as it is known, for progress.
    **settings
        Given to every method that has them: ``kernels``, ``views``, ``widths``, ``scaling`` and
        so on. Parameters that only some methods have (``p``, ``nu``) go to those alone.

    Returns
    -------
    list of Row
        A method whose extra is not installed has no AUC and says so in its note.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> train = X[y == 0][::2]
    >>> test, labels = X[1::2], [1 if c == 0 else -1 for c in y[1::2]]
    >>> rows = compare(train, test, labels, methods=["FN-Average", "MK-SVDD"], views="features")
    >>> [row.method for row in rows], all(row.auc > 0.9 for row in rows)
    (['FN-Average', 'MK-SVDD'], True)
    """
    precomputed = isinstance(settings.get("kernels"), str) and settings["kernels"] == "precomputed"
    # Wrong names are told before any work.
    chosen = [get_method(name) for name in (method_names() if methods is None else methods)]
    if methods is None:
        takes = {"fused", "weights"} if precomputed else {"fused", "weights", "table"}
        chosen = [method for method in chosen if method.kind in takes]
    known = {method.name: _parameters(method) for method in chosen}
    every = set(KERNEL_SETTINGS).union(*known.values())
    if unknown := [name for name in settings if name not in every]:  # a slip of the pen
        raise ValueError(
            f"{unknown[0]}: none of the methods has this parameter; expected one of "
            f"{', '.join(sorted(every))}."
        )
    rows = []
    for method in chosen:
        own = {name: value for name, value in settings.items() if name in known[method.name]}
        row = _run(method, X_train, X_test, y_test, own)
        rows.append(row)
        if callback is not None:
            callback(row)
    return rows


def _run(method: Method, X: Any, X_test: Any, y_test: Any, settings: dict[str, Any]) -> Row:
    started = time.perf_counter()
    try:
        model = method.make(**settings)
        with collected(ConvergenceWarning) as unfinished:  # the note says it
            scores = model.fit(X).score_samples(X_test)
    except MissingDependencyError as error:
        return Row(method.name, None, None, None, time.perf_counter() - started, str(error))
    seconds = time.perf_counter() - started
    gap = getattr(model, "gap_", None)
    return Row(
        method=method.name,
        auc=float(roc_auc_score(y_test, scores)),
        gap=None if gap is None else float(gap),
        iterations=getattr(model, "n_iter_", None),
        seconds=seconds,
        note="not converged" if unfinished else "",
    )


def _parameters(method: Method) -> set[str]:
    """The settings that a method has, and those it knows to leave aside."""
    with contextlib.suppress(MissingDependencyError):
        return {*method.make().get_params(), *KERNEL_SETTINGS}
    return set(KERNEL_SETTINGS)
