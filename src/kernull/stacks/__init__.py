"""Stacks: J kernel matrices as one object."""

from kernull.stacks.bank import KernelBank
from kernull.stacks.base import Stack
from kernull.stacks.blocks import BlockDiagonalStack
from kernull.stacks.cross import LazyCross
from kernull.stacks.dense import DenseStack
from kernull.stacks.memory import check_memory, parse_memory_limit

KernelStack = DenseStack  # the name users meet

__all__ = [
    "BlockDiagonalStack",
    "DenseStack",
    "KernelBank",
    "KernelStack",
    "LazyCross",
    "Stack",
    "check_memory",
    "parse_memory_limit",
]
