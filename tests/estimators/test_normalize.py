"""Normalised kernels against plain NumPy on the same kernels."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import kernull
from kernull import MultiKernelFisherNull, Solver
from kernull.datasets import load_wine_views
from kernull.operators import DenseStack
from kernull.views import join_views
from tests.oracles import conic
from tests.plain import plain_fisher, row_scores

DATA = load_wine_views()
X, VIEWS = join_views(DATA.views)
WINES, OTHERS = X[DATA.y == 1], X[DATA.y != 1]
TRAIN, NEW = WINES[:40], np.concatenate([WINES[40:], OTHERS[:30]])
PLAIN = {
    "decision": "sum",
    "normalize": "none",
    "scaling": "standard",
    "widths": (0.25, 1.0),
    "p": 2.0,
    "delta": 1e-2,
}
SETTINGS = [
    {"normalize": "offdiagonal"},
    {"normalize": 0.5},
]

pytestmark = pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
every = pytest.mark.parametrize("options", SETTINGS, ids=lambda o: "+".join(o))


def model(**options):
    return MultiKernelFisherNull(views=VIEWS, **(PLAIN | options))


def by_hand(fitted, rows=None):
    """K_b and k_b of rows, of a fitted model from its bank alone."""
    factors = fitted.weights_ * fitted.scale_
    K = np.tensordot(factors, DenseStack.of(fitted.kernel_set_).kernels, axes=1)
    cross = None
    if rows is not None:
        kernels = np.stack([k for _, k in fitted.kernel_set_.matrices(rows)])
        cross = np.tensordot(factors, kernels, axes=1)
    return K, cross


@every
def test_scores_solve_the_problem_of_the_scaled_kernels(options):
    fitted = model(**options).fit(TRAIN)
    K, cross = by_hand(fitted, NEW)
    assert fitted.ridge_ == pytest.approx(1e-2 * len(TRAIN), rel=1e-14)
    a = np.linalg.solve(K + fitted.ridge_ * np.eye(len(K)), np.ones(len(K)))
    np.testing.assert_allclose(fitted.coef_, a, rtol=1e-6, atol=1e-9 * np.abs(a).max())
    np.testing.assert_allclose(fitted.score_samples(NEW), cross @ a, rtol=1e-8, atol=1e-10)
    assert fitted.gap_ <= 1e-6


@every
def test_weights_are_those_of_the_scaled_kernels(options):
    fitted = model(**options, solver=Solver(tol=1e-10)).fit(TRAIN)
    kernels = DenseStack.of(fitted.kernel_set_).kernels * fitted.scale_[:, None, None]
    problem = kernull.FisherProblem(DenseStack(kernels), fitted.ridge_)
    result = kernull.solve(problem, kernull.LpBall(2.0), conic, tol=1e-6)
    np.testing.assert_allclose(fitted.weights_, result.weights, atol=1e-4)


def test_the_scale_is_one_over_the_mean_of_off_diagonal_entries():
    plain, fitted = model().fit(TRAIN), model(normalize="offdiagonal").fit(TRAIN)
    K, n = DenseStack.of(plain.kernel_set_).kernels, len(TRAIN)
    means = (K.sum(axis=(1, 2)) - np.einsum("jii->j", K)) / (n * (n - 1))
    np.testing.assert_allclose(fitted.scale_, 1 / means, rtol=1e-10)
    assert (plain.scale_ == 1.0).all()


@every
def test_storages_agree(options):
    dense = model(**options, solver=Solver(tol=1e-10)).fit(TRAIN)
    tiled = model(**options, solver=Solver(tol=1e-10), storage="tiled").fit(TRAIN)
    low = model(**options, solver=Solver(tol=1e-10), storage="nystroem").fit(
        TRAIN
    )  # every row a landmark
    scale = np.abs(dense.score_samples(NEW)).max()
    for other in (tiled, low):
        np.testing.assert_allclose(other.weights_, dense.weights_, atol=1e-4)
        np.testing.assert_allclose(
            other.score_samples(NEW), dense.score_samples(NEW), atol=2e-4 * scale
        )
        assert len(other.calibration_.scores) == len(TRAIN)
        assert len(other.model_.left_out) == len(TRAIN)


@every
def test_files_pickles_and_clones_keep_everything(options, tmp_path):
    fitted = model(**options).fit(TRAIN)
    kernull.save(fitted, tmp_path / "model")
    for copy in (kernull.load(tmp_path / "model"), pickle.loads(pickle.dumps(fitted))):
        assert (copy.score_samples(NEW) == fitted.score_samples(NEW)).all()
        assert (copy.p_values(NEW) == fitted.p_values(NEW)).all()
        assert copy.explain(NEW).words(0) == fitted.explain(NEW).words(0)
        np.testing.assert_array_equal(copy.scale_, fitted.scale_)
    again = clone(fitted).fit(TRAIN)
    assert (again.score_samples(NEW) == fitted.score_samples(NEW)).all()


@every
def test_contributions_add_up_with_and_without_a_view(options):
    fitted = model(**options).fit(TRAIN)
    total = fitted.contributions(NEW).sum(axis=1)
    np.testing.assert_allclose(total, fitted.score_samples(NEW), rtol=1e-12, atol=1e-14)
    name = fitted.kernel_set_.views[0].name
    kept = np.array(fitted.kernel_set_.kernel_views) != name
    part = fitted.contributions(NEW)[:, kept].sum(axis=1)
    without = fitted.score_samples(NEW, missing_views=name)
    np.testing.assert_allclose(without, part, rtol=1e-12, atol=1e-14)


def test_rows_held_out_and_rows_of_weight_zero():
    split = model(normalize="offdiagonal", calibration="split").fit(WINES)
    assert len(split.calibration_.scores) == 18
    weight = np.r_[np.ones(40), np.zeros(len(WINES) - 40)]
    for options in SETTINGS:
        one = model(**options).fit(WINES, sample_weight=weight)
        two = model(**options).fit(TRAIN)
        np.testing.assert_allclose(one.score_samples(NEW), two.score_samples(NEW), rtol=1e-9)
        assert len(row_scores(one, WINES, sample_weight=weight)) == len(WINES)


def test_only_ratios_of_weights_matter_under_normalisation():
    weight = np.r_[2.0, 2.0, np.ones(38)]
    one = model(normalize="offdiagonal").fit(TRAIN, sample_weight=weight)
    two = model(normalize="offdiagonal").fit(TRAIN, sample_weight=5 * weight)
    np.testing.assert_allclose(one.scale_, two.scale_, rtol=1e-10)
    np.testing.assert_allclose(one.score_samples(NEW), two.score_samples(NEW), rtol=1e-9)


def test_given_kernels_are_normalised_alike_at_fit_and_scoring():
    table = model(normalize="offdiagonal").fit(TRAIN)
    K = DenseStack.of(table.kernel_set_).kernels
    cross = np.stack([k for _, k in table.kernel_set_.matrices(NEW)])
    given = plain_fisher("precomputed", normalize="offdiagonal")
    given.fit(K)
    np.testing.assert_allclose(given.scale_, table.scale_, rtol=1e-12)
    np.testing.assert_allclose(given.score_samples(cross), table.score_samples(NEW), rtol=1e-9)
    # Factors of their own are divided out: the mean is one whatever they are.
    own = np.array([3.0] * len(K))
    scaled = clone(given).fit(DenseStack(K, own))
    np.testing.assert_allclose(scaled.scale_, table.scale_, rtol=1e-12)
    np.testing.assert_allclose(scaled.score_samples(cross), table.score_samples(NEW), rtol=1e-9)


def test_an_unknown_normalisation_is_refused_by_name():
    with pytest.raises(ValueError, match="normalize: got 'kloft'"):
        model(normalize="kloft").fit(TRAIN)
