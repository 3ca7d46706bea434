"""Scalings: how each view is scaled, by statistics of its training rows.

A scaling is a scikit-learn transformer. Those named here also know a value that was never seen in
its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import has_fit_parameter

from kernull._fields import DERIVED, POSITIVE, Checked, Range, Shape, stored
from kernull._runtime import in_threads
from kernull._typing import Array, Indices, Mask
from kernull.kernels import parse_kernels

#: Directions with a smaller share of the largest variance, before and after shrinkage, have none
#: but rounding.
LEAST_VARIANCE, LEAST_SHRUNK = 1e-13, 1e-10
#: Ranks beyond which the slope outside the training range is taken.
OUTER = 0.1
#: Rows that a thread scales at a time.
SCALED_AT_ONCE = 10_000
#: Values whose difference is below this share of their size are one value, written twice.
CONSTANT_ROUNDING = 10 * np.finfo(float).eps
#: Values of a view; their squares, and sums of these over all columns, must be numbers.
LARGEST = 1e140
#: Of values that a fit takes (up to 1e-140), in directions of a hundred-thousandth of them, the
#: gain is 1e145; times the largest value, this is still a number.
LARGEST_GAIN = 1e150


def constant_columns(X: Array) -> Mask:
    """Columns that hold one value, up to its rounding: of shape (d,).

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    mask of shape (d,)
    """
    if not len(X):
        return np.ones(X.shape[1], dtype=bool)
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(high - low <= CONSTANT_ROUNDING * np.maximum(high, -low))


class Scaling(TransformerMixin, BaseEstimator):
    """A map of one view; rows of weight zero take no part in its fit."""

    name = ""

    def fit(self, X: Array, y: Any = None, sample_weight: Array | None = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : array of shape (n, d)
        y : ignored
        sample_weight : array of shape (n,), optional
        """
        if sample_weight is not None and not (sample_weight > 0).all():
            X, sample_weight = X[sample_weight > 0], sample_weight[sample_weight > 0]
        self._learn(X, sample_weight)
        return self

    def transform(self, X: Array) -> Array:
        """Map rows.

        Parameters
        ----------
        X : array of shape (m, d)

        Returns
        -------
        array of shape (m, d)
        """
        raise NotImplementedError

    def _learn(self, X: Array, sample_weight: Array | None) -> None:
        """Learn from rows of positive weight."""


@stored
class Unscaled(Scaling):
    """Values as they are, constant columns too."""

    name = "none"

    def transform(self, X: Array) -> Array:
        """The rows."""
        return X


class UnseenScaling(Scaling):
    """A scaling that knows a value never seen in a column.

    A column that is constant in training is zero there. Another value has no unit to be measured
    by, and is evidence by itself, however small the difference: it becomes +-``unseen_step``.

    Attributes
    ----------
    constant_ : boolean array of shape (d,)
        Columns of one value.
    mean_ : array of shape (d,)
        Of constant columns their value.
    """

    unseen_step: ClassVar[float]
    constant_: Annotated[Mask, Shape("_d")]
    mean_: Annotated[Array, Shape("_d"), Range(-LARGEST, LARGEST)]

    def _with_unseen(self, Z: Array, X: Array) -> Array:
        """Scaled rows Z of rows X, with the constant columns filled in."""
        if self.constant_.any():
            values = self.mean_[self.constant_]
            off = X[:, self.constant_] - values
            off[np.abs(off) <= CONSTANT_ROUNDING * np.abs(values)] = 0.0
            Z[:, self.constant_] = self.unseen_step * np.sign(off)
        return Z


