"""Files of version 0.1: an estimator's attributes by their names at the time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernull import models
from kernull.calibration import Calibration
from kernull.errors import ModelFileError
from kernull.kernels import FittedKernel
from kernull.models.fused import FusedFisherRule, GaussianRule, PrincipalRule
from kernull.models.joint import JointModel
from kernull.models.support import SupportRule
from kernull.persistence.values import Node
from kernull.problems import RidgeInverse
from kernull.solvers import Record
from kernull.stacks import DenseStack, KernelSet
from kernull.stacks.kernel_set import ScaledView
from kernull.views import ViewScaler

#: Records that attributes of estimators held, by their names at the time.
RECORDS: dict[str, Any] = {
    "KernelBank": KernelSet, "BankView": ScaledView, "DenseStack": DenseStack,
    "ViewScaler": ViewScaler, "FittedKernel": FittedKernel, "Calibration": Calibration,
    "Record": Record, "RidgeInverse": RidgeInverse, "Task": dict, "history": None,
}  # fmt: skip


def read_format_1(node: Node, estimators: Mapping[str, Any]) -> Any:
    """The estimator that a file of format 1 holds, with the flags that it gave then."""
    if node.name not in estimators:
        raise ModelFileError(f"it names an unknown class {node.name[:40]!r}")
    state = {key: _thaw(value, estimators) for key, value in node.fields.items()}
    cls = estimators[node.name]
    names = set(cls._get_param_names())
    model = cls(**{name: state[name] for name in names & set(state)})
    if "decision" in names:
        model.decision = "sum"  # the only one there was
    if node.name in ("JointMultiKernelFisherNull", "MultiKernelFisherNullCV"):
        model.normalize = "none"
    for name in ("n_features_in_", "feature_names_in_"):
        if name in state:
            setattr(model, name, state[name])
    if node.name == "MultiKernelFisherNullCV":
        for key in state:
            if key.endswith("_") and not key.startswith("_"):
                setattr(model, key, state[key])
        model.target_rows_, model.n_rows_ = state["_targets"], int(state["_n_rows"])
    elif node.name == "JointMultiKernelFisherNull":
        model.model_ = _joint(state)
    else:
        model.model_ = _model(node.name, state)
    return model


def _thaw(value: Any, estimators: Mapping[str, Any]) -> Any:
    if isinstance(value, Node):
        if value.name in estimators:
            return read_format_1(value, estimators)
        if value.name not in RECORDS:
            raise ModelFileError(f"it names an unknown class {value.name[:40]!r}")
        content = {key: _thaw(item, estimators) for key, item in value.fields.items()}
        if value.name == "history":
            return tuple(Record(*line) for line in content["values"].tolist())
        return RECORDS[value.name](**content)
    if isinstance(value, dict):
        return {key: _thaw(item, estimators) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_thaw(item, estimators) for item in value)
    return value


def _model(name: str, state: dict[str, Any]) -> models.KernelModel:
    return models.KernelModel(
        kernels=_kernels(state),
        rule=_rule(name, state),
        calibration=state["calibration_"],
        threshold=float(state["threshold_"]),
        false_alarm_rate=float(state["false_alarm_rate_"]),
        calibration_weight=state.get("_calibration_weight"),
        left_out=state.get("_left_out_parts"),
        certificate=_certificate(state),
        system=_system(state),
        growth=_growth(state),
        learned=state.get("_learned_rows"),
        n_given=len(state["_training_scores"]) if "_training_scores" in state else 0,
    )


def _kernels(state: dict[str, Any]) -> models.ModelKernels:
    kernels, factors = state.get("bank_"), state.get("_kernel_factors")
    if kernels is not None:
        return models.TableKernels(kernels, factors, int(state.get("_n_reference_kept", 0)))
    J, n = state["_stack_shape"]
    scale = state.get("_given_scale")
    return models.GivenKernels(
        names=tuple(str(name) for name in state["kernel_names_"]),
        given_scale=np.ones(J) if scale is None else np.asarray(scale, dtype=float),
        n=int(n),
        n_given=int(state.get("n_features_in_", n)),
        learned=state.get("_learned_rows"),
        factors=factors,
    )


def _rule(name: str, state: dict[str, Any]) -> Any:
    kind: Any = state.get("score_type")
    coef, diagonal = state["coef_"], state.get("_constant_diagonal")
    if name == "MultiKernelFisherNull":
        return models.FisherRule(state["weights_"], coef, kind)
    if name == "FisherNull":
        return FusedFisherRule(state["fusion"], coef, kind, state.get("rank_"))
    if name == "GaussianProcessOneClass":
        root, factor, noise = state["_root"], state["_factor"], float(state["noise"])
        return GaussianRule(state["fusion"], coef, root, factor, noise, kind, diagonal)
    if name == "KernelPCANovelty":
        means, values = state["_means"], state["eigenvalues_"]
        return PrincipalRule(state["fusion"], coef, means, values, diagonal)
    return SupportRule(state["weights_"], coef, state["description_"], diagonal)


def _certificate(state: dict[str, Any]) -> models.Certificate | None:
    if "gap_" not in state:
        return None
    return models.Certificate(
        float(state["gap_"]), int(state["n_iter_"]), str(state["solver_"]), state["history_"]
    )


def _system(state: dict[str, Any]) -> models.RidgeSystem | None:
    if "ridge_" not in state or "p_" not in state:
        return None
    return models.RidgeSystem(
        float(state["p_"]), float(state["delta_"]), float(state["ridge_"]), state.get("_row_weight")
    )


def _growth(state: dict[str, Any]) -> models.Growth | None:
    if "sample_indices_" not in state:
        return None
    seen, updates = int(state["n_samples_seen_"]), int(state.get("_n_updates", 0))
    return models.Growth(state["sample_indices_"], seen, state.get("_inverse"), updates)


def _joint(state: dict[str, Any]) -> JointModel:
    certificate = _certificate(state)
    assert certificate is not None
    names = tuple(str(name) for name in state["kernel_names_"])
    total = int(state["_fitted_stack_rows"])
    tasks = {}
    for name, task in state["_tasks"].items():
        kernels: models.ModelKernels
        weight = task["row_weight"]
        if task["bank"] is not None:
            kernels = models.TableKernels(task["bank"])
        else:
            stack = task["stack"]
            kernels = models.GivenKernels(
                names, stack.scale, stack.n, total, learned=task["columns"], square=stack
            )
        rule = models.FisherRule(state["weights_"], task["coef"], state["score_type"])
        decision = (task["calibration"], float(task["threshold"]), float(task["false_alarm_rate"]))
        ridge = (float(state["p"]), float(state["delta"]), float(task["ridge"]))
        tasks[name] = models.KernelModel(
            kernels, rule, *decision, calibration_weight=weight, certificate=certificate,
            system=models.RidgeSystem(*ridge, weight), n_given=kernels.n,
        )  # fmt: skip
    return JointModel(tasks, certificate, state.get("_views"))
