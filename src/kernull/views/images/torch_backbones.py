"""Networks of torchvision and timm, by name, with their own weights and transforms.

The features are what the last linear layer is fed: the pooled features of most networks, the
second fully connected layer of AlexNet and VGG.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernull.errors import MissingDependencyError, MissingWeightsError, need
from kernull.views.images.preprocessing import Preprocessing

Batch = NDArray[np.float32]


class TorchBackbone:
    """A torch module that gives features (n, d), or maps of them."""

    def __init__(self, module: Any, preprocessing: Preprocessing, device: str, origin: str) -> None:
        self.fingerprint = _hash_module(module, origin)
        self.preprocessing = preprocessing
        self._device = _device(device)
        self._module = module.eval().to(self._device)
        self.n_features = self.run(np.zeros((1, 3, *preprocessing.size), np.float32)).shape[1]

    def run(self, batch: Batch) -> Batch:
        """Features of prepared images."""
        torch = _need("torch")
        with torch.inference_mode():
            values = self._module(torch.from_numpy(batch).to(self._device))
            if values.ndim == 4:  # a map of features: its mean over the image
                values = values.mean(dim=(2, 3))
            return np.asarray(values.float().cpu().numpy())


@lru_cache(maxsize=16)
def load_torch(library: str, name: str, device: str) -> TorchBackbone:
    """A network of torchvision (``name`` or ``name:weights``) or timm."""
    package = _need(library)
    module, preprocessing = (_torchvision if library == "torchvision" else _timm)(package, name)
    # What the weights mean is written in the library, so its version belongs to them.
    origin = f"{library} {getattr(package, '__version__', '')} {name}"
    return TorchBackbone(module, preprocessing, device, origin)


def _torchvision(torchvision: Any, name: str) -> tuple[Any, Preprocessing]:
    models = torchvision.models
    name, _, chosen = name.partition(":")
    # Those of this module classify; there are others that detect or segment.
    _check_name("torchvision", name, models.list_models(module=models))
    known = models.get_model_weights(name)
    if chosen and chosen not in known.__members__:
        raise ValueError(
            f"backbone: torchvision has no weights {chosen!r} for {name!r}; expected one of "
            f"{sorted(known.__members__)}."
        )
    weights = known[chosen] if chosen else known.DEFAULT
    transforms = weights.transforms()
    preprocessing = Preprocessing(
        size=_sides(transforms.crop_size),
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
        resize="crop",
        shorter=min(_sides(transforms.resize_size)),
        interpolation=_interpolation(transforms.interpolation),
    )
    with _download("torchvision", name):
        model = models.get_model(name, weights=weights)
    return _without_classifier(model, name), preprocessing


def _timm(timm: Any, name: str) -> tuple[Any, Preprocessing]:
    # Names may end in a tag that says which weights, as in "resnet50.a1_in1k".
    _check_name("timm", name.partition(".")[0], timm.list_models())
    with _download("timm", name):
        model = timm.create_model(name, pretrained=True, num_classes=0)
    wanted = timm.data.resolve_model_data_config(model)
    size = _sides(wanted["input_size"][1:])
    stretched = wanted.get("crop_mode") == "squash"
    preprocessing = Preprocessing(
        size=size,
        mean=tuple(wanted["mean"]),
        std=tuple(wanted["std"]),
        resize="stretch" if stretched else "crop",
        shorter=None if stretched else math.floor(max(size) / wanted["crop_pct"]),
        interpolation=_interpolation(wanted["interpolation"]),
    )
    return model, preprocessing


def _without_classifier(model: Any, name: str) -> Any:
    """The network up to its last linear layer, or up to its pooled maps where it has none."""
    nn = _need("torch").nn
    linear = [path for path, part in model.named_modules() if isinstance(part, nn.Linear)]
    if linear:
        parent, _, last = linear[-1].rpartition(".")
        setattr(model.get_submodule(parent), last, nn.Identity())
        return model
    if hasattr(model, "features"):
        return model.features
    raise ValueError(
        f"backbone: do not know where the features of {name!r} come out; it has neither a linear "
        "layer nor `features`. Export it to ONNX with the features as its first output."
    )


@contextmanager
def _download(library: str, name: str) -> Iterator[None]:
    """Turn the many errors of a failed download into one that says what to do."""
    try:
        yield
    except Exception as error:
        raise MissingWeightsError(
            f"backbone: {library} could not load the weights of {name!r} ({error}). It downloads "
            "them once; without a network, bring its cache (TORCH_HOME for torchvision, HF_HOME "
            "for timm) from a machine that has one."
        ) from error


def _check_name(library: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        close = difflib.get_close_matches(name, known)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "see its model list."
        raise ValueError(f"backbone: {library} has no network {name!r}; {hint}")


def _need(library: str) -> Any:
    return need(
        library,
        f"backbone: networks of torchvision and timm need {library}; install it with "
        f"`pip install {library}`, after the torch of your choice.",
    )


def _device(device: str) -> Any:
    torch = _need("torch")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    elif device != "cpu" and not torch.cuda.is_available():
        raise MissingDependencyError(
            f"device: got {device!r}, but this torch finds no GPU; install a torch with CUDA, or "
            "pass device='cpu'."
        )
    return torch.device(device)


def _sides(size: Any) -> tuple[int, int]:
    """Height and width from a number, a list of one, or both."""
    sides = [int(side) for side in (size if isinstance(size, Sequence) else [size])]
    return sides[0], sides[-1]


def _interpolation(given: Any) -> str:
    """One of ours from torchvision's enumeration or timm's word."""
    word = str(getattr(given, "value", given))
    return word if word in ("nearest", "bilinear", "bicubic", "lanczos") else "bilinear"


def _hash_module(module: Any, origin: str) -> str:
    digest = hashlib.sha256(origin.encode())
    for name, values in module.state_dict().items():
        array = values.detach().cpu().contiguous().numpy()
        digest.update(f"\0{name} {array.dtype.str} {array.shape}\0".encode())
        digest.update(array.data)
    return digest.hexdigest()
