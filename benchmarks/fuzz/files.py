"""Parquet, .xlsx, .xls and .ods files, read by a process of its own that outlives the cases.

python -m benchmarks.fuzz.files    # the process: paths on standard input, outcomes on output
"""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fuzz import cases, seeds
from benchmarks.fuzz.cases import Action, Outcome, Watch, WrongError, spoil

#: Shares of the formats: a spreadsheet takes about 50 ms, a Parquet file 2.
SHARES = {"parquet": 0.7, "xlsx": 0.1, "xls": 0.1, "ods": 0.1}
#: What numbers in the XML of a sheet, and places of cells, are replaced by.
NUMBERS = [b"0", b"-1", b"1048576", b"4294967295", b"99999999999999999999", b"1e999", b"nan", b""]
PLACES = [b"XFD1048576", b"A1048576", b"XFD1", b"A0", b"ZZZZZZ1", b"A99999999999", b"1", b""]


class Files:
    """Tables in binary formats with some bytes changed."""

    def __init__(self) -> None:
        self.reader: Any = None
        self.seeds = {
            "parquet": list(seeds.parquet()),
            "xlsx": [seeds.xlsx()],
            "xls": [seeds.xls()],
            "ods": [seeds.ods()],
        }
        for kind, contents in self.seeds.items():
            for content in contents:
                if self._tell(content, kind)["outcome"] != "works":
                    raise RuntimeError(f"a valid {kind} file is refused")

    def case(self, rng: np.random.Generator, folder: Path) -> tuple[str, Action]:
        self._start()  # here: while a case runs, a program that starts is a finding
        kind = str(rng.choice(list(SHARES), p=list(SHARES.values())))
        contents = self.seeds[kind]
        content = contents[int(rng.integers(len(contents)))]
        if kind in ("xlsx", "ods") and rng.random() < 0.7:
            content = spoil_member(content, rng)
        elif kind in ("xls", "parquet") and rng.random() < 0.7:
            content = overwrite(content, rng)
        else:
            for _ in range(int(rng.integers(1, 4))):
                content = spoil(content or b"\0", rng)
        return kind, lambda: self.read(content, kind)

    def corpus(self, folder: Path) -> Iterator[tuple[str, Action]]:
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", 8) as archive, archive.open("sheet.xml", "w") as sheet:
            for _ in range(300):
                sheet.write(b" " * 2**20)
        repeated = (
            '<table:table-row table:number-rows-repeated="1048576"><table:table-cell '
            'table:number-columns-repeated="16384" office:value-type="float" office:value="1"/>'
            "</table:table-row>"
        )
        past = {
            "codes without a category": (seeds.far_codes(), "parquet"),
            "a cell far from all others": (seeds.far_cell(), "xlsx"),
            "a cell fairly far away": (seeds.far_cell("XFD1000"), "xlsx"),
            "a sheet that unpacks to 300 MB": (bomb.getvalue(), "xlsx"),
            "a sheet that is cut off": (seeds.ods(cut=True), "ods"),
            "cells repeated 17 billion times": (seeds.ods(extra=repeated), "ods"),
        }
        for name, (content, kind) in past.items():
            self._start()
            yield name, lambda content=content, kind=kind: self.read(content, kind)  # type: ignore[misc]

    def read(self, content: bytes, kind: str) -> str:
        """Let the other process read a file; what it found wrong is an error here."""
        told = self._tell(content, kind)
        if told["findings"]:
            raise WrongError("; ".join(told["findings"]))
        outcome = Outcome(told["outcome"])
        outcome.seconds, outcome.megabytes = told["seconds"], told["megabytes"]
        return outcome

    def close(self) -> None:
        """End the other process."""
        if self.reader is not None:
            self.reader.stdin.close()
            self.reader.stdout.close()
            self.reader.wait()
            self.reader = None

    def _start(self) -> None:
        if self.reader is None:
            command = [sys.executable, "-m", "benchmarks.fuzz.files"]
            pipe = subprocess.PIPE
            self.reader = subprocess.Popen(command, stdin=pipe, stdout=pipe)

    def _tell(self, content: bytes, kind: str) -> dict[str, Any]:
        self._start()
        try:
            self.reader.stdin.write(f"{kind} {len(content)}\n".encode() + content)
            self.reader.stdin.flush()
            told: dict[str, Any] = json.loads(self.reader.stdout.readline())
        except (OSError, ValueError):
            code = self.reader.wait()
            self.reader = None
            return {"findings": [f"the process that reads ended with {code}"], "outcome": ""}
        if told["megabytes"] > cases.MAX_MEGABYTES:
            self.close()  # its largest memory would be that of every case to come
        return told


