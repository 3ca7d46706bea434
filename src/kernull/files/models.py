"""Saving and loading of models, without pickle and without trust in the file.

A file of format 3 holds an estimator's name, its parameters and the fields of its fitted model,
each declared in `kernull.files.sections` and checked when it is read. Names are looked up there and
nowhere else, so a file can ask for nothing that is not listed.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernull import estimators
from kernull._runtime import atomic_write
from kernull._version import __version__
from kernull.detector import KernelModel, TableKernels
from kernull.detector.joint import JointModel
from kernull.errors import ModelFileError
from kernull.estimators.inputs import read_dtype
from kernull.files.format import MAX_BYTES, read_tree, write_tree
from kernull.files.schema import Count, Section, Text, pack, unpack
from kernull.files.sections import PARAMETERS, RULES, SCHEMA, whole
from kernull.files.tables import attach_views, load_steps, load_views
from kernull.files.values import Node
from kernull.operators import DenseStack, parse_memory_limit
from kernull.tables import TableViews

__all__ = ["load", "save"]

#: Estimators of the core that files may hold; those of `kernull.paper` are loaded when asked for.
CORE: dict[str, Any] = {name: getattr(estimators, name) for name in RULES}
#: Columns behind the last that a view has, at most.
MOST_UNUSED = 100_000
#: Tasks that a joint model in a file may have, and how many of them score a row when it is loaded.
MAX_TASKS = 5_000
TRIED = 20
#: What checking a file may allocate beyond the arrays that are in it, in numbers.
SPARE = 10**6


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file that is safe to share.

    The file is in the safetensors format with a JSON header. It is written whole or not at all.
    What explanations need is computed now, if it was not before, so that whoever loads the model
    need not.

    Parameters
    ----------
    model : estimator or pipeline
        Any fitted estimator of kernull, or a pipeline of `TableViews` and one, such as
        ``make_pipeline(TableViews(), MultiKernelFisherNull())``. Kernels, scalings and scores from
        outside kernull are refused: a file holds no code. Keep models that have some with pickle or
        skops.
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
    if isinstance(model, Pipeline):
        _save_pipeline(model, path)
        return
    if known_estimators(type(model).__name__).get(type(model).__name__) is not type(model):
        raise TypeError(
            f"model: got {type(model).__module__}.{type(model).__qualname__}; expected one of "
            f"{sorted(known_estimators())}. Keep others, which may hold code, with pickle or skops."
        )
    if not hasattr(model, "model_"):
        raise NotFittedError(
            f"model: this {type(model).__name__} is not fitted, so there is nothing to keep; call "
            "fit first."
        )
    write_tree({"about": _about(model), "estimator": _pack_estimator(model)}, path)


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed, whoever wrote it: what it holds is numbers, text and names that
    kernull knows. That its parts are of the right form and fit together is checked, and that the
    model scores a row; that it is a *good* model is not.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int
        Larger files are refused.

    Returns
    -------
    estimator or pipeline
        As it was saved, with bit-identical scores. Of files that the command line wrote, the
        estimator; `load_views` gives its table.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, of another format, or does not make sense.
    """
    tree = read_tree(path, max_bytes)
    try:
        model = _unpack_estimator(tree.get("estimator") if isinstance(tree, dict) else None)
        _try_estimator(model, _numbers(tree))
        model = _pipeline_of(model, path)
    except MemoryError:  # of the machine, not of the file
        raise
    except Exception as error:  # whatever does not fit together, the file is to blame
        said = str(error) if isinstance(error, ModelFileError) else type(error).__name__
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a model that kernull {__version__} can use: {said}"
        ) from error
    return model


def known_estimators(name: Any = None) -> dict[str, Any]:
    """Estimators that files may hold by name: those of the core where ``name`` is one of them."""
    if name in CORE:
        return CORE
    from kernull.files import compared

    return CORE | compared.ESTIMATORS


