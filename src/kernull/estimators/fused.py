"""One-class methods on one fused kernel: Fisher null-space and Gaussian process."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array
from kernull.calibration import leave_one_out
from kernull.estimators._fused_base import FusedKernelEstimator
from kernull.estimators._fusion import (
    fused_blocks,
)
from kernull.estimators._inputs import check_number
from kernull.estimators._null_space import null_space, null_space_leave_one_out
from kernull.problems import FisherProblem
from kernull.stacks import CrossKernels, DenseStack

__all__ = ["FisherNull", "GaussianProcessOneClass"]

_ONE = np.ones(1)


class FisherNull(FusedKernelEstimator):
    r"""One-class Fisher null-space on one fused kernel (FN-Average, FN-Product).

    .. math:: a = (\delta n I + K)^{-1} 1, \qquad y(x) = k(x)'a

    Training rows land near 1, what is unlike them near 0. With ``delta=0`` it is the original null
    space, :math:`a = K^{+} 1` (pseudo-inverse): every training row lands on 1 exactly, if rows are
    distinct. It is `MultiKernelFisherNull` with fixed uniform weights.

    Parameters
    ----------
    kernels, views, scaling, widths
        As in `MultiKernelFisherNull`.
    fusion : {"average", "product"}, default="average"
        Arithmetic mean of the kernels, or their element-wise geometric mean. The latter is
        positive semidefinite for rbf kernels but not in general; a product that is not one is
        refused with an error.
    delta : float, default=1e-2
        Ridge relative to the number of rows; 0 for the unregularised null space.
    score_type : {"projection", "distance", "null-space"}, default="projection"
        ``y(x)``; ``-|1 - y(x)|``; or that over :math:`\sqrt{1'a}`, the distance in the null space
        as its papers scale it. The last two rank alike.
    false_alarm_rate, calibration_fraction, random_state
        As in `MultiKernelFisherNull`.
    calibration : {"loo", "split"}, default="loo"
        Scores that give the threshold: of every row by a model that did not see it
        (in closed form), or of rows held out.
    storage, memory_limit, dtype, drop_constant
        As in `MultiKernelFisherNull`.

    Attributes
    ----------
    coef_ : array of shape (n,)
        Coefficients a.
    rank_ : int
        Numerical rank of the kernel; only with ``delta=0``.
    threshold_, offset_, false_alarm_rate_, kernel_names_
        As in `MultiKernelFisherNull`; thresholds come from leave-one-out scores in closed form.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = FisherNull(views="features", fusion="product").fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).all())
    True
    """

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        fusion: str = "average",
        scaling: Any = "standard",
        widths: Any = 0.5,
        delta: float = 1e-2,
        score_type: str = "projection",
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
        self.fusion = fusion
        self.scaling = scaling
        self.widths = widths
        self.delta = delta
        self.score_type = score_type
        self.false_alarm_rate = false_alarm_rate
        self.calibration = calibration
        self.calibration_fraction = calibration_fraction
        self.random_state = random_state
        self.storage = storage
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.drop_constant = drop_constant

    def _learn(self, stack: DenseStack, sample_weight: Array | None) -> Array:
        delta = check_number(
            "delta", self.delta, "a number of at least 0 (relative to n)", 0.0, strict=False
        )
        choices = ("projection", "distance", "null-space")
        if self.score_type not in choices:
            raise ValueError(f"score_type: got {self.score_type!r}; expected one of {choices}.")
        K = self._fuse(stack)
        if delta == 0:
            space = null_space(K, sample_weight, single=stack.dtype == np.float32)
            self.coef_, self.rank_ = space.coef, space.rank
            left_out = null_space_leave_one_out(space, sample_weight)
        else:
            self.__dict__.pop("rank_", None)  # of an earlier fit with delta=0
            n = stack.n if sample_weight is None else float(sample_weight.sum())
            problem = FisherProblem(DenseStack(K[None]), delta * n, row_weight=sample_weight)
            self.coef_ = problem.evaluate(_ONE).coef
            left_out = leave_one_out(problem, _ONE, self.coef_, row_weight=sample_weight)
        return self._of_projection(left_out)

    def _score(self, cross: DenseStack | CrossKernels) -> Array:
        return self._of_projection(self._project(cross, self.coef_))

    def _of_projection(self, projection: Array, centre: float = 1.0) -> Array:
        if self.score_type == "projection":
            return projection
        scale = 1.0 if self.score_type == "distance" else np.sqrt(self.coef_.sum())
        return np.asarray(-np.abs(centre - projection) / scale)


class GaussianProcessOneClass(FusedKernelEstimator):
    r"""One-class Gaussian process regression on one fused kernel (GP-Average, GP-Product).

    .. math::

       \mu(x) = k(x)'(K + s^2 I)^{-1} 1, \qquad
       \sigma^2(x) = k(x, x) + s^2 - k(x)'(K + s^2 I)^{-1} k(x)

    regresses the constant 1 (Kemmler and others): near training rows the mean is 1 and the
    variance small, far from them 0 and large. The mean is that of `FisherNull` with
    ``delta = noise / n``.

    Parameters
    ----------
    kernels, views, scaling, widths, fusion
        As in `FisherNull`.
    noise : float, default=0.01
        The noise variance :math:`s^2`, > 0; absolute.
    score_type : {"mean", "variance", "log_density", "ratio"}, default="mean"
        :math:`\mu`; :math:`-\sigma^2`; the log density of 1,
        :math:`-\tfrac12[(1-\mu)^2/\sigma^2 + \log(2\pi\sigma^2)]`; or :math:`\mu/\sigma`.
    false_alarm_rate, calibration_fraction, random_state
        As in `MultiKernelFisherNull`.
    calibration : {"loo", "split"}, default="loo"
        Scores that give the threshold: of every row by a model that did not see it
        (in closed form), or of rows held out.
    storage, memory_limit, dtype, drop_constant
        As in `MultiKernelFisherNull`.

    Attributes
    ----------
    coef_ : array of shape (n,)
        :math:`(K + s^2 I)^{-1} 1`.
    threshold_, offset_, false_alarm_rate_, kernel_names_
        As in `MultiKernelFisherNull`; thresholds come from leave-one-out means and variances in
        closed form.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GaussianProcessOneClass(views="features", score_type="variance").fit(X[y == 0])
    >>> mean, variance = model.mean_and_variance(X)
    >>> bool(variance[y == 2].min() > variance[y == 0].max())
    True
    """

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        fusion: str = "average",
        scaling: Any = "standard",
        widths: Any = 0.5,
        noise: float = 0.01,
        score_type: str = "mean",
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
        self.fusion = fusion
        self.scaling = scaling
        self.widths = widths
        self.noise = noise
        self.score_type = score_type
        self.false_alarm_rate = false_alarm_rate
        self.calibration = calibration
        self.calibration_fraction = calibration_fraction
        self.random_state = random_state
        self.storage = storage
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.drop_constant = drop_constant

    def _learn(self, stack: DenseStack, sample_weight: Array | None) -> Array:
        noise = check_number("noise", self.noise, "a positive number (a variance)", 0.0)
        choices = ("mean", "variance", "log_density", "ratio")
        if self.score_type not in choices:
            raise ValueError(f"score_type: got {self.score_type!r}; expected one of {choices}.")
        K = self._fuse(stack)
        problem = FisherProblem(DenseStack(K[None]), noise, row_weight=sample_weight)
        self.coef_ = problem.evaluate(_ONE).coef
        weight = np.ones(stack.n) if sample_weight is None else sample_weight
        # A row of weight w counts as w observations: its noise is s^2/w, which the problem writes
        # as a scaling of the rows by sqrt(w).
        self._root = np.sqrt(weight)
        self._factor = np.tril(problem.factorise(_ONE))
        mean = leave_one_out(problem, _ONE, self.coef_, row_weight=sample_weight)
        inverse = weight * problem.inverse_diagonal(_ONE)
        # Posterior variance of f at each row, then with one of its observations taken back.
        own = noise / weight
        known = own * (1.0 - own * inverse)
        taken = np.minimum(weight, 1.0)
        without = known * noise / (noise * (1.0 - taken / weight) + taken * own**2 * inverse)
        return self._of_moments(mean, without + noise)

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Predictive mean and variance (with noise) of each row.

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)

        Returns
        -------
        mean, variance : arrays of shape (m,)
        """
        check_is_fitted(self)
        return self._moments(self._cross(X))

    def _moments(self, cross: DenseStack | CrossKernels) -> tuple[Array, Array]:
        mean, explained = np.empty(len(cross)), np.empty(len(cross))
        for rows, K in fused_blocks(cross, self.fusion):
            mean[rows] = K @ self.coef_
            half = solve_triangular(
                self._factor, (K * self._root).T, lower=True, check_finite=False
            )
            explained[rows] = np.einsum("ij,ij->j", half, half)
        variance = self._own_similarity(cross) + self.noise - explained
        # Cancellation may leave a little less than the noise that is certainly there.
        return mean, np.maximum(variance, self.noise)

    def _score(self, cross: DenseStack | CrossKernels) -> Array:
        if self.score_type == "mean":
            return self._project(cross, self.coef_)
        return self._of_moments(*self._moments(cross))

    def _of_moments(self, mean: Array, variance: Array) -> Array:
        if self.score_type == "mean":
            return mean
        if self.score_type == "variance":
            return -variance
        if self.score_type == "ratio":
            return np.asarray(mean / np.sqrt(variance))
        return np.asarray(-0.5 * ((1.0 - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))
