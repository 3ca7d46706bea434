"""Balls: where the kernel weights may live."""

from kernull.mkl.balls.base import Ball, is_ball
from kernull.mkl.balls.lp import LpBall
from kernull.mkl.balls.mixed import MixedBall
from kernull.mkl.balls.simplex import Simplex

__all__ = ["Ball", "LpBall", "MixedBall", "Simplex", "is_ball"]
