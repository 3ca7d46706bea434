"""What every stack of kernel matrices answers, and what stacks share.

A stack is made of three methods: `Stack.products`, `Stack.diagonal` and `Stack.rows`. What else it
can do it declares: ``can_combine`` where it forms the weighted sum of its kernels as one matrix,
``landmark_rows`` where landmarks stand for all rows, `Stack.coarse` where a cheaper stack is nearly
the same. Nobody asks a stack whether it has a method.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.linalg import block_diag

from kernull._typing import Array, Indices
from kernull.errors import InvalidKernelError, MissingCapabilityError
from kernull.operators.landmarks import LandmarkInverse


class Stack(ABC):
    """J kernel matrices between m rows and n training rows (m = n when fitting)."""

    shape: tuple[int, int]
    """(m, n), so that scikit-learn can slice a stack like a pairwise matrix."""
    scale: Array
    """One factor per kernel, of shape (J,), applied wherever kernel values leave the stack."""
    dtype: Any = np.dtype(np.float64)
    """Type that kernel values are evaluated in; what leaves the stack is float64."""
    can_combine: bool = False
    """Whether `combine` forms a matrix; solvers that factorise need it."""
    landmark_rows: Indices | None = None
    """Rows that stand for all in an approximation; None where every row stands for itself."""

    @abstractmethod
    def products(self, V: Array) -> Array:
        """K_j V for every j in one pass: (n,) -> (J, m), (n, k) -> (J, m, k).

        Parameters
        ----------
        V : array of shape (n,) or (n, k)

        Returns
        -------
        array of shape (J, m) or (J, m, k)
        """

    @abstractmethod
    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, m)."""

    @abstractmethod
    def rows(self, index: Any) -> Array:
        """Rows of every kernel matrix, of shape (J, len(index), n).

        Parameters
        ----------
        index : integer array of shape (l,)

        Returns
        -------
        array of shape (J, l, n)
        """

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

    @property
    def eps(self) -> float:
        """Relative rounding of a kernel value."""
        return float(np.finfo(self.dtype).eps)

    def rescaled(self, factors: Array) -> Self:
        """The same kernels, each times one more factor; ``factors`` has shape (J,).

        Parameters
        ----------
        factors : array of shape (J,)
            One a kernel.
        """
        other = copy.copy(self)
        other.scale = self.scale * factors
        return other

    def combine(self, weights: Array) -> Array:
        """Sum of b_j K_j, a new array of shape (m, n), where ``can_combine`` is true.

        Parameters
        ----------
        weights : array of shape (J,)

        Returns
        -------
        array of shape (n, n)
        """
        raise MissingCapabilityError(
            f"kernels: {type(self).__name__} never forms a matrix of {self.shape[0]} x {self.n} "
            "values. Use solver='subspace', or storage='dense'."
        )

    def project(self, V: Array) -> Array:
        """Coefficients by which new rows are scored, from those V of all rows.

        V itself; of a stack with ``landmark_rows``, those of the landmarks for each kernel:
        (n,) -> (J, l), (n, k) -> (J, l, k).
        """
        return V

    def coarse(self) -> Stack | None:
        """Nearly the same stack at a fraction of the price, for a first solution; None if none."""
        return None

    def pieces(self) -> Iterator[tuple[slice, Stack]]:
        """The stack in pieces of rows whose values fit in memory."""
        yield slice(None), self

    def landmark_inverse(
        self, index: Indices, ridge: float, row_scale: Array | None = None
    ) -> Callable[[Array, Array], Array]:
        """A function of weights b and residual r that nearly solves (rho I + K_b) x = r.

        Parameters
        ----------
        index : integer array of shape (l,)
            Rows that serve as landmarks.
        ridge : float
            rho > 0.
        row_scale : array of shape (n,), optional
            Roots s of the weights of rows: the kernels are S K_j S.
        """
        return LandmarkInverse(self.rows(index), index, ridge, row_scale)


class SweptStack(Stack):
    """A stack whose products are sums over one sweep of all kernel values, none of them kept."""

    @abstractmethod
    def _sweep(self, V: Any) -> Array:
        """K_j V without factors, (J, m, k), of V (n, k), or (J, n, k) with one block a kernel."""

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


