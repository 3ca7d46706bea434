"""Multiple-kernel SVDD and one-class SVM, plain and slim."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.balls import Ball, LpBall, Simplex
from kernull.calibration import check_folds, cross_scores
from kernull.estimators._fusion import constant_diagonal, self_similarity
from kernull.estimators._inputs import check_number
from kernull.estimators._unweighted import UnweightedEstimator
from kernull.problems import OneClassSVMProblem, SVDDProblem
from kernull.solvers import solve
from kernull.stacks import CrossKernels, DenseStack

__all__ = ["MultiKernelOneClassSVM", "MultiKernelSVDD"]

_ONE = np.ones(1)


class _SupportVectorEstimator(UnweightedEstimator):
    """What the two share: learning weights, and calibration by cross-scores."""

    nu: float
    slim: bool
    slim_lambda: float
    solver: str
    tol: float
    max_iter: int | None
    calibration_folds: int

    def _make_problem(self, stack: DenseStack) -> Any:
        raise NotImplementedError

    def _make_ball(self) -> Ball:
        raise NotImplementedError

    def _describe(self, problem: Any, weights: Array, a: Array) -> tuple[float, ...]:
        """The numbers that turn projections into scores."""
        raise NotImplementedError

    def _judge(self, projection: Array, own: Array | None, numbers: tuple[float, ...]) -> Array:
        """Scores from projections sum_i a_i k(x_i, x) and, where needed, k(x, x)."""
        raise NotImplementedError

    def _learn(self, stack: DenseStack, sample_weight: Array | None) -> Array:
        tol = check_number("tol", self.tol, "a positive number", 0.0)
        folds = check_folds(self.calibration_folds)
        problem, ball = self._make_problem(stack), self._make_ball()
        name, options = self._solver_and_options()
        result = solve(problem, ball, name, tol=tol, max_iter=self.max_iter, **options)
        self.weights_ = result.weights
        self.coef_ = result.coef
        self.gap_ = result.gap
        self.n_iter_ = result.n_iter
        self.history_ = result.history
        self.solver_ = result.solver
        self.support_ = np.flatnonzero(result.coef > 0)
        self.description_ = self._describe(problem, result.weights, result.coef)
        self._constant_diagonal = constant_diagonal(stack)
        return self._cross_scores(stack, folds)

    def _solver_and_options(self) -> tuple[str, dict[str, Any]]:
        if self.slim not in (True, False):
            raise ValueError(f"slim: got {self.slim!r}; expected True or False.")
        if not self.slim:
            return self.solver, {}
        if self.solver not in ("auto", "slim"):
            raise ValueError(
                f"solver: got {self.solver!r} with slim=True, which has a line search of its own; "
                "leave solver='auto'."
            )
        strength = check_number(
            "slim_lambda", self.slim_lambda, "a number of at least 0", 0.0, strict=False
        )
        return "slim", {"slim_lambda": strength}

    def _cross_scores(self, stack: DenseStack, folds: int) -> Array:
        """Scores of held-out rows by machines of the same kernel weights."""
        K = stack.combine(self.weights_)
        own = np.diagonal(K)

        def score(seen: Indices, held: Indices) -> Array:
            # The offset is the final machine's: one learned from fewer rows has another, and
            # scores on another scale could put the threshold below the lowest score there is.
            a = self._make_problem(DenseStack(K[np.ix_(seen, seen)][None])).inner(_ONE)
            return self._judge(K[np.ix_(held, seen)] @ a, own[held], self.description_)

        return cross_scores(stack.n, folds, score)

    def _score(self, cross: DenseStack | CrossKernels) -> Array:
        used = self.weights_ > 0  # kernels without weight need not be evaluated
        some, weights = cross.select(used), self.weights_[used]
        own = None
        if self._needs_own_similarity:
            constant = self._constant_diagonal
            own = weights @ self_similarity(some, None if constant is None else constant[used])
        return self._judge(weights @ some.products(self.coef_), own, self.description_)

    _needs_own_similarity = False


class MultiKernelOneClassSVM(_SupportVectorEstimator):
    r"""One-class SVM with learned kernel weights (MK-OCSVM).

    .. math::

       \min_{b \ge 0, \|b\|_p \le 1} \max_a \; -\tfrac12 a' \Big(\sum_j b_j K_j\Big) a,
       \qquad 0 \le a_i \le 1/(\nu n),\; 1'a = 1

    Rows are scored by :math:`\sum_i a_i k_b(x_i, x) - \rho`. p = 1 is the paper's; p > 1 is the
    lp version of Kloft and others. The inner programme is solved by scikit-learn's libsvm.

    Parameters
    ----------
    kernels, views, scaling, widths
        As in `MultiKernelFisherNull`.
    nu : float in (0, 1], default=0.1
        At most this share of the training rows lies outside the description, and at least this
        share are support vectors. The threshold does not hang on it; see ``false_alarm_rate``.
    p : float in [1, inf], default=1.0
        Norm of the kernel weights.
    slim : bool, default=False
        Favour weights with many support vectors; ours, see Notes.
    slim_lambda : float, default=0.3
        Strength of that: 0 is the plain method, a large value leaves the weights uniform.
    solver : str, default="auto"
        ``"auto"`` (Newton, with cutting planes at p = 1), ``"newton"``, ``"cutting-plane"``,
        ``"frank-wolfe"``, ``"kloft"`` or ``"paper"``.
    tol : float, default=1e-4
        Relative duality gap to stop at. libsvm's single precision allows little below 1e-5.
    max_iter : int, optional
        Limit of the solver's iterations; its own by default.
    calibration_folds : int, default=10
        Folds of the cross-scores that give the threshold. There is no closed form for leaving a
        row out; kernel weights, widths and scaling stay those of the fit.
    false_alarm_rate, calibration_fraction, random_state
        As in `MultiKernelFisherNull`.
    calibration : {"loo", "split"}, default="loo"
        Scores that give the threshold: of every row by a model that did not see it
        (by folds), or of rows held out.
    storage, memory_limit, dtype, drop_constant
        As in `MultiKernelFisherNull`.

    Attributes
    ----------
    weights_, coef_, gap_, n_iter_, history_, solver_, kernel_names_
        As in `MultiKernelFisherNull`; ``gap_`` of a slim model is its distance from the plain
        optimum.
    support_ : array
        Indices of the support vectors.
    description_ : tuple
        (rho,)
    threshold_, offset_, false_alarm_rate_
        As in `MultiKernelFisherNull`.

    Notes
    -----
    *Slim.* Loosli and Aboubacar (2016) proposed slim multiple-kernel machines, whose weight search
    prefers solutions with many support vectors. Their exact objective could not be found. Ours is
    :math:`F(b) - \lambda |F(b_{uniform})| n_{eff}(b)` with
    :math:`n_{eff} = 1 / (n \sum_i a_i^2)`, minimised by line searches; see
    `kernull.solvers.slim`.

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
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        scaling: Any = "standard",
        widths: Any = 0.5,
        nu: float = 0.1,
        p: float = 1.0,
        slim: bool = False,
        slim_lambda: float = 0.3,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        calibration_folds: int = 10,
        false_alarm_rate: float = 0.05,
        calibration: str = "loo",
        calibration_fraction: Any = 0.25,
        random_state: Any = 0,
        storage: str = "auto",
        memory_limit: Any = None,
        dtype: Any = "float64",
        drop_constant: bool = True,
    ) -> None:
        self.kernels = kernels
        self.views = views
        self.scaling = scaling
        self.widths = widths
        self.nu = nu
        self.p = p
        self.slim = slim
        self.slim_lambda = slim_lambda
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.calibration_folds = calibration_folds
        self.false_alarm_rate = false_alarm_rate
        self.calibration = calibration
        self.calibration_fraction = calibration_fraction
        self.random_state = random_state
        self.storage = storage
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.drop_constant = drop_constant

    def _make_problem(self, stack: DenseStack) -> OneClassSVMProblem:
        return OneClassSVMProblem(stack, self.nu)

    def _make_ball(self) -> Ball:
        return LpBall(self.p)

    def _describe(self, problem: Any, weights: Array, a: Array) -> tuple[float, ...]:
        return (problem.offset(weights, a),)

    def _judge(self, projection: Array, own: Array | None, numbers: tuple[float, ...]) -> Array:
        return np.asarray(projection - numbers[0])


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
    it. A constant view is dropped for that reason unless ``drop_constant=False``.

    Parameters
    ----------
    kernels, views, scaling, widths
        As in `MultiKernelFisherNull`. Precomputed kernels whose diagonals are not constant need
        k(x, x) to score new rows: ``kernull.KernelStack(kernels, diagonal=...)``.
    nu : float in (0, 1], default=0.1
        At most this share of the training rows lies outside the ball; C = 1/(nu n).
    slim, slim_lambda, solver, tol, max_iter, calibration_folds
        As in `MultiKernelOneClassSVM`, also for what slim means here.
    false_alarm_rate, calibration_fraction, random_state
        As in `MultiKernelFisherNull`.
    calibration : {"loo", "split"}, default="loo"
        Scores that give the threshold: of every row by a model that did not see it
        (by folds), or of rows held out.
    storage, memory_limit, dtype, drop_constant
        As in `MultiKernelFisherNull`.

    Attributes
    ----------
    weights_, coef_, gap_, n_iter_, history_, solver_, kernel_names_, support_
        As in `MultiKernelOneClassSVM`.
    description_ : tuple
        (R^2, a'K_d a)
    threshold_, offset_, false_alarm_rate_
        As in `MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MultiKernelSVDD(views="features", nu=0.1).fit(X[y == 0])
    >>> bool(model.gap_ <= 1e-4), bool(abs(model.weights_.sum() - 1) < 1e-12)
    (True, True)
    """

    _needs_own_similarity = True

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        scaling: Any = "standard",
        widths: Any = 0.5,
        nu: float = 0.1,
        slim: bool = False,
        slim_lambda: float = 0.3,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        calibration_folds: int = 10,
        false_alarm_rate: float = 0.05,
        calibration: str = "loo",
        calibration_fraction: Any = 0.25,
        random_state: Any = 0,
        storage: str = "auto",
        memory_limit: Any = None,
        dtype: Any = "float64",
        drop_constant: bool = True,
    ) -> None:
        self.kernels = kernels
        self.views = views
        self.scaling = scaling
        self.widths = widths
        self.nu = nu
        self.slim = slim
        self.slim_lambda = slim_lambda
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.calibration_folds = calibration_folds
        self.false_alarm_rate = false_alarm_rate
        self.calibration = calibration
        self.calibration_fraction = calibration_fraction
        self.random_state = random_state
        self.storage = storage
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.drop_constant = drop_constant

    def _make_problem(self, stack: DenseStack) -> SVDDProblem:
        return SVDDProblem(stack, self.nu)

    def _make_ball(self) -> Ball:
        return Simplex()

    def _describe(self, problem: Any, weights: Array, a: Array) -> tuple[float, ...]:
        radius2, norm2 = problem.sphere(weights, a)
        return (radius2, norm2)

    def _judge(self, projection: Array, own: Array | None, numbers: tuple[float, ...]) -> Array:
        radius2, norm2 = numbers
        assert own is not None
        return np.asarray(radius2 - own + 2.0 * projection - norm2)
