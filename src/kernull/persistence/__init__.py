"""Model files: trees of plain values and arrays, safe to read from anyone."""

from kernull.persistence.format import FORMAT_VERSION, read_tree, write_tree

__all__ = ["FORMAT_VERSION", "read_tree", "write_tree"]
