"""A kernel or a scaling that is named and has no rule is refused, never taken for another."""

from __future__ import annotations

import numpy as np
import pytest

from kernull import MultiKernelFisherNull
from kernull.kernels import KERNELS, FittedKernel
from kernull.kernels.functions import KernelSpec
from kernull.views import ViewScaler, scaling
from kernull.views.scaling import unseen_step
from tests.needs import NO_TORCH

X = np.random.default_rng(0).normal(size=(40, 3))
#: A new entry, and the metric of its distance.
NEW = [("matern", "euclidean"), ("canberra", "manhattan"), ("sigmoid", None)]


@pytest.fixture(params=NEW, ids=lambda entry: entry[0])
def kernel(request, monkeypatch):
    name, metric = request.param
    monkeypatch.setitem(KERNELS, name, metric)
    return FittedKernel(name, width=1.0, factor=1.0, centre=np.zeros(3))


@pytest.fixture
def added(monkeypatch):
    monkeypatch.setattr(scaling, "SCALINGS", (*scaling.SCALINGS, "robust"))
    mean, scale = np.zeros(3), np.ones(3)
    return ViewScaler("robust", mean, scale, np.eye(3), np.ones(3))


def refused(call, *args):
    with pytest.raises(NotImplementedError, match="no rule here"):
        call(*args)


def test_kernels_that_are_only_named_are_refused(kernel):
    refused(KernelSpec(kernel.kind).fit, X)
    refused(MultiKernelFisherNull(kernels=kernel.kind).fit, X)
    refused(MultiKernelFisherNull(kernels=["rbf", kernel.kind], storage="tiled").fit, X)
    refused(kernel, X)
    refused(kernel, X, X[:5])
    refused(kernel.diagonal, X)
    refused(kernel.distances, X)
    refused(kernel.of_distances, np.ones((2, 2)))


@pytest.mark.torch
def test_kernels_that_are_only_named_are_refused_on_a_device(kernel):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    from kernull.stacks.torch_tiled import TorchTiledStack

    stack = TorchTiledStack([torch.as_tensor(X)], [[kernel]])
    refused(stack.products, np.ones((40, 1)))


def test_scalings_that_are_only_named_are_refused(added):
    refused(ViewScaler.fit, "robust", X)
    refused(MultiKernelFisherNull(scaling="robust").fit, X)
    refused(MultiKernelFisherNull(scaling=("standard", "robust"), decision="sum").fit, X)
    refused(added.transform, X)
    refused(added.by_column, X)
    refused(added.inverse_transform, X)
    refused(unseen_step, "robust", 40)


@pytest.mark.torch
def test_scalings_that_are_only_named_are_refused_on_a_device(added, monkeypatch):
    torch = pytest.importorskip("torch", reason=NO_TORCH)
    from kernull.stacks import torch_kernel_set

    on_device = (*torch_kernel_set.SCALINGS_ON_DEVICE, "robust")
    monkeypatch.setattr(torch_kernel_set, "SCALINGS_ON_DEVICE", on_device)
    views = {"all": np.arange(3)}
    refused(
        lambda: torch_kernel_set.TorchKernelSet.fit(torch.as_tensor(X), views, scaling="robust")
    )
