r"""Minimise a quadratic over the simplex, or over the sphere of a mixed norm.

The sphere is :math:`c \ge 0, \|c\|_{r,p} = 1` with
:math:`\|c\|_{r,p} = \big(\sum_g N_g^p\big)^{1/p}, N_g = \|c_g\|_r`: the plain lp sphere when all
weights form one group, or when r = p. At p = inf every group lies on a sphere by itself. There it
is Newton's method in relative steps; on the simplex, an active set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError
from scipy.linalg.lapack import dpotrs

from kernull._typing import Array, Indices
from kernull.operators.linalg import cholesky

#: Below this distance from 1, or above this p, weights are those of the limit to double precision.
P_ONE = 1.0 + 1e-8
P_INF = 1e15
_TINY = np.finfo(float).tiny
#: Factor by which the barrier falls from one centre to the next.
BARRIER_CUT = 0.1


@dataclass(frozen=True)
class Sphere:
    """The unit sphere of a mixed (r, p) norm, seen from logarithms of the weights."""

    p: float
    r: float
    labels: Indices
    """Group of each weight, numbered from 0."""

    def log_group_norms(self, logs: Array) -> Array:
        """Logarithms of N_g from log c; -inf for a group of zeros."""
        top = np.full(int(self.labels.max()) + 1, -np.inf)
        np.maximum.at(top, self.labels, logs)
        if self.r > P_INF:
            return top
        shift = np.where(np.isfinite(top), top, 0.0)
        sums = np.bincount(self.labels, np.exp(self.r * (logs - shift[self.labels])), len(top))
        with np.errstate(divide="ignore"):
            return np.asarray(shift + np.log(sums) / self.r)

    def log_norm(self, logs: Array) -> float:
        """Logarithm of the mixed norm."""
        groups = logs if self.p == self.r else self.log_group_norms(logs)  # one norm of all
        top = float(groups.max())
        if self.p > P_INF or not np.isfinite(top):
            return top
        return top + float(np.log(np.exp(self.p * (groups - top)).sum())) / self.p

    def normalised_logs(self, logs: Array) -> Array:
        """Logarithms of the point of the sphere under c (at p = inf, of each group's sphere)."""
        if self.p > P_INF:
            return np.asarray(logs - self.log_group_norms(logs)[self.labels])
        return np.asarray(logs - self.log_norm(logs))

    def normal(self, z: Array) -> Array:
        """Gradient of the constraint(s) times c: n_j = N_g^(p-r) c_j^r; sums to 1 on each."""
        if self.p > P_INF or self.p == self.r:
            return np.asarray(np.exp(self.r * z))
        groups = self.log_group_norms(z)
        return np.asarray(np.exp((self.p - self.r) * groups[self.labels] + self.r * z))

    def sums(self, values: Array) -> Array:
        """Sum over the weights of each constraint, for each weight."""
        if self.p > P_INF:
            return np.asarray(np.bincount(self.labels, values)[self.labels])
        return np.full(len(values), values.sum())

    def columns(self, normal: Array) -> Array:
        """The normal as one column a constraint."""
        if self.p <= P_INF:
            return normal[:, None]
        return np.asarray(normal[:, None] * (self.labels[:, None] == np.unique(self.labels)))

    def bend(self, normal: Array, multiplier: Array) -> Array:
        """Hessian of multiplier times constraint, scaled by c on both sides."""
        out = np.diag((self.r - 1.0) * multiplier * normal)
        if self.p <= P_INF and self.p != self.r:
            same = self.labels[:, None] == self.labels
            totals = np.maximum(np.bincount(self.labels, normal), _TINY)[self.labels]  # N_g^p
            share = (self.p - self.r) * multiplier * normal / totals
            out += same * (share[:, None] * normal)
        return np.asarray(out)


def minimise_on_sphere(
    sphere: Sphere, ball: Any, w: Array, H: Array, start: Array, tol: float
) -> Array:
    """Minimise -w'c + c'Hc/2 over the sphere until its gap, h(v) - v'c, is at most ``tol``.

    Where the sphere has no corners the minimiser has no zero weight where the model falls: a
    smooth problem. Where it has, a logarithmic barrier keeps weights positive: at its centre
    v_j c_j + tau = lambda n_j, hence h(v) <= lambda and the gap is at most J tau. The barrier
    falls until that is small.
    """
    z = sphere.normalised_logs(np.log(np.maximum(start, 1e-12)))
    if min(sphere.p, sphere.r) >= P_ONE:  # no corners
        return np.exp(_newton(sphere, ball, w, H, z, 0.0, tol))
    J = len(w)
    c = np.exp(z)
    v = w - H @ c
    scale = max(abs(ball.support(v)), abs(float(v @ c)), _TINY)
    goal = max(tol, 1e-13 * scale)
    tau = max(ball.support(v) - float(v @ c), goal) / J
    while True:
        z = _newton(sphere, ball, w, H, z, tau, goal)
        c = np.exp(z)
        v = w - H @ c
        if ball.support(v) - float(v @ c) <= goal or J * tau <= 0.1 * goal:
            return c
        tau *= BARRIER_CUT


def _newton(
    sphere: Sphere, ball: Any, w: Array, H: Array, z: Array, tau: float, tol: float
) -> Array:
    """Logarithms of the minimiser of -w'c + c'Hc/2 - tau sum log c on the sphere."""
    c = np.exp(z)
    Hc = H @ c
    value = -w @ c + 0.5 * c @ Hc - tau * z.sum()
    for _ in range(60):
        v = w - Hc  # minus the model's gradient; proportional to the normal / c at the optimum
        along = float(v @ c)
        if (tau > 0.0 or along > 0.0) and ball.support(v) - along <= tol:
            break
        # Newton in relative steps e (c -> c (1 + e)): Hessian of the Lagrangian, scaled by c
        # on both sides, and the normal of the sphere, scaled likewise.
        normal = sphere.normal(z)
        slope = c * v + tau
        multiplier = np.maximum(sphere.sums(slope), 1e-3 * float(np.abs(v).max()))
        scaled = H * c[:, None] * c + sphere.bend(normal, multiplier)
        scaled.flat[:: len(c) + 1] += tau + 1e-14 * float(np.trace(H * c[:, None] * c)) + _TINY
        try:
            factor = cholesky(scaled.copy())
        except LinAlgError:  # rounding in a singular H: a better-conditioned step
            scaled.flat[:: len(c) + 1] += 1e-8 * float(np.trace(scaled))
            factor = cholesky(scaled)
        N = sphere.columns(normal)
        both, _ = dpotrs(factor, np.column_stack([slope, N]), lower=1)
        free, across = both[:, 0], both[:, 1:]
        step = free - across @ np.linalg.solve(N.T @ across, N.T @ free)
        # Centred: the gap is linear in the distance to the centre, the decrement quadratic.
        decrement = float(step @ (slope - multiplier * normal))
        if tau > 0.0 and decrement <= 1e-3 * tau * min(1.0, tau / float(multiplier.max())):
            break
        shrink = 1.0
        for _ in range(30):
            # A weight shrinks to a tenth at most: it is never lost.
            trial_z = sphere.normalised_logs(z + np.log1p(np.maximum(shrink * step, -0.9)))
            trial = np.exp(trial_z)
            H_trial = H @ trial
            trial_value = -w @ trial + 0.5 * trial @ H_trial - tau * trial_z.sum()
            if trial_value <= value + 1e-14 * abs(value):
                break
            shrink *= 0.5
        else:
            break
        z, c, Hc, value = trial_z, trial, H_trial, trial_value
    return z


def minimise_on_simplex(w: Array, H: Array, start: Array) -> Array:
    """Minimise -w'c + c'Hc/2 over the simplex by a primal active-set method.

    Starts from the best vertex, solves the equality-constrained problem on the support, walks to
    the first weight that would turn negative and drops it, or, once all are positive, adds the
    most promising zero weight; ends when none is. Each step lowers the objective. ``H`` is positive
    semidefinite; ``start`` sets the scale alone.
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


def convex_norm(x: Any, p: float) -> Any:
    """The p-norm of a cvxpy expression."""
    import cvxpy

    if p < P_ONE or p > P_INF:
        return cvxpy.norm(x, 1 if p < P_ONE else "inf")
    return cvxpy.pnorm(x, p, approx=False)
