"""Downloads: contents are checked, archives repacked; no test reaches for the network."""

import gzip
import hashlib
import io
import os
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

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
    text = "\n".join(" ".join(f"{value:.9g}" for value in row) for row in table)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mfeat-mor", text)
    return out.getvalue()


def test_digits_are_converted(tmp_path, monkeypatch, rng):
    table = rng.normal(size=(2000, 6))
    digest = _download.table_digest(table).hexdigest()
    remote = Remote("https://x", _download._digits_view("mor", 6, digest))
    monkeypatch.setattr(_download, "REMOTE", {"mfeat/mfeat-mor.csv": remote})
    path = download("mfeat/mfeat-mor.csv", tmp_path, lambda url: _archive_of_digits(table))
    read = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_allclose(read[:, :-1], table, atol=1e-6)
    np.testing.assert_array_equal(read[:, -1], np.repeat(np.arange(10), 200))
    table[5, 5] += 1e-3
    with pytest.raises(DownloadError, match="checksum"):
        download("mfeat/mfeat-mor.csv", tmp_path, lambda url: _archive_of_digits(table))


def test_numbers_with_the_right_moments_are_not_the_digits(tmp_path, rng):
    """Shape, mean, spread and three entries were all that was looked at."""
    fake = rng.normal(0.132032, 0.100713, size=(2000, 76))
    fake = (fake - fake.mean()) / fake.std() * 0.100713 + 0.132032
    fake[0, 0], fake[1000, 38], fake[-1, -1] = 0.065882, 0.082388, 0.085241
    text = "\n".join(" ".join(f"{value:.6f}" for value in row) for row in fake)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("mfeat-fou", text)
    with pytest.raises(DownloadError, match=r"uci\.edu.*checksum"):
        download("mfeat/mfeat-fou.csv", tmp_path, lambda url: out.getvalue())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.data
def test_the_digits_that_we_have_are_those(tmp_path):
    home = os.environ["KERNULL_DATA"]
    views = {
        view: np.loadtxt(Path(home, f"mfeat/mfeat-{view}.csv"), delimiter=",", skiprows=1)[:, :-1]
        for view in _download._DIGITS
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for view, table in views.items():
            lines = (" ".join(f"{value:.8f}" for value in row) for row in table)
            archive.writestr(f"mfeat/mfeat-{view}", "\n".join(lines))
    asked = []
    for view in views:
        if not (tmp_path / f"mfeat/mfeat-{view}.csv").is_file():
            download(
                f"mfeat/mfeat-{view}.csv", tmp_path, lambda u: asked.append(u) or out.getvalue()
            )
    assert len(asked) == 1  # one archive, one download
    for view, table in views.items():
        read = np.loadtxt(tmp_path / f"mfeat/mfeat-{view}.csv", delimiter=",", skiprows=1)
        np.testing.assert_array_equal(read[:, :-1], table)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "MAX_BYTES", 1000)
    packed = gzip.compress(bytes(10**6))
    monkeypatch.setattr(_download, "REMOTE", {"a.gz": Remote("https://x", _download._gzip_of(""))})
    with pytest.raises(DownloadError, match="unpacks to more than 1,000 bytes"):
        download("a.gz", tmp_path, lambda url: packed)


@pytest.mark.parametrize("page", [b"<html>Service unavailable</html>", b"", b"\x1f\x8b\x08cut"])
def test_an_error_page_is_told_and_not_kept(tmp_path, page):
    """It ended in a BadGzipFile, and stayed in a cache that was asked first ever after."""
    for name in ("mnist/train-images-idx3-ubyte.gz", "mfeat/mfeat-fou.csv"):
        with pytest.raises(DownloadError, match=r"what was downloaded is not|checksum"):
            download(name, tmp_path, lambda url: page)
    with pytest.raises(DownloadError):
        download("flowers17/17flowers_images.tar", tmp_path, lambda url: page)
    assert list(tmp_path.rglob("*.*")) == []


class Web:
    """Answers by address: bytes, or another address to go to."""

    def __init__(self, pages):
        self.pages, self.asked = pages, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def get(self, url, **options):
        assert options["allow_redirects"] is False
        self.asked.append(url)
        page = self.pages[url]
        moved = isinstance(page, str)

        @contextmanager
        def answer():
            yield SimpleNamespace(
                is_redirect=moved,
                headers={"location": page} if moved else {"content-length": "4"},
                raise_for_status=lambda: None,
                iter_content=lambda size: [page],
                raw=SimpleNamespace(tell=lambda: len(page)),
            )

        return answer()


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ({"https://a/x": "http://a/x", "http://a/x": b"evil"}, "expected https"),
        ({"https://a/x": "file:///etc/passwd"}, "expected https"),
        ({"https://a/x": "/x"}, "more than 5 redirections"),
        ({"https://a/x": b"cut"}, "3 of 4 bytes"),
        ({"https://a/x": b"0" * 1001}, "more than 1,000 bytes"),
    ],
)
def test_what_is_fetched_over_unsafe_ways_is_refused(monkeypatch, pages, said):
    requests = pytest.importorskip("requests")
    web = Web(pages)
    monkeypatch.setattr(requests, "Session", lambda: web)
    monkeypatch.setattr(_download, "MAX_BYTES", 1000)
    with pytest.raises(DownloadError, match=said):
        _download._fetch("https://a/x")
    assert all(url.startswith("https://") for url in web.asked)


def test_redirections_over_https_are_followed(monkeypatch):
    requests = pytest.importorskip("requests")
    web = Web({"https://a/x": "/y", "https://a/y": "https://b/z", "https://b/z": b"good"})
    monkeypatch.setattr(requests, "Session", lambda: web)
    assert _download._fetch("https://a/x") == b"good"


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
