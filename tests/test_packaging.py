"""Wheel and sdist: built, installed into an empty environment, and tried (``make package``)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

SMOKE = """
import kernull
from sklearn.datasets import load_wine
X, y = load_wine(return_X_y=True)
model = kernull.MultiKernelFisherNull(views="features").fit(X[y == 0])
kernull.save(model, "wine.kernull")
assert (kernull.load("wine.kernull").score_samples(X) == model.score_samples(X)).all()
from kernull import Judge
assert Judge().fit(X).report(X, "report.html").stat().st_size < 10**6
import csv
with open("wine.csv", "w", newline="") as file:
    csv.writer(file).writerows([[f"c{i}" for i in range(13)], *X[y == 0].tolist()])
print(kernull.__file__)
"""


def run(*command: object, cwd: Path) -> str:
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env=clean, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    pytest.importorskip("build", reason="the package build is not installed")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", out, ROOT, cwd=out)
    return out


@pytest.mark.slow
def test_the_wheel_holds_the_assets_and_no_tests(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("report.html.jinja", "style.css", "script.js"):
        assert f"kernull/report/assets/{needed}" in names
    assert "kernull/py.typed" in names
    assert all(re.match(r"kernull(-[\d.]+\.dist-info)?/", name) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_installs_and_works_in_an_empty_environment(built, tmp_path, kind):
    (package,) = built.glob(kind)
    venv.create(tmp_path / "env", with_pip=True)
    bin_ = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin")
    run(bin_ / "python", "-m", "pip", "install", "-q", package, cwd=tmp_path)
    assert str(tmp_path) in run(bin_ / "python", "-c", SMOKE, cwd=tmp_path)
    run(bin_ / "kernull", "fit", "wine.csv", "-o", "m.kernull", "--views", "features", cwd=tmp_path)
    scores = run(bin_ / "kernull", "score", "m.kernull", "wine.csv", "-q", cwd=tmp_path)
    assert scores.count("\n") == 60
    run(bin_ / "kernull", "--help", cwd=tmp_path)  # the first start compiles
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run(bin_ / "kernull", "--help", cwd=tmp_path)
        times.append(time.perf_counter() - start)
    assert min(times) < 1.0


def test_the_release_is_of_one_version():
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/kernull/_version.py").read_text())
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert version is not None
    assert f"version: {version.group(1)}" in citation
    assert "2008.08642" in citation  # the paper
