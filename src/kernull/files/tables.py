"""What a model file keeps of its table: the kinds of columns, beside the model.

A model file is a safetensors file, whose header has text entries. The table has one of its own, so
that a model is read as before by whoever knows nothing of tables. It is JSON with arrays of
numbers in base64; reading checks every value and makes nothing but a `TableViews`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from kernull._runtime import write_whole
from kernull._typing import Array
from kernull.errors import ModelFileError
from kernull.files.format import read_metadata
from kernull.tables.encoder import Encoder
from kernull.tables.gaps import LARGEST, MOST_COLUMNS, QUANTILES, GapFiller
from kernull.tables.kinds import KINDS, USED, Column
from kernull.tables.transformer import DATES, MISSING, TableViews

ENTRY, HASH = "kernull-table", "kernull-table-sha256"
STEPS = "kernull-pipeline"


def attach_views(
    table: TableViews, path: str | os.PathLike[str], steps: Sequence[str] = ()
) -> None:
    """Add a fitted `TableViews` to a model file that `kernull.save` wrote, replaced as a whole.

    ``steps`` are the names of a pipeline's two steps.
    """
    file = Path(path)
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    text = json.dumps(_state(table), allow_nan=False, separators=(",", ":"))
    if steps:
        header["__metadata__"][STEPS] = json.dumps(list(steps))
    header["__metadata__"] |= {ENTRY: text, HASH: hashlib.sha256(text.encode()).hexdigest()}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)  # tensors stay aligned
    write_whole(len(head).to_bytes(8, "little") + head + data[8 + size :], file)


def load_views(path: str | os.PathLike[str]) -> TableViews | None:
    """The fitted `TableViews` of a model file, or None where it has none.

    Parameters
    ----------
    path : path-like
        A model file, such as ``kernull fit`` writes. It is a `ModelFileError` if what it says of
        its table is damaged or does not make sense.
    """
    metadata = read_metadata(path)
    text = metadata.get(ENTRY)
    if text is None:
        return None
    try:
        if hashlib.sha256(text.encode()).hexdigest() != metadata.get(HASH):
            raise ModelFileError("its hash is wrong")
        return _restored(json.loads(text))
    except Exception as error:  # whatever does not fit together, the file is to blame
        said = str(error) if isinstance(error, ModelFileError) else type(error).__name__
        raise ModelFileError(
            f"{os.fspath(path)!r}: what it says about its table cannot be used: {said}"
        ) from error


def load_steps(path: str | os.PathLike[str]) -> tuple[str, str] | None:
    """Names of the two steps, where the file holds a pipeline; None for a model by itself."""
    text = read_metadata(path).get(STEPS)
    if text is None:
        return None
    names = json.loads(text)
    if not _are_texts(names) or len(set(names)) != 2 or any(not n or "__" in n for n in names):
        raise ModelFileError(f"{os.fspath(path)!r}: its steps have no names.")
    return names[0], names[1]


def _state(table: TableViews) -> dict[str, Any]:
    filler = table.filler_
    return {
        "version": 1,
        "missing": table.missing,
        "dates": table.dates,
        "empty": list(table.empty),
        "parameters": {
            "views": _plain_views(table.views),
            "kinds": None if table.kinds is None else dict(table.kinds),
            "max_categories": int(table.max_categories),
        },
        "columns": [asdict(column) for column in table.columns_],
        "used": table.used_,
        "views": table.views_,
        "places": {name: _pack(places) for name, places in table._encoder.places.items()},
        "mean": _pack(filler.mean),
        "scale": _pack(filler.scale),
        # For ranges and drift, where seven digits do; without correlations the one gives the other.
        "residuals": None if filler.correlation is None else _pack(filler.residuals, "<f4"),
        "quantiles": _pack(filler.quantiles, "<f4"),
        "rows": filler.rows,
        "correlation": None if filler.correlation is None else _pack(filler.correlation),
        "around": None if filler.correlation is None else _pack(filler.around, "<f4"),
        "of_scores": None if filler.of_scores is None else _pack(filler.of_scores),
        "left_of_scores": None if filler.of_scores is None else _pack(filler.left_of_scores, "<f4"),
    }


def _restored(state: Any) -> TableViews:
    _want(isinstance(state, dict) and state.get("version") == 1, "its version is unknown")
    _want(state["missing"] in MISSING and state["dates"] in DATES, "an unknown setting")
    columns = [_column(entry) for entry in state["columns"]]
    names = [column.name for column in columns]
    _want(len(set(names)) == len(names), "two columns of one name")
    by_name = {column.name: column for column in columns}
    used = [by_name[name] for name in state["used"]]
    _want(used and all(c.kind in USED for c in used), "columns that are not learned from")
    empty = state.get("empty", [])
    _want(_are_texts(empty), "an unknown setting")
    table = TableViews(dates=state["dates"], missing=state["missing"], empty=tuple(empty))
    given = state.get("parameters")
    if given is not None:  # what a later fit would do
        table.set_params(**_parameters(given))
    table.columns_, table.n_features_in_ = columns, len(columns)
    table.used_ = [column.name for column in used]
    table.feature_names_in_ = np.array(names, dtype=object)
    places = {
        c.name: _array(state["places"][c.name], (len(c.values), 1 if len(c.values) == 2 else 2))
        for c in used
        if c.kind == "category"
    }
    table._encoder = Encoder(used, places)
    d = sum(map(len, table.blocks_))
    given = state["correlation"]
    _want(given is None or d <= MOST_COLUMNS, "too many columns")
    mean, scale = _array(state["mean"], (d,)), _array(state["scale"], (d,))
    quantiles = _array(state["quantiles"], (QUANTILES, d), "<f4")
    left, correlation = state["residuals"], None if given is None else _array(given, (d, d))
    left = quantiles - mean if left is None else _array(left, (QUANTILES, d), "<f4")
    rows = int(state["rows"])
    around = quantiles - mean
    of_scores, shape = correlation, np.zeros((QUANTILES, d))
    if state.get("of_scores") is not None:  # neither files of 0.1 nor wide tables have them
        around = _array(state["around"], (QUANTILES, d), "<f4")
        of_scores = _array(state["of_scores"], (d, d))
        shape = _array(state["left_of_scores"], (QUANTILES, d), "<f4")
    table.filler_ = GapFiller(
        mean, scale, correlation, left, quantiles, rows, around, of_scores, shape
    )
    table.views_ = _views(state["views"], d)
    return table


def _plain_views(views: Any) -> Any:
    """Views as JSON can hold them."""
    if not isinstance(views, Mapping):
        return views
    return {str(k): [v] if isinstance(v, str) else [str(p) for p in v] for k, v in views.items()}


def _parameters(given: Any) -> dict[str, Any]:
    """Parameters of `TableViews`, checked."""
    views, kinds, most = given["views"], given["kinds"], given["max_categories"]
    named = isinstance(views, dict) and all(map(_are_texts, views.values()))
    _want(named or views in (None, "features"), "views of no columns")
    plain = kinds is None or (isinstance(kinds, dict) and set(kinds.values()) <= set(KINDS))
    _want(plain and isinstance(most, int) and not isinstance(most, bool), "an unknown setting")
    return {"views": views, "kinds": kinds, "max_categories": most}


def _column(entry: Any) -> Column:
    values, counts = tuple(entry.pop("values")), tuple(entry.pop("counts"))
    keys, law = tuple(entry.pop("keys", ())), tuple(entry.pop("law", ()))
    column = Column(**entry, values=values, counts=counts, keys=keys, law=law)
    whole = all(isinstance(count, int) and count >= 0 for count in counts)
    _want(whole and len(counts) == len(values), "a category without its counts")
    _want(len(law) in (0, 3) and np.isfinite(law).all(), "numbers that are none")
    _want(not column.copies or law or len(keys) == len(values), "a copy of nothing")
    texts = [column.name, column.why, *column.values, column.form or "", column.copies, *keys]
    _want(all(isinstance(text, str) for text in texts), "a column without a name")
    _want(column.kind in KINDS and isinstance(column.missing, int), "a column of no kind")
    return column


def _views(given: Any, d: int) -> dict[str, list[int]] | None:
    if given is None:
        return None
    for positions in given.values():
        whole = all(isinstance(i, int) and 0 <= i < d for i in positions)
        _want(bool(positions) and whole, "a view of no columns")
    return {str(name): list(positions) for name, positions in given.items()}


def _pack(values: Array, kind: str = "<f8") -> str:
    if kind == "<f4":
        values = np.clip(values, -LARGEST, LARGEST)
    return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()


def _array(text: Any, shape: tuple[int, ...], kind: str = "<f8") -> Array:
    values = np.frombuffer(base64.b64decode(text, validate=True), kind).astype(float)
    _want(values.size == np.prod(shape) and np.isfinite(values).all(), "numbers that are none")
    return values.reshape(shape)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _want(true: Any, otherwise: str) -> None:
    if not true:
        raise ModelFileError(otherwise)
