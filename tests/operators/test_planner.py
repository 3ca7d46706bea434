"""What is planned, before anything is allocated."""

from __future__ import annotations

import numpy as np
import pytest

from kernull import FisherProblem, LpBall, Storage, solve
from kernull.errors import ApproximationWarning, InvalidKernelError, MemoryLimitError
from kernull.operators import Budget, DenseStack, LowRankStack, TiledStack, plan, planner
from kernull.operators.planner import plan_storage
from kernull.views import KernelSet
from tests.operators.contract import StackContract
from tests.plain import plain_fisher

GB = 10**9


@pytest.mark.parametrize(
    ("J", "n", "limit", "storage"),
    [
        (4, 4_000, 2 * GB, "dense"),
        (4, 20_000, 2 * GB, "tiled"),
        (4, 20_000, 23 * GB, "tiled"),  # dense fits, but takes longer
        (60, 6_000, 23 * GB, "tiled"),
        (3, 100_000, 23 * GB, "nystroem"),
        (4, 1_000_000, 20 * GB, "nystroem"),  # fits, but takes too long
        (100, 100_000, GB, "nystroem"),  # the basis does not fit
    ],
)
def test_auto(J, n, limit, storage):
    assert plan_storage("auto", J, n, 8, limit).storage == storage


def test_dense_on_a_device():
    assert plan_storage("auto", 3, 10_000, 8, 23 * GB).storage == "tiled"
    assert plan_storage("auto", 3, 10_000, 8, 23 * GB, on_device=True).storage == "dense"


def test_a_long_fit_says_what_was_planned(rng, caplog):
    with caplog.at_level("INFO", logger="kernull"):
        plain_fisher().fit(rng.normal(size=(50, 3)))
    assert "50 rows, 1 kernels (dense): " in caplog.text


