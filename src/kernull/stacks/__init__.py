"""Stacks: J kernel matrices as one object."""

from kernull.stacks.base import Stack
from kernull.stacks.blocks import BlockDiagonalStack
from kernull.stacks.cross import CrossKernels
from kernull.stacks.dense import DenseStack
from kernull.stacks.kernel_set import KernelSet
from kernull.stacks.lowrank import LowRankStack, choose_landmarks
from kernull.stacks.planner import build_stack, check_memory, parse_memory_limit, plan_storage
from kernull.stacks.tiled import TiledStack

KernelStack = DenseStack  # the name users meet

__all__ = [
    "BlockDiagonalStack",
    "CrossKernels",
    "DenseStack",
    "KernelSet",
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
