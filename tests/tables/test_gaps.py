"""Gaps in tables: how they are filled, counted and judged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from kernull import Judge, MultiKernelFisherNull, TableViews, load_views, save
from kernull.detector.usual import UsualValues
from kernull.errors import GapsWarning, TableError
from kernull.tables import GapFiller
from kernull.tables.cells import as_numbers
from tests.tables.test_views import factory

pytestmark = pytest.mark.filterwarnings("ignore::kernull.errors.GapsWarning")


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_gaps_are_filled_by_regression_on_the_rest(seed):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    X = rng.normal(size=(4000, 5)) * [0.5, 0.7, 1.0, 1.5, 2.0] @ turn + 3.0
    filler = GapFiller.fit(X)
    row = X[:50].copy()
    row[:, [1, 3]] = np.nan
    want = LinearRegression().fit(X[:, [0, 2, 4]], X[:, [1, 3]]).predict(X[:50, [0, 2, 4]])
    # The covariance is shrunk a little: agreement is to a few percent of a spread.
    assert np.abs(filler.fill(row)[:, [1, 3]] - want).max() < 0.1 * X.std(axis=0)[[1, 3]].max()
    for j in range(5):
        alone = X[:20].copy()
        alone[:, j] = np.nan
        np.testing.assert_allclose(
            UsualValues.fit(X).predict(X[:20])[:, j], filler.fill(alone)[:, j], rtol=1e-6, atol=1e-6
        )


def test_whole_rows_are_not_touched_and_empty_rows_get_the_mean():
    X = np.random.default_rng(0).normal(size=(50, 3))
    filler = GapFiller.fit(X)
    np.testing.assert_array_equal(filler.fill(X), X)
    np.testing.assert_allclose(filler.fill(np.full((1, 3), np.nan))[0], X.mean(axis=0))


def test_what_is_filled_in_scatters_as_what_is_measured_does():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    X = np.column_stack([x, x + 0.5 * rng.exponential(size=20_000)])
    filler = GapFiller.fit(X)
    row = X.copy()
    row[:, 1] = np.nan
    found = filler.draw(row)[:, 1] - filler.fill(row)[:, 1]
    want = X[:, 1] - filler.fill(row)[:, 1]
    levels = [0.01, 0.1, 0.5, 0.9, 0.99]
    np.testing.assert_allclose(np.quantile(found, levels), np.quantile(want, levels), atol=0.3)
    assert abs(np.corrcoef(found, x)[0, 1]) < 0.1
    # A row that comes again, alone or among others, is filled in as before.
    np.testing.assert_array_equal(filler.draw(row[7:9]), filler.draw(row)[7:9])


@pytest.mark.parametrize(("learned", "new"), [(0.2, 0.0), (0.2, 0.2), (0.1, 0.1)])
def test_the_rate_holds_whether_training_or_new_rows_have_gaps(learned, new):
    """At 5%, 13% were flagged where only training rows had gaps."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        turn = np.linalg.qr(rng.normal(size=(12, 12)))[0] * np.linspace(0.5, 2.0, 12)
        X, Y = (rng.normal(size=(n, 12)) @ turn.T for n in (300, 400))
        X[rng.random(X.shape) < learned] = np.nan
        Y[rng.random(Y.shape) < new] = np.nan
        model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(X)
        found.append((model.predict(Y) == -1).mean())
    assert 0.035 < np.mean(found) < 0.065


@pytest.mark.parametrize(("learned", "new"), [(0.2, 0.0), (0.2, 0.2)])
def test_the_rate_holds_for_skewed_columns_that_hang_together(learned, new):
    """Where new rows have no gaps, those filled in make the threshold a little too careful."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        loadings = rng.normal(size=(2, 10))
        X, Y = (
            np.exp((rng.normal(size=(n, 2)) @ loadings + 0.05 * rng.normal(size=(n, 10))) / 1.5)
            for n in (300, 400)
        )
        X[rng.random(X.shape) < learned] = np.nan
        Y[rng.random(Y.shape) < new] = np.nan
        model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(X)
        found.append((model.predict(Y) == -1).mean())
    assert (0.02 if new == 0 else 0.03) < np.mean(found) < 0.065


def test_gaps_of_columns_that_repeat_are_filled_in_by_values_that_there_are():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, size=(100, 4)).astype(float)
    gaps = rng.random(X.shape) < 0.4
    X[gaps] = np.nan
    filled = GapFiller.fit(X).draw(X)
    assert np.isin(filled, np.arange(X[~gaps].max() + 1)).all()


def test_the_rate_holds_for_columns_that_are_mostly_zero():
    """By normal scores, in which rare values are far out, 60% were flagged."""
    digits = load_digits()
    X = np.random.default_rng(0).permutation(digits.data[digits.target < 5])
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(X[:500])
    assert (model.predict(X[500:]) == -1).mean() < 0.1


def test_gaps_where_training_rows_had_none_are_flagged():
    """They were filled in and forgotten."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 6)), rng.normal(size=(200, 6))
    X[rng.random(200) < 0.3, 0] = np.nan
    Y[:100, 1], Y[100:, 0] = np.nan, np.nan
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(X)
    flagged = model.predict(Y) == -1
    assert flagged[:100].all()
    assert flagged[100:].mean() < 0.12


