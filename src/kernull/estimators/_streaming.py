"""Fitting from rows that are read block by block: Nystroem in feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull.calibration import Calibration, left_out_projections
from kernull.calibration.sampled import SAMPLE_ROWS
from kernull.errors import MissingCapabilityError
from kernull.estimators._atomic import rollback_on_error
from kernull.estimators._auto import read_delta, read_p, scalings_of, widths_of
from kernull.estimators._inputs import check_number
from kernull.estimators._leaks import leaking_view, warn_of_leak
from kernull.estimators._weights import weight_ball
from kernull.estimators.fisher import MultiKernelFisherNull
from kernull.problems import FisherProblem
from kernull.solvers import solve
from kernull.stacks import KernelSet, choose_landmarks
from kernull.stacks.features import FeatureGram, Features
from kernull.stacks.memory import check_stream_memory, parse_memory_limit
from kernull.stacks.normalise import read_normalisation
from kernull.stacks.planner import check_landmarks
from kernull.stacks.sources import Source, open_source, sample_rows
from kernull.views import resolve_views

__all__ = ["fit_stream"]

#: Rows from which scaling, widths and landmarks are learned.
PILOT_ROWS = 20_000


def fit_stream(model: MultiKernelFisherNull, source: Any) -> MultiKernelFisherNull:
    """Fit a model to rows that do not fit memory, by Nystroem in two sweeps over them.

    The first sweep draws a pilot sample (scaling, widths, landmarks and the calibration rows come
    from it), the second sums the Gram matrix of the features. The problem that is left is exact
    for the Nystroem kernels and has J x ``landmarks`` unknowns; its gap is certified as always.

    Parameters
    ----------
    model : MultiKernelFisherNull
        With its parameters; ``landmarks`` is the number of landmark rows, of which J times as many
        unknowns come: their matrices must fit ``memory_limit``. Calibration is by
        leave-one-out (``calibration="split"`` is refused), storage that of Nystroem. An earlier
        fit is forgotten; if this one fails, the model stays as it was.
    source : array-like, np.memmap, Zarr array, path of a Parquet or .npy file, or Source
        The rows, read block by block.

    Returns
    -------
    the model, fitted

    Examples
    --------
    >>> import numpy as np
    >>> from kernull import MultiKernelFisherNull
    >>> X = np.random.default_rng(0).standard_normal((3000, 4))
    >>> model = fit_stream(MultiKernelFisherNull(landmarks=50), X)
    >>> bool(model.gap_ <= 1e-6), model.coef_.shape  # two scalings of one view
    (True, (2, 50))
    """
    _check_options(model)
    with rollback_on_error(model):
        _forget_earlier_fit(model)
        _fit(model, open_source(source))
    return model


def _fit(model: MultiKernelFisherNull, rows: Source) -> None:
    delta, p = read_delta(model.delta), read_p(model.p)
    tol = check_number("tol", model.tol, "a positive number", 0.0)
    n, d = rows.shape
    pilot = sample_rows(rows, max(PILOT_ROWS, model.landmarks))
    model.n_features_in_ = d
    bank = KernelSet.fit(
        pilot,
        resolve_views(model.views, d),
        kernels=model.kernels,
        widths=model.widths,
        scaling=model.scaling,
        drop_constant=model.drop_constant,
    )
    leak = leaking_view(bank, bank.n)
    if leak is not None:
        warn_of_leak(leak, bank.n)
    ball = weight_ball(p, model.r, model.kernel_groups, bank, bank.J)
    limit = parse_memory_limit(model.memory_limit)
    check_stream_memory(bank.J, min(model.landmarks, bank.n), limit)
    model.bank_ = bank.take(choose_landmarks(bank, model.landmarks))
    model.kernel_names_ = np.array(bank.kernel_names, dtype=object)
    model.delta_, model.p_, model.scale_ = delta, float(p), np.ones(bank.J)
    model.scaling_, model.widths_ = scalings_of(bank), widths_of(bank)
    gram = FeatureGram(Features(model.bank_)).add(rows.blocks())
    stack, target = gram.reduce()
    ridge = delta * n
    problem = FisherProblem(stack, ridge, target)
    result = solve(problem, ball, model.solver, tol=tol, max_iter=model.max_iter)
    model.weights_, model.gap_ = result.weights, result.gap
    model.n_iter_, model.history_, model.solver_ = result.n_iter, result.history, result.solver
    # The solver's own coefficients are as good as its certificate asks; thresholds want exact ones.
    model.coef_ = gram.landmark_coefficients(problem.evaluate(result.weights).coef)
    model._stack_shape = (bank.J, model.bank_.n)
    # The pilot keeps the order of the source, which may be that of time: draw from all of it.
    sample = np.random.default_rng(1).permutation(len(pilot))[:SAMPLE_ROWS]
    inverse, a = gram.inverse_entries(pilot[sample], result.weights, ridge)
    scores = model._of_projection(left_out_projections(inverse, a, ridge))
    model.calibration_ = Calibration.of(scores, smooth=True)
    model.threshold_, model.false_alarm_rate_ = model.calibration_.threshold(model.false_alarm_rate)
    model.offset_ = model.threshold_


def _check_options(model: MultiKernelFisherNull) -> None:
    """Refuse what rows that come in blocks cannot offer, before they are read."""
    if model._pairwise:
        raise MissingCapabilityError(
            "kernels: got 'precomputed'; fit_stream reads rows and evaluates kernels itself. Name "
            "the kernels, or call fit with the stack."
        )
    if model.calibration in ("split", "folds"):
        raise MissingCapabilityError(
            f"calibration: got {model.calibration!r}; fit_stream learns from all rows and "
            "calibrates by leave-one-out. Use calibration='loo', or fit on rows that fit memory."
        )
    if model.storage not in ("auto", "nystroem"):
        raise MissingCapabilityError(
            f"storage: got {model.storage!r}; fit_stream keeps landmarks. Use 'auto' or "
            "'nystroem', or fit on rows that fit memory."
        )
    if read_normalisation(model.normalize) > 0 or model.reference is not None:
        raise MissingCapabilityError(
            f"normalize, reference: got {model.normalize!r} and {model.reference!r}; fit_stream "
            "offers neither. Use normalize='none' and reference=None, or fit on rows that fit "
            "memory."
        )
    model._hold_out(0, None)  # checks the name of the calibration
    model._check_score()
    model._value_type()
    check_landmarks(model.landmarks)


def _forget_earlier_fit(model: MultiKernelFisherNull) -> None:
    """Drop whatever is neither a parameter nor a request for metadata."""
    kept = {*model.get_params(deep=False), "_metadata_request"}
    for name in set(vars(model)) - kept:
        delattr(model, name)
