"""The protocol that every stack of kernel matrices answers to."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from kernull._typing import Array


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
