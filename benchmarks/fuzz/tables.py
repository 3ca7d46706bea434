"""Tables: headers and cells of every kind, through the commands that people run.

A command ends with 0, or with one line that says what is wrong; never with an unexpected error, and
nothing that acts reaches the terminal. What a table was fitted on, its rows can be scored.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from benchmarks.fuzz.cases import Action, WrongError, spoil

NAMES = [
    "a", "b", "k", "k=5", "k = 5", "", " ", "a", "A", '"', "'", "=1+1", "@x", "a,b", "a;b",
    "a\tb", "line\nbreak", "\x1b]0;t\x07", "\u202egnp", "x" * 300, "é", "日本", "0", "1e5", "nan",
    "row", "score", "p_value", "$", "..", "*", "[a-z]", "-v", "--help", "\ufeffbom", "a=b=c",
    "{x}", "%s",
]  # fmt: skip
CELLS = [
    "0", "1", "-1", "1.5", "1,5", "1e308", "-1e308", "1e309", "1e-320", "nan", "NaN", "inf",
    "-inf", "", " ", "NA", "null", "None", "-", "?", "abc", "=cmd|' /C calc'!A0", "+1", "@SUM(1)",
    '"', "'", "a\nb", "a\rb", "\x00", "\x1b[2J", "\u202e", "2024-01-31", "31.01.2024",
    "2024-13-45", "9" * 400, "1_000", "0x10", "１２", "1 000", "1.000,5", "true", "x" * 2000,
    "日本", "\ud83d",
]  # fmt: skip
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"]


class Tables:
    """The commands fit and score on tables as nobody should write them."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:  # what is imported on first use is no case
            lines = b"".join(b"%d,%d\n" % (i % 7, i * i % 11) for i in range(40))
            if try_table(b"a,b\n" + lines, Path(folder), False) != "works":
                raise RuntimeError("a plain table is refused")

    def case(self, rng: np.random.Generator, folder: Path) -> tuple[str, Action]:
        kind = str(rng.choice(["plain", "cells", "names", "both", "bytes", "quotes"]))
        content = spoil_quotes(rng) if kind == "quotes" else make_table(rng, kind)
        packed = rng.random() < 0.1
        return kind, lambda: try_table(content, folder, packed)

    def corpus(self, folder: Path) -> Iterator[tuple[str, Action]]:
        past = {
            "a stray quote in a header": b'"a,b\n' + b"1,2\n" * 500_000,
            "a column called k=5": b"k=5,x\n" + b"1.5,2\n3,5.5\n4,7\n2.5,1.25\n" * 10,
            "a cell of 1e308": b"a,b\n" + b"1,2\n3,5\n4,7\n" * 10 + b"1e308,1\n",
            "one long line": b"a,b\n" + b"1" * 20_000_000,
        }  # fmt: skip
        for name, content in past.items():
            yield name, lambda content=content: try_table(content, folder, False)  # type: ignore[misc]
        bomb = gzip.compress(b"a,b\n" + b"1" * 60_000_000, 1)
        fit_wide(folder, 10_000)
        yield "10,000 columns", lambda: score_wide(folder)
        yield "one line, packed", lambda: try_table(bomb, folder, None)


def fit_wide(folder: Path, columns: int) -> None:
    """A model of a table of many columns, and three rows for it."""
    import kernull

    rows = np.random.default_rng(0).normal(size=(20, columns)).round(2)
    names = [f"c{j}" for j in range(columns)]
    table = kernull.TableViews().fit(dict(zip(names, rows.T, strict=True)))
    cells = table.transform(dict(zip(names, rows.T, strict=True)))
    model = kernull.MultiKernelFisherNull(scaling="standard").fit(cells)
    kernull.save(model, folder / "wide.kernull", table=table)
    with (folder / "wide.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows[:3].tolist()])


def score_wide(folder: Path) -> str:
    """It was quadratic in the columns."""
    code, said = command(folder, "score", "wide.kernull", "wide.csv", "-q")
    if code != 0:
        raise WrongError(said[:300])
    return "works"


def make_table(rng: np.random.Generator, kind: str) -> bytes:
    """A table of numbers, with some cells or names replaced."""
    n, d = int(rng.integers(0, 40)), int(rng.integers(1, 7))
    names = [f"c{j}" for j in range(d)]
    if kind in ("names", "both"):
        names = [str(rng.choice(NAMES)) if rng.random() < 0.5 else name for name in names]
    rows = [[f"{value:.4g}" for value in row] for row in rng.normal(size=(n, d))]
    if kind in ("cells", "both"):
        share = rng.choice([0.02, 0.3, 1.0])
        rows = [[str(rng.choice(CELLS)) if rng.random() < share else c for c in r] for r in rows]
        if rows and rng.random() < 0.3:
            rows[int(rng.integers(n))] = rows[0][: int(rng.integers(d + 1))]
    out = io.StringIO()
    separator = str(rng.choice([",", ";", "\t", "|"]))
    ends = str(rng.choice(["\n", "\r\n", "\r"]))
    csv.writer(out, delimiter=separator, lineterminator=ends).writerows([names, *rows])
    encoding = str(rng.choice(ENCODINGS))
    data = out.getvalue().encode(encoding, "replace")
    return spoil(data, rng) if kind == "bytes" else data


def spoil_quotes(rng: np.random.Generator) -> bytes:
    """Text of quotes, separators and line ends."""
    parts = ['"', ",", "\n", "\r", "a", "1", ";", '""', " ", "\\", "\t"]
    return "".join(rng.choice(parts, int(rng.integers(1, 2000)))).encode()


def try_table(content: bytes, folder: Path, packed: bool | None) -> str:
    """Fit a model to a table and score the table by it."""
    name = "table.csv" if packed is False else "table.csv.gz"
    data = gzip.compress(content, 1) if packed else content
    (folder / name).write_bytes(data)
    code, said = command(folder, "fit", name, "-o", "table.kernull", "-q")
    if code != 0:
        return "refused"
    code, said = command(folder, "score", "table.kernull", name, "-q")
    if code != 0:
        raise WrongError(f"fitted, but not scored: {said[:300]}")
    return "works"


def command(folder: Path, *args: str) -> tuple[int, str]:
    """Run a command in this process; its exit code and what it said."""
    from kernull.cli._app import app

    before = Path.cwd()
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            done = CliRunner().invoke(app, list(args), prog_name="kernull")
    finally:
        os.chdir(before)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code not in (0, 1, 2) or "unexpected" in done.stderr:
        raise WrongError(f"exit code {done.exit_code}: {done.stderr[:300]}")
    acting = [c for c in done.stderr if not (c.isprintable() or c in "\n\t")]
    if acting:
        raise WrongError(f"{acting[:5]} on the terminal")
    return done.exit_code, done.stderr
