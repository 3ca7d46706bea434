"""Writing results: whole or not at all, to a file or to standard output."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from kernull._whole import atomic_write
from kernull.cli._errors import DataError, UsageError

__all__ = ["RowWriter", "check_writable", "finite", "open_rows"]

_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".pq", ".arrow", ".feather", ".ipc", ".npz")


def check_writable(path: str, suffixes: Sequence[str] = (), inputs: Sequence[str] = ()) -> None:
    """Say early, before any work, that a file cannot be written, or is one of the inputs."""
    if path == "-":
        return
    file = Path(path)
    for given in inputs:
        if given != "-" and file.exists() and Path(given).exists() and file.samefile(given):
            raise UsageError(f"--out: {path}: is an input of this command; choose another name.")
    if suffixes and file.suffix.lower() not in suffixes:
        raise UsageError(f"--out: {path}: expected a name that ends in {', '.join(suffixes)}.")
    if file.is_dir():
        raise UsageError(f"--out: {path}: is a folder; expected a file name.")
    if file.exists() and not file.is_file():
        return  # a pipe or a device
    folder = file.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"--out: {path}: there is no folder {str(folder)!r}; create it first.")
    try:  # asking the system is not enough: root, containers and network folders differ
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise DataError(f"--out: {path}: cannot write there ({error.strerror}).") from None


def finite(value: Any) -> Any:
    """What JSON can hold: numbers that are none, or infinite, become null."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class RowWriter:
    """Rows in chunks, to CSV, TSV or JSON lines."""

    def __init__(self, file: IO[str], names: Sequence[str], kind: str = "csv") -> None:
        self.file, self.names, self.kind = file, tuple(names), kind
        if kind != "jsonl":
            self.csv = csv.writer(
                file, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n"
            )
        self.started = False

    def write(self, columns: Sequence[Any]) -> None:
        """Write some rows, given by column."""
        # Python numbers print their shortest exact form; NumPy's print their type.
        lists = [c.tolist() if isinstance(c, np.ndarray) else list(c) for c in columns]
        rows = zip(*lists, strict=True)
        if not self.started and self.kind != "jsonl":
            self.csv.writerow(
                self.names
            )  # with the first rows: an error before them leaves nothing
        self.started = True
        if self.kind == "jsonl":
            self.file.writelines(
                json.dumps(finite(dict(zip(self.names, row, strict=True)))) + "\n" for row in rows
            )
        else:
            self.csv.writerows(rows)


class _CollectedWriter:
    """Rows that are kept and written at the end, for formats by column."""

    def __init__(self, path: Path, names: Sequence[str], kind: str) -> None:
        self.path, self.names, self.kind = path, tuple(names), kind
        self.parts: list[list[Any]] = [[] for _ in names]

    def write(self, columns: Sequence[Any]) -> None:
        for part, column in zip(self.parts, columns, strict=True):
            part.append(np.asarray(column))

    def close(self) -> None:
        columns = {n: np.concatenate(p) for n, p in zip(self.names, self.parts, strict=True)}
        if self.kind == "npz":
            with self.path.open("wb") as file:
                np.savez(file, **columns)  # type: ignore[arg-type]
            return
        try:
            import pyarrow
            from pyarrow import feather, parquet
        except ImportError:
            raise DataError(
                "--out: Parquet and Arrow files need pyarrow: pip install 'kernull[tables]'."
            ) from None
        table = pyarrow.table(columns)
        if self.kind == "parquet":
            parquet.write_table(table, self.path)
        else:
            feather.write_feather(table, str(self.path))


@contextlib.contextmanager
def open_rows(
    path: str, names: Sequence[str], as_json: bool = False
) -> Iterator[RowWriter | _CollectedWriter]:
    """A writer for rows, by the suffix of a file or for standard output (``-``)."""
    if path == "-":
        writer = RowWriter(sys.stdout, names, "jsonl" if as_json else "csv")
        yield writer
        sys.stdout.flush()
        return
    suffix = Path(path).suffix.lower()
    with atomic_write(path) as part:
        if suffix in (".parquet", ".pq", ".npz", ".arrow", ".feather", ".ipc"):
            kind = {".pq": "parquet", ".feather": "arrow", ".ipc": "arrow"}.get(suffix, suffix[1:])
            collected = _CollectedWriter(part, names, kind)
            yield collected
            collected.close()
        else:
            with part.open("w", encoding="utf-8", newline="") as file:
                yield RowWriter(file, names, suffix[1:] if suffix in _SUFFIXES else "csv")
