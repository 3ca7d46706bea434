"""The dense stack, one array of shape (J, m, n), and kernels that users give as such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from kernull._runtime import in_threads
from kernull._typing import Array
from kernull.errors import InvalidKernelError
from kernull.kernels import Custom, Rbf
from kernull.operators.base import Stack
from kernull.operators.linalg import symmetric_product
from kernull.views.kernel_set import KernelSet

#: Up to so many rows one product of all kernels is quicker than one of a triangle for each.
ONE_CALL = 300
#: Steps of Lanczos spent on finding a negative eigenvalue of a kernel given by the user.
LANCZOS_STEPS = 12
#: Rows beyond which so many of them, drawn at random, stand for all.
LANCZOS_ROWS = 512
#: Share of the differences allowed up to which one triangle of a kernel serves for the whole.
TRIANGLE_SLACK = 1e-4
#: Rows and columns of a square that is compared with its mirror image at once.
SQUARE_ROWS = 256
#: Values from which a product is worth threads of our own: those of BLAS spin, and wait.
THREADED_CELLS = 2**22
#: Values of a weighted sum that are worked out at a time.
COMBINED_CELLS = 2**19


class DenseStack(Stack):
    r"""J kernel matrices in one array.

    Parameters
    ----------
    kernels : array of shape (J, m, n)
        Kernel values between m rows and n training rows; m = n for fitting.
    scale : array of shape (J,), optional
        One factor per kernel; 1 by default.
    diagonal : array of shape (J, m), optional
        k_j(x, x) of the m rows of a cross stack, before scaling. Methods that measure distances
        (SVDD, the variance of a Gaussian process, kernel PCA) need it to score rows where the
        kernels' diagonals are not constant; ``np.ix_`` slices of a stack of symmetric kernels carry
        it along.
    names : sequence of str, optional
        One name per kernel, for ``kernel_names_``, explanations and ``missing_views`` of a model;
        slices carry them along.

    Notes
    -----
    A stack has ``shape`` (m, n) and takes ``stack[np.ix_(rows, columns)]``, so scikit-learn's
    splitters and searches slice it like any pairwise matrix.

    Examples
    --------
    >>> import numpy as np
    >>> stack = DenseStack(np.stack([np.eye(3), np.ones((3, 3))]))
    >>> stack.shape, stack.J
    ((3, 3), 2)
    >>> stack.products(np.ones(3))
    array([[1., 1., 1.],
           [3., 3., 3.]])
    >>> stack[np.ix_([0], [1, 2])].shape
    (1, 2)
    """

    can_combine = True

    def __init__(
        self,
        kernels: Array,
        scale: Array | None = None,
        diagonal: Array | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if np.ndim(kernels) != 3:
            raise InvalidKernelError(
                f"kernels: got an array of shape {np.shape(kernels)}; expected (J, n, n) to fit "
                "or (J, m, n) to score: one matrix per kernel, stacked along the first axis."
            )
        kernels = np.asarray(kernels)
        if kernels.dtype.kind == "c":  # the imaginary part would be lost
            raise InvalidKernelError(
                f"kernels: got values of type {kernels.dtype}; expected real numbers."
            )
        if kernels.dtype not in (np.float32, np.float64):
            kernels = kernels.astype(float)
        self.kernels = np.ascontiguousarray(kernels)
        self.shape = (int(self.kernels.shape[1]), int(self.kernels.shape[2]))
        self.dtype = self.kernels.dtype
        self.scale = np.ones(len(kernels)) if scale is None else np.asarray(scale, dtype=float)
        if self.scale.shape != (len(kernels),):
            raise ValueError(
                f"scale: got shape {self.scale.shape}; expected one factor for each of the "
                f"{len(kernels)} kernels."
            )
        self.own_diagonal = None if diagonal is None else np.asarray(diagonal, dtype=float)
        if self.own_diagonal is not None and self.own_diagonal.shape != self.kernels.shape[:2]:
            raise InvalidKernelError(
                f"diagonal: got shape {self.own_diagonal.shape}; expected "
                f"{self.kernels.shape[:2]}, one k(x, x) a kernel and row."
            )
        self.names = None if names is None else _kernel_names(names, len(kernels))
        #: Whether each kernel is known to equal its transpose, entry by entry.
        self.symmetric = False

    @classmethod
    def of(cls, kernel_set: KernelSet, dtype: Any = np.float64) -> DenseStack:
        """The kernels of the training rows of a kernel set."""
        out = np.empty((kernel_set.J, kernel_set.n, kernel_set.n), dtype=dtype)
        for j, K in kernel_set.matrices():
            out[j] = K
        stack, kernels = cls(out), [k for view in kernel_set.views for k in view.kernels]
        # The named kernels are positive semidefinite; a function of the user's need not be.
        if any(isinstance(kernel, Custom) for kernel in kernels):
            stack.validate()
        # The halves of rbf kernels are copies of each other; other kernels may differ by rounding.
        stack.symmetric = all(isinstance(kernel, Rbf) for kernel in kernels)
        return stack

    def __repr__(self) -> str:
        return f"DenseStack(J={self.J}, shape={self.shape}, dtype={self.dtype})"

    def __getitem__(self, index: Any) -> DenseStack:
        """Slice rows, or rows and columns by ``np.ix_``, of every kernel."""
        pairwise = isinstance(index, tuple)
        parts = index if pairwise else (index, slice(None))
        diagonal = self.own_diagonal
        # As many new rows as training rows make a cross stack square too; only a symmetric one
        # holds kernels of rows with themselves.
        if diagonal is None and pairwise and self._is_symmetric():
            diagonal = np.einsum("jii->ji", self.kernels)
        if diagonal is not None:
            rows = parts[0]
            diagonal = diagonal[:, rows if isinstance(rows, slice) else np.ravel(rows)]
        return DenseStack(self.kernels[(slice(None), *parts)], self.scale, diagonal, self.names)

    def columns(self, index: Any) -> DenseStack:
        """The same rows against the columns that an index picks.

        k(x, x) comes along where it was passed, and is never read off the matrices: the rows may
        be new ones.
        """
        return DenseStack(self.kernels[:, :, index], self.scale, self.own_diagonal, self.names)

    def products(self, V: Array) -> Array:
        """K_j V for every j: (n,) -> (J, m), (n, k) -> (J, m, k)."""
        J, m, n = self.kernels.shape
        V = np.asarray(V, dtype=self.dtype)
        # One triangle is enough: half of the memory to read, but a call for each kernel.
        if self.symmetric and V.size == n > ONE_CALL:
            v = V.ravel()
            products = np.stack(_each(lambda K: symmetric_product(K, v), self.kernels))
            scaled = np.asarray(products * self.scale[:, None], dtype=float)
            return scaled.reshape(J, *V.shape)
        flat = self.kernels.reshape(J * m, n)
        if V.ndim == 1:
            return np.asarray((flat @ V).reshape(J, m) * self.scale[:, None], dtype=float)
        # V'K' rather than KV: BLAS streams the large matrix twice as fast this way round.
        out = (np.ascontiguousarray(V.T) @ flat.T).reshape(-1, J, m)
        return np.asarray(out.transpose(1, 2, 0) * self.scale[:, None, None], dtype=float)

    def combine(self, weights: Array) -> Array:
        """Sum of b_j K_j, a new float64 array of shape (m, n)."""
        J, m, n = self.kernels.shape
        scaled = np.asarray(weights * self.scale, dtype=self.dtype)
        used = np.flatnonzero(scaled)
        if len(used) == 1:  # Algorithm 1 at p = 1: others need not be read
            return np.asarray(scaled[used[0]] * self.kernels[used[0]], dtype=float)
        flat = self.kernels.reshape(J, m * n)
        if m * n <= COMBINED_CELLS:
            return np.asarray((scaled @ flat).reshape(m, n), dtype=float)
        out = np.empty(m * n, self.dtype)
        parts = [slice(start, start + COMBINED_CELLS) for start in range(0, m * n, COMBINED_CELLS)]
        in_threads(lambda part: np.matmul(scaled, flat[:, part], out=out[part]), parts)
        return np.asarray(out.reshape(m, n), dtype=float)

    def diagonal(self) -> Array:
        """k_j(x_i, x_i), of shape (J, m); of a cross stack only where it was given."""
        if self.own_diagonal is not None:
            return np.asarray(self.own_diagonal * self.scale[:, None])
        if self.shape[0] != self.shape[1]:
            raise InvalidKernelError(
                f"kernels: k(x, x) of the rows of a stack of shape {self.shape} is not known; "
                "pass kernull.KernelStack(kernels, diagonal=...) with one value per kernel and row."
            )
        return np.asarray(np.einsum("jii->ji", self.kernels) * self.scale[:, None], dtype=float)

    def rows(self, index: Any) -> Array:
        """Rows of every kernel, of shape (J, len(index), n)."""
        return np.asarray(self.kernels[:, index] * self.scale[:, None, None], dtype=float)

    def select(self, kernels: Any) -> DenseStack:
        """The stack of the kernels that an index or a mask picks."""
        diagonal = None if self.own_diagonal is None else self.own_diagonal[kernels]
        names = None if self.names is None else np.array(self.names)[kernels].tolist()
        out = DenseStack(self.kernels[kernels], self.scale[kernels], diagonal, names)
        out.symmetric = self.symmetric
        return out

    def validate(self, n: int | None = None, J: int | None = None) -> DenseStack:
        """Check a user's stack: for fitting, or (where n and J are passed) for scoring."""
        if self.J == 0:
            raise InvalidKernelError("kernels: the stack is empty; expected at least one kernel.")
        if not (np.isfinite(self.scale).all() and (self.scale >= 0).all()):
            raise InvalidKernelError(
                f"scale: got {self.scale}; expected finite factors, none of them negative."
            )
        if n is not None:
            if not np.isfinite(self.kernels).all():
                raise InvalidKernelError("kernels: the stack contains NaN or infinity.")
            if (self.J, self.n) != (J, n):
                raise InvalidKernelError(
                    f"kernels: got {self.J} kernels against {self.n} training rows; the model was "
                    f"fitted on {J} kernels of {n} rows, so scoring needs shape ({J}, m, {n})."
                )
            return self
        if self.shape[0] != self.shape[1]:
            raise InvalidKernelError(
                f"kernels: got shape {self.kernels.shape}; fitting needs square kernels (J, n, n)."
            )
        self._check_symmetric()
        self._check_semidefinite()
        return self

    def _is_symmetric(self) -> bool:
        off, slack = self._asymmetries() if self.shape[0] == self.shape[1] else (np.inf, 0.0)
        return bool(np.all(off <= slack))

    def _asymmetries(self) -> tuple[Array, Array]:
        """Each kernel's largest difference from its transpose, and what rounding may do: (J,).

        The latter is NaN where the kernel has entries that are no numbers.
        """
        off, largest = np.array(_each(_off_and_largest, self.kernels)).T
        return off, (1e-4 if self.dtype == np.float32 else 1e-8) * largest

    def _check_symmetric(self) -> None:
        off, slack = self._asymmetries()
        if not np.isfinite(slack).all():
            raise InvalidKernelError("kernels: the stack contains NaN or infinity.")
        for j in np.flatnonzero(off > slack):
            raise InvalidKernelError(
                f"kernels: kernel {j} is not symmetric (entries differ from their mirror images "
                f"by up to {off[j]:.3g}); pass (K + K.T) / 2 if that is what you mean."
            )
        self.symmetric = bool((off <= TRIANGLE_SLACK * slack).all())

    def _check_semidefinite(self) -> None:
        rows: Any = None
        if self.n > LANCZOS_ROWS:  # a part of a semidefinite matrix is semidefinite
            rows = np.sort(np.random.default_rng(0).choice(self.n, LANCZOS_ROWS, replace=False))
        lowest, largest = smallest_ritz_value(self.kernels, rows=rows)
        slack = 1e-4 if self.dtype == np.float32 else 1e-8
        for j in np.flatnonzero(lowest < -slack * largest):
            raise InvalidKernelError(
                f"kernels: kernel {j} is not positive semidefinite: it has an eigenvalue of "
                f"{lowest[j]:.3g} or below (its largest is about {largest[j]:.3g}). "
                "Clip its negative eigenvalues, or use a kernel that is positive semidefinite."
            )


