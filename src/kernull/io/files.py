"""Saving and loading of models, without pickle and without trust in the file.

An estimator is written as its class's name and its attributes; the few frozen classes that live in
those attributes likewise. Names are looked up in the tables below and nowhere else, so a file can
ask for nothing that is not listed here.
"""

from __future__ import annotations

import os
import platform
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import NotFittedError

from kernull._version import __version__
from kernull.errors import ModelFileError
from kernull.estimators._arrays import as_numpy
from kernull.persistence import read_tree, write_tree
from kernull.persistence.format import MAX_BYTES
from kernull.persistence.values import Node
from kernull.stacks import DenseStack

__all__ = ["load", "save"]

#: Estimators that files may hold, and where they live.
ESTIMATORS: dict[str, str] = {
    "MultiKernelFisherNull": "kernull.estimators",
    "JointMultiKernelFisherNull": "kernull.estimators",
    "FisherNull": "kernull.estimators",
    "GaussianProcessOneClass": "kernull.estimators",
    "KernelPCANovelty": "kernull.estimators",
    "MultiKernelSVDD": "kernull.estimators",
    "MultiKernelOneClassSVM": "kernull.estimators",
    "MultiKernelFisherNullCV": "kernull.selection",
}

#: Frozen records that attributes of estimators may hold.
RECORDS: dict[str, str] = {
    "KernelSet": "kernull.stacks.kernel_set",
    "ScaledView": "kernull.stacks.kernel_set",
    "DenseStack": "kernull.stacks.dense",
    "ViewScaler": "kernull.views.scaling",
    "FittedKernel": "kernull.kernels.functions",
    "Calibration": "kernull.calibration.conformal",
    "Record": "kernull.solvers.base",
    "RidgeInverse": "kernull.problems.incremental",
    "Task": "kernull.estimators._tasks",
}

#: What records were called when older files were written.
FORMERLY: dict[str, str] = {"KernelBank": "KernelSet", "BankView": "ScaledView"}

#: Constructor arguments and their attributes, of records that are not dataclasses.
ARGUMENTS: dict[str, dict[str, str]] = {
    "DenseStack": {
        "kernels": "kernels",
        "scale": "scale",
        "diagonal": "own_diagonal",
        "names": "names",
    },
}

#: What checking a file may allocate beyond the arrays that are in it, in numbers.
SPARE = 10**6


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file that is safe to share.

    The file is in the safetensors format with a JSON header. It is written whole or not at all.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of kernull. Callable kernels are refused: a file holds no code.
    path : path-like
        Where to write; an existing file is replaced.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sklearn.datasets import load_wine
    >>> from kernull import MultiKernelFisherNull, load, save
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MultiKernelFisherNull().fit(X[y == 0])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "wine.kernull"
    >>> save(model, path)
    >>> bool((load(path).score_samples(X) == model.score_samples(X)).all())
    True
    """
    if type(model).__name__ not in ESTIMATORS or _find(type(model).__name__) is not type(model):
        raise TypeError(
            f"model: got {type(model).__module__}.{type(model).__qualname__}; expected one of "
            f"{sorted(ESTIMATORS)}."
        )
    if not hasattr(model, "calibration_") and not hasattr(model, "best_estimator_"):
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted, so there is nothing to keep; call "
            "fit first."
        )
    write_tree({"about": _about(model), "model": _freeze(model)}, path)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed, whoever wrote it: what it holds is numbers, text and the names
    of kernull's own classes. That it is of the right form is checked, and that the model scores a
    row; that it is a *good* model is not.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int
        Larger files are refused.

    Returns
    -------
    estimator
        With bit-identical scores.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, from a newer format, or does not make sense.
    """
    tree = read_tree(path, max_bytes)
    try:
        node = tree["model"] if isinstance(tree, dict) else None
        if not isinstance(node, Node) or node.name not in ESTIMATORS:
            raise ModelFileError("it does not hold an estimator")
        model = _thaw(node)
        _check(model, _numbers(node))
    except MemoryError:  # of the machine, not of the file
        raise
    except Exception as error:  # whatever does not fit together, the file is to blame
        said = str(error) if isinstance(error, ModelFileError) else f"{type(error).__name__}"
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a model that kernull {__version__} can use: {said}"
        ) from error
    return model


def _about(model: Any) -> dict[str, Any]:
    """What a reader of the header wants to know first; `load` does not look at it."""
    return {
        "estimator": type(model).__name__,
        "parameters": {name: repr(value) for name, value in model.get_params().items()},
        "kernels": [str(name) for name in getattr(model, "kernel_names_", ())],
        "weights": [float(weight) for weight in np.ravel(getattr(model, "weights_", ()))],
        "versions": {
            "kernull": __version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "python": platform.python_version(),
        },
    }


def _find(name: str) -> Any:
    """The class that a listed name stands for."""
    name = FORMERLY.get(name, name)
    module = ESTIMATORS.get(name) or RECORDS.get(name)
    if module is None:
        raise ModelFileError(f"it names an unknown class {name[:40]!r}")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        raise ModelFileError(f"this kernull has no {name}") from None


