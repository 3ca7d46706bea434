"""Saving and loading of models, without pickle.

A file holds a fitted estimator, and its `TableViews` if it has one. What a field may hold is
declared where the field is (`kernull._fields`). Objects of classes from outside are stored by their
import path and the parameters of their constructor, and fitted again when the file is loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kernull import estimators
from kernull._fields import STORED, check
from kernull._version import __version__
from kernull.detector import KernelModel, TableKernels
from kernull.detector.evidence import EvidenceRule
from kernull.detector.joint import JointModel
from kernull.detector.scores import TableScores
from kernull.errors import ModelFileError
from kernull.estimators import Calibrated
from kernull.estimators.base import Certified
from kernull.files.codec import MAX_GROWTH, SPARE, Packer, Unpacker
from kernull.files.container import MAX_BYTES, Tensors, read_file, write_file
from kernull.operators import DenseStack, Storage
from kernull.tables import TableViews

__all__ = ["load", "load_parts", "load_views", "save"]

#: Tasks of a joint model that score a row when it is loaded.
TRIED = 20
#: Rows whose scores a file keeps where objects are fitted again, and by how much scores may differ.
PROBES, PROBE_ERROR = 10, 1e-8


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    table: TableViews | None = None,
    settings: dict[str, Any] | None = None,
    note: str = "",
) -> None:
    """Write a model to a file that is safe to share.

    The file is in the safetensors format with a JSON header. It is written whole or not at all.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted estimator of kernull, or a pipeline of `TableViews` and one, such as
        ``make_pipeline(TableViews(), MultiKernelFisherNull())``. Kernels, scalings, scores, balls
        and detectors from outside kernull are stored by their import path and the parameters of
        their constructor. They are fitted again when the file is loaded, so save checks that they
        then score as they do now.
    path : path-like
        Where to write; an existing file is replaced.
    table : TableViews, optional
        The table that the model was fitted behind, where they are no pipeline; see `load_views`.
    settings : dict of str -> text, number or None, optional
        What else `load_parts` gives back, such as the parameters of a `Judge`.
    note : str, default=""
        A text for whoever reads the header; ``kernull info`` shows it.

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
    steps = None
    if isinstance(model, Pipeline):
        steps = [name for name, _ in model.steps]
        table, model = _two_steps(model)
    _check_fitted(model)
    encoder = Packer()
    tree = {
        "estimator": encoder.encode(model, "model"),
        "table": None if table is None else encoder.encode(table, "table"),
        "steps": steps,
        "settings": settings or {},
    }
    fitted_again = bool(encoder.outside) or isinstance(model, Calibrated)
    if fitted_again:
        tree["probes"] = encoder.encode(_probes(model), "probes")
    try:
        check(model)
    except ValueError as error:
        raise ValueError(f"model: cannot be saved: {error}.") from error
    about = _about(model, encoder.tensors, note)
    if fitted_again:
        _model_of(tree, encoder.tensors, encoder.outside)
    write_file(tree, encoder.tensors, about, path)


