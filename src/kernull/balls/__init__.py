"""Balls: where the kernel weights may live."""

from kernull.balls.base import Ball, is_ball
from kernull.balls.lp import LpBall
from kernull.balls.mixed import MixedBall
from kernull.balls.simplex import Simplex

__all__ = ["Ball", "LpBall", "MixedBall", "Simplex", "is_ball"]
