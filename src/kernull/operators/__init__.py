"""Stacks: J kernel matrices as one object."""

from kernull.operators.base import Stack
from kernull.operators.block_diagonal import BlockDiagonalStack
from kernull.operators.cross import CrossKernels
from kernull.operators.dense import DenseStack
from kernull.operators.nystroem import LowRankStack, choose_landmarks
from kernull.operators.planner import build_stack, check_memory, parse_memory_limit, plan_storage
from kernull.operators.tiled import TiledStack

KernelStack = DenseStack  # the name users meet

__all__ = [
    "BlockDiagonalStack",
    "CrossKernels",
    "DenseStack",
    "KernelStack",
    "LowRankStack",
    "Stack",
    "TiledStack",
    "build_stack",
    "check_memory",
    "choose_landmarks",
    "parse_memory_limit",
    "plan_storage",
]