def test_training_gaps_are_counted_and_filled():
    table = factory(100)
    table["force"][3] = table["force"][7] = None
    table["machine"][5] = ""
    with pytest.warns(GapsWarning, match="3 empty cells"):
        fitted = TableViews().fit(table)
    assert np.isfinite(fitted.transform(table)).all()
    with pytest.raises(TableError, match="3 cells cannot be used: column 'force', row 4"):
        TableViews(missing="error").fit(table)


def test_a_date_that_is_none_is_a_gap_too():
    """It was an IndexError."""
    days = [f"2024-01-{i % 28 + 1:02d} 10:{i:02d}" for i in range(60)]
    table = {"when": days, "a": np.random.default_rng(0).normal(size=60)}
    reader = TableViews(dates="parts", missing="error").fit(table)
    with pytest.raises(TableError, match="column 'when', row 2: 'soon' is not a date"):
        reader.transform({"when": [days[0], "soon"], "a": [0.0, 0.1]})


def test_rows_without_any_value_are_flagged():
    """They were normal with p = 0.94."""
    rng = np.random.default_rng(0)
    model = make_pipeline(TableViews(), MultiKernelFisherNull())
    model.fit({"a": rng.normal(size=80), "b": rng.normal(size=80), "k": ["u", "v"] * 40})
    new = {"a": [0.0, None, None], "b": [0.0, None, None], "k": ["u", None, "w"]}
    assert model.predict(new).tolist() == [1, -1, -1]
    judge = Judge().fit({"a": rng.normal(size=80), "b": rng.normal(size=80), "k": ["u", "v"] * 40})
    words = [r["words"] for r in judge.explain(new).table(by="column")]
    assert "a is empty; 80 of 80 normal rows have a value." in words
    assert "k is 'w'; this was never seen; the commonest is 'u', in 40 of 80 normal rows." in words


@given(st.lists(st.one_of(st.floats(), st.text(max_size=6), st.none(), st.integers()), min_size=1))
def test_every_cell_is_a_number_or_missing_or_bad(cells):
    values, missing, bad = as_numbers(cells)
    assert not (missing & bad).any()
    np.testing.assert_array_equal(np.isnan(values), missing | bad)


def test_a_date_that_is_not_there_is_filled_in_by_one_that_can_be():
    """The mean of places on a circle lies inside of it, far from every hour that there is."""
    rng = np.random.default_rng(2)

    def stamps(n):
        seconds = rng.integers(0, 140 * 86_400, n)
        at = np.datetime64("2026-01-05T00:00:00") + seconds.astype("timedelta64[s]")
        return {"at": [str(t) for t in at], "x": rng.normal(size=n), "y": rng.normal(size=n)}

    rows = stamps(300)
    rows["at"][::5] = [None] * 60
    table = TableViews(dates="parts").fit(rows)
    new = {**stamps(200), "at": [None] * 200}
    parts = table.read(new).X[:, table.blocks_[table.used_.index("at")]]
    np.testing.assert_allclose(np.hypot(parts[:, ::2], parts[:, 1::2]), 1.0)
    day = np.arctan2(parts[:, 2], parts[:, 3]) * 7 / (2 * np.pi)
    np.testing.assert_allclose(day, np.round(day), atol=1e-9)
    model = make_pipeline(TableViews(dates="parts"), MultiKernelFisherNull()).fit(rows)
    assert (model.predict(new) < 0).mean() < 0.1


def test_files_keep_what_is_drawn(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(80, 3))
    X[:, 1] += 1e6
    table = TableViews().fit(X)
    rows = X[:20].copy()
    rows[::2, 1], rows[1::2, 2] = np.nan, np.nan
    save(MultiKernelFisherNull().fit(X), tmp_path / "m.kernull", table=table)
    again = load_views(tmp_path / "m.kernull")
    np.testing.assert_array_equal(again.transform(rows), table.transform(rows))
