"""Small models over every way to fit one, with every parameter explicit.

`record.py` wrote what version 0.1 made of them; `test_golden.py` compares. Parameters are spelt out
so that new defaults change nothing here.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control
from sklearn.datasets import load_wine

import kernull
from kernull import KernelStack, MixedBall, Solver, Storage, Sum, paper
from kernull.detector.calibration import Cross

X_ALL, LABEL = load_wine(return_X_y=True)
TRAIN = X_ALL[LABEL == 0][:40]
NEW = np.concatenate([X_ALL[LABEL == 0][40:50], X_ALL[LABEL == 1][:6], X_ALL[LABEL == 2][:6]])
VIEWS = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}
RAMP = np.linspace(0.5, 2.0, len(TRAIN))
GAPS = np.where(np.arange(len(TRAIN)) % 5 == 0, 0.0, RAMP)
COPIES = np.where(np.arange(len(TRAIN)) % 3 == 0, 2.0, 1.0)

FISHER: dict[str, Any] = {
    "kernels": "rbf",
    "views": VIEWS,
    "scaling": "standard",
    "widths": 0.5,
    "normalize": "none",
    "p": 2.0,
    "delta": 1e-2,
    "solver": Solver("newton", 1e-10),
    "decision": "sum",
    "false_alarm_rate": 0.1,
    "calibration": "cross",
    "contamination": None,
    "storage": Storage("dense", memory_limit="2GB"),
    "random_state": 0,
}
JOINT = FISHER
SHARED = ("kernels", "views", "scaling", "widths", "false_alarm_rate", "calibration")
FUSED = {name: FISHER[name] for name in (*SHARED, "random_state")} | {"fusion": "average"}
SVM = {name: FISHER[name] for name in (*SHARED, "random_state")} | {
    "nu": 0.1,
    "slim": False,
    "slim_lambda": 0.3,
    "solver": Solver(tol=1e-4),
}


def kernels_of(left: Any, right: Any) -> Any:
    """Three precomputed kernels between rows, one for each view."""
    mean, scale = TRAIN.mean(axis=0), TRAIN.std(axis=0)
    out = []
    for columns in VIEWS.values():
        a, b = ((part - mean) / scale for part in (left, right))
        d2 = ((a[:, None, columns] - b[None, :, columns]) ** 2).sum(axis=-1)
        out.append(np.exp(-d2 / 6.0))
    return np.stack(out)


def fisher(**changes: Any) -> Any:
    return kernull.MultiKernelFisherNull(**(FISHER | changes))


FISHERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "p1": {"p": 1.0},
    "p4-3": {"p": 4 / 3},
    "pinf": {"p": float("inf")},
    "mixed": {"p": MixedBall(2.0, 1.5), "widths": (0.25, 1.0)},
    "groups": {"p": MixedBall(2.0, 4 / 3, [0, 0, 1])},
    "features": {"views": "features"},
    "one-view": {"views": None},
    "two-scalings": {"scaling": ("standard", "whiten")},
    "whiten-raw": {"scaling": "whiten-raw"},
    "no-scaling": {"scaling": "none"},
    "auto-width": {"widths": "auto"},
    "laplacian": {"kernels": "laplacian"},
    "several-kernels": {"kernels": ["rbf", "polynomial"], "normalize": "offdiagonal"},
    "half-normal": {"normalize": 0.5, "widths": (0.25, 1.0)},
    "distance": {"decision": Sum("distance")},
    "float32": {"storage": Storage("dense", dtype="float32"), "solver": Solver("newton", 1e-6)},
    "tiled": {"storage": "tiled", "solver": Solver("subspace", 1e-10)},
    "nystroem": {"storage": Storage("nystroem", landmarks=15), "solver": Solver("subspace", 1e-10)},
    "split": {"calibration": "split"},
    "split-distance": {"calibration": "split", "decision": Sum("distance")},
    "folds": {"calibration": Cross(5)},
    "folds-whiten": {"calibration": Cross(5), "scaling": "whiten"},
    "paper": {"solver": Solver("paper", 1e-6)},
}
WEIGHTED: dict[str, tuple[dict[str, Any], Any]] = {
    "weights": ({}, RAMP),
    "weights-zero": ({}, GAPS),
    "weights-copies": ({}, COPIES),
    "weights-split": ({"calibration": "split"}, GAPS),
    "weights-folds": ({"calibration": Cross(5)}, COPIES),
    "weights-whiten": ({"scaling": "whiten", "calibration": Cross(5)}, RAMP),
    "weights-tiled": ({"storage": "tiled", "solver": Solver("subspace", 1e-10)}, GAPS),
    "weights-nystroem": (
        {"storage": Storage("nystroem", landmarks=15), "solver": Solver("subspace", 1e-10)},
        RAMP,
    ),
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "fn-average": ("FisherNull", {"delta": 1e-2, "score_type": "projection"}),
    "fn-product": ("FisherNull", {"delta": 1e-2, "score_type": "null-space", "fusion": "product"}),
    "fn-null": ("FisherNull", {"delta": 0.0, "score_type": "distance", "views": None}),
    "fn-split": ("FisherNull", {"delta": 1e-2, "score_type": "distance", "calibration": "split"}),
    "gp-mean": ("GaussianProcessOneClass", {"noise": 0.01, "score_type": "mean"}),
    "gp-variance": ("GaussianProcessOneClass", {"noise": 0.01, "score_type": "variance"}),
    "gp-density": ("GaussianProcessOneClass", {"noise": 0.01, "score_type": "log_density"}),
    "gp-ratio": (
        "GaussianProcessOneClass",
        {"noise": 0.01, "score_type": "ratio", "fusion": "product", "calibration": "split"},
    ),
    "kpca": ("KernelPCANovelty", {"components": 0.9}),
    "kpca-split": (
        "KernelPCANovelty",
        {"components": 7, "calibration": "split", "fusion": "product"},
    ),
}


def fitted() -> dict[str, Any]:
    """Name -> (model, rows to score, options of scoring)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {**_fishers(), **_given(), **_joint(), **_others()}


