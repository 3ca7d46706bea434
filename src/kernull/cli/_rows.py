"""``kernull score``, ``explain``, ``report`` and ``evaluate``: what a model says of rows.

What reads tables and judges is imported in the functions: `kernull --help` needs no NumPy.
"""

from __future__ import annotations

import sys
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
    from kernull._typing import Array, Mask


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
    how: o.NewRows,
    chunk_rows: Annotated[int | None, Option(min=1, help="Rows read at once: 20,000.")] = None,
    leave_formulas: Annotated[
        bool, Option("--leave-formulas", help="Copy cells such as =A1 as they are (CSV, TSV).")
    ] = False,
    drift: Annotated[
        bool,
        Option("--drift", help="Say whether all rows together rank as new normal rows would."),
    ] = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Score rows: score, p-value, flag (1 where flagged), top view and remarks of each.

    Models that decide by evidence add the rarity (one in so many normal rows has as much evidence
    against it; at most 100 times the rows learned from) and the evidence of each view. Remarks say
    which cells were empty and filled in, and which categories are new. The top view is the one
    that fits the other views of its row least, or has most of the evidence. The table is read and
    written in chunks, so it may be larger than memory. With --json, standard output gets JSON
    lines, or a summary where the rows go to a file. In CSV and TSV, text that a spreadsheet would
    run as a formula gets an apostrophe in front, unless --leave-formulas.

    --drift adds one line: whether these rows, taken together, rank lower among rows that were left
    out in training than new normal rows would, and which columns moved most. It goes to standard
    output where the rows go to a file, else to standard error; with --json it is a part of the
    summary, or the last line.
    """
    from kernull.cli._output import SUFFIXES, check_writable, finite, row_writer

    check_writable(out, () if out == "-" else SUFFIXES, inputs=[model, data])
    from kernull.cli._drift import DriftCheck
    from kernull.cli._judging import Judging, extra_names
    from kernull.cli._models import open_rows
    from kernull.cli._settings import matching
    from kernull.report import can_explain
    from kernull.tables.reading import CHUNK_ROWS

    fitted, source = open_rows(model, data, how, quiet, chunk_rows or CHUNK_ROWS)
    kept = matching(keep or [], source.names, "--keep")
    explained = can_explain(fitted.model)
    extra = extra_names(fitted)
    own = ["score", "p_value", "flag", *extra, *(["top_view"] if explained else []), "remarks"]
    taken = [name for name in kept if name in ("row", *own)]
    if taken:
        raise UsageError(
            f"--keep: the output has a column {taken[0]!r} of its own; rename that of the table."
        )
    names = ["row", *kept, *own]
    flagged = noted = unjudged = 0
    judging = Judging(fitted, quiet)
    check = DriftCheck(fitted) if drift else None
    with progress(quiet) as bar, row_writer(out, names, json, leave_formulas) as writer:
        task = bar.add_task("Scoring", total=source.size)
        for raw, done in source.chunks():
            judged = judging.see(raw, explained)
            if check is not None:
                check.see(judged)
            chunk = judged.rows
            numbers = range(chunk.start + 1, chunk.start + len(chunk) + 1)
            copied = [chunk.text(name) for name in kept]
            top = [judged.top_view.tolist()] if explained else []
            flags, found = judged.flagged.astype(int), [judged.extra[name] for name in extra]
            judgement = [judged.scores, judged.p_values, flags, *found, *top, judged.notes]
            writer.write([numbers, *copied, *judgement])
            lost = int(judged.lost.sum())
            flagged, unjudged = flagged + int(flags.sum()), unjudged + lost
            noted += sum(map(bool, judged.notes)) - lost
            bar.update(task, completed=done, description=f"Scoring, {judging.rows:,} rows")
    rows = judging.rows
    changed = None if check is None else finite(check.found())
    if json and out != "-":
        counts = {"rows": rows, "flagged": flagged, "not_judged": unjudged, "noted": noted}
        print_json({**counts, "out": out} | ({} if changed is None else {"drift": changed}))
    else:
        place = "" if out == "-" else f" Saved {out}."
        has = "1 has" if noted == 1 else f"{noted:,} have"
        more = f" {has} remarks (empty cells, new values, missing views)." if noted else ""
        not_judged = f", {unjudged:,} of them not judged" if unjudged else ""
        share = f"{flagged / rows:.1%}"
        note(f"{flagged:,} of {rows:,} rows flagged ({share}){not_judged}.{more}{place}", quiet)
    if changed is not None and json and out == "-":
        sys.stdout.write(dumps({"drift": changed}) + "\n")
    elif changed is not None and not json:
        console = stderr() if out == "-" else stdout()
        console.print(changed["words"], markup=False, soft_wrap=True)
    judging.tell_at_end()


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
    how: o.NewRows,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Say why rows stand out: which columns and views, against normal rows.

    Columns are named by what their replacement does: each is replaced by what the other columns
    of the row say, and the row is scored again.
    """
    from kernull.cli._judging import Explainer, Judging
    from kernull.cli._models import open_rows
    from kernull.cli._output import finite
    from kernull.cli._settings import check_column

    fitted, source = open_rows(model, data, how, quiet)
    check_column(names, source.names, source.label, "--id")
    judging = Judging(fitted, quiet)
    explainer = Explainer(judging, row or [], names, flagged, top)
    with progress(quiet) as bar:
        task = bar.add_task("Explaining", total=source.size)
        for chunk, done in source.chunks():
            explainer.see(chunk)
            bar.update(task, completed=done)
    found = explainer.found(source.label)
    judging.tell_at_end()
    if json:
        print_json(finite(found))
        return
    for record in found:
        lines = [f"row {record['name']}: {record['words']}"]
        lines += [f"  {column['words']}" for column in record["columns"]]
        lines += [f"  {remark}" for remark in [record["remarks"]] if remark]
        stdout().print("\n".join(lines), markup=False, soft_wrap=True)
    if not found:
        note("No row is flagged.", quiet)


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
    title: Annotated[o.Text, Option(help="Heading of the page.")] = None,
    max_rows: Annotated[int, Option(min=1, help="Flagged rows to list.")] = 500,
    how: o.NewRows,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Write a report: one HTML page with the findings, their reasons, drift and the model."""
    import numpy as np

    from kernull.cli._models import check_labels, labels, open_rows
    from kernull.cli._output import check_writable
    from kernull.cli._settings import check_column

    if Path(out).suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(
            f"--out: {out}: a report is a page in HTML; expected a name that ends in .html (a "
            "browser prints it to PDF)."
        )
    check_writable(out, inputs=[model, data])
    check_labels(label, normal)
    fitted, source = open_rows(model, data, how, quiet)
    check_column(names, source.names, source.label, "--id")
    with progress(quiet) as bar:
        bar.add_task("Writing the report", total=None)
        from kernull.cli._judging import Judging
        from kernull.report import Judgement, render_report

        judging = Judging(fitted, quiet)
        judged = judging.see(source.read())
        judging.tell_at_end()
        chunk = judged.rows
        # A row without a score that could be judged: its values are too large, which is told.
        overflow = (~np.isfinite(judged.scores) & ~judged.lost).any()
        found = Judgement(
            judged.scores, judged.p_values, judged.flagged, judged.notes, fitted.absent
        )
        page = render_report(
            fitted.model,
            chunk if fitted.table is not None else fitted.read(chunk).X,
            None if label is None else labels(chunk, label, normal),
            title=title or f"kernull report: {Path(data).stem if data != '-' else 'rows'}",
            subtitle=f"Rows of {source.label}.",
            row_names=None if names is None else chunk.text(names),
            model_path=model,
            max_rows=max_rows,
            table=fitted.table,
            judgement=None if overflow else found,
        )
    if out == "-":
        typer.echo(page)
        return
    write_whole(page.encode(), Path(out))
    if json:
        print_json({"rows": len(chunk), "out": out, "bytes": len(page.encode())})
    note(f"Saved {out}.", quiet or json)


def evaluate(
    model: o.ModelFile,
    data: o.DataFile,
    *,
    label: Annotated[str, Option(metavar="COLUMN", help="Column that says what is normal.")],
    normal: o.Normal = None,
    curves: Annotated[
        o.Text, Option(metavar="FILE", help="Write the curves: false alarms, caught, precision.")
    ] = None,
    how: o.NewRows,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a model by labelled rows: AUC, average precision, and what its threshold does."""
    from kernull.cli._judging import Judging
    from kernull.cli._models import labels, open_rows
    from kernull.cli._output import check_writable

    if curves is not None:
        check_writable(curves, (".csv", ".tsv", ".jsonl", ".parquet"), inputs=[model, data])
    fitted, source = open_rows(model, data, how, quiet)
    with progress(quiet) as bar:
        task = bar.add_task("Judging", total=source.size)
        rows, judging = source.read(), Judging(fitted, quiet)
        y = labels(fitted.emptied(rows), label, normal)
        judged = judging.see(rows)
        judging.tell_at_end()
        bar.update(task, completed=source.size)
    if len(set(y.tolist())) < 2:
        raise DataError(f"{data}: all rows have the same label; judging needs both kinds.")
    result = evaluation(judged.scores, y, judged.flagged) | {"not_judged": int(judged.lost.sum())}
    if curves is not None:
        _write_curves(judged.scores, y, curves)
    if json:
        print_json(result)
        return
    stdout().print(_in_words(result, fitted.model.false_alarm_rate_), markup=False, soft_wrap=True)
    if curves is not None:
        note(f"Saved {curves}.", quiet)


