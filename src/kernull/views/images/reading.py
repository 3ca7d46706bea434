"""From what users call images to 8-bit pixels: arrays, files, folders, Pillow images.

Every image becomes an array of bytes, grey (H, W) or RGB (H, W, 3):

- 16 bits a channel: v -> round(v / 257); floating values in [0, 1]: v -> round(255 v);
- transparent pixels are laid on white; CMYK, palettes and the like become RGB;
- files are turned upright as their EXIF orientation says.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from kernull.errors import need
from kernull.safety import decoding, open_picture, read_picture

#: 8-bit pixels, (H, W) grey or (H, W, 3) RGB.
Pixels = NDArray[np.uint8]

#: Endings of the files that a folder is searched for.
SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")

#: Pixels that are converted at once.
STRIP_PIXELS = 2**20

#: Part of every digest: raised when the rules of this module change what pixels come out.
VERSION = b"kernull image 1"


@dataclass
class Image:
    """One image, not read yet.

    ``content`` is a path, an array or a Pillow image; ``name`` says which image in messages.
    """

    content: Any
    name: str

    @cached_property
    def digest(self) -> bytes:
        """Hash of the content: a file's bytes, or an array's values, type and shape."""
        if isinstance(self.content, Path):
            return _file_digest(read_picture(self.content))
        return _array_digest(_as_array(self.content))

    def load(self) -> tuple[bytes, Pixels]:
        """Digest and pixels, both of the same bytes, even if the file has changed since."""
        if isinstance(self.content, Path):
            content = read_picture(self.content)
            return _file_digest(content), _decode(content)
        values = _as_array(self.content)
        return _array_digest(values), _to_bytes(values)


def list_images(X: Any) -> list[Image]:
    """The images of an array, a sequence or a folder, in order; see `BackboneFeatures`."""
    if isinstance(X, str | os.PathLike):
        return [Image(path, str(path)) for path in image_paths(X)]
    if hasattr(X, "__array__") and not _is_pillow(X):
        X = np.asarray(X)
        if X.dtype.kind in "OUS":
            X = X[:, 0] if X.ndim == 2 and X.shape[1] == 1 else X
        else:
            _check_batch(X)
    if isinstance(X, np.ndarray | Sequence) and not isinstance(X, bytes):
        if not len(X):
            raise ValueError("X: got no image; expected at least one.")
        return [_one_image(item, i) for i, item in enumerate(X)]
    raise TypeError(
        f"X: got {type(X).__name__}; expected an array (n, H, W) or (n, H, W, C), a list of "
        "paths, arrays or Pillow images, or the path of a folder."
    )


def image_paths(folder: str | os.PathLike[str]) -> list[Path]:
    """Image files of a folder and the folders in it, sorted by path.

    They are in the order of the rows that a transformer gives for the folder.

    Parameters
    ----------
    folder : path-like
        Where to look. Hidden files and files that do not end like an image are passed over.
    """
    root = Path(folder).expanduser()
    if not root.exists():
        raise FileNotFoundError(
            f"X: there is no folder {str(root)!r}; expected the path of a folder of images."
        )
    if not root.is_dir():
        raise NotADirectoryError(
            f"X: {str(root)!r} is a file; expected a folder. Pass one image as [path]."
        )
    found = sorted(
        path
        for path in root.rglob("*")
        if path.suffix.lower() in SUFFIXES
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
        and path.is_file()
    )
    if not found:
        raise ValueError(
            f"X: the folder {str(root)!r} holds no image; looked there, and in the folders in it, "
            f"for files that end in {', '.join(SUFFIXES)}."
        )
    return found


def need_pillow() -> Any:
    """Pillow, or an error that says how to get it."""
    otherwise = "Images need Pillow; install it with `pip install kernull[vision]`."
    need("PIL.ImageOps", otherwise)  # which imports PIL.Image
    return need("PIL", otherwise)


def _one_image(item: Any, i: int) -> Image:
    if isinstance(item, str | os.PathLike):
        path = Path(item).expanduser()
        return Image(path, str(path))
    return Image(item, f"X[{i}]")


def _check_batch(X: NDArray[Any]) -> None:
    if X.ndim == 3 and X.shape[2] in (3, 4) and X.shape[1] > 4:
        raise ValueError(
            f"X: got an array of shape {X.shape}, which looks like one colour image; expected "
            "(n, H, W) or (n, H, W, C). Pass one image as X[None]."
        )
    if X.ndim not in (3, 4) or (X.ndim == 4 and X.shape[3] not in (1, 2, 3, 4)):
        hint = ""
        if X.ndim == 4 and X.shape[1] in (1, 3, 4):
            hint = " Channels come last: pass X.transpose(0, 2, 3, 1)."
        raise ValueError(
            f"X: got an array of shape {X.shape}; expected (n, H, W) or (n, H, W, C) with 1 "
            f"(grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) channels.{hint}"
        )


# -- files -----------------------------------------------------------------------------------


def _file_digest(content: bytes) -> bytes:
    return hashlib.blake2b(VERSION + b" file\0" + content, digest_size=20).digest()


def _decode(content: bytes) -> Pixels:
    pil = need_pillow()
    with open_picture(pil, content) as image, decoding(image.width, image.height):
        pil.ImageOps.exif_transpose(image, in_place=True)  # a copy takes as much memory again
        return _from_pillow(image)


def _from_pillow(image: Any) -> Pixels:
    """Pixels of a Pillow image, strip by strip: conversions take several times its memory."""
    height = max(1, STRIP_PIXELS // max(1, image.width))
    if height >= image.height:
        return _strip_from_pillow(image)
    out: Any = None
    for top in range(0, image.height, height):
        bottom = min(top + height, image.height)
        strip = _strip_from_pillow(image.crop((0, top, image.width, bottom)))
        if out is None:
            out = np.empty((image.height, *strip.shape[1:]), dtype=np.uint8)
        out[top:bottom] = strip
    return cast(Pixels, out)


def _strip_from_pillow(image: Any) -> Pixels:
    pil = need_pillow()
    if image.mode.startswith("I") or image.mode == "F":
        return _to_bytes(_deep_values(image))
    if image.mode in ("LA", "La", "PA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
    if image.mode == "RGBA":
        white = pil.Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = pil.Image.alpha_composite(white, image)
    return np.asarray(image if image.mode == "L" else image.convert("RGB"))


def _deep_values(image: Any) -> NDArray[Any]:
    """Pixels of a Pillow image with more than 8 bits a channel."""
    values = np.asarray(image)
    if image.mode == "F":
        return values
    if values.min() < 0 or values.max() > 65535:
        raise ValueError(
            f"32-bit integers from {values.min()} to {values.max()}; expected 0 to 65535"
        )
    return values.astype(np.uint16)


# -- arrays ----------------------------------------------------------------------------------


def _is_pillow(item: Any) -> bool:
    return type(item).__module__.startswith("PIL.")


def _as_array(item: Any) -> NDArray[Any]:
    values = _from_pillow(item) if _is_pillow(item) else np.asarray(item)
    if values.dtype.kind not in "buif":
        raise ValueError(f"got {type(item).__name__}; expected a path, an array or a Pillow image")
    return values


def _array_digest(values: NDArray[Any]) -> bytes:
    header = f" array {values.dtype.str} {values.shape}\0".encode()
    digest = hashlib.blake2b(VERSION + header, digest_size=20)
    digest.update(np.ascontiguousarray(values).data)
    return digest.digest()


def _to_bytes(values: NDArray[Any]) -> Pixels:
    """8-bit grey or RGB pixels of an image array."""
    channels = values.shape[2] if values.ndim == 3 else 1
    if values.ndim not in (2, 3) or channels not in (1, 2, 3, 4) or 0 in values.shape:
        raise ValueError(
            f"an array of shape {values.shape}; expected (H, W) or (H, W, C) with 1 to 4 channels"
        )
    pixels = _eight_bits(values)
    if channels in (2, 4):
        alpha = pixels[..., -1:].astype(np.float32) / 255
        pixels = np.rint(pixels[..., :-1] * alpha + 255 * (1 - alpha)).astype(np.uint8)
    return pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels


def _eight_bits(values: NDArray[Any]) -> Pixels:
    if values.dtype == np.uint8:
        return values
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255)
    if values.dtype == np.uint16:
        return np.rint(values / 257).astype(np.uint8)
    if values.dtype.kind == "f":
        low, high = values.min(), values.max()
        if not (low >= 0 and high <= 1):  # also where there is a NaN
            raise ValueError(
                f"floating values from {low} to {high}; expected 0 to 1, or whole values as uint8"
            )
        return np.rint(values.astype(np.float32) * 255).astype(np.uint8)
    raise ValueError(f"an array of {values.dtype}; expected uint8, uint16, bool or floating values")
