"""Views: which columns, and how they are scaled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm
from sklearn.covariance import ledoit_wolf, ledoit_wolf_shrinkage
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

import kernull
from kernull.views import (
    SCALINGS,
    Quantile,
    Standard,
    Unscaled,
    Whiten,
    WhitenRaw,
    check_views,
    fit_scaling,
    join_views,
    read_scalings,
    resolve_views,
)

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
    np.testing.assert_array_equal(Unscaled().fit(X).transform(X), X)


def test_standard_is_standard_scaler(X, rng):
    new = rng.normal(size=(3, X.shape[1]))
    expected = StandardScaler().fit(X).transform(new)
    np.testing.assert_allclose(Standard().fit(X).transform(new), expected, rtol=1e-12)


def whitening_matrix(X):
    """S^(-1/2) of the Ledoit-Wolf covariance of the standardised columns, by SciPy."""
    Z = StandardScaler().fit_transform(X)
    S, _ = ledoit_wolf(Z)
    return np.linalg.inv(np.real(sqrtm(S))), Z


def test_whiten_is_the_inverse_root_of_the_shrunk_covariance(X, rng):
    root, Z = whitening_matrix(X)
    scaler = Whiten().fit(X)
    np.testing.assert_allclose(scaler.transform(X), Z @ root, rtol=1e-7, atol=1e-9)
    new = rng.normal(size=(3, X.shape[1]))
    expected = (new - X.mean(0)) / X.std(0) @ root
    np.testing.assert_allclose(scaler.transform(new), expected, rtol=1e-7, atol=1e-9)


def test_whiten_raw_does_not_standardise(X, rng):
    X = X * np.linspace(0.1, 5, X.shape[1])
    S, _ = ledoit_wolf(X)
    new = rng.normal(size=(3, X.shape[1]))
    expected = (new - X.mean(0)) @ np.linalg.inv(np.real(sqrtm(S)))
    found = WhitenRaw().fit(X).transform(new)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    assert np.abs(found - Whiten().fit(X).transform(new)).max() > 1e-3


def test_covariance_of_a_whitened_view(X):
    """S^(-1/2) C S^(-1/2) with S = (1 - s) C + s m I: eigenvalues c / ((1 - s) c + s m)."""
    W = Whiten().fit(X).transform(X)
    Z = StandardScaler().fit_transform(X)
    s = ledoit_wolf_shrinkage(Z, assume_centered=True)
    c = np.linalg.eigvalsh(Z.T @ Z / len(Z)).clip(0)
    expected = c / ((1 - s) * c + s * c.mean())
    actual = np.linalg.eigvalsh(W.T @ W / len(W))
    np.testing.assert_allclose(np.sort(actual), np.sort(expected), rtol=1e-7, atol=1e-9)


def test_whitening_one_column_is_standardising(rng):
    x = rng.normal(size=(30, 1)) * 5 + 2
    whitened = Whiten().fit(x).transform(x)
    np.testing.assert_allclose(whitened, (x - x.mean()) / x.std(), rtol=1e-10)


@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw"])
def test_weights_count_as_copies(kind, X):
    copies = np.random.default_rng(3).integers(1, 5, len(X))
    weighted = SCALINGS[kind]().fit(X, sample_weight=copies.astype(float)).transform(X)
    repeated = SCALINGS[kind]().fit(np.repeat(X, copies, axis=0)).transform(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw"])
def test_unit_weights_are_no_weights(kind, X):
    one = SCALINGS[kind]().fit(X, sample_weight=np.ones(len(X))).transform(X)
    np.testing.assert_allclose(one, SCALINGS[kind]().fit(X).transform(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("size", [1e-12, 1e12])
@pytest.mark.parametrize("kind", ["standard", "whiten", "whiten-raw"])
def test_scaling_forgets_the_unit(kind, size, X):
    one = SCALINGS[kind]().fit(X).transform(X)
    other = SCALINGS[kind]().fit(size * X).transform(size * X)
    np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("extra", ["constant", "duplicate"])
def test_degenerate_columns_do_not_blow_up(extra, rng):
    X = rng.normal(size=(200, 3))
    column = np.full(200, 5.0) if extra == "constant" else X[:, 0]
    W = Whiten().fit(np.column_stack([X, column])).transform(np.column_stack([X, column]))
    assert np.isfinite(W).all()
    assert np.abs(W).max() < 100


@pytest.mark.parametrize("kind", list(SCALINGS))
@pytest.mark.parametrize("shape", [(40, 6), (12, 30)])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_transform_is_fit_then_transform(kind, shape, weighted, rng):
    X = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    X[:, 1], X[:, 2] = 3.0, np.round(X[:, 2])
    weight = rng.random(shape[0]) if weighted else None
    Z = SCALINGS[kind]().fit_transform(X, sample_weight=weight)
    fitted = SCALINGS[kind]().fit(X, sample_weight=weight)
    np.testing.assert_allclose(Z, fitted.transform(X), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", list(SCALINGS))
def test_rows_of_weight_zero_take_no_part(kind, X):
    weight = np.arange(len(X)) % 3.0
    found = SCALINGS[kind]().fit_transform(X, sample_weight=weight)
    expected = SCALINGS[kind]().fit(X[weight > 0], sample_weight=weight[weight > 0]).transform(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("kind", "step"),
    [("standard", 32.0), ("whiten", 32.0), ("whiten-raw", 32.0), ("quantile", 3.3)],
)
@pytest.mark.parametrize("n", [5, 40])
def test_a_value_never_seen_is_a_fixed_step_off(kind, step, n, rng):
    rows = rng.normal(size=(n, 3))
    rows[:, 1] = 7.0
    new = rows[:4].copy()
    new[:, 1] = [7.0 + 1e-6, 1e9, -5.0, 7.0]
    scaler = SCALINGS[kind]().fit(rows)
    np.testing.assert_array_equal(scaler.transform(new)[:, 1], [step, step, -step, 0.0])
    other = SCALINGS[kind]().fit(rows[:, [0, 2]]).transform(new[:, [0, 2]])
    np.testing.assert_allclose(scaler.transform(new)[:, [0, 2]], other, rtol=1e-9, atol=1e-12)


# -- what scaling= may be ------------------------------------------------------------------------


def test_names_objects_lists_and_mappings_are_read():
    pca = PCA(2)
    assert [type(one) for one in read_scalings("auto")] == [Whiten, Quantile]
    assert [type(one) for one in read_scalings("none", "a")] == [Unscaled]
    assert read_scalings(pca) == (pca,)
    by_view = {"a": ["standard", pca], "b": RobustScaler()}
    assert [type(one) for one in read_scalings(by_view, "a")] == [Standard, PCA]
    assert [type(one) for one in read_scalings(by_view, "b")] == [RobustScaler]
    assert [type(one) for one in read_scalings(by_view, "c")] == [Whiten, Quantile]
    check_views(["a", "b", "c"], by_view)


@pytest.mark.parametrize(
    "bad",
    [
        "whitening",
        None,
        1,
        [],
        PCA,
        IsolationForest(),
        ["standard", 3],
        ("standard", Standard()),
        [PCA(2), PCA(2)],
        {"a": "whitening"},
        {"a": {"a": "none"}},
    ],
)
def test_other_scalings_are_refused(bad):
    with pytest.raises(ValueError, match=r"^scaling: got"):
        check_views(["a", "b"], bad)


def test_a_view_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"scaling: no view is called 'c'; the views are 'a', 'b'"):
        check_views(["a", "b"], {"a": "none", "c": "none"})
    with pytest.raises(ValueError, match=r"kernels: no view is called 'c'; the views are 'a', 'b'"):
        check_views(["a", "b"], kernels={"c": "linear"})


def test_a_transformer_is_copied_and_takes_weights_where_it_can(X, rng):
    weight = rng.random(len(X))
    given = StandardScaler()
    fitted, Z = fit_scaling(given, X, weight)
    assert not hasattr(given, "mean_")
    np.testing.assert_allclose(fitted.mean_, np.average(X, axis=0, weights=weight))
    np.testing.assert_allclose(Z, Standard().fit_transform(X, sample_weight=weight), rtol=1e-9)
    found, Z = fit_scaling(PCA(2), X, weight)  # which takes none
    assert Z.shape == (len(X), 2)
    np.testing.assert_allclose(np.abs(Z), np.abs(PCA(2).fit_transform(X)), atol=1e-9)
    np.testing.assert_array_equal(found.transform(X), Z)


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        (PCA(50), r"PCA\(n_components=50\) does not fit the 9 rows and 3 columns of the view 'a'"),
        (FunctionTransformer(np.log), "made NaN or values above 1e\\+140 of the 9 rows"),
        (FunctionTransformer(lambda X: X[:4]), r"made an array of shape \(4, 3\)"),
        (FunctionTransformer(lambda X: X[:, :0]), r"made an array of shape \(9, 0\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_transformers_that_do_not_fit_are_refused_with_their_view(scaling, message, rng):
    with pytest.raises(ValueError, match=f"^scaling: .*{message}"):
        fit_scaling(scaling, rng.normal(size=(9, 3)), None, "a")


def test_names_that_are_the_same_as_text():
    with pytest.raises(ValueError, match="two are the same as text"):
        resolve_views({1: [0, 1], "1": [2, 3]}, 4)