def evaluation(scores: Array, y: Array, flagged: Mask) -> dict[str, Any]:
    """AUC, average precision (of what is not normal) and the four counts.

    ``y`` is +1 for normal rows and -1 for others; a score of NaN (not judged) is least normal.
    """
    import numpy as np
    from sklearn.metrics import average_precision_score, roc_auc_score

    odd = y == -1
    ranked = np.nan_to_num(scores, nan=np.finfo(float).min)  # and what is infinite as finite
    return {
        "rows": len(y),
        "normal": int((~odd).sum()),
        "odd": int(odd.sum()),
        "auc": float(roc_auc_score(~odd, ranked)),
        "average_precision": float(average_precision_score(odd, -ranked)),
        "caught": int((odd & flagged).sum()),
        "missed": int((odd & ~flagged).sum()),
        "false_alarms": int((~odd & flagged).sum()),
        "passed": int((~odd & ~flagged).sum()),
    }


def _in_words(found: dict[str, Any], asked: float) -> str:
    odd, normal, caught, false = (found[k] for k in ("odd", "normal", "caught", "false_alarms"))
    return (
        f"{found['rows']:,} rows: {normal:,} normal, {odd:,} not.\n"
        f"AUC {found['auc']:.1%}, average precision {found['average_precision']:.1%}.\n"
        f"At the threshold: {caught:,} of {odd:,} caught ({caught / odd:.1%}), {false:,} of "
        f"{normal:,} normal rows flagged ({false / normal:.1%}; asked for: {asked:.1%})."
    )


def _write_curves(scores: Array, y: Array, path: str) -> None:
    """Every threshold with its share of false alarms, of caught rows, and its precision."""
    import numpy as np

    from kernull.cli._output import row_writer

    scores = np.where(np.isnan(scores), -np.inf, scores)  # rows that are not judged tie
    order = np.argsort(scores, kind="stable")
    odd = (y == -1)[order]
    ranked = scores[order]
    ends = np.append(np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1)
    caught, false = np.cumsum(odd)[ends], np.cumsum(~odd)[ends]
    names = ["threshold", "false_alarms", "caught", "precision"]
    with row_writer(path, names) as writer:
        writer.write(
            [ranked[ends], false / (~odd).sum(), caught / odd.sum(), caught / (caught + false)]
        )
