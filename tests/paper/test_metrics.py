"""Error rates: hand-computed cases, then properties over generated scores."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.metrics import roc_curve

from kernull.paper.metrics import apcer, bpcer, eer


def pooled(targets, outliers):
    """Labels and scores of two groups."""
    return [1] * len(targets) + [-1] * len(outliers), [*targets, *outliers]


# Few distinct values, so that ties within and across classes are common.
SCORES = st.lists(st.integers(-6, 6), min_size=1, max_size=25)


class TestEer:
    # Each row: targets, outliers, rate, threshold, FAR and FRR at the threshold.
    # Points below are (FAR, FRR) at the distinct scores in ascending order, then at infinity.
    CASES = (
        # t=3: no outlier reaches it, no target is below it -> (0, 0); any t in (1, 3], middle 2.
        pytest.param([3, 4], [0, 1], 0.0, 2.0, 0.0, 0.0, id="separable"),
        # t=4: (2/4, 1/4); t=5: one outlier (5) passes, one target (2) fails -> (1/4, 1/4).
        # An exact meeting on (4, 5], middle 4.5.
        pytest.param([8, 7, 6, 2], [5, 4, 3, 1], 0.25, 4.5, 0.25, 0.25, id="exact meeting"),
        # (1, 0), t=1: (1/2, 0), t=2: (0, 1/2). FRR - FAR is -1/2 then 1/2: crossed half way,
        # at 0 + 1/2 * 1/2 = 1/4. Both ends are equally far; the stricter, t in (1, 2], is taken.
        pytest.param([1, 2], [1, 0], 0.25, 1.5, 0.0, 0.5, id="tie across classes, even"),
        # t=1: (1/2, 0), t=2: (0, 3/4). FRR - FAR is -1/2 then 3/4: crossed at
        # (1/2) / (5/4) = 2/5 of the way, at 2/5 * 3/4 = 3/10 (and 1/2 * 3/5 = 3/10).
        # The lower end is nearer to equal: t in (0, 1], middle 1/2.
        pytest.param([1, 1, 1, 2], [1, 0], 0.3, 0.5, 0.5, 0.0, id="tie across classes, uneven"),
        # t=2: (1/2, 1/3), t=2.5: (1/2, 2/3). FAR does not move, so the rate is 1/2; differences
        # are -1/6 and 1/6, the stricter end is t in (2, 2.5], middle 2.25.
        pytest.param([1, 2, 3], [0, 2.5], 0.5, 2.25, 0.5, 2 / 3, id="parallel to an axis"),
        # t=0: (1, 0), t=1: (1, 1).
        pytest.param([0], [1], 1.0, 0.5, 1.0, 1.0, id="reversed"),
        # (1, 0) at 7, then (0, 1) at infinity: the middle, and the stricter end rejects all.
        pytest.param([7, 7], [7], 0.5, math.nextafter(7, 8), 0.0, 1.0, id="all equal"),
        # No float lies between these, and the lower one would accept the outlier.
        pytest.param(
            [math.nextafter(1, 2)], [1.0], 0.0, math.nextafter(1, 2), 0.0, 0.0, id="neighbours"
        ),
        # The sum of the two scores overflows; their middle does not.
        pytest.param([1.5 * 2.0**1023], [2.0**1023], 0.0, 1.25 * 2.0**1023, 0.0, 0.0, id="huge"),
    )

    @pytest.mark.parametrize(
        ("targets", "outliers", "rate", "threshold", "false_accept", "false_reject"), CASES
    )
    def test_by_hand(self, targets, outliers, rate, threshold, false_accept, false_reject):
        result = eer(*pooled(targets, outliers))
        assert result.rate == rate
        assert result.threshold == threshold
        y, s = pooled(targets, outliers)
        assert apcer(y, s, threshold)["attack"] == false_accept
        assert bpcer(y, s, threshold) == false_reject

    @given(SCORES, SCORES)
    def test_lies_between_zero_and_one(self, targets, outliers):
        assert 0.0 <= eer(*pooled(targets, outliers)).rate <= 1.0

    @given(SCORES, SCORES)
    def test_ignores_strictly_increasing_maps(self, targets, outliers):
        before = eer(*pooled(targets, outliers))
        after = eer(*pooled([t**3 + t for t in targets], [o**3 + o for o in outliers]))
        assert after.rate == before.rate

    @given(SCORES, SCORES)
    def test_swapping_classes_and_sign_keeps_the_rate(self, targets, outliers):
        swapped = eer(*pooled([-o for o in outliers], [-t for t in targets]))
        assert swapped.rate == eer(*pooled(targets, outliers)).rate

    @given(SCORES, SCORES)
    def test_is_where_the_roc_curve_crosses_the_antidiagonal(self, targets, outliers):
        y, s = pooled(targets, outliers)
        false_accept, true_accept, _ = roc_curve(y, s, drop_intermediate=False)
        crossing = brentq(lambda x: 1 - x - np.interp(x, false_accept, true_accept), 0, 1)
        # A vertical part of the curve is a jump for interp, which brentq closes in on as well.
        assert eer(y, s).rate == pytest.approx(crossing, abs=1e-9)

    @given(SCORES, SCORES)
    def test_no_threshold_brings_the_rates_closer(self, targets, outliers):
        y, s = pooled(targets, outliers)
        result = eer(y, s)
        assert math.isfinite(result.threshold)

        def distance(t):
            return abs(apcer(y, s, t)["attack"] - bpcer(y, s, t))

        best = min(distance(t) for t in [*s, math.inf])
        assert distance(result.threshold) == pytest.approx(best, abs=1e-12)


class TestPresentationAttacks:
    Y = (1, 1, 1, 1, -1, -1, -1, -1, -1)
    S = (0.9, 0.8, 0.5, 0.2, 0.7, 0.4, 0.5, 0.6, 0.1)
    KIND = (None, None, None, None, "print", "print", "replay", "replay", "replay")

    def test_apcer_by_instrument(self):
        # Accepted at 0.5 (a score equal to it counts): print 0.7 of {0.7, 0.4} -> 1/2;
        # replay 0.5 and 0.6 of {0.5, 0.6, 0.1} -> 2/3.
        rates = apcer(self.Y, self.S, 0.5, instruments=self.KIND)
        assert rates == {"print": 1 / 2, "replay": 2 / 3}

    def test_apcer_without_instruments_pools_them(self):
        # 0.7, 0.5, 0.6 of five.
        assert apcer(self.Y, self.S, 0.5) == {"attack": 3 / 5}

    def test_bpcer(self):
        # Only 0.2 lies below 0.5; the score equal to the threshold is accepted.
        assert bpcer(self.Y, self.S, 0.5) == 1 / 4

    def test_one_class_is_enough_for_its_own_rate(self):
        assert bpcer([1, 1], [0.0, 1.0], 0.5) == 0.5
        assert apcer([-1, -1], [0.0, 1.0], 0.5) == {"attack": 0.5}

    def test_infinite_thresholds(self):
        assert bpcer(self.Y, self.S, math.inf) == 1.0
        assert apcer(self.Y, self.S, -math.inf) == {"attack": 1.0}

    def test_instruments_keep_their_type(self):
        rates = apcer([-1, -1, -1], [0, 1, 1], 0.5, instruments=[1, "1", 2])
        assert rates == {1: 0.0, "1": 1.0, 2: 1.0}

    @pytest.mark.parametrize("missing", [None, "", math.nan])
    def test_every_attack_needs_an_instrument(self, missing):
        with pytest.raises(ValueError, match="row 2"):
            apcer([1, -1, -1], [0, 1, 1], 0.5, instruments=["x", "print", missing])

    def test_instruments_of_another_length(self):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            apcer([1, -1, -1], [0, 1, 1], 0.5, instruments=["print"])

    def test_threshold_nan(self):
        with pytest.raises(ValueError, match="threshold"):
            bpcer([1], [0.0], math.nan)


class TestErrors:
    @pytest.mark.parametrize(
        ("y", "missing"), [([1, 1], "outlier"), ([-1, -1], "target"), ([], "target")]
    )
    def test_empty_class(self, y, missing):
        with pytest.raises(ValueError, match=f"no {missing} "):
            eer(y, [0.0] * len(y))

    def test_empty_class_of_rates(self):
        with pytest.raises(ValueError, match="no outlier"):
            apcer([1], [0.0], 0.5)
        with pytest.raises(ValueError, match="no target"):
            bpcer([-1], [0.0], 0.5)

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_scores_that_are_not_finite(self, bad):
        with pytest.raises(ValueError, match="Input scores contains"):
            eer([1, 1, -1], [0.0, bad, 1.0])

    @pytest.mark.parametrize(
        ("y", "shown"),
        [
            ([1, 0], r"\[0 1\]"),
            ([True, False], "False"),
            (["target", "outlier"], "'outlier' 'target'"),
            ([1.0, math.nan], "nan"),
            (np.array([1, 255], dtype=np.uint8), "255"),  # -1 as an unsigned byte
        ],
    )
    def test_unknown_labels(self, y, shown):
        with pytest.raises(ValueError, match=shown):
            eer(y, [0.0, 1.0])

    def test_float_labels_are_fine(self):
        assert eer([1.0, -1.0], [1.0, 0.0]).rate == 0.0

    def test_shapes(self):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            eer([1, -1], [0.0, 1.0, 2.0])
        with pytest.raises(ValueError, match="should be a 1d array"):
            eer([1, -1], [[0.0, 1.0], [1.0, 0.0]])
        with pytest.raises(ValueError, match="could not convert"):
            eer([1, -1], ["a", "b"])
