"""What each column of a table is: a number, a category, a date, or nothing to learn from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Annotated

import numpy as np

from kernull._fields import OneOf, Range, stored
from kernull._text import listed
from kernull._typing import Array, Mask
from kernull.errors import TableError, warn
from kernull.tables.cells import as_numbers, as_text, date_format, is_missing
from kernull.tables.table import Table

#: All kinds, and those that something is learned from (dates: on request).
KINDS = ("number", "category", "date", "identifier", "constant", "left out")
USED = ("number", "category", "date")
#: Why a column without any value is a constant.
EMPTY = "always empty"
#: More values than this in one column of text is a name, not a category.
MAX_CATEGORIES = 50
#: With fewer rows, nothing is called a running number.
LEAST_ROWS = 20
#: Numbers that never turn back are a clock or a meter from so many different values on.
LEAST_VALUES = 10
#: Whole numbers of so few values may be codes: the summary points to them.
FEW_VALUES = 10
#: Cells that decide between numbers, dates and text.
SAMPLE_CELLS = 1000
#: Names of columns of whole numbers that name their row, if nearly all of them differ: "part no",
#: but not "no. of pores" or "batch weight".
_ID_NAME = re.compile(
    r"(?:^|[\W_])(?:id|ids|serial|sn|ser|barcode|uid|uuid|no|nr|num|number|order|lot|batch|index)"
    r"[\W_]*$|^(?:id|uid|uuid)[\W_]|serial[\W_]*(?:id|no|nr|num)",
    re.IGNORECASE,
)
#: Names of columns that name who or what several rows are of: "subject_id", "Machine no", "MRN".
_WHOSE_NAME = re.compile(
    r"(?:^|[\W_])(?:id|uid|uuid|mrn)[\W_]*$|(?:subject|patient|person|participant|customer|user|client|"
    r"operator|employee|animal|machine|device|engine|unit|vehicle)[\W_]*(?:id|no|nr|num|number)[\W_]*$",
    re.IGNORECASE,
)
#: Whole numbers of n rows that all differ, in a range where chance makes two of them equal with a
#: probability of 1 - exp(-7): n^2 / 2 / range at least.
PAIRS = 7.0
#: The value of a category that stands for its rare ones.
OTHERS = "other values"
#: Names of columns of times.
_TIME_NAME = re.compile(
    r"time|stamp|epoch|date|(?:^|[\W_])(?:t|ts|utc|created|updated)(?:$|[\W_])", re.IGNORECASE
)
#: Numbers as a person writes them: with a unit behind, or marks between thousands.
_WITH_UNIT = re.compile(r"[+-]?\d[\d.,]*\s*[^\d\s.,;:/+-][^\d\s]{0,5}|[\u20ac$\u00a3]\s*\d[\d.,]*")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|[+-]?\d{1,3}(?:,\d{3})*\.\d+")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*(?:,\d+)?")


@stored
@dataclass(frozen=True)
class Column:
    """One column as it was decided at fit."""

    name: str
    kind: Annotated[str, OneOf(*KINDS)]
    why: str = ""  #: The reason, in words.
    missing: Annotated[int, Range(low=0)] = 0  #: Empty cells among the training rows.
    values: tuple[str, ...] = ()  #: Values that were seen: of categories, and numbers if few.
    #: Of a date: how it is written; of numbers: "whole" if all are, else "number".
    form: str | None = None
    counts: tuple[int, ...] = ()  #: How many training rows have each of ``values``.

    @property
    def is_text(self) -> bool:
        """Whether cells are read as texts, one of ``values`` or another one."""
        return self.kind == "category" or (self.kind == "constant" and self.form is None)

    def never_seen(self, value: str, n: int) -> tuple[str, str]:
        """A value never seen in n rows as it is shown, and what normal rows have, in words.

        Examples
        --------
        >>> site = Column("site", "category", values=("Brno", "Lyon"), counts=(20, 60))
        >>> site.never_seen("Praha", 80)
        ("'Praha'", "this was never seen; the commonest is 'Lyon', in 60 of 80 normal rows")
        >>> site.never_seen("brno", 80)[1].split("; ")[1]
        "'Brno' differs in case only"
        """
        shown, new = repr if self.is_text else str, "this was never seen"
        if not self.values:
            return shown(value), f"{new}; empty in {n:,} of {n:,} normal rows"
        at = self.counts.index(max(self.counts))
        rows = f"in {self.counts[at]:,} of {sum(self.counts):,} normal rows"
        alike = [v for v in self.values if self.is_text and v.casefold() == value.casefold()]
        more = f"; {alike[0]!r} differs in case only" if alike else ""
        return shown(value), f"{new}{more}; the commonest is {shown(self.values[at])}, {rows}"


def match_columns(patterns: Sequence[str], names: Sequence[str], argument: str) -> list[str]:
    """Columns that match any of the patterns, in the order of the table; each must match one.

    The name of a column matches that column alone, brackets and stars included.

    Examples
    --------
    >>> match_columns(["v*", "a[1]"], ["a[1]", "v1", "v2", "a1"], "kinds")
    ['a[1]', 'v1', 'v2']
    """
    known, matched = set(names), set()
    for pattern in patterns:
        hits = [pattern] if pattern in known else [n for n in names if fnmatchcase(n, pattern)]
        if not hits:
            raise ValueError(
                f"{argument}: no column matches {pattern!r}{did_you_mean(pattern, names)}; the "
                f"table has {listed(names)}."
            )
        matched.update(hits)
    return [name for name in names if name in matched]


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """The name that is nearest to one that is not there, in words; empty where none is near.

    Examples
    --------
    >>> did_you_mean("clas", ["width", "Class"]), did_you_mean("clas", ["width"])
    (" (did you mean 'Class'?)", '')
    """
    lower = {known.lower(): known for known in reversed(names)}
    close = get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f" (did you mean {lower[close[0]]!r}?)" if close else ""


def resembling(lacking: Sequence[str], names: Sequence[str]) -> str:
    """What the table has instead: columns of similar names, or the first ones."""
    lower = {name.lower(): name for name in reversed(names)}
    close = {
        lower[match]
        for name in lacking[:20]
        for match in get_close_matches(name.lower(), lower, n=1, cutoff=0.8)
    }
    more = ": names differ in case" if {n.lower() for n in lacking} & set(lower) else ""
    return f"; it has {listed([name for name in names if name in close] or names)}{more}"


def decide_kinds(
    table: Table, names: Sequence[str], asked: Mapping[str, str], max_categories: int
) -> list[Column]:
    """The kind of each of these columns; what the user ``asked`` for is taken as it is."""
    bad: list[tuple[str, Mask]] = []
    columns = [_decide(table, name, asked.get(name), max_categories, bad) for name in names]
    if bad:
        raise table.error(bad)
    return columns


def _decide(
    table: Table, name: str, asked: str | None, most: int, bad_cells: list[tuple[str, Mask]]
) -> Column:
    if asked in ("identifier", "constant", "left out"):
        return Column(name, "left out" if asked != "identifier" else asked, "as asked")
    if asked == "category":
        return _text_column(table, name, most, asked)
    if asked == "date":
        form = date_format(table.columns[name][:SAMPLE_CELLS])
        if form is None:
            raise TableError(f"{table.source}: column {name!r}: its cells are not dates.")
        return Column(name, "date", "as asked", form=form)
    sample = table.columns[name][:SAMPLE_CELLS]
    _, empty, bad = as_numbers(sample, table.mark(name))
    filled = len(empty) - int(empty.sum())
    text = 2 * int(bad.sum()) >= filled or _is_code(sample) or _are_booleans(sample)
    if asked != "number" and (filled == 0 or text):
        return _text_column(table, name, most, None)
    values, missing, bad = table.parse(name)
    if bad.any():  # told together with those of the other columns
        bad_cells.append((name, bad))
    why = "as asked" if asked else _not_a_measure(name, values[~missing])
    kind, known = "number", values[~missing]
    if why.startswith(("running", WHOSE)):
        kind = "identifier"
    elif why.startswith("always"):
        kind = "constant"
    elif not asked and len(known) < min(LEAST_VALUES, len(values) / 2):
        kind, why = "constant", f"empty in {int(missing.sum()):,} of {len(values):,} rows"
    different, counts = np.unique(known, return_counts=True)
    few = kind != "identifier" and len(different) <= FEW_VALUES
    return Column(
        name, kind, why, int(missing.sum()), tuple(f"{v:.9g}" for v in different) if few else (),
        "whole" if (known == np.round(known)).all() else "number",
        tuple(counts.tolist()) if few else (),
    )  # fmt: skip


def _not_a_measure(name: str, values: Array) -> str:
    """Why a column of numbers says nothing about its row, or may be codes; empty otherwise."""
    if len(values) == 0 or (values == values[0]).all():
        return EMPTY if len(values) == 0 else f"always {values[0]:g}"
    if len(values) < LEAST_ROWS:
        return ""
    steps = np.diff(values)
    never_turns = bool((steps >= 0).all() or (steps <= 0).all())
    distinct = len(np.unique(values))
    whole = bool((values == np.round(values)).all())
    if whole and distinct == len(values) and np.ptp(values) <= len(values) ** 2 / 2 / PAIRS:
        return "running number"
    if distinct > 0.5 * len(values) and _is_epoch(
        values, 0.1 if never_turns or _TIME_NAME.search(name) else 0.01 * whole
    ):
        return "running: seconds since 1970"
    if whole and distinct > 0.9 * len(values) and _ID_NAME.search(name):
        return "running number, by its name"
    if whole and distinct > FEW_VALUES and _WHOSE_NAME.search(name):
        return f"{WHOSE}, {distinct:,} values"
    if distinct >= LEAST_VALUES and never_turns:
        return _in_order(values)
    return f"{distinct} whole numbers" if whole and 2 < distinct <= FEW_VALUES else ""


#: Why a column of repeated numbers or texts is taken for an identifier.
WHOSE = "a name that repeats"
#: Why a column in order is taken for a measure, or for a clock though its steps are uneven.
SORTED = "in order: sorted by it, it seems"
UNEVEN = "running in uneven steps: never turns back, like a clock or a meter"


def warn_of_doubts(
    source: str, columns: Sequence[Column], numbers: Mapping[str, Array], most: int
) -> None:
    """Warn where a column may be taken for what it is not, and say how to overrule that.

    Of identifiers of people and machines, of numbers in order (a clock, or a measure that the rows
    are sorted by), of texts of many values, of -999 among ``numbers``, and of numbers as headers.
    """
    doubts = []
    never = "never turns back from row to row"
    for why, what, kind in (
        (WHOSE, "names who or what several rows are of: left out. group= leaves "
         "rows of one out together; if it is a category or a measure", "category"),
        (UNEVEN, f"{never}: left out as a clock or a meter; if the rows are sorted by it",
         "number"),
        (SORTED, f"{never}: a measure the rows are sorted by, it seems; if it is a clock",
         "identifier"),
    ):  # fmt: skip
        if names := [column.name for column in columns if column.why.startswith(why)]:
            todo = f"say kinds={{{names[0]!r}: {kind!r}}}"
            doubts.append(f"{listed(names)} {what}, {todo}")
    if many := [column.name for column in columns if column.why.endswith(" categories")]:
        what = f"more than {most} different texts in {listed(many)}: left out, as a name would be"
        todo = f"say kinds={{{many[0]!r}: 'category'}}, which makes rare ones one value"
        doubts.append(f"{what}. If they are categories, {todo} (or raise max_categories)")
    for name, values in numbers.items():
        if code := _stands_for_nothing(values[np.isfinite(values)]):
            what = f"{name!r} is {code} in many rows, and far from that in all others"
            doubts.append(f"{what}. If that stands for an empty cell, say empty=['{code}']")
    if _numbers_as_names([column.name for column in columns]):
        doubts.append("columns are called by numbers: the first row may be no header")
    for text in doubts:
        warn(f"{source}: {text}.", UserWarning, stacklevel=3)


def _numbers_as_names(names: Sequence[str]) -> bool:
    """Whether all names are numbers, and not those that pandas gives: 0, 1, 2 and so on.

    Examples
    --------
    >>> [_numbers_as_names(names) for names in (["5.1", "3"], ["0", "1"], ["a", "3"])]
    [True, False, False]
    """
    values = as_numbers(list(names))[0]
    return bool(np.isfinite(values).all()) and not any(
        np.array_equal(values, np.arange(len(names)) + first) for first in (0, 1)
    )


def _stands_for_nothing(values: Array) -> str:
    """A number of nines, such as -999, that is the end of a column and far from the rest of it.

    In one of a hundred rows and in five, farther than ten ranges of the middle half; else empty.

    Examples
    --------
    >>> _stands_for_nothing(np.r_[np.arange(100.0), [-9999.0] * 5])
    '-9999'
    """
    for end in (values.min(), values.max()):
        code, rest = f"{end:.9g}", values[values != end]
        often = len(values) - len(rest) >= max(5, 0.01 * len(values))
        if often and len(rest) and re.fullmatch("-?9{3,9}", code):
            middle = float(np.subtract(*np.quantile(rest, [0.75, 0.25])))
            if 0 < 10 * middle < np.abs(rest - end).min():
                return code
    return ""


def _in_order(values: Array) -> str:
    """What numbers are that never turn back from row to row: a clock, or a sorted measure.

    By chance no column is in order: once in LEAST_VALUES! / 2 tables. New rows of a clock, a meter
    or a lot number lie beyond all training rows, and every one of them would be flagged; a measure
    that the table is sorted by must stay. The rule:

    1. *Even steps* (four in five within a factor of two of their median; pauses do no harm): a
       clock or a counter, left out.
    2. *Steps that grow towards both ends*, as those of a sorted sample do, whose values are rare
       there: a number. The i-th step is multiplied with the i-th from the end, which takes out
       what only grows (the steps of a skew sample); these products fall from the ends to the
       middle, by a rank correlation below -0.5 and 2.5 standard errors.
    3. Otherwise nobody can tell: arrival times are like a sorted uniform sample, and lots of
       several rows each like ages. Left out.

    Users are warned of 2 and 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> for values in (np.arange(300.0) ** 1.1, np.sort(rng.normal(size=300)),
    ...                np.cumsum(rng.exponential(size=300))):
    ...     print(_in_order(values))
    running: never turns back, like a clock or a meter
    in order: sorted by it, it seems
    running in uneven steps: never turns back, like a clock or a meter
    """
    steps = np.abs(np.diff(values))
    usual = np.median(steps)
    if usual > 0 and np.mean((steps >= usual / 2) & (steps <= 2 * usual)) >= 0.8:
        return "running: never turns back, like a clock or a meter"
    return SORTED if _ends_are_rare(values) else UNEVEN


def _ends_are_rare(values: Array) -> bool:
    from scipy.stats import rankdata

    # Of many rows, steps over several at once: their noise hides nothing.
    picked = np.linspace(0, len(values) - 1, min(len(values), 101)).round().astype(int)
    steps = np.abs(np.diff(values[picked]))
    size = np.log(steps + max(steps[steps > 0].min(), 1e-300) / 2)
    half = len(steps) // 2
    pairs = rankdata(size[:half] + size[::-1][:half])
    if np.ptp(pairs) == 0:
        return False
    fall = np.corrcoef(np.arange(half), pairs)[0, 1]
    return bool(fall < -max(0.5, 2.5 / np.sqrt(half - 1)))


def _is_epoch(values: Array, most: float) -> bool:
    """Whether numbers are times from 2000 to 2050, in seconds or thousandths of them.

    Measures may be as large: these times lie within a share ``most`` of the largest.
    """
    return bool(np.ptp(values) < most * np.abs(values).max()) and any(
        bool(((values >= 9.4e8 * unit) & (values <= 2.6e9 * unit)).all())
        for unit in (1.0, 1e3, 1e6, 1e9)
    )


def _is_code(cells: Sequence[object]) -> bool:
    """Whether a column of digits is a code: some start with a zero, as postcodes do.

    Most of them, or some of at least three digits that are all as long.
    """
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    digits = [text for text in texts if text.isdecimal()]
    coded = [text for text in digits if len(text) > 1 and text[0] == "0"]
    as_long = {len(text) for text in digits}
    return bool(coded) and (
        2 * len(coded) > len(digits) or (len(as_long) == 1 and max(as_long) > 2)
    )


def _are_booleans(cells: Sequence[object]) -> bool:
    """Whether cells are true or false: categories, as the texts of a CSV file are."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind != "O":
        return cells.dtype.kind == "b"
    return all(isinstance(cell, bool | np.bool_) for cell in cells if not is_missing(cell))


