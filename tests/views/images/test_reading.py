"""Whatever people call an image: read right, or named clearly; never at the others' cost."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from PIL import Image

from kernull.errors import BadImageError, BadImageWarning, MissingWeightsError
from kernull.views.images import BackboneFeatures, image_paths
from kernull.views.images.reading import list_images


def load(content):
    """Pixels of one image as (H, W, 3)."""
    pixels = list_images([content])[0].load()[1]
    assert pixels.dtype == np.uint8
    return np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels


@pytest.fixture
def colour(rng):
    return rng.integers(0, 256, (6, 9, 3), dtype=np.uint8)


def test_lossless_files_are_read_as_they_are(tmp_path, colour):
    for suffix in ("png", "bmp", "tif", "ppm", "webp"):
        path = tmp_path / f"a.{suffix}"
        Image.fromarray(colour).save(path, **({"lossless": True} if suffix == "webp" else {}))
        np.testing.assert_array_equal(load(path), colour)
        np.testing.assert_array_equal(load(str(path)), colour)


@pytest.mark.parametrize("mode", ["L", "1"])
def test_greyscale(tmp_path, mode, rng):
    grey = Image.fromarray(rng.integers(0, 256, (6, 9), dtype=np.uint8)).convert(mode)
    grey.save(tmp_path / "grey.png")
    expected = np.asarray(grey.convert("L"))
    np.testing.assert_array_equal(load(tmp_path / "grey.png"), np.dstack([expected] * 3))


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_sixteen_bits_keep_their_range(tmp_path, suffix):
    """Pillow's own conversion would cut everything above 255 off."""
    deep = np.array([[0, 257, 128 * 257, 65535]], dtype=np.uint16)
    Image.fromarray(deep).save(tmp_path / f"deep.{suffix}")
    np.testing.assert_array_equal(load(tmp_path / f"deep.{suffix}")[0, :, 0], [0, 1, 128, 255])
    np.testing.assert_array_equal(load(deep)[0, :, 0], [0, 1, 128, 255])


def test_floating_files(tmp_path):
    Image.fromarray(np.array([[0.0, 0.5, 1.0]], dtype=np.float32)).save(tmp_path / "f.tif")
    np.testing.assert_array_equal(load(tmp_path / "f.tif")[0, :, 0], [0, 128, 255])


def test_cmyk(tmp_path):
    image = Image.new("CMYK", (8, 8), (255, 0, 0, 0))  # cyan ink, so no red light
    image.save(tmp_path / "cyan.tif")
    np.testing.assert_array_equal(load(tmp_path / "cyan.tif")[0, 0], [0, 255, 255])
    image.save(tmp_path / "cyan.jpg")
    assert np.abs(load(tmp_path / "cyan.jpg")[0, 0].astype(int) - [0, 255, 255]).max() <= 4


def test_transparent_pixels_lie_on_white(tmp_path):
    black = np.zeros((1, 3, 4), dtype=np.uint8)
    black[0, :, 3] = [0, 128, 255]
    Image.fromarray(black).save(tmp_path / "rgba.png")
    for source in (tmp_path / "rgba.png", black):
        np.testing.assert_array_equal(load(source)[0, :, 0], [255, 127, 0])
    two = black[..., [0, 3]]
    np.testing.assert_array_equal(load(two)[0, :, 0], [255, 127, 0])
    Image.fromarray(two, "LA").save(tmp_path / "la.png")
    np.testing.assert_array_equal(load(tmp_path / "la.png")[0, :, 0], [255, 127, 0])


def test_palettes(tmp_path):
    image = Image.fromarray(np.array([[0, 1, 2]], dtype=np.uint8), "P")
    image.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    image.save(tmp_path / "p.png")
    np.testing.assert_array_equal(
        load(tmp_path / "p.png")[0], [[10, 20, 30], [40, 50, 60], [70, 80, 90]]
    )
    image.save(tmp_path / "hole.png", transparency=1)
    np.testing.assert_array_equal(load(tmp_path / "hole.png")[0, 1], [255, 255, 255])


