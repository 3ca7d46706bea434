"""Estimators used from several threads at once leave the process as they found it."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

import kernull
from benchmarks import soak
from benchmarks import threads as many_threads
from kernull import LpBall, Simplex, _runtime, solve
from kernull._runtime import one_blas_thread
from kernull.mkl import path
from kernull.mkl.problems import FisherProblem, JointFisherProblem, SVDDProblem, machines
from kernull.operators import DenseStack, linalg, tiled
from kernull.operators.linalg import cholesky
from kernull.views import KernelSet


def blas_threads():
    return {p["filepath"]: p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}


def in_a_thread(call):
    """In a thread that ends: threadpoolctl ignores other threads while it lives."""
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


@pytest.fixture
def two_blas_threads():
    """With one thread to begin with there would be nothing to restore."""
    limits = []
    in_a_thread(lambda: limits.append(threadpool_limits(2, user_api="blas")))
    before = blas_threads()
    if 2 not in before.values():
        pytest.skip("needs a BLAS with threads")
    yield before
    in_a_thread(limits[0].restore_original_limits)


def test_the_last_one_out_restores(two_blas_threads):
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))
    seen = []

    def first():
        with one_blas_thread() as limit, limit:
            first_is_in.set()
            assert second_is_in.wait(10)
        first_is_out.set()

    def second():
        assert first_is_in.wait(10)
        with one_blas_thread() as limit, limit:
            second_is_in.set()
            assert first_is_out.wait(10)
            seen.append(blas_threads())

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result()
    assert set(seen[0].values()) == {1}
    assert blas_threads() == two_blas_threads


def test_an_error_inside_restores(two_blas_threads):
    with pytest.raises(ZeroDivisionError), one_blas_thread() as limit, limit:
        1 / 0  # noqa: B018
    assert blas_threads() == two_blas_threads


def under_one_limit():
    with one_blas_thread() as limit, limit:
        pass


def under_nested_limits():
    with _runtime.threads_for(10) as limit, limit, one_blas_thread() as inner, inner:
        pass


def shared_out():
    _runtime.in_threads(lambda part: part, range(4))


class Interrupter:
    """Raises KeyboardInterrupt at one line of `kernull._runtime`, by the count of lines run."""

    def __init__(self, line):
        self.left = line

    def __call__(self, frame, event, arg):
        if frame.f_code.co_filename != _runtime.__file__:
            return None
        if event == "line":
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("call", [under_one_limit, under_nested_limits, shared_out])
def test_an_interrupt_at_any_line_restores(call, two_blas_threads):
    call()  # caches
    before, line, interrupted = sys.gettrace(), 0, True
    while interrupted:
        interrupted = False
        sys.settrace(Interrupter(line))
        try:
            call()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(before)
        assert blas_threads() == two_blas_threads, line
        assert (_runtime._inside, _runtime._local.limit) == (set(), None), line
        line += 1
    assert line > 20


#: Ctrl-C at random moments of products under a limit, and what BLAS has after each.
INTERRUPTED = """
import os, random, signal, sys, threading, time
import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits
from kernull._runtime import (one_blas_thread, threads_for)

# Jobs in the background inherit that it is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def numbers():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

setter = threading.Thread(target=lambda: threadpool_limits(2, user_api="blas"))
setter.start()
setter.join()
before, A, caught = numbers(), np.eye(200), 0
for seed in range(200):
    def send(wait=random.Random(seed).uniform(0, 2e-3)):
        time.sleep(wait)
        os.kill(os.getpid(), signal.SIGINT)
    sender = threading.Thread(target=send)
    try:
        sender.start()
        while True:
            with threads_for(10) as limit, limit:
                with one_blas_thread() as inner, inner:
                    A @ A
    except KeyboardInterrupt:
        caught += 1
    sender.join()
    if numbers() != before:
        sys.exit(f"{numbers()} instead of {before} after {caught}")
