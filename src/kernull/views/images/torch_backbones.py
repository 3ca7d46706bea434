"""Networks of torchvision and timm, by name, with their own weights and transforms."""

from __future__ import annotations

from typing import Any

from kernull.views.images.backbones import Backbone

__all__ = ["load_torch"]


def load_torch(*args: Any) -> Backbone:
    """To be written."""
    raise NotImplementedError
