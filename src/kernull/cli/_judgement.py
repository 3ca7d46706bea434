"""``kernull evaluate``: how a model does on labelled rows."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer

from kernull._typing import Array, Mask
from kernull.cli import _options as o
from kernull.cli._console import note, print_json, progress, stdout
from kernull.cli._errors import DataError
from kernull.cli._judging import judge
from kernull.cli._models import labels, load_fitted
from kernull.cli._output import check_writable, open_rows
from kernull.cli._tables import FileFormat, open_table

__all__ = ["evaluate", "evaluation"]


def evaluate(
    model: o.ModelFile,
    data: o.DataFile,
    label: Annotated[str, typer.Option(metavar="COLUMN", help="Column that says what is normal.")],
    normal: o.Normal = None,
    curves: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the curves: false alarms, caught, precision."),
    ] = None,
    missing_view: o.MissingView = None,
    missing: o.Missing = None,
    empty: o.Empty = None,
    drop: o.Drop = None,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    sheet: o.Sheet = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Judge a model by labelled rows: AUC, average precision, and what its threshold does."""
    if curves is not None:
        check_writable(curves, (".csv", ".tsv", ".jsonl", ".parquet"), inputs=[model, data])
    fitted = load_fitted(model, missing_view or [], missing, empty)
    source = open_table(data, FileFormat(sep, decimal, encoding, sheet), quiet=quiet)
    fitted = fitted.for_source(source, drop or [])
    with progress(quiet) as bar:
        task = bar.add_task("Judging", total=source.size)
        rows = fitted.see(source.read())
        y = labels(rows, label, normal)
        judged = judge(fitted, rows, reasons=False)
        bar.update(task, completed=source.size)
    if len(set(y.tolist())) < 2:
        raise DataError(f"{data}: all rows have the same label; judging needs both kinds.")
    result = evaluation(judged.scores, y, judged.flagged)
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

    Parameters
    ----------
    scores : array of shape (m,)
        Higher is more normal; NaN (not judged) is least normal.
    y : array of shape (m,)
        +1 for normal rows, -1 for others.
    flagged : boolean array of shape (m,)
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    odd = y == -1
    ranked = np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf, posinf=np.inf)
    ranked = np.clip(ranked, np.finfo(float).min, np.finfo(float).max)
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
    order = np.argsort(np.nan_to_num(scores, nan=-np.inf), kind="stable")
    odd = (y == -1)[order]
    ranked = scores[order]
    ends = np.append(np.flatnonzero(np.diff(ranked) != 0), len(ranked) - 1)
    caught, false = np.cumsum(odd)[ends], np.cumsum(~odd)[ends]
    names = ["threshold", "false_alarms", "caught", "precision"]
    with open_rows(path, names) as writer:
        writer.write(
            [ranked[ends], false / (~odd).sum(), caught / odd.sum(), caught / (caught + false)]
        )
