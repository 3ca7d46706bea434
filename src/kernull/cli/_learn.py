"""``kernull fit`` and ``kernull info``.

What reads tables and learns is imported in the functions: `kernull --help` needs no NumPy.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Iterator
from textwrap import indent
from typing import Annotated, Any

from typer import Option

from kernull._text import visible
from kernull.cli import _options as o
from kernull.cli._console import UsageError, note, print_json, progress, stdout

#: Seconds between lines where there is no terminal.
EVERY = 10.0


@contextlib.contextmanager
def learning(text: str, quiet: bool) -> Iterator[None]:
    """Show that something is being learned, and for how long."""
    start, done = time.monotonic(), threading.Event()

    def work() -> None:
        while not done.wait(EVERY):
            note(f"{text}: {time.monotonic() - start:.0f} s so far.", quiet)

    with progress(quiet) as bar:
        bar.add_task(text, total=None)
        lines = threading.Thread(target=work, daemon=True)
        if bar.disable and not quiet:  # no terminal
            lines.start()
        try:
            yield
        finally:
            done.set()
            if lines.is_alive():
                lines.join()


@contextlib.contextmanager
def cores(jobs: int | None) -> Iterator[None]:
    """Work on so many cores at most; on all of them where None."""
    if jobs is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    name = "LOKY_MAX_CPU_COUNT"  # what joblib counts cores by
    before = os.environ.get(name)
    os.environ[name] = str(jobs)
    try:
        with threadpool_limits(jobs):
            yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def fit(
    data: o.DataFile,
    *,
    out: Annotated[str, Option("--out", "-o", metavar="MODEL", help="Model file to write.")],
    config: o.Config = None,
    columns: o.Columns,
    method: o.Learning,
    jobs: Annotated[int | None, Option(min=1, help="Cores to work on: all.")] = None,
    label: o.Label = None,
    normal: o.Normal = None,
    empty: o.Empty = None,
    form: o.FileForm,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Learn what normal looks like from a table and save the model.

    What each column is taken for (a number, a category, a date, an identifier) is printed before
    learning. All rows are taken to be normal, unless --label tells them apart: then only normal
    rows are learned from. The file holds the rows that were learned from.
    """
    from kernull.cli._models import training_rows
    from kernull.cli._output import check_writable
    from kernull.cli._settings import by_option, matching, new_judge

    if out == "-":
        raise UsageError("--out: a model is written to a file; expected a name.")
    check_writable(out, inputs=[data])
    rows, places = training_rows(data, form, label, normal, method.sample, quiet)
    judge = new_judge(columns, method, empty or [], config)
    for pattern in judge.views.kinds:
        matching([pattern], rows.names, "--kind, --drop or --encode")
    groups = None if not method.stretch else _stretches(method, places)
    try:
        judge.fit_table(rows)
        _print_columns(judge.table_, rows.source, quiet)
        with learning(f"Learning from {len(rows):,} rows", quiet), cores(jobs):
            judge.fit_model(rows, groups)
    except ValueError as error:
        raise by_option(error) from None
    judge.save(out)
    summary = _summary(judge)
    if hasattr(judge.model_, "suspects_") and not method.sample:
        suspects = places[judge.model_.suspects_] + 1  # as rows of the file, from 1
        summary["suspects"] = suspects.tolist()
    if json:
        kinds = {column.name: column.kind for column in judge.table_.columns_}
        print_json({"model": out, **summary, "kinds": kinds})
    elif not quiet:
        _print(summary)
        if suspects := summary.get("suspects"):
            shown, more = ", ".join(map(str, suspects[:12])), len(suspects) - 12
            shown += f" and {more:,} more, which --json lists" * (more > 0)
            some = f"{len(suspects):,} rows stand out and hardly count"
            some = "1 row stands out and hardly counts" if len(suspects) == 1 else some
            note(f"{some}: {shown}.", quiet)
        if method.contamination is not None and not hasattr(judge.model_, "rarity"):
            note("With --contamination, scores come without rarity and evidence.", quiet)
        note(f"Saved {out}. Next: kernull score {out} NEW.csv -o scores.csv", quiet)


