"""Values that were never seen, as evidence."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull import MultiKernelFisherNull, TableViews
from kernull.tables.never_seen import NeverSeen


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_scores_are_the_surprise_of_good_and_turing(seed):
    rng = np.random.default_rng(seed)
    cells = rng.poisson([0.1, 1.0, 30.0], size=(60, 3)).astype(float)
    new = rng.poisson([0.3, 3.0, 30.0], size=(20, 3)).astype(float)
    squares = np.zeros(len(new))
    for old, values in zip(cells.T, new.T, strict=True):
        counts = Counter(old.tolist())
        once = sum(count == 1 for count in counts.values())
        surprise = max(np.log(0.1 * 61 / (once + 2 * np.sqrt(once) + 1)), 0.0)
        squares += [surprise**2 * (value not in counts) for value in values.tolist()]
    fit = NeverSeen().fit(cells)
    np.testing.assert_allclose(fit.score(new), -np.sqrt(squares), atol=1e-12)
    assert (fit.score(cells) == 0).all()
    gap = cells.copy()
    gap[0, 1] = np.nan  # no cell was empty, and no row had an empty one
    assert fit.score(gap)[0] < 0
    gap[0, 1] = np.inf  # not looked at
    assert fit.score(gap)[0] == 0


@pytest.mark.filterwarnings("ignore")
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_never_seen_is_never_more_normal_than_seen_twice(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice(["a", "b", "c"], 100).astype(object)
    values[:2] = "twice"
    rows = {"kind": values, "x": rng.normal(size=100), "y": rng.normal(size=100)}
    table = TableViews().fit(rows)
    model = MultiKernelFisherNull().fit(table.transform(rows))
    new = {"x": rng.normal(size=30), "y": rng.normal(size=30)}
    twice, never = (
        model.score_samples(table.transform({"kind": [value] * 30, **new}))
        for value in ("twice", "never")
    )
    assert (never <= twice + 1e-12).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [2, 4])
def test_half_of_the_rows_are_not_flagged_for_one_value_of_two(seed):
    """All copies tie: new ones that score a little below left-out ones were flagged as a whole."""
    rng = np.random.default_rng(seed)

    def draw(n):
        z = rng.normal(size=(n, 2))
        return np.column_stack(
            [z, z @ [[1.0], [1.0]] + rng.normal(size=(n, 1)), rng.random(n) < 0.5]
        )

    model = MultiKernelFisherNull(views={"numbers": [0, 1, 2], "on": [3]}).fit(draw(1000))
    assert (model.predict(draw(1000)) == -1).mean() < 0.1
