"""The cache is never wrong: not after changes, damage, or a kill in the middle."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from kernull.views.images import BackboneFeatures, ImageViews
from tests.views.images.conftest import DESCRIPTION, write_network


@pytest.fixture
def extract(networks, tmp_path):
    return BackboneFeatures("tiny", weights=networks, cache=tmp_path / "cache", batch_size=5)


def fresh(extract, images):
    """The same features without a cache."""
    params = {**extract.get_params(), "cache": None}
    return type(extract)(**params).transform(images)


def files(extract):
    return sorted(extract.cache.glob("*.sqlite"))


def test_nothing_is_computed_twice(extract, pictures, counted):
    first = extract.transform(pictures)
    assert counted == [5, 5, 2]
    np.testing.assert_array_equal(extract.transform(pictures), first)
    np.testing.assert_array_equal(extract.transform(pictures[::-1]), first[::-1])
    assert counted == [5, 5, 2]
    more = np.concatenate([pictures[3:], 255 - pictures[:2]])
    np.testing.assert_allclose(extract.transform(more), fresh(extract, more), rtol=1e-5)
    assert counted[3] == 2


def test_equal_images_are_computed_once(networks, pictures, counted):
    extract = BackboneFeatures("tiny", weights=networks)
    table = extract.transform(np.concatenate([pictures, pictures]))
    assert sum(counted) == len(pictures)
    np.testing.assert_array_equal(table[:12], table[12:])


def test_a_changed_image_is_computed_again(extract, pictures, tmp_path, counted):
    path = tmp_path / "a.png"
    Image.fromarray(pictures[0]).save(path)
    before, state = extract.transform([path]), path.stat()
    changed = pictures[0].copy()
    changed[0, 0, 0] ^= 255  # one pixel
    Image.fromarray(changed).save(path)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))  # times must not matter
    after = extract.transform([path])
    assert sum(counted) == 2
    assert (before != after).any()
    np.testing.assert_array_equal(after, fresh(extract, [path]))


def test_values_of_another_type_or_shape_are_other_images(extract, rng):
    """The same bytes, but not the same image."""
    flat = rng.integers(0, 256, 72, dtype=np.uint8)
    for image in (flat.reshape(8, 9), flat.reshape(9, 8), flat.view(np.uint16).reshape(6, 6)):
        np.testing.assert_array_equal(extract.transform(image[None]), fresh(extract, image[None]))


def test_changed_weights_are_noticed(extract, networks, pictures, counted):
    before, state = extract.transform(pictures), (networks / "tiny.onnx").stat()
    write_network(networks, "tiny", seed=7)
    os.utime(networks / "tiny.onnx", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert (networks / "tiny.onnx").stat().st_size == state.st_size
    after = extract.transform(pictures)
    assert sum(counted) == 2 * len(pictures)
    assert (before != after).any()
    np.testing.assert_allclose(after, fresh(extract, pictures), rtol=1e-6)
    write_network(networks, "tiny")  # and back: the old features are still right
    np.testing.assert_array_equal(extract.transform(pictures), before)


@pytest.mark.parametrize(
    "change",
    [
        {"mean": [0.4, 0.5, 0.61]},
        {"std": [0.2, 0.3, 0.2501]},
        {"scale": 0.004},
        {"channels": "BGR"},
        {"resize": "crop"},
        {"resize": "pad"},
        {"interpolation": "bicubic"},
    ],
    ids=str,
)
def test_changed_preprocessing_is_noticed(extract, networks, pictures, counted, change):
    before = extract.transform(pictures)
    sidecar = networks / "tiny.onnx.json"
    sidecar.write_text(sidecar.read_text().replace("{", "{ ", 1))  # the same, said otherwise
    np.testing.assert_array_equal(extract.transform(pictures), before)
    assert sum(counted) == len(pictures)
    extract.set_params(preprocessing=change)
    after = extract.transform(pictures)
    assert sum(counted) == 2 * len(pictures)
    assert (before != after).any()
    np.testing.assert_allclose(after, fresh(extract, pictures), rtol=1e-6)


def test_changed_sidecars_are_noticed(extract, networks, pictures):
    before = extract.transform(pictures)
    (networks / "tiny.onnx.json").write_text('{"size": 8}')
    after = extract.transform(pictures)
    assert (before != after).any()
    np.testing.assert_allclose(after, fresh(extract, pictures), rtol=1e-6)
    assert DESCRIPTION["size"] == 8


def test_regions_and_networks_do_not_mix(networks, pictures, tmp_path, counted):
    views = ImageViews(
        ["tiny", "other"],
        {"all": None, "top": "top", "same": (0, 0, 1, 0.5)},
        weights=networks,
        cache=tmp_path,
    )
    table = views.transform(pictures)
    # "same" is "top" by another name: its features come from the cache
    assert sum(counted) == 4 * len(pictures)
    np.testing.assert_allclose(table, fresh(views, pictures), rtol=1e-6)
    top, same = (views.views_[f"tiny/{name}"] for name in ("top", "same"))
    np.testing.assert_array_equal(table[:, top], table[:, same])


# -- damage ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:cache")
def test_random_damage_never_gives_wrong_features(extract, pictures, rng):
    truth = extract.transform(pictures)
    (path,) = files(extract)
    intact = path.read_bytes()
    harmed = 0
    for _ in range(100):
        content = bytearray(intact)
        for position in rng.integers(0, len(content), 20):
            content[position] ^= int(rng.integers(1, 256))
        if rng.random() < 0.3:
            content = content[: rng.integers(0, len(content))]
        path.write_bytes(content)
        np.testing.assert_allclose(extract.transform(pictures), truth, rtol=1e-5)
        harmed += path.read_bytes() != intact
    assert harmed > 0


def test_a_row_that_does_not_match_its_checksum_is_computed_again(extract, pictures, counted):
    truth = extract.transform(pictures)
    (path,) = files(extract)
    with sqlite3.connect(path) as connection:
        image, content = connection.execute("SELECT image, content FROM features").fetchone()
        wrong = content[:-1] + bytes([content[-1] ^ 1])
        connection.execute("UPDATE features SET content = ? WHERE image = ?", (wrong, image))
    connection.close()
    np.testing.assert_allclose(extract.transform(pictures), truth, rtol=1e-5)
    assert sum(counted) == len(pictures) + 1
    np.testing.assert_allclose(extract.transform(pictures), truth, rtol=1e-5)
    assert sum(counted) == len(pictures) + 1  # and was mended


@pytest.mark.parametrize("content", [b"", b"no database" * 100], ids=["empty", "foreign"])
def test_a_file_that_is_no_cache(extract, pictures, content, recwarn):
    truth = extract.transform(pictures)
    (path,) = files(extract)
    path.write_bytes(content)
    np.testing.assert_allclose(extract.transform(pictures), truth, rtol=1e-5)
    damaged = [str(w.message) for w in recwarn if "is damaged" in str(w.message)]
    assert len(damaged) == (1 if content else 0)  # to SQLite an empty file is a new one
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM features").fetchone() == (12,)
    connection.close()


def test_a_cache_that_cannot_be_written_stops_nothing(networks, pictures, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    extract = BackboneFeatures("tiny", weights=networks, cache=tmp_path / "cache", batch_size=5)
    with pytest.warns(UserWarning, match="going on without") as caught:
        table = extract.transform(pictures)
    assert len(caught) == 1  # said once, not for every batch
    np.testing.assert_allclose(table, fresh(extract, pictures), rtol=1e-5)


def test_a_cache_that_is_busy_is_not_thrown_away(networks, pictures, tmp_path, monkeypatch):
    from kernull.views.images import cache

    monkeypatch.setattr(cache, "WAIT", 0.05)
    extract = BackboneFeatures("tiny", weights=networks, cache=tmp_path / "cache")
    truth = extract.transform(pictures)
    (path,) = files(extract)
    connection = sqlite3.connect(path)
    connection.execute("BEGIN EXCLUSIVE")
    with pytest.warns(UserWarning, match="locked"):
        np.testing.assert_allclose(extract.transform(pictures), truth, rtol=1e-5)
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM features").fetchone() == (12,)
    connection.close()


def test_reading_needs_no_lock_of_its_own(extract, pictures, counted, monkeypatch, recwarn):
    """Nor a folder that can be written: another process holds the right to write meanwhile."""
    from kernull.views.images import cache

    monkeypatch.setattr(cache, "WAIT", 0.05)
    truth = extract.transform(pictures)
    (path,) = files(extract)
    connection = sqlite3.connect(path)
    connection.execute("BEGIN IMMEDIATE")
    np.testing.assert_array_equal(extract.transform(pictures), truth)
    connection.close()
    assert sum(counted) == len(pictures)
    assert not [w for w in recwarn if "cache" in str(w.message)]


# -- kills -----------------------------------------------------------------------------------

WORKER = """
import sys
import numpy as np
from kernull.views.images import BackboneFeatures