def _about(model: Any) -> dict[str, Any]:
    """What a reader of the header wants to know first; `load` does not look at it."""
    return {
        "estimator": type(model).__name__,
        "parameters": {name: repr(value) for name, value in model.get_params().items()},
        "kernels": [str(name) for name in getattr(model, "kernel_names_", ())],
        "weights": [float(weight) for weight in np.ravel(getattr(model, "weights_", ()))],
        "versions": {
            "kernull": __version__, "numpy": np.__version__, "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__, "python": platform.python_version(),
        },
    }  # fmt: skip


# -- pipelines of two steps: TableViews and an estimator ---------------------------------------


def _save_pipeline(pipeline: Pipeline, path: str | os.PathLike[str]) -> None:
    """Write the estimator, and the table beside it; other steps hold code, which files do not."""
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


def _pipeline_of(model: Any, path: str | os.PathLike[str]) -> Any:
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


# -- from estimators to nodes ------------------------------------------------------------------


def _pack_model(model: KernelModel, schema: dict[str, Section]) -> Any:
    return pack(model, schema)


def _pack_parameter(value: Any) -> Any:
    """A parameter with the objects of kernull in it as nodes."""
    if isinstance(value, Mapping):
        return {name: _pack_parameter(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_pack_parameter, value))
    return pack(value, PARAMETERS)


def _pack_estimator(model: Any) -> Node:
    given = model.get_params(deep=False)
    content: dict[str, Any] = {
        "parameters": {name: _pack_parameter(value) for name, value in given.items()}
    }
    schema = _schema(type(model).__name__)
    if hasattr(model, "n_features_in_"):
        content["n_features"] = int(model.n_features_in_)
    if hasattr(model, "feature_names_in_"):
        content["feature_names"] = tuple(str(name) for name in model.feature_names_in_)
    if isinstance(joint := model.model_, JointModel):
        tasks = [[name, _pack_model(task, schema)] for name, task in joint.tasks.items()]
        views = {} if joint.views is None else {"views": dict(joint.views)}
        certificate = pack(joint.certificate, SCHEMA)
        content["model"] = Node("joint", {"tasks": tasks, "certificate": certificate, **views})
    else:
        content["model"] = _pack_model(model.model_, schema)
    return Node(type(model).__name__, content)


# -- from nodes to estimators ------------------------------------------------------------------


def _unpack_estimator(node: Any) -> Any:
    cls = known_estimators(node.name).get(node.name) if isinstance(node, Node) else None
    if cls is None:
        raise ModelFileError("it does not hold an estimator")
    content = node.fields
    parameters = content.get("parameters")
    if not isinstance(parameters, dict) or not set(parameters) <= set(cls._get_param_names()):
        raise ModelFileError(f"parameters that {node.name} does not have")
    model = cls(**{name: _unpack_parameter(value) for name, value in parameters.items()})
    read_dtype(parameters.get("dtype", "float64"))  # scoring asks for these two
    parse_memory_limit(parameters.get("memory_limit"))
    allowed = {"parameters", "n_features", "feature_names", "model"}
    if not set(content) <= allowed:
        raise ModelFileError(f"a {node.name} with {sorted(set(content) - allowed)[0][:40]!r}")
    if cls is estimators.JointMultiKernelFisherNull:
        model.model_ = _unpack_joint(content.get("model"))
    else:
        model.model_ = unpack(content.get("model"), ("model",), _schema(node.name), {})
    _unpack_features(model, content)
    return model


def _unpack_parameter(value: Any) -> Any:
    if isinstance(value, Node):
        return unpack(value, tuple(PARAMETERS), PARAMETERS, {})
    if isinstance(value, dict):
        return {name: _unpack_parameter(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_unpack_parameter, value))
    return value


def _schema(estimator: str) -> dict[str, Section]:
    """The schema with the rule that this estimator has, and no other."""
    schema, rules = SCHEMA, RULES
    if estimator not in RULES:
        from kernull.files import compared

        schema, rules = SCHEMA | compared.SCHEMA, compared.RULES
    section = schema["model"]
    rule = replace(section.fields["rule"], names=rules[estimator])
    return schema | {"model": replace(section, fields={**section.fields, "rule": rule})}


