"""One object that judges the rows of a table."""

from kernull.judge.judge import Judge
from kernull.judge.verdicts import Verdicts

__all__ = ["Judge", "Verdicts"]
