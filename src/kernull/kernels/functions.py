"""Kernel functions: what a user names, and what a fit makes of it.

A `KernelSpec` is what the user asked for ("rbf", a callable, ...). Fitting it to one view of the
training rows gives a `FittedKernel`, which knows its absolute width and evaluates itself. All
evaluations are scikit-learn's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import (
    cosine_similarity,
    euclidean_distances,
    linear_kernel,
    manhattan_distances,
    polynomial_kernel,
)

from kernull._typing import Array
from kernull.kernels.widths import auto_factor, mean_distance

__all__ = ["KERNELS", "FittedKernel", "KernelSpec", "parse_kernels"]

KernelFunction = Callable[[Array, Array], Array]


@dataclass(frozen=True)
class _Kind:
    """One kernel family: the metric its width is measured in, if any, and its defaults."""

    metric: str | None = None
    defaults: dict[str, float] = field(default_factory=dict)


#: The families known by name.
KERNELS: dict[str, _Kind] = {
    "rbf": _Kind(metric="euclidean"),
    "laplacian": _Kind(metric="manhattan"),
    "linear": _Kind(),
    "polynomial": _Kind(defaults={"degree": 3.0, "coef0": 1.0}),
    "cosine": _Kind(),
}


@dataclass(frozen=True)
class KernelSpec:
    """A kernel as the user asked for it."""

    kind: str
    function: KernelFunction | None = None

    @property
    def metric(self) -> str | None:
        """Metric of the width, or None where the kernel has no width."""
        return KERNELS[self.kind].metric if self.kind in KERNELS else None

    @property
    def label(self) -> str:
        """Name for people."""
        if self.function is None:
            return self.kind
        return getattr(self.function, "__name__", type(self.function).__name__)

    def fit(
        self,
        X: Array,
        factors: Iterable[float | str] = (1.0,),
        sample_weight: Array | None = None,
        keep: dict[str, list[Array]] | None = None,
    ) -> list[FittedKernel]:
        """Fit to one view of the training rows: one kernel a width factor, or just one.

        The factor ``"auto"`` is that of `auto_factor`.
        ``keep`` receives the distances of each metric that gave a width; see `mean_distance`.
        """
        if self.function is not None:
            return [FittedKernel(self.kind, function=self.function)]
        if self.metric is None:
            params = dict(KERNELS[self.kind].defaults)
            if self.kind == "polynomial":
                params["gamma"] = 1.0 / X.shape[1]
            return [FittedKernel(self.kind, params=params)]
        # A constant view (kept on request) has mean distance 0; any width makes its kernel all 1.
        blocks = None if keep is None else keep.setdefault(self.metric, [])
        blocks = None if blocks else blocks  # another kernel of this metric was here before
        mean = mean_distance(X, self.metric, sample_weight, keep=blocks) or 1.0
        centre = X.mean(axis=0)
        numbers = [
            auto_factor(X, mean, self.metric, sample_weight) if isinstance(f, str) else f
            for f in factors
        ]
        return [FittedKernel(self.kind, width=f * mean, factor=f, centre=centre) for f in numbers]


@dataclass(frozen=True)
class FittedKernel:
    r"""A kernel function with its width fixed by the training rows.

    ======================  ==========================================================
    ``rbf``                 :math:`\exp(-\|x-y\|_2^2 / (2 s^2))`
    ``laplacian``           :math:`\exp(-\|x-y\|_1 / s)`
    ``linear``              :math:`x'y`
    ``polynomial``          :math:`(x'y/d + 1)^3`
    ``cosine``              :math:`x'y / (\|x\| \|y\|)`
    ======================  ==========================================================

    where s = factor x mean pairwise distance of the view, in the same metric.
    """

    kind: str
    width: float | None = None
    factor: float | None = None
    centre: Array | None = field(default=None, repr=False, compare=False)
    params: dict[str, float] = field(default_factory=dict)
    function: KernelFunction | None = None

    @property
    def metric(self) -> str | None:
        """Metric of the distance that this kernel is a function of, if it is one."""
        return KERNELS[self.kind].metric if self.kind in KERNELS else None

    def distances(self, X: Array, Y: Array | None = None) -> Array:
        """Distances (squared for rbf) between rows; shared by the kernels of one view."""
        assert self.centre is not None
        # Subtracting the training centre changes no distance and keeps the expansion accurate
        # for data far from the origin.
        Xc = X - self.centre
        Yc = None if Y is None else Y - self.centre
        if self.kind == "rbf":
            return np.asarray(euclidean_distances(Xc, Yc, squared=True))
        return np.asarray(manhattan_distances(Xc, Yc))

    def of_distances(self, distances: Array, out: Array | None = None) -> Array:
        """Kernel values from what `distances` returned, in a new array unless ``out`` is given."""
        assert self.width is not None
        scale = 2.0 * self.width * self.width if self.kind == "rbf" else self.width
        out = np.divide(distances, -scale, out=out)
        return np.asarray(np.exp(out, out=out))

    def __call__(self, X: Array, Y: Array | None = None) -> Array:
        """Kernel matrix between the rows of X and of Y (of X and X when Y is None)."""
        if self.metric is not None:
            return self.of_distances(self.distances(X, Y))
        if self.function is not None:
            return self._call_function(X, X if Y is None else Y)
        if self.kind == "linear":
            return np.asarray(linear_kernel(X, Y))
        if self.kind == "polynomial":
            return np.asarray(polynomial_kernel(X, Y, **self.params))
        return np.asarray(cosine_similarity(X, Y))

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for each row."""
        if self.metric is not None:
            return np.ones(len(X))
        if self.function is not None:
            return np.array([self._call_function(x[None], x[None])[0, 0] for x in X])
        squared = np.einsum("ij,ij->i", X, X)
        if self.kind == "linear":
            return np.asarray(squared)
        if self.kind == "polynomial":
            gamma, coef0 = self.params["gamma"], self.params["coef0"]
            return np.asarray((gamma * squared + coef0) ** self.params["degree"])
        return np.asarray(np.where(squared > 0, 1.0, 0.0))

    def _call_function(self, X: Array, Y: Array) -> Array:
        assert self.function is not None
        K = np.asarray(self.function(X, Y), dtype=float)
        if K.shape != (len(X), len(Y)):
            raise ValueError(
                f"kernels: the callable {self.function!r} returned shape {K.shape} for inputs of "
                f"shapes {X.shape} and {Y.shape}; expected {(len(X), len(Y))}, one row a row of "
                "its first argument and one column a row of its second."
            )
        if not np.isfinite(K).all():
            raise ValueError(f"kernels: the callable {self.function!r} returned NaN or infinity.")
        return K


def parse_kernels(kernels: Any) -> list[KernelSpec]:
    """Turn what a user passed as ``kernels`` into specifications.

    Parameters
    ----------
    kernels : str, callable, or list of these
        Names of `KERNELS`, functions ``f(X, Y) -> array of shape (len(X), len(Y))``, or a list
        that mixes them.

    Returns
    -------
    list of KernelSpec
    """
    items = list(kernels) if isinstance(kernels, list | tuple) else [kernels]
    if not items:
        raise ValueError("kernels: got an empty list; expected at least one kernel.")
    return [_parse_one(item) for item in items]


def _parse_one(item: Any) -> KernelSpec:
    if isinstance(item, str) and item in KERNELS:
        return KernelSpec(item)
    if callable(item) and not inspect.isclass(item):
        return KernelSpec("callable", function=item)
    raise ValueError(
        f"kernels: got {item!r}; expected one of {sorted(KERNELS)}, a callable f(X, Y), a list "
        'of these, or "precomputed" (alone).'
    )
