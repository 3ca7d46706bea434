"""JointMultiKernelFisherNull: what it equals, enrolment, thresholds, scores."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernull import MixedBall, Solver, Sum
from kernull.detector import assign_folds
from kernull.mkl.problems import FisherProblem
from kernull.operators import DenseStack
from tests.estimators.joint_data import NAMES, VIEWS, X, Y, fitted, some
from tests.plain import lowered, plain_fisher, plain_joint

pytestmark = pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")


# -- what it equals --------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
@pytest.mark.parametrize("scaling", ["standard", "none", "whiten"])
def test_copies_of_one_task_give_its_weights(p, scaling):
    table, _ = some([3], 25)
    options = {
        "views": VIEWS,
        "widths": 0.5,
        "p": p,
        "solver": Solver(tol=1e-12),
        "scaling": scaling,
    }
    alone = plain_fisher(**options).fit(table)
    joint = plain_joint(**options)
    joint.fit(np.tile(table, (4, 1)), groups=np.repeat(list("abcd"), 25))
    np.testing.assert_allclose(joint.weights_, alone.weights_, rtol=0, atol=1e-8)
    for name in "abcd":
        np.testing.assert_allclose(joint.task(name).coef_, alone.coef_, rtol=0, atol=1e-8)
        assert joint.task(name).threshold_ == pytest.approx(alone.threshold_, abs=1e-8)


def test_one_task_is_the_core():
    table, _ = some([2], 30)
    weight = np.random.default_rng(0).integers(0, 3, size=30).astype(float)
    options = {"views": VIEWS, "p": 4 / 3, "decision": Sum("distance")}
    for sample_weight in (None, weight):
        alone = plain_fisher(**options)
        joint = plain_joint(**options)
        first = alone.fit_predict(table, sample_weight=sample_weight)
        second = joint.fit_predict(table, sample_weight=sample_weight)
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(joint.weights_, alone.weights_, rtol=1e-10)
        np.testing.assert_allclose(joint.score_samples(X), alone.score_samples(X), atol=1e-9)
        np.testing.assert_array_equal(joint.predict(X), alone.predict(X))
        assert joint.gap_ <= 1e-6


def test_the_gap_is_that_of_the_joint_problem():
    import cvxpy

    model = fitted(rows=8, digits=(0, 1), p=2.0, solver=Solver(tol=1e-9))
    objective, norms = 0, [0] * 3
    for name in model.tasks_:
        kernels = DenseStack.of(model.model_.tasks[name].kernels.set).kernels
        n = kernels.shape[1]
        a = cvxpy.Variable(n)
        objective += 2 * cvxpy.sum(a) - model.delta * n * cvxpy.sum_squares(a)
        for j, K in enumerate(kernels):
            norms[j] += cvxpy.sum_squares(np.linalg.cholesky(K + 1e-13 * np.eye(n)).T @ a)
    programme = cvxpy.Problem(cvxpy.Maximize(objective - cvxpy.norm(cvxpy.hstack(norms), 2)))
    programme.solve(solver=cvxpy.CLARABEL)
    assert model.history_[-1].value == pytest.approx(programme.value, rel=1e-6)
    assert model.gap_ <= 1e-9


def test_tasks_of_different_sizes_use_their_own_ridge():
    table, groups = some((0, 1), 20)
    keep = np.r_[0:20, 20:27]
    model = plain_joint(views=VIEWS, solver=Solver(tol=1e-10)).fit(table[keep], groups=groups[keep])
    for name, n in (("zero", 20), ("one", 7)):
        K = DenseStack.of(model.model_.tasks[name].kernels.set).combine(model.weights_)
        a = np.linalg.solve(K + model.delta * n * np.eye(n), np.ones(n))
        np.testing.assert_allclose(model.task(name).coef_, a, atol=1e-6)


def test_thresholds_come_from_leaving_rows_out_of_their_task():
    table, groups = some((0, 1), 12)
    options = {
        "views": VIEWS,
        "false_alarm_rate": 0.2,
        "solver": Solver(tol=1e-12),
        "scaling": "none",
    }
    model = plain_joint(**options).fit(table, groups=groups)
    for name in model.tasks_:
        rows, scores = table[groups == name], np.empty(12)
        ranks = np.column_stack([np.unique(x, return_inverse=True)[1] for x in rows.T])
        fold = assign_folds(ranks[:, ranks.any(axis=0)], 20)
        for k in range(12):  # widths and coefficients without the fold
            rest, n = fold != k, (fold != k).sum()
            part = plain_fisher(views=VIEWS, scaling="none").fit(rows[rest]).kernel_set_
            A = DenseStack.of(part).combine(model.weights_) + model.delta * n * np.eye(n)
            held = part.combine(model.weights_, rows[~rest])
            scores[~rest] = held @ np.linalg.solve(A, np.ones(n))
        low = np.sort(lowered(scores))
        np.testing.assert_allclose(model.task(name).calibration_.scores, low, atol=1e-6)
        expected = low[1] + 0.6 * (low[2] - low[1])  # 2.6 ranks of 13
        assert model.task(name).threshold_ == pytest.approx(expected, abs=1e-6)


def test_tasks_scale_themselves():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 2)) * np.repeat([1.0, 50.0], 30)[:, None]
    groups = np.repeat([0, 1], 30)
    model = plain_joint().fit(table, groups=groups)
    for name in (0, 1):
        own = plain_fisher().fit(table[groups == name]).kernel_set_.views[0]
        bank = model.model_.tasks[name].kernels.set.views[0]
        np.testing.assert_allclose(bank.scaler.scale_, own.scaler.scale_)
        assert bank.kernels[0].width == pytest.approx(own.kernels[0].width)


# 20 rows set the scaling of 64 columns and the threshold.
def test_a_view_constant_within_every_task_is_dropped():
    table, groups = some((0, 1), 10)
    table = np.column_stack([table, np.where(groups == "one", 0.1, 0.7)])
    views = VIEWS | {"flat": [table.shape[1] - 1]}
    model = plain_joint(views=views)
    with pytest.warns(UserWarning, match="dropped constant view.*'flat'"):
        model.fit(table, groups=groups)
    assert len(model.weights_) == 3
    table[0, -1] = 5.0  # in one task it varies now: all tasks keep it
    assert len(model.fit(table, groups=groups).weights_) == 4
    only = plain_joint(views={"flat": [table.shape[1] - 1]})
    with pytest.raises(ValueError, match="constant within every task"):
        only.fit(table[1:], groups=groups[1:])


# -- enrolment -------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """Counts every factorisation of the package."""
    calls = []
    factorise = FisherProblem.factorise
    monkeypatch.setattr(
        FisherProblem, "factorise", lambda self, b: (calls.append(1), factorise(self, b))[1]
    )
    return calls


def test_enrolment_is_one_factorisation_and_no_learning(counted):
    model = fitted()
    before = model.weights_.copy()
    table, _ = some([3], 40)
    counted.clear()
    model.enroll(table, "three")
    assert len(counted) == 1
    np.testing.assert_array_equal(model.weights_, before)
    K = DenseStack.of(model.model_.tasks["three"].kernels.set).combine(before)
    inverse = np.linalg.inv(K + model.delta * 40 * np.eye(40))
    np.testing.assert_allclose(model.task("three").coef_, inverse.sum(axis=1), atol=1e-10)


def test_enrolled_task_scores_like_the_same_task_in_the_fit():
    model = fitted(solver=Solver(tol=1e-12))
    table, _ = some([1], 20)
    model.enroll(table, "again")
    np.testing.assert_allclose(
        model.score_samples(X, groups="again"), model.score_samples(X, groups="one"), atol=1e-8
    )
    assert model.task("again").threshold_ == pytest.approx(model.task("one").threshold_, abs=1e-8)


def test_forgetting_a_task():
    model = fitted()
    weights = model.weights_.copy()
    expected = model.score_samples(X[:5], groups="two")
    model.forget("zero")
    assert model.tasks_ == ["one", "two"]
    assert set(model.offset_) == {"one", "two"}
    np.testing.assert_array_equal(model.weights_, weights)
    np.testing.assert_array_equal(model.score_samples(X[:5], groups="two"), expected)


# -- scoring ---------------------------------------------------------------------------------


def test_each_row_is_scored_by_its_own_task():
    model = fitted()
    table, groups = some((0, 1, 2), 5, start=50)
    order = np.random.default_rng(0).permutation(15)
    mixed = model.score_samples(table[order], groups=groups[order])
    for name in model.tasks_:
        rows = groups[order] == name
        alone = model.score_samples(table[order][rows], groups=name)
        np.testing.assert_allclose(mixed[rows], alone, atol=1e-12)
    decision = model.decision_function(table, groups=groups)
    offsets = np.array([model.offset_[name] for name in groups])
    np.testing.assert_allclose(decision, model.score_samples(table, groups=groups) - offsets)
    np.testing.assert_array_equal(
        model.predict(table, groups=groups), np.where(decision >= 0, 1, -1)
    )
    one = model.task("one")
    np.testing.assert_array_equal(one.score_samples(table), model.score_samples(table, "one"))
    parts = one.contributions(table)
    np.testing.assert_allclose(parts.sum(axis=1), one.score_samples(table))


def test_tasks_tell_their_digit_from_the_others():
    order = np.random.default_rng(0).permutation(len(X))  # writers come in turn
    rows = np.concatenate([order[Y[order] == d][:100] for d in (0, 1, 2)])
    train, test = (
        np.concatenate([rows[i : i + 50] for i in (s, s + 100, s + 200)]) for s in (0, 50)
    )
    model = plain_joint(views=VIEWS).fit(X[train], groups=NAMES[Y[train]])
    table, groups = X[test], NAMES[Y[test]]
    for name in model.tasks_:
        scores = model.score_samples(table, groups=name)
        assert roc_auc_score(np.where(groups == name, 1, -1), scores) > 0.95


def test_group_labels_of_any_kind():
    import pandas as pd

    table, groups = some((0, 1), 10)
    numbers = (groups == "one").astype(int)
    for labels in (groups, list(groups), pd.Series(groups), pd.Series(groups, dtype="category")):
        assert plain_joint().fit(table, groups=labels).tasks_ == ["zero", "one"]
    model = plain_joint().fit(table, groups=numbers)
    assert model.tasks_ == [0, 1]
    model.score_samples(table, groups=np.int64(1))
    assert plain_joint().fit(table, groups=[("a", 1)] * 20).tasks_ == [("a", 1)]


def test_threads_change_nothing():
    one = fitted()
    with joblib.parallel_config(n_jobs=2):
        many = fitted()
    np.testing.assert_allclose(one.weights_, many.weights_, rtol=1e-9)
    assert one.offset_ == pytest.approx(many.offset_)


@pytest.mark.torch
def test_tensors_in_and_tensors_out():
    import torch

    table, groups = some((0, 1), 12)
    numbers = (groups == "one").astype(int)
    plain = plain_joint(views=VIEWS).fit(table, groups=numbers)
    model = plain_joint(views=VIEWS)
    model.fit(torch.as_tensor(table), groups=torch.as_tensor(numbers))
    scores = model.score_samples(torch.as_tensor(table), groups=torch.as_tensor(numbers))
    assert torch.is_tensor(scores)
    np.testing.assert_allclose(scores.numpy(), plain.score_samples(table, groups=numbers))
    assert torch.is_tensor(model.predict(torch.as_tensor(table), groups=1))
    p_values = model.p_values(torch.as_tensor(table), groups=torch.as_tensor(numbers))
    assert torch.is_tensor(p_values)
    np.testing.assert_allclose(p_values.numpy(), plain.p_values(table, groups=numbers))
    model.enroll(torch.as_tensor(table), "both")
    assert model.task("both").coef_.shape == (24,)


def test_mixed_norm_in_a_joint_model():
    table, groups = some((0, 1, 2), 20)
    options = {"views": VIEWS, "widths": [0.25, 0.5, 1.0], "solver": Solver(tol=1e-8)}
    plain = plain_joint(p=2.0, **options).fit(table, groups=groups)
    same = plain_joint(p=MixedBall(2, 2), **options).fit(table, groups=groups)
    np.testing.assert_allclose(plain.weights_, same.weights_, rtol=0, atol=1e-10)
    mixed = plain_joint(p=MixedBall(2, 1), **options).fit(table, groups=groups)
    sums = mixed.weights_.reshape(3, 3).sum(axis=1)
    assert np.linalg.norm(sums) == pytest.approx(1.0)
    assert mixed.gap_ <= 1e-8


def test_pickle_and_clone():
    model = fitted()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.score_samples(X[:9], groups="one"), model.score_samples(X[:9], groups="one")
    )
    table, _ = some([3], 10)
    assert again.enroll(table, "three").tasks_[-1] == "three"
    assert clone(model).get_params() == model.get_params()


def expected_failures(estimator):
    # Training rows are judged by left-out scores, not as if they were new.
    return {
        "check_outliers_fit_predict": "fit_predict uses left-out scores",
        "check_outliers_train": "sets contamination, which tasks do not take",
        "check_outliers_train(readonly_memmap=True)": "sets contamination",
        "check_sample_weight_equivalence_on_dense_data": (
            "a weight is trust in a row against the others, not a number of copies"
        ),
    }


@parametrize_with_checks([plain_joint()], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_tasks_that_come_as_y_are_told():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    tasks = np.repeat(["a", "b"], 20)
    with pytest.warns(UserWarning, match=r"y: it is ignored, and all rows are one task.*groups="):
        model = plain_joint().fit(rows, tasks)
    assert len(model.tasks_) == 1
    plain_joint().fit(rows, np.ones(40))  # labels, as pipelines pass them
    assert plain_joint().fit(rows, tasks, groups=tasks).tasks_ == ["a", "b"]
