"""No part of kernull touches the warning filters of the process, which all threads share."""

from __future__ import annotations

import re
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

import kernull
from benchmarks.peers import compare
from kernull import Solver, load, save
from kernull.errors import ConstantViewWarning, collected, warn
from tests.plain import plain_fisher

pd = pytest.importorskip("pandas")
TABLE, Y = load_wine(return_X_y=True, as_frame=True)
TARGETS = TABLE[Y == 0]


@pytest.fixture
def own_filters(monkeypatch):
    """Categories of the filters that modules of kernull set, and not libraries that it calls."""
    seen = []

    def watch(name):
        original = getattr(warnings, name)

        def watched(action, *args, **options):
            if sys._getframe(1).f_globals.get("__name__", "").startswith("kernull"):
                seen.append((name, action))
            original(action, *args, **options)

        monkeypatch.setattr(warnings, name, watched)

    watch("simplefilter")
    watch("filterwarnings")
    return seen


def test_loading_sets_no_filter_and_warns_of_nothing(tmp_path, own_filters, recwarn):
    views = {"a": list(TABLE.columns[:3]), "b": list(TABLE.columns[3:])}
    for i, model in enumerate([plain_fisher(), plain_fisher(views=views)]):
        save(model.fit(TARGETS), tmp_path / f"{i}.kernull")
        again = load(tmp_path / f"{i}.kernull")
        assert list(again.feature_names_in_) == list(TABLE.columns)
    assert own_filters == []
    assert [str(w.message) for w in recwarn] == []


def test_loading_in_eight_threads_leaves_warnings_on(tmp_path):
    save(plain_fisher().fit(TARGETS), tmp_path / "m.kernull")
    interval = sys.getswitchinterval()
    with warnings.catch_warnings():  # whatever goes wrong here must not outlive the test
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(8) as pool:
                for done in [pool.submit(load, tmp_path / "m.kernull") for _ in range(64)]:
                    done.result()
        finally:
            sys.setswitchinterval(interval)
        # ("ignore", None, Warning, None, 0) is what simplefilter("ignore") leaves behind.
        assert ("ignore", None, Warning, None, 0) not in warnings.filters
        with pytest.warns(UserWarning, match="still heard"):
            warnings.warn("still heard", UserWarning, stacklevel=1)


def test_what_one_thread_collects_another_still_says():
    inside, told = threading.Event(), threading.Event()

    def quiet():
        with collected(UserWarning) as messages:
            warn("read", ConstantViewWarning)
            inside.set()
            assert told.wait(10)
        return messages

    with ThreadPoolExecutor(1) as pool:
        messages = pool.submit(quiet)
        assert inside.wait(10)
        with pytest.warns(ConstantViewWarning, match="heard"):
            warn("heard", ConstantViewWarning)
        told.set()
        assert messages.result() == ["read"]


def test_comparing_in_threads_leaves_the_filters_alone(own_filters):
    X = TARGETS.to_numpy()
    solver = Solver("gradient", max_iter=1)
    options = {"methods": ["lp MK-FN-Grad"], "views": {"a": [0, 1], "b": [2, 3]}, "solver": solver}
    test, labels = TABLE.to_numpy()[::3], np.where(Y[::3] == 0, 1, -1)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: compare(X, test, labels, **options), range(8)))
    assert {row.note for (row,) in found} == {"not converged"}
    assert own_filters == []


def test_names_that_do_not_match_are_still_told(tmp_path):
    save(plain_fisher().fit(TARGETS), tmp_path / "m.kernull")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        load(tmp_path / "m.kernull").score_samples(np.asarray(TARGETS))


def test_who_sets_filters_at_all():
    """The command line owns its process."""
    root = Path(kernull.__file__).parent
    text = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    found = {
        path.relative_to(root).as_posix()
        for path, source in text.items()
        if re.search(
            r"\bwarnings\.(catch_warnings|simplefilter|filterwarnings|resetw)\w*\(", source
        )
    }
    assert found == {"cli/_console.py"}
    assert [path for path, source in text.items() if "os.umask(" in source] == []
