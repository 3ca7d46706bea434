"""One-class methods on one fused kernel: Fisher null-space, Gaussian process, kernel PCA.

FN, GP and KPCA of the paper, by "average" and "product". Each has its estimator, what it
learns by, and the rule that scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from scipy.linalg import cho_solve, eigh, solve_triangular
from sklearn.utils.validation import check_is_fitted

from kernull._fields import OneOf, Range, Shape, stored
from kernull._typing import Array
from kernull.detector.model import RuleFit
from kernull.detector.rows import Training
from kernull.estimators.base import OneClassKernelEstimator
from kernull.estimators.inputs import check_number
from kernull.mkl.problems import FisherProblem
from kernull.operators import DenseStack
from kernull.paper._fusion import (
    ONE,
    constant_diagonal,
    fuse,
    fused_blocks,
    fused_diagonal,
    self_similarity,
)


@dataclass(frozen=True)
class KernelMethod:
    """A method that is a function of a dense stack; rows have no weights."""

    make: Callable[[DenseStack], RuleFit]

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from kernels.

        Parameters
        ----------
        training : Training
            With its ``stack``.
        row_weight : None
        """
        return self.make(training.stack)


def _check_score_type(score_type: Any, choices: tuple[str, ...]) -> None:
    """Refuse a score that the method does not have."""
    if score_type not in choices:
        raise ValueError(f"score_type: got {score_type!r}; expected one of {choices}.")


def _project(cross: Any, fusion: str, V: Array) -> Array:
    """K V between the rows of a cross stack and the training rows, K the fused kernel."""
    out = np.empty((len(cross), *V.shape[1:]))
    for rows, K in fused_blocks(cross, fusion):
        out[rows] = K @ V
    return out


# -- Fisher null-space ---------------------------------------------------------------------------


@stored
class FisherNull(OneClassKernelEstimator):
    r"""One-class Fisher null-space on one fused kernel (FN-Average, FN-Product).

    .. math:: a = (\delta n I + K)^{-1} 1, \qquad y(x) = k(x)'a

    Training rows land near 1, what is unlike them near 0. With ``delta=0`` it is the original null
    space, :math:`a = K^{+} 1` (pseudo-inverse): every training row lands on 1 exactly, if rows are
    distinct. It is `MultiKernelFisherNull` with fixed uniform weights.

    Parameters
    ----------
    kernels, views, scaling, widths, false_alarm_rate, calibration, random_state
        As in `kernull.MultiKernelFisherNull`.
    fusion : {"average", "product"}, default="average"
        Arithmetic mean of the kernels, or their element-wise geometric mean. The latter is positive
        semidefinite for rbf kernels but not in general; a product that is not one is refused.
    delta : float, default=1e-2
        Ridge relative to the number of rows; 0 for the unregularised null space.
    score_type : {"projection", "distance", "null-space"}, default="projection"
        ``y(x)``; ``-|1 - y(x)|``; or that over :math:`\sqrt{1'a}`, the distance in the null space
        as its papers scale it. The last two rank alike.

    Attributes
    ----------
    coef_ : array of shape (n,)
        Coefficients a.
    rank_ : int or None
        Numerical rank of the kernel with ``delta=0``; None otherwise.
    threshold_, offset_, false_alarm_rate_, calibration_, kernel_names_, kernel_set_
        As in `kernull.MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = FisherNull(views="features", fusion="product").fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).all())
    True
    """

    rules = ("FusedFisherRule",)

    def __init__(
        self, kernels: Any = "rbf", views: Any = None, *, scaling: Any = "auto",
        widths: Any = "auto", fusion: str = "average", delta: float = 1e-2,
        score_type: str = "projection", false_alarm_rate: float = 0.05,
        calibration: Any = "cross", random_state: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            kernels, views, scaling=scaling, widths=widths, false_alarm_rate=false_alarm_rate,
            calibration=calibration, random_state=random_state,
        )  # fmt: skip
        self.fusion = fusion
        self.delta = delta
        self.score_type = score_type

    @property
    def rank_(self) -> int | None:
        """Numerical rank of the kernel; None where there is a ridge."""
        check_is_fitted(self)
        return self.model_.rule.rank  # type: ignore[no-any-return]

    def _method(self) -> KernelMethod:
        _check_score_type(self.score_type, ("projection", "distance", "null-space"))
        expected = "a number of at least 0 (relative to n)"
        delta = check_number("delta", self.delta, expected, 0.0, strict=False)
        fusion, score_type = self.fusion, self.score_type

        def learn(stack: DenseStack) -> RuleFit:
            """Ridge solution of K a = 1, or the shortest least-squares one where delta is 0."""
            K = fuse(stack, fusion)
            if delta == 0:
                coef, rank = null_space(K)
                return RuleFit(FusedFisherRule(fusion, coef, score_type, rank))
            problem = FisherProblem(DenseStack(K[None]), delta * len(K))
            return RuleFit(FusedFisherRule(fusion, problem.solution(ONE), score_type))

        return KernelMethod(learn)


