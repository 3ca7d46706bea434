"""The dense stack: the contract, and what it says of kernels that are none."""

from __future__ import annotations

import numpy as np
import pytest

import kernull
from kernull.errors import InvalidKernelError
from kernull.operators import DenseStack, KernelStack
from kernull.operators.dense import smallest_ritz_value
from tests.operators.contract import StackContract
from tests.oracles import random_kernels


class TestDense64(StackContract):
    @pytest.fixture
    def truth(self, rng):
        return random_kernels(rng, 7, 5)

    @pytest.fixture
    def stack(self, truth):
        return DenseStack(truth)


class TestDense32(StackContract):
    rtol = 2e-6

    @pytest.fixture
    def truth(self, rng):
        return random_kernels(rng, 7, 5)

    @pytest.fixture
    def stack(self, truth):
        return DenseStack(truth.astype(np.float32))

    def test_values_stay_in_float32(self, stack):
        assert stack.dtype == np.float32
        assert stack[np.ix_([0, 1], [1])].dtype == np.float32
        assert stack.select([0]).dtype == np.float32


class TestDenseCross(StackContract):
    """A rectangular stack, m != n."""

    offers = StackContract.offers - {"diagonal"}

    @pytest.fixture
    def truth(self, rng):
        return rng.normal(size=(4, 6, 9))

    @pytest.fixture
    def stack(self, truth):
        return DenseStack(truth)


def test_the_public_name():
    assert kernull.KernelStack is KernelStack is DenseStack


def test_integers_become_floats():
    assert DenseStack(np.ones((2, 3, 3), dtype=int)).dtype == np.float64


@pytest.mark.parametrize("shape", [(3,), (3, 3), (1, 2, 3, 3)])
def test_not_three_dimensional(shape):
    with pytest.raises(InvalidKernelError, match=r"kernels: got an array of shape .*\(J, n, n\)"):
        DenseStack(np.ones(shape))


@pytest.mark.parametrize("scale", [[1.0], [1.0, 2.0, 3.0], 2.0, [[1.0, 1.0]]])
def test_scale_of_the_wrong_shape(scale):
    with pytest.raises(ValueError, match="scale: got shape"):
        DenseStack(np.ones((2, 3, 3)), scale)


