"""k(x, x) of cross stacks: given, carried along by slices, or not known."""

import numpy as np
import pytest

from kernull import KernelStack
from kernull.errors import InvalidKernelError

RNG = np.random.default_rng(0)
ROOTS = RNG.normal(size=(2, 6, 3))
SQUARE = KernelStack(ROOTS @ ROOTS.transpose(0, 2, 1), scale=np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    "index",
    [
        np.ix_([4, 1], [0, 2, 3]),
        (slice(1, 3), slice(None)),
        np.ix_([True] * 3 + [False] * 3, [0, 1]),
    ],
)
def test_slices_of_both_sides_carry_it(index):
    rows = np.arange(6)[np.ravel(index[0]) if not isinstance(index[0], slice) else index[0]]
    np.testing.assert_allclose(SQUARE[index].diagonal(), SQUARE.diagonal()[:, rows])


def test_it_stays_with_its_rows_and_kernels():
    cross = SQUARE[np.ix_([4, 1, 0], [2, 3])]
    np.testing.assert_allclose(cross[1:].diagonal(), SQUARE.diagonal()[:, [1, 0]])
    np.testing.assert_allclose(cross.select([1]).diagonal(), SQUARE.diagonal()[[1]][:, [4, 1, 0]])


def test_a_cross_stack_alone_does_not_know_it():
    with pytest.raises(InvalidKernelError, match="KernelStack"):
        KernelStack(np.ones((2, 3, 4))).diagonal()


def test_shape_is_checked():
    with pytest.raises(InvalidKernelError, match=r"diagonal: got shape \(3,\); expected \(2, 3\)"):
        KernelStack(np.ones((2, 3, 4)), diagonal=np.ones(3))


def test_a_square_cross_stack_does_not_know_it():
    cross = KernelStack(np.random.default_rng(1).normal(size=(2, 4, 4)))
    assert cross[np.ix_([0, 1], [2, 3])].own_diagonal is None


def test_columns_carry_what_was_given_and_infer_nothing():
    given = np.arange(12.0).reshape(2, 6)
    stack = KernelStack(SQUARE.kernels, SQUARE.scale, given)
    np.testing.assert_array_equal(stack.columns([3, 1]).own_diagonal, given)
    np.testing.assert_array_equal(stack.columns([3, 1]).kernels, SQUARE.kernels[:, :, [3, 1]])
    assert SQUARE.columns([3, 1]).own_diagonal is None