@stored
@dataclass(frozen=True, eq=False)
class FusedFisherRule:
    """y(x) = k(x)'a; -|1 - y(x)|; or that over the square root of 1'a."""

    fusion: Annotated[str, OneOf("average", "product")]
    coef: Annotated[Array, Shape("n")]
    score_type: Annotated[str, OneOf("projection", "distance", "null-space")]
    rank: Annotated[int | None, Range(low=0)] = None
    """Of the kernel, where there is no ridge."""

    def score(self, cross: Any) -> Array:
        """Scores of new rows, of shape (m,); higher is more normal.

        Parameters
        ----------
        cross : DenseStack or CrossKernels
            Kernels between m new and the training rows.
        """
        projection = _project(cross, self.fusion, self.coef)
        if self.score_type == "projection":
            return projection
        scale = 1.0 if self.score_type == "distance" else np.sqrt(self.coef.sum())
        return np.asarray(-np.abs(1.0 - projection) / scale)


def null_space(K: Array) -> tuple[Array, int]:
    """Solve K a = 1 in the least-squares sense, with the shortest a; and the rank of K.

    Parameters
    ----------
    K : array of shape (n, n)
        Positive semidefinite.
    """
    values, vectors = eigh(K, check_finite=False)
    real = values > len(K) * np.finfo(float).eps * float(np.abs(values).max())
    values, vectors = values[real], vectors[:, real]
    return vectors @ (vectors.sum(axis=0) / values), int(real.sum())


# -- Gaussian process ----------------------------------------------------------------------------


