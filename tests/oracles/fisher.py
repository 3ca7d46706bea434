"""Weights and coefficients of lp MK-FN by general solvers, and random problems to try them on."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np


def random_kernels(rng, n, J, kinds=("rbf", "linear", "low-rank", "full", "block")):
    """J positive semidefinite matrices of several kinds, of different scales and ranks."""
    kernels = []
    for j in range(J):
        kind = kinds[j % len(kinds)]
        if kind == "rbf":
            x = rng.normal(size=(n, 2))
            d2 = ((x[:, None] - x[None]) ** 2).sum(-1)
            K = np.exp(-d2 / (2 * rng.uniform(0.2, 2.0) ** 2))
        elif kind == "linear":
            x = rng.normal(size=(n, 3)) + 1.0
            K = x @ x.T / 3
        elif kind == "low-rank":
            x = rng.normal(size=(n, 1)) + 0.5
            K = x @ x.T
        elif kind == "full":
            x = rng.normal(size=(n, 2 * n))
            K = x @ x.T / (2 * n)
        else:
            groups = rng.integers(0, 3, n)
            K = (groups[:, None] == groups[None]).astype(float)
        kernels.append(K * rng.uniform(0.3, 3.0))
    return np.stack(kernels)


def random_problem(seed, p=None):
    """Kernels, ridge and p of the seed-th random small problem."""
    rng = np.random.default_rng(seed)
    n, J = int(rng.integers(6, 21)), int(rng.integers(2, 8))
    kinds = np.array(["rbf", "linear", "low-rank", "full", "block"])
    kernels = random_kernels(rng, n, J, kinds=tuple(rng.permutation(kinds)))
    ridge = float(n * 10 ** rng.uniform(-3, 0))
    grid = [1.0, 32 / 31, 8 / 7, 4 / 3, 2.0, 4.0, 10.0, np.inf]
    return kernels, ridge, grid[seed % len(grid)] if p is None else p


def dual_norm(u, p):
    """||u||_q for non-negative u, 1/p + 1/q = 1."""
    u = np.asarray(u, dtype=float)
    if p == 1:
        return u.max()
    if np.isinf(p):
        return u.sum()
    q = p / (p - 1)
    return u.max() * ((u / u.max()) ** q).sum() ** (1 / q)


def fisher_value(kernels, b, ridge, t=None):
    """F(b) = t'(ridge I + K_b)^-1 t by a general linear solve."""
    n = kernels.shape[1]
    t = np.ones(n) if t is None else t
    K = sum(weight * K for weight, K in zip(b, kernels, strict=True))
    return float(t @ np.linalg.solve(ridge * np.eye(n) + K, t))


def fisher_coef(kernels, b, ridge, t=None):
    """a(b) by a general linear solve."""
    n = kernels.shape[1]
    K = sum(weight * K for weight, K in zip(b, kernels, strict=True))
    return np.linalg.solve(ridge * np.eye(n) + K, np.ones(n) if t is None else t)


def fisher_gap(kernels, b, ridge, p):
    """Relative gap at b, from the exact a(b): (F - L)/F with L the best scaling of a."""
    a = fisher_coef(kernels, b, ridge)
    u = np.array([a @ K @ a for K in kernels])
    upper = a.sum()  # F(b) = 1'a for the exact a
    lower = a.sum() ** 2 / (ridge * a @ a + dual_norm(np.maximum(u, 0), p))
    return (upper - lower) / upper


def certificate_gap(kernels, b, a, ridge, p):
    """(U - L)/U for any coefficients a, exact or not."""
    n = kernels.shape[1]
    u = np.array([a @ K @ a for K in kernels])
    r = np.ones(n) - ridge * a - sum(w * (K @ a) for w, K in zip(b, kernels, strict=True))
    upper = 2 * a.sum() - ridge * a @ a - b @ u + r @ r / ridge
    return 1 - a.sum() ** 2 / (ridge * a @ a + dual_norm(np.maximum(u, 0), p)) / upper


def cvxpy_dual(kernels, ridge, p, t=None):
    """max over a of 2a't - ridge a'a - ||(a'K_j a)_j||_q; the weights are its multipliers.

    With s_j >= a'K_j a as constraints, the multiplier of the j-th is the derivative of the
    optimum by a'K_j a, which is b_j. Dividing kernels and ridge by a number leaves the weights
    and scales the value; conic solvers like numbers near 1, so a few such numbers are tried, and
    the first that reaches the sharpest tolerance is taken.
    """
    import cvxpy as cp

    largest = np.linalg.eigvalsh(kernels.sum(axis=0))[-1]
    sizes = [ridge, np.sqrt(ridge * largest), largest]
    programmes = [(size, *_dual_programme(kernels / size, ridge / size, p, t)) for size in sizes]
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    for tol in (1e-11, 1e-10, 1e-9, 1e-8):
        for size, programme, bounds in programmes:
            with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
                warnings.simplefilter("ignore")  # "may be inaccurate": then the next one
                programme.solve(solver=cp.CLARABEL, **dict.fromkeys(names, tol))
                if programme.status == cp.OPTIMAL:
                    weights = [float(np.squeeze(bound.dual_value)) for bound in bounds]
                    return float(programme.value) / size, np.array(weights)
    raise AssertionError("Clarabel could not solve the dual")


def _dual_programme(kernels, ridge, p, t):
    import cvxpy as cp

    J, n, _ = kernels.shape
    t = np.ones(n) if t is None else t
    a, s = cp.Variable(n), cp.Variable(J)
    bounds = []
    for j in range(J):
        values, vectors = np.linalg.eigh(kernels[j])
        keep = values > 1e-13 * values[-1]
        root = vectors[:, keep] * np.sqrt(values[keep])
        bounds.append(cp.sum_squares(root.T @ a) <= s[j])
    if p == 1:
        norm = cp.norm(s, "inf")
    elif np.isinf(p):
        norm = cp.norm(s, 1)
    else:
        norm = cp.pnorm(s, p / (p - 1), approx=False)
    objective = 2 * a @ t - ridge * cp.sum_squares(a) - norm
    return cp.Problem(cp.Maximize(objective), bounds), bounds
