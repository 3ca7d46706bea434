"""Ready-made embeddings, of images or anything else, as the views of one table."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernull.errors import need
from kernull.safety import check_npz
from kernull.views.columns import join_views

#: "clip_0", "clip.17", "clip/3": a name, and the number of one of its features.
_NUMBERED = re.compile(r"(.*?)[._/\- ]?(\d+)")


class EmbeddingViews(NamedTuple):
    """A table, its views, and the names of its rows."""

    #: All embeddings side by side, of shape (n, sum of d).
    table: NDArray[Any]
    #: Columns of each view, for the ``views`` parameter of every estimator.
    views: dict[str, list[int]]
    #: Names of the rows, where the file has them, of shape (n,).
    row_names: NDArray[Any] | None


def load_embeddings(
    path: str | os.PathLike[str],
    *,
    views: Iterable[str] | None = None,
    row_names: str | None = None,
) -> EmbeddingViews:
    """Read embeddings from an NPZ or Parquet file.

    Parameters
    ----------
    path : path-like
        An ``.npz`` file, where each array (n, d) or (n,) of numbers is a view; or a ``.parquet``
        file, where each column of lists is a view, and numeric columns that differ in a number at
        the end (``clip_0``, ``clip_1``, ...) are one together.
    views : iterable of str, optional
        The views to take, in this order; by default all.
    row_names : str, optional
        Array or column that names the rows; by default the only one of text, if there is one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "songs.npz"
    ...     np.savez(path, sound=np.ones((4, 3)), lyrics=np.zeros((4, 2)), title=list("abcd"))
    ...     table, views, titles = load_embeddings(path)
    >>> table.shape, views, titles.tolist()
    ((4, 5), {'sound': [0, 1, 2], 'lyrics': [3, 4]}, ['a', 'b', 'c', 'd'])
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(
            f"path: there is no file {str(file)!r}; expected an .npz or .parquet file."
        )
    readers = {".npz": _read_npz, ".parquet": _read_parquet, ".pq": _read_parquet}
    if file.suffix.lower() not in readers:
        raise ValueError(
            f"path: got {str(file)!r}; expected a file that ends in .npz, .parquet or .pq."
        )
    numbers, texts = readers[file.suffix.lower()](file, row_names)
    found = _row_names(file, row_names, numbers, texts)
    chosen = list(numbers) if views is None else list(views)
    if missing := [name for name in chosen if name not in numbers]:
        raise ValueError(f"views: {str(file)!r} has no {missing}; it has {sorted(numbers)}.")
    if not chosen:
        raise ValueError(f"path: {str(file)!r} holds no embedding: no array or column of numbers.")
    table, columns = join_views({name: numbers[name] for name in chosen})
    if found is not None and len(found) != len(table):
        raise ValueError(
            f"row_names: {len(found)} names for {len(table)} rows in {str(file)!r}; expected one "
            "a row."
        )
    return EmbeddingViews(table, columns, found)


Arrays = dict[str, NDArray[Any]]


def _row_names(
    file: Path, chosen: str | None, numbers: Arrays, texts: Arrays
) -> NDArray[Any] | None:
    if chosen is None:
        return next(iter(texts.values())) if len(texts) == 1 else None
    if chosen in texts:
        return texts[chosen]
    if chosen in numbers:
        return numbers.pop(chosen)  # numbers of rows, not an embedding
    raise ValueError(
        f"row_names: {str(file)!r} has no {chosen!r}; it has {sorted({**numbers, **texts})}."
    )


def _read_npz(file: Path, _: str | None) -> tuple[Arrays, Arrays]:
    numbers, texts = {}, {}
    try:
        check_npz(file)
        with np.load(file, allow_pickle=False) as arrays:
            for name in arrays.files:
                values = arrays[name]
                if values.dtype.kind in "US":
                    texts[name] = values
                elif values.dtype.kind in "biuf" and values.ndim in (1, 2):
                    numbers[name] = values
                else:
                    raise ValueError(
                        f"the array {name!r} is {values.dtype} of shape {values.shape}; expected "
                        "numbers of shape (n, d) or (n,)"
                    )
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"path: cannot read {str(file)!r}: {error}.") from error
    return numbers, texts


def _read_parquet(file: Path, row_names: str | None) -> tuple[Arrays, Arrays]:
    wanted = "Parquet files need pyarrow; install it with `pip install kernull[tables]`."
    pa, pq = need("pyarrow", wanted), need("pyarrow.parquet", wanted)
    try:
        content = pq.read_table(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"path: cannot read {str(file)!r}: {error}.") from error
    numbers: Arrays = {}
    texts: Arrays = {}
    for name, column in zip(content.column_names, content.columns, strict=True):
        kind = str(column.type)
        if "list<" in kind:
            numbers[name] = _lists(file, name, column)
        elif kind in ("string", "large_string", "string_view") or name.startswith("__index"):
            texts[name] = np.asarray(column.to_pylist(), dtype=object)
        else:
            numbers[name] = np.asarray(column.to_numpy())
        if name in numbers and numbers[name].dtype.kind not in "biuf":
            raise ValueError(
                f"path: the column {name!r} of {str(file)!r} is {kind}; expected numbers, lists of "
                "numbers, or text."
            )
    return _grouped(file, numbers, row_names), texts


def _lists(file: Path, name: str, column: Any) -> NDArray[Any]:
    """An array (n, d) from a column of lists of equal length."""
    import pyarrow.compute as pc

    lengths = pc.list_value_length(column).unique().to_pylist()
    if len(lengths) != 1 or lengths[0] is None:
        raise ValueError(
            f"path: the lists of column {name!r} of {str(file)!r} differ in length or are missing; "
            "expected d numbers in every row."
        )
    flat = np.asarray(pc.list_flatten(column).to_numpy())
    return flat.reshape(len(column), lengths[0])


def _grouped(file: Path, numbers: Arrays, row_names: str | None) -> Arrays:
    """Columns that differ in a number at the end, as one view in the order of the numbers."""
    out: Arrays = {}
    groups: dict[str, dict[int, NDArray[Any]]] = {}
    for name, values in numbers.items():
        match = _NUMBERED.fullmatch(name) if values.ndim == 1 and name != row_names else None
        if match is None or not match[1]:
            out[name] = values
        else:
            groups.setdefault(match[1], {})[int(match[2])] = values
    for name, columns in groups.items():
        if name in out:
            raise ValueError(f"path: {str(file)!r} has a column {name!r} and numbered ones too.")
        out[name] = np.column_stack([columns[i] for i in sorted(columns)])
    return out