def _each(work: Callable[[Array], Any], kernels: Array) -> list[Any]:
    """Results of a function for each kernel, in threads where the kernels are large."""
    apply: Any = in_threads if kernels.size >= THREADED_CELLS else map
    return list(apply(work, [*kernels]))


def _off_and_largest(K: Array) -> tuple[float, float]:
    """The largest difference of a matrix from its transpose, and its largest entry: one pass."""
    off, largest, n = 0.0, 0.0, len(K)
    with np.errstate(invalid="ignore"):
        for a in range(0, n, SQUARE_ROWS):
            for b in range(a, n, SQUARE_ROWS):
                rows, columns = slice(a, a + SQUARE_ROWS), slice(b, b + SQUARE_ROWS)
                one, other = K[rows, columns], K[columns, rows].T
                difference = np.abs(one - other)
                # max() would let a number win over what is none.
                off = float(np.maximum(off, difference.max(initial=0.0)))
                largest = float(np.maximum(largest, np.abs(one).max(initial=0.0)))
    # An entry that is no number makes the difference none.
    return off, largest if np.isfinite(off) else np.nan


def smallest_ritz_value(
    kernels: Array, steps: int = LANCZOS_STEPS, rows: Any = None
) -> tuple[Array, Array]:
    """Extreme Ritz values of each matrix, or of the part at ``rows``, after a few Lanczos steps.

    The smallest Ritz value is an upper bound of the smallest eigenvalue: a negative one proves
    the matrix indefinite. Costs ``steps`` products a matrix, no eigendecomposition.
    """

    def work(K: Array) -> tuple[float, float]:
        K = np.asarray(K if rows is None else K[rows].take(rows, axis=1), dtype=float)
        q, count = np.random.default_rng(0).standard_normal(len(K)), min(steps, len(K))
        Q, KQ = np.zeros((count, len(K))), np.zeros((count, len(K)))
        rounding = 0.0
        for k in range(count):
            norm = np.linalg.norm(q)
            if not norm > rounding:  # the Krylov space is invariant: what is left is rounding
                Q, KQ = Q[:k], KQ[:k]
                break
            Q[k] = q / norm
            KQ[k] = symmetric_product(K, Q[k])
            rounding = 1e-12 * float(np.linalg.norm(KQ[k]))
            q = KQ[k].copy()
            for _ in range(2):  # twice is enough
                q -= Q[: k + 1].T @ (Q[: k + 1] @ q)
        T = Q @ KQ.T
        ritz = np.linalg.eigvalsh((T + T.T) / 2)
        return ritz[0], np.abs(ritz).max()

    extremes = np.array(_each(work, kernels))
    return extremes[:, 0], extremes[:, 1]