@pytest.mark.parametrize("orientation", range(1, 9))
def test_files_are_turned_upright(tmp_path, orientation, colour):
    """What EXIF says is how a viewer turns the stored pixels."""
    turned = {
        1: colour,
        2: colour[:, ::-1],
        3: colour[::-1, ::-1],
        4: colour[::-1],
        5: colour.swapaxes(0, 1),
        6: np.rot90(colour, -1),
        7: np.rot90(colour, 2).swapaxes(0, 1),
        8: np.rot90(colour, 1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(colour).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(load(tmp_path / "a.png"), turned)


def test_arrays_of_every_type_agree(networks, rng):
    images = rng.integers(0, 256, (4, 7, 9, 3), dtype=np.uint8)
    extract = BackboneFeatures("tiny", weights=networks)
    expected = extract.transform(images)
    for same in (
        images.astype(np.uint16) * 257,
        images / 255,
        (images / 255).astype(np.float32),
        list(images),
        [Image.fromarray(image) for image in images],
        images[:, ::-1][:, ::-1],  # not contiguous
    ):
        np.testing.assert_array_equal(extract.transform(same), expected)


def test_images_of_different_sizes(networks, rng):
    images = [rng.integers(0, 256, (5 + i, 9 - i, 3), dtype=np.uint8) for i in range(4)]
    extract = BackboneFeatures("tiny", weights=networks)
    together = extract.transform(images)
    for image, row in zip(images, together, strict=True):
        np.testing.assert_allclose(extract.transform(image[None])[0], row, rtol=1e-5)


# -- folders and lists -----------------------------------------------------------------------


def test_folders_are_searched_in_order(tmp_path, networks, colour):
    folder = tmp_path / "photographs"
    for name in ("b.PNG", "a.jpg", "sub/c.png", ".hidden/d.png", ".e.png", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("txt"):
            (folder / name).write_text("no image")
        else:
            Image.fromarray(colour).save(folder / name)
    paths = image_paths(folder)
    assert [path.relative_to(folder).as_posix() for path in paths] == [
        "a.jpg",
        "b.PNG",
        "sub/c.png",
    ]
    extract = BackboneFeatures("tiny", weights=networks)
    by_folder = extract.transform(str(folder))
    np.testing.assert_array_equal(extract.transform(paths), by_folder)
    np.testing.assert_array_equal(extract.transform(np.array([str(p) for p in paths])), by_folder)
    column = np.array([[str(p)] for p in paths], dtype=object)
    np.testing.assert_array_equal(extract.transform(column), by_folder)


def test_folders_without_images(tmp_path):
    (tmp_path / "notes.txt").write_text("no image")
    with pytest.raises(ValueError, match=r"holds no image.*\.jpg"):
        list_images(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        list_images(tmp_path / "missing")
    with pytest.raises(NotADirectoryError, match=r"Pass one image as \[path\]"):
        list_images(tmp_path / "notes.txt")


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((64, 64, 3), np.uint8), r"looks like one colour image.*X\[None\]"),
        (np.zeros((64, 64), np.uint8), r"shape \(64, 64\)"),
        (np.zeros((2, 3, 8, 8), np.uint8), r"transpose\(0, 2, 3, 1\)"),
        ([], "no image"),
        (np.zeros((0, 8, 8), np.uint8), "no image"),
    ],
)
def test_arrays_that_are_no_images(X, words):
    with pytest.raises(ValueError, match=words):
        list_images(X)


@pytest.mark.parametrize("X", [None, 3, b"bytes", (path for path in ())])
def test_things_that_are_no_images(X):
    with pytest.raises(TypeError, match="expected an array"):
        list_images(X)


# -- bad images ------------------------------------------------------------------------------


def jpeg(rng):
    buffer = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture
def damaged(tmp_path, rng):
    """A folder with three good images among six bad ones."""
    folder = tmp_path / "photographs"
    folder.mkdir()
    for name in ("good1.jpg", "good2.jpg", "x_good3.jpg"):
        (folder / name).write_bytes(jpeg(rng))
    (folder / "empty.jpg").write_bytes(b"")
    (folder / "half.jpg").write_bytes(jpeg(rng)[:600])
    (folder / "noise.png").write_bytes(rng.bytes(500))
    (folder / "text.jpg").write_text("this is no image")
    Image.fromarray(np.array([[0.0, 300.0]], dtype=np.float32)).save(folder / "range.tif")
    Image.fromarray(np.array([[-1, 70000]], dtype=np.int32)).save(folder / "wide.tif")
    return folder


BAD = ["empty.jpg", "half.jpg", "noise.png", "range.tif", "text.jpg", "wide.tif"]


def test_one_error_names_all_bad_images_when_the_others_are_done(damaged, networks, tmp_path):
    good = [path for path in image_paths(damaged) if "good" in path.name]
    expected = BackboneFeatures("tiny", weights=networks).transform(good)
    cache = tmp_path / "cache"
    extract = BackboneFeatures("tiny", weights=networks, cache=cache, batch_size=2)
    with pytest.raises(BadImageError, match="6 of 9 images") as caught:
        extract.transform(damaged)
    for name in BAD:
        assert name in str(caught.value)
    assert sorted(path.rpartition("/")[2] for path in caught.value.bad) == BAD
    reasons = {path.rpartition("/")[2]: why for path, why in caught.value.bad.items()}
    assert reasons["empty.jpg"] == "the file is empty"
    assert reasons["text.jpg"].startswith("is no image of a kind that is read: BMP, GIF")
    assert "truncated" in reasons["half.jpg"].lower()
    # The work on the others is in the error, and in the cache.
    rows = caught.value.features
    np.testing.assert_allclose(rows[~np.isnan(rows).any(axis=1)], expected, rtol=1e-5)


def test_good_images_beside_bad_ones_are_in_the_cache(damaged, networks, tmp_path, counted):
    extract = BackboneFeatures("tiny", weights=networks, cache=tmp_path / "cache", batch_size=2)
    with pytest.raises(BadImageError):
        extract.transform(damaged)
    assert sum(counted) == 3
    extract.transform([path for path in image_paths(damaged) if "good" in path.name])
    assert sum(counted) == 3


def test_bad_images_may_become_nan(damaged, networks):
    extract = BackboneFeatures("tiny", weights=networks, on_error="nan")
    with pytest.warns(BadImageWarning, match=r"6 of 9 images.*half\.jpg"):
        table = extract.transform(damaged)
    bad = [path.name in BAD for path in image_paths(damaged)]
    np.testing.assert_array_equal(np.isnan(table).all(axis=1), bad)
    np.testing.assert_array_equal(np.isnan(table).any(axis=1), bad)


def test_only_bad_images(damaged, networks):
    extract = BackboneFeatures("tiny", weights=networks, on_error="nan")
    with pytest.warns(BadImageWarning, match="2 of 2"):
        table = extract.transform([damaged / "half.jpg", damaged / "missing.jpg"])
    assert table.shape == (2, 5)
    assert np.isnan(table).all()


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.full((4, 4), 300.0), "0 to 1"),
        (np.full((4, 4), np.nan), "0 to 1"),
        (np.full((4, 4), 3, np.int64), "int64"),
        (np.zeros((4, 4, 7), np.uint8), r"\(4, 4, 7\)"),
        (np.zeros((0, 4), np.uint8), r"\(0, 4\)"),
        (object(), "object"),
        ("missing.jpg", "there is no such file"),
        (".", "is a folder"),
    ],
)
def test_each_bad_image_is_named_with_its_reason(networks, image, words):
    good = np.zeros((4, 4), np.uint8)
    with pytest.raises(BadImageError, match=rf"1 of 2 images.*{words}"):
        BackboneFeatures("tiny", weights=networks).transform([good, image])


