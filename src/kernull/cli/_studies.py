"""``kernull demo``."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from kernull.cli import _options as o


def demo(
    out: Annotated[str, Option("--out", "-o", help="Folder of tables and report.")] = "demo",
    quiet: o.Quiet = False,
) -> None:
    """Find the odd parts of a production line, compare on scikit-learn's data, write a report."""
    from kernull.demo import main

    raise typer.Exit(main(out, quiet=quiet))