@stored
class Standard(UnseenScaling):
    r""":math:`z = (x - \mu) / \sigma`, column by column.

    Attributes
    ----------
    mean_, scale_ : array of shape (d,)
        Of constant columns their value, and one.
    constant_ : boolean array of shape (d,)
        Columns of one value.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    >>> Standard().fit(rows).transform(np.array([[2.0, 5.0], [2.0, 5.001]]))
    array([[ 0.,  0.],
           [ 0., 32.]])
    """

    name = "standard"
    unseen_step = 32.0  # no row of 1,000 can be more deviations off

    scale_: Annotated[Array, Shape("_d"), Range(POSITIVE, 2 * LARGEST)]

    def transform(self, X: Array) -> Array:
        """Standardise rows, (m, d) to (m, d), clipped where squares would overflow."""
        with np.errstate(over="ignore"):
            Z = np.clip((X - self.mean_) / self.scale_, -LARGEST, LARGEST)
        return self._with_unseen(Z, X)

    def _learn(self, X: Array, sample_weight: Array | None) -> None:
        self.constant_ = constant_columns(X)
        self.mean_, self.scale_ = X[0].astype(float), np.ones(X.shape[1])
        varies = ~self.constant_
        if not varies.any():
            return
        centre = np.average(X[:, varies], axis=0, weights=sample_weight)
        off = X[:, varies] - centre
        # The second term is zero, but for the rounding of the mean.
        variance = np.average(off * off, axis=0, weights=sample_weight)
        variance -= np.average(off, axis=0, weights=sample_weight) ** 2
        self.mean_[varies], self.scale_[varies] = centre, np.sqrt(np.maximum(variance, 0.0))
        self.scale_[self.scale_ == 0.0] = 1.0  # of values too small to be squared


@stored
class Whiten(Checked, Standard):
    r""":math:`S^{-1/2} z` with the Ledoit-Wolf covariance of the standardised columns.

    .. math:: S = (1 - s)\,C + s\,m\,I

    Directions with little variance count as much as those with much; without it, a few leading
    directions of an embedding drown the rest. One column is standardised.

    S is kept as its principal directions plus a multiple of the identity, so that a view with
    more columns than rows costs n d^2 at most and never a d x d root. The shrinkage takes the sum
    of the weights for the number of rows; all else depends on their ratios alone. Constant columns
    take no part in the covariance.

    Attributes
    ----------
    mean_, scale_, constant_
        As of `Standard`.
    directions_ : array of shape (d, r)
        Orthonormal columns.
    gains_ : array of shape (r,)
        Extra gain along each.
    base_gain_ : float
        Gain of all directions.
    """

    name = "whiten"
    standardises: ClassVar[bool] = True

    directions_: Annotated[Array, Shape("_d", "_r"), Range(-2.0, 2.0)]
    gains_: Annotated[Array, Shape("_r"), Range(-LARGEST_GAIN, LARGEST_GAIN)]
    base_gain_: Annotated[float, Range(POSITIVE, LARGEST_GAIN)]

    def contradiction(self) -> str | None:
        """What does not fit together."""
        turned = not (self.base_gain_ + self.gains_ > 0).all()
        return "gains that turn directions round" if turned else None

    def transform(self, X: Array) -> Array:
        """Standardise, then decorrelate rows, (m, d) to (m, d)."""
        Z = super().transform(X)
        along = Z @ self.directions_ * self.gains_
        out = self.base_gain_ * Z + along @ self.directions_.T
        out[:, self.constant_] = Z[:, self.constant_]
        return np.asarray(out)

    def _learn(self, X: Array, sample_weight: Array | None) -> None:
        super()._learn(X, sample_weight)
        if not self.standardises:
            self.scale_ = np.ones_like(self.mean_)
        varies = ~self.constant_
        directions, self.gains_, self.base_gain_ = _whitening(
            super().transform(X)[:, varies], sample_weight
        )
        self.directions_ = np.zeros((len(varies), directions.shape[1]))
        self.directions_[varies] = directions


@stored
class WhitenRaw(Whiten):
    r""":math:`S^{-1/2} (x - \mu)` with the Ledoit-Wolf covariance of the columns as they are.

    For embeddings whose columns share one unit (a network's activations): a column that hardly
    varies among normal rows is noise there, and standardising would blow it up.
    """

    name = "whiten-raw"
    standardises = False


class Knots(NamedTuple):
    """Values of all columns and their scores, one column after the other."""

    values: Array
    """Distinct training values of each column in increasing order, of shape (K,)."""
    scores: Array
    """Their normal scores, of shape (K,)."""
    starts: Indices
    """Where each column begins, of shape (d + 1,)."""
    slopes: Array
    """Slope below and above the training range of each column, of shape (d, 2)."""


