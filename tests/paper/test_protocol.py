"""The paper's protocol against plain loops over its grid."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kernull import PAPER, MultiKernelFisherNull, Solver, Sum, paper

GRID = {"ps": (1.0, 4 / 3, 1e6), "deltas": (1e-3, 1e-1), "widths": (0.25, 1.0)}


@pytest.fixture
def table(rng):
    """Targets, and outliers in one of three columns."""
    X = rng.normal(size=(90, 3))
    X[60:, 1] += 2.5
    return X, np.repeat([1, -1], [60, 30])


@pytest.mark.parametrize("score_type", ["projection", "distance"])
def test_every_point_is_one_fit_of_the_estimator(table, score_type):
    X, y = table
    found = paper.choose(X, y, **GRID, score_type=score_type, tol=1e-8)
    learned, validation, test = found.split
    best = None
    for width in (1.0, 0.25):
        for i, p in enumerate(GRID["ps"]):
            for k, delta in enumerate(GRID["deltas"]):
                options = {"p": p, "delta": delta, "widths": width, "solver": Solver(tol=1e-8)}
                options |= {"decision": Sum(score_type), "views": "features"}
                model = MultiKernelFisherNull(**PAPER | options).fit(X[learned])
                reached, tested = (
                    roc_auc_score(y[rows], model.score_samples(X[rows]))
                    for rows in (validation, test)
                )
                assert found.grid[width][i, k] == pytest.approx(reached, abs=1e-12)
                if best is None or reached > best[0]:
                    best = reached, tested, {"p": p, "delta": delta, "widths": width}
    assert (found.validation_auc, found.test_auc) == pytest.approx(best[:2], abs=1e-12)
    assert found.parameters == best[2]
    assert found.gap <= 1e-8


def test_the_split_is_60_20_20_of_targets(table):
    X, y = table
    learned, validation, test = paper.choose(X, y, **GRID, random_state=3).split
    assert sorted(np.concatenate([learned, validation, test])) == list(range(90))
    assert (y[learned] == 1).all()
    assert [int((y[rows] == 1).sum()) for rows in (learned, validation, test)] == [36, 12, 12]
    assert [int((y[rows] == -1).sum()) for rows in (validation, test)] == [15, 15]
    again = paper.choose(X, y, **GRID, random_state=3).split
    np.testing.assert_array_equal(learned, again.train)


def test_it_needs_both_labels(table):
    X, y = table
    with pytest.raises(ValueError, match=r"y: expected 90 labels, \+1 for targets and -1"):
        paper.choose(X, np.ones(90))
    with pytest.raises(ValueError, match="score_type: got 'y'; expected 'projection'"):
        paper.choose(X, y, score_type="y")


def test_the_other_reading_of_the_score(table):
    X, y = table
    options = PAPER | {"views": "features"}
    one = MultiKernelFisherNull(**options).fit(X[y == 1])
    other = MultiKernelFisherNull(**options | {"decision": Sum("distance")}).fit(X[y == 1])
    np.testing.assert_allclose(
        other.score_samples(X), paper.novelty_score(one.score_samples(X)), atol=1e-12
    )
