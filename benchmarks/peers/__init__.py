"""Every method of the paper by its name, with its parameter grid, and peers for the same tables."""

from benchmarks.peers.comparison import Row, compare
from benchmarks.peers.detectors import AveragedOneClassSVM, TableDetector, pyod_detector
from benchmarks.peers.registry import DELTAS, NUS, PS, WIDTHS, Method, get_method, method_names

__all__ = [
    "DELTAS", "NUS", "PS", "WIDTHS", "AveragedOneClassSVM", "Method", "Row", "TableDetector",
    "compare", "get_method", "method_names", "pyod_detector",
]  # fmt: skip
