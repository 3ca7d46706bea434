"""Ready-made embeddings from files."""

from __future__ import annotations

import numpy as np
import pytest

from kernull import MultiKernelFisherNull, load_embeddings


@pytest.fixture
def arrays(rng):
    return {"clip": rng.normal(size=(9, 4)).astype(np.float32), "sound": rng.normal(size=(9, 2))}


@pytest.mark.filterwarnings("ignore::kernull.errors.TooFewRowsWarning")
def test_npz(tmp_path, arrays):
    path = tmp_path / "all.npz"
    np.savez(path, **arrays, year=np.arange(9), name=np.array(list("abcdefghi")))
    table, views, row_names = load_embeddings(path)
    assert views == {"clip": [0, 1, 2, 3], "sound": [4, 5], "year": [6]}
    np.testing.assert_array_equal(table[:, views["clip"]], arrays["clip"])
    np.testing.assert_array_equal(table[:, views["sound"]], arrays["sound"])
    assert row_names.tolist() == list("abcdefghi")
    some = load_embeddings(path, views=["sound", "clip"], row_names="year")
    assert some.views == {"sound": [0, 1], "clip": [2, 3, 4, 5]}
    assert some.row_names.tolist() == list(range(9))
    MultiKernelFisherNull(views=some.views).fit(some.table)


def test_parquet(tmp_path, arrays):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(arrays["clip"].ravel()), 4)
    order = [10, 2, 0, 1, 3, 4, 5, 6, 7, 8, 9]  # numbers, not letters, decide: 2 before 10
    columns = {f"net_{i}": np.full(9, float(i)) for i in order}
    content = pa.table(
        {
            "file": list("abcdefghi"),
            "clip": fixed,
            "sound": arrays["sound"].tolist(),
            "age": np.arange(9),
            **columns,
        }
    )
    pq.write_table(content, tmp_path / "all.parquet", row_group_size=4)
    table, views, row_names = load_embeddings(tmp_path / "all.parquet")
    assert {name: len(where) for name, where in views.items()} == {
        "clip": 4,
        "sound": 2,
        "age": 1,
        "net": 11,
    }
    np.testing.assert_array_equal(table[:, views["clip"]], arrays["clip"])
    np.testing.assert_array_equal(table[:, views["sound"]], arrays["sound"])
    np.testing.assert_array_equal(table[0, views["net"]], np.arange(11))
    assert row_names.tolist() == list("abcdefghi")


def test_files_that_cannot_be_read(tmp_path, arrays):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_embeddings(tmp_path / "missing.npz")
    (tmp_path / "a.csv").write_text("1,2")
    with pytest.raises(ValueError, match=r"ends in \.npz, \.parquet"):
        load_embeddings(tmp_path / "a.csv")
    for suffix in ("npz", "parquet"):
        (tmp_path / f"bad.{suffix}").write_bytes(b"PK no such thing")
        with pytest.raises(ValueError, match=rf"cannot read.*bad\.{suffix}"):
            load_embeddings(tmp_path / f"bad.{suffix}")
    np.savez(tmp_path / "pickled.npz", clip=np.array([{}, {}], dtype=object))
    with pytest.raises(ValueError, match="cannot read"):
        load_embeddings(tmp_path / "pickled.npz")
    np.savez(tmp_path / "maps.npz", clip=np.zeros((3, 2, 2)))
    with pytest.raises(ValueError, match=r"\(3, 2, 2\)"):
        load_embeddings(tmp_path / "maps.npz")
    np.savez(tmp_path / "rows.npz", clip=np.zeros((3, 2)), sound=np.zeros((4, 2)))
    with pytest.raises(ValueError, match="same rows"):
        load_embeddings(tmp_path / "rows.npz")
    np.savez(tmp_path / "names.npz", name=np.array(["a", "b"]), **arrays)
    with pytest.raises(ValueError, match="2 names for 9 rows"):
        load_embeddings(tmp_path / "names.npz")
    np.savez(tmp_path / "text.npz", name=np.array(["a", "b"]))
    with pytest.raises(ValueError, match="holds no embedding"):
        load_embeddings(tmp_path / "text.npz")
    np.savez(tmp_path / "good.npz", **arrays)
    with pytest.raises(ValueError, match=r"no \['clap'\]; it has \['clip', 'sound'\]"):
        load_embeddings(tmp_path / "good.npz", views=["clap"])
    with pytest.raises(ValueError, match="row_names"):
        load_embeddings(tmp_path / "good.npz", row_names="file")


def test_ragged_lists(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet")
    for rows in ([[1.0, 2.0], [3.0]], [[1.0, 2.0], None]):
        pq.write_table(pa.table({"clip": rows}), tmp_path / "ragged.parquet")
        with pytest.raises(ValueError, match="differ in length or are missing"):
            load_embeddings(tmp_path / "ragged.parquet")
