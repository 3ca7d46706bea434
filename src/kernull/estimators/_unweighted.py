"""Estimators whose method has no place for weights of rows."""

from __future__ import annotations

from typing import Any, Self

from kernull.estimators._base import OneClassKernelEstimator

__all__ = ["UnweightedEstimator"]


class UnweightedEstimator(OneClassKernelEstimator):
    """What they share: a ``fit`` that does not offer ``sample_weight``.

    scikit-learn reads the signature to find out, so refusing the argument would not do.
    """

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Learn what normal looks like.

        Parameters
        ----------
        X : table of shape (n, d), or kernels of shape (J, n, n)
            Training rows, all taken to be normal; a stack of kernels when
            ``kernels="precomputed"``.
        y : ignored
            Present for scikit-learn's interface.

        Returns
        -------
        self
        """
        return super().fit(X)
