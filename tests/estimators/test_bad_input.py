"""Bad and odd input: one clear error or warning each, never a NaN, never silence."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from kernull import KernelStack, MultiKernelFisherNull, Solver, Storage, Sum
from kernull.errors import (
    ConstantViewWarning,
    InvalidKernelError,
    NearCopiesWarning,
    OutlierLabelsWarning,
    ZeroProjectionWarning,
)
from tests.plain import named, plain_fisher

Model = plain_fisher


@pytest.fixture
def X(rng):
    return rng.normal(size=(40, 4)) + 2


@pytest.fixture
def kernels(rng):
    A = rng.normal(size=(3, 25, 30))
    return A @ A.transpose(0, 2, 1) / 30


def check_healthy(model, X):
    """No NaN anywhere, a certificate, and sane weights."""
    for values in (model.weights_, model.coef_, model.threshold_, model.score_samples(X)):
        assert np.isfinite(values).all()
    assert 0 <= model.gap_ <= model.tol_
    assert (model.weights_ >= 0).all()
    assert model.weights_.max() > 0


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity(X, bad):
    model = Model().fit(X)
    X = X.copy()
    X[3, 1] = bad
    with pytest.raises(
        ValueError, match=r"X: contains NaN or infinity .* in column\(s\) 1\. Fill them in"
    ):
        Model().fit(X)
    with pytest.raises(
        ValueError, match=r"X: contains NaN or infinity .* in column\(s\) 1\. Fill them in"
    ):
        model.predict(X)


LABELS = np.where(np.arange(40) < 35, 1, -1)


@pytest.mark.parametrize("name", ["MultiKernelFisherNull", "JointMultiKernelFisherNull",
                                  "MultiKernelSVDD", "GaussianProcessOneClass"])  # fmt: skip
@pytest.mark.parametrize("y", [LABELS, LABELS.astype(float), LABELS.tolist()])
def test_outliers_among_the_labels_are_told(X, name, y):
    message = r"y: 5 of 40 rows are marked -1.* fit\(X\[y == 1\]\)"
    with pytest.warns(OutlierLabelsWarning, match=message) as caught:
        named(name)().fit(X, y)
    assert [w.filename for w in caught if w.category is OutlierLabelsWarning] == [__file__]


@pytest.mark.parametrize("y", [None, np.ones(40), np.arange(40) % 3, np.repeat(["-1", "1"], 20),
                               np.linspace(-1, 1, 40)])  # fmt: skip
def test_other_labels_say_nothing(X, y):
    Model().fit(X, y)


@pytest.mark.parametrize("name", ["MultiKernelFisherNull", "JointMultiKernelFisherNull"])
@pytest.mark.parametrize("as_X", [np.asarray, np.ndarray.tolist, pandas.DataFrame])
def test_labels_of_another_length_are_refused(X, name, as_X):
    for y in (LABELS[:5], LABELS[:5].tolist(), np.ones(41)):
        with pytest.raises(ValueError, match=r"y: Found input .* of samples: \[40, (5|41)\]"):
            named(name)().fit(as_X(X), y)


def test_labels_of_kernels_are_of_their_rows(kernels):
    for given in (kernels, KernelStack(kernels), list(kernels)):
        Model(kernels="precomputed").fit(given, np.ones(25))
        with pytest.raises(ValueError, match=r"y: .* samples: \[25, 3\]"):
            Model(kernels="precomputed").fit(given, np.ones(3))


@pytest.mark.parametrize("rows", [0, 1])
def test_fewer_than_three_rows(X, rows):
    with pytest.raises(ValueError, match=rf"{rows} sample\(s\).*minimum of 3"):
        Model().fit(X[:rows])


@pytest.mark.parametrize(
    "method", ["score_samples", "decision_function", "predict", "contributions"]
)
def test_wrong_column_count_at_scoring(X, method):
    model = Model().fit(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        getattr(model, method)(X[:, :3])


def test_a_single_row_must_be_two_dimensional(X):
    with pytest.raises(ValueError, match="Expected 2D array"):
        Model().fit(X).score_samples(X[0])


def test_unknown_column_name(X):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match=r"views\['v'\]: no column 'z'; the table has .*'a'"):
        Model(views={"v": ["a", "z"]}).fit(table)
    with pytest.raises(ValueError, match=r"views\['v'\].*no column names"):
        Model(views={"v": ["a"]}).fit(X)
    with pytest.raises(ValueError, match=r"views\['v'\]: column 4 is out of range"):
        Model(views={"v": [4]}).fit(X)


def test_other_column_names_at_scoring(X):
    pd = pytest.importorskip("pandas")
    model = Model().fit(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(ValueError, match=r"feature names should match[\s\S]*z"):
        model.predict(pd.DataFrame(X, columns=list("abcz")))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_object_columns_are_named(X, library):
    lib = pytest.importorskip(library)
    data = {"size": X[:, 0], "colour": ["red", "blue"] * 20, "kind": ["a"] * 40}
    with pytest.raises(ValueError, match=r"X: the columns \['colour', 'kind'\] are not numeric"):
        Model().fit(lib.DataFrame(data))


def test_object_columns_of_an_array_are_numbered(X):
    table = X.astype(object)
    table[4, 2] = "red"
    with pytest.raises(ValueError, match=r"X: the columns \['x2'\] are not numeric"):
        Model().fit(table)
    np.testing.assert_allclose(Model().fit(X.astype(object)).coef_, Model().fit(X).coef_)


def test_all_constant_table():
    with pytest.raises(ValueError, match="X: every view is constant"):
        Model().fit(np.full((10, 3), 2.5))
    with pytest.raises(ValueError, match="X: every view is constant"):
        Model(views="features").fit(np.tile([1.0, 2.0, 1e12], (10, 1)))


def test_constant_feature_is_dropped_and_named(X):
    X[:, 2] = 7.0
    with pytest.warns(ConstantViewWarning, match="'x2'"):
        model = Model(views="features").fit(X)
    assert list(model.kernel_names_) == ["x0", "x1", "x3"]
    assert model.contributions(X).shape == (40, 3)
    check_healthy(model, X)


@pytest.mark.parametrize("views", ["features", {"one": [0], "two": [1, 3], "flag": [2]}])
@pytest.mark.parametrize("value", [7.001, 1e8])
def test_a_value_never_seen_in_a_constant_view_is_flagged(rng, views, value):
    """It was not looked at: rows with 1e8 there were as normal as ever."""
    X, new = rng.normal(size=(2, 200, 4))
    X[:, 2] = new[:, 2] = 7.0
    with pytest.warns(ConstantViewWarning, match="a value never seen there is evidence"):
        model = MultiKernelFisherNull(views=views).fit(X)
    varying = {k: v for k, v in (views if isinstance(views, dict) else {}).items() if k != "flag"}
    without = MultiKernelFisherNull(views=varying or {f"x{j}": [j] for j in (0, 1, 3)}).fit(X)
    assert model.threshold_ == pytest.approx(without.threshold_, rel=1e-12)
    np.testing.assert_allclose(model.weights_, without.weights_, rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(new), without.score_samples(new), rtol=1e-8)
    broken = new.copy()
    broken[:, 2] = value
    assert (model.predict(broken) == -1).all()


def test_duplicate_rows(X):
    """Singular kernels: the ridge carries them; every copy is scored alike."""
    X = np.concatenate([X, X[:10], X[:10]])
    for p in (1.0, 2.0):
        with pytest.warns(NearCopiesWarning, match="50% of the rows are copies of another"):
            model = Model(views="features", p=p).fit(X)
        check_healthy(model, X)
        np.testing.assert_allclose(model.coef_[:10], model.coef_[40:50], rtol=1e-6, atol=1e-12)
    all_but_one = np.concatenate([np.zeros((30, 2)), np.ones((1, 2))])
    check_healthy(Model().fit(all_but_one), all_but_one)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_sparse_matrices_are_refused(X, format):
    for matrix in (sparse.csr_matrix(X).asformat(format), sparse.csr_array(X).asformat(format)):
        with pytest.raises(TypeError, match="Sparse data was passed"):
            Model().fit(matrix)
        with pytest.raises(TypeError, match="Sparse data was passed"):
            Model().fit(X).predict(matrix)
        with pytest.raises(TypeError, match="sparse kernels are not supported"):
            Model("precomputed").fit(sparse.eye(5).asformat(format))


@pytest.mark.parametrize("size", [1e-12, 1e12])
@pytest.mark.parametrize("scaling", ["standard", "whiten", "none"])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_the_unit_of_the_data_does_not_matter(X, size, scaling, p):
    views = {"a": [0, 1], "b": [2, 3]}
    options = {
        "kernels": ["rbf", "laplacian", "cosine"],
        "views": views,
        "scaling": scaling,
        "p": p,
    }
    one = Model(**options, solver=Solver(tol=1e-9)).fit(X)
    other = Model(**options, solver=Solver(tol=1e-9)).fit(size * X)
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e-6)
    np.testing.assert_allclose(other.score_samples(size * X), one.score_samples(X), atol=1e-6)
    mixed = size ** np.array([0.0, 1.0, 0.0, 1.0])  # columns in different units
    if scaling != "none":
        np.testing.assert_allclose(
            Model(**options, solver=Solver(tol=1e-9)).fit(X * mixed).weights_,
            one.weights_,
            atol=1e-6,
        )


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_precomputed_kernels_of_any_size(kernels, size):
    """Against a ridge of 0.25, kernels of 1e-12 are nothing, and the fit says so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Model("precomputed").fit(size * kernels)
    assert [w.category for w in caught] == ([ZeroProjectionWarning] if size < 1 else [])
    check_healthy(model, size * kernels)