class BlockDiagonalStack(Stack):
    """Kernels K_j = diag(K^1_j, ..., K^C_j) over the rows of C tasks, never formed whole.

    Kernel values between rows of different tasks are zero.
    """

    def __init__(self, blocks: Sequence[Stack]) -> None:
        if not blocks:
            raise ValueError("blocks: got no stack; expected one per task.")
        counts = sorted({block.J for block in blocks})
        if len(counts) > 1:
            raise InvalidKernelError(
                f"kernels: tasks have {counts} kernels; tasks that share weights need the same "
                "kernels in the same order."
            )
        self.blocks = tuple(blocks)
        ends = np.cumsum([block.n for block in blocks]).tolist()
        #: Rows of each task.
        self.slices = tuple(
            slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)
        )
        self.shape = (ends[-1], ends[-1])
        self.scale = np.ones(counts[0])  # on top of that of each block
        self.can_combine = all(block.can_combine for block in blocks)

    @property
    def eps(self) -> float:
        """That of the coarsest task."""
        return max(block.eps for block in self.blocks)

    def products(self, V: Array) -> Array:
        """K_j V for every j: (n,) -> (J, n), (n, k) -> (J, n, k)."""
        parts = [
            block.products(V[rows]) for block, rows in zip(self.blocks, self.slices, strict=True)
        ]
        return np.asarray(np.concatenate(parts, axis=1) * self._factors(V.ndim))

    def combine(self, weights: Array) -> Array:
        """Sum of b_j K_j as one n x n matrix, where every task's stack forms its own."""
        if not self.can_combine:
            return super().combine(weights)
        parts = [block.combine(weights * self.scale) for block in self.blocks]
        return np.asarray(block_diag(*parts))

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n)."""
        values = np.concatenate([block.diagonal() for block in self.blocks], axis=1)
        return np.asarray(values * self._factors(1))

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        index = np.arange(self.n)[index]
        out = np.zeros((self.J, len(index), self.n))
        for block, rows in zip(self.blocks, self.slices, strict=True):
            inside = np.flatnonzero((index >= rows.start) & (index < rows.stop))
            if len(inside):
                out[:, inside, rows] = block.rows(index[inside] - rows.start)
        return np.asarray(out * self._factors(2))

    def _factors(self, axes: int) -> Array:
        """The scale, with as many axes after it."""
        return self.scale.reshape(-1, *[1] * axes)


class UserStack(Stack):
    """Kernels by an object of the user's, with methods ``products``, ``diagonal`` and ``rows``.

    Factors of the kernels are applied here.
    """

    def __init__(self, operator: Any, J: int, n: int) -> None:
        self.operator, self.scale, self.shape = operator, np.ones(J), (n, n)
        self._checked(operator.products(np.ones((n, 1))), (J, n, 1), "products(V), V of one column")

    def __repr__(self) -> str:
        return f"UserStack({type(self.operator).__name__}, J={self.J}, n={self.n})"

    def products(self, V: Array) -> Array:
        """K_j V for every j: (n,) -> (J, n), (n, k) -> (J, n, k)."""
        columns = V.reshape(self.n, -1)
        shape = (self.J, self.n, columns.shape[1])
        values = self._checked(self.operator.products(columns), shape, "products(V)")
        return np.asarray(values * self.scale[:, None, None]).reshape(self.J, *V.shape)

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, n)."""
        values = self._checked(self.operator.diagonal(), (self.J, self.n), "diagonal()")
        return np.asarray(values * self.scale[:, None])

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        index = np.arange(self.n)[index]
        shape = (self.J, len(index), self.n)
        values = self._checked(self.operator.rows(index), shape, "rows(index)")
        return np.asarray(values * self.scale[:, None, None])

    def _checked(self, values: Any, shape: tuple[int, ...], what: str) -> Array:
        array: Array = np.asarray(values, dtype=float)
        if array.shape != shape:
            raise InvalidKernelError(
                f"storage: {what} of {self.operator!r} has shape {array.shape}; expected {shape} "
                f"for {self.J} kernels of {self.n} rows."
            )
        return array


def of_user(operator: Any, kernel_set: Any) -> Stack:
    """A user's operator on the rows of a kernel set as a `Stack`."""
    if isinstance(operator, Stack):
        return operator
    methods = ("products", "diagonal", "rows")
    missing = [name for name in methods if not callable(getattr(operator, name, None))]
    if missing:
        raise TypeError(
            f"storage: got an operator {operator!r} without {', '.join(missing)}; expected an "
            "object with the methods products(V), diagonal() and rows(index)."
        )
    return UserStack(operator, kernel_set.J, kernel_set.n)
