r"""A smooth convex programme on the simplex, by a primal-dual interior point method.

.. math:: \min_a \; a'Ka - k'a + \gamma \sum_i a_i^q
   \quad\text{subject to}\quad a \ge 0,\; 1'a = 1, \qquad q > 1

Source: the textbook method, Boyd and Vandenberghe, *Convex Optimization* (2004), section 11.7. It
solves the inner programme of `experiments.family.slack_svdd`.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernull._typing import Array

__all__ = ["minimise_on_the_simplex"]

_STEPS = 200
#: Complementarity falls by this factor at most in one step.
_CENTRE = 0.1
#: Share of the way to the boundary that a step may go.
_SHORT_OF = 0.99


def minimise_on_the_simplex(
    K: Array, k: Array, gamma: float, q: float, tol: float = 1e-11
) -> Array:
    r"""The minimiser a > 0, of shape (n,).

    Parameters
    ----------
    K : array of shape (n, n)
        Positive semidefinite.
    k : array of shape (n,)
    gamma : float
        Positive.
    q : float
        Above 1.
    tol : float
        Ends when no feasible point is better by more than this share of the programme's scale.

    Returns
    -------
    array of shape (n,)

    Notes
    -----
    With z the multipliers of a >= 0 and m those of the sum, a step solves

    .. math::

       (H + \mathrm{diag}(z/a))\,\Delta a - 1\,\Delta m = -(g - m1 - \mu/a), \quad 1'\Delta a = 0

    Powers q < 2 have no second derivative at zero; inside the simplex they have one.
    """
    n = len(K)
    a = np.full(n, 1.0 / n)

    def gradient(a: Array) -> Array:
        return np.asarray(2.0 * (K @ a) - k + gamma * q * a ** (q - 1.0))

    g = gradient(a)
    scale = float(np.abs(K).max()) + float(np.abs(k).max()) + gamma * float(n) ** (1.0 - q)
    m = float(g.min()) - 1e-3 * scale
    z = g - m
    for _ in range(_STEPS):
        if float(g @ a - g.min()) <= tol * scale:
            break
        mu = _CENTRE * float(a @ z) / n
        M = 2.0 * K
        M.flat[:: n + 1] += gamma * q * (q - 1.0) * a ** (q - 2.0) + z / a
        try:
            factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            break
        right = -(g - m - mu / a)
        both = cho_solve(factor, np.column_stack([right, np.ones(n)]), check_finite=False)
        dm = (1.0 - a.sum() - both[:, 0].sum()) / both[:, 1].sum()
        da = both[:, 0] + dm * both[:, 1]
        dz = mu / a - z - (z / a) * da
        step = min(1.0, _SHORT_OF * _room(a, da), _SHORT_OF * _room(z, dz))
        a = a + step * da
        a /= a.sum()
        m, z = m + step * dm, z + step * dz
        g = gradient(a)
    return a


def _room(x: Array, dx: Array) -> float:
    """The longest step that keeps x non-negative."""
    falling = dx < 0
    return float(np.min(-x[falling] / dx[falling])) if falling.any() else np.inf
