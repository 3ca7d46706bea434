"""Views: which columns they have, and how each is scaled by its own training statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernull._typing import Array, Indices, Mask
from kernull.views.columns import columns_of_view
from kernull.views.quantile import Knots, from_scores, scores_of_knots, step_of_scores, to_scores

#: The scalings known by name.
SCALINGS = ("standard", "whiten", "whiten-raw", "quantile", "none")
#: What ``"auto"`` stands for; docs/results/defaults.md has the comparison behind it.
AUTO_SCALINGS = ("standard", "whiten", "quantile")


def no_rule_for(kind: str) -> NotImplementedError:
    """What to raise where a scaling of `SCALINGS` has no rule."""
    return NotImplementedError(f"scaling: {kind!r} is in SCALINGS, but no rule here applies it.")


def read_scalings(scaling: Any, columns: int) -> tuple[str, ...]:
    """The scalings that ``scaling`` stands for on a view of so many columns.

    One column needs no decorrelation: ``"auto"`` then leaves out ``"whiten"``.
    """
    if isinstance(scaling, str) and scaling == "auto":
        return tuple(kind for kind in AUTO_SCALINGS if columns > 1 or kind != "whiten")
    kinds = tuple(scaling) if isinstance(scaling, list | tuple) else (scaling,)
    if not kinds or not all(isinstance(kind, str) and kind in SCALINGS for kind in kinds):
        raise ValueError(
            f"scaling: got {scaling!r}; expected one of {SCALINGS}, several of them, or 'auto'."
        )
    if len(set(kinds)) < len(kinds):
        raise ValueError(f"scaling: got {scaling!r}, which names a scaling twice.")
    return kinds


#: Mean variance after shrinkage, as a share of what the largest may be, from which the rounding of
#: products of the rows with themselves is below a billionth of it.
LEAST_SHARE = 1e-4
#: Directions with a smaller share of the largest variance have none but rounding.
LEAST_VARIANCE = 1e-13
#: Values whose difference is below this share of their size are one value, written twice.
ROUNDING = 10 * np.finfo(float).eps


def same_value(X: Array, values: Array) -> Mask:
    """Where entries equal the values of their columns, up to rounding."""
    return np.asarray(np.abs(X - values) <= ROUNDING * np.abs(values))


def constant_columns(X: Array) -> Mask:
    """Columns that hold one value, up to its rounding: of shape (d,)."""
    if not len(X):
        return np.ones(X.shape[1], dtype=bool)
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(high - low <= ROUNDING * np.maximum(high, -low))


def unseen_step(kind: str, n: int) -> float:
    r"""Scaled size of a value off a column that was constant on n training rows.

    There is no unit to measure it by. It gets the place it would have had as one more training
    row, which no unit enters: :math:`(N + 1)/\sqrt{N}` standard deviations from the others, the
    most that any row can have, or the normal score of the last of N + 1. N is n rounded up to a
    power of four, so that a row more or less leaves it what it is: rows that are equally odd tie.
    """
    rounded = 4.0 ** np.ceil(np.log(max(n, 1)) / np.log(4.0) - 1e-9)
    if kind == "quantile":
        return step_of_scores(rounded)
    if kind in ("standard", "whiten", "whiten-raw"):
        return float((rounded + 1) / rounded**0.5)
    raise no_rule_for(kind)


@dataclass(frozen=True)
class ViewScaler:
    r"""Map of one view, fitted on training rows.

    - ``"none"``: :math:`x`
    - ``"standard"``: :math:`z = (x - \mu) / \sigma`, column by column
    - ``"whiten"``: :math:`S^{-1/2} z` with the Ledoit-Wolf covariance
      :math:`S = (1 - s)\,C + s\,m\,I` of the standardised columns. Directions with little
      variance count as much as those with much; without it, a few leading directions of an
      embedding drown the rest.
    - ``"whiten-raw"``: :math:`S^{-1/2} (x - \mu)` with the Ledoit-Wolf covariance of the columns
      as they are. For embeddings whose columns share one unit (a network's activations): a column
      that hardly varies among normal rows is noise there, and standardising would blow it up.
    - ``"quantile"``: each column to normal scores by its training ranks, linear beyond the ends;
      see `kernull.views.quantile`. Standardising sees size, this sees shape.

    S is kept as its principal directions plus a multiple of the identity, so that a view with
    more columns than rows costs n d^2 at most and never a d x d root.

    *Constant columns* take no part in a covariance and are zero on the training rows, in every
    scaling but ``"none"``. A new value that differs from the only one ever seen has no unit to be
    measured by: it becomes +-`unseen_step`, whatever its size, and `unseen` reports it.

    A shrunk covariance takes the sum of the weights for the number of rows; all else depends on
    their ratios alone. Weights of mean one (`kernull.calibration.trust`) say how much each row
    counts against the others, and leave the number of rows what it is.
    """

    kind: str
    mean: Array | None = None
    scale: Array | None = None
    directions: Array | None = None  # (d, r), orthonormal columns
    gains: Array | None = None  # (r,), extra gain along each direction
    base_gain: float = 1.0
    steps: Array | None = None  # (d,), what a value off a constant column becomes; 0 elsewhere
    knot_values: Array | None = None  # "quantile": see `Knots`
    knot_scores: Array | None = None
    knot_starts: Indices | None = None
    knot_slopes: Array | None = None

    @classmethod
    def fit(cls, kind: Any, X: Array, sample_weight: Array | None = None) -> ViewScaler:
        """Learn the map from the training rows of one view."""
        ((scaler, _),) = cls.fit_transform((kind,), X, sample_weight, rows=False)
        return scaler

    @classmethod
    def fit_transform(
        cls,
        kinds: Iterable[Any],
        X: Array,
        sample_weight: Array | None = None,
        *,
        rows: bool = True,
    ) -> Iterator[tuple[ViewScaler, Array]]:
        """Several maps of one view, each with the rows that have weight as it maps them.

        What maps have in common is computed once. Without ``rows``, these may be anything.
        """
        if sample_weight is not None and not (sample_weight > 0).all():
            X, sample_weight = X[sample_weight > 0], sample_weight[sample_weight > 0]
        constant = moments = None
        for kind in kinds:
            if not isinstance(kind, str) or kind not in SCALINGS:
                raise ValueError(f"scaling: got {kind!r}; expected one of {SCALINGS}.")
            if kind == "none":
                yield cls("none"), X
                continue
            if kind not in ("standard", "whiten", "whiten-raw", "quantile"):
                raise no_rule_for(kind)
            constant = constant_columns(X) if constant is None else constant
            steps = np.where(constant, unseen_step(kind, len(X)), 0.0) if constant.any() else None
            if kind == "quantile":
                knots, scores = scores_of_knots(X, sample_weight)
                yield cls(kind, X[0].copy(), None, None, None, 1.0, steps, *knots), scores
                continue
            moments = _moments(X, sample_weight, constant) if moments is None else moments
            mean, scale = moments
            if kind == "whiten-raw":
                scale = np.ones_like(scale)
            Z = (X - mean) / scale
            if steps is not None:
                Z[:, constant] = 0.0
            if kind == "standard":
                yield cls(kind, mean, scale, steps=steps), Z
                continue
            found = _whitening(Z if steps is None else Z[:, ~constant], sample_weight, rows=rows)
            directions = found.directions
            if steps is None:
                Z = found.rows
            else:  # of all columns, not only those that vary
                directions = np.zeros((X.shape[1], directions.shape[1]))
                directions[~constant], Z[:, ~constant] = found.directions, found.rows
            yield cls(kind, mean, scale, directions, found.gains, found.base_gain, steps), Z

    def transform(self, X: Array) -> Array:
        """Apply the map to rows."""
        if self.kind == "none":
            return X
        Z = self.by_column(X)
        if self.directions is not None:
            Z = self.rotated(Z)
        if self.steps is not None:
            constant = self.steps > 0
            side = np.sign(X[:, constant] - np.asarray(self.mean)[constant])
            Z[:, constant] = self.steps[constant] * np.where(self.unseen(X)[:, constant], side, 0.0)
        return Z

    def by_column(self, X: Array) -> Array:
        """The part of the map that takes each column by itself, before any rotation."""
        if self.kind == "quantile":
            return to_scores(X, self._knots)
        if self.kind not in ("standard", "whiten", "whiten-raw"):
            raise no_rule_for(self.kind)
        assert self.mean is not None
        assert self.scale is not None
        Z = np.asarray((X - self.mean) / self.scale)
        if self.directions is not None and self.steps is not None:
            Z[:, self.steps > 0] = 0.0  # of any size, and no part of the covariance
        return Z

    def rotated(self, Z: Array) -> Array:
        """The root of the inverse covariance, applied to rows of `by_column`."""
        assert self.directions is not None
        assert self.gains is not None
        along = Z @ self.directions * self.gains
        return np.asarray(self.base_gain * Z + along @ self.directions.T)

    def principal(self, Z: Array) -> Array:
        r"""Rows of `by_column` in principal axes: r + 1 coordinates in place of d.

        The last is what lies outside the principal directions, as one length. Training rows have
        nothing there where there are more columns than rows: with that set to zero, as rounding
        leaves some, their distances to any row are those of `transform`. Distances between two new
        rows are not.
        """
        assert self.directions is not None
        assert self.gains is not None
        along = Z @ self.directions
        outside = np.einsum("ij,ij->i", Z, Z) - np.einsum("ij,ij->i", along, along)
        rest = self.base_gain * np.sqrt(np.maximum(outside, 0.0))
        return np.column_stack([along * (self.base_gain + self.gains), rest])

    @property
    def _knots(self) -> Knots:
        assert self.knot_values is not None
        assert self.knot_scores is not None
        assert self.knot_starts is not None
        assert self.knot_slopes is not None
        return Knots(self.knot_values, self.knot_scores, self.knot_starts, self.knot_slopes)

    def unseen(self, X: Array) -> Mask:
        """Cells that differ from the only value ever seen in their column, of shape (m, d).

        Such a value is evidence by itself, however small the difference.

        Examples
        --------
        >>> import numpy as np
        >>> rows = np.array([[1.0, 5.0], [2.0, 5.0], [4.0, 5.0]])
        >>> ViewScaler.fit("standard", rows).unseen(np.array([[9.0, 5.0], [2.0, 5.001]]))
        array([[False, False],
               [False,  True]])
        """
        found = np.zeros(X.shape, dtype=bool)
        if self.steps is not None:
            constant = self.steps > 0
            mean = np.asarray(self.mean)[constant]
            found[:, constant] = ~same_value(X[:, constant], mean)
        return found

    def inverse_transform(self, Z: Array) -> Array:
        """From scaled rows back to rows; constant columns come back as their only value."""
        if self.kind == "none":
            return Z
        assert self.mean is not None
        if self.kind == "quantile":
            return from_scores(Z, self._knots)
        if self.kind not in ("standard", "whiten", "whiten-raw"):
            raise no_rule_for(self.kind)
        assert self.scale is not None
        if self.steps is not None:
            Z = np.where(self.steps > 0, 0.0, Z)
        if self.directions is not None:
            assert self.gains is not None
            lost = self.gains / (self.base_gain + self.gains)
            Z = (Z - (Z @ self.directions * lost) @ self.directions.T) / self.base_gain
            # Constant columns were exactly zero, and must not come back as noise.
            Z[np.abs(Z) <= 1e-12 * np.abs(Z).max(initial=0.0)] = 0.0
        return np.asarray(Z * self.scale + self.mean)


def _moments(X: Array, sample_weight: Array | None, constant: Mask) -> tuple[Array, Array]:
    """Means and standard deviations; of constant columns their value, and one."""
    mean, scale = X[0].astype(float), np.ones(X.shape[1])
    if not constant.all():
        varying = X[:, ~constant]
        centre = np.average(varying, axis=0, weights=sample_weight)
        off = varying - centre
        # The second term is nought, but for the rounding of the mean.
        variance = np.average(off * off, axis=0, weights=sample_weight)
        variance -= np.average(off, axis=0, weights=sample_weight) ** 2
        mean[~constant], scale[~constant] = centre, np.sqrt(np.maximum(variance, 0.0))
    scale[scale == 0.0] = 1.0  # of values too small to be squared
    return mean, scale


class _Whitening(NamedTuple):
    """The root of an inverse covariance: directions with a gain each, and a gain elsewhere."""

    directions: Array
    """Orthonormal, of shape (d, r)."""
    gains: Array
    """Extra gain along each, of shape (r,)."""
    base_gain: float
    rows: Array
    """The rows, whitened, where they were asked for."""


def _whitening(Z: Array, sample_weight: Array | None, *, rows: bool) -> _Whitening:
    """Of centred rows: principal directions, the extra gain along each, and the gain elsewhere."""
    if not Z.shape[1]:
        return _Whitening(np.zeros((0, 0)), np.zeros(0), 1.0, Z)
    n, d = Z.shape
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
    left = None
    # From that product, unless shrinkage leaves variances so small that their rounding, which is
    # that of the largest one, would be seen.
    if shrinkage * min(n, d) <= LEAST_SHARE * d:
        _, singular, Vt = np.linalg.svd(rooted, full_matrices=False)
        variances, axes = singular**2 / n, Vt.T
    elif not wide:
        variances, axes = np.linalg.eigh(gram)
        variances = np.maximum(variances, 0.0)
    else:
        variances, left = np.linalg.eigh(gram)
        # What no row reaches needs no direction of its own.
        seen = variances > LEAST_VARIANCE * max(float(variances[-1]), np.finfo(float).tiny)
        variances, left = variances[seen], left[:, seen]
        axes = rooted.T @ (left / np.sqrt(n * variances))
    floor = shrinkage * float(variances.sum()) / d
    shrunk = (1.0 - shrinkage) * variances + floor
    # Directions without any variance (duplicate columns when nothing shrinks) must not be blown
    # up: they keep the gain of the smallest real one.
    real = shrunk > 1e-10 * shrunk.max() if len(shrunk) else np.zeros(0, bool)
    gains = 1.0 / np.sqrt(shrunk[real])
    # Without any variance at all (a view that is constant in a fold) nothing is scaled.
    least = gains.max(initial=0.0) or 1.0
    base = 1.0 / np.sqrt(floor) if floor > 1e-10 * shrunk.max(initial=0.0) else least
    directions, gains = np.ascontiguousarray(axes if real.all() else axes[:, real]), gains - base
    if rows and left is not None and sample_weight is None and real.all():
        # Rows are left vectors times singular values times directions: one product of n x n.
        Z = (left * (base + gains)) @ left.T @ Z
    elif rows:
        Z = base * Z + (Z @ directions * gains) @ directions.T
    return _Whitening(directions, gains, float(base), Z)


def resolve_views(
    views: Any, n_features: int, feature_names: Sequence[str] | None = None
) -> dict[str, Indices]:
    """Turn what a user passed as ``views`` into column positions, by name.

    Parameters
    ----------
    views : None, "features" or mapping of name -> columns
        None is one view of all columns; ``"features"`` is one view per column; a mapping gives each
        view's columns as positions, names, a slice, or a single one of these.
    n_features : int
        Number of columns of the table.
    feature_names : sequence of str, optional
        Names of the columns, where the table has them.

    Returns
    -------
    dict of str -> integer array

    Examples
    --------
    >>> resolve_views({"size": [0, 1], "rest": slice(2, None)}, 4)
    {'size': array([0, 1]), 'rest': array([2, 3])}
    """
    names = None if feature_names is None else [str(name) for name in feature_names]
    if views is None:
        return {"all": np.arange(n_features)}
    if isinstance(views, str) and views == "features":
        labels = names if names is not None else [f"x{i}" for i in range(n_features)]
        return {label: np.array([i]) for i, label in enumerate(labels)}
    if not isinstance(views, Mapping):
        raise ValueError(
            f'views: got {views!r}; expected None (all columns), "features" (one view per column) '
            "or a mapping of name -> columns."
        )
    if not views:
        raise ValueError("views: got an empty mapping; expected at least one view.")
    found = {
        str(name): columns_of_view(str(name), columns, n_features, names)
        for name, columns in views.items()
    }
    if len(found) < len(views):
        raise ValueError(
            f"views: got the names {list(views)!r}, of which two are the same as text; expected "
            "names that differ."
        )
    return found
