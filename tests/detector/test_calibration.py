"""Thresholds and p-values from rows that the model did not see."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernull
from kernull.detector.calibration import Calibration
from kernull.errors import TooFewRowsWarning
from tests.oracles import interpolated


def test_p_values_by_counting(rng):
    scores = rng.normal(size=30).round(1)  # with ties
    new = np.concatenate([rng.normal(size=20).round(1), [-99, 99]])
    expected = [(1 + sum(s <= x for s in scores)) / 31 for x in new]
    np.testing.assert_allclose(Calibration.of(scores).p_values(new), expected)


def test_smooth_p_values_interpolate(rng):
    scores = rng.normal(size=30).round(1)  # with ties
    new = np.concatenate([rng.normal(size=50), scores, [-99, 99]])
    found = Calibration.of(scores, smooth=True).p_values(new)
    np.testing.assert_allclose(found, [interpolated(scores, x) for x in new])
    order = np.argsort(new, kind="stable")
    assert (np.diff(found[order]) >= 0).all()


@pytest.mark.parametrize("rate", [k / 41 for k in (1, 2, 7, 40)])
def test_smooth_thresholds_are_plain_at_multiples(rate, rng):
    """What a rate that needs no rounding flags is the same."""
    scores = rng.normal(size=40)
    plain, smooth = (Calibration.of(scores, smooth=s).threshold(rate)[0] for s in (False, True))
    assert smooth == pytest.approx(plain, rel=1e-12)


def test_smooth_thresholds_do_not_round_the_rate_down(rng):
    """24 uniform rows: 10% is 2.5 ranks of 25; counting flags 2 of 25, interpolating 2.5.

    A threshold t flags the share t of new uniform rows. Both thresholds are linear in the sorted
    scores, whose expectations are k / 25: what these give is the share flagged on average.
    """
    expected = np.arange(1, 25) / 25
    for _ in range(100):
        scores = rng.uniform(size=24)
        low, high = np.sort(scores)[1:3]
        assert Calibration.of(scores).threshold(0.1)[0] == pytest.approx(low, rel=1e-12)
        smooth = Calibration.of(scores, smooth=True).threshold(0.1)[0]
        assert smooth == pytest.approx((low + high) / 2, rel=1e-12)
    assert Calibration.of(expected).threshold(0.1)[0] == pytest.approx(0.08, rel=1e-12)
    smooth = Calibration.of(expected, smooth=True).threshold(0.1)[0]
    assert smooth == pytest.approx(0.10, rel=1e-12)


@pytest.mark.parametrize("smooth", [False, True])
def test_weights_count_rows(rng, smooth):
    scores, copies = rng.normal(size=9), rng.integers(1, 4, 9)
    new = np.concatenate([rng.normal(size=20), scores])
    weighted = Calibration.of(scores, copies, smooth=smooth)
    repeated = Calibration.of(np.repeat(scores, copies), smooth=smooth)
    np.testing.assert_allclose(weighted.p_values(new), repeated.p_values(new))
    for rate in (0.1, 0.3, 0.7):
        assert weighted.threshold(rate) == repeated.threshold(rate)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=60),
    st.one_of(
        st.floats(0.001, 0.999),
        st.sampled_from([0.01, 0.05, 0.07, 0.1, 0.29, 0.3, 0.7]),
        st.integers(1, 40).map(lambda k: k / 41),
    ),
)
@pytest.mark.parametrize("smooth", [False, True])
def test_flagged_exactly_where_the_p_value_is_at_most_the_rate(smooth, scores, rate):
    calibration = Calibration.of(np.array(scores, dtype=float), smooth=smooth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRowsWarning)
        threshold, used = calibration.threshold(rate)
    grid = np.arange(-7, 8) / 1.0
    # The numbers next to the threshold are the hardest.
    near = [np.nextafter(threshold, -np.inf), threshold, np.nextafter(threshold, np.inf)]
    grid = np.concatenate([grid, grid + 0.5, near])
    # (1 + 1e-12: a rate such as 3/10 is not a binary number)
    p = calibration.p_values(grid)
    np.testing.assert_array_equal(grid < threshold, p <= used * (1 + 1e-12))


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.25])
def test_the_rate_holds_on_new_rows(rate, rng):
    """Rows like the calibration rows are flagged at most at the rate, on average."""
    rates = []
    for _ in range(300):
        calibration = Calibration.of(rng.normal(size=60))
        rates.append((rng.normal(size=200) < calibration.threshold(rate)[0]).mean())
    assert np.mean(rates) == pytest.approx(np.floor(rate * 61) / 61, abs=4 * np.std(rates) / 17)


def test_too_few_rows_for_the_rate():
    calibration = Calibration.of(np.arange(9.0))
    with pytest.warns(TooFewRowsWarning, match=r"false_alarm_rate=0\.05 needs at least 19 .* 0\.1"):
        threshold, rate = calibration.threshold(0.05)
    assert rate == pytest.approx(0.1)
    assert threshold == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Calibration.of(np.arange(19.0)).threshold(0.05)


@pytest.mark.parametrize("rate", [0, 1, -0.1, 1.5, np.nan, "0.05", None, True])
def test_bad_rate(rate):
    with pytest.raises(ValueError, match=r"^false_alarm_rate: got"):
        Calibration.of(np.arange(30.0)).threshold(rate)


@pytest.mark.parametrize("smooth", [False, True])
def test_scores_that_are_no_numbers_are_the_lowest(smooth):
    """Of values that overflow; `predict` flags them too."""
    judge = Calibration.of(np.arange(9.0), smooth=smooth)
    np.testing.assert_allclose(judge.p_values(np.array([np.nan, -np.inf, np.inf])), [0.1, 0.1, 1])


def test_two_groups_whose_threshold_nothing_reaches_are_refused():
    rows = np.random.default_rng(0).normal(size=(3, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRowsWarning)
        with pytest.raises(ValueError, match=r"groups: 2 rows, .* no row whatever"):
            kernull.MultiKernelFisherNull(decision="sum").fit(rows, groups=[0, 0, 1])
        model = kernull.MultiKernelFisherNull().fit(rows, groups=[0, 0, 1])
    assert (model.predict(np.full((2, 2), 1e6)) == -1).all()
