"""Files of a pipeline of two steps: `TableViews` and an estimator of kernull."""

from __future__ import annotations

import os
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernull._whole import atomic_write
from kernull.errors import ModelFileError
from kernull.tables import TableViews
from kernull.tables.stored import attach_views, load_steps, load_views


def save_pipeline(pipeline: Pipeline, path: str | os.PathLike[str], save: Any) -> None:
    """Write ``make_pipeline(TableViews(...), estimator)``, fitted; see `kernull.save`.

    Other steps hold code of their own, which a model file does not. ``save`` writes the estimator.
    """
    steps = [step for _, step in pipeline.steps]
    if len(steps) != 2 or type(steps[0]) is not TableViews:
        named = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            f"model: got a pipeline of {named}; expected TableViews and an estimator of kernull. "
            "Save the estimator by itself (model[-1]), or use pickle or skops for the rest."
        )
    check_is_fitted(steps[0], "columns_")
    with atomic_write(os.fspath(path)) as part:
        save(steps[1], part)
        attach_views(steps[0], part, [name for name, _ in pipeline.steps])


def pipeline_of(model: Any, path: str | os.PathLike[str]) -> Any:
    """The model by itself, or the pipeline that the file says it is the second step of."""
    names = load_steps(path)
    if names is None:
        return model
    table = load_views(path)
    if table is None or len(table.get_feature_names_out()) != int(model.n_features_in_):
        raise ModelFileError(f"{os.fspath(path)!r}: its table does not fit its model.")
    given = getattr(model, "feature_names_in_", None)
    if given is not None and list(given) == list(table.get_feature_names_out()):
        del model.feature_names_in_  # arrays pass between the steps, and have no names
    return Pipeline([(names[0], table), (names[1], model)])
