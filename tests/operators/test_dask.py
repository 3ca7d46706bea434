"""The stack on a cluster of two single-threaded worker processes, some of which die."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from kernull import MultiKernelFisherNull
from kernull.errors import ClusterError
from tests.operators.contract import StackContract
from tests.operators.test_tiled import naive_kernels, some_kernel_set, some_rows
from tests.plain import plain_fisher

distributed = pytest.importorskip("distributed")

from kernull.operators import dask as module  # noqa: E402
from kernull.operators.dask import DistributedStack  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class TestDistributed(StackContract):
    rtol = 1e-10
    offers = frozenset({"diagonal"})

    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        monkeypatch.setattr(module, "MIN_BLOCK", 2)

    @pytest.fixture
    def truth(self):
        X = some_rows()
        return naive_kernels(X, X, X)

    @pytest.fixture
    def stack(self, client):
        return DistributedStack(some_kernel_set(some_rows()), client=client)


@pytest.fixture(scope="module")
def rows():
    """Too few for the preconditioner of tiles in this process, so that iterations are the same."""
    return np.random.default_rng(0).normal(size=(390, 6))


@pytest.fixture(scope="module")
def here(rows):
    return a_model("tiled").fit(rows)


def a_model(storage):
    views = {"a": slice(0, 3), "b": slice(3, 6)}
    return plain_fisher(views=views, delta=1e-3, storage=storage)


def assert_same(model, other):
    assert model.gap_ <= 1e-6
    np.testing.assert_allclose(model.weights_, other.weights_, atol=1e-8)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8 * np.abs(other.coef_).max())
    assert model.threshold_ == pytest.approx(other.threshold_, abs=1e-8)


def test_a_fit_on_the_cluster_equals_one_here(client, rows, here):
    assert_same(a_model("dask").fit(rows, client=client), here)


def test_the_active_client_is_used(client, rows, here):
    assert_same(a_model("dask").fit(rows), here)


@pytest.mark.parametrize("how_many", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_killing_workers_in_the_middle_changes_nothing(client, rows, here, monkeypatch, how_many):
    """One: the scheduler runs its tasks elsewhere. Both: the rows are scattered anew."""
    client.wait_for_workers(2)
    victims = list(client.run(os.getpid).values())[:how_many]
    submitted, passes = [], []
    submit, sweep = client.submit, DistributedStack._one_sweep

    def count_pass(self, *args):
        passes.append(len(submitted))
        return sweep(self, *args)

    def submit_and_kill(function, *args, **kwargs):
        submitted.append(function)
        if len(passes) == 3 and len(submitted) == passes[-1] + 2:  # amid the third pass
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
        return submit(function, *args, **kwargs)

    monkeypatch.setattr(client, "submit", submit_and_kill)
    monkeypatch.setattr(DistributedStack, "_one_sweep", count_pass)
    model = a_model("dask").fit(rows, client=client)
    assert len(passes) > 3
    for pid in victims:  # they are really gone
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert_same(model, here)


def test_a_worker_that_dies_costs_scores_by_partition_nothing_but_time(client, rows):
    """Each partition meets all training rows; those of a lost worker are scored elsewhere."""
    da = pytest.importorskip("dask.array")
    model, new = MultiKernelFisherNull().fit(rows), np.tile(rows[::-1], (40, 1)) + 0.1
    client.wait_for_workers(2)
    scores = client.compute(model.score_samples(da.from_array(new, chunks=(100, 6))))
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    np.testing.assert_allclose(scores.result(timeout=120), model.score_samples(new), rtol=1e-12)


def test_a_cluster_without_workers_is_an_error_after_a_while(rows):
    with (
        distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(ClusterError, match=r"no workers after 0.5 s.*dask worker"),
    ):
        DistributedStack(some_kernel_set(some_rows()), client=client, timeout=0.5)


def test_no_client_is_an_error(monkeypatch):
    def none():
        raise ValueError("No clients found")

    monkeypatch.setattr(distributed, "default_client", none)
    with pytest.raises(ClusterError, match="no active Dask client"):
        DistributedStack(some_kernel_set(some_rows()))


def test_a_closed_client_is_an_error_that_says_so():
    with distributed.Client(
        n_workers=1, processes=False, dashboard_address=":0", set_as_default=False
    ) as client:
        stack = DistributedStack(some_kernel_set(some_rows()), client=client)
    for use in (
        lambda: DistributedStack(some_kernel_set(some_rows()), client=client),
        lambda: stack.products(np.ones(stack.n)),
    ):
        with pytest.raises(ClusterError, match=r"client .* is closed\. Create another"):
            use()
