"""Methods on one fused kernel: Fisher null-space, Gaussian process, kernel PCA."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular

from kernull._typing import Array, Indices
from kernull.calibration import LeftOut, cross_scores, leave_one_out
from kernull.models.fusion import (
    constant_diagonal,
    fuse,
    fused_blocks,
    fused_diagonal,
    self_similarity,
)
from kernull.models.kernels import Training
from kernull.models.model import RuleFit
from kernull.models.rules import check_score_type
from kernull.problems import FisherProblem
from kernull.stacks import DenseStack

_ONE = np.ones(1)
#: A share of a row outside the range of the kernel that is more than rounding.
_OUTSIDE = 1e-8


def project(cross: Any, fusion: str, V: Array) -> Array:
    """K V between the rows of a cross stack and the training rows, K the fused kernel."""
    out = np.empty((len(cross), *V.shape[1:]))
    for rows, K in fused_blocks(cross, fusion):
        out[rows] = K @ V
    return out


# -- Fisher null-space -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FusedFisherRule:
    """y(x) = k(x)'a; -|1 - y(x)|; or that over the square root of 1'a."""

    fusion: str
    coef: Array
    score_type: str
    rank: int | None = None
    """Of the kernel, where there is no ridge."""

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        return self.projection_to_score(project(cross, self.fusion, self.coef))

    def projection_to_score(self, projection: Array) -> Array:
        """From projections to scores."""
        if self.score_type == "projection":
            return projection
        scale = 1.0 if self.score_type == "distance" else np.sqrt(self.coef.sum())
        return np.asarray(-np.abs(1.0 - projection) / scale)


@dataclass(frozen=True)
class FusedFisher:
    """Ridge solution of K a = 1, or the shortest least-squares one where delta is 0."""

    fusion: str
    delta: float
    score_type: str

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from a dense stack."""
        check_score_type(self.score_type, ("projection", "distance", "null-space"))
        stack = training.stack
        K = fuse(stack, self.fusion)
        if self.delta == 0:
            space = null_space(K, row_weight, single=stack.dtype == np.float32)
            rule = FusedFisherRule(self.fusion, space.coef, self.score_type, space.rank)
            left_out = partial(null_space_leave_one_out, space, row_weight)
        else:
            n = stack.n if row_weight is None else float(row_weight.sum())
            problem = FisherProblem(DenseStack(K[None]), self.delta * n, row_weight=row_weight)
            rule = FusedFisherRule(self.fusion, problem.evaluate(_ONE).coef, self.score_type)
            left_out = partial(leave_one_out, problem, _ONE, rule.coef, row_weight=row_weight)
        return RuleFit(rule, lambda: LeftOut(rule.projection_to_score(left_out()), row_weight))


@dataclass(frozen=True)
class NullSpace:
    """The pseudo-inverse solution, and what leave-one-out needs of it."""

    coef: Array
    rank: int
    inverse: Array
    """Diagonal of the pseudo-inverse of the (row-scaled) kernel."""
    outside: Array
    """Diagonal of the projector onto its null space."""
    residual: Array
    """What the (row-scaled) right-hand side has in its null space."""


def null_space(K: Array, weight: Array | None = None, *, single: bool = False) -> NullSpace:
    """Solve K a = 1 in the least-squares sense, with the shortest a.

    A row of weight w counts as w copies; ``single`` says that K was kept in single precision, which
    raises the cut-off of eigenvalues.
    """
    root = np.ones(len(K)) if weight is None else np.sqrt(weight)
    values, vectors = eigh(K * root[:, None] * root, check_finite=False)
    epsilon = float(np.finfo(np.float32 if single else np.float64).eps)
    real = values > len(K) * epsilon * float(np.abs(values).max())
    values, vectors = values[real], vectors[:, real]
    share = vectors.T @ root
    return NullSpace(
        coef=root * (vectors @ (share / values)),
        rank=int(real.sum()),
        inverse=(vectors**2) @ (1.0 / values),
        outside=np.maximum(1.0 - (vectors**2).sum(axis=1), 0.0),
        residual=root - vectors @ share,
    )


def null_space_leave_one_out(space: NullSpace, weight: Array | None = None) -> Array:
    r"""Projection of each row by the null space of the others.

    The limit of the closed form of the ridge solution as the ridge goes to zero. With P the
    projector onto the null space of K,

    .. math::

       1 - y_i^{-i} = \begin{cases}
           (P1)_i / P_{ii} & P_{ii} > 0 \text{ (the others span the row)} \\
           a_i / (K^+)_{ii} & P_{ii} = 0
       \end{cases}

    whatever the weight of the row.
    """
    w = np.ones(len(space.coef)) if weight is None else np.asarray(weight, dtype=float)
    lost = np.where(
        space.outside > _OUTSIDE,
        np.sqrt(w) * space.residual / np.maximum(w * space.outside, 1e-300),
        space.coef / (w * np.maximum(space.inverse, 1e-300)),
    )
    return np.asarray(1.0 - lost)