@pytest.mark.parametrize("scale", [[1.0, -1.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_scale_that_is_no_factor(scale):
    with pytest.raises(InvalidKernelError, match="scale: got"):
        DenseStack(np.stack([np.eye(3)] * 2), scale).validate()


def test_not_square():
    with pytest.raises(InvalidKernelError, match=r"got shape \(2, 3, 4\).*square"):
        DenseStack(np.ones((2, 3, 4))).validate()


def test_empty():
    with pytest.raises(InvalidKernelError, match="empty"):
        DenseStack(np.ones((0, 3, 3))).validate()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad):
    kernels = np.stack([np.eye(3)] * 2)
    kernels[1, 0, 0] = bad
    with pytest.raises(InvalidKernelError, match="NaN or infinity"):
        DenseStack(kernels).validate()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_not_symmetric_names_the_kernel_and_the_difference(dtype):
    kernels = np.stack([np.eye(4)] * 3)
    kernels[2, 0, 1] = 0.25
    with pytest.raises(InvalidKernelError, match=r"kernel 2 is not symmetric.*0\.25"):
        DenseStack(kernels.astype(dtype)).validate()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_indefinite_names_the_kernel_and_says_how_negative(dtype, rng):
    Q = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    bad = Q @ np.diag([-2.5, *np.linspace(1, 3, 9)]) @ Q.T
    kernels = np.stack([np.eye(10), (bad + bad.T) / 2]).astype(dtype)
    with pytest.raises(InvalidKernelError, match=r"kernel 1 is not positive semi.*-2\.5"):
        DenseStack(kernels).validate()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_is_forgiven(dtype, rng):
    """Smooth kernels have eigenvalues of either sign at the level of rounding."""
    x = rng.normal(size=(150, 1))
    K = np.exp(-((x - x.T) ** 2) / 50).astype(dtype)
    assert np.linalg.eigvalsh(K.astype(float))[0] < 0
    DenseStack(K[None]).validate()
    DenseStack(K[None] * dtype(1e-20)).validate()
    DenseStack(np.zeros((1, 5, 5))).validate()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_upper_triangle_is_that_of_the_sum(dtype, rng):
    K = rng.normal(size=(3, 650, 650)).astype(dtype)
    stack = DenseStack((K + K.transpose(0, 2, 1)) / 2, scale=[1.0, 2.0, 0.5])
    for weights in ([0.2, 0.0, 0.7], [0.0, 0.3, 0.0], [0.0, 0.0, 0.0]):
        whole = np.tensordot(weights * stack.scale, stack.kernels, axes=1)
        found = np.triu(stack.combine(np.array(weights)))
        slack = 1e-5 if dtype == np.float32 else 1e-13
        np.testing.assert_allclose(found, np.triu(whole), rtol=slack, atol=slack)


def test_scoring_stack_of_the_wrong_size():
    stack = DenseStack(np.ones((2, 3, 5)))
    assert stack.validate(n=5, J=2) is stack
    for n, J in ((4, 2), (5, 3)):
        with pytest.raises(InvalidKernelError, match=rf"scoring needs shape \({J}, m, {n}\)"):
            stack.validate(n=n, J=J)


def test_ritz_values_bound_the_spectrum(rng):
    A = rng.normal(size=(3, 30, 30))
    A = A + A.transpose(0, 2, 1)
    lowest, largest = smallest_ritz_value(A)
    true = np.linalg.eigvalsh(A)
    assert (lowest >= true[:, 0] - 1e-9).all()
    assert (largest <= np.abs(true).max(axis=1) + 1e-9).all()
    # All steps taken, the extreme ones are found.
    lowest, largest = smallest_ritz_value(A, steps=30)
    np.testing.assert_allclose(lowest, true[:, 0], rtol=1e-6)
    np.testing.assert_allclose(largest, np.abs(true).max(axis=1), rtol=1e-6)


def test_scikit_learn_slices_it_like_a_pairwise_matrix(rng):
    from sklearn.svm import OneClassSVM
    from sklearn.utils.metaestimators import _safe_split

    truth = random_kernels(rng, 8, 2)
    train, test = np.array([0, 2, 3, 5]), np.array([1, 7])
    pairwise = OneClassSVM(kernel="precomputed")  # stands for any estimator with the tag
    part, _ = _safe_split(pairwise, DenseStack(truth), None, test, train)
    assert part.shape == (2, 4)
    np.testing.assert_array_equal(part.kernels, truth[:, test][:, :, train])


@pytest.mark.parametrize("wrap", [np.asarray, DenseStack, lambda K: K.tolist()])
def test_complex_kernels_are_refused(wrap):
    """Their imaginary part was dropped, with a warning of NumPy's."""
    K = np.eye(5)[None] * (1 + 0.5j)
    with pytest.raises(InvalidKernelError, match="complex128; expected real numbers"):
        kernull.MultiKernelFisherNull("precomputed").fit(wrap(K))


@pytest.mark.torch
def test_complex_tensors_are_refused():
    import torch

    K = torch.eye(5)[None] * (1 + 0.5j)
    with pytest.raises(InvalidKernelError, match="expected real numbers"):
        kernull.MultiKernelFisherNull("precomputed").fit(K)


@pytest.mark.parametrize("size", [1e-7, 1e-3])
def test_one_entry_off_is_found(size, rng):
    """By a random product, whose rounding is far below."""
    A = rng.normal(size=(300, 300))
    K = (A @ A.T)[None]
    DenseStack(K).validate()
    K[0, 7, 230] += size * np.abs(K).max()
    with pytest.raises(InvalidKernelError, match="kernel 0 is not symmetric"):
        DenseStack(K).validate()


def test_one_triangle_serves_products_of_symmetric_kernels(rng):
    K = np.stack([A @ A.T for A in rng.normal(size=(3, 50, 60))])
    checked, plain = DenseStack(K, [1.0, 2.0, 3.0]).validate(), DenseStack(K, [1.0, 2.0, 3.0])
    assert checked.symmetric
    assert not plain.symmetric
    for v in (rng.normal(size=50), rng.normal(size=(50, 1)), rng.normal(size=(50, 3))):
        np.testing.assert_allclose(checked.products(v), plain.products(v), rtol=1e-12, atol=1e-12)


# -- k(x, x) of cross stacks: given, carried along by slices, or not known. --


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
