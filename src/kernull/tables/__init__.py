"""Tables as people have them: reading files, kinds of columns, categories and gaps.

Names are loaded on first use: the command line reads options without scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernull.tables.encoder import EncodedRows
    from kernull.tables.gaps import GapFiller
    from kernull.tables.kinds import Column, match_columns
    from kernull.tables.reading import CHUNK_ROWS, open_table, read_table
    from kernull.tables.table import Source, Table, as_table
    from kernull.tables.text_files import TextFormat
    from kernull.tables.transformer import Reading, TableViews

_LAZY = {
    "CHUNK_ROWS": "reading", "Column": "kinds", "EncodedRows": "encoder", "GapFiller": "gaps",
    "Reading": "transformer",
    "Source": "table", "Table": "table", "TableViews": "transformer", "TextFormat": "text_files",
    "as_table": "table",
    "match_columns": "kinds", "open_table": "reading", "read_table": "reading",
}  # fmt: skip

__all__ = [
    "CHUNK_ROWS", "Column", "EncodedRows", "GapFiller", "Reading", "Source", "Table", "TableViews",
    "TextFormat", "as_table", "match_columns", "open_table", "read_table",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'kernull.tables' has no attribute {name!r}")
    value = getattr(import_module(f"kernull.tables.{_LAZY[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
