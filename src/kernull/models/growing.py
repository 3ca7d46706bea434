"""Models that grow and shrink row by row: functions from one model to the next.

Kernel weights, widths, scaling and the absolute ridge stay those of the last learning; the model
then equals a refit given these. The inverse of the ridge system is kept from the first update on
(n^2 numbers). Calibration is by leave-one-out.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from kernull._typing import Array, Indices
from kernull.calibration import LeftOut, leaking_view, left_out_projections, warn_of_leak
from kernull.calibration.calibrators import check_seed
from kernull.calibration.left_out_distances import trust
from kernull.calibration.left_out_scores import lower_ties
from kernull.errors import MissingCapabilityError, TooFewRowsWarning
from kernull.models.evidence import evidence_of_rows
from kernull.models.fisher import FisherMethod
from kernull.models.kernels import GivenKernels, ModelKernels, TableKernels, Training
from kernull.models.model import Growth, KernelModel, calibrate
from kernull.models.rules import EvidenceRule
from kernull.problems import RidgeInverse
from kernull.stacks import DenseStack, check_memory
from kernull.stacks.given import normalised, read_precomputed, with_scale

#: A first batch below this says little about scales: their standard error is above 13 percent.
FEW_ROWS = 30
#: Evidence of fewer rows than these per column of a whitened view flags too many: 7 to 34% where 5%
#: are asked for, of Gaussian columns (20, 30, 64) whose first 120 rows set the scaling and 30 or 60
#: stay; 5 to 7% with more.
ROWS_PER_COLUMN = 4
#: What to do about that: rows cannot be held out of a model that grows.
ADVICE = "Keep more rows (max_samples), use another scaling, or fit the kept rows anew."


def ready(model: KernelModel, limit: int, stack: DenseStack | None = None) -> KernelModel:
    """The model, just fitted or loaded, with the inverse that growing needs, in so many bytes.

    ``stack`` has the kernels given to fit, where they were given: the model does not keep them.
    """
    if model.rule.coef.ndim != 1:
        raise MissingCapabilityError(
            "partial_fit and forget: a model with storage='nystroem' keeps its landmarks only; "
            "fit it anew, or use another storage."
        )
    if model.decides_by_evidence and not isinstance(model.kernels, TableKernels):
        raise MissingCapabilityError(
            "partial_fit and forget: a model of precomputed kernels that decides by evidence "
            "would need all of them again; use decision='sum', or fit again."
        )
    if model.growth is not None and model.growth.inverse is not None:
        return model
    # After fit: rows of weight zero were given and are not there.
    rows = np.arange(model.kernels.n) if model.learned is None else model.learned
    if isinstance(model.kernels, TableKernels):
        check_memory(2, model.kernels.n, 8, limit)
        inverse = model.current_inverse()
    elif stack is not None:
        assert model.system is not None
        stack = normalised(stack[np.ix_(rows, rows)], model.kernels.factors)
        inverse = model.system.inverse(stack.combine(model.rule.weights))
    else:
        raise MissingCapabilityError(
            "partial_fit and forget: a model fitted on precomputed kernels does not keep them. "
            "Call partial_fit instead of fit from the first rows on."
        )
    seen = replace(model.growth, n_updates=0) if model.growth else Growth(rows, model.n_given)
    return _from_inverse(model, inverse, model.kernels, seen)


def grow(
    model: KernelModel,
    X: Any,
    weight: Array | None,
    rate: float,
    dtype: Any,
    budget: int | None = None,
    seed: Any = 0,
) -> KernelModel:
    """The model with more rows: a checked table, or kernels (J, k, n + k) to all rows.

    With a budget the rows kept are a uniform sample of all seen (see `beyond_budget`).
    """
    kernels, growth = model.kernels, _growth(model)
    if not isinstance(kernels, TableKernels):
        X = _given_parts(model, kernels, X, dtype)  # checked, whichever rows enter
    k = len(X) if isinstance(kernels, TableKernels) else len(X[0])
    weight = np.ones(k) if weight is None else weight.copy()
    new = np.flatnonzero(weight > 0)
    weight[new] = trust(weight[new], len(new))  # against the other rows of this call
    indices = np.concatenate([growth.indices, growth.n_seen + new])
    gone = beyond_budget(indices, budget, seed)
    new = np.delete(new, gone[gone >= kernels.n] - kernels.n)  # these never enter
    gone = gone[gone < kernels.n]
    grown = replace(model, growth=replace(growth, n_seen=growth.n_seen + k))
    if len(new):
        grown = _with_rows(grown, X, new, growth.n_seen + new, weight[new])
    return _calibrated(_without(grown, gone) if len(gone) else grown, rate)


def beyond_budget(indices: Indices, budget: int | None, seed: Any) -> Indices:
    """Positions of the rows to drop, given the numbers of all rows among those ever seen.

    Every row has a draw that its number and the seed alone decide; those of the lowest draws
    stay. So the rows kept are at any time a uniform sample of all seen, the same one however
    these came in batches. Calibration needs that: among rows kept for being hard to explain by
    the others, odd ones are usual, and thresholds would be those of odd rows.
    """
    if budget is None or len(indices) <= budget:
        return np.empty(0, dtype=np.intp)
    whole = isinstance(seed, int | np.integer)  # a generator would draw anew for rows held
    start = check_seed(seed if whole else 0).randint(2**63, dtype=np.uint64)
    z = start + (indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # splitmix64
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.sort(np.argsort(z ^ (z >> np.uint64(31)), kind="stable")[budget:])


def drop(model: KernelModel, rows: Indices, rate: float) -> KernelModel:
    """The model without some of its rows."""
    return _calibrated(_without(model, rows), rate)


def kept_to(model: KernelModel, budget: int | None, seed: Any, rate: float) -> KernelModel:
    """The model within its budget."""
    gone = beyond_budget(_growth(model).indices, budget, seed)
    return drop(model, gone, rate) if len(gone) else model


def relearn(
    model: KernelModel, method: FisherMethod, rate: float, dtype: Any, limit: int
) -> KernelModel:
    """Learn the kernel weights again on all rows, starting from the present ones."""
    kernels, system, growth = model.kernels, model.system, _growth(model)
    assert isinstance(kernels, TableKernels)
    assert system is not None
    check_memory(kernels.set.J, kernels.n, np.dtype(dtype).itemsize, limit)
    stack = DenseStack(kernels.set.stack(dtype).kernels, kernels.scale)
    training = Training(kernels, stack)
    fit = FisherMethod.learn(method, training, system.row_weight, init=model.rule.weights)
    inverse = fit.system.inverse(stack.combine(fit.rule.weights))
    rule = _with_projection(model.rule, weights=fit.rule.weights, coef=fit.rule.coef)
    learned = replace(model, rule=rule, system=fit.system, certificate=fit.certificate)
    return _calibrated(_from_inverse(learned, inverse, kernels, replace(growth, n_updates=0)), rate)


def check_relearning(model: KernelModel) -> None:
    """Refuse what does not keep the kernels of its rows."""
    if not isinstance(model.kernels, TableKernels):
        raise MissingCapabilityError(
            "relearn: with precomputed kernels the model keeps their weighted sum only; fit again "
            "on the kernels of all rows."
        )


# -- the steps ---------------------------------------------------------------------------------


def _growth(model: KernelModel) -> Growth:
    assert model.growth is not None
    return model.growth


def _with_rows(
    model: KernelModel, X: Any, new: Indices, numbers: Indices, weight: Array
) -> KernelModel:
    """The model with some rows of X: a table, or kernels to rows held and among new ones."""
    kernels, growth = model.kernels, _growth(model)
    if isinstance(kernels, TableKernels):
        scaled = model.rule.weights * kernels.scale
        cross = kernels.set.combine(scaled, X[new])
        square = kernels.set.with_rows(X[new]).combine(scaled)
        kernels = replace(kernels, set=kernels.set.extend(X[new]))
    else:
        cross, square = X[0][new], X[1][np.ix_(new, new)]
    inverse = model.current_inverse().append(cross, square, weight)
    after = replace(growth, indices=np.concatenate([growth.indices, numbers]))
    return _changed(model, inverse, kernels, after, len(new))


def _without(model: KernelModel, rows: Indices) -> KernelModel:
    inverse, kernels, growth = model.current_inverse().remove(rows), model.kernels, _growth(model)
    keep = np.setdiff1d(np.arange(model.kernels.n), rows)
    if isinstance(kernels, TableKernels):
        kernels = replace(kernels, set=kernels.set.take(keep))
    after = replace(growth, indices=growth.indices[keep])
    return _changed(model, inverse, kernels, after, len(rows))


def _changed(
    model: KernelModel, inverse: RidgeInverse, kernels: ModelKernels, growth: Growth, rows: int
) -> KernelModel:
    """The model after rows came or went; its inverse anew once as many did as there are.

    The certificate was that of other rows: it is gone until the weights are learned again.
    Rounding adds up over updates; spread over so many of them, a fresh start costs no more than
    they do.
    """
    n_updates = growth.n_updates + rows
    if isinstance(kernels, TableKernels) and n_updates > inverse.n:
        kernel = kernels.set.combine(model.rule.weights * kernels.scale)
        inverse = RidgeInverse.of(kernel, inverse.ridge, inverse.row_weight, overwrite=True)
        n_updates = 0
    model = replace(model, certificate=None)
    return _from_inverse(model, inverse, kernels, replace(growth, n_updates=n_updates))


def _from_inverse(
    model: KernelModel, inverse: RidgeInverse, kernels: ModelKernels, growth: Growth
) -> KernelModel:
    """All that follows from the inverse but the calibration, which a fresh model has already."""
    assert model.system is not None
    weight = None if (inverse.row_weight == 1.0).all() else inverse.row_weight
    if isinstance(kernels, GivenKernels):
        kernels = replace(kernels, n=inverse.n, n_given=inverse.n, learned=None)
    return replace(
        model,
        kernels=kernels,
        rule=_with_projection(model.rule, coef=inverse.coef()),
        system=replace(model.system, row_weight=weight),
        growth=replace(growth, inverse=inverse),
        learned=None,
        n_given=inverse.n,
    )


def _with_projection(rule: Any, **changes: Any) -> Any:
    """The rule with another projection; evidence is learned again when it is calibrated."""
    if isinstance(rule, EvidenceRule):
        return replace(rule, projection=replace(rule.projection, **changes))
    return replace(rule, **changes)


def _calibrated(model: KernelModel, rate: float) -> KernelModel:
    """The model with the threshold of its present rows, each left out in turn."""
    inverse, system = model.current_inverse(), model.system
    assert system is not None
    if isinstance(model.rule, EvidenceRule):
        assert isinstance(model.kernels, TableKernels)
        weight = system.row_weight
        rule = evidence_of_rows(model.kernels.set, model.rule.projection, weight, model.rule)
        scores = -rule.left_out()
        own = None if weight is None or rule.rows is None else weight[rule.rows]
        left_out = LeftOut(scores, weight if rule.rows is None else own)
        leak = leaking_view(model.kernels.set, inverse.n)
        if leak is not None and ROWS_PER_COLUMN * len(leak[0].columns) > inverse.n:
            warn_of_leak(leak, " kept", ADVICE)
        return replace(model, rule=rule, **calibrate(left_out, rate))
    coef = model.rule.coef
    own = 1.0 - inverse.ridge / inverse.row_weight * coef  # of a new row that equals one of these
    projections = np.minimum(left_out_projections(inverse.diagonal, coef), own)
    scores = lower_ties(model.rule.projection_to_score(projections))
    if isinstance(model.kernels, TableKernels):
        warn_of_leak(leaking_view(model.kernels.set, inverse.n), " kept", ADVICE)
    # Contributions belong to the old rows; they are computed anew when asked for.
    return replace(model, **calibrate(LeftOut(scores, system.row_weight), rate))


def _given_parts(
    model: KernelModel, kernels: GivenKernels, X: Any, dtype: Any
) -> tuple[Array, Array]:
    shape = np.shape(X) if not isinstance(X, DenseStack) else (X.J, *X.shape)
    k, n = (shape[-2] if len(shape) >= 2 else 0), kernels.n
    stack = read_precomputed(X, n=n + k, J=len(kernels.names), dtype=dtype)
    stack = normalised(with_scale(stack, kernels.given_scale), kernels.factors)
    combined = stack.combine(model.rule.weights)
    return combined[:, :n], combined[:, n:]


# -- what users ask for ------------------------------------------------------------------------


def read_budget(max_samples: Any) -> int | None:
    """The number of rows that a growing model may hold."""
    is_number = isinstance(max_samples, int | np.integer) and not isinstance(max_samples, bool)
    if max_samples is not None and (not is_number or max_samples < 2):
        raise ValueError(
            f"max_samples: got {max_samples!r}; expected None or a whole number of at least 2."
        )
    return None if max_samples is None else int(max_samples)


def warn_beyond_budget(rows: int, budget: int) -> None:
    """After fit, which learns from all rows: say so where max_samples asked for fewer."""
    if rows > budget:
        warnings.warn(
            f"max_samples: fit learned from all {rows} rows; max_samples={budget} bounds "
            "partial_fit alone, which will drop the rest. Call partial_fit on a new model to keep "
            "to it from the start, or fit fewer rows.",
            UserWarning,
            stacklevel=4,
        )


def warn_of_few(rows: int) -> None:
    """Say what the first rows fix, where they are few."""
    if rows < FEW_ROWS:
        warnings.warn(
            f"partial_fit: scaling, widths and kernel weights come from the first {rows} rows "
            f"and stay. Begin with at least {FEW_ROWS} rows, or fit again later.",
            TooFewRowsWarning,
            stacklevel=4,
        )


def check_growing(calibration: str, reference: Any, method: str) -> None:
    """Refuse parameters that a growing model cannot keep up."""
    if reference is not None:
        raise MissingCapabilityError(
            f"reference: {method} keeps rows of target value 1 alone; fit again on all rows, "
            "or use reference=None."
        )
    if calibration in ("split", "folds"):
        lost = "the proved rate" if calibration == "split" else "scores by refits"
        raise MissingCapabilityError(
            f"calibration: got {calibration!r}, which {method} cannot keep up: "
            f"leave-one-out would take the place of {lost}. Fit again on all rows, or call "
            "set_params(calibration='loo') first."
        )


def read_new_weights(sample_weight: Any, rows: int) -> Array | None:
    """Weights of rows to add."""
    if sample_weight is None:
        return None
    placeholder = np.empty((rows, 1))
    return np.asarray(_check_sample_weight(sample_weight, placeholder, ensure_non_negative=True))


def row_positions(indices: Any, n: int) -> Indices:
    """Unique positions from integers or a mask; at least two rows must remain."""
    values = np.atleast_1d(np.asarray(indices))
    if values.dtype == bool:
        if values.shape != (n,):
            raise ValueError(
                f"indices: got a mask of shape {values.shape}; the model holds {n} rows."
            )
        values = np.flatnonzero(values)
    is_integer = values.ndim == 1 and (values.size == 0 or values.dtype.kind in "iu")
    if not is_integer:
        raise ValueError(
            f"indices: got {indices!r}; expected positions of training rows (whole numbers) or a "
            "mask."
        )
    values = values.astype(np.intp)
    if values.size and (values.min() < 0 or values.max() >= n):
        raise ValueError(
            f"indices: got positions from {values.min()} to {values.max()}; the model holds rows "
            f"0 to {n - 1}."
        )
    if len(np.unique(values)) != len(values):
        raise ValueError("indices: a position occurs twice; expected each row once.")
    if n - len(values) < 2:
        raise ValueError(
            f"indices: would leave {n - len(values)} of {n} rows; expected at least 2 to remain."
        )
    return values