def _stretches(method: o.Learning, places: Any) -> Any:
    """The stretch of each row, by its place among all rows."""
    if method.sample:
        raise UsageError(
            "--stretch: rows of a stretch are learned from together, in their order; leave out "
            "--sample."
        )
    n, stretch = len(places), method.stretch or 1
    if 5 * stretch > n:  # one that is left out must leave others
        raise UsageError(f"--stretch: got {stretch} of {n:,} rows; at most {n // 5}.")
    return places // stretch


def _print_columns(table: Any, source: str, quiet: bool) -> None:
    lines = [f"Columns of {source}:", indent(table.summary(), "  ")]
    if table.views_ is None:
        from kernull.tables.proposal import propose_views

        views = propose_views(table.used_) or {}
        proposal = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in views.items())
        lines += [f"  one view of all; by their names, --views auto makes {proposal}"] * bool(views)
    note("\n".join(lines), quiet)
    codes = [c.name for c in table.columns_ if c.kind == "number" and c.why.endswith("numbers")]
    if codes:
        shown = ", ".join(codes[:6]) + (", ..." if len(codes) > 6 else "")
        note(f"Codes, not amounts? Of {shown}, say so: --kind '{codes[0]}=category'.", quiet)


def _summary(judge: Any) -> dict[str, Any]:
    model, each = judge.model_, {task: judge.model_.task(task) for task in judge.tasks}
    fitted = judge.fitted_model()
    tasks = {"tasks": judge.tasks} if judge.task is not None else {}
    weights = zip(fitted.kernels.names, getattr(model, "weights_", ()), strict=False)
    return {
        "estimator": type(model).__name__,
        "training_rows": judge.n_learned,
        **tasks,
        "features": list(judge.table_.used_),
        "weights": {str(name): float(weight) for name, weight in weights},
        "gap": getattr(model, "gap_", None),
        "iterations": getattr(model, "n_iter_", None),
        "threshold": {t: m.threshold_ for t, m in each.items()} or model.threshold_,
        "false_alarm_rate": {t: m.false_alarm_rate_ for t, m in each.items()}
        or model.false_alarm_rate_,
        "parameters": {
            name: v if _is_plain(v) else repr(v) for name, v in model.get_params().items()
        },
    }


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a value as it is."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _print(summary: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    grid = Table(title="Weights", show_edge=False)
    grid.add_column("kernel")
    grid.add_column("weight", justify="right")
    ranked = sorted(summary["weights"].items(), key=lambda item: -item[1])
    for name, weight in ranked[:20]:
        grid.add_row(escape(name), f"{weight:.2f}")
    if len(ranked) > 20:
        grid.add_row(f"and {len(ranked) - 20} more", "")
    console = stdout()
    console.print(grid)
    gap, rate = summary["gap"], summary["false_alarm_rate"]
    rate = max(rate.values()) if isinstance(rate, dict) else rate
    certificate = "" if gap is None else f" duality gap {gap:.1e},"
    tasks = f" in {len(summary['tasks'])} tasks" if "tasks" in summary else ""
    console.print(
        f"{summary['estimator']}: {summary['training_rows']:,} rows{tasks},{certificate} "
        f"{100 * rate:.3g}% false alarms."
    )


def info(model: o.ModelFile, json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Print what a model file holds."""
    from kernull.cli._models import load_judge
    from kernull.files import read_about

    judge = load_judge(model)
    summary = _summary(judge) | {"file": read_about(model)}
    if json:
        print_json(summary)
        return
    _print(summary)
    console = stdout()
    for name in ("date", "kernull", "data", "note"):
        if text := visible(str(summary["file"].get(name, ""))[:1000]):
            console.print(f"{name.capitalize()}: {text}", markup=False, soft_wrap=True)
    for name, columns in judge.table_.view_columns().items():
        console.print(f"View {name}: {', '.join(columns)}", markup=False, soft_wrap=True)
    console.print(f"Columns:\n{judge.table_.summary()}", markup=False, soft_wrap=True)
    changed = {k: v for k, v in summary["parameters"].items() if k != "views"}
    line = ", ".join(f"{name}={value}" for name, value in changed.items())
    console.print(f"Parameters: {line}", markup=False, soft_wrap=True)
    console.print(
        "This file holds the rows that were learned from; share it as you would share them.",
        soft_wrap=True,
    )
