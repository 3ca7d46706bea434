r"""Misfit of a view: how far it lies from what the other views of its row say it should be.

Let :math:`z_v(x)` hold the columns of view v, standardised by a sample of training rows, the
landmarks, and :math:`k_v(x)` its similarities to them,
:math:`\exp(-|z_v(x) - z_v(x_i)|^2 / 2 d_v)` with :math:`d_v` columns: on average, exponents are 1.
Kernel ridge regression predicts each view from the sum of the others,
:math:`k_{-v} = \sum_{u \ne v} k_u`:

.. math:: \hat z_v(x) = k_{-v}(x)' G_v Z_v, \qquad G_v = (\rho I + K_{-v})^{-1}

The leave-one-out residual of a landmark is
:math:`r_i = [G_v Z_v]_i / [G_v]_{ii}`. With S the Ledoit-Wolf covariance of these residuals, the
misfit of view v is :math:`r' S^{-1} r`.

A view that was swapped for that of something else may be as normal as any by itself and not fit the
other views. Similarities are bounded: a view that is broken hardly counts in :math:`k_{-v}`, so it
does not drag the others down with it.

Usual misfits are those of left-out landmarks (`cross_fit`), each by the landmarks of other folds.
Misfits grow with the number of landmarks where columns are many, so new rows are judged by as many
as a left-out landmark is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics.pairwise import rbf_kernel

from kernull._runtime import one_blas_thread
from kernull._typing import Array, Indices, Mask
from kernull.detector.cross_fit import cross_fit
from kernull.detector.rows import TableKernels
from kernull.views import Standard, WhitenRaw
from kernull.views.kernel_set import ScaledView

#: Bytes of similarities held at once.
CHUNK_BYTES = 32 * 2**20
#: Landmarks: enough to learn how views go together, and few enough that judging a million rows
#: costs about as much as scoring them.
MISFIT_ROWS = 200
#: Ridge, times the number of predicting views. A tenth or three times of it ranks about as well.
RIDGE = 0.1
#: Folds of landmarks.
FOLDS = 10
#: Standardised values are cut here: farther is no farther, and squares do not overflow.
FARTHEST = 1e100
#: Spread of a column in a fold, of that among all landmarks, which is taken for rounding.
LEAST_SCALE = 1e-6
#: Rows below which nothing is learned of how views go together.
FEWEST = 5
#: Weight, of the largest, that an interior solver leaves where there should be none.
NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class _Regression:
    """One view: its landmarks, how others predict it, and the size of residuals."""

    scaler: Standard
    train: Array
    dual: Array
    residual: WhitenRaw


@dataclass(frozen=True, eq=False)
class ViewPredictor:
    """Prediction of each view of a row from its other views.

    Parameters
    ----------
    scalers, regressions : tuple
        One for each view.
    usual : array of shape (w, V)
        Misfit of each landmark, left out with its fold.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 100)
    >>> left, right = np.cos(angle)[:, None], np.cos(angle + 0.5)[:, None]
    >>> predictor = ViewPredictor.of([left, right])
    >>> predictor.misfit([np.array([[1.0]]), np.array([[-1.0]])]).round()  # usual: about 1
    array([[30., 32.]])
    """

    scalers: tuple[Standard, ...]
    regressions: tuple[_Regression, ...]
    usual: Array

    @classmethod
    def of(cls, views: Sequence[Array], usual: Array | None = None) -> ViewPredictor:
        """From the columns (w, d_v) of two views or more; ``usual`` where it is known.

        Parameters
        ----------
        views : sequence of V arrays of shape (w, d_v)
            Scaled columns of each view.
        usual : array of shape (w, V), optional
            Misfits of these rows, where they are known.
        """
        scalers = tuple(Standard().fit(columns) for columns in views)
        scaled = [s.transform(columns) for s, columns in zip(scalers, views, strict=True)]
        w = len(scaled[0])
        fold = np.arange(w) % min(FOLDS, w)

        def fit(rows: Indices) -> tuple[_Regression, ...]:
            return _regressions([Z[rows] for Z in scaled])

        def misfit(learned: tuple[_Regression, ...], rows: Indices) -> Array:
            return _misfit(learned, [Z[rows] for Z in scaled])

        if usual is None or usual.shape != (w, len(views)):
            usual = cross_fit(fit, misfit, fold)
        with one_blas_thread() as limit, limit:  # matrices are small
            return cls(scalers, fit(np.flatnonzero(fold != fold.max())), usual)

    def misfit(self, views: Sequence[Array]) -> Array:
        """Misfit of new rows, of shape (m, V), from their columns (m, d_v).

        Parameters
        ----------
        views : sequence of V arrays of shape (m, d_v)
            Scaled columns of each view.

        Returns
        -------
        array of shape (m, V)
        """
        m = len(views[0])
        step = max(1, CHUNK_BYTES // (8 * len(self.regressions) * len(self.usual)))
        out = np.empty((m, len(self.regressions)))
        for start in range(0, m, step):
            part = slice(start, start + step)
            with np.errstate(over="ignore"):
                rows = [s.transform(v[part]) for s, v in zip(self.scalers, views, strict=True)]
            out[part] = _misfit(self.regressions, [Z.clip(-FARTHEST, FARTHEST) for Z in rows])
        return out


def _regressions(views: Sequence[Array]) -> tuple[_Regression, ...]:
    scalers = [_standard(columns) for columns in views]
    scaled = [s.transform(columns) for s, columns in zip(scalers, views, strict=True)]
    similarities = [_similarity(Z, Z) for Z in scaled]
    total = np.sum(similarities, axis=0)
    out = []
    for scaler, Z, K in zip(scalers, scaled, similarities, strict=True):
        A = total - K
        A[np.diag_indices(len(A))] += RIDGE * (len(views) - 1)
        inverse = cho_solve(cho_factor(A, overwrite_a=True), np.eye(len(A)))
        dual = inverse @ Z
        left_out = dual / inverse.diagonal()[:, None]
        out.append(_Regression(scaler, Z, dual, WhitenRaw().fit(left_out)))
    return tuple(out)


def _standard(Z: Array) -> Standard:
    """Scaling of a fold; columns that vary elsewhere only keep their unit."""
    scaler = Standard().fit(Z)
    scaler.scale_ = np.where(scaler.scale_ < LEAST_SCALE, 1.0, scaler.scale_)
    return scaler


def _misfit(regressions: Sequence[_Regression], views: Sequence[Array]) -> Array:
    """From columns of rows (m, d_v) to the misfit of each view, of shape (m, V)."""
    scaled = [one.scaler.transform(rows) for one, rows in zip(regressions, views, strict=True)]
    similar = [_similarity(Z, one.train) for one, Z in zip(regressions, scaled, strict=True)]
    total, out = np.sum(similar, axis=0), np.empty((len(scaled[0]), len(regressions)))
    for v, one in enumerate(regressions):
        whitened = one.residual.transform(scaled[v] - (total - similar[v]) @ one.dual)
        out[:, v] = np.einsum("ij,ij->i", whitened, whitened)
    return out


def _similarity(left: Array, right: Array) -> Array:
    return np.asarray(rbf_kernel(left, right, gamma=0.5 / left.shape[1]))


@dataclass(frozen=True, eq=False)
class ViewMisfit:
    """Misfit of rows by view, among the views that a model scores by.

    Zero for views without weight, of which the score knows nothing.
    """

    predictor: ViewPredictor
    views: tuple[ScaledView, ...]
    """Those with weight, each in one scaling."""
    place: tuple[int, ...]
    """Where these views stand among those that the model scores by."""
    n_views: int

    @classmethod
    def of(cls, model: Any, kept: Mask, usual: Array | None = None) -> ViewMisfit | None:
        """Learn it from the training rows of a `KernelModel`, for the views of some kernels.

        None where there is nothing to fit to: fewer than two views with weight, fewer than five
        rows, or precomputed kernels. ``usual`` are the misfits of left-out rows, where they are
        known.

        Parameters
        ----------
        model : KernelModel
            With its training rows.
        kept : mask of shape (J,)
            Kernels whose views take part.
        usual : array of shape (w, V), optional
            Misfits of the training rows, where they are known.
        """
        if not isinstance(model.kernels, TableKernels):
            return None
        kernels, weights = model.kernels.set, model.rule.weights * model.kernels.scale
        used = kept & (weights > NEGLIGIBLE * weights.max())
        rows = _normal_rows(model)
        if len({view.name for view in kernels.select(used).views}) < 2 or len(rows) < FEWEST:
            return None
        names = list(dict.fromkeys(view.name for view in kernels.select(kept).views))
        views: dict[str, ScaledView] = {}
        for view in kernels.select(used).views:
            # A view may be there in several scalings: the plainest tells best what it was.
            if view.name not in views or view.scaling == "standard":
                views[view.name] = view
        return cls(
            ViewPredictor.of([_columns(view, rows) for view in views.values()], usual),
            tuple(views.values()),
            tuple(names.index(name) for name in views),
            len(names),
        )

    def __call__(self, table: Array) -> tuple[Array, Array]:
        """Misfit of rows (m, V) and of left-out landmarks (w, V)."""
        seen = np.zeros((len(table), self.n_views))
        usual = np.zeros((len(self.predictor.usual), self.n_views))
        seen[:, self.place] = self.predictor.misfit([_values(view, table) for view in self.views])
        usual[:, self.place] = self.predictor.usual
        return seen, usual


def _columns(view: ScaledView, rows: Indices) -> Array:
    """Training rows of a view as they were, or as they are scaled where that cannot be undone."""
    train = view.train[rows]
    return np.asarray(view.scaler.inverse_transform(train) if view.can_be_undone else train)


def _values(view: ScaledView, table: Array) -> Array:
    """New rows of a view, in the units of `_columns`."""
    return table[:, view.columns] if view.can_be_undone else view.transform(table)


def _normal_rows(model: Any) -> Indices:
    """Training rows that are landmarks, evenly spread over the weight of all."""
    n = model.kernels.n
    weight = None if model.system is None else model.system.row_weight
    if weight is None:
        weight = model.calibration_weight
    landmarks = model.rule.coef.ndim != 1  # whose weights are not kept
    known = weight is not None and not landmarks and len(weight) >= n
    passed = np.cumsum(weight[:n] if known else np.ones(n))
    most = min(n, MISFIT_ROWS)
    marks = (np.arange(most) + 0.5) * (passed.max(initial=0.0) / max(most, 1))
    return np.unique(np.minimum(np.searchsorted(passed, marks), n - 1))
