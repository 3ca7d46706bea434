"""Several networks and regions as one table, in pipelines and estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import kernull
from kernull import BackboneFeatures, ImageViews, MultiKernelFisherNull
from kernull.errors import BadImageError, BadImageWarning
from kernull.views.images import FACE_REGIONS, REGIONS


@pytest.fixture
def images(networks):
    return ImageViews(["tiny", "other"], weights=networks)


def test_columns_are_those_of_each_network(images, networks, pictures):
    table = images.transform(pictures)
    assert images.views_ == {"tiny": slice(0, 5), "other": slice(5, 8)}
    for name, columns in images.views_.items():
        alone = BackboneFeatures(name, weights=networks).transform(pictures)
        np.testing.assert_array_equal(table[:, columns], alone)
    assert list(images.get_feature_names_out()) == [
        *(f"tiny_{i}" for i in range(5)),
        *(f"other_{i}" for i in range(3)),
    ]


def test_regions_are_crops(networks, pictures):
    boxes = {"left": "left", "mine": (0.5, 0.2, 1.0, 0.8)}
    images = ImageViews("tiny", boxes, weights=networks)
    table = images.transform(pictures)
    assert list(images.views_) == ["tiny/left", "tiny/mine"]
    whole = BackboneFeatures("tiny", weights=networks)
    # pictures are 10 high and 14 wide
    for name, crop in (("left", pictures[:, :, :7]), ("mine", pictures[:, 2:8, 7:])):
        np.testing.assert_array_equal(
            table[:, images.views_[f"tiny/{name}"]], whole.transform(crop)
        )
    alone = BackboneFeatures("tiny", region="left", weights=networks).transform(pictures)
    np.testing.assert_array_equal(alone, table[:, images.views_["tiny/left"]])


def test_twelve_views_of_a_face(networks, pictures):
    """Networks x the four regions of E9, each of which lies in the face and differs."""
    images = ImageViews(["tiny", "other"], list(FACE_REGIONS), weights=networks)
    assert list(images.views_)[:4] == [
        "tiny/face",
        "tiny/eyes_nose",
        "tiny/nose",
        "tiny/lower_face",
    ]
    assert images.transform(pictures).shape == (12, 4 * 5 + 4 * 3)
    assert len(set(FACE_REGIONS.values())) == 4
    for left, top, right, bottom in REGIONS.values():
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1
    nose, lower = FACE_REGIONS["nose"], FACE_REGIONS["lower_face"]
    assert lower[1] > (nose[1] + nose[3]) / 2  # the mouth lies below the nose


def test_regions_of_the_smallest_image(networks):
    """Every region of an image of one pixel is that pixel."""
    pixel = np.full((1, 1, 1, 3), 90, dtype=np.uint8)
    whole = BackboneFeatures("tiny", weights=networks).transform(pixel)
    for region in REGIONS:
        part = BackboneFeatures("tiny", weights=networks, region=region).transform(pixel)
        np.testing.assert_array_equal(part, whole)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"backbones": []}, "backbones: got none"),
        ({"backbones": ["tiny", "tiny"]}, "'tiny' is there twice"),
        ({"regions": []}, "regions: got none"),
        ({"regions": ["elbow"]}, "elbow"),
        ({"regions": {"a": (0, 0, 2, 1)}}, "region"),
        ({"on_error": "skip"}, "on_error"),
    ],
)
def test_wrong_parameters_are_named(networks, pictures, params, words):
    images = ImageViews(**{"backbones": ["tiny"], "weights": networks, **params})
    with pytest.raises(ValueError, match=words):
        images.transform(pictures)


def test_a_pipeline_from_images_to_reasons(images, rng, tmp_path):
    dark = rng.integers(0, 90, (40, 10, 10, 3), dtype=np.uint8)
    bright = rng.integers(150, 256, (5, 10, 10, 3), dtype=np.uint8)
    model = make_pipeline(images, MultiKernelFisherNull(views=images.views_)).fit(dark[:30])
    assert list(dict.fromkeys(view.name for view in model[-1].bank_.views)) == ["tiny", "other"]
    assert model.score_samples(dark[30:]).min() > model.score_samples(bright).max()
    np.testing.assert_array_equal(model.predict(bright), -1)
    why = model[-1].explain(images.transform(bright))
    assert {record["view"] for record in why.table()} == {"tiny", "other"}
    kernull.save(model[-1], tmp_path / "model.kernull")
    again = kernull.load(tmp_path / "model.kernull")
    np.testing.assert_allclose(
        again.score_samples(images.transform(bright)), model.score_samples(bright)
    )
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.score_samples(bright), model.score_samples(bright))


def test_scikit_learn_sees_a_transformer(images, networks, pictures):
    again = clone(images)
    np.testing.assert_array_equal(again.fit_transform(pictures), images.transform(pictures))
    frame = clone(images).set_output(transform="pandas").transform(pictures)
    assert list(frame.columns) == list(images.get_feature_names_out())
    assert frame.shape == (12, 8)
    alone = BackboneFeatures("tiny", weights=networks)
    assert list(alone.get_feature_names_out()) == [f"tiny_{i}" for i in range(5)]


def test_bad_images_are_named_once_for_all_views(images, pictures, tmp_path, counted):
    (tmp_path / "text.jpg").write_text("no image")
    X = [*pictures, tmp_path / "text.jpg"]
    images.set_params(cache=tmp_path / "cache")
    with pytest.raises(BadImageError, match="1 of 13 images"):
        images.transform(X)
    assert sum(counted) == 24
    images.set_params(on_error="nan")
    with pytest.warns(BadImageWarning) as caught:
        table = images.transform(X)
    assert len(caught) == 1
    assert sum(counted) == 24  # the others' work was not lost
    np.testing.assert_array_equal(np.isnan(table).any(axis=1), [False] * 12 + [True])


def test_progress_goes_to_stderr(images, pictures, capsys):
    images.set_params(verbose=1).transform(pictures)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "tiny" in seen.err
    images.set_params(verbose=0).transform(pictures)
    assert capsys.readouterr().err == ""
