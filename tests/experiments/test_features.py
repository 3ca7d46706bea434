"""Features equal those of onnxruntime and Pillow alone, and of a network written out here."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from experiments import features
from experiments.datasets import DatasetNotFound
from experiments.features import KNOWN, REGIONS, Network, Preprocessing, extract, read_image
from tests.networks import DESCRIPTION, SIZE, kernel_of, write_network

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
PIL = pytest.importorskip("PIL.Image")


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNULL_WEIGHTS", str(tmp_path))
    write_network(tmp_path, "tiny")
    return tmp_path


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (70, 10, 14, 3), dtype=np.uint8)


def imagenet(pixels):
    return (pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]


#: Side of the input, and what becomes of pixels: written a second time, from their publishers.
PUBLISHED = {
    "alexnet": (224, imagenet),
    "vgg16": (224, imagenet),
    "squeezenet1_1": (227, lambda pixels: pixels[..., ::-1] - [103.939, 116.779, 123.68]),
    "mobilenet_v2": (224, imagenet),
    "efficientnet_lite0": (224, lambda pixels: (pixels - 127) / 128),
    "inception_v3": (299, lambda pixels: (pixels - 127.5) / 127.5),
}


@pytest.mark.weights
@pytest.mark.parametrize("name", PUBLISHED)
def test_features_equal_those_without_our_code(name, rng):
    path = Path(os.environ["KERNULL_WEIGHTS"]) / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in KERNULL_WEIGHTS")
    assert set(KNOWN) == set(PUBLISHED)
    side, prepare = PUBLISHED[name]
    image = PIL.fromarray(rng.integers(0, 256, (240, 320, 3), dtype=np.uint8))
    small = np.asarray(image.resize((side, side), PIL.Resampling.BILINEAR)).astype(float)
    x = prepare(small).transpose(2, 0, 1)[None].astype(np.float32)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    expected = session.run(None, {session.get_inputs()[0].name: x})[0]
    found = Network(name)([image])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_features_equal_a_naive_network(weights, rng):
    """The same for a map of features, whose mean is taken; in batches as one by one."""
    images = rng.integers(0, 256, (5, SIZE, SIZE, 3), dtype=np.uint8)
    x = (images / 255 - DESCRIPTION["mean"]) / DESCRIPTION["std"]
    patches = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    maps = np.einsum("nijcab,kcab->nijk", patches, kernel_of(0, 5).astype(float))
    expected = np.maximum(maps, 0).mean(axis=(1, 2))
    write_network(weights, "maps", maps=True)
    for name in ("tiny", "maps"):
        found = Network(name, jobs=2)(images)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(Network(name)(images[2:3]), found[2:3], rtol=1e-5)


def test_channels_and_grey(rng):
    image = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    x = Preprocessing(SIZE, channels="BGR", scale=1.0, mean=[1, 2, 3])(image)
    for channel, source, mean in ((0, 2, 1), (1, 1, 2), (2, 0, 3)):
        np.testing.assert_array_equal(x[channel], image[..., source].astype(np.float32) - mean)
    prepare, grey = Preprocessing(5, **{k: DESCRIPTION[k] for k in ("mean", "std")}), image[..., 0]
    np.testing.assert_array_equal(prepare(grey), prepare(np.dstack([grey] * 3)))


def test_regions_are_crops(weights, images):
    """A region is seen as if it were the image, down to an image of one pixel."""
    network = Network("tiny")
    np.testing.assert_array_equal(
        network(images[:4], "nose"), network(images[:4, 4:7, 4:10])
    )  # 0.36 to 0.70 of ten rows, 0.28 to 0.72 of fourteen columns
    pixel = np.full((1, 1, 1, 3), 90, dtype=np.uint8)
    for region, (left, top, right, bottom) in REGIONS.items():
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1
        np.testing.assert_array_equal(network(pixel, region), network(pixel))


def test_files_are_upright_and_lie_on_white(tmp_path, rng):
    colour = rng.integers(0, 256, (6, 9, 3), dtype=np.uint8)
    exif = PIL.Exif()
    exif[0x0112] = 6  # a quarter to the left, as stored
    PIL.fromarray(colour).save(tmp_path / "turned.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "turned.png"), np.rot90(colour, -1))
    black = np.zeros((1, 3, 4), dtype=np.uint8)
    black[0, :, 3] = [0, 128, 255]
    PIL.fromarray(black).save(tmp_path / "clear.png")
    np.testing.assert_array_equal(
        np.asarray(read_image(tmp_path / "clear.png"))[0, :, 0], [255, 127, 0]
    )
    (tmp_path / "text.jpg").write_text("no image")
    with pytest.raises(OSError, match=r"text\.jpg.*cannot"):
        read_image(tmp_path / "text.jpg")


def test_killed_in_the_middle_and_resumed(weights, images, monkeypatch):
    """Batches that were done are not computed again, and the file is whole or not there."""
    monkeypatch.setattr(features, "BATCH", 32)
    run, seen, path = Network.__call__, [], weights / "out" / "tiny.npy"

    def spy(self, batch, region="whole"):
        seen.append(len(batch))
        if seen == [32, 32, 6]:
            raise KeyboardInterrupt
        return run(self, batch, region)

    with monkeypatch.context() as patch:
        patch.setattr(Network, "__call__", spy)
        with pytest.raises(KeyboardInterrupt):
            extract(images, "tiny", path)
        assert not path.exists()
        extract(images, "tiny", path)
        extract(images, "tiny", path)  # is there
    assert seen == [32, 32, 6, 6]
    np.testing.assert_allclose(np.load(path), Network("tiny")(images), rtol=1e-5)
    assert [p.name for p in path.parent.iterdir()] == ["tiny.npy"]


def test_networks_that_are_not_there_are_named(weights, monkeypatch):
    with pytest.raises(DatasetNotFound, match=r"has no nope\.onnx"):
        Network("nope")
    (weights / "tiny.onnx.json").unlink()
    with pytest.raises(DatasetNotFound, match=r"describe it in 'tiny\.onnx\.json'"):
        Network("tiny")
    monkeypatch.delenv("KERNULL_WEIGHTS")
    with pytest.raises(DatasetNotFound, match="KERNULL_WEIGHTS is not set"):
        Network("tiny")
