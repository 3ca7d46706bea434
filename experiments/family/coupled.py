r"""Tasks that learn from each other: kernels over rows times kernels over tasks.

Row i belongs to task c_i. With positive semidefinite matrices T_m over the tasks, the kernels

.. math:: K_{jm}(i, k) = T_m(c_i, c_k)\, K_j(i, k)

are positive semidefinite, and their weights b_jm say how much the tasks share: the task covariance
of kernel j is :math:`\sum_m b_{jm} T_m`. With T = I alone the tasks are uncoupled
(`JointFisherProblem` with one ridge), with T = 11' alone they are one; in between the coupling is
learned, convex and certified, by whatever learns weights of kernels: a multi-task null space.

Source: products of kernels over rows and over tasks are those of Evgeniou, Micchelli and Pontil,
*Learning Multiple Tasks with Kernel Methods*, Journal of Machine Learning Research 6 (2005). That
their weights are learned for one-class tasks, in an lp ball, is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from kernull._typing import Array
from kernull.operators.dense import DenseStack

__all__ = ["couple", "task_covariance", "task_kernels"]


def task_kernels(n_tasks: int, pairs: bool = False) -> Array:
    """Matrices over tasks whose sums a task covariance is learned from.

    Parameters
    ----------
    n_tasks : int
        C.
    pairs : bool
        Add a matrix for every pair of tasks, which may then be near each other and to no other.

    Returns
    -------
    array of shape (2, C, C) or (2 + C (C - 1) / 2, C, C)
        The identity (nothing is shared), all ones (everything is), and the pairs.

    Examples
    --------
    >>> task_kernels(2).tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
    >>> task_kernels(3, pairs=True).shape
    (5, 3, 3)
    """
    if isinstance(n_tasks, bool) or int(n_tasks) < 1:
        raise ValueError(f"n_tasks: got {n_tasks!r}; expected a positive number.")
    C = int(n_tasks)
    found = [np.eye(C), np.ones((C, C))]
    if pairs:
        for pair in combinations(range(C), 2):
            both = np.zeros(C)
            both[list(pair)] = 1.0
            found.append(np.outer(both, both))
    return np.stack(found)


def couple(
    stack: DenseStack, tasks: Array, rows: Sequence[Any] | Array, columns: Any = None
) -> DenseStack:
    """Kernels over rows times kernels over tasks, listed kernel by kernel: j x M + m.

    Parameters
    ----------
    stack : DenseStack
        J kernels of shape (m, n) over the rows of all tasks.
    tasks : array of shape (M, C, C)
        Symmetric positive semidefinite; see `task_kernels`.
    rows : sequence of int, of length m
        Number of each row's task, from 0.
    columns : sequence of int, of length n, optional
        Those of the columns; those of the rows by default.

    Returns
    -------
    DenseStack
        J M kernels.

    Examples
    --------
    >>> K = DenseStack(np.ones((1, 2, 2)))
    >>> couple(K, task_kernels(2), [0, 1]).kernels.tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]]
    """
    T = np.asarray(tasks, dtype=float)
    if T.ndim != 3 or T.shape[1] != T.shape[2] or not np.allclose(T, T.transpose(0, 2, 1)):
        raise ValueError(f"tasks: got shape {T.shape}; expected symmetric matrices (M, C, C).")
    lowest = float(np.linalg.eigvalsh(T).min())
    if lowest < -1e-9 * float(np.abs(T).max()):
        raise ValueError(
            f"tasks: got a matrix with the eigenvalue {lowest:.3g}; expected positive "
            "semidefinite ones."
        )
    J, m, n = stack.kernels.shape
    left = _numbers(rows, m, T.shape[1])
    right = left if columns is None else _numbers(columns, n, T.shape[1])
    factors = T[:, left[:, None], right[None, :]]
    coupled = stack.kernels[:, None] * factors[None]
    M = len(T)
    return DenseStack(coupled.reshape(J * M, m, n), scale=np.repeat(stack.scale, M))


def task_covariance(weights: Array, tasks: Array) -> Array:
    """The learned covariance of the tasks, summed over kernels and scaled to a unit diagonal.

    Parameters
    ----------
    weights : array of shape (J M,)
    tasks : array of shape (M, C, C)

    Returns
    -------
    array of shape (C, C)

    Examples
    --------
    >>> task_covariance(np.array([1.0, 1.0]), task_kernels(2)).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    share = np.asarray(weights, dtype=float).reshape(-1, len(tasks)).sum(axis=0)
    T: Array = np.tensordot(share, np.asarray(tasks, dtype=float), 1)
    size = np.sqrt(np.diag(T))
    return np.asarray(T / np.outer(size, size))


def _numbers(tasks: Any, length: int, count: int) -> Any:
    found = np.asarray(tasks)
    whole = np.issubdtype(found.dtype, np.integer)
    if found.shape != (length,) or not whole or found.min() < 0 or found.max() >= count:
        raise ValueError(
            f"rows: got tasks {tasks!r}; expected {length} whole numbers from 0 to {count - 1}."
        )
    return found
