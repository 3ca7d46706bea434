"""Numbers as people write them: marks between thousands, minus signs, percents."""

from __future__ import annotations

import numpy as np
import pytest

from kernull import TableViews, read_table
from kernull.tables.cells import as_numbers


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,076.88", 1076.88), ("-12,345,678.5", -12345678.5), ("1,234,567", None),
     (" 9,001.0 ", 9001.0), ("950.10", 950.1), ("1,076", None), ("1,07.5", None),
     ("12,34,567.0", None), ("1.076,88", None)],
)  # fmt: skip
def test_marks_between_thousands(text, value):
    """English ones stopped fit; what could be a decimal comma is not guessed at."""
    found, _, bad = as_numbers([text, "1.5"])
    assert bad.tolist() == [value is None, False]
    assert value is None or found[0] == value


@pytest.mark.parametrize(
    ("texts", "decimal", "values"),
    [
        (["1 537,72", "2\u00a0000", "-12\u202f345,5"], ",", [1537.72, 2000, -12345.5]),
        (["1'537.72", "2\u2019000", "1e3"], ".", [1537.72, 2000, 1000]),
        (["\u22123.5", "+4", ""], ".", [-3.5, 4, None]),
        (["94.7%", "3 %", "n/a"], ".", [94.7, 3, None]),
        (["94,7 %", "\u22123,5%"], ",", [94.7, -3.5]),
        (["94.7%", "0.9"], ".", ["bad", 0.9]),  # of what?
        (["12 34", "1 5372", "1'5"], ".", ["bad"] * 3),
    ],
)
def test_numbers_as_people_write_them(texts, decimal, values):
    found, missing, bad = as_numbers(texts, decimal)
    assert bad.tolist() == [value == "bad" for value in values]
    assert missing.tolist() == [value is None for value in values]
    assert found[~missing & ~bad].tolist() == [v for v in values if isinstance(v, int | float)]


def test_columns_of_them_are_numbers(tmp_path):
    rng = np.random.default_rng(0)
    amounts = rng.uniform(500, 2000, 60).round(2)
    text = [f"{v:,.2f}".replace(",", " ").replace(".", ",") for v in amounts]
    rows = [f"{t};\u2212{i * 7 % 60};{i * 11 % 60},5 %" for i, t in enumerate(text)]
    (tmp_path / "t.csv").write_text("\n".join(["euro;below;share", *rows]), encoding="utf-8")
    with pytest.warns(UserWarning, match="decimal comma"):
        table = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(table.numbers("euro"), amounts)
    assert TableViews().fit(table).used_ == ["euro", "share"]  # "below" is a running number


def test_english_amounts_are_read(tmp_path):
    rng = np.random.default_rng(0)
    amounts = rng.uniform(500, 2000, 60).round(2)
    for sep in ",;":
        lines = [
            f'"{amount:,.2f}"{sep}{b}'
            for amount, b in zip(amounts, rng.normal(size=60), strict=True)
        ]
        (tmp_path / "en.csv").write_text("\n".join([f"amount{sep}b", *lines]) + "\n")
        table = read_table(tmp_path / "en.csv")
        np.testing.assert_array_equal(table.numbers("amount"), amounts)
        assert TableViews().fit(table).used_ == ["amount", "b"]