def load(
    path: str | os.PathLike[str], *, trusted: Iterable[Any] = (), max_bytes: int = MAX_BYTES
) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed, whoever wrote it: what it holds is numbers, text, names that
    kernull knows, and names of what you trust. That its parts are of the right form and fit
    together is checked, and that the model scores a row; that it is a *good* model is not.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : iterable of classes and functions, default=()
        Those from outside kernull that the file may name, such as ``[Matern, RobustScaler]``.
        Objects of these classes are made and fitted to the rows in the file. The model is refused
        where the scores of ten rows then differ from those in the file by more than 1e-8.
    max_bytes : int
        Larger files are refused.

    Returns
    -------
    estimator or pipeline
        As it was saved. Of files that the command line wrote, the estimator; `load_views` gives its
        table.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model, of another format, needs what is not trusted, or does
        not make sense.
    """
    tree, tensors = read_file(path, max_bytes)
    with _blaming(path, f"is not a model that kernull {__version__} can use"):
        return _model_of(tree, tensors, trusted)


def load_parts(
    path: str | os.PathLike[str], *, trusted: Iterable[Any] = ()
) -> tuple[Any, TableViews | None, dict[str, Any]]:
    """The estimator of a file, its table, and the settings that `save` took.

    Parameters
    ----------
    path, trusted
        As in `load`.
    """
    model, table = load(path, trusted=trusted), load_views(path)
    model = model[-1] if isinstance(model, Pipeline) else model
    settings = read_file(path)[0].get("settings", {})
    with _blaming(path, "has settings that make no sense"):
        check(settings, dict[str, str | int | float | None])
    return model, table, settings


def load_views(path: str | os.PathLike[str]) -> TableViews | None:
    """The fitted `TableViews` of a model file, or None where it has none.

    Parameters
    ----------
    path : path-like
        A model file, such as ``kernull fit`` writes. It is a `ModelFileError` if what it says of
        its table is damaged or does not make sense.
    """
    tree, tensors = read_file(path)
    with _blaming(path, "has a table that cannot be used"):
        return _decode_table(tree, Unpacker(tensors))


@contextmanager
def _blaming(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Whatever does not fit together, the file is to blame; for a lack of memory, the machine."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        why = str(error) if isinstance(error, ValueError) else type(error).__name__
        raise ModelFileError(f"{os.fspath(path)!r} {what}: {why}") from error


def _known_estimators(name: str = "") -> dict[str, Any]:
    """Estimators that files may hold, by name; those of the paper are loaded when asked for."""
    core = {name: getattr(estimators, name) for name in estimators.__all__}
    if name in core:
        return core
    from kernull import paper

    of_paper = {name: getattr(paper, name) for name in paper.__all__}
    return core | {name: cls for name, cls in of_paper.items() if STORED.get(name) is cls}


# -- saving ------------------------------------------------------------------------------------


def _two_steps(pipeline: Pipeline) -> tuple[TableViews, Any]:
    steps = [step for _, step in pipeline.steps]
    if len(steps) != 2 or type(steps[0]) is not TableViews:
        named = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            f"model: got a pipeline of {named}; expected TableViews and an estimator of kernull. "
            "Save the estimator by itself (model[-1]), or put the pipeline into Calibrated."
        )
    check_is_fitted(steps[0], "columns_")
    return steps[0], steps[1]


def _check_fitted(model: Any) -> None:
    name = type(model).__name__
    if _known_estimators(name).get(name) is not type(model):
        raise TypeError(
            f"model: got {type(model).__module__}.{type(model).__qualname__}; expected one of "
            f"{sorted(_known_estimators())}. Put any other detector into Calibrated."
        )
    if not any(attribute in vars(model) for attribute in ("model_", "estimator_")):
        raise NotFittedError(
            f"model: this {name} is not fitted, so there is nothing to keep; call fit first."
        )
    if isinstance(model, Calibrated) and not isinstance(model.rows_, np.ndarray):
        raise TypeError(
            f"model: was fitted to a {type(model.rows_).__name__}; files keep rows as arrays. Fit "
            "it to an array of numbers, such as X.to_numpy() or X.toarray()."
        )


def _about(model: Any, tensors: Tensors, note: str) -> dict[str, Any]:
    """What a reader of the header wants to know first; `load` does not look at it."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        if name.endswith((".rows", ".table", ".values", ".rows_")):
            digest.update(np.ascontiguousarray(tensors[name]).data)
    return {
        "estimator": type(model).__name__,
        "kernull": __version__,
        "note": str(note),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": digest.hexdigest()[:16],
        "parameters": {name: repr(value) for name, value in model.get_params(deep=False).items()},
        "kernels": list(map(str, () if isinstance(model, Calibrated) else model.kernel_names_)),
        "weights": list(map(float, model.weights_ if isinstance(model, Certified) else ())),
        "versions": {
            "numpy": np.__version__, "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__, "python": platform.python_version(),
        },
    }  # fmt: skip


# -- loading -----------------------------------------------------------------------------------


def _model_of(tree: Any, tensors: Tensors, trusted: Iterable[Any]) -> Any:
    """The model of a tree."""
    decoder = Unpacker(tensors, trusted)
    model, table = _decode_estimator(tree, decoder), _decode_table(tree, decoder)
    probes = decoder.decode(tree.get("probes"))
    check(probes)
    _restore(model, sum(tensor.size for tensor in tensors.values()))
    if decoder.outside or isinstance(model, Calibrated):
        _compare(_probes(model), probes)
    return _as_saved(model, table, tree.get("steps"))


def _decode_estimator(tree: Any, decoder: Unpacker) -> Any:
    node = tree.get("estimator") if isinstance(tree, dict) else None
    name = node.get("$") if isinstance(node, dict) else None
    if not isinstance(name, str) or name not in _known_estimators(name):
        raise ModelFileError("it does not hold an estimator")
    model = decoder.decode(node)
    check(model)
    Storage.of(model.get_params(deep=False).get("storage", "auto"))  # scoring asks for it
    return model


