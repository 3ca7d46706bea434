"""Reasons by column from Python, and reasons of rows with gaps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf

from kernull import Judge, MultiKernelFisherNull, TableViews
from kernull.detector import assign_folds
from kernull.detector.cross_fit import dense_ranks
from kernull.detector.usual import FOLDS, UsualValues
from kernull.explain import ColumnReason, column_reasons

pytestmark = pytest.mark.filterwarnings("ignore::kernull.errors.GapsWarning")


def parts(n=250, seed=0):
    rng = np.random.default_rng(seed)
    load = rng.normal(size=n)
    return {f"s{j}": load * (j + 1) + 0.2 * rng.normal(size=n) for j in range(4)}


@pytest.fixture(scope="module")
def model():
    return Judge().fit(parts())


def test_a_cell_that_was_filled_in_is_a_gap_and_no_value(model):
    new = {name: values[:1].copy() for name, values in parts(seed=1).items()}
    for gap in ("s0", "s1", "s3"):
        row = {**new, "s2": new["s2"] + 15.0, gap: np.array([np.nan])}
        found = model.explain(row).table(by="column")
        assert found[0]["column"] == "s2"
        words = [reason["words"] for reason in found if reason["column"] == gap]
        assert words == [f"{gap} is empty; 250 of 250 normal rows have a value."]


def test_a_row_of_one_measured_cell_has_one_value_for_a_reason(model):
    row = {"s0": [np.nan], "s1": [30.0], "s2": [np.nan], "s3": [np.nan]}
    found = model.explain(row).table(by="column")
    assert [reason["column"] for reason in found if reason["value"]] == ["s1"]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_come_back_as_they_came(model, library):
    frames = pytest.importorskip(library)
    new = parts(n=20, seed=2)
    new["s1"][3] = 40.0
    found = model.explain(frames.DataFrame(new)).table(by="column")
    assert isinstance(found, frames.DataFrame)
    assert {"row", "column", "value", "low", "high", "words"} <= set(found.columns)
    usual = model.explain(frames.DataFrame(parts()).head(1)).table(by="column")
    assert isinstance(usual, frames.DataFrame)
    assert list(usual.columns) == list(found.columns)
    assert len(usual) == 0
    plain = MultiKernelFisherNull().fit(frames.DataFrame(parts()))
    table = plain.explain(frames.DataFrame(new)).table()
    assert isinstance(table, frames.DataFrame)
    assert len(table) == 20
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        nameless = plain.explain(np.column_stack(list(new.values())))
    assert isinstance(nameless.table(), list)


def test_words_of_categories_claim_no_more_than_is_known():
    common = ColumnReason("shift", "early", "late", None, None, 0.32, -7.0, -5.0, sure=False)
    assert common.words == (
        "shift is 'early', as in 32% of the normal rows; "
        "the value is not rare, its combination with the others is."
    )
    rare = ColumnReason("shift", "early", "late", None, None, 0.02, -7.0, -5.0, sure=False)
    assert rare.words == "shift is 'early', as in 2% of the normal rows."
    odd = ColumnReason("mould", "B", "A", None, None, 1 / 400, -7.0, -5.0)
    assert odd.words == "mould is 'B', as in 1 in 400 normal rows; rows like this have 'A'."


def test_rows_flagged_for_their_gaps_say_so():
    rng = np.random.default_rng(0)
    normal = dict(zip("abcd", rng.normal(size=(4, 200)), strict=True))
    model = Judge(MultiKernelFisherNull(), TableViews()).fit(normal)
    new = {"a": [0.0, 0.0, 9.0], "b": [0.0] * 3, "c": [0.0] * 3, "d": [np.nan, 0.0, 0.0]}
    found = model.explain(new).table(by="column")
    assert [(reason["row"], reason["column"]) for reason in found] == [(0, "d"), (2, "a")]
    assert found[0]["words"] == "d is empty; 200 of 200 normal rows have a value."
    assert found[1]["value"] == "9"


def orders(n=300, seed=0):
    """Amounts, counts and shares, which are never negative; heat goes with load."""
    rng = np.random.default_rng(seed)
    load = rng.normal(size=n)
    return {
        "heat": 50 + 5 * load + rng.normal(size=n),
        "load": 10 + 2 * load + 0.3 * rng.normal(size=n),
        "amount": np.exp(rng.normal(4, 1, size=n)),
        "defects": rng.poisson(1.5, size=n).astype(float),
        "share": rng.beta(1, 8, size=n),
    }


@pytest.fixture(scope="module")
def of_orders():
    return Judge().fit(orders())


def test_usual_ranges_stay_within_what_was_seen(of_orders, tmp_path):
    new, usual = orders(60, seed=1), orders()
    for k, (name, values) in enumerate(new.items()):
        values[10 * k : 10 * k + 10] += 8 * usual[name].std()
    new["heat"][50:], new["load"][50:] = new["load"][50:].copy(), new["heat"][50:].copy()
    of_orders.save(tmp_path / "model.kernull")
    for model in (of_orders, Judge.load(tmp_path / "model.kernull")):
        found = model.explain(new).table(by="column")
        assert {reason["column"] for reason in found} == set(usual)
        for reason in (reason for reason in found if reason["low"] is not None):
            seen = usual[reason["column"]]
            near = 1e-6 * np.abs(seen).max()  # files keep seven digits
            assert seen.min() - near <= reason["low"] < reason["high"] <= seen.max() + near
            assert seen.min() - near <= float(reason["expected"]) * 1.005


def test_where_nothing_of_the_range_was_seen_the_column_speaks_for_itself(of_orders):
    row = {name: [float(np.median(values))] for name, values in orders().items()}
    row["heat"], row["load"] = row["load"], [71.0]
    found = of_orders.explain(row).table(by="column")
    load = next(reason for reason in found if reason["column"] == "load")
    low, high = np.quantile(orders()["load"], [0.05, 0.95])
    assert (load["low"], load["high"]) == pytest.approx((low, high), rel=0.01)
    assert load["words"] == (
        f"load is 71; {load['low']:.3g} to {load['high']:.3g} is usual; "
        "none of 300 normal rows has a value so high."
    )
    # The share is that of the column by itself, counted.
    filler, seen = of_orders.usual_values(), orders()["load"]
    for value in (6.0, 9.0, 13.0):
        far = abs(value - seen.mean())
        counted = (np.abs(seen - seen.mean()) >= far).mean()
        assert filler.share_as_far(1, far, alone=True) == pytest.approx(counted, abs=0.011)


def test_a_value_that_no_row_had_is_rare_whatever_the_other_columns_say():
    rows = np.column_stack([orders()["heat"], orders()["load"]])
    filler = UsualValues.fit(rows)
    for end, sign in ((rows[:, 1].min(), -1), (rows[:, 1].max(), 1)):
        assert not filler.beyond_seen(1, end)
        row = np.array([[50.0 + 2.5 * (end - 10.0), end + 0.3 * sign]])  # both low, or both high
        away = float(row[0, 1] - filler.predict(row)[0, 1])
        assert filler.share_as_far(1, away) > 0.02
        (reason,) = column_reasons(lambda Z: -np.abs(Z[:, 1] - 10.0), row, filler, most=1)[0]
        assert (reason.column, reason.share) == ("x1", 1 / 301)


def left_out_residuals(X):
    """By scikit-learn's shrunk covariance of the other folds."""
    fold, out = assign_folds(dense_ranks(X), FOLDS), np.empty(X.shape)
    for k in np.unique(fold):
        rest, held, d = X[fold != k], fold == k, X.shape[1]
        mean, scale = rest.mean(axis=0), rest.std(axis=0)
        S = ledoit_wolf((rest - mean) / scale, assume_centered=True)[0] + 1e-6 * np.eye(d)
        Z = (X[held] - mean) / scale
        for j in range(d):
            o = np.arange(d) != j
            slopes = np.linalg.solve(S[np.ix_(o, o)], S[o, j])
            out[held, j] = scale[j] * (Z[:, j] - Z[:, o] @ slopes)
    return out


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(5, 300),
    kind=st.sampled_from(["normal", "standard_cauchy", "exponential", "geometric"]),
    seed=st.integers(0, 99),
)
def test_none_is_said_only_beyond_the_farthest_row(n, kind, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=n), getattr(rng, kind)(*([0.4] * (kind == "geometric")), size=n)]
    )
    filler = UsualValues.fit(X)
    filler = replace(filler, residuals=filler.residuals.astype("f4").astype(float))  # as in a file
    left = np.abs(left_out_residuals(X))
    for j in (0, 1):
        for far in np.sort(left[:, j])[[-1, -2, -3, n // 2]]:
            counted = (left[:, j] >= far * (1 - 1e-9)).mean()
            share = filler.share_as_far(j, far)
            reason = ColumnReason("a", "9", "1", 0.0, 2.0, share, -1.0, 0.0, 9.0, n)
            assert "none" not in reason.words
            assert counted / 4 <= share + 2 / min(n, 100)
            assert share <= 4 * counted + 2 / min(n, 100)
        beyond = replace(reason, share=filler.share_as_far(j, left[:, j].max() * 1.01))
        assert beyond.words.endswith(f"none of {n} normal rows is as far off.")


@settings(deadline=None, max_examples=60)
@given(expected=st.floats(-1e3, 1e3), low=st.floats(-50, 0), high=st.floats(0, 50))
def test_ranges_are_cut_to_what_was_seen_or_are_none(expected, low, high):
    filler = UsualValues.fit(np.linspace(0.0, 20.0, 50)[:, None])
    residuals = np.linspace(low, high, len(filler.residuals))[:, None]
    filler = replace(filler, residuals=residuals)
    found = filler.usual_range(0, expected)
    a, b = expected + residuals[5, 0], expected + residuals[95, 0]
    if b < 0.0 or a > 20.0:
        assert found is None
    elif found is not None:
        assert found == (max(a, 0.0), min(b, 20.0))
    else:
        assert a < b  # one end alone was seen
        assert max(a, 0.0) == min(b, 20.0)


def test_dates_are_told_as_dates():
    """A clock that is learned from has parts on circles, which nobody wants to read."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2026-01-05") + 7 * rng.integers(0, 20, 300) + rng.integers(0, 4, 300)
    minutes = (60 * rng.normal(13, 2, size=300)).astype(int)
    rows = {"at": [str(d) for d in days + minutes.astype("timedelta64[m]")]}
    rows["x"] = rng.normal(size=300)
    model = Judge(MultiKernelFisherNull(), TableViews(dates="parts")).fit(rows)
    night, saturday = "2026-06-03T03:00", "2026-06-06T13:00"
    found = model.explain({"at": [night, saturday], "x": [0.0, 0.0]}).table(by="column")
    assert all(reason["share"] < 0.05 for reason in found)
    assert [reason["words"] for reason in found] == [
        f"at is {night}; it stands out by its time of day.",
        f"at is {saturday}; it stands out by its day of the week.",
    ]
    rows["at"] = [f"{m // 60 % 24:02}:{m % 60:02}" for m in minutes]
    model = Judge(MultiKernelFisherNull(), TableViews(dates="parts")).fit(rows)
    (reason,) = model.explain({"at": ["03:15"], "x": [0.0]}).table(by="column")
    assert reason["words"] == "at is 03:15; it stands out by its time of day."


def test_a_value_in_the_usual_range_is_not_called_far_off():
    """Of whole numbers the range is that of whole numbers, which the expected one is not."""
    told = ColumnReason("b", "1", "1", 1.0, 1.0, 0.1, -7.0, -3.0, number=1.0, rows=300)
    assert told.words.startswith("b is 1, the usual value for rows like this; few normal rows")
    assert "about 1 in 10 is as far off" in replace(told, number=0.0, value="0").words


def test_suspects_do_not_make_a_range_usual(tmp_path):
    dirty = parts()
    dirty["s1"][:20] = np.linspace(90.0, 100.0, 20)
    model = Judge(MultiKernelFisherNull(contamination=0.1), TableViews()).fit(dirty)
    model.save(tmp_path / "m.kernull")
    new = {name: values[:1].copy() for name, values in parts(seed=1).items()} | {"s1": [95.0]}
    for known in (model, Judge.load(tmp_path / "m.kernull")):
        (reason, *_) = known.explain(new).table(by="column")
        assert reason["column"] == "s1"
        assert reason["high"] < 20.0
    with pytest.raises(AttributeError) as told:
        _ = model.model_.rarity
    assert "contamination" in str(told.value.__cause__)


def test_words_of_a_number_do_not_contradict_its_range():
    inside = ColumnReason("x", "5", "6", 2.0, 9.0, 0.4, 0.1, 0.7, 5.0, 300)
    assert inside.words == (
        "x is 5, within the usual 2 to 9 for rows like this; few normal rows have it together "
        "with the rest."
    )
    kelvin = ColumnReason("T", "293", "293", 293.07, 293.23, 1 / 301, 0.1, 0.7, 293.4, 300)
    assert kelvin.words.startswith("T is 293.4; 293.1 to 293.2 is usual")
    rng = np.random.default_rng(0)
    rows = {"T": 293.15 + 0.05 * rng.normal(size=200), "z": rng.normal(size=200)}
    model = Judge().fit(rows)
    (reason,) = model.explain({"T": [293.4], "z": [0.0]}).table(by="column")
    assert reason["value"] == "293.4"
