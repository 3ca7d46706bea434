"""E9-joint: what is drawn, Algorithm 2 as printed, and the page from a small run."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import e9_joint, reproduce
from experiments._tables import read_table
from kernull.balls import LpBall
from kernull.problems import FisherProblem, JointFisherProblem
from kernull.stacks import DenseStack


@pytest.fixture
def digits(rng, monkeypatch):
    """Two views of ten digits, of which one says which digit it is."""
    y = np.repeat(np.arange(10), 40)
    views = {"good": y[:, None] + 0.1 * rng.normal(size=(400, 2)), "bad": rng.normal(size=(400, 3))}
    monkeypatch.setattr(e9_joint, "_load", lambda name: (views, y))
    return y


@pytest.fixture
def small(monkeypatch):
    """The quick settings with few rows and parameters."""
    few = {"validation": 10, "test": 10, "ps": [1.0, 2.0], "deltas": [0.01], "enrol": [10]}
    found = {**e9_joint.settings(True), **few}
    experiment = replace(e9_joint.EXPERIMENT, settings=lambda quick: found)
    monkeypatch.setattr(e9_joint, "EXPERIMENT", experiment)
    return found


def test_no_row_is_learned_from_and_judged(digits, small, rng):
    data = e9_joint.draw("any", 5, small, rng)
    parts = [*data.train, data.validation, data.test]
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts)) == 10 * 25
    assert [len(part) for part in data.train] == [5] * 10
    drawn = data.views["good"].mean(axis=1).round()
    np.testing.assert_array_equal(drawn[data.validation], data.of_validation)
    np.testing.assert_array_equal(drawn[data.test], data.of_test)
    for digit, rows in enumerate(data.train):
        assert (drawn[rows] == digit).all()


@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0])
def test_algorithm_2_is_the_printed_one(p, rng):
    """Against the algorithm in plain NumPy: the last of so many iterates."""
    kernels = []
    for n in (4, 6):
        X = rng.normal(size=(3, n, 5))
        kernels.append(X @ X.transpose(0, 2, 1))
    delta = 0.1
    b = np.full(3, 3 ** (-1 / p))

    def coefficients(b):
        return [
            np.linalg.solve(delta * K.shape[1] * np.eye(K.shape[1]) + np.tensordot(b, K, 1),
                            np.ones(K.shape[1]))
            for K in kernels
        ]  # fmt: skip

    a = coefficients(b)
    for _ in range(7):
        v = np.sum([np.einsum("i,jik,k->j", c, K, c) for c, K in zip(a, kernels, strict=True)], 0)
        b = np.eye(3)[np.argmax(v)] if p == 1 else v ** (1 / (p - 1))
        b /= np.linalg.norm(b, ord=p)
        a = coefficients(b)
    problem = JointFisherProblem(
        [FisherProblem(DenseStack(K), delta * K.shape[1]) for K in kernels]
    )
    weights, coef, gap, count = e9_joint.as_printed(problem, LpBall(p), 7, 0.0)
    assert count == 7
    np.testing.assert_allclose(weights, b, atol=1e-12)
    np.testing.assert_allclose(coef, np.concatenate(a), rtol=1e-9)
    assert 0 <= gap < 1


def test_from_rows_to_page(digits, small, tmp_path):
    (outcome,) = reproduce("E9-joint", quick=True, out=tmp_path)
    page = outcome.page.read_text(encoding="utf-8")
    assert (outcome.page.parent / "weights_multiple_features.png").is_file()
    assert "joint (exact) minus" in page
    rows = read_table(outcome.page.parent / "results.csv")
    rows = [row for row in rows if row["by"] == "any p"]
    assert {row["method"] for row in rows} == set(e9_joint.METHODS)
    auc = {m: np.mean([float(r["auc"]) for r in rows if r["method"] == m]) for m in
           e9_joint.METHODS}  # fmt: skip
    # One view says all, the other nothing: weights that are learned from all tasks find it.
    assert auc[e9_joint.JOINT] > auc[e9_joint.SEPARATE] > auc[e9_joint.EQUAL] > 0.8
