"""What a model file may take: limits in total, known before anything is allocated."""

from __future__ import annotations

import json
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_wine

from benchmarks.fuzz.corpus import found
from benchmarks.fuzz.models import pack, unpack
from kernull import MultiKernelFisherNull, load, save
from kernull.errors import ModelFileError
from kernull.files import codec, container

MB = 2**20


def refused(path, match, seconds=2.0, megabytes=500):
    """The error, which must come soon and without much memory."""
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(ModelFileError, match=match) as caught:
            load(path)
        assert time.process_time() - start < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes * MB
    finally:
        tracemalloc.stop()
    return str(caught.value)


def forge(path, text, tensors=None, version=container.FORMAT_VERSION):
    """A file with a valid checksum around any text."""
    path.write_bytes(pack(text, tensors or {}, version))
    return path


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Tree and tensors of a valid file."""
    path = tmp_path_factory.mktemp("limits") / "model"
    X, y = load_wine(return_X_y=True)
    save(MultiKernelFisherNull(scaling="standard").fit(X[y == 0]), path)
    _, tree, tensors = unpack(path.read_bytes())
    return json.dumps(tree), tensors


def test_many_small_values_are_refused_before_they_are_parsed(tmp_path):
    forge(tmp_path / "lists", "[" + "[]," * (15 * MB) + "[]]")
    refused(tmp_path / "lists", "more than 2,000,000 values")


def test_many_arrays_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MAX_TENSORS", 10)
    forge(tmp_path / "arrays", "[]", {str(i): np.zeros(1) for i in range(11)})
    refused(tmp_path / "arrays", "more than 10 arrays")


def test_arrays_that_stand_for_many_are_refused(tmp_path, parts, monkeypatch):
    """A mebibyte of flags 4,000 times as numbers would take 32 GB."""
    monkeypatch.setattr(codec, "SPARE", 0)
    text, tensors = parts
    tree = json.loads(text)
    node = {"$": "array", "tensor": "large", "dtype": "float64"}
    tree["estimator"]["parameters"]["items"]["views"] = [node] * 4000
    forge(tmp_path / "large", json.dumps(tree), tensors | {"large": np.ones(MB, dtype=bool)})
    refused(tmp_path / "large", "far more memory than the file")


def test_views_whose_rows_would_fill_the_memory_are_refused(tmp_path, parts):
    """Scaled rows are no part of a file: a view is a few bytes, whatever the number of rows."""
    text, tensors = parts
    tree, tensors = json.loads(text), dict(tensors)
    n = 200_000
    for kernels in found(tree, "KernelSet"):
        kernels["views"]["items"] *= 2000
        kernels["kernel_names"]["items"] *= 2000
        kernels["rows"] |= {"tensor": "rows"}
    for name, field, shape in (
        ("TableKernels", "factors", 2000), ("FisherRule", "weights", 2000),
        ("FisherRule", "coef", n),
    ):  # fmt: skip
        for node in found(tree, name):
            node[field] |= {"tensor": f"{field}.{shape}"}
            tensors[f"{field}.{shape}"] = np.ones(shape, dtype=np.uint8)
    kinds = len(tensors[found(tree, "EvidenceRule")[0]["extrapolates"]["tensor"]])
    found(tree, "EvidenceRule")[0]["member"] |= {"tensor": "member"}
    tensors |= {"rows": np.ones((n, 13), dtype=np.uint8), "member": np.ones((kinds, 2000), bool)}
    forge(tmp_path / "views", json.dumps(tree), tensors)
    refused(tmp_path / "views", "views that take far more memory", seconds=5.0)


def test_names_that_are_no_text_are_few(tmp_path):
    """A dictionary of whole numbers of one hash takes time by the square of their number."""
    pairs = [[i * (2**61 - 1), 0] for i in range(50_000)]
    decoder = codec.Unpacker({})
    start = time.process_time()
    with pytest.raises(ModelFileError, match="more than 5,000"):
        decoder.decode({"$": "pairs", "items": pairs})
    with pytest.raises(ModelFileError, match="more than 64 bits"):
        decoder.decode({"$": "pairs", "items": pairs[:5000]})
    assert time.process_time() - start < 2.0
    with pytest.raises(ModelFileError, match="two entries '1'"):
        decoder.decode({"$": "pairs", "items": [[1, 0], [1, 0]]})
    with pytest.raises(TypeError, match="at most 5,000 whose names are not text"):
        codec.Packer().encode(dict.fromkeys(range(5001)))


def test_what_cannot_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "MAX_VALUES", 100)
    with pytest.raises(ValueError, match="holds more than 100 values"):
        container.write_file(["a"] * 300, {}, {}, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_arrays_of_other_kinds_are_refused(tmp_path):
    path = forge(tmp_path / "array", "{}", {"a": np.ones(4, np.float32)})
    real, imagined = b'"dtype":"F32","shape":[4]', b'"dtype":"C64","shape":[2]'
    content = path.read_bytes()
    assert real in content
    path.write_bytes(content.replace(real, imagined))  # safetensors before 0.7 does not write them
    refused(path, "holds an array of complex64|its header cannot be read")


def test_numbers_are_not_rounded_to_other_types(parts, tmp_path):
    text, tensors = parts
    tree = json.loads(text)
    found(tree, "KernelSet")[0]["rows"]["dtype"] = "int8"
    refused(forge(tmp_path / "model", json.dumps(tree), tensors), "int8 that was written as")


def test_version_zero_is_not_newer(tmp_path):
    forge(tmp_path / "zero", "[]", version=0)
    assert "newer kernull" not in refused(tmp_path / "zero", "format version 0")
    forge(tmp_path / "ninety", "[]", version=90)
    refused(tmp_path / "ninety", "written by a newer kernull")


@pytest.mark.parametrize("start", [b"\0" * 16, b"\xff" * 8 + b"{", b"\x20" + b"\0" * 7 + b"{"])
def test_junk_is_not_read_whole(tmp_path, start):
    path = tmp_path / "junk"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(3 * 2**30)  # sparse
    refused(path, "is not a model file", seconds=0.5, megabytes=1)


def test_what_lies_behind_the_arrays_is_refused(tmp_path):
    path = forge(tmp_path / "model", "[]", {"a": np.zeros(3)})
    path.write_bytes(path.read_bytes() + b"more")
    refused(path, "something behind it")


def test_too_little_memory_is_not_the_fault_of_the_file(tmp_path, monkeypatch):
    path = forge(tmp_path / "model", "[]", {"a": np.zeros(3)})

    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(container, "_tensors", no_memory)
    with pytest.raises(MemoryError, match="needs more memory"):
        load(path)
