"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "DataFile", "Drop", "Encode", "Json", "Label", "ModelFile", "Normal", "Quiet", "View", "Views",
]  # fmt: skip

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]
DataFile = Annotated[
    str,
    typer.Argument(metavar="DATA", help="CSV, Parquet, Arrow or NPZ; - for standard input."),
]
Views = Annotated[
    str | None,
    typer.Option(
        "--views",
        metavar="FILE",
        help='TOML file with \\[views] and lines such as colour = \\["col_*"]; or the word '
        "'features' for one view a column.",
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
    typer.Option(
        "--encode", metavar="PATTERN", help="Columns to turn into 0/1 categories. Repeat it."
    ),
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
