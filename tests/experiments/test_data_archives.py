"""Archives of data sets unpack to no more than they may, in memory alone."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

import pytest

from experiments.datasets._archives import gunzip, tar_files, zip_file
from kernull.safety import archives


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(archives, "MAX_UNPACKED", 20_480)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 5)


def test_gzip():
    assert gunzip(gzip.compress(b"abc") + gzip.compress(b"def")) == b"abcdef"
    assert gunzip(gzip.compress(b"abc") + b"\0" * 9) == b"abc"
    with pytest.raises(ValueError, match=r"unpacks to more than [\d,]+ bytes"):
        gunzip(gzip.compress(b"\0" * 10**7))
    with pytest.raises(ValueError, match="no gzip file"):
        gunzip(b"<html>404</html>")
    with pytest.raises(ValueError, match="cut short"):
        gunzip(gzip.compress(b"abc" * 100)[:-9])


def tar(files, links=(), mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
        for name in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
    return out.getvalue()


def test_tar():
    files = [("a/one", b"1"), ("../two", b"22")]
    for mode in ("w", "w:gz"):
        assert list(tar_files(tar(files, ["link"], mode))) == files  # nothing goes to the disk
    for bad in (tar([(str(i), b"") for i in range(6)]), tar([("big", b"0" * 10**6)], mode="w:gz")):
        with pytest.raises(ValueError, match="more than"):
            list(tar_files(bad))
    with pytest.raises(ValueError, match="no whole tar"):
        list(tar_files(b"junk" * 200))


def test_zip():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/good", b"abc")
        archive.writestr("folder/bomb", b"\0" * 10**6)
    assert zip_file(out.getvalue(), "good") == b"abc"
    with pytest.raises(ValueError, match="unpacks to more"):
        zip_file(out.getvalue(), "bomb")
    with pytest.raises(ValueError, match="holds no file other"):
        zip_file(out.getvalue(), "other")
    with pytest.raises(ValueError, match="no whole zip"):
        zip_file(b"PK" + b"\0" * 50, "good")
