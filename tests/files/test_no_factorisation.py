"""A model from a file scores and explains without factorising anything of training size."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.linalg.lapack
from typer.testing import CliRunner

import kernull
import kernull.cli  # what it imports later finds the patches in its libraries
import kernull.files
from kernull.cli._app import app

#: What factorises, inverts or solves, by library; names that a version lacks are passed over.
NAMES = {
    scipy.linalg: [
        "cholesky",
        "cho_factor",
        "cho_solve",
        "inv",
        "pinv",
        "pinvh",
        "eigh",
        "eigvalsh",
        "svd",
        "qr",
        "lu_factor",
        "solve",
        "solve_triangular",
        "lstsq",
    ],
    scipy.linalg.lapack: [
        "dpotrf",
        "dpotri",
        "dpotrs",
        "dtrtri",
        "dtrtrs",
        "dsyevd",
        "dsyevr",
        "dgetrf",
        "dgesdd",
    ],
    np.linalg: ["cholesky", "inv", "pinv", "eigh", "eigvalsh", "svd", "qr", "solve", "lstsq"],
}


@pytest.fixture
def shapes(monkeypatch):
    """Shapes of the matrices that are factorised from here on."""
    seen = []
    for library, names in NAMES.items():
        for name in names:
            plain = getattr(library, name)

            def counted(a, *args, plain=plain, name=name, **options):
                matrix = a[0] if isinstance(a, tuple) else a
                seen.append((name, np.shape(matrix)))
                return plain(a, *args, **options)

            monkeypatch.setattr(library, name, counted)
            for key, module in list(sys.modules.items()):
                if key.startswith("kernull"):
                    for own in [k for k, value in vars(module).items() if value is plain]:
                        monkeypatch.setattr(module, own, counted)
    return seen


@pytest.mark.parametrize("n", [400, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("decision", ["evidence", "sum"])
def test_scoring_and_explaining_factorise_nothing_large(n, decision, shapes, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    views = {"a": [0, 1], "b": [2, 3]}
    model = kernull.MultiKernelFisherNull(views=views, decision=decision).fit(X)
    largest = max(max(shape) for _, shape in shapes)
    assert largest >= n  # the patches see what a fit does
    kernull.save(model, tmp_path / "model.kernull")
    views = {"a": ["x0", "x1"], "b": ["x2", "x3"]}
    judge = kernull.Judge(kernull.MultiKernelFisherNull(decision=decision), views).fit(X)
    judge.save(tmp_path / "judge.kernull")
    new = rng.normal(size=(5, 4)) + 3.0
    shapes.clear()

    loaded = kernull.load(tmp_path / "model.kernull")
    assert len(loaded.explain(new).scores) == len(new)
    loaded.p_values(new)
    loaded.predict(new)
    np.testing.assert_array_equal(loaded.score_samples(new), model.score_samples(new))

    table = tmp_path / "new.csv"
    table.write_text("x0,x1,x2,x3\n" + "\n".join(",".join(map(str, row)) for row in new) + "\n")
    done = CliRunner().invoke(app, ["score", str(tmp_path / "judge.kernull"), str(table)])
    assert done.exit_code == 0, done.output
    assert [found for found in shapes if max(found[1], default=0) >= n / 2] == []
