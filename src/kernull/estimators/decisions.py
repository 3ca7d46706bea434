"""How the lp MK-FN estimators decide: by the evidence of each kernel, or by the paper's sum."""

from __future__ import annotations

from typing import Any

from kernull.errors import MissingCapabilityError
from kernull.estimators.inputs import AUTO_P, check_number, read_delta
from kernull.models.evidence import EvidenceMethod, rows_that_fit
from kernull.models.fisher import FisherMethod
from kernull.models.rules import check_score_type
from kernull.stacks import parse_memory_limit

__all__ = ["by_evidence", "read_decision", "read_weights_method"]


def by_evidence(estimator: Any) -> bool:
    """Whether the model decides, or once fitted will decide, by evidence."""
    model = vars(estimator).get("model_")
    return bool(estimator.decision == "evidence" if model is None else model.decides_by_evidence)


def read_weights_method(estimator: Any) -> FisherMethod:
    """The part of the method that learns kernel weights, from checked parameters."""
    check_score_type(estimator.score_type, ("projection", "distance"))
    return FisherMethod(
        p=AUTO_P if isinstance(estimator.p, str) and estimator.p == "auto" else estimator.p,
        delta=read_delta(estimator.delta),
        r=estimator.r,
        kernel_groups=estimator.kernel_groups,
        solver=estimator.solver,
        tol=check_number("tol", estimator.tol, "a positive number", 0.0),
        max_iter=estimator.max_iter,
        score_type=estimator.score_type,
        verbose=getattr(estimator, "verbose", 0),
    )


def read_decision(estimator: Any) -> FisherMethod | EvidenceMethod:
    """The method that ``decision`` asks for."""
    method, decision = read_weights_method(estimator), estimator.decision
    if not isinstance(decision, str) or decision not in ("evidence", "sum"):
        raise ValueError(
            f"decision: got {decision!r}; expected 'evidence' (each kernel calibrated by "
            "itself) or 'sum' (the paper's projection)."
        )
    if decision == "sum":
        return method
    for name, other in (("score_type", "projection"), ("reference", None)):
        given = getattr(estimator, name, other)
        if not (given is other or (isinstance(given, str) and given == other)):
            raise MissingCapabilityError(
                f"{name}: got {given!r}, which is about the projection of the "
                f"paper; use decision='sum', or {name}={other!r}."
            )
    return EvidenceMethod(method, rows_that_fit(parse_memory_limit(estimator.memory_limit)))
