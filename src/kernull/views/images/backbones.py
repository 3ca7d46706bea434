"""Networks that turn images into features: ONNX files, torchvision, timm."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from kernull._text import first_line
from kernull.errors import MissingDependencyError, MissingWeightsError, need
from kernull.safety import check_graph, graphs, limit_memory, read_file, run_limited
from kernull.views.images.preprocessing import KNOWN, Preprocessing

Batch = NDArray[np.float32]

#: Images that a network made for batches of one size may ask for at once.
MAX_BATCH = 1024
#: Features of one image.
MAX_FEATURES = 1_000_000


class Backbone(Protocol):
    """A network, ready to run."""

    #: Hash of the weights.
    fingerprint: str
    preprocessing: Preprocessing
    n_features: int

    def run(self, batch: Batch) -> Batch:
        """Features (n, d) of prepared images (n, 3, height, width)."""
        ...


def backbone_name(backbone: str | os.PathLike[str]) -> str:
    """Name of a network for views and messages: no folder, no ending, no library."""
    text = os.fspath(backbone)
    return Path(text).stem if text.endswith(".onnx") else text.partition(":")[2] or text


def load_backbone(
    backbone: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None,
    device: str,
    n_jobs: int | None,
    preprocessing: Mapping[str, Any] | None,
) -> Backbone:
    """A network by its name or file; see :class:`~kernull.views.images.BackboneFeatures`."""
    if not isinstance(backbone, str | os.PathLike) or not os.fspath(backbone):
        raise ValueError(
            f"backbone: got {backbone!r}; expected a name, the path of an .onnx file, "
            "'torchvision:<name>' or 'timm:<name>'."
        )
    check_device(device)
    text, threads = os.fspath(backbone), n_threads(n_jobs)
    library, colon, name = text.partition(":")
    if colon and library in ("torchvision", "timm"):
        from kernull.views.images.torch_backbones import load_torch

        network = load_torch(library, name, device)
        if not preprocessing:
            return network
        changed = copy(network)  # the module is shared, the description is not
        changed.preprocessing = network.preprocessing.changed(preprocessing)
        return changed
    path = _find_onnx(text, weights)
    described, expected = _described(path, preprocessing)
    state = path.stat()
    identity = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    opened = _open_onnx(path, identity, described.size, device, threads)
    return OnnxBackbone(path, opened, described, expected)


def n_threads(n_jobs: int | None) -> int:
    """Number of threads: all cores for None, scikit-learn's meaning for the rest."""
    if n_jobs is None:
        return int(cpu_count())
    if not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs: got {n_jobs!r}; expected None or an integer other than 0.")
    return int(n_jobs) if n_jobs > 0 else max(1, int(cpu_count()) + 1 + int(n_jobs))


