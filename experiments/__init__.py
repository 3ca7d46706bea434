"""The paper's experiments, reproduced by one command.

    python -m experiments E4 --quick

Each experiment is one module that declares its cells; the runner executes them, stores each at
once, and resumes where it was stopped. Results go to a folder an experiment: tidy CSV, a Markdown
page with our figures beside the published ones, and PNG figures.
"""

from experiments._cells import EXPERIMENTS, Cell, Experiment, load_experiment
from experiments._reproduce import Outcome, main, reproduce
from experiments._runner import CellsFailedError, run_cells
from experiments._store import Store

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "CellsFailedError",
    "Experiment",
    "Outcome",
    "Store",
    "load_experiment",
    "main",
    "reproduce",
    "run_cells",
]
