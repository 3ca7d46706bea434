"""What one cell of a table holds: a number, a date, a text, or nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import numpy as np

from kernull._typing import Array, Mask

#: Texts that stand for an empty cell, in lower case.
MISSING = frozenset(
    [
        "", "na", "n/a", "n.a.", "#n/a", "#na", "nan", "<na>", "nat", "null", "none", "nil", "?",
        "-", "--", "---", "\u2013", "\u2014", ".", "#div/0!", "#value!", "#ref!", "#num!", "#name?",
        "#null!",
    ]
)  # fmt: skip
#: Formats of dates besides ISO 8601, which is tried first.
DATE_FORMATS = (
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d.%m.%Y", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %H:%M",
    "%m/%d/%Y", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%d/%m/%Y", "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M", "%Y/%m/%d", "%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p",
    "%d.%m.%Y %H:%M:%S.%f", "%d.%m.%Y %H:%M:%S,%f", "%Y-%m-%d %H:%M:%S,%f", "%d.%m.%y %H:%M:%S",
    "%d.%m.%y %H:%M", "%d.%m.%y", "%d-%b-%Y %H:%M:%S", "%d-%b-%Y %H:%M", "%d-%b-%Y", "%d %b %Y",
    "%b %d, %Y %H:%M:%S", "%b %d, %Y %H:%M", "%b %d, %Y", "%d-%m-%Y %H:%M:%S", "%d-%m-%Y %H:%M",
    "%d-%m-%Y", "%H:%M:%S", "%H:%M:%S.%f", "%H:%M",
)  # fmt: skip

#: What stands between thousands and for nothing else: apostrophes and spaces, thin or unbroken.
_GAPS = " '\u2019\u00a0\u2009\u202f"
#: Numbers with a decimal mark, or with marks between thousands that can be nothing else: 1.076,88
#: with a comma, 1,076.88 with a point (not 470,885,697), 1 076 with either.
_COMMA = re.compile(rf"[+-]?(\d{{1,3}}([.{_GAPS}]\d{{3}})+|\d*),\d+([eE][+-]?\d+)?")
_POINT = re.compile(rf"[+-]?(\d{{1,3}}([,{_GAPS}]\d{{3}})+|\d*)\.\d+([eE][+-]?\d+)?")
_GROUPS = re.compile(rf"[+-]?\d{{1,3}}([{_GAPS}]\d{{3}})+")
#: What may be a decimal mark or one between thousands.
_UNCLEAR = re.compile(r"[+-]?\d{1,3}[.,]\d{3}")
_MINUS = "\u2212"
_NO_GAPS = str.maketrans("", "", _GAPS)
_WHOLE = re.compile(r"^([+-]?\d+)\.0+\Z")


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty: nothing, NaN, or a text such as ``NA``."""
    if cell is None:
        return True
    if isinstance(cell, float | np.floating):
        return bool(np.isnan(cell))
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    if isinstance(cell, int | np.integer | date):
        return str(cell) == "NaT"  # pandas' own missing date is a datetime
    return str(cell).strip().lower() in MISSING


def as_numbers(cells: Sequence[Any], decimal: str = ".") -> tuple[Array, Mask, Mask]:
    """Cells as numbers, NaN where there is none; masks of empty cells, and of all other such.

    ``decimal`` is the decimal mark of cells that are text. Marks between thousands are read where
    they can be nothing else: 1,076.88 beside a decimal point, 1.076,88 beside a comma, 1 076 and
    1'076; 1,076 and 1.076 alone are not guessed at. 94.7% is 94.7 where all cells have a %.

    Examples
    --------
    >>> values, missing, bad = as_numbers(["1,5", "", "x"], decimal=",")
    >>> values.tolist(), missing.tolist(), bad.tolist()
    ([1.5, nan, nan], [False, True, False], [False, False, True])
    >>> as_numbers(["950.10", "1,076.88", "1,076"])[0].tolist()
    [950.1, 1076.88, nan]
    >>> as_numbers(["94.7%", "-3.5 %"])[0].tolist()
    [94.7, -3.5]
    """
    n = len(cells)
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "biuf":
        values = cells.astype(np.float64)
    elif isinstance(cells, np.ndarray) and cells.dtype.kind == "m":
        values = cells / np.timedelta64(1, "s")
    elif isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        missing = np.isnat(cells)
        return np.full(n, np.nan), missing, ~missing
    else:
        try:
            if decimal == ",":
                raise ValueError
            values = np.fromiter(map(float, cells), np.float64, n)
        except (TypeError, ValueError, OverflowError):
            values = np.fromiter((_number(cell, decimal) for cell in cells), np.float64, n)
    finite = np.isfinite(values)
    missing = np.zeros(n, dtype=bool)
    for i in np.flatnonzero(~finite).tolist():
        missing[i] = is_missing(cells[i])
    bad = ~finite & ~missing
    if bad.any() and not finite.any():  # all with a %, and not a few among others
        texts = [
            "" if gap else str(cell).rstrip() for cell, gap in zip(cells, missing, strict=True)
        ]
        if all(text.endswith("%") for text in texts if text):
            return as_numbers([text.rstrip("% ") for text in texts], decimal)
    return np.where(finite, values, np.nan), missing, bad


