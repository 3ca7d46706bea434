"""Archives unpack to no more than they may, in memory alone."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib

import numpy as np
import pytest

import kernull
from kernull.errors import TableError
from kernull.safety import archives, check_npz, gunzip, tar_files, zip_file
from kernull.views.images import load_embeddings


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


def test_npz(tmp_path):
    np.savez(tmp_path / "good.npz", a=np.ones((3, 2)))
    check_npz(tmp_path / "good.npz")
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros((1000, 1000)))
    with pytest.raises(ValueError, match=r"cannot read .* unpacks to more than"):
        load_embeddings(tmp_path / "bomb.npz")
    with pytest.raises(TableError, match="unpacks to more than"):
        kernull.read_table(tmp_path / "bomb.npz")
    assert kernull.read_table(tmp_path / "good.npz").names == ["a_0", "a_1"]
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(tmp_path / "liar.npz", "w") as archive:
        archive.writestr("a.npy", header.getvalue() + b"\0" * 8)
    with pytest.raises(ValueError, match="announces another size"):
        load_embeddings(tmp_path / "liar.npz")
    np.savez(tmp_path / "code.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="could run code"):
        load_embeddings(tmp_path / "code.npz")
    (tmp_path / "junk.npz").write_bytes(zlib.compress(b"junk"))
    with pytest.raises(ValueError, match="cannot read"):
        load_embeddings(tmp_path / "junk.npz")