print(caught)
"""


def test_interrupts_by_signal_restore(two_blas_threads):
    command = [sys.executable, "-c", INTERRUPTED]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (0, "200\n"), run.stderr


def test_limits_are_named_twice():
    """So that an interrupt of one exit leaves another; see the text of the module."""
    makers, found = {"Limit", "one_blas_thread", "threads_for"}, 0
    for file in Path(kernull.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            for i, item in enumerate(node.items if isinstance(node, ast.With) else ()):
                called = getattr(getattr(item.context_expr, "func", None), "id", "")
                if called in makers:
                    names = [ast.unparse(part) for part in node.items]
                    assert names[i + 1] == item.optional_vars.id, (file.name, names)
                    found += 1
    assert found >= 3


def test_tiles_from_several_threads_leave_blas_as_it_was(rng, monkeypatch, two_blas_threads):
    monkeypatch.setattr(tiled, "ONE_THREAD_VALUES", 0)
    monkeypatch.setattr(tiled, "TILE_BYTES", 2**13)
    kernel_set = KernelSet.fit(rng.normal(size=(100, 2)), {"a": np.array([0]), "b": np.array([1])})
    made = tiled.Tiles(kernel_set)
    left, right, v = made.left(), made.right(), np.ones((100, 1))

    def work(_):
        for _ in range(20):
            tiled.tile_products(made, left, right, v)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    assert blas_threads() == two_blas_threads


def test_joint_problems_from_several_threads_leave_blas_as_it_was(rng, two_blas_threads):
    def task(n):
        A = rng.normal(size=(2, n, n))
        return FisherProblem(DenseStack(A @ A.transpose(0, 2, 1) / n), 0.1 * n)

    problems = [JointFisherProblem([task(10), task(12)], n_jobs=2) for _ in range(3)]

    def work(problem):
        for _ in range(20):
            problem.evaluate(np.ones(2))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, problems))
    assert blas_threads() == two_blas_threads


def correlated_kernels(rng, J, n):
    A = rng.normal(size=(J, n, n)) / np.sqrt(n)
    return DenseStack(A @ A.transpose(0, 2, 1))


def in_passes(rng):
    stack = correlated_kernels(rng, 3, 80)
    return lambda: solve(FisherProblem(stack, 0.1), LpBall(1), "subspace", tol=1e-4)


def with_planes(rng):
    stack = correlated_kernels(rng, 3, 40)
    return lambda: solve(SVDDProblem(stack, 0.2), Simplex(), "cutting-plane", tol=1e-4)


def over_a_grid(rng):
    stack = correlated_kernels(rng, 3, 260)
    return lambda: path(stack, [1, 2], [0.1, 0.01])


def about_convergence():
    # scikit-learn's own validation has filters too, about other warnings.
    return [entry for entry in warnings.filters if entry[2] is ConvergenceWarning]


@pytest.mark.parametrize("make", [in_passes, with_planes, over_a_grid])
def test_fits_in_several_threads_leave_the_warning_filters(rng, make):
    fit, interval = make(rng), sys.getswitchinterval()
    with warnings.catch_warnings():  # whatever goes wrong here must not outlive the test
        before = about_convergence()
        sys.setswitchinterval(1e-5)
        try:
            with ThreadPoolExecutor(4) as pool:
                for done in [pool.submit(lambda: [fit() for _ in range(4)]) for _ in range(4)]:
                    done.result()
        finally:
            sys.setswitchinterval(interval)
        assert about_convergence() == before


@pytest.mark.parametrize("make", [in_passes, with_planes, over_a_grid])
def test_fits_set_no_filter_on_convergence(rng, make, monkeypatch):
    """The same without threads, where the outcome is a matter of luck."""
    fit, seen, simplefilter = make(rng), [], warnings.simplefilter

    def watch(action, category=Warning, *rest, **options):
        seen.append(category)
        simplefilter(action, category, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(warnings, "simplefilter", watch)
        fit()
    assert ConvergenceWarning not in seen


def test_libsvm_out_of_steps_says_nothing(rng, monkeypatch):
    monkeypatch.setattr(machines, "_STEPS", 2)
    monkeypatch.setattr(machines, "_STEPS_A_ROW", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem = machines.OneClassSVMProblem(correlated_kernels(rng, 1, 30), 0.2)
        a = problem.inner(np.ones(1))
    assert a.sum() == pytest.approx(1.0)


def test_eight_threads_of_everything_leave_the_process_as_it_was(two_blas_threads):
    """Two seconds of what ``python -m benchmarks.threads`` does for a minute."""
    done, wrong = many_threads.run(2.0)
    assert wrong == []
    assert len(done) > 3


@pytest.mark.slow
def test_a_model_that_is_killed_and_restarted_loses_nothing():
    """Seconds of what ``python -m benchmarks.soak`` does for ten minutes."""
    found = soak.run(12.0, pause=(1.0, 3.0))
    assert found["findings"] == []
    assert found["kills"] > 0
    assert found["steps"] > 0


@pytest.mark.parametrize("rows", [20, 40])
def test_large_matrices_are_factorised_by_one_thread(rows, monkeypatch, two_blas_threads):
    """OpenBLAS's threads end the process there; 30 rows stand for the many it takes."""
    monkeypatch.setattr(linalg, "ONE_THREAD_ROWS", 30)
    seen, plain = [], linalg.dpotrf

    def spy(*args, **options):
        seen.append(max(blas_threads().values()))
        return plain(*args, **options)

    monkeypatch.setattr(linalg, "dpotrf", spy)
    FisherProblem(DenseStack(np.eye(rows)[None]), 1.0).factorise(np.ones(1))
    assert blas_threads() == two_blas_threads
    assert set(seen) == {1 if rows > 30 else 2}


