"""Pages of README and docs as programs: every block is run and what it prints is compared.

- A block ``python`` is run with the names of the blocks before it; where it prints, the block
  ``text`` that follows at once is what it prints. A warning is an error.
- A block ``console`` is a terminal: lines that begin with ``$`` are commands, the lines below what
  they print.
- A word after the language names what a block needs (``python torch``): see tests/needs.py.

After a change of the output, write it anew, and look at the diff:

    PYTHONPATH=src:. python -m tests.docs.pages [PAGE ...]
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.cli.story import run as run_kernull
from tests.cli.story import same as same_words
from tests.needs import is_met

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(python|console)( \w+)?\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"\n?```text\n(?!\$ )(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
#: Longer output is cut in the middle; so many lines of its beginning and its end are shown.
MOST, FIRST, LAST = 36, 12, 3
#: What is printed depends on the machine here.
SECONDS = re.compile(r"\b\d+\.\d+ s\b")


@dataclass(frozen=True)
class Block:
    """A block of a page, and the text that stands for what it prints."""

    kind: str
    need: str
    code: str
    printed: str
    start: int
    end: int


def written_pages() -> list[str]:
    """Pages that people write, relative to the root: all but those that programs write."""
    skipped = {"_build", "auto_examples", "generated", "results"}
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return ["README.md"] + [
        str(page.relative_to(ROOT)) for page in pages if not skipped & set(page.parts)
    ]


def blocks(text: str) -> list[Block]:
    """The blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(text):
        kind, need, code = match.group(1), (match.group(2) or "").strip(), match.group(3)
        printed, end = "", match.end()
        if kind == "python" and (after := PRINTED.match(text, match.end())):
            printed, end = after.group(1), after.end()
        found.append(Block(kind, need, code, printed, match.start(), end))
    return found


def shown(output: str) -> str:
    """Output as a page shows it: without trailing blanks, cut in the middle where it is long."""
    lines = [line.rstrip() for line in output.rstrip().splitlines()]
    if len(lines) > MOST:
        lines = [*lines[:FIRST], "...", *lines[-LAST:]]
    return "".join(f"{line}\n" for line in lines)


def same(a: str, b: str) -> bool:
    """Equal but for the last digits of numbers, and for times."""
    return same_words(SECONDS.sub("# s", a), SECONDS.sub("# s", b))


def kept(old: str, new: str) -> str:
    """What a page shows stays where only last digits and times differ."""
    return old if same(old, new) else new


class Reader:
    """Somebody who types what a page shows, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: dict[str, object] = {"__name__": "__main__"}

    def type(self, block: Block, page: str) -> Block:
        """Run a block; return it with what it prints now."""
        if block.kind == "python":
            printed = kept(block.printed, shown(self._python(block.code, page)))
            return replace(block, printed=printed)
        code = "".join(
            f"$ {line}\n{kept(old, shown(self._command(line)))}"
            for line, old in commands(block.code)
        )
        return replace(block, code=code)

    def _python(self, code: str, page: str) -> str:
        out = io.StringIO()
        with _inside(self.folder), contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("error")
            # Of libraries about each other, on which a page has no influence.
            for category in (DeprecationWarning, FutureWarning, PendingDeprecationWarning):
                warnings.simplefilter("ignore", category)
            exec(compile(code, page, "exec"), self.names)
        return out.getvalue()

    def _command(self, line: str) -> str:
        line, _, _ = line.partition("  #")
        words = line.split()
        if words[:2] == ["make", "demo"]:
            words = ["python", "examples/demo.py"]
        if words[0] == "make":  # the target is there; the tests are what it runs
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), f"no target {words[1]}"
            return ""
        if words[:2] == ["pip", "install"]:
            return ""
        if words[0] == "python" and words[1] in ("examples/demo.py", "examples/line.py"):
            return self._python(
                f"import sys, runpy; sys.argv = {words[1:]}\n"
                f"runpy.run_path({str(ROOT / words[1])!r}, run_name='__main__')",
                line,
            )
        return run_kernull(line.strip(), self.folder)


def commands(code: str) -> list[tuple[str, str]]:
    """Commands of a terminal, each with what is printed below it."""
    parts = re.split(r"^\$ ", code, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a terminal begins with $: {parts[0]!r}"
    return [(line, output) for line, _, output in (part.partition("\n") for part in parts[1:])]


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def rewritten(page: str, folder: Path) -> str:
    """The text of a page with what its blocks print now."""
    text = (ROOT / page).read_text(encoding="utf-8")
    reader, out, place = Reader(folder), [], 0
    for block in blocks(text):
        new = reader.type(block, page) if not block.need or is_met(block.need) else block
        need = f" {block.need}" if block.need else ""
        out += [text[place : block.start], f"```{block.kind}{need}\n{new.code}```\n"]
        if block.kind == "python" and new.printed:
            out.append(f"\n```text\n{new.printed}```\n")
        place = block.end
    return "".join([*out, text[place:]])


def main(pages: list[str]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    for page in pages or written_pages():
        with tempfile.TemporaryDirectory() as folder:
            text = rewritten(page, Path(folder))
        changed = text != (ROOT / page).read_text(encoding="utf-8")
        (ROOT / page).write_text(text, encoding="utf-8")
        print("wrote" if changed else "same ", page)


if __name__ == "__main__":
    main(sys.argv[1:])
