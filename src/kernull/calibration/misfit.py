r"""Misfit of a view: how far it lies from what the other views of its row say it should be.

Let :math:`z_v(x)` hold the columns of view v, standardised by some normal rows, the witnesses, and
:math:`k_v(x)` its similarities to them, :math:`\exp(-|z_v(x) - z_v(x_i)|^2 / 2 d_v)` with
:math:`d_v` columns: on average, exponents are 1. Kernel ridge regression predicts each view from
the sum of the others, :math:`k_{-v} = \sum_{u \ne v} k_u`:

.. math:: \hat z_v(x) = k_{-v}(x)' G_v Z_v, \qquad G_v = (\rho I + K_{-v})^{-1}

A witness is predicted by the others, exactly: its residual is
:math:`r_i = [G_v Z_v]_i / [G_v]_{ii}`. With S the Ledoit-Wolf covariance of these residuals, the
misfit of view v is :math:`r' S^{-1} r`, of which r's own part in S is taken out for a witness.

A view that was swapped for that of something else may be as normal as any by itself, and yet not
be what the rest says. Similarities are bounded: a view that is broken hardly counts in
:math:`k_{-v}`, so it does not drag the others down with it. Nothing here is learned from a row and
then applied to it, unlike in kernels on whitened views, so witnesses can say what is usual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.metrics.pairwise import rbf_kernel

from kernull._typing import Array, Indices
from kernull.views import ViewScaler

__all__ = ["Witnesses", "witness_rows"]

#: Bytes of similarities held at once.
CHUNK_BYTES = 32 * 2**20
#: Training rows that stand as witnesses: enough to know how views go together, and few enough
#: that judging a million rows costs about as much as scoring them.
WITNESSES = 200
#: Ridge, times the number of predicting views. A tenth or three times of it ranks about as well.
RIDGE = 0.1
#: A residual makes up at most this share of its own covariance.
MOST_OWN = 0.99
HUGE = 1e300


@dataclass(frozen=True, eq=False)
class _Judge:
    """One view: its witnesses, how others predict it, and the size of residuals."""

    scaler: ViewScaler
    train: Array
    dual: Array
    residual: ViewScaler

    def similarity(self, rows: Array) -> Array:
        return _similarity(self.scaler.transform(rows), self.train)

    def misfit(self, rows: Array, similarity: Array) -> Array:
        """From rows of this view, and their similarity to the witnesses in the others."""
        return _square(self.residual, self.scaler.transform(rows) - similarity @ self.dual)


@dataclass(frozen=True, eq=False)
class Witnesses:
    """Normal rows that say what a view should be, given the others.

    Parameters
    ----------
    judges : tuple
        One for each view.
    usual : array of shape (w, V)
        Misfit of each witness, judged by the others.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 100)
    >>> left, right = np.cos(angle)[:, None], np.cos(angle + 0.5)[:, None]
    >>> witnesses = Witnesses.of([left, right])
    >>> witnesses.misfit([np.array([[1.0]]), np.array([[-1.0]])]).round()  # usual: about 1
    array([[30., 32.]])
    """

    judges: tuple[_Judge, ...]
    usual: Array

    @classmethod
    def of(cls, views: Sequence[Array]) -> Witnesses:
        """From the columns (w, d_v) of two views or more."""
        scalers = [ViewScaler.fit("standard", columns) for columns in views]
        scaled = [s.transform(columns) for s, columns in zip(scalers, views, strict=True)]
        total = sum(_similarity(Z, Z) for Z in scaled)
        judges, usual = [], []
        for scaler, Z in zip(scalers, scaled, strict=True):
            A = total - _similarity(Z, Z)
            A[np.diag_indices(len(A))] += RIDGE * (len(views) - 1)
            inverse = cho_solve(cho_factor(A, overwrite_a=True), np.eye(len(A)))
            dual = inverse @ Z
            left_out = dual / inverse.diagonal()[:, None]
            # Witnesses may be equal in a view that others vary in: then any difference counts.
            residual = ViewScaler.fit("whiten-raw" if left_out.any() else "none", left_out)
            judges.append(_Judge(scaler, Z, dual, residual))
            usual.append(_without_own(_square(residual, left_out), left_out))
        return cls(tuple(judges), np.column_stack(usual))

    def misfit(self, views: Sequence[Array]) -> Array:
        """Misfit of new rows, of shape (m, V), from their columns (m, d_v)."""
        m, w = len(views[0]), len(self.usual)
        out = np.empty((m, len(self.judges)))
        step = max(1, CHUNK_BYTES // (8 * len(self.judges) * w))
        for start in range(0, m, step):
            part = slice(start, start + step)
            rows = [view[part] for view in views]
            own = [judge.similarity(r) for judge, r in zip(self.judges, rows, strict=True)]
            total = np.sum(own, axis=0)
            for v, judge in enumerate(self.judges):
                out[part, v] = judge.misfit(rows[v], total - own[v])
        return out


def witness_rows(n: int) -> Indices:
    """Which of n rows stand as witnesses: at most `WITNESSES`, evenly spread."""
    return np.linspace(0, n - 1, min(n, WITNESSES)).round().astype(np.intp)


def _similarity(left: Array, right: Array) -> Array:
    return np.asarray(rbf_kernel(left, right, gamma=0.5 / left.shape[1]))


def _square(residual: ViewScaler, rows: Array) -> Array:
    """r'S^-1 r of each row."""
    whitened = residual.transform(rows)
    squares = np.einsum("ij,ij->i", whitened, whitened)
    # Values that overflow are as far as can be told.
    return np.asarray(np.nan_to_num(squares, nan=HUGE, posinf=HUGE))


def _without_own(squares: Array, residuals: Array) -> Array:
    """r'S^-1 r of residuals that S came from, each with its own part in S taken out."""
    # S = c sum_i r_i r_i' + a multiple of I; Sherman and Morrison without the i-th term.
    shrinkage = ledoit_wolf_shrinkage(residuals) if residuals.any() else 0.0
    c = (1.0 - shrinkage) / len(residuals)
    return np.asarray(squares / (1.0 - np.minimum(c * squares, MOST_OWN)))
