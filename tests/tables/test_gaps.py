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
from kernull.tables.normal_scores import NormalScores
from tests.tables.test_views import factory


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
    found = filler.fill(row, scatter=True)[:, 1] - filler.fill(row)[:, 1]
    want = X[:, 1] - filler.fill(row)[:, 1]
    levels = [0.01, 0.1, 0.5, 0.9, 0.99]
    # A normal copula misses the 99% quantile of a sum of two kinds by 0.18, whatever is drawn.
    np.testing.assert_allclose(np.quantile(found, levels), np.quantile(want, levels), atol=0.2)
    assert abs(np.corrcoef(found, x)[0, 1]) < 0.1
    # A row that comes again, alone or among others, is filled in as before.
    np.testing.assert_array_equal(
        filler.fill(row[7:9], scatter=True)[:, 1] - want[7:9],
        (filler.fill(row, scatter=True)[7:9, 1] - want[7:9]),
    )


@pytest.mark.filterwarnings("ignore::kernull.errors.GapsWarning")
@pytest.mark.parametrize(("learned", "new"), [(0.2, 0.0), (0.2, 0.2), (0.0, 0.2)])
def test_the_rate_holds_whether_training_or_new_rows_have_gaps(learned, new):
    """At 5%, 13% were flagged where only training rows had gaps, 2% where only new ones had."""
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


@pytest.mark.filterwarnings("ignore::kernull.errors.GapsWarning")
@pytest.mark.parametrize(("learned", "new"), [(0.2, 0.0), (0.0, 0.2)])
def test_the_rate_holds_for_skewed_columns_that_hang_together(learned, new):
    """At 5%, 41% were flagged where new rows had gaps, 2% where training rows had."""
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
    assert 0.03 < np.mean(found) < 0.075


def test_values_beyond_the_largest_are_drawn_as_often_as_new_rows_have_them():
    rng = np.random.default_rng(0)
    beyond, drawn = [], []
    for _ in range(20):
        X = rng.lognormal(size=(100, 2))
        filler = GapFiller.fit(X)
        rows = np.column_stack([rng.lognormal(size=1000), np.full(1000, np.nan)])
        found = filler.fill(rows, scatter=True)[:, 1]
        beyond.append((found > X[:, 1].max()).mean())
        drawn.append((found <= 0.0).mean())
    assert 0.004 < np.mean(beyond) < 0.02  # 1/101, less or more by luck
    assert np.mean(drawn) < 0.01


@pytest.mark.filterwarnings("ignore::kernull.errors.GapsWarning")
def test_the_rate_holds_for_columns_that_are_mostly_zero():
    """By normal scores, in which rare values are far out, 60% were flagged."""
    digits = load_digits()
    X = np.random.default_rng(0).permutation(digits.data[digits.target < 5])
    new = X[500:].copy()
    new[np.random.default_rng(1).random(new.shape) < 0.1] = np.nan
    model = make_pipeline(TableViews(), MultiKernelFisherNull()).fit(X[:500])
    assert (model.predict(new) == -1).mean() < 0.1


def test_scores_and_values_are_each_others_inverse():
    x = np.random.default_rng(0).lognormal(size=(300, 1))
    shapes = NormalScores(np.quantile(x, np.linspace(0, 1, 101))[:, None], 300)
    x = x[(x > np.quantile(x, 0.01)) & (x < np.quantile(x, 0.99))][:, None]
    Z = shapes.scores(x)
    assert abs(Z.mean()) < 0.05
    assert 0.85 < Z.std() < 1.05
    np.testing.assert_allclose(shapes.values(Z), x, rtol=0.15)


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


def test_rows_with_gaps_are_flagged_where_that_is_asked():
    table = TableViews(missing="flag").fit(factory(100))
    model = MultiKernelFisherNull().fit(table.transform(factory(100)))
    new = factory(20, seed=1)
    new["power"][4] = None
    flags = model.predict(table.transform(new)) == -1
    assert flags[4]
    assert flags.sum() <= 5


def test_new_categories_are_flagged_where_that_is_asked():
    """The guide said so, and they were filled in."""
    new = factory(20, seed=1)
    new["machine"][4] = "Paris"
    for missing, flagged in (("flag", True), ("impute", False)):
        model = Judge(missing=missing)
        assert (model.fit(factory(100)).predict(new)[4] == -1) == flagged
        said = [r["words"] for r in model.explain(new).table(by="column") if r["row"] == 4]
        assert said == ["machine is 'Paris', which no training row has."]


def test_training_rows_with_gaps_are_not_put_far_away():
    """Gaps taught that far away is normal, where rows with gaps are to be flagged."""
    old, new = factory(100), factory(20, seed=1)
    for i in range(30):
        old["power"][i] = None
    new["force"][4] = None
    model = make_pipeline(TableViews(missing="flag"), MultiKernelFisherNull())
    with pytest.warns(GapsWarning, match="30 empty cells"):
        model.fit(old)
    flags = model.predict(new) == -1
    assert flags[4]
    assert flags.sum() <= 5


def test_rows_without_any_value_are_flagged_and_counted():
    """They were normal with p = 0.94, and nobody said a word."""
    rng = np.random.default_rng(0)
    model = make_pipeline(TableViews(), MultiKernelFisherNull())
    model.fit({"a": rng.normal(size=80), "b": rng.normal(size=80), "k": ["u", "v"] * 40})
    new = {"a": [0.0, None, None], "b": [0.0, None, None], "k": ["u", None, "w"]}
    with pytest.warns(GapsWarning, match=r"2 of 3 rows have no value to judge by \(first: row 2\)"):
        assert model.predict(new).tolist() == [1, -1, -1]
    judge = Judge().fit({"a": rng.normal(size=80), "b": rng.normal(size=80), "k": ["u", "v"] * 40})
    why = judge.explain(new)
    assert why.verdict(1).startswith("flagged, not judged: too many empty cells")
    assert why.words(2).startswith("flagged, not judged")


def test_a_view_of_which_most_is_missing_is_named():
    table = TableViews({"a": ["force", "power"], "b": ["celsius", "machine"]}).fit(factory(60))
    new = factory(3)
    new["force"][0] = new["power"][0] = new["celsius"][1] = None
    gone = table.missing_views(table.read(new).missing)
    assert gone["a"].tolist() == [True, False, False]
    assert gone["b"].tolist() == [False, False, False]


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

    table = TableViews(dates="parts").fit(rows := stamps(300))
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
