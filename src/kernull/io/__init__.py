"""Models in files."""

from kernull.io.files import load, save

__all__ = ["load", "save"]
