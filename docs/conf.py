"""Sphinx: ``make docs``."""

from __future__ import annotations

import os
from pathlib import Path

from kernull import __version__

HERE = Path(__file__).parent

project = "kernull"
author = "the kernull developers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
# ranks_*.md are tables that pages of results are written from.
exclude_patterns = ["_build", "**/README.md", "results/**/ranks_*.md"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it, in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    # KERNULL_DOCS_PLOTS=0 builds without running the examples.
    "plot_gallery": os.environ.get("KERNULL_DOCS_PLOTS", "1") != "0",
    "ignore_pattern": r"^(?!.*plot_\d)",  # scripts that guides call
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "kernull"
html_static_path = ["_static"]
html_css_files = ["kernull.css"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}


def skip_scikit_learn(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds to its estimators: it is documented there."""
    module = getattr(obj, "__module__", "") or ""
    routed = name.endswith("_request") or name in ("get_metadata_routing", "metadata_requests_")
    return True if routed or module.startswith("sklearn") else None


def setup(app):
    app.connect("autodoc-skip-member", skip_scikit_learn)
