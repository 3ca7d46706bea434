"""What `make fuzz` does for minutes, in seconds; and the failures of the past, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fuzz import cases, corpus, models
from benchmarks.fuzz.__main__ import TARGETS, make

NEEDS = {"files": ("openpyxl", "pyarrow", "python_calamine")}
#: The browser has tests of its own, in tests/report.
QUICK = [name for name in TARGETS if name not in ("models", "pages")]


@pytest.fixture(scope="module")
def originals():
    return models.samples()


@pytest.mark.parametrize("name", corpus.MODELS)
def test_model_files_of_the_past(name, originals, tmp_path):
    data = corpus.MODELS[name](originals)
    expected = "works" if name in corpus.WORKING else "refused"
    assert models.try_file(data, tmp_path) == expected


def test_valid_models_work(originals, tmp_path):
    assert {models.try_file(data, tmp_path) for data in originals} == {"works"}


@pytest.mark.parametrize("name", QUICK)
def test_a_few_cases_of_every_target(name, monkeypatch):
    monkeypatch.setattr(cases, "MAX_MEGABYTES", float("inf"))  # other tests ran in this process
    for needed in NEEDS.get(name, ()):
        pytest.importorskip(needed)
    target = make(name)
    report = cases.run_cases(name, target, seed=0, seconds=60, most=15)
    getattr(target, "close", lambda: None)()
    assert report.findings == []
    assert report.cases > 15  # the corpus too


class Bad:
    """A target of which every case is a finding of another kind."""

    def __init__(self, action):
        self.action = action

    def case(self, rng, folder):
        return "case", self.action

    def corpus(self, folder):
        return iter(())


def boom():
    raise KeyError("boom")


def program():
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", "0"], check=True)
    return "works"


def warns():
    import warnings

    warnings.warn("heard", UserWarning, stacklevel=1)
    return "works"


def slow():
    values = np.zeros(10)
    while cases.time.process_time() < slow.until:
        values += 1
    return "works"


@pytest.mark.parametrize(
    ("action", "said"),
    [(boom, "KeyError"), (program, "subprocess.Popen"), (warns, "UserWarning"), (slow, "took")],
)
def test_findings_are_found(action, said, monkeypatch):
    monkeypatch.setattr(cases, "MAX_SECONDS", 0.2)
    monkeypatch.setattr(cases, "MAX_MEGABYTES", float("inf"))  # other tests ran in this process
    slow.until = cases.time.process_time() + 0.3
    report = cases.run_cases("bad", Bad(action), seed=3, seconds=60, most=1)
    assert len(report.findings) == 1
    assert said in report.findings[0]
    assert "--seed 3 --case 0" in report.findings[0]
