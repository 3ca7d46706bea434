r"""The one-class SVM and support vector data description as problems in kernel weights.

Both are a quadratic programme, solved by scikit-learn's libsvm.

.. math:: \min_a \tfrac12 a'Qa \quad\text{subject to}\quad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

libsvm keeps Q in single precision and stops on a tolerance of its own, so that its answer is a
little off. `CappedProblem.slack` turns any answer into a certified one.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve
from sklearn.svm import OneClassSVM

from kernull._typing import Array, Mask
from kernull.mkl.problems.base import Evaluation, Problem
from kernull.operators import DenseStack
from kernull.operators.linalg import cholesky

#: libsvm's tolerance on gradients of about one; its single precision allows no less.
_TOLERANCE = 1e-9
#: libsvm's steps: on kernels of low rank its rounding keeps it from ever reaching the tolerance.
_STEPS, _STEPS_A_ROW = 20_000, 20
#: Squared radii below this share of the largest k(x, x) are rounding: the rows coincide.
_ROUNDING = 1e-12


def check_nu(nu: Any) -> float:
    """A number in (0, 1], or an error that names the parameter."""
    is_number = isinstance(nu, int | float | np.number) and not isinstance(nu, bool)
    if not is_number or not 0 < nu <= 1:
        raise ValueError(
            f"nu: got {nu!r}; expected a number in (0, 1]: the largest share of training rows "
            "that may lie outside."
        )
    return float(nu)


class CappedProblem(Problem):
    r"""The problem :math:`F(b) = \max_a \sum_j b_j [a'd_j - \tfrac c2 a'K_j a]` over such a.

    c = 1 and d = 0 are the one-class SVM, c = 2 and the kernels' diagonals SVDD.
    """

    quadratic: float
    """c"""
    stack: DenseStack

    def __init__(self, stack: DenseStack, nu: Any) -> None:
        self.stack = stack
        self.nu = check_nu(nu)
        #: The largest coefficient.
        self.cap = 1.0 / (self.nu * stack.n)
        self.diagonal = np.zeros((stack.J, stack.n))
        self.J = stack.J
        # That of libsvm's answers, or of the kernels if that is worse.
        self.precision = 1e-8 if stack.dtype == np.float64 else 3e-7

    def _solve(self, K: Array, d: Array) -> Array:
        """The coefficients a of a combined kernel."""
        return _solve_capped(K, self.nu)

    def inner(self, weights: Array) -> Array:
        """The coefficients a at b.

        Parameters
        ----------
        weights : array of shape (J,)
        """
        return self._solve(self.stack.combine(weights), weights @ self.diagonal)

    def plane(self, a: Array, Ka: Array | None = None) -> Array:
        """u(a) for any feasible a, of shape (J,): F(b) >= -b'u(a) for all b."""
        Ka = self.stack.products(a) if Ka is None else Ka
        return np.asarray(0.5 * self.quadratic * Ka @ a - self.diagonal @ a)

    def evaluate(self, weights: Array) -> Evaluation:
        """Value, gradient and curvature at b, from one run of libsvm and one pass."""
        weights = np.asarray(weights, dtype=float)
        self.n_evaluations += 1
        K, d = self.stack.combine(weights), weights @ self.diagonal
        a = self._solve(K, d)
        Ka = self.stack.products(a)
        # What each kernel pulls the rows with; the inner gradient is c times its sum.
        pull = Ka - self.diagonal / self.quadratic
        u = self.plane(a, Ka)
        value = -float(weights @ u) + self.slack(self.quadratic * (weights @ pull), a)
        floor = _ROUNDING * float(d.max())

        def lower_bound(support: float) -> float:
            return -support if abs(support) > floor else 0.0

        def second_order() -> Array:
            free = self._free(a)
            return self.quadratic * curvature(K[np.ix_(free, free)], pull[:, free].T)

        value = value if abs(value) > floor else 0.0
        return Evaluation(weights, value, u, a, lower_bound, second_order)

    @abstractmethod
    def description(self, weights: Array, a: Array) -> tuple[float, ...]:
        """The hyperplane, or the ball, at b.

        Parameters
        ----------
        weights : array of shape (J,)
        a : array of shape (n,)
            Coefficients at these weights.
        """

    def slack(self, gradient: Array, a: Array) -> float:
        r"""How far a is from optimal at most: :math:`\max_{a'} g'(a - a')` over the feasible a'.

        By convexity no feasible point has a value below that of a minus this number.
        """
        # Fill the smallest entries first.
        share = np.clip(1.0 - self.cap * np.arange(len(a)), 0.0, self.cap)
        return max(float(gradient @ a - np.sort(gradient) @ share), 0.0)

    def _free(self, a: Array) -> Mask:
        """Rows strictly between their bounds: those on the boundary of the description."""
        return np.asarray((a > 1e-9 * self.cap) & (a < (1.0 - 1e-9) * self.cap))

    def _boundary(self, g: Array, a: Array) -> float:
        """Mean of g over the free rows, or the middle of what the bounded rows allow, as libsvm."""
        free = self._free(a)
        if free.any():
            return float(g[free].mean())
        outside = a > 0.5 * self.cap
        low = float(g[outside].max())
        # With nu = 1 every row is outside, and any rho beyond the last of them would do.
        return low if outside.all() else 0.5 * (low + float(g[~outside].min()))


