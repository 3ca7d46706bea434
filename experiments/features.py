r"""Features of images by pretrained networks: the ONNX files in the folder ``KERNULL_WEIGHTS``.

.. math:: x \mapsto \phi((s\,v - \mu) / \sigma)

for the pixels v of a region, 0 to 255, brought to the size of the network's input, and each of
their three channels. Features are the first output of the network, averaged over the image where
it is a map. Grey images are spread over the channels, transparent pixels lie on white, and files
are turned upright as their EXIF orientation says.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import DatasetNotFound
from kernull.errors import need

__all__ = [
    "KNOWN",
    "REGIONS",
    "Network",
    "Preprocessing",
    "extract",
    "read_image",
    "weights_folder",
]

Features = NDArray[np.float32]

#: Images that go through a network at once, and that a run which is killed loses at most.
BATCH = 32


@dataclass(frozen=True)
class Preprocessing:
    """How a network wants its images.

    Parameters
    ----------
    size : int
        Side of the input, in pixels; the image is stretched to it.
    channels : {"RGB", "BGR"}
        Order of the channels.
    scale : float
        Factor of the pixels, which are 0 to 255, before anything is subtracted.
    mean, std : three floats
        Subtracted and divided by, in the order of ``channels``.

    Examples
    --------
    >>> prepare = Preprocessing(4, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    >>> x = prepare(np.full((8, 8), 255, dtype=np.uint8))
    >>> x.shape, float(x[0, 0, 0])
    ((3, 4, 4), 1.0)
    """

    size: int
    channels: str = "RGB"
    scale: float = 1 / 255
    mean: Sequence[float] = (0.0, 0.0, 0.0)
    std: Sequence[float] = (1.0, 1.0, 1.0)

    def __call__(self, image: Any, region: str = "whole") -> Features:
        """Network input of shape (3, size, size) for one image; see :func:`read_image`."""
        whole = read_image(image)
        part = whole.crop(_pixels(REGIONS[region], *whole.size))
        bilinear = need("PIL.Image", "").Resampling.BILINEAR
        values = np.asarray(part.resize((self.size, self.size), bilinear), dtype=np.float32)
        if values.ndim == 2:
            values = np.broadcast_to(values[..., None], (*values.shape, 3))
        if self.channels == "BGR":
            values = values[..., ::-1]
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        values = (values * np.float32(self.scale) - mean) / std
        return np.ascontiguousarray(values.transpose(2, 0, 1))


_IMAGENET: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}

#: Networks that need no description beside their file.
KNOWN = {
    "alexnet": Preprocessing(224, **_IMAGENET),
    "vgg16": Preprocessing(224, **_IMAGENET),
    "squeezenet1_1": Preprocessing(227, "BGR", scale=1.0, mean=(103.939, 116.779, 123.68)),
    "mobilenet_v2": Preprocessing(224, **_IMAGENET),
    "efficientnet_lite0": Preprocessing(224, scale=1.0, mean=(127.0,) * 3, std=(128.0,) * 3),
    "inception_v3": Preprocessing(299, scale=1.0, mean=(127.5,) * 3, std=(127.5,) * 3),
}

#: Parts of an image, as (left, top, right, bottom) in fractions of width and height. The paper
#: names the whole face, eyes with nose, nose, and lower face, and gives no boxes: these are ours,
#: for faces cropped from about the brow line to the chin, eyes a third of the way down.
REGIONS = {
    "whole": (0.0, 0.0, 1.0, 1.0),
    "face": (0.0, 0.0, 1.0, 1.0),
    "eyes_nose": (0.08, 0.20, 0.92, 0.68),
    "nose": (0.28, 0.36, 0.72, 0.70),
    "lower_face": (0.10, 0.58, 0.90, 1.0),
}


def _pixels(
    box: tuple[float, float, float, float], width: int, height: int
) -> tuple[int, int, int, int]:
    """A box in pixels, at least one wide and high."""
    left, top, right, bottom = box
    x, y = min(round(left * width), width - 1), min(round(top * height), height - 1)
    return x, y, max(round(right * width), x + 1), max(round(bottom * height), y + 1)


def read_image(image: Any) -> Any:
    """A Pillow image, grey or RGB, of a path, an array of bytes (H, W[, C]) or a Pillow image."""
    pil = need("PIL", "images need Pillow: pip install pillow")
    need("PIL.ImageOps", "")  # which imports PIL.Image
    if isinstance(image, np.ndarray):
        image = pil.Image.fromarray(np.ascontiguousarray(image))
    elif isinstance(image, str | os.PathLike):
        try:
            image = pil.ImageOps.exif_transpose(pil.Image.open(image))
        except OSError as error:
            raise OSError(f"{os.fspath(image)!r} cannot be read: {error}") from error
    if image.has_transparency_data:
        white = pil.Image.new("RGBA", image.size, "white")
        image = pil.Image.alpha_composite(white, image.convert("RGBA"))
    return image if image.mode == "L" else image.convert("RGB")


def weights_folder() -> Path:
    """The folder that ``KERNULL_WEIGHTS`` names."""
    folder = os.environ.get("KERNULL_WEIGHTS")
    if not folder:
        raise DatasetNotFound(
            "networks: KERNULL_WEIGHTS is not set; set it to a folder of ONNX files whose first "
            "output is the features."
        )
    return Path(folder).expanduser()


class Network:
    """An ONNX file in the folder of weights.

    Parameters
    ----------
    name : str
        Of the file ``<name>.onnx``. Unless it is one of `KNOWN`, a file ``<name>.onnx.json``
        beside it holds the parameters of `Preprocessing`.
    jobs : int
        Threads that read images and run the network.
    """

    def __init__(self, name: str, jobs: int = 1) -> None:
        folder = weights_folder()
        path = folder / f"{name}.onnx"
        described = path.with_name(f"{path.name}.json")
        if not path.is_file():
            raise DatasetNotFound(f"networks: KERNULL_WEIGHTS ({str(folder)!r}) has no {path.name}")
        if described.is_file():
            self.prepare = Preprocessing(**json.loads(described.read_text(encoding="utf-8")))
        elif name in KNOWN:
            self.prepare = KNOWN[name]
        else:
            raise DatasetNotFound(
                f"networks: nothing says how {name!r} wants its images; describe it in "
                f'{described.name!r}, such as {{"size": 224, "mean": [0.485, 0.456, 0.406], '
                '"std": [0.229, 0.224, 0.225]}'
            )
        ort = need("onnxruntime", "networks need onnxruntime: pip install onnxruntime")
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.jobs = jobs
        # Threads that wait in a loop would take the cores from those that read images.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
        providers = [name for name in wanted if name in ort.get_available_providers()]
        self.session = ort.InferenceSession(path, options, providers=providers)

    def __call__(self, images: Sequence[Any], region: str = "whole") -> Features:
        """Features (n, d) of a region of images; see :func:`read_image`."""
        with ThreadPoolExecutor(self.jobs) as pool:
            batch = np.stack(list(pool.map(lambda image: self.prepare(image, region), images)))
        first = self.session.get_outputs()[0].name
        (values,) = self.session.run([first], {self.session.get_inputs()[0].name: batch})
        return np.asarray(values.mean(axis=(2, 3)) if values.ndim == 4 else values, np.float32)


def extract(
    images: Sequence[Any], network: str, path: Path, *, region: str = "whole", jobs: int = 1
) -> None:
    """Write the features (n, d) of images to an NPY file, unless it is there.

    Batches are files of their own until all are done, so that a run that was killed goes on where
    it was.
    """
    if path.is_file():
        return
    from rich.console import Console
    from rich.progress import track

    parts = path.with_suffix(".parts")
    parts.mkdir(parents=True, exist_ok=True)
    model, done = Network(network, jobs), []
    starts = range(0, len(images), BATCH)
    for start in track(starts, path.stem, console=Console(stderr=True)):
        done.append(parts / f"{start}.npy")
        if not done[-1].is_file():
            _save(done[-1], model(images[start : start + BATCH], region))
    _save(path, np.concatenate([np.load(part) for part in done]))
    shutil.rmtree(parts)


def _save(path: Path, values: Features) -> None:
    temporary = path.with_suffix(".tmp.npy")
    np.save(temporary, values)
    os.replace(temporary, path)