weights, cache, images = sys.argv[1:]
extract = BackboneFeatures("tiny", weights=weights, cache=cache, batch_size=4, n_jobs=1)
np.save(images + ".done.npy", extract.transform(np.load(images)))
"""


def start(*arguments):
    command = [sys.executable, "-c", WORKER, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def stored(cache):
    """Number of images in the cache, as another process sees it."""
    try:
        (path,) = cache.glob("*.sqlite")
        # Not read-only: what a killed writer had begun is rolled back by the next one to open.
        connection = sqlite3.connect(path, timeout=60)
        count = connection.execute("SELECT count(*) FROM features").fetchone()[0]
        connection.close()
    except (ValueError, sqlite3.OperationalError):  # not there yet
        return 0
    return count


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process by POSIX")
def test_killed_in_the_middle_and_resumed(networks, tmp_path, counted, rng):
    images = rng.integers(0, 256, (2000, 8, 8), dtype=np.uint8)
    np.save(tmp_path / "images.npy", images)
    cache = tmp_path / "cache"
    kept = 0
    for _ in range(2):
        process = start(networks, cache, tmp_path / "images.npy")
        deadline = time.monotonic() + 120
        while stored(cache) < kept + 20 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.05))
        assert process.poll() is None, process.communicate()[0].decode()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        after = stored(cache)
        assert kept < after < len(images)  # it was killed in the middle, and nothing was lost
        assert after % 4 == 0  # whole batches
        kept = after
    extract = BackboneFeatures("tiny", weights=networks, cache=cache, batch_size=100)
    table = extract.transform(images)
    assert sum(counted) == len(images) - kept  # what was there is not computed again
    np.testing.assert_allclose(table, fresh(extract, images), rtol=1e-5)


def test_two_processes_may_share_a_cache(networks, tmp_path, rng):
    cache = tmp_path / "cache"
    parts = [rng.integers(0, 256, (150, 8, 8), dtype=np.uint8) for _ in range(2)]
    for i, part in enumerate(parts):
        np.save(tmp_path / f"{i}.npy", part)
    running = [start(networks, cache, tmp_path / f"{i}.npy") for i in range(2)]
    for process in running:
        text = process.communicate(timeout=300)[0].decode()
        assert process.returncode == 0, text
        assert "Warning" not in text
    assert stored(cache) == 300
    extract = BackboneFeatures("tiny", weights=networks)
    for i, part in enumerate(parts):
        found = np.load(tmp_path / f"{i}.npy.done.npy")
        np.testing.assert_allclose(found, extract.transform(part), rtol=1e-5)
