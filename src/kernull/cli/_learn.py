"""``kernull fit`` and ``kernull info``."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from kernull.cli import _options as o
from kernull.cli._console import note, print_json, progress, stdout
from kernull.cli._errors import DataError, UsageError
from kernull.cli._features import read_views
from kernull.cli._models import TrainingTable, load_model, training
from kernull.cli._output import check_writable

__all__ = ["fit", "info"]


def fit(
    data: o.DataFile,
    out: Annotated[str, typer.Option("--out", "-o", metavar="MODEL", help="Model file to write.")],
    views: o.Views = None,
    view: o.View = None,
    drop: o.Drop = None,
    encode: o.Encode = None,
    p: Annotated[
        float | None, typer.Option(min=1.0, help="Norm of the weights: 1 sparse, inf uniform.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Ridge relative to the number of rows.")
    ] = None,
    width: Annotated[
        list[float] | None, typer.Option(help="Kernel width against the mean distance. Repeat it.")
    ] = None,
    kernel: Annotated[
        list[str] | None,
        typer.Option(help="rbf, laplacian, linear, polynomial, cosine. Repeat it."),
    ] = None,
    scaling: Annotated[
        str | None, typer.Option(help="standard, whiten, whiten-raw, none, auto.")
    ] = None,
    solver: Annotated[str | None, typer.Option(help="Solver of the weights.")] = None,
    false_alarm_rate: Annotated[
        float, typer.Option(help="Share of normal rows that may be flagged.")
    ] = 0.05,
    calibration: Annotated[
        str | None,
        typer.Option(help="loo (all rows), folds (refits), split (rows held out), auto."),
    ] = None,
    select: Annotated[
        bool, typer.Option("--select", help="Choose p, delta and width by cross-validation.")
    ] = False,
    label: o.Label = None,
    normal: o.Normal = None,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Learn what normal looks like from a table and save the model.

    All rows are taken to be normal, unless --label says otherwise: then only normal rows are
    learned from, and --select judges by the others.
    """
    if out == "-":
        raise UsageError("--out: a model is written to a file; expected a name.")
    check_writable(out, inputs=[data])
    given: dict[str, Any] = {
        "kernels": kernel or None,
        "scaling": scaling,
        "widths": tuple(width) if width else None,
        "p": p,
        "delta": delta,
        "solver": solver,
        "calibration": calibration,
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    table = training(
        data, read_views(views, view or []), drop or [], encode or [], label, normal, quiet
    )
    if table.y is not None and not (table.y == 1).any():
        raise DataError(f"{data}: no row is labelled normal.")
    count = len(table.X) if table.y is None else int((table.y == 1).sum())
    if count < 2:
        raise DataError(f"{data}: {count} normal row to learn from; expected at least 2.")
    parameters |= {"views": table.views, "false_alarm_rate": false_alarm_rate}
    with progress(quiet) as bar:
        task = bar.add_task(f"Learning from {len(table.X):,} rows", total=None)
        try:
            model = _selected(table, parameters) if select else _fitted(table, parameters)
        except ValueError as error:
            raise _by_option(error) from None
        bar.update(task, description="Saving")
        from kernull import save

        save(model, out)
    summary = _summary(model)
    if json:
        print_json({"model": out, **summary})
    else:
        _show(summary, quiet)
        note(f"Saved {out}. Next: kernull score {out} NEW.csv -o scores.csv", quiet)


#: Options whose values the estimator judges, by the name of its parameter.
_OPTIONS = {
    "kernels": "--kernel",
    "scaling": "--scaling",
    "widths": "--width",
    "p": "--p",
    "delta": "--delta",
    "solver": "--solver",
    "calibration": "--calibration",
    "false_alarm_rate": "--false-alarm-rate",
}


def _by_option(error: ValueError) -> Exception:
    """The estimator's word on a parameter as one on the option that set it."""
    name, _, rest = str(error).partition(":")
    return UsageError(f"{_OPTIONS[name]}:{rest}") if name in _OPTIONS else error


def _fitted(table: TrainingTable, parameters: dict[str, Any]) -> Any:
    from kernull import MultiKernelFisherNull

    X = table.X if table.y is None else table.X[table.y == 1]
    return _named(MultiKernelFisherNull(**parameters).fit(X), table)


def _selected(table: TrainingTable, parameters: dict[str, Any]) -> Any:
    from kernull.selection import MultiKernelFisherNullCV

    fixed = {"p": "ps", "delta": "deltas", "widths": "widths"}  # what is given is not searched
    settings: dict[str, Any] = {
        fixed.get(name, name): [value] if name in ("p", "delta") else value
        for name, value in parameters.items()
    }
    extra: dict[str, Any] = {
        name: settings.pop(name) for name in ("solver", "calibration") if name in settings
    }
    search = MultiKernelFisherNullCV(**settings, model_params=extra or None)
    return _named(search.fit(table.X, table.y).best_estimator_, table)


def _named(model: Any, table: TrainingTable) -> Any:
    import numpy as np

    # As scikit-learn does for tables with names; the file finds its columns by them.
    model.feature_names_in_ = np.array(table.names, dtype=object)
    return model


def _summary(model: Any) -> dict[str, Any]:
    if isinstance(getattr(model, "threshold_", None), dict):
        raise DataError("a joint model has one threshold a task; use it from Python: kernull.load.")

    def number(name: str) -> Any:
        value = getattr(model, name, None)
        return None if value is None else float(value)

    weights = getattr(model, "weights_", ())
    return {
        "estimator": type(model).__name__,
        "training_rows": int(model.bank_.n),
        "features": [str(n) for n in getattr(model, "feature_names_in_", ())]
        or int(model.n_features_in_),
        "weights": {
            str(name): float(weight)
            for name, weight in zip(model.kernel_names_, weights, strict=False)
        },
        "gap": number("gap_"),
        "iterations": getattr(model, "n_iter_", None),
        "threshold": number("threshold_"),
        "false_alarm_rate": number("false_alarm_rate_"),
        "parameters": {
            name: value if _is_plain(value) else repr(value)
            for name, value in model.get_params().items()
        },
    }


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold a value as it is."""
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _show(summary: dict[str, Any], quiet: bool) -> None:
    if quiet:
        return
    from rich.markup import escape
    from rich.table import Table

    grid = Table(title="Weights", show_edge=False)
    grid.add_column("kernel")
    grid.add_column("weight", justify="right")
    ranked = sorted(summary["weights"].items(), key=lambda item: -item[1])
    for name, weight in ranked[:20]:
        grid.add_row(escape(name), f"{weight:.4f}")
    if len(ranked) > 20:
        grid.add_row(f"and {len(ranked) - 20} more", "")
    console = stdout()
    console.print(grid)
    gap = summary["gap"]
    certificate = "" if gap is None else f" duality gap {gap:.1e},"
    console.print(
        f"{summary['estimator']}: {summary['training_rows']:,} rows,{certificate} threshold "
        f"{summary['threshold']:.4g} for {summary['false_alarm_rate']:.3g} false alarms."
    )


def info(model: o.ModelFile, json: o.Json = False, quiet: o.Quiet = False) -> None:
    """Say what a model file holds."""
    loaded = load_model(model)
    summary = _summary(loaded)
    if json:
        print_json(summary)
        return
    _show(summary, quiet=False)
    names = summary["features"]
    views = {view.name: view for view in loaded.bank_.views}  # one, in however many scalings
    for view in views.values():
        columns = [names[i] if isinstance(names, list) else f"x{i}" for i in view.columns]
        stdout().print(f"View {view.name}: {', '.join(columns)}", markup=False, soft_wrap=True)
    changed = {k: v for k, v in summary["parameters"].items() if k != "views"}
    line = ", ".join(f"{name}={value}" for name, value in changed.items())
    stdout().print(f"Parameters: {line}", markup=False, soft_wrap=True)
