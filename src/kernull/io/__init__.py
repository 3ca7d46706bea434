"""Models in files, and as ONNX graphs."""

from kernull.io.files import load, save
from kernull.io.onnx import to_onnx

__all__ = ["load", "save", "to_onnx"]
