r"""The file format: safetensors with a versioned JSON header.

The tensors of the file are arrays by name. Its metadata has, as text,

- ``kernull-format``: the version of this format;
- ``kernull-about``: what a reader wants to know first, as JSON (`read_about`);
- ``kernull``: the tree of values as JSON (`kernull.files.codec`);
- ``sha256``: a hash of all these and of the tensors, so that damage is noticed before anything is
  made of it. It is no signature: it does not say who wrote the file.

Reading makes plain values and arrays, nothing else: there is no pickle and nothing to execute.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kernull._runtime import write_whole
from kernull.errors import ModelFileError

#: Version of the format that is written and read.
FORMAT_VERSION = 4
#: Larger files are not read unless asked for.
MAX_BYTES = 4 * 2**30
#: A header (names, parameters, text) above this size is not read.
MAX_HEADER = 64 * 2**20
#: Files with more arrays are not read.
MAX_TENSORS = 250_000
#: Values in a file, arrays as one each: some 35,000 views with one column each.
MAX_VALUES = 2_000_000
#: A value may be nested this deep.
MAX_DEPTH = 60
#: What a tensor of a file may hold.
DTYPES = {
    np.dtype(name).str: name
    for name in (
        *("bool", "float32", "float64", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    )
}
#: What to do with a file that is damaged.
AGAIN = "take another copy of it, or fit and save the model again"

Tensors = dict[str, "np.ndarray[Any, Any]"]


def write_file(
    tree: Any, tensors: Tensors, about: Mapping[str, Any], path: str | os.PathLike[str]
) -> None:
    """Write a tree of JSON values and its arrays, all of it or nothing."""
    text = json.dumps(tree, allow_nan=False, separators=(",", ":"))
    if _too_many(text):
        raise ValueError(f"model: holds more than {MAX_VALUES:,} values, which no file may.")
    write_whole(to_bytes(text, tensors, json.dumps(about)), Path(path))


def to_bytes(
    text: str, tensors: Tensors, about: str = "{}", version: int = FORMAT_VERSION
) -> bytes:
    """The content of a file."""
    from safetensors.numpy import save

    metadata = {"kernull-format": str(version), "kernull-about": about, "kernull": text}
    metadata["sha256"] = _hash(metadata, tensors)
    return bytes(save(tensors, metadata=metadata))


def read_file(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> tuple[Any, Tensors]:
    """The tree and the arrays of a file that anybody may have written.

    A file that is damaged, not of this format, of another version, or above ``max_bytes`` is a
    `ModelFileError`.
    """
    with _opened(path) as (file, size):
        if size > max_bytes:
            raise ModelFileError(
                f"it has {size} bytes, above the limit of {max_bytes}; pass a higher max_bytes if "
                "you know where it comes from"
            )
        head = _read_header(file, size)
        metadata, length = _metadata(head[8:])
        if len(head) + length != size:
            raise ModelFileError("it is cut short, or there is something behind it")
        # Before parsing, since what is parsed takes memory.
        if _too_many(metadata.get("kernull", "")):
            raise ModelFileError(f"it holds more than {MAX_VALUES:,} values")
        tensors = _tensors(head + file.read(length))
        if metadata.pop("sha256", "") != _hash(metadata, tensors):
            raise ModelFileError(f"its hash is wrong: it is damaged or was changed; {AGAIN}")
        return json.loads(metadata["kernull"], parse_constant=_no_constant), tensors


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the header says of a model, without reading the model.

    Parameters
    ----------
    path : path-like
        A file that `kernull.save` wrote.

    Returns
    -------
    dict
        Date, note, versions of libraries, estimator, parameters, kernels with weights, and a
        fingerprint of the data.
    """
    with _opened(path) as (file, size):
        about = json.loads(_metadata(_read_header(file, size)[8:])[0].get("kernull-about", "{}"))
        if not isinstance(about, dict):
            raise ModelFileError("its header does not say what it holds")
        return about


def _too_many(text: str) -> bool:
    """Whether JSON may hold more than `MAX_VALUES` values: a value takes about two of these."""
    return sum(map(text.count, ",[{")) > 2 * MAX_VALUES


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
    except Exception as error:  # of the parsers; whatever they raise, the file is to blame
        raise ModelFileError(
            f"{name!r} is not a model file, or is damaged: its header cannot be read; {AGAIN}."
        ) from error


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
    # An array takes seven of these; the tree, which is here as one text, has others.
    if sum(map(header.count, (b",", b"[", b"{"))) > 2 * MAX_VALUES + 10 * MAX_TENSORS:
        raise ModelFileError(f"its header holds more than {MAX_VALUES:,} values")
    entries = json.loads(header.decode("utf-8"))
    metadata = entries.pop("__metadata__", None) if isinstance(entries, dict) else None
    if not isinstance(metadata, dict) or "kernull-format" not in metadata:
        raise ModelFileError("it is not written by kernull.save")
    if not all(isinstance(item, str) for item in metadata.values()):
        raise ModelFileError("its header holds more than text")
    _check_version(metadata["kernull-format"])
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
    if int(version) < FORMAT_VERSION:
        raise ModelFileError(
            f"it was written by a kernull before 0.3.0 (format version {version}), which is no "
            "longer read; fit the model again and save it, or load the file with that kernull"
        )


def _tensors(data: bytes) -> Tensors:
    """The arrays of a safetensors file, writable and aligned."""
    from safetensors.numpy import load

    tensors: Tensors = load(data)
    for name in tensors:
        tensor = tensors[name]
        if tensor.dtype.str not in DTYPES:
            raise ModelFileError(f"it holds an array of {tensor.dtype.name}")
        if not tensor.size and np.prod([max(size, 1) for size in tensor.shape]) > MAX_VALUES:
            raise ModelFileError("it holds an array of empty rows, and too many of them")
        tensors[name] = np.array(tensor)
    return tensors


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its values hold {name}")


def _hash(metadata: Mapping[str, str], tensors: Tensors) -> str:
    digest = hashlib.sha256()
    for name in sorted(metadata):
        digest.update(f"|{name}|{metadata[name]}".encode("utf-8", "surrogatepass"))
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"|{name}|{tensor.dtype.str}{tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()
