"""What ``"auto"`` chooses, and that it chooses it again."""

import numpy as np
import pytest
from sklearn.base import clone

import kernull
from kernull import MixedBall, MultiKernelFisherNull
from kernull.datasets import load_wine_views
from kernull.kernels import AUTO_RANGE, mean_distance, neighbour_distance
from kernull.operators import DenseStack
from kernull.views import SCALINGS, KernelSet, join_views

DATA = load_wine_views()
X, VIEWS = join_views(DATA.views)
WINES, OTHERS = X[DATA.y == 1], X[DATA.y != 1]
AUTO = {"scaling": "auto", "widths": "auto", "p": "auto"}
AUTO_SCALINGS = ("whiten", "quantile")


def nearest(Z):
    """Median distance to the nearest other row, by loops."""
    out = []
    for i, row in enumerate(Z):
        far = [np.sqrt(((row - other) ** 2).sum()) for k, other in enumerate(Z) if k != i]
        out.append(min(d for d in far if d > 0))
    return np.median(out)


@pytest.mark.parametrize("n", [2, 3, 10, 31])
def test_neighbour_distance_is_the_median_of_minima(n, rng):
    Z = rng.standard_normal((n, 4)) + 100.0
    assert neighbour_distance(Z) == pytest.approx(nearest(Z), rel=1e-7)


def test_copies_are_no_neighbours_and_count_as_weights(rng):
    Z = rng.standard_normal((20, 3)) + 5.0
    copies = rng.integers(1, 4, 20)
    repeated = np.repeat(Z, copies, axis=0)
    assert neighbour_distance(repeated) == pytest.approx(nearest(repeated), rel=1e-7)
    weighted = neighbour_distance(Z, sample_weight=copies.astype(float))
    assert weighted == pytest.approx(neighbour_distance(repeated), rel=1e-12)
    assert neighbour_distance(np.ones((5, 2))) == 0.0


def test_a_subsample_of_rows_meets_all_rows(monkeypatch, rng):
    Z = rng.standard_normal((400, 2))
    whole = neighbour_distance(Z)
    monkeypatch.setattr("kernull.kernels.NEIGHBOUR_ROWS", 100)
    part = neighbour_distance(Z)
    assert part == neighbour_distance(Z)  # a fixed draw
    # Neighbours among 100 rows alone would be twice as far.
    assert part == pytest.approx(whole, rel=0.25)


def test_the_width_is_the_neighbour_distance_in_every_view():
    model = MultiKernelFisherNull(views=VIEWS, **AUTO).fit(WINES)
    assert list(model.widths_) == list(VIEWS)
    for name, columns in VIEWS.items():
        for kind, factor in zip(model.scaling_[name], model.widths_[name], strict=True):
            part = WINES[:, columns]
            Z = SCALINGS[kind]().fit_transform(part)
            expected = nearest(Z) / mean_distance(Z)
            assert factor == pytest.approx(np.clip(expected, *AUTO_RANGE), rel=1e-6)


def test_the_width_grows_with_the_dimension_in_units_of_the_mean_distance(rng):
    few, many = (
        MultiKernelFisherNull(scaling="standard", widths="auto").fit(rng.standard_normal((80, d)))
        for d in (2, 500)
    )
    assert few.widths_["all"][0] == 0.25
    assert many.widths_["all"][0] > 0.8


def test_a_view_in_several_scalings_is_one_view():
    model = MultiKernelFisherNull(views=VIEWS, **AUTO).fit(WINES)
    V = len(VIEWS)
    assert model.scaling_ == {name: list(AUTO_SCALINGS) for name in VIEWS}
    assert len(model.weights_) == 2 * V
    assert len(set(model.kernel_names_)) == 2 * V
    assert model.kernel_names_[1] == f"{next(iter(VIEWS))} quantile"
    why = model.explain(OTHERS[:5])
    assert why.view_names == tuple(VIEWS)
    by_view = model.evidence(OTHERS[:5], by="view")
    np.testing.assert_allclose(why.by_view, -(by_view**2), rtol=1e-12)
    one = next(iter(VIEWS))
    table = OTHERS[:5].copy()
    table[:, VIEWS[one]] = np.nan
    assert np.isfinite(model.score_samples(table, missing_views=one)).all()


