"""Dates that come straight to an estimator are named, never taken for numbers."""

import numpy as np
import pytest

from kernull import MultiKernelFisherNull
from kernull.paper import MultiKernelSVDD

TIMES = np.datetime64("2025-01-01", "ms") + np.arange(30)


@pytest.mark.parametrize("estimator", [MultiKernelFisherNull, MultiKernelSVDD])
@pytest.mark.parametrize("values", [TIMES, TIMES - TIMES[0]])
@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
def test_dates_are_refused_in_words(estimator, values, library):
    if library == "numpy":
        table, name = values[:, None], "x0"
    else:
        frames = pytest.importorskip(library)
        table, name = frames.DataFrame({"force": np.arange(30.0), "when": values}), "when"
    with pytest.raises(ValueError, match=rf"\['{name}'\] are not numeric.*TableViews"):
        estimator().fit(table)


def test_dates_that_no_view_reads_may_stay():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=30), "b": rng.normal(size=30), "when": TIMES})
    model = MultiKernelFisherNull(views={"all": ["a", "b"]}).fit(table)
    assert len(model.predict(table[:20])) == 20
