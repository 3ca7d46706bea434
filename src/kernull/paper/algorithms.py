r"""The algorithms of the paper on kernel matrices, each by its name there.

Each takes kernels, p and delta and returns a solver's `Result`: ``weights`` (the paper's
:math:`\beta`), ``coef`` (its :math:`\alpha`), ``value`` of the objective, the certified ``gap``
that these leave, and ``history``. That of Algorithm 1, a `PrintedResult`, has the ``best`` point
visited, the period of the ``cycle`` in which it ends, and all ``iterates`` too. They are solvers of
`kernull.mkl.solvers` on the problems of `kernull.mkl.problems`, with the paper's defaults.

Delta is relative to the number of rows, as everywhere in kernull: the matrix that is inverted is
:math:`\delta n I + K_b`. The paper's :math:`\delta` is the whole factor of :math:`I`, and its grid
:math:`\{10^{-4}, \dots, 10^2\} \times n`; the numbers before "times n" are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernull.mkl.balls import LpBall
from kernull.mkl.problems import FisherProblem, JointFisherProblem
from kernull.mkl.solvers import Result, solve
from kernull.mkl.solvers.paper import PrintedResult
from kernull.operators.dense import read_precomputed

__all__ = ["PrintedResult", "Result", "algorithm1", "algorithm2", "cvx", "gradient", "kloft"]


def algorithm1(
    K: Any, p: float, delta: float, *, tol: float = 1e-6, max_iter: int = 200
) -> PrintedResult:
    r"""Algorithm 1, lp-norm multiple kernel one-class Fisher null-space, as printed.

    .. math::

       \alpha = (\delta n I + \textstyle\sum_j \beta_j K_j)^{-1} 1, \qquad
       u_j = \alpha' K_j \alpha, \qquad
       \beta = u^{1/(p-1)} / \|u^{1/(p-1)}\|_p

    from :math:`\beta_j = J^{-1/p}` until :math:`\alpha` no longer changes. The **last** iterate is
    returned, whether or not it converged. At p = 1 the update gives one kernel all the weight: the
    largest :math:`u_j`, the first of equal ones.

    Parameters
    ----------
    K : array of shape (J, n, n) or KernelStack
        Kernel matrices of the n training rows, all of them targets.
    p : float in [1, inf]
        Norm of the weights; the paper's grid is `kernull.mkl.PAPER_PS`.
    delta : float > 0
        Ridge relative to n: the paper's delta is ``delta * n``.
    tol : float
        Stop at a relative change :math:`\|\alpha - \alpha_{old}\|_2 / \|\alpha\|_2` up to this.
    max_iter : int
        Most updates of the weights.

    Returns
    -------
    PrintedResult
        With a `ConvergenceWarning` that says the gap, and the period if it cycles, where the gap is
        above ``tol``.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> K = np.exp(-((X[:, None] - X) ** 2)).transpose(2, 0, 1)  # one kernel a column
    >>> found = algorithm1(K, p=2, delta=0.01)
    >>> found.weights.round(2), bool(found.gap < 1e-6), found.cycle
    (array([0.51, 0.61, 0.6 ]), True, 0)

    Scores of new rows, from kernels between m new and the n training rows, of shape (J, m, n):

    >>> (found.weights @ (K[:, :5] @ found.coef)).shape
    (5,)

    Near p = 1 it may cycle for ever, and the last iterate is one of the cycle:

    >>> from warnings import catch_warnings
    >>> with catch_warnings(action="ignore"):  # its warning says the period
    ...     last = algorithm1(K, p=1, delta=0.01)
    >>> last.weights, last.cycle, bool(last.gap > last.best.gap)
    (array([0., 0., 1.]), 2, True)
    """
    return _solved(K, p, delta, "paper", tol, max_iter)


def algorithm2(
    tasks: Sequence[Any],
    p: float,
    delta: float | Sequence[float],
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> PrintedResult:
    r"""Algorithm 2, joint learning of kernel weights that C related tasks share, as printed.

    .. math::

       \alpha_c = (\delta n_c I + \textstyle\sum_j \beta_j K^c_j)^{-1} 1_c, \qquad
       v_j = \textstyle\sum_c \alpha_c' K^c_j \alpha_c, \qquad
       \beta = v^{1/(p-1)} / \|v^{1/(p-1)}\|_p

    from :math:`\beta_j = J^{-1/p}`, stopped and returned as in `algorithm1`. With one task it is
    Algorithm 1. A new task that takes the weights over needs one linear solve.

    Parameters
    ----------
    tasks : sequence of arrays of shape (J, n_c, n_c), or of KernelStack
        Kernel matrices of every task, in the same order of kernels.
    p : float in [1, inf]
        Norm of the weights.
    delta : float > 0, or a sequence of C of them
        Ridge relative to the rows of each task. The paper has one delta for all tasks, without a
        number of rows: that is ``[delta / n_c for each task]``, and the same where all tasks have
        the same number of rows.
    tol : float
        Stop at a relative change of all coefficients together of at most this.
    max_iter : int
        Most updates of the weights.

    Returns
    -------
    PrintedResult
        ``coef`` is a tuple of arrays of shape (n_c,), one a task, and so is ``best.coef``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((n, 3)) for n in (30, 20)]
    >>> tasks = [np.exp(-((Z[:, None] - Z) ** 2)).transpose(2, 0, 1) for Z in X]
    >>> found = algorithm2(tasks, p=2, delta=0.01)
    >>> found.weights.shape, [a.shape for a in found.coef], bool(found.gap < 1e-6)
    ((3,), [(30,), (20,)], True)
    """
    deltas = np.broadcast_to(delta, len(tasks)) if np.ndim(delta) == 0 else np.asarray(delta)
    if deltas.shape != (len(tasks),):
        raise ValueError(f"delta: got shape {deltas.shape} for {len(tasks)} tasks.")
    problem = JointFisherProblem([_problem(K, d) for K, d in zip(tasks, deltas, strict=True)])
    last: Any = solve(problem, LpBall(p), "paper", tol=tol, max_iter=max_iter)
    best = last.best._replace(coef=tuple(problem.split(last.best.coef)))
    return replace(last, coef=tuple(problem.split(last.coef)), best=best)  # type: ignore[no-any-return]


def gradient(
    K: Any, p: float, delta: float, *, tol: float = 1e-6, max_iter: int = 50_000
) -> Result:
    r"""Lp MK-FN-Grad, gradient ascent on the dual (section V of the paper's supplement).

    .. math:: \max_\alpha \; 2 \alpha'1 - \delta n\, \alpha'\alpha - \|u\|_{p/(p-1)}

    Parameters
    ----------
    K, p, delta, max_iter
        As in `algorithm1`.
    tol : float
        Certified relative gap to stop at.

    Returns
    -------
    Result

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> K = np.exp(-((X[:, None] - X) ** 2)).transpose(2, 0, 1)
    >>> gradient(K, p=2, delta=0.01).weights.round(2), kloft(K, p=2, delta=0.01).weights.round(2)
    (array([0.51, 0.61, 0.6 ]), array([0.51, 0.61, 0.6 ]))
    """
    return _solved(K, p, delta, "gradient", tol, max_iter)


def kloft(K: Any, p: float, delta: float, *, tol: float = 1e-6, max_iter: int = 2000) -> Result:
    r"""The update of Kloft et al. (2011) in line 5 of Algorithm 1, the paper's remark.

    .. math:: \beta_j \propto (\beta_j^2 u_j)^{1/(p+1)}, \qquad \|\beta\|_p = 1

    The objective never rises; near p = 1 it takes hundreds of iterations.

    Parameters
    ----------
    K, p, delta, tol, max_iter
        As in `gradient`.
    """
    return _solved(K, p, delta, "kloft", tol, max_iter)


def cvx(K: Any, p: float, delta: float, *, tol: float = 1e-6, max_iter: int = 200) -> PrintedResult:
    r"""Lp MK-FN-CVX, Algorithm 1 with its weight step by a conic solver (extra ``cvxpy``).

    .. math:: \max_\beta \; \beta'u \quad \text{subject to} \quad \beta \ge 0, \|\beta\|_p \le 1

    The step has the closed form of `algorithm1`; the paper times it against this one.

    Parameters
    ----------
    K, p, delta, tol, max_iter
        As in `algorithm1`; it also stops at a certified relative gap of ``tol``.
    """
    return _solved(K, p, delta, "paper-cvx", tol, max_iter)


def _problem(K: Any, delta: float) -> FisherProblem:
    stack = read_precomputed(K)
    return FisherProblem(stack, delta * stack.n)


def _solved(
    K: Any, p: float, delta: float, solver: str, tol: float, max_iter: int
) -> PrintedResult:
    result: Any = solve(_problem(K, delta), LpBall(p), solver, tol=tol, max_iter=max_iter)
    return result  # type: ignore[no-any-return]  # others than Algorithm 1 give a `Result`