@stored
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
    kernels, views, scaling, widths, false_alarm_rate, calibration, random_state
        As in `kernull.MultiKernelFisherNull`.
    fusion : {"average", "product"}, default="average"
        As in `FisherNull`.
    noise : float, default=0.01
        The noise variance :math:`s^2`, > 0; absolute.
    score_type : {"mean", "variance", "log_density", "ratio"}, default="mean"
        :math:`\mu`; :math:`-\sigma^2`; the log density of 1,
        :math:`-\tfrac12[(1-\mu)^2/\sigma^2 + \log(2\pi\sigma^2)]`; or :math:`\mu/\sigma`.

    Attributes
    ----------
    coef_ : array of shape (n,)
        :math:`(K + s^2 I)^{-1} 1`.
    threshold_, offset_, false_alarm_rate_, calibration_, kernel_names_, kernel_set_
        As in `kernull.MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = GaussianProcessOneClass(views="features", score_type="variance").fit(X[y == 0])
    >>> mean, variance = model.mean_and_variance(X)
    >>> bool(variance[y == 2].min() > variance[y == 0].max())
    True
    """

    rules = ("GaussianRule",)

    def __init__(
        self, kernels: Any = "rbf", views: Any = None, *, scaling: Any = "auto",
        widths: Any = "auto", fusion: str = "average", noise: float = 0.01,
        score_type: str = "mean", false_alarm_rate: float = 0.05, calibration: Any = "cross",
        random_state: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            kernels, views, scaling=scaling, widths=widths, false_alarm_rate=false_alarm_rate,
            calibration=calibration, random_state=random_state,
        )  # fmt: skip
        self.fusion = fusion
        self.noise = noise
        self.score_type = score_type

    def _method(self) -> KernelMethod:
        _check_score_type(self.score_type, ("mean", "variance", "log_density", "ratio"))
        noise = check_number("noise", self.noise, "a positive number (a variance)", 0.0)
        fusion, score_type = self.fusion, self.score_type

        def learn(stack: DenseStack) -> RuleFit:
            K = fuse(stack, fusion)
            factor = np.tril(FisherProblem(DenseStack(K[None]), noise).factorise(ONE))
            coef = cho_solve((factor, True), np.ones(len(K)), check_finite=False)
            diagonal = constant_diagonal(stack)
            return RuleFit(GaussianRule(fusion, coef, factor, noise, score_type, diagonal))

        return KernelMethod(learn)

    def mean_and_variance(self, X: Any) -> tuple[Array, Array]:
        """Predictive mean and variance (with noise) of each row of X, both of shape (m,).

        Parameters
        ----------
        X : table of shape (m, d), or kernels of shape (J, m, n)
        """
        check_is_fitted(self)
        moments: tuple[Array, Array] = self.model_.rule._moments(self._cross(self.model_, X)[0])
        return moments


@stored
@dataclass(frozen=True, eq=False)
class GaussianRule:
    """Scores from the predictive mean and variance of the constant 1."""

    fusion: Annotated[str, OneOf("average", "product")]
    coef: Annotated[Array, Shape("n")]
    factor: Annotated[Array, Shape("n", "n")]
    """Lower Cholesky factor of K + s^2 I."""
    noise: Annotated[float, Range(low=0.0)]
    score_type: Annotated[str, OneOf("mean", "variance", "log_density", "ratio")]
    constant_diagonal: Annotated[Array | None, Shape("J")] = None
    """k_j(x, x) where it is the same for all rows."""

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        if self.score_type == "mean":
            return _project(cross, self.fusion, self.coef)
        mean, variance = self._moments(cross)
        if self.score_type == "variance":
            return -variance
        if self.score_type == "ratio":
            return np.asarray(mean / np.sqrt(variance))
        return np.asarray(-0.5 * ((1.0 - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))

    def _moments(self, cross: Any) -> tuple[Array, Array]:
        """Predictive mean and variance of new rows."""
        mean, explained = np.empty(len(cross)), np.empty(len(cross))
        for rows, K in fused_blocks(cross, self.fusion):
            mean[rows] = K @ self.coef
            half = solve_triangular(self.factor, K.T, lower=True, check_finite=False)
            explained[rows] = np.einsum("ij,ij->j", half, half)
        diagonal = fused_diagonal(self_similarity(cross, self.constant_diagonal), self.fusion)
        variance = diagonal + self.noise - explained
        # Cancellation may leave a little less than the noise that is certainly there.
        return mean, np.maximum(variance, self.noise)


# -- kernel PCA ----------------------------------------------------------------------------------


@stored
class KernelPCANovelty(OneClassKernelEstimator):
    r"""Reconstruction error of kernel PCA on one fused kernel (KPCA-Average, KPCA-Product).

    .. math::

       s(x) = -\Big( \tilde k(x, x) - \sum_{j \le m} \langle v_j, \tilde\phi(x) \rangle^2 \Big)

    is minus the squared distance of a row from the subspace of the m leading principal directions
    :math:`v_j` of the centred training rows (Hoffmann). With m = 0 it ranks like a Parzen window
    where diagonals are constant; with m the rank, training rows score 0.

    Parameters
    ----------
    kernels, views, scaling, widths, false_alarm_rate, calibration, random_state
        As in `kernull.MultiKernelFisherNull`.
    fusion : {"average", "product"}, default="average"
        As in `FisherNull`.
    components : int or float, default=0.9
        Number of directions (an int, 0 allowed), or the share of the variance they explain at
        least (a float in (0, 1)).

    Attributes
    ----------
    n_components_ : int
        Number of directions used.
    eigenvalues_ : array of shape (m,)
        Their variances times n.
    coef_ : array of shape (n, m)
        The directions in terms of the centred training rows, of unit length in feature space.
    threshold_, offset_, false_alarm_rate_, calibration_, kernel_names_, kernel_set_
        As in `kernull.MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = KernelPCANovelty(views="features", components=0.7).fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).mean() > 0.9)
    True
    """

    rules = ("PrincipalRule",)

    def __init__(
        self, kernels: Any = "rbf", views: Any = None, *, scaling: Any = "auto",
        widths: Any = "auto", fusion: str = "average", components: float = 0.9,
        false_alarm_rate: float = 0.05, calibration: Any = "cross", random_state: Any = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            kernels, views, scaling=scaling, widths=widths, false_alarm_rate=false_alarm_rate,
            calibration=calibration, random_state=random_state,
        )  # fmt: skip
        self.fusion = fusion
        self.components = components

    @property
    def eigenvalues_(self) -> Array:
        """Variances of the directions times n, shape (m,)."""
        check_is_fitted(self)
        return self.model_.rule.eigenvalues  # type: ignore[no-any-return]

    @property
    def n_components_(self) -> int:
        """Number of directions used."""
        return len(self.eigenvalues_)

    def _method(self) -> KernelMethod:
        m = self.components
        whole = isinstance(m, int | np.integer) and not isinstance(m, bool) and m >= 0
        if not whole and not (isinstance(m, float | np.floating) and 0 < m < 1):
            raise ValueError(
                f"components: got {m!r}; expected an int of at least 0 (a number of directions) or "
                "a float in (0, 1) (a share of the variance)."
            )
        return KernelMethod(partial(_learn_directions, fusion=self.fusion, wanted=m))


@stored
@dataclass(frozen=True, eq=False)
class PrincipalRule:
    """Minus the squared distance from the subspace of the leading principal directions."""

    fusion: Annotated[str, OneOf("average", "product")]
    coef: Annotated[Array, Shape("n", "_m")]
    """Directions in terms of the centred training rows."""
    means: Annotated[Array, Shape("n")]
    """Column means of the training kernel."""
    eigenvalues: Annotated[Array, Shape("_m")]
    constant_diagonal: Annotated[Array | None, Shape("J")] = None
    shift: float = 0.0
    """Added to scores."""

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        diagonal = fused_diagonal(self_similarity(cross, self.constant_diagonal), self.fusion)
        out = np.empty(len(cross))
        for rows, K in fused_blocks(cross, self.fusion):
            out[rows] = reconstruction(K, diagonal[rows], self.means, self.coef)
        return out + self.shift


def _learn_directions(
    stack: DenseStack, fusion: str, wanted: Any, level: float | None = None
) -> RuleFit:
    """So many components, or those that explain a share of the variance.

    ``level`` is the mean entry of another kernel, on whose scale scores are given.
    """
    K = fuse(stack, fusion)
    values, vectors = principal_directions(K)
    if not isinstance(wanted, int | np.integer):
        explained = np.cumsum(values) / max(float(values.sum()), np.finfo(float).tiny)
        # One less than the first count that reaches it would miss it by more than rounding.
        wanted = int(np.searchsorted(explained, wanted - 1e-12)) + 1
    m, means = min(int(wanted), len(values)), K.mean(axis=0)
    mean = float(means.mean())
    # A row like no other lies at -(k(x, x) + mean of all entries): on another scale, the
    # threshold may fall below the lowest score.
    shift = 0.0 if level is None else mean - level
    coef, diagonal = vectors[:, :m] / np.sqrt(values[:m]), constant_diagonal(stack)
    rule = PrincipalRule(fusion, coef, means, values[:m], diagonal, shift)
    again = partial(_learn_directions, fusion=fusion, wanted=m, level=mean)
    return RuleFit(rule, again=KernelMethod(again))


def principal_directions(K: Array) -> tuple[Array, Array]:
    """Positive eigenvalues of the centred kernel, largest first, and their eigenvectors."""
    means = K.mean(axis=0)
    centred = K - means[:, None] - means[None, :] + means.mean()
    values, vectors = eigh(centred, check_finite=False, overwrite_a=True)
    values, vectors = values[::-1], vectors[:, ::-1]
    real = values > len(K) * np.finfo(float).eps * max(float(values[0]), np.finfo(float).tiny)
    return values[real], vectors[:, real]


def reconstruction(K: Array, diagonal: Array, means: Array, coef: Array) -> Array:
    """Minus the squared distance of each row of K from the subspace of the directions."""
    level = K.mean(axis=1)
    grand = float(means.mean())
    distance = diagonal - 2.0 * level + grand
    centred = K - level[:, None] - means + grand
    projections = centred @ coef
    return np.asarray(np.einsum("ij,ij->i", projections, projections) - distance)
