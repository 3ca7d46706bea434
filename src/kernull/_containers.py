"""Arrays follow their input: torch tensors and Dask collections at the border of an estimator.

Inside, everything is NumPy. A tensor on a GPU decides where kernels are evaluated; results come
back as tensors there. Dask arrays and dataframes are scored lazily, partition by partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor."""
    return type(X).__module__.partition(".")[0] == "torch"  # without importing it


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array, dataframe or series."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "dask")


def cuda_device_of(X: Any) -> Any:
    """The GPU that X, or the first entry of a mapping, lives on; or None."""
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        X = next(iter(X.values()), None)
    return X.device if is_tensor(X) and X.device.type == "cuda" else None


def as_numpy(X: Any) -> Any:
    """X, or each entry of a mapping, with tensors brought to the host."""
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # SciPy has matrices that are mappings
        return {name: as_numpy(part) for name, part in X.items()}
    return X.detach().cpu().numpy() if is_tensor(X) else X


def match_container(values: Any, X: Any) -> Any:
    """NumPy values as a tensor on the device of X, where X is a tensor."""
    return tensor_on(values, X.device) if is_tensor(X) else values


def tensor_on(values: Any, device: Any) -> Any:
    """NumPy values as a tensor on a device."""
    import torch

    return torch.as_tensor(np.ascontiguousarray(values), device=device)


def frame_library(X: Any) -> str | None:
    """The library that a data frame is of (``"pandas"``, ``"polars"``, ...); None for others."""
    if not hasattr(X, "columns") or isinstance(X, np.ndarray):
        return None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame.implementation.name.lower() if isinstance(frame, nw.DataFrame) else None


def row_names(X: Any) -> tuple[Any, ...] | None:
    """What the index of a data frame calls its rows; None where it only counts them from 0."""
    index = None if frame_library(X) is None else getattr(X, "index", None)
    if index is None:
        return None
    names = [", ".join(map(str, i)) if isinstance(i, tuple) else i for i in index.tolist()]
    return None if names == list(range(len(names))) else tuple(names)


def as_frame(values: Any, library: str | None, names: Sequence[str] = ()) -> Any:
    """A mapping of columns, or records with these names, as a data frame of a library.

    As they are without one.
    """
    if library is None:
        return values
    import narwhals as nw

    columns = values
    if not isinstance(values, Mapping):
        columns = {name: [record[name] for record in values] for name in names}
    return nw.from_dict(columns, backend=cast(Any, library)).to_native()


def map_rows(function: Callable[[Any], Any], X: Any, dtype: Any = float) -> Any:
    """Apply a function of rows to every partition of a Dask collection, lazily."""
    if hasattr(X, "map_partitions"):
        import pandas as pd

        def of_frame(frame: Any) -> Any:
            empty = len(frame) == 0
            values = np.empty(0, dtype) if empty else np.asarray(function(frame), dtype)
            return pd.Series(values, index=frame.index)

        return X.map_partitions(of_frame, meta=pd.Series(dtype=dtype))
    X = X.rechunk({1: -1})  # a row must be whole to be scored
    return X.map_blocks(function, drop_axis=1, dtype=dtype, meta=np.empty(0, dtype))
