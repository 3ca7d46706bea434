"""Kernels of related tasks: which views they share, and scaling and widths in common."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.errors import ConstantViewWarning
from kernull.kernels.functions import mean_distance
from kernull.stacks import KernelSet

__all__ = ["pooled_kernels", "varying_views"]


def varying_views(
    X: Array, tasks: list[Indices], views: Mapping[str, Indices]
) -> dict[str, Indices]:
    """The views that vary within at least one task; the others are dropped with a warning."""
    kept = {
        name: columns
        for name, columns in views.items()
        if any((np.ptp(X[np.ix_(rows, columns)], axis=0) > 0).any() for rows in tasks)
    }
    if not kept:
        raise ValueError(
            "X: every view is constant within every task; there is nothing to learn from."
        )
    dropped = [repr(name) for name in views if name not in kept]
    if dropped:
        warnings.warn(
            f"dropped constant view(s) {', '.join(dropped)}: a kernel that is constant within "
            "every task says nothing about normality and would attract weight.",
            ConstantViewWarning,
            stacklevel=2,
        )
    return kept


def pooled_kernels(
    X: Array,
    tasks: list[Indices],
    sample_weight: Array | None,
    *,
    views: Mapping[str, Indices],
    **options: Any,
) -> KernelSet:
    """Scaling and widths that all tasks share, learned from all of their rows.

    Every task is moved to the common mean first, and widths are factors of the mean distance
    between rows of one task: kernels only ever compare rows of one task, so differences between
    tasks must not count.
    """
    options["drop_constant"] = False  # seen to for all tasks at once
    rows = np.concatenate(tasks)
    weight = None if sample_weight is None else sample_weight[rows]
    if len(tasks) == 1:
        return KernelSet.fit(X[rows], views, sample_weight=weight, **options)
    centre = np.average(X[rows], axis=0, weights=weight)
    moved = np.concatenate([_deviations(X, index, sample_weight) for index in tasks]) + centre
    kernels = KernelSet.fit(moved, views, sample_weight=weight, **options)
    ends = np.cumsum([len(index) for index in tasks])[:-1]
    return _with_widths(kernels, np.split(np.arange(len(rows)), ends), weight)


def _deviations(X: Array, rows: Indices, sample_weight: Array | None) -> Array:
    part = X[rows]
    weight = None if sample_weight is None else sample_weight[rows]
    out = part - np.average(part, axis=0, weights=weight)
    out[:, np.ptp(part, axis=0) == 0] = 0.0  # exactly: rounding must not count as variance
    return np.asarray(out)


def _with_widths(
    kernels: KernelSet, tasks: list[Indices], sample_weight: Array | None
) -> KernelSet:
    """Widths as factors of the mean distance over all pairs of rows of one task."""
    views = []
    for view in kernels.views:
        means: dict[str, float] = {}
        for metric in {k.metric for k in view.kernels if k.metric is not None}:
            parts = [_distance_and_pairs(view.train[t], metric, sample_weight, t) for t in tasks]
            total = sum(pairs for _, pairs in parts)
            means[metric] = sum(d * pairs for d, pairs in parts) / total if total else 0.0
        widened = tuple(
            k
            if k.metric is None or k.factor is None
            else replace(k, width=k.factor * (means[k.metric] or 1.0))
            for k in view.kernels
        )
        views.append(replace(view, kernels=widened))
    return replace(kernels, views=tuple(views))


def _distance_and_pairs(
    X: Array, metric: str, sample_weight: Array | None, rows: Indices
) -> tuple[float, float]:
    weight = None if sample_weight is None else sample_weight[rows]
    total = float(len(X)) if weight is None else float(weight.sum())
    return mean_distance(X, metric, weight), max(total * (total - 1.0), 0.0)
