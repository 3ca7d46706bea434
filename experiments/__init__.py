"""The paper's experiments, reproduced by one command.

    python -m experiments E4 --quick

Each experiment is one module that declares its cells; the runner executes them, stores each at
once, and resumes where it was stopped. Results go to a folder an experiment: tidy CSV, a Markdown
page with our figures beside the published ones, and PNG figures. In the order of the paper:

- `e1`: figures 1 and 2, unit balls and convergence. `e2`, `e3`: figures 3 and 4, more kernels and
  noisy kernels.
- `e4`: table I, the Delft data, by the protocol in `e4_protocol`. Why it differs: `e4_ablation`,
  `e4_hypotheses`, `e4_gp`.
- `e5`: table II, abnormal images. `e6`, `e7`: tables III and IV, Caltech-256. `e8`: table V, MNIST;
  all four by the protocol in `_deep`, on the features of `features`.
- `e9`: table VI and figure 5, faces. `e10`: tables VII and VIII, training times.
- `published`: what the paper printed. Data: `datasets`.

Beyond the paper: `e8_flowers` and `e9_joint` stand in for data that are not at hand; `e4_family`
and `local_and_tasks` try related methods, those of `family`. Pages are written from tables by
`pages`, and the overview by `findings`; what experiments share is in the modules with an
underscore.
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
