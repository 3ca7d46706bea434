"""Reports whose names, cells and titles are markup, opened in a real browser.

The page must stay silent: no dialog, no error, nothing asked of the network, no element that the
template does not have.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_wine

from benchmarks.fuzz.cases import Action, WrongError

PAYLOADS = [
    "<script>alert(1)</script>", "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>", "' onmouseover='alert(1)",
    "javascript:alert(1)", "<!--", "-->", "]]>", "{{7*7}}", "${alert(1)}",
    "</title><script>alert(1)</script>", "</style><script>alert(1)</script>",
    "<iframe src=//evil.example>", "<link rel=stylesheet href=//evil.example/x.css>", "&lt;b&gt;",
    "<base href=//evil.example>", "<meta http-equiv=refresh content=0;url=//evil.example>",
    "\u202egnp.exe", "</text><script>alert(1)</script>", "<form action=//evil.example><button>",
    "\x00<script>alert(1)", "<a href=javascript:alert(1)>x</a>", "\u2028alert(1)", "`alert(1)`",
    "\\u003cscript>", "a" * 500,
]  # fmt: skip

#: What names could smuggle in.
TAGS = ("script", "iframe", "base", "form", "link", "img", "meta", "object", "style", "a")


def chromium() -> str | None:
    """The browser, where there is one."""
    return os.environ.get("KERNULL_CHROMIUM") or shutil.which("chromium")


class Pages:
    """Reports in Chromium."""

    def __init__(self) -> None:
        from playwright.sync_api import sync_playwright

        self.engine = sync_playwright().start()
        options = [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
        ]
        self.browser = self.engine.chromium.launch(executable_path=chromium(), args=options)
        X, y = load_wine(return_X_y=True)
        self.normal, self.rows = X[y == 0], X[::9]
        self.usual: dict[str, int] | None = None
        with tempfile.TemporaryDirectory() as folder:  # the elements of a page of plain names
            names, rows = [f"c{i}" for i in range(13)], [f"r{i}" for i in range(len(self.rows))]
            views = {"a": list(range(6)), "b": list(range(6, 13))}
            self.visit(Path(folder), names, views, rows, "title", "subtitle")

    def close(self) -> None:
        self.browser.close()
        self.engine.stop()

    def case(self, rng: np.random.Generator, folder: Path) -> tuple[str, Action]:
        def text() -> str:
            return "".join(rng.choice(PAYLOADS, int(rng.integers(1, 3))))

        names = [f"{text()}{i}" for i in range(13)]
        views = {f"{text()} a": list(range(6)), f"{text()} b": list(range(6, 13))}
        rows = [text() for _ in self.rows]
        title, subtitle = text(), text()
        return "page", lambda: self.visit(folder, names, views, rows, title, subtitle)

    def corpus(self, folder: Path) -> Iterator[tuple[str, Action]]:
        for payload in PAYLOADS:
            views = {payload: list(range(6)), f"{payload}2": list(range(6, 13))}
            names, rows = [f"{payload}{i}" for i in range(13)], [payload] * len(self.rows)

            def go(
                views: Any = views, names: Any = names, rows: Any = rows, p: str = payload
            ) -> str:
                return self.visit(folder, names, views, rows, p, p)

            yield repr(payload[:30]), go

    def visit(
        self, folder: Path, names: Any, views: Any, rows: Any, title: str, subtitle: str
    ) -> str:
        """Write a report, look at it, use its controls."""
        from kernull import Judge

        views = {view: [names[j] for j in columns] for view, columns in views.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of how the model was calibrated
            judge = Judge(views=views).fit(dict(zip(names, self.normal.T, strict=True)))
        path = judge.report(
            dict(zip(names, self.rows.T, strict=True)), folder / "page.html", title=title,
            subtitle=subtitle, row_names=rows, model_path=title,
        )  # fmt: skip
        noise: list[str] = []
        page = self.browser.new_page()
        page.set_default_timeout(100_000)  # the machine may be busy
        try:
            address = path.as_uri()
            page.on("console", lambda m: noise.append(f"console {m.text}"))
            page.on("pageerror", lambda e: noise.append(f"error {e}"))
            page.on("dialog", lambda d: (noise.append(f"dialog {d.message}"), d.dismiss()))
            page.on("request", lambda r: noise.append(f"request {r.url}"))
            page.goto(address)
            for button in page.query_selector_all("#rows th button")[:3]:
                button.click()
            counts = {tag: len(page.query_selector_all(tag)) for tag in TAGS}
        finally:
            page.close()
        asked = [n for n in noise if n not in (f"request {address}", "request data:,")]
        if asked:
            raise WrongError(f"{asked[:3]}")
        if self.usual is None:
            self.usual = counts
        if counts != self.usual:
            raise WrongError(f"elements {counts}, usually {self.usual}")
        return "silent"
