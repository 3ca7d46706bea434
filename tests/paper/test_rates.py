"""HTER, G-mean and BPCER at a fixed APCER against naive loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernull.paper.metrics import apcer, bpcer, bpcer_at_apcer, g_mean, hter

# Few values, so that ties and thresholds at scores are common.
ROWS = st.lists(
    st.tuples(st.sampled_from([1, -1]), st.integers(0, 6), st.sampled_from("pq")),
    min_size=2,
    max_size=25,
).filter(lambda rows: {y for y, _, _ in rows} == {1, -1})


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


@given(rows=ROWS, threshold=st.floats(-1, 8))
def test_rates_by_counting(rows, threshold):
    y, s, _ = columns(rows)
    accepted = sum(yi == -1 and si >= threshold for yi, si in zip(y, s, strict=True))
    rejected = sum(yi == 1 and si < threshold for yi, si in zip(y, s, strict=True))
    far, frr = accepted / y.count(-1), rejected / y.count(1)
    assert hter(y, s, threshold) == pytest.approx((far + frr) / 2)
    assert g_mean(y, s, threshold) == pytest.approx(math.sqrt((1 - far) * (1 - frr)))


@given(rows=ROWS, level=st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 1.0]))
def test_bpcer_at_apcer_tries_every_threshold(rows, level):
    """Of all thresholds between and at the scores that keep to the level, the best BPCER."""
    y, s, q = columns(rows)
    tried = [t / 2 for t in range(-1, 15)]
    allowed = [t for t in tried if apcer(y, s, t, instruments=q).max <= level]
    expected = min(bpcer(y, s, t) for t in allowed)
    assert bpcer_at_apcer(y, s, level, instruments=q) == expected


def test_the_worst_instrument_counts():
    y = [1, 1, -1, -1, -1, -1]
    s = [3.0, 1.0, 2.0, 0.0, 0.0, 0.0]
    assert bpcer_at_apcer(y, s, 0.25) == 0.0  # one of four attacks
    assert bpcer_at_apcer(y, s, 0.25, instruments=["", "", "p", "p", "q", "q"]) == 0.5


def test_separated_scores_cost_nothing():
    y, s = np.repeat([1, -1], 5), np.r_[np.ones(5), np.zeros(5)]
    assert bpcer_at_apcer(y, s, 0.0) == 0.0
    assert hter(y, s, 0.5) == 0.0
    assert g_mean(y, s, 0.5) == 1.0


@pytest.mark.parametrize("level", [-0.1, 1.1, math.nan, True])
def test_levels_are_shares(level):
    with pytest.raises(ValueError, match="level"):
        bpcer_at_apcer([1, -1], [1.0, 0.0], level)


@pytest.mark.parametrize("metric", [hter, g_mean, bpcer_at_apcer])
def test_both_classes_are_needed(metric):
    with pytest.raises(ValueError, match="no outlier"):
        metric([1, 1], [0.0, 1.0], 0.5)
