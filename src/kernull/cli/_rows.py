"""``kernull score``, ``explain``, ``report`` and ``evaluate``: a judge and the rows of a table.

What reads tables and judges is imported in the functions: `kernull --help` needs no NumPy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from kernull.cli import _options as o
from kernull.cli._console import finite, note, print_json, progress, show

if TYPE_CHECKING:
    from kernull.judge import Judge, Verdicts

#: Judged rows from which on a note follows where most are flagged: of fewer that may be chance.
MANY = 20
#: What `score` counts: rows, and how many of them are flagged, not judged, and have remarks.
COUNTS = ("rows", "flagged", "not_judged", "noted")


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
    how: o.RowsToJudge,
    chunk_rows: Annotated[int | None, Option(min=1, help="Rows read at once: 20,000.")] = None,
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
    spreadsheet would run as a formula gets an apostrophe in front.

    --drift adds one line: whether these rows, taken together, rank lower among rows that were left
    out in training than new normal rows would, and which columns moved most. It goes to standard
    output where the rows go to a file, else to standard error; with --json it is a part of the
    summary, or the last line.
    """
    from kernull.cli._output import SUFFIXES, check_writable, row_writer
    from kernull.cli._tables import open_judge, verdicts_on
    from kernull.tables.kinds import match_columns
    from kernull.tables.reading import CHUNK_ROWS

    check_writable(out, () if out == "-" else SUFFIXES, inputs=[model, data])
    judge, source, asked = open_judge(model, data, how, quiet, chunk_rows or CHUNK_ROWS)
    kept = match_columns(keep or [], source.names, "--keep")
    names = _names(judge, source.names, kept)
    if drift and judge.tasks:
        raise ValueError("--drift: rows of several tasks have no ranks in common; leave it out.")
    check = judge.drift_check(asked["absent"], asked["missing_views"]) if drift else None
    counts: Counter[str] = Counter()
    first: Counter[str] = Counter()  # columns that are the first reason of a row
    with progress(quiet) as bar, row_writer(out, names, json) as writer:
        task = bar.add_task("Scoring", total=source.size)
        for rows, done in source.chunks():
            verdicts = verdicts_on(judge, rows, quiet, asked)
            if check is not None:
                check.see(verdicts.rows, *verdicts.ranks())
            columns = _columns(verdicts, kept)
            writer.write([columns[name] for name in names])
            first.update(filter(None, columns["reason_1"]))
            lost, noted = int(verdicts.lost.sum()), sum(map(bool, verdicts.notes))
            now = (len(rows), int(columns["flag"].sum()), lost, noted - lost)
            counts.update(dict(zip(COUNTS, now, strict=True)))
            bar.update(task, completed=done, description=f"Scoring, {counts['rows']:,} rows")
        writer.close({**counts, **_facts(judge, source.label, model, asked)})
    if not (json and out != "-"):
        text = "{flagged:,} of {rows:,} rows flagged ({:.1%})".format(
            counts["flagged"] / counts["rows"], **counts
        )
        text += f", {counts['not_judged']:,} of them not judged" * bool(counts["not_judged"])
        text += f", {counts['noted']:,} with remarks" * bool(counts["noted"])
        note(f"{text}." if out == "-" else f"{text}. Saved {out}.", quiet)
    judged, flagged = (counts[name] - counts["not_judged"] for name in ("rows", "flagged"))
    if judged >= MANY and 2 * flagged > judged:
        named = ", ".join(name for name, _ in first.most_common(3))
        note(
            "most judged rows are flagged: these rows are of another kind than those learned from"
            f"{f'; columns that differ most: {named}' * bool(named)}.",
            quiet,
        )
    more = {} if check is None else {"drift": check.result()}
    if json and out != "-":
        print_json({**counts, "out": out, **more})
    elif more:
        words = more["drift"]["words"]
        show(dumps(finite(more)) if json else words, err=out == "-" and not json)


