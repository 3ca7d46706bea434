"""OULU-NPU: the lists of its fourth protocol, and face crops of its videos."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.datasets._home import DatasetNotFound, data_home
from kernull.errors import MissingDependencyError

__all__ = ["OULU_PARTS", "OuluProtocol", "OuluVideo", "load_oulu_npu", "oulu_faces"]

OULU_SOURCE = "https://sites.google.com/site/oulunpudatabase (licence agreement needed)"
OULU_PARTS = ("Train", "Dev", "Test")
ENROLMENT_SESSIONS = (1, 2)
IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp")
#: Side of a face crop in distances between the eyes, and the height of the eyes in it.
FACE_SIDE, EYE_HEIGHT = 2.4, 0.35


@dataclass(frozen=True, order=True)
class OuluVideo:
    """One video: ``phone_session_subject_file``.

    Attributes
    ----------
    name : str
        For example ``"1_1_01_1"``.
    part : {"Train", "Dev", "Test"}
        The folder, ``<part>_files``.
    phone, session, subject, file : int
        The four numbers of its name. File 1 is bona fide, 2 and 3 are prints of two printers, 4
        and 5 replays on two displays.
    """

    name: str
    part: str
    phone: int
    session: int
    subject: int
    file: int

    @property
    def bona_fide(self) -> bool:
        """Whether it shows the person."""
        return self.file == 1

    @property
    def instrument(self) -> str:
        """The attack instrument; empty for bona fide videos."""
        names = {1: "", 2: "printer 1", 3: "printer 2", 4: "display 1", 5: "display 2"}
        return names[self.file]


@dataclass(frozen=True, eq=False)
class OuluProtocol:
    """One of the six turns of protocol IV.

    Attributes
    ----------
    phone : int
        The phone that is left out of training, 1 to 6.
    train, dev, test : tuple of OuluVideo
        The published lists.
    root : pathlib.Path
        Folder of the data set.
    """

    phone: int
    train: tuple[OuluVideo, ...]
    dev: tuple[OuluVideo, ...]
    test: tuple[OuluVideo, ...]
    root: Path

    def listed(self, part: str) -> tuple[OuluVideo, ...]:
        """The list of a part."""
        return {"Train": self.train, "Dev": self.dev, "Test": self.test}[part]

    def enrolment(self, part: str, subject: int) -> tuple[OuluVideo, ...]:
        """Bona fide videos that a model of a subject may learn from.

        The lists name no videos of test subjects to learn from. Those taken here have the
        conditions of the training list: sessions 1 and 2, and every phone but the one left out.
        """
        folder = self.root / f"{part}_files"
        names = {_stem(entry) for entry in folder.iterdir()} if folder.is_dir() else set()
        videos = [parse_video(name, part) for name in sorted(names) if _is_name(name)]
        return tuple(
            v
            for v in videos
            if v.bona_fide
            and v.subject == subject
            and v.session in ENROLMENT_SESSIONS
            and v.phone != self.phone
        )


def load_oulu_npu(phone: int, *, home: str | os.PathLike[str] | None = None) -> OuluProtocol:
    """The lists of protocol IV for one phone.

    Published layout, below ``oulu-npu/``: ``Protocols/Protocol_4/{Train,Dev,Test}_{1..6}.txt``
    with lines such as ``+1,1_1_01_1``, and ``{Train,Dev,Test}_files/1_1_01_1.avi`` with the
    positions of the eyes in each frame in ``1_1_01_1.txt``. Face crops made beforehand may lie in
    place of a video: ``1_1_01_1.png``, or a folder ``1_1_01_1/`` of images.

    Parameters
    ----------
    phone : int
        1 to 6.
    home : path-like, optional
        Folder that holds ``oulu-npu/`` (``Oulu_NPU/`` is known too); by default
        :func:`data_home`.

    Returns
    -------
    OuluProtocol

    Raises
    ------
    DatasetNotFound
        If a list is not there.
    """
    if phone not in range(1, 7):
        raise ValueError(f"phone: got {phone!r}; expected 1 to 6.")
    folder = data_home() if home is None else Path(home).expanduser()
    names = ("oulu-npu", "OULU-NPU", "Oulu_NPU")
    root = next((folder / n for n in names if (folder / n).is_dir()), folder / names[0])
    lists = []
    for part in OULU_PARTS:
        path = root / "Protocols" / "Protocol_4" / f"{part}_{phone}.txt"
        if not path.is_file():
            raise DatasetNotFound(
                f"OULU-NPU not found: looked for {str(path)!r}. Get it from {OULU_SOURCE}, unpack "
                f"it in {str(root)!r}, or set KERNULL_DATA to the folder that holds 'oulu-npu'."
            )
        lists.append(_read_list(path, part))
    train, dev, test = lists
    return OuluProtocol(phone, train, dev, test, root)


def parse_video(name: str, part: str) -> OuluVideo:
    """A video by its name."""
    if not _is_name(name):
        raise ValueError(f"name: got {name!r}; expected phone_session_subject_file, as 1_1_01_1.")
    phone, session, subject, file = (int(number) for number in name.split("_"))
    return OuluVideo(name, part, phone, session, subject, file)


def oulu_faces(video: OuluVideo, root: Path, count: int = 5) -> list[Any]:
    """Face images of a video, evenly spread over it.

    Parameters
    ----------
    video : OuluVideo
    root : path
        Folder of the data set.
    count : int
        Frames at most.

    Returns
    -------
    list of paths (crops made beforehand) or arrays of shape (H, W, 3), uint8
    """
    folder = root / f"{video.part}_files"
    ready = folder / video.name
    if ready.is_dir():
        files = sorted(file for file in ready.iterdir() if file.suffix.lower() in IMAGE_ENDINGS)
        return [files[i] for i in _spread(len(files), count)]
    for ending in IMAGE_ENDINGS:
        if (single := folder / f"{video.name}{ending}").is_file():
            return [single]
    movie = folder / f"{video.name}.avi"
    if not movie.is_file():
        raise DatasetNotFound(
            f"OULU-NPU: neither the video {str(movie)!r} nor face crops in {str(ready)!r} are "
            "there; the protocol lists it."
        )
    return _frames(movie, count)


def _frames(movie: Path, count: int) -> list[NDArray[np.uint8]]:
    try:
        cv2: Any = import_module("cv2")
    except ImportError:
        raise MissingDependencyError(
            f"{str(movie)!r} is a video; reading it needs OpenCV: pip install "
            "opencv-python-headless. Or put face crops into a folder of the video's name."
        ) from None
    eyes = read_eyes(movie.with_suffix(".txt"))
    numbers = sorted(eyes)
    wanted = {numbers[i] for i in _spread(len(numbers), count)}
    capture, out = cv2.VideoCapture(str(movie)), []
    number = 0
    while True:
        found, frame = capture.read()
        if not found:
            break
        if number in wanted:
            out.append(crop_face(frame[..., ::-1], eyes[number]))  # OpenCV gives BGR
        number += 1
    capture.release()
    return out


def read_eyes(path: Path) -> dict[int, tuple[float, float, float, float]]:
    """Positions of the eyes by frame: lines ``frame,x1,y1,x2,y2`` (commas or blanks)."""
    out = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = re.split(r"[,\s]+", line.strip())
        if len(fields) < 5:
            continue
        x1, y1, x2, y2 = (float(field) for field in fields[1:5])
        if (x1, y1) != (x2, y2):  # zeros where no face was found
            out[int(fields[0])] = (x1, y1, x2, y2)
    return out


def crop_face(frame: Any, eyes: tuple[float, float, float, float]) -> NDArray[np.uint8]:
    """The square around a face whose eyes are given, upright as the frame is."""
    x1, y1, x2, y2 = eyes
    side = FACE_SIDE * float(np.hypot(x2 - x1, y2 - y1))
    left, top = (x1 + x2) / 2 - side / 2, (y1 + y2) / 2 - EYE_HEIGHT * side
    rows = np.clip(np.arange(round(top), round(top + side)), 0, frame.shape[0] - 1)
    columns = np.clip(np.arange(round(left), round(left + side)), 0, frame.shape[1] - 1)
    return np.ascontiguousarray(frame[np.ix_(rows, columns)])


def _read_list(path: Path, part: str) -> tuple[OuluVideo, ...]:
    out = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        label, _, name = line.strip().partition(",")
        if label not in ("+1", "1", "-1", "-2") or not _is_name(name):
            raise ValueError(
                f"{str(path)!r}, line {number}: got {line!r}; expected a label (+1, -1 or -2), a "
                "comma and phone_session_subject_file, as in '+1,1_1_01_1'."
            )
        video = parse_video(name, part)
        if video.bona_fide != (label in ("+1", "1")):
            raise ValueError(
                f"{str(path)!r}, line {number}: the label {label} does not go with the name "
                f"{name} (file 1 is bona fide, 2 to 5 are attacks)."
            )
        out.append(video)
    return tuple(out)


def _is_name(name: str) -> bool:
    return re.fullmatch(r"[1-6]_[1-3]_\d{2}_[1-5]", name) is not None


def _stem(entry: Path) -> str:
    return entry.name if entry.is_dir() else entry.stem


def _spread(n: int, count: int) -> Sequence[int]:
    """At most ``count`` of n places, evenly spread."""
    return [int(i) for i in np.unique(np.linspace(0, n - 1, min(n, count)).round())] if n else []
