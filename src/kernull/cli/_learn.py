"""``kernull fit`` and ``kernull info``.

What reads tables and learns is imported in the functions: `kernull --help` needs no NumPy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

import kernull
from kernull._text import visible
from kernull.cli import _options as o
from kernull.cli._console import DataError, UsageError, note, print_json, stdout
from kernull.cli._learning import cores, learning

if TYPE_CHECKING:
    from kernull.cli._models import TrainingTable


def fit(
    data: o.DataFile,
    *,
    out: Annotated[str, Option("--out", "-o", metavar="MODEL", help="Model file to write.")],
    config: Annotated[
        o.Text, Option(metavar="FILE", help="TOML file with any of these options; see the guide.")
    ] = None,
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

    What each column is taken for (a number, a category, a date, an identifier) is said before
    learning. All rows are taken to be normal, unless --label says otherwise: then only normal
    rows are learned from.
    """
    import numpy as np

    from kernull.cli._models import training
    from kernull.cli._output import check_writable
    from kernull.cli._settings import by_option, estimator_parameters, read_columns, read_settings

    if out == "-":
        raise UsageError("--out: a model is written to a file; expected a name.")
    check_writable(out, inputs=[data])
    said = {**read_columns(columns), **vars(method), **vars(form)}
    said |= {"empty": empty, "label": label, "normal": normal}
    given = read_settings(config, said)
    form = o.FileForm(**{name: given.get(name) for name in vars(form)})
    of_table: dict[str, Any] = {
        n: given.get(n) for n in ("views", "kinds", "dates", "missing", "empty")
    }
    table = training(data, form, given.get("label"), given.get("normal"), quiet, **of_table)
    table = table.sample(given.get("sample"))
    parameters = estimator_parameters(given) | {"views": table.table.views_}
    stretch = given.get("stretch")
    if stretch and given.get("sample"):
        raise UsageError(
            "--stretch: rows of a stretch are learned from together, in their order; leave out "
            "--sample."
        )
    if stretch and 5 * stretch > len(table.X):  # one that is left out must leave others
        most = len(table.X) // 5
        raise UsageError(f"--stretch: got {stretch} of {len(table.X):,} rows; at most {most}.")
    with learning(f"Learning from {len(table.normal):,} rows", quiet), cores(jobs):
        try:
            model = _fitted(table, parameters, stretch)
        except ValueError as error:
            raise by_option(error) from None
    # As scikit-learn does for tables with names; the file finds its columns by them.
    model.feature_names_in_ = np.array(table.names, dtype=object)
    kernull.save(model, out, table=table.table)
    summary = _summary(model)
    if hasattr(model, "suspects_") and not given.get("sample"):  # as rows of the file, from 1
        summary["suspects"] = (table.places[model.suspects_] + 1).tolist()
    if json:
        kinds = {column.name: column.kind for column in table.table.columns_}
        print_json({"model": out, **summary, "kinds": kinds})
    elif not quiet:
        _show(summary)
        if suspects := summary.get("suspects"):
            shown, more = ", ".join(map(str, suspects[:12])), len(suspects) - 12
            shown += f" and {more:,} more, which --json lists" * (more > 0)
            some = f"{len(suspects):,} rows stand out and hardly count"
            some = "1 row stands out and hardly counts" if len(suspects) == 1 else some
            note(f"{some}: {shown}.", quiet)
        if "contamination" in given and not hasattr(model, "rarity"):
            note("With --contamination, scores come without rarity and evidence.", quiet)
        note(f"Saved {out}. Next: kernull score {out} NEW.csv -o scores.csv", quiet)


def _fitted(table: TrainingTable, parameters: dict[str, Any], stretch: int | None) -> Any:
    from kernull import MultiKernelFisherNull

    # By their places among all rows: a stretch of time may have rows that are not normal.
    groups = None if stretch is None else table.places // stretch
    return MultiKernelFisherNull(**parameters).fit(table.normal, groups=groups)


def _summary(model: Any) -> dict[str, Any]:
    if isinstance(getattr(model, "threshold_", None), dict):
        raise DataError(
            "a joint model has one threshold per task; use it from Python: kernull.load."
        )

    def number(name: str) -> Any:
        value = getattr(model, name, None)
        return None if value is None else float(value)

    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    weights = zip(model.kernel_names_, getattr(model, "weights_", ()), strict=False)
    given = model.get_params().items()
    return {
        "estimator": type(model).__name__,
        "training_rows": max(model.model_.learned_from.values()),
        "features": names or int(model.n_features_in_),
        "weights": {str(name): float(weight) for name, weight in weights},
        "gap": number("gap_"),
        "iterations": getattr(model, "n_iter_", None),
        "threshold": number("threshold_"),
        "false_alarm_rate": number("false_alarm_rate_"),
        "parameters": {name: v if _is_plain(v) else repr(v) for name, v in given},
    }


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a value as it is."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _show(summary: dict[str, Any]) -> None:
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
    gap = summary["gap"]
    certificate = "" if gap is None else f" duality gap {gap:.1e},"
    console.print(
        f"{summary['estimator']}: {summary['training_rows']:,} rows,{certificate} "
        f"{100 * summary['false_alarm_rate']:.3g}% false alarms."
    )


def info(model: o.ModelFile, json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Say what a model file holds."""
    from kernull.cli._models import load_fitted
    from kernull.files import read_about

    fitted = load_fitted(model, o.Gaps())
    loaded = fitted.model
    summary = _summary(loaded) | {"file": read_about(model)}
    if json:
        print_json(summary)
        return
    _show(summary)
    for name in ("date", "kernull", "data", "note"):
        if text := visible(str(summary["file"].get(name, ""))[:1000]):
            stdout().print(f"{name.capitalize()}: {text}", markup=False, soft_wrap=True)
    names = summary["features"]
    views = {view.name: view for view in loaded.bank_.views}  # one, in however many scalings
    for view in views.values():
        columns = [names[i] if isinstance(names, list) else f"x{i}" for i in view.columns]
        stdout().print(f"View {view.name}: {', '.join(columns)}", markup=False, soft_wrap=True)
    if fitted.table is not None:
        stdout().print(f"Columns:\n{fitted.table.summary()}", markup=False, soft_wrap=True)
    changed = {k: v for k, v in summary["parameters"].items() if k != "views"}
    line = ", ".join(f"{name}={value}" for name, value in changed.items())
    stdout().print(f"Parameters: {line}", markup=False, soft_wrap=True)
