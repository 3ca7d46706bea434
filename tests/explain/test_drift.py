"""Whether rows rank as new normal rows would: rarely wrong for any number, and not blind."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from kernull import MultiKernelFisherNull, TableViews
from kernull.detector.calibration import Calibration, rank_weights
from kernull.explain.drift import drifts, rank_test
from kernull.tables import as_table


def simulated(m, k, repeats, shift=0.0, seed=0, smooth=True):
    """P-values of the test for k new scores among m left-out ones, many times."""
    rng = np.random.default_rng([seed, m, k])
    out = []
    for _ in range(repeats):
        calibration = Calibration.of(rng.normal(size=m), smooth=smooth)
        p_values = calibration.p_values(rng.normal(size=k) - shift)
        out.append(rank_test(p_values, calibration).p_value)
    return np.array(out)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(("m", "k"), [(20, 5), (50, 5000), (200, 50), (1000, 1000)])
def test_false_alarms_are_as_rare_as_the_p_value_says(m, k, smooth):
    """Also where the left-out rows are few and the new rows many: k beyond m costs nothing."""
    found = simulated(m, k, 1000, smooth=smooth)
    for level in (0.01, 0.05):  # and three standard errors
        assert (found < level).mean() < level + 3 * np.sqrt(level / 1000)
    assert (found < 0.2).mean() > 0.05  # nor is it blind


def test_uniform_p_values_would_be_taken_for_too_sure():
    """What the left-out rows' own scatter adds is most of it where they are few."""
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(200):
        calibration = Calibration.of(rng.normal(size=50), smooth=True)
        p = calibration.p_values(rng.normal(size=5000))
        alarms += (0.5 - p.mean()) * np.sqrt(12 * len(p)) > 2.33
    assert alarms > 60


def test_a_shift_of_scores_is_found():
    assert (simulated(200, 50, 200, shift=1.0) < 0.01).mean() > 0.99
    assert (simulated(200, 100, 200, shift=0.5) < 0.01).mean() > 0.85


def test_a_few_very_low_scores_are_found():
    rng, found = np.random.default_rng(2), 0
    for _ in range(50):
        calibration = Calibration.of(rng.normal(size=300), smooth=True)
        scores = np.concatenate([rng.normal(size=85), np.full(15, -9.0)])
        test = rank_test(calibration.p_values(scores), calibration)
        assert test.low >= 15
        found += test.p_value < 0.01
    assert found >= 40


def test_equal_scores_and_single_rows_are_no_drift():
    tied = Calibration.of(np.zeros(100), smooth=True)
    assert rank_test(tied.p_values(np.zeros(1000)), tied).p_value == 1.0
    for m in (2, 30):
        some = Calibration.of(np.arange(m), smooth=True)
        assert rank_test(some.p_values(np.array([-9.0])), some).p_value > 0.01


def test_rows_of_groups_count_as_one():
    """Left-out rows, and new ones as if they came in groups as large."""
    weight = rank_weights(None, np.repeat(np.arange(10), 10), 100)
    calibration = Calibration.of(np.arange(100.0), weight)
    grouped, alone = (
        rank_test(np.full(100, 0.25), c) for c in (calibration, Calibration.of(np.arange(10.0)))
    )
    assert (grouped.left_out, grouped.rows) == (10, 100)
    assert (
        grouped.p_value
        > alone.p_value
        == pytest.approx(2 * norm.sf(0.25 * np.sqrt(12 * 10 * 100 / 111)))
    )
    assert grouped.p_value == rank_test(np.full(10, 0.25), Calibration.of(np.arange(10.0))).p_value


def test_a_spread_that_changed_is_found():
    rng = np.random.default_rng(0)
    table = TableViews().fit(rng.normal(size=(200, 2)))
    for scale in (0.3, 3.0):
        (found,) = drifts(table, as_table(rng.normal(size=(200, 2)) * [1.0, scale]))
        assert found.column == "x1"


def table_of(kind, rng, n):
    if kind == "normal":
        return rng.normal(size=(n, 5))
    if kind == "on/off":
        return (rng.random((n, 4)) < [0.5, 0.3, 0.2, 0.05]).astype(float)
    if kind == "counts":
        return rng.poisson(2.0, size=(n, 4)).astype(float)
    columns = [rng.normal(size=(n, 3)), rng.random((n, 3)) < [0.5, 0.2, 0.05]]
    return np.hstack(columns)


def judged(kind, seed, change=lambda X: X, n=120, k=300):
    """The test of a fitted model on new rows, and the columns that moved."""
    rng = np.random.default_rng([seed, n])
    train, new = table_of(kind, rng, n), change(table_of(kind, rng, k))
    table = TableViews().fit(train)
    model = MultiKernelFisherNull().fit(table.transform(train))
    p_values = model.p_values(table.transform(new))
    columns = drifts(table, as_table(new), level=0.01)
    return rank_test(p_values, model.calibration_).p_value, [drift.column for drift in columns]


@pytest.mark.parametrize("kind", ["normal", "on/off", "counts", "mixed"])
@pytest.mark.filterwarnings("ignore::kernull.errors.NearCopiesWarning")
def test_unchanged_rows_do_not_drift(kind):
    """Columns of few values too: left-out rows have a copy less than new ones in the model."""
    found = [judged(kind, seed) for seed in range(40)]
    assert sum(p < 0.01 for p, _ in found) <= 3  # 0.4 are expected
    assert sum(bool(columns) for _, columns in found) <= 2  # at most 0.4


def test_a_shift_of_one_deviation_is_found():
    all_columns = [judged("normal", seed, lambda X: X + 1.0, k=100)[0] for seed in range(15)]
    assert sum(p < 0.01 for p in all_columns) >= 14
    one = [judged("normal", seed, lambda X: X + np.eye(5)[2], k=100)[1] for seed in range(15)]
    assert sum(columns[:1] == ["x2"] for columns in one) >= 13


@pytest.mark.filterwarnings("ignore::kernull.errors.NearCopiesWarning")
def test_an_on_off_column_that_moves_is_named():
    flipped = [judged("on/off", seed, lambda X: np.abs(X - [0, 0, 1, 0]))[1] for seed in range(5)]
    assert all(columns[:1] == ["x2"] for columns in flipped)


def test_empty_categories_and_gaps_that_went_are_drift():
    rng = np.random.default_rng(0)
    machine = rng.choice(["M1", "M2", "M3"], size=200).astype(object)
    force = rng.normal(size=200)
    force[:100] = np.nan
    with pytest.warns(UserWarning, match="filled in"):
        table = TableViews().fit(
            {"machine": machine, "force": force, "speed": rng.normal(size=200)}
        )
    new = {"machine": [None] * 150, "force": rng.normal(size=150), "speed": rng.normal(size=150)}
    gone, there = drifts(table, as_table(new))
    assert (gone.column, gone.distance) == ("machine", 1.0)
    assert gone.words == "empty: 100% of the rows, 0% in training"
    assert (gone.edges, gone.training, gone.new) == (("empty", "not empty"), (0.0, 1.0), (1.0, 0.0))
    assert there.words == "empty: 0% of the rows, 50% in training"
    same = {"machine": machine, "force": force, "speed": rng.normal(size=200)}
    assert drifts(table, as_table(same)) == ()