def _text_column(table: Table, name: str, most: int, asked: str | None) -> Column:
    """A column of text: a category where that was asked for, else whatever it looks like."""
    cells = table.columns[name]
    texts = as_text(cells)
    filled = [text for text in texts if text is not None]
    tally, missing = Counter(filled), len(texts) - len(filled)
    values = tuple(sorted(tally))
    if asked and len(values) > max(most, 2):
        frequent = [value for value, _ in tally.most_common(max(most, 2) - 1)]
        rare = len(filled) - sum(tally[value] for value in frequent)
        why = f"as asked; {len(values) - len(frequent):,} rare values are one"
        why += f", {rare / len(filled):.0%} of the rows"
        counts = (*(tally[value] for value in frequent), rare)
        return Column(name, "category", why, missing, (*frequent, OTHERS), counts=counts)
    if len(values) <= 1:
        why = f"always {filled[0]!r}" if filled else EMPTY
        return Column(name, "constant", why, missing, values, counts=(len(filled),)[: len(values)])
    if not asked:
        form, differ = date_format(cells[:SAMPLE_CELLS]), f"{len(values):,} different texts"
        if form is not None:
            why = "time of day" if form.startswith("%H") else ""
            return Column(name, "date", why, missing, form=form)
        nearly_all = len(values) > 0.9 * len(filled)
        many = nearly_all or len(values) > most
        if many and (why := _hidden_number(filled[:SAMPLE_CELLS])):
            return Column(name, "left out", why, missing)
        if len(filled) >= LEAST_ROWS and nearly_all:
            return Column(name, "identifier", differ, missing)
        if len(values) > most:
            why = f"{differ}, more than {most} categories"
            return Column(name, "identifier", why, missing)
        if len(values) > FEW_VALUES and _WHOSE_NAME.search(name):
            return Column(name, "identifier", f"{WHOSE}, {len(values)} values", missing)
    counts = tuple(tally[value] for value in values)
    return Column(name, "category", "as asked" if asked else "", missing, values, counts=counts)


