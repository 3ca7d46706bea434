"""The report in headless Chromium: silent, offline, usable by keyboard, readable on a phone.

Needs Debian's ``chromium`` (or KERNULL_CHROMIUM), the Python package playwright and, for the
accessibility check, axe-core from npm (``make browser-tools``, or KERNULL_AXE). Skips otherwise.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from kernull.report import save_report
from tests.plain import plain_fisher

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("KERNULL_CHROMIUM") or shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("chromium is not installed", allow_module_level=True)
ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
SIZES = {"desktop": (1280, 900), "phone": (375, 800)}


def axe_source() -> str | None:
    places = [os.environ.get("KERNULL_AXE"), ROOT / ".venv/axe/node_modules/axe-core/axe.min.js"]
    for place in places:
        if place and Path(place).exists():
            return Path(place).read_text(encoding="utf-8")
    return None


def make_report(path: Path, max_rows: int) -> str:
    data = load_breast_cancer()
    normal = np.flatnonzero(data.target == 1)
    views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    model = plain_fisher(views=views).fit(data.data[normal[:200]])
    test = np.r_[normal[200:], np.flatnonzero(data.target == 0)]
    save_report(
        model, data.data[test], path, y=np.where(data.target[test] == 1, 1, -1),
        title="Breast cancer", column_names=data.feature_names, max_rows=max_rows,
    )  # fmt: skip
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
        running = engine.chromium.launch(executable_path=CHROMIUM, args=ARGS)
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
        "#rows tbody tr:not([hidden])",
        f"rows => rows.map(row => row.cells[{index}].dataset.key)",
    )


def test_sorting(visit):
    page = visit()
    scores = [float(key) for key in column(page, 1)]
    assert scores == sorted(scores)
    page.click("#rows th:nth-child(2) button")
    assert [float(k) for k in column(page, 1)] == sorted(scores, reverse=True)
    assert page.get_attribute("#rows th:nth-child(2)", "aria-sort") == "descending"
    page.click("#rows th:nth-child(1) button")
    assert [int(k) for k in column(page, 0)] == list(range(1, len(scores) + 1))
    assert page.get_attribute("#rows th:nth-child(2)", "aria-sort") is None
    page.focus("#rows th:nth-child(3) button")
    page.keyboard.press("Enter")
    p_values = [float(k) for k in column(page, 2)]
    assert p_values == sorted(p_values)


def test_filtering(visit):
    page = visit()
    total = len(column(page, 0))
    page.select_option("#filter-verdict", "flagged")
    flagged = column(page, 3)
    assert 0 < len(flagged) < total
    assert set(flagged) == {"flagged"}
    assert page.inner_text("#shown") == f"Showing {len(flagged)} of {total} listed rows."
    page.select_option("#filter-view", "worst")
    assert set(column(page, 5)) == {"worst"}
    page.select_option("#filter-verdict", "")
    page.select_option("#filter-view", "")
    page.fill("#filter-text", "no such text")
    assert column(page, 0) == []
    page.fill("#filter-text", "")
    assert len(column(page, 0)) == total


def test_hover_and_arrow_keys_show_values(visit):
    page = visit()
    # The browser sends pointer events a frame later than the call returns: wait for what they do.
    tip = playwright.expect(page.locator("#tip"))
    marks = page.locator("svg[role=img] >> nth=2").locator(".mark")
    first, second = (marks.nth(i).get_attribute("data-tip") for i in range(2))
    assert first
    assert first != second
    page.hover("svg[role=img] >> nth=0 >> rect.mark >> nth=0")
    tip.to_contain_text("worst: 0.6")
    page.mouse.move(2, 2)
    tip.to_have_text("")
    page.focus("svg[role=img] >> nth=2")
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
    assert page.locator("#rows tbody tr").count() == 369
    assert page.locator("#controls").is_hidden()  # no control that does nothing
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_no_serious_issue(visit, short_report, size, theme):
    source = axe_source()
    if source is None:
        pytest.skip("axe-core is not here: make browser-tools, or set KERNULL_AXE")
    page = visit(size, theme, short_report)
    page.eval_on_selector_all("details", "all => all.forEach(item => { item.open = true; })")
    page.evaluate(source)
    found = page.evaluate("axe.run()")["violations"]
    assert [(v["impact"], v["id"], v["nodes"][0]["html"][:90]) for v in found] == []
