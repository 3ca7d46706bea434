"""Tables of the command line: `kernull.tables`, with its exit codes and notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernull.cli._console import DataError, UsageError, note

if TYPE_CHECKING:
    from kernull.tables import Source, TextFormat

#: Rows read at once: a few megabytes of text for ordinary tables.
CHUNK_ROWS = 20_000


@dataclass(frozen=True)
class FileFormat:
    """How files are written, as the options say."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None

    def text(self) -> TextFormat:
        """The same for files of text, where "tab" is a tab."""
        # Imported here: `kernull --help` should not pull in NumPy.
        from kernull.tables import TextFormat

        sep = {"tab": "\t", "\\t": "\t"}.get(self.sep or "", self.sep)
        try:
            return TextFormat(sep, self.decimal, self.encoding)
        except ValueError as error:
            raise UsageError(f"--{error}") from None


def open_table(
    path: str, form: FileFormat | None = None, chunk_rows: int = CHUNK_ROWS, quiet: bool = False
) -> Source:
    """Open a table, and say what was guessed about it."""
    from kernull.errors import MissingDependencyError, TableError
    from kernull.tables import open_table as open_

    form = form or FileFormat()
    text = form.text()
    try:
        source = open_(path, chunk_rows, text, form.sheet)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError(str(error)) from None
    except (TableError, MissingDependencyError) as error:
        raise DataError(str(error)) from None
    for said in source.notes:
        note(f"{source.label}: {said}", quiet)
    return source