def _decode_table(tree: Any, decoder: Unpacker) -> TableViews | None:
    table = decoder.decode(tree.get("table") if isinstance(tree, dict) else None)
    check(table, TableViews | None)
    return table  # type: ignore[no-any-return]


def _as_saved(model: Any, table: TableViews | None, steps: Any) -> Any:
    """The model by itself, or the pipeline whose second step it is."""
    if steps is None:
        return model
    texts = isinstance(steps, list) and all(isinstance(name, str) for name in steps)
    if not texts or len(set(steps)) != 2 or any(not name or "__" in name for name in steps):
        raise ModelFileError("its steps have no names")
    if table is None or len(table.get_feature_names_out()) != int(model.n_features_in_):
        raise ModelFileError("its table does not fit its model")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and list(names) == list(table.get_feature_names_out()):
        del model.feature_names_in_  # arrays pass between the steps, and have no names
    return Pipeline([(steps[0], table), (steps[1], model)])


def _restore(model: Any, held: int) -> None:
    """Compute what is derived, and score rows: what does not fit together fails here.

    ``held`` is the number of numbers in the file.
    """
    if isinstance(model, Calibrated):
        model.restored().p_values(model.rows_[:1])
        return
    if not isinstance(vars(model).get("model_"), KernelModel | JointModel):
        raise ModelFileError("it is not fitted")
    if sum(map(_scaled_values, _tasks(model))) > MAX_GROWTH * held + SPARE:
        raise ModelFileError("views that take far more memory than the file")
    model.restored()
    for task in list(_tasks(model))[:TRIED]:
        with np.errstate(all="ignore"):
            scores = task.score(_cross_of_zeros(model, task, held))
            if scores.shape != (1,) or task.calibration.p_values(scores).shape != (1,):
                raise ModelFileError("scores that are no number for a row")


def _tasks(model: Any) -> Iterable[KernelModel]:
    fitted = model.model_
    return fitted.tasks.values() if isinstance(fitted, JointModel) else [fitted]


def _scaled_values(task: KernelModel) -> int:
    """Numbers of the scaled rows of a model, which its file does not hold."""
    if not isinstance(task.kernels, TableKernels) or task.kernels.set.rows is None:
        return 0
    count = len(task.kernels.set.rows) * sum(len(v.columns) for v in task.kernels.set.views)
    if isinstance(task.rule, EvidenceRule) and isinstance(task.rule.scores, TableScores):
        scores = task.rule.scores
        columns = sum(len(part.view.columns) for part in scores.parts)
        count += columns * (0 if scores.table is None else len(scores.table))
    return count


def _cross_of_zeros(model: Any, task: KernelModel, held: int) -> Any:
    """Kernels of one row of zeros, or kernels that are zero where they are given."""
    J, n = len(task.kernels.names), task.kernels.n
    is_table = isinstance(task.kernels, TableKernels)
    size = (1, model.n_features_in_) if is_table else (J, n)
    if min(size) < 1 or size[0] * size[1] > SPARE + held:
        raise ModelFileError("a number of features or kernels that cannot be")
    if is_table:
        return task.kernels.cross(np.zeros(size))
    # Methods that measure distances cannot score kernels of unequal diagonals without k(x, x).
    return task.kernels.cross(DenseStack(np.zeros((J, 1, n)), diagonal=np.ones((J, 1))))


def _probes(model: Any) -> list[float]:
    """Scores of ten training rows, of each task, where the model has rows."""
    if isinstance(model, Calibrated):
        return list(model.score_samples(_some(model.rows_)))
    out: list[float] = []
    for task in _tasks(model):
        if isinstance(task.kernels, TableKernels) and task.kernels.set.rows is not None:
            out += task.score(task.kernels.cross(_some(task.kernels.set.rows))).tolist()
    return out


def _some(rows: Any) -> Any:
    """Ten rows, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, PROBES).astype(int)]


def _compare(scores: list[float], stored: Any) -> None:
    known = np.asarray(stored, dtype=float)
    if known.shape != (len(scores),) or not np.allclose(
        scores, known, rtol=PROBE_ERROR, atol=PROBE_ERROR
    ):
        raise ModelFileError(
            "objects from outside that are fitted again give other scores than when the model was "
            "saved; give them a random_state, or use the versions of libraries in its header"
        )
