"""Views: which columns, and how they are scaled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm
from sklearn.covariance import ledoit_wolf, ledoit_wolf_shrinkage
from sklearn.preprocessing import StandardScaler

import kernull
from kernull.views import SCALINGS, ViewScaler, join_views, resolve_views

NAMES = ["age", "size", "weight", "colour"]


def resolved(views, names=NAMES, n=4):
    return {name: columns.tolist() for name, columns in resolve_views(views, n, names).items()}


def test_none_is_one_view_of_all_columns():
    assert resolved(None) == {"all": [0, 1, 2, 3]}


def test_features_are_one_view_a_column():
    assert resolved("features") == {name: [i] for i, name in enumerate(NAMES)}
    assert resolved("features", None) == {f"x{i}": [i] for i in range(4)}


@pytest.mark.parametrize(
    ("columns", "positions"),
    [
        ([2, 0], [2, 0]),
        (1, [1]),
        (np.int64(3), [3]),
        (-1, [3]),
        (np.array([0, -2]), [0, 2]),
        (range(1, 3), [1, 2]),
        ("size", [1]),
        (["weight", "age"], [2, 0]),
        (["weight", 0], [2, 0]),
        (slice(1, 3), [1, 2]),
        (slice(None, None, 2), [0, 2]),
        (slice(-2, None), [2, 3]),
        (slice("size", "colour"), [1, 2, 3]),
        (slice("weight", None), [2, 3]),
        (slice(None, "size"), [0, 1]),
        ([True, False, False, True], [0, 3]),
        (np.array([False, True, True, False]), [1, 2]),
    ],
)
def test_columns_by_position_name_slice_and_mask(columns, positions):
    assert resolved({"v": columns}) == {"v": positions}


def test_views_may_overlap_and_keep_their_order():
    assert resolved({"b": [1, 2], "a": [0, 1]}) == {"b": [1, 2], "a": [0, 1]}


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (4, "column 4 is out of range for 4 columns"),
        (-5, "out of range"),
        ("height", "no column 'height'; the table has .*'age'"),
        (slice("age", "height"), "no column 'height'"),
        ([], "selects no column"),
        (slice(2, 2), "selects no column"),
        (slice(2, 5), r"slice\(2, 5, None\) reaches beyond the 4 columns"),
        (slice(5, None), "reaches beyond the 4 columns"),
        (slice(-5, 2), "reaches beyond the 4 columns"),
        ([False] * 4, "selects no column"),
        ([0, 0], "names a column twice"),
        (["age", 0], "names a column twice"),
        ([True, False], "a mask of 2 entries for 4 columns"),
        (1.5, "expected"),
        ([1.5], "got 1.5 as a column"),
        ([True, 1], "got True as a column"),
        (None, "expected"),
    ],
)
def test_bad_columns_name_their_view(columns, message):
    with pytest.raises(ValueError, match=rf"^views\['v'\]: .*{message}"):
        resolve_views({"v": columns}, 4, NAMES)


def test_names_without_column_names():
    for columns in ("age", slice("age", "size")):
        with pytest.raises(ValueError, match=r"views\['v'\].*no column names"):
            resolve_views({"v": columns}, 4)


@pytest.mark.parametrize("views", ["feature", 3, [[0, 1]], {}])
def test_bad_views(views):
    with pytest.raises(ValueError, match=r"^views: got"):
        resolve_views(views, 4, NAMES)


def test_join_views_gives_back_its_parts(rng):
    parts = {"a": rng.normal(size=(5, 2)), "b": rng.normal(size=5), "c": rng.normal(size=(5, 1))}
    table, views = kernull.join_views(parts)
    assert table.shape == (5, 4)
    assert views == {"a": [0, 1], "b": [2], "c": [3]}
    for name, part in parts.items():
        np.testing.assert_array_equal(table[:, views[name]], part.reshape(5, -1))
    assert resolved(views) == views


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "got no array"),
        ({"a": np.ones((3, 2)), "b": np.ones((4, 2))}, "'b' has 4 rows, the views before it 3"),
        ({"a": [[1.0], [np.nan]]}, "join_views.*'a'.*NaN"),
        ({"a": np.ones((2, 2, 2))}, "dim"),
    ],
)
def test_join_views_of_what_does_not_fit(parts, message):
    with pytest.raises(ValueError, match=message):
        join_views(parts)


# -- scaling -----------------------------------------------------------------------------------


@pytest.fixture(params=[(40, 6), (15, 30)], ids=["tall", "wide"])
def X(request, rng):
    n, d = request.param
    return rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=(n, d)) + 2


def test_none_changes_nothing(X):
    np.testing.assert_array_equal(ViewScaler.fit("none", X).transform(X), X)


def test_standard_is_standard_scaler(X, rng):
    new = rng.normal(size=(3, X.shape[1]))
    expected = StandardScaler().fit(X).transform(new)
    np.testing.assert_allclose(ViewScaler.fit("standard", X).transform(new), expected, rtol=1e-12)


def whitening_matrix(X):
    """S^(-1/2) of the Ledoit-Wolf covariance of the standardised columns, by SciPy."""
    Z = StandardScaler().fit_transform(X)
    S, _ = ledoit_wolf(Z)
    return np.linalg.inv(np.real(sqrtm(S))), Z


def test_whiten_is_the_inverse_root_of_the_shrunk_covariance(X, rng):
    root, Z = whitening_matrix(X)
    scaler = ViewScaler.fit("whiten", X)
    np.testing.assert_allclose(scaler.transform(X), Z @ root, rtol=1e-7, atol=1e-9)
    new = rng.normal(size=(3, X.shape[1]))
    expected = (new - X.mean(0)) / X.std(0) @ root
    np.testing.assert_allclose(scaler.transform(new), expected, rtol=1e-7, atol=1e-9)


def test_whiten_raw_does_not_standardise(X, rng):
    X = X * np.linspace(0.1, 5, X.shape[1])
    S, _ = ledoit_wolf(X)
    new = rng.normal(size=(3, X.shape[1]))
    expected = (new - X.mean(0)) @ np.linalg.inv(np.real(sqrtm(S)))
    found = ViewScaler.fit("whiten-raw", X).transform(new)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    assert np.abs(found - ViewScaler.fit("whiten", X).transform(new)).max() > 1e-3


def test_covariance_of_a_whitened_view(X):
    """S^(-1/2) C S^(-1/2) with S = (1 - s) C + s m I: eigenvalues c / ((1 - s) c + s m)."""
    W = ViewScaler.fit("whiten", X).transform(X)
    Z = StandardScaler().fit_transform(X)
    s = ledoit_wolf_shrinkage(Z, assume_centered=True)
    c = np.linalg.eigvalsh(Z.T @ Z / len(Z)).clip(0)
    expected = c / ((1 - s) * c + s * c.mean())
    actual = np.linalg.eigvalsh(W.T @ W / len(W))
    np.testing.assert_allclose(np.sort(actual), np.sort(expected), rtol=1e-7, atol=1e-9)


def test_whitening_one_column_is_standardising(rng):
    x = rng.normal(size=(30, 1)) * 5 + 2
    whitened = ViewScaler.fit("whiten", x).transform(x)
    np.testing.assert_allclose(whitened, (x - x.mean()) / x.std(), rtol=1e-10)


@pytest.mark.parametrize("kind", ["none", "standard", "whiten", "whiten-raw"])
@pytest.mark.parametrize("n", [4, 60])  # fewer rows than columns, and more
def test_scaling_can_be_undone(kind, n):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6)) + 3
    scaler = ViewScaler.fit(kind, rows[:n])
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(rows)), rows, rtol=1e-9)


@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw"])
def test_weights_count_as_copies(kind, X):
    copies = np.random.default_rng(3).integers(1, 5, len(X))
    weighted = ViewScaler.fit(kind, X, copies.astype(float)).transform(X)
    repeated = ViewScaler.fit(kind, np.repeat(X, copies, axis=0)).transform(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw"])
def test_unit_weights_are_no_weights(kind, X):
    one = ViewScaler.fit(kind, X, np.ones(len(X))).transform(X)
    np.testing.assert_allclose(one, ViewScaler.fit(kind, X).transform(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1e-12, 1e12])
@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw"])
def test_scaling_forgets_the_unit(kind, size, X):
    one = ViewScaler.fit(kind, X).transform(X)
    other = ViewScaler.fit(kind, size * X).transform(size * X)
    np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("extra", ["constant", "duplicate"])
def test_degenerate_columns_do_not_blow_up(extra, rng):
    X = rng.normal(size=(200, 3))
    column = np.full(200, 5.0) if extra == "constant" else X[:, 0]
    W = ViewScaler.fit("whiten", np.column_stack([X, column])).transform(
        np.column_stack([X, column])
    )
    assert np.isfinite(W).all()
    assert np.abs(W).max() < 100


@pytest.mark.parametrize("kind", ["whitening", None, 1, ["standard"]])
def test_unknown_scaling(kind, X):
    with pytest.raises(ValueError, match=r"^scaling: got"):
        ViewScaler.fit(kind, X)


def test_names_that_are_the_same_as_text():
    with pytest.raises(ValueError, match="two are the same as text"):
        resolve_views({1: [0, 1], "1": [2, 3]}, 4)


@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
@pytest.mark.parametrize("weighted", [False, True])
def test_maps_that_share_their_work_are_those_fitted_one_by_one(rng, shape, weighted):
    X = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    X[:, 1], X[:, 2] = 3.0, np.round(X[:, 2])
    weight = rng.random(shape[0]) if weighted else None
    if weighted:
        weight[3] = 0.0
    rows = X if weight is None else X[weight > 0]
    for scaler, train in ViewScaler.fit_transform(SCALINGS, X, weight):
        alone = ViewScaler.fit(scaler.kind, X, weight)
        np.testing.assert_allclose(train, alone.transform(rows), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", ["whiten", "whiten-raw"])
def test_principal_axes_keep_distances_to_training_rows(rng, kind):
    X = rng.normal(size=(15, 40)) * np.linspace(1.0, 3.0, 40)
    X[:, 7] = 2.0
    new = rng.normal(size=(9, 40))
    new[:, 7] = 2.0
    scaler = ViewScaler.fit(kind, X)
    few, all_few = (scaler.principal(scaler.by_column(rows)) for rows in (new, X))
    assert few.shape[1] <= len(X) + 1
    assert all_few[:, -1].max() < 1e-6
    all_few[:, -1] = 0.0
    found = ((few[:, None] - all_few) ** 2).sum(axis=-1)
    Z, train = scaler.transform(new), scaler.transform(X)
    np.testing.assert_allclose(found, ((Z[:, None] - train) ** 2).sum(axis=-1), rtol=1e-9)
