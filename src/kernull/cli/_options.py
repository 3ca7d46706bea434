"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]
DataFile = Annotated[
    str,
    typer.Argument(metavar="DATA", help="CSV, Excel, Parquet, Arrow or NPZ; - for standard input."),
]
Views = Annotated[
    str | None,
    typer.Option(
        "--views",
        metavar="FILE",
        help='TOML file with \\[views] and lines such as colour = \\["col_*"]; or the word '
        "'features' for one view per column.",
    ),
]
View = Annotated[
    list[str] | None,
    typer.Option(
        "--view", metavar="NAME=PATTERN", help="A view by name patterns: 'colour=col_*'. Repeat it."
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option("--drop", metavar="PATTERN", help="Columns to leave out. Repeat it."),
]
Encode = Annotated[
    list[str] | None,
    typer.Option("--encode", metavar="PATTERN", help="Columns to take as categories. Repeat it."),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="Column that says what is normal.")
]
Normal = Annotated[
    str | None,
    typer.Option(
        "--normal", metavar="VALUE", help="The label of normal rows (default: 1 of 1/-1)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
Sep = Annotated[
    str | None,
    typer.Option("--sep", metavar="CHAR", help="What separates cells: ',' ';' tab. Found out."),
]
Decimal = Annotated[
    str | None, typer.Option("--decimal", metavar="CHAR", help="Decimal mark: '.' or ','.")
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Of text files: utf-8, cp1252, ... Found out."),
]
Sheet = Annotated[
    str | None, typer.Option("--sheet", metavar="NAME", help="Of Excel files; the first one.")
]
Missing = Annotated[
    str | None, typer.Option("--missing", metavar="HOW", help="Empty cells: impute, error or flag.")
]
Empty = Annotated[
    list[str] | None,
    typer.Option(
        "--empty",
        metavar="TEXT",
        help="A text or number that stands for an empty cell, beside NA, n/a, - and so on. "
        "Repeat it.",
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="PATTERN=KIND",
        help="What columns are: number, category, date, identifier, left out. Repeat it.",
    ),
]
Dates = Annotated[
    str | None, typer.Option(help="Dates: drop, or parts (hour of day, day of week).")
]
MissingView = Annotated[
    list[str] | None,
    typer.Option("--missing-view", metavar="VIEW", help="A view to do without. Repeat it."),
]
