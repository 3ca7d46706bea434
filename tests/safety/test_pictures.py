"""Image files start no program, and take no more memory than an image may."""

from __future__ import annotations

import io
import struct
import subprocess
import threading
import time
import tracemalloc
import zlib

import numpy as np
import pytest

from kernull.safety import decoding, pictures
from kernull.views.images import Preprocessing, reading
from kernull.views.images.reading import Image

PIL = pytest.importorskip("PIL.Image")

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"


def bomb(width: int, height: int) -> bytes:
    """A PNG of black pixels, a thousandth of their size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(b"\0" * (1 + 3 * width)) for _ in range(height))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", data + packer.flush())
        + chunk(b"IEND", b"")
    )


def load(path, content):
    path.write_bytes(content)
    return Image(path, str(path)).load()


def test_postscript_by_another_name_starts_no_program(tmp_path, monkeypatch):
    def started(*args, **_):
        pytest.fail(f"started {args}")

    monkeypatch.setattr(subprocess, "Popen", started)
    monkeypatch.setattr(subprocess, "check_call", started)
    with pytest.raises(ValueError, match="no image of a kind that is read: BMP"):
        load(tmp_path / "eps.png", EPS)


def test_a_small_file_of_many_pixels_is_not_decoded(tmp_path):
    content = bomb(8_000, 8_000)
    assert len(content) < 10**6
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="8000 x 8000 pixels, more than 50,000,000"):
            load(tmp_path / "bomb.png", content)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


def test_a_file_of_too_many_bytes_is_not_read(tmp_path):
    with (tmp_path / "large.png").open("wb") as file:
        file.truncate(300 * 2**20)  # sparse
    with pytest.raises(ValueError, match="at most 268,435,456"):
        _ = Image(tmp_path / "large.png", "large").digest


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "CMYK", "1", "I;16"])
def test_strips_give_the_pixels_of_the_whole(mode, monkeypatch):
    values = np.random.default_rng(0).integers(0, 256, (31, 17, 4), dtype=np.uint8)
    image = PIL.fromarray(values, "RGBA").convert("L" if mode == "I;16" else mode)
    if mode == "I;16":
        image = PIL.fromarray(values[..., 0].astype(np.uint16) * 257)
    whole = reading._from_pillow(image)
    monkeypatch.setattr(reading, "STRIP_PIXELS", 100)
    np.testing.assert_array_equal(reading._from_pillow(image), whole)


def test_large_images_are_decoded_one_at_a_time(monkeypatch):
    monkeypatch.setattr(pictures, "LARGE_PIXELS", 100)
    inside, most = [], []

    def work(side: int) -> None:
        with decoding(side, side):
            inside.append(side)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    for side, expected in ((11, 1), (10, 4)):
        most.clear()
        threads = [threading.Thread(target=work, args=(side,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (max(most) == 1) == (expected == 1)


def test_long_and_narrow_images_are_not_blown_up():
    prepare = Preprocessing(size=224, resize="crop")
    with pytest.raises(ValueError, match="would be resized"):
        prepare(np.zeros((1, 2_000_000), np.uint8))


def test_a_description_of_a_huge_input_is_refused():
    with pytest.raises(ValueError, match="expected at most 4096"):
        Preprocessing(size=100_000)


def test_damaged_images_say_so(tmp_path):
    buffer = io.BytesIO()
    PIL.fromarray(np.zeros((50, 50, 3), np.uint8)).save(buffer, "PNG")
    for content in (buffer.getvalue()[:60], b"not an image", b""):
        with pytest.raises((ValueError, OSError)):
            load(tmp_path / "bad.png", content)
