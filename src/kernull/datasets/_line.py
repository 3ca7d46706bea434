"""A production line that is made up: three groups of sensors and a camera, and some faults."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: What is measured of every part, by the instrument that measures it.
VIEWS = {
    "drive": ("force", "power", "torque", "speed"),
    "heat": ("temp_in", "temp_out", "coolant"),
    "vibration": ("vib_x", "vib_y", "vib_z", "noise_db"),
    "camera": ("light", "contrast", "edges", "mirror"),
}
FAULTS = ("bearing", "clogged filter", "slipping belt", "scratch")
#: Pixels of a side of the camera's picture.
SIDE = 24


# eq=False: comparing arrays field by field has no single truth value.
@dataclass(frozen=True, eq=False)
class LineData:
    """Parts of a production line, one row each.

    Attributes
    ----------
    good : ndarray of shape (n_good, 15)
        Parts that passed inspection: what there is to learn from.
    new : ndarray of shape (n_new, 15)
        The parts of the next day.
    verdict : ndarray of shape (n_new,) of str
        The result of the inspection: ``"ok"``, or what is wrong.
    columns : tuple of str
        Names of the columns.
    views : dict of str to list of str
        The columns of each instrument.
    pictures : ndarray of shape (n_new, 24, 24)
        What the camera saw of the new parts; its columns are computed from these.
    """

    good: NDArray[np.float64]
    new: NDArray[np.float64]
    verdict: NDArray[np.str_]
    columns: tuple[str, ...]
    views: dict[str, list[str]]
    pictures: NDArray[np.float64]

    @property
    def slices(self) -> dict[str, slice]:
        """The columns of each instrument by position, for arrays."""
        places = {view: [self.columns.index(name) for name in n] for view, n in self.views.items()}
        return {view: slice(at[0], at[-1] + 1) for view, at in places.items()}

    @property
    def parts(self) -> list[str]:
        """Numbers of the new parts; those of the good ones come before."""
        return [f"P{len(self.good) + i + 1:04d}" for i in range(len(self.new))]

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write ``good.csv``, ``new.csv`` (with the inspector's finding) and ``views.toml``.

        The folder is made if it is not there, and returned.
        """
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        good = [[f"P{i + 1:04d}", *row] for i, row in enumerate(self.good.tolist())]
        new = [
            [part, *row, verdict]
            for part, row, verdict in zip(self.parts, self.new.tolist(), self.verdict, strict=True)
        ]
        head = ["part", *self.columns]
        for name, rows in (("good", [head, *good]), ("new", [[*head, "verdict"], *new])):
            with (out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)
        lines = [f"{view} = {list(names)}".replace("'", '"') for view, names in self.views.items()]
        (out / "views.toml").write_text("\n".join(["[views]", *lines, ""]), encoding="utf-8")
        return out


def make_line(n_good: int = 400, n_new: int = 300, *, random_state: int = 0) -> LineData:
    """Make up a day of a production line, with 8% faulty parts.

    Load, wear, room temperature and lamp vary from part to part and move many columns at once, so
    that most faults are no single value out of range, but values that do not belong together:

    - ``bearing``: one vibration sensor shakes more than the others say it should;
    - ``clogged filter``: little coolant flows, and the part leaves warmer;
    - ``slipping belt``: the motor draws its power, and less of it arrives as torque;
    - ``scratch``: a dark line across the picture.

    Parameters
    ----------
    n_good, n_new : int
        Number of good parts to learn from, and of new parts.
    random_state : int
        Seed.

    Examples
    --------
    >>> from kernull import MultiKernelFisherNull
    >>> line = make_line()
    >>> model = MultiKernelFisherNull(views=line.slices).fit(line.good)
    >>> flagged = model.predict(line.new) == -1
    >>> bool(flagged[line.verdict != "ok"].mean() > 0.6)
    True
    """
    rng = np.random.default_rng(random_state)
    good, _ = _parts(rng, np.full(n_good, "ok"))
    fault = np.full(n_new, "ok", dtype="<U16")
    odd = rng.choice(n_new, size=round(0.08 * n_new), replace=False)
    fault[odd] = np.resize(FAULTS, len(odd))
    new, pictures = _parts(rng, fault)
    columns = tuple(name for names in VIEWS.values() for name in names)
    views = {view: list(names) for view, names in VIEWS.items()}
    return LineData(good, new, fault, columns, views, pictures)


def _parts(
    rng: np.random.Generator, fault: NDArray[np.str_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of parts with these faults, and their pictures."""
    n = len(fault)
    load, wear, room = rng.uniform(-1.7, 1.7, size=(3, n))
    noise = rng.normal(size=(11, n))
    how_bad = rng.uniform(0.3, 1.2, size=n)
    bearing, filters, belt = (how_bad * (fault == kind) for kind in FAULTS[:3])
    pictures = _pictures(rng, how_bad * (fault == "scratch"))
    table = [
        # drive: all four follow the load
        120 + 15 * load + 2.0 * noise[0],
        40 + 6 * load + 0.8 * noise[1],
        65 + 9 * load + 1.5 * noise[2] - 11 * belt,
        1500 - 30 * load + 8 * noise[3],
        # heat: the room warms what comes in, the load what goes out, coolant takes some away
        21 + 2.5 * room + 0.4 * noise[4],
        48 + 3 * room + 2 * load + 0.6 * noise[5] + 3 * filters,
        9 + 0.5 * load + 0.15 * noise[6] - 0.9 * filters,
        # vibration: wear shakes everything, one bearing shakes one sensor
        2.2 + 0.5 * wear + 0.2 * load + 0.12 * noise[7],
        3.1 + 0.7 * wear + 0.2 * load + 0.15 * noise[8] + 1.2 * bearing,
        1.4 + 0.3 * wear + 0.08 * noise[9],
        71 + 1.6 * wear + 0.8 * load + 0.5 * noise[10],
        *_features(pictures),
    ]
    return np.column_stack(table).round(3), pictures


def _pictures(rng: np.random.Generator, scratch: NDArray[np.float64]) -> NDArray[np.float64]:
    """A ring seen from above under a lamp, one picture per part; grey from 0 to 1."""
    n = len(scratch)
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    left, up, lamp, turn, off = rng.uniform(-1.7, 1.7, size=(5, n, 1, 1))
    apart = np.hypot(x - 0.3 * left, y - 0.3 * up)
    ring = 1 / (1 + np.exp(2 * (apart - 9.5))) - 1 / (1 + np.exp(2 * (apart - 3.5)))
    # Which pixels lie within one of a line across the ring.
    line = np.abs(x * np.cos(turn) + y * np.sin(turn) - 2 * off) < 1
    picture = 0.15 + (0.6 + 0.04 * lamp) * ring * (1 - 0.45 * scratch[:, None, None] * line)
    picture = picture + 0.02 * rng.normal(size=picture.shape)
    return np.asarray(picture.clip(0, 1).round(3))


def _features(pictures: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """What a line's computer may keep of a picture, in percent: four simple numbers.

    Mean and spread of the grey, steps between neighbouring pixels, difference from the picture
    turned upside down.
    """
    turned = pictures[:, ::-1, ::-1]
    steps = np.abs(np.diff(pictures, axis=1)).mean(axis=(1, 2))
    steps = steps + np.abs(np.diff(pictures, axis=2)).mean(axis=(1, 2))
    return [
        100 * pictures.mean(axis=(1, 2)),
        100 * pictures.std(axis=(1, 2)),
        100 * steps,
        100 * np.abs(pictures - turned).mean(axis=(1, 2)),
    ]