class OneClassSVMProblem(CappedProblem):
    r"""One-class SVM over a stack of kernels.

    .. math::

       F(b) = \max_a \; -\tfrac12 a'K_b a, \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

    F is convex and falls in every b_j (its gradient is -u with :math:`u_j = \tfrac12 a'K_j a`), so
    any lp ball serves: p = 1 is the paper's MK-OCSVM, p > 1 the lp version of Kloft and others.

    Parameters
    ----------
    stack : DenseStack
        J kernels over n rows.
    nu : float in (0, 1]
        At most this share of the rows lies outside; at least this share are support vectors.

    Notes
    -----
    *Certificate.* For any feasible a, with g = K_b a and the minimum over feasible a',

    .. math::

       U = -\tfrac12 a'K_b a + \max_{a'} g'(a - a') \;\ge\; F(b), \qquad
       L = -h(u) \;\le\; \min F,

    where h is the support function of the set of weights; for an exact a the gap U - L is
    :math:`h(u) - b'u`. *Curvature* is the Hessian of F at a fixed set of free support vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull import KernelStack, LpBall, solve
    >>> narrow, wide = np.eye(4), np.full((4, 4), 0.5) + np.eye(4) / 2
    >>> problem = OneClassSVMProblem(KernelStack(np.stack([narrow, wide])), nu=0.5)
    >>> solve(problem, LpBall(1)).weights.round(6)
    array([0., 1.])
    """

    quadratic = 1.0

    def description(self, weights: Array, a: Array) -> tuple[float, ...]:
        """(rho,), the projection at which rows turn into outliers: that of the free rows."""
        return (self._boundary(weights @ self.stack.products(a), a),)


