"""What the commands do with models: read tables for them, load, judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernull._typing import Array, Mask
from kernull.cli._chunks import Chunk, Source
from kernull.cli._console import note
from kernull.cli._errors import DataError, UsageError
from kernull.cli._features import Feature, choose_features, features_of_model, matrix, view_columns
from kernull.cli._tables import open_table

__all__ = [
    "Judged", "TrainingTable", "check_labels", "judge", "labels", "load_model", "model_features",
    "training",
]  # fmt: skip


@dataclass(frozen=True)
class TrainingTable:
    """A table to learn from: numbers, names, views by position, and labels where there are some."""

    X: Array
    features: tuple[Feature, ...]
    views: dict[str, list[int]] | None
    y: Array | None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [feature.name for feature in self.features]


def training(
    path: str,
    views: dict[str, list[str]] | str | None,
    drop: Sequence[str],
    encode: Sequence[str],
    label: str | None,
    normal: str | None,
    quiet: bool,
    label_optional: bool = False,
) -> TrainingTable:
    """Read a table to learn from."""
    check_labels(label, normal)
    source = open_table(path)
    if source.headless:
        note(f"{source.label}: has no header line; columns are called x0, x1, ...", quiet)
    chunk = source.read()
    names = [name for name in source.names if name != label]
    if label_optional and label not in source.names:
        label = None
    if label is not None and label not in source.names:
        raise UsageError(f"--label: {source.label} has no column {label!r}.")
    if isinstance(views, dict):  # a column that no view takes is not looked at
        taken = {
            name for columns in (view_columns(views, names) or {}).values() for name in columns
        }
        names = [name for name in names if name in taken]
    features = choose_features(chunk, names, drop, encode)
    y = None if label is None else labels(chunk, label, normal)
    return TrainingTable(
        matrix(chunk, features), tuple(features), _view_positions(views, features), y
    )


def check_labels(label: str | None, normal: str | None) -> None:
    """Refuse a normal label where no column of labels is named."""
    if normal is not None and label is None:
        raise UsageError(f"--normal: got {normal!r} without --label; say which column holds it.")


def _view_positions(
    views: dict[str, list[str]] | str | None, features: Sequence[Feature]
) -> dict[str, list[int]] | None:
    """Positions of the features of each view; all categories of a column go together."""
    columns = list(dict.fromkeys(feature.column for feature in features))
    by_view = view_columns(views, columns)
    if by_view is None:
        return None
    return {
        view: [i for i, feature in enumerate(features) if feature.column in set(members)]
        for view, members in by_view.items()
    }


def labels(chunk: Chunk, column: str, normal: str | None) -> Array:
    """+1 for normal rows and -1 for others, from a column of labels."""
    if column not in chunk.columns:
        raise UsageError(f"--label: {chunk.source} has no column {column!r}.")
    cells = chunk.text(column)
    found = sorted(set(cells))
    if normal is None:
        numbers = {cell: _as_number(cell) for cell in found}
        if not set(numbers.values()) <= {1.0, -1.0}:
            shown = ", ".join(map(repr, found[:6]))
            raise UsageError(
                f"--label: the column {column!r} holds {shown}; say which value is normal with "
                "--normal VALUE."
            )
        return np.array([int(numbers[cell] or 0) for cell in cells])
    if not any(_same(cell, normal) for cell in found):
        raise UsageError(f"--normal: no row of {chunk.source} has {column} = {normal!r}.")
    same = {cell: _same(cell, normal) for cell in found}
    return np.array([1 if same[cell] else -1 for cell in cells])


def _as_number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _same(cell: str, wanted: str) -> bool:
    """Equal as text, or as numbers: 1 and 1.0 are one label."""
    number = _as_number(wanted)
    return cell == wanted or (number is not None and _as_number(cell) == number)


# -- fitted models ---------------------------------------------------------------------------


def load_model(path: str) -> Any:
    """Load a model file, with errors that say which."""
    from kernull import load
    from kernull.errors import ModelFileError

    if not Path(path).exists():
        raise UsageError(f"{path}: no such model file; make one with: kernull fit DATA -o {path}")
    if Path(path).is_dir():
        raise UsageError(f"{path}: is a folder; expected a model file.")
    try:
        model = load(path)
    except ModelFileError as error:
        raise DataError(str(error)) from None
    model = getattr(model, "best_estimator_", model)
    if not hasattr(model, "calibration_"):
        raise DataError(f"{path}: the model is not fitted, or is not for one table.")
    if getattr(model, "bank_", None) is None:
        raise DataError(f"{path}: the model was fitted on precomputed kernels, not on a table.")
    return model


def model_features(model: Any, source: Source, drop: Sequence[str]) -> list[Feature]:
    """The columns of a table that a model asks for."""
    wanted = getattr(model, "feature_names_in_", None)
    names = None if wanted is None else [str(name) for name in wanted]
    return features_of_model(names, int(model.n_features_in_), source.names, source.label, drop)


@dataclass(frozen=True)
class Judged:
    """Scores, p-values, flags and the most suspect view (None without contributions)."""

    scores: Array
    p_values: Array
    flagged: Mask
    top_view: list[str] | None


def judge(model: Any, X: Array, reasons: bool) -> Judged:
    """Judge rows, with the most suspect view where asked for, evaluating the kernels once."""
    if not reasons:
        scores = model.score_samples(X)
        p_values = model.calibration_.p_values(scores)
        return Judged(scores, p_values, ~(scores >= model.threshold_), None)
    why = model.explain(X)
    names = why.view_names
    top = [names[v] for v in np.argmin(why.surprise, axis=1)]
    # A score that overflows is no number, and not normal.
    return Judged(why.scores, why.p_values, ~(why.scores >= model.threshold_), top)
