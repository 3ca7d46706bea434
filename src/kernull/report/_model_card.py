"""What a report says of the model itself: weights, views, columns, cautions, versions."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import sklearn

from kernull._version import __version__
from kernull.detector.cautions import warn_of_views
from kernull.detector.evidence import EvidenceRule
from kernull.detector.explanation import Explanation
from kernull.errors import DominantViewWarning, collected

#: What the page was made by.
VERSIONS = (
    ("kernull", __version__), ("Python", platform.python_version()), ("NumPy", np.__version__),
    ("SciPy", scipy.__version__), ("scikit-learn", sklearn.__version__),
)  # fmt: skip
#: Training rows that were set aside, of which so many are named.
MAX_SUSPECTS = 10
#: Views whose share in the decision a caution names.
MAX_SAID = 4


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a report says of a fitted model."""

    estimator: str
    n_train: int
    n_features: int
    rate: float
    threshold: float
    views: tuple[tuple[str, float, float], ...]
    kernels: tuple[tuple[str, str, float], ...]
    gap: float | None
    tol: float | None
    gaps: tuple[float, ...]
    n_iter: int | None
    solver: str | None
    calibration_rows: int
    held_out: bool
    parameters: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...]
    cautions: tuple[str, ...]
    by_evidence: bool

    @property
    def converged(self) -> bool | None:
        """Whether the gap is within the tolerance; None where there is no gap."""
        return None if self.gap is None or self.tol is None else self.gap <= self.tol

    @classmethod
    def of(cls, model: Any, why: Explanation | None, labels: Sequence[str]) -> ModelCard:
        """The card of a model whose columns have these names; ``why`` explains flagged rows."""
        gap = getattr(model, "gap_", None)
        return cls(
            estimator=type(model).__name__,
            n_train=max(model.model_.learned_from.values()),
            n_features=int(model.n_features_in_),
            rate=float(model.false_alarm_rate_),
            threshold=float(model.threshold_),
            views=_views(model, why),
            kernels=_kernels(model),
            gap=None if gap is None else float(gap),
            tol=None if gap is None else float(getattr(model, "tol", 1e-6)),
            gaps=tuple(float(record.gap) for record in getattr(model, "history_", ())),
            n_iter=getattr(model, "n_iter_", None),
            solver=getattr(model, "solver_", None),
            calibration_rows=round(model.calibration_.total),
            held_out=not model.calibration_.smooth,
            parameters=tuple((k, repr(v)) for k, v in sorted(model.get_params().items())),
            versions=VERSIONS,
            # A view in several scalings is one view.
            columns=tuple(
                {
                    v.name: tuple(str(labels[i]) for i in v.columns) for v in model.bank_.views
                }.items()
            ),
            cautions=_cautions(model),
            by_evidence=bool(_say_by_view(model)),
        )


def _cautions(model: Any) -> tuple[str, ...]:
    """What a reader should know of the model before trusting it, in words."""
    said = []
    if shares_of_views := _say_by_view(model):
        with collected(DominantViewWarning) as found:
            warn_of_views(model.model_.rule, model.bank_.kernel_views)
        most = sorted(shares_of_views.items(), key=lambda item: -item[1])[:MAX_SAID]
        shares = ", ".join(f"{name} {share:.0%}" for name, share in most)
        for message in found:
            text = message.removeprefix("views: ")
            said.append(
                f"{text[:1].upper()}{text[1:]} In the decision, a view whose rows look like mixed "
                f"cells counts less; most say: {shares}."
            )
    share = getattr(model, "contamination", None)
    if share is not None:
        suspects = getattr(model, "suspects_", None)
        some = f"The {share:.0%} of the training rows that stood out most hardly count"
        if suspects is not None:
            shown = "rows " + ", ".join(f"{i + 1:,}" for i in suspects[:MAX_SUSPECTS])
            more = f" and {len(suspects) - MAX_SUSPECTS:,} more" * (len(suspects) > MAX_SUSPECTS)
            some = f"{len(suspects):,} training rows stood out and hardly count ({shown}{more})"
        said.append(f"{some}: the model was told that not all of them are normal.")
    return tuple(said)


def _kernels(model: Any) -> tuple[tuple[str, str, float], ...]:
    weights = getattr(model, "weights_", None)
    if weights is None:
        return ()
    names, views = map(str, model.kernel_names_), map(str, model.bank_.kernel_views)
    return tuple(zip(names, views, map(float, weights), strict=True))


def _views(model: Any, why: Explanation | None) -> tuple[tuple[str, float, float], ...]:
    """Name, weight (sum over kernels) and typical contribution of each view.

    Of a model that decides by evidence, the weight is the share of its say in the decision.
    """
    totals: dict[str, float] = _say_by_view(model)
    for _, view, weight in () if totals else _kernels(model):
        totals[view] = totals.get(view, 0.0) + weight
    typical = {} if why is None else dict(zip(why.view_names, why.typical_by_view, strict=True))
    return tuple((name, w, float(typical.get(name, 0.0))) for name, w in totals.items())


def _say_by_view(model: Any) -> dict[str, float]:
    """The share of each view in what evidence is multiplied by; empty for other decisions."""
    rule = getattr(getattr(model, "model_", None), "rule", None)
    if not isinstance(rule, EvidenceRule):
        return {}
    say = rule.by_kernel_weights
    totals: dict[str, float] = {}
    for view, part in zip(map(str, model.bank_.kernel_views), say / say.sum(), strict=True):
        totals[view] = totals.get(view, 0.0) + float(part)
    return totals


def names_of_columns(model: Any, names: Sequence[str] | None) -> list[str]:
    known = getattr(model, "feature_names_in_", None) if names is None else names
    return [f"x{i}" for i in range(model.n_features_in_)] if known is None else list(known)
