"""Archives unpack to no more than they may, in memory alone."""

from __future__ import annotations

import io
import zipfile
import zlib

import numpy as np
import pytest

import kernull
from kernull.errors import TableError
from kernull.safety import archives, check_npz
from kernull.views.images import load_embeddings


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setattr(archives, "MAX_UNPACKED", 20_480)
    monkeypatch.setattr(archives, "MAX_MEMBERS", 5)


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
