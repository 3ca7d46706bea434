"""What a report shows of the model itself: weights, views, columns, cautions."""

from __future__ import annotations

from typing import Any

from kernull.detector.cautions import warn_of_views
from kernull.errors import DominantViewWarning, collected
from kernull.estimators.base import Certified, OneClassKernelEstimator
from kernull.estimators.fisher import FisherParameters

#: Training rows that were set aside, of which so many are named.
MAX_SUSPECTS = 10
#: Views whose share in the decision a caution names.
MAX_NAMED = 4


def model_card(verdicts: Any) -> dict[str, Any]:
    """What a report shows of the model that judged rows (`kernull.judge.Verdicts`), by name."""
    judge = verdicts.judge
    model, table = judge.at_rate(verdicts.rate).model_, judge.table_
    certified, calibration = isinstance(model, Certified), model.calibration_
    return {
        "estimator": type(model.estimator if judge.kernel_set is None else model).__name__,
        "n_train": judge.n_learned,
        "n_features": len(table.used_),
        "rate": float(model.false_alarm_rate_),
        "threshold": float(model.threshold_),
        "views": _views(model),  # name and weight, or share in the decision
        "kernels": _kernels(model),  # name, view and weight
        "gap": model.gap_ if certified else None,
        "tol": model.tol_ if certified else None,
        "converged": certified and model.gap_ <= model.tol_,
        "n_iter": model.n_iter_ if certified else None,
        "solver": model.solver_ if certified else None,
        "calibration_rows": round(calibration.total),
        "held_out": not calibration.smooth,
        "parameters": [(name, repr(value)) for name, value in sorted(judge.get_params().items())],
        "columns": list(table.view_columns().items()),
        "cautions": _cautions(model),
        "by_evidence": bool(_shares_by_view(model)),
    }


def _cautions(model: Any) -> tuple[str, ...]:
    """What a reader should know of the model before trusting it, in words."""
    cautions = []
    if shares_of_views := _shares_by_view(model):
        with collected(DominantViewWarning) as messages:
            warn_of_views(model.model_.rule, model.model_.kernels.views)
        most = sorted(shares_of_views.items(), key=lambda item: -item[1])[:MAX_NAMED]
        shares = ", ".join(f"{name} {share:.0%}" for name, share in most)
        for message in messages:
            text = message.removeprefix("views: ")
            cautions.append(
                f"{text[:1].upper()}{text[1:]} In the decision, a view whose rows look like mixed "
                f"cells counts less; most count: {shares}."
            )
    by_kernels = isinstance(model, FisherParameters)
    share, suspects = (model.contamination, model.suspects_) if by_kernels else (None, ())
    shown = "rows " + ", ".join(f"{i + 1:,}" for i in suspects[:MAX_SUSPECTS])
    shown += f" and {len(suspects) - MAX_SUSPECTS:,} more" * (len(suspects) > MAX_SUSPECTS)
    words = f"{len(suspects):,} training rows stood"
    if share is None and len(suspects):
        cautions.append(f"{words} apart and were learned from as normal ({shown}).")
    elif share is not None:
        words = f"{words} out and hardly count ({shown})"
        if not len(suspects):  # a file keeps the share alone
            words = f"The {share:.0%} of the training rows that stood out most hardly count"
        cautions.append(f"{words}: the model knows that not all of them are normal.")
    return tuple(cautions)


def _kernels(model: Any) -> tuple[tuple[str, str, float], ...]:
    if not isinstance(model, Certified):
        return ()
    names, views = map(str, model.kernel_names_), map(str, model.model_.kernels.views)
    return tuple(zip(names, views, map(float, model.weights_), strict=True))


def _views(model: Any) -> tuple[tuple[str, float], ...]:
    """Name and weight (sum over kernels) of each view.

    Of a model that decides by evidence, the weight is its share in the decision.
    """
    totals: dict[str, float] = _shares_by_view(model)
    for _, view, weight in () if totals else _kernels(model):
        totals[view] = totals.get(view, 0.0) + weight
    return tuple(totals.items())


def _shares_by_view(model: Any) -> dict[str, float]:
    """The share of each view in what evidence is multiplied by; empty for other decisions."""
    if not isinstance(model, OneClassKernelEstimator) or not model.model_.decides_by_evidence:
        return {}
    rule = model.model_.rule
    weights = rule.by_kernel_weights
    totals: dict[str, float] = {}
    for view, part in zip(
        map(str, model.model_.kernels.views), weights / weights.sum(), strict=True
    ):
        totals[view] = totals.get(view, 0.0) + float(part)
    return totals