# -- parameters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("p", value) for value in (0.5, 0, -1, np.nan, "2", None, True)),
        *(("delta", value) for value in (0, 0.0, -1e-3, np.nan, np.inf, "1", None, True)),
        *(("false_alarm_rate", value) for value in (0, 1, -0.1, 2, np.nan, "a")),
        *(("widths", value) for value in (0, -1.0, (), np.nan, "wide", None)),
        *(("scaling", value) for value in ("minmax", None, 2)),
        *(("kernels", value) for value in ("rb", None, [], 5, ["rbf", "precomputed"])),
        *(("views", value) for value in ("feature", [[0, 1]], {}, {"a": []}, {"a": 9})),
        *(("solver", value) for value in ("simplex", None, 3)),
        *(("storage", value) for value in ("disk", None)),
        *(("decision", value) for value in ("vote", None)),
        *(("contamination", value) for value in (0, 0.9, "a")),
    ],
)
def test_bad_parameters_are_named(X, name, value):
    with pytest.raises(ValueError, match=rf"^{name}\b.*(got|selects|out of range)"):
        Model(**{name: value}).fit(X)


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        *((Storage, "memory_limit", value) for value in ("much", -1, 0)),
        *((Storage, "dtype", value) for value in ("int8", "float16", "nonsense")),
        *((Storage, "landmarks", value) for value in (0, -3, 2.5, "a", True)),
        *((Sum, "score", value) for value in ("proj", None)),
        *((Solver, "max_iter", value) for value in (0, -1, 1.5, "many")),
        *((Solver, "tol", value) for value in (0, -1, np.nan, "a")),
    ],
)
def test_bad_parameters_of_objects_are_named(make, name, value):
    with pytest.raises(ValueError, match=rf"^{name}: got"):
        make(**{name: value})