def _kernel_names(names: Any, J: int) -> tuple[str, ...]:
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names: got {names!r}; expected one text a kernel.")
    if len(names) != J or len(set(names)) != J:
        raise ValueError(f"names: got {list(names)}; expected {J} different names, one per kernel.")
    return tuple(str(name) for name in names)


# -- Kernels that users give as matrices. --


def read_precomputed(
    X: Any, *, n: int | None = None, J: int | None = None, dtype: Any = np.float64
) -> DenseStack:
    """A validated stack from an array (J, n, n), an (n, n) matrix, or a stack.

    Parameters
    ----------
    X : array of shape (J, n, n) or (n, n), or KernelStack
        Kernels as passed.
    n : int, optional
        Number of training rows to expect.
    J : int, optional
        Number of kernels to expect.
    dtype : NumPy dtype

    Returns
    -------
    DenseStack
    """
    if issparse(X):
        raise TypeError("X: sparse kernels are not supported; pass X.toarray().")
    stack = _stack_of(X)
    if stack.dtype != dtype:
        values = stack.kernels.astype(dtype)
        stack = DenseStack(values, stack.scale, stack.own_diagonal, stack.names)
    stack.validate(n, J)
    if n is None and stack.n < 2:
        raise InvalidKernelError(f"kernels: got {stack.n} training row(s); expected at least 2.")
    return stack


