"""Cross-scores: every row is scored once, by a model that did not see it."""

import numpy as np
import pytest

from kernull.calibration import check_folds, cross_scores


@pytest.mark.parametrize(("n", "folds"), [(2, 10), (7, 3), (50, 10)])
def test_no_row_is_scored_by_a_model_that_saw_it(n, folds):
    calls = []

    def score(seen, held):
        assert not set(seen) & set(held)
        assert len(seen) + len(held) == n
        calls.append(held)
        return held * 10.0

    np.testing.assert_array_equal(cross_scores(n, folds, score), np.arange(n) * 10.0)
    assert len(calls) == min(n, folds)
    sizes = [len(held) for held in calls]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("folds", [1, 0, 2.5, "ten", True, None])
def test_folds_are_checked(folds):
    with pytest.raises(ValueError, match="calibration_folds: got"):
        check_folds(folds)
