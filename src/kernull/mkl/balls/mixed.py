"""The mixed (r, p) ball: an r-norm within groups of kernels, a p-norm between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernull._fields import stored
from kernull._typing import Array
from kernull.mkl.balls._quadratic import P_INF, P_ONE, Sphere, convex_norm, minimise_on_sphere
from kernull.mkl.balls.lp import LpBall


@stored
class MixedBall:
    r"""Weights with :math:`b \ge 0, \|b\|_{r,p} \le 1`, in groups g.

    .. math:: \|b\|_{r,p} = \Big(\sum_g \|b_g\|_r^p\Big)^{1/p}, \qquad
       h(u) = \|v\|_{p/(p-1)}, \quad v_g = \|(u_g)_+\|_{r/(r-1)}

    r = 1 lets the kernels of a group compete (one width per view, say) while p > 1 keeps every
    group in play; p = 1 with r > 1 picks whole groups. r = p is the plain ball.

    Parameters
    ----------
    p : float in [1, inf]
        Norm between groups.
    r : float in [1, inf]
        Norm within a group.
    groups : sequence of length J, optional
        Name of each weight's group. None: an estimator takes the view of each kernel. For a table
        of weights, row by row, ``np.arange(J) // columns`` is the matrix norm of Arashloo (2021).

    Notes
    -----
    ``polyhedral`` is True at r = p = 1 only: that flag promises the vertices of a simplex.

    Examples
    --------
    >>> import numpy as np
    >>> ball = MixedBall(p=2, r=1, groups=["colour", "colour", "shape"])
    >>> ball.oracle(np.array([1.0, 3.0, 4.0]))
    array([0. , 0.6, 0.8])
    >>> ball.support(np.array([1.0, 3.0, 4.0]))
    5.0
    """

    def __init__(self, p: float, r: float, groups: Sequence[Any] | None = None) -> None:
        self._between, self._within = LpBall(p), _within_ball(r)
        self.p, self.r = self._between.p, self._within.p
        #: A mixed ball is as round as the less round of its two norms.
        self.exponent = min(self.p, self.r)
        self.groups = None if groups is None else tuple(groups)
        if self.groups == ():
            raise ValueError("groups: got none; expected the name of a group for each kernel.")
        names: dict[Any, int] = {}
        labels = [names.setdefault(name, len(names)) for name in self.groups or ()]
        #: Names of the groups, in order of first appearance.
        self.group_names = tuple(names)
        self.labels = np.array(labels, dtype=np.intp)
        self._members = [np.flatnonzero(self.labels == g) for g in range(len(names))]
        self._sphere = Sphere(self.p, self.r, self.labels)

    def __repr__(self) -> str:
        groups = "" if self.groups is None else f", {len(self._members)} groups"
        return f"MixedBall(p={self.p:g}, r={self.r:g}{groups})"

    @property
    def polyhedral(self) -> bool:
        """True at r = p = 1, the simplex."""
        return self.p < P_ONE and self.r < P_ONE

    def oracle(self, u: Array) -> Array:
        """The maximiser of b'u: the oracle between groups times the oracle within."""
        self._check(len(u))
        shares = self._between.oracle(self._group_supports(u))
        b = np.empty(len(u))
        for g, members in enumerate(self._members):
            b[members] = shares[g] * self._within.oracle(u[members])
        return b

    def support(self, u: Array) -> float:
        """h(u), the norm of the group norms."""
        self._check(len(u))
        return self._between.support(self._group_supports(u))

    def uniform(self, J: int) -> Array:
        """The same weight everywhere, on the boundary."""
        self._check(J)
        return self.normalise(np.ones(J))

    def normalise(self, b: Array) -> Array:
        """Scale to unit mixed norm."""
        with np.errstate(divide="ignore"):
            logs = np.log(b)
        return np.asarray(np.exp(logs - self._sphere.log_norm(logs)))

    def kloft(self, u: Array, b: Array) -> Array:
        r"""Kloft's update: the minimiser of sum_j w_j / b_j, w = b^2 u; it never raises F.

        Within a group :math:`b_{gj} \propto w_j^{1/(r+1)}`, which leaves V_g / s_g with
        :math:`V_g = \|w_g\|_{r/(r+1)}` and s_g the norm of the group:
        :math:`s_g \propto V_g^{1/(p+1)}`.
        """
        with np.errstate(divide="ignore"):
            logs = 2.0 * np.log(b) + np.log(np.maximum(u, 0.0))
        root = 1.0 if self.r > P_INF else self.r / (self.r + 1.0)
        within = np.zeros(len(u)) if self.r > P_INF else logs / (self.r + 1.0)
        log_V = Sphere(self.p, root, self.labels).log_group_norms(logs)
        between = np.zeros_like(log_V) if self.p > P_INF else log_V / (self.p + 1.0)
        norms = self._sphere.log_group_norms(within)
        # A group without any weight stays without.
        inside = within - np.where(np.isfinite(norms), norms, 0.0)[self.labels]
        total = Sphere(self.p, self.p, np.zeros(len(norms), dtype=np.intp)).log_norm(between)
        return np.asarray(np.exp(inside + (between - total)[self.labels]))

    def cvxpy_constraints(self, b: Any) -> list[Any]:
        """Constraints on a cvxpy variable."""
        import cvxpy as cp

        s: Any = cp.Variable(len(self._members))
        inner = [convex_norm(b[rows], self.r) <= s[g] for g, rows in enumerate(self._members)]
        return [b >= 0, *inner, convex_norm(s, self.p) <= 1]

    def minimise_model(self, u: Array, H: Array, b: Array, tol: float = 0.0) -> Array:
        """Minimise -u'(c - b) + (c - b)'H(c - b)/2 over the boundary; see `LpBall`."""
        self._check(len(u))
        if self.r == self.p:
            return self._between.minimise_model(u, H, b, tol)
        w = u + H @ b
        if self.r > P_INF:  # one weight per group: the same problem between groups
            E = (self.labels[:, None] == np.arange(len(self._members))).astype(float)
            s = np.array([b[members].max() for members in self._members])
            small = E.T @ H @ E
            return np.asarray(E @ self._between.minimise_model(E.T @ w - small @ s, small, s, tol))
        return minimise_on_sphere(self._sphere, self, w, H, b, tol)

    def _group_supports(self, u: Array) -> Array:
        return np.array([self._within.support(u[members]) for members in self._members])

    def _check(self, J: int) -> None:
        if len(self.labels) != J:
            raise ValueError(
                f"groups: got {len(self.labels)} entries for {J} kernels; expected the name of a "
                "group for each kernel."
            )


def _within_ball(r: float) -> LpBall:
    try:
        return LpBall(r)
    except ValueError:
        raise ValueError(f"r: got {r!r}; expected a number in [1, inf].") from None
