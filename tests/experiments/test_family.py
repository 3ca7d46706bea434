"""The pieces of E4's family, its hypotheses and the studies of (d) and (e), by plain loops."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from experiments import e4_family, e4_hypotheses, local_and_tasks
from experiments._cells import Cell, generator
from experiments._e4_family_report import sentences
from experiments._e4_hypotheses_report import choices
from experiments._models import Split, split_rows
from experiments.datasets import OneClassData


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.repeat([1, -1], [40, 24])
    X = rng.normal(size=(64, 3)) * [1.0, 10.0, 0.1] + 2.0 * (y == -1)[:, None] * [1.0, 10.0, 0.1]
    return OneClassData(X, y, "made", 1, ("a", "b", "c"))


@pytest.fixture
def split(data):
    return split_rows(data.y, generator("test"))


def test_one_choice_per_set_and_one_per_repeat():
    rng = np.random.default_rng(1)
    V, T = rng.uniform(size=(2, 10, 7))
    found = choices(V, T)
    assert found["per repeat"] == [T[r, max(range(7), key=lambda k: V[r, k])] for r in range(10)]
    one = max(range(7), key=lambda k: sum(V[r, k] for r in range(10)))
    assert found["H1"] == T[:, one].tolist()


@pytest.mark.parametrize("how", ["raw", "min-max", "unit length"])
@pytest.mark.parametrize("divisor", [1.0, 2.0])
def test_kernels_with_one_distance_for_whole_rows(data, split, how, divisor):
    Z = e4_hypotheses.scale_rows(data.X, split.train, how)
    if how == "min-max":
        assert Z[split.train].min() == 0.0
        assert Z[split.train].max() == pytest.approx(1.0)
    if how == "unit length":
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1.0)
    train = Z[split.train]
    pairs = [np.linalg.norm(train[i] - train[k]) for i in range(len(train)) for k in range(i)]
    D = np.mean(pairs)
    kernels = e4_hypotheses.chosen_kernels(
        data.X, data.feature_names, split, how, divisor, (1.0, 0.5)
    )
    rest = Z[np.concatenate([split.validation, split.test])]
    for width, stack, cross in kernels:
        for j in range(3):
            d2 = pairwise_distances(rest[:, [j]], train[:, [j]]) ** 2
            expected = np.exp(-d2 / (divisor * (width * D) ** 2))
            np.testing.assert_allclose(cross.kernels[j], expected, atol=1e-12)
        assert stack.kernels.shape == (3, len(train), len(train))


def test_kernels_without_the_two_are_squares(data, split):
    names = data.feature_names
    plain = list(e4_hypotheses.chosen_kernels(data.X, names, split, "own", 2.0, (1.0,)))
    other = list(e4_hypotheses.chosen_kernels(data.X, names, split, "own", 1.0, (1.0,)))
    np.testing.assert_allclose(other[0][1].kernels, plain[0][1].kernels ** 2)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_contaminated_splits(data, split, share):
    new, added = e4_family.contaminate(data, split, share, Cell("made", "m", 0))
    assert added == round(share / (1 - share) * len(split.train))
    assert (data.y[new.train] == -1).sum() == added
    assert not set(new.train) & (set(new.validation) | set(new.test))
    np.testing.assert_array_equal(new.test, split.test)
    assert (data.y[new.validation] == -1).any()


@pytest.mark.parametrize("method", e4_family.FAMILY)
def test_every_member_scores_every_row(data, split, method):
    small = {
        "widths": [0.5], "p": [2.0], "delta": [0.1], "gap": 1e-4, "quantiles": [0.75],
        "slack": {"cost": [1.0], "power": [2.0]},
        "mk_slack": {"cost": [1.0], "power": [2.0], "p": [2.0]},
        "matrix": {"r": [1.0], "p": [2.0], "delta": [0.1]},
        "robust": {"p": [2.0], "delta": [0.1]},
        "local": {"L": [2], "r": [1.0], "p": [2.0], "delta": [0.1]},
        "fusion": {"p": [2.0], "delta": [0.1], "steepness": [1.0]},
    }  # fmt: skip
    points = list(e4_family.METHODS[method](data, split, small, Cell("made", method, 0)))
    m = len(split.validation) + len(split.test)
    assert points
    for point in points:
        assert point.scores.shape == (m,)
        assert np.isfinite(point.scores).all()


def test_sentences_of_the_family_are_means_of_the_table():
    aucs = {"lp MK-FN": (0.7, 0.8), "(r, p) MK-FN": (0.8, 0.7),
            "plain, 10% contaminated": (0.6, 0.6),
            "robust, 10% contaminated": (0.7, 0.65)}  # fmt: skip
    rows = [
        {"method": m, "set": s, "repeat": 0, "auc": auc}
        for m, found in aucs.items()
        for s, auc in zip(("one", "two"), found, strict=True)
    ]
    text = " ".join(sentences(rows))
    assert "lp MK-FN: 75.0 on average over 2 sets" in text
    assert "(r, p) MK-FN: 75.0 (+0.0; 1 sets up, 1 down" in text
    assert (
        "With 10% of the training rows outliers: plain 60.0, robust 67.5 (+7.5; 2 sets up" in text
    )


def test_two_rooms_need_localised_weights():
    """In the problem made for them they are far ahead of weights that hold everywhere."""
    settings = {**local_and_tasks.settings(True), "widths": [0.5], "clusters": [2], "r": [1.0]}
    auc = {
        method: local_and_tasks.run(Cell("two rooms", method, 0), settings, None)[0]["auc"]
        for method in (local_and_tasks.PLAIN, local_and_tasks.LOCALISED)
    }
    assert auc[local_and_tasks.LOCALISED] > auc[local_and_tasks.PLAIN] + 0.15


def test_auc_of_tasks_is_the_mean_of_their_own():
    problem = local_and_tasks.Problem(
        {}, np.array([1, -1, 1, -1]), np.array([0, 0, 1, 1]), Split(*np.zeros((3, 0), dtype=int))
    )
    assert local_and_tasks._auc(problem, np.arange(4), np.array([1.0, 0.0, 5.0, 9.0])) == 0.5
