"""Tables with named columns: what no view reads does not matter; errors say what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_wine

import kernull
from benchmarks.peers.detectors import AveragedOneClassSVM
from kernull import JointMultiKernelFisherNull
from tests.plain import plain_fisher

WINE = load_wine(as_frame=True)
TABLE, Y = WINE.data, WINE.target
NAMED = {"taste": ["alcohol", "malic_acid"], "look": ["hue", "color_intensity"]}
TARGETS, OTHERS = TABLE[Y == 0], TABLE[Y == 2]


def messy(table):
    """The same rows with columns that no view reads: text, dates, gaps; in another order."""
    out = table.copy()
    out["vineyard"] = "north"
    out["bottled"] = pd.Timestamp("2020-01-01")
    out["ash"] = np.nan
    return out[sorted(out.columns)]


def test_columns_that_no_view_reads_may_hold_anything():
    clean = plain_fisher(views=NAMED).fit(TARGETS)
    model = plain_fisher(views=NAMED).fit(messy(TARGETS))
    assert model.n_features_in_ == TABLE.shape[1] + 2
    expected = clean.score_samples(OTHERS)
    np.testing.assert_allclose(model.score_samples(messy(OTHERS)), expected, rtol=1e-12)
    np.testing.assert_allclose(model.explain(messy(OTHERS)).scores, expected, rtol=1e-12)


def test_only_what_views_read_must_be_there_in_any_order():
    model = plain_fisher(views=NAMED).fit(TARGETS)
    expected = model.score_samples(OTHERS)
    few = OTHERS[["hue", "alcohol", "color_intensity", "malic_acid"]]
    np.testing.assert_array_equal(model.score_samples(few), expected)
    np.testing.assert_array_equal(model.score_samples(pl.from_pandas(few)), expected)
    np.testing.assert_array_equal(model.predict(messy(OTHERS)), model.predict(OTHERS))


def test_a_column_that_is_read_must_be_there():
    model = plain_fisher(views=NAMED).fit(TARGETS)
    with pytest.raises(ValueError, match=r"X: lacks the columns \['hue'\], which the model reads"):
        model.predict(OTHERS.drop(columns="hue"))
    with pytest.raises(ValueError, match=r"columns \['hue'\] are not numeric"):
        model.predict(messy(OTHERS.assign(hue="red")))


def test_columns_of_one_name_are_named():
    twice = TARGETS.rename(columns={"hue": "alcohol"})
    for model, table in ((plain_fisher(), twice), (plain_fisher().fit(TARGETS), twice)):
        with pytest.raises(ValueError, match="several columns are called 'alcohol'"):
            model.predict(table) if hasattr(model, "model_") else model.fit(table)


def test_columns_of_a_missing_view_may_be_absent():
    model = plain_fisher(views=NAMED).fit(TARGETS)
    gaps = OTHERS.assign(hue=np.nan, color_intensity=np.nan)
    expected = model.score_samples(gaps, missing_views="look")
    gone = OTHERS.drop(columns=["hue", "color_intensity"])
    np.testing.assert_array_equal(model.score_samples(gone, missing_views="look"), expected)
    assert model.explain(gone, missing_views="look").view_names == ("taste",)
    one_a_column = plain_fisher(views="features").fit(TARGETS)
    np.testing.assert_array_equal(
        one_a_column.p_values(OTHERS.drop(columns="hue"), missing_views="hue"),
        one_a_column.p_values(OTHERS.assign(hue=np.nan), missing_views="hue"),
    )


def test_views_by_position_follow_their_names():
    model = plain_fisher(views={"a": [0, 1], "b": slice(9, 11)}).fit(TARGETS)
    np.testing.assert_array_equal(
        model.score_samples(OTHERS[TABLE.columns[::-1]]), model.score_samples(OTHERS)
    )


def test_one_view_of_everything_reads_everything():
    model = plain_fisher().fit(TARGETS)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(OTHERS.drop(columns="hue"))
    with pytest.raises(ValueError, match="vineyard"):
        plain_fisher().fit(TARGETS.assign(vineyard="north"))


def test_joint_tasks_do_likewise():
    few = OTHERS[["hue", "alcohol", "color_intensity", "malic_acid"]]
    groups = np.where(Y == 0, "first", "other")
    joint = JointMultiKernelFisherNull(views=NAMED).fit(messy(TABLE), groups=groups)
    np.testing.assert_array_equal(
        joint.score_samples(few, groups="other"), joint.score_samples(OTHERS, groups="other")
    )


def test_peers_do_likewise():
    model = AveragedOneClassSVM(views=NAMED).fit(messy(TARGETS))
    few = OTHERS[["hue", "alcohol", "color_intensity", "malic_acid"]]
    np.testing.assert_array_equal(model.score_samples(few), model.score_samples(messy(OTHERS)))


def test_files_remember_the_names(tmp_path):
    model = plain_fisher(views=NAMED).fit(messy(TARGETS))
    kernull.save(model, tmp_path / "wine.kernull")
    again = kernull.load(tmp_path / "wine.kernull")
    np.testing.assert_array_equal(again.score_samples(OTHERS), model.score_samples(OTHERS))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_gaps_say_where_they_are_and_what_to_do(value):
    broken = OTHERS.assign(hue=value)
    model = plain_fisher().fit(TARGETS)
    with pytest.raises(ValueError, match=r"in column\(s\) 'hue'. Fill them in .*SimpleImputer"):
        model.predict(broken)
    with pytest.raises(ValueError, match=r"in column\(s\) 10\. .*missing_views="):
        plain_fisher().fit(TARGETS.to_numpy()).predict(broken.to_numpy())
    with pytest.raises(ValueError, match=r"'hue'. Fill them in [^!]*rows\.$"):
        plain_fisher(views=NAMED).fit(broken)
    named = plain_fisher(views=NAMED).fit(TARGETS)
    with pytest.raises(ValueError, match="NaN or infinity"):
        named.predict(broken, missing_views="taste")