@pytest.mark.parametrize(
    "weight",
    [
        np.zeros(40),
        [1.0] + [0.0] * 39,
        np.full(40, np.nan),
        np.full(40, -1.0),
        np.ones(39),
        "heavy",
    ],
)
def test_bad_sample_weights(X, weight):
    with pytest.raises(ValueError, match=r"^sample_weight: "):
        Model().fit(X, sample_weight=weight)


@pytest.mark.parametrize("p", [1.0, 1 + 1e-12, 1 + 1e-9, 1 + 1e-7, 1 + 1e-5, 1.001])
def test_p_next_to_one_is_continuous(X, p):
    """u^(1/(p-1)) overflows; logarithms do not. The optimum changes by about (p - 1) log J."""
    model = Model(views="features", p=p).fit(X)
    check_healthy(model, X)
    limit = Model(views="features", p=1.0).fit(X)
    assert model.history_[-1].value == pytest.approx(
        limit.history_[-1].value, rel=1e-5 + 2 * (p - 1)
    )


def test_p_infinite_is_uniform(X):
    for p in (1e6, 1e12, 1e18, np.inf, np.float32(np.inf), 10**6):
        model = Model(views="features", p=p).fit(X)
        np.testing.assert_allclose(model.weights_, 1.0, atol=1e-5)
        check_healthy(model, X)


# -- kernels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((5,), "shape"),
        ((2, 5, 4), "square"),
        ((1, 2, 5, 5), "shape"),
        ((0, 5, 5), "empty"),
        ((2, 1, 1), "at least 2"),
        ((4, 6), "square"),
    ],
)
def test_stacks_of_the_wrong_shape(shape, message):
    with pytest.raises(InvalidKernelError, match=rf"kernels: .*{message}"):
        Model("precomputed").fit(np.ones(shape))


