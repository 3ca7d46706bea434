"""The package as a whole: what an import brings, and what it does not."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kernull
import kernull.estimators
from kernull import paper


def test_import_pulls_in_nothing_heavy():
    code = (
        "import sys, kernull; dir(kernull); heavy = {'torch', 'dask', 'cvxpy', 'matplotlib', "
        "'pandas', 'polars', 'sklearn', 'scipy'}; print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_a_fit_pulls_in_no_extra():
    code = (
        "import sys, numpy as np, kernull; kernull.MultiKernelFisherNull().fit(np.eye(30)); "
        "heavy = {'torch', 'dask', 'cvxpy', 'matplotlib', 'polars'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_there():
    for name in kernull.__all__:
        assert getattr(kernull, name) is not None
        assert name in dir(kernull)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = kernull.no_such_name


@pytest.mark.parametrize("name", ["mkl", "splitters", "paper", "errors", "datasets", "tables"])
def test_modules_need_no_import_of_their_own(name):
    code = f"import kernull; print(kernull.{name}.__name__)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == f"kernull.{name}"


@pytest.mark.parametrize("name", kernull._removed.TO_PAPER)
def test_names_that_moved_say_where_they_are(name):
    with pytest.raises(AttributeError, match=f"from kernull.paper import {name}$"):
        getattr(kernull, name)
    assert not hasattr(kernull.estimators, name)
    assert name not in dir(kernull)
    assert getattr(paper, name).__name__ == name