def _names(judge: Judge, there: Sequence[str], kept: Sequence[str] = ()) -> list[str]:
    """Columns of the output: the number of the row, its name, those copied, the verdict."""
    output = [name for name in judge.output_names if name != judge.id]
    if taken := [name for name in kept if name in ("row", *output)]:
        raise ValueError(
            f"--keep: the output has a column {taken[0]!r} too; rename that of the table."
        )
    named = judge.id in there and judge.id not in kept
    return ["row", *([str(judge.id)] if named else []), *kept, *output]


def _columns(verdicts: Verdicts, kept: Sequence[str] = ()) -> dict[str, Any]:
    rows, columns = verdicts.rows, verdicts.columns_of_output()
    numbers = range(rows.start + 1, rows.start + len(rows) + 1)
    columns |= {"row": list(numbers), "flag": columns["flag"].astype(int)}
    return columns | {name: rows.text(name) for name in kept}


def _facts(judge: Judge, table: str, model: str, asked: dict[str, Any]) -> dict[str, Any]:
    rate = asked["false_alarm_rate"] or judge.false_alarm_rate
    return {"false_alarm_rate": rate, "table": table, "model": model}


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
    out: Annotated[
        o.Text, Option("--out", "-o", metavar="FILE", help="Write them with the columns of score.")
    ] = None,
    how: o.RowsToJudge,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Explain why rows stand out: which columns and views, against normal rows.

    Columns are named by what their replacement does: each is replaced by what the other columns
    of the row predict, and the row is scored again.
    """
    import numpy as np

    from kernull.cli._output import SUFFIXES, check_writable, row_writer
    from kernull.cli._tables import check_column, open_judge, verdicts_on

    if out is not None:
        check_writable(out, SUFFIXES, inputs=[model, data])
    judge, source, asked = open_judge(model, data, how, quiet)
    check_column(names, source.names, source.label, "--id")
    judge.id = judge.id if names is None else names
    wanted = dict.fromkeys(row or [])
    named = judge.id in source.names
    for text in () if named else wanted:
        if not text.isdecimal() or int(text) < 1:
            raise ValueError(f"--row: got {text!r}; expected a number from 1.")
    with progress(quiet) as bar:
        bar.add_task("Explaining", total=None)
        verdicts = verdicts_on(judge, source.read(broken=True), quiet, asked)
        rows, why = verdicts.rows, verdicts.why
        called = rows.text(str(judge.id)) if named else list(map(str, range(1, len(rows) + 1)))
        if gone := [text for text in wanted if text not in called]:
            had = f"has no such {judge.id}" if named else f"has {len(rows)} rows"
            raise ValueError(f"--row: got {gone[0]}; {source.label} {had}.")
        # Rows that are not judged come first, then the lowest scores.
        order = np.argsort(np.nan_to_num(why.scores, nan=-np.inf), kind="stable").tolist()
        if wanted:
            order = [i for i, name in enumerate(called) if name in wanted]
        picked = [i for i in order if why.flagged[i] or not flagged]
        picked = picked[: top or (None if flagged or wanted else 5)]
        shown = judge.verdicts(rows.rows(picked), **asked)
        header, columns = _names(judge, source.names), _columns(shown)
        columns["row"] = [i + 1 for i in picked]
        if out is not None:
            with row_writer(out, header) as writer:
                writer.write([columns[name] for name in header])
                writer.close({"rows": len(picked), **_facts(judge, source.label, model, asked)})
        cells = {name: np.asarray(columns[name]).tolist() for name in header}
        records = [
            {name: column[k] for name, column in cells.items()} | _reasons(shown, k)
            for k in range(len(picked))
        ]
    if json:
        print_json(records)
    elif out is None:
        for i, record in zip(picked, records, strict=True):
            lines = [*(reason["words"] for reason in record["columns"]), record["note"]]
            more = "".join(f"\n  {line}" for line in lines if line)
            number = f" (number {i + 1})" if called.count(called[i]) > 1 else ""
            show(f"row {called[i]}{number}: {record['words']}{more}")
    note(f"Saved {out}." if out is not None else "No row is flagged." * (not picked), quiet)


def _reasons(verdicts: Verdicts, i: int) -> dict[str, Any]:
    """What `explain` adds to the columns of `score`: words, views and columns of one row."""
    why, lost = verdicts.why, bool(verdicts.lost[i])
    views = [] if lost else why.table(i)
    return {
        "words": " ".join([why.verdict(i), *why.words_of_views(i)]),
        "views": [{k: v for k, v in line.items() if k != "row"} for line in views],
        "columns": [reason.record() for reason in why.columns_of_rows([i])[0]],
        "note": "" if lost else verdicts.note(i, reasons=False),
    }


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
    how: o.RowsToJudge,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write a report: one HTML page with the flagged rows, their reasons, drift and the model."""
    import numpy as np

    from kernull._runtime import write_whole
    from kernull.cli._output import check_writable
    from kernull.cli._tables import check_column, labels, open_judge, verdicts_on
    from kernull.report import render_report

    if Path(out).suffix.lower() not in ("", ".html", ".htm"):
        raise ValueError(
            f"--out: {out}: a report is a page in HTML; expected a name that ends in .html (a "
            "browser prints it to PDF)."
        )
    check_writable(out, inputs=[model, data])
    judge, source, asked = open_judge(model, data, how, quiet)
    check_column(names, source.names, source.label, "--id")
    names = judge.id if names is None and judge.id in source.names else names
    if (task is None) == bool(judge.tasks) or (judge.tasks and task not in judge.tasks):
        tasks = f"one of {', '.join(map(repr, judge.tasks))}" if judge.tasks else "none"
        raise ValueError(f"--task: got {task!r}; a report is about one task; expected {tasks}.")
    with progress(quiet) as bar:
        bar.add_task("Writing the report", total=None)
        rows = source.read()
        y = labels(rows, label, normal, quiet)
        row_names = np.arange(1, len(rows) + 1) if names is None else np.array(rows.text(names))
        kept = y != 0
        if task is not None:
            kept &= np.array(rows.text(str(judge.task))) == task
            judge = judge.of_task(task)
        verdicts = verdicts_on(judge, rows.rows(kept), quiet, asked)
        page = render_report(
            verdicts,
            None if label is None else y[kept],
            title=title or f"kernull report: {Path(data).stem if data != '-' else 'rows'}",
            subtitle=f"Rows of {source.label}.",
            row_names=row_names[kept].tolist(),
            model_path=model,
        )
    if out == "-":
        typer.echo(page)
        return
    write_whole(page.encode(), Path(out))
    if json:
        print_json({"rows": len(verdicts.rows), "out": out, "bytes": len(page.encode())})
    note(f"Saved {out}.", quiet or json)