class SVDDProblem(CappedProblem):
    r"""Data description over a stack of kernels, to be solved on the `Simplex`.

    .. math::

       F(d) = \max_a \; \sum_j d_j \big[ a'\mathrm{diag}(K_j) - a'K_j a \big],
       \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

    is the squared radius (with slack) of the smallest ball around the rows. F is convex and *rises*
    in every d_j, so the weights live on the simplex, not in a ball: with less weight everything
    shrinks.

    Parameters
    ----------
    stack : DenseStack
        J kernels over n rows.
    nu : float in (0, 1]
        At most this share of the rows lies outside the ball; the cost is C = 1/(nu n).

    Notes
    -----
    *Inner programme.* Since the a_i sum to one, :math:`a'\mathrm{diag}(K) = a'[(k_{ii} +
    k_{jj})/2]a`: the programme is that of the one-class SVM with
    :math:`Q_{ij} = K_{ij} - (k_{ii} + k_{jj})/2 + c`. Q is minus half the squared distances, hence
    positive semidefinite on vectors that sum to zero, which is all libsvm needs; c, the mean of
    the diagonal, only makes Q equal to K where the diagonal is constant.

    *Certificate.* With :math:`u_j = a'K_j a - a'\mathrm{diag}(K_j)` and any feasible a,
    U = -d'u plus the slack of a in the inner programme, L = -max u.

    Examples
    --------
    >>> import numpy as np
    >>> from kernull import KernelStack, Simplex, solve
    >>> spread, constant = np.eye(4), np.ones((4, 4))
    >>> problem = SVDDProblem(KernelStack(np.stack([spread, constant])), nu=0.5)
    >>> solve(problem, Simplex()).weights  # a constant kernel has radius zero
    array([0., 1.])
    """

    quadratic = 2.0

    def __init__(self, stack: DenseStack, nu: Any) -> None:
        super().__init__(stack, nu)
        self.diagonal = stack.diagonal()

    def _solve(self, K: Array, d: Array) -> Array:
        Q = K - 0.5 * d[:, None] - 0.5 * d[None, :] + float(d.mean())
        return _solve_capped(Q, self.nu)

    def description(self, weights: Array, a: Array) -> tuple[float, ...]:
        """(R^2, a'K_d a), the squared radius and the squared norm of the centre."""
        g = weights @ self.stack.products(a)
        norm2 = float(g @ a)
        # Squared distance to the centre of row i is k_ii - 2 g_i + a'K a.
        return -2.0 * self._boundary(g - 0.5 * (weights @ self.diagonal), a) + norm2, norm2


class _QuietSVM(OneClassSVM):
    """Silent when it runs out of steps: the certificate tells what is left.

    A warning filter would not do: filters belong to the process, and threads that set and restore
    them at the same time leave ConvergenceWarning silenced for good.
    """

    def _warn_from_fit_status(self) -> None:
        pass


def _solve_capped(Q: Array, nu: float) -> Array:
    """The minimiser a; Q need only be positive semidefinite on vectors that sum to zero.

    libsvm moves weight between two rows at a time, so it never leaves the plane 1'a = 1 and a
    constant added to Q changes nothing.
    """
    total = nu * len(Q)
    scale = float(np.abs(Q).max()) or 1.0
    options: dict[str, Any] = {
        "kernel": "precomputed",
        "nu": nu,
        # libsvm's variables are nu n a: its gradients have the size of nu n times Q.
        "tol": _TOLERANCE * max(total, 1.0),
        "cache_size": 500,
        "max_iter": max(_STEPS, _STEPS_A_ROW * len(Q)),
    }
    machine = _QuietSVM(**options).fit(Q / scale)
    a = np.zeros(len(Q))
    a[machine.support_] = machine.dual_coef_[0] / total
    return a


def curvature(K: Array, V: Array) -> Array:
    r"""V'PV, P the inverse of K on vectors that sum to zero: curvature at a fixed set of free rows.

    .. math:: P = K^{-1} - K^{-1} 1 1' K^{-1} / (1'K^{-1}1)

    with the combined kernel K of the free rows, of shape (f, f), and the change V of the inner
    gradient there with each weight, of shape (f, J).
    """
    f, J = V.shape
    if f < 2:  # a single free row cannot move: the solution is locally constant
        return np.zeros((J, J))
    base = np.trace(K) / f
    for jitter in (1e-12, 1e-8, 1e-4):
        try:
            factor = cholesky(K + jitter * base * np.eye(f))
            break
        except LinAlgError:
            continue
    else:  # an indefinite kernel: first-order information only
        return np.zeros((J, J))
    both = cho_solve((factor, True), np.column_stack([V, np.ones(f)]), check_finite=False)
    ones = both[:, -1]
    pull = V.T @ ones
    H = V.T @ both[:, :-1] - np.outer(pull, pull) / ones.sum()
    return np.asarray((H + H.T) / 2)
