r"""The file format: safetensors with a versioned JSON header.

A file is a safetensors file. Its tensors are the arrays ``"0"``, ``"1"``, ...; its metadata has

- ``kernull-format``: the version of this format, as text;
- ``kernull``: the tree of values as JSON (see `kernull.files.values`);
- ``sha256``: a hash of that JSON and of all tensors, so that damage is found before anything is
  made of it. It is no signature: it does not say who wrote the file.

Reading makes plain values and arrays, nothing else: there is no pickle and nothing to execute.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernull._runtime import write_whole
from kernull.errors import ModelFileError
from kernull.files.values import DTYPES, MAX_VALUES, Decoder, check_size, encode, entries

#: Version of the format that is written, and the one that is read.
FORMAT_VERSION = 3
#: Files above this size are not read unless asked for.
MAX_BYTES = 4 * 2**30
#: A header (names, parameters, text) above this size is not read.
MAX_HEADER = 64 * 2**20
#: Files with more arrays than this are not read.
MAX_TENSORS = 250_000
#: What to do with a file that is damaged.
AGAIN = "take another copy of it, or fit and save the model again"


def write_tree(tree: Any, path: str | os.PathLike[str]) -> None:
    """Write a tree of values (see `kernull.files.values`), all of it or nothing.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and take the final
    name in one step: whatever happens, ``path`` is the old file or the new one.
    """
    tensors: list[np.ndarray[Any, Any]] = []
    values = encode(tree, tensors)
    check_size(values, tensors)
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    from safetensors.numpy import save

    version = {"kernull-format": str(FORMAT_VERSION)}
    metadata = {**version, "kernull": text, "sha256": _hash(text, tensors)}
    data = save({str(i): tensor for i, tensor in enumerate(tensors)}, metadata=metadata)
    write_whole(data, Path(path))


def read_tree(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Any:
    """Read a tree back from a file that anybody may have written.

    A file that is damaged, not of this format, of a newer version, or above ``max_bytes`` is a
    `ModelFileError`.
    """
    with _opened(path) as (file, size):
        return _parse(file, size, max_bytes)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """The text entries in the header of a file that `write_tree` wrote."""
    with _opened(path) as (file, size):
        return _metadata(_read_header(file, size)[8:])[0]


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, int]]:
    """An open file and its size; what its content raises is a `ModelFileError` that names it."""
    name = os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except ModelFileError as error:
        raise ModelFileError(f"{name!r} is not a model file: {error}.") from error
    except MemoryError as error:
        raise MemoryError(f"{name!r} needs more memory to be read than there is.") from error
    except OSError:
        raise
    except Exception as error:  # the parsers' own; whatever they raise, the file is to blame
        raise ModelFileError(
            f"{name!r} is not a model file, or is damaged: its header cannot be read; {AGAIN}."
        ) from error


def _parse(file: BinaryIO, size: int, max_bytes: int) -> Any:
    """Read what the header announces, and no more, once the header is one of ours."""
    if size > max_bytes:
        raise ModelFileError(
            f"it has {size} bytes, above the limit of {max_bytes}; pass a higher max_bytes if you "
            "trust it"
        )
    head = _read_header(file, size)
    metadata, length = _metadata(head[8:])
    _check_version(metadata["kernull-format"])
    if len(head) + length != size:
        raise ModelFileError("it is cut short, or there is something behind it")
    text = metadata.get("kernull", "")
    # Before parsing, since what is parsed takes memory: a value takes about two of these.
    if sum(map(text.count, ",[{")) > 2 * MAX_VALUES:
        raise ModelFileError(f"it holds more than {MAX_VALUES:,} values")
    tensors = _tensors(head + file.read(length))
    if metadata.get("sha256") != _hash(text, tensors):
        raise ModelFileError(f"its hash is wrong: it is damaged or was changed; {AGAIN}")
    return Decoder(tensors).decode(json.loads(text, parse_constant=_no_constant))


def _read_header(file: BinaryIO, size: int) -> bytes:
    """The header with its length before it, of a file that looks like one of ours."""
    start = file.read(9)
    if not start:
        raise ModelFileError("it is empty")
    if start[8:] != b"{":  # where the header of every safetensors file begins
        raise ModelFileError("it is not written by kernull.save")
    length = int.from_bytes(start[:8], "little")
    if length > size - 8:
        raise ModelFileError("it is cut short")
    if length > MAX_HEADER:
        raise ModelFileError(f"its header has {length} bytes, more than {MAX_HEADER}")
    return start + file.read(length - 1)


def _metadata(header: bytes) -> tuple[dict[str, str], int]:
    """The text entries of a safetensors header, and the bytes of the tensors behind it."""
    if header.count(b"data_offsets") > MAX_TENSORS:
        raise ModelFileError(f"it holds more than {MAX_TENSORS:,} arrays")
    # An array takes seven of these; the tree, which is here as one text, has its own.
    if sum(map(header.count, (b",", b"[", b"{"))) > 2 * MAX_VALUES + 10 * MAX_TENSORS:
        raise ModelFileError(f"its header holds more than {MAX_VALUES:,} values")
    entries = json.loads(header.decode("utf-8"))
    metadata = entries.pop("__metadata__", None) if isinstance(entries, dict) else None
    if not isinstance(metadata, dict) or "kernull-format" not in metadata:
        raise ModelFileError("it is not written by kernull.save")
    if not all(isinstance(item, str) for item in metadata.values()):
        raise ModelFileError("its header holds more than text")
    ends = [entry["data_offsets"][1] for entry in entries.values()]
    return metadata, int(max(ends, default=0))


def _check_version(version: str) -> None:
    if not (version.isdecimal() and version.isascii() and len(version) < 6):
        raise ModelFileError("its header has no format version")
    if int(version) > FORMAT_VERSION:
        raise ModelFileError(
            f"it has format version {version}, and this kernull reads version {FORMAT_VERSION}; "
            "it was written by a newer kernull, so install that"
        )
    if int(version) in (1, 2):
        raise ModelFileError(
            f"it was written by kernull 0.{version} (format version {version}), which is no longer "
            f"read; fit the model again and save it, or load the file with kernull 0.{version}"
        )
    if int(version) < 1:
        raise ModelFileError(f"it has format version {version}, which never was one")


def _tensors(data: bytes) -> list[np.ndarray[Any, Any]]:
    """The arrays of a safetensors file, in order, writable and aligned."""
    from safetensors.numpy import load

    named = load(data)
    if set(named) != {str(i) for i in range(len(named))}:
        raise ModelFileError("its arrays are not numbered")
    tensors = []
    for i in range(len(named)):
        tensor = named.pop(str(i))
        if _name(tensor.dtype) not in DTYPES:
            raise ModelFileError(f"it holds an array of {tensor.dtype.name}")
        if not tensor.size and entries(tensor.shape) > MAX_VALUES:
            raise ModelFileError("it holds an array of empty rows, and too many of them")
        tensors.append(np.array(tensor))
    return tensors


@cache
def _name(dtype: np.dtype[Any]) -> str:
    """NumPy puts the name together each time, which takes long for thousands of small arrays."""
    return dtype.name


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its values hold {name}")


def _hash(text: str, tensors: list[np.ndarray[Any, Any]]) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for tensor in tensors:
        digest.update(f"|{_name(tensor.dtype)}{tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()