@pytest.mark.parametrize("limit", [GB // 10, GB, 10 * GB])
def test_what_is_planned_fits(limit):
    for n in (1000, 10_000, 100_000):
        for J in (1, 10, 100):
            if 1.5 * 2 * 8 * n * (J + 1) > limit:  # not even two columns of a basis
                with pytest.raises(MemoryLimitError, match=r"^memory_limit: .* is too little"):
                    plan_storage("auto", J, n, 8, limit)
                continue
            chosen = plan_storage("auto", J, n, 8, limit)
            need = J * n * n * 8 if chosen.storage == "dense" else chosen.max_columns * J * n * 8
            assert need <= limit or chosen.storage == "nystroem"


def test_dense_beyond_the_limit_names_size_limit_and_alternative():
    with pytest.raises(MemoryLimitError, match=r"need 22.4 GB, the memory limit is 2 GB.*'tiled'"):
        plan_storage("dense", 4, 20_000, 8, 2 * GB)


def test_methods_that_need_matrices_get_dense_or_an_error():
    assert plan_storage("auto", 4, 1000, 8, GB, matrix_free=False).storage == "dense"
    with pytest.raises(MemoryLimitError):
        plan_storage("auto", 4, 20_000, 8, GB, matrix_free=False)


def test_a_basis_that_does_not_fit_is_refused():
    with pytest.raises(MemoryLimitError, match="a basis of 24 columns"):
        plan_storage("tiled", 10, 100_000, 8, GB // 10)


@pytest.mark.parametrize("storage", ["auto", "tiled", "nystroem", "dask"])
@pytest.mark.parametrize("limit", [10, 3000])
def test_a_tiny_limit_is_refused_by_its_name(storage, limit, rng):
    named = rf"^memory_limit: {limit if limit < 1000 else 3} k?B is too little for 1 kernels of 200"
    with pytest.raises(MemoryLimitError, match=named) as caught:
        plain_fisher(storage=Storage(storage, memory_limit=limit)).fit(rng.normal(size=(200, 3)))
    # The advice is something other than what was asked for.
    assert ("use storage='nystroem'" in str(caught.value)) == (storage in ("tiled", "dask"))


def test_why_landmarks_are_taken():
    assert "neither does a basis of 24" in plan_storage("auto", 100, 100_000, 8, GB).reason
    assert "takes minutes" in plan_storage("auto", 4, 1_000_000, 8, 20 * GB).reason


def test_unknown_storage():
    with pytest.raises(ValueError, match="storage: got 'disk'"):
        plan_storage("disk", 1, 10, 8, GB)


def test_the_stack_is_the_plan(rng, monkeypatch):
    kernel_set = KernelSet.fit(rng.normal(size=(100, 3)), {"a": np.arange(3)})
    dense = plan(kernel_set, limit=GB)
    assert isinstance(dense.stack, DenseStack)
    assert dense.budget == Budget(planner.BASIS_COLUMNS, 5)
    tiled = plan(kernel_set, limit=100_000)
    assert isinstance(tiled.stack, TiledStack)
    assert tiled.budget == Budget(int(100_000 // (1.5 * 8 * 100 * 2)))
    assert tiled.note == "tiled"
    monkeypatch.setattr(planner, "MOST_VALUES", 0.0)
    with pytest.warns(ApproximationWarning, match="Using 20 landmark rows"):
        low = plan(kernel_set, limit=100_000, landmarks=20)
    assert isinstance(low.stack, LowRankStack)
    assert len(low.stack.landmark_rows) == 20


class Stored:
    """A user's operator: kernels in a list."""

    def __init__(self, kernel_set):
        self.kernels = [K for _, K in kernel_set.matrices()]

    def products(self, V):
        return [K @ V for K in self.kernels]

    def diagonal(self):
        return [np.diag(K) for K in self.kernels]

    def rows(self, index):
        return [K[index] for K in self.kernels]


class TestOperatorOfTheUser(StackContract):
    """Three methods, and what is derived of them."""

    offers = frozenset({"diagonal", "pickle"})

    @pytest.fixture
    def kernel_set(self):
        rows = np.random.default_rng(0).normal(size=(9, 3))
        return KernelSet.fit(rows, {"a": np.arange(2), "b": np.arange(2, 3)}, widths=(0.5, 1.0))

    @pytest.fixture
    def truth(self, kernel_set):
        return DenseStack.of(kernel_set).kernels

    @pytest.fixture
    def stack(self, kernel_set):
        planned = plan(kernel_set, Stored, limit=GB)
        assert planned.budget == Budget(planner.BASIS_COLUMNS)
        return planned.stack

    def test_its_weights_are_those_of_dense_kernels(self, stack, truth):
        here = solve(FisherProblem(DenseStack(truth), 0.1), LpBall(2), tol=1e-10)
        there = solve(FisherProblem(stack, 0.1), LpBall(2), tol=1e-10)
        assert there.solver == "subspace"
        assert there.value == pytest.approx(here.value, rel=2e-10)
        np.testing.assert_allclose(there.weights, here.weights, atol=1e-5)  # the root of the gap

    def test_a_stack_is_taken_as_it_is(self, kernel_set):
        stack = TiledStack(kernel_set)
        assert plan(kernel_set, lambda _: stack, limit=GB).stack is stack

    def test_missing_methods_are_named(self, kernel_set):
        with pytest.raises(TypeError, match=r"storage: .* without products, diagonal, rows"):
            plan(kernel_set, lambda _: object(), limit=GB)

    def test_a_wrong_shape_is_named(self, kernel_set):
        class Short(Stored):
            def products(self, V):
                return super().products(V)[1:]

        with pytest.raises(
            InvalidKernelError, match=r"products.*\(3, 9, 1\); expected \(4, 9, 1\)"
        ):
            plan(kernel_set, Short, limit=GB)


def test_a_fit_that_is_not_dense_warns_only_where_it_approximates(rng, recwarn):
    X = rng.normal(size=(300, 4))
    model = plain_fisher(storage=Storage(memory_limit="400kB")).fit(X)
    assert model.solver_ == "subspace"
    assert not [w for w in recwarn if issubclass(w.category, ApproximationWarning)]
