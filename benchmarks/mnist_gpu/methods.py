"""All methods on one digit with one scaling."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

from benchmarks.mnist_gpu.features import scale_view, squared_distances
from benchmarks.mnist_gpu.peers import distance_peers, forest, mahalanobis
from benchmarks.mnist_gpu.protocol import Digit, Judge
from benchmarks.peers import get_method
from benchmarks.peers.registry import DELTAS, PS, WIDTHS
from kernull.detector.calibration import Cross
from kernull.mkl import path
from kernull.operators import DenseStack
from kernull.operators.torch import TorchDenseStack

NOISES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
SHARES = (0.5, 0.7, 0.9, 0.95, 0.99)
KPCA_ROWS = 2000
SVM_ROWS = 1000
SVM_GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "OneClassSVM": {"nu": (0.01, 0.05, 0.2)},
    "MK-SVDD": {"nu": (0.05, 0.2)},
    "Slim-MK-SVDD": {"nu": (0.05, 0.2), "slim_lambda": (0.3, 1.0)},
    "MK-OCSVM": {"nu": (0.05, 0.2)},
    "Slim-MK-OCSVM": {"nu": (0.05, 0.2), "slim_lambda": (0.3, 1.0)},
}
#: Kinds of tasks, besides all methods on the networks' kernels.
REGIONS, MACHINES = " (networks x regions)", " machines"


def ridge_scores(K: Any, C: Any, ridges: Any) -> Any:
    """C (K + ridge I)^-1 1 for every ridge: (ridges, rows)."""
    eye, one = torch.eye(len(K), dtype=K.dtype, device=K.device), torch.ones(len(K), 1).to(K)
    coefs = [
        torch.cholesky_solve(one, torch.linalg.cholesky(K + ridge * eye))[:, 0] for ridge in ridges
    ]
    return torch.stack(coefs).to(C.dtype) @ C.T


def kpca_scores(K: Any, C: Any) -> Any:
    """Minus the reconstruction error for each share of the variance: (shares, rows)."""
    means, level = K.mean(0), C.mean(1)
    grand = means.mean()
    centred = K - means[:, None] - means + grand
    values, vectors = torch.linalg.eigh(centred)
    values, vectors = values.flip(0), vectors.flip(1)
    kept = values > len(K) * 2.2e-16 * values[0]
    values, vectors = values[kept], vectors[:, kept]
    share = (values.cumsum(0) / values.sum()).cpu().numpy()
    own = 1.0 - 2 * level + grand  # rbf kernels: k(x, x) = 1
    parts = ((C - level[:, None] - means + grand) @ (vectors / values.sqrt())).square().cumsum(1)
    counts = [min(int(np.searchsorted(share, s - 1e-12)) + 1, len(values)) for s in SHARES]
    return torch.stack([parts[:, m - 1] - own for m in counts])


def run_scaling(
    digit: Digit,
    views: dict[str, Any],
    scaling: str,
    device: str,
    skip: set[str],
    tag: str = "",
    threads: int = 1,
) -> tuple[list[dict[str, Any]], Any]:
    """All methods on one digit with one scaling; rows of the table, and the lp weights.

    With a ``tag``, only the methods that fuse, under names that carry it, or only the machines.
    """
    judge, names = Judge(digit), list(views)
    train, rest = (torch.as_tensor(rows, device=device) for rows in (digit.train, digit.rest))
    between, across, norms, side = [], [], [], []
    for name in names:
        A, B = scale_view(views[name], train, rest, scaling)
        between.append(squared_distances(A, A).float())
        across.append(squared_distances(B, A).float())
        norms.append(B.square().sum(1))
        if not tag and "forest" not in skip:  # the forest works on the CPU, in single precision
            side.append([rows.float().cpu() for rows in (A, B)])
    n = len(train)
    mean_distance = [float(d.sqrt().double().sum()) / (n * (n - 1)) for d in between]
    if tag == MACHINES:
        for width in (1.0, 0.5):
            factors = [-0.5 / (width * D) ** 2 for D in mean_distance]
            _machines(judge, between, across, factors, width)
        return [{"scaling": scaling, "n": SVM_ROWS, **row} for row in judge.best.values()], {}
    if not tag:
        distance_peers(judge, between, across, skip)
        mahalanobis(judge, views, scaling, train, rest, norms, skip)
        if side:
            forest(judge, side, threads)
    weights = {}
    for width in sorted(WIDTHS, reverse=True):
        factors = [-0.5 / (width * D) ** 2 for D in mean_distance]
        K = torch.empty(len(names), n, n, dtype=torch.float64, device=device)
        C = torch.empty(len(names), len(rest), n, device=device)
        for j, f in enumerate(factors):
            torch.exp(f * between[j].double(), out=K[j])
            torch.exp(f * across[j], out=C[j])
            K[j].fill_diagonal_(1.0)  # the rounding of single precision must not show there
        models = path(TorchDenseStack(K), PS, DELTAS, tol=1e-4)
        scores = models.scores(TorchDenseStack(C)).reshape(len(models), -1)
        grid = [f"p={p:.5g}, delta={d:g}" for p, d in itertools.product(PS, DELTAS)]
        used = [" ".join(f"{w:.3f}" for w in b) for b in models.weights.reshape(len(models), -1)]
        gaps = [float(g) for g in models.gaps.ravel()]
        judge.offer(f"lp MK-FN{tag}", scores, width, grid, weights=used, gap=gaps)
        weights[width] = models.weights
        for name in ("Average", "Product"):
            if name == "Average":
                k, c = K.mean(0), C.mean(0)
            else:
                k = sum(f / len(names) * d for f, d in zip(factors, between, strict=True)).double()
                c = sum(f / len(names) * d for f, d in zip(factors, across, strict=True))
                k, c = k.exp_().fill_diagonal_(1.0), c.exp_()
            _fixed_rules(
                judge, f"{name}{tag}", k, c, width, skip | ({"gp", "kpca"} if tag else set())
            )
        for j, name in enumerate(names) if not tag else ():
            found = ridge_scores(K[j], C[j], [d * n for d in DELTAS])
            judge.offer(f"FN {name}", found, width, [f"delta={d:g}" for d in DELTAS])
        if not tag:
            _best_networks(judge, names, K, C, width)
        elif tag == REGIONS:
            for network in sorted({name.split("@")[0] for name in names if "@" in name}):
                own = [j for j, name in enumerate(names) if name.split("@")[0] == network]
                found = ridge_scores(K[own].mean(0), C[own].mean(0), [d * n for d in DELTAS])
                grid = [f"delta={d:g}" for d in DELTAS]
                judge.offer(f"FN {network}, with its regions", found, width, grid)
        del K, C, k, c
    return [{"scaling": scaling, "n": n, **row} for row in judge.best.values()], weights


def _best_networks(judge: Judge, names: list[str], K: Any, C: Any, width: float) -> None:
    """Fusion of the best k networks, ranked by their validation AUC alone; k by validation too."""
    ranks = sorted(range(len(names)), key=lambda j: -judge.best[f"FN {names[j]}"]["validation_auc"])
    n = K.shape[1]
    for k in range(1, len(names)):
        pick = sorted(ranks[:k])
        shown = "+".join(names[j] for j in pick)
        part, seen = K[pick], C[pick]
        models = path(TorchDenseStack(part), PS, DELTAS, tol=1e-4)
        scores = models.scores(TorchDenseStack(seen)).reshape(len(models), -1)
        grid = [f"{shown}, p={p:.5g}, delta={d:g}" for p, d in itertools.product(PS, DELTAS)]
        judge.offer("lp MK-FN (networks chosen)", scores, width, grid)
        found = ridge_scores(part.mean(0), seen.mean(0), [d * n for d in DELTAS])
        grid = [f"{shown}, delta={d:g}" for d in DELTAS]
        judge.offer("FN-Average (networks chosen)", found, width, grid)


def _fixed_rules(judge: Judge, name: str, k: Any, c: Any, width: float, skip: set[str]) -> None:
    """FN, GP and KPCA on one fused kernel."""
    n = len(k)
    found = ridge_scores(k, c, [d * n for d in DELTAS])
    judge.offer(f"FN-{name}", found, width, [f"delta={d:g}" for d in DELTAS])
    if "gp" not in skip:
        found = ridge_scores(k, c, NOISES)
        judge.offer(f"GP-{name}", found, width, [f"noise={s:g}" for s in NOISES])
    if "kpca" not in skip:
        r = min(n, KPCA_ROWS)
        found = kpca_scores(k[:r, :r], c[:, :r].double())
        judge.offer(f"KPCA-{name}", found, width, [f"components={s:g}" for s in SHARES])


def _machines(
    judge: Judge, between: list[Any], across: list[Any], factors: list[float], width: float
) -> None:
    """The methods built on SVMs, on the first training images and a small grid."""
    r = min(len(between[0]), SVM_ROWS)
    kernels = [
        torch.stack([(f * d[rows, :r].double()).exp_() for f, d in zip(factors, part, strict=True)])
        for part, rows in ((between, slice(r)), (across, slice(None)))
    ]
    for k in kernels[0]:
        k.fill_diagonal_(1.0)
    stack, cross = (DenseStack(k.cpu().numpy()) for k in kernels)
    for name, grid in SVM_GRIDS.items():
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values, strict=True))
            model = get_method(name).make(kernels="precomputed", calibration=Cross(2), **point)
            choice = ", ".join(f"{k}={v:g}" for k, v in point.items())
            judge.offer(name, model.fit(stack).score_samples(cross)[None], width, [choice])