def _fishers() -> dict[str, Any]:
    out = {name: (fisher(**changes).fit(TRAIN), NEW, {}) for name, changes in FISHERS.items()}
    for name, (changes, weight) in WEIGHTED.items():
        out[name] = (fisher(**changes).fit(TRAIN, sample_weight=weight), NEW, {})
    return out


def _given() -> dict[str, Any]:
    square, cross = kernels_of(TRAIN, TRAIN), kernels_of(NEW, TRAIN)
    scale = np.array([1.0, 0.5, 2.0])
    given = {"kernels": "precomputed"}
    return {
        "given": (fisher(**given).fit(square), cross, {}),
        "given-weights": (fisher(**given).fit(square, sample_weight=GAPS), cross, {}),
        "given-split": (fisher(**given, calibration="split").fit(square), cross, {}),
        "given-normal": (fisher(**given, normalize="offdiagonal").fit(square), cross, {}),
        "given-scale": (
            fisher(**given).fit(KernelStack(square, scale=scale, names=["a", "b", "c"])),
            cross,
            {},
        ),
    }


def _joint() -> dict[str, Any]:
    Joint = kernull.JointMultiKernelFisherNull
    rows = np.concatenate([TRAIN[:25], X_ALL[LABEL == 1][20:50], X_ALL[LABEL == 2][10:30]])
    groups = np.repeat(["a", "b", "c"], [25, 30, 20])
    asked = {"groups": np.array((["a", "b", "c"] * 8)[: len(NEW)])}
    weight = np.linspace(0.5, 2.0, len(rows))
    out = {
        "joint": (Joint(**JOINT).fit(rows, groups=groups), NEW, asked),
        "joint-weights": (Joint(**JOINT).fit(rows, None, weight, groups=groups), NEW, asked),
        "joint-distance": (
            Joint(**(JOINT | {"decision": Sum("distance")})).fit(rows, groups=groups),
            NEW,
            asked,
        ),
    }
    enrolled = Joint(**JOINT).fit(rows[:55], groups=groups[:55]).enroll(rows[55:], "c")
    out["joint-enrolled"] = (enrolled, NEW, asked)
    given = Joint(**(JOINT | {"kernels": "precomputed", "views": None}))
    square, cross = kernels_of(rows, rows), kernels_of(NEW, rows)
    given.fit({name: square[:, groups == name][:, :, groups == name] for name in "abc"})
    places = {name: np.flatnonzero(asked["groups"] == name) for name in "abc"}
    new = {name: cross[:, at][:, :, groups == name] for name, at in places.items()}
    out["joint-given"] = (given, new, {})
    return out


