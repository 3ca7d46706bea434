r"""What is usual in each column and each view of a row, given its other columns and views.

With mean :math:`\mu`, standard deviations :math:`\sigma` and the shrunk (Ledoit-Wolf) correlation R
of training rows, and :math:`P = R^{-1}`, the other columns predict column j of a row x at

.. math:: \hat x_j = x_j - \sigma_j \frac{(P z)_j}{P_{jj}}, \qquad z = (x - \mu) / \sigma

Residuals are those of `cross_fit`: each training row is predicted by the rows of other folds, as a
new row is. Their 5% and 95% quantiles (at ranks k / (n + 1)) around the prediction hold 90% of new
normal rows, with as many columns as rows too (``python -m benchmarks.column_reasons --coverage``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

import numpy as np

from kernull._fields import POSITIVE, Range, Shape, stored
from kernull._typing import Array, Indices, Mask
from kernull.detector.calibration import FOLDS
from kernull.detector.cross_fit import cross_fit, dense_ranks, folds_of, row_keys, sampling_order
from kernull.detector.rows import TableKernels
from kernull.tables.gaps import MOST_COLUMNS, correlation, fill_standardised
from kernull.views import Whiten

#: Training rows that are learned from at most: a share of 1 in 4,000 is as fine as words go.
USUAL_ROWS = 4000
#: Training rows of a smaller weight, of the largest, are suspects: they are not what is usual.
LEAST_WEIGHT = 0.1
#: Training rows that misfits are learned from at most: 1,000 name no more swapped views.
MISFIT_ROWS = 200
#: Rows below which nothing is learned of how views go together.
FEWEST = 5
#: Deviations from its mean, at most, at which a column is a predictor: a broken view would take the
#: others with it. With two, swapped digits are named in 96.7%; with four in 94.3%.
FARTHEST_PREDICTOR = 2.0
#: Weight, of the largest, that an interior solver leaves where there should be none.
NEGLIGIBLE = 1e-6
#: Levels of the quantiles that are kept.
RESIDUAL_LEVELS = np.linspace(0.0, 1.0, 101)


@stored
@dataclass(frozen=True, eq=False)
class UsualValues:
    """The regression of each column on the others, and how far training rows lie from it.

    Parameters
    ----------
    mean, scale : array of shape (d,)
        Mean and standard deviation of each column (1 where it is constant).
    correlation : array of shape (d, d), optional
        Shrunk correlation of the columns; None with more than 400 columns, which are then predicted
        at their mean.
    residuals : array of shape (101, d)
        Quantiles of the residuals of left-out rows.
    quantiles : array of shape (101, d)
        Quantiles of the columns by themselves.
    rows : int
        Number of training rows.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 50)
    >>> usual = UsualValues.fit(np.column_stack([x, 1.0 + 2.0 * x]))
    >>> float(usual.predict(np.array([[0.25, 9.0]]))[0, 1].round(1))
    1.5
    """

    mean: Annotated[Array, Shape("_d")]
    scale: Annotated[Array, Shape("_d"), Range(low=POSITIVE)]
    correlation: Annotated[Array | None, Shape("_d", "_d")]
    residuals: Annotated[Array, Shape(len(RESIDUAL_LEVELS), "_d")]
    quantiles: Annotated[Array, Shape(len(RESIDUAL_LEVELS), "_d")]
    rows: Annotated[int, Range(low=1)]

    @classmethod
    def fit(cls, X: Array, measured: Mask | None = None) -> Self:
        """Learn from training rows.

        Parameters
        ----------
        X : array of shape (n, d)
            Rows without gaps.
        measured : boolean array of shape (n, d), optional
            False where a cell was filled in: it is no residual.
        """
        measured = np.ones(X.shape, dtype=bool) if measured is None else measured
        keys = row_keys(dense_ranks(X))  # in any unit
        sample = np.sort(sampling_order(keys)[:USUAL_ROWS])
        X, measured, fold = X[sample], measured[sample], folds_of(keys[sample], FOLDS)

        def residuals(learned: tuple[Array, Array, Array | None], rows: Indices) -> Array:
            return np.asarray(X[rows] - _predict(X[rows], *learned))

        left_out = cross_fit(lambda rows: _learn(X[rows]), residuals, fold)
        return cls(*_learn(X), _quantiles(left_out, measured), _quantiles(X, measured), len(X))

    @classmethod
    def of(cls, model: Any) -> Self | None:
        """Learn from the training rows of a `KernelModel`.

        None where it has none (precomputed kernels), and with more than 400 columns. Rows of less
        than a tenth of the largest weight are left out.

        Parameters
        ----------
        model : KernelModel
            With its training rows.
        """
        X = _normal_rows(model)
        return None if X is None or X.shape[1] > MOST_COLUMNS else cls.fit(X)

    def predict(self, X: Array) -> Array:
        """What the other columns of a row predict for each column, of shape (m, d).

        Parameters
        ----------
        X : array of shape (m, d)

        Returns
        -------
        array of shape (m, d)
        """
        return _predict(X, self.mean, self.scale, self.correlation)

    def fill(self, X: Array) -> Array:
        """Rows with NaN replaced by their conditional mean given the other cells.

        Parameters
        ----------
        X : array of shape (m, d)
            Rows with NaN.

        Returns
        -------
        array of shape (m, d)
        """
        Z = fill_standardised((X - self.mean) / self.scale, self.correlation)
        return np.where(np.isnan(X), self.mean + self.scale * Z, X)

    @property
    def residual_spread(self) -> Array:
        """Half of the range of the middle 68% of the residuals, of shape (d,); never zero."""
        low, high = self.residuals[16], self.residuals[84]
        return np.asarray(np.maximum((high - low) / 2, 1e-9 * self.scale))

    def widening(self, column: int, known: Mask) -> float:
        """Residual spread of a column given the known columns, by that given all: 1 or more.

        Parameters
        ----------
        column : int
        known : mask of shape (d,)
            Cells of the row that are known.
        """
        if self.correlation is None:
            return 1.0
        left = []
        for others in (known, np.ones_like(known)):
            predictors = np.flatnonzero(others & (np.arange(len(known)) != column))
            S, s = (
                self.correlation[np.ix_(predictors, predictors)],
                self.correlation[predictors, column],
            )
            left.append(self.correlation[column, column] - s @ np.linalg.solve(S, s))
        # The residuals know the variance given all; the shrunk correlation would exaggerate it.
        given_all = (self.residual_spread[column] / self.scale[column]) ** 2
        return float(np.sqrt(1.0 + max(left[0] - left[1], 0.0) / given_all))

    def usual_range(
        self, column: int, expected: float, widening: float = 1.0
    ) -> tuple[float, float] | None:
        """5% to 95% quantile of the residuals around the prediction, cut to the training range.

        None where it lies outside of the training range.

        Parameters
        ----------
        column : int
        expected : float
            Prediction by the other columns.
        widening : float
            Factor of the residuals, see `widening`.
        """
        least, most = self.quantiles[[0, -1], column]
        low, high = expected + widening * self.residuals[[5, 95], column]
        inside = (low < most and high > least) or least <= low == high <= most
        return (float(max(low, least)), float(min(high, most))) if inside else None

    def column_range(self, column: int) -> tuple[float, float]:
        """5% and 95% quantile of one column by itself.

        Parameters
        ----------
        column : int

        Returns
        -------
        low, high : float
        """
        return float(self.quantiles[5, column]), float(self.quantiles[95, column])

    def beyond_seen(self, column: int, value: float) -> bool:
        """Whether a value lies outside of the training range.

        Parameters
        ----------
        column : int
        value : float
            A cell of it.
        """
        least, most = self.quantiles[[0, -1], column]
        slack = 1e-6 * max(abs(least), abs(most))  # files may keep seven digits
        return not least - slack <= value <= most + slack

    def share_as_far(self, column: int, residual: float, *, alone: bool = False) -> float:
        """Share of training rows with a residual as far out: 1/(n + 1) where none is.

        Between the quantiles that are kept it is estimated, and at least 1/n where a row is as far.
        ``alone``: as far from the mean of the column, whatever the others predict.

        Parameters
        ----------
        column : int
        residual : float
            Value less its prediction.
        alone : bool
            Whether the column is compared by itself, without the others.
        """
        known = self.residuals[:, column]
        if alone:
            known = self.quantiles[:, column] - self.mean[column]
        far = abs(residual) - 1e-6 * float(np.abs(known[[0, -1]]).max())  # seven digits
        # Tails are nearly straight in logarithms; the farthest row is known.
        log_share = np.log(np.maximum(1.0 - RESIDUAL_LEVELS, 1.0 / max(self.rows, 1)))
        sides = (np.interp(far, x, log_share, right=-np.inf) for x in (known, -known[::-1]))
        return min(max(float(np.exp(list(sides)).sum()), 1.0 / (self.rows + 1.0)), 1.0)


def _learn(X: Array) -> tuple[Array, Array, Array | None]:
    """Mean, scale and shrunk correlation of rows."""
    mean = X.mean(axis=0)
    apart = X - mean
    largest = np.abs(apart).max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # squares of huge values overflow
    scale = unit * np.sqrt(np.square(apart / unit).mean(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    return mean, scale, correlation(apart / scale) if X.shape[1] <= MOST_COLUMNS else None


def _predict(X: Array, mean: Array, scale: Array, R: Array | None) -> Array:
    if R is None:
        return np.broadcast_to(mean, X.shape)
    P = np.linalg.inv(R)
    return np.asarray(X - scale * (((X - mean) / scale) @ P / np.diag(P)))


def _quantiles(X: Array, measured: Mask) -> Array:
    """Quantiles of the measured cells of each column, at ranks k / (n + 1)."""
    if measured.all():
        return np.quantile(X, RESIDUAL_LEVELS, axis=0, method="weibull")
    out = np.zeros((len(RESIDUAL_LEVELS), X.shape[1]))
    for j in np.flatnonzero(measured.any(axis=0)):
        out[:, j] = np.quantile(X[measured[:, j], j], RESIDUAL_LEVELS, method="weibull")
    return out


@dataclass(frozen=True, eq=False)
class ViewMisfit:
    """Misfit of each view of a row, and of left-out training rows.

    Parameters
    ----------
    views : tuple of V integer arrays
        Columns of each view; none of views that are not judged, whose misfit is zero.
    scalings : tuple of V + 1 Whiten
        Of the columns of all views, and of those without each view.
    usual : array of shape (w, V)
        Misfits of training rows, each by a fit without its fold.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) + 0.1 * rng.normal(size=(100, 4))
    >>> misfit = ViewMisfit.fit(X, (np.array([0, 1]), np.array([2]), np.array([3])))
    >>> int(misfit(np.array([[0.5, 0.5, -0.5, 0.5]]))[0].argmax())
    1
    """

    views: tuple[Indices, ...]
    scalings: tuple[Whiten, ...]
    usual: Array

    @classmethod
    def fit(cls, X: Array, views: tuple[Indices, ...], usual: Array | None = None) -> ViewMisfit:
        """Learn from training rows (n, d), and ``usual`` misfits where they are not known.

        New rows are judged by as many rows as left-out ones are: misfits grow with their number
        where columns are many.
        """
        keys, none = row_keys(dense_ranks(X)), np.empty((0, len(views)))
        sample = np.sort(sampling_order(keys)[:MISFIT_ROWS])
        X, fold = X[sample], folds_of(keys[sample], FOLDS)

        def learn(rows: Indices) -> ViewMisfit:
            fitted = (Whiten().fit(X[rows][:, seen]) for seen in _without_each(views))
            return cls(views, tuple(fitted), none)

        if usual is None or usual.shape != (len(X), len(views)):
            usual = cross_fit(learn, lambda misfit, rows: misfit(X[rows])[0], fold)
        return replace(learn(np.flatnonzero(fold != fold.max())), usual=usual)

    @classmethod
    def of(cls, model: Any, kept: Mask, usual: Array | None = None) -> ViewMisfit | None:
        """Learn from the training rows of a `KernelModel`; views without weight are not judged.

        None with fewer than two views of weight, fewer than five rows, or precomputed kernels.

        Parameters
        ----------
        model : KernelModel
            With its training rows.
        kept : mask of shape (J,)
            Kernels whose views take part.
        usual : array of shape (w, V), optional
            Misfits of left-out rows, where they are known.
        """
        X, owner = _normal_rows(model), np.array(model.kernels.views, dtype=object)
        if X is None or len(X) < FEWEST:
            return None
        weights = np.where(kept, model.rule.weights * model.kernels.scale, 0.0)
        used = set(owner[weights > NEGLIGIBLE * weights.max()])
        columns, names = model.kernels.columns, dict.fromkeys(owner[kept])
        none = np.empty(0, dtype=np.intp)
        views = tuple(columns[name] if name in used else none for name in names)
        return None if len(used) < 2 else cls.fit(X, views, usual)

    def __call__(self, X: Array) -> tuple[Array, Array]:
        """Misfit of rows (m, V), and of left-out training rows (w, V)."""
        whole, *others = self.scalings
        columns, *rest = _without_each(self.views)
        far = FARTHEST_PREDICTOR * whole.scale_
        near, out = X.copy(), np.empty((len(X), len(self.views)))
        near[:, columns] = np.clip(X[:, columns], whole.mean_ - far, whole.mean_ + far)
        for v, (view, seen, other) in enumerate(zip(self.views, rest, others, strict=True)):
            row = near.copy()
            row[:, view] = X[:, view]
            out[:, v] = _squared_length(whole, row[:, columns])
            out[:, v] -= _squared_length(other, row[:, seen])
        return out, self.usual


def _without_each(views: tuple[Indices, ...]) -> list[Indices]:
    """Columns of all views, and of all but each."""
    parts = [views, *([*views[:v], *views[v + 1 :]] for v in range(len(views)))]
    return [np.unique(np.concatenate(part)) for part in parts]


def _squared_length(scaling: Whiten, X: Array) -> Array:
    Z = scaling.transform(X)
    return np.asarray(np.einsum("ij,ij->i", Z, Z))


def _normal_rows(model: Any) -> Array | None:
    """Training rows without suspects; None where only their kernels are known."""
    if not isinstance(model.kernels, TableKernels) or model.kernels.set.rows is None:
        return None
    X, weight = np.asarray(model.kernels.set.rows), model.system and model.system.row_weight
    if weight is not None and len(weight) == len(X):  # that of landmarks is not kept
        X = X[weight > LEAST_WEIGHT * weight.max()]
    return X
