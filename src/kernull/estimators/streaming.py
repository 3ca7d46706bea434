"""Fitting from rows that are read block by block: Nystroem in feature space."""

from __future__ import annotations

from typing import Any

from kernull.errors import MissingCapabilityError
from kernull.estimators.fisher import MultiKernelFisherNull
from kernull.estimators.inputs import rollback_on_error
from kernull.models.streaming import stream
from kernull.stacks.sources import open_source
from kernull.views import resolve_views


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

    Examples
    --------
    >>> import numpy as np
    >>> from kernull import MultiKernelFisherNull
    >>> X = np.random.default_rng(0).standard_normal((3000, 4))
    >>> model = fit_stream(MultiKernelFisherNull(landmarks=50), X)
    >>> bool(model.gap_ <= 1e-6), model.coef_.shape  # three scalings of one view
    (True, (3, 50))
    """
    _check_options(model)
    rows = open_source(source)
    with rollback_on_error(model):
        model.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        model.n_features_in_ = rows.shape[1]
        views = resolve_views(model.views, rows.shape[1])
        model.model_ = stream(model.learning_method(), rows, views, model.learning_settings())
    return model


def _check_options(model: MultiKernelFisherNull) -> None:
    """Refuse what rows that come in blocks cannot offer, before they are read."""
    if isinstance(model.kernels, str) and model.kernels == "precomputed":
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
    if model.reference is not None:
        raise MissingCapabilityError(
            f"reference: got {model.reference!r}; fit_stream has no rows of reference. Use "
            "reference=None, or fit on rows that fit memory."
        )
