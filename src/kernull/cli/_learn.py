"""``kernull fit`` and ``kernull info``.

What reads tables and learns is imported in the functions: `kernull --help` needs no NumPy.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

from typer import Option

from kernull.cli import _options as o
from kernull.cli._console import note, print_json, progress, show


def fit(
    data: o.DataFile,
    *,
    out: Annotated[str, Option("--out", "-o", metavar="MODEL", help="Model file to write.")],
    asked: o.Parameters,
    stretch: Annotated[
        int | None,
        Option(min=2, help="Rows follow each other in time: leave so many in a row out together."),
    ] = None,
    label: o.Label = None,
    normal: o.Normal = None,
    form: o.FileForm,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Learn what normal looks like from a table and save the model.

    What each column is taken for (a number, a category, a date, an identifier) is printed before
    learning. All rows are taken to be normal, unless --label tells them apart: then only normal
    rows are learned from. The file holds the rows that were learned from.
    """
    from kernull.cli._output import check_writable
    from kernull.cli._tables import training_rows

    if out == "-":
        raise ValueError("--out: a model is written to a file; expected a name.")
    check_writable(out, inputs=[data])
    judge = new_judge(parameters(asked))
    rows, places = training_rows(data, form, label, normal, quiet)
    if stretch is not None and 5 * stretch > len(places):  # one that is left out must leave others
        raise ValueError(f"--stretch: got {stretch} of {len(places):,} rows; at most a fifth.")
    try:
        judge.fit_table(rows)
        _print_columns(judge.table_, rows.source, quiet)
        with progress(quiet) as bar:
            bar.add_task(f"Learning from {len(rows):,} rows", total=None)
            judge.fit_model(rows, None if stretch is None else places // stretch)
    except ValueError as error:
        if str(error).partition(":")[0] in {*judge.model.get_params(), "missing", "dates"}:
            raise ValueError(f"--set {error}") from None
        raise
    judge.save(out)
    summary = _summary(judge)
    if len(judge.suspects):  # as rows of the file, from 1
        summary["suspects"] = (places[judge.suspects] + 1).tolist()
    if json:
        print_json({"model": out, **summary})
    elif not quiet:
        show("\n".join(_lines(summary)))
        if suspects := summary.get("suspects"):
            shown, more = ", ".join(map(str, suspects[:12])), len(suspects) - 12
            shown += f" and {more:,} more, which --json lists" * (more > 0)
            weighed = " and hardly count" * (judge.model_.contamination is not None)
            note(f"Rows that stand out{weighed}, {len(suspects):,}: {shown}.", quiet)
        note(f"Saved {out}. Next: kernull score {out} NEW.csv -o scores.csv", quiet)


def parameters(options: o.Parameters) -> dict[str, Any]:
    """Parameters of a judge, of its table and of its model, by name: the file's, then options'."""
    from kernull import PAPER

    asked: dict[str, Any] = dict(PAPER) if options.paper else {}
    asked |= {} if options.config is None else _read_toml(options.config)
    asked |= dict(_setting(text) for text in options.set or ())
    if options.views not in (None, "auto", "features"):
        raise ValueError(
            f"--views: got {options.views!r}; expected auto or features. A file with a table "
            "[views] is --config FILE."
        )
    if options.views or options.view:
        asked["views"] = options.views or _views(options.view or [])
    kinds = dict(_kind(text) for text in options.kind or ())
    kinds |= dict.fromkeys(options.drop or (), "left out")
    if kinds:
        asked["kinds"] = asked.get("kinds", {}) | kinds
    same = ("empty", "false_alarm_rate", "id", "group", "task")
    asked |= {name: value for name in same if (value := getattr(options, name)) not in (None, [])}
    return asked


def _read_toml(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"--config: {file}: no such file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ValueError(f"--config: {file}: is not a TOML file ({error}).") from None


def _setting(text: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE``; the value as TOML has it, else a text."""
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"--set: got {text!r}; expected NAME=VALUE, such as p=4.")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value


def _views(options: Sequence[str]) -> dict[str, list[str]]:
    views: dict[str, list[str]] = {}
    for option in options:
        name, _, patterns = option.partition("=")
        # As CSV, so that a name may hold a comma: 'size="width, mm",height'.
        cells = next(csv.reader([patterns], skipinitialspace=True), [])
        items = [item.strip() for item in cells if item.strip()]
        if not name.strip() or not items:
            raise ValueError(
                f"--view: got {option!r}; expected NAME=PATTERN, for example 'colour=col_*' or "
                "'size=\"width, mm\",height'."
            )
        views.setdefault(name.strip(), []).extend(items)
    return views


def _kind(option: str) -> tuple[str, str]:
    pattern, _, kind = option.rpartition("=")
    if not pattern or not kind:
        raise ValueError(
            f"--kind: got {option!r}; expected PATTERN=KIND, for example 'shift=category'."
        )
    return pattern, kind.strip()


def new_judge(asked: dict[str, Any]) -> Any:
    """The judge with these parameters: of itself, of its table and of its model."""
    from kernull import JointMultiKernelFisherNull, Judge, MultiKernelFisherNull, TableViews
    from kernull.judge.judge import SETTINGS
    from kernull.tables.kinds import did_you_mean

    model = MultiKernelFisherNull() if "task" not in asked else JointMultiKernelFisherNull()
    table = TableViews()
    places = {name: f"model__{name}" for name in model.get_params()}
    places |= {name: f"views__{name}" for name in table.get_params()} | {n: n for n in SETTINGS}
    if unknown := [name for name in asked if name not in places]:
        near = did_you_mean(unknown[0], list(places))
        raise ValueError(
            f"--set or --config: no parameter {unknown[0]!r}{near}; expected one of "
            f"{', '.join(sorted(places))}."
        )
    judge = Judge(model, table)
    return judge.set_params(**{places[name]: value for name, value in asked.items()})


def _print_columns(table: Any, source: str, quiet: bool) -> None:
    lines = [f"Columns of {source}:", indent(table.summary(), "  ")]
    if table.views is None or table.views == "auto":
        views, auto = table.proposal() or {}, table.views == "auto"
        shown = "; ".join(f"{name}: {', '.join(columns)}" for name, columns in views.items())
        lines += [f"  {'views' if auto else 'one view of all; --views auto makes'} {shown}"] * bool(
            views
        )
    note("\n".join(lines), quiet)


def _summary(judge: Any) -> dict[str, Any]:
    from kernull.estimators.base import Certified

    model, table = judge.model_, judge.table_
    each = {task: model.task(task) for task in judge.tasks}
    names = judge.fitted_model().kernels.names if judge.view_names else ()
    certified = isinstance(model, Certified)
    weights = zip(names, model.weights_ if certified else (), strict=False)
    return {
        "estimator": type(model).__name__,
        "training_rows": judge.n_learned,
        **({"tasks": judge.tasks} if judge.tasks else {}),
        "features": list(table.used_),
        "kinds": {column.name: column.kind for column in table.columns_},
        "weights": {str(name): float(weight) for name, weight in weights},
        "gap": model.gap_ if certified else None,
        "threshold": {t: m.threshold_ for t, m in each.items()} or model.threshold_,
        "false_alarm_rate": {t: m.false_alarm_rate_ for t, m in each.items()}
        or model.false_alarm_rate_,
        "parameters": {
            name: value if isinstance(value, str | int | float | None) else repr(value)
            for name, value in model.get_params().items()
        },
    }


def _lines(summary: dict[str, Any]) -> list[str]:
    """What was learned, and how sure that is, in words."""
    ranked = sorted(summary["weights"].items(), key=lambda item: -item[1])
    weights = ", ".join(f"{name} {weight:.2f}" for name, weight in ranked[:20])
    weights += f" and {len(ranked) - 20} more" * (len(ranked) > 20)
    gap, rate = summary["gap"], summary["false_alarm_rate"]
    rate = max(rate.values()) if isinstance(rate, dict) else rate
    certificate = "" if gap is None else f" duality gap {gap:.1e},"
    tasks = f" in {len(summary['tasks'])} tasks" if "tasks" in summary else ""
    return [
        *[f"Weights: {weights}."] * bool(ranked),
        f"{summary['estimator']}: {summary['training_rows']:,} rows{tasks},{certificate} "
        f"{100 * rate:.3g}% false alarms.",
    ]


def info(model: o.ModelFile, json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Print what a model file holds."""
    from kernull.cli._tables import load_judge
    from kernull.files import read_about

    judge = load_judge(model)
    summary = _summary(judge) | {"file": read_about(model)}
    if json:
        print_json(summary)
        return
    about = summary["file"]
    lines = _lines(summary)
    lines += [
        f"{name.capitalize()}: {str(about[name])[:1000]}"
        for name in ("date", "kernull", "data", "note")
        if about.get(name)
    ]
    lines += [f"View {n}: {', '.join(names)}" for n, names in judge.table_.view_columns().items()]
    changed = {k: v for k, v in summary["parameters"].items() if k != "views"}
    lines += [
        f"Columns:\n{judge.table_.summary()}",
        f"Parameters: {', '.join(f'{name}={value}' for name, value in changed.items())}",
        "This file holds the rows that were learned from; share it as you would share them.",
    ]
    show("\n".join(lines))
