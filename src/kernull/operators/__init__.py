"""Stacks: J kernel matrices as one object that multiplies by each of them."""

from kernull.operators.base import BlockDiagonalStack, Stack
from kernull.operators.dense import DenseStack
from kernull.operators.memory import Storage, parse_memory_limit
from kernull.operators.nystroem import LowRankStack, choose_landmarks
from kernull.operators.planner import Budget, Planned, check_memory, plan
from kernull.operators.tiled import CrossKernels, TiledStack

KernelStack = DenseStack  # the name users meet

__all__ = [
    "BlockDiagonalStack",
    "Budget",
    "CrossKernels",
    "DenseStack",
    "KernelStack",
    "LowRankStack",
    "Planned",
    "Stack",
    "Storage",
    "TiledStack",
    "check_memory",
    "choose_landmarks",
    "parse_memory_limit",
    "plan",
]
