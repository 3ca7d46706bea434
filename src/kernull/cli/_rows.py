"""``kernull score``, ``explain``, ``report`` and ``evaluate``: a judge and the rows of a table.

What reads tables and judges is imported in the functions: `kernull --help` needs no NumPy.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from kernull._runtime import write_whole
from kernull.cli import _options as o
from kernull.cli._console import (
    DataError,
    UsageError,
    note,
    print_json,
    progress,
    stderr,
    stdout,
)

if TYPE_CHECKING:
    from kernull._typing import Array
    from kernull.judge import Verdicts


def score(
    model: o.ModelFile,
    data: o.DataFile,
    *,
    out: Annotated[
        str, Option("--out", "-o", metavar="FILE", help="Where to write; - for stdout.")
    ] = "-",
    keep: Annotated[
        o.Texts, Option(metavar="PATTERN", help="Columns to copy to the output. Repeat it.")
    ] = None,
    how: o.RowsAsked,
    chunk_rows: Annotated[int | None, Option(min=1, help="Rows read at once: 20,000.")] = None,
    leave_formulas: Annotated[
        bool, Option("--leave-formulas", help="Copy cells such as =A1 as they are (CSV, TSV).")
    ] = False,
    drift: Annotated[
        bool,
        Option("--drift", help="Whether all rows together rank as new normal rows would."),
    ] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Score rows: score, p-value, flag (1 where flagged), reasons and remarks of each.

    Rarity is one in so many normal rows with as much evidence against them, at most 100 times the
    rows learned from; then comes the evidence of each view, and the view that has most of it.
    Reasons of flagged rows are in words and by column: reason_1, value_1, usual_1 and so on.
    Remarks name cells that were empty and filled in, and categories that are new. The table is read
    and written in chunks, so it may be larger than memory (not to .xlsx). With --json, standard
    output gets JSON lines, or a summary where the rows go to a file. In CSV and TSV, text that a
    spreadsheet would run as a formula gets an apostrophe in front, unless --leave-formulas.

    --drift adds one line: whether these rows, taken together, rank lower among rows that were left
    out in training than new normal rows would, and which columns moved most. It goes to standard
    output where the rows go to a file, else to standard error; with --json it is a part of the
    summary, or the last line.
    """
    from kernull.cli._output import SUFFIXES, check_writable, finite, row_writer

    check_writable(out, () if out == "-" else SUFFIXES, inputs=[model, data])
    from kernull.cli._models import open_rows
    from kernull.cli._settings import matching
    from kernull.tables.reading import CHUNK_ROWS

    judging, source = open_rows(model, data, how, quiet, chunk_rows or CHUNK_ROWS)
    judge = judging.judge
    kept = matching(keep or [], source.names, "--keep")
    names = ["row", *kept, *(n for n in judge.output_names if n not in kept and n != judge.id)]
    taken = [name for name in kept if name in ("row", *judge.output_names) and name != judge.id]
    if taken:
        raise UsageError(
            f"--keep: the output has a column {taken[0]!r} of its own; rename that of the table."
        )
    if judge.id is not None and judge.id in source.names and judge.id not in kept:
        names.insert(1, judge.id)
    if drift and judge.tasks:
        raise UsageError("--drift: rows of several tasks have no ranks in common; leave it out.")
    flagged = noted = lost = 0
    first: Counter[str] = Counter()  # columns that are the first reason of a row
    check = judge.drift_check(judging.absent, judging.missing_views) if drift else None
    with progress(quiet) as bar, row_writer(out, names, json, leave_formulas) as writer:
        task = bar.add_task("Scoring", total=source.size)
        for raw, done in source.chunks():
            found = judging.see(raw)
            if check is not None:
                check.see(found.rows, *found.ranks())
            columns = found.columns_of_output()
            numbers = range(raw.start + 1, raw.start + len(raw) + 1)
            columns |= {"row": list(numbers), **{name: raw.text(name) for name in kept}}
            columns["flag"] = columns["flag"].astype(int)
            writer.write([columns[name] for name in names])
            first.update(filter(None, columns["reason_1"]))
            flagged, lost = flagged + int(columns["flag"].sum()), lost + int(found.lost.sum())
            noted += sum(map(bool, found.notes)) - int(found.lost.sum())
            bar.update(task, completed=done, description=f"Scoring, {judging.rows:,} rows")
        rows = judging.rows
        writer.summary(
            {
                "rows": rows,
                "flagged": flagged,
                "not judged": lost,
                "with remarks": noted,
                "false-alarm rate": judging.rate,
                "table": source.label,
                "model": model,
            }
        )
    changed = None if check is None else finite(check.result())
    if json and out != "-":
        counts = {"rows": rows, "flagged": flagged, "not_judged": lost, "noted": noted}
        print_json({**counts, "out": out} | ({} if changed is None else {"drift": changed}))
    else:
        place = "" if out == "-" else f" Saved {out}."
        has = "1 has" if noted == 1 else f"{noted:,} have"
        more = f" {has} remarks (empty cells, new values, missing views)." if noted else ""
        not_judged = f", {lost:,} of them not judged" if lost else ""
        share = f"{flagged / rows:.1%}"
        note(f"{flagged:,} of {rows:,} rows flagged ({share}){not_judged}.{more}{place}", quiet)
    if rows - lost >= 20 and 2 * (flagged - lost) > rows - lost:  # of fewer by chance
        most = [name for name, _ in first.most_common(3)]
        named = f"; columns that differ most: {', '.join(most)}" * bool(most)
        kind = "these rows are of another kind than those learned from"
        note(f"most judged rows are flagged: {kind}{named}.", quiet)
    if changed is not None and json and out == "-":
        sys.stdout.write(dumps({"drift": changed}) + "\n")
    elif changed is not None and not json:
        console = stderr() if out == "-" else stdout()
        console.print(changed["words"], markup=False, soft_wrap=True)
    judging.end()


