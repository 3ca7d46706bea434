"""Multiple Features: ten digits as ten tasks, one of them enrolled."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments.datasets import load_multiple_features
from kernull.views import join_views
from tests.plain import plain_fisher, plain_joint

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def digits():
    data = load_multiple_features()
    X, views = join_views(data.views)
    return X, views, data.y


@pytest.mark.parametrize("digit", [3, 9])
def test_an_enrolled_digit_is_within_a_point_of_learning_it_alone(digits, digit):
    X, views, y = digits
    rng = np.random.default_rng(0)
    train = {d: rng.permutation(np.flatnonzero(y == d))[:100] for d in range(10)}
    others = np.concatenate([rows for d, rows in train.items() if d != digit])
    test = np.setdiff1d(np.arange(2000), np.concatenate(list(train.values())))
    labels = np.where(y[test] == digit, 1, -1)
    joint = plain_joint(views=views).fit(X[others], groups=y[others])
    joint.enroll(X[train[digit]], digit)
    alone = plain_fisher(views=views).fit(X[train[digit]])
    enrolled = roc_auc_score(labels, joint.score_samples(X[test], digit))
    assert enrolled > roc_auc_score(labels, alone.score_samples(X[test])) - 0.01


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
def test_ten_rows_a_task_shared_weights_are_no_worse(digits):
    # Twenty repeats with the widths of the paper's grid: python -m benchmarks.joint accuracy
    X, views, y = digits
    gains = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        train = {d: rng.permutation(np.flatnonzero(y == d))[:10] for d in range(10)}
        rows = np.concatenate(list(train.values()))
        test = rng.permutation(np.setdiff1d(np.arange(2000), rows))[:600]
        joint = plain_joint(views=views).fit(X[rows], groups=y[rows])
        for d in range(10):
            labels = np.where(y[test] == d, 1, -1)
            alone = plain_fisher(views=views).fit(X[train[d]])
            gains.append(
                roc_auc_score(labels, joint.score_samples(X[test], d))
                - roc_auc_score(labels, alone.score_samples(X[test]))
            )
    assert np.mean(gains) > -0.001
