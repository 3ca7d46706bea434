"""SECURITY.md states the limits that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernull.io.files import MAX_TASKS
from kernull.persistence import format as files
from kernull.persistence import values
from kernull.safety import archives, graphs, pictures
from kernull.views.images import preprocessing

TEXT = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip(): cells[1]
    for line in TEXT.splitlines()
    if len(cells := line.strip("| ").split("|")) >= 2
}

STATED = {
    "model file": [files.MAX_BYTES],
    "header of a model file": [files.MAX_HEADER],
    "values in a model file, arrays as one each": [values.MAX_VALUES],
    "arrays in a model file": [files.MAX_TENSORS],
    "text in a model file, as padded in memory": [values.MAX_TEXT],
    "depth of nested values": [values.MAX_DEPTH],
    "tasks in a model file": [MAX_TASKS],
    "names of objects and fields in a model file": [values.MAX_NAME],
    "image file": [pictures.MAX_FILE_BYTES],
    "image": [pictures.MAX_PIXELS, pictures.LARGE_PIXELS],
    "input of a network": [preprocessing.MAX_SIDE],
    "ONNX file": [graphs.MAX_FILE_BYTES, graphs.MAX_NODES, graphs.MAX_DEPTH],
    "loops in an ONNX file": [graphs.MAX_TURNS],
    "one array of a network for one image": [graphs.MAX_ARRAY_BYTES],
    "memory of all networks of a process (CPU)": [graphs.MAX_MEMORY],
    "time of a network": [graphs.MAX_SECONDS],
    "what an archive or NPZ file unpacks to": [archives.MAX_UNPACKED, archives.MAX_RATIO],
}


@pytest.mark.parametrize("what", STATED)
def test_limits_are_stated_as_they_are(what):
    numbers = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", ROWS[what])]
    assert numbers[: len(STATED[what])] == STATED[what]


def test_kinds_of_images_are_stated():
    assert tuple(ROWS["kinds of images"].strip().split(", ")) == pictures.FORMATS


def test_places_to_raise_a_limit_exist():
    for name in re.findall(r"`kernull\.safety\.(\w+\.\w+)`", TEXT):
        module, constant = name.split(".")
        assert hasattr(
            {"graphs": graphs, "archives": archives, "pictures": pictures}[module], constant
        )
