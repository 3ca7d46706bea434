"""Downloads: contents are checked, archives repacked; no test reaches for the network."""

import gzip
import hashlib
import io
import tarfile
import zipfile

import numpy as np
import pytest

from experiments.datasets import (
    DatasetNotFound,
    _download,
    load_mnist,
    load_multiple_features,
)
from experiments.datasets._download import REMOTE, DownloadError, Remote, download


def test_contents_are_checked_not_packing(tmp_path, monkeypatch):
    content = b"what the file says"
    good = Remote("https://x", _download._gzip_of(hashlib.sha256(content).hexdigest()))
    monkeypatch.setattr(_download, "REMOTE", {"a/b.gz": good})
    for level in (1, 9):  # packed differently, the same contents
        path = download("a/b.gz", tmp_path, lambda url, k=level: gzip.compress(content, k))
        assert gzip.decompress(path.read_bytes()) == content
    path.unlink()
    with pytest.raises(DownloadError, match="checksum"):
        download("a/b.gz", tmp_path, lambda url: gzip.compress(b"something else"))
    assert list(tmp_path.rglob("*.*")) == []  # nothing is left under any name


def test_network_errors_become_one_kind(tmp_path):
    def fail(url):
        raise TimeoutError("no answer")

    with pytest.raises(DownloadError, match=r"mfeat.*|multiple.*TimeoutError: no answer"):
        download("mfeat/mfeat-mor.csv", tmp_path, fail)


def _archive_of_digits(table):
    text = "\n".join(" ".join(f"{value:.6f}" for value in row) for row in table)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mfeat-mor", text)
    return out.getvalue()


def test_digits_are_converted(tmp_path, monkeypatch, rng):
    table = rng.normal(size=(2000, 6))
    facts = (table.mean(), table.std(), table[0, 0], table[1000, 3], table[-1, -1])
    remote = Remote("https://x", _download._digits_view("mor", 6, *facts))
    monkeypatch.setattr(_download, "REMOTE", {"mfeat/mfeat-mor.csv": remote})
    path = download("mfeat/mfeat-mor.csv", tmp_path, lambda url: _archive_of_digits(table))
    read = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_allclose(read[:, :-1], table, atol=1e-6)
    np.testing.assert_array_equal(read[:, -1], np.repeat(np.arange(10), 200))
    table[5, 5] += 1e6
    with pytest.raises(DownloadError, match="expected"):
        download("mfeat/mfeat-mor.csv", tmp_path, lambda url: _archive_of_digits(table))


def test_flowers_are_repacked(tmp_path, monkeypatch):
    images = {f"image_{i:04d}.jpg": bytes([i]) * 10 for i in (2, 1)}
    digest = hashlib.sha256(
        b"".join(name.encode() + images[name] for name in sorted(images))
    ).hexdigest()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in images.items():
            entry = tarfile.TarInfo(f"jpg/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    converted = _download._flowers(digest)(out.getvalue())
    with tarfile.open(fileobj=io.BytesIO(converted)) as archive:
        assert archive.getnames() == ["17flowers/image_0001.jpg", "17flowers/image_0002.jpg"]
    with pytest.raises(DownloadError, match="checksum"):
        _download._flowers("0" * 64)(out.getvalue())


def test_order_of_places(tmp_path, monkeypatch):
    """The data folder, then the cache, then a download into the cache."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    monkeypatch.setenv("KERNULL_DATA", str(data))
    monkeypatch.setenv("KERNULL_CACHE", str(cache))
    with pytest.raises(DatasetNotFound, match="KERNULL_OFFLINE"):
        load_multiple_features()
    monkeypatch.setenv("KERNULL_OFFLINE", "0")
    asked = []

    def fetch(url):
        asked.append(url)
        raise ConnectionError("no network here")

    monkeypatch.setattr(_download, "_fetch", fetch)
    with pytest.raises(DatasetNotFound, match=r"Downloading it failed .*no network here"):
        load_mnist()
    assert asked == [REMOTE["mnist/train-images-idx3-ubyte.gz"].url]
    with pytest.raises(DatasetNotFound, match="the argument home"):
        load_mnist(home=data)  # a folder given by name is taken at its word
    assert len(asked) == 1
