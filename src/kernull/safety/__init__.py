"""What a safe image, archive and ONNX graph is: decided here, and nowhere else.

Files come from anybody. What is read here costs memory and time in proportion to limits that are
stated, starts no other program, and reads no other file. See ``SECURITY.md``.
"""

from kernull.safety.archives import check_npz, read_file
from kernull.safety.graphs import check_graph, limit_memory, run_limited
from kernull.safety.pictures import check_pixels, decoding, open_picture, read_picture

__all__ = [
    "check_graph", "check_npz", "check_pixels", "decoding", "limit_memory", "open_picture",
    "read_file", "read_picture", "run_limited",
]  # fmt: skip
