"""Write the tables of a small production line, as README, tutorial and demo use them.

    python examples/line.py line

makes a folder with

- ``good.csv``: 400 parts that were found good: a part number, and 15 measurements by three groups
  of sensors and a camera;
- ``new.csv``: the 300 parts of the next day, of which 24 have a fault. The column ``verdict`` says
  what the inspector found afterwards: a worn bearing, a clogged filter, a slipping belt, a scratch;
- ``views.toml``: which column belongs to which instrument.

How the numbers are made up is a page of NumPy: `kernull.datasets.make_line`
(``src/kernull/datasets/_line.py``). ``examples/demo.py`` writes the same tables.
"""

from __future__ import annotations

import sys

from kernull.datasets import make_line

if __name__ == "__main__":
    folder = make_line().write(sys.argv[1] if len(sys.argv) > 1 else "line")
    print(f"Wrote {folder}/good.csv, {folder}/new.csv and {folder}/views.toml.")
