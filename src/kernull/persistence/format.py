r"""The file format: safetensors with a versioned JSON header.

A file is a safetensors file. Its tensors are the arrays ``"0"``, ``"1"``, ...; its metadata has

- ``kernull-format``: the version of this format, as text;
- ``kernull``: the tree of values as JSON (see `kernull.persistence.values`);
- ``sha256``: a hash of that JSON and of all tensors, so that damage is found before anything is
  made of it. It is no signature: it does not say who wrote the file.

Reading makes plain values and arrays, nothing else: there is no pickle and nothing to execute.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from kernull._whole import write_whole
from kernull.errors import ModelFileError
from kernull.persistence.values import decode, encode

__all__ = ["FORMAT_VERSION", "read_tree", "write_tree"]

#: Version of the format that is written. Every version up to this one can be read.
FORMAT_VERSION = 1
#: Files above this size are not read unless asked for.
MAX_BYTES = 4 * 2**30
#: A header (names, parameters, text) above this size is not read.
MAX_HEADER = 64 * 2**20


def write_tree(tree: Any, path: str | os.PathLike[str]) -> None:
    """Write a tree of plain values and arrays, all of it or nothing.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and take the
    final name in one step: whatever happens, ``path`` is the old file or the new one.

    Parameters
    ----------
    tree : values as described in `kernull.persistence.values`
    path : path-like
        Where to write; an existing file is replaced.
    """
    tensors: list[np.ndarray[Any, Any]] = []
    text = json.dumps(encode(tree, tensors), allow_nan=False, separators=(",", ":"))
    metadata = {
        "kernull-format": str(FORMAT_VERSION),
        "kernull": text,
        "sha256": _hash(text, tensors),
    }
    from safetensors.numpy import save

    data = save({str(i): tensor for i, tensor in enumerate(tensors)}, metadata=metadata)
    write_whole(data, Path(path))


def read_tree(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Any:
    """Read a tree back from a file that anybody may have written.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int
        Larger files are refused.

    Returns
    -------
    The tree.

    Raises
    ------
    ModelFileError
        If the file is damaged, not of this format, of a newer version, or too large.
    FileNotFoundError, PermissionError, IsADirectoryError
        If there is no such file to read.
    """
    data = _read_whole(Path(path), max_bytes)
    try:
        return _parse(data)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)!r} is not a model file: {error}.") from error
    except Exception as error:  # the parsers' own; whatever they raise, the file is to blame
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a model file: {type(error).__name__}: {str(error)[:200]}"
        ) from error


def _parse(data: bytes) -> Any:
    from safetensors.numpy import load

    metadata = _metadata(data)
    version = metadata.get("kernull-format", "")
    if not (version.isdecimal() and version.isascii() and len(version) < 6):
        raise ModelFileError("its header has no format version")
    if not 1 <= int(version) <= FORMAT_VERSION:
        raise ModelFileError(
            f"it has format version {version}, and this kernull reads versions 1 to "
            f"{FORMAT_VERSION}; it was written by a newer kernull, so install that"
        )
    text = metadata.get("kernull", "")
    named = load(data)
    if set(named) != {str(i) for i in range(len(named))}:
        raise ModelFileError("its arrays are not numbered")
    tensors = [np.array(named[str(i)]) for i in range(len(named))]  # writable and aligned
    if metadata.get("sha256") != _hash(text, tensors):
        raise ModelFileError("its hash is wrong: the file is damaged or was changed")
    return decode(json.loads(text, parse_constant=_no_constant), tensors)


def _metadata(data: bytes) -> dict[str, str]:
    """The text entries of a safetensors header."""
    size = int.from_bytes(data[:8], "little")
    if not data:
        raise ModelFileError("it is empty")
    if data[8:9] != b"{":  # where the header of every safetensors file begins
        raise ModelFileError("it is not written by kernull.save")
    if size > len(data) - 8:
        raise ModelFileError("it is cut short")
    if size > MAX_HEADER:
        raise ModelFileError(f"its header has {size} bytes, more than {MAX_HEADER}")
    header = json.loads(data[8 : 8 + size].decode("utf-8"))
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or "kernull-format" not in metadata:
        raise ModelFileError("it is not written by kernull.save")
    if not all(isinstance(item, str) for item in metadata.values()):
        raise ModelFileError("its header holds more than text")
    return metadata


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its values hold {name}")


def _hash(text: str, tensors: list[np.ndarray[Any, Any]]) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass"))
    for tensor in tensors:
        digest.update(f"|{tensor.dtype.name}{tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).data)
    return digest.hexdigest()


def _read_whole(path: Path, max_bytes: int) -> bytes:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise ModelFileError(
                f"{os.fspath(path)!r} has {size} bytes, above the limit of {max_bytes}; pass a "
                "higher max_bytes if you trust it."
            )
        return file.read(size)  # never more than was announced, should the file grow meanwhile