def test_asymmetric_stack(kernels):
    kernels[1, 2, 5] += 0.5
    with pytest.raises(InvalidKernelError, match=r"kernel 1 is not symmetric .*0\.5"):
        Model("precomputed").fit(kernels)


def test_indefinite_stack_says_how_negative(kernels):
    kernels[2] -= 3.0 * np.eye(25)
    lowest = np.linalg.eigvalsh(kernels[2])[0]
    with pytest.raises(InvalidKernelError, match="kernel 2 is not positive semidefinite") as error:
        Model("precomputed").fit(kernels)
    said = float(re.search(r"eigenvalue of (\S+) or below", str(error.value)).group(1))
    assert said == pytest.approx(lowest, rel=0.01)


def test_a_kernel_that_is_only_a_little_indefinite_is_still_found(kernels):
    """Negative by a hundredth of its norm, in one direction among 25."""
    values, vectors = np.linalg.eigh(kernels[0])
    values[0] = -0.05 * values[-1]
    kernels[0] = (vectors * values) @ vectors.T
    kernels[0] = (kernels[0] + kernels[0].T) / 2
    with pytest.raises(InvalidKernelError, match=r"kernel 0 is not positive semidefinite.*-0\."):
        Model("precomputed").fit(kernels)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_in_a_stack(kernels, bad):
    model = Model("precomputed").fit(kernels)
    kernels[0, 3, 3] = bad
    with pytest.raises(InvalidKernelError, match="NaN or infinity"):
        Model("precomputed").fit(kernels)
    with pytest.raises(InvalidKernelError, match="NaN or infinity"):
        model.predict(kernels)


def test_wrong_size_at_scoring(kernels):
    model = Model("precomputed").fit(kernels)
    for bad in (kernels[:, :, :24], kernels[:2], kernels[0]):
        with pytest.raises(InvalidKernelError, match=r"scoring needs shape \(3, m, 25\)"):
            model.score_samples(bad)


def test_a_stack_where_a_table_is_expected(kernels):
    with pytest.raises(TypeError, match="kernels='precomputed'"):
        Model().fit(KernelStack(kernels))
    with pytest.raises(ValueError, match="dim 3"):
        Model().fit(kernels)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_one_kernel(kernels, p):
    model = Model("precomputed", p=p).fit(kernels[:1])
    np.testing.assert_allclose(model.weights_, [1.0])
    check_healthy(model, kernels[:1])
    plain = Model("precomputed", p=p).fit(kernels[0])  # an (n, n) matrix is a stack of one
    np.testing.assert_array_equal(plain.coef_, model.coef_)


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
def test_five_hundred_kernels_on_fewer_rows(rng, p):
    X = rng.normal(size=(30, 500))
    model = Model(views="features", p=p).fit(X)
    assert model.weights_.shape == (500,)
    check_healthy(model, X[:3])


@pytest.mark.parametrize("p", [1.0, 1 + 1e-9, 2.0, np.inf])
def test_a_zero_kernel_among_others(kernels, p):
    kernels[1] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Model("precomputed", p=p).fit(kernels)
    check_healthy(model, kernels)
    np.testing.assert_array_equal(model.contributions(kernels)[:, 1], 0.0)


def test_nothing_but_zero_kernels():
    with pytest.warns(ZeroProjectionWarning, match="kernels: every projection is zero"):
        model = Model("precomputed").fit(np.zeros((2, 25, 25)))
    assert np.isfinite(model.coef_).all()
    np.testing.assert_array_equal(model.score_samples(np.zeros((2, 3, 25))), 0.0)


def test_integer_and_boolean_tables_need_no_fuss(rng):
    X = rng.integers(0, 5, size=(40, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataConversionWarning)
        one = Model().fit(X)
        Model().fit(X > 2)
    np.testing.assert_array_equal(one.coef_, Model().fit(X.astype(float)).coef_)


@pytest.mark.parametrize("seed", ["a", -1, 1.5])
@pytest.mark.parametrize("calibration", ["loo", "split"])
def test_a_seed_is_one(X, seed, calibration):
    with pytest.raises(ValueError, match=f"random_state: got {seed!r}; expected a whole number"):
        Model(random_state=seed, calibration=calibration).fit(X)