def check_device(device: Any) -> None:
    """Complain about a device that is none."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|cuda(:[0-9]+)?", device):
        raise ValueError(f"device: got {device!r}; expected 'auto', 'cpu', 'cuda' or 'cuda:<n>'.")


# -- ONNX ------------------------------------------------------------------------------------


def _find_onnx(text: str, weights: str | os.PathLike[str] | None) -> Path:
    """The ONNX file of a name or path, or an error that says where it was looked for."""
    if text.endswith(".onnx"):
        path = Path(text).expanduser()
        if path.is_file():
            return path
        raise MissingWeightsError(
            f"backbone: there is no file {str(path)!r}; expected the path of an .onnx file."
        )
    folder = weights if weights is not None else os.environ.get("KERNULL_WEIGHTS")
    if not folder:
        raise MissingWeightsError(
            f"backbone: {text!r} needs the file {text + '.onnx'!r}, and no folder is given to look "
            "for it. Set the environment variable KERNULL_WEIGHTS or the parameter weights to the "
            "folder, pass the path of an .onnx file, or take a network of torchvision or timm: "
            f"'torchvision:{text}'."
        )
    origin = "KERNULL_WEIGHTS" if weights is None else "weights"
    root = Path(folder).expanduser()
    path = root / f"{text}.onnx"
    if path.is_file():
        return path
    there = sorted(found.stem for found in root.glob("*.onnx")) if root.is_dir() else []
    holds = f"it holds {there}" if there else "it holds no .onnx file"
    raise MissingWeightsError(
        f"backbone: there is no file {path.name!r} in {str(root)!r} ({origin}); "
        f"{holds if root.is_dir() else 'there is no such folder'}. Put the file there, or take a "
        f"network of torchvision or timm: 'torchvision:{text}'."
    )


def _described(path: Path, changes: Mapping[str, Any] | None) -> tuple[Preprocessing, int | None]:
    """Preprocessing of an ONNX file: from the JSON file beside it, known by name, or given.

    With the number of features that the network known by that name has.
    """
    sidecars = (path.with_name(path.name + ".json"), path.with_suffix(".json"))
    for sidecar in sidecars:
        if sidecar.is_file():
            return Preprocessing.read(sidecar).changed(changes), None
    if path.stem in KNOWN:
        known, expected = KNOWN[path.stem]
        return known.changed(changes), expected
    if changes and "size" in changes:
        return Preprocessing.of(changes), None
    raise ValueError(
        f"backbone: nothing says how {str(path)!r} wants its images. Describe it in a file "
        f'{sidecars[0].name!r} beside it, such as {{"size": 224, "channels": "RGB", "scale": '
        '0.00392157, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "resize": '
        f'"stretch"}}. Known without one: {sorted(KNOWN)}.'
    )


@lru_cache(maxsize=16)
def _open_onnx(
    path: Path, identity: tuple[int, ...], size: tuple[int, int], device: str, threads: int
) -> tuple[Any, str]:
    """Session and hash of the same bytes; opened again when the file is another one."""
    ort = _need_onnxruntime()
    try:
        content = read_file(path, graphs.MAX_FILE_BYTES)
        check_graph(content, size)
    except ValueError as error:
        raise ValueError(f"backbone: {str(path)!r} {error}.") from error
    limit_memory(ort)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors come as exceptions
    # Threads that wait in a loop would take the cores from those that read images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.use_env_allocators", "1")  # the limited ones
    try:
        session = ort.InferenceSession(content, options, providers=_providers(ort, device))
    except MissingDependencyError:
        raise
    except Exception as error:  # onnxruntime's own classes, one for each of its states
        raise ValueError(
            f"backbone: onnxruntime cannot open {str(path)!r}: {first_line(error)}."
        ) from error
    if device.startswith("cuda") and "CUDAExecutionProvider" not in session.get_providers():
        raise MissingDependencyError(
            f"device: got {device!r}, but onnxruntime could not start CUDA; see its requirements, "
            "or pass device='cpu'."
        )
    return session, hashlib.sha256(content).hexdigest()


def _need_onnxruntime() -> Any:
    otherwise = "ONNX networks need onnxruntime; install it with `pip install kernull[vision]`."
    return need("onnxruntime", otherwise)


def _providers(ort: Any, device: str) -> list[Any]:
    has_cuda = "CUDAExecutionProvider" in ort.get_available_providers()
    if device == "cpu" or (device == "auto" and not has_cuda):
        return ["CPUExecutionProvider"]
    if not has_cuda:
        raise MissingDependencyError(
            f"device: got {device!r}, but this onnxruntime has no CUDA; install onnxruntime-gpu "
            "in its place, or pass device='cpu'."
        )
    number = int(device.partition(":")[2] or 0)
    return [("CUDAExecutionProvider", {"device_id": number}), "CPUExecutionProvider"]


class OnnxBackbone:
    """An ONNX file whose first output holds the features."""

    def __init__(
        self,
        path: Path,
        opened: tuple[Any, str],
        preprocessing: Preprocessing,
        expected: int | None,
    ) -> None:
        self._path, self.preprocessing = path, preprocessing
        self._session, self.fingerprint = opened
        self._input = self._session.get_inputs()[0]
        self._output = self._session.get_outputs()[0]
        self._type = np.float16 if self._input.type == "tensor(float16)" else np.float32
        self._check_input()
        self.n_features = self._count_features(expected)

    def run(self, batch: Batch) -> Batch:
        """Features of prepared images."""
        fixed = self._input.shape[0]
        if not isinstance(fixed, int):
            return self._pooled(batch)
        # A file made for batches of one size gets batches of that size.
        parts = []
        for start in range(0, len(batch), fixed):
            part = batch[start : start + fixed]
            padded = np.concatenate([part, np.repeat(part[-1:], fixed - len(part), axis=0)])
            parts.append(self._pooled(padded)[: len(part)])
        return np.concatenate(parts)

    def _pooled(self, batch: Batch) -> Batch:
        inputs = {self._input.name: batch.astype(self._type, copy=False)}
        ort, name = _need_onnxruntime(), self._output.name
        try:
            made = run_limited(ort, self._session, name, inputs, len(batch))
        except ValueError as error:
            raise ValueError(f"backbone: {str(self._path)!r} {error}.") from error
        values = np.asarray(made, dtype=np.float32)
        if values.ndim == 4:  # a map of features: its mean over the image
            values = values.mean(axis=(2, 3))
        if values.ndim != 2 or len(values) != len(batch):
            raise ValueError(
                f"backbone: the first output of {str(self._path)!r} has shape {values.shape} for "
                f"{len(batch)} images; expected (n, d) or (n, d, height, width)."
            )
        return values

    def _check_input(self) -> None:
        shape, size = list(self._input.shape), self.preprocessing.size
        sides = zip(shape[1:], (3, *size), strict=False)
        fits = len(shape) == 4 and all(not isinstance(a, int) or a == b for a, b in sides)
        if not fits or self._input.type not in ("tensor(float)", "tensor(float16)"):
            raise ValueError(
                f"backbone: {str(self._path)!r} takes {self._input.type} of shape {shape}; its "
                f"description says size {size}, so floats of shape (n, 3, {size[0]}, {size[1]}). "
                "Correct the JSON file beside it."
            )
        if isinstance(shape[0], int) and not 1 <= shape[0] <= MAX_BATCH:
            raise ValueError(
                f"backbone: {str(self._path)!r} takes batches of {shape[0]} images; expected 1 to "
                f"{MAX_BATCH}."
            )

    def _count_features(self, expected: int | None) -> int:
        shape = self._output.shape
        if len(shape) in (2, 4) and isinstance(shape[1], int):
            count = shape[1]
        else:
            count = self.run(np.zeros((1, 3, *self.preprocessing.size), np.float32)).shape[1]
        if not 1 <= count <= MAX_FEATURES:
            raise ValueError(
                f"backbone: {str(self._path)!r} gives {count:,} features; expected 1 to "
                f"{MAX_FEATURES:,}."
            )
        if expected not in (None, count):
            raise ValueError(
                f"backbone: {str(self._path)!r} gives {count} features, the network known by this "
                f"name {expected}; describe its preprocessing in a file "
                f"{self._path.name + '.json'!r} beside it."
            )
        return count
