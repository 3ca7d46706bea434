"""The report in headless Chromium: silent, offline, usable by keyboard, readable on a phone.

Needs Debian's ``chromium`` (or KERNULL_CHROMIUM), the Python package playwright and, for the
accessibility check, axe-core from npm (``make browser-tools``, or KERNULL_AXE). Skips otherwise.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from kernull import Judge
from tests.needs import axe, chromium
from tests.plain import plain_fisher

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = pytest.mark.browser
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


def make_report(path: Path, max_rows: int) -> str:
    data = load_breast_cancer()
    normal = np.flatnonzero(data.target == 1)
    names = data.feature_names.tolist()
    views = {"mean": names[:10], "error": names[10:20], "worst": names[20:]}
    table = [dict(zip(names, row, strict=True)) for row in data.data.tolist()]
    judge = Judge(plain_fisher(), views).fit([table[i] for i in normal[:200]])
    test = np.r_[normal[200:], np.flatnonzero(data.target == 0)]
    y = np.where(data.target[test] == 1, 1, -1)
    judge.report([table[i] for i in test], path, y, title="Breast cancer", max_rows=max_rows)
    return path.as_uri()


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> str:
    return make_report(tmp_path_factory.mktemp("report") / "report.html", 500)


@pytest.fixture(scope="module")
def short_report(tmp_path_factory) -> str:
    """The same page with few rows: axe looks at every cell, and all rows are alike."""
    return make_report(tmp_path_factory.mktemp("short") / "report.html", 12)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as engine:
        running = engine.chromium.launch(executable_path=chromium(), args=ARGS)
        yield running
        running.close()


@pytest.fixture
def visit(browser, report):
    """Open the report; whatever it says to the console or asks of the network is noted."""
    pages = []

    def open_page(size: str = "desktop", theme: str = "light", address: str = report):
        width, height = SIZES[size]
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
        page.noise = []
        page.on("console", lambda message: page.noise.append(message.text))
        page.on("pageerror", lambda error: page.noise.append(str(error)))
        page.on("request", lambda r: page.noise.append(r.url) if r.url != address else None)
        page.goto(address)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_no_noise_and_no_sideways_scroll(visit, size, theme):
    page = visit(size, theme)
    page.wait_for_timeout(200)
    # The icon is an empty data address; nothing else may be asked for.
    assert [line for line in page.noise if line != "data:,"] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (theme == "light")


def column(page, index: int) -> list[str]:
    return page.eval_on_selector_all(
        "#rows tbody tr:not([hidden])", f"rows => rows.map(row => row.cells[{index}].textContent)"
    )


def test_findings_come_first_and_the_page_is_short(visit):
    for size, (_, height) in SIZES.items():
        page = visit(size)
        first = page.locator(".worst li .cols").first.bounding_box()
        assert first["y"] + first["height"] < height
        assert page.evaluate("document.documentElement.scrollHeight") <= 12 * height


def test_sorting_and_pages(visit):
    page = visit()
    assert len(column(page, 0)) == 25
    scores = [float(text) for text in column(page, 1)]
    assert scores == sorted(scores)
    page.click("#after")
    assert page.inner_text("#place").startswith("Page 2 of ")
    assert float(column(page, 1)[0]) >= scores[-1]
    page.click("#rows th:nth-child(2) button")
    high = [float(text) for text in column(page, 1)]
    assert high == sorted(high, reverse=True)
    assert high[0] > scores[-1]
    assert page.inner_text("#place").startswith("Page 1 of ")
    assert page.get_attribute("#rows th:nth-child(2)", "aria-sort") == "descending"
    page.click("#rows th:nth-child(1) button")
    numbers = [int(text) for text in column(page, 0)]
    assert numbers == sorted(numbers)
    assert page.get_attribute("#rows th:nth-child(2)", "aria-sort") is None
    page.focus("#rows th:nth-child(3) button")
    page.keyboard.press("Enter")
    assert page.get_attribute("#rows th:nth-child(3)", "aria-sort") == "ascending"


def test_filtering(visit):
    page = visit()
    total = int(page.inner_text("#shown").split(" of ")[1].split()[0])
    page.select_option("#filter-view", "worst")
    shown = int(page.inner_text("#shown").split(" of ")[0])
    assert 0 < shown < total
    page.select_option("#filter-view", "")
    page.fill("#filter-text", "no such text")
    assert column(page, 0) == []
    page.fill("#filter-text", "")
    assert page.inner_text("#shown") == f"{total} of {total} listed rows."


def test_findings_as_a_file(visit):
    page = visit()
    with page.expect_download() as waiting:
        page.click("#download")
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert waiting.value.suggested_filename == "findings.csv"
    assert len(rows) == int(page.inner_text("#shown").split(" of ")[0])
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores)
    assert [float(row["score"]) for row in rows[:25]] == pytest.approx(
        [float(score) for score in column(page, 1)], abs=5e-4
    )
    shown = " ".join(column(page, 4)[0].split())
    assert " ".join(rows[0]["reasons"].split()).startswith(shown[:20])


def test_hover_and_arrow_keys_show_values(visit):
    page = visit()
    # The browser sends pointer events a frame later than the call returns: wait for what they do.
    tip = playwright.expect(page.locator("#tip"))
    marks = page.locator("svg[role=img] >> nth=1").locator(".mark")
    first, second = (marks.nth(i).get_attribute("data-tip") for i in range(2))
    assert first
    assert first != second
    page.hover('rect.mark[data-tip*="labelled"] >> nth=0')
    tip.to_contain_text("% labelled")
    page.mouse.move(2, 2)
    tip.to_have_text("")
    page.focus("svg[role=img] >> nth=1")
    page.keyboard.press("ArrowRight")
    tip.to_have_text(first)
    page.wait_for_timeout(100)  # focus scrolled the page: the value stays, and beside its mark
    tip.to_have_text(first)
    box, label = marks.nth(0).bounding_box(), page.locator("#tip").bounding_box()
    assert (
        min(
            abs(label["y"] + label["height"] - box["y"]), abs(label["y"] - box["y"] - box["height"])
        )
        < 20
    )
    page.keyboard.press("ArrowRight")
    tip.to_have_text(second)
    page.keyboard.press("Escape")
    tip.to_have_text("")


def test_the_theme_button(visit):
    page = visit(theme="light")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    assert page.inner_text("#theme") == "Light theme"


def test_the_page_reads_without_script(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report)
    assert page.locator("#rows tbody tr").count() == 173  # all
    assert page.locator("#controls").is_hidden()  # no control that does nothing
    context.close()


@pytest.mark.axe
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_no_serious_issue(visit, short_report, size, theme):
    page = visit(size, theme, short_report)
    page.eval_on_selector_all("details", "all => all.forEach(item => { item.open = true; })")
    page.evaluate(axe().read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    assert [(v["impact"], v["id"], v["nodes"][0]["html"][:90]) for v in found] == []