def with_diagonal(X: Any) -> DenseStack:
    """Square kernels of the training rows as a stack that keeps k(x, x) when it is sliced."""
    stack = _stack_of(X)
    if stack.own_diagonal is not None:
        return stack
    diagonal = np.einsum("jii->ji", stack.kernels)
    return DenseStack(stack.kernels, stack.scale, diagonal, stack.names)


def _stack_of(X: Any) -> DenseStack:
    if isinstance(X, DenseStack):
        return X
    values = np.asarray(X)
    return DenseStack(values[None] if values.ndim == 2 else values)


def with_scale(stack: DenseStack, scale: Array | None) -> DenseStack:
    """Kernels of new rows under the factors of the kernels given to fit.

    Arrays, and stacks without factors of their own, take them; other factors than those of the fit
    would make other kernels of them.
    """
    if scale is None or np.array_equal(stack.scale, scale):
        return stack
    if (stack.scale != 1.0).any():
        raise InvalidKernelError(
            f"scale: got {stack.scale}; the model was fitted on kernels with scale {scale}. Pass "
            "the same scale, or none: the fitted one is then applied."
        )
    return DenseStack(stack.kernels, scale, stack.own_diagonal, stack.names)


def names_of_kernels(stack: DenseStack) -> Any:
    """The names of a stack's kernels, or their numbers."""
    names = stack.names or [f"kernel {j}" for j in range(stack.J)]
    return np.array(names, dtype=object)


def check_names(stack: DenseStack, fitted: Any) -> DenseStack:
    """Refuse kernels with other names than those of the fit, or in another order."""
    if stack.names is not None and list(stack.names) != list(fitted):
        raise InvalidKernelError(
            f"names: got {list(stack.names)}; the model was fitted on {list(fitted)}, in that "
            "order."
        )
    return stack