def overwrite(content: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes and numbers in place, so that what lies behind them stays where it was."""
    out = bytearray(content)
    for _ in range(int(rng.integers(1, 8))):
        at, size = int(rng.integers(len(out) - 8)), int(rng.choice([1, 1, 2, 4]))
        extreme = rng.choice([0, 1, 127, 128, 255], size).astype("u1").tobytes()
        out[at : at + size] = extreme if rng.random() < 0.5 else rng.bytes(size)
    return bytes(out)


def spoil_member(content: bytes, rng: np.random.Generator) -> bytes:
    """Spoil one file in an archive: its bytes, a number in its XML, or the place of a cell."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(out, "w", 8) as target:
        names = source.namelist()
        sheets = [name for name in names if "sheet" in name or name == "content.xml"]
        chosen = str(rng.choice(sheets if rng.random() < 0.7 else names))
        for name in names:
            data = source.read(name)
            if name == chosen:
                for _ in range(int(rng.integers(1, 4))):
                    data = _spoil_xml(data, rng)
            target.writestr(name, data)
    return out.getvalue()


def _spoil_xml(data: bytes, rng: np.random.Generator) -> bytes:
    import re

    kind = rng.integers(3)
    found = list(re.finditer(rb'="([A-Z]{1,3}\d+)"' if kind == 1 else rb"[>\"](\d+)[<\"]", data))
    if kind == 0 or not found:
        return spoil(data or b"\0", rng)
    place = found[int(rng.integers(len(found)))]
    new = (PLACES if kind == 1 else NUMBERS)[int(rng.integers(8))]
    return data[: place.start(1)] + new + data[place.end(1) :]


# -- the process that reads ------------------------------------------------------------------


def _seconds() -> float:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _megabytes() -> float:
    """The largest memory of this process, or of one that it started."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return max(
        cases.peak_megabytes(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit
    )


def _read(content: bytes, kind: str) -> str:
    """Read all cells of a table, as numbers and as text."""
    from kernull.errors import TableError
    from kernull.tables import reading
    from kernull.tables.text_files import TextFormat

    opener = "parquet" if kind == "parquet" else "excel"
    try:
        file = io.BytesIO(content)
        table = reading._open(
            opener, "t", file, reading.CHUNK_ROWS, TextFormat(), None, None
        ).read()
    except TableError:
        return "refused"
    for name in table.names:
        values, _, _ = table.parse(name)
        if not len(values) == len(table.text(name)) == len(table):
            raise WrongError(f"{name!r} has another length than the table")
    return "works"


def _judge(content: bytes, kind: str, watch: Watch) -> dict[str, Any]:
    start, findings, outcome = _seconds(), [], "FINDING"
    try:
        with warnings.catch_warnings(), watch.watching():
            warnings.simplefilter("error")
            outcome = _read(content, kind)
    except BaseException as error:
        findings.append(f"{type(error).__name__}: {str(error)[:300]}")
    findings += [event for event in watch.seen if "excel_process" not in event]
    used = {"seconds": _seconds() - start, "megabytes": _megabytes()}
    return {"outcome": outcome, "findings": findings, **used}


def main() -> None:
    limit = (8 * 2**30, 8 * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, limit)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import pyarrow.parquet  # noqa: F401

    watch, source = Watch(), sys.stdin.buffer
    while line := source.readline():
        kind, length = line.decode().split()
        content = source.read(int(length))
        used = int(_seconds())
        resource.setrlimit(resource.RLIMIT_CPU, (used + cases.STOP_SECONDS, resource.RLIM_INFINITY))
        print(json.dumps(_judge(content, kind, watch)), flush=True)


if __name__ == "__main__":
    main()