# -- from objects to nodes -------------------------------------------------------------------


def _freeze(value: Any) -> Any:
    """Replace objects by nodes, inside containers too; tensors come back as arrays."""
    value = as_numpy(value)
    name = type(value).__name__
    if name in ESTIMATORS and _find(name) is type(value):
        state = value.__getstate__()  # not __dict__: some leave out what can be rebuilt
        return Node(name, {k: _freeze(v) for k, v in state.items() if k != "_sklearn_version"})
    if name in RECORDS and _find(name) is type(value):
        arguments = ARGUMENTS.get(name) or {key: key for key in _field_names(type(value))}
        return Node(name, {key: _freeze(getattr(value, own)) for key, own in arguments.items()})
    if isinstance(value, dict):
        return {key: _freeze(item) for key, item in value.items()}
    if type(value) is list:
        return [_freeze(item) for item in value]
    if type(value) is tuple:
        kinds = {type(item).__name__ for item in value}
        if kinds == {"Record"}:  # a history is long and regular: an array
            return Node("history", {"values": np.array(value, dtype=float)})
        return tuple(_freeze(item) for item in value)
    return value


def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls)) if is_dataclass(cls) else tuple(cls._fields)


# -- from nodes to objects -------------------------------------------------------------------


def _thaw(value: Any) -> Any:
    if isinstance(value, Node):
        if value.name == "history":
            return _thaw_history(value.fields)
        content = {key: _thaw(item) for key, item in value.fields.items()}
        cls = _find(value.name)
        return _thaw_estimator(cls, content) if value.name in ESTIMATORS else cls(**content)
    if isinstance(value, dict):
        return {key: _thaw(item) for key, item in value.items()}
    if type(value) is list:
        return [_thaw(item) for item in value]
    if type(value) is tuple:
        return tuple(_thaw(item) for item in value)
    return value


def _thaw_history(content: dict[str, Any]) -> Any:
    record, values = _find("Record"), content["values"]
    if values.ndim != 2 or values.dtype != np.float64:
        raise ModelFileError("a history that is none")
    return tuple(record(*line) for line in values.tolist())


def _thaw_estimator(cls: Any, content: dict[str, Any]) -> Any:
    """An estimator with these attributes, where they are parameters or learned ones."""
    parameters = set(cls._get_param_names())
    for name in content:
        own = getattr(cls, name, None)
        # A file may not shadow a method; plain class attributes are defaults of parameters.
        if (
            not name.isidentifier()
            or (name not in parameters and callable(own))
            or name[:2] == "__"
        ):
            raise ModelFileError(f"an attribute {name[:40]!r} that {cls.__name__} does not have")
    missing = parameters - set(content)
    model = cls(**{name: content[name] for name in parameters - missing})
    model.__setstate__(content)
    return model


# -- does it make sense? ---------------------------------------------------------------------


def _numbers(value: Any) -> int:
    """How many numbers a tree holds, which bounds what scoring one row may cost."""
    if isinstance(value, Node):
        return sum(_numbers(item) for item in value.fields.values())
    if isinstance(value, dict):
        return sum(_numbers(item) for item in value.values())
    if isinstance(value, list | tuple):
        return sum(_numbers(item) for item in value)
    return int(value.size) if isinstance(value, np.ndarray) else 1


def _check(model: Any, numbers: int) -> None:
    """Score one row of zeros: a model whose pieces do not fit together fails here, not later."""
    model = getattr(model, "best_estimator_", model)  # of a search
    if not hasattr(model, "calibration_"):  # not fitted
        return
    model = _nameless(model)
    with np.errstate(all="ignore"):
        if hasattr(model, "tasks_"):
            for name in model.tasks_:
                task = model._tasks[name]
                row = _row(model, task.bank, (len(model.weights_), task.n), numbers)
                _try(model, row, groups=[name])
        else:
            _try(model, _row(model, model.bank_, getattr(model, "_stack_shape", ()), numbers))


def _nameless(model: Any) -> Any:
    """The same model without names of features: scikit-learn would warn of a row without them.

    Filters of warnings belong to the process, and files are loaded by several threads at once.
    """
    twin = object.__new__(type(model))
    twin.__dict__.update({k: v for k, v in vars(model).items() if k != "feature_names_in_"})
    return twin


def _row(model: Any, bank: Any, shape: Any, numbers: int) -> Any:
    """One row of zeros, or of kernels where they are precomputed."""
    size = shape if bank is None else (1, model.n_features_in_)
    are_counts = all(isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in size)
    if len(size) != 2 or not are_counts or size[0] * size[1] > SPARE + numbers:
        raise ModelFileError("a number of features or kernels that cannot be")
    if bank is not None:
        return np.zeros(size)
    # Methods that measure distances cannot score kernels of unequal diagonals without k(x, x).
    return DenseStack(np.zeros((size[0], 1, size[1])), diagonal=np.ones((size[0], 1)))


def _try(model: Any, row: Any, **options: Any) -> None:
    for method in ("score_samples", "p_values", "predict"):
        if getattr(model, method)(row, **options).shape != (1,):
            raise ModelFileError(f"{method} that gives no number a row")
