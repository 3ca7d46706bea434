"""The simplex: b >= 0, sum b = 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._fields import stored
from kernull._typing import Array


@stored
class Simplex:
    """Weights that are non-negative and sum to one (an average of kernels)."""

    polyhedral = True
    exponent = 1.0

    def __repr__(self) -> str:
        return "Simplex()"

    def oracle(self, u: Array) -> Array:
        """The vertex with the largest u."""
        b = np.zeros(len(u))
        b[int(np.argmax(u))] = 1.0
        return b

    def support(self, u: Array) -> float:
        """The largest u."""
        return float(np.max(u))

    def uniform(self, J: int) -> Array:
        """1/J everywhere."""
        return np.full(J, 1.0 / J)

    def normalise(self, b: Array) -> Array:
        """Divide by the sum."""
        return np.asarray(b / b.sum())

    def minimise_model(self, u: Array, H: Array, b: Array, tol: float = 0.0) -> Array:
        """Minimise -u'(c - b) + (c - b)'H(c - b)/2 over c in the set, exactly."""
        return minimise_on_simplex(u + H @ b, H, b)

    def cvxpy_constraints(self, b: Any) -> list[Any]:
        """Constraints on a cvxpy variable."""
        return [b >= 0, sum(b) == 1]


def minimise_on_simplex(w: Array, H: Array, start: Array) -> Array:
    """Minimise -w'c + c'Hc/2 over the simplex by a primal active-set method.

    Starts from the best vertex, solves the equality-constrained problem on the support, walks to
    the first weight that would turn negative and drops it, or, once all are positive, adds the
    most promising zero weight; ends when none is. Each step lowers the objective.

    Parameters
    ----------
    w : array of shape (J,)
    H : array of shape (J, J)
        Positive semidefinite.
    start : array of shape (J,)
        Point of the simplex whose support is tried first.

    Returns
    -------
    array of shape (J,)
    """
    # From a vertex and not from ``start``, which Newton keeps full: the support of the answer is
    # small, and dropping hundreds of weights one by one would cost a J x J system each.
    J = len(w)
    scale = max(float(np.abs(w).max()), float(np.abs(H @ start).max()), np.finfo(float).tiny)
    # Identical kernels make H singular, a single direction makes it zero.
    H = H + 1e-13 * (np.trace(H) + scale) * np.eye(J)
    c = np.zeros(J)
    c[int(np.argmax(w - np.diagonal(H) / 2))] = 1.0
    active = c > 0
    for _ in range(20 * J + 20):
        index = np.flatnonzero(active)
        solution, multiplier = _equality_step(w[index], H[np.ix_(index, index)])
        if solution.min() >= 0:
            c = np.zeros(J)
            c[index] = solution
            promise = w - H @ c - multiplier
            promise[index] = -np.inf
            best = int(np.argmax(promise))
            if promise[best] <= 1e-12 * scale:
                break
            active[best] = True
        else:
            current = c[index]
            falling = solution < 0
            ratios = current[falling] / (current[falling] - solution[falling])
            current = np.maximum(current + ratios.min() * (solution - current), 0.0)
            current[np.flatnonzero(falling)[np.argmin(ratios)]] = 0.0
            c = np.zeros(J)
            c[index] = current
            active = c > 0
    return np.asarray(c / c.sum())


def _equality_step(w: Array, H: Array) -> tuple[Array, float]:
    """Minimise -w'c + c'Hc/2 subject to sum c = 1; returns c and the multiplier."""
    k = len(w)
    scale = float(np.trace(H)) / k
    kkt = np.zeros((k + 1, k + 1))
    kkt[:k, :k], kkt[:k, k], kkt[k, :k] = H, scale, scale
    rhs = np.append(w, scale)
    try:
        solution = np.linalg.solve(kkt, rhs)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(kkt, rhs, rcond=None)[0]
    return solution[:k], float(solution[k] * scale)
