"""Regions of interest: crops by boxes relative to the image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernull.views.images.reading import Pixels

__all__ = ["FACE_REGIONS", "REGIONS", "crop", "resolve_region"]

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
    """Turn what a user passed as a region into a box.

    Parameters
    ----------
    region : None, str or (left, top, right, bottom)
        None is the whole image; a name is one of ``REGIONS``; a box is in fractions of the width
        and height, with 0 at the left and at the top.

    Returns
    -------
    tuple of four floats

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
