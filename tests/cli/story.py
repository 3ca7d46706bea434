"""The guide on tables is a story of commands with their output; this runs it, or writes it anew.

PYTHONPATH=src:. python -m tests.cli.story    # after a change of the output: look at the diff
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "tables.md"
BLOCK = re.compile(r"^```text\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)
#: Longer output is cut in the middle; so many lines of its beginning and its end are shown.
MOST, FIRST, LAST = 16, 7, 2


def run(line: str, folder: Path) -> str:
    """What a command prints, as a terminal of 100 columns shows it."""
    from kernull.cli._app import app

    words = shlex.split(line)
    if words == ["cd", "factory"]:  # where all but the first command runs
        return ""
    if words == ["python", "examples/factory_table.py", "factory"]:
        sys.path.insert(0, str(ROOT / "examples"))
        try:
            from factory_table import write_factory
        finally:
            sys.path.pop(0)
        write_factory(folder)
        return ""
    if words[0] == "head":
        text = (folder / words[-1]).read_text().splitlines()
        return "\n".join(text[: int(words[2])]) + "\n"
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner(env={"COLUMNS": "100"}).invoke(app, words[1:], prog_name="kernull")
    finally:
        os.chdir(before)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return "\n".join(text.rstrip() for text in done.output.splitlines()) + "\n"


def shown(output: str) -> str:
    """Output as the page shows it."""
    lines = output.rstrip("\n").splitlines()
    if len(lines) > MOST:
        lines = [*lines[:FIRST], "...", *lines[-LAST:]]
    return "".join(f"{line}\n" for line in lines)


def commands(page: str) -> list[tuple[str, str]]:
    """Commands of a page, each with the output that is printed below it."""
    found = []
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append((line, output))
    return found


def same(a: str, b: str) -> bool:
    """Equal but for the last digits of numbers."""
    first, second = a.split(), b.split()
    return len(first) == len(second) and all(map(_same_word, first, second))


def _same_word(a: str, b: str) -> bool:
    if a == b:
        return True
    number = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
    if number.sub("#", a) != number.sub("#", b):
        return False
    return all(map(_close, number.findall(a), number.findall(b)))


def _close(a: str, b: str) -> bool:
    """Counts are equal; other numbers are within 0.2%, and the gap of a solver is rounding."""
    if not ({".", "e"} & set(a) and {".", "e"} & set(b)):
        return a == b
    x, y = (abs(float(text.replace(",", ""))) for text in (a, b))
    return abs(x - y) <= 0.002 * max(x, y) or max(x, y) < 1e-5


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        for line, output in commands(text):
            new = shown(run(line, Path(place)))
            new = output if same(output, new) else new
            text = text.replace(f"$ {line}\n{output}", f"$ {line}\n{new}", 1)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
