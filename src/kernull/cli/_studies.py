"""``kernull compare``, ``kernull demo`` and ``kernull reproduce``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kernull.cli import _options as o
from kernull.cli._console import print_json, progress, stdout
from kernull.cli._errors import DataError, UsageError
from kernull.cli._features import read_kinds, read_views
from kernull.cli._models import labels, training
from kernull.cli._tables import open_table

__all__ = ["compare", "demo", "reproduce"]


def compare(
    data: o.DataFile,
    test: Annotated[str, typer.Option(metavar="FILE", help="Labelled rows to judge by.")],
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column that says what is normal.")],
    normal: o.Normal = None,
    method: Annotated[
        list[str] | None, typer.Option(help="A method by name; all by default. Repeat it.")
    ] = None,
    views: o.Views = None,
    view: o.View = None,
    drop: o.Drop = None,
    encode: o.Encode = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit every method to the same normal rows and compare them on labelled ones.

    Where the training table has the label column too, only its normal rows are learned from.
    """
    from kernull.methods import compare as run
    from kernull.methods import method_names

    for name in method or []:
        if name not in method_names():
            raise UsageError(
                f"--method: got {name!r}; expected one of {', '.join(method_names())}."
            )
    table = training(
        data,
        read_views(views, view or []),
        read_kinds([], drop or [], encode or []),
        label,
        normal,
        quiet,
        label_optional=True,
    )
    X = table.normal
    if len(X) < 2:
        raise DataError(f"{data}: {len(X)} normal rows to learn from; expected at least 2.")
    judged = open_table(test)
    chunk = judged.read()
    y = labels(chunk, label, normal)
    if len(set(y.tolist())) < 2:
        raise DataError(f"{test}: all rows have the same label; a comparison needs both kinds.")
    total = len(method) if method else len(method_names())
    with progress(quiet) as bar:
        task = bar.add_task("Comparing", total=total)
        rows = run(
            X,
            table.table.transform(chunk),
            y,
            methods=method or None,
            callback=lambda row: bar.update(task, advance=1, description=f"{row.method} done"),
            views=table.table.views_,
        )
    rows = sorted(rows, key=lambda row: -1.0 if row.auc is None else row.auc, reverse=True)
    if json:
        print_json([row._asdict() for row in rows])
    else:
        stdout().print(_comparison(rows, len(X), len(y)))


def _comparison(rows: list[Any], n: int, m: int) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{n:,} rows to learn from, {m:,} to judge; nothing tuned")
    table.add_column("method")
    for name in ("AUC %", "gap", "iterations", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("note")
    for row in rows:
        table.add_row(
            row.method,
            "" if row.auc is None else f"{100 * row.auc:.1f}",
            "" if row.gap is None else f"{row.gap:.0e}",
            "" if row.iterations is None else str(row.iterations),
            f"{row.seconds:.2f}",
            escape(row.note),
        )
    return table


def demo(
    out: Annotated[str, typer.Option("--out", "-o", help="Folder of plots and report.")] = "demo",
    quiet: o.Quiet = False,
) -> None:
    """Learn from data that ships with scikit-learn, compare, plot and write a report."""
    from kernull.demo import main

    raise typer.Exit(main(out, quiet=quiet))


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments (E1, E2, ...).")] = None,
) -> None:
    """Say how to run the experiments of the paper: they come with the repository."""
    chosen = " ".join(names or ["all"])
    raise UsageError(
        "reproduce: the experiments of the paper are not part of the installed package. Clone "
        "kernull's repository and run `make reproduce` there (`make reproduce-quick` for small "
        f"versions), or `python -m experiments {chosen}`."
    )
