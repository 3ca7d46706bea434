"""What a model file may take: limits in total, known before anything is allocated."""

from __future__ import annotations

import json
import time
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save as save_tensors

from kernull.errors import ModelFileError
from kernull.files import format as file_format
from kernull.files import values
from kernull.files.format import read_tree, write_tree
from kernull.files.values import Node

MB = 2**20


def forge(path, text, tensors=(), version="3"):
    """A file with a valid checksum around any text."""
    tensors = list(tensors)
    metadata = {
        "kernull-format": version,
        "kernull": text,
        "sha256": file_format._hash(text, tensors),
    }
    named = {str(i): tensor for i, tensor in enumerate(tensors)}
    path.write_bytes(save_tensors(named, metadata=metadata))
    return path


def refused(path, match, seconds=2.0, megabytes=500):
    """The error, which must come soon and without much memory."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(ModelFileError, match=match) as caught:
            read_tree(path)
        assert time.perf_counter() - start < seconds
        assert tracemalloc.get_traced_memory()[1] < megabytes * MB
    finally:
        tracemalloc.stop()
    return str(caught.value)


def padded(count, long, kind="str"):
    """An array of text of which one item is long; the others are padded to its length."""
    return {
        "$": "strings",
        "dtype": kind,
        "shape": [count],
        "values": ["a" * long] + [""] * (count - 1),
    }


def test_padded_text_is_limited_in_total(tmp_path):
    one = json.dumps(padded(3000, 3000))  # 9 million characters; 15 kB in the file
    forge(tmp_path / "one", one)
    assert read_tree(tmp_path / "one").nbytes == 4 * 9_000_000
    forge(tmp_path / "many", f"[{','.join([one] * 60)}]")
    refused(tmp_path / "many", "characters of text")


def test_many_small_values_are_refused_before_they_are_parsed(tmp_path):
    forge(tmp_path / "lists", "[" + "[]," * (15 * MB) + "[]]")
    refused(tmp_path / "lists", "more than 2,000,000 values")


def test_many_values_below_that_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(values, "MAX_VALUES", 1000)
    forge(tmp_path / "values", json.dumps([[0] * 10] * 100))
    refused(tmp_path / "values", "more than 1,000 values")
    forge(tmp_path / "names", json.dumps([padded(600, 1, "object")] * 2))
    refused(tmp_path / "names", "more than 1,000 values")


def test_many_arrays_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(file_format, "MAX_TENSORS", 10)
    forge(tmp_path / "arrays", "[]", [np.zeros(1)] * 11)
    refused(tmp_path / "arrays", "more than 10 arrays")


def test_long_names_of_objects_are_refused(tmp_path):
    for name, field in (("x" * 101, "a"), ("x", "a" * 101)):
        node = {"$": "node", "name": name, "fields": {field: 1}}
        forge(tmp_path / "node", json.dumps(node))
        refused(tmp_path / "node", "name has more than 100 characters")


def test_a_dictionary_has_every_key_once(tmp_path):
    twice = {"$": "dict", "items": [["task", 1], ["task", 2]]}
    forge(tmp_path / "twice", json.dumps(twice))
    refused(tmp_path / "twice", "two entries 'task'")


def test_what_cannot_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(values, "MAX_VALUES", 100)
    with pytest.raises(ValueError, match=r"cannot be written .* more than 100 values"):
        write_tree(Node("model", {"names": ["a"] * 200}), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_arrays_of_other_kinds_are_refused(tmp_path):
    path = tmp_path / "array"
    forge(path, json.dumps({"$": "array", "tensor": 0}), [np.ones(4, np.float32)])
    real, imagined = b'"dtype":"F32","shape":[4]', b'"dtype":"C64","shape":[2]'
    content = path.read_bytes()
    assert real in content
    path.write_bytes(content.replace(real, imagined))  # safetensors before 0.7 does not write them
    refused(path, "holds an array of complex64|its header cannot be read")


def test_version_zero_is_not_newer(tmp_path):
    forge(tmp_path / "zero", "[]", version="0")
    assert "newer kernull" not in refused(tmp_path / "zero", "version 0, which never was one")
    forge(tmp_path / "ninety", "[]", version="90")
    refused(tmp_path / "ninety", "written by a newer kernull")


@pytest.mark.parametrize("start", [b"\0" * 16, b"\xff" * 8 + b"{", b"\x20" + b"\0" * 7 + b"{"])
def test_junk_is_not_read_whole(tmp_path, start):
    path = tmp_path / "junk"
    with path.open("wb") as file:
        file.write(start)
        file.truncate(3 * 2**30)  # sparse
    refused(path, "is not a model file", seconds=0.5, megabytes=1)


def test_what_lies_behind_the_arrays_is_refused(tmp_path):
    path = forge(tmp_path / "model", "[]", [np.zeros(3)])
    path.write_bytes(path.read_bytes() + b"more")
    refused(path, "something behind it")


def test_too_little_memory_is_not_the_fault_of_the_file(tmp_path, monkeypatch):
    path = forge(tmp_path / "model", "[]", [np.zeros(3)])

    def no_memory(*_):
        raise MemoryError

    monkeypatch.setattr(file_format, "_tensors", no_memory)
    with pytest.raises(MemoryError, match="needs more memory"):
        read_tree(path)
