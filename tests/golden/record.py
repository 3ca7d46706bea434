"""Write the record: ``python -m tests.golden.record FOLDER``. Run once, by the code to keep."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import kernull
from tests.golden.cases import FILES, fitted, measured


def main(folder: str) -> None:
    home = Path(folder)
    (home / "format1").mkdir(parents=True, exist_ok=True)
    record = {}
    for name, (model, rows, options) in fitted().items():
        for key, values in measured(model, rows, options).items():
            record[f"{name}/{key}"] = np.asarray(values)
        if name in FILES:
            kernull.save(model, home / "format1" / f"{name}.kernull")
    np.savez_compressed(home / "record.npz", **record)
    print(len({key.split("/")[0] for key in record}), "models,", len(record), "arrays")


if __name__ == "__main__":
    main(sys.argv[1])
