"""A bank and its weighted sum in one go, against one after the other."""

import importlib

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel

from kernull.kernels import functions as module
from kernull.stacks import KernelSet, fit_and_combine, kernel_set

VIEWS = {"a": np.arange(3), "b": np.arange(3, 5), "c": np.arange(5, 6)}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kernels", "widths"),
    [
        ("rbf", 0.5),
        ("rbf", [0.25, 1.0]),
        (["rbf", "laplacian", "linear", linear_kernel], 0.5),
        (["rbf", "rbf"], 0.5),
    ],
)
@pytest.mark.parametrize("scaling", ["standard", "whiten"])
def test_is_fit_then_combine(kernels, widths, scaling, weighted, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", 16)
    monkeypatch.setattr("kernull.stacks.kernel_set.BLOCK_ROWS", 16)
    rng = np.random.default_rng(0)
    X = 50 + rng.normal(size=(45, 6))
    weight = rng.integers(1, 4, 45).astype(float) if weighted else None
    options = {"kernels": kernels, "widths": widths, "scaling": scaling, "sample_weight": weight}
    expected = KernelSet.fit(X, VIEWS, **options)
    b = rng.uniform(size=expected.J)
    b[1] = 0.0
    bank, K = fit_and_combine(X, VIEWS, b, expected.kernel_names, **options)
    np.testing.assert_allclose(K, expected.combine(b), atol=1e-12)
    np.testing.assert_allclose(K, np.tensordot(b, expected.stack().kernels, 1), atol=1e-12)
    assert bank.kernel_names == expected.kernel_names
    assert [k.width for v in bank.views for k in v.kernels] == pytest.approx(
        [k.width for v in expected.views for k in v.kernels]
    )


def test_widths_of_a_sample_of_rows(monkeypatch):
    """Beyond some rows the width is that of a sample, whose distances are of no use."""
    monkeypatch.setattr(module, "EXACT_ROWS", 20)
    X = np.random.default_rng(0).normal(size=(30, 6))
    bank, K = fit_and_combine(X, VIEWS, np.ones(3), list(VIEWS))
    np.testing.assert_allclose(K, bank.combine(np.ones(3)), atol=1e-12)


def test_distances_are_computed_once(monkeypatch):
    calls = []
    for name in (
        "kernels.functions.squared_blocks",
        "kernels.functions.euclidean_distances",
        "stacks.kernel_set.squared_blocks",
    ):
        module_name, function = f"kernull.{name}".rsplit(".", 1)
        original = getattr(importlib.import_module(module_name), function)
        monkeypatch.setattr(
            f"kernull.{name}",
            lambda *a, original=original, **k: (calls.append(1), original(*a, **k))[1],
        )
    fit_and_combine(np.random.default_rng(0).normal(size=(30, 6)), VIEWS, np.ones(3), list(VIEWS))
    assert len(calls) == len(VIEWS)


@pytest.mark.parametrize(("kept", "made"), [(2**24, 0), (30 * 30, 4)])
def test_kernels_of_a_fit_are_made_of_the_distances_that_gave_widths(kept, made, monkeypatch):
    """All of them, or where few are kept, those of two of the six scaled views."""
    monkeypatch.setattr(kernel_set, "KEPT_CELLS", kept)
    X, known, calls = np.random.default_rng(0).normal(size=(30, 6)), [], []
    views = {"a": np.arange(3), "b": np.arange(3, 6)}
    bank = KernelSet.fit(X, views, scaling="auto", distances_out=known)
    original = kernel_set.squared_blocks
    monkeypatch.setattr(kernel_set, "squared_blocks", lambda X: (calls.append(1), original(X))[1])
    found = bank.stack(known=known).kernels
    assert len(calls) == made
    np.testing.assert_array_equal(found, bank.stack().kernels)


@pytest.mark.parametrize("scaling", ["auto", ("none", "whiten")])
def test_views_in_several_scalings(scaling):
    X = np.random.default_rng(1).normal(size=(30, 3))
    views = {"a": np.array([0, 1]), "b": np.array([2])}
    options = {"scaling": scaling, "widths": "auto"}
    whole = KernelSet.fit(X, views, **options)
    b = np.linspace(0.2, 0.8, whole.J)
    bank, K = fit_and_combine(X, views, b, whole.kernel_names, **options)
    assert bank.kernel_names == whole.kernel_names
    np.testing.assert_allclose(K, whole.combine(b), rtol=1e-12)
