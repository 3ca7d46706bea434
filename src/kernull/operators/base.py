"""The protocol that every stack of kernel matrices answers to, and what many stacks share."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from kernull._typing import Array, Indices, Mask


@runtime_checkable
class Stack(Protocol):
    """J kernel matrices between m rows and n training rows (m = n when fitting).

    ``combine`` may be missing where forming an n x n matrix makes no sense; solvers that need it
    say so.
    """

    scale: Array
    """One factor per kernel, of shape (J,), applied wherever kernel values leave the stack."""

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n), so that scikit-learn can slice a stack like a pairwise matrix."""
        ...

    @property
    def n(self) -> int:
        """Number of training rows."""
        ...

    @property
    def J(self) -> int:
        """Number of kernels."""
        ...

    def products(self, V: Array) -> Array:
        """K_j V for every j in one pass: (n,) -> (J, m), (n, k) -> (J, m, k)."""
        ...

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, m)."""
        ...

    def rows(self, index: Any) -> Array:
        """Rows of every kernel matrix, of shape (J, len(index), n)."""
        ...


class StackShape:
    """Sizes of a stack from its ``shape`` and its factors."""

    scale: Array
    shape: tuple[int, int]
    """(m, n); m = n where the rows on the left are the training rows."""

    @property
    def n(self) -> int:
        """Number of training rows."""
        return self.shape[1]

    @property
    def J(self) -> int:
        """Number of kernels."""
        return len(self.scale)

    def __len__(self) -> int:
        return self.shape[0]

    def _positions(self, index: Any) -> tuple[Indices, Indices]:
        """Rows and columns that an index picks: of rows alone, or of both by ``np.ix_``."""
        both = index if isinstance(index, tuple) else (index, slice(None))
        rows, columns = (np.arange(s)[i].ravel() for s, i in zip(self.shape, both, strict=True))
        return rows, columns

    def _mask(self, kernels: Any) -> Mask:
        """Some of the kernels as a mask."""
        mask = np.zeros(self.J, dtype=bool)
        mask[kernels] = True
        return mask


class SweptStack(StackShape):
    """A stack whose products are sums over one sweep of all kernel values, none of them kept."""

    def _sweep(self, V: Any, weights: Array | None = None) -> Array:
        """K_j V without factors, (J, m, k), of V (n, k), or (J, n, k); with weights, their sum."""
        raise NotImplementedError

    def products(self, V: Any) -> Array:
        """K_j V for every j: (n,) -> (J, m), (n, k) -> (J, m, k)."""
        out = self._sweep(V.reshape(self.n, -1))
        out *= self.scale[:, None, None]
        return out.reshape(self.J, len(self), *V.shape[1:])

    def products_each(self, V: Any) -> Array:
        """K_j V_j for every j: (J, n) -> (J, m), (J, n, k) -> (J, m, k)."""
        out = self._sweep(V.reshape(self.J, self.n, -1))
        out *= self.scale[:, None, None]
        return out.reshape(self.J, len(self), *V.shape[2:])