def test_whitening_one_column_is_standardising_it():
    whitened, standard = (
        MultiKernelFisherNull(views="features", **AUTO | {"scaling": scaling}).fit(WINES)
        for scaling in ("auto", ("standard", "quantile"))
    )
    assert set(map(tuple, whitened.scaling_.values())) == {AUTO_SCALINGS}
    np.testing.assert_allclose(whitened.weights_, standard.weights_, atol=1e-5)
    for one, other in zip(whitened.kernel_set_.views, standard.kernel_set_.views, strict=True):
        np.testing.assert_allclose(one.train, other.train, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bad", ["robust", (), ("standard", "standard"), ("auto", "whiten"), 1.0])
def test_bad_scalings_are_refused(bad):
    with pytest.raises(ValueError, match="scaling: got"):
        MultiKernelFisherNull(scaling=bad).fit(WINES)


@pytest.mark.parametrize(("name", "bad"), [("widths", "wide"), ("p", "one"), ("delta", "small")])
def test_other_words_are_refused(name, bad):
    with pytest.raises(ValueError, match=f"{name}: got '{bad}'"):
        MultiKernelFisherNull(**{name: bad}).fit(WINES)


def test_the_same_data_give_the_same_model_and_the_choice_can_be_spelt_out():
    one, two = (MultiKernelFisherNull(views=VIEWS, **AUTO).fit(WINES) for _ in range(2))
    assert (one.score_samples(X) == two.score_samples(X)).all()
    assert (one.widths_, one.scaling_, one.p_) == (two.widths_, two.scaling_, two.p_)
    same = clone(one).set_params(scaling=AUTO_SCALINGS, p=MixedBall(4, 1.5))
    assert (same.fit(WINES).score_samples(X) == one.score_samples(X)).all()


def test_only_ratios_of_weights_matter():
    weight = np.r_[3.0, 2.0, np.ones(len(WINES) - 2)]
    one, two = (
        MultiKernelFisherNull(views=VIEWS, **AUTO).fit(WINES, sample_weight=w)
        for w in (weight, 0.01 * weight)
    )
    for name in VIEWS:
        np.testing.assert_allclose(one.widths_[name], two.widths_[name], rtol=1e-9)
    np.testing.assert_allclose(one.score_samples(X), two.score_samples(X), rtol=1e-9)
    assert one.threshold_ == pytest.approx(two.threshold_, rel=1e-9)


def test_every_way_to_fit_takes_auto(tmp_path):
    model = MultiKernelFisherNull(views=VIEWS, **AUTO).fit(WINES)
    kernull.save(model, tmp_path / "model")
    loaded = kernull.load(tmp_path / "model")
    assert (loaded.score_samples(X) == model.score_samples(X)).all()
    assert loaded.widths_ == model.widths_
    assert loaded.scaling_ == model.scaling_
    tiled = MultiKernelFisherNull(views=VIEWS, storage="tiled", **AUTO).fit(WINES)
    np.testing.assert_allclose(tiled.score_samples(X), model.score_samples(X), rtol=1e-3)
    number = clone(model).set_params(p=1.5).fit(WINES)
    given = clone(number).set_params(kernels="precomputed", views=None)
    given.fit(DenseStack.of(number.kernel_set_).kernels)
    np.testing.assert_allclose(given.weights_, number.weights_, rtol=1e-9)
    assert not hasattr(given, "widths_")


def test_the_papers_setting_fixes_everything():
    model = MultiKernelFisherNull(**kernull.PAPER)
    assert "auto" not in (model.scaling, model.widths, model.p)
    assert (model.normalize, model.solver) == ("none", "paper")


def test_the_bank_keeps_scalings_apart():
    bank = KernelSet.fit(WINES, {"a": np.arange(3)}, scaling=["none", "whiten"], widths=(0.5, 1.0))
    assert bank.kernel_names == ("a none 0.5D", "a none 1D", "a whiten 0.5D", "a whiten 1D")
    assert bank.kernel_views == ("a",) * 4
