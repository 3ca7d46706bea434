"""Image files, spoiled: a row of features, or a row that is missing with a reason."""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.fuzz.cases import Action, WrongError, spoil
from benchmarks.fuzz.graphs import network
from kernull.errors import BadImageWarning

KINDS = {
    "PNG": "png", "JPEG": "jpg", "GIF": "gif", "BMP": "bmp", "TIFF": "tif", "PPM": "ppm",
    "WEBP": "webp",
}  # fmt: skip
MODES = ["L", "RGB", "RGBA", "P", "LA", "1", "CMYK", "I;16"]


class Pictures:
    """Reading and preparing of image files."""

    def __init__(self) -> None:
        self.originals = list(originals())
        with tempfile.TemporaryDirectory() as folder:  # what is imported on first use is no case
            try_picture(self.originals[0][1], Path(folder) / "first.png")

    def case(self, rng: np.random.Generator, folder: Path) -> tuple[str, Action]:
        kind, content = self.originals[int(rng.integers(len(self.originals)))]
        data = content if rng.random() < 0.05 else spoil(content, rng)
        ending = KINDS[kind] if rng.random() < 0.8 else str(rng.choice(list(KINDS.values())))
        return kind, lambda: try_picture(data, folder / f"picture.{ending}")

    def corpus(self, folder: Path) -> Iterator[tuple[str, Action]]:
        from PIL import Image

        eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n%%EOF\n"
        out = io.BytesIO()
        Image.new("1", (13_000, 13_000)).save(out, "PNG")
        largest = io.BytesIO()
        Image.new("RGBA", (7_000, 7_000)).save(largest, "PNG", compress_level=1)
        narrow = io.BytesIO()
        Image.new("L", (1, 40_000)).save(narrow, "PNG")
        for name, data in {
            "PostScript by another name": eps,
            "169 megapixels": out.getvalue(),
            "the largest that is read": largest.getvalue(),
            "one pixel wide": narrow.getvalue(),
        }.items():
            yield name, lambda data=data: try_picture(data, folder / "picture.png")  # type: ignore[misc]


def originals() -> Iterator[tuple[str, bytes]]:
    """Small valid images of every kind and mode."""
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (20, 24, 3), dtype=np.uint8)
    for kind in KINDS:
        for mode in MODES:
            if mode == "I;16":
                image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
            else:
                image = Image.fromarray(pixels).convert(mode)
            out = io.BytesIO()
            try:
                image.save(out, kind)
            except (OSError, ValueError, KeyError):
                continue  # this kind has no such mode
            yield kind, out.getvalue()


def try_picture(data: bytes, path: Path) -> str:
    """Features of one image; bad ones are NaN."""
    from kernull.views.images import BackboneFeatures

    path.write_bytes(data)
    net = path.with_name("net.onnx")
    if not net.exists():
        net.write_bytes(network().SerializeToString())
        net.with_name("net.onnx.json").write_text(json.dumps({"size": 8, "resize": "crop"}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        row = BackboneFeatures(net, on_error="nan", n_jobs=1).transform([path])
    told = any(w.category is BadImageWarning for w in caught)
    if row.shape != (1, 4) or np.isnan(row).any() != told:
        raise WrongError(f"features {row} and {[str(w.message) for w in caught]}")
    return "refused" if told else "works"
