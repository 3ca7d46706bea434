"""The inverse that follows rows coming and going, against inverses from scratch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernull.errors import InvalidKernelError
from kernull.mkl import RidgeInverse


def random_kernel(rng, n):
    X = rng.normal(size=(n, 3))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1) / 4)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), steps=st.lists(st.integers(-4, 5), min_size=1, max_size=8))
def test_any_sequence_of_additions_and_removals(seed, steps):
    rng = np.random.default_rng(seed)
    K, w = random_kernel(rng, 60), rng.uniform(0.2, 4, size=60)
    here = list(range(5))
    fresh = list(range(5, 60))
    state = RidgeInverse.of(K[np.ix_(here, here)], 0.3, w[here])
    for step in steps:
        if step > 0:
            new, fresh = fresh[:step], fresh[step:]
            state = state.append(K[np.ix_(new, here)], K[np.ix_(new, new)], w[new])
            here += new
        elif step < 0 and len(here) + step >= 2:
            drop = rng.choice(len(here), size=-step, replace=False)
            state = state.remove(drop)
            here = [row for i, row in enumerate(here) if i not in set(drop.tolist())]
    truth = np.linalg.inv(K[np.ix_(here, here)] + np.diag(0.3 / w[here]))
    np.testing.assert_allclose(state.inverse, truth, rtol=0, atol=1e-10)
    np.testing.assert_allclose(state.coef(), truth @ np.ones(len(here)), rtol=0, atol=1e-10)
    np.testing.assert_allclose(state.row_weight, w[here])


def test_steps_leave_what_they_start_from_alone():
    K = random_kernel(np.random.default_rng(0), 12)
    untouched = K.copy()
    state = RidgeInverse.of(K[:10, :10], 0.1)
    before = state.inverse.copy()
    state.append(K[10:, :10], K[10:, 10:])
    state.remove([0, 3])
    np.testing.assert_array_equal(state.inverse, before)
    np.testing.assert_array_equal(K, untouched)


def test_indefinite_kernels_are_refused():
    with pytest.raises(InvalidKernelError, match="not positive definite"):
        RidgeInverse.of(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.1)
    state = RidgeInverse.of(np.eye(2), 0.1)
    with pytest.raises(InvalidKernelError, match="not positive definite"):
        state.append(np.array([[5.0, 5.0]]), np.array([[1.0]]))
