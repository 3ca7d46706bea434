"""``kernull compare``, ``kernull demo`` and ``kernull reproduce``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from typer import Argument, Option

from kernull.cli import _options as o
from kernull.cli._console import DataError, UsageError, print_json, progress, stdout
from kernull.cli._judging import Judging
from kernull.cli._models import Fitted, TrainingTable, labels, load_fitted, open_table, training
from kernull.cli._rows import evaluation
from kernull.cli._settings import read_columns
from kernull.tables.kinds import did_you_mean
from kernull.tables.table import Table


def compare(
    data: o.DataFile,
    *,
    test: Annotated[str, Option(metavar="FILE", help="Labelled rows to judge by.")],
    label: Annotated[str, Option(metavar="COLUMN", help="Column that says what is normal.")],
    normal: o.Normal = None,
    method: Annotated[
        o.Texts,
        Option(
            help="'default' (what a plain fit makes), a method by name, or a detector of PyOD such "
            "as 'PyOD ECOD'; all but PyOD by default. Repeat it."
        ),
    ] = None,
    model: Annotated[
        o.Texts, Option("--model", metavar="MODEL", help="A saved model. Repeat it.")
    ] = None,
    columns: o.Columns,
    empty: o.Empty = None,
    form: o.FileForm,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit methods to the same normal rows and compare them, and saved models, on labelled ones.

    Where the training table has the label column too, only its normal rows are learned from. The
    methods of the paper run with the defaults of kernull.methods, which are not those of a plain
    fit; 'default' is.
    """
    chosen = _chosen(method, model)
    saved = [(path, load_fitted(path, o.Gaps(empty=empty))) for path in model or []]
    table = training(
        data, form, label, normal, quiet, label_optional=True, empty=empty, **read_columns(columns)
    )
    source = open_table(test, form, quiet)
    judged = source.read()
    y = labels(judged, label, normal)
    if len(set(y.tolist())) < 2:
        raise DataError(f"{test}: all rows have the same label; a comparison needs both kinds.")
    X = table.table.transform(judged)
    rows: list[Any] = []
    with progress(quiet) as bar:
        task = bar.add_task("Comparing", total=len(chosen) + len(saved))
        for path, fitted in saved:
            fitted = fitted.for_source(source, [])
            rows.append(_saved_row(path, fitted, judged, y))
            bar.update(task, advance=1)
        for name in chosen:
            rows.append(_row(name, table, X, y))
            bar.update(task, advance=1, description=f"{name} done")
    rows = sorted(rows, key=lambda row: -1.0 if row.auc is None else row.auc, reverse=True)
    if json:
        print_json([row._asdict() for row in rows])
    else:
        stdout().print(_comparison(rows, len(table.normal), len(y)))


#: What a plain ``kernull fit`` makes.
DEFAULT = "default"


def _chosen(method: list[str] | None, model: list[str] | None) -> list[str]:
    """Methods to run; wrong names are told before any work."""
    from kernull.methods import get_method, method_names

    if not method:
        return [DEFAULT] if model else [DEFAULT, *(n for n in method_names() if "Joint" not in n)]
    for name in method:
        if name == DEFAULT:
            continue
        try:
            get_method(name)
        except ValueError:
            known = (DEFAULT, *method_names())
            raise UsageError(
                f"--method: got {name!r}{did_you_mean(name, known)}; expected one of "
                f"{', '.join(known)}, or 'PyOD NAME'."
            ) from None
    return method


def _row(name: str, table: TrainingTable, X: Any, y: Any) -> Any:
    from kernull import MultiKernelFisherNull
    from kernull.methods import compare as run

    views, started = table.table.views_, time.perf_counter()
    if name != DEFAULT:
        return run(table.normal, X, y, methods=[name], views=views)[0]
    fitted = MultiKernelFisherNull(views=views).fit(table.normal)
    scores = fitted.score_samples(X)
    flagged, certificate = ~(scores >= fitted.threshold_), (float(fitted.gap_), fitted.n_iter_)
    return _evaluated(name, started, scores, flagged, y, *certificate)


def _saved_row(path: str, fitted: Fitted, rows: Table, y: Any) -> Any:
    started = time.perf_counter()
    judged = Judging(fitted, quiet=True).see(rows)
    return _evaluated(path, started, judged.scores, judged.flagged, y, None, None)


def _evaluated(
    name: str, started: float, scores: Any, flagged: Any, y: Any, gap: float | None, n: int | None
) -> Any:
    from kernull.methods import Row

    found = evaluation(scores, y, flagged)
    said = f"{found['caught']} of {found['odd']} caught, {found['false_alarms']} false alarms"
    return Row(name, found["auc"], gap, n, time.perf_counter() - started, said)


def _comparison(rows: list[Any], n: int, m: int) -> Any:
    from rich.markup import escape
    from rich.table import Table as Grid

    table = Grid(title=f"{n:,} rows to learn from, {m:,} to judge; nothing tuned")
    table.add_column("method")
    for name in ("AUC %", "gap", "iterations", "seconds"):
        table.add_column(name, justify="right")
    table.add_column("note")
    for row in rows:
        table.add_row(
            escape(row.method),
            "" if row.auc is None else f"{100 * row.auc:.1f}",
            "" if row.gap is None else f"{row.gap:.0e}",
            "" if row.iterations is None else str(row.iterations),
            f"{row.seconds:.2f}",
            escape(row.note),
        )
    return table


def demo(
    out: Annotated[str, Option("--out", "-o", help="Folder of tables and report.")] = "demo",
    quiet: o.Quiet = False,
) -> None:
    """Find the odd parts of a production line, compare on scikit-learn's data, write a report."""
    from kernull.demo import main

    raise typer.Exit(main(out, quiet=quiet))


def reproduce(
    names: Annotated[o.Texts, Argument(help="Experiments (E1, E2, ...).")] = None,
) -> None:
    """Say how to run the experiments of the paper: they come with the repository."""
    chosen = " ".join(names or ["all"])
    raise UsageError(
        "reproduce: the experiments of the paper are not part of the installed package. Clone "
        "kernull's repository and run `make reproduce` there (`make reproduce-quick` for small "
        f"versions), or `python -m experiments {chosen}`."
    )
