"""SECURITY.md states the limits that the code has."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from kernull.files import codec
from kernull.files import container as files
from kernull.tables import excel_files

TEXT = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip(): cells[1]
    for line in TEXT.splitlines()
    if len(cells := line.strip("| ").split("|")) >= 2
}

STATED = {
    "model file": [files.MAX_BYTES],
    "header of a model file": [files.MAX_HEADER],
    "values in a model file, arrays as one each": [files.MAX_VALUES],
    "arrays in a model file": [files.MAX_TENSORS],
    "arrays of a model in memory": [codec.MAX_GROWTH, codec.SPARE],
    "depth of nested values": [files.MAX_DEPTH],
    "tasks in a model file": [codec.MAX_PAIRS],
    "what a spreadsheet unpacks to": [excel_files.MAX_CONTENT, excel_files.MAX_RATIO],
    "memory for reading a spreadsheet": [excel_files.MEMORY, excel_files.MEMORY_PER_BYTE],
    "processor for reading a spreadsheet": [excel_files.SECONDS, excel_files.BYTES_PER_SECOND],
}


@pytest.mark.parametrize("what", STATED)
def test_limits_are_stated_as_they_are(what):
    numbers = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", ROWS[what])]
    assert numbers[: len(STATED[what])] == STATED[what]


def test_places_to_raise_a_limit_exist():
    for name in re.findall(r"`(kernull\.[\w.]+\.[A-Z_]+)`", TEXT):
        module, _, constant = name.rpartition(".")
        assert hasattr(import_module(module), constant), name
