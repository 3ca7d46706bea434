"""Tables as people have them: reading files, kinds of columns, categories and gaps."""

from kernull.tables.kinds import Column, match_columns
from kernull.tables.reading import CHUNK_ROWS, open_table, read_table
from kernull.tables.stored import attach_views, load_views
from kernull.tables.table import Source, Table, as_table
from kernull.tables.text_files import TextFormat
from kernull.tables.transformer import Reading, TableViews

__all__ = [
    "CHUNK_ROWS",
    "Column",
    "Reading",
    "Source",
    "Table",
    "TableViews",
    "TextFormat",
    "as_table",
    "attach_views",
    "load_views",
    "match_columns",
    "open_table",
    "read_table",
]