@pytest.mark.parametrize(("rows", "blas", "own"), [(10, 1, 1), (1000, 1, 2), (10**6, 2, 2)])
def test_few_rows_take_few_threads(rows, blas, own, two_blas_threads):
    """BLAS works in one thread up to some rows, and so do we up to few."""
    seen, meet = [], threading.Barrier(own)

    def work(part):
        seen.append((threading.get_ident(), _runtime.blas_threads()))
        meet.wait(5)

    with _runtime.threads_for(rows) as limit, limit:
        assert _runtime.blas_threads() == blas
        _runtime.in_threads(work, [0, 1])
    assert blas_threads() == two_blas_threads
    assert len({thread for thread, _ in seen}) == own
    assert all(number == 1 for _, number in seen)


def test_parts_come_back_in_order_and_share_out_nothing_again(two_blas_threads):
    def work(part):
        inner = _runtime.in_threads(lambda _: threading.get_ident(), range(4))
        return part, set(inner) == {threading.get_ident()}

    assert _runtime.in_threads(work, range(20)) == [(part, True) for part in range(20)]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_leaves_out_parts_that_were_not_begun(error, two_blas_threads):
    begun = []

    def work(part):
        begun.append(part)
        if part == 3:
            raise error
        threading.Event().wait(0.01)

    with pytest.raises(error):
        _runtime.in_threads(work, range(1000))
    assert len(begun) < 100
    assert blas_threads() == two_blas_threads


def test_beside_a_gpu_many_rows_have_one_blas_thread_and_few_of_our_own(
    two_blas_threads, monkeypatch
):
    for most, own in ((1, 1), (8, 2)):
        monkeypatch.setattr(_runtime, "BESIDE_GPU", most)
        meet, seen = threading.Barrier(own), set()

        def work(_: int, meet=meet, seen=seen) -> None:
            seen.add(threading.get_ident())
            meet.wait(5)

        with _runtime.threads_for(10**5, beside_gpu=True):
            assert _runtime.blas_threads() == 1
            _runtime.in_threads(work, [0, 1])
        assert len(seen) == own
    assert blas_threads() == two_blas_threads


@pytest.mark.parametrize("side_by_side", [False, True])
@pytest.mark.parametrize("n", [601, 1000])
def test_a_factor_is_that_of_lapack(n, side_by_side, rng, two_blas_threads):
    A = rng.normal(size=(n, n))
    A = A @ A.T + n * np.eye(n)
    upper = np.triu(A)  # what is below the diagonal is not read
    with _runtime.threads_for(n):
        factor = cholesky(upper, side_by_side=side_by_side)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(A), rtol=0, atol=1e-11)
    assert factor.flags.f_contiguous
    A[700 % n, 700 % n] = -1.0
    with _runtime.threads_for(n), pytest.raises(np.linalg.LinAlgError, match="not pos"):
        cholesky(A, side_by_side=side_by_side)
