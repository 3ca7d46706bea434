"""One-class methods on one fused kernel: Fisher null-space, Gaussian process, kernel PCA."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from kernull._typing import Array
from kernull.calibration import check_folds
from kernull.estimators.base import OneClassKernelEstimator, UnweightedEstimator
from kernull.estimators.inputs import check_number
from kernull.estimators.parameters import Learned, documented, parameters
from kernull.models.fused import FusedFisher, GaussianProcess, Principals


@documented
@parameters
class FisherNull(OneClassKernelEstimator):
    r"""One-class Fisher null-space on one fused kernel (FN-Average, FN-Product).

    .. math:: a = (\delta n I + K)^{-1} 1, \qquad y(x) = k(x)'a

    Training rows land near 1, what is unlike them near 0. With ``delta=0`` it is the original null
    space, :math:`a = K^{+} 1` (pseudo-inverse): every training row lands on 1 exactly, if rows are
    distinct. It is `MultiKernelFisherNull` with fixed uniform weights.

    Parameters
    ----------
    {kernels, views, scaling, widths, fusion}
    delta : float, default=1e-2
        Ridge relative to the number of rows; 0 for the unregularised null space.
    score_type : {"projection", "distance", "null-space"}, default="projection"
        ``y(x)``; ``-|1 - y(x)|``; or that over :math:`\sqrt{1'a}`, the distance in the null space
        as its papers scale it. The last two rank alike.
    {false_alarm_rate, calibration, calibration_fraction, random_state}
    {storage, memory_limit, dtype, drop_constant}

    Attributes
    ----------
    coef_ : array of shape (n,)
        Coefficients a.
    rank_ : int
        Numerical rank of the kernel; only with ``delta=0``.
    {threshold_, false_alarm_rate_, calibration_, kernel_names_}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = FisherNull(views="features", fusion="product").fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).all())
    True
    """

    fusion: str = "average"
    delta: float = 1e-2
    score_type: str = "projection"

    coef_ = Learned("rule.coef")
    rank_ = Learned("rule.rank")

    def learning_method(self) -> FusedFisher:
        """The method with its parameters, checked."""
        delta = check_number(
            "delta", self.delta, "a number of at least 0 (relative to n)", 0.0, strict=False
        )
        return FusedFisher(self.fusion, delta, self.score_type)


@documented
@parameters
class GaussianProcessOneClass(OneClassKernelEstimator):
    r"""One-class Gaussian process regression on one fused kernel (GP-Average, GP-Product).

    .. math::

       \mu(x) = k(x)'(K + s^2 I)^{-1} 1, \qquad
       \sigma^2(x) = k(x, x) + s^2 - k(x)'(K + s^2 I)^{-1} k(x)

    regresses the constant 1 (Kemmler and others): near training rows the mean is 1 and the
    variance small, far from them 0 and large. The mean is that of `FisherNull` with
    ``delta = noise / n``.

    Parameters
    ----------
    {kernels, views, scaling, widths, fusion}
    noise : float, default=0.01
        The noise variance :math:`s^2`, > 0; absolute.
    score_type : {"mean", "variance", "log_density", "ratio"}, default="mean"
        :math:`\mu`; :math:`-\sigma^2`; the log density of 1,
        :math:`-\tfrac12[(1-\mu)^2/\sigma^2 + \log(2\pi\sigma^2)]`; or :math:`\mu/\sigma`.
    {false_alarm_rate, calibration, calibration_fraction, random_state}
    {storage, memory_limit, dtype, drop_constant}

    Attributes
    ----------
    coef_ : array of shape (n,)
        :math:`(K + s^2 I)^{-1} 1`.
    {threshold_, false_alarm_rate_, calibration_, kernel_names_}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GaussianProcessOneClass(views="features", score_type="variance").fit(X[y == 0])
    >>> mean, variance = model.mean_and_variance(X)
    >>> bool(variance[y == 2].min() > variance[y == 0].max())
    True
    """

    fusion: str = "average"
    noise: float = 0.01
    score_type: str = "mean"

    coef_ = Learned("rule.coef")

    def learning_method(self) -> GaussianProcess:
        """The method with its parameters, checked."""
        noise = check_number("noise", self.noise, "a positive number (a variance)", 0.0)
        return GaussianProcess(self.fusion, noise, self.score_type)

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Predictive mean and variance (with noise) of each row of X, both of shape (m,)."""
        check_is_fitted(self)
        moments: tuple[Array, Array] = self.model_.rule.moments(self._cross(self.model_, X)[0])
        return moments


@documented
@parameters
class KernelPCANovelty(UnweightedEstimator):
    r"""Reconstruction error of kernel PCA on one fused kernel (KPCA-Average, KPCA-Product).

    .. math::

       s(x) = -\Big( \tilde k(x, x) - \sum_{j \le m} \langle v_j, \tilde\phi(x) \rangle^2 \Big)

    is minus the squared distance of a row from the subspace of the m leading principal directions
    :math:`v_j` of the centred training rows (Hoffmann). With m = 0 it ranks like a Parzen window
    where diagonals are constant; with m the rank, training rows score 0.

    Parameters
    ----------
    {kernels, views, scaling, widths, fusion}
    components : int or float, default=0.9
        Number of directions (an int, 0 allowed), or the share of the variance they explain at
        least (a float in (0, 1)).
    {calibration_folds, false_alarm_rate, calibration, calibration_fraction, random_state}
    {storage, memory_limit, dtype, drop_constant}

    Attributes
    ----------
    n_components_ : int
        Number of directions used.
    eigenvalues_ : array of shape (m,)
        Their variances times n.
    coef_ : array of shape (n, m)
        The directions in terms of the centred training rows, of unit length in feature space.
    {threshold_, false_alarm_rate_, calibration_, kernel_names_}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = KernelPCANovelty(views="features", components=0.7).fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).mean() > 0.9)
    True
    """

    fusion: str = "average"
    components: float = 0.9
    calibration_folds: int = 10

    coef_ = Learned("rule.coef")
    eigenvalues_ = Learned("rule.eigenvalues")

    @property
    def n_components_(self) -> int:
        """Number of directions used."""
        return len(self.eigenvalues_)

    def learning_method(self) -> Principals:
        """The method with its parameters, checked."""
        folds = check_folds(self.calibration_folds)
        return Principals(self.fusion, self._check_components(), folds)

    def _check_components(self) -> int | float:
        m = self.components
        if isinstance(m, int | np.integer) and not isinstance(m, bool) and m >= 0:
            return int(m)
        if isinstance(m, float | np.floating) and 0 < m < 1:
            return float(m)
        raise ValueError(
            f"components: got {m!r}; expected an int of at least 0 (a number of directions) or a "
            "float in (0, 1) (a share of the variance)."
        )
