"""The front door of the shared path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernull.paths import PAPER_DELTAS, PAPER_PS, Path, Progress, shared_path
from kernull.stacks import DenseStack


def path(
    stack: Any,
    ps: Sequence[float] = PAPER_PS,
    deltas: Sequence[float] = PAPER_DELTAS,
    *,
    tol: float = 1e-4,
    sample_weight: Any = None,
    callback: Callable[[Progress], None] | None = None,
) -> Path:
    r"""All models of a (p, delta) grid, for about the price of a few.

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \; 2 a'1 - \delta n\, a'a - a'K_b a
       \qquad \text{for every } p, \delta

    One subspace serves every p and delta, so the kernels are passed over a few times in all, not
    a few times per model. Each model has its own certified gap.

    Parameters
    ----------
    stack : Stack or array of shape (J, n, n)
        Kernels of the training rows. Any stack will do: without ``combine`` no n x n matrix is
        ever formed.
    ps : sequence of float in [1, inf]
        Norms of the weights.
    deltas : sequence of float > 0
        Ridges relative to n.
    tol : float
        Certified relative gap that every model must reach.
    sample_weight : array of shape (n,), optional
        Trust in each row, > 0, as in ``MultiKernelFisherNull.fit``.
    callback : callable, optional
        Called with a `Progress` after every pass.

    Returns
    -------
    Path
        Weights, coefficients, values and gaps, axis 0 for p and axis 1 for delta (both in
        increasing order), and ``scores(cross)`` for the projections of any rows by every model.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> kernels = np.exp(-((X[:, None] - X) ** 2)).transpose(2, 0, 1)
    >>> models = path(kernels, ps=[1, 2, np.inf], deltas=[1e-3, 1e-2], tol=1e-6)
    >>> models.weights.shape, bool(models.gaps.max() <= 1e-6)
    ((3, 2, 3), True)
    >>> models.scores(kernels[:, :5]).shape
    (3, 2, 5)
    """
    if isinstance(stack, np.ndarray) or not hasattr(stack, "products"):
        stack = DenseStack(np.asarray(stack, dtype=float)).validate()
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight is not None and (weight.shape != (stack.n,) or not (weight > 0).all()):
        raise ValueError(
            f"sample_weight: got shape {weight.shape}; expected {stack.n} positive numbers. Leave "
            "out rows of weight zero."
        )
    return shared_path(stack, ps, deltas, tol=tol, row_weight=weight, callback=callback)