# -- Gaussian process --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GaussianRule:
    """Scores from the predictive mean and variance of the constant 1."""

    fusion: str
    coef: Array
    root: Array
    """Square roots of the row weights: a row of weight w has noise / w."""
    factor: Array
    """Lower Cholesky factor of the scaled K + s^2 I."""
    noise: float
    score_type: str
    constant_diagonal: Array | None = None
    """k_j(x, x) where it is the same for all rows."""

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        if self.score_type == "mean":
            return project(cross, self.fusion, self.coef)
        return self.moments_to_score(*self.moments(cross))

    def moments(self, cross: Any) -> tuple[Array, Array]:
        """Predictive mean and variance of new rows."""
        mean, explained = np.empty(len(cross)), np.empty(len(cross))
        for rows, K in fused_blocks(cross, self.fusion):
            mean[rows] = K @ self.coef
            half = solve_triangular(self.factor, (K * self.root).T, lower=True, check_finite=False)
            explained[rows] = np.einsum("ij,ij->j", half, half)
        own = fused_diagonal(self_similarity(cross, self.constant_diagonal), self.fusion)
        variance = own + self.noise - explained
        # Cancellation may leave a little less than the noise that is certainly there.
        return mean, np.maximum(variance, self.noise)

    def moments_to_score(self, mean: Array, variance: Array) -> Array:
        """From mean and variance to scores."""
        if self.score_type == "mean":
            return mean
        if self.score_type == "variance":
            return -variance
        if self.score_type == "ratio":
            return np.asarray(mean / np.sqrt(variance))
        return np.asarray(-0.5 * ((1.0 - mean) ** 2 / variance + np.log(2.0 * np.pi * variance)))


@dataclass(frozen=True)
class GaussianProcess:
    """Regression of the constant 1 with noise of a fixed variance."""

    fusion: str
    noise: float
    score_type: str

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from a dense stack."""
        check_score_type(self.score_type, ("mean", "variance", "log_density", "ratio"))
        stack = training.stack
        K = fuse(stack, self.fusion)
        problem = FisherProblem(DenseStack(K[None]), self.noise, row_weight=row_weight)
        weight = np.ones(stack.n) if row_weight is None else row_weight
        rule = GaussianRule(
            self.fusion,
            problem.evaluate(_ONE).coef,
            np.sqrt(weight),
            np.tril(problem.factorise(_ONE)),
            self.noise,
            self.score_type,
            constant_diagonal(stack),
        )

        def left_out() -> LeftOut:
            mean = leave_one_out(problem, _ONE, rule.coef, row_weight=row_weight)
            inverse = weight * problem.inverse_diagonal(_ONE)
            # Posterior variance of f at each row by the others: 1 / G_ii is the observation's.
            without = 1.0 / inverse - self.noise / weight
            return LeftOut(rule.moments_to_score(mean, without + self.noise), row_weight)

        return RuleFit(rule, left_out)


# -- kernel PCA --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PrincipalRule:
    """Minus the squared distance from the subspace of the leading principal directions."""

    fusion: str
    coef: Array
    """Directions in terms of the centred training rows, of shape (n, m)."""
    means: Array
    """Column means of the training kernel."""
    eigenvalues: Array
    constant_diagonal: Array | None = None

    def score(self, cross: Any) -> Array:
        """Scores of new rows."""
        own = fused_diagonal(self_similarity(cross, self.constant_diagonal), self.fusion)
        out = np.empty(len(cross))
        for rows, K in fused_blocks(cross, self.fusion):
            out[rows] = reconstruction(K, own[rows], self.means, self.coef)
        return out


@dataclass(frozen=True)
class Principals:
    """Kernel PCA: so many components, or those that explain a share of the variance."""

    fusion: str
    components: int | float
    folds: int

    def learn(self, training: Training, row_weight: Array | None) -> RuleFit:
        """Learn from a dense stack."""
        K = fuse(training.stack, self.fusion)
        values, vectors = principal_directions(K)
        wanted = self.components
        if isinstance(wanted, float):
            explained = np.cumsum(values) / max(float(values.sum()), np.finfo(float).tiny)
            # One less than the first count that reaches it would miss it by more than rounding.
            wanted = int(np.searchsorted(explained, wanted - 1e-12)) + 1
        m = min(wanted, len(values))
        rule = PrincipalRule(
            self.fusion,
            vectors[:, :m] / np.sqrt(values[:m]),
            K.mean(axis=0),
            values[:m],
            constant_diagonal(training.stack),
        )

        def score(seen: Indices, held: Indices) -> Array:
            part = K[np.ix_(seen, seen)]
            lengths, directions = principal_directions(part)
            coef = directions[:, :m] / np.sqrt(lengths[:m])
            cross, own = K[np.ix_(held, seen)], K[held, held]
            # A row like no other lies at -(k(x, x) + mean of all entries): put the fold's scores
            # on the final model's scale, or the threshold may fall below the lowest score.
            shift = float(part.mean()) - float(rule.means.mean())
            return reconstruction(cross, own, part.mean(axis=0), coef) + shift

        # By folds: there is no closed form.
        return RuleFit(rule, lambda: LeftOut(cross_scores(len(K), self.folds, score)))


def principal_directions(K: Array) -> tuple[Array, Array]:
    """Positive eigenvalues of the centred kernel, largest first, and their eigenvectors."""
    means = K.mean(axis=0)
    centred = K - means[:, None] - means[None, :] + means.mean()
    values, vectors = eigh(centred, check_finite=False, overwrite_a=True)
    values, vectors = values[::-1], vectors[:, ::-1]
    real = values > len(K) * np.finfo(float).eps * max(float(values[0]), np.finfo(float).tiny)
    return values[real], vectors[:, real]


def reconstruction(K: Array, own: Array, means: Array, coef: Array) -> Array:
    """Minus the squared distance of each row of K from the subspace of the directions."""
    level = K.mean(axis=1)
    grand = float(means.mean())
    distance = own - 2.0 * level + grand
    centred = K - level[:, None] - means + grand
    projections = centred @ coef
    return np.asarray(np.einsum("ij,ij->i", projections, projections) - distance)