def _others() -> dict[str, Any]:
    out = {}
    for name, (cls, changes) in OTHERS.items():
        out[name] = (getattr(paper, cls)(**(FUSED | changes)).fit(TRAIN), NEW, {})
    out["svdd"] = (paper.MultiKernelSVDD(**SVM).fit(TRAIN), NEW, {})
    out["ocsvm"] = (paper.MultiKernelOneClassSVM(**SVM, p=1.0).fit(TRAIN), NEW, {})
    out["ocsvm-p2"] = (paper.MultiKernelOneClassSVM(**SVM, p=2.0).fit(TRAIN), NEW, {})
    slim = SVM | {"slim": True, "calibration": "split"}
    out["ocsvm-slim"] = (paper.MultiKernelOneClassSVM(**slim, p=1.0).fit(TRAIN), NEW, {})
    return out


def measured_tasks(model: Any, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
    """The same of a joint model, whose tasks score rows in turn: a, b, c, a, ..."""
    asked = np.array((["a", "b", "c"] * 8)[: len(NEW)])

    def in_order(parts: Any) -> Any:
        if not isinstance(parts, dict):
            return parts
        out = np.empty((len(asked), *parts["a"].shape[1:]))
        for name, part in parts.items():
            out[asked == name] = part
        return out

    names = ("score_samples", "decision_function", "predict", "p_values")
    answers = {name: in_order(getattr(model, name)(rows, **options)) for name in names}
    asked_of = rows if isinstance(rows, dict) else {name: rows[asked == name] for name in "abc"}
    tasks = {name: model.task(name) for name in model.tasks_}
    return {
        "score": answers["score_samples"],
        "decision": answers["decision_function"],
        "flags": answers["predict"],
        "p": answers["p_values"],
        "detected": false_discovery_control(answers["p_values"]) <= 0.2,
        "threshold": np.array([task.threshold_ for task in tasks.values()]),
        "weights": model.weights_,
        "contributions": in_order({n: t.contributions(asked_of[n]) for n, t in tasks.items()}),
    }


def measured(model: Any, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What a user can ask of a model, as arrays."""
    if isinstance(model, kernull.JointMultiKernelFisherNull):
        return measured_tasks(model, rows, options)
    out = {
        "score": model.score_samples(rows, **options),
        "decision": model.decision_function(rows, **options),
        "flags": model.predict(rows, **options),
        "p": model.p_values(rows, **options),
        "detected": model.detect(rows, 0.2, **options),
    }
    out["threshold"] = np.array([model.threshold_])
    if hasattr(model, "weights_"):
        out["weights"] = model.weights_
    if not hasattr(model, "contributions"):
        return out
    out["contributions"] = model.contributions(rows, **options)
    if options or model.model_.left_out is None:
        return out
    why = model.explain(rows)
    out["typical"], out["surprise"] = why.typical, why.surprise
    out["left_out"] = model.model_.left_out
    first = why.view_names[0]
    if len(why.view_names) > 1:
        out["without_first"] = model.score_samples(rows, missing_views=first)
        out["p_without_first"] = model.p_values(rows, missing_views=[first])
    return out
