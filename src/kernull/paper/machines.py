"""Multiple-kernel SVDD and one-class SVM, plain and slim.

MK-SVDD and MK-OCSVM of the paper, and their slim variants, which are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernull._fields import Range, Shape, stored
from kernull._typing import Array, Indices
from kernull.detector.model import Certificate, RuleFit
from kernull.detector.rows import Training
from kernull.estimators.base import Certified, OneClassKernelEstimator
from kernull.estimators.inputs import check_number
from kernull.mkl.balls import Ball, LpBall, Simplex
from kernull.mkl.problems import OneClassSVMProblem, SVDDProblem
from kernull.mkl.solvers import Solver, solve
from kernull.mkl.solvers.base import iterations_logged
from kernull.operators import DenseStack
from kernull.paper._fusion import ONE, constant_diagonal, self_similarity

#: Relative duality gap to stop at: libsvm's single precision allows little below 1e-5.
TOLERANCE = 1e-4


@stored
@dataclass(frozen=True, eq=False)
class SupportRule:
    r"""Scores by what lies inside a hyperplane, or a ball.

    .. math::

       \sum_i a_i k_b(x_i, x) - \rho, \qquad
       R^2 - k_b(x, x) + 2 \sum_i a_i k_b(x_i, x) - a'K_b a
    """

    weights: Annotated[Array, Shape("J"), Range(low=0.0)]
    coef: Annotated[Array, Shape("n")]
    description: Annotated[tuple[float, ...], Shape(1), Shape(2)]
    """(rho,) of a hyperplane, or (R^2, a'K_b a) of a ball."""
    constant_diagonal: Annotated[Array | None, Shape("J")] = None

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        used = self.weights > 0  # kernels without weight need not be evaluated
        some, weights = cross.select(used), self.weights[used]
        projection = weights @ some.products(self.coef)
        if len(self.description) == 1:
            return np.asarray(projection - self.description[0])
        radius2, norm2 = self.description
        constant = self.constant_diagonal
        diagonal = weights @ self_similarity(some, None if constant is None else constant[used])
        return np.asarray(radius2 - diagonal + 2.0 * projection - norm2)


@dataclass(frozen=True)
class SupportMethod:
    """Learn weights of kernels for a one-class SVM (p > 0), or an SVDD (p is None)."""

    nu: float
    p: float | None
    solver: Any

    @property
    def ball(self) -> Ball:
        """An lp ball; for an SVDD, whose objective rises in every weight, the simplex."""
        return Simplex() if self.p is None else LpBall(self.p)

    def problem(self, stack: DenseStack) -> Any:
        """The inner problem on some kernels."""
        return (SVDDProblem if self.p is None else OneClassSVMProblem)(stack, self.nu)

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from a dense stack."""
        stack = training.stack
        problem = self.problem(stack)
        callback = iterations_logged(f"{stack.n} rows, {stack.J} kernels", self.solver)
        result = solve(problem, self.ball, self.solver, callback=callback)
        b, a = result.weights, result.coef
        rule = SupportRule(b, a, problem.description(b, a), constant_diagonal(stack))
        return RuleFit(rule, Certificate.of(result), again=KeptMachine(self, b, rule.description))


@dataclass(frozen=True, eq=False)
class KeptMachine:
    """The machine of other rows, at kernel weights and with the offset or sphere of a fit.

    A machine of fewer rows has another offset, and scores on another scale could put the threshold
    below the lowest score there is.
    """

    method: SupportMethod
    weights: Array
    description: tuple[float, ...]

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn the coefficients from a dense stack."""
        stack = training.stack
        K = stack.combine(self.weights)
        coef = self.method.problem(DenseStack(K[None])).inner(ONE)
        return RuleFit(SupportRule(self.weights, coef, self.description, constant_diagonal(stack)))


class _SupportVectorEstimator(Certified, OneClassKernelEstimator):
    """Base of both: weights, support vectors, and the description of the rows."""

    _usual_tol = TOLERANCE
    rules = ("SupportRule",)

    def __init__(
        self, kernels: Any = "rbf", views: Any = None, *, scaling: Any = "auto",
        widths: Any = "auto", nu: float = 0.1, slim: bool = False, slim_lambda: float = 0.3,
        solver: Any = "auto", false_alarm_rate: float = 0.05, calibration: Any = "cross",
        random_state: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            kernels, views, scaling=scaling, widths=widths, false_alarm_rate=false_alarm_rate,
            calibration=calibration, random_state=random_state,
        )  # fmt: skip
        self.nu = nu
        self.slim = slim
        self.slim_lambda = slim_lambda
        self.solver = solver

    @property
    def weights_(self) -> Array:
        """Kernel weights, shape (J,)."""
        check_is_fitted(self)
        return np.asarray(self.model_.rule.weights)

    @property
    def support_(self) -> Indices:
        """Indices of the support vectors."""
        return np.flatnonzero(self.coef_ > 0)

    @property
    def description_(self) -> tuple[float, ...]:
        """(rho,) of a hyperplane, or (R^2, a'K_b a) of a ball."""
        check_is_fitted(self)
        return tuple(self.model_.rule.description)

    def _support_method(self, p: float | None) -> SupportMethod:
        solver = Solver(self.solver, tol=TOLERANCE) if isinstance(self.solver, str) else self.solver
        if self.slim not in (True, False):
            raise ValueError(f"slim: got {self.slim!r}; expected True or False.")
        if self.slim:
            if not isinstance(solver, Solver) or solver.name not in ("auto", "slim"):
                raise ValueError(
                    f"solver: got {self.solver!r} with slim=True, which has a line search of its "
                    "own; leave solver='auto'."
                )
            expected = "a number of at least 0"
            strength = check_number("slim_lambda", self.slim_lambda, expected, 0.0, strict=False)
            solver = replace(solver, name="slim", options={"slim_lambda": strength})
        return SupportMethod(self.nu, p, solver)


@stored
class MultiKernelOneClassSVM(_SupportVectorEstimator):
    r"""One-class SVM with learned kernel weights (MK-OCSVM).

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \; -\tfrac12 a' \Big(\sum_j b_j K_j\Big) a,
       \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

    Rows are scored by :math:`\sum_i a_i k_b(x_i, x) - \rho`. p = 1 is the paper's; p > 1 is the
    lp version of Kloft and others. The inner programme is solved by scikit-learn's libsvm.

    Parameters
    ----------
    kernels, views, scaling, widths, false_alarm_rate, calibration, random_state
        As in `kernull.MultiKernelFisherNull`.
    nu : float in (0, 1], default=0.1
        At most this share of the training rows lies outside the description, and at least this
        share are support vectors. The threshold does not hang on it; see ``false_alarm_rate``.
    p : float in [1, inf], default=1.5
        Norm of the kernel weights; the paper has 1.
    slim : bool, default=False
        Favour weights with many support vectors; ours, see Notes.
    slim_lambda : float, default=0.3
        Strength of that: 0 is the plain method, a large value leaves the weights uniform.
    solver : str or Solver, default="auto"
        ``"auto"`` (Newton, with cutting planes at p = 1), ``"newton"``, ``"cutting-plane"``,
        ``"frank-wolfe"``, ``"kloft"`` or ``"paper"``, to a relative duality gap of 1e-4; a
        `kernull.Solver` has its tolerance. libsvm's single precision allows little below 1e-5.

    Attributes
    ----------
    weights_, gap_, n_iter_, history_, solver_, kernel_names_, kernel_set_
        As in `kernull.MultiKernelFisherNull`.
    coef_ : array of shape (n,)
        Coefficients of the training rows. (``gap_`` of a slim model is its distance from the plain
        optimum.)
    support_ : array
        Indices of the support vectors.
    description_ : tuple
        (rho,)
    threshold_, offset_, false_alarm_rate_, calibration_
        As in `kernull.MultiKernelFisherNull`.

    Notes
    -----
    *Slim.* Loosli and Aboubacar (2016; arXiv:1712.02658, hal-01593595) proposed slim machines,
    whose weight search prefers solutions with many support vectors. Ours is not their objective
    but one that does what they describe:
    :math:`F(b) - \lambda |F(b_{uniform})| n_{eff}(b)` with
    :math:`n_{eff} = 1 / (n \sum_i a_i^2)`, minimised by line searches; see
    `kernull.mkl.solvers.slim`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MultiKernelOneClassSVM(views="features", nu=0.1).fit(X[y == 0])
    >>> bool(model.gap_ <= 1e-4)
    True
    >>> bool((model.predict(X[y == 2]) == -1).mean() > 0.8)
    True
    """

    def __init__(
        self, kernels: Any = "rbf", views: Any = None, *, scaling: Any = "auto",
        widths: Any = "auto", nu: float = 0.1, p: float = 1.5, slim: bool = False,
        slim_lambda: float = 0.3, solver: Any = "auto", false_alarm_rate: float = 0.05,
        calibration: Any = "cross", random_state: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            kernels, views, scaling=scaling, widths=widths, nu=nu, slim=slim,
            slim_lambda=slim_lambda, solver=solver, false_alarm_rate=false_alarm_rate,
            calibration=calibration, random_state=random_state,
        )  # fmt: skip
        self.p = p

    def _method(self) -> SupportMethod:
        """The method with its parameters, checked."""
        return self._support_method(self.p)


@stored
class MultiKernelSVDD(_SupportVectorEstimator):
    r"""Support vector data description with learned kernel weights (MK-SVDD).

    .. math::

       \min_{d \ge 0, \sum d = 1} \max_a \;
       \sum_j d_j \big[ a'\mathrm{diag}(K_j) - a'K_j a \big],
       \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

    finds the average of kernels whose smallest enclosing ball is smallest. Rows are scored by
    :math:`R^2 - k_d(x, x) + 2 \sum_i a_i k_d(x_i, x) - a'K_d a`. On kernels with unit diagonals it
    is `MultiKernelOneClassSVM` with p = 1.

    The objective *rises* in every weight, so a kernel in which all rows look alike takes all of
    it. A constant view is dropped for that reason. Given kernels whose diagonals are not constant
    need k(x, x) to score new rows: ``kernull.KernelStack(kernels, diagonal=...)``.

    Parameters
    ----------
    kernels, views, scaling, widths, false_alarm_rate, calibration, random_state
        As in `kernull.MultiKernelFisherNull`.
    nu : float in (0, 1], default=0.1
        At most this share of the training rows lies outside the ball; C = 1/(nu n).
    slim, slim_lambda, solver
        As in `MultiKernelOneClassSVM`, also for what slim means here.

    Attributes
    ----------
    weights_, gap_, n_iter_, history_, solver_, kernel_names_, kernel_set_
        As in `kernull.MultiKernelFisherNull`.
    coef_, support_
        As in `MultiKernelOneClassSVM`.
    description_ : tuple
        (R^2, a'K_d a)
    threshold_, offset_, false_alarm_rate_, calibration_
        As in `kernull.MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MultiKernelSVDD(views="features", nu=0.1).fit(X[y == 0])
    >>> bool(model.gap_ <= 1e-4), bool(abs(model.weights_.sum() - 1) < 1e-12)
    (True, True)
    """

    def _method(self) -> SupportMethod:
        """The method with its parameters, checked."""
        return self._support_method(None)  # the simplex: the objective rises in every weight