def scores_of_knots(X: Array, sample_weight: Array | None = None) -> tuple[Knots, Array]:
    """Normal scores of the training values, and of the rows themselves, of shape (n, d).

    Constant columns have one knot and slope zero. Of weights only ratios matter.

    Parameters
    ----------
    X : array of shape (n, d)
    sample_weight : array of shape (n,), optional

    Returns
    -------
    knots : Knots
        Of each column.
    Z : array of shape (n, d)
        Normal scores of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> knots, _ = scores_of_knots(np.array([[1.0], [2.0], [2.0], [9.0]]))
    >>> knots.values, np.round(knots.scores, 2)
    (array([1., 2., 9.]), array([-1.15,  0.  ,  1.15]))
    """
    n, d = X.shape
    columns = np.ascontiguousarray(X.T)
    order = np.argsort(columns, axis=1)
    values = np.take_along_axis(columns, order, axis=1)
    is_first = np.ones((d, n), dtype=bool)
    np.not_equal(values[:, 1:], values[:, :-1], out=is_first[:, 1:])
    begin = np.flatnonzero(is_first)  # entry of each knot, where a run of equal values begins
    starts = np.searchsorted(begin, n * np.arange(d + 1))
    end = np.append(begin[1:], n * d)
    counts = np.ones(n) if sample_weight is None else sample_weight
    upto = np.cumsum(counts[order], axis=1).ravel()[end - 1]  # weight up to each knot
    before = np.append(0.0, upto[:-1])
    before[starts[:-1]] = 0.0
    total = np.repeat(upto[starts[1:] - 1], np.diff(starts))
    # Next to no weight may lie beyond a value.
    share = np.clip((before + upto) / (2.0 * total), 1e-300, 1.0 - 1e-16)
    values, scores = values.ravel()[begin], ndtri(share)
    rows = np.empty((d, n))
    np.put_along_axis(rows, order, scores.repeat(end - begin).reshape(d, n), axis=1)
    return Knots(values, scores, starts, _slopes(values, scores, share, starts)), rows.T


def _slopes(values: Array, scores: Array, share: Array, starts: Indices) -> Array:
    """Slopes below and above the values of each column, of shape (d, 2): 0 where it has but one.

    From the ends to the first values beyond the outer tenth, or to the next ones.
    """
    first, last = starts[:-1], starts[1:] - 1
    low = first + np.maximum(np.add.reduceat(share < OUTER, first, dtype=np.intp), 1)
    high = first + np.add.reduceat(share <= 1.0 - OUTER, first, dtype=np.intp) - 1
    low, high = np.minimum(low, last), np.maximum(np.minimum(high, last - 1), first)
    rise = np.stack([scores[low] - scores[first], scores[last] - scores[high]], axis=1)
    run = np.stack([values[low] - values[first], values[last] - values[high]], axis=1)
    return np.divide(rise, run, out=np.zeros(run.shape), where=run > 0)


