"""Explanations: they add up, they read well, they point at the culprit."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import kernull
from kernull.detector.calibration import Split
from tests.plain import plain_fisher

X, Y = load_wine(return_X_y=True)
TARGETS, OTHERS = X[Y == 0], X[Y == 2]
VIEWS = {"taste": slice(0, 6), "phenols": slice(6, 9), "look": slice(9, 13)}

OPTIONS = [
    {},
    {"widths": [0.25, 1.0], "p": 1.0},
    {"kernels": ["rbf", "polynomial"], "calibration": Split(20)},
    {"kernels": "polynomial", "p": np.inf},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_contributions_add_up_to_the_score(options):
    model = plain_fisher(views=VIEWS, **options).fit(TARGETS)
    scores = model.score_samples(X)
    why = model.explain(X)
    size = np.abs(scores).max()
    for parts in (model.contributions(X), why.contributions, why.by_view):
        np.testing.assert_allclose(parts.sum(axis=1), scores, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(
        why.differences.sum(axis=1) + why.typical.sum(), scores, rtol=0, atol=1e-12 * size
    )
    np.testing.assert_array_equal(why.p_values, model.p_values(X))
    np.testing.assert_allclose(why.scores, scores, rtol=0, atol=1e-12 * size)


def test_every_estimator_with_contributions_is_tested_here():
    """A new one must be added above."""
    have = {
        name
        for name in kernull.__all__
        if isinstance(getattr(kernull, name), type)
        and hasattr(getattr(kernull, name), "contributions")
        and hasattr(getattr(kernull, name), "fit")
    }
    assert have == {"MultiKernelFisherNull"}


def test_kernels_of_a_view_are_summed():
    model = plain_fisher(views=VIEWS, widths=[0.25, 1.0]).fit(TARGETS)
    why = model.explain(OTHERS)
    assert why.view_names == ("taste", "phenols", "look")
    assert why.contributions.shape == (len(OTHERS), 6)
    np.testing.assert_allclose(why.by_view[:, 1], why.contributions[:, 2:4].sum(axis=1))


def test_typical_is_the_mean_of_rows_left_out():
    model = plain_fisher(views=VIEWS).fit(TARGETS)
    why = model.explain(OTHERS)
    np.testing.assert_allclose(why.typical, model.model_.left_out.mean(axis=0))
    # Training contributions would make everything new look worse than it is.
    assert why.typical.sum() < model.contributions(TARGETS).mean(axis=0).sum()


def test_the_broken_view_is_named():
    """Swap one view for that of another wine: with well-separated views it always ranks first."""
    rng = np.random.default_rng(0)
    centre = rng.standard_normal((80, 9))
    views = {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7, 8]}
    model = plain_fisher(views=views, widths=0.5).fit(centre)
    new = rng.standard_normal((60, 9)) * 0.7
    for v, columns in enumerate(views.values()):
        broken = new.copy()
        broken[:, columns] += 6.0
        why = model.explain(broken)
        assert all(why.surprise[i].argmin() == v for i in range(len(new)))
        assert list(views)[v] in why.words(0).split("\n")[1].split(",")[0]


def test_surprise_is_blind_to_the_scale_of_a_view():
    """A steady view with a small weight is blamed before a heavy one that always varies."""
    from kernull import Explanation

    rng = np.random.default_rng(0)
    reference = np.stack([rng.uniform(0.1, 0.9, 200), rng.normal(0.05, 0.001, 200)], axis=1)
    why = Explanation(
        contributions=np.array([[0.3, 0.03]]),
        typical=reference.mean(axis=0),
        reference=reference,
        kernel_names=("heavy", "light"),
        kernel_views=("heavy", "light"),
        scores=np.array([0.33]),
        p_values=np.array([0.01]),
        threshold=0.4,
    )
    assert why.differences.argmin() == 0
    assert why.surprise[0].argmin() == 1


def test_words():
    model = plain_fisher(views=VIEWS).fit(TARGETS)
    flagged = model.explain(OTHERS).words(0, most=2)
    verdict, reasons = flagged.split("\n")[:2]
    assert verdict.startswith("flagged: score")
    assert "below the threshold, as low as 1 in 60 normal rows." in verdict
    assert (
        reasons.count("below normal (")
        == reasons.count(" standard deviations out of line with")
        == 2
    )
    sizes = [float(part.split("(")[1].split()[0]) for part in reasons.split(", ")]
    assert sizes == sorted(sizes, reverse=True)
    normal = model.explain(TARGETS).words(3)
    assert normal.startswith("normal: score")
    assert "above the threshold" in normal


def test_words_claim_no_more_than_the_rows_can_bear():
    rng = np.random.default_rng(0)
    model = kernull.MultiKernelFisherNull().fit(rng.normal(size=(100, 3)))
    # From the middle outwards, so that every rarity comes up.
    rows = rng.normal(size=(1, 3)) * np.geomspace(1e-3, 1e6, 400)[:, None]
    why = model.explain(rows)
    np.testing.assert_array_equal(why.rarity, model.rarity(rows))
    assert why.rarity.max() == 10_000  # 100 times 100 rows
    seen = set()
    for i, rarity in enumerate(why.rarity):
        verdict, said = why.verdict(i).removesuffix(".").split(": ")
        assert said == why.how_rare(i)
        assert verdict == ("flagged" if model.predict(rows[i : i + 1])[0] == -1 else "normal")
        if rarity >= 10_000:
            assert said == "far more unusual than any of the 100 normal rows learned from"
        elif rarity < 2:
            assert said == "nothing unusual"
        else:
            found = re.fullmatch(r"(about )?1 in ([\d,]+) normal rows is as unusual", said)
            assert int(found[2].replace(",", "")) == pytest.approx(rarity, rel=0.26)
            assert bool(found[1]) == why.extrapolated[i]
        seen.add(re.sub(r"[\d,]+", "#", said))
    assert len(seen) == 4
    assert why.how_rare(399, "good parts").startswith("far more unusual than any of the 100 good")
    loose = model.set_params(false_alarm_rate=0.9).fit(rng.normal(size=(100, 3)))
    why = loose.explain(rng.normal(size=(50, 3)) * 0.7)
    odd = np.flatnonzero((why.scores < why.threshold) & (why.rarity < 2))
    assert len(odd) > 0
    assert why.how_rare(int(odd[0])) == "most normal rows are as unusual"
    assert plain_fisher().fit(TARGETS).explain(OTHERS).how_rare(0) == ""


def test_table():
    model = plain_fisher(views=VIEWS, widths=[0.25, 1.0]).fit(TARGETS)
    why = model.explain(OTHERS[:4])
    table = pd.DataFrame(why.table())
    assert len(table) == 12
    sums = table.groupby("row")["contribution"].sum()
    np.testing.assert_allclose(sums, model.score_samples(OTHERS[:4]), atol=1e-12)
    assert table["surprise"].groupby(table["row"]).apply(lambda s: s.is_monotonic_increasing).all()
    assert ((table["tail"] > 0) & (table["tail"] <= 1)).all()
    with pytest.raises(ValueError, match="by: got"):
        why.table(by="row")


def test_explained_without_a_view():
    model = plain_fisher(views=VIEWS).fit(TARGETS)
    broken = OTHERS.copy()
    broken[:, 6:9] = np.nan
    why = model.explain(broken, missing_views="phenols")
    assert why.view_names == ("taste", "look")
    np.testing.assert_allclose(why.scores, model.score_samples(broken, missing_views="phenols"))


def test_precomputed_kernels_are_views_of_their_own():
    full = plain_fisher(views=VIEWS).fit(TARGETS)
    square = np.stack([K for _, K in full.kernel_set_.matrices()])
    cross = np.stack([K for _, K in full.kernel_set_.matrices(OTHERS)])
    why = plain_fisher("precomputed").fit(square).explain(cross)
    assert why.view_names == ("kernel 0", "kernel 1", "kernel 2")
    np.testing.assert_allclose(why.contributions, full.contributions(OTHERS), atol=1e-9)


def test_kernel_without_weight_is_no_suspect():
    model = plain_fisher(views="features", p=1.0, delta=0.1, solver="frank-wolfe")
    model.fit(TARGETS)
    unused = np.flatnonzero(model.weights_ == 0)
    assert len(unused) > 0
    assert (model.explain(OTHERS).surprise[:, unused] == 0).all()
