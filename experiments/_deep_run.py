"""Every method of the image experiments on the features of one target class."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.neighbors import NearestNeighbors

from benchmarks.peers import get_method
from benchmarks.peers.detectors import pyod_detector
from experiments._cells import Row, Rows, Settings
from experiments._deep import KERNELS, MACHINES, MAIN, PEERS, rooted
from experiments._models import Split, aucs, kernels_by_width, path_scores
from kernull._typing import Array
from kernull.detector.calibration import Cross
from kernull.operators import DenseStack
from kernull.paper.fused import null_space, principal_directions, reconstruction
from kernull.views import SCALINGS, WhitenRaw

__all__ = ["Judge", "run_family"]


class Judge:
    """Keeps, for every method, the choice with the best validation AUC.

    Parameters
    ----------
    validation, test : arrays
        Labels, +1 and -1. Scores are given for validation rows, then test rows.
    """

    def __init__(self, validation: Any, test: Any) -> None:
        self.validation, self.test = np.asarray(validation), np.asarray(test)
        self.best: dict[str, Row] = {}

    def offer(
        self, method: str, scores: Any, width: Any, choices: Sequence[str], **more: Sequence[Any]
    ) -> None:
        """Scores of shape (choices, rows)."""
        m = len(self.validation)
        reached = aucs(self.validation, np.asarray(scores)[:, :m])
        i = int(np.argmax(reached))
        if method in self.best and reached[i] <= self.best[method]["validation_auc"]:
            return
        self.best[method] = {
            "method": method,
            "auc": float(aucs(self.test, np.asarray(scores)[i, m:])),
            "validation_auc": float(reached[i]),
            "width": width,
            "choice": choices[i],
            **{key: values[i] for key, values in more.items()},
        }


def run_family(
    family: str,
    scaling: str,
    features: dict[str, Any],
    labels: Any,
    split: Split,
    settings: Settings,
    seed: int,
) -> Rows:
    """Rows of all methods of a family.

    Parameters
    ----------
    family : {"kernels", "peers", "machines"}
    scaling : str
        One of ``kernull.views.SCALINGS``.
    features : dict of str to array of shape (N, d)
        By network, of all images.
    labels : array of shape (N,)
        +1 for the target class, -1 for others.
    split : Split
        Rows of the images.
    settings : dict
        Grids and widths.
    seed : int
        For detectors that draw.
    """
    judge = Judge(labels[split.validation], labels[split.test])
    if family == MACHINES:
        split = Split(split.train[: settings["svm_rows"]], split.validation, split.test)
    # Rows that take part, and no others: an image set may be much larger.
    used, place = np.unique(np.concatenate(split), return_inverse=True)
    ends = np.cumsum([len(part) for part in split])
    local = Split(place[: ends[0]], place[ends[0] : ends[1]], place[ends[1] :])
    views = {name: rooted(np.asarray(values[used])) for name, values in features.items()}
    if family == PEERS:
        _peers(judge, views, local, scaling, settings, seed)
    elif family in (KERNELS, MACHINES):
        run = _kernel_methods if family == KERNELS else _machines
        for width, stack, cross in kernels_by_width(
            settings["widths"], views, local, scaling=scaling
        ):
            run(judge, list(views), stack, cross, width, settings)
    else:
        raise ValueError(f"family: got {family!r}; expected one of kernels, peers, machines.")
    return [{"scaling": scaling, "n": len(split.train), **row} for row in judge.best.values()]


def _kernel_methods(
    judge: Judge, names: list[str], stack: Any, cross: Any, width: float, settings: Settings
) -> None:
    grids = settings["grids"]
    _offer_path(judge, MAIN, "", stack, cross, width, settings)
    for fusion in ("Average", "Product"):
        K, C = (_fused(s.kernels, fusion) for s in (stack, cross))
        _offer_fisher(judge, f"FN-{fusion}", "", K, C, width, grids["FN"]["delta"])
        noises = grids["GP"]["noise"]
        coefs = np.stack([_ridge(K, s) for s in noises])
        judge.offer(f"GP-{fusion}", coefs @ C.T, width, [f"noise={s:g}" for s in noises])
        shares = grids["KPCA"]["components"]
        found = np.stack(list(_kpca(K, C, shares)))
        judge.offer(f"KPCA-{fusion}", found, width, [f"components={s:g}" for s in shares])
    deltas = grids["FN"]["delta"][1:]
    for j, name in enumerate(names):
        K, C = stack.kernels[j], cross.kernels[j]
        _offer_fisher(judge, f"FN {_short(name)}", "", K, C, width, deltas)
    order = sorted(
        range(len(names)),
        key=lambda j: -judge.best[f"FN {_short(names[j])}"]["validation_auc"],
    )
    for k in range(1, len(names)):
        pick = sorted(order[:k])
        shown = "+".join(_short(names[j]) for j in pick) + ", "
        part, seen = DenseStack(stack.kernels[pick]), DenseStack(cross.kernels[pick])
        _offer_path(judge, f"{MAIN} (networks chosen)", shown, part, seen, width, settings)
        K, C = part.kernels.mean(axis=0), seen.kernels.mean(axis=0)
        _offer_fisher(judge, "FN-Average (networks chosen)", shown, K, C, width, deltas)


def _short(network: str) -> str:
    return network.partition(":")[2] or network


def _offer_path(
    judge: Judge, method: str, shown: str, stack: Any, cross: Any, width: float, settings: Settings
) -> None:
    grid = settings["grids"][MAIN]
    ps, deltas = tuple(grid["p"]), tuple(grid["delta"])
    scores, path = path_scores(stack, cross, ps, deltas, settings["gap"])
    choices = [f"{shown}p={p:.5g}, delta={d:g}" for p, d in itertools.product(ps, deltas)]
    weights = [" ".join(f"{w:.3f}" for w in b) for b in path.weights.reshape(len(choices), stack.J)]
    judge.offer(method, scores.reshape(len(choices), -1), width, choices, weights=weights)


def _offer_fisher(
    judge: Judge, method: str, shown: str, K: Array, C: Array, width: float, deltas: Any
) -> None:
    coefs = [_ridge(K, d * len(K)) if d else null_space(K)[0] for d in deltas]
    judge.offer(method, np.stack(coefs) @ C.T, width, [f"{shown}delta={d:g}" for d in deltas])


def _fused(kernels: Array, fusion: str) -> Array:
    if fusion == "Average":
        return np.asarray(kernels.mean(axis=0))
    # The geometric mean; rbf kernels may underflow to zero, and so does their product then.
    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(kernels).mean(axis=0)))


def _ridge(K: Array, ridge: float) -> Array:
    A = K.copy()
    A.flat[:: len(K) + 1] += ridge
    factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, np.ones(len(K)), check_finite=False))


def _kpca(K: Array, C: Array, shares: Sequence[float]) -> Iterator[Array]:
    """Scores of kernel PCA for several shares of the variance, from one decomposition."""
    values, vectors = principal_directions(K)
    explained = np.cumsum(values) / values.sum()
    means = K.mean(axis=0)
    for share in shares:
        m = min(int(np.searchsorted(explained, share - 1e-12)) + 1, len(values))
        coef = vectors[:, :m] / np.sqrt(values[:m])
        yield reconstruction(C, np.ones(len(C)), means, coef)  # rbf kernels: k(x, x) = 1


def _machines(
    judge: Judge, names: list[str], stack: Any, cross: Any, width: float, settings: Settings
) -> None:
    if width < 0.5:  # the small grid leaves the narrowest width out
        return
    for method, grid in settings["grids"].items():
        if not method.endswith("SVM") and not method.endswith("SVDD"):
            continue
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values, strict=True))
            model = get_method(method).make(kernels="precomputed", calibration=Cross(2), **point)
            scores = model.fit(stack).score_samples(cross)
            choice = ", ".join(f"{k}={v:g}" for k, v in point.items())
            judge.offer(method, scores[None], width, [choice])


def _peers(
    judge: Judge,
    views: dict[str, Array],
    split: Split,
    scaling: str,
    settings: Settings,
    seed: int,
) -> None:
    rest = np.concatenate([split.validation, split.test])
    scaled = [SCALINGS[scaling]().fit(view[split.train]) for view in views.values()]
    train, other = (
        np.concatenate(
            [s.transform(v[rows]) for s, v in zip(scaled, views.values(), strict=True)], axis=1
        )
        for rows in (split.train, rest)
    )
    counts = [k for k in settings["grids"]["kNN"]["k"] if k <= len(train)]
    far = NearestNeighbors(n_neighbors=max(counts)).fit(train).kneighbors(other)[0]
    kinds = [far[:, k - 1] for k in counts] + [far[:, :k].mean(axis=1) for k in counts[1:]]
    choices = [f"k={k}" for k in counts] + [f"mean of {k}" for k in counts[1:]]
    judge.offer("kNN", -np.stack(kinds), "", choices)
    if scaling == "standard":  # one covariance of everything
        # |S^(-1/2) (x - mean)|^2, without a matrix of all columns by all columns.
        distance = (WhitenRaw().fit(train).transform(other) ** 2).sum(axis=1)
        judge.offer("Mahalanobis", -distance[None], "", ["all features together"])
    else:  # each view is white already
        distance = ((other - train.mean(axis=0)) ** 2).sum(axis=1)
        judge.offer("Mahalanobis", -distance[None], "", ["each view whitened"])
    for name in settings["pyod"]:
        detector = pyod_detector(name)
        if "random_state" in detector.get_params():
            detector.set_params(random_state=seed)
        judge.offer(f"PyOD {name}", -detector.fit(train).decision_function(other)[None], "", [""])
