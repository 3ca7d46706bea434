"""Write the tables of a small factory, as the guide on tables uses them.

    python examples/factory_table.py factory

makes a folder with

- ``normal.csv``: 2,000 parts that were found good, with time stamps, part numbers, machine and
  shift, twelve sensors (one of them dead), and 2% of the cells empty;
- ``new.csv``: 1,000 parts of the week after, of which 40 have a defect, with the inspector's
  verdict in the column ``verdict``; the second vibration sensor failed for 30 parts, and a new
  machine M5 came into use;
- ``new_german.csv``: the same with semicolons, decimal commas, German dates and Windows-1252;
- ``new.xlsx``: the same for Excel (left out without openpyxl);
- ``factory.toml`` and ``views.toml``: settings for ``kernull fit``.
"""

from __future__ import annotations

import csv
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

MACHINES = {"M1": 0.0, "M2": 0.8, "M3": -0.6, "M4": 0.3}
SENSORS = ["force", "power", "torque", "speed", "temp_in", "temp_out", "humidity", "vib_x",
           "vib_y", "vib_z", "noise_db", "sensor_7"]  # fmt: skip
DEFECTS = ("bearing", "leak", "belt", "mixed up")

SETTINGS = """\
# Settings of the factory, for: kernull fit normal.csv --config factory.toml -o factory.kernull
false_alarm_rate = 0.02
dates = "drop"       # "parts" would learn the hour of the day and the day of the week
missing = "impute"   # empty cells: filled in from the other columns

[kinds]
shift = "category"
"""

VIEWS = """\
# Views of the factory, for: kernull fit normal.csv --config views.toml -o views.kernull
[views]
drive = ["force", "power", "torque", "speed", "machine"]
climate = ["temp_*", "humidity", "shift"]
vibration = ["vib_*", "noise_db"]
"""


def parts(n: int, first: int, start: datetime, seed: int) -> list[dict[str, Any]]:
    """Good parts, one row each."""
    rng = np.random.default_rng(seed)
    machines = rng.choice(list(MACHINES), size=n, p=[0.4, 0.3, 0.2, 0.1])
    offset = np.array([MACHINES[m] for m in machines])
    load, wear, day = rng.normal(size=(3, n))
    noise = rng.normal(size=(len(SENSORS), n))
    times = [start + timedelta(seconds=200 * i) for i in range(n)]
    hour = np.array([t.hour + t.minute / 60 for t in times])
    warm = 3 * np.sin(2 * np.pi * (hour - 9) / 24) + day
    values = {
        "force": 120 + 15 * load + 8 * offset + 2 * noise[0],
        "power": 40 + 6 * load + 0.8 * noise[1],
        "torque": 65 + 9 * load - 4 * offset + 1.5 * noise[2],
        "speed": 1500 - 30 * load + 60 * offset + 8 * noise[3],
        "temp_in": 21 + warm + 0.4 * noise[4],
        "temp_out": 48 + 1.2 * warm + 2 * load + 0.6 * noise[5],
        "humidity": 45 - 2.5 * warm + 2 * noise[6],
        "vib_x": 2.2 + 0.5 * wear + 0.2 * load + 0.12 * noise[7],
        "vib_y": 3.1 + 0.7 * wear + 0.2 * load + 0.15 * noise[8],
        "vib_z": 1.4 + 0.3 * wear + 0.08 * noise[9],
        "noise_db": 71 + 1.6 * wear + 0.8 * load + 0.5 * noise[10],
        "sensor_7": np.zeros(n),
    }
    shifts = np.array(["night", "early", "late"])[((hour + 2) // 8 % 3).astype(int)]
    return [
        {"part": f"P{first + i:06d}", "serial": first + i, "time": times[i],
         "machine": str(machines[i]), "shift": str(shifts[i]),
         **{name: round(float(column[i]), 3) for name, column in values.items()}}
        for i in range(n)
    ]  # fmt: skip


def break_some(rows: list[dict[str, Any]], share: float, seed: int) -> None:
    """Give some rows a defect, and all of them a verdict."""
    rng = np.random.default_rng(seed)
    odd = set(rng.choice(len(rows), size=round(share * len(rows)), replace=False).tolist())
    for i, row in enumerate(rows):
        row["verdict"] = "bad" if i in odd else "good"
    for k, i in enumerate(sorted(odd)):
        row, kind = rows[i], DEFECTS[k % len(DEFECTS)]
        if kind == "bearing":
            row["vib_y"] = round(row["vib_y"] + rng.uniform(1.5, 4.0), 3)
        elif kind == "leak":
            row["temp_out"] = round(row["temp_out"] - rng.uniform(7, 12), 3)
        elif kind == "belt":
            row["power"] = round(row["power"] + rng.uniform(8, 14), 3)
        else:  # the values of another part
            other = rows[int(rng.integers(len(rows)))]
            row |= {name: other[name] for name in ("force", "vib_x", "temp_in")}


def punch_holes(rows: list[dict[str, Any]], share: float, seed: int) -> None:
    """Empty some cells of sensors and of the shift."""
    rng = np.random.default_rng(seed)
    for row in rows:
        for name in [*SENSORS[:-1], "shift"]:
            if rng.random() < share:
                row[name] = None


def write_csv(path: Path, rows: list[dict[str, Any]], german: bool = False) -> None:
    """Write rows as CSV, in the English or the German manner."""

    def cell(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.strftime("%d.%m.%Y %H:%M:%S") if german else value.isoformat(sep=" ")
        if german and isinstance(value, float):
            return str(value).replace(".", ",")
        return "" if value is None else value

    encoding = "cp1252" if german else "utf-8"
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=";" if german else ",")
        writer.writerow([*rows[0], *(["Prüfer"] if german else [])])
        for row in rows:
            writer.writerow([*map(cell, row.values()), *(["Jürgen"] if german else [])])


def write_excel(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as an Excel file, where that is possible."""
    try:
        from openpyxl import Workbook
    except ImportError:
        print(f"Left out {path}: it needs openpyxl (pip install openpyxl).")
        return
    book = Workbook(write_only=True)
    sheet = book.create_sheet("parts")
    sheet.append(list(rows[0]))
    for row in rows:
        sheet.append(list(row.values()))
    book.save(path)


def write_factory(folder: Path, excel: bool = True) -> None:
    """Write all files."""
    folder.mkdir(parents=True, exist_ok=True)
    normal = parts(2000, 1, datetime(2024, 3, 4), seed=0)
    punch_holes(normal, 0.02, seed=1)
    write_csv(folder / "normal.csv", normal)
    new = parts(1000, 2001, datetime(2024, 3, 11), seed=2)
    break_some(new, 0.04, seed=3)
    punch_holes(new, 0.02, seed=4)
    for row in new[500:530]:
        row["vib_y"] = None
    for row in new[700:720]:
        row["machine"] = "M5"
    write_csv(folder / "new.csv", new)
    write_csv(folder / "new_german.csv", new, german=True)
    if excel:
        write_excel(folder / "new.xlsx", new)
    (folder / "factory.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "views.toml").write_text(VIEWS, encoding="utf-8")


if __name__ == "__main__":
    write_factory(Path(sys.argv[1] if len(sys.argv) > 1 else "factory"))
