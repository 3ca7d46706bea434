"""Reports: one self-contained HTML page on a model and the rows it judged."""

from kernull.report._page import render_report

__all__ = ["render_report"]
