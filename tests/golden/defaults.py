"""Small models of the default decision, by evidence, over every kind of rows it meets.

``python -m tests.golden.defaults`` writes what the code at hand makes of them to
``record-default.npz``; `test_defaults.py` compares. Parameters that are not the subject of a case
are left at their defaults.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from kernull import PAPER, JointMultiKernelFisherNull, KernelStack, MultiKernelFisherNull
from tests.golden.cases import NEW, RAMP, TRAIN, VIEWS, X_ALL, kernels_of

RECORD = Path(__file__).with_name("record-default.npz")
CANCER, MALIGNANT = load_breast_cancer(return_X_y=True)
CANCER = CANCER[MALIGNANT == 1]


def plain(X: Any, new: Any, *, fit: dict[str, Any] | None = None, **parameters: Any) -> Any:
    return MultiKernelFisherNull(**parameters).fit(X, **(fit or {})), new, {}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def factors(n: int, d: int, seed: int = 0) -> Any:
    loadings = rng(99).normal(size=(5, d))
    draw = rng(seed)
    return draw.normal(size=(n, 5)) @ loadings + 0.5 * draw.normal(size=(n, d))


def one_hot(n: int, levels: int, columns: int, seed: int = 0) -> Any:
    return np.eye(levels)[rng(seed).integers(0, levels, (n, columns))].reshape(n, -1)


def swapped(X: Any, columns: Any) -> Any:
    out = X.copy()
    out[:, columns] = np.roll(X[:, columns], 1, axis=0)
    return out


def joint(**fit: Any) -> Any:
    rows = np.concatenate([TRAIN[:25], X_ALL[59:89], X_ALL[140:160]])
    groups = np.repeat(["a", "b", "c"], [25, 30, 20])
    asked = {"groups": np.array((["a", "b", "c"] * 8)[: len(NEW)])}
    return JointMultiKernelFisherNull(views=VIEWS).fit(rows, groups=groups, **fit), NEW, asked


def enrolled() -> Any:
    model, new, asked = joint()
    return model.forget("c").enroll(X_ALL[140:162], "c"), new, asked


def tensors() -> Any:
    import torch

    X, new = torch.as_tensor(TRAIN), torch.as_tensor(NEW)
    return MultiKernelFisherNull(views=VIEWS).fit(X), new, {}


def given(**parameters: Any) -> Any:
    kernels = kernels_of(TRAIN, TRAIN)
    model = MultiKernelFisherNull(kernels="precomputed", **parameters)
    return model.fit(KernelStack(kernels, names=list(VIEWS))), kernels_of(NEW, TRAIN), {}


CASES: dict[str, Callable[[], Any]] = {
    "one-view": lambda: plain(TRAIN, NEW),
    "views": lambda: plain(TRAIN, NEW, views=VIEWS),
    "features": lambda: plain(TRAIN, NEW, views="features"),
    "cancer": lambda: plain(CANCER[:300], CANCER[310:350]),
    "cancer-views": lambda: plain(
        CANCER[:200], CANCER[310:350], views={"mean": slice(0, 10), "worst": slice(20, 30)}
    ),
    "swapped": lambda: plain(
        factors(150, 12),
        swapped(factors(30, 12, 1), slice(0, 6)),
        views={"a": slice(0, 6), "b": slice(6, 12)},
    ),
    "noise-view": lambda: plain(
        np.hstack([factors(120, 8), rng(3).normal(size=(120, 4))]),
        np.hstack([factors(20, 8, 1), rng(4).normal(size=(20, 4))]),
        views={"a": slice(0, 8), "b": slice(8, 12)},
    ),
    "wide": lambda: plain(factors(40, 90), factors(20, 90, 1)),
    "wide-views": lambda: plain(
        factors(60, 100), factors(20, 100, 1), views={"a": slice(0, 80), "b": slice(80, 100)}
    ),
    "one-hot": lambda: plain(one_hot(120, 5, 4), one_hot(20, 5, 4, 1)),
    "one-hot-view": lambda: plain(
        np.hstack([factors(100, 6), one_hot(100, 4, 2)]),
        np.hstack([factors(20, 6, 1), one_hot(20, 4, 2, 1)]),
        views={"sensors": slice(0, 6), "kind": slice(6, 14)},
    ),
    "counts": lambda: plain(
        rng().poisson(2.0, (150, 6)).astype(float), rng(1).poisson(4.0, (20, 6)).astype(float)
    ),
    "constant-column": lambda: plain(
        np.hstack([factors(60, 4), np.ones((60, 1))]),
        np.hstack([factors(20, 4, 1), rng(2).integers(0, 3, (20, 1))]),
    ),
    "heavy-tails": lambda: plain(rng().standard_t(2, (150, 8)), rng(1).standard_t(2, (20, 8))),
    "copies": lambda: plain(np.repeat(factors(40, 5), 3, axis=0), factors(20, 5, 1)),
    "few-rows": lambda: plain(factors(20, 5), factors(20, 5, 1)),
    "weights": lambda: plain(TRAIN, NEW, views=VIEWS, fit={"sample_weight": RAMP}),
    "weights-zero": lambda: plain(
        TRAIN, NEW, views=VIEWS, fit={"sample_weight": np.where(np.arange(40) % 5 == 0, 0.0, RAMP)}
    ),
    "groups": lambda: plain(CANCER[:120], CANCER[310:350], fit={"groups": np.arange(120) // 4}),
    "split": lambda: plain(CANCER[:200], CANCER[310:350], calibration="split"),
    "sum": lambda: plain(CANCER[:120], CANCER[310:350], decision="sum"),
    "contaminated": lambda: plain(
        np.concatenate([CANCER[:150], 3.0 * CANCER[150:160]]), CANCER[310:350], contamination=0.1
    ),
    "precomputed": lambda: given(),
    "precomputed-p": lambda: given(p=2.0, normalize="none"),
    "widths": lambda: plain(TRAIN, NEW, views=VIEWS, widths=(0.25, 1.0)),
    "standard": lambda: plain(TRAIN, NEW, views=VIEWS, scaling="standard", p=2.0),
    "laplacian": lambda: plain(TRAIN, NEW, views=VIEWS, kernels="laplacian"),
    "linear": lambda: plain(TRAIN, NEW, views=VIEWS, kernels="linear"),
    "n-1000": lambda: plain(factors(1000, 12), factors(20, 12, 1)),
    "n-4500": lambda: plain(factors(4500, 6), factors(20, 6, 1)),
    "joint": lambda: joint(),
    "joint-weights": lambda: joint(sample_weight=np.linspace(0.5, 2.0, 75)),
    "joint-enrolled": enrolled,
    "paper": lambda: plain(TRAIN, NEW, views=VIEWS, **PAPER),
    "torch": tensors,
}  # fmt: skip


def measured(name: str) -> dict[str, Any]:
    """Scores, flags, threshold, p-values, weights and evidence by view of a case, as arrays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, new, options = CASES[name]()
        joint = isinstance(model, JointMultiKernelFisherNull)
        each = [model.task(task) for task in model.tasks_] if joint else [model]
        out = {
            "score": model.score_samples(new, **options),
            "flags": model.predict(new, **options),
            "p": model.p_values(new, **options),
            "weights": model.weights_,
            "calibration": np.concatenate([m.calibration_.scores for m in each]),
            "threshold": [m.threshold_ for m in each],
        }
        if hasattr(model, "evidence") and not options:
            out["evidence"] = model.evidence(new, by="view")
            out["rarity"] = model.rarity(new)
    return {key: np.asarray(values, dtype=float) for key, values in out.items()}


def main() -> None:
    record = {f"{name}/{key}": v for name in CASES for key, v in measured(name).items()}
    np.savez_compressed(RECORD, **record)
    print(len(CASES), "models,", len(record), "arrays")


if __name__ == "__main__":
    main()
