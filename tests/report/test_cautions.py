"""What a report says of a model before it is trusted, and drift of columns of few values."""

import numpy as np
import pytest

from kernull import Judge, MultiKernelFisherNull, TableViews
from kernull.explain.drift import drifts
from kernull.report import render_report
from kernull.report._content import gather
from kernull.tables import as_table

pytestmark = pytest.mark.filterwarnings("ignore")


def parts(n, seed):
    rng = np.random.default_rng(seed)
    load = rng.normal(size=(n, 2))
    numbers = load @ MIX
    columns = {f"s{j}": numbers[:, j] + 0.3 * rng.normal(size=n) for j in range(6)}
    return {**columns, "machine": rng.choice(["A", "B", "C"], n).tolist()}


MIX = np.random.default_rng(0).normal(size=(2, 6))


def test_a_view_of_categories_alone_has_no_large_say():
    views = {"one": ["s0", "s1", "s2"], "two": ["s3", "s4", "s5"], "machine": ["machine"]}
    found = Judge(views=views).fit(parts(200, 1)).verdicts(parts(80, 2))
    content = gather(found)
    say = dict(content.views)
    assert sum(say.values()) == pytest.approx(1.0)
    assert say["machine"] < 0.5
    assert len(content.cautions) == 1
    assert "View 'machine'" in content.cautions[0]
    page = render_report(found)
    assert "counts less" in page
    assert "Judge.load" in page


def test_rows_that_were_set_aside_are_told():
    X = np.random.default_rng(3).normal(size=(100, 3))
    X[:4] += 8.0
    judge = Judge(MultiKernelFisherNull(contamination=0.04)).fit(X)
    said = gather(judge.verdicts(X[:20])).cautions
    assert said == (
        "4 training rows stood out and hardly count (rows 1, 2, 3, 4): the model knows that "
        "not all of them are normal.",
    )


def test_columns_of_few_values_drift_only_where_they_do():
    wrong = right = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 400))
        table = {"cavity": rng.integers(1, 5, 400), "article": rng.choice([1, 2, 9], 400), "a": a}
        views = TableViews().fit({**table, "b": b})
        new = {"cavity": rng.integers(1, 5, 300), "article": rng.choice([1, 2, 9], 300)}
        new |= {"a": rng.normal(size=300), "b": rng.normal(size=300)}
        wrong += len(drifts(views, as_table(new)))
        new["cavity"] = rng.choice([1, 2, 3, 4], 300, p=[0.05, 0.2, 0.25, 0.5])
        new["b"] = rng.normal(0.7, 1.0, 300)
        right += {drift.column for drift in drifts(views, as_table(new))} >= {"cavity", "b"}
    assert wrong <= 1  # of 120, at a thousandth each
    assert right == 30