def _unpack_joint(node: Any) -> JointModel:
    tasks = node.fields.get("tasks") if isinstance(node, Node) else None
    if not isinstance(tasks, list) or not tasks:
        raise ModelFileError("a joint model without tasks")
    if len(tasks) > MAX_TASKS:
        raise ModelFileError(f"a joint model of more than {MAX_TASKS:,} tasks")
    sizes: dict[str, int] = {}
    found: dict[Any, KernelModel] = {}
    schema = _schema("JointMultiKernelFisherNull")
    for pair in tasks:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ModelFileError("a task that is none")
        hash(pair[0])
        shared = {"J": sizes["J"]} if "J" in sizes else {}
        found[pair[0]] = unpack(pair[1], ("model",), schema, shared)
        sizes.update(shared)
    if len(found) < len(tasks):
        raise ModelFileError("two tasks of one name")
    first = next(iter(found.values()))
    for task in found.values():
        same = np.array_equal(task.rule.weights, first.rule.weights)
        same = same and task.decides_by_evidence == first.decides_by_evidence
        if not same or task.kernels.names != first.kernels.names:
            raise ModelFileError("tasks that do not share their kernels and weights")
    certificate = unpack(node.fields.get("certificate"), ("certificate",), SCHEMA, {})
    views = node.fields.get("views")
    if views is not None and not isinstance(views, dict):
        raise ModelFileError("views that are none")
    if views is not None:
        views = {Text()(name, {}): whole("_d")(columns, {}) for name, columns in views.items()}
    return JointModel(found, certificate, views)


def _unpack_features(model: Any, content: dict[str, Any]) -> None:
    names, count = content.get("feature_names"), content.get("n_features")
    if count is not None:
        model.n_features_in_ = Count()(count, {})
    if names is not None:
        is_text = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
        if not is_text or len(names) != count:
            raise ModelFileError("names of columns that are not as many as the columns")
        model.feature_names_in_ = np.array(names, dtype=object)
    fitted = getattr(model, "model_", None)
    kernels = None if fitted is None else fitted.kernels
    if isinstance(kernels, TableKernels):
        last = max(int(view.columns.max(initial=0)) for view in kernels.set.views)
        if not isinstance(count, int) or last >= count:
            raise ModelFileError("views of columns that are not there")
        if count > last + MOST_UNUSED:
            raise ModelFileError("columns by the hundred thousand that no view has")


# -- does it make sense? -----------------------------------------------------------------------


def _numbers(value: Any) -> int:
    """How many numbers a tree holds, which bounds what scoring one row may cost."""
    value = value.fields if isinstance(value, Node) else value
    if isinstance(value, dict | list | tuple):
        return sum(map(_numbers, value.values() if isinstance(value, dict) else value))
    return int(np.size(value)) if isinstance(value, np.ndarray) else 1


def _try_estimator(model: Any, numbers: int) -> None:
    """Score one row of zeros: a model whose pieces do not fit together fails here, not later.

    What explanations need is computed where the file does not hold it.
    """
    joint = isinstance(model.model_, JointModel)
    own = list(model.model_.tasks.values()) if joint else [model.model_]
    for fitted in own[:TRIED]:  # the schema has looked at all of them
        cross = _cross_of_zeros(model, fitted, numbers)
        with np.errstate(all="ignore"):
            scores = fitted.score(cross)
            if scores.shape != (1,) or fitted.calibration.p_values(scores).shape != (1,):
                raise ModelFileError("scores that are no number for a row")


def _cross_of_zeros(model: Any, fitted: KernelModel, numbers: int) -> Any:
    """Kernels of one row of zeros, or kernels that are zero where they are given."""
    J, n = len(fitted.kernels.names), fitted.kernels.n
    is_table = isinstance(fitted.kernels, TableKernels)
    size = (1, model.n_features_in_) if is_table else (J, n)
    if min(size) < 1 or size[0] * size[1] > SPARE + numbers:
        raise ModelFileError("a number of features or kernels that cannot be")
    if is_table:
        return fitted.kernels.cross(np.zeros(size))
    # Methods that measure distances cannot score kernels of unequal diagonals without k(x, x).
    return fitted.kernels.cross(DenseStack(np.zeros((J, 1, n)), diagonal=np.ones((J, 1))))
