"""MultiKernelFisherNull against closed forms and refits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

from kernull import PAPER, KernelStack, MixedBall, Solver, Storage, Sum
from kernull.errors import TooFewRowsWarning, ZeroProjectionWarning
from kernull.operators import DenseStack
from tests.oracles import certificate_gap
from tests.plain import VIEWS, plain_fisher, row_scores

# -- what is learned ---------------------------------------------------------------------------


def test_attributes(fitted, wine):
    X = wine[0]
    assert fitted.weights_.shape == (3,)
    assert np.linalg.norm(fitted.weights_) == pytest.approx(1)
    assert fitted.coef_.shape == (len(X),)
    assert 0 <= fitted.gap_ <= 1e-6
    assert fitted.n_iter_ == len(fitted.history_)
    assert fitted.threshold_ == fitted.offset_
    assert fitted.false_alarm_rate_ == 0.05
    assert fitted.n_features_in_ == 13
    assert not hasattr(fitted, "feature_names_in_")
    assert list(fitted.kernel_names_) == list(VIEWS)
    assert fitted.solver_ == "newton"


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
@pytest.mark.parametrize("delta", [1e-3, 1e-1])
def test_the_gap_is_what_independent_code_finds(wine, p, delta):
    X = wine[0]
    model = plain_fisher(views="features", p=p, delta=delta, widths=0.5).fit(X)
    kernels = []
    for x in ((X - X.mean(0)) / X.std(0)).T[:, :, None]:
        d = np.abs(x - x.T)
        width = 0.5 * d.sum() / (len(x) * (len(x) - 1))
        kernels.append(rbf_kernel(x, gamma=1 / (2 * width**2)))
    gap = certificate_gap(np.stack(kernels), model.weights_, model.coef_, delta * len(X), p)
    assert gap == pytest.approx(model.gap_, abs=1e-9)
    assert gap <= 1e-6


def test_one_kernel_equals_kernel_ridge_on_ones(stacks):
    train, new = stacks[0][:1], stacks[1][:1]
    model = plain_fisher("precomputed", delta=0.02).fit(train)
    ridge = KernelRidge(alpha=0.02 * 30, kernel="precomputed").fit(train[0], np.ones(30))
    np.testing.assert_allclose(model.weights_, [1.0])
    np.testing.assert_allclose(model.coef_, ridge.dual_coef_, rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(new), ridge.predict(new[0]), rtol=1e-9)


def test_scores_equal_kernel_ridge_on_the_combined_kernel(stacks):
    train, new = stacks
    model = plain_fisher("precomputed", p=4 / 3, delta=0.02).fit(train)
    combined = np.tensordot(model.weights_, train, 1)
    ridge = KernelRidge(alpha=0.6, kernel="precomputed").fit(combined, np.ones(30))
    expected = ridge.predict(np.tensordot(model.weights_, new, 1))
    np.testing.assert_allclose(model.score_samples(new), expected, rtol=1e-8)


def test_delta_is_relative_to_n(stacks):
    train = stacks[0][:1]
    a = plain_fisher("precomputed", delta=0.5).fit(train).coef_
    expected = np.linalg.solve(train[0] + 0.5 * 30 * np.eye(30), np.ones(30))
    np.testing.assert_allclose(a, expected, rtol=1e-9)


@pytest.mark.parametrize("solver", ["newton", "subspace", "kloft", "frank-wolfe", "gradient"])
def test_solvers_give_the_same_model(wine, fitted, solver):
    X, others = wine
    model = plain_fisher(views=VIEWS, solver=Solver(solver, 1e-9)).fit(X)
    assert model.solver_ == solver
    np.testing.assert_allclose(model.weights_, fitted.weights_, atol=2e-3)
    np.testing.assert_allclose(model.score_samples(others), fitted.score_samples(others), atol=2e-3)


def test_the_papers_setting_warns_where_it_fails(wine):
    with pytest.warns(ConvergenceWarning, match="'paper'"):
        model = plain_fisher(**{**PAPER, "p": 1.0, "views": "features"}).fit(wine[0])
    assert model.gap_ > 1e-3
    assert sorted(model.weights_) == [0.0] * 12 + [1.0]


def test_it_tells_wine_from_other_wine(wine, fitted):
    X, others = wine
    scores = np.concatenate([row_scores(fitted, X), fitted.score_samples(others)])
    labels = np.repeat([1, 0], [len(X), len(others)])
    assert roc_auc_score(labels, scores) > 0.95


# -- thresholds, p-values -------------- -----------------------------------------------------------


@pytest.mark.parametrize("rate", [0.02, 0.05, 0.1, 0.31])
@pytest.mark.parametrize("score", ["projection", "distance"])
def test_flagged_exactly_where_the_p_value_is_at_most_the_rate(wine, rate, score):
    X, others = wine
    model = plain_fisher(false_alarm_rate=rate, decision=Sum(score), widths=1.0).fit(X)
    rows = np.concatenate([X, others])
    p_values = model.calibration_.p_values(model.score_samples(rows))
    np.testing.assert_array_equal(model.predict(rows) == -1, p_values <= rate)
    np.testing.assert_array_equal(model.predict(rows) == -1, model.decision_function(rows) < 0)
    assert {-1, 1} == set(model.predict(rows))


@pytest.mark.filterwarnings("ignore::kernull.errors.CannotFlagWarning")  # with so few rows
def test_too_few_rows_for_the_rate(wine):
    with pytest.warns(TooFewRowsWarning, match="false_alarm_rate"):
        model = plain_fisher().fit(wine[0][:10])
    assert model.false_alarm_rate_ == pytest.approx(1 / 11)


def test_distance_scores_agree_below_one(wine, fitted):
    X, others = wine
    distance = plain_fisher(views=VIEWS, decision=Sum("distance")).fit(X)
    y = fitted.score_samples(others)
    np.testing.assert_allclose(distance.score_samples(others), -np.abs(1 - y), atol=1e-12)


# -- scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_contributions_add_up_and_are_each_kernels_own(wine, p):
    X, others = wine
    model = plain_fisher(views="features", p=p).fit(X)
    parts = model.contributions(others)
    assert parts.shape == (len(others), 13)
    np.testing.assert_allclose(parts.sum(axis=1), model.score_samples(others), rtol=1e-12)
    for j, K in model.kernel_set_.matrices(others):
        np.testing.assert_allclose(parts[:, j], model.weights_[j] * K @ model.coef_, atol=1e-12)


@pytest.mark.parametrize("kernels", ["rbf", "laplacian", "polynomial", ["rbf", "cosine"]])
@pytest.mark.parametrize("widths", [0.05, 1.0])
@pytest.mark.filterwarnings("ignore::kernull.errors.CannotFlagWarning")  # rows see no other
def test_a_score_does_not_depend_on_its_batch(wine, kernels, widths):
    X, others = wine
    model = plain_fisher(kernels, VIEWS, widths=widths, scaling="whiten").fit(X)
    rows = np.concatenate([others, X])
    together = model.score_samples(rows)
    alone = np.array([model.score_samples(row[None])[0] for row in rows])
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-12 * np.abs(together).max())
    back = model.score_samples(rows[::-1])[::-1]
    np.testing.assert_allclose(back, together, rtol=0, atol=1e-12 * np.abs(together).max())


def test_a_precomputed_score_does_not_depend_on_its_batch(stacks):
    train, new = stacks
    model = plain_fisher("precomputed").fit(train)
    alone = [model.score_samples(new[:, i : i + 1])[0] for i in range(new.shape[1])]
    np.testing.assert_allclose(alone, model.score_samples(new), rtol=1e-12)


def test_tables_and_their_own_kernels_give_the_same_model(wine, fitted):
    others = wine[1]
    train = DenseStack.of(fitted.kernel_set_).kernels
    new = np.stack([K for _, K in fitted.kernel_set_.matrices(others)])
    model = plain_fisher("precomputed").fit(train)
    np.testing.assert_allclose(model.weights_, fitted.weights_, rtol=1e-12)
    np.testing.assert_allclose(model.score_samples(new), fitted.score_samples(others), rtol=1e-9)
    # Left-out rows leave the scaling of a table too; of given kernels nobody knows it.
    assert model.threshold_ == pytest.approx(fitted.threshold_, rel=0.2)


def test_float32_is_close_and_stays_certified(wine, fitted):
    X, others = wine
    model = plain_fisher(views=VIEWS, storage=Storage(dtype="float32")).fit(X)
    assert model.gap_ <= 1e-6
    np.testing.assert_allclose(model.weights_, fitted.weights_, atol=1e-4)
    np.testing.assert_allclose(model.score_samples(others), fitted.score_samples(others), atol=1e-4)
    again = plain_fisher(views=VIEWS).fit(X.astype(np.float32))
    np.testing.assert_allclose(again.weights_, fitted.weights_, atol=1e-4)


# -- sample weights ------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["standard", "whiten", "quantile", "none"])
@pytest.mark.parametrize("kernels", ["rbf", ["laplacian", "polynomial"]])
def test_only_ratios_of_weights_matter(wine, scaling, kernels):
    """A weight is trust in a row against the others: it says nothing of how many rows there are."""
    X, others = ((part - wine[0].mean(0)) / wine[0].std(0) for part in wine)
    X = X[:25]
    weight = np.random.default_rng(0).uniform(0.5, 4, 25)
    options = {"kernels": kernels, "views": VIEWS, "scaling": scaling, "solver": Solver(tol=1e-10)}
    one, other = (plain_fisher(**options).fit(X, sample_weight=c * weight) for c in (1.0, 7.0))
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-9)
    np.testing.assert_allclose(one.score_samples(others), other.score_samples(others), atol=1e-9)
    assert one.threshold_ == pytest.approx(other.threshold_, rel=1e-9)
    plain = plain_fisher(**options).fit(X)
    assert np.abs(one.score_samples(others) - plain.score_samples(others)).max() > 1e-3


def test_weight_zero_equals_absence(wine):
    X, others = wine
    weight = np.ones(len(X))
    weight[[3, 10, 20]] = 0
    without = plain_fisher(views=VIEWS).fit(X[weight > 0])
    model = plain_fisher(views=VIEWS)
    flags = model.fit_predict(X, sample_weight=weight)
    np.testing.assert_allclose(model.score_samples(others), without.score_samples(others))
    assert model.threshold_ == pytest.approx(without.threshold_)
    # Rows that took no part are judged like new ones.
    np.testing.assert_array_equal(flags[weight == 0], without.predict(X[weight == 0]))


def test_weights_on_precomputed_kernels(stacks):
    train, new = stacks
    weight = np.ones(30)
    weight[:4] = [0, 2, 0, 3]
    rows = np.repeat(np.arange(30), weight.astype(int))
    repeated = plain_fisher("precomputed", solver=Solver(tol=1e-10)).fit(train[:, rows][:, :, rows])
    for X in (train, KernelStack(train)):
        model = plain_fisher("precomputed", solver=Solver(tol=1e-10))
        assert len(model.fit_predict(X, sample_weight=weight)) == 30
        keep = weight > 0
        np.testing.assert_allclose(
            model.score_samples(new[:, :, keep]),
            repeated.score_samples(new[:, :, rows]),
            rtol=1e-6,
        )


def test_a_small_weight_lets_the_model_miss_the_row(wine):
    X, others = wine
    dirty = np.concatenate([X, others[:1]])
    score = []
    for w in (1.0, 0.01):
        model = plain_fisher(views=VIEWS).fit(dirty, sample_weight=[1.0] * 59 + [w])
        score.append(model.score_samples(others[:1])[0])
    assert score[1] < score[0]


# -- degenerate models -----------------------------------------------------------------------------


def test_linear_kernels_of_centred_columns_learn_nothing_and_say_so(wine):
    with pytest.warns(ZeroProjectionWarning, match="scaling='none'"):
        plain_fisher("linear", VIEWS).fit(wine[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain_fisher("linear", VIEWS, scaling="none").fit(wine[0])
        plain_fisher("polynomial", VIEWS).fit(wine[0])


def test_groups_of_kernels_that_do_not_fit_are_refused(wine):
    with pytest.raises(ValueError, match="groups: got 2 entries for 3 kernels"):
        plain_fisher(views=VIEWS, p=MixedBall(2, 1, [0, 0])).fit(wine[0])
    with pytest.raises(ValueError, match="r: got 0"):
        MixedBall(2, 0)


def test_a_mixed_ball_groups_kernels_by_view(wine):
    options = {"views": VIEWS, "widths": (0.5, 1.0)}
    by_view = plain_fisher(p=MixedBall(4, 1.5), **options).fit(wine[0])
    groups = [view for view in VIEWS for _ in range(2)]
    named = plain_fisher(p=MixedBall(4, 1.5, groups), **options).fit(wine[0])
    np.testing.assert_array_equal(by_view.weights_, named.weights_)
