r"""From pixels to the input of a network.

.. math:: x = (s\,v - \mu) / \sigma

for each channel, after the image was resized.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernull.safety import check_pixels
from kernull.views.images.reading import Pixels, need_pillow

#: Sides of the input of a network, in pixels.
MAX_SIDE = 4096
_CHOICES = {
    "channels": ("RGB", "BGR"),
    "resize": ("stretch", "crop", "pad"),
    "interpolation": ("nearest", "bilinear", "bicubic", "lanczos"),
}


@dataclass(frozen=True)
class Preprocessing:
    """How a network wants its images.

    Parameters
    ----------
    size : (int, int) or int
        Height and width of the input.
    channels : {"RGB", "BGR"}
        Order of the channels.
    scale : float
        Factor of the pixels, which are 0 to 255, before anything is subtracted.
    mean, std : three floats
        Subtracted and divided by, in the order of ``channels``.
    resize : {"stretch", "crop", "pad"}
        Stretch to the input's size, so that all of the image is seen; resize the shorter side to
        ``shorter`` and cut the centre out; or fit the whole image in and fill up with black.
    shorter : int, optional
        Length of the shorter side before ``"crop"``; by default the input's.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
        Filter of the resizing.

    Examples
    --------
    >>> describe = Preprocessing(size=4, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    >>> x = describe(np.full((8, 8), 255, dtype=np.uint8))
    >>> x.shape, float(x[0, 0, 0])
    ((3, 4, 4), 1.0)
    """

    size: tuple[int, int]
    channels: str = "RGB"
    scale: float = 1 / 255
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    resize: str = "stretch"
    shorter: int | None = None
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        """Bring lists and single numbers, as JSON has them, into one form; check the rest."""
        size: Any = self.size
        size = (size, size) if isinstance(size, int) else tuple(size)
        if len(size) != 2 or not all(isinstance(side, int) and side > 0 for side in size):
            raise ValueError(f"size: got {self.size!r}; expected one or two positive integers.")
        if max(size) > MAX_SIDE:
            raise ValueError(f"size: got {self.size!r}; expected at most {MAX_SIDE}.")
        triples = {name: _triple(name, getattr(self, name)) for name in ("mean", "std")}
        vars(self).update(size=size, scale=float(self.scale), **triples)
        if 0.0 in self.std:
            raise ValueError(f"std: got {self.std!r}; expected values other than 0.")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: got {getattr(self, name)!r}; expected one of {known}.")
        if self.shorter is not None and not (
            isinstance(self.shorter, int) and self.resize == "crop" and self.shorter >= max(size)
        ):
            raise ValueError(
                f"shorter: got {self.shorter!r} with resize={self.resize!r} and size={size}; "
                'expected, with resize="crop" only, an integer of at least that size.'
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Preprocessing:
        """A description from a mapping, such as the content of a JSON file."""
        known = {each.name for each in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise ValueError(f"got unknown entries {unknown}; expected some of {sorted(known)}.")
        if "size" not in values:
            raise ValueError("size: is missing; expected the height and width of the input.")
        return cls(**values)

    @classmethod
    def read(cls, path: Path) -> Preprocessing:
        """A description from a JSON file."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(values, dict):
                raise ValueError('expected a JSON object, such as {"size": 224}.')
            return cls.of(values)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{str(path)!r} does not describe preprocessing: {error}") from error

    def changed(self, values: Mapping[str, Any] | None) -> Preprocessing:
        """The same description with some entries replaced."""
        return Preprocessing.of({**asdict(self), **values}) if values else self

    def fingerprint(self) -> str:
        """All entries as one line of text, equal only for equal descriptions."""
        return json.dumps(asdict(self), sort_keys=True)

    def __call__(self, pixels: Pixels) -> NDArray[np.float32]:
        """Network input of shape (3, height, width) for one image."""
        small = self._resized(pixels)
        scale = np.float32(self.scale)
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        if small.ndim == 2:  # grey is resized once, and spread over the channels here
            small = np.broadcast_to(small[..., None], (*small.shape, 3))
        if self.channels == "BGR":
            small = small[..., ::-1]
        values = (small.astype(np.float32) * scale - mean) / std
        return np.ascontiguousarray(values.transpose(2, 0, 1))

    def _resized(self, pixels: Pixels) -> Pixels:
        Image = need_pillow().Image
        height, width = self.size
        image = Image.fromarray(np.ascontiguousarray(pixels))
        filter_ = getattr(Image.Resampling, self.interpolation.upper())
        if self.resize == "stretch":
            return np.asarray(image.resize((width, height), filter_))
        if self.resize == "pad":
            ratio = min(width / image.width, height / image.height)
            target = _scaled(image.size, ratio)
            canvas = Image.new(image.mode, (width, height))
            corner = ((width - target[0]) // 2, (height - target[1]) // 2)
            canvas.paste(image.resize(target, filter_), corner)
            return np.asarray(canvas)
        shorter = self.shorter or max(height, width)
        target = _scaled(image.size, shorter / min(image.size))
        check_pixels(*target, what="would be resized to an image")  # long and narrow
        image = image.resize(target, filter_)
        left, top = round((image.width - width) / 2), round((image.height - height) / 2)
        return np.asarray(image.crop((left, top, left + width, top + height)))


def _scaled(size: tuple[int, int], ratio: float) -> tuple[int, int]:
    # Cut off rather than rounded, as in torchvision, but not by an error of the last digit.
    width, height = (max(1, int(side * ratio + 1e-9)) for side in size)
    return width, height


def _triple(name: str, values: Any) -> tuple[float, float, float]:
    if isinstance(values, int | float):
        values = (values,) * 3
    if not isinstance(values, Sequence) or len(values) != 3:
        raise ValueError(f"{name}: got {values!r}; expected three numbers, one per channel.")
    first, second, third = (float(value) for value in values)
    return first, second, third


_IMAGENET: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}

#: Preprocessing and number of features of the ONNX files that kernull knows by name.
KNOWN: dict[str, tuple[Preprocessing, int]] = {
    "alexnet": (Preprocessing(size=(224, 224), **_IMAGENET), 256),
    "vgg16": (Preprocessing(size=(224, 224), **_IMAGENET), 512),
    "squeezenet1_1": (
        Preprocessing(size=(227, 227), channels="BGR", scale=1.0, mean=(103.939, 116.779, 123.68)),
        512,
    ),
    "mobilenet_v2": (Preprocessing(size=(224, 224), **_IMAGENET), 1280),
    "efficientnet_lite0": (
        Preprocessing(size=(224, 224), scale=1.0, mean=(127.0,) * 3, std=(128.0,) * 3),
        1280,
    ),
    "inception_v3": (
        Preprocessing(size=(299, 299), scale=1.0, mean=(127.5,) * 3, std=(127.5,) * 3),
        2048,
    ),
}


Box = tuple[float, float, float, float]

#: The whole face, eyes with nose, nose, and lower face of an upright face that fills its image.
#: The paper names these four regions and gives no boxes: these are ours, for faces cropped from
#: about the brow line to the chin with the eyes a third of the way down.
FACE_REGIONS: dict[str, Box] = {
    "face": (0.0, 0.0, 1.0, 1.0),
    "eyes_nose": (0.08, 0.20, 0.92, 0.68),
    "nose": (0.28, 0.36, 0.72, 0.70),
    "lower_face": (0.10, 0.58, 0.90, 1.0),
}

#: All regions known by name, as (left, top, right, bottom) in fractions of width and height.
REGIONS: dict[str, Box] = {
    "whole": (0.0, 0.0, 1.0, 1.0),
    "centre": (0.25, 0.25, 0.75, 0.75),
    "top": (0.0, 0.0, 1.0, 0.5),
    "bottom": (0.0, 0.5, 1.0, 1.0),
    "left": (0.0, 0.0, 0.5, 1.0),
    "right": (0.5, 0.0, 1.0, 1.0),
    **FACE_REGIONS,
}


def resolve_region(region: Any) -> Box:
    """The box of a region: a name of `REGIONS`, a box in fractions of the sides, or None (all).

    Examples
    --------
    >>> resolve_region("top")
    (0.0, 0.0, 1.0, 0.5)
    """
    if region is None:
        return REGIONS["whole"]
    if isinstance(region, str):
        if region not in REGIONS:
            raise ValueError(
                f"region: got {region!r}; expected one of {sorted(REGIONS)} or a box "
                "(left, top, right, bottom) in fractions of the image."
            )
        return REGIONS[region]
    is_box = isinstance(region, Sequence) and len(region) == 4
    try:
        left, top, right, bottom = (float(end) for end in region) if is_box else (0, 0, 0, 0)
    except (TypeError, ValueError):
        left = top = right = bottom = 0.0
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise ValueError(
            f"region: got {region!r}; expected a name or a box (left, top, right, bottom) with "
            "0 <= left < right <= 1 and 0 <= top < bottom <= 1."
        )
    return (left, top, right, bottom)


def crop(pixels: Pixels, box: Box) -> Pixels:
    """The part of an image in a box, at least one pixel wide and high."""
    height, width = pixels.shape[:2]
    left, top, right, bottom = box
    x0, y0 = min(round(left * width), width - 1), min(round(top * height), height - 1)
    x1, y1 = max(round(right * width), x0 + 1), max(round(bottom * height), y0 + 1)
    return pixels[y0:y1, x0:x1]
