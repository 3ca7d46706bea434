"""Screenshots of the report for the docs: ``python docs/screenshots.py [report.html]``.

Those in the docs are of the report that docs/guide/tables.md makes.

Needs chromium (or KERNULL_CHROMIUM) and the Python package playwright.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

OUT = Path(__file__).parent / "_static"
SIZES = {"desktop": (1180, 1500), "phone": (390, 1500)}
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def main() -> None:
    report = Path(sys.argv[1] if len(sys.argv) > 1 else "report.html").resolve()
    chromium = os.environ.get("KERNULL_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium, args=ARGS)
        for size, (width, height) in SIZES.items():
            for theme in ("light", "dark"):
                page = browser.new_page(
                    viewport={"width": width, "height": height}, color_scheme=theme
                )
                page.goto(report.as_uri())
                page.screenshot(path=OUT / f"report-{size}-{theme}.png")
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