def test_the_error_can_be_pickled():
    error = BadImageError("message", {"a.jpg": "empty"}, np.zeros(2))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.bad) == ("message", {"a.jpg": "empty"})


# -- networks that are not there -------------------------------------------------------------


def test_missing_weights_are_named(networks, pictures, monkeypatch):
    with pytest.raises(MissingWeightsError, match=r"'nope\.onnx'.*\['other', 'tiny'\]"):
        BackboneFeatures("nope", weights=networks).transform(pictures)
    with pytest.raises(MissingWeightsError, match="no such folder"):
        BackboneFeatures("tiny", weights=networks / "nowhere").transform(pictures)
    with pytest.raises(MissingWeightsError, match=r"there is no file.*nope\.onnx"):
        BackboneFeatures(networks / "nope.onnx").transform(pictures)
    monkeypatch.delenv("KERNULL_WEIGHTS", raising=False)
    with pytest.raises(MissingWeightsError, match="Set the environment variable KERNULL_WEIGHTS"):
        BackboneFeatures("tiny").transform(pictures)
    monkeypatch.setenv("KERNULL_WEIGHTS", str(networks))
    assert BackboneFeatures("tiny").transform(pictures).shape == (12, 5)


def test_networks_without_a_description(networks, pictures):
    (networks / "tiny.onnx.json").unlink()
    with pytest.raises(ValueError, match=r"nothing says how.*'tiny\.onnx\.json'"):
        BackboneFeatures("tiny", weights=networks).transform(pictures)
    given = BackboneFeatures("tiny", weights=networks, preprocessing={"size": 8})
    assert given.transform(pictures).shape == (12, 5)
    (networks / "tiny.json").write_text('{"size": 8}')  # the other name is as good
    assert BackboneFeatures("tiny", weights=networks).transform(pictures).shape == (12, 5)
    (networks / "tiny.json").write_text("{")
    with pytest.raises(ValueError, match=r"tiny\.json.*does not describe"):
        BackboneFeatures("tiny", weights=networks).transform(pictures)
    (networks / "tiny.json").write_text('{"size": 9}')
    with pytest.raises(ValueError, match=r"its description says size \(9, 9\)"):
        BackboneFeatures("tiny", weights=networks).transform(pictures)


def test_a_known_name_for_another_network(networks, pictures):
    """A file that only has the name of a known network is not taken for it."""
    (networks / "tiny.onnx").rename(networks / "mobilenet_v2.onnx")
    with pytest.raises(ValueError, match="its description says size"):
        BackboneFeatures("mobilenet_v2", weights=networks).transform(pictures)


def test_a_damaged_network(networks, pictures):
    content = (networks / "tiny.onnx").read_bytes()
    (networks / "tiny.onnx").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"tiny\.onnx.* is no ONNX file"):
        BackboneFeatures("tiny", weights=networks).transform(pictures)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"on_error": "skip"}, "on_error"),
        ({"batch_size": 0}, "batch_size"),
        ({"device": "gpu"}, "device"),
        ({"cache": True}, "cache"),
        ({"preprocessing": "crop"}, "preprocessing"),
        ({"preprocessing": {"resize": "squash"}}, "resize"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"region": "elbow"}, "region"),
        ({"region": (0.5, 0, 0.5, 1)}, "region"),
        ({"region": 3}, "region"),
        ({"backbone": 3}, "backbone"),
    ],
)
def test_wrong_parameters_are_named(networks, pictures, params, words):
    with pytest.raises(ValueError, match=words):
        BackboneFeatures(**{"backbone": "tiny", "weights": networks, **params}).transform(pictures)