def evaluate(
    model: o.ModelFile,
    data: o.DataFile,
    *,
    label: Annotated[str, Option(metavar="COLUMN", help="Column of labels.")],
    normal: o.Normal = None,
    how: o.RowsToJudge,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a model by labelled rows: AUC, average precision, and what its threshold does."""
    from kernull.cli._tables import labels, open_judge

    judge, source, asked = open_judge(model, data, how, quiet)
    with progress(quiet) as bar:
        bar.add_task("Judging", total=None)
        rows = source.read()
        y = labels(rows, label, normal, quiet)
        counts = judge.evaluate(rows.rows(y != 0), y[y != 0], **asked)
    if json:
        print_json(counts)
        return
    odd, usual, caught, false = (counts[k] for k in ("odd", "normal", "caught", "false_alarms"))
    rate, lost = asked["false_alarm_rate"] or judge.false_alarm_rate, bool(counts["not_judged"])
    show(
        f"{counts['rows']:,} rows: {usual:,} normal, {odd:,} not.\n"
        f"AUC {counts['auc']:.1%}, average precision {counts['average_precision']:.1%}.\n"
        f"At the threshold: {caught:,} of {odd:,} caught ({caught / odd:.1%}), {false:,} of "
        f"{usual:,} normal rows flagged ({false / usual:.1%}; asked for: {rate:.1%})."
        + f"\n{counts['not_judged']:,} rows count as flagged and are not judged."
        * lost
    )
