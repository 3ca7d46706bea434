"""Image files: which kinds, how many bytes and pixels, how many large ones at once."""

from __future__ import annotations

import io
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from kernull.safety.archives import read_file

#: Kinds that Pillow decodes by itself. Others start programs (EPS), or few have ever attacked them.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
#: Files above this size are not read.
MAX_FILE_BYTES = 256 * 2**20
#: Images with more pixels are not decoded: a small file may hold any number of them.
MAX_PIXELS = 50_000_000
#: Images above this size are decoded one at a time, however many threads read.
LARGE_PIXELS = 8_000_000

_one_large = threading.Lock()


def read_picture(path: Path) -> bytes:
    """The bytes of an image file; a ValueError where there is none, or it is too large."""
    content = read_file(path, MAX_FILE_BYTES)
    if not content:
        raise ValueError("the file is empty")
    return content


def open_picture(pil: Any, content: bytes) -> Any:
    """A Pillow image of a safe kind and size, its pixels not decoded yet."""
    try:
        image = pil.Image.open(io.BytesIO(content), formats=FORMATS)
    except pil.UnidentifiedImageError as error:
        raise ValueError(f"is no image of a kind that is read: {', '.join(FORMATS)}") from error
    except pil.Image.DecompressionBombError as error:
        raise ValueError(_too_large("is an image")) from error
    check_pixels(image.width, image.height)
    return image


def check_pixels(width: int, height: int, what: str = "is an image") -> None:
    """Refuse sizes that take too much memory."""
    if width * height > MAX_PIXELS:
        raise ValueError(_too_large(f"{what} of {width} x {height} pixels"))


def _too_large(what: str) -> str:
    return (
        f"{what}, more than {MAX_PIXELS:,}; make it smaller, or raise "
        "kernull.safety.pictures.MAX_PIXELS if you trust it"
    )


def decoding(width: int, height: int) -> AbstractContextManager[Any]:
    """Wait until no other large image is being decoded, if this one is large."""
    return _one_large if width * height > LARGE_PIXELS else nullcontext()
