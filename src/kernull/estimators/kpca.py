"""Novelty by kernel principal components of one fused kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull._typing import Array, Indices
from kernull.calibration import check_folds, cross_scores
from kernull.estimators._fused_base import FusedKernelEstimator
from kernull.estimators._fusion import fused_blocks
from kernull.estimators._principal import principal_directions, reconstruction
from kernull.estimators._unweighted import UnweightedEstimator
from kernull.stacks import CrossKernels, DenseStack

__all__ = ["KernelPCANovelty"]


class KernelPCANovelty(UnweightedEstimator, FusedKernelEstimator):
    r"""Reconstruction error of kernel PCA on one fused kernel (KPCA-Average, KPCA-Product).

    .. math::

       s(x) = -\Big( \tilde k(x, x) - \sum_{j \le m} \langle v_j, \tilde\phi(x) \rangle^2 \Big)

    is minus the squared distance of a row from the subspace of the m leading principal directions
    :math:`v_j` of the centred training rows (Hoffmann). With m = 0 it ranks like a Parzen window
    where diagonals are constant; with m the rank, training rows score 0.

    Parameters
    ----------
    kernels, views, scaling, widths, fusion
        As in `FisherNull`.
    components : int or float, default=0.9
        Number of directions (an int, 0 allowed), or the share of the variance they explain at
        least (a float in (0, 1)).
    calibration_folds : int, default=10
        Folds of the cross-scores that give the threshold. There is no closed form for leaving a
        row out; the number of directions stays that of the fit.
    false_alarm_rate, calibration_fraction, random_state
        As in `MultiKernelFisherNull`.
    calibration : {"loo", "split"}, default="loo"
        Scores that give the threshold: of every row by a model that did not see it
        (by folds), or of rows held out.
    storage, memory_limit, dtype, drop_constant
        As in `MultiKernelFisherNull`.

    Attributes
    ----------
    n_components_ : int
        Number of directions used.
    eigenvalues_ : array of shape (m,)
        Their variances times n.
    coef_ : array of shape (n, m)
        The directions in terms of the centred training rows, of unit length in feature space.
    threshold_, offset_, false_alarm_rate_, kernel_names_
        As in `MultiKernelFisherNull`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = KernelPCANovelty(views="features", components=0.7).fit(X[y == 0])
    >>> bool((model.predict(X[y == 2]) == -1).mean() > 0.9)
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
        components: float = 0.9,
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
        self.fusion = fusion
        self.scaling = scaling
        self.widths = widths
        self.components = components
        self.calibration_folds = calibration_folds
        self.false_alarm_rate = false_alarm_rate
        self.calibration = calibration
        self.calibration_fraction = calibration_fraction
        self.random_state = random_state
        self.storage = storage
        self.memory_limit = memory_limit
        self.dtype = dtype
        self.drop_constant = drop_constant

    def _learn(self, stack: DenseStack, sample_weight: Array | None) -> Array:
        folds = check_folds(self.calibration_folds)
        wanted = self._check_components()
        K = self._fuse(stack)
        values, vectors = principal_directions(K)
        if isinstance(wanted, float):
            explained = np.cumsum(values) / max(float(values.sum()), np.finfo(float).tiny)
            # One less than the first count that reaches it would miss it by more than rounding.
            wanted = int(np.searchsorted(explained, wanted - 1e-12)) + 1
        m = self.n_components_ = min(wanted, len(values))
        self.eigenvalues_ = values[:m]
        self.coef_ = vectors[:, :m] / np.sqrt(values[:m])
        self._means = K.mean(axis=0)

        def score(seen: Indices, held: Indices) -> Array:
            part = K[np.ix_(seen, seen)]
            lengths, directions = principal_directions(part)
            coef = directions[:, :m] / np.sqrt(lengths[:m])
            cross, own = K[np.ix_(held, seen)], K[held, held]
            # A row like no other lies at -(k(x, x) + mean of all entries): put the fold's scores
            # on the final model's scale, or the threshold may fall below the lowest score.
            shift = float(part.mean()) - float(self._means.mean())
            return reconstruction(cross, own, part.mean(axis=0), coef) + shift

        return cross_scores(len(K), folds, score)

    def _score(self, cross: DenseStack | CrossKernels) -> Array:
        own = self._own_similarity(cross)
        out = np.empty(len(cross))
        for rows, K in fused_blocks(cross, self.fusion):
            out[rows] = reconstruction(K, own[rows], self._means, self.coef_)
        return out

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
