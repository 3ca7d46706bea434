"""Peers on all scaled features side by side: no kernels, no weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sklearn.ensemble import IsolationForest

from benchmarks.mnist_gpu.features import scale_view, shrunk_covariance
from benchmarks.mnist_gpu.protocol import Judge

NEIGHBOURS = (1, 5, 10)
LOF_NEIGHBOURS = (10, 20, 50)
TREES = 300


def distance_peers(judge: Judge, between: list[Any], across: list[Any], skip: set[str]) -> None:
    """Neighbours and the local outlier factor, from the squared distances of each view."""
    # Squared distances add up over the views.
    squared = sum(across)
    far = squared.topk(min(max(NEIGHBOURS), squared.shape[1]), largest=False).values.sqrt()
    kinds = [-far[:, k - 1] for k in NEIGHBOURS] + [-far[:, :k].mean(1) for k in NEIGHBOURS[1:]]
    named = [f"k={k}" for k in NEIGHBOURS] + [f"mean of {k}" for k in NEIGHBOURS[1:]]
    judge.offer("kNN", torch.stack(kinds), "", named)
    if "lof" not in skip:
        found = lof_scores(sum(between), squared, LOF_NEIGHBOURS)
        judge.offer("LOF", found, "", [f"k={k}" for k in LOF_NEIGHBOURS])


def lof_scores(between: Any, across: Any, counts: Sequence[int]) -> Any:
    """Minus the local outlier factor of new rows for each count of neighbours: (counts, rows).

    reach(a, b) = max(d(a, b), distance of b's k-th neighbour), density(a) = 1 / mean of reach(a, b)
    over a's neighbours b in training, LOF(a) = mean density(b) / density(a). ``between`` (n, n)
    and ``across`` (rows, n) are squared distances. A training row is no neighbour of itself.
    """
    n = len(between)
    most = min(max(counts), n - 1)
    # The diagonal is left out by index, so that a row's copies stay its neighbours.
    alone = between.clone().fill_diagonal_(float("inf"))
    near, who = alone.topk(most, largest=False)
    del alone
    seen, whom = across.topk(most, largest=False)
    near, seen = near.double().sqrt(), seen.double().sqrt()
    out = []
    for count in counts:
        k = min(count, n - 1)
        edge = near[:, k - 1]

        def density(distances: Any, neighbours: Any, k: int = k, edge: Any = edge) -> Any:
            reach = torch.maximum(distances[:, :k], edge[neighbours[:, :k]])
            return 1 / (reach.mean(1) + 1e-10)  # scikit-learn's guard against k copies of a row

        trained = density(near, who)
        out.append(-trained[whom[:, :k]].mean(1) / density(seen, whom))
    return torch.stack(out)


def mahalanobis(
    judge: Judge,
    views: dict[str, Any],
    scaling: str,
    train: Any,
    rest: Any,
    norms: list[Any],
    skip: set[str],
) -> None:
    """The Mahalanobis distance: of each view where they are whitened, else of all together."""
    if scaling != "standard":  # whitened: the plain distance from the mean
        judge.offer("Mahalanobis", -sum(norms)[None], "", ["each view whitened"])
    elif "mahalanobis" not in skip:
        pairs = [scale_view(X, train, rest, scaling) for X in views.values()]
        A, B = (torch.cat([pair[i] for pair in pairs], dim=1) for i in (0, 1))
        S = shrunk_covariance(A)
        half = torch.linalg.solve_triangular(torch.linalg.cholesky(S), B.T, upper=False)
        judge.offer("Mahalanobis", -half.square().sum(0)[None], "", ["all features together"])


def forest(judge: Judge, side: list[list[Any]], threads: int) -> None:
    """Isolation forest on every training row; where whitened, it cuts along principal axes."""
    A, B = (torch.cat([pair[i] for pair in side], dim=1).numpy() for i in (0, 1))
    model = IsolationForest(n_estimators=TREES, random_state=judge.digit.digit, n_jobs=threads)
    judge.offer("IsolationForest", model.fit(A).score_samples(B)[None], "", [f"trees={TREES}"])