@stored
class Quantile(UnseenScaling):
    r"""Normal scores: each column by the ranks of its training values, ties at mid-rank.

    With distinct training values :math:`v_1 < \dots < v_m` of a column, and F the weight below a
    value plus half of the weight at it, as a share of the whole,

    .. math:: z(v_k) = \Phi^{-1}(F(v_k)), \qquad F(v) = \frac{W_{<v} + W_{=v}/2}{W}

    linear between the values, and linear beyond the ends with the slope of the outer tenth: far
    away is far away, in whatever unit. Standardising sees size, this sees shape.

    Attributes
    ----------
    knots_ : Knots
        Training values and their scores.
    constant_ : boolean array of shape (d,)
        Columns of one value.
    mean_ : array of shape (d,)
        A value of each column; of constant ones the only one.
    """

    name = "quantile"
    unseen_step = 3.3  # score of the last of 1,000 rows

    knots_: Annotated[Knots, DERIVED]
    mean_: Annotated[Array, DERIVED]
    constant_: Annotated[Mask, DERIVED]

    def transform(self, X: Array) -> Array:
        """Normal scores of rows."""
        values, scores, starts, slopes = self.knots_
        columns = np.ascontiguousarray(X.T)
        lowest, highest = values[starts[:-1]], values[starts[1:] - 1]
        pieces = zip(columns, starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        out = np.stack([np.interp(x, values[a:b], scores[a:b]) for x, a, b in pieces])
        out += slopes[:, :1] * np.minimum(columns - lowest[:, None], 0.0)
        out += slopes[:, 1:] * np.maximum(columns - highest[:, None], 0.0)
        return self._with_unseen(np.ascontiguousarray(out.T), X)

    def fit_transform(self, X: Array, y: Any = None, sample_weight: Array | None = None) -> Array:
        """Learn the map; rows are mapped by the ranks that it is learned from."""
        if sample_weight is not None and not (sample_weight > 0).all():
            return self.fit(X, sample_weight=sample_weight).transform(X)
        self.constant_, self.mean_ = constant_columns(X), X[0].astype(float)
        self.knots_, scores = scores_of_knots(X, sample_weight)
        return scores

    def of_columns(self, index: Indices) -> Quantile:
        """The scaling of some of the columns, by themselves.

        Parameters
        ----------
        index : integer array of shape (k,)
            Columns to keep.
        """
        out, (values, scores, starts, slopes) = Quantile(), self.knots_
        counts = np.diff(starts)[index]
        ends = np.cumsum(counts)
        knots = np.arange(ends[-1]) + np.repeat(starts[index] - (ends - counts), counts)
        out.knots_ = Knots(values[knots], scores[knots], np.append(0, ends), slopes[index])
        out.constant_, out.mean_ = self.constant_[index], self.mean_[index]
        return out

    def _learn(self, X: Array, sample_weight: Array | None) -> None:
        self.fit_transform(X, None, sample_weight)


#: The scalings known by name.
SCALINGS: dict[str, type[Scaling]] = {
    scaling.name: scaling for scaling in (Standard, Whiten, WhitenRaw, Quantile, Unscaled)
}
#: What ``"auto"`` stands for; docs/results/defaults.md has the comparison behind it. Whitening one
#: column is standardising it.
AUTO_SCALINGS = ("whiten", "quantile")


def read_scalings(scaling: Any, view: str | None = None) -> tuple[Any, ...]:
    """The transformers, not fitted, that ``scaling`` stands for on a view.

    Parameters
    ----------
    scaling : str, transformer, sequence or mapping
    view : str, optional
        View, where it is a mapping.

    Returns
    -------
    tuple of transformers

    Examples
    --------
    >>> read_scalings({"camera": "whiten-raw", "heat": ["standard", Quantile()]}, "heat")
    (Standard(), Quantile())
    >>> read_scalings("auto")
    (Whiten(), Quantile())
    """
    if isinstance(scaling, Mapping):
        scaling = scaling.get(view, "auto")
    if isinstance(scaling, str) and scaling == "auto":
        return tuple(SCALINGS[name]() for name in AUTO_SCALINGS)
    items = tuple(scaling) if isinstance(scaling, list | tuple) else (scaling,)
    if not items or not all(map(_is_scaling, items)):
        raise ValueError(
            f"scaling: got {scaling!r}; expected one of {tuple(SCALINGS)}, a scikit-learn "
            "transformer such as RobustScaler(), several of them, 'auto', or a mapping of view "
            "name to any of these."
        )
    scalings = tuple(SCALINGS[item]() if isinstance(item, str) else item for item in items)
    if len(set(map(scaling_name, scalings))) < len(scalings) and len(
        set(map(repr, scalings))
    ) < len(scalings):
        raise ValueError(f"scaling: got {scaling!r}, which names a scaling twice.")
    return scalings


def _is_scaling(item: Any) -> bool:
    if isinstance(item, str):
        return item in SCALINGS
    methods = ("fit", "transform", "get_params")
    return not isinstance(item, type) and all(hasattr(item, method) for method in methods)


def check_views(views: Iterable[str], scaling: Any = "auto", kernels: Any = "rbf") -> None:
    """Refuse scalings and kernels that cannot be read, or name a view that is not there.

    Parameters
    ----------
    views : iterable of str
    scaling : str, transformer, sequence or mapping
    kernels : str, kernel, sequence or mapping
    """
    names = list(views)
    for name, value, read in (
        ("scaling", scaling, read_scalings),
        ("kernels", kernels, parse_kernels),
    ):
        by_view = isinstance(value, Mapping)
        if by_view and (unknown := [v for v in value if v not in names]):
            shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
            raise ValueError(f"{name}: no view is called {unknown[0]!r}; the views are {shown}.")
        for view in names if by_view else names[:1]:
            read(value, view)


def knows_unseen(scaling: Any, view: str) -> bool:
    """Whether each scaling of a view knows values never seen in a column.

    Parameters
    ----------
    scaling : str, transformer, sequence or mapping
    view : str
    """
    return all(isinstance(one, UnseenScaling) for one in read_scalings(scaling, view))


def scaling_name(scaling: Any) -> str:
    """Name of a transformer, for people: that of the class, unless it is one of ours."""
    return scaling.name if isinstance(scaling, Scaling) else type(scaling).__name__


def fit_scaling(
    scaling: Any,
    X: Array,
    sample_weight: Array | None = None,
    view: str = "",
    first: int | None = None,
) -> tuple[Any, Array]:
    """A fitted copy of a transformer, and the rows as it maps them.

    Parameters
    ----------
    scaling : transformer
    X : array of shape (n, d)
    sample_weight : array of shape (n,), optional
        Given to transformers whose ``fit`` takes it.
    view : str
        Name of the view, for messages.
    first : int, optional
        Number of rows that it is fitted to, the first; all by default.
    """
    fitted, options = clone(scaling), {}
    if sample_weight is not None and has_fit_parameter(fitted, "sample_weight"):
        options["sample_weight"] = sample_weight[:first]
    shape = f"the {len(X)} rows and {X.shape[1]} columns of the view {view!r}"
    try:
        if isinstance(fitted, Quantile) and len(X[:first]) == len(X):
            Z = fitted.fit_transform(X, **options)
        else:
            fitted.fit(X[:first], **options)
            blocks = [X[i : i + SCALED_AT_ONCE] for i in range(0, len(X), SCALED_AT_ONCE)]
            Z = np.concatenate(in_threads(lambda rows: transformed(fitted, rows), blocks))
    except (TypeError, ValueError) as error:
        raise ValueError(f"scaling: {scaling!r} does not fit {shape}: {error}") from error
    if Z.ndim != 2 or len(Z) != len(X) or not Z.shape[1]:
        raise ValueError(
            f"scaling: {scaling!r} made an array of shape {Z.shape} of {shape}; expected one row "
            "for each row, and at least one column."
        )
    if not (np.abs(Z) < LARGEST).all():
        raise ValueError(f"scaling: {scaling!r} made NaN or values above {LARGEST:g} of {shape}.")
    return fitted, Z


def transformed(scaler: Any, X: Array) -> Array:
    """Rows by a fitted transformer; what is too far to be squared is brought nearer.

    Parameters
    ----------
    scaler : transformer
        Fitted.
    X : array of shape (m, d)

    Returns
    -------
    array of shape (m, d_Z)
    """
    Z = np.asarray(scaler.transform(np.clip(X, -LARGEST, LARGEST)), dtype=float)
    return np.asarray(np.clip(Z, -LARGEST, LARGEST))


def _whitening(Z: Array, sample_weight: Array | None) -> tuple[Array, Array, float]:
    """The root of the inverse covariance of centred rows Z, of shape (n, d).

    Orthonormal directions (d, r), the extra gain along each (r,), and the gain elsewhere.
    """
    n, d = Z.shape
    if not d:
        return np.zeros((0, 0)), np.zeros(0), 1.0
    weight = np.ones(n) if sample_weight is None else sample_weight
    # The weighted covariance is that of rescaled rows.
    rooted = Z if sample_weight is None else Z * np.sqrt(weight / np.mean(weight))[:, None]
    wide = d > n
    # The smaller of the two products of the rows with themselves: its norm is the covariance's.
    gram = (rooted @ rooted.T if wide else rooted.T @ rooted) / n
    # Ledoit and Wolf's shrinkage, where a weight counts as that many copies: for whole ones it is
    # scikit-learn's, which takes none, of the copies.
    total, norm2 = float(weight.sum()), float(np.vdot(gram, gram))
    squares = np.einsum("ij,ij->i", Z, Z)
    distance = norm2 / d - (float(weight @ squares) / total / d) ** 2
    noise = min((float(weight @ squares**2) / total - norm2) / (d * total), distance)
    shrinkage = 0.0 if noise <= 0 else noise / distance
    variances, axes = np.linalg.eigh(gram)
    # What no row reaches needs no direction.
    seen = variances > LEAST_VARIANCE * variances[-1]
    variances, axes = variances[seen], axes[:, seen]
    if wide:
        axes = rooted.T @ (axes / np.sqrt(n * variances))
    floor = shrinkage * float(variances.sum()) / d
    shrunk = (1.0 - shrinkage) * variances + floor
    # Directions without any variance (duplicate columns when nothing shrinks) must not be blown
    # up: they keep the gain of the smallest real one.
    real = shrunk > LEAST_SHRUNK * shrunk.max(initial=0.0)
    gains = 1.0 / np.sqrt(shrunk[real])
    # Without any variance at all (a view that is constant in a fold) nothing is scaled.
    least = gains.max(initial=0.0) or 1.0
    base = 1.0 / np.sqrt(floor) if floor > LEAST_SHRUNK * shrunk.max(initial=0.0) else least
    return axes[:, real], gains - base, float(base)
