"""Features equal references computed without kernull, and naive ones computed here."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from kernull.errors import MissingDependencyError
from kernull.views.images import BackboneFeatures, Preprocessing
from kernull.views.images.backbones import _open_onnx
from tests.views.images.conftest import DESCRIPTION, SIZE, write_network
from tests.views.images.make_references import fixed_image

REFERENCES = json.loads(Path(__file__).with_name("references.json").read_text())


@pytest.mark.parametrize("name", REFERENCES)
def test_features_equal_the_stored_reference(name, real_weights):
    expected = REFERENCES[name]
    path = real_weights / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in KERNULL_WEIGHTS")
    if hashlib.sha256(path.read_bytes()).hexdigest() != expected["sha256"]:
        pytest.skip(f"{path.name} is another file than the reference was made with")
    found = BackboneFeatures(name, weights=real_weights).transform(fixed_image()[None])
    assert found.shape == (1, expected["n_features"])
    assert found.dtype == np.float32
    assert np.linalg.norm(found[0]) == pytest.approx(expected["norm"], rel=1e-3)
    largest = max(np.abs(expected["features"]))
    np.testing.assert_allclose(
        found[0, expected["columns"]], expected["features"], atol=1e-3 * min(1.0, largest)
    )


def naive_triangle(values, n_out):
    """Resize the first axis by the antialiased triangle filter, straight from its definition."""
    n_in = len(values)
    ratio = n_in / n_out
    support = max(ratio, 1.0)
    out = np.zeros((n_out, *values.shape[1:]))
    for i in range(n_out):
        centre = (i + 0.5) * ratio
        weights = np.array([max(0.0, 1 - abs(j + 0.5 - centre) / support) for j in range(n_in)])
        out[i] = np.tensordot(weights / weights.sum(), values, axes=1)
    return out


def naive_input(image, size, mean, std):
    small = naive_triangle(image.astype(float), size)
    small = naive_triangle(small.swapaxes(0, 1), size).swapaxes(0, 1)
    return ((small / 255 - mean) / std).transpose(2, 0, 1)


@pytest.mark.parametrize("shape", [(10, 14, 3), (SIZE, SIZE, 3), (5, 6, 3), (40, 33, 3)])
def test_prepared_images_equal_naive_ones(shape, rng):
    image = rng.integers(0, 256, shape, dtype=np.uint8)
    mean, std = np.array(DESCRIPTION["mean"]), np.array(DESCRIPTION["std"])
    expected = naive_input(image, SIZE, mean, std)
    found = Preprocessing.of(DESCRIPTION)(image)
    # Pillow rounds to whole levels after each of its two passes.
    levels = np.abs(found - expected) * std[:, None, None] * 255
    assert levels.max() < 1.1


def test_features_equal_a_naive_network(networks, rng):
    images = rng.integers(0, 256, (5, SIZE, SIZE, 3), dtype=np.uint8)
    kernel = np.random.default_rng(0).normal(size=(5, 3, 3, 3)).astype(np.float32).astype(float)
    expected = []
    for image in images:
        x = naive_input(image, SIZE, np.array(DESCRIPTION["mean"]), np.array(DESCRIPTION["std"]))
        maps = [
            [
                [(x[:, i : i + 3, j : j + 3] * one).sum() for j in range(SIZE - 2)]
                for i in range(SIZE - 2)
            ]
            for one in kernel
        ]
        expected.append(np.maximum(maps, 0).mean(axis=(1, 2)))
    found = BackboneFeatures("tiny", weights=networks).transform(images)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_size", [1, 5, 100])
def test_batches_do_not_matter(networks, pictures, batch_size):
    whole = BackboneFeatures("tiny", weights=networks).transform(pictures)
    parts = BackboneFeatures("tiny", weights=networks, batch_size=batch_size, n_jobs=2)
    np.testing.assert_allclose(parts.transform(pictures), whole, rtol=1e-5)


def test_networks_of_other_forms(tmp_path, pictures):
    """A fixed batch, half precision, maps instead of pooled features: the same features."""
    plain = BackboneFeatures(write_network(tmp_path, "plain")).transform(pictures)
    fixed = BackboneFeatures(write_network(tmp_path, "fixed", batch=5)).transform(pictures)
    np.testing.assert_allclose(fixed, plain, rtol=1e-5)
    maps = BackboneFeatures(write_network(tmp_path, "maps", maps=True)).transform(pictures)
    np.testing.assert_allclose(maps, plain, rtol=1e-5)
    half = BackboneFeatures(write_network(tmp_path, "half", half=True)).transform(pictures)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, plain, rtol=2e-2, atol=2e-3)


@pytest.mark.parametrize(
    ("entries", "corner"),
    [
        ({"resize": "stretch"}, 100),
        ({"resize": "pad"}, 0),
        ({"resize": "crop"}, 100),
        ({"resize": "crop", "shorter": 12}, 100),
    ],
)
def test_ways_to_resize(entries, corner):
    """A bright column at the left edge of a wide image is seen, seen smaller, or cut off."""
    image = np.full((20, 60, 3), 100, dtype=np.uint8)
    image[:, :6] = 255
    x = Preprocessing.of({"size": SIZE, "scale": 1.0, **entries})(image)
    assert x.shape == (3, SIZE, SIZE)
    assert x[0, 0, -1] == corner
    seen = (x[0, SIZE // 2] > 101).any()
    assert seen == (entries["resize"] != "crop")


def test_grey_is_grey_in_every_channel(networks, rng):
    grey = rng.integers(0, 256, (4, 9, 9), dtype=np.uint8)
    colour = np.repeat(grey[..., None], 3, axis=3)
    extract = BackboneFeatures("tiny", weights=networks)
    np.testing.assert_allclose(extract.transform(grey), extract.transform(colour), rtol=1e-5)
    np.testing.assert_array_equal(extract.transform(grey[..., None]), extract.transform(grey))


def test_channels_may_be_swapped(rng):
    image = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
    swapped = Preprocessing.of({"size": SIZE, "channels": "BGR", "scale": 1.0, "mean": [1, 2, 3]})
    x = swapped(image)
    for channel, source, mean in ((0, 2, 1), (1, 1, 2), (2, 0, 3)):
        np.testing.assert_array_equal(x[channel], image[..., source].astype(np.float32) - mean)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({}, "size"),
        ({"size": 0}, "size"),
        ({"size": [1, 2, 3]}, "size"),
        ({"size": 8, "colour": 1}, "colour"),
        ({"size": 8, "channels": "GBR"}, "channels"),
        ({"size": 8, "mean": [1, 2]}, "mean"),
        ({"size": 8, "std": [1, 0, 1]}, "std"),
        ({"size": 8, "resize": "squash"}, "resize"),
        ({"size": 8, "shorter": 9}, "shorter"),
        ({"size": 8, "interpolation": "magic"}, "interpolation"),
    ],
)
def test_wrong_descriptions_are_named(entries, words):
    with pytest.raises(ValueError, match=words):
        Preprocessing.of(entries)


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys, kernull, kernull.views.images\n"
        "heavy = {'onnxruntime', 'PIL', 'torch', 'torchvision', 'timm'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_onnxruntime_it_says_what_to_install(networks, pictures, monkeypatch):
    _open_onnx.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match=r"pip install kernull\[vision\]"):
        BackboneFeatures("tiny", weights=networks).transform(pictures)


def test_a_gpu_that_onnxruntime_lacks_is_refused(networks, pictures, monkeypatch):
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(MissingDependencyError, match="install onnxruntime-gpu"):
        BackboneFeatures("tiny", weights=networks, device="cuda").transform(pictures)
