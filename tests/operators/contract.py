"""The tests that every stack passes: the shared contract.

Subclass `StackContract` in a test module, give it a ``stack`` fixture and a ``truth`` fixture, and
pytest runs everything here on it::

    class TestMyStack(StackContract):
        rtol = 1e-5  # of values kept in float32

        @pytest.fixture
        def truth(self):
            return kernels  # (J, m, n) float64, without the scale

        @pytest.fixture
        def stack(self, truth):
            return MyStack(truth)

Abilities that a stack may lack (``combine``, slicing, ...) are tested where they are offered: set
``offers`` to what the stack must have, so that one that loses an ability by accident fails.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from kernull.errors import MissingCapabilityError
from kernull.operators import Stack

ABILITIES = frozenset({"combine", "slicing", "select", "pickle", "diagonal"})


class StackContract:
    """Facts about a stack, each checked against naive loops over ``truth``."""

    #: Relative tolerance of values, against the largest entry.
    rtol = 1e-12
    #: Abilities beyond the protocol that this stack has.
    offers: frozenset[str] = ABILITIES

    @pytest.fixture
    def truth(self):
        """Kernel matrices of shape (J, m, n), float64, scale not applied."""
        raise NotImplementedError

    @pytest.fixture
    def stack(self, truth):
        """The stack under test, of scale one."""
        raise NotImplementedError

    # -- helpers -------------------------------------------------------------------------------

    def needs(self, ability):
        if ability not in self.offers:
            pytest.skip(f"{type(self).__name__} does not offer {ability}")

    def close(self, actual, expected):
        expected = np.asarray(expected, dtype=float)
        actual = np.asarray(actual)
        assert actual.dtype == np.float64
        assert actual.shape == expected.shape
        size = np.abs(expected).max() if expected.size else 0.0
        np.testing.assert_allclose(actual, expected, rtol=self.rtol, atol=self.rtol * size)

    @pytest.fixture
    def vectors(self, truth):
        return np.random.default_rng(1).normal(size=(truth.shape[2], 3))

    # -- the protocol --------------------------------------------------------------------------

    def test_it_answers_to_the_protocol(self, stack, truth):
        assert isinstance(stack, Stack)
        assert 0.0 < stack.eps < 1e-6
        parts = list(stack.pieces())
        covered = np.concatenate([np.arange(truth.shape[1])[rows] for rows, _ in parts])
        np.testing.assert_array_equal(covered, np.arange(truth.shape[1]))

    def test_shape_n_and_j(self, stack, truth):
        J, m, n = truth.shape
        assert tuple(stack.shape) == (m, n)
        assert (stack.J, stack.n) == (J, n)
        assert all(isinstance(value, int) for value in (stack.J, stack.n, *stack.shape))

    def test_scale_is_one_by_default(self, stack, truth):
        np.testing.assert_array_equal(np.asarray(stack.scale), np.ones(len(truth)))

    def test_products_of_a_vector(self, stack, truth, vectors):
        v = vectors[:, 0]
        expected = [[sum(row[k] * v[k] for k in range(len(v))) for row in K] for K in truth]
        self.close(stack.products(v), expected)

    def test_products_of_a_block(self, stack, truth, vectors):
        expected = np.stack([K @ vectors for K in truth])
        self.close(stack.products(vectors), expected)

    def test_products_of_one_column_keep_their_axis(self, stack, truth, vectors):
        self.close(stack.products(vectors[:, :1]), np.stack([K @ vectors[:, :1] for K in truth]))

    def test_products_do_not_mind_the_memory_order(self, stack, truth, vectors):
        expected = np.stack([K @ vectors for K in truth])
        self.close(stack.products(np.asfortranarray(vectors)), expected)
        strided = np.repeat(vectors, 2, axis=0)[::2]
        self.close(stack.products(strided), expected)

    def test_products_change_nothing(self, stack, truth, vectors):
        before = vectors.copy()
        first = np.array(stack.products(vectors))
        second = np.array(stack.products(vectors))
        np.testing.assert_array_equal(vectors, before)
        np.testing.assert_allclose(first, second, rtol=1e-13)

    def test_rows(self, stack, truth):
        index = np.array([truth.shape[1] - 1, 0, 2])
        self.close(stack.rows(index), np.stack([K[index] for K in truth]))
        self.close(stack.rows(slice(1, 3)), np.stack([K[1:3] for K in truth]))

    def test_diagonal(self, stack, truth):
        self.needs("diagonal")
        expected = np.array([[K[i, i] for i in range(truth.shape[1])] for K in truth])
        self.close(stack.diagonal(), expected)

    def test_scale_applies_wherever_values_leave(self, stack, truth, vectors):
        scale = np.linspace(0.5, 3.0, len(truth))
        diagonal = np.array(stack.diagonal()) if "diagonal" in self.offers else None
        plain, stack = stack, stack.rescaled(scale)
        np.testing.assert_array_equal(plain.scale, np.ones(len(truth)))
        np.testing.assert_allclose(stack.rescaled(1 / scale).scale, np.ones(len(truth)))
        scaled = scale[:, None, None] * truth
        self.close(stack.products(vectors), scaled @ vectors)
        self.close(stack.products(vectors[:, 0]), scaled @ vectors[:, 0])
        self.close(stack.rows(np.array([1, 0])), scaled[:, [1, 0]])
        if "combine" in self.offers:
            self.close(stack.combine(np.ones(len(truth))), scaled.sum(axis=0))
        if "select" in self.offers:
            mask = np.arange(len(truth)) % 2 == 0
            self.close(stack.select(mask).products(vectors), scaled[mask] @ vectors)
        if "slicing" in self.offers:
            index = np.ix_([0, 2], [1, 0, 3])
            self.close(stack[index].products(np.eye(3)), scaled[(slice(None), *index)])
        if diagonal is not None:
            self.close(stack.diagonal(), diagonal * scale[:, None])

    # -- abilities -----------------------------------------------------------------------------

    def test_combine(self, stack, truth):
        self.needs("combine")
        b = np.random.default_rng(2).uniform(size=len(truth))
        expected = np.zeros(truth.shape[1:])
        for weight, K in zip(b, truth, strict=True):
            expected += weight * K
        combined = stack.combine(b)
        self.close(combined, expected)
        combined[:] = -1.0  # the caller owns it: problems add the ridge in place
        self.close(stack.combine(b), expected)

    def test_combine_of_one_weight_is_that_kernel(self, stack, truth):
        self.needs("combine")
        for j, K in enumerate(truth):
            self.close(stack.combine(np.eye(len(truth))[j]), K)

    def test_slicing_as_scikit_learn_does(self, stack, truth):
        self.needs("slicing")
        rows, columns = np.array([3, 0]), np.array([1, 2, 4])
        part = stack[np.ix_(rows, columns)]
        assert tuple(part.shape) == (2, 3)
        expected = np.array([[[K[i, k] for k in columns] for i in rows] for K in truth])
        self.close(part.products(np.eye(3)), expected)

    def test_slicing_rows(self, stack, truth, vectors):
        self.needs("slicing")
        for index in (np.array([2, 0]), slice(1, 4), np.arange(truth.shape[1]) > 2):
            self.close(stack[index].products(vectors), truth[:, index] @ vectors)

    def test_length_is_the_number_of_rows(self, stack, truth):
        self.needs("slicing")
        assert len(stack) == truth.shape[1]

    def test_select(self, stack, truth, vectors):
        self.needs("select")
        mask = np.zeros(len(truth), dtype=bool)
        mask[[0, -1]] = True
        chosen = stack.select(mask)
        assert mask.sum() == chosen.J
        self.close(chosen.products(vectors), truth[mask] @ vectors)

    def test_pickle(self, stack, truth, vectors):
        self.needs("pickle")
        again = pickle.loads(pickle.dumps(stack))
        np.testing.assert_array_equal(again.products(vectors), stack.products(vectors))

    def test_it_declares_whether_it_combines(self, stack, truth):
        assert stack.can_combine == ("combine" in self.offers)
        if not stack.can_combine:
            with pytest.raises(MissingCapabilityError, match="never forms a matrix"):
                stack.combine(np.ones(len(truth)))

    def test_landmarks_invert_the_kernels_that_they_approximate(self, stack, truth):
        """All rows as landmarks: rho (rho I + K_b)^-1 r itself."""
        J, m, n = truth.shape
        if m != n:
            pytest.skip("kernels between other rows have no inverse")
        b, r = np.linspace(0.5, 1.0, J), np.linspace(-1.0, 2.0, n)
        K = np.tensordot(b, truth, axes=1)
        ridge = float(np.trace(K)) / n
        direction = stack.landmark_inverse(np.arange(n), ridge)(b, r)
        exact = ridge * np.linalg.solve(ridge * np.eye(n) + K, r)
        np.testing.assert_allclose(direction, exact, atol=1e-6 + 30 * self.rtol)
