"""A bank and the weighted sum of its kernels in one go, for weights that are known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kernull._typing import Array, Indices
from kernull.stacks.kernel_set import KernelSet, ScaledView
from kernull.stacks.weighted import WeightedSum
from kernull.views import read_scalings


def fit_and_combine(
    X: Array, views: Mapping[str, Indices], weights: Array, names: Any, **options: Any
) -> tuple[KernelSet, Array]:
    r"""Fit scaling and widths, and return :math:`K_b = \sum_j b_j K_j` of the rows with the bank.

    The distances that give a view its width give its kernels too, so that they are computed once;
    those of one view at a time are kept. Equal to ``KernelSet.fit`` followed by ``combine``, for
    rows of positive weight, kernels of these ``names`` and no view dropped.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(5, 2))
    >>> views = {"a": np.array([0]), "b": np.array([1])}
    >>> bank, K = fit_and_combine(X, views, np.array([0.2, 0.8]), ["a", "b"])
    >>> bool(np.allclose(K, bank.combine(np.array([0.2, 0.8]))))
    True
    """
    kept: list[ScaledView] = []
    out = WeightedSum(len(X))
    start = 0
    for name, columns, kind in _scaled_views(views, options.pop("scaling", "standard")):
        distances: dict[str, list[Array]] = {}
        one = KernelSet.fit(
            X,
            {name: columns},
            scaling=kind,
            drop_constant=False,
            distances_out=distances,
            **options,
        )
        b = weights[start : start + one.J]
        start += one.J
        kept.append(one.views[0])
        if (b > 0).any():  # kernels without weight need not be evaluated
            out.add(one.select(b > 0).views[0], b[b > 0], distances)
    return KernelSet(tuple(kept), tuple(names)), out.matrix()


def _scaled_views(views: Mapping[str, Indices], scaling: Any) -> Iterator[tuple[str, Indices, str]]:
    """Each view in each of its scalings, in the order of the bank."""
    for name, columns in views.items():
        for kind in read_scalings(scaling, len(columns)):
            yield name, columns, kind