def explain(
    model: o.ModelFile,
    data: o.DataFile,
    *,
    row: Annotated[
        o.Texts, Option(help="Number of a row, from 1, or its name with --id. Repeat it.")
    ] = None,
    names: o.RowNames = None,
    flagged: Annotated[
        bool, Option("--flagged", help="Rows that are flagged, and no others.")
    ] = False,
    top: Annotated[
        int | None, Option(min=1, help="So many of the lowest scores: 5 without --flagged.")
    ] = None,
    how: o.RowsAsked,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Explain why rows stand out: which columns and views, against normal rows.

    Columns are named by what their replacement does: each is replaced by what the other columns
    of the row predict, and the row is scored again.
    """
    import numpy as np

    from kernull.cli._models import open_rows
    from kernull.cli._output import finite
    from kernull.cli._settings import check_column

    judging, source = open_rows(model, data, how, quiet)
    check_column(names, source.names, source.label, "--id")
    names = judging.judge.id if names is None else names
    names = names if names in source.names else None
    wanted = list(dict.fromkeys(row or []))
    for text in wanted if names is None else ():
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"--row: got {text!r}; expected a number from 1.")
    top = top or (None if flagged or wanted else 5)
    with progress(quiet) as bar:
        bar.add_task("Explaining", total=None)
        found = judging.see(source.read(broken=True))
        rows = found.rows
        # Rows that are not judged come first, then the lowest scores.
        order = np.argsort(np.where(found.lost, -np.inf, found.why.scores), kind="stable")
        called = list(map(str, range(1, len(rows) + 1))) if names is None else rows.text(names)
        if wanted:
            order = np.array([i for i, name in enumerate(called) if name in wanted], dtype=int)
        gone = [text for text in wanted if text not in called]
        if flagged:
            order = order[found.why.flagged[order]]
        records = _records(found, order[:top].tolist(), called)
    if gone:
        had = f"has {judging.rows} rows" if names is None else f"has no such {names}"
        raise UsageError(f"--row: got {gone[0]}; {source.label} {had}.")
    judging.end()
    if json:
        print_json(finite(records))
        return
    for record in records:
        lines = [f"row {record['name']}: {record['words']}"]
        lines += [f"  {column['words']}" for column in record["columns"]]
        lines += [f"  {remark}" for remark in [record["remarks"]] if remark]
        stdout().print("\n".join(lines), markup=False, soft_wrap=True)
    if not records:
        note("No row is flagged.", quiet)


def _records(found: Verdicts, rows: list[int], names: list[str]) -> list[dict[str, Any]]:
    """Rows for JSON: verdict, views, columns and remarks."""
    why, out = found.why, []
    for i, columns in zip(rows, why.columns_of_rows(rows), strict=True):
        judged = not found.lost[i]
        by_view = judged
        lines = why.table(i) if by_view else []
        words = [why.verdict(i), *why.words_of_views(i)]
        out.append(
            {
                "row": found.rows.start + i + 1,
                "name": names[i],
                "remarks": found.note(i, reasons=False) if judged else "",
                "score": float(why.scores[i]) if judged else math.nan,
                "p_value": float(why.p_values[i]) if judged else math.nan,
                "flagged": bool(why.flagged[i]),
                "views": [{k: v for k, v in line.items() if k != "row"} for line in lines],
                "words": " ".join(words),
                "columns": [reason.record() for reason in columns],
            }
        )
    return out


def report(
    model: o.ModelFile,
    data: o.DataFile,
    *,
    out: Annotated[
        str, Option("--out", "-o", metavar="FILE", help="HTML file to write; - for stdout.")
    ] = "report.html",
    label: o.Label = None,
    normal: o.Normal = None,
    names: o.RowNames = None,
    task: Annotated[o.Text, Option(help="Task to report on, of a model of several tasks.")] = None,
    title: Annotated[o.Text, Option(help="Heading of the page.")] = None,
    max_rows: Annotated[int, Option(min=1, help="Flagged rows to list.")] = 500,
    how: o.RowsAsked,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write a report: one HTML page with the flagged rows, their reasons, drift and the model."""
    from kernull.cli._models import labels, open_rows
    from kernull.cli._output import check_writable
    from kernull.cli._settings import check_column
    from kernull.tables.kinds import listed

    if Path(out).suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(
            f"--out: {out}: a report is a page in HTML; expected a name that ends in .html (a "
            "browser prints it to PDF)."
        )
    check_writable(out, inputs=[model, data])
    judging, source = open_rows(model, data, how, quiet)
    judge = judging.judge
    check_column(names, source.names, source.label, "--id")
    names = judge.id if names is None and judge.id in source.names else names
    if (task is None) == bool(judge.tasks) or (judge.tasks and task not in judge.tasks):
        tasks = f"one of {listed(judge.tasks)}" if judge.tasks else "none, of this model"
        raise UsageError(f"--task: got {task!r}; expected {tasks}: a report is about one task.")
    with progress(quiet) as bar:
        bar.add_task("Writing the report", total=None)
        from kernull.report import render_report

        rows = source.read()
        y = labels(rows, label, normal, quiet)
        row_names = None if names is None else rows.text(names)
        if y is not None and not y.all():
            places = y.nonzero()[0].tolist()
            row_names = [str(i + 1) if row_names is None else row_names[i] for i in places]
            rows, y = rows.rows(places), y[places]
        if task is not None:
            at = [i for i, name in enumerate(rows.text(str(judge.task))) if name == task]
            row_names = [str(i + 1) if row_names is None else row_names[i] for i in at]
            rows, judging.judge = rows.rows(at), judge.of_task(task)
            y = None if y is None else y[at]
        found = judging.see(rows)
        judging.end()
        page = render_report(
            found,
            y,
            title=title or f"kernull report: {Path(data).stem if data != '-' else 'rows'}",
            subtitle=f"Rows of {source.label}.",
            row_names=row_names,
            model_path=model,
            max_rows=max_rows,
        )
    if out == "-":
        typer.echo(page)
        return
    write_whole(page.encode(), Path(out))
    if json:
        print_json({"rows": len(found.rows), "out": out, "bytes": len(page.encode())})
    note(f"Saved {out}.", quiet or json)


def evaluate(
    model: o.ModelFile,
    data: o.DataFile,
    *,
    label: Annotated[str, Option(metavar="COLUMN", help="Column that tells what is normal.")],
    normal: o.Normal = None,
    curves: Annotated[
        o.Text, Option(metavar="FILE", help="Write the curves: false alarms, caught, precision.")
    ] = None,
    how: o.RowsAsked,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a model by labelled rows: AUC, average precision, and what its threshold does."""
    from kernull.cli._models import labels, open_rows
    from kernull.cli._output import check_writable
    from kernull.explain.evaluation import evaluation

    if curves is not None:
        check_writable(curves, (".csv", ".tsv", ".jsonl", ".parquet"), inputs=[model, data])
    judging, source = open_rows(model, data, how, quiet)
    with progress(quiet) as bar:
        task = bar.add_task("Judging", total=source.size)
        rows = source.read()
        y = labels(rows, label, normal, quiet)
        assert y is not None
        rows, y = rows.rows(y != 0), y[y != 0]
        if (y == y[0]).all():
            raise DataError(f"{data}: all rows have the same label; judging needs both kinds.")
        found = judging.see(rows)
        judging.end()
        bar.update(task, completed=source.size)
    why = found.why
    result = evaluation(why.scores, y, why.flagged) | {"not_judged": int(found.lost.sum())}
    if curves is not None:
        _write_curves(why.scores, y, curves)
    if json:
        print_json(result)
        return
    stdout().print(_in_words(result, judging.rate), markup=False, soft_wrap=True)
    if curves is not None:
        note(f"Saved {curves}.", quiet)


def _in_words(counts: dict[str, Any], asked: float) -> str:
    odd, normal, caught, false = (counts[k] for k in ("odd", "normal", "caught", "false_alarms"))
    return (
        f"{counts['rows']:,} rows: {normal:,} normal, {odd:,} not.\n"
        f"AUC {counts['auc']:.1%}, average precision {counts['average_precision']:.1%}.\n"
        f"At the threshold: {caught:,} of {odd:,} caught ({caught / odd:.1%}), {false:,} of "
        f"{normal:,} normal rows flagged ({false / normal:.1%}; asked for: {asked:.1%})."
    )


def _write_curves(scores: Array, y: Array, path: str) -> None:
    """Each threshold with its share of false alarms, of caught rows, and its precision."""
    import numpy as np
    from sklearn.metrics import roc_curve

    from kernull.cli._output import row_writer

    odd = y == -1
    ranked = np.nan_to_num(scores, nan=np.finfo(float).min)  # rows that are not judged tie
    false, caught, thresholds = roc_curve(odd, -ranked, drop_intermediate=False)
    right, wrong = caught * odd.sum(), false * (~odd).sum()
    columns = [-thresholds, false, caught, right / np.maximum(right + wrong, 1)]
    with row_writer(path, ["threshold", "false_alarms", "caught", "precision"]) as writer:
        writer.write([column[1:] for column in columns])  # the first flags no row
