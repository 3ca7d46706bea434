"""Adapters for the ``nonconform`` package: weighted and online control of the same scores.

kernull's own p-values and ``detect`` cover exchangeable rows in one batch. Where new rows come
from a shifted distribution, or one at a time, ``nonconform`` has the procedures; these functions
hand it a kernull model with the right polarity (higher is more normal) and nothing else.
"""

from __future__ import annotations

from typing import Any

from kernull.errors import need

POLARITY = "higher_is_normal"


def to_nonconform(model: Any, calibration_rows: Any = None, **options: Any) -> Any:
    """A ``nonconform.ConformalDetector`` around a model.

    Parameters
    ----------
    model : estimator
        Unfitted: the detector's own ``fit`` splits, fits and calibrates. Fitted: pass
        ``calibration_rows``.
    calibration_rows : table, optional
        Normal rows that a fitted model has not seen; its scores there are the calibration.
    **options
        Further arguments of ``ConformalDetector``: ``weight_estimator`` (weighted conformal
        selection under covariate shift), ``strategy``, ``estimation``, ``seed``, ...

    Returns
    -------
    nonconform.ConformalDetector

    Examples
    --------
    >>> from kernull import MultiKernelFisherNull
    >>> from nonconform import logistic_weight_estimator  # doctest: +SKIP
    >>> detector = to_nonconform(
    ...     MultiKernelFisherNull(), weight_estimator=logistic_weight_estimator()
    ... )  # doctest: +SKIP
    >>> detector.fit(normal_rows).select(new_rows, alpha=0.1)  # doctest: +SKIP
    """
    nonconform = _require_nonconform()
    strategy = options.pop("strategy", None)
    if strategy is None:
        strategy = nonconform.Split(n_calib=getattr(model, "calibration_fraction", 0.25))
    detector = nonconform.ConformalDetector(
        detector=model, strategy=strategy, score_polarity=POLARITY, **options
    )
    return detector if calibration_rows is None else detector.calibrate(calibration_rows)


def to_monitor(model: Any, **options: Any) -> Any:
    """A ``nonconform.monitoring.ExchangeabilityMonitor`` around a model, for streams.

    Parameters
    ----------
    model : estimator
        Unfitted; the monitor's ``fit`` fits it once, ``prime`` takes reference rows, and each
        ``update`` weighs the evidence that the stream has changed.
    **options
        Further arguments: ``martingale``, ``conformalizer``, ``seed``.

    Returns
    -------
    nonconform.monitoring.ExchangeabilityMonitor
    """
    _require_nonconform()
    from nonconform.monitoring import ExchangeabilityMonitor

    return ExchangeabilityMonitor(model, score_polarity=POLARITY, **options)


def _require_nonconform() -> Any:
    return need(
        "nonconform",
        "weighted and online control need the package nonconform (Python 3.12 or newer): "
        "pip install kernull[nonconform].",
    )
