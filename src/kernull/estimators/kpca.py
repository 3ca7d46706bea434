"""Novelty by kernel principal components of one fused kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernull.calibration import check_folds
from kernull.estimators.base import UnweightedEstimator
from kernull.estimators.learned import Learned
from kernull.estimators.parameters import documented, keep
from kernull.models.fused import Principals


@documented
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

    def __init__(
        self,
        kernels: Any = "rbf",
        views: Any = None,
        *,
        fusion: str = "average",
        scaling: Any = "auto",
        widths: Any = "auto",
        components: float = 0.9,
        calibration_folds: int = 10,
        false_alarm_rate: float = 0.05,
        calibration: str = "auto",
        calibration_fraction: Any = 0.25,
        random_state: Any = 0,
        storage: str = "auto",
        memory_limit: Any = None,
        dtype: Any = "float64",
        drop_constant: bool = True,
    ) -> None:
        keep(self, locals())

    fusion: str
    components: float
    calibration_folds: int

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