def _number(cell: Any, decimal: str) -> float:
    comma = decimal == ","
    if not comma or not isinstance(cell, str):
        try:
            return float(cell)
        except OverflowError:
            return np.inf
        except (TypeError, ValueError):
            if not isinstance(cell, str):
                return np.nan
    text = cell.strip().replace(_MINUS, "-")
    if comma and _POINT.fullmatch(text):  # a mark between thousands, or a slip: never guess
        return np.nan
    if (_COMMA if comma else _POINT).fullmatch(text):
        text = text.replace("." if comma else ",", "").replace(",", ".").translate(_NO_GAPS)
    elif _GROUPS.fullmatch(text):
        text = text.translate(_NO_GAPS)
    try:
        return float(text)
    except ValueError:
        return np.nan


def decimal_marks(columns: Mapping[str, Sequence[Any]], otherwise: str = ",") -> dict[str, str]:
    """The decimal mark of each column of text, by most of its cells; none where no cell has any.

    Columns of cells such as 1,076 or 1.076, where the mark may be one between thousands, and those
    without any, go with most of the others; where these do not tell, a comma is ``otherwise``.

    Examples
    --------
    >>> decimal_marks({"a": ["1,5", "2,5", "1.5"], "b": ["1,076", "3"], "c": ["0.5"], "d": ["7"]})
    {'a': ',', 'b': ',', 'c': '.', 'd': ','}
    """
    clear, unclear = {}, set()
    for name, cells in columns.items():
        texts = [
            cell.strip().rstrip("% ").replace(_MINUS, "-")
            for cell in cells
            if isinstance(cell, str)
        ]
        commas = [text for text in texts if _COMMA.fullmatch(text)]
        points = [text for text in texts if _POINT.fullmatch(text)]
        mark = "," if len(commas) > len(points) else "."
        if not all(map(_UNCLEAR.fullmatch, commas + points)):
            clear[name] = mark
        elif commas or points:
            unclear.add(mark)
    if not clear and not unclear:
        return {}
    more = sum(1 if mark == "," else -1 for mark in clear.values())
    if not clear and "." in unclear:
        more = -1
    return dict.fromkeys(columns, "," if more > 0 else "." if more < 0 else otherwise) | clear


def as_text(cells: Sequence[Any]) -> list[str | None]:
    """Cells as text, None where they are empty; whole numbers are written without a point."""
    return [None if is_missing(cell) else _WHOLE.sub(r"\1", str(cell).strip()) for cell in cells]


def date_format(cells: Sequence[Any]) -> str | None:
    """The format in which most of these cells are dates: ``"iso"``, one of strptime, or None.

    Of several that read nine cells in ten, the one that reads most: 13/02/2025 tells the order of
    day and month for the whole column.

    Examples
    --------
    >>> date_format(["01/02/2025", "03/02/2025", "13/02/2025"])
    '%d/%m/%Y'
    """
    filled = [cell for cell in cells if not is_missing(cell)]
    best, most = None, np.ceil(0.9 * len(filled)) - 1
    for form in ("iso", *DATE_FORMATS) if filled else ():
        if not any(_date(cell, form) is not None for cell in filled[:20]):
            continue
        read = sum(_date(cell, form) is not None for cell in filled)
        if read == len(filled):
            return form
        if read > most:
            best, most = form, read
    return best


def as_dates(cells: Sequence[Any], form: str) -> Array:
    """Cells as dates (datetime64), NaT where they are none."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "M":
        return cells.astype("datetime64[s]")
    found = [_date(cell, form) for cell in cells]
    return np.array([np.datetime64("NaT") if f is None else f for f in found], "datetime64[s]")


def _date(cell: Any, form: str) -> datetime | None:
    if isinstance(cell, np.datetime64):
        return None if np.isnat(cell) else cell.astype("datetime64[s]").item()
    if isinstance(cell, datetime):
        return cell.replace(tzinfo=None)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, time):
        return datetime.combine(date(1900, 1, 1), cell)
    if is_missing(cell) or not isinstance(cell, str):
        return None
    text = cell.strip()
    if len(text) < 8 and ":" not in text:  # 2024 alone is a number
        return None
    try:
        if form == "iso":
            return None if text.isdigit() else datetime.fromisoformat(text).replace(tzinfo=None)
        return datetime.strptime(text, form)
    except ValueError:
        return None
