"""What must not move scores: the order of rows, a constant column, and, of the sum, signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull import MultiKernelFisherNull

#: In standard deviations of the scores.
MOST = 1e-6


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("decision", ["evidence", "sum"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_order_of_rows_constant_columns_and_signs_do_not_matter(decision, seed):
    """Signs do by evidence: a row's fold depends on the ranks of its cells."""
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(60, 4)), rng.normal(size=(30, 4))
    X[:, 3], new[:, 3] = X[:, 3].round(), new[:, 3].round()

    def scores(train, rows):
        return MultiKernelFisherNull(decision=decision).fit(train).score_samples(rows)

    expected = scores(X, new)
    order, signs = rng.permutation(60), rng.choice([-1.0, 1.0], 4)
    value = rng.normal() * 10.0 ** rng.integers(-6, 6)
    same = [
        scores(X[order], new),
        scores(np.insert(X, 2, value, axis=1), np.insert(new, 2, value, axis=1)),
    ]
    same += [scores(X * signs, new * signs)] if decision == "sum" else []
    for other in same:
        assert np.abs(other - expected).max() <= MOST * expected.std()