def _hidden_number(texts: Sequence[str]) -> str:
    """Why a column of text seems to be a measure all the same; empty where it does not."""
    for pattern, what, do in (
        (_THOUSANDS, "marks for thousands", "write them plainly"),
        (_DECIMAL_COMMA, "a decimal comma", "read them with decimal=','"),
        (_WITH_UNIT, "a unit", "write them plainly"),
    ):
        fitting = [text for text in texts if pattern.fullmatch(text)]
        if len(fitting) >= 0.9 * len(texts) and not all(map(str.isdecimal, fitting)):
            marked = next(text for text in fitting if not text.isdecimal())
            return f"numbers with {what}, such as {marked!r}: {do} to learn from them"
    return ""


#: Columns of one kind that are named.
SHOWN_COLUMNS = 12


def summarise(columns: Sequence[Column], used: Sequence[str]) -> str:
    """One line per kind: how many columns, their names, and what becomes of them.

    Examples
    --------
    >>> print(summarise([Column("a", "number"), Column("b", "constant", "always 1")], ["a"]))
    number    1  a
    constant  1  b (always 1): left out
    """
    taken = set(used)
    lines = []
    for kind in KINDS:
        members = [column for column in columns if column.kind == kind]
        if not members:
            continue
        shown = ", ".join(_named(column) for column in members[:SHOWN_COLUMNS])
        more = "" if len(members) <= SHOWN_COLUMNS else f" and {len(members) - SHOWN_COLUMNS} more"
        out = "" if any(c.name in taken for c in members) or kind == "left out" else ": left out"
        lines.append((kind, str(len(members)), f"{shown}{more}{out}"))
    wide = max(len(kind) for kind, _, _ in lines)
    tall = max(len(count) for _, count, _ in lines)
    return "\n".join(f"{kind:<{wide}}  {count:>{tall}}  {text}" for kind, count, text in lines)


def _named(column: Column) -> str:
    notes = [f"{len(column.values)} values"] if column.kind == "category" else []
    notes += [column.why] if column.why else []
    notes += [f"{column.missing:,} empty"] if column.missing else []
    return f"{column.name} ({', '.join(notes)})" if notes else column.name
